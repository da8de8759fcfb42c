//! Recorded stacks, folded to a tree while reading.

use super::table::Table;
use heatline_profile::{CodeAddress, ModuleAddress, ModuleId, StackId, StackNode, StackTable};

/// Stacks of one binary as a tree of addresses, outermost first.
#[derive(Default)]
pub(crate) struct StackFold {
    /// Nodes, counted from 1, by the caller's node or [`ROOT`], in the upper half, and address.
    ids: Table,
    nodes: Vec<Node>,
    /// Where stacks that were seen lately end, by [`place_of`] their frames: most stacks come again soon.
    recent: Vec<u32>,
    full: bool,
}

struct Node {
    parent: u32,
    rva: u32,
    /// Hits of the stacks that end here.
    hits: u64,
}

/// No caller.
const ROOT: u32 = u32::MAX;
/// So many stacks are kept at hand.
const RECENT: usize = 1 << 14;

/// One of [`RECENT`] places for a stack. Two stacks may have the same.
fn place_of(frames: impl Iterator<Item = u32>) -> usize {
    let mix = |mixed: u64, rva| (mixed.rotate_left(5) ^ u64::from(rva)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (frames.fold(0, mix) >> 32) as usize % RECENT
}

impl StackFold {
    /// Adds a stack, given outermost frame first. Hits saturate.
    pub(crate) fn add(&mut self, frames: impl DoubleEndedIterator<Item = u32> + Clone, hits: u64) {
        if self.recent.is_empty() {
            self.recent = vec![ROOT; RECENT];
        }
        let place = place_of(frames.clone());
        let mut leaf = self.recent.get(place).copied().unwrap_or(ROOT);
        if !self.ends_in(leaf, frames.clone().rev()) {
            let Some(found) = self.intern(frames) else { return };
            leaf = found;
            if let Some(recent) = self.recent.get_mut(place) {
                *recent = leaf;
            }
        }
        if let Some(leaf) = self.nodes.get_mut(leaf as usize) {
            leaf.hits = leaf.hits.saturating_add(hits);
        }
    }

    /// Whether the stack that ends in `node` has these frames, innermost first.
    fn ends_in(&self, node: u32, frames: impl Iterator<Item = u32>) -> bool {
        let mut at = node;
        for rva in frames {
            match self.nodes.get(at as usize) {
                Some(node) if node.rva == rva => at = node.parent,
                _ => return false,
            }
        }
        at == ROOT
    }

    /// The node that the frames, outermost first, lead to; `None` if it cannot be numbered any more.
    fn intern(&mut self, frames: impl Iterator<Item = u32>) -> Option<u32> {
        let mut at = ROOT;
        for rva in frames {
            let next = self.nodes.len() as u32;
            if next == ROOT {
                self.full = true;
                return None;
            }
            let parent = at;
            let id = self.ids.entry(u64::from(parent) << 32 | u64::from(rva));
            if *id == 0 {
                *id = u64::from(next) + 1;
                self.nodes.push(Node { parent, rva, hits: 0 });
            }
            at = (*id - 1) as u32;
        }
        Some(at)
    }

    /// The number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there were more different frames than can be numbered.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Moves the stacks to `table`, level by level from the outermost, each level by caller and address, so that equal
    /// stacks make equal tables; returns those that have hits of their own. The innermost frame is taken as it is, the
    /// others are return addresses.
    pub(crate) fn unload(self, module: ModuleId, table: &mut StackTable) -> Vec<(StackId, u64)> {
        let mut has_callees = vec![false; self.nodes.len()];
        let mut depths = vec![0_u32; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.parent != ROOT) {
            has_callees[node.parent as usize] = true;
            depths[at] = depths[node.parent as usize] + 1;
        }
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|at| depths[*at]);
        let mut as_caller: Vec<Option<StackId>> = vec![None; self.nodes.len()];
        let mut stacks = Vec::new();
        for level in order.chunk_by_mut(|a, b| depths[*a] == depths[*b]) {
            let parent = |node: &Node, ids: &[Option<StackId>]| ids.get(node.parent as usize).copied().flatten();
            level.sort_unstable_by_key(|at| (parent(&self.nodes[*at], &as_caller), self.nodes[*at].rva));
            for at in level {
                let node = &self.nodes[*at];
                let parent = parent(node, &as_caller);
                let mut intern = |address| table.intern(StackNode { parent, module, address });
                let address = ModuleAddress(u64::from(node.rva));
                if node.hits > 0 {
                    stacks.push((intern(CodeAddress::Ip(address)), node.hits));
                }
                if has_callees[*at] {
                    as_caller[*at] = Some(intern(CodeAddress::ReturnAddress(address)));
                }
            }
        }
        stacks
    }
}
