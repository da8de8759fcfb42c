//! The records that are as expected, which nearly all are: entries of functions that were entered from here before, and
//! returns of the innermost function. Everything that is not is left to the [walk](super::walk).

use super::expected::{Expected, Moment, is_plain};
use super::records::RECORD;
use super::tree::{CallTree, Cells, NodeId};
use super::walk::{Frame, SUSPICIOUS_PAUSE};

/// A thread while its records are as expected.
pub(super) struct Plain<'a> {
    pub cells: &'a mut Cells,
    pub stack: &'a mut Vec<Frame>,
    /// When the last record was written.
    pub last: u64,
    /// The innermost function, and the one before the last record.
    pub top: NodeId,
    pub before: NodeId,
}

impl Plain<'_> {
    /// Takes records as long as they are as expected and before a moment. Returns the number of bytes.
    pub fn run(&mut self, tree: &mut CallTree, bytes: &[u8], until: u64) -> usize {
        self.cells.reserve(tree.nodes().len());
        let mut used = 0;
        loop {
            let stopped = self.run_foreseen(&tree.expected, bytes.get(used..).unwrap_or_default(), &mut used, until);
            let Some((time, word)) = stopped else { return used };
            let moment = self.moment(&tree.expected);
            let Some(child) = tree.child_entered(self.top, moment, word) else { return used };
            self.enter(child, time);
            used += RECORD;
        }
    }

    /// Takes records as long as they are of the innermost function's return or of a recent child's entry. Returns the
    /// time and word of a plain one that is not.
    #[inline(always)]
    fn run_foreseen(&mut self, expected: &Expected, bytes: &[u8], used: &mut usize, until: u64) -> Option<(u64, u64)> {
        let nodes = expected.nodes();
        for record in bytes.as_chunks::<RECORD>().0 {
            let [time, word] = [0, 8].map(|at| record.get(at..).and_then(|half| half.first_chunk()));
            let (time, word) = (u64::from_le_bytes(*time?), u64::from_le_bytes(*word?));
            if time.wrapping_sub(self.last) >= SUSPICIOUS_PAUSE || time >= until || !is_plain(word) {
                return None;
            }
            let node = nodes.get(self.top as usize)?;
            if word == node.leaves {
                self.leave(node.parent, time);
            } else if let Some(child) = node.child(word) {
                self.enter(child, time);
            } else {
                return Some((time, word));
            }
            *used += RECORD;
        }
        None
    }

    #[inline(always)]
    fn enter(&mut self, child: NodeId, time: u64) {
        if let Some(cell) = self.cells.get_mut(self.top) {
            cell.elapsed.add_short(time.wrapping_sub(self.last));
        }
        self.stack.push(Frame { node: child, entered: time });
        self.step(child, time);
    }

    #[inline(always)]
    fn leave(&mut self, parent: NodeId, time: u64) {
        let entered = self.stack.pop().map_or(time, |frame| frame.entered);
        if let Some(cell) = self.cells.get_mut(self.top) {
            cell.elapsed.add_short(time.wrapping_sub(self.last));
            cell.calls.add_call(time.wrapping_sub(entered));
        }
        self.step(parent, time);
    }

    #[inline(always)]
    fn step(&mut self, top: NodeId, time: u64) {
        self.before = std::mem::replace(&mut self.top, top);
        self.last = time;
    }

    /// Whether the innermost function was entered just now or returned to.
    fn moment(&self, expected: &Expected) -> Moment {
        let parent = expected.nodes().get(self.top as usize).map(|node| node.parent);
        if parent == Some(self.before) { Moment::Entered(self.top) } else { Moment::Left(self.before) }
    }
}
