//! What the statistics promise, tried on samples that are drawn.

use super::ledger::Entry;
use super::{Comparison, Ledger, Place};
use crate::table::{By, Cost};
use heatline_profile::Weight;

/// Repeatable numbers in 0..1.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let mixed = (self.0 ^ self.0 >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 29) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A recording of `samples` samples that hit functions with these shares.
fn draw(numbers: &mut Numbers, shares: &[f64], samples: u64) -> Ledger {
    let ends: Vec<f64> = shares
        .iter()
        .scan(0.0, |end, share| {
            *end += share;
            Some(*end)
        })
        .collect();
    let mut hits = vec![0u64; shares.len()];
    for _ in 0..samples {
        let at = numbers.next();
        hits[ends.partition_point(|&end| end <= at).min(shares.len() - 1)] += 1;
    }
    let entry = |(id, &hits): (usize, &u64)| Entry {
        place: Place { function: Some(format!("f{id}")), ..Place::default() },
        module: None,
        file: None,
        function: None,
        linkage: Some(format!("f{id}")),
        owner: None,
        cost: Cost { weight: Weight(hits), samples: hits, ..Cost::default() },
    };
    Ledger {
        by: Some(By::Function),
        whole: Weight(samples),
        samples,
        effective: samples as f64,
        own_wholes: false,
        measured: false,
        modules: Vec::new(),
        files: Vec::new(),
        starts: Vec::new(),
        entries: hits.iter().enumerate().map(entry).collect(),
    }
}

/// The rows that are taken for changed.
fn flagged(before: Ledger, after: Ledger, threshold: f64) -> Vec<String> {
    let comparison = Comparison::new(&[before], &[vec![after]], threshold);
    let is_significant =
        |row: &&super::ComparedRow| row.new[0].and_then(|change| change.delta).is_some_and(|delta| delta.significant);
    comparison.rows.iter().filter(is_significant).filter_map(|row| row.place.function.clone()).collect()
}

/// Shares that fall from the first to the last, as those of programs do; together 1.
fn falling(rows: usize) -> Vec<f64> {
    let parts: Vec<f64> = (0..rows).map(|row| 0.9f64.powi(row as i32)).collect();
    let sum: f64 = parts.iter().sum();
    parts.iter().map(|part| part / sum).collect()
}

#[test]
fn without_a_true_difference_few_runs_flag_anything() {
    let mut numbers = Numbers(1);
    for (rows, samples) in [(10, 500), (40, 2000)] {
        let shares = falling(rows);
        let flags = |numbers: &mut Numbers| {
            let (before, after) = (draw(numbers, &shares, samples), draw(numbers, &shares, samples));
            !flagged(before, after, 0.0).is_empty()
        };
        let runs = 400;
        let wrong = (0..runs).filter(|_| flags(&mut numbers)).count();
        assert!(wrong * 20 <= runs, "{wrong} of {runs} runs with {rows} rows flag something");
    }
}

#[test]
fn three_points_are_found_at_ten_thousand_samples() {
    let mut numbers = Numbers(2);
    for base in [0.02, 0.10, 0.20] {
        let shares = |first: f64| -> Vec<f64> {
            let rest = falling(49);
            std::iter::once(first).chain(rest.iter().map(|share| share * (1.0 - first))).collect()
        };
        let (old, new) = (shares(base), shares(base + 0.03));
        let finds = |numbers: &mut Numbers| {
            let (before, after) = (draw(numbers, &old, 10_000), draw(numbers, &new, 10_000));
            flagged(before, after, 0.5).contains(&"f0".to_owned())
        };
        let runs = 60;
        let found = (0..runs).filter(|_| finds(&mut numbers)).count();
        assert!(found * 10 >= runs * 9, "found in {found} of {runs} runs at {base}");
    }
}

#[test]
fn measured_times_of_programs_that_do_not_differ_flag_nothing() {
    // Three runs a side, each with times that are a tenth more or less, and so many calls that a count says nothing.
    let mut numbers = Numbers(4);
    let run = |numbers: &mut Numbers| {
        let times: Vec<f64> = falling(20).into_iter().map(|time| time * (0.9 + 0.2 * numbers.next())).collect();
        let whole: f64 = times.iter().sum();
        let shares: Vec<f64> = times.into_iter().map(|time| time / whole).collect();
        Ledger { measured: true, ..draw(numbers, &shares, 20_000) }
    };
    let runs = 200;
    let mut wrong = 0;
    for _ in 0..runs {
        let before: Vec<Ledger> = (0..3).map(|_| run(&mut numbers)).collect();
        let after: Vec<Ledger> = (0..3).map(|_| run(&mut numbers)).collect();
        let comparison = Comparison::new(&before, &[after], 0.0);
        wrong += usize::from(comparison.rows.iter().any(|row| row.new[0].unwrap().delta.unwrap().significant));
    }
    assert!(wrong * 20 <= runs, "{wrong} of {runs} flag something");
}

#[test]
fn runs_that_differ_among_themselves_flag_less() {
    // Each run has its own share around 10 %, as a program with phases has.
    let mut numbers = Numbers(3);
    let run = |numbers: &mut Numbers| {
        let share = 0.06 + 0.08 * numbers.next();
        draw(numbers, &[share, 1.0 - share], 3000)
    };
    let runs = 200;
    let mut wrong = 0;
    for _ in 0..runs {
        let before: Vec<Ledger> = (0..5).map(|_| run(&mut numbers)).collect();
        let after: Vec<Ledger> = (0..5).map(|_| run(&mut numbers)).collect();
        let comparison = Comparison::new(&before, &[after], 0.0);
        wrong += usize::from(comparison.rows.iter().any(|row| row.new[0].unwrap().delta.unwrap().significant));
    }
    assert!(wrong * 5 < runs, "{wrong} of {runs} flag something, pooled with their spread");
}
