//! Frozen profiles: the costs of the live profile, when neither binaries nor sources are there any more.

use super::lab::{Lab, heatline, report};
use serde_json::Value;
use std::path::Path;

/// What a command prints, which must succeed.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = heatline(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A report without what is of the machine: the names of files that were found, and what is in them today.
fn costs(profile: &Path, arguments: &[&str]) -> Value {
    let mut document = report(profile, arguments);
    let profile = document["profile"].as_object_mut().expect("a profile");
    profile.remove("path");
    profile.remove("kind");
    for module in document["coverage"]["by_module"].as_array_mut().expect("modules") {
        module.as_object_mut().expect("a module").remove("binary");
    }
    // Where a line is in the file of today is told of files that are here.
    for row in document["rows"].as_array_mut().expect("rows") {
        row.as_object_mut().expect("a row").retain(|key, _| key != "placement" && key != "line_now");
    }
    document
}

/// The rows of a comparison by line and the remarks on it.
fn difference(folder: &Path, baseline: &str, new: &str) -> (Value, Value) {
    let mut document: Value =
        serde_json::from_str(&printed(folder, &["diff", baseline, new, "--by", "line", "--format", "json"]))
            .expect("JSON");
    (document["rows"].take(), document["problems"].take())
}

const VIEWS: [&[&str]; 9] = [
    &["--by", "line"],
    &["--by", "function"],
    &["--by", "file"],
    &["--by", "module"],
    &["--by", "thread"],
    &["--by", "event"],
    &["--by", "line", "--no-inline"],
    &["--by", "function", "--calls"],
    &["--comm", "first", "--dso", "liblibrary.so", "--percentage", "relative"],
];

#[test]
fn a_frozen_profile_gives_the_costs_of_the_live_one_without_its_binaries_and_sources() {
    let lab = Lab::new();
    let live = lab.record("perf.data", &["-g", "-e", "cpu-clock", "-F", "2000"]);
    let away = tempfile::tempdir().expect("a folder");
    let frozen = away.path().join("before.heatline");
    let frozen_name = frozen.to_str().expect("a plain name");
    printed(live.parent().expect("a folder"), &["freeze", "perf.data", "-o", frozen_name]);
    let expected: Vec<Value> = VIEWS.iter().map(|view| costs(&live, view)).collect();
    let annotated = printed(live.parent().expect("a folder"), &["annotate", "perf.data", "--source", "other.c"]);
    let same = difference(live.parent().expect("a folder"), "perf.data", "perf.data");
    assert_eq!(difference(live.parent().expect("a folder"), frozen_name, "perf.data"), same);
    drop(lab);
    for (view, expected) in VIEWS.iter().zip(expected) {
        assert_eq!(costs(&frozen, view), expected, "{view:?}");
    }
    assert_eq!(report(&frozen, &[])["profile"]["kind"], "heatline");
    let text = printed(away.path(), &["annotate", "before.heatline", "--source", "other.c"]);
    assert!(text.contains("this is the text that was profiled"), "{text}");
    let body = |text: &str| {
        let lines = text.lines().skip_while(|line| !line.contains("exclusive  "));
        lines.filter(|line| !line.starts_with("  (")).collect::<Vec<_>>().join("\n")
    };
    assert!(text.contains("hash = odd(depth - 1, hash);"), "{text}");
    assert_eq!(body(&text), body(&annotated));
    // Twice the same, and frozen again the same.
    printed(away.path(), &["freeze", "before.heatline", "-o", "again.heatline"]);
    assert_eq!(costs(&away.path().join("again.heatline"), &[]), costs(&frozen, &[]));
    let doubled = printed(away.path(), &["report", "before.heatline", "again.heatline", "--format", "json"]);
    let doubled: Value = serde_json::from_str(&doubled).expect("JSON");
    let total = |document: &Value| document["metrics"][0]["total"].as_u64().expect("a number");
    assert_eq!(total(&doubled), 2 * total(&report(&frozen, &[])));
}

#[test]
fn the_same_recording_freezes_to_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/quickstart/perf.data");
    for name in ["a.heatline", "b.heatline"] {
        printed(folder.path(), &["freeze", profile, "-o", name]);
    }
    let read = |name| std::fs::read(folder.path().join(name)).expect("a file");
    assert_eq!(read("a.heatline"), read("b.heatline"));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2, "no temporary file is left");
}

#[test]
fn freezing_replaces_frozen_profiles_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/quickstart/perf.data");
    std::fs::write(folder.path().join("notes.txt"), "mine").expect("a file");
    let freeze = |more: &[&str]| heatline(folder.path(), &[&["freeze", profile, "-o"], more].concat());
    let refused = freeze(&["notes.txt"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--force"));
    assert_eq!(std::fs::read_to_string(folder.path().join("notes.txt")).expect("a file"), "mine");
    assert!(freeze(&["notes.txt", "--force"]).status.success());
    assert!(freeze(&["notes.txt"]).status.success(), "a frozen profile, whatever its name");
    let folder_refused = freeze(&["."]);
    assert_eq!(folder_refused.status.code(), Some(2));
}

#[test]
fn what_a_frozen_profile_cannot_do_is_an_error_that_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/quickstart/perf.data");
    printed(folder.path(), &["freeze", profile, "-o", "a.heatline"]);
    let refused = |arguments: &[&str], expected: &str| {
        let output = heatline(folder.path(), arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{message}");
    };
    refused(&["report", "a.heatline", "--time", "1,2"], "added up");
    refused(&["report", "a.heatline", "--time", "10%-20%"], "added up");
    refused(&["freeze", profile, "-o", "b.heatline", "--comm", "x"], "--comm: freeze keeps all samples");
    let whole = std::fs::read(folder.path().join("a.heatline")).expect("a file");
    std::fs::write(folder.path().join("cut.heatline"), &whole[..whole.len() - 100]).expect("a file");
    refused(&["report", "cut.heatline"], "cut.heatline: not a whole frozen profile");
}
