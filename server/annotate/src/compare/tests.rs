//! Worked examples of pairing and of the numbers of a row.

use super::*;
use crate::Metric;
use crate::fixture::model;
use crate::model::FileId;
use crate::table::{By, CostTable, Filter, Selection};
use heatline_profile::{BuildId, EventId, Identity};
use std::sync::Arc;

fn ledger(text: &str, by: By, source: Option<&str>) -> Ledger {
    let selection = Selection { metric: Metric::sum(EventId(0)), filter: Filter::default(), inline: true };
    let table = CostTable::new(model(text), selection);
    Ledger::of(&table, by, Measure::Exclusive, &|_: FileId| source.map(Arc::from))
}

fn compare(before: &str, after: &str, by: By) -> Comparison {
    Comparison::new(&[ledger(before, by, None)], &[vec![ledger(after, by, None)]], 0.5)
}

/// One line per row: name or line, status, how it was paired, shares of both sides, difference.
fn text(comparison: &Comparison) -> Vec<String> {
    let name = |place: &Place| match (place.line.filter(|_| place.file.is_some()), &place.function) {
        (Some(line), Some(function)) => format!("{function}:{line}"),
        (_, function) => function.clone().unwrap_or_default(),
    };
    let change = |row: &ComparedRow| match &row.new[0] {
        Some(Change { amount, delta: Some(delta), .. }) => format!("{:.1} {:+.1}", amount.percent, delta.points),
        _ => "n/a".into(),
    };
    let before = |row: &ComparedRow| row.baseline.map_or("n/a".into(), |amount| format!("{:.1}", amount.percent));
    let row = |row: &ComparedRow| {
        let (status, pairing) = (row.status.name(), row.pairing.name());
        format!("{} {status} {pairing} {} {}", name(&row.place), before(row), change(row))
    };
    comparison.rows.iter().map(row).collect()
}

/// A of the worked examples: fn1 50, fn2 30, fn3 15, fn4 5 samples; B: fn1 40, fn2 60, fn4 20, fn5 80.
const A: &str = "50 x100: fn1\n30 x100: fn2\n15 x100: fn3\n5 x100: fn4";
const B: &str = "40 x100: fn1\n60 x100: fn2\n20 x100: fn4\n80 x100: fn5";

fn names(comparison: &Comparison) -> Vec<&str> {
    comparison.rows.iter().filter_map(|row| row.place.function.as_deref()).collect()
}

#[test]
fn d1_shares_are_compared_and_removed_rows_are_minus_theirs() {
    let mut comparison = compare(A, B, By::Function);
    comparison.sort(Compute::DeltaAbs, 1);
    assert_eq!(
        text(&comparison),
        [
            "fn5 new exact 0.0 40.0 +40.0",
            "fn1 both exact 50.0 20.0 -30.0",
            "fn3 removed exact 15.0 0.0 -15.0",
            "fn4 both exact 5.0 10.0 +5.0",
            "fn2 both exact 30.0 30.0 +0.0",
        ]
    );
    assert_eq!(comparison.totals.iter().map(|total| total.weight.0).collect::<Vec<_>>(), [10_000, 20_000]);
    comparison.sort(Compute::Delta, 1);
    assert_eq!(names(&comparison), ["fn5", "fn4", "fn2", "fn3", "fn1"]);
    comparison.sort(Compute::DeltaAbs, 0);
    assert_eq!(names(&comparison), ["fn1", "fn2", "fn3", "fn4", "fn5"]);
    comparison.keep_paired();
    assert_eq!(names(&comparison), ["fn1", "fn2", "fn4"]);
}

