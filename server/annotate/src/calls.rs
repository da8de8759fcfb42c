//! The measured call graph: who called a place, and whom it called, with what weight.
//!
//! An edge is a pair of neighbouring frames of a stack, inlined ones included. It counts once per sample, however
//! often recursion repeats it. Where a metric was recorded without stacks but the profile holds branches, the edges are
//! those branches that were calls; the two kinds are never mixed.

use crate::model::{FileId, FunctionId, LineKey, ModelFrame};
use crate::table::{Cost, CostTable};
use crate::tree::Visit;
use heatline_profile::{ModuleId, Tally, Weight};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::num::NonZeroU32;

/// The function at the other end of a call, or code of a module that has no name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Party {
    /// A function.
    Function(FunctionId),
    /// Code without a symbol.
    Unnamed(ModuleId),
}

/// What the edges of a call graph were made from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CallBasis {
    /// The stacks of samples: an edge costs what the samples weigh whose stacks hold it.
    Stacks,
    /// Recorded branches: an edge says how often a branch was recorded that entered the callee.
    Branches,
}

/// One call edge of a place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Call {
    /// The other end.
    pub party: Party,
    /// The samples that hold the edge; percentages are of the table's whole. From [`CallBasis::Branches`] the branches
    /// that were taken, as a share of all branches recorded.
    pub cost: Cost,
}

/// The calls into and out of a place, heaviest first.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Calls {
    /// Who called it.
    pub callers: Vec<Call>,
    /// Whom it called.
    pub callees: Vec<Call>,
}

impl CostTable {
    /// What calls are known from; `None` where nothing is known of calls between functions. Branches are not kept by
    /// thread, so they say nothing once threads are chosen.
    pub fn call_basis(&self) -> Option<CallBasis> {
        if self.has_inclusive() {
            return Some(CallBasis::Stacks);
        }
        let by_branches = !self.model.profile.arcs.is_empty() && !self.selection.filter.selects_threads();
        by_branches.then_some(CallBasis::Branches)
    }

    /// The whole measured call graph: every edge, caller first, each once per sample. One walk over the stacks.
    pub fn call_graph(&self) -> Vec<(Party, Party, Cost)> {
        if self.call_basis() == Some(CallBasis::Branches) {
            return self.arc_graph();
        }
        let mut edges: FxHashMap<(Party, Party), (Tally, u32)> = FxHashMap::default();
        self.model.tree.walk(&self.sums, |visit| match visit {
            Visit::Enter(node) => self.pairs_of(node, |caller, callee| {
                let (tally, depth) = edges.entry((caller.party, callee.party)).or_default();
                if *depth == 0 {
                    *tally += self.sums[node as usize];
                }
                *depth += 1;
            }),
            Visit::Leave(node) => self.pairs_of(node, |caller, callee| {
                edges.entry((caller.party, callee.party)).or_default().1 -= 1;
            }),
        });
        let cost = |tally| self.cost(tally);
        let mut graph: Vec<_> =
            edges.into_iter().map(|((caller, callee), (tally, _))| (caller, callee, cost(tally))).collect();
        graph.sort_by_key(|&(caller, callee, cost)| (std::cmp::Reverse(cost.weight), caller, callee));
        graph
    }

    /// For each function the source line that calls it at the highest cost.
    pub fn costliest_call_lines(&self) -> FxHashMap<FunctionId, (FileId, NonZeroU32)> {
        let mut sums: FxHashMap<(FunctionId, FileId, NonZeroU32), Weight> = FxHashMap::default();
        for (node, sum) in self.sums.iter().enumerate().filter(|(_, sum)| sum.samples > 0) {
            let node = node as u32;
            let caller = self.model.tree.parent(node).map(|parent| self.frames(parent)[0].line);
            let line = caller.and_then(|line| match self.model.lines.get(line.0 as usize)? {
                LineKey::Source(_, file, line) => Some((*file, *line)),
                _ => None,
            });
            let called = self.frames(node).last().and_then(|frame| frame.function);
            if let (Some((file, line)), Some(function)) = (line, called) {
                *sums.entry((function, file, line)).or_default() += sum.weight;
            }
        }
        let mut best: FxHashMap<FunctionId, (Weight, Reverse<(FileId, NonZeroU32)>)> = FxHashMap::default();
        for ((function, file, line), weight) in sums {
            let this = (weight, Reverse((file, line)));
            let known = best.entry(function).or_insert(this);
            *known = this.max(*known);
        }
        best.into_iter().map(|(function, (_, place))| (function, place.0)).collect()
    }

