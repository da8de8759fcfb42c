//! Split debug information: the binary keeps skeletons of units and their lines, `.dwo` files or one `.dwp` package
//! hold the entries. DWARF 5 section 7.3, and the GNU extension of version 4 that it grew from.

use super::Job;
use super::format::{DwoId, OpenSections, PackageSections, Sections, bytes};
use super::units::{UnitRoot, Units};
use crate::object_file::ObjectFile;
use crate::{DebugFile, Locate};
use heatline_profile::Problems;
use std::cell::OnceCell;

/// The package of a binary, looked for when the first skeleton is met.
#[derive(Default)]
pub(super) struct Package(OnceCell<Option<PackageSections>>);

impl Package {
    fn get(&self, locate: &dyn Locate, problems: &mut Problems) -> Option<&PackageSections> {
        let find = || {
            let file = locate.locate(&DebugFile::Package).and_then(|storage| ObjectFile::open(storage).ok());
            file.and_then(|file| PackageSections::find(&file, problems))
        };
        self.0.get_or_init(find).as_ref()
    }
}

/// The content of what was found for some jobs.
pub(super) struct SplitFiles<'p> {
    package: Option<&'p PackageSections>,
    /// Per job.
    files: Vec<Option<OpenSections>>,
}

impl<'p> SplitFiles<'p> {
    /// Asks for the package, then for the file of each unit that is not in one.
    pub fn find(
        units: &Units<'_>,
        jobs: &[Job],
        package: &'p Package,
        locate: &dyn Locate,
        problems: &mut Problems,
    ) -> SplitFiles<'p> {
        let mut found = SplitFiles { package: None, files: Vec::new() };
        let skeletons: Vec<_> = jobs.iter().map(|job| units.root(job.unit).and_then(skeleton)).collect();
        if skeletons.iter().all(Option::is_none) {
            return found;
        }
        found.package = package.get(locate, problems);
        for wanted in &skeletons {
            let file = wanted.as_ref().filter(|wanted| !found.packaged(wanted.id)).and_then(|wanted| {
                let name = String::from_utf8_lossy(wanted.name);
                let folder = wanted.folder.map(String::from_utf8_lossy);
                let asked = DebugFile::Dwo { folder: folder.as_deref(), name: &name, id: wanted.id.0 };
                let file = locate.locate(&asked).and_then(|storage| ObjectFile::open(storage).ok());
                if file.is_none() {
                    let message = format!("{name} holds functions and inlined calls and was not found");
                    problems.add("missing-debug-file", 1, None, message);
                }
                file
            });
            found.files.push(file.map(|file| Sections::find_split(&file, problems).open()));
        }
        found
    }

    fn packaged(&self, id: DwoId) -> bool {
        self.package.is_some_and(|package| package.holds(id))
    }

    /// The units of each job's own file, with the number of the one that fits its skeleton.
    pub fn units<'a>(
        &'a self,
        units: &Units<'a>,
        jobs: &[Job],
        problems: &mut Problems,
    ) -> Vec<Option<(Units<'a>, usize)>> {
        let mut all = Vec::with_capacity(self.files.len());
        for (job, file) in jobs.iter().zip(&self.files) {
            let root = units.root(job.unit);
            let Some((root, wanted)) = root.and_then(|root| Some((root, skeleton(root)?))) else {
                all.push(None);
                continue;
            };
            let dwarf = match (file, self.package) {
                (Some(file), _) => Some(file.borrow_split(&units.dwarf)),
                (None, Some(package)) => package.borrow(wanted.id, &units.dwarf),
                (None, None) => None,
            };
            let split = dwarf.map(|dwarf| Units::split(dwarf, &root.unit, problems));
            let found = split.and_then(|split| {
                let fits = |number: &usize| split.root(*number).is_some_and(|r| r.unit.dwo_id == Some(wanted.id));
                let number = (0..split.len()).find(fits);
                if number.is_none() {
                    let name = String::from_utf8_lossy(wanted.name);
                    let message = format!("{name}: expected a unit with id {:#018x}, found none", wanted.id.0);
                    problems.add("debug-file-mismatch", 1, None, message);
                }
                Some((split, number?))
            });
            all.push(found);
        }
        all
    }
}

/// What a skeleton says of the file that holds its entries.
struct Skeleton<'a> {
    name: &'a [u8],
    folder: Option<&'a [u8]>,
    id: DwoId,
}

fn skeleton<'a>(root: &UnitRoot<'a>) -> Option<Skeleton<'a>> {
    let folder = root.unit.comp_dir.as_ref().map(bytes);
    Some(Skeleton { name: root.dwo_name?, folder, id: root.unit.dwo_id? })
}