#[test]
fn d2_d3_ratios_and_weighted_differences_are_of_weights() {
    let mut comparison = compare(A, B, By::Function);
    comparison.sort(Compute::Ratio, 1);
    let ratio = |row: &ComparedRow| row.new[0].unwrap().ratio;
    assert_eq!(names(&comparison), ["fn4", "fn2", "fn1", "fn3", "fn5"]);
    let ratios: Vec<_> = comparison.rows.iter().map(ratio).collect();
    assert_eq!(ratios, [Some(4.0), Some(2.0), Some(0.8), Some(0.0), None]);
    let wdiff = Compute::Wdiff { baseline: 1, new: 2 };
    comparison.sort(wdiff, 1);
    let differences: Vec<_> = comparison.rows.iter().map(|row| wdiff.wdiff(row, &row.new[0].unwrap())).collect();
    assert_eq!(names(&comparison), ["fn2", "fn4", "fn1", "fn3", "fn5"]);
    assert_eq!(differences, [Some(9000), Some(3500), Some(3000), Some(-1500), None]);
    let other = Compute::Wdiff { baseline: 3, new: 1 };
    let of = |name: &str| comparison.rows.iter().find(|row| row.place.function.as_deref() == Some(name)).unwrap();
    let difference = |name: &str| other.wdiff(of(name), &of(name).new[0].unwrap());
    assert_eq!([difference("fn4"), difference("fn2"), difference("fn1")], [Some(500), Some(-3000), Some(-11_000)]);
}

#[test]
fn d10_intervals_and_p_values_are_those_of_the_worked_examples() {
    let comparison = compare(A, B, By::Function);
    let delta = |name: &str| {
        let row = comparison.rows.iter().find(|row| row.place.function.as_deref() == Some(name)).unwrap();
        row.new[0].unwrap().delta.unwrap()
    };
    for (name, points, low, high) in [
        ("fn1", -30.0, -40.8182, -18.6194),
        ("fn2", 0.0, -11.2685, 10.5025),
        ("fn4", 5.0, -2.0652, 10.7015),
        ("fn5", 40.0, 32.4867, 46.9163),
        ("fn3", -15.0, -23.2836, -9.0022),
    ] {
        let delta = delta(name);
        let found = [delta.points, delta.low, delta.high];
        let close = found.iter().zip([points, low, high]).all(|(found, expected)| (found - expected).abs() < 5e-5);
        assert!(close, "{name}: {found:?}");
        assert_eq!(delta.significant, ["fn1", "fn3", "fn5"].contains(&name), "{name}");
    }
    // Five rows were tested; 0.139649 is the fourth of them.
    assert!((delta("fn4").p - 0.139_649).abs() < 1e-6);
    assert!((delta("fn4").p_adjusted.unwrap() - 0.139_649 * 5.0 / 4.0).abs() < 1e-6);
}

#[test]
fn a_few_samples_are_never_significant() {
    let comparison = compare("1000: f", "1000: f\n9: g", By::Function);
    let new = comparison.rows.iter().find(|row| row.status == Status::New).unwrap().new[0].unwrap().delta.unwrap();
    assert_eq!((new.p_adjusted, new.significant), (None, false));
}

#[test]
fn measured_times_of_one_run_each_are_not_tested_and_of_several_are() {
    let measured = |text: &str| Ledger { measured: true, ..ledger(text, By::Function, None) };
    let verdict = |comparison: Comparison| {
        let row = comparison.rows.into_iter().find(|row| row.place.function.as_deref() == Some("g")).unwrap();
        row.new[0].unwrap().delta.unwrap().verdict
    };
    let (before, after) = ("9000: f\n1000: g", "5000: f\n5000: g");
    let one = Comparison::new(&[measured(before)], &[vec![measured(after)]], 0.5);
    assert_eq!(verdict(one), Verdict::Untestable);
    let runs = |text: &str| vec![measured(text), measured(text)];
    let several = Comparison::new(&runs(before), &[runs(after)], 0.5);
    assert_eq!(verdict(several), Verdict::Significant);
    let mixed = Comparison::new(&runs(before), &[vec![measured(after)]], 0.5);
    assert_eq!(verdict(mixed), Verdict::Untestable);
    // However many calls there are, runs that differ by as much among themselves say nothing.
    let unsteady = |one: &str, other: &str| vec![measured(one), measured(other)];
    let before = unsteady("9000: f\n1000: g", "8000: f\n2000: g");
    let after = unsteady("8500: f\n1500: g", "7500: f\n2500: g");
    assert_eq!(verdict(Comparison::new(&before, &[after], 0.5)), Verdict::Noise);
}

