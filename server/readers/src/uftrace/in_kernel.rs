//! Functions of the kernel on a thread's stack: they lie above those of the program that called it.

use super::tree::{NodeId, UNTOLD};
use super::walk::{Frame, Thread, Walk};

impl Walk<'_> {
    /// A function of the kernel is entered over `depth` others of it. What the kernel does for a thread before and after
    /// the recorded functions of its program is none of the program's time.
    pub fn enter_kernel(&mut self, thread: &mut Thread, function: u64, depth: usize) {
        if thread.last.is_none() || thread.stack.is_empty() || thread.lost {
            return;
        }
        self.settle_kernel(thread, depth);
        self.push_kernel(thread, function);
    }

    /// A function of the kernel returns. One that was entered before anything is known of is none of the stack.
    pub fn leave_kernel(&mut self, thread: &mut Thread, function: u64, depth: usize) {
        if thread.in_kernel <= depth {
            return;
        }
        self.settle_kernel(thread, depth + 1);
        if thread.stack.last().is_some_and(|frame| self.tree.address(frame.node) != function) {
            self.leave(thread);
            self.push_kernel(thread, function);
        }
        self.leave(thread);
    }

    /// Brings the kernel's part of the stack to a depth: functions whose return is missing are left, functions nobody told
    /// of are put in.
    fn settle_kernel(&mut self, thread: &mut Thread, depth: usize) {
        while thread.in_kernel > depth {
            self.leave(thread);
        }
        if thread.in_kernel < depth {
            self.counts.unmatched += 1;
        }
        while thread.in_kernel < depth {
            self.push_kernel(thread, UNTOLD);
        }
    }

    fn push_kernel(&mut self, thread: &mut Thread, function: u64) {
        let top: NodeId = self.top(thread);
        let node = self.tree.child(top, function);
        thread.stack.push(Frame { node, entered: thread.last.unwrap_or(0) });
        thread.in_kernel += 1;
    }
}
