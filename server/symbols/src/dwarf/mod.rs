//! DWARF 2 to 5: from sorted addresses to frames, unit by unit.
//!
//! Each unit that holds a wanted address is read once: its line program into rows, its tree of entries into marks on
//! the addresses. Both are then joined with the addresses in order, so no address is ever searched for. Follows DWARF
//! Version 5, sections 2.17 (ranges), 3.3 (functions and inlined calls) and 6.2 (lines), and what versions 2 to 4 and
//! the GNU extensions do differently. `.debug_aranges` and `.debug_names` are not used: they are often missing, and
//! wrong where code was thrown away.

mod format;
mod lines;
mod names;
mod ranges;
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
use split::SplitFiles;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use units::Units;

/// How often, on average, the ranges of units may cover each address before the rest is left out. Real ones do once.
const MOST_COVERS: usize = 64;

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
    let Input { sections, supplementary, code, locate } = *input;
    let mut dwarf = sections.borrow();
    if let Some(supplementary) = supplementary {
        dwarf.set_sup(supplementary.borrow());
    }
    let problems = &mut builder.problems;
    let units = Units::read(dwarf, code, Origin::Own, None, problems);
    let supplementary = supplementary.map(|s| Units::read(s.borrow(), code, Origin::Supplementary, None, problems));
    let jobs = assign(&units, addresses, problems);
    let split_files = SplitFiles::find(&units, &jobs, locate, problems);
    let split = split_files.units(&units, &jobs, code, problems);
    let library = |job: usize| Library {
        units: &units,
        supplementary: supplementary.as_ref(),
        split: split.get(job).and_then(|split| split.as_ref()).map(|(units, number)| (units, *number)),
    };
    let (done, of) = (Mutex::new(0u64), addresses.len() as u64);
    let resolved: Result<Vec<_>, Cancelled> = jobs
        .par_iter()
        .enumerate()
        .map(|(number, job)| {
            let frames = contained(library(number), job, code, addresses);
            // Reported under the lock, so that it only grows.
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            *done += job.members.len() as u64;
            monitor.progress(*done, of)?;
            Ok(frames)
        })
        .collect();
    for (job, frames) in jobs.iter().zip(resolved?) {
        for damage in &frames.damage {
            let start = units.start(job.unit);
            builder.problems.add("debug-unit", 1, Some(FileOffset(start)), damage.clone());
        }
        builder.add_unit(&job.members, frames);
    }
    monitor.progress(of, of)
}

/// A unit and the numbers of the addresses that it claims.
struct Job {
    unit: usize,
    members: Vec<u32>,
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
fn assign(units: &Units<'_>, addresses: &[u64], problems: &mut Problems) -> Vec<Job> {
    let mut unit_of = vec![u32::MAX; addresses.len()];
    let mut left = addresses.len().saturating_mul(MOST_COVERS);
    for number in (0..units.len()).rev() {
        let Some(root) = units.root(number) else { continue };
        for (start, end) in &root.ranges {
            let first = addresses.partition_point(|address| address < start);
            let count = addresses.get(first..).unwrap_or_default().partition_point(|address| address < end);
            if count > left {
                let at = Some(FileOffset(units.start(number)));
                problems.add("debug-unit", 1, at, "too many units claim the same addresses");
                continue;
            }
            left -= count;
            unit_of.get_mut(first..first + count).unwrap_or_default().fill(number as u32);
        }
    }
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); units.len()];
    for (address, unit) in unit_of.iter().enumerate() {
        if let Some(members) = members.get_mut(*unit as usize) {
            members.push(address as u32);
        }
    }
    let with_members = members.into_iter().enumerate().filter(|(_, members)| !members.is_empty());
    with_members.map(|(unit, members)| Job { unit, members }).collect()
}
