//! What one recording brings to a comparison: its rows under names, with their costs. A ledger needs no model, so
//! that of a recording can be let go before the next is loaded.

use crate::model::{FileId, FunctionId, LineKey};
use crate::statistics::kish;
use crate::table::{By, Cost, CostTable, Row};
use heatline_profile::{Identity, Weight};
use heatline_symbols::{Checksum, bare_name};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// Which cost is compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Measure {
    /// That of the place itself; inclusive cost where the event has no other.
    #[default]
    Exclusive,
    /// That of the place with everything it called; exclusive cost where there are no stacks.
    Inclusive,
}

/// A place by its names. What does not apply to its kind is absent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The module's base name.
    pub module: Option<String>,
    /// The function, for people.
    pub function: Option<String>,
    /// The source file, as recorded.
    pub file: Option<String>,
    /// The line; of a function that of its declaration.
    pub line: Option<NonZeroU32>,
    /// Values of sort keys that are no part of a place: process, thread name, processor.
    pub others: Vec<String>,
}

/// One row of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    pub(crate) module: Option<u32>,
    pub(crate) file: Option<u32>,
    pub(crate) function: Option<FunctionId>,
    /// The name that rows of a function pair by: the linker's, else the source's.
    pub(crate) linkage: Option<String>,
    /// Of a line: the function declared nearest above it in its file, by its name, and the distance from there.
    pub(crate) owner: Option<(String, i64)>,
    pub(crate) cost: Cost,
}

/// A source file of a recording.
#[derive(Clone, Debug)]
pub(crate) struct LedgerFile {
    pub(crate) path: String,
    pub(crate) checksum: Option<Checksum>,
    pub(crate) text: Option<Arc<str>>,
}

/// Where a function begins: its module, its name for people, its file and its line.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) module: u32,
    pub(crate) name: String,
    pub(crate) file: u32,
    pub(crate) line: NonZeroU32,
}

/// The rows of one recording. See the module's documentation.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(crate) by: Option<By>,
    /// What shares are of.
    pub(crate) whole: Weight,
    /// The samples in it.
    pub(crate) samples: u64,
    /// The same for statistics: fewer where weights differ much.
    pub(crate) effective: f64,
    /// Whether each row's share is of samples of its own, as the rate of misses is.
    pub(crate) own_wholes: bool,
    /// Whether nothing was sampled: how one run differs from the next cannot be told from one.
    pub(crate) measured: bool,
    pub(crate) modules: Vec<(String, Option<Identity>)>,
    pub(crate) files: Vec<LedgerFile>,
    pub(crate) starts: Vec<Start>,
    pub(crate) entries: Vec<Entry>,
}

/// Asked for the text that a file had when the recorded program was built; `None` where it is not known.
pub type TextOf<'a> = &'a dyn Fn(FileId) -> Option<Arc<str>>;

impl Ledger {
    /// Whether its weights were measured and not sampled.
    pub fn is_measured(&self) -> bool {
        self.measured
    }

    /// The rows of a table by one kind of place. Texts are asked for only where lines are compared.
    pub fn of(table: &CostTable, by: By, measure: Measure, text_of: TextOf<'_>) -> Self {
        let model = table.model();
        let mut ledger = Ledger::empty(table, Some(by));
        let owners = if by == By::Line { line_owners(table) } else { HashMap::new() };
        if by == By::Line {
            ledger.add_starts(table);
        }
        for row in table.rows(by) {
            let Some(cost) = measure.of(table, &row) else { continue };
            let owner = row.file.zip(row.line).and_then(|place| owners.get(&place));
            let named = by == By::Function || (by == By::Line && row.file.is_none());
            ledger.entries.push(Entry {
                place: place(table, &row),
                module: row.module.map(|id| id.0),
                file: row.file.map(|id| id.0),
                function: row.function,
                linkage: row.function.filter(|_| named).map(|id| linkage_name(table, id).to_owned()),
                owner: owner.map(|&(offset, id)| (model.function(id).name.to_string(), offset)),
                cost,
            });
        }
        if by == By::Line {
            ledger.add_texts(text_of);
        }
        ledger
    }

    fn add_texts(&mut self, text_of: TextOf<'_>) {
        let mut used: Vec<u32> = self.entries.iter().filter_map(|entry| entry.file).collect();
        used.sort_unstable();
        used.dedup();
        for id in used {
            self.files[id as usize].text = text_of(FileId(id));
        }
    }

    /// No rows yet.
    pub(crate) fn empty(table: &CostTable, by: Option<By>) -> Self {
        let (model, whole) = (table.model(), table.whole());
        let profile = model.profile();
        let total = table.total();
        let samples = table.whole_samples();
        let equal = kish(total.weight.0 as f64, total.squares).unwrap_or(total.samples as f64);
        let part = if total.samples > 0 { equal / total.samples as f64 } else { 1.0 };
        let modules = profile.modules.iter().map(|module| (module.base_name().to_owned(), module.identity.clone()));
        let file =
            |file: &crate::ModelFile| LedgerFile { path: file.path.clone(), checksum: file.checksum, text: None };
        Ledger {
            by,
            whole,
            samples,
            effective: samples as f64 * if part < ALMOST_EQUAL { part } else { 1.0 },
            own_wholes: table.is_rate(),
            measured: table.is_measured(),
            modules: modules.collect(),
            files: model.files().iter().map(file).collect(),
            starts: Vec::new(),
            entries: Vec::new(),
        }
    }

