//! Stacks, interned as a tree of code addresses.

use crate::{CodeAddress, ModuleId};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// Number of a node in a [`StackTable`]; it names the stack that ends there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StackId(pub u32);

/// One frame of a stack and the stack it was called from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StackNode {
    /// The caller's stack, or `None` for the outermost frame.
    pub parent: Option<StackId>,
    /// The module that holds the code.
    pub module: ModuleId,
    /// Where in the module.
    pub address: CodeAddress,
}

/// Where stacks are cut that are too many and too deep to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackCut {
    /// So many frames stay, the innermost; at least 1.
    pub depth: u64,
    /// So many stacks are deeper.
    pub stacks: u64,
}

impl StackCut {
    /// What is told of it.
    pub fn problem(&self) -> (&'static str, u64, String) {
        let message =
            format!("stacks were cut to their {} innermost frames: all of them would be too long", self.depth);
        ("deep-stack", self.stacks, message)
    }
}

/// All stacks of a profile, as a tree: two stacks share their common outer frames.
///
/// A parent always has a smaller number than its children, so sums over subtrees are one pass from the end.
#[derive(Clone, Debug, Default)]
pub struct StackTable {
    nodes: Vec<StackNode>,
    /// The numbers of all nodes, found by the nodes' hashes.
    ids: HashTable<u32>,
}

impl StackTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// The table of these nodes, each of which comes behind its parent; none is the same as another. `None` if one comes
    /// before its parent, or if they are too many.
    pub fn from_nodes(nodes: Vec<StackNode>) -> Option<Self> {
        u32::try_from(nodes.len()).ok().filter(|&count| count < u32::MAX)?;
        let follows = |(id, node): (usize, &StackNode)| node.parent.is_none_or(|parent| (parent.0 as usize) < id);
        nodes.iter().enumerate().all(follows).then(|| StackTable { nodes, ids: HashTable::new() })
    }

    /// The stack that ends in `node`, which must name a parent of this table. The same node gets the same number.
    ///
    /// # Panics
    /// With more than 2³²−1 different nodes.
    pub fn intern(&mut self, node: StackNode) -> StackId {
        debug_assert!(node.parent.is_none_or(|p| (p.0 as usize) < self.nodes.len()));
        let (nodes, hash) = (&mut self.nodes, hash(&node));
        if let Some(&id) = self.ids.find(hash, |&id| nodes[id as usize] == node) {
            return StackId(id);
        }
        let id = u32::try_from(nodes.len()).expect("fewer than 2^32 stack nodes");
        nodes.push(node);
        self.ids.insert_unique(hash, id, |&id| self::hash(&nodes[id as usize]));
        StackId(id)
    }

    /// Frees the look-up index once no stack will be added any more.
    pub fn seal(&mut self) {
        self.ids = HashTable::new();
        self.nodes.shrink_to_fit();
    }

    /// Makes a sealed table ready for more stacks.
    pub(crate) fn unseal(&mut self) {
        if self.ids.is_empty() {
            self.ids.reserve(self.nodes.len(), |&id| hash(&self.nodes[id as usize]));
            for (node, id) in self.nodes.iter().zip(0..) {
                self.ids.insert_unique(hash(node), id, |&id| hash(&self.nodes[id as usize]));
            }
        }
    }

    /// The frame that `stack` ends in.
    ///
    /// # Panics
    /// If `stack` is of another table.
    pub fn node(&self, stack: StackId) -> StackNode {
        self.nodes[stack.0 as usize]
    }

    /// All nodes in the order of their numbers, parents before children.
    pub fn nodes(&self) -> &[StackNode] {
        &self.nodes
    }

    /// The frames of `stack`, innermost first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = StackNode> + '_ {
        let mut next = Some(stack);
        std::iter::from_fn(move || {
            let node = self.node(next?);
            next = node.parent;
            Some(node)
        })
    }

    /// The depth at which stacks must be cut so that all of `leaves` together write no more than `most` frames, each
    /// node as many as `frames` says; and how many of them are deeper. `None` if nothing needs to be cut.
    ///
    /// # Panics
    /// If a leaf is of another table.
    pub fn cut(
        &self,
        leaves: impl Iterator<Item = StackId>,
        most: u64,
        mut frames: impl FnMut(&StackNode) -> u64,
    ) -> Option<StackCut> {
        let mut depths: Vec<u64> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let parent = node.parent.map_or(0, |parent| depths[parent.0 as usize]);
            depths.push(parent.saturating_add(frames(node)));
        }
        let mut depths: Vec<u64> = leaves.map(|leaf| depths[leaf.0 as usize]).collect();
        if depths.iter().fold(0u64, |sum, &depth| sum.saturating_add(depth)) <= most {
            return None;
        }
        depths.sort_unstable();
        let (mut left, mut deeper) = (most, depths.len() as u64);
        for depth in depths {
            let share = left / deeper;
            if depth > share {
                return Some(StackCut { depth: share.max(1), stacks: deeper });
            }
            left -= depth;
            deeper -= 1;
        }
        None
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no stack at all.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

fn hash(node: &StackNode) -> u64 {
    FxBuildHasher.hash_one(node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModuleAddress;

    #[test]
    fn nodes_that_come_before_their_parents_are_no_table() {
        let node = |parent: Option<u32>| StackNode {
            parent: parent.map(StackId),
            module: ModuleId(0),
            address: CodeAddress::Ip(ModuleAddress(1)),
        };
        assert_eq!(StackTable::from_nodes(vec![node(None), node(Some(0))]).map(|table| table.len()), Some(2));
        assert!(StackTable::from_nodes(vec![node(None), node(Some(1))]).is_none());
    }

    #[test]
    fn stacks_are_cut_where_all_of_them_fit() {
        let mut table = StackTable::new();
        let mut parent = None;
        let mut ids = Vec::new();
        for address in 0..10 {
            let address = CodeAddress::Ip(ModuleAddress(address));
            parent = Some(table.intern(StackNode { parent, module: ModuleId(0), address }));
            ids.extend(parent);
        }
        let cut = |most, frames| table.cut(ids.iter().copied(), most, |_| frames);
        // 1 + 2 + … + 10.
        assert_eq!(cut(55, 1), None);
        // 1 + 2 + 3 + 4 + 6 * 5.
        assert_eq!(cut(40, 1), Some(StackCut { depth: 5, stacks: 5 }));
        assert_eq!(cut(55, 2), Some(StackCut { depth: 6, stacks: 7 }));
        assert_eq!(cut(3, u64::MAX), Some(StackCut { depth: 1, stacks: 10 }));
    }

    #[test]
    fn equal_stacks_share_a_number_and_frames_come_innermost_first() {
        let mut table = StackTable::new();
        let node = |parent, address| StackNode {
            parent,
            module: ModuleId(0),
            address: CodeAddress::Ip(ModuleAddress(address)),
        };
        let root = table.intern(node(None, 1));
        let leaf = table.intern(node(Some(root), 2));
        assert_eq!(table.intern(node(None, 1)), root);
        assert_eq!(table.intern(node(Some(root), 2)), leaf);
        assert_eq!(table.len(), 2);
        let addresses: Vec<_> = table.frames(leaf).map(|n| n.address.recorded().0).collect();
        assert_eq!(addresses, [2, 1]);
    }
}
