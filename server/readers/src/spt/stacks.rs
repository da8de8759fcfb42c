//! Recorded stacks, folded to a tree while reading.

use heatline_profile::{CodeAddress, ModuleAddress, ModuleId, StackId, StackNode, StackTable};
use rustc_hash::FxHashMap;

/// Stacks of one binary as a tree of addresses, outermost first.
#[derive(Default)]
pub(crate) struct StackFold {
    /// Nodes by (caller's node or [`ROOT`], address).
    ids: FxHashMap<(u32, u32), u32>,
    nodes: Vec<Node>,
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

impl StackFold {
    /// Adds a stack, given outermost frame first. Hits saturate.
    pub(crate) fn add(&mut self, frames: impl Iterator<Item = u32>, hits: u64) {
        let mut at = ROOT;
        for rva in frames {
            let next = self.nodes.len() as u32;
            if next == ROOT {
                self.full = true;
                return;
            }
            let parent = at;
            at = *self.ids.entry((parent, rva)).or_insert(next);
            if at == next {
                self.nodes.push(Node { parent, rva, hits: 0 });
            }
        }
        if let Some(leaf) = self.nodes.get_mut(at as usize) {
            leaf.hits = leaf.hits.saturating_add(hits);
        }
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
