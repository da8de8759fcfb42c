//! The text that the lines of a profile are of.
//!
//! For each source file with cost, the first of: the text here if its checksum is that in the debug information; the
//! text that the profile or the debug information brings along; a text of the repository's history with that checksum.
//! Where there are no checksums: the text here if it was not written since the build, or that of the newest commit from
//! before it that has code on every line. Else the text that was here when the profile was loaded, unverified.

mod checksum;
mod guard;
mod history;
mod placed;
mod renames;

pub use checksum::has_any as has_any_checksum;
pub use placed::Bases;

use crate::files;
use crate::load::Loaded;
use heatline_annotate::placement::{Declaration, declared, fit};
use heatline_annotate::{FileId, Model, components, is_absolute};
use heatline_symbols::Checksum;
use history::{Found, Repository, Want};
use rayon::prelude::*;
use renames::{Lost, Renamed};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Larger files are no sources.
const LARGEST: u64 = 16 << 20;

/// So many ends of a path are tried where the file is not here any more.
const MOST_ENDS: usize = 8;

/// How a text was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The text here has the recorded checksum.
    Checksum,
    /// The text here was not written since the build.
    Unwritten,
    /// The profile or the debug information brought it along.
    Kept,
    /// A commit holds it, named by the beginning of its id.
    Commit(String),
    /// It was here when the profile was loaded; nothing says that it is the right one.
    Seen,
}

impl Origin {
    /// What to say of it; `None` where there is nothing to say: the text here is the profiled one.
    pub fn sentence(&self) -> Option<String> {
        match self {
            Origin::Checksum | Origin::Unwritten | Origin::Seen => None,
            Origin::Kept => Some("the profiled text is recorded with the profile".into()),
            Origin::Commit(id) => Some(format!("the profiled text is that of commit {id}")),
        }
    }
}

/// A text and how it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BaseText {
    /// The text.
    pub text: Arc<str>,
    /// How it was found.
    pub origin: Origin,
}

impl BaseText {
    /// A text of which nothing is known.
    pub fn seen(text: &str) -> Self {
        BaseText { text: text.into(), origin: Origin::Seen }
    }

    /// Whether it is known to be the profiled text.
    pub fn is_verified(&self) -> bool {
        self.origin != Origin::Seen
    }
}

/// The texts that the files of a profile were built from.
#[derive(Clone, Debug, Default)]
pub struct BaseTexts {
    texts: HashMap<FileId, BaseText>,
    renamed: HashMap<FileId, Renamed>,
    unread: BTreeSet<String>,
}

impl BaseTexts {
    /// Which histories could not be looked into, and why.
    pub fn unread(&self) -> impl Iterator<Item = &str> {
        self.unread.iter().map(String::as_str)
    }

    /// The text of a file, by the number that stands for it.
    pub fn get(&self, file: FileId) -> Option<&BaseText> {
        self.texts.get(&file)
    }

    /// The text of any file of the profile, if it is known to be the right one.
    pub fn verified(&self, loaded: &Loaded, file: FileId) -> Option<Arc<str>> {
        let stands = loaded.sources.same_file().get(file.0 as usize).copied().unwrap_or(file);
        self.get(stands).filter(|base| base.is_verified()).map(|base| base.text.clone())
    }

    /// The files that are another text here than the one that was built, by their recorded paths. Reads sources.
    pub fn changed(&self, loaded: &Loaded) -> Vec<String> {
        let is_other = |file: FileId, base: &BaseText| {
            let here = loaded.sources.path(file).and_then(read);
            base.is_verified() && here.is_some_and(|here| !here.lines().eq(base.text.lines()))
        };
        let changed = self.texts.iter().filter(|(file, base)| is_other(**file, base));
        let mut paths: Vec<String> = changed.map(|(file, _)| loaded.model.file(*file).path.clone()).collect();
        paths.sort();
        paths
    }

    /// Where a file is that was renamed or moved since.
    pub fn renamed(&self, file: FileId) -> Option<&Path> {
        self.renamed.get(&file).map(|renamed| renamed.to.as_path())
    }

