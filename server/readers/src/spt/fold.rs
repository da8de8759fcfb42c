//! From the records of SPT files to one profile.

use super::damage::{Damage, DamageCount};
use super::decode::{Record, Segment, Visitor};
use super::format::{Op, Program};
use super::preamble::Preamble;
use super::stacks::StackFold;
use super::table::Table;
use super::{SptError, StackOrder};
use heatline_profile::{
    AddressSpace, BranchArc, CodeAddress, CodePlace, Event, EventId, Identity, Module, ModuleAddress, ModuleId,
    ModuleKind, PdbId, Profile, ProfileKind, SampleRow, StackId, StackNode, Tally, Weight,
};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Adds up the records of one or more files, by program, operation and address.
pub(crate) struct Fold {
    order: StackOrder,
    modules: Vec<Module>,
    folds: Vec<ModuleFold>,
    /// Modules by identity, and those without one by name.
    by_id: FxHashMap<PdbId, usize>,
    by_name: HashMap<String, usize>,
    /// The modules of the current file's programs.
    programs: Vec<usize>,
    current: usize,
    damages: DamageCount,
}

impl Fold {
    pub(crate) fn new(order: StackOrder) -> Self {
        Fold {
            order,
            modules: Vec::new(),
            folds: Vec::new(),
            by_id: FxHashMap::default(),
            by_name: HashMap::new(),
            programs: Vec::new(),
            current: 0,
            damages: DamageCount::default(),
        }
    }

    /// The damages of the file read last.
    pub(crate) fn take_damages(&mut self) -> DamageCount {
        std::mem::take(&mut self.damages)
    }

    /// The profile of all that was added.
    pub(crate) fn finish(mut self) -> Result<Profile, SptError> {
        let places = self.folds.iter().map(ModuleFold::places).fold(0, u64::saturating_add);
        if places >= u64::from(u32::MAX) || self.folds.iter().any(|fold| fold.stacks.is_full()) {
            return Err(SptError::TooManyPlaces);
        }
        let mut profile = Profile::new(ProfileKind::Spt);
        profile.modules = std::mem::take(&mut self.modules);
        for op in Op::ALL {
            if self.folds.iter().all(|fold| fold.is_empty(op)) {
                continue;
            }
            let event = EventId(profile.events.len() as u32);
            profile.events.push(event_of(op));
            for (module, fold) in (0..).map(ModuleId).zip(&mut self.folds) {
                fold.unload(op, module, event, &mut profile);
            }
        }
        profile.stacks.seal();
        Ok(profile)
    }

    fn module_of(&mut self, program: &Program) -> usize {
        if program.id.is_nil() {
            return self.nameless(&program.name);
        }
        let next = self.modules.len();
        let module = *self.by_id.entry(program.id).or_insert(next);
        if module == next {
            self.push_module(&program.name, Some(Identity::Pdb(program.id)));
        }
        module
    }

    /// The module under this name that has no identity.
    fn nameless(&mut self, name: &str) -> usize {
        if let Some(module) = self.by_name.get(name) {
            return *module;
        }
        self.by_name.insert(name.to_owned(), self.modules.len());
        self.push_module(name, None)
    }

    fn push_module(&mut self, name: &str, identity: Option<Identity>) -> usize {
        let path = name.to_owned();
        self.modules.push(Module { path, kind: ModuleKind::Binary, identity, space: AddressSpace::Rva });
        self.folds.push(ModuleFold::default());
        self.modules.len() - 1
    }
}

impl Visitor for Fold {
    fn preamble(&mut self, preamble: &Preamble) -> ControlFlow<()> {
        self.programs = preamble.programs.iter().map(|program| self.module_of(program)).collect();
        ControlFlow::Continue(())
    }

    fn segment(&mut self, segment: &Segment) -> ControlFlow<()> {
        self.current = match self.programs.get(usize::from(segment.program)) {
            Some(module) => *module,
            None => self.nameless(&format!("unknown program #{}", segment.program)),
        };
        ControlFlow::Continue(())
    }

    fn record(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        if let Some(fold) = self.folds.get_mut(self.current) {
            fold.add(record, self.order);
        }
        ControlFlow::Continue(())
    }

    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        self.damages.add(damage);
        ControlFlow::Continue(())
    }
}

/// The hits of one binary.
#[derive(Default)]
struct ModuleFold {
    unhalt_cycle: Counts,
    retire_instr: Counts,
    retire_br_instr: Counts,
    l1_icache_miss: Counts,
    l1_dcache_miss: Counts,
    etw_instr: Counts,
    /// By source, in the upper half, and target.
    arcs: Counts,
    stacks: StackFold,
}

/// Hits by place. They saturate.
#[derive(Default)]
struct Counts(Table);

impl Counts {
    fn add(&mut self, place: u64, hits: u64) {
        let count = self.0.entry(place);
        *count = count.saturating_add(hits);
    }
}

