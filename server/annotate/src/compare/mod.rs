//! Comparing recordings: which rows are the same place, how their shares differ, and whether that is more than noise.
//!
//! Each recording becomes a [`Ledger`]; [`Comparison::new`] pairs their rows and computes every number that the command
//! line and an editor show of a difference. Statistics are those of [`crate::statistics`]: Newcombe's interval, a p-value
//! per row, corrected over all rows that have enough samples.

mod keys;
mod ledger;
mod names;
mod order;
mod pairing;
mod sides;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

pub use keys::SortKey;
pub use ledger::{Ledger, Measure, Place, TextOf};
pub use names::without_clone_suffix;
pub use order::Compute;
pub use pairing::Pairing;

pub(crate) use ledger::Entry;
pub(crate) use sides::Side;

use pairing::Joint;
use sides::{Sides, Test};

use crate::statistics::{Family, RateTest, rates};
use heatline_profile::Weight;

/// Rows with fewer samples on both sides together are not tested.
pub const FEWEST_TESTED: f64 = 10.0;

/// A difference below this adjusted p-value is taken for real.
pub const LEVEL: f64 = 0.05;

/// The difference of a share to that of the baseline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Delta {
    /// This profile's share minus the baseline's, in percentage points.
    pub points: f64,
    /// Lower end of the 95 % interval, in percentage points.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// The share in the baseline, in percent.
    pub before: f64,
    /// The samples in the baseline.
    pub samples_before: u64,
    /// The probability of such a difference where there is none, of this place alone.
    pub p: f64,
    /// The same, corrected for all places that were tested; `None` for one with too few samples to be tested.
    pub p_adjusted: Option<f64>,
    /// Whether it is taken for real: the adjusted p-value is small, the interval excludes zero, and the difference
    /// reaches the threshold.
    pub significant: bool,
    /// What to think of it, in more words.
    pub verdict: Verdict,
}

/// What a difference is taken for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// Real, and large enough to look at.
    Significant,
    /// Real, but smaller than the threshold.
    BelowThreshold,
    /// What differs between two runs of the same program, as far as can be told.
    Noise,
    /// Times of one run each were measured, not sampled: nothing tells how much they change from run to run.
    Untestable,
}

/// The cost of a row in one column.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Amount {
    /// Summed weight.
    pub weight: Weight,
    /// Its share, in percent.
    pub percent: f64,
    /// The number of samples.
    pub samples: u64,
}

/// A row in a column that is compared with the baseline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// Its cost there.
    pub amount: Amount,
    /// Whether the recording has the row at all.
    pub present: bool,
    /// The difference of shares; `None` where a side has no samples to be a share of.
    pub delta: Option<Delta>,
    /// The weight as a multiple of the baseline's; `None` of a row that is new.
    pub ratio: Option<f64>,
}

impl Change {
    /// Whether there is more of the row per unit of work, such as a request or a second: by its samples, where the
    /// baseline did `work.0` units and this column `work.1`. `None` where neither side has samples.
    pub fn per_work(&self, baseline: Amount, work: (f64, f64)) -> Option<RateTest> {
        rates((baseline.samples, work.0), (self.amount.samples, work.1))
    }
}

/// Which sides have a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// The baseline and another.
    Both,
    /// Not the baseline.
    New,
    /// Only the baseline.
    Removed,
}

impl Status {
    /// The word that JSON has for it.
    pub fn name(self) -> &'static str {
        match self {
            Status::Both => "both",
            Status::New => "new",
            Status::Removed => "removed",
        }
    }
}

/// One place, compared.
#[derive(Clone, PartialEq, Debug)]
pub struct ComparedRow {
    /// Its names: those of the first recording that is compared with the baseline, if that has it.
    pub place: Place,
    /// By what its sides were paired.
    pub pairing: Pairing,
    /// Which sides have it.
    pub status: Status,
    /// Its cost in the baseline; `None` where the baseline has no samples at all.
    pub baseline: Option<Amount>,
    /// For each column its cost and difference; `None` where the column has no samples of the event at all.
    pub new: Vec<Option<Change>>,
}

/// The totals of a column.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Total {
    /// What shares are of.
    pub weight: Weight,
    /// The samples in it.
    pub samples: u64,
    /// How many recordings it is pooled of.
    pub runs: usize,
}