#[test]
fn a_real_difference_may_be_too_small_to_look_at() {
    let before = ledger("99000: f\n1000: g", By::Function, None);
    let after = ledger("98700: f\n1300: g", By::Function, None);
    let comparison = Comparison::new(&[before], &[vec![after]], 0.5);
    let verdicts: Vec<Verdict> = comparison.rows.iter().map(|row| row.new[0].unwrap().delta.unwrap().verdict).collect();
    assert_eq!(verdicts, [Verdict::BelowThreshold, Verdict::BelowThreshold]);
}

#[test]
fn an_empty_side_is_no_zero() {
    let before = ledger(A, By::Function, None);
    let comparison = Comparison::new(&[before], &[Vec::new(), vec![ledger(B, By::Function, None)]], 0.5);
    assert!(comparison.rows.iter().all(|row| row.new[0].is_none() && row.new[1].is_some()));
    let comparison = Comparison::new(&[], &[vec![ledger(B, By::Function, None)]], 0.5);
    assert!(comparison.rows.iter().all(|row| row.baseline.is_none() && row.status == Status::New));
    assert!(comparison.rows.iter().all(|row| row.new[0].unwrap().delta.is_none()));
}

#[test]
fn clones_are_paired_by_the_name_without_their_marks() {
    let mut comparison = compare(
        "40: work.part.0\n20: plain\n20: split\n20: ::h",
        "30: work.constprop.2\n10: work.isra.0\n20: plain\n20: split\n10: split.cold\n10: other",
        By::Function,
    );
    comparison.sort(Compute::DeltaAbs, 0);
    assert_eq!(
        text(&comparison),
        [
            "work both name 40.0 40.0 +0.0",
            "::h removed exact 20.0 0.0 -20.0",
            "split both name 20.0 30.0 +10.0",
            "plain both exact 20.0 20.0 +0.0",
            "other new exact 0.0 10.0 +10.0",
        ]
    );
}

#[test]
fn rust_functions_are_paired_across_hashes() {
    let comparison = compare("10: app::work::h0123456789abcdef", "20: app::work::hfedcba9876543210", By::Function);
    assert_eq!(text(&comparison), ["app::work both name 100.0 100.0 +0.0"]);
}

const OLD_TEXT: &str = "a\nb\nwork\nx\nhot\nend\n";
const NEW_TEXT: &str = "a\nb\nc\nd\nwork\nhot\nfresh\nend\n";

#[test]
fn lines_are_paired_by_their_text_where_it_is_known() {
    let before = ledger("10: f@a.c:5\n10: f@a.c:4\n20: f@a.c:6", By::Line, Some(OLD_TEXT));
    let after = ledger("30: f@a.c:6\n5: f@a.c:7\n5: f@a.c:8", By::Line, Some(NEW_TEXT));
    let mut comparison = Comparison::new(&[before], &[vec![after]], 0.5);
    comparison.sort(Compute::DeltaAbs, 0);
    assert_eq!(
        text(&comparison),
        [
            "f:8 both content 50.0 12.5 -37.5",
            "f:6 both content 25.0 75.0 +50.0",
            "f:4 removed exact 25.0 0.0 -25.0",
            "f:7 new exact 0.0 12.5 +12.5",
        ]
    );
}

#[test]
fn lines_are_paired_by_function_and_distance_where_no_text_is_known() {
    // The function begins on line 100 in one build and on line 200 in the other.
    let mut comparison =
        compare("10: f@a.c:105\n10: f@a.c:110\n20: gone@a.c:305", "30: f@a.c:205\n10: f@a.c:207", By::Line);
    comparison.sort(Compute::DeltaAbs, 0);
    assert_eq!(
        text(&comparison),
        [
            "gone:305 removed exact 50.0 0.0 -50.0",
            "f:205 both function-offset 25.0 75.0 +50.0",
            "f:110 removed exact 25.0 0.0 -25.0",
            "f:207 new exact 0.0 25.0 +25.0",
        ]
    );
}

#[test]
fn lines_of_functions_of_one_name_in_two_files_are_not_taken_for_each_other() {
    // `helper` of b.c is gone; that of a.c is still there, and neither text is known.
    let mut comparison = compare("48: helper@a.c:105\n19: helper@b.c:105", "50: helper@a.c:205", By::Line);
    comparison.sort(Compute::DeltaAbs, 0);
    let found: Vec<String> = text(&comparison);
    let removed = found.iter().filter(|row| row.starts_with("helper:105 removed")).count();
    let paired = found.iter().filter(|row| row.starts_with("helper:205 both function-offset 71.6")).count();
    assert_eq!((removed, paired, found.len()), (1, 1, 2), "{found:?}");
}

