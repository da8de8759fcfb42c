//! Program databases of Microsoft's tool chain and of LLVM: from addresses of a PE image to functions, files, lines
//! and inlined frames.
//!
//! An address belongs to the module that contributed the code. Its innermost line is that of the call inlined there
//! last, or else of the row that covers it; where no row does, there is no line. Rows that hide code from debuggers
//! cover it without a line. Follows the descriptions of the format in Microsoft's published sources and LLVM's
//! documentation; PDBs in other containers (2.00, portable ones of .NET) and without content (`/DEBUG:FASTLINK`) are
//! refused by name.

mod bytes;
mod format;
mod identity;
mod lines;
mod module;
mod names;
mod publics;
mod symbols;
mod types;

pub use identity::IdentityMatch;
pub(crate) use identity::{PdbIdentity, is_pdb};
pub(crate) use publics::NamedRange;

use crate::build::Builder;
use crate::dwarf::{UnitFrames, UnitFunction};
use crate::{Storage, SymbolError};
use format::{Contribution, File, Place};
use heatline_profile::{Monitor, Problems};
use module::ModuleFrames;
use names::NameKey;
use publics::{Publics, contribution};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// About so many bytes of module streams are kept at once.
const BATCH: usize = 64 << 20;

/// What is known of a PDB once it was opened.
pub(crate) struct Pdb {
    pub identity: PdbIdentity,
    pub sections: Vec<Section>,
}

/// A section of the image that the PDB is for.
pub(crate) struct Section {
    pub name: String,
    pub rva: u32,
    pub size: u32,
    pub executable: bool,
}

/// Reads what identifies a PDB.
///
/// # Errors
/// For what is no PDB that can be used.
pub(crate) fn open(storage: &Arc<dyn Storage>) -> Result<Pdb, SymbolError> {
    contained(|| {
        let (mut file, identity) = identity::open(storage)?;
        let sections = file.sections().map_err(damaged)?.into_iter();
        let section =
            |s: format::SectionHeader| Section { name: s.name, rva: s.rva, size: s.size, executable: s.executable };
        Ok(Pdb { identity, sections: sections.map(section).collect() })
    })
}

/// Resolves the sorted, different `rvas`, `None` for what is no code, into `builder`. Returns the names of what only public
/// symbols know.
///
/// # Errors
/// For what is no PDB that can be used, and when the monitor says to stop.
pub(crate) fn resolve(
    storage: &Arc<dyn Storage>,
    rvas: &[Option<u32>],
    builder: &mut Builder,
    monitor: &dyn Monitor,
) -> Result<Vec<NamedRange>, SymbolError> {
    contained(|| {
        let (mut file, _) = identity::open(storage)?;
        let mut search = Search::new(&mut file, rvas)?;
        let found = search.modules(&mut file, monitor)?;
        let executable: Vec<bool> = file.sections().map_err(damaged)?.iter().map(|s| s.executable).collect();
        let is_code = |place: Place| {
            let section = usize::from(place.section).checked_sub(1);
            section.and_then(|section| executable.get(section)).is_none_or(|executable| *executable)
        };
        let publics = file.globals().map(|globals| Publics::read(&globals, is_code)).unwrap_or_default();
        report(&found, &publics, &mut builder.problems);
        let known: HashSet<Place> = found.iter().flat_map(|found| &found.frames.starts).copied().collect();
        let ranges = publics.ranges(&search.addresses, &search.contributions, &known);
        add(file, found, builder);
        Ok(ranges)
    })
}

fn damaged(error: format::Error) -> SymbolError {
    SymbolError::Headers { format: "PDB", message: error.to_string() }
}

/// Does `work`; a panic in a parser becomes an error.
fn contained<T>(work: impl FnOnce() -> Result<T, SymbolError>) -> Result<T, SymbolError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let message = "damaged in a way that no check caught".to_owned();
        Err(SymbolError::Headers { format: "PDB", message })
    })
}

/// The addresses in the order of the PDB, and what they are looked up in.
struct Search {
    addresses: format::Addresses,
    contributions: Vec<Contribution>,
    /// Sorted, each with the number of its address.
    places: Vec<(Place, u32)>,
}

/// What a module says, and the numbers of the addresses that it says it of.
struct Found {
    members: Vec<u32>,
    frames: ModuleFrames,
}

