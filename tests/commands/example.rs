//! The bundled example, as the README shows it.

use super::lab::{heatline, report};
use super::perf as oracle;
use std::path::{Path, PathBuf};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/quickstart").canonicalize().expect("the example")
}

/// A place of the example that is not its own folder, so that nothing is found by accident.
fn annotate(arguments: &[&str]) -> String {
    let elsewhere = tempfile::tempdir().unwrap();
    let folder = example();
    let all = [&["annotate", folder.to_str().unwrap()], arguments].concat();
    let output = heatline(elsewhere.path(), &all);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn annotated_source_has_perfs_share_on_the_hottest_line() {
    let text = annotate(&[]);
    let rows = report(&example().join("perf.data"), &["--by", "line"]);
    let hottest = &rows["rows"][0];
    let line = hottest["line"].as_u64().unwrap();
    let source = std::fs::read_to_string(example().join("src/tree.cpp")).unwrap();
    let source = source.lines().nth(line as usize - 1).unwrap();
    let percent = format!("{:.1} %", hottest["exclusive"]["percent"].as_f64().unwrap());
    let shown = text.lines().find(|shown| shown.contains(&format!("{line}  {source}"))).expect("the hottest line");
    assert!(shown.trim_start().starts_with(&percent), "{shown}");
    // By srcline perf has the same samples on that line. Its addr2line needs the binary at the recorded path's end.
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("quickstart")).unwrap();
    std::fs::copy(example().join("neighbours"), folder.path().join("quickstart/neighbours")).unwrap();
    let profile = folder.path().join("perf.data");
    std::fs::copy(example().join("perf.data"), &profile).unwrap();
    let symfs = folder.path().to_str().unwrap();
    let lines = oracle::table(&profile, &["--no-children", "--symfs", symfs], "sample,srcline");
    let (_, lines) = lines.into_iter().next().unwrap();
    let same = lines.iter().find(|row| row[1] == format!("tree.cpp:{line}")).expect("perf has the line");
    assert_eq!(same[0], hottest["exclusive"]["samples"].to_string());
}

#[test]
fn every_line_in_json_is_a_line_of_its_file() {
    let document: serde_json::Value = serde_json::from_str(&annotate(&["--format", "json"])).unwrap();
    let files = document["files"].as_array().unwrap();
    assert!(files.iter().any(|file| file["file"].as_str().unwrap().ends_with("/src/vector.h")));
    for file in files.iter().filter(|file| file.get("path").is_some()) {
        let text = std::fs::read_to_string(file["path"].as_str().unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for line in file["lines"].as_array().unwrap() {
            assert_eq!(line["text"].as_str().unwrap(), lines[line["line"].as_u64().unwrap() as usize - 1]);
        }
    }
}

#[test]
fn one_file_can_be_chosen() {
    let text = annotate(&["--source", "histogram.cpp"]);
    assert!(text.contains("histogram.cpp") && !text.contains("tree.cpp"));
}
