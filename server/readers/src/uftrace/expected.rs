//! What a thread's records will most likely say next. Programs repeat themselves: most functions call few others, and
//! after a call comes what came after it the last time. A record that says what was foreseen needs no look into the
//! call tree.

use super::tree::{NO_NODE, NodeId};

/// The bits that an entry or a return with nothing behind it has in its word, besides depth and address; that of a return
/// has the lowest bit set as well.
const PLAIN: u64 = 5 << 3;
const RETURN: u64 = 1;

/// The word of a record that enters a function at a depth, with nothing behind it; `None` if there can be none.
pub(super) fn plain_entry(depth: u32, address: u64) -> Option<u64> {
    let fits = depth < 1 << 10 && address < 1 << 48;
    fits.then_some(PLAIN | u64::from(depth) << 6 | address << 16)
}

/// Whether a word is that of an entry or a return with nothing behind it.
#[inline(always)]
pub(super) fn is_plain(word: u64) -> bool {
    word & 0x3f & !RETURN == PLAIN
}

/// The entry of a child, and the word of the record that says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub word: u64,
    pub child: NodeId,
}

impl Entry {
    /// No record that [is plain](is_plain) has this word.
    const NONE: Entry = Entry { word: 0, child: NO_NODE };
}

/// When an entry is foreseen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moment {
    /// After this function was entered.
    Entered(NodeId),
    /// After this function returned.
    Left(NodeId),
}

/// What is foreseen of one node. It fills a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Foreseen {
    /// The word of its return; of no plain record if there can be none.
    pub leaves: u64,
    words: [u64; ENTRIES],
    pub parent: NodeId,
    children: [NodeId; ENTRIES],
}

const ENTRIES: usize = 4;
/// The two children looked up last.
const RECENT: [usize; 2] = [0, 1];
/// What was looked up after it was entered, and after it returned.
const ENTERED: usize = 2;
const LEFT: usize = 3;

impl Foreseen {
    /// The recent child that is entered by a record with this word.
    #[inline(always)]
    pub fn child(&self, word: u64) -> Option<NodeId> {
        if word == self.words[RECENT[0]] {
            Some(self.children[RECENT[0]])
        } else if word == self.words[RECENT[1]] {
            Some(self.children[RECENT[1]])
        } else {
            None
        }
    }

    #[inline(always)]
    fn get(&self, at: usize) -> Entry {
        Entry { word: self.words[at], child: self.children[at] }
    }

    #[inline(always)]
    fn set(&mut self, at: usize, entry: Entry) {
        self.words[at] = entry.word;
        self.children[at] = entry.child;
    }
}

/// What is foreseen of all nodes of a call tree.
#[derive(Debug, Default)]
pub(super) struct Expected {
    nodes: Vec<Foreseen>,
}

impl Expected {
    /// Adds the next node, a function entered by `parent` at a depth. A root has none, and nobody returns from it.
    pub fn push(&mut self, parent: NodeId, depth: Option<u32>, address: u64) {
        let entry = depth.and_then(|depth| plain_entry(depth, address));
        let leaves = entry.map_or(Entry::NONE.word, |word| word | RETURN);
        let (words, children) = ([Entry::NONE.word; ENTRIES], [Entry::NONE.child; ENTRIES]);
        self.nodes.push(Foreseen { leaves, words, parent, children });
    }

    /// All of it, by the numbers of the nodes.
    pub fn nodes(&self) -> &[Foreseen] {
        &self.nodes
    }

    /// The children that were looked up last.
    #[inline]
    pub fn recent_children(&self, node: NodeId) -> [NodeId; 2] {
        self.nodes.get(node as usize).map_or([NO_NODE; 2], |node| RECENT.map(|at| node.children[at]))
    }

    /// Notes a child that had to be looked up.
    pub fn note_child(&mut self, node: NodeId, entry: Entry) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.set(RECENT[1], node.get(RECENT[0]));
            node.set(RECENT[0], entry);
        }
    }

    /// The entry that is foreseen at a moment.
    #[inline]
    pub fn at(&self, moment: Moment) -> Entry {
        let (node, at) = place(moment);
        self.nodes.get(node as usize).map_or(Entry::NONE, |node| node.get(at))
    }

    /// Remembers what came at a moment.
    #[inline]
    pub fn remember(&mut self, moment: Moment, entry: Entry) {
        let (node, at) = place(moment);
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.set(at, entry);
        }
    }
}

#[inline]
fn place(moment: Moment) -> (NodeId, usize) {
    match moment {
        Moment::Entered(node) => (node, ENTERED),
        Moment::Left(node) => (node, LEFT),
    }
}
