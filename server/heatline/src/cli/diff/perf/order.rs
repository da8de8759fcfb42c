//! Pairing of rows over files, what is computed of a pair, and the order of rows, as perf has them.

use super::Wish;
use super::entry::{Entry, Recorded};
use super::keys::Identity;
use heatline_annotate::compare::Compute;
use std::cmp::Ordering;
use std::collections::HashMap;

/// A row over all files.
pub struct Row {
    /// Its names: those of the baseline, or of the first file that has it.
    pub entry: Entry,
    /// Whether the baseline has not got it.
    pub is_dummy: bool,
    /// For each file behind the baseline its period there.
    pub pairs: Vec<Option<u64>>,
}

/// All rows of an event.
pub struct Rows {
    pub rows: Vec<Row>,
    /// The totals of the files while differences are computed, the baseline's first.
    pub totals: Vec<u64>,
    /// The total that the baseline's shares are shown of.
    pub shown_total: u64,
}

impl Rows {
    /// Pairs the rows of a baseline with those of other files, of which one may not have the event.
    pub fn new(wish: &Wish, baseline: &Recorded, others: &[Option<&Recorded>]) -> Self {
        let row = |entry: &Entry, is_dummy| Row { entry: entry.clone(), is_dummy, pairs: vec![None; others.len()] };
        let mut rows: Vec<Row> = baseline.entries.iter().map(|entry| row(entry, false)).collect();
        let mut known: HashMap<Identity, usize> =
            rows.iter().enumerate().map(|(at, row)| (wish.keys.identity(&row.entry), at)).collect();
        for (file, other) in others.iter().enumerate() {
            for entry in other.iter().flat_map(|other| &other.entries) {
                let identity = wish.keys.identity(entry);
                match known.get(&identity) {
                    Some(&at) => rows[at].pairs[file] = Some(entry.period),
                    None if wish.baseline_only => {}
                    None => {
                        known.insert(identity, rows.len());
                        let mut new = row(entry, true);
                        new.entry.period = 0;
                        new.pairs[file] = Some(entry.period);
                        rows.push(new);
                    }
                }
            }
        }
        let mut shown_total = baseline.total;
        if wish.baseline_only {
            rows.retain(|row| row.pairs.iter().any(Option::is_some));
            // perf adds up the shares of what is left anew, after it has computed the differences.
            shown_total = rows.iter().map(|row| row.entry.period).fold(0, u64::saturating_add);
        }
        let totals = std::iter::once(baseline.total).chain(others.iter().map(|other| other.map_or(0, |o| o.total)));
        let mut rows = Rows { rows, totals: totals.collect(), shown_total };
        rows.sort(wish);
        rows
    }

    /// The share of the baseline, in percent.
    pub fn baseline(&self, row: &Row) -> f64 {
        percent(row.entry.period, self.shown_total)
    }

    /// The difference of shares in a file, counted from 1.
    pub fn delta(&self, row: &Row, file: usize) -> Option<f64> {
        let period = (*row.pairs.get(file.checked_sub(1)?)?)?;
        Some(percent(period, self.totals[file]) - percent(row.entry.period, self.totals[0]))
    }

    fn sort(&mut self, wish: &Wish) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by(|a, b| {
            let chosen =
                if wish.order > 0 { self.by_file(wish.compute, a, b, wish.order, true) } else { Ordering::Equal };
            let columns = 1..self.totals.len();
            chosen
                .then_with(|| b.entry.period.cmp(&a.entry.period))
                .then_with(|| {
                    let mut orders = columns.map(|file| self.by_file(wish.compute, a, b, file, false));
                    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
                })
                .then_with(|| wish.keys.compare(&a.entry, &b.entry))
        });
        self.rows = rows;
    }

    /// Which of two rows comes first by a file. `chosen` is whether it is the one that was asked to order by.
    fn by_file(&self, compute: Compute, a: &Row, b: &Row, file: usize, chosen: bool) -> Ordering {
        let (Some(first), Some(second)) = (a.pairs[file - 1], b.pairs[file - 1]) else {
            return a.pairs[file - 1].is_none().cmp(&b.pairs[file - 1].is_none());
        };
        let by_share = matches!(compute, Compute::Delta | Compute::DeltaAbs);
        if chosen && !by_share && (a.is_dummy || b.is_dummy) {
            return a.is_dummy.cmp(&b.is_dummy);
        }
        let delta = |row: &Row| self.delta(row, file).unwrap_or(0.0);
        match compute {
            Compute::Delta => descending(delta(a), delta(b)),
            Compute::DeltaAbs => descending(delta(a).abs(), delta(b).abs()),
            Compute::Ratio => descending(ratio(a, first), ratio(b, second)),
            Compute::Wdiff { baseline, new } => {
                wdiff(b, second, (baseline, new)).cmp(&wdiff(a, first, (baseline, new)))
            }
        }
    }
}

fn descending(a: f64, b: f64) -> Ordering {
    b.partial_cmp(&a).unwrap_or(Ordering::Equal)
}

fn percent(period: u64, total: u64) -> f64 {
    period as f64 * 100.0 / total as f64
}

/// The period as a multiple of the baseline's, of which 0 counts as 1.
pub fn ratio(row: &Row, period: u64) -> f64 {
    period as f64 / row.entry.period.max(1) as f64
}

/// The weighted difference, which wraps around as perf's does.
pub fn wdiff(row: &Row, period: u64, (baseline, new): (i64, i64)) -> i64 {
    let product = |period: u64, weight: i64| period.cast_signed().wrapping_mul(weight);
    product(period, new).wrapping_sub(product(row.entry.period, baseline))
}
