//! Costs, checked against worked examples and by hand.

use crate::calls::{CallBasis, Party};
use crate::fixture::{model, timed_model};
use crate::{Against, AnnotationOptions, Annotations, By, Calls, CostTable, Filter, Metric, Row, Selection};
use expect_test::{Expect, expect};
use heatline_profile::EventId;
use std::num::NonZeroU32;
use std::sync::Arc;

fn table(text: &str, inline: bool, filter: Filter) -> CostTable {
    CostTable::new(model(text), Selection { metric: Metric::sum(EventId(0)), filter, inline })
}

fn place(table: &CostTable, row: &Row) -> String {
    let model = table.model();
    let function = row.function.map(|id| model.function(id).name.to_string());
    let file = row.file.map(|id| model.file(id).path.clone());
    match (file, row.line, function, row.thread) {
        (Some(file), Some(line), ..) => format!("{file}:{line}"),
        (Some(file), ..) => file,
        (_, _, Some(function), _) => function,
        (.., Some(thread)) => model.profile().thread(thread).comm.clone(),
        _ => row.module.map_or("?".into(), |id| model.profile().module(id).base_name().to_owned()),
    }
}

#[track_caller]
fn check_table(table: &CostTable, by: By, expect: Expect) {
    let mut text = String::new();
    for row in table.rows(by) {
        let name = match by {
            By::Function => row.function.map_or("?".into(), |id| table.model().function(id).name.to_string()),
            _ => place(table, &row),
        };
        let inclusive = row.inclusive.map_or("-".into(), |cost| format!("{} {:.1}%", cost.weight.0, cost.share()));
        let exclusive = format!("{} {:.1}%", row.exclusive.weight.0, row.exclusive.share());
        text += &format!("{name}: {exclusive} / {inclusive}\n");
    }
    expect.assert_eq(&text);
}

#[track_caller]
fn check(text: &str, by: By, expect: Expect) {
    check_table(&table(text, true, Filter::default()), by, expect);
}

const RECURSION: &str = "
    10 x100: fn1@a.c:112 < main@a.c:20
    20 x100: fn2@a.c:212 < fn1@a.c:113 < main@a.c:20
    30 x100: fn1@a.c:112 < fn2@a.c:213 < fn1@a.c:113 < main@a.c:20
    40 x100: fn3@a.c:312 < fn3@a.c:313 < fn3@a.c:313 < main@a.c:21";

