//! Rows by any combination of keys, as `perf diff --sort` has them.

use super::Place;
use super::ledger::{Entry, Ledger, linkage_name};
use crate::leaves::Leaf;
use crate::table::{Cost, CostTable};
use std::collections::HashMap;
use std::num::NonZeroU32;

/// By what samples are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SortKey {
    /// The process.
    Pid,
    /// The thread's name.
    Comm,
    /// The module.
    Dso,
    /// The function.
    Symbol,
    /// The processor.
    Cpu,
    /// The caller that a pattern names; without a pattern all samples are `[other]`.
    Parent,
    /// The source line.
    Srcline,
}

impl SortKey {
    /// All keys.
    pub const ALL: [SortKey; 7] =
        [SortKey::Pid, SortKey::Comm, SortKey::Dso, SortKey::Symbol, SortKey::Cpu, SortKey::Parent, SortKey::Srcline];

    /// The word of the command line.
    pub fn name(self) -> &'static str {
        match self {
            SortKey::Pid => "pid",
            SortKey::Comm => "comm",
            SortKey::Dso => "dso",
            SortKey::Symbol => "symbol",
            SortKey::Cpu => "cpu",
            SortKey::Parent => "parent",
            SortKey::Srcline => "srcline",
        }
    }
}

impl Ledger {
    /// The rows of a table by keys. `cpu` is what the key of that name says; it is a property of the whole table.
    pub fn by_keys(table: &CostTable, keys: &[SortKey], cpu: &str) -> Self {
        let mut ledger = Ledger::empty(table, None);
        let mut known: HashMap<Identity, usize> = HashMap::new();
        for leaf in table.leaves() {
            let entry = entry(table, keys, cpu, &leaf);
            let at = *known.entry(entry.identity()).or_insert_with(|| {
                ledger.entries.push(entry);
                ledger.entries.len() - 1
            });
            let cost = &mut ledger.entries[at].cost;
            cost.weight += leaf.tally.weight;
            cost.samples = cost.samples.saturating_add(leaf.tally.samples);
        }
        ledger
    }

    /// Leaves nothing, as of a recording without samples.
    pub fn clear(&mut self) {
        (self.whole, self.samples, self.effective) = Default::default();
        self.entries.clear();
    }

    /// Adds the rows of another part of the same recording; what shares are of grows with it.
    pub fn append(&mut self, part: Ledger) {
        self.whole += part.whole;
        self.samples = self.samples.saturating_add(part.samples);
        self.effective += part.effective;
        for mut entry in part.entries {
            let module = entry.module.and_then(|module| part.modules.get(module as usize).cloned());
            entry.module = module.map(|module| {
                let at = self.modules.iter().position(|known| *known == module);
                at.unwrap_or_else(|| {
                    self.modules.push(module);
                    self.modules.len() - 1
                }) as u32
            });
            self.entries.push(entry);
        }
    }
}

/// What tells rows apart.
type Identity = (Option<u32>, Option<String>, Option<String>, Option<NonZeroU32>, Vec<String>);

impl Entry {
    fn identity(&self) -> Identity {
        let Place { file, line, others, .. } = &self.place;
        (self.module, self.linkage.clone(), file.clone(), *line, others.clone())
    }
}

fn entry(table: &CostTable, keys: &[SortKey], cpu: &str, leaf: &Leaf) -> Entry {
    let model = table.model();
    let profile = model.profile();
    let thread = leaf.thread.map(|id| profile.thread(id));
    let has = |key| keys.contains(&key);
    let line = leaf.line.filter(|_| has(SortKey::Srcline));
    let function = leaf.function.filter(|_| has(SortKey::Symbol));
    let module = has(SortKey::Dso).then_some(leaf.module);
    let other = |key: &SortKey| match key {
        SortKey::Pid => Some(thread.map_or_else(|| "-1".into(), |thread| thread.pid.to_string())),
        SortKey::Comm => Some(thread.map_or_else(String::new, |thread| thread.comm.clone())),
        SortKey::Cpu => Some(cpu.to_owned()),
        SortKey::Parent => Some("[other]".to_owned()),
        _ => None,
    };
    Entry {
        place: Place {
            module: module.map(|id| profile.module(id).base_name().to_owned()),
            function: function.map(|id| model.function(id).name.to_string()),
            // Paths differ between builds in two folders; perf compares names of files, too.
            file: line.map(|(file, _)| model.file(file).path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()),
            line: line.map(|(_, line)| line),
            others: keys.iter().filter_map(other).collect(),
        },
        module: module.map(|id| id.0),
        file: None,
        function: None,
        linkage: function.map(|id| linkage_name(table, id).to_owned()),
        owner: None,
        cost: Cost::default(),
    }
}