    /// Where a file was that was renamed or moved since.
    pub fn renamed_from(&self, file: FileId) -> Option<&Path> {
        self.renamed.get(&file).map(|renamed| renamed.from.as_path())
    }

    /// The file that was renamed to a path.
    pub fn file_at(&self, path: &Path) -> Option<FileId> {
        self.renamed.iter().find(|(_, renamed)| renamed.to == path).map(|(file, _)| *file)
    }

    /// Notes that somebody renamed a file.
    pub fn rename(&mut self, file: FileId, from: PathBuf, to: PathBuf) {
        let from = self.renamed.remove(&file).map_or(from, |renamed| renamed.from);
        if from != to {
            self.renamed.insert(file, Renamed { from, to });
        }
    }

    /// The files whose text was found, in no particular order.
    pub fn files(&self) -> impl Iterator<Item = FileId> + '_ {
        self.texts.keys().copied()
    }

    /// Keeps what was found of the same recording before, where nothing is known for sure now: the text here may have
    /// been edited since. Tells whether anything is another text by that.
    pub fn keep(&mut self, before: &BaseTexts) -> bool {
        let mut any = false;
        for (&file, base) in &before.texts {
            if self.texts.get(&file).is_none_or(|found| !found.is_verified() && found != base) {
                self.texts.insert(file, base.clone());
                any = true;
            }
        }
        self.keep_renames(before) || any
    }

    /// Takes what was renamed according to others, where that is so. Tells whether anything is elsewhere by that.
    pub fn keep_renames(&mut self, before: &BaseTexts) -> bool {
        let mut any = !self.renames_hold();
        self.renamed.retain(|_, renamed| renamed.holds());
        for (file, renamed) in before.renamed.iter().filter(|(_, renamed)| renamed.is_there()) {
            if !self.renamed.get(file).is_some_and(Renamed::is_there) {
                self.renamed.insert(*file, renamed.clone());
                any = true;
            }
        }
        any
    }

    /// Whether all files that were renamed are still where they were renamed to.
    pub fn renames_hold(&self) -> bool {
        self.renamed.values().all(Renamed::holds)
    }

    /// Finds the texts that are at hand, and takes what is here for the others. Reads all sources with cost once.
    pub fn at_hand(loaded: &Loaded, cancelled: &AtomicBool) -> Self {
        let find = |file: &Costed| {
            let here = || Some(BaseText::seen(&read(file.path.as_deref()?)?));
            Some((file.file, file.at_hand(None).or_else(here)?))
        };
        let files = Costed::all(loaded);
        let wanted = files.par_iter().filter(|_| !cancelled.load(Ordering::Relaxed));
        BaseTexts { texts: wanted.filter_map(find).collect(), ..BaseTexts::default() }
    }

    /// Looks in `buffers`, texts that are open in an editor, and in the history of repositories for what is not known
    /// for sure. Takes long; ends early when `cancelled` is set. Tells whether anything was found.
    pub fn search(&mut self, loaded: &Loaded, buffers: &HashMap<FileId, Arc<str>>, cancelled: &AtomicBool) -> bool {
        let mut left = Costed::all(loaded);
        left.retain(|file| !self.get(file.file).is_some_and(BaseText::is_verified));
        let before = left.len();
        for file in &left {
            let buffer = buffers.get(&file.file).and_then(|buffer| file.at_hand(Some(buffer)));
            self.texts.extend(buffer.map(|base| (file.file, base)));
        }
        left.retain(|file| !self.get(file.file).is_some_and(BaseText::is_verified));
        let found = self.search_history(&left, loaded, cancelled);
        left.retain(|file| !self.get(file.file).is_some_and(BaseText::is_verified));
        self.follow_renames(loaded, found, cancelled) || left.len() < before
    }

    fn search_history(&mut self, left: &[Costed], loaded: &Loaded, cancelled: &AtomicBool) -> HashMap<FileId, Found> {
        let mut all = HashMap::new();
        for (repository, files) in in_repositories(left, loaded, &mut self.unread) {
            let wants: Vec<Want<'_>> = files.iter().map(|file| file.want(&repository.folder)).collect();
            let found = repository.search(&wants, cancelled);
            for (file, found) in files.iter().zip(found).filter_map(|(file, found)| Some((file, found?))) {
                let base = BaseText { text: found.text.clone(), origin: Origin::Commit(found.commit.clone()) };
                self.texts.insert(file.file, base);
                all.insert(file.file, found);
            }
        }
        all
    }

    /// Looks for files that are not where they were; `found` is what a search has found of them. Tells whether any is
    /// elsewhere than it was said.
    fn follow_renames(&mut self, loaded: &Loaded, mut found: HashMap<FileId, Found>, cancelled: &AtomicBool) -> bool {
        let known = self.renamed.len();
        self.renamed.retain(|_, renamed| renamed.holds());
        let mut any = self.renamed.len() < known;
        let mut lost = Costed::all(loaded);
        lost.retain(|file| {
            let is_lost = self.renamed(file.file).map_or_else(|| file.is_lost(), |path| !path.is_file());
            is_lost && self.get(file.file).is_some()
        });
        let numbers: HashSet<FileId> = lost.iter().map(|file| file.file).collect();
        let is_other = |path: &Path| loaded.sources.file_at(path).is_some_and(|file| !numbers.contains(&file));
        for (repository, files) in in_repositories(&lost, loaded, &mut BTreeSet::new()) {
            let ask = |file: &&Costed| Lost {
                names: file.names_before(&repository.folder, self.renamed(file.file)),
                text: self.get(file.file).map(|base| base.text.clone()).unwrap_or_default(),
                found: found.remove(&file.file),
            };
            let lost: Vec<Lost> = files.iter().map(ask).collect();
            let renamed = repository.follow(&lost, &is_other, cancelled);
            let renamed = files.iter().zip(renamed).filter_map(|(file, renamed)| Some((file.file, renamed?)));
            for (file, Renamed { from, to }) in renamed.collect::<Vec<_>>() {
                self.rename(file, from, to);
                any = true;
            }
        }
        any
    }
}

