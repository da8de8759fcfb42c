//! Recordings of other formats, compared.

use super::programs::Programs;
use crate::lab::{check_compared, heatline, report};
use crate::spt::Fixture;
use serde_json::{Value, json};
use std::path::Path;

#[path = "../../../fixtures/spe/forge.rs"]
mod forge;

fn diff(folder: &Path, arguments: &[&str]) -> Value {
    let output = heatline(folder, &[&["diff", "--format", "json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn programs_of_spt_files_are_one_by_their_guid_whatever_their_name() {
    let fixture = Fixture::new("x86_64");
    fixture.sampled("old.spt", fixture.id);
    let folder = fixture.path("old.spt").parent().unwrap().to_owned();
    fixture.sampled_as("new.spt", "renamed.exe", fixture.id);
    for by in ["function", "line", "module"] {
        let document = diff(&folder, &["old.spt", "new.spt", "--by", by]);
        assert_eq!(document["metric"], "spt:etw-instr");
        let rows = document["rows"].as_array().unwrap();
        assert!(!rows.is_empty());
        assert!(rows.iter().all(|row| row["status"] == "both" && row["new"][0]["delta"] == 0.0), "{by}");
    }
    // Another build of the same name.
    let other = heatline_profile::PdbId { age: fixture.id.age + 1, ..fixture.id };
    fixture.sampled("other.spt", other);
    let document = diff(&folder, &["old.spt", "other.spt", "--by", "module"]);
    assert_eq!(document["rows"][0]["status"], "both");
    let output = heatline(&folder, &["diff", "old.spt", "new.spt", "--comm", "start"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn spe_recordings_compare_by_any_metric() {
    let folder = tempfile::tempdir().unwrap();
    let program = forge::Program::build(folder.path());
    std::fs::write(folder.path().join("old"), program.recording(1000).file()).unwrap();
    std::fs::write(folder.path().join("new"), program.recording(2000).file()).unwrap();
    let metrics = ["spe:records", "spe:total-latency", "spe:total-latency-p95", "spe:l1d-miss", "spe:l1d-miss-rate"];
    for metric in metrics {
        let document = diff(folder.path(), &["old", "new", "--metric", metric]);
        assert_eq!(document["metric"], metric);
        let rows = document["rows"].as_array().unwrap();
        assert!(rows.iter().any(|row| row["status"] == "both"), "{metric}");
        for row in rows {
            let (before, new) = (&row["baseline"], &row["new"][0]);
            let points = new["percent"].as_f64().unwrap() - before["percent"].as_f64().unwrap();
            assert!(new["delta"].as_f64().is_none_or(|delta| (delta - points).abs() < 1e-9), "{metric}: {row}");
        }
    }
    // A rate is a share of the row's own loads.
    let document = diff(folder.path(), &["old", "old", "--metric", "spe:l1d-miss-rate"]);
    let row = document["rows"].as_array().unwrap().iter().find(|row| row["baseline"]["weight"] != 0).unwrap();
    let number = |key: &str| row["baseline"][key].as_f64().unwrap();
    assert!((number("percent") - 100.0 * number("weight") / number("samples")).abs() < 1e-9);
}

#[test]
fn recordings_of_branches_have_the_costs_of_all_that_was_recorded() {
    let programs = Programs::new();
    programs.write_branches("A", &[("fn1", 50, 100), ("fn2", 30, 100), ("fn3", 20, 100)]);
    let called = report(&programs.path("A"), &["--calls"]);
    let rows = called["rows"].as_array().unwrap();
    let main = rows.iter().find(|row| row["function"] == "main").expect("the caller");
    assert_eq!(main["callees"].as_array().map(Vec::len), Some(3), "{main}");
    check_compared(&programs.path("A"));
    // With everything that was called, the caller has all.
    let document = programs.diff(&["A", "A", "--inclusive"]);
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.iter().find(|row| row["function"] == "main").unwrap()["baseline"]["weight"], 10_000);
}

#[test]
fn a_frozen_baseline_compares_as_the_recording_it_was_made_of() {
    let programs = Programs::new();
    programs.write_examples();
    let output = heatline(programs.root(), &["freeze", "A", "-o", "a.heatline"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for by in ["function", "line", "module"] {
        let (frozen, live) = (programs.diff(&["a.heatline", "B", "--by", by]), programs.diff(&["A", "B", "--by", by]));
        assert_eq!(frozen["rows"], live["rows"], "{by}");
        assert_eq!(frozen["warnings"], json!([]));
    }
}
