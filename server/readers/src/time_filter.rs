//! Which moments of a recording count.

use std::sync::Arc;

/// Stretches of time on a recording's own clock, in nanoseconds; both ends belong to them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimeFilter {
    /// Ascending, and apart from each other.
    ranges: Arc<[(u64, u64)]>,
}

impl TimeFilter {
    /// The moments of all the ranges, each from its first to its last. One that ends before it begins holds none.
    pub fn new(ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut sorted: Vec<(u64, u64)> = ranges.into_iter().filter(|(first, last)| first <= last).collect();
        sorted.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(sorted.len());
        for (first, last) in sorted {
            match joined.last_mut().filter(|(_, end)| first <= end.saturating_add(1)) {
                Some((_, end)) => *end = last.max(*end),
                None => joined.push((first, last)),
            }
        }
        TimeFilter { ranges: joined.into() }
    }

    /// Whether a moment counts.
    #[inline]
    pub fn contains(&self, time: u64) -> bool {
        self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&time))
    }

    /// How many of the nanoseconds between two moments count.
    pub fn overlap(&self, from: u64, to: u64) -> u64 {
        let parts = self.ranges.iter().map(|(first, last)| to.min(*last).saturating_sub(from.max(*first)));
        parts.fold(0, u64::saturating_add)
    }

    /// From the first to the last moment that counts, whatever lies between; `(1, 0)` if none does.
    pub fn hull(&self) -> (u64, u64) {
        match (self.ranges.first(), self.ranges.last()) {
            (Some((first, _)), Some((_, last))) => (*first, *last),
            _ => (1, 0),
        }
    }

    /// Whether there are stretches between that do not count.
    pub fn has_gaps(&self) -> bool {
        self.ranges.len() > 1
    }
}

impl From<(u64, u64)> for TimeFilter {
    fn from(range: (u64, u64)) -> Self {
        TimeFilter::new([range])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let filter = TimeFilter::new([(20, 29), (0, 9), (10, 12), (25, 40), (7, 3)]);
        assert_eq!(filter, TimeFilter::new([(0, 12), (20, 40)]));
        assert_eq!(
            [0, 12, 13, 19, 20, 40, 41].map(|time| filter.contains(time)),
            [true, true, false, false, true, true, false]
        );
        assert_eq!((filter.hull(), filter.has_gaps()), ((0, 40), true));
    }

    #[test]
    fn an_interval_counts_as_far_as_it_lies_inside() {
        let filter = TimeFilter::new([(10, 20), (30, 35)]);
        assert_eq!(filter.overlap(0, 100), 15);
        assert_eq!(filter.overlap(15, 32), 7);
        assert_eq!(filter.overlap(21, 29), 0);
    }

    #[test]
    fn no_range_holds_no_moment() {
        let none = TimeFilter::new([]);
        assert!(!none.contains(0) && none.hull() == (1, 0) && none.overlap(0, u64::MAX) == 0);
    }
}
