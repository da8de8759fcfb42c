//! The call tree while records are read, with what was measured at each of its nodes.

use super::expected::{Entry, Expected, Moment, plain_entry};
use heatline_profile::CallStats;
use rustc_hash::FxHashMap;

/// Number of a node. The first nodes are the roots of the sessions.
pub(super) type NodeId = u32;

/// No node: the parent of a root.
pub(super) const NO_NODE: NodeId = u32::MAX;

/// The address of a frame that nobody told of.
pub(super) const UNTOLD: u64 = u64::MAX;

/// More different call paths than this are given to their callers.
const MOST_NODES: usize = 1 << 24;

/// A function on a call path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub parent: NodeId,
    /// The address in the process; of a root the session.
    pub address: u64,
    /// Whether entries are noted because processes are forked there.
    pub watched: bool,
    /// How many functions are on the path.
    depth: u32,
}

/// All call paths that were taken.
#[derive(Debug, Default)]
pub(super) struct CallTree {
    nodes: Vec<Node>,
    pub expected: Expected,
    ids: FxHashMap<(NodeId, u64), NodeId>,
    roots: FxHashMap<u64, NodeId>,
    /// Calls given to their callers because there are too many paths.
    pub folded: u64,
    /// Addresses of functions that fork.
    watched: Vec<u64>,
}

impl CallTree {
    /// A tree that notes entries at these addresses.
    pub fn watching(watched: Vec<u64>) -> Self {
        CallTree { watched, ..CallTree::default() }
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The root of a session: the place of what happens outside of all calls.
    pub fn root(&mut self, session: u64) -> NodeId {
        if let Some(&root) = self.roots.get(&session) {
            return root;
        }
        let root = self.push(NO_NODE, session);
        self.roots.insert(session, root);
        root
    }

    /// The node of a function called from `parent`.
    #[inline]
    pub fn child(&mut self, parent: NodeId, address: u64) -> NodeId {
        for recent in self.expected.recent_children(parent) {
            if self.nodes.get(recent as usize).is_some_and(|child| child.address == address) {
                return recent;
            }
        }
        self.find_child(parent, address)
    }

    fn find_child(&mut self, parent: NodeId, address: u64) -> NodeId {
        let child = match self.ids.get(&(parent, address)) {
            Some(&child) => child,
            None if self.nodes.len() >= MOST_NODES => {
                self.folded += 1;
                return parent;
            }
            None => {
                let child = self.push(parent, address);
                self.ids.insert((parent, address), child);
                child
            }
        };
        self.note_child(parent, child);
        child
    }

    fn note_child(&mut self, parent: NodeId, child: NodeId) -> Option<Entry> {
        let depth = self.nodes.get(parent as usize)?.depth;
        let node = self.nodes.get(child as usize).filter(|node| !node.watched)?;
        let entry = Entry { word: plain_entry(depth, node.address)?, child };
        self.expected.note_child(parent, entry);
        Some(entry)
    }

    /// The child that the word of a plain record says is entered at a moment, if it was entered before and its entries
    /// need not be noted.
    pub fn child_entered(&mut self, parent: NodeId, moment: Moment, word: u64) -> Option<NodeId> {
        let foreseen = self.expected.at(moment);
        if foreseen.word == word {
            return Some(foreseen.child);
        }
        let address = word >> 16;
        let expected = plain_entry(self.nodes.get(parent as usize)?.depth, address)?;
        let child = *self.ids.get(&(parent, address)).filter(|_| expected == word)?;
        let entry = self.note_child(parent, child)?;
        self.expected.remember(moment, entry);
        Some(child)
    }

    fn push(&mut self, parent: NodeId, address: u64) -> NodeId {
        let watched = parent != NO_NODE && self.watched.contains(&address);
        let caller = self.nodes.get(parent as usize).map(|node| node.depth);
        let depth = caller.map_or(0, |depth| depth + 1);
        self.nodes.push(Node { parent, address, watched, depth });
        self.expected.push(parent, caller, address);
        self.nodes.len() as NodeId - 1
    }

    #[inline]
    pub fn is_watched(&self, node: NodeId) -> bool {
        self.nodes.get(node as usize).is_some_and(|node| node.watched)
    }

    #[inline]
    pub fn address(&self, node: NodeId) -> u64 {
        self.nodes.get(node as usize).map_or(UNTOLD, |node| node.address)
    }

    /// The nodes from a root (left out) to `node`.
    pub fn path(&self, node: NodeId) -> Vec<NodeId> {
        let mut path = Vec::new();
        let mut next = node;
        while let Some(node) = self.nodes.get(next as usize).filter(|node| node.parent != NO_NODE) {
            path.push(next);
            next = node.parent;
        }
        path.reverse();
        path
    }
}

/// What was measured at a node: intervals whose stack ends there, and calls of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    pub elapsed: Span,
    /// The part of `elapsed` in which the thread was switched out.
    pub waiting: Span,
    pub calls: CallStats,
}

