//! Samples, folded to rows, and their weights.

use crate::{EventId, StackId};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use std::ops::AddAssign;

/// Summed cost of one event, in the event's unit. Sums saturate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Weight(pub u64);

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl std::iter::Sum for Weight {
    fn sum<I: Iterator<Item = Self>>(weights: I) -> Self {
        weights.fold(Weight(0), |mut sum, weight| {
            sum += weight;
            sum
        })
    }
}

/// A share of a named whole, in 0..=100. `None` stands for the share of an empty whole.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Percent(f64);

impl Percent {
    /// `part` as a share of `whole`, or `None` if the whole is empty.
    pub fn of(part: Weight, whole: Weight) -> Option<Self> {
        (whole.0 > 0).then(|| Percent(100.0 * part.0 as f64 / whole.0 as f64))
    }

    /// The number, unrounded.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl std::fmt::Display for Percent {
    /// To two significant digits; where that reaches 10 or more, to one decimal: `0.52 %`, `3.1 %`, `10.0 %`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} %", round(self.0))
    }
}

/// The one rounding of numbers that are shown: to two significant digits; where that reaches 10 or more, to one
/// decimal. Zero is `0.0`; below 0.01 there are still two significant digits.
pub fn round(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0.0".into();
    }
    let magnitude = size.log10().floor() as i32;
    let scale = 10f64.powi(1 - magnitude);
    let two_digits = (size * scale).round() / scale;
    if two_digits >= 10.0 {
        return format!("{value:.1}");
    }
    // Rounding may have reached the next power of ten (0.0996 becomes 0.10), which needs a decimal less.
    let magnitude = two_digits.log10().floor() as i32;
    let decimals = (1 - magnitude).clamp(0, 12) as usize;
    format!("{value:.decimals$}")
}

/// What was added up over a set of samples.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tally {
    /// How many samples.
    pub samples: u64,
    /// The sum of their weights.
    pub weight: Weight,
    /// The sum of the squares of their weights, from which the effective sample size follows.
    pub squares: f64,
}

impl Tally {
    /// The tally of one sample.
    pub fn one(weight: Weight) -> Self {
        Tally { samples: 1, weight, squares: weight.0 as f64 * weight.0 as f64 }
    }

    /// The tally of `count` samples of equal weight each. Saturates.
    pub fn repeated(weight: Weight, count: u64) -> Self {
        Tally {
            samples: count,
            weight: Weight(weight.0.saturating_mul(count)),
            squares: weight.0 as f64 * weight.0 as f64 * count as f64,
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.weight += other.weight;
        self.squares += other.squares;
    }
}

/// Number of a [`Thread`] in its profile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ThreadId(pub u32);

/// A thread under one name: a thread that was renamed appears once per name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Thread {
    /// Process id; −1 where the recorder did not know it.
    pub pid: i32,
    /// Thread id; −1 where the recorder did not know it.
    pub tid: i32,
    /// The thread's name at the time of the samples, empty where unknown.
    pub comm: String,
}

/// Samples of one stack, event and thread, added up. `thread` is `None` in profiles that know no threads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SampleRow {
    /// Where.
    pub stack: StackId,
    /// What was counted.
    pub event: EventId,
    /// Who.
    pub thread: Option<ThreadId>,
    /// How much.
    pub tally: Tally,
}

impl SampleRow {
    fn key(&self) -> (StackId, EventId, Option<ThreadId>) {
        (self.stack, self.event, self.thread)
    }
}

/// Folds samples to one row per stack, event and thread.
#[derive(Clone, Debug, Default)]
pub struct SampleFold {
    rows: Vec<SampleRow>,
    /// The positions of all rows, found by the rows' keys.
    ids: HashTable<u32>,
}

impl SampleFold {
    /// An empty fold.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `tally` to its row and returns the row's position, by which [`Self::add_to`] can add more at once.
    ///
    /// # Panics
    /// With more than 2³²−1 rows.
    pub fn add(&mut self, stack: StackId, event: EventId, thread: Option<ThreadId>, tally: Tally) -> usize {
        let (rows, key) = (&mut self.rows, (stack, event, thread));
        let hash = FxBuildHasher.hash_one(key);
        if let Some(&row) = self.ids.find(hash, |&row| rows[row as usize].key() == key) {
            rows[row as usize].tally += tally;
            return row as usize;
        }
        let row = u32::try_from(rows.len()).expect("fewer than 2^32 rows");
        rows.push(SampleRow { stack, event, thread, tally });
        self.ids.insert_unique(hash, row, |&row| FxBuildHasher.hash_one(rows[row as usize].key()));
        row as usize
    }

    /// Adds `tally` to the row that [`Self::add`] returned.
    ///
    /// # Panics
    /// If `row` is not one of this fold.
    pub fn add_to(&mut self, row: usize, tally: Tally) {
        self.rows[row].tally += tally;
    }

    /// The row at the position that [`Self::add`] returned.
    pub fn row(&self, row: usize) -> Option<&SampleRow> {
        self.rows.get(row)
    }

    /// The rows, in the order of their first samples.
    pub fn into_rows(mut self) -> Vec<SampleRow> {
        self.rows.shrink_to_fit();
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_nothing_is_no_number() {
        assert_eq!(Percent::of(Weight(0), Weight(0)), None);
        assert_eq!(Percent::of(Weight(1), Weight(4)).map(Percent::value), Some(25.0));
    }

    #[test]
    fn rounding_is_two_digits_then_one_decimal() {
        for (value, text) in [
            (0.0, "0.0"),
            (0.0123, "0.012"),
            (0.0996, "0.10"),
            (0.5234, "0.52"),
            (0.999, "1.0"),
            (3.123, "3.1"),
            (9.94, "9.9"),
            (9.96, "10.0"),
            (45.0, "45.0"),
            (99.96, "100.0"),
            (100.0, "100.0"),
            (-3.25, "-3.2"),
        ] {
            assert_eq!(round(value), text, "{value}");
        }
    }

    #[test]
    fn folding_adds_up_and_saturates() {
        let mut fold = SampleFold::new();
        let row = fold.add(StackId(0), EventId(0), None, Tally::one(Weight(3)));
        fold.add_to(row, Tally::repeated(Weight(u64::MAX), 2));
        assert_eq!(fold.add(StackId(0), EventId(1), None, Tally::one(Weight(1))), 1);
        let rows = fold.into_rows();
        assert_eq!((rows[0].tally.samples, rows[0].tally.weight), (3, Weight(u64::MAX)));
        assert_eq!(rows.len(), 2);
    }
}
