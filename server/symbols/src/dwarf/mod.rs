//! DWARF 2 to 5: from sorted addresses to frames, unit by unit.
//!
//! Each unit that holds a wanted address is read once: its line program into rows, its tree of entries into marks on
//! the addresses. Both are then joined with the addresses in order, so no address is ever searched for. Follows DWARF
//! Version 5, sections 2.17 (ranges), 3.3 (functions and inlined calls) and 6.2 (lines), and what versions 2 to 4 and
//! the GNU extensions do differently. Of most units only the root is looked at, and sections are read where they are
//! looked at (see `section.rs`). `.debug_aranges` and `.debug_names` are not used: they are often missing, and
//! wrong where code was thrown away.

mod format;
mod lines;
mod names;
mod ranges;
mod section;
mod split;
mod tree;
mod unit;
mod units;

pub(crate) use format::Sections;
pub(crate) use unit::{UnitFrames, UnitFunction};

use crate::Locate;
use crate::build::Builder;
use crate::code::Code;
use heatline_profile::{Cancelled, FileOffset, Monitor, Problems};
use names::{Library, Origin};
use rayon::prelude::*;
use split::{Package, SplitFiles};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use units::{Starts, Units};

/// How often, on average, the ranges of units may cover each address before the rest is left out. Real ones do once.
const MOST_COVERS: usize = 64;
/// So many bytes of entries are worked on at a time per processor. What was read for them is let go afterwards, so that
/// memory does not grow with the debug information.
const BATCH: u64 = 1 << 20;

/// What a look-up works on.
pub(crate) struct Input<'a> {
    pub sections: &'a Sections,
    /// What `dwz` moved to a file shared by several.
    pub supplementary: Option<&'a Sections>,
    pub code: &'a Code,
    /// Finds the files of split units.
    pub locate: &'a dyn Locate,
}

/// Resolves the sorted, different `addresses` into `builder`.
pub(crate) fn resolve(
    input: &Input<'_>,
    addresses: &[u64],
    builder: &mut Builder,
    monitor: &dyn Monitor,
) -> Result<(), Cancelled> {
    let search = Search::new(input, addresses, &mut builder.problems);
    let limit = BATCH.saturating_mul(rayon::current_num_threads() as u64);
    for jobs in batches(&search.jobs, &search.starts, limit) {
        search.resolve(jobs, builder, monitor)?;
    }
    let of = addresses.len() as u64;
    monitor.progress(of, of)
}

/// A unit and the numbers of the addresses that it claims.
struct Job {
    unit: usize,
    members: Vec<u32>,
}

/// What is known before the units are worked on.
struct Search<'s> {
    input: &'s Input<'s>,
    addresses: &'s [u64],
    starts: Arc<Starts>,
    supplementary: Option<Arc<Starts>>,
    jobs: Vec<Job>,
    package: Package,
    /// How many addresses were worked on.
    done: Mutex<u64>,
}

impl<'s> Search<'s> {
    fn new(input: &'s Input<'s>, addresses: &'s [u64], problems: &mut Problems) -> Self {
        let starts = Starts::read(&input.sections.open().borrow(), problems);
        let claims = starts.claims(input.sections, input.code, problems);
        let jobs = assign(&starts, &claims, addresses, problems);
        let supplementary = input.supplementary.map(|s| Arc::new(Starts::read(&s.open().borrow(), problems)));
        let package = Package::default();
        Search { input, addresses, starts: Arc::new(starts), supplementary, jobs, package, done: Mutex::new(0) }
    }