    /// The calls of one function.
    pub fn calls_of_function(&self, function: FunctionId) -> Calls {
        self.calls(|frame| frame.function == Some(function))
    }

    /// The calls of everything that `is_part` says belongs to the place: a function, its clones, a line, some lines.
    pub(crate) fn calls(&self, is_part: impl Fn(&ModelFrame) -> bool) -> Calls {
        if self.call_basis() == Some(CallBasis::Branches) {
            return self.arc_calls(is_part);
        }
        let named = self.model.functions.len();
        let mut sums = Edges::new(named, self.model.profile.modules.len());
        // Edges of a node: from its parent's innermost frame inwards through its own frames.
        self.model.tree.walk(&self.sums, |visit| match visit {
            Visit::Enter(node) => self.edges_of(node, &is_part, |edge| sums.enter(edge, self.sums[node as usize])),
            Visit::Leave(node) => self.edges_of(node, &is_part, |edge| sums.leave(edge)),
        });
        let rows = |tallies: Vec<(Tally, u32)>| {
            let party = |at: usize| match at.checked_sub(named) {
                None => Party::Function(FunctionId(at as u32)),
                Some(module) => Party::Unnamed(ModuleId(module as u32)),
            };
            let called = tallies.into_iter().enumerate().filter(|(_, (tally, _))| tally.samples > 0);
            let mut rows: Vec<Call> =
                called.map(|(at, (tally, _))| Call { party: party(at), cost: self.cost(tally) }).collect();
            rows.sort_by_key(|call| (std::cmp::Reverse(call.cost.weight), call.party));
            rows
        };
        Calls { callers: rows(sums.callers), callees: rows(sums.callees) }
    }

    fn edges_of(&self, node: u32, is_part: &impl Fn(&ModelFrame) -> bool, mut emit: impl FnMut(Edge)) {
        self.pairs_of(node, |caller, callee| {
            if is_part(callee.frame) {
                emit(Edge::From(caller.party));
            }
            if is_part(caller.frame) {
                emit(Edge::To(callee.party));
            }
        });
    }

    /// The calls that lead to a node and through its inlined frames: caller and callee.
    fn pairs_of(&self, node: u32, mut emit: impl FnMut(End<'_>, End<'_>)) {
        let frames = self.frames(node);
        let outer = self.model.tree.parent(node).map(|parent| self.end(&self.frames(parent)[0], parent));
        for (at, callee) in frames.iter().enumerate() {
            let caller = frames.get(at + 1).map(|frame| self.end(frame, node)).or(outer);
            if let Some(caller) = caller {
                emit(caller, self.end(callee, node));
            }
        }
    }

    fn end<'a>(&self, frame: &'a ModelFrame, node: u32) -> End<'a> {
        let module = || self.model.module_of[self.model.node_location[node as usize].0 as usize];
        End { frame, party: frame.function.map_or_else(|| Party::Unnamed(module()), Party::Function) }
    }
}

/// One end of a call.
#[derive(Clone, Copy)]
struct End<'a> {
    frame: &'a ModelFrame,
    party: Party,
}

#[derive(Clone, Copy)]
enum Edge {
    From(Party),
    To(Party),
}

/// Tallies per party, with how often the edge is on the current path: functions by number, then modules.
struct Edges {
    named: usize,
    callers: Vec<(Tally, u32)>,
    callees: Vec<(Tally, u32)>,
}

impl Edges {
    fn new(named: usize, modules: usize) -> Self {
        let none = vec![(Tally::default(), 0); named + modules];
        Edges { named, callers: none.clone(), callees: none }
    }

    fn entry(&mut self, edge: Edge) -> &mut (Tally, u32) {
        let named = self.named;
        let number = |party: Party| match party {
            Party::Function(id) => id.0 as usize,
            Party::Unnamed(module) => named + module.0 as usize,
        };
        match edge {
            Edge::From(party) => &mut self.callers[number(party)],
            Edge::To(party) => &mut self.callees[number(party)],
        }
    }

    fn enter(&mut self, edge: Edge, sum: Tally) {
        let (tally, depth) = self.entry(edge);
        if *depth == 0 {
            *tally += sum;
        }
        *depth += 1;
    }

    fn leave(&mut self, edge: Edge) {
        self.entry(edge).1 -= 1;
    }
}