/// The repositories that files may be in, with the files of each. Adds which cannot be read, and why.
fn in_repositories<'a>(
    files: &'a [Costed],
    loaded: &Loaded,
    unread: &mut BTreeSet<String>,
) -> Vec<(Repository, Vec<&'a Costed>)> {
    let mut repositories: Vec<(Repository, Vec<&Costed>)> = Vec::new();
    let mut outside: HashSet<PathBuf> = HashSet::new();
    for file in files {
        let found = file.folders(loaded.sources.roots()).into_iter().find_map(|folder| {
            let known = if outside.contains(&folder) { Ok(None) } else { known_or_new(&folder, &mut repositories) };
            let at = known.unwrap_or_else(|why| {
                tracing::warn!("{why}");
                unread.insert(why);
                None
            });
            if at.is_none() {
                outside.insert(folder);
            }
            at
        });
        if let Some(at) = found {
            repositories[at].1.push(file);
        }
    }
    repositories
}

/// The position of the repository that a folder is in, opened if it was not yet; or why it cannot be.
fn known_or_new<T: Default>(folder: &Path, repositories: &mut Vec<(Repository, T)>) -> Result<Option<usize>, String> {
    let Ok(folder) = folder.canonicalize() else { return Ok(None) };
    let is_nested = |known: &Path| folder.ancestors().take_while(|a| *a != known).any(|a| a.join(".git").exists());
    if let Some(at) =
        repositories.iter().position(|(known, _)| folder.starts_with(&known.folder) && !is_nested(&known.folder))
    {
        return Ok(Some(at));
    }
    let Some(repository) = Repository::of(&folder)? else { return Ok(None) };
    repositories.push((repository, T::default()));
    Ok(Some(repositories.len() - 1))
}

fn seconds(time: SystemTime) -> Option<i64> {
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

/// The text of a source file here; `None` if there is none or it is too large for one.
pub fn read(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&read_bytes(path)?).into_owned())
}

/// The bytes of a source file here, as [`read`] has its text.
pub fn read_bytes(path: &Path) -> Option<Vec<u8>> {
    files::read(path, LARGEST).ok()
}

