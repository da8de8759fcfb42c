//! The values of a row in a column in words: the same in the table and in a report for a pull request.

use super::options::DiffArgs;
use super::result::{Outcome, PerWork};
use heatline_annotate::compare::{Amount, Change, ComparedRow, Compute, Status, Verdict};
use heatline_annotate::statistics::RateTest;
use heatline_annotate::text::{self, points};
use heatline_profile::round;

/// A row in a column that has the event.
#[derive(Clone, Copy)]
pub struct Cell<'a> {
    /// What is compared.
    pub outcome: &'a Outcome,
    /// The row.
    pub row: &'a ComparedRow,
    /// What the column has of it.
    pub change: &'a Change,
    /// The number of the column; the baseline is 0.
    pub column: usize,
}

/// Words a value; `None` where a row has none.
type Text = fn(&Cell<'_>) -> Option<String>;

/// One value of each row in each column.
pub struct Value {
    /// Its title; with `>` in front the texts are flushed right.
    pub title: &'static str,
    /// Its text.
    pub text: Text,
}

/// The values that are shown, in their order.
pub fn shown(args: &DiffArgs, outcome: &Outcome) -> Vec<Value> {
    let is_weighted = matches!(outcome.compute, Compute::Wdiff { .. });
    let has_work = !outcome.work.is_empty();
    let all: [(bool, &'static str, Text); 10] = [
        (true, ">new", |cell| cell.share()),
        (true, ">delta", |cell| cell.delta()),
        (true, ">95 % interval", |cell| cell.interval()),
        (is_weighted, ">weighted diff", |cell| cell.weighted()),
        (!is_weighted, ">ratio", |cell| cell.ratio()),
        (true, "verdict", |cell| cell.verdict()),
        (has_work, ">per unit of work", |cell| cell.per_unit()),
        (args.verbose, ">p", |cell| cell.p()),
        (args.formula, "formula", |cell| cell.formula()),
        (args.period, ">period", |cell| cell.period()),
    ];
    all.into_iter().filter(|(is_shown, ..)| *is_shown).map(|(_, title, text)| Value { title, text }).collect()
}

/// The share of a side.
pub fn share(amount: Amount) -> String {
    format!("{} %", round(amount.percent))
}

impl<'a> Cell<'a> {
    /// A row in a column; `None` if that has not got the event.
    pub fn new(outcome: &'a Outcome, row: &'a ComparedRow, column: usize) -> Option<Self> {
        let change = row.new.get(column.checked_sub(1)?)?.as_ref()?;
        Some(Cell { outcome, row, change, column })
    }
}

impl Cell<'_> {
    /// The share in this column; nothing of a row that is gone.
    pub fn share(&self) -> Option<String> {
        self.change.present.then(|| share(self.change.amount))
    }

    /// The difference of shares.
    pub fn delta(&self) -> Option<String> {
        Some(self.change.delta.map_or_else(|| "n/a".into(), |delta| points(delta.points)))
    }

    /// Its 95 % interval.
    pub fn interval(&self) -> Option<String> {
        let delta = self.change.delta.filter(|delta| delta.verdict != Verdict::Untestable)?;
        Some(text::interval(&delta))
    }

    fn weighted(&self) -> Option<String> {
        Some(self.outcome.compute.wdiff(self.row, self.change)?.to_string())
    }

    /// The weight as a multiple of the baseline's.
    pub fn ratio(&self) -> Option<String> {
        let ratio = self.change.ratio.filter(|_| self.change.present)?;
        Some(format!("{ratio:.2}"))
    }

    /// `new`, `removed`, and whether the difference is noise.
    pub fn verdict(&self) -> Option<String> {
        let gone = match (self.row.status, self.change.present) {
            (Status::New, false) => return Some("absent".into()),
            (Status::New, true) => "new",
            (_, false) => "removed",
            _ => "",
        };
        let Some(delta) = self.change.delta else { return Some(gone.to_owned()) };
        let noise = match delta.verdict {
            Verdict::Significant if !gone.is_empty() => String::new(),
            Verdict::Significant => if delta.points < 0.0 { "lower share" } else { "higher share" }.to_owned(),
            Verdict::BelowThreshold => "below the threshold".to_owned(),
            Verdict::Noise => format!("within noise (±{})", round((delta.high - delta.low) / 2.0)),
            Verdict::Untestable => "not testable".to_owned(),
        };
        Some(if gone.is_empty() || noise.is_empty() { format!("{gone}{noise}") } else { format!("{gone}, {noise}") })
    }

    /// How much more the row weighs than in the baseline.
    pub fn weight_change(&self) -> f64 {
        let before = self.row.baseline.map_or(0, |amount| amount.weight.0);
        self.change.amount.weight.0 as f64 - before as f64
    }

    /// Its weight as a multiple of the baseline's, with the interval that its samples give. Weights are counted in
    /// samples, of which one may stand for more here than there.
    pub fn weight_test(&self) -> Option<RateTest> {
        let per_weight = |column: usize| {
            let total = self.outcome.comparison.totals.get(column)?;
            Some(total.samples as f64 / total.weight.0 as f64)
        };
        self.change.per_work(self.row.baseline?, (per_weight(0)?, per_weight(self.column)?))
    }

    /// `×1.30 (0.99 to 1.70)`: how many times as much there is per unit of work, with its 95 % interval.
    pub fn per_unit(&self) -> Option<String> {
        let end = |value: f64| if value.is_finite() { format!("{value:.2}") } else { "∞".to_owned() };
        let PerWork { ratio, test } = self.outcome.per_work(self.row, self.change, self.column)?;
        let interval = test.map(|test| format!(" ({} to {})", end(test.low), end(test.high)));
        Some(format!("×{}{}", end(ratio), interval.unwrap_or_default()))
    }

    fn p(&self) -> Option<String> {
        let delta = self.change.delta?;
        Some(format!("{:.2e}", delta.p_adjusted.unwrap_or(delta.p)))
    }

    /// How the number that is computed comes about.
    fn formula(&self) -> Option<String> {
        let total = |column: usize| self.outcome.comparison.totals.get(column).map_or(0, |total| total.weight.0);
        let old = self.row.baseline?.weight.0;
        let new = self.change.amount.weight.0;
        Some(match self.outcome.compute {
            Compute::Delta | Compute::DeltaAbs => {
                format!("({new} * 100 / {}) - ({old} * 100 / {})", total(self.column), total(0))
            }
            Compute::Ratio => format!("{new} / {old}"),
            Compute::Wdiff { baseline, new: factor } => format!("({new} * {factor}) - ({old} * {baseline})"),
        })
    }

    fn period(&self) -> Option<String> {
        Some(self.change.amount.weight.0.to_string())
    }
}
