//! The sides of a comparison: what each column has of each row, and the test of two of them.

use super::ledger::Ledger;
use super::pairing::Joint;
use super::{Amount, Delta, FEWEST_TESTED, LEVEL, Total, Verdict};
use crate::statistics::{Family, MeanTest, newcombe, over_dispersion, share_p, welch};
use crate::table::Cost;
use heatline_profile::{Tally, Weight};

/// A row in a column: what is shown of it, and the numbers of samples for statistics.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Side {
    pub(crate) amount: Amount,
    pub(crate) present: bool,
    /// Effective samples of the row and of what its share is of.
    hits: (f64, f64),
    /// Samples as they are counted for the least number that is tested.
    counted: f64,
    /// Of each run its share, where it was measured, not sampled.
    measured: Vec<f64>,
}

/// The rows of all columns, the baseline first; `None` in a column without samples.
pub(super) struct Sides {
    pub(super) rows: Vec<Vec<Option<Side>>>,
    pub(super) totals: Vec<Total>,
}

/// Adds up what the runs of each column have of each row.
pub(super) fn sum(ledgers: &[&Ledger], of_column: &[usize], columns: usize, joint: &Joint) -> Sides {
    let mut totals = vec![Total::default(); columns];
    for (ledger, &column) in ledgers.iter().zip(of_column) {
        totals[column].weight += ledger.whole;
        totals[column].samples = totals[column].samples.saturating_add(ledger.samples);
        totals[column].runs += 1;
    }
    let mut costs: Vec<Vec<Cost>> = Vec::with_capacity(ledgers.len());
    for (ledger, rows) in ledgers.iter().zip(&joint.rows_of) {
        let mut sums = vec![Cost::default(); joint.rows.len()];
        for (entry, &row) in ledger.entries.iter().zip(rows) {
            let sum = &mut sums[row as usize];
            sum.weight += entry.cost.weight;
            sum.samples = sum.samples.saturating_add(entry.cost.samples);
        }
        costs.push(sums);
    }
    let runs_of = |column: usize| (0..ledgers.len()).filter(move |&run| of_column[run] == column);
    let side = |row: usize, column: usize| {
        let runs: Vec<Run<'_>> =
            runs_of(column).map(|run| Run { ledger: ledgers[run], cost: costs[run][row] }).collect();
        let is_empty = totals[column].weight.0 == 0 || runs.is_empty();
        (!is_empty).then(|| Side::of(&runs))
    };
    let rows = (0..joint.rows.len()).map(|row| (0..columns).map(|column| side(row, column)).collect()).collect();
    Sides { rows, totals }
}

/// A row in one run.
struct Run<'a> {
    ledger: &'a Ledger,
    cost: Cost,
}

impl Run<'_> {
    /// Effective samples of the row and of what its share is of.
    fn hits(&self) -> (f64, f64) {
        if self.ledger.own_wholes {
            return (self.cost.weight.0 as f64, self.cost.samples as f64);
        }
        (self.share() * self.ledger.effective, self.ledger.effective)
    }

    fn share(&self) -> f64 {
        (self.cost.weight.0 as f64 / (self.ledger.whole.0 as f64).max(1.0)).min(1.0)
    }
}