/// A source file with cost, under all names it has in the profile.
struct Costed {
    file: FileId,
    recorded: String,
    /// Where it is here.
    path: Option<PathBuf>,
    checksums: Vec<Checksum>,
    kept: Option<Arc<str>>,
    lines: BTreeSet<NonZeroU32>,
    declarations: Vec<Declaration>,
    /// When the last of the binaries that hold its code was written, or the recording if that was before.
    built: Option<SystemTime>,
}

impl Costed {
    fn all(loaded: &Loaded) -> Vec<Costed> {
        let model: &Model = &loaded.model;
        let written = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
        let recorded = written(&loaded.path);
        let binaries: Vec<Option<SystemTime>> = loaded.binaries.iter().map(|path| written(path.as_deref()?)).collect();
        let same = loaded.sources.same_file();
        let mut files: HashMap<FileId, Costed> = HashMap::new();
        for (module, file, line) in model.source_lines() {
            let stands = same.get(file.0 as usize).copied().unwrap_or(file);
            let costed = files.entry(stands).or_insert_with(|| Costed {
                file: stands,
                recorded: model.file(stands).path.clone(),
                path: loaded.sources.path(stands).map(Path::to_owned),
                checksums: Vec::new(),
                kept: None,
                lines: BTreeSet::new(),
                declarations: Vec::new(),
                built: recorded,
            });
            costed.lines.insert(line);
            let built = binaries.get(module.0 as usize).copied().flatten();
            costed.built = [costed.built, built].into_iter().flatten().min();
        }
        for (id, file) in (0..).map(FileId).zip(model.files()) {
            let stands = same.get(id.0 as usize).copied().unwrap_or(id);
            let Some(costed) = files.get_mut(&stands) else { continue };
            costed.checksums.extend(file.checksum);
            costed.kept = costed.kept.take().or_else(|| file.text.clone());
        }
        for function in model.functions() {
            let (Some(file), Some(line)) = (function.file, function.line) else { continue };
            let stands = same.get(file.0 as usize).copied().unwrap_or(file);
            if let Some(costed) = files.get_mut(&stands) {
                costed.declarations.extend(Declaration::new(&function.name, line));
            }
        }
        let mut files: Vec<Costed> = files.into_values().collect();
        for file in &mut files {
            file.declarations.sort();
            file.declarations.dedup();
        }
        files.sort_by_key(|file| file.file);
        files
    }

    /// The text if it can be told without a search.
    fn at_hand(&self, buffer: Option<&Arc<str>>) -> Option<BaseText> {
        let found = |text: Arc<str>, origin| Some(BaseText { text, origin });
        if let Some(buffer) = buffer.filter(|buffer| checksum::has_any(buffer.as_bytes(), &self.checksums)) {
            return found(buffer.clone(), Origin::Checksum);
        }
        if !self.checksums.is_empty()
            && let Some(bytes) = self.path.as_deref().and_then(read_bytes)
            && checksum::has_any(&bytes, &self.checksums)
        {
            return found(String::from_utf8_lossy(&bytes).into(), Origin::Checksum);
        }
        if let Some(text) = &self.kept {
            return found(text.clone(), Origin::Kept);
        }
        if self.checksums.is_empty() && self.is_unwritten() {
            let text = self.path.as_deref().and_then(read)?;
            return if self.fits_here(&text) { found(text.into(), Origin::Unwritten) } else { None };
        }
        None
    }

    /// Whether the file here was last written before the binary was.
    fn is_unwritten(&self) -> bool {
        let written = self.path.as_deref().and_then(|path| path.metadata().and_then(|data| data.modified()).ok());
        matches!((written, self.built), (Some(written), Some(built)) if written <= built)
    }

    /// Whether the text here can be the one that was built. Of a file under another path also its functions have to be
    /// where they were: it may be another file of the same name.
    fn fits_here(&self, text: &str) -> bool {
        let is_where_recorded = self.path.as_deref() == Some(Path::new(&self.recorded));
        fit(text, &self.recorded, self.lines.iter().copied()).is_whole()
            && (is_where_recorded || declared(text, &self.declarations).share() >= history::LEAST_DECLARED)
    }

