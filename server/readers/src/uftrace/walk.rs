//! From the records of a thread to intervals: what the thread did between any two moments that something is known of.
//!
//! Entries, returns and switches of the thread are the borders. An interval belongs to the stack that was there while it
//! lasted; one between switching out and in is waiting.

use super::plain::Plain;
use super::records::{Kind, RECORD, Record, Records};
use super::spaces::Space;
use super::switches::{Change, Notice};
use super::tree::{CallTree, Cells, NO_NODE, NodeId, UNTOLD};
use rustc_hash::FxHashMap;
use std::io;

/// Arguments or values longer than this are not skipped.
const LONGEST_PAYLOAD: usize = 64 << 10;

/// Functions that fork are noted at most so often.
const MOST_FORKS: usize = 1 << 16;

/// Numbers of events are smaller than this.
const EVENTS_END: u64 = 10_000_000;

/// Two records of one thread are never further apart.
const LONGEST_PAUSE: u64 = 7 * 86_400 * 1_000_000_000;

/// A function that was entered and has not returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub node: NodeId,
    pub entered: u64,
}

/// Where a thread stands between two windows.
#[derive(Debug)]
pub(super) struct Thread {
    pub tid: i32,
    /// The process it was forked from.
    pub parent: Option<i32>,
    /// The number that its measurements go under.
    pub number: u32,
    pub session: Option<usize>,
    /// When the process starts another program.
    pub session_ends: u64,
    root: NodeId,
    pub stack: Vec<Frame>,
    /// How many of the innermost functions are the kernel's.
    pub in_kernel: usize,
    pub last: Option<u64>,
    /// Records were lost behind `last`, so nothing is known of the time up to the next.
    pub lost: bool,
    switched_out: bool,
    /// Where its next record is in its file.
    pub position: u64,
    pub finished: bool,
}

impl Thread {
    pub fn new(tid: i32, parent: Option<i32>) -> Self {
        Thread {
            tid,
            parent,
            number: 0,
            session: None,
            session_ends: 0,
            root: NO_NODE,
            stack: Vec::new(),
            in_kernel: 0,
            last: None,
            lost: false,
            switched_out: false,
            position: 0,
            finished: false,
        }
    }
}

/// A longer pause is compared with the record behind it.
pub(super) const SUSPICIOUS_PAUSE: u64 = 1_000_000_000;

/// What went wrong in records.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Records that the recorder could not write.
    pub lost: u64,
    /// Records that lie before the one in front of them.
    pub out_of_order: u64,
    /// Bytes that are no records.
    pub damaged: u64,
    /// Returns and depths that do not fit the calls before.
    pub unmatched: u64,
    /// Files that end in the middle of a record.
    pub cut: u64,
}

/// What threads have in common.
pub(super) struct Walk<'w> {
    pub tree: &'w mut CallTree,
    pub cells: &'w mut Cells,
    pub counts: &'w mut Counts,
    /// Entries of functions that fork, by process: when, and the stack.
    pub forks: &'w mut FxHashMap<i32, Vec<(u64, NodeId)>>,
    /// Only time between these moments counts.
    pub range: Option<(u64, u64)>,
    /// The first and last moment that counts.
    pub extent: &'w mut Option<(u64, u64)>,
}

/// Why [`Walk::run`] came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// The thread's file is at its end.
    End,
    /// The next record is at or behind the end of the window.
    Window,
    /// The next record is of another program.
    Session(u64),
    /// It is time to tell how far we are.
    Pause,
}

/// Records between two reports of progress.
const REPORT_EVERY: usize = 1 << 18;

