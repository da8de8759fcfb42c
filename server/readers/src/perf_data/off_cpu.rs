//! Time in which threads were off the processors: an event of its own, on the stack that was left.
//!
//! When a thread leaves and comes back is told by switch records (`--switch-events`) or by samples of the tracepoint
//! `sched:sched_switch`. The latter carry the stack that was left. Switch records carry none, so the time goes to the
//! stack of the thread's last sample before.

use crate::TimeFilter;
use heatline_profile::{CallTable, Event, EventId, Profile, SampleFold, StackId, Tally, ThreadId, Unit, Weight};
use rustc_hash::FxHashMap;

/// Threads that are followed at most.
const MOST_THREADS: usize = 1 << 20;

/// The tracepoint whose samples are taken when a thread is about to leave.
pub(crate) const TRACEPOINT: &str = "sched:sched_switch";

/// The thread that takes over, in what a sample of [`TRACEPOINT`] recorded: behind the common fields, two names and
/// what is known of the thread that leaves.
const NEXT_THREAD: usize = 56;

/// The thread that takes over, from the raw data of a sample of [`TRACEPOINT`].
pub(crate) fn next_thread(raw: &[u8], order: super::bytes::Order) -> Option<i32> {
    order.u32_at(raw, NEXT_THREAD).map(u32::cast_signed)
}

/// What is known of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Where it was when it was sampled last.
    last: Option<(StackId, Option<ThreadId>)>,
    /// Since when it is off the processor, and whether its stack was recorded then.
    left: Option<u64>,
    ended: bool,
}

/// Follows threads off and onto processors.
#[derive(Debug, Default)]
pub(crate) struct OffCpu {
    threads: FxHashMap<i32, State>,
    waits: FxHashMap<(StackId, Option<ThreadId>), Tally>,
    /// Waits of threads that had no sample before.
    unknown: FxHashMap<i32, Tally>,
    /// Only these times count.
    times: Option<TimeFilter>,
    latest: u64,
}

impl OffCpu {
    pub fn new(times: Option<TimeFilter>) -> Self {
        OffCpu { times, ..OffCpu::default() }
    }

    fn state(&mut self, tid: i32) -> Option<&mut State> {
        if self.threads.len() >= MOST_THREADS && !self.threads.contains_key(&tid) {
            return None;
        }
        Some(self.threads.entry(tid).or_default())
    }

    /// A thread was sampled.
    pub fn sampled(&mut self, tid: i32, stack: StackId, thread: Option<ThreadId>) {
        if let Some(state) = self.state(tid) {
            state.last = Some((stack, thread));
        }
    }

    /// A thread left the processor, or came back. The idle task is no thread.
    pub fn switched(&mut self, time: u64, tid: i32, out: bool) {
        self.latest = self.latest.max(time);
        if tid <= 0 {
            return;
        }
        let Some(state) = self.state(tid) else { return };
        if out {
            // Told twice, by a sample and by a record: the first is when it happened.
            state.left = state.left.or(Some(time)).filter(|_| !state.ended);
        } else if let Some(left) = state.left.take() {
            let last = state.last;
            self.wait(tid, last, left, time);
        }
    }

    /// A thread ended: it does not wait any more.
    pub fn ended(&mut self, tid: i32) {
        if let Some(state) = self.threads.get_mut(&tid) {
            (state.left, state.ended) = (None, true);
        }
    }

    /// A thread began; its number may have been used before.
    pub fn began(&mut self, tid: i32) {
        if let Some(state) = self.threads.get_mut(&tid) {
            *state = State::default();
        }
    }

    fn wait(&mut self, tid: i32, at: Option<(StackId, Option<ThreadId>)>, from: u64, to: u64) {
        let ns = self.times.as_ref().map_or(to.saturating_sub(from), |times| times.overlap(from, to));
        if ns == 0 {
            return;
        }
        let tally = match at {
            Some(place) => self.waits.entry(place).or_default(),
            None => self.unknown.entry(tid).or_default(),
        };
        *tally += Tally::one(Weight(ns));
    }

