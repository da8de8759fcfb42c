//! Which end of a recorded stack comes first: the documentation does not say, but the code of the binary can.
//!
//! Under the right order every frame but the innermost is a return address, so the instruction before it is a call.

use super::StackOrder;
use super::format::Op;
use super::stacks::StackFold;
use heatline_profile::{
    BranchArc, CodePlace, EventId, ModuleId, Profile, Rva, SampleRow, StackNode, StackTable, Tally, Weight,
};
use std::collections::BTreeMap;
use std::fmt;

/// Which end of the stacks of a profile comes first, and how that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The code of the binaries shows it.
    Verified(StackOrder),
    /// Nothing shows it.
    Assumed(StackOrder),
}

impl Direction {
    /// The order, however it is known.
    pub fn order(self) -> StackOrder {
        match self {
            Direction::Verified(order) | Direction::Assumed(order) => order,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = if matches!(self, Direction::Verified(_)) { "verified" } else { "assumed" };
        write!(f, "direction {known}: {}", self.order())
    }
}

impl fmt::Display for StackOrder {
    /// As the command line spells it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StackOrder::LeafFirst => "leaf-first",
            StackOrder::RootFirst => "root-first",
        })
    }
}

/// How many of the frames that would be return addresses follow a call, under each order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallVote {
    /// Under leaf first: frames that follow a call, of all that would have to.
    pub leaf_first: (u64, u64),
    /// Under root first, likewise.
    pub root_first: (u64, u64),
}

impl CallVote {
    /// The order for which 80 % or more of the frames follow a call, if fewer than 50 % do for the other.
    pub fn winner(&self) -> Option<StackOrder> {
        let most = |(hits, of): (u64, u64)| of > 0 && u128::from(hits) * 100 >= u128::from(of) * 80;
        let few = |(hits, of): (u64, u64)| u128::from(hits) * 100 < u128::from(of) * 50;
        if most(self.leaf_first) && few(self.root_first) {
            return Some(StackOrder::LeafFirst);
        }
        (most(self.root_first) && few(self.leaf_first)).then_some(StackOrder::RootFirst)
    }
}

/// Counts, over the different stacks of an SPT profile, which frames follow a call. `read_as` is the order under which
/// the profile was read. `follows_call` says whether the instruction before an address is a call, and `None` where the
/// code is not at hand.
pub fn vote(
    profile: &Profile,
    read_as: StackOrder,
    follows_call: &mut dyn FnMut(ModuleId, Rva) -> Option<bool>,
) -> CallVote {
    let (mut inner, mut outer) = ((0, 0), (0, 0));
    let mut seen: BTreeMap<(ModuleId, Rva), Option<bool>> = BTreeMap::new();
    for row in stack_rows(profile) {
        let frames: Vec<_> = profile.stacks.frames(row.stack).collect();
        let Some(last) = frames.len().checked_sub(1).filter(|last| *last > 0) else { continue };
        for (at, frame) in frames.iter().enumerate() {
            let Ok(rva) = u32::try_from(frame.address.recorded().0).map(Rva) else { continue };
            let place = (frame.module, rva);
            let Some(follows) = *seen.entry(place).or_insert_with(|| follows_call(frame.module, rva)) else { continue };
            for (counts, _) in
                [(&mut inner, at > 0), (&mut outer, at < last)].into_iter().filter(|(_, counted)| *counted)
            {
                counts.0 += u64::from(follows);
                counts.1 += 1;
            }
        }
    }
    match read_as {
        StackOrder::LeafFirst => CallVote { leaf_first: inner, root_first: outer },
        StackOrder::RootFirst => CallVote { leaf_first: outer, root_first: inner },
    }
}

/// Turns the stacks of an SPT profile round if the code of its binaries shows that they were read from the wrong end.
/// See [`vote`] for the parameters.
pub fn settle_stack_order(
    profile: &mut Profile,
    read_as: StackOrder,
    follows_call: &mut dyn FnMut(ModuleId, Rva) -> Option<bool>,
) -> Direction {
    match vote(profile, read_as, follows_call).winner() {
        Some(order) => {
            if order != read_as {
                turn_stacks(profile);
            }
            Direction::Verified(order)
        }
        None => Direction::Assumed(read_as),
    }
}

/// Turns the stacks of an SPT profile round: the profile becomes what reading with the other order would have made.
pub fn turn_stacks(profile: &mut Profile) {
    let mut table = StackTable::new();
    let mut folds: BTreeMap<ModuleId, StackFold> = BTreeMap::new();
    let mut rows = Vec::with_capacity(profile.rows.len());
    let stacks = stack_event(profile);
    for row in &profile.rows {
        let node = profile.stacks.node(row.stack);
        if Some(row.event) == stacks {
            let frame = |frame: StackNode| frame.address.recorded().0 as u32;
            let frames: Vec<u32> = profile.stacks.frames(row.stack).map(frame).collect();
            folds.entry(node.module).or_default().add(frames.into_iter(), row.tally.weight.0);
        } else {
            rows.push(SampleRow { stack: table.intern(StackNode { parent: None, ..node }), ..*row });
        }
    }
    for (module, fold) in folds {
        for (stack, hits) in fold.unload(module, &mut table) {
            let event = stacks.unwrap_or(EventId(0));
            rows.push(SampleRow { stack, event, thread: None, tally: Tally::repeated(Weight(1), hits) });
        }
    }
    table.seal();
    profile.stacks = table;
    profile.rows = rows;
}

/// The arcs between neighbouring frames of recorded stacks, from the return address in the caller to the callee, as
/// often as the stacks were recorded.
pub fn stack_arcs(profile: &Profile) -> Vec<BranchArc> {
    let mut arcs: BTreeMap<(CodePlace, CodePlace), Weight> = BTreeMap::new();
    let place = |node: &StackNode| CodePlace { module: node.module, address: node.address.recorded() };
    let mut event = None;
    for row in stack_rows(profile) {
        event = Some(row.event);
        let frames: Vec<_> = profile.stacks.frames(row.stack).collect();
        for pair in frames.windows(2) {
            if let [callee, caller] = pair {
                *arcs.entry((place(caller), place(callee))).or_default() += row.tally.weight;
            }
        }
    }
    let arc = |((from, to), taken)| event.map(|event| BranchArc { event, from, to, taken });
    arcs.into_iter().filter_map(arc).collect()
}

fn stack_event(profile: &Profile) -> Option<EventId> {
    profile.find_event(Op::EtwCallstack.event_name())
}

fn stack_rows(profile: &Profile) -> impl Iterator<Item = &SampleRow> {
    let event = stack_event(profile);
    profile.rows.iter().filter(move |row| Some(row.event) == event)
}
