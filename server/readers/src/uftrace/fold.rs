//! From the call tree to a profile.

use super::reading::Reading;
use super::spaces::Modules;
use super::tree::{CallTree, Cell, NO_NODE, Span, UNTOLD};
use heatline_profile::{
    CallRow, CallTable, CodeAddress, Event, EventId, ModuleAddress, ModuleId, Profile, ProfileKind, SampleFold,
    StackId, StackNode, Tally, ThreadId, Unit, Weight,
};
use rustc_hash::FxHashMap;

/// Where the addresses of the kernel begin.
const KERNEL: u64 = 1 << 63;

/// The profile of what was read. Without scheduling nothing is known of waiting, nor of time without it.
pub(super) fn profile(reading: Reading<'_>, mut modules: Modules, has_scheduling: bool) -> Profile {
    let mut profile = Profile::new(ProfileKind::Uftrace);
    let Reading { tree, measured, names, spaces, extent, .. } = reading;
    let mut events = Events::new(&mut profile, has_scheduling);
    let stacks = add_stacks(&tree, &mut profile, &mut modules, |session, address| {
        let only = spaces.first().filter(|_| spaces.len() == 1);
        usize::try_from(session).ok().and_then(|session| spaces.get(session)).or(only)?.find(address)
    });
    let mut calls: FxHashMap<(StackId, ThreadId), usize> = FxHashMap::default();
    let mut table = CallTable::default();
    for (node, thread, cell) in measured.rows {
        let Some(stack) = stacks.get(node as usize).copied().flatten() else { continue };
        let thread = ThreadId(thread);
        events.add(stack, thread, &cell);
        if cell.calls.calls > 0 {
            let at = *calls.entry((stack, thread)).or_insert(table.rows.len());
            match table.rows.get_mut(at) {
                Some(row) => row.stats += cell.calls,
                None => table.rows.push(CallRow { stack, thread: Some(thread), stats: cell.calls }),
            }
        }
    }
    profile.rows = events.fold.into_rows();
    profile.calls = Some(table);
    profile.modules = modules.all;
    profile.threads = names.threads;
    profile.recording.span = extent;
    profile.recording.duration_ns = extent.map(|(first, last)| last - first);
    profile.stacks.seal();
    profile
}

/// The stack of each node; none for roots.
fn add_stacks(
    tree: &CallTree,
    profile: &mut Profile,
    modules: &mut Modules,
    find: impl Fn(u64, u64) -> Option<(ModuleId, ModuleAddress)>,
) -> Vec<Option<StackId>> {
    let mut stacks: Vec<Option<StackId>> = Vec::with_capacity(tree.nodes().len());
    let mut sessions: Vec<u64> = Vec::with_capacity(tree.nodes().len());
    for node in tree.nodes() {
        if node.parent == NO_NODE {
            stacks.push(None);
            sessions.push(node.address);
            continue;
        }
        let session = sessions.get(node.parent as usize).copied().unwrap_or(UNTOLD);
        let parent = stacks.get(node.parent as usize).copied().flatten();
        let found = match node.address {
            UNTOLD => None,
            address if address >= KERNEL => Some((modules.kernel(), ModuleAddress(address))),
            address => find(session, address),
        };
        let (module, address) = found.unwrap_or_else(|| {
            (modules.unknown(), ModuleAddress(if node.address == UNTOLD { 0 } else { node.address }))
        });
        stacks.push(Some(profile.stacks.intern(StackNode { parent, module, address: CodeAddress::Ip(address) })));
        sessions.push(session);
    }
    stacks
}

/// The events of the four times, and their rows.
struct Events {
    fold: SampleFold,
    elapsed: EventId,
    application: Option<EventId>,
    waiting: Option<EventId>,
    calls: EventId,
}

impl Events {
    fn new(profile: &mut Profile, has_scheduling: bool) -> Self {
        let mut add = |name: &str, unit, has_stacks| {
            profile.events.push(Event { precise: true, has_stacks, ..Event::new(name, unit) });
            EventId(profile.events.len() as u32 - 1)
        };
        Events {
            fold: SampleFold::new(),
            elapsed: add(CallTable::ELAPSED, Unit::Nanoseconds, true),
            application: has_scheduling.then(|| add(CallTable::APPLICATION, Unit::Nanoseconds, true)),
            waiting: has_scheduling.then(|| add(CallTable::WAITING, Unit::Nanoseconds, true)),
            calls: add(CallTable::CALLS, Unit::Calls, false),
        }
    }

    fn add(&mut self, stack: StackId, thread: ThreadId, cell: &Cell) {
        let mut add = |event, tally: Tally| {
            if tally.samples > 0 {
                self.fold.add(stack, event, Some(thread), tally);
            }
        };
        add(self.elapsed, tally(&cell.elapsed));
        if let Some(event) = self.application {
            add(event, tally(&cell.elapsed.without(&cell.waiting)));
        }
        if let Some(event) = self.waiting {
            add(event, tally(&cell.waiting));
        }
        add(self.calls, Tally::repeated(Weight(1), cell.calls.calls));
    }
}

fn tally(span: &Span) -> Tally {
    Tally { samples: span.intervals, weight: Weight(span.ns), squares: 0.0 }
}
