//! Putting records in the order of their times.
//!
//! perf writes the buffers of the processors one after the other, so times go back and forth in the file. At the end of
//! each round it writes a marker; at a marker all records up to the latest time before the previous marker are complete.
//! Only the order of samples relative to records that change the state of the world (mappings, names) matters here.

use super::chains::ChainId;
use super::folding::DUMP;
use super::state::Change;

/// Records that wait at most when a file holds no round markers, or rounds that are too long.
pub(crate) const MOST_PENDING: usize = 1 << 19;

/// Changes that wait at most.
const MOST_PENDING_CHANGES: usize = 1 << 15;

/// A sample that waits for its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub time: u64,
    pub weight: u64,
    pub chain: ChainId,
    order: u32,
}

/// A change that waits for its turn.
#[derive(Debug)]
struct Waiting {
    time: u64,
    order: u32,
    change: Change,
}

/// Takes what comes out of the queue.
pub(crate) trait Sink {
    /// Whether what waits takes so much memory that some of it must go.
    fn weighs(&self) -> bool;

    fn sample(&mut self, chain: ChainId, weight: u64);
    fn change(&mut self, time: u64, change: Change);
}

/// What waits for its turn.
#[derive(Default)]
pub(crate) struct Queue {
    samples: Vec<Sample>,
    changes: Vec<Waiting>,
    arrived: u32,
    latest: u64,
    /// Up to here the next round marker completes.
    complete: u64,
    /// Up to here everything has been handed out.
    handed_out: u64,
    /// Changes that came too late for samples handed out before.
    pub late: u64,
}

impl Queue {
    #[inline]
    pub fn push_sample(&mut self, time: u64, chain: ChainId, weight: u64, sink: &mut impl Sink) {
        let order = self.arrive(time, sink);
        self.samples.push(Sample { time, weight, chain, order });
    }

    pub fn push_change(&mut self, time: u64, change: Change, sink: &mut impl Sink) {
        self.late += u64::from(time < self.handed_out && !matches!(change, Change::Thread { .. }));
        let order = self.arrive(time, sink);
        self.changes.push(Waiting { time, order, change });
    }

    #[inline]
    fn arrive(&mut self, time: u64, sink: &mut impl Sink) -> u32 {
        if self.samples.len() >= MOST_PENDING || self.changes.len() >= MOST_PENDING_CHANGES || sink.weighs() {
            self.make_room(sink);
        }
        self.latest = self.latest.max(time);
        self.arrived += 1;
        self.arrived
    }

    /// A round has ended.
    pub fn round(&mut self, sink: &mut impl Sink) {
        let complete = self.complete;
        self.hand_out(complete, sink);
        self.complete = self.latest;
    }

    /// Everything up to `time` has arrived.
    pub fn complete_to(&mut self, time: u64, sink: &mut impl Sink) {
        self.hand_out(time, sink);
    }

    /// Nothing will arrive any more.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        self.hand_out(u64::MAX, sink);
    }

    /// The chains of the samples that wait, but not stacks that are yet to be walked.
    pub fn chains(&mut self) -> impl Iterator<Item = &mut ChainId> {
        self.samples.iter_mut().map(|sample| &mut sample.chain).filter(|chain| chain.0 & DUMP == 0)
    }

    /// Hands out the older half.
    #[cold]
    fn make_room(&mut self, sink: &mut impl Sink) {
        let mut times: Vec<u64> = self.samples.iter().map(|s| s.time).collect();
        times.extend(self.changes.iter().map(|c| c.time));
        let middle = times.len() / 2;
        let (_, &mut median, _) = times.select_nth_unstable(middle);
        self.hand_out(median, sink);
    }

    fn hand_out(&mut self, limit: u64, sink: &mut impl Sink) {
        let mut changes = Vec::new();
        if !self.changes.is_empty() {
            self.changes.sort_by_key(|c| (c.time, c.order));
            let due = self.changes.partition_point(|c| c.time <= limit);
            changes.extend(self.changes.drain(..due));
        }
        if changes.is_empty() {
            self.samples.retain(|sample| {
                let due = sample.time <= limit;
                if due {
                    sink.sample(sample.chain, sample.weight);
                }
                !due
            });
        } else {
            self.hand_out_in_order(limit, changes, sink);
        }
        self.handed_out = self.handed_out.max(limit.min(self.latest));
        if self.samples.is_empty() && self.changes.is_empty() {
            self.arrived = 0;
        }
    }

    fn hand_out_in_order(&mut self, limit: u64, changes: Vec<Waiting>, sink: &mut impl Sink) {
        self.samples.sort_unstable_by_key(|s| (s.time, s.order));
        let due = self.samples.partition_point(|s| s.time <= limit);
        let mut changes = changes.into_iter().peekable();
        for sample in self.samples.drain(..due) {
            while let Some(change) = changes.next_if(|c| (c.time, c.order) < (sample.time, sample.order)) {
                sink.change(change.time, change.change);
            }
            sink.sample(sample.chain, sample.weight);
        }
        changes.for_each(|change| sink.change(change.time, change.change));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes what it gets: samples by their weights, exits by the negated process.
    #[derive(Default)]
    struct Notes(Vec<i64>);

    impl Sink for Notes {
        fn weighs(&self) -> bool {
            false
        }

        fn sample(&mut self, _: ChainId, weight: u64) {
            self.0.push(weight as i64);
        }

        fn change(&mut self, _: u64, change: Change) {
            if let Change::Exit { pid, .. } = change {
                self.0.push(-i64::from(pid));
            }
        }
    }

    #[track_caller]
    fn check(fill: impl FnOnce(&mut Queue, &mut Notes), expect: &[i64]) {
        let (mut queue, mut notes) = (Queue::default(), Notes::default());
        fill(&mut queue, &mut notes);
        assert_eq!(notes.0, expect);
    }

    const ANY: ChainId = ChainId(0);

    fn exit(pid: i32) -> Change {
        Change::Exit { pid, tid: pid }
    }

    #[test]
    fn a_round_completes_what_came_before_the_previous_marker() {
        check(
            |queue, notes| {
                queue.push_sample(10, ANY, 10, notes);
                queue.round(notes);
                queue.push_change(5, exit(5), notes);
                queue.push_sample(20, ANY, 20, notes);
                queue.round(notes);
                notes.0.push(0);
                queue.finish(notes);
            },
            &[-5, 10, 0, 20],
        );
    }

    #[test]
    fn equal_times_keep_the_order_of_the_file() {
        check(
            |queue, notes| {
                queue.push_sample(7, ANY, 1, notes);
                queue.push_change(7, exit(2), notes);
                queue.push_sample(7, ANY, 3, notes);
                queue.finish(notes);
            },
            &[1, -2, 3],
        );
    }

    #[test]
    fn without_markers_only_so_much_waits_and_lateness_is_counted() {
        let (mut queue, mut notes) = (Queue::default(), Notes::default());
        for time in 1..=(MOST_PENDING as u64 + 10) {
            queue.push_sample(time, ANY, time, &mut notes);
        }
        assert!(notes.0.len() > MOST_PENDING / 4);
        assert_eq!(queue.late, 0);
        queue.push_change(1, exit(1), &mut notes);
        assert_eq!(queue.late, 1);
    }
}