impl Search {
    fn new(file: &mut File, rvas: &[Option<u32>]) -> Result<Search, SymbolError> {
        let addresses = file.addresses().map_err(damaged)?;
        let mut contributions = file.contributions().map_err(damaged)?;
        contributions.sort_by_key(|c| c.start);
        let place = |(number, rva): (u32, &Option<u32>)| Some((addresses.place((*rva)?)?, number));
        let mut places: Vec<(Place, u32)> = (0..).zip(rvas).filter_map(place).collect();
        places.sort_unstable();
        Ok(Search { addresses, contributions, places })
    }

    /// The numbers of the places that each module with any has.
    fn members(&self) -> HashMap<usize, Vec<usize>> {
        let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut last: Option<&Contribution> = None;
        for (number, (place, _)) in self.places.iter().enumerate() {
            let holds = |c: &&Contribution| {
                c.start.section == place.section
                    && place.offset.checked_sub(c.start.offset).is_some_and(|offset| offset < c.size)
            };
            last = last.filter(holds).or_else(|| contribution(&self.contributions, *place));
            if let Some(found) = last {
                members.entry(found.module).or_default().push(number);
            }
        }
        members
    }

    fn modules(&mut self, file: &mut File, monitor: &dyn Monitor) -> Result<Vec<Found>, SymbolError> {
        let mut members = self.members();
        let strings = file.strings();
        let modules = file.modules().map_err(damaged)?;
        let list = modules.list().map_err(damaged)?;
        let of = members.len() as u64;
        let mut found: Vec<Found> = Vec::with_capacity(members.len());
        let mut batch = Vec::new();
        let mut bytes = 0;
        for (number, module) in list.iter().enumerate() {
            if let Some(members) = members.remove(&number)
                && let Ok(Some(stream)) = file.module(module)
            {
                bytes += stream.size();
                batch.push((number, stream, members));
            }
            if bytes > BATCH || (number + 1 == list.len() && !batch.is_empty()) {
                monitor.progress(found.len() as u64, of)?;
                let batch = std::mem::take(&mut batch);
                bytes = 0;
                found.par_extend(batch.into_par_iter().map(|(number, stream, members)| {
                    let (places, members): (Vec<Place>, Vec<u32>) =
                        members.iter().filter_map(|at| self.places.get(*at).copied()).unzip();
                    let read = || module::resolve(number, &stream, &places, strings.as_ref());
                    let frames = catch_unwind(AssertUnwindSafe(read))
                        .unwrap_or_else(|_| ModuleFrames { damaged: true, ..ModuleFrames::default() });
                    Found { members, frames }
                }));
            }
        }
        monitor.progress(of, of)?;
        Ok(found)
    }
}

/// Says what was damaged and what the linker has folded.
fn report(found: &[Found], publics: &Publics, problems: &mut Problems) {
    let damaged = found.iter().filter(|found| found.frames.damaged).count() as u64;
    if damaged > 0 {
        problems.add("debug-module", damaged, None, "modules of the PDB are damaged, parts of them were not read");
    }
    let mut folded = found.iter().flat_map(|found| &found.frames.found).map(|start| publics.names(*start));
    let mut count = 0;
    let mut example = None;
    for names in folded.by_ref().filter(|names| names.len() > 1) {
        count += 1;
        example = example.or(Some(names));
    }
    if let Some([first, second, ..]) = example {
        let (first, second) = (crate::demangle::demangle(first), crate::demangle::demangle(second));
        let message = format!(
            "the linker folded functions of identical code, such as {first} and {second}; their costs cannot be told \
             apart and are shown under one name"
        );
        problems.add("folded-code", count, None, message);
    }
}

/// Names all functions and hands everything to the builder.
fn add(file: File, found: Vec<Found>, builder: &mut Builder) {
    let keys: Vec<&NameKey> =
        found.iter().flat_map(|found| found.frames.functions.iter().map(|function| &function.key)).collect();
    let names = file.names(&keys);
    let mut names = names.iter();
    for Found { members, frames } in found {
        let functions = frames.functions.iter().zip(&mut names).map(|(function, name)| UnitFunction {
            name: name.as_deref().map(str::as_bytes),
            linkage_name: None,
            file: function.file,
            line: function.line,
        });
        let unit = UnitFrames {
            functions: functions.collect(),
            files: frames.files,
            frames: frames.frames,
            chains: frames.chains,
            of_address: frames.of_address,
            damage: Vec::new(),
        };
        builder.add_unit(&members, unit);
    }
}
