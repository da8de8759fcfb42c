//! Adding up several recordings of one kind.

use crate::{
    BranchArc, CallRow, CallTable, CodePlace, EventId, ModuleId, Profile, ProfileKind, SampleFold, SpeRow, SpeTable,
    StackId, StackNode, Thread, ThreadId,
};
use rustc_hash::FxHashMap;
use std::fmt;

/// Two profiles that cannot be added up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DifferentKinds {
    /// The kind of the first.
    pub first: ProfileKind,
    /// The kind of the second.
    pub second: ProfileKind,
}

impl fmt::Display for DifferentKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "profiles of different kinds do not add up: {} and {}", self.first.name(), self.second.name())
    }
}

impl std::error::Error for DifferentKinds {}

impl Profile {
    /// Both recordings as one: weights of the same event, stack and thread are added. A profile merged with itself
    /// counts twice. What is said of the recording is that of the first.
    ///
    /// # Errors
    /// [`DifferentKinds`] if they are not of one kind.
    pub fn merge(mut self, other: &Profile) -> Result<Profile, DifferentKinds> {
        if self.kind != other.kind {
            return Err(DifferentKinds { first: self.kind, second: other.kind });
        }
        let mut fold = SampleFold::new();
        for row in std::mem::take(&mut self.rows) {
            fold.add(row.stack, row.event, row.thread, row.tally);
        }
        let events: Vec<EventId> = other.events.iter().map(|e| EventId(find_or_add(&mut self.events, e))).collect();
        let modules: Vec<ModuleId> =
            other.modules.iter().map(|m| ModuleId(find_or_add(&mut self.modules, m))).collect();
        let threads = merge_threads(&mut self.threads, &other.threads);
        self.stacks.unseal();
        let mut stacks: Vec<StackId> = Vec::with_capacity(other.stacks.len());
        for node in other.stacks.nodes() {
            let parent = node.parent.map(|parent| stacks[parent.0 as usize]);
            stacks.push(self.stacks.intern(StackNode { parent, module: modules[node.module.0 as usize], ..*node }));
        }
        self.stacks.seal();
        for row in &other.rows {
            let thread = row.thread.map(|thread| threads[thread.0 as usize]);
            fold.add(stacks[row.stack.0 as usize], events[row.event.0 as usize], thread, row.tally);
        }
        self.rows = fold.into_rows();
        self.arcs = merge_arcs(std::mem::take(&mut self.arcs), &other.arcs, &events, &modules);
        self.spe = merge_statistics(self.spe.take(), other.spe.as_ref(), |row| SpeRow {
            stack: stacks[row.stack.0 as usize],
            thread: row.thread.map(|thread| threads[thread.0 as usize]),
            stats: row.stats.clone(),
        });
        self.calls = merge_calls(self.calls.take(), other.calls.as_ref(), &stacks, &threads);
        self.merge_symbolization(other, &modules);
        self.problems.append(&other.problems);
        let durations = [self.recording.duration_ns, other.recording.duration_ns];
        self.recording.duration_ns = durations.into_iter().flatten().reduce(u64::saturating_add);
        self.recording.by_frame_pointers &= other.recording.by_frame_pointers;
        let samples = [self.recording.samples, other.recording.samples];
        self.recording.samples = samples.into_iter().flatten().reduce(u64::saturating_add);
        self.tell_cut_sums();
        Ok(self)
    }
}

/// Rows of both; what is said of the recording is that of the first, with what was lost in either.
fn merge_statistics(
    first: Option<SpeTable>,
    other: Option<&SpeTable>,
    moved: impl Fn(&SpeRow) -> SpeRow,
) -> Option<SpeTable> {
    let Some(other) = other else { return first };
    let rows: Vec<SpeRow> = other.rows.iter().map(moved).collect();
    let Some(mut table) = first else { return Some(SpeTable { rows, ..other.clone() }) };
    let mut known: FxHashMap<_, usize> =
        table.rows.iter().enumerate().map(|(at, row)| ((row.stack, row.thread), at)).collect();
    for row in rows {
        let at = *known.entry((row.stack, row.thread)).or_insert(table.rows.len());
        match table.rows.get_mut(at) {
            Some(sum) => sum.stats += &row.stats,
            None => table.rows.push(row),
        }
    }
    table.recording.add(&other.recording);
    Some(table)
}