    /// Ends with what threads wait for still, up to the last moment that is known of.
    fn finish(&mut self, latest: u64) {
        let end = self.latest.max(latest);
        let waiting: Vec<_> =
            self.threads.iter().filter_map(|(&tid, state)| Some((tid, *state, state.left?))).collect();
        for (tid, state, left) in waiting {
            self.wait(tid, state.last, left, end);
        }
    }

    /// Waits whose stack nobody knows, by thread.
    pub fn take_unknown(&mut self, latest: u64) -> Vec<(i32, Tally)> {
        self.finish(latest);
        let mut all: Vec<_> = std::mem::take(&mut self.unknown).into_iter().collect();
        all.sort_by_key(|&(tid, _)| tid);
        all
    }

    /// Adds the event, and, where an event measured time on processors, elapsed and application time.
    pub fn add_to(self, profile: &mut Profile, unknown: Vec<(StackId, Option<ThreadId>, Tally)>, exact: bool) {
        let mut waits: Vec<_> = self.waits.into_iter().map(|((stack, thread), tally)| (stack, thread, tally)).collect();
        waits.sort_by_key(|&(stack, thread, _)| (stack, thread));
        waits.extend(unknown);
        if waits.is_empty() {
            return;
        }
        let on_cpu = (0..).map(EventId).zip(&profile.events).find(|(_, event)| event.unit == Unit::Nanoseconds);
        let on_cpu = on_cpu.map(|(id, event)| (id, event.has_stacks));
        let has_stacks = profile.events.iter().any(|event| event.has_stacks);
        let mut fold = SampleFold::new();
        for row in std::mem::take(&mut profile.rows) {
            fold.add(row.stack, row.event, row.thread, row.tally);
        }
        let mut add_event = |name: &str, precise, has_stacks| {
            profile.events.push(Event { precise, has_stacks, ..Event::new(name, Unit::Nanoseconds) });
            EventId(profile.events.len() as u32 - 1)
        };
        let off_cpu = add_event(CallTable::OFF_CPU, exact, has_stacks);
        let times = on_cpu.map(|(id, stacks)| {
            let stacks = stacks && has_stacks;
            (id, add_event(CallTable::ELAPSED, false, stacks), add_event(CallTable::APPLICATION, false, stacks))
        });
        for &(stack, thread, tally) in &waits {
            fold.add(stack, off_cpu, thread, tally);
            if let Some((_, elapsed, _)) = times {
                fold.add(stack, elapsed, thread, tally);
            }
        }
        let rows = fold.into_rows();
        let mut fold = SampleFold::new();
        for row in rows {
            fold.add(row.stack, row.event, row.thread, row.tally);
            if let Some((_, elapsed, application)) = times.filter(|times| times.0 == row.event) {
                fold.add(row.stack, elapsed, row.thread, row.tally);
                fold.add(row.stack, application, row.thread, row.tally);
            }
        }
        profile.rows = fold.into_rows();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_go_to_the_stack_that_was_left() {
        let mut off = OffCpu::new(None);
        off.sampled(7, StackId(1), None);
        off.switched(10, 7, true);
        off.switched(11, 7, true);
        off.switched(15, 7, false);
        off.switched(16, 7, false);
        off.switched(20, 7, true);
        off.switched(20, 0, false);
        off.switched(30, 8, true);
        off.switched(32, 8, false);
        off.switched(40, 9, true);
        off.ended(9);
        let unknown = off.take_unknown(50);
        // Of what was never sampled only the thread is known; an ended thread waits for nothing.
        assert_eq!(unknown, [(8, Tally::one(Weight(2)))]);
        let tally = off.waits[&(StackId(1), None)];
        assert_eq!((tally.samples, tally.weight), (2, Weight(5 + 30)));
    }

    #[test]
    fn only_the_part_in_the_chosen_time_counts() {
        let mut off = OffCpu::new(Some((12, 14).into()));
        off.switched(10, 7, true);
        off.switched(13, 7, false);
        off.switched(20, 7, true);
        assert_eq!(off.take_unknown(30), [(7, Tally::one(Weight(1)))]);
    }
}
