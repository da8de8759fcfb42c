//! Costs equal those of `perf report`, on recordings made here.
//!
//! Where the two differ on purpose:
//! - perf looks callers up at the return address itself. A call that is the last instruction of its function is then
//!   given to the function behind it. None of these programs ends a function with a call, but libc does (its thread
//!   start and exit), so inclusive values are compared in the modules that are compiled here.
//! - perf names linkage stubs in `.plt.sec` after the function in front of them (`_init`); Heatline names them after
//!   what they call (`free@plt`). Both are one place here.
//! - perf names kernel functions, Heatline keeps the kernel as one module.

use super::lab::{Lab, report};
use super::perf;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Weight and samples by place.
type Sums<K> = BTreeMap<K, (u64, u64)>;

const OURS: [&str; 2] = ["app", "liblibrary.so"];

fn add<K: Ord>(sums: &mut Sums<K>, key: K, weight: u64, samples: u64) {
    let sum = sums.entry(key).or_default();
    sum.0 += weight;
    sum.1 += samples;
}

fn rows(document: &Value) -> &Vec<Value> {
    document["rows"].as_array().expect("rows")
}

fn text(row: &Value, key: &str) -> Option<String> {
    row.get(key).map(|value| value.as_str().expect("text").to_owned())
}

/// The name of a function as both sides have it.
fn function(name: Option<String>) -> Option<String> {
    name.map(|name| if name.ends_with("@plt") || name == "_init" { "a linkage stub".into() } else { name })
}

fn cost(row: &Value, kind: &str) -> (u64, u64) {
    let cost = &row[kind];
    (cost["weight"].as_u64().expect("a weight"), cost["samples"].as_u64().expect("samples"))
}

/// Compares everything that perf and Heatline both can say of a recording.
fn compare(profile: &Path, events: &[&str], stacks: bool) {
    let by_symbol = perf::table(profile, &["--no-children"], "period,sample,dso,symbol");
    let by_line = perf::table(profile, &["--no-children"], "period,sample,dso,srcline");
    let children = stacks.then(|| perf::table(profile, &["--children"], "overhead_children,dso,symbol"));
    assert_eq!(by_symbol.keys().map(String::as_str).collect::<Vec<_>>(), events);
    for (event, rows_of_perf) in &by_symbol {
        let options = ["--event", event.as_str()];
        compare_totals(&report(profile, &options), event, rows_of_perf);
        let physical = report(profile, &["--by", "function", "--no-inline", options[0], options[1]]);
        compare_symbols(&physical, rows_of_perf);
        compare_lines(&report(profile, &["--by", "line", options[0], options[1]]), &by_line[event]);
        if let Some(children) = &children {
            compare_children(&physical, &children[event]);
        } else {
            assert!(rows(&physical).iter().all(|row| row.get("inclusive").is_none()), "inclusive without stacks");
        }
    }
}

fn compare_totals(document: &Value, event: &str, rows_of_perf: &[Vec<String>]) {
    let id = document["metric"].as_str().unwrap();
    let metric = document["metrics"].as_array().unwrap().iter().find(|metric| metric["id"] == id).unwrap();
    let sum = |at: usize| rows_of_perf.iter().map(|row| row[at].parse::<u64>().unwrap()).sum::<u64>();
    assert!(sum(1) > if event.starts_with("page-faults") { 4 } else { 100 }, "{event}: enough samples to compare");
    assert_eq!((metric["total"].as_u64(), metric["samples"].as_u64()), (Some(sum(0)), Some(sum(1))), "{event}");
}

fn compare_symbols(document: &Value, rows_of_perf: &[Vec<String>]) {
    let mut expected = Sums::new();
    for row in rows_of_perf.iter().filter(|row| OURS.contains(&perf::module(&row[2]).as_str())) {
        let key = (perf::module(&row[2]), function(perf::symbol(&row[3])));
        add(&mut expected, key, row[0].parse().unwrap(), row[1].parse().unwrap());
    }
    let mut found = Sums::new();
    for row in rows(document).iter().filter(|row| is_ours(row)) {
        let (weight, samples) = cost(row, "exclusive");
        if samples > 0 {
            add(&mut found, (text(row, "module").unwrap(), function(text(row, "function"))), weight, samples);
        }
    }
    assert_eq!(found, expected);
}

fn is_ours(row: &Value) -> bool {
    text(row, "module").is_some_and(|module| OURS.contains(&module.as_str()))
}

fn compare_lines(document: &Value, rows_of_perf: &[Vec<String>]) {
    let mut expected = Sums::new();
    for row in rows_of_perf.iter().filter(|row| OURS.contains(&perf::module(&row[2]).as_str())) {
        // Code without a line is shown as symbol and offset.
        let line = row[3].rsplit_once(':').filter(|(_, line)| line.parse::<u32>().is_ok_and(|line| line > 0));
        let line = line.map(|_| row[3].clone());
        add(&mut expected, (perf::module(&row[2]), line), row[0].parse().unwrap(), row[1].parse().unwrap());
    }
    let mut found = Sums::new();
    for row in rows(document).iter().filter(|row| is_ours(row)) {
        let (weight, samples) = cost(row, "exclusive");
        let line = text(row, "file").map(|file| format!("{}:{}", perf::module(&file), row["line"]));
        if samples > 0 {
            add(&mut found, (text(row, "module").unwrap(), line), weight, samples);
        }
    }
    assert_eq!(found, expected);
}

