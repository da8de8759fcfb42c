//! Instrumented calls: how often each stack was called and how long the calls took.
//!
//! The four times of a place (elapsed and application, inclusive and exclusive) are sums over intervals and so are
//! events of the profile like any other: [`CallTable::ELAPSED`], [`CallTable::APPLICATION`]. What cannot be summed over
//! intervals is here.

use crate::{StackId, ThreadId};
use std::ops::AddAssign;

/// How often something was called and how long its calls took, callees and waits included, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallStats {
    /// How many calls there were. One that never returned counts with what was seen of it.
    pub calls: u64,
    /// The durations of all calls. A recursive call is inside another and counts again.
    pub total_ns: u64,
    /// The shortest call; the largest number where there was none.
    pub shortest_ns: u64,
    /// The longest call.
    pub longest_ns: u64,
}

impl Default for CallStats {
    fn default() -> Self {
        CallStats { calls: 0, total_ns: 0, shortest_ns: u64::MAX, longest_ns: 0 }
    }
}

impl CallStats {
    /// One more call.
    #[inline]
    pub fn add_call(&mut self, duration_ns: u64) {
        *self += CallStats { calls: 1, total_ns: duration_ns, shortest_ns: duration_ns, longest_ns: duration_ns };
    }

    /// The mean duration of a call in whole nanoseconds; `None` without calls.
    pub fn average_ns(&self) -> Option<u64> {
        self.total_ns.checked_div(self.calls)
    }
}

impl AddAssign for CallStats {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.shortest_ns = self.shortest_ns.min(other.shortest_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// The calls of one stack by one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallRow {
    /// The stack that ends in the called function.
    pub stack: StackId,
    /// Who called.
    pub thread: Option<ThreadId>,
    /// How often and how long.
    pub stats: CallStats,
}

/// All instrumented calls of a profile, one row per stack and thread.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallTable {
    /// The rows, in no particular order.
    pub rows: Vec<CallRow>,
}

impl CallTable {
    /// The event whose weight is time, waits included.
    pub const ELAPSED: &'static str = "elapsed";
    /// The event whose weight is time in which the thread ran. Absent where the recording does not tell.
    pub const APPLICATION: &'static str = "application";
    /// The event whose weight is what [`Self::ELAPSED`] has more than [`Self::APPLICATION`].
    pub const WAITING: &'static str = "waiting";
    /// The event of a sampled profile whose weight is time in which a thread was off the processors.
    pub const OFF_CPU: &'static str = "off-cpu";
    /// The event whose weight is the number of calls.
    pub const CALLS: &'static str = "calls";

    /// All calls together.
    pub fn total(&self) -> CallStats {
        self.rows.iter().fold(CallStats::default(), |mut sum, row| {
            sum += row.stats;
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_add_up_with_their_extremes() {
        let mut stats = CallStats::default();
        assert_eq!(stats.average_ns(), None);
        [5, 1, 6].into_iter().for_each(|duration| stats.add_call(duration));
        assert_eq!(stats, CallStats { calls: 3, total_ns: 12, shortest_ns: 1, longest_ns: 6 });
        assert_eq!(stats.average_ns(), Some(4));
    }
}