    /// Whether it is not where it was: not here at all, or found under another path though the recorded one is of
    /// this machine.
    fn is_lost(&self) -> bool {
        let recorded = Path::new(&self.recorded);
        match &self.path {
            Some(path) if path.is_file() => {
                path != recorded && recorded.is_absolute() && !recorded.is_file() && existing_above(recorded).is_some()
            }
            _ => true,
        }
    }

    /// Folders whose repository may hold the file.
    fn folders(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        if let Some(path) = &self.path {
            return existing_above(&resolved(path)).into_iter().collect();
        }
        let above = existing_above(Path::new(&self.recorded)).filter(|_| is_absolute(&self.recorded));
        above.into_iter().chain(roots.iter().cloned()).collect()
    }

    /// What is wanted of a repository.
    fn want(&self, folder: &Path) -> Want<'_> {
        Want {
            paths: self.names_in(folder),
            checksums: &self.checksums,
            not_newer: self.built.and_then(seconds),
            recorded: &self.recorded,
            lines: &self.lines,
            declarations: &self.declarations,
        }
    }

    /// Where it may have been in a repository when it was built.
    fn names_in(&self, folder: &Path) -> Vec<String> {
        let here = self.path.as_deref().and_then(|path| inside(&resolved(path), folder));
        match (self.recorded_inside(folder), here) {
            // What the compiler wrote down was so. A text with the checksum is the right one wherever it was.
            (Some(recorded), Some(here)) if !self.checksums.is_empty() && here != recorded => vec![recorded, here],
            (Some(recorded), _) => vec![recorded],
            (None, Some(here)) if ends_with(&self.recorded, &here) => vec![here],
            // It was moved, unless there never was such a path here.
            (None, Some(here)) => self.ends().filter(|end| end.contains('/')).chain([here]).collect(),
            (None, None) => self.ends().collect(),
        }
    }

    /// Where it was in a repository in which it is no more; `renamed` is where it was last.
    fn names_before(&self, folder: &Path, renamed: Option<&Path>) -> Vec<String> {
        let here = self.path.as_deref().filter(|path| !path.is_file());
        let here = [renamed, here].into_iter().flatten().filter_map(|path| inside(&resolved(path), folder));
        let mut names: Vec<String> = here.chain(self.recorded_inside(folder)).collect();
        if names.is_empty() {
            let mut ends: Vec<String> = self.ends().collect();
            ends.reverse();
            names = ends;
        }
        names
    }

    /// The recorded path in a repository, if it is one of this machine and in that.
    fn recorded_inside(&self, folder: &Path) -> Option<String> {
        let recorded = Path::new(&self.recorded);
        inside(recorded, folder).or_else(|| inside(&resolved(recorded), folder)).filter(|_| recorded.is_absolute())
    }

    /// The ends of the recorded path, the shortest first.
    fn ends(&self) -> impl Iterator<Item = String> {
        let names: Vec<&str> = components(&self.recorded).collect();
        let ends = (0..names.len()).rev().take(MOST_ENDS).map(|from| names[from..].join("/"));
        ends.collect::<Vec<_>>().into_iter()
    }
}

/// The path below a folder, with `/`.
fn inside(path: &Path, folder: &Path) -> Option<String> {
    Some(path.strip_prefix(folder).ok()?.to_string_lossy().replace('\\', "/"))
}

/// Whether the last names of a path are those of another.
fn ends_with(path: &str, end: &str) -> bool {
    let mut of_path = components(path).rev();
    components(end).rev().all(|name| of_path.next() == Some(name))
}

/// The path with links resolved as far as it exists.
pub fn resolved(path: &Path) -> PathBuf {
    let exists = |above: &Path| Some((above.canonicalize().ok()?, path.strip_prefix(above).ok()?.to_owned()));
    match path.ancestors().find_map(exists) {
        // Joining nothing would add a slash.
        Some((above, rest)) if rest.as_os_str().is_empty() => above,
        Some((above, rest)) => above.join(rest),
        None => path.to_owned(),
    }
}

/// The nearest folder above a path that exists, unless that is the root of all.
fn existing_above(path: &Path) -> Option<PathBuf> {
    let above = path.ancestors().skip(1).find(|folder| folder.is_dir());
    above.filter(|folder| folder.parent().is_some()).map(Path::to_owned)
}