impl Walk<'_> {
    /// Reads on in a thread's records, up to `until`.
    pub fn run(
        &mut self,
        thread: &mut Thread,
        records: &mut Records<'_>,
        switches: &mut &[Notice],
        until: u64,
        pid: i32,
        space: Option<&Space>,
    ) -> io::Result<Stop> {
        let mut next_switch = switches.first().map_or(u64::MAX, |switch| switch.time);
        let mut taken = 0;
        while taken < REPORT_EVERY {
            let until_then = next_switch.min(until).min(thread.session_ends);
            let plain = self.run_plain(thread, records.plain(), until_then);
            records.advance(plain);
            taken += 1 + plain / RECORD;
            let Some(record) = records.peek()? else {
                if records.left() > 0 {
                    self.counts.cut += 1;
                }
                return Ok(Stop::End);
            };
            let is_lost = record.kind() == Kind::Lost;
            let time = if is_lost { thread.last.unwrap_or(0) } else { record.time };
            let is_strange =
                !record.is_marked() || thread.last.is_some_and(|last| time < last || time - last > LONGEST_PAUSE);
            if is_strange && !self.accept(thread, records, record, space)? {
                continue;
            }
            let time = if self.is_leap(thread, records, record, time)? { thread.last.unwrap_or(time) } else { time };
            if time >= until && !is_lost {
                self.switch_until(thread, switches, until);
                return Ok(Stop::Window);
            }
            if time >= thread.session_ends && !is_lost {
                self.switch_until(thread, switches, time);
                return Ok(Stop::Session(time));
            }
            if time >= next_switch {
                self.switch_until(thread, switches, time);
                next_switch = switches.first().map_or(u64::MAX, |switch| switch.time);
            }
            records.advance(RECORD);
            if thread.in_kernel > 0 && matches!(record.kind(), Kind::Entry | Kind::Exit) {
                // Code outside of the kernel runs, so the kernel has been left, even if nothing says so.
                self.interval(thread, time);
                self.leave_to(thread, thread.stack.len() - thread.in_kernel);
            }
            match record.kind() {
                Kind::Entry => self.entry(thread, time, record.depth(), record.address(), pid),
                Kind::Exit => self.exit(thread, time, record.depth(), record.address()),
                Kind::Lost => {
                    self.counts.lost = self.counts.lost.saturating_add(record.address());
                    thread.lost = thread.last.is_some();
                }
                Kind::Event => {}
            }
            if record.has_more() {
                self.skip_payload(thread, records, record, time, space)?;
            }
        }
        Ok(Stop::Pause)
    }

    /// Reads on as long as records are [as expected](super::plain), before a moment. Returns the number of bytes.
    fn run_plain(&mut self, thread: &mut Thread, bytes: &[u8], until: u64) -> usize {
        let Some(last) = thread.last.filter(|_| !thread.lost && !thread.switched_out && self.range.is_none()) else {
            return 0;
        };
        let top = self.top(thread);
        let mut plain = Plain { cells: self.cells, stack: &mut thread.stack, last, top, before: top };
        let used = plain.run(self.tree, bytes, until);
        let now = plain.last;
        thread.last = Some(now);
        if used > 0 {
            self.reach(last, now);
        }
        used
    }

    /// Whether a moment lies far ahead while the next record does not: then it is damaged.
    #[inline]
    fn is_leap(&mut self, thread: &Thread, records: &mut Records<'_>, record: Record, time: u64) -> io::Result<bool> {
        let Some(last) = thread.last.filter(|last| time - last.min(&time) > SUSPICIOUS_PAUSE) else { return Ok(false) };
        if record.has_more() {
            return Ok(false);
        }
        let next = records.peek_at(RECORD)?.filter(|next| next.is_marked() && next.kind() != Kind::Lost);
        let leaps = next.is_some_and(|next| (last..time).contains(&next.time));
        self.counts.damaged += if leaps { 8 } else { 0 };
        Ok(leaps)
    }

    /// Whether a record whose mark or time is strange can be used all the same. If not, goes on to the next that can.
    #[cold]
    fn accept(
        &mut self,
        thread: &mut Thread,
        records: &mut Records<'_>,
        record: Record,
        space: Option<&Space>,
    ) -> io::Result<bool> {
        let last = thread.last.unwrap_or(0);
        if record.is_marked() && record.time < last && last - record.time < LONGEST_PAUSE {
            // Clocks of processors may differ a little; the moment is taken as the one before.
            self.counts.out_of_order += 1;
            if is_plausible_code(record, space) {
                return Ok(true);
            }
        }
        for ahead in (8..LONGEST_PAYLOAD).step_by(8) {
            let Some(next) = records.peek_at(ahead)? else { break };
            if self.is_plausible(thread, next, last, space) && self.is_followed(records, ahead, next)? {
                self.counts.damaged += ahead as u64;
                records.advance(ahead);
                thread.lost = thread.last.is_some();
                return Ok(false);
            }
        }
        // Nothing more of this file can be told from noise.
        self.counts.damaged += records.left() as u64;
        records.advance(usize::MAX / 2);
        Ok(false)
    }

    /// Arguments and values are as long as a specification says that only the recorder had in a usable form. They end
    /// where the next record begins, which has a mark, a moment that fits, and a place in the stack.
    fn skip_payload(
        &mut self,
        thread: &Thread,
        records: &mut Records<'_>,
        record: Record,
        time: u64,
        space: Option<&Space>,
    ) -> io::Result<()> {
        if record.kind() == Kind::Event {
            let length = records.u16_at(0)?.unwrap_or(0);
            records.advance((usize::from(length) + 2).next_multiple_of(8));
            return Ok(());
        }
        for ahead in (0..LONGEST_PAYLOAD).step_by(8) {
            let Some(next) = records.peek_at(ahead)? else {
                records.advance(LONGEST_PAYLOAD);
                return Ok(());
            };
            if self.is_plausible(thread, next, time, space) && self.is_followed(records, ahead, next)? {
                records.advance(ahead);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether bytes can be the record that comes next.
    fn is_plausible(&self, thread: &Thread, record: Record, time: u64, space: Option<&Space>) -> bool {
        if !record.is_marked() {
            return false;
        }
        let depth = thread.stack.len();
        let in_time = record.time >= time && record.time - time <= LONGEST_PAUSE;
        match record.kind() {
            Kind::Entry => in_time && record.depth() <= depth && is_plausible_code(record, space),
            Kind::Exit => {
                let frame = thread.stack.get(record.depth()).map(|frame| self.tree.address(frame.node));
                in_time
                    && is_plausible_code(record, space)
                    && (frame == Some(record.address()) || thread.last.is_none() || thread.lost)
            }
            Kind::Event => in_time && record.depth() == 0 && record.address() < EVENTS_END,
            Kind::Lost => record.time == 0 && !record.has_more() && record.address() < 1 << 32,
        }
    }

    /// Whether what comes behind a record is one too, or the end.
    fn is_followed(&self, records: &mut Records<'_>, ahead: usize, record: Record) -> io::Result<bool> {
        if record.has_more() {
            return Ok(true);
        }
        let next = records.peek_at(ahead + RECORD)?;
        Ok(next.is_none_or(|next| next.is_marked() && (next.time >= record.time || next.kind() == Kind::Lost)))
    }

    /// Leaves all switches up to a moment behind.
    pub fn switch_until(&mut self, thread: &mut Thread, switches: &mut &[Notice], until: u64) {
        while let Some((switch, rest)) = switches.split_first().filter(|(switch, _)| switch.time <= until) {
            *switches = rest;
            if thread.last.is_some() {
                self.interval(thread, switch.time);
            }
            match switch.what {
                Change::Out => thread.switched_out = true,
                Change::In => thread.switched_out = false,
                Change::Enter { function, depth } => self.enter_kernel(thread, function, depth),
                Change::Leave { function, depth } => self.leave_kernel(thread, function, depth),
            }
        }
    }

    /// Gives the time up to `now` to the present stack.
    #[inline]
    fn interval(&mut self, thread: &mut Thread, now: u64) {
        let from = thread.last.unwrap_or(now);
        let now = now.max(from);
        thread.last = Some(now);
        let Some(top) = thread.stack.last() else { return };
        if thread.lost {
            return;
        }
        let Some(ns) = self.counted(from, now) else { return };
        let cell = self.cells.at(top.node);
        cell.elapsed.add(ns);
        if thread.switched_out {
            cell.waiting.add(ns);
        }
    }

    /// The part of an interval that counts.
    #[inline]
    fn counted(&mut self, from: u64, to: u64) -> Option<u64> {
        match self.range {
            None => {
                self.reach(from, to);
                Some(to - from)
            }
            Some((first, last)) => {
                let (from, to) = (from.max(first), to.min(last));
                if to < from {
                    return None;
                }
                self.reach(from, to);
                Some(to - from)
            }
        }
    }

    /// Moments that count.
    #[inline]
    fn reach(&mut self, from: u64, to: u64) {
        let extent = self.extent.get_or_insert((from, to));
        *extent = (extent.0.min(from), extent.1.max(to));
    }

    #[inline]
    fn entry(&mut self, thread: &mut Thread, time: u64, depth: usize, address: u64, pid: i32) {
        if depth != thread.stack.len() || thread.lost || thread.last.is_none() {
            self.settle(thread, time, depth, None);
        } else {
            self.interval(thread, time);
        }
        thread.switched_out = false;
        let now = thread.last.unwrap_or(time);
        let node = self.tree.child(self.top(thread), address);
        thread.stack.push(Frame { node, entered: now });
        if self.tree.is_watched(node) {
            let forks = self.forks.entry(pid).or_default();
            if forks.len() < MOST_FORKS {
                forks.push((now, node));
            }
        }
    }

    #[inline]
    fn exit(&mut self, thread: &mut Thread, time: u64, depth: usize, address: u64) {
        let fits = thread.stack.len() == depth + 1 && !thread.lost && thread.last.is_some();
        if !fits || thread.stack.last().is_none_or(|frame| self.tree.address(frame.node) != address) {
            self.settle(thread, time, depth + 1, Some(address));
            self.fit_top(thread, address);
        } else {
            self.interval(thread, time);
        }
        thread.switched_out = false;
        self.leave(thread);
    }

    pub fn top(&self, thread: &Thread) -> NodeId {
        thread.stack.last().map_or(thread.root, |frame| frame.node)
    }

    /// The innermost function returns now, or is seen for the last time.
    #[inline]
    pub fn leave(&mut self, thread: &mut Thread) {
        let Some(frame) = thread.stack.pop() else { return };
        thread.in_kernel = thread.in_kernel.saturating_sub(1);
        let now = thread.last.unwrap_or(frame.entered);
        if let Some(ns) = self.counted(frame.entered.min(now), now) {
            self.cells.at(frame.node).calls.add_call(ns);
        }
    }

    /// Brings the stack to a depth that a record says it has: functions that were left without a return (jumps, lost
    /// records) are left, and functions nobody told of are put in.
    #[cold]
    fn settle(&mut self, thread: &mut Thread, time: u64, depth: usize, returning: Option<u64>) {
        if thread.last.is_none() {
            thread.last = Some(time);
            if depth > thread.stack.len() {
                self.inherit(thread, time, depth, returning);
            }
        }
        let unknown = thread.lost;
        if unknown {
            // What was left in the gap was left at its start, as far as anybody knows.
            self.leave_to(thread, depth);
            thread.last = Some(time.max(thread.last.unwrap_or(time)));
            thread.lost = false;
        } else {
            self.interval(thread, time);
            self.leave_to(thread, depth);
        }
        if thread.stack.len() < depth {
            self.counts.unmatched += 1;
        }
        while thread.stack.len() < depth {
            let node = self.tree.child(self.top(thread), UNTOLD);
            thread.stack.push(Frame { node, entered: thread.last.unwrap_or(time) });
        }
    }

    fn leave_to(&mut self, thread: &mut Thread, depth: usize) {
        while thread.stack.len() > depth {
            self.leave(thread);
        }
    }

    /// Makes the innermost function the one that returns.
    #[cold]
    fn fit_top(&mut self, thread: &mut Thread, address: u64) {
        let Some(frame) = thread.stack.last().copied() else { return };
        let known = self.tree.address(frame.node);
        if known == address {
            return;
        }
        let entered = if known == UNTOLD {
            frame.entered
        } else {
            // A function that returns a second time (setjmp) when those entered since were jumped out of.
            self.leave(thread);
            thread.last.unwrap_or(frame.entered)
        };
        if known == UNTOLD {
            thread.stack.pop();
        }
        let node = self.tree.child(self.top(thread), address);
        thread.stack.push(Frame { node, entered });
    }

    /// A forked process goes on where its parent stood when it forked.
    fn inherit(&mut self, thread: &mut Thread, time: u64, depth: usize, returning: Option<u64>) {
        let Some(forks) = thread.parent.and_then(|parent| self.forks.get(&parent)) else { return };
        let before = forks.partition_point(|(entered, _)| *entered <= time);
        for &(_, node) in forks.get(..before).unwrap_or_default().iter().rev() {
            let path = self.tree.path(node);
            if returning == Some(self.tree.address(node)) && path.len() == depth {
                thread.stack = path.into_iter().map(|node| Frame { node, entered: time }).collect();
                return;
            }
        }
    }

    /// Another program begins, or the first one.
    pub fn enter_session(&mut self, thread: &mut Thread, session: Option<usize>, ends: u64) {
        self.finish(thread);
        thread.last = None;
        thread.lost = false;
        thread.session = session;
        thread.session_ends = ends;
        thread.root = self.tree.root(session.map_or(UNTOLD, |session| session as u64));
    }

    /// Functions that never returned end with the last that is known of their thread.
    pub fn finish(&mut self, thread: &mut Thread) {
        self.leave_to(thread, 0);
    }
}

fn is_plausible_code(record: Record, space: Option<&Space>) -> bool {
    match record.kind() {
        Kind::Entry | Kind::Exit => {
            space.is_none_or(|space| space.is_empty() || space.find(record.address()).is_some())
        }
        _ => true,
    }
}
