//! What is said of numbers that could be misread.

use super::programs::{Hits, Programs};
use crate::lab::heatline;
use serde_json::{Value, json};

const BEFORE: [Hits<'_>; 3] = [("fn1", 400, 100), ("fn2", 400, 100), ("fn3", 200, 100)];

fn written(after: &[Hits<'_>]) -> Programs {
    let programs = Programs::new();
    programs.write("old", &BEFORE);
    programs.write("new", after);
    programs
}

fn text(programs: &Programs, arguments: &[&str]) -> String {
    let output = heatline(programs.root(), &[&["diff", "old", "new"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn code_that_costs_what_it_did_is_not_said_to_be_better() {
    let programs = written(&[("fn1", 400, 100), ("fn2", 400, 100), ("fn3", 1200, 100)]);
    let table = text(&programs, &[]);
    let remark = "note: shares are of the whole, which grew to 2.00 times the baseline's, most of it in fn3: 2 rows have a \
                  lower share though they do not weigh significantly less. The ratio is of weights; --work, ";
    assert!(table.contains(remark), "{table}");
    let fn1 = table.lines().find(|line| line.contains("fn1")).unwrap();
    assert!(fn1.contains("1.00  lower share"), "{fn1}");
    let markdown = text(&programs, &["--format", "markdown"]);
    assert!(markdown.contains("| 40.0 % | 20.0 % | −20.0 pp | −23.5 to −16.5 | 1.00 | `fn1` |"), "{markdown}");
    assert_eq!(markdown.matches("> ℹ️ shares are of the whole, which grew").count(), 1, "{markdown}");
    let document = programs.diff(&["old", "new"]);
    assert_eq!(document["remarks"].as_array().map(Vec::len), Some(1), "{document}");
    // What was asked for is there.
    let per_work = text(&programs, &["--work", "1,1", "--format", "markdown"]);
    assert!(per_work.contains("| 1.00 | ×1.00 (0.87 to 1.15) | `fn1` |") && !per_work.contains("ℹ️"), "{per_work}");
}

#[test]
fn a_whole_that_shrank_lifts_shares() {
    let programs = written(&[("fn1", 50, 100), ("fn2", 400, 100), ("fn3", 200, 100)]);
    let table = text(&programs, &[]);
    assert!(table.contains("which shrank to 0.65 times the baseline's, most of it in fn1: 2 rows have a higher share"));
}

#[test]
fn nothing_is_remarked_where_shares_say_what_weights_say() {
    let longer: Vec<Hits<'_>> = BEFORE.iter().map(|(name, hits, weight)| (*name, 3 * hits, *weight)).collect();
    let elsewhere = [("fn1", 600, 100), ("fn2", 200, 100), ("fn3", 200, 100)];
    let twice_as_many_all_faster = [("fn1", 380, 100), ("fn2", 360, 100), ("fn3", 200, 100)];
    for after in [&longer[..], &elsewhere, &twice_as_many_all_faster] {
        let programs = written(after);
        assert!(!text(&programs, &[]).contains("note:"), "{}", text(&programs, &[]));
        assert_eq!(programs.diff(&["old", "new"]).get("remarks"), None);
    }
    // Every second sample was taken, each for twice as much.
    let programs = written(&[("fn1", 100, 200), ("fn2", 200, 200), ("fn3", 400, 200)]);
    assert!(text(&programs, &[]).contains("1 row has a lower share though it does not weigh significantly less"));
}

#[test]
fn few_samples_are_too_few_to_tell_much() {
    let programs = written(&[("fn1", 10, 100), ("fn2", 7, 100)]);
    let remark = |of: &Value| of["remarks"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
    let document = programs.diff(&["old", "new"]);
    assert!(remark(&document).starts_with("new: 17 samples are few, only great differences"), "{document}");
    assert_eq!(document["warnings"], json!([]));
    assert!(text(&programs, &["--format", "markdown"]).contains("17 samples are few"));
}
