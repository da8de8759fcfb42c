//! What is said of files that were written, and the help of the commands that write them.

use super::lab::heatline;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/quickstart").canonicalize().unwrap()
}

#[test]
fn what_was_written_is_said_on_one_line() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, name, what) in [
        (&["freeze"][..], "a.heatline", "1\u{202f}320 samples of cpu-clock and "),
        (&["export", "--to", "pprof"], "a.pb.gz", "1\u{202f}320 samples of cpu-clock for pprof"),
        (&["export", "--to", "speedscope"], "a.json", "1\u{202f}320 samples of cpu-clock for speedscope"),
        (&["export", "--to", "firefox"], "b.json", "1\u{202f}320 samples of cpu-clock for profiler.firefox.com"),
    ] {
        let path = folder.path().join(name);
        let run = |output: &str| heatline(&example(), &[arguments, &["perf.data", "-o", output]].concat());
        let output = run(path.to_str().unwrap());
        let text = String::from_utf8(output.stdout).unwrap();
        let written = std::fs::read(&path).unwrap();
        let size = format!("{:.1} kB", written.len() as f64 / 1000.0);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(text.starts_with(&format!("{}: {size}, {what}", path.display())), "{text}{errors}");
        assert!(text.lines().count() == 1 && (name != "a.heatline" || text.ends_with(" source texts\n")), "{text}");
        let output = run("-");
        assert!(output.stdout == written, "standard output holds what the file holds");
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.starts_with(&format!("heatline: standard output: {size}, {what}")), "{errors}");
    }
}

#[test]
fn help_names_the_options_that_mean_something() {
    let help = |command: &str| String::from_utf8(heatline(&example(), &[command, "--help"]).stdout).unwrap();
    let (freeze, export) = (help("freeze"), help("export"));
    for option in ["--limit", "--percentage", "--format", "--coverage", "--dso", "--symbol "] {
        assert!(!freeze.contains(option) && !export.contains(option), "{option}");
        assert!(help("report").contains(option), "{option}");
    }
    assert!(export.contains("--comm") && export.contains("--metric") && export.contains("--time"));
    assert!(!freeze.contains("--comm") && !freeze.contains("--metric") && freeze.contains("--time"));
    // They are refused with a reason all the same.
    let output = heatline(&example(), &["freeze", "perf.data", "-o", "never", "--limit", "3"]);
    assert!(
        output.status.code() == Some(2)
            && String::from_utf8_lossy(&output.stderr).contains("--limit: freeze keeps all")
    );
}

#[test]
fn one_more_is_not_several() {
    let last = |arguments: &[&str]| {
        let text = String::from_utf8(heatline(&example(), arguments).stdout).unwrap();
        text.lines().last().unwrap_or_default().to_owned()
    };
    let count = |limit: &str| last(&["report", "perf.data", "--by", "module", "--limit", limit]);
    assert!(count("3").starts_with("… 1 more row; "), "{}", count("3"));
    assert!(count("2").starts_with("… 2 more rows; "), "{}", count("2"));
    let all = heatline(&example(), &["annotate", "perf.data", "--format", "json"]).stdout;
    let all = serde_json::from_slice::<Value>(&all).unwrap()["files"].as_array().unwrap().len();
    let files = last(&["annotate", "perf.data", "--limit", &(all - 1).to_string()]);
    assert!(files.starts_with(&format!("… 1 more file; --limit {all} shows all")), "{files}");
}

#[test]
fn what_stands_in_the_wrong_place_is_told_where_it_belongs() {
    for (arguments, message) in [
        (&["perf.data"][..], "heatline: to see a profile: heatline report perf.data"),
        (&["resolve", "perf.data", "0x10"], "expected a binary, found a profile; 'heatline report perf.data' shows it"),
    ] {
        let output = heatline(&example(), arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && errors.contains(message), "{errors}");
    }
    let output = heatline(&example(), &["resolve", "neighbours", "add"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("add: taken as the address 0xadd"));
}

#[test]
fn a_name_in_the_place_of_an_address_is_told_how_to_look_it_up() {
    let output = heatline(&example(), &["resolve", "neighbours", "search"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("'nm -C neighbours | grep search' tells the address of a function"), "{errors}");
}