/// Worked example V2: `perf report --children` gives main 100/0, fn1 60/40, fn2 50/20, fn3 40/40 percent.
#[test]
fn recursion_counts_once_per_sample() {
    check(
        RECURSION,
        By::Function,
        expect![[r#"
            fn1: 4000 40.0% / 6000 60.0%
            fn3: 4000 40.0% / 4000 40.0%
            fn2: 2000 20.0% / 5000 50.0%
            main: 0 0.0% / 10000 100.0%
        "#]],
    );
}

const LINES: &str = "
    6: g@a.c:5 < f@a.c:12 < main@a.c:20
    3: f@a.c:12 < main@a.c:20
    1: f@a.c:14 < main@a.c:21";

/// Worked example V3.
#[test]
fn lines_have_exclusive_and_inclusive_cost() {
    check(
        LINES,
        By::Line,
        expect![[r#"
            a.c:5: 6 60.0% / 6 60.0%
            a.c:12: 3 30.0% / 9 90.0%
            a.c:14: 1 10.0% / 1 10.0%
            a.c:20: 0 0.0% / 9 90.0%
            a.c:21: 0 0.0% / 1 10.0%
        "#]],
    );
    check(
        LINES,
        By::Function,
        expect![[r#"
            g: 6 60.0% / 6 60.0%
            f: 4 40.0% / 10 100.0%
            main: 0 0.0% / 10 100.0%
        "#]],
    );
}

/// Worked example V4: line 12 has 4, not 8.
#[test]
fn the_same_line_twice_on_a_stack_counts_once() {
    check(
        "4: f@a.c:12 < f@a.c:12 < main@a.c:20",
        By::Line,
        expect![[r#"
            a.c:12: 4 100.0% / 4 100.0%
            a.c:20: 0 0.0% / 4 100.0%
        "#]],
    );
}

const INLINED: &str = "5: inl@h.h:3 ^ host@a.c:30 < main@a.c:40";

/// Worked example V5, the inline view.
#[test]
fn an_inlined_callee_counts_inclusively_on_its_call_line() {
    check(
        INLINED,
        By::Function,
        expect![[r#"
            inl: 5 100.0% / 5 100.0%
            host: 0 0.0% / 5 100.0%
            main: 0 0.0% / 5 100.0%
        "#]],
    );
    check(
        INLINED,
        By::Line,
        expect![[r#"
            h.h:3: 5 100.0% / 5 100.0%
            a.c:30: 0 0.0% / 5 100.0%
            a.c:40: 0 0.0% / 5 100.0%
        "#]],
    );
    let rows = table(INLINED, true, Filter::default()).rows(By::Function);
    assert_eq!(rows.iter().map(|row| row.inlined).collect::<Vec<_>>(), [true, false, false]);
}

/// Worked example V5, the physical view.
#[test]
fn without_inlining_the_call_line_of_the_host_has_the_cost() {
    let table = table(INLINED, false, Filter::default());
    check_table(
        &table,
        By::Function,
        expect![[r#"
            host: 5 100.0% / 5 100.0%
            main: 0 0.0% / 5 100.0%
        "#]],
    );
    check_table(
        &table,
        By::Line,
        expect![[r#"
            a.c:30: 5 100.0% / 5 100.0%
            a.c:40: 0 0.0% / 5 100.0%
        "#]],
    );
}

/// Worked example V8.
#[test]
fn shares_are_of_weight_not_of_samples() {
    let table = table(
        "2 x1000: f@a.c:112
         1 x3000: g@a.c:212",
        true,
        Filter::default(),
    );
    check_table(
        &table,
        By::Function,
        expect![[r#"
            g: 3000 60.0% / -
            f: 2000 40.0% / -
        "#]],
    );
    assert_eq!(table.total().samples, 3);
}

/// Worked example V9.
#[test]
fn nothing_has_no_percentage() {
    let mut empty = table("0: f@a.c:112", true, Filter::default());
    assert_eq!(empty.rows(By::Line), []);
    assert_eq!(empty.selected().percent, None);
    empty = table("1: f@a.c:112", true, Filter::default());
    let annotations = Annotations::new(Arc::new(empty), None, AnnotationOptions::default());
    let (_, view) = annotations.files().next().unwrap();
    assert_eq!(crate::text::lens(&view.functions[0], crate::text::delta), "1 sample");
}

#[test]
fn code_without_line_or_symbol_keeps_its_cost() {
    let text = "
        5: f@a.c:112
        3: memcpy
        2: ?";
    check(
        text,
        By::Line,
        expect![[r#"
            a.c:112: 5 50.0% / -
            memcpy: 3 30.0% / -
            app: 2 20.0% / -
        "#]],
    );
    let coverage = table(text, true, Filter::default()).coverage();
    assert_eq!((coverage.line, coverage.symbol, coverage.none), (0.5, 0.3, 0.2));
    assert_eq!(coverage.by_module.len(), 1);
}

const THREADS: &str = "
    [one] 6: f@a.c:112 < main@a.c:20
    [two] 4: g@b.c:212 < main@a.c:21";

#[test]
fn filters_shrink_the_rows_and_only_on_demand_the_whole() {
    check(
        THREADS,
        By::Thread,
        expect![[r#"
            one: 6 60.0% / -
            two: 4 40.0% / -
        "#]],
    );
    let filter = Filter { comms: vec!["two".into()], ..Filter::default() };
    check_table(
        &table(THREADS, true, filter.clone()),
        By::Function,
        expect![[r#"
            g: 4 40.0% / 4 40.0%
            main: 0 0.0% / 4 40.0%
        "#]],
    );
    check_table(
        &table(THREADS, true, Filter { relative: true, ..filter }),
        By::Function,
        expect![[r#"
            g: 4 100.0% / 4 100.0%
            main: 0 0.0% / 4 100.0%
        "#]],
    );
    let symbols = Filter { symbols: vec!["main".into()], ..Filter::default() };
    check_table(
        &table(THREADS, true, symbols),
        By::Function,
        expect![[r#"
            main: 0 0.0% / 10 100.0%
        "#]],
    );
    check(
        THREADS,
        By::File,
        expect![[r#"
            a.c: 6 60.0% / 10 100.0%
            b.c: 4 40.0% / 4 40.0%
        "#]],
    );
    check(
        THREADS,
        By::Module,
        expect![[r#"
            app: 10 100.0% / 10 100.0%
        "#]],
    );
}

fn calls_text(table: &CostTable, calls: &Calls) -> String {
    let list = |calls: &[crate::Call]| {
        let name = |party: Party| match party {
            Party::Function(id) => table.model().function(id).name.clone(),
            Party::Unnamed(_) => "?".into(),
        };
        calls.iter().map(|call| format!("{} {}", name(call.party), call.cost.weight.0)).collect::<Vec<_>>().join(", ")
    };
    format!("from {} | to {}", list(&calls.callers), list(&calls.callees))
}

#[track_caller]
fn check_calls(text: &str, function: &str, expect: Expect) {
    let table = table(text, true, Filter::default());
    let id = table.model().functions().iter().position(|f| *f.name == *function).unwrap();
    expect.assert_eq(&calls_text(&table, &table.calls_of_function(crate::FunctionId(id as u32))));
}

#[test]
fn an_edge_counts_once_per_sample_however_deep_the_recursion() {
    check_calls(RECURSION, "fn1", expect!["from main 6000, fn2 3000 | to fn2 5000"]);
    check_calls(RECURSION, "fn3", expect!["from main 4000, fn3 4000 | to fn3 4000"]);
    check_calls(RECURSION, "main", expect!["from  | to fn1 6000, fn3 4000"]);
    check_calls(INLINED, "host", expect!["from main 5 | to inl 5"]);
    check_calls(INLINED, "inl", expect!["from host 5 | to "]);
}

/// Samples without stacks, and the branches that led to them.
const BRANCHES: &str = "
    10: f@a.c:212
    7: main@a.c:20 -> f@a.c:200 after ?
    3: main@a.c:21 -> f@a.c:200 after g@a.c:390
    5: inl@h.h:105 ^ f@a.c:213 -> g@a.c:300 after main@a.c:30
    2: f@a.c:214 -> f@a.c:200 after g@a.c:390
    9: f@a.c:219 -> f@a.c:212 after f@a.c:211
    4: g@a.c:310 -> f@a.c:215 after f@a.c:214
    6: f@a.c:218 -> f@a.c:216 after main@a.c:30
    8: g -> g.cold after ?
    1: ? -> main@a.c:1 after ?";

/// Calls go to a function's first instruction: returns into the middle (4), loops (9) and jumps to a part that was moved
/// away (6, 8) are none.
#[test]
fn branches_to_first_instructions_are_calls_where_there_are_no_stacks() {
    check_calls(BRANCHES, "f", expect!["from main 10, f 2 | to f 2"]);
    check_calls(BRANCHES, "inl", expect!["from  | to g 5"]);
    check_calls(BRANCHES, "g", expect!["from inl 5 | to "]);
    check_calls(BRANCHES, "main", expect!["from ? 1 | to f 10"]);
    let by_branches = table(BRANCHES, true, Filter::default());
    assert_eq!(by_branches.call_basis(), Some(CallBasis::Branches));
    let of_thread = Filter { comms: vec!["app".into()], ..Filter::default() };
    assert_eq!(table(BRANCHES, true, of_thread).call_basis(), None);
    let graph = by_branches.call_graph();
    assert_eq!(graph.iter().map(|(.., cost)| cost.weight.0).collect::<Vec<_>>(), [10, 5, 2, 1]);
    assert_eq!(
        graph[0].2.percent,
        heatline_profile::Percent::of(heatline_profile::Weight(10), heatline_profile::Weight(45))
    );
}

#[test]
fn stacks_and_branches_are_never_mixed() {
    let both = format!("{RECURSION}\n9: main@a.c:20 -> fn3@a.c:300 after ?");
    check_calls(&both, "fn3", expect!["from main 4000, fn3 4000 | to fn3 4000"]);
    assert_eq!(table(&both, true, Filter::default()).call_basis(), Some(CallBasis::Stacks));
}

#[test]
fn the_call_graph_has_the_edges_of_every_function() {
    let table = table(RECURSION, true, Filter::default());
    let name = |party: Party| match party {
        Party::Function(id) => table.model().function(id).name.clone(),
        Party::Unnamed(_) => "?".into(),
    };
    let graph = table.call_graph();
    let text: Vec<String> =
        graph.iter().map(|(from, to, cost)| format!("{} > {} {}", name(*from), name(*to), cost.weight.0)).collect();
    expect!["main > fn1 6000, fn1 > fn2 5000, main > fn3 4000, fn3 > fn3 4000, fn2 > fn1 3000"]
        .assert_eq(&text.join(", "));
}

#[test]
fn lines_have_callers_and_callees_too() {
    let annotations =
        Annotations::new(Arc::new(table(LINES, true, Filter::default())), None, AnnotationOptions::default());
    let (file, view) = annotations.files().next().unwrap();
    let line = |n| NonZeroU32::new(n).unwrap();
    let calls = annotations.calls_of_lines(file, line(12)..=line(14));
    expect!["from main 10 | to g 6"].assert_eq(&calls_text(annotations.table(), &calls));
    let calls = annotations.calls_of_lines(file, line(12)..=line(12));
    expect!["from main 9 | to g 6"].assert_eq(&calls_text(annotations.table(), &calls));
    // Worked example V3: the hint of line 12.
    assert_eq!(crate::text::hint(view.line(line(12)).unwrap(), true).unwrap(), "3 samples · incl 90.0 %");
    assert_eq!(view.lines.iter().map(|line| line.level).collect::<Vec<_>>(), [9, 5, 1, 0, 0]);
    assert_eq!(annotations.hottest_lines()[0], (file, line(5)));
}

#[test]
fn an_editor_shows_only_the_code_that_filters_select() {
    let filter = Filter { symbols: vec!["f".into()], ..Filter::default() };
    let annotations = Annotations::new(Arc::new(table(LINES, true, filter)), None, AnnotationOptions::default());
    let (_, view) = annotations.files().next().unwrap();
    let lines: Vec<_> = view.lines.iter().map(|line| (line.line.get(), line.inclusive.unwrap().weight.0)).collect();
    assert_eq!(lines, [(12, 9), (14, 1)]);
    assert_eq!(view.functions.len(), 1);
}

#[test]
fn instances_of_a_function_are_one_place_in_the_editor() {
    // Both are declared on line 200, as two instances of a template are.
    let text = "
        5: at<int>@m.h:212 ^ sum@a.c:30 < at<char>@m.h:213 < main@a.c:40
        5: at<char>@m.h:212 < main@a.c:40";
    let annotations =
        Annotations::new(Arc::new(table(text, true, Filter::default())), None, AnnotationOptions::default());
    let header = annotations.files().find(|(id, _)| annotations.table().model().file(*id).path == "m.h").unwrap().1;
    assert_eq!(header.functions.len(), 1);
    let function = &header.functions[0];
    assert_eq!((function.functions.len(), function.exclusive.weight.0), (2, 10));
    assert_eq!(function.inclusive.map(|cost| cost.weight.0), Some(10));
    assert_eq!(header.line(NonZeroU32::new(212).unwrap()).map(|line| line.exclusive.samples), Some(10));
}

#[test]
fn a_baseline_gives_each_place_its_difference() {
    let before = Arc::new(table("500: f@a.c:112\n9500: g@a.c:212", true, Filter::default()));
    let after = Arc::new(table("560: f@a.c:112\n8440: g@a.c:212\n1000: h@a.c:312", true, Filter::default()));
    let options = AnnotationOptions { delta_threshold: 0.5, ..AnnotationOptions::default() };
    let against = Against { table: before, text_before: &|_| None, text_now: &|_| None };
    let annotations = Annotations::new(after, Some(against), options);
    let (_, view) = annotations.files().next().unwrap();
    let delta = |n| view.line(NonZeroU32::new(n).unwrap()).unwrap().delta.unwrap();
    // Worked example D10: 500 of 10 000 against 560 of 10 000 is noise, −0.0213 to 1.2222.
    let f = delta(112);
    assert!((f.points - 0.6).abs() < 1e-9 && !f.significant);
    assert!((f.low + 0.0213).abs() < 1e-4 && (f.high - 1.2222).abs() < 1e-4);
    assert!(delta(312).significant && (delta(312).points - 10.0).abs() < 1e-9);
    assert!(delta(212).significant && delta(212).points < -10.0);
}

const INTERVALS: &str = "
    10: main@a.c:1
    20: A@a.c:101 < main@a.c:2
    5 wait: A@a.c:101 < main@a.c:2
    30: B@a.c:201 < A@a.c:102 < main@a.c:2
    15 wait: B@a.c:201 < A@a.c:102 < main@a.c:2
    8: A@a.c:101 < A@a.c:103 < main@a.c:2
    12: main@a.c:1";

/// Worked example V1: elapsed inclusive and exclusive, application inclusive and exclusive, with their percentages.
#[test]
fn instrumented_functions_have_four_times_and_shares_of_their_sums() {
    let selection = Selection { metric: Metric::sum(EventId(0)), filter: Filter::default(), inline: true };
    let table = CostTable::new(timed_model(INTERVALS), selection);
    let mut text = String::new();
    for row in table.rows(By::Function) {
        let times = row.times.expect("measured");
        let application = times.application.expect("it is known when threads waited");
        let name = &table.model().function(row.function.unwrap()).name;
        text += &format!("{name}:");
        for cost in [times.elapsed.inclusive, times.elapsed.exclusive, application.inclusive, application.exclusive] {
            text += &format!(" {} {}%", cost.weight.0, cost.share());
        }
        text.push('\n');
    }
    expect![[r#"
        B: 45 45% 45 45% 30 37.5% 30 37.5%
        A: 78 78% 33 33% 58 72.5% 28 35%
        main: 100 100% 22 22% 80 100% 22 27.5%
    "#]]
    .assert_eq(&text);
}

/// Random intervals on random stacks of four functions, some of them waits.
fn random_intervals(mut seed: u64) -> String {
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut text = String::new();
    for _ in 0..=next(40) {
        let wait = if next(3) == 0 { " wait" } else { "" };
        text += &format!("{}{wait}: ", 1 + next(1000));
        for _ in 0..next(6) {
            let function = next(4);
            text += &format!("f{function}@a.c:{} < ", 100 * function + 1 + next(9));
        }
        text += "main@a.c:901\n";
    }
    text
}

/// The sums of exclusive times are those of the session, and the four times of every row keep their order of size.
#[test]
fn the_four_times_keep_their_invariants() {
    for seed in 0..200 {
        let text = random_intervals(seed);
        let selection = Selection { metric: Metric::sum(EventId(0)), filter: Filter::default(), inline: true };
        let table = CostTable::new(timed_model(&text), selection);
        let all = table.times_of_all().expect("measured");
        let [session, running] = [all.elapsed, all.application.unwrap()].map(|timed| timed.inclusive.weight.0);
        for by in [By::Function, By::Line, By::File, By::Module, By::Thread, By::Process] {
            let rows: Vec<_> = table.rows(by).into_iter().map(|row| row.times.unwrap()).collect();
            let mut sums = [0; 2];
            for times in rows {
                let application = times.application.unwrap();
                let costs = [times.elapsed, application].map(|timed| [timed.inclusive, timed.exclusive]);
                let [[ei, ee], [ai, ae]] = costs.map(|pair| pair.map(|cost| cost.weight.0));
                assert!(ee <= ei && ae <= ai && ai <= ei && ae <= ee && ei <= session, "{by:?}: {text}");
                for (cost, whole) in
                    costs.into_iter().zip([session, running]).flat_map(|(pair, w)| pair.map(|c| (c, w)))
                {
                    let share = if whole == 0 { 0.0 } else { 100.0 * cost.weight.0 as f64 / whole as f64 };
                    assert!((cost.share() - share).abs() < 1e-9, "{by:?}: {text}");
                }
                sums = [sums[0] + ee, sums[1] + ae];
            }
            assert_eq!(sums, [session, running], "{by:?}: {text}");
        }
    }
}

/// Worked example V6: a caller is on the line of its call, the innermost frame on its own. Function `f` was interrupted at
/// the instruction behind a call, on line 41; `main` is on the line of the call in front of its return address.
#[test]
fn a_caller_is_on_the_line_of_its_call() {
    check(
        "1: f@a.c:41 < main@a.c:40",
        By::Line,
        expect![[r#"
            a.c:41: 1 100.0% / 1 100.0%
            a.c:40: 0 0.0% / 1 100.0%
        "#]],
    );
}