impl Side {
    fn of(runs: &[Run<'_>]) -> Self {
        let own_wholes = runs.iter().any(|run| run.ledger.own_wholes);
        let weight: Weight = runs.iter().map(|run| run.cost.weight).sum();
        let samples = runs.iter().map(|run| run.cost.samples).fold(0, u64::saturating_add);
        let whole: Weight = runs.iter().map(|run| run.ledger.whole).sum();
        let hits: Vec<(f64, f64)> = runs.iter().map(Run::hits).collect();
        let of: f64 = hits.iter().map(|hits| hits.1).sum();
        let whole = if own_wholes { of } else { whole.0 as f64 };
        let share = if whole > 0.0 { (weight.0 as f64 / whole).min(1.0) } else { 0.0 };
        let effective: f64 = runs.iter().map(|run| run.ledger.effective).sum();
        let recorded: f64 = runs.iter().map(|run| run.ledger.samples as f64).sum();
        let counted = if own_wholes || effective < recorded { share * of } else { samples as f64 };
        // Runs that spread more than samples of one run do are worth fewer samples.
        let spread = over_dispersion(&hits);
        Side {
            amount: Amount { weight, percent: 100.0 * share, samples },
            present: samples > 0,
            hits: (share * of / spread, of / spread),
            counted,
            measured: runs.iter().filter(|run| run.ledger.measured).map(Run::share).collect(),
        }
    }

    /// The row of one run that has this tally of it, which several of its entries add up to.
    pub(crate) fn of_tally(ledger: &Ledger, tally: Tally) -> Self {
        let cost = Cost { weight: tally.weight, samples: tally.samples, ..Cost::default() };
        Side::of(&[Run { ledger, cost }])
    }

    /// Both as one place.
    pub(crate) fn and(mut self, other: &Side) -> Self {
        let Amount { weight, percent, samples } = other.amount;
        self.amount.weight += weight;
        self.amount.percent = (self.amount.percent + percent).min(100.0);
        self.amount.samples = self.amount.samples.saturating_add(samples);
        self.present |= other.present;
        self.hits.0 = (self.hits.0 + other.hits.0).min(self.hits.1);
        self.counted += other.counted;
        self.measured.iter_mut().zip(&other.measured).for_each(|(sum, share)| *sum = (*sum + share).min(1.0));
        self
    }

    /// The difference to this side; `None` where a side has no samples for a share.
    pub(crate) fn test(&self, now: &Side) -> Option<Test> {
        let (low, high) = newcombe(self.hits, now.hits)?;
        let sampled = Test {
            points: now.amount.percent - self.amount.percent,
            before: self.amount,
            low: 100.0 * low,
            high: 100.0 * high,
            p: share_p(self.hits, now.hits)?,
            counted: self.counted + now.counted,
            untestable: false,
        };
        if self.measured.is_empty() && now.measured.is_empty() {
            return Some(sampled);
        }
        // Calls are no samples; what runs differ among themselves is all that is known.
        Some(match welch(&self.measured, &now.measured) {
            Some(MeanTest { p, low, high }) => {
                // Around the difference of the sums, in which a longer run has more to say.
                let half = 50.0 * (high - low);
                let (low, high) = (sampled.points - half, sampled.points + half);
                Test { p, low, high, counted: FEWEST_TESTED, ..sampled }
            }
            None => Test { counted: 0.0, untestable: true, ..sampled },
        })
    }
}

/// A difference before the other rows are known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Test {
    points: f64,
    before: Amount,
    low: f64,
    high: f64,
    pub(crate) p: f64,
    counted: f64,
    untestable: bool,
}

impl Test {
    /// Whether there are samples enough to test it.
    pub(crate) fn is_counted(&self) -> bool {
        self.counted >= FEWEST_TESTED
    }

    /// The difference, judged among the others.
    pub(crate) fn delta(&self, family: &Family, threshold: f64) -> Delta {
        let p_adjusted = self.is_counted().then(|| family.adjusted(self.p));
        let excludes_zero = self.low > 0.0 || self.high < 0.0;
        let is_real = excludes_zero && p_adjusted.is_some_and(|p| p < LEVEL);
        let verdict = match self.points.abs() >= threshold {
            _ if self.untestable => Verdict::Untestable,
            true if is_real => Verdict::Significant,
            false if is_real => Verdict::BelowThreshold,
            _ => Verdict::Noise,
        };
        Delta {
            points: self.points,
            low: self.low,
            high: self.high,
            before: self.before.percent,
            samples_before: self.before.samples,
            p: self.p,
            p_adjusted,
            significant: verdict == Verdict::Significant,
            verdict,
        }
    }
}