    fn add_starts(&mut self, table: &CostTable) {
        for function in table.model().functions() {
            if let (Some(file), Some(line)) = (function.file, function.line) {
                let (module, name) = (function.module.0, function.name.to_string());
                self.starts.push(Start { module, name, file: file.0, line });
            }
        }
    }

    /// Gives functions the names that they pair by: those that are called like the first of a pair get the second.
    /// Names are as people write them, with or without parameters, or as the linker has them.
    pub fn rename(&mut self, names: &[(String, String)]) {
        let renamed =
            |is_it: &dyn Fn(&str) -> bool| names.iter().find(|(old, _)| is_it(old)).map(|(_, new)| new.clone());
        for entry in &mut self.entries {
            if let Some(new) = renamed(&|wanted| entry.is_of(wanted)).filter(|_| entry.linkage.is_some()) {
                entry.linkage = Some(new);
            }
            if let Some((owner, _)) = &mut entry.owner
                && let Some(new) = renamed(&|wanted| is_called(owner, wanted))
            {
                *owner = new;
            }
        }
        for start in &mut self.starts {
            if let Some(new) = renamed(&|wanted| is_called(&start.name, wanted)) {
                start.name = new;
            }
        }
    }

    /// Whether any of its functions is called so, with or without parameters, or by the linker.
    pub fn has_function(&self, name: &str) -> bool {
        let is_owner = |entry: &Entry| entry.owner.as_ref().is_some_and(|(owner, _)| is_called(owner, name));
        self.entries.iter().any(|entry| entry.is_of(name) || is_owner(entry))
    }

    /// The names of its functions for people, some of them several times.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        let names = self.entries.iter().filter_map(|entry| entry.place.function.as_deref());
        names.chain(self.entries.iter().filter_map(|entry| Some(entry.owner.as_ref()?.0.as_str())))
    }

    /// What shares are of.
    pub fn whole(&self) -> Weight {
        self.whole
    }

    /// The number of samples in it.
    pub fn samples(&self) -> u64 {
        self.samples
    }
}

impl Entry {
    /// Whether it is a row of the function that is called so.
    fn is_of(&self, wanted: &str) -> bool {
        let by_linker = self.linkage.as_deref().is_some_and(|name| name == wanted || bare_name(name) == wanted);
        by_linker || self.place.function.as_deref().is_some_and(|name| is_called(name, wanted))
    }
}

/// Whether a function's name is the wanted one, parameters aside.
fn is_called(name: &str, wanted: &str) -> bool {
    name == wanted || name.split('(').next() == Some(wanted)
}

/// Weights that differ less count as equal.
const ALMOST_EQUAL: f64 = 0.8;

impl Measure {
    fn of(self, table: &CostTable, row: &Row) -> Option<Cost> {
        let cost = match self {
            Measure::Inclusive => row.inclusive.unwrap_or(row.exclusive),
            Measure::Exclusive if table.has_exclusive() => row.exclusive,
            Measure::Exclusive => row.inclusive?,
        };
        Some(cost)
    }
}

pub(crate) fn linkage_name(table: &CostTable, id: FunctionId) -> &str {
    let function = table.model().function(id);
    function.linkage_name.as_deref().unwrap_or(&function.name)
}

fn place(table: &CostTable, row: &Row) -> Place {
    let model = table.model();
    Place {
        module: row.module.map(|id| model.profile().module(id).base_name().to_owned()),
        function: row.function.map(|id| model.function(id).name.to_string()),
        file: row.file.map(|id| model.file(id).path.clone()),
        line: row.line,
        others: Vec::new(),
    }
}

/// For each source line the function it is counted from: of those with code on it that are declared in its file, the
/// one declared nearest above.
fn line_owners(table: &CostTable) -> HashMap<(FileId, NonZeroU32), (i64, FunctionId)> {
    let model = table.model();
    let mut owners: HashMap<(FileId, NonZeroU32), (i64, FunctionId)> = HashMap::new();
    for frame in (0..model.locations()).flat_map(|location| model.frames_at(location)) {
        let (LineKey::Source(_, file, line), Some(id)) = (model.line(frame.line), frame.function) else { continue };
        let function = model.function(id);
        let Some(start) = function.line.filter(|_| function.file == Some(file)) else { continue };
        let candidate = (i64::from(line.get()) - i64::from(start.get()), id);
        let key = |(offset, id): (i64, FunctionId)| (offset < 0, offset.abs(), id);
        let owner = owners.entry((file, line)).or_insert(candidate);
        if key(candidate) < key(*owner) {
            *owner = candidate;
        }
    }
    owners
}
