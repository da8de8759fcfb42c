//! The rows of one recording and event by the rules of perf.

use super::keys::{Identity, Keys};
use crate::cli::diff::recordings::Parts;
use heatline_annotate::compare::SortKey;
use heatline_annotate::{CostTable, Leaf};
use heatline_profile::ModuleKind;
use heatline_symbols::bare_name;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

/// A row.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The module's base name.
    pub module: String,
    /// Its path.
    pub path: String,
    pub function: Option<String>,
    /// `.` for user code, `k` for the kernel, `g` for a guest.
    pub level: char,
    pub tid: i32,
    pub comm: String,
    /// `None` where samples do not say it.
    pub cpu: Option<u32>,
    pub srcline: String,
    /// The address of the first sample; of what has no symbol the least.
    pub address: u64,
    /// The summed weight.
    pub period: u64,
}

/// What a recording has of an event.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recorded {
    /// What shares are of.
    pub total: u64,
    pub entries: Vec<Entry>,
}

impl Recorded {
    /// The rows of a table, of samples of one processor or of one that is not known. perf does not know inlined
    /// functions, so the table must not tell them apart.
    pub fn of(table: &CostTable, keys: &Keys, cpu: Option<u32>) -> Self {
        let mut recorded = Recorded { total: table.whole().0, entries: Vec::new() };
        let mut known: HashMap<Identity, usize> = HashMap::new();
        for leaf in table.leaves() {
            let entry = Entry { cpu, ..entry(table, keys, &leaf) };
            match known.entry(keys.identity(&entry)) {
                Slot::Occupied(at) => {
                    let known = &mut recorded.entries[*at.get()];
                    known.period = known.period.saturating_add(entry.period);
                    if known.function.is_none() {
                        known.address = known.address.min(entry.address);
                    }
                }
                Slot::Vacant(slot) => {
                    slot.insert(recorded.entries.len());
                    recorded.entries.push(entry);
                }
            }
        }
        recorded
    }
}

impl Parts for Recorded {
    fn clear(&mut self) {
        *self = Recorded::default();
    }

    fn add(&mut self, part: Self) {
        self.total = self.total.saturating_add(part.total);
        self.entries.extend(part.entries);
    }
}

fn entry(table: &CostTable, keys: &Keys, leaf: &Leaf) -> Entry {
    let model = table.model();
    let profile = model.profile();
    let module = profile.module(leaf.module);
    let thread = leaf.thread.map(|id| profile.thread(id));
    let function = leaf.function.map(|id| {
        let function = model.function(id);
        function.linkage_name.as_deref().map_or_else(|| function.name.to_string(), |name| bare_name(name).into_owned())
    });
    // perf counts from the beginning of the file, as the recording does.
    let address = leaf.address.0;
    let srcline = || match leaf.line {
        Some((file, line)) => {
            let path = &model.file(file).path;
            format!("{}:{line}", path.rsplit('/').next().unwrap_or(path))
        }
        None => format!("{}[{address:x}]", module.base_name()),
    };
    Entry {
        module: module.base_name().to_owned(),
        path: module.path.clone(),
        level: match module.kind {
            ModuleKind::Kernel | ModuleKind::KernelModule => 'k',
            ModuleKind::Guest => 'g',
            _ => '.',
        },
        tid: thread.map_or(-1, |thread| thread.tid),
        comm: thread.map(|thread| thread.comm.clone()).unwrap_or_default(),
        cpu: None,
        srcline: if keys.all.contains(&SortKey::Srcline) { srcline() } else { String::new() },
        function,
        address,
        period: leaf.tally.weight.0,
    }
}