/// Intervals, added up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub intervals: u64,
    pub ns: u64,
}

impl Span {
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.intervals += 1;
        self.ns = self.ns.saturating_add(ns);
    }

    /// As [`Self::add`] where an overflow is impossible for long.
    #[inline(always)]
    pub fn add_short(&mut self, ns: u64) {
        self.intervals += 1;
        self.ns = self.ns.wrapping_add(ns);
    }

    /// What is left when a part is taken out.
    pub fn without(&self, part: &Span) -> Span {
        Span { intervals: self.intervals.saturating_sub(part.intervals), ns: self.ns.saturating_sub(part.ns) }
    }

    fn append(&mut self, other: &Span) {
        self.intervals = self.intervals.saturating_add(other.intervals);
        self.ns = self.ns.saturating_add(other.ns);
    }
}

impl Cell {
    fn append(&mut self, other: &Cell) {
        self.elapsed.append(&other.elapsed);
        self.waiting.append(&other.waiting);
        self.calls += other.calls;
    }
}

/// The measurements of one thread, by node.
#[derive(Debug, Default)]
pub(super) struct Cells {
    cells: Vec<Cell>,
    touched: Vec<NodeId>,
}

impl Cells {
    /// The cell of a node.
    #[inline]
    pub fn at(&mut self, node: NodeId) -> &mut Cell {
        let at = node as usize;
        if at >= self.cells.len() {
            self.grow(at);
        }
        let cell = &mut self.cells[at];
        if cell.elapsed.intervals == 0 && cell.calls.calls == 0 {
            self.touched.push(node);
        }
        cell
    }

    /// Cells for so many nodes, for [`Self::get_mut`].
    pub fn reserve(&mut self, nodes: usize) {
        if nodes > self.cells.len() {
            self.grow(nodes - 1);
        }
    }

    /// The cell of a node, if there is one yet.
    #[inline(always)]
    pub fn get_mut(&mut self, node: NodeId) -> Option<&mut Cell> {
        let cell = self.cells.get_mut(node as usize)?;
        if cell.elapsed.intervals == 0 && cell.calls.calls == 0 {
            self.touched.push(node);
        }
        Some(cell)
    }

    #[cold]
    fn grow(&mut self, at: usize) {
        self.cells.resize((at + 1).next_power_of_two().max(64), Cell::default());
    }

    pub fn is_empty(&self) -> bool {
        self.touched.is_empty()
    }

    /// Hands out all cells that hold something, and empties them.
    pub fn drain(&mut self, mut take: impl FnMut(NodeId, &Cell)) {
        self.touched.sort_unstable();
        self.touched.dedup();
        for node in self.touched.drain(..) {
            if let Some(cell) = self.cells.get_mut(node as usize) {
                take(node, cell);
                *cell = Cell::default();
            }
        }
    }
}

/// The measurements of all threads.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub rows: Vec<(NodeId, u32, Cell)>,
    /// Rows by node and thread, once a thread comes a second time.
    ids: Option<FxHashMap<(NodeId, u32), usize>>,
}

impl Measured {
    /// Adds the cells of a thread. `again` says that some of it was added before.
    pub fn add(&mut self, thread: u32, cells: &mut Cells, again: bool) {
        if again && self.ids.is_none() {
            self.ids = Some(self.rows.iter().enumerate().map(|(at, row)| ((row.0, row.1), at)).collect());
        }
        let Measured { rows, ids } = self;
        cells.drain(|node, cell| {
            if let Some(ids) = ids {
                let at = *ids.entry((node, thread)).or_insert(rows.len());
                if let Some(row) = rows.get_mut(at) {
                    row.2.append(cell);
                    return;
                }
            }
            rows.push((node, thread, *cell));
        });
    }
}