    /// Resolves some units and takes over what they say.
    fn resolve(&self, jobs: &[Job], builder: &mut Builder, monitor: &dyn Monitor) -> Result<(), Cancelled> {
        let sections = self.input.sections.open();
        let supplementary = self.input.supplementary.map(Sections::open);
        let mut dwarf = sections.borrow();
        if let Some(supplementary) = &supplementary {
            dwarf.set_sup(supplementary.borrow());
        }
        let units = Units::new(dwarf, self.starts.clone(), Origin::Own);
        let supplementary = supplementary.as_ref().zip(self.supplementary.as_ref());
        let supplementary = supplementary
            .map(|(sections, starts)| Units::new(sections.borrow(), starts.clone(), Origin::Supplementary));
        let split_files = SplitFiles::find(&units, jobs, &self.package, self.input.locate, &mut builder.problems);
        let split = split_files.units(&units, jobs, &mut builder.problems);
        let library = |job: usize| Library {
            units: &units,
            supplementary: supplementary.as_ref(),
            split: split.get(job).and_then(|split| split.as_ref()).map(|(units, number)| (units, *number)),
        };
        let (code, addresses, done) = (self.input.code, self.addresses, &self.done);
        let resolved: Result<Vec<_>, Cancelled> = jobs
            .par_iter()
            .enumerate()
            .map(|(number, job)| {
                let frames = contained(library(number), job, code, addresses);
                // Reported under the lock, so that it only grows.
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                *done += job.members.len() as u64;
                monitor.progress(*done, addresses.len() as u64)?;
                Ok(frames)
            })
            .collect();
        for (job, frames) in jobs.iter().zip(resolved?) {
            for damage in &frames.damage {
                let start = self.starts.start(job.unit);
                builder.problems.add("debug-unit", 1, Some(FileOffset(start)), damage.clone());
            }
            builder.add_unit(&job.members, frames);
        }
        Ok(())
    }
}

/// Jobs that follow each other, so many that their units have `limit` bytes together, or one that has more.
fn batches<'j>(jobs: &'j [Job], starts: &Starts, limit: u64) -> Vec<&'j [Job]> {
    let mut batches = Vec::new();
    let (mut first, mut bytes) = (0, 0u64);
    for (number, job) in jobs.iter().enumerate() {
        let length = starts.length(job.unit);
        if number > first && bytes.saturating_add(length) > limit {
            batches.extend(jobs.get(first..number));
            (first, bytes) = (number, 0);
        }
        bytes = bytes.saturating_add(length);
    }
    batches.extend(jobs.get(first..).filter(|jobs| !jobs.is_empty()));
    batches
}

/// Resolves one unit. A panic in a parser costs this unit only.
fn contained<'a>(library: Library<'a, '_>, job: &Job, code: &Code, addresses: &[u64]) -> UnitFrames<'a> {
    let own: Vec<u64> = job.members.iter().filter_map(|i| addresses.get(*i as usize).copied()).collect();
    let result = catch_unwind(AssertUnwindSafe(|| unit::resolve(library, job.unit, code, &own)));
    result.unwrap_or_else(|_| UnitFrames {
        damage: vec!["a unit is damaged in a way that no check caught".to_owned()],
        ..UnitFrames::default()
    })
}

/// Which unit each address belongs to. Where several claim one, the first in the file has it.
fn assign(starts: &Starts, claims: &[Vec<(u64, u64)>], addresses: &[u64], problems: &mut Problems) -> Vec<Job> {
    let mut unit_of = vec![u32::MAX; addresses.len()];
    let mut left = addresses.len().saturating_mul(MOST_COVERS);
    for (number, ranges) in claims.iter().enumerate().rev() {
        for (start, end) in ranges {
            let first = addresses.partition_point(|address| address < start);
            let count = addresses.get(first..).unwrap_or_default().partition_point(|address| address < end);
            if count > left {
                let at = Some(FileOffset(starts.start(number)));
                problems.add("debug-unit", 1, at, "too many units claim the same addresses");
                continue;
            }
            left -= count;
            unit_of.get_mut(first..first + count).unwrap_or_default().fill(number as u32);
        }
    }
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); claims.len()];
    for (address, unit) in unit_of.iter().enumerate() {
        if let Some(members) = members.get_mut(*unit as usize) {
            members.push(address as u32);
        }
    }
    let with_members = members.into_iter().enumerate().filter(|(_, members)| !members.is_empty());
    with_members.map(|(unit, members)| Job { unit, members }).collect()
}
