//! Call edges from branch records: which of the recorded branches were calls, and between which functions.
//!
//! A branch from one function to the first instruction of another is a call, or the jump that ends a function in place
//! of one. Branches to anywhere else (returns, loops, jumps within a function) are none. The counts are of recorded
//! branches: those of one sample are not independent, and no time can be read from them.

use crate::addresses::{Addresses, ArcAddresses};
use crate::calls::{Call, Calls, Party};
use crate::model::{FunctionId, LineKey, LocationId, Model, ModelFrame};
use crate::table::{Cost, CostTable};
use heatline_profile::{Tally, Weight};
use rustc_hash::FxHashMap;

/// Branches that were calls, from one location to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ArcCall {
    from: LocationId,
    to: LocationId,
    taken: Weight,
}

impl Model {
    /// The calls among the branches of the profile; `of_address` are the locations of its addresses.
    pub(crate) fn find_arc_calls(&self, addresses: &Addresses, of_address: &[LocationId]) -> Vec<ArcCall> {
        let location = |address: u32| of_address[address as usize];
        let mut calls: FxHashMap<(LocationId, LocationId), Weight> = FxHashMap::default();
        for (ends, arc) in addresses.of_arcs().iter().zip(&self.profile.arcs) {
            let ArcAddresses { from, to, before } = *ends;
            let (from, to) = (location(from), location(to));
            if self.is_call(from, to, before.map(location)) {
                *calls.entry((from, to)).or_default() += arc.taken;
            }
        }
        let mut calls: Vec<ArcCall> =
            calls.into_iter().map(|((from, to), taken)| ArcCall { from, to, taken }).collect();
        calls.sort_by_key(|call| (call.from, call.to));
        calls
    }

    /// Whether a branch goes to the first instruction of a function; `before` is what precedes its target.
    fn is_call(&self, from: LocationId, to: LocationId, before: Option<LocationId>) -> bool {
        let target = self.outermost(to);
        let Some(callee) = target.function else { return false };
        if before.is_some_and(|before| self.outermost(before).function == Some(callee)) {
            return false;
        }
        match self.outermost(from).function {
            // The function itself, or the part of it that was moved away: a recursive call goes to where it is declared.
            Some(caller) if caller == callee => self.is_declared_at(callee, target),
            Some(caller) => !self.is_cold_part(callee, caller),
            None => true,
        }
    }

    fn outermost(&self, location: LocationId) -> &ModelFrame {
        let frames = self.frames_at(location.0 as usize);
        &frames[frames.len() - 1]
    }

    fn is_declared_at(&self, id: FunctionId, frame: &ModelFrame) -> bool {
        let function = self.function(id);
        match (self.line(frame.line), function.file.zip(function.line)) {
            (LineKey::Source(_, file, line), Some(declared)) => (file, line) == declared,
            _ => true,
        }
    }

    /// Whether a symbol is that of the part of a function that seldom runs, which the function only jumps to.
    fn is_cold_part(&self, part: FunctionId, function: FunctionId) -> bool {
        let name = |id| self.function(id).linkage_name.as_ref().unwrap_or(&self.function(id).name);
        name(part).strip_prefix(&**name(function)).is_some_and(|rest| rest.starts_with(".cold"))
    }
}

impl CostTable {
    /// All calls among the branches, caller first, most taken first.
    pub(crate) fn arc_graph(&self) -> Vec<(Party, Party, Cost)> {
        let mut edges: FxHashMap<(Party, Party), Weight> = FxHashMap::default();
        for call in &self.model.arc_calls {
            let (caller, callee) = self.ends(call);
            *edges.entry((self.party(caller, call.from), self.party(callee, call.to))).or_default() += call.taken;
        }
        let mut graph: Vec<_> =
            edges.into_iter().map(|((caller, callee), taken)| (caller, callee, self.arc_cost(taken))).collect();
        graph.sort_by_key(|&(caller, callee, cost)| (std::cmp::Reverse(cost.weight), caller, callee));
        graph
    }

    /// The calls among the branches into and out of what `is_part` says belongs to a place.
    pub(crate) fn arc_calls(&self, is_part: impl Fn(&ModelFrame) -> bool) -> Calls {
        let (mut callers, mut callees) = (FxHashMap::default(), FxHashMap::default());
        for call in &self.model.arc_calls {
            let (caller, callee) = self.ends(call);
            if is_part(callee) {
                *callers.entry(self.party(caller, call.from)).or_default() += call.taken;
            }
            if is_part(caller) {
                *callees.entry(self.party(callee, call.to)).or_default() += call.taken;
            }
        }
        let rows = |sums: FxHashMap<Party, Weight>| {
            let row = |(party, taken)| Call { party, cost: self.arc_cost(taken) };
            let mut rows: Vec<Call> = sums.into_iter().map(row).collect();
            rows.sort_by_key(|call| (std::cmp::Reverse(call.cost.weight), call.party));
            rows
        };
        Calls { callers: rows(callers), callees: rows(callees) }
    }

    /// The frame that branches away, which may be inlined, and the function it enters.
    fn ends(&self, call: &ArcCall) -> (&ModelFrame, &ModelFrame) {
        (&self.view(self.model.frames_at(call.from.0 as usize))[0], self.model.outermost(call.to))
    }

    fn party(&self, frame: &ModelFrame, location: LocationId) -> Party {
        let module = || self.model.module_of[location.0 as usize];
        frame.function.map_or_else(|| Party::Unnamed(module()), Party::Function)
    }

    /// Percentages are of all branches that were recorded as taken.
    fn arc_cost(&self, taken: Weight) -> Cost {
        Cost::new(Tally::repeated(Weight(1), taken.0), self.model.profile.arcs.iter().map(|arc| arc.taken).sum())
    }
}