fn find_or_add<T: PartialEq + Clone>(list: &mut Vec<T>, item: &T) -> u32 {
    let at = list.iter().position(|known| known == item).unwrap_or_else(|| {
        list.push(item.clone());
        list.len() - 1
    });
    at as u32
}

fn merge_threads(threads: &mut Vec<Thread>, other: &[Thread]) -> Vec<ThreadId> {
    let mut known: FxHashMap<Thread, ThreadId> =
        (0..).map(ThreadId).zip(threads.iter()).map(|(id, t)| (t.clone(), id)).collect();
    let add = |thread: &Thread| {
        *known.entry(thread.clone()).or_insert_with(|| {
            threads.push(thread.clone());
            ThreadId(threads.len() as u32 - 1)
        })
    };
    other.iter().map(add).collect()
}

fn merge_calls(
    ours: Option<CallTable>,
    other: Option<&CallTable>,
    stacks: &[StackId],
    threads: &[ThreadId],
) -> Option<CallTable> {
    let Some(other) = other else { return ours };
    let mut table = ours.unwrap_or_default();
    let mut known: FxHashMap<_, usize> =
        table.rows.iter().enumerate().map(|(at, row)| ((row.stack, row.thread), at)).collect();
    for row in &other.rows {
        let thread = row.thread.map(|thread| threads[thread.0 as usize]);
        let mapped = CallRow { stack: stacks[row.stack.0 as usize], thread, stats: row.stats };
        match known.get(&(mapped.stack, mapped.thread)) {
            Some(&at) => table.rows[at].stats += mapped.stats,
            None => {
                known.insert((mapped.stack, mapped.thread), table.rows.len());
                table.rows.push(mapped);
            }
        }
    }
    Some(table)
}

fn merge_arcs(
    mut arcs: Vec<BranchArc>,
    other: &[BranchArc],
    events: &[EventId],
    modules: &[ModuleId],
) -> Vec<BranchArc> {
    let key = |arc: &BranchArc| (arc.event, arc.from, arc.to);
    let place = |place: CodePlace| CodePlace { module: modules[place.module.0 as usize], ..place };
    let mut known: FxHashMap<_, usize> = arcs.iter().enumerate().map(|(at, arc)| (key(arc), at)).collect();
    for arc in other {
        let event = events[arc.event.0 as usize];
        let mapped = BranchArc { event, from: place(arc.from), to: place(arc.to), taken: arc.taken };
        match known.get(&key(&mapped)) {
            Some(&at) => arcs[at].taken += mapped.taken,
            None => {
                known.insert(key(&mapped), arcs.len());
                arcs.push(mapped);
            }
        }
    }
    arcs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AddressSpace, CodeAddress, Event, Module, ModuleAddress, ModuleKind, Tally, Unit, Weight};

    fn profile(path: &str, address: u64, weight: u64) -> Profile {
        let mut profile = Profile::new(ProfileKind::PerfData);
        profile.events.push(Event::new("cycles", Unit::Cycles));
        profile.modules.push(Module {
            path: path.into(),
            kind: ModuleKind::Binary,
            identity: None,
            space: AddressSpace::FileOffset,
        });
        profile.threads.push(Thread { pid: 1, tid: 1, comm: path.into() });
        let node = StackNode { parent: None, module: ModuleId(0), address: CodeAddress::Ip(ModuleAddress(address)) };
        let stack = profile.stacks.intern(node);
        let mut fold = SampleFold::new();
        fold.add(stack, EventId(0), Some(ThreadId(0)), Tally::one(Weight(weight)));
        profile.rows = fold.into_rows();
        profile.stacks.seal();
        profile
    }

    #[test]
    fn a_profile_merged_with_itself_counts_twice() {
        let one = profile("a", 16, 5);
        let two = one.clone().merge(&one).unwrap();
        assert_eq!((two.rows.len(), two.stacks.len(), two.threads.len()), (1, 1, 1));
        assert_eq!((two.rows[0].tally.samples, two.rows[0].tally.weight), (2, Weight(10)));
    }

    #[test]
    fn what_differs_stays_apart() {
        let both = profile("a", 16, 5).merge(&profile("b", 16, 7)).unwrap();
        assert_eq!((both.rows.len(), both.stacks.len(), both.modules.len(), both.events.len()), (2, 2, 2, 1));
        assert_eq!(both.totals()[0].weight, Weight(12));
        let spt = Profile::new(ProfileKind::Spt);
        assert!(both.merge(&spt).is_err());
    }
}