#[test]
fn lines_of_one_build_are_the_same_whatever_else_is_known() {
    // As of assembler: no text, no function that debug information declares.
    let of_build = |text: &str, build: u8| {
        let mut ledger = ledger(text, By::Line, None);
        ledger.entries.iter_mut().for_each(|entry| entry.owner = None);
        ledger.modules[0].1 = Some(Identity::BuildId(BuildId(vec![build])));
        ledger
    };
    let paired = |builds: [u8; 2]| {
        let before = of_build("10: f@memmove.S:105\n30: f@memmove.S:110", builds[0]);
        let after = of_build("30: f@memmove.S:105\n10: f@memmove.S:107", builds[1]);
        let mut comparison = Comparison::new(&[before], &[vec![after]], 0.5);
        comparison.sort(Compute::DeltaAbs, 0);
        text(&comparison)
    };
    assert_eq!(
        paired([1, 1]),
        ["f:110 removed exact 75.0 0.0 -75.0", "f:105 both exact 25.0 75.0 +50.0", "f:107 new exact 0.0 25.0 +25.0"]
    );
    assert_eq!(paired([1, 2]).iter().filter(|row| row.contains(" both ")).count(), 0);
}

#[test]
fn files_of_two_folders_are_paired_by_the_end_of_their_paths() {
    let mut comparison = compare(
        "10: f@/one/src/a.c:105\n10: g@/one/lib/a.c:105\n10: h@/one/b.c:105",
        "10: f@/two/src/a.c:105\n20: g@/two/lib/a.c:105\n10: i@/two/c.c:105",
        By::File,
    );
    comparison.sort(Compute::DeltaAbs, 0);
    let rows = comparison.rows.iter().map(|row| (row.place.file.as_deref().unwrap(), row.status.name()));
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [("/one/b.c", "removed"), ("/two/lib/a.c", "both"), ("/two/src/a.c", "both"), ("/two/c.c", "new"),]
    );
}

#[test]
fn several_recordings_of_a_side_are_added_up_and_their_spread_widens_the_interval() {
    let run = |hits: u64| ledger(&format!("{hits}: f\n{}: g", 1000 - hits), By::Function, None);
    let f = |comparison: &Comparison| {
        let row = comparison.rows.iter().find(|row| row.place.function.as_deref() == Some("f")).unwrap();
        (row.baseline.unwrap().percent, row.new[0].unwrap().delta.unwrap())
    };
    let alike = Comparison::new(&[run(100), run(102)], &[vec![run(150), run(152)]], 0.5);
    let spread = Comparison::new(&[run(60), run(142)], &[vec![run(110), run(192)]], 0.5);
    assert_eq!((alike.totals[0].runs, alike.totals[0].samples), (2, 2000));
    let ((share, narrow), (other, wide)) = (f(&alike), f(&spread));
    assert!((share - 10.1).abs() < 1e-9 && (other - 10.1).abs() < 1e-9);
    assert!((narrow.points - 5.0).abs() < 1e-9 && (wide.points - 5.0).abs() < 1e-9);
    assert!(narrow.significant && !wide.significant);
    assert!(wide.high - wide.low > 2.0 * (narrow.high - narrow.low));
}

#[test]
fn samples_of_unequal_weight_count_for_less() {
    // 30 samples of weight 100 and 10 of 400 are 25.789 effective ones, of 40.
    let delta = |text: &str| {
        let comparison =
            Comparison::new(&[ledger(text, By::Function, None)], &[vec![ledger(text, By::Function, None)]], 0.5);
        comparison.rows[0].new[0].unwrap().delta.unwrap()
    };
    let unequal = delta("30 x100: f\n10 x400: g");
    let (low, high) = crate::statistics::newcombe((25.789 * 3.0 / 7.0, 25.789), (25.789 * 3.0 / 7.0, 25.789)).unwrap();
    assert!((unequal.low - 100.0 * low).abs() < 0.01 && (unequal.high - 100.0 * high).abs() < 0.01);
}
