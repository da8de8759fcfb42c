//! Calls on the lines that make them.
//!
//! The recorder says which function was entered from which, not from where in it. Whoever can look at the code of the
//! binaries may tell: then a function that calls stands on a stack with the address of that call, and its line has the
//! inclusive cost of what it calls. What the function does itself stays at its entry.

use heatline_profile::{
    CallStats, CodeAddress, ModuleAddress, ModuleId, ModuleKind, Profile, SampleFold, StackId, StackNode, StackTable,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// A call from one function to another, by addresses in them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallEdge {
    /// The module that holds the function that calls.
    pub module: ModuleId,
    /// Somewhere in the function that calls.
    pub caller: ModuleAddress,
    /// The module that holds the function that is called.
    pub called_module: ModuleId,
    /// Somewhere in the function that is called.
    pub callee: ModuleAddress,
}

impl CallEdge {
    fn of(caller: StackNode, called: StackNode) -> Self {
        CallEdge {
            module: caller.module,
            caller: caller.address.recorded(),
            called_module: called.module,
            callee: called.address.recorded(),
        }
    }
}

/// What the code of the binaries tells.
#[derive(Clone, Debug, Default)]
pub struct Placing {
    /// The entry of the function around a recorded address, where it is another.
    pub entries: FxHashMap<(ModuleId, ModuleAddress), ModuleAddress>,
    /// The instruction that makes a call.
    pub sites: FxHashMap<CallEdge, ModuleAddress>,
}

/// The different calls between functions of images, in order.
pub fn call_edges(profile: &Profile) -> Vec<CallEdge> {
    let is_image = |module: ModuleId| profile.module(module).kind == ModuleKind::Binary;
    let edge = |node: &StackNode| {
        let edge = CallEdge::of(profile.stacks.node(node.parent?), *node);
        (is_image(edge.module) && is_image(edge.called_module)).then_some(edge)
    };
    let different: FxHashSet<CallEdge> = profile.stacks.nodes().iter().filter_map(edge).collect();
    let mut edges: Vec<CallEdge> = different.into_iter().collect();
    edges.sort_unstable();
    edges
}

/// The calls over each of these edges, as far as there are any.
pub fn calls_over(profile: &Profile, edges: &FxHashSet<CallEdge>) -> FxHashMap<CallEdge, CallStats> {
    let edge = |stack: StackId| {
        let node = profile.stacks.node(stack);
        edges.get(&CallEdge::of(profile.stacks.node(node.parent?), node)).copied()
    };
    let mut sums: FxHashMap<CallEdge, CallStats> = FxHashMap::default();
    for row in profile.calls.iter().flat_map(|table| &table.rows) {
        if let Some(edge) = edge(row.stack) {
            *sums.entry(edge).or_default() += row.stats;
        }
    }
    sums
}

/// Puts callers at the addresses of their calls, and functions at their entries.
pub fn place_calls(profile: &mut Profile, placing: &Placing) {
    let old = std::mem::take(&mut profile.stacks);
    let mut stacks = StackTable::new();
    // Each old stack has one that ends in the function itself, and, below each call, one that ends in the call.
    let mut itself: Vec<StackId> = Vec::with_capacity(old.len());
    let mut parents: Vec<Option<StackId>> = Vec::with_capacity(old.len());
    for node in old.nodes() {
        let at = node.address.recorded();
        let parent = node.parent.map(|parent| {
            let caller = old.node(parent);
            match placing.sites.get(&CallEdge::of(caller, *node)) {
                Some(&site) => stacks.intern(StackNode {
                    parent: parents[parent.0 as usize],
                    module: caller.module,
                    address: CodeAddress::AdjustedReturnAddress(site),
                }),
                None => itself[parent.0 as usize],
            }
        });
        let entry = placing.entries.get(&(node.module, at)).copied().unwrap_or(at);
        parents.push(parent);
        itself.push(stacks.intern(StackNode { parent, module: node.module, address: CodeAddress::Ip(entry) }));
    }
    stacks.seal();
    profile.stacks = stacks;
    move_rows(profile, &itself);
}

fn move_rows(profile: &mut Profile, moved: &[StackId]) {
    let mut fold = SampleFold::new();
    for row in std::mem::take(&mut profile.rows) {
        fold.add(moved[row.stack.0 as usize], row.event, row.thread, row.tally);
    }
    profile.rows = fold.into_rows();
    let Some(table) = &mut profile.calls else { return };
    let mut known = FxHashMap::default();
    let rows = std::mem::take(&mut table.rows);
    for mut row in rows {
        row.stack = moved[row.stack.0 as usize];
        match known.get(&(row.stack, row.thread)).and_then(|&at: &usize| table.rows.get_mut(at)) {
            Some(sum) => sum.stats += row.stats,
            None => {
                known.insert((row.stack, row.thread), table.rows.len());
                table.rows.push(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heatline_profile::{AddressSpace, CallRow, CallTable, EventId, Module, ProfileKind, Tally, Weight};

    /// main calls f from two places in its code; f was recorded behind its entry.
    #[test]
    fn callers_stand_at_their_calls_and_functions_at_their_entries() {
        let mut profile = Profile::new(ProfileKind::Uftrace);
        let (kind, space) = (ModuleKind::Binary, AddressSpace::FromFirstSegment);
        profile.modules.push(Module { path: "/bin/app".into(), kind, identity: None, space });
        let mut stack = |parent, address| {
            let address = CodeAddress::Ip(ModuleAddress(address));
            profile.stacks.intern(StackNode { parent, module: ModuleId(0), address })
        };
        let main = stack(None, 0x104);
        let (f, g) = (stack(Some(main), 0x204), stack(Some(main), 0x300));
        let mut fold = SampleFold::new();
        for (stack, ns) in [(main, 1), (f, 2), (g, 4)] {
            fold.add(stack, EventId(0), None, Tally::one(Weight(ns)));
        }
        profile.rows = fold.into_rows();
        let stats = CallStats { calls: 3, total_ns: 3, shortest_ns: 1, longest_ns: 1 };
        profile.calls = Some(CallTable { rows: vec![CallRow { stack: f, thread: None, stats }] });
        let edge = |callee| CallEdge {
            module: ModuleId(0),
            caller: ModuleAddress(0x104),
            called_module: ModuleId(0),
            callee: ModuleAddress(callee),
        };
        assert_eq!(call_edges(&profile), [edge(0x204), edge(0x300)]);
        assert_eq!(
            calls_over(&profile, &FxHashSet::from_iter([edge(0x204)])),
            FxHashMap::from_iter([(edge(0x204), stats)])
        );
        let mut placing = Placing::default();
        placing.entries.insert((ModuleId(0), ModuleAddress(0x104)), ModuleAddress(0x100));
        placing.entries.insert((ModuleId(0), ModuleAddress(0x204)), ModuleAddress(0x200));
        placing.sites.insert(edge(0x204), ModuleAddress(0x110));
        place_calls(&mut profile, &placing);
        let path = |stack| profile.stacks.frames(stack).map(|node| node.address).collect::<Vec<_>>();
        let [own, called, unplaced] = [0, 1, 2].map(|row| path(profile.rows[row].stack));
        let (entry, site) =
            (|at| CodeAddress::Ip(ModuleAddress(at)), CodeAddress::AdjustedReturnAddress(ModuleAddress(0x110)));
        assert_eq!(own, [entry(0x100)]);
        assert_eq!(called, [entry(0x200), site]);
        assert_eq!(unplaced, [entry(0x300), entry(0x100)]);
        assert_eq!(profile.calls.unwrap().rows[0].stack, profile.rows[1].stack);
    }
}
