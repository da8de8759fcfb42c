//! What a comparison computes, and the order of its rows.

use super::{Change, ComparedRow, Comparison, Status};
use std::cmp::Ordering;

/// What is computed of a row and by what rows are ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Compute {
    /// The difference of shares in percentage points, greatest first.
    Delta,
    /// The same, greatest absolute value first.
    #[default]
    DeltaAbs,
    /// The ratio of weights.
    Ratio,
    /// The difference of weights, each multiplied by a factor.
    Wdiff {
        /// The factor of the baseline's weight.
        baseline: i64,
        /// The factor of the new weight.
        new: i64,
    },
}

impl Compute {
    /// The word that JSON and the command line have for it.
    pub fn name(self) -> &'static str {
        match self {
            Compute::Delta => "delta",
            Compute::DeltaAbs => "delta-abs",
            Compute::Ratio => "ratio",
            Compute::Wdiff { .. } => "wdiff",
        }
    }

    /// The weighted difference; `None` where another value is computed, or for a row that the baseline has not.
    pub fn wdiff(self, row: &ComparedRow, change: &Change) -> Option<i64> {
        let Compute::Wdiff { baseline, new } = self else { return None };
        let old = row.baseline.filter(|_| row.status != Status::New)?;
        let product = |weight: u64, factor: i64| i128::from(weight) * i128::from(factor);
        let difference = product(change.amount.weight.0, new) - product(old.weight.0, baseline);
        Some(i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX }))
    }

    /// The number that rows are ordered by in a column.
    fn value(self, row: &ComparedRow, change: &Change) -> Option<f64> {
        match self {
            Compute::Delta => change.delta.map(|delta| delta.points),
            Compute::DeltaAbs => change.delta.map(|delta| delta.points.abs()),
            Compute::Ratio => change.ratio,
            Compute::Wdiff { .. } => self.wdiff(row, change).map(|difference| difference as f64),
        }
    }
}

impl Comparison {
    /// Orders the rows by what `compute` says of the column with this number, counted from 1; with 0 by the baseline's
    /// share. Ties go by the baseline's share, then by the columns from the left, then by names.
    pub fn sort(&mut self, compute: Compute, column: usize) {
        let value = |row: &ComparedRow, column: usize| {
            row.new.get(column).and_then(Option::as_ref).and_then(|change| compute.value(row, change))
        };
        self.rows.sort_by(|a, b| {
            let by_column = |column: usize| descending(value(a, column), value(b, column));
            let chosen = column.checked_sub(1).map_or(Ordering::Equal, by_column);
            let share = |row: &ComparedRow| row.baseline.map(|amount| amount.percent);
            let all = || (0..a.new.len()).map(by_column).find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
            let names = |row: &ComparedRow| {
                let place = row.place.clone();
                (place.module, place.function, place.file, place.line, place.others)
            };
            chosen.then_with(|| descending(share(a), share(b))).then_with(all).then_with(|| names(a).cmp(&names(b)))
        });
    }

    /// Leaves only rows that the baseline and another recording have.
    pub fn keep_paired(&mut self) {
        self.rows.retain(|row| row.status == Status::Both);
    }
}

/// Greater numbers first, none last.
fn descending(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}