impl ModuleFold {
    fn add(&mut self, record: &Record<'_>, order: StackOrder) {
        let hits = record.hits;
        match (record.op, order) {
            (Op::EtwCallstack, StackOrder::LeafFirst) => self.stacks.add(record.rvas().rev(), hits),
            (Op::EtwCallstack, StackOrder::RootFirst) => self.stacks.add(record.rvas(), hits),
            (Op::Lbr, _) => {
                record.arcs().for_each(|(from, to)| self.arcs.add(u64::from(from) << 32 | u64::from(to), hits));
            }
            (op, _) => {
                if let Some(counts) = self.samples(op) {
                    record.rvas().for_each(|rva| counts.add(u64::from(rva), hits));
                }
            }
        }
    }

    fn samples(&mut self, op: Op) -> Option<&mut Counts> {
        Some(match op {
            Op::UnhaltCycle => &mut self.unhalt_cycle,
            Op::RetireInstr => &mut self.retire_instr,
            Op::RetireBrInstr => &mut self.retire_br_instr,
            Op::L1IcacheMiss => &mut self.l1_icache_miss,
            Op::L1DcacheMiss => &mut self.l1_dcache_miss,
            Op::EtwInstr => &mut self.etw_instr,
            Op::Lbr | Op::EtwCallstack => return None,
        })
    }

    fn len(&self, op: Op) -> usize {
        match op {
            Op::UnhaltCycle => self.unhalt_cycle.0.len(),
            Op::RetireInstr => self.retire_instr.0.len(),
            Op::RetireBrInstr => self.retire_br_instr.0.len(),
            Op::L1IcacheMiss => self.l1_icache_miss.0.len(),
            Op::L1DcacheMiss => self.l1_dcache_miss.0.len(),
            Op::EtwInstr => self.etw_instr.0.len(),
            Op::Lbr => self.arcs.0.len(),
            Op::EtwCallstack => self.stacks.len(),
        }
    }

    fn is_empty(&self, op: Op) -> bool {
        self.len(op) == 0
    }

    /// At most so many stack nodes it makes in the profile: a node of a stack may be both a leaf and a caller.
    fn places(&self) -> u64 {
        Op::ALL.into_iter().map(|op| self.len(op) as u64).sum::<u64>() + self.stacks.len() as u64
    }

    /// Moves what belongs to `op` to the profile, ordered by address, so that equal contents make equal profiles.
    fn unload(&mut self, op: Op, module: ModuleId, event: EventId, profile: &mut Profile) {
        match op {
            Op::EtwCallstack => {
                for (stack, hits) in std::mem::take(&mut self.stacks).unload(module, &mut profile.stacks) {
                    profile.rows.push(row(stack, event, hits));
                }
            }
            Op::Lbr => self.unload_arcs(module, event, profile),
            op => {
                let counts = self.samples(op).map(std::mem::take).unwrap_or_default();
                for (rva, hits) in counts.0.into_sorted() {
                    let stack = leaf(profile, module, rva as u32);
                    profile.rows.push(row(stack, event, hits));
                }
            }
        }
    }

    fn unload_arcs(&mut self, module: ModuleId, event: EventId, profile: &mut Profile) {
        let place = |rva: u32| CodePlace { module, address: ModuleAddress(u64::from(rva)) };
        let mut last: Option<(u32, u64)> = None;
        for (arc, hits) in std::mem::take(&mut self.arcs).0.into_sorted() {
            let (from, to) = ((arc >> 32) as u32, arc as u32);
            profile.arcs.push(BranchArc { event, from: place(from), to: place(to), taken: Weight(hits) });
            last = match last {
                Some((source, sum)) if source == from => Some((source, sum.saturating_add(hits))),
                Some((source, sum)) => {
                    let stack = leaf(profile, module, source);
                    profile.rows.push(row(stack, event, sum));
                    Some((from, hits))
                }
                None => Some((from, hits)),
            };
        }
        if let Some((source, sum)) = last {
            let stack = leaf(profile, module, source);
            profile.rows.push(row(stack, event, sum));
        }
    }
}

fn event_of(op: Op) -> Event {
    let is_stack = op == Op::EtwCallstack;
    Event {
        // The source of a recorded branch is the branch itself.
        precise: op == Op::Lbr,
        has_stacks: is_stack,
        // Nothing says that the first frame is the sampled instruction.
        exclusive: !is_stack,
        ..Event::new(op.event_name(), op.unit())
    }
}

fn leaf(profile: &mut Profile, module: ModuleId, rva: u32) -> StackId {
    let address = CodeAddress::Ip(ModuleAddress(u64::from(rva)));
    profile.stacks.intern(StackNode { parent: None, module, address })
}

fn row(stack: StackId, event: EventId, hits: u64) -> SampleRow {
    SampleRow { stack, event, thread: None, tally: Tally::repeated(Weight(1), hits) }
}