/// Recordings compared with a baseline.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// All rows, in no particular order; see [`Comparison::sort`].
    pub rows: Vec<ComparedRow>,
    /// The totals of the baseline and of each column.
    pub totals: Vec<Total>,
}

impl Comparison {
    /// Compares each column with the baseline. A column is one recording, or several runs of one program pooled; one
    /// that has not got the event is empty. A difference below `threshold` percentage points is not significant.
    pub fn new(baseline: &[Ledger], columns: &[Vec<Ledger>], threshold: f64) -> Self {
        let pairs = Pairs::new(baseline, columns);
        let totals = pairs.sides.totals.clone();
        let rows = (0..pairs.sides.rows.len()).filter_map(|row| pairs.row(row, threshold)).collect();
        Comparison { rows, totals }
    }
}

/// Recordings whose rows are paired and tested.
pub(crate) struct Pairs {
    pub(crate) joint: Joint,
    sides: Sides,
    /// For each column the tests that its rows' p-values are corrected over.
    families: Vec<Family>,
}

impl Pairs {
    pub(crate) fn new(baseline: &[Ledger], columns: &[Vec<Ledger>]) -> Self {
        let sides = std::iter::once(baseline).chain(columns.iter().map(Vec::as_slice));
        let runs = sides.enumerate().flat_map(|(column, ledgers)| ledgers.iter().map(move |ledger| (column, ledger)));
        let (of_column, ledgers): (Vec<usize>, Vec<&Ledger>) = runs.unzip();
        // The first that is compared; the baseline where there is none.
        let reference = of_column.iter().position(|&column| column > 0).unwrap_or(0);
        let joint = pairing::pair(&ledgers, &of_column, reference);
        let sides = sides::sum(&ledgers, &of_column, columns.len() + 1, &joint);
        let family = |column: usize| {
            let tests = sides.rows.iter().filter_map(|row| row[0].as_ref()?.test(row[column].as_ref()?));
            Family::new(tests.filter(Test::is_counted).map(|test| test.p))
        };
        let families = (1..=columns.len()).map(family).collect();
        Pairs { joint, sides, families }
    }

    /// What the columns have of a row, the baseline first.
    pub(crate) fn sides(&self, row: u32) -> &[Option<Side>] {
        &self.sides.rows[row as usize]
    }

    /// The difference of two sides, judged among all rows of the first column.
    pub(crate) fn delta(&self, before: &Side, now: &Side, threshold: f64) -> Option<Delta> {
        Some(before.test(now)?.delta(self.families.first()?, threshold))
    }

    /// `None` if all of the row's entries went to another.
    fn row(&self, at: usize, threshold: f64) -> Option<ComparedRow> {
        let (sides, (place, pairing)) = (&self.sides.rows[at], &self.joint.rows[at]);
        let present = |side: &Option<Side>| side.as_ref().is_some_and(|side| side.present);
        let status = match (present(&sides[0]), sides[1..].iter().any(present)) {
            (true, true) => Status::Both,
            (false, true) => Status::New,
            (true, false) => Status::Removed,
            (false, false) => return None,
        };
        let change = |(side, family): (&Option<Side>, &Family)| {
            let side = side.as_ref()?;
            let test = sides[0].as_ref().and_then(|before| before.test(side));
            let delta = test.map(|test| test.delta(family, threshold));
            Some(Change {
                amount: side.amount,
                present: side.present,
                delta,
                ratio: ratio(sides[0].as_ref(), side.amount),
            })
        };
        Some(ComparedRow {
            place: place.clone(),
            pairing: if status == Status::Both { *pairing } else { Pairing::Exact },
            status,
            baseline: sides[0].as_ref().map(|side| side.amount),
            new: sides[1..].iter().zip(&self.families).map(change).collect(),
        })
    }
}

/// Of weights. A baseline that is there but weighs nothing counts as one.
fn ratio(baseline: Option<&Side>, now: Amount) -> Option<f64> {
    let baseline = baseline.filter(|side| side.present)?;
    Some(now.weight.0 as f64 / baseline.amount.weight.0.max(1) as f64)
}