/// perf prints shares with two decimals, one row per symbol, so the two `helper`s of one module are two rows there.
fn compare_children(document: &Value, rows_of_perf: &[Vec<String>]) {
    let mut expected: BTreeMap<(String, Option<String>), (f64, f64)> = BTreeMap::new();
    for row in rows_of_perf.iter().filter(|row| OURS.contains(&perf::module(&row[1]).as_str())) {
        let entry = expected.entry((perf::module(&row[1]), function(perf::symbol(&row[2])))).or_default();
        entry.0 += row[0].trim_end_matches('%').parse::<f64>().unwrap();
        entry.1 += 0.005 + 1e-9;
    }
    let mut found: BTreeMap<(String, Option<String>), f64> = BTreeMap::new();
    for row in rows(document).iter().filter(|row| is_ours(row)) {
        let percent = row["inclusive"]["percent"].as_f64().unwrap();
        *found.entry((text(row, "module").unwrap(), function(text(row, "function")))).or_default() += percent;
    }
    for (key, &(percent, slack)) in &expected {
        let ours = found.get(key).copied().unwrap_or(0.0);
        assert!((ours - percent).abs() <= slack, "{key:?}: {ours} instead of {percent}");
    }
    let unknown: Vec<_> = found.keys().filter(|key| !expected.contains_key(*key)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn frame_pointer_chains_of_threads_and_processes() {
    let lab = Lab::new();
    let profile = lab.record("perf.data", &["-e", "cpu-clock:u", "-c", "250000", "--call-graph", "fp"]);
    compare(&profile, &["cpu-clock:u"], true);
    filters_equal_perfs(&profile);
    calls_equal_perfs(&profile);
}

/// Every edge between two functions compiled here, once per sample, as summed from the chains of `perf script`.
fn calls_equal_perfs(profile: &Path) {
    let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (weight, frames) in perf::chains(profile) {
        let ours = |frame: &(String, Option<String>)| OURS.contains(&frame.0.as_str()) && frame.1.is_some();
        let pairs = frames.windows(2).filter(|pair| pair.iter().all(ours));
        let edges: BTreeSet<_> = pairs.map(|pair| (pair[1].1.clone().unwrap(), pair[0].1.clone().unwrap())).collect();
        for (caller, callee) in edges.into_iter().filter(|(_, callee)| !callee.ends_with("@plt") && callee != "_init") {
            *expected.entry((caller, callee)).or_default() += weight;
        }
    }
    let document = report(profile, &["--no-inline", "--calls"]);
    let mut found: BTreeMap<(String, String), u64> = BTreeMap::new();
    for row in rows(&document).iter().filter(|row| is_ours(row) && row.get("function").is_some()) {
        for call in row["callees"].as_array().unwrap().iter().filter(|call| is_ours(call)) {
            if let Some(callee) = text(call, "function").filter(|callee| !callee.ends_with("@plt")) {
                let weight = call["cost"]["weight"].as_u64().unwrap();
                *found.entry((text(row, "function").unwrap(), callee)).or_default() += weight;
            }
        }
    }
    assert_eq!(found, expected);
    assert!(found.len() >= 8 && found.contains_key(&("even".into(), "odd".into())), "{found:?}");
    // The same edge seen from the callee.
    let edge = |row: &str, list: &str, other: &str| {
        let row = rows(&document).iter().find(|found| text(found, "function").as_deref() == Some(row)).unwrap();
        let call = row[list].as_array().unwrap().iter().find(|call| call["function"] == other).unwrap();
        call["cost"].clone()
    };
    assert_eq!(edge("even", "callees", "odd"), edge("odd", "callers", "even"));
}

/// Thread filters choose samples, module filters choose rows; the whole stays the whole.
fn filters_equal_perfs(profile: &Path) {
    for filter in [["--comm", "first"], ["--dso", "liblibrary.so"]] {
        // perf adds filtered and unfiltered samples of an entry together unless what is filtered is a key.
        let mut options = vec!["--no-children"];
        options.extend(filter);
        let expected = perf::table(profile, &options, "period,sample,comm,dso,symbol");
        let expected: u64 = expected["cpu-clock:u"].iter().map(|row| row[0].parse::<u64>().unwrap()).sum();
        let document = report(profile, &["--no-inline", filter[0], filter[1]]);
        let found: u64 = rows(&document).iter().map(|row| cost(row, "exclusive").0).sum();
        assert_eq!(found, expected, "{filter:?}");
        assert!(found > 0);
        let total = document["metrics"][0]["total"].as_u64().unwrap() as f64;
        for row in rows(&document) {
            let (weight, _) = cost(row, "exclusive");
            let percent = row["exclusive"]["percent"].as_f64().unwrap();
            assert!((percent - 100.0 * weight as f64 / total).abs() < 1e-9);
        }
    }
}

#[test]
fn several_events_with_sampled_kernel() {
    let lab = Lab::new();
    let profile = lab.record("perf.data", &["-e", "cpu-clock,task-clock,page-faults", "-F", "2000", "-g"]);
    compare(&profile, &["cpu-clock", "page-faults", "task-clock"], true);
}

#[test]
fn mappings_with_build_ids() {
    let lab = Lab::new();
    let profile = lab.record("perf.data", &["--buildid-mmap", "-e", "cpu-clock:u", "-F", "2500", "-g"]);
    compare(&profile, &["cpu-clock:u"], true);
}

#[test]
fn samples_without_stacks() {
    let lab = Lab::new();
    let profile = lab.record("perf.data", &["-e", "cpu-clock:u", "-F", "2500"]);
    compare(&profile, &["cpu-clock:u"], false);
}
