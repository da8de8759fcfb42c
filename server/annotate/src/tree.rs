//! Sums over the tree of stacks: exclusive and inclusive cost of any kind of place, each place once per sample.
//!
//! The inclusive cost of a place is the weight of all samples whose stack holds it. In the tree that is the weight
//! below each node where the place appears for the first time on the way from the root, so one walk suffices and the
//! work follows the number of unique stacks, not of samples.

use crate::model::LocationId;
use heatline_profile::{StackTable, Tally};

/// No key: a frame that names no place of the kind asked for.
pub(crate) const NONE: u32 = u32::MAX;

/// The stack table turned round: the children of each node.
#[derive(Debug)]
pub(crate) struct Tree {
    parent: Vec<u32>,
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
    first_root: u32,
}

impl Tree {
    pub(crate) fn of(stacks: &StackTable) -> Self {
        let count = stacks.len();
        let mut tree = Tree {
            parent: vec![NONE; count],
            first_child: vec![NONE; count],
            next_sibling: vec![NONE; count],
            first_root: NONE,
        };
        for (id, node) in stacks.nodes().iter().enumerate().rev() {
            let head = match node.parent {
                Some(parent) => {
                    tree.parent[id] = parent.0;
                    &mut tree.first_child[parent.0 as usize]
                }
                None => &mut tree.first_root,
            };
            tree.next_sibling[id] = *head;
            *head = id as u32;
        }
        tree
    }

    /// The tally of each node together with all below it.
    pub(crate) fn subtree_sums(&self, own: &[Tally]) -> Vec<Tally> {
        let mut sums = own.to_vec();
        for node in (0..sums.len()).rev() {
            let parent = self.parent[node];
            if parent != NONE && sums[node].samples > 0 {
                let sum = sums[node];
                sums[parent as usize] += sum;
            }
        }
        sums
    }

    /// Walks all nodes that have samples below them, parents first; `enter` and `leave` frame each subtree.
    pub(crate) fn walk(&self, sums: &[Tally], mut visit: impl FnMut(Visit)) {
        let mut node = self.first_root;
        let mut path: Vec<u32> = Vec::new();
        loop {
            if node == NONE {
                let Some(done) = path.pop() else { return };
                visit(Visit::Leave(done));
                node = self.next_sibling[done as usize];
            } else if sums[node as usize].samples == 0 {
                node = self.next_sibling[node as usize];
            } else {
                visit(Visit::Enter(node));
                path.push(node);
                node = self.first_child[node as usize];
            }
        }
    }

    pub(crate) fn parent(&self, node: u32) -> Option<u32> {
        Some(self.parent[node as usize]).filter(|&p| p != NONE)
    }
}

/// A step of [`Tree::walk`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Visit {
    Enter(u32),
    Leave(u32),
}

/// The places of one kind that each location names, as dense numbers.
#[derive(Debug)]
pub(crate) struct Keys {
    /// How many different places there are.
    pub(crate) count: usize,
    /// The place of the innermost frame per location, or [`NONE`].
    innermost: Vec<u32>,
    starts: Vec<u32>,
    places: Vec<u32>,
}

impl Keys {
    /// From the places of each location's frames, innermost first.
    pub(crate) fn build<I: Iterator<Item = u32>>(
        locations: usize,
        count: usize,
        of_location: impl Fn(usize) -> I,
    ) -> Self {
        let mut keys = Keys {
            count,
            innermost: Vec::with_capacity(locations),
            starts: Vec::with_capacity(locations + 1),
            places: Vec::new(),
        };
        for location in 0..locations {
            let start = keys.places.len();
            keys.starts.push(start as u32);
            let mut innermost = None;
            for place in of_location(location) {
                innermost.get_or_insert(place);
                if place != NONE && !keys.places[start..].contains(&place) {
                    keys.places.push(place);
                }
            }
            keys.innermost.push(innermost.unwrap_or(NONE));
        }
        keys.starts.push(keys.places.len() as u32);
        keys
    }

    fn of(&self, location: LocationId) -> &[u32] {
        let at = location.0 as usize;
        &self.places[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// Exclusive and inclusive tally of one place.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Pair {
    pub(crate) exclusive: Tally,
    pub(crate) inclusive: Tally,
}

/// The tallies of all places of one kind.
pub(crate) fn accumulate(
    tree: &Tree,
    locations: &[LocationId],
    own: &[Tally],
    sums: &[Tally],
    keys: &Keys,
) -> Vec<Pair> {
    let mut pairs = vec![Pair::default(); keys.count];
    for (node, tally) in own.iter().enumerate() {
        let place = keys.innermost[locations[node].0 as usize];
        if tally.samples > 0 && place != NONE {
            pairs[place as usize].exclusive += *tally;
        }
    }
    let mut depth = vec![0u32; keys.count];
    tree.walk(sums, |visit| match visit {
        Visit::Enter(node) => {
            for &place in keys.of(locations[node as usize]) {
                if depth[place as usize] == 0 {
                    pairs[place as usize].inclusive += sums[node as usize];
                }
                depth[place as usize] += 1;
            }
        }
        Visit::Leave(node) => {
            for &place in keys.of(locations[node as usize]) {
                depth[place as usize] -= 1;
            }
        }
    });
    pairs
}
