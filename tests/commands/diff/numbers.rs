//! Our own numbers, on recordings that are written by hand.

use super::programs::Programs;
use crate::lab::heatline;
use crate::writer::{EventSpec, Order, Writer};
use serde_json::{Value, json};

fn row<'a>(document: &'a Value, name: &str) -> &'a Value {
    let rows = document["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["function"] == name).unwrap_or_else(|| panic!("no row {name}"))
}

fn names(document: &Value) -> Vec<&str> {
    document["rows"].as_array().unwrap().iter().map(|row| row["function"].as_str().unwrap()).collect()
}

fn close(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - expected).abs() < 5e-5)
}

#[test]
fn rows_carry_both_sides_the_difference_and_its_interval() {
    let programs = Programs::new();
    programs.write_examples();
    let document = programs.diff(&["A", "B"]);
    assert_eq!((&document["version"], &document["compute"]), (&json!(1), &json!("delta-abs")));
    assert_eq!(document["files"][0], json!({ "path": "A", "total": 10_000, "samples": 100, "column": 0 }));
    assert_eq!(document["files"][1]["total"], 20_000);
    assert_eq!(names(&document), ["fn5", "fn1", "fn3", "fn4", "fn2"]);
    let fn1 = row(&document, "fn1");
    assert_eq!(fn1["baseline"], json!({ "weight": 5000, "percent": 50.0, "samples": 50 }));
    assert_eq!((&fn1["status"], &fn1["module"]), (&json!("both"), &json!("app")));
    let new = &fn1["new"][0];
    assert_eq!((&new["weight"], &new["percent"], &new["samples"]), (&json!(4000), &json!(20.0), &json!(40)));
    assert!(close(&new["delta"], -30.0) && close(&new["low"], -40.8182) && close(&new["high"], -18.6194));
    assert_eq!((&new["ratio"], &new["significant"]), (&json!(0.8), &json!(true)));
    let fn4 = &row(&document, "fn4")["new"][0];
    assert!(close(&fn4["low"], -2.0652) && close(&fn4["high"], 10.7015) && close(&fn4["p"], 0.139_649));
    assert!(close(&fn4["p_adjusted"], 0.139_649 * 5.0 / 4.0));
    assert_eq!(fn4["significant"], false);
    let (fn3, fn5) = (row(&document, "fn3"), row(&document, "fn5"));
    assert_eq!((&fn3["status"], &fn5["status"]), (&json!("removed"), &json!("new")));
    assert_eq!((&fn3["new"][0]["weight"], &fn3["new"][0]["samples"]), (&json!(0), &json!(0)));
    assert!(close(&fn3["new"][0]["delta"], -15.0) && close(&fn3["new"][0]["high"], -9.0022));
    assert_eq!(fn5["baseline"], json!({ "weight": 0, "percent": 0.0, "samples": 0 }));
    assert!(fn5["new"][0].get("ratio").is_none());
}

/// pprof subtracts the baseline's weights, and with `-normalize` brings the totals to one before; our weighted difference
/// is the one, our difference of shares the other.
#[test]
fn d9_files_of_pprof_differ_as_pprof_says() {
    let programs = Programs::new();
    programs.write_examples();
    for name in ["A", "B"] {
        let file = format!("{name}.pb.gz");
        let output = heatline(programs.root(), &["export", name, "--to", "pprof", "-o", &file]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let document = programs.diff(&["-c", "wdiff:1,1", "A.pb.gz", "B.pb.gz"]);
    let total = document["files"][0]["total"].as_f64().unwrap();
    let expected =
        [("fn1", -10.0, -30.0), ("fn2", 30.0, 0.0), ("fn3", -15.0, -15.0), ("fn4", 15.0, 5.0), ("fn5", 80.0, 40.0)];
    for (name, of_base, normalized) in expected {
        let new = &row(&document, name)["new"][0];
        assert!(close(&new["delta"], normalized), "{name}: {new}");
        let weight = |side: &Value| side["weight"].as_f64().unwrap();
        let difference = weight(new) - weight(&row(&document, name)["baseline"]);
        assert!((100.0 * difference / total - of_base).abs() < 1e-9, "{name}: {new}");
        // Of a row that one side has not got there is no weighted difference, as in perf.
        assert!(new["wdiff"].is_null() || new["wdiff"].as_f64() == Some(difference), "{name}: {new}");
    }
}

#[test]
fn d11_work_that_was_done_makes_rates_of_samples() {
    let programs = Programs::new();
    programs.write("old", &[("fn1", 100, 100), ("fn2", 5, 100)]);
    programs.write("new", &[("fn1", 260, 100), ("fn2", 12, 100), ("fn4", 6, 100)]);
    let document = programs.diff(&["old", "new", "--work", "10,20"]);
    let rate = |name: &str| row(&document, name)["new"][0]["per_work"].clone();
    let fn1 = rate("fn1");
    assert!(close(&fn1["ratio"], 1.3) && close(&fn1["low"], 1.0284) && close(&fn1["high"], 1.6541), "{fn1}");
    assert!((fn1["p"].as_f64().unwrap() - 0.027_347).abs() < 1e-6);
    let document = programs.diff(&["old", "new", "--work", "1,1"]);
    let rate = |name: &str| row(&document, name)["new"][0]["per_work"].clone();
    let (fn2, fn4) = (rate("fn2"), rate("fn4"));
    assert!(close(&fn2["ratio"], 2.4) && close(&fn2["low"], 0.787) && close(&fn2["high"], 8.696), "{fn2}");
    assert!(close(&fn4["low"], 1.1774) && close(&fn4["p"], 0.03125), "{fn4}");
    assert!(fn4.get("ratio").is_none() && fn4.get("high").is_none());
    let table = heatline(programs.root(), &["diff", "old", "new", "--work", "10,20"]);
    assert!(String::from_utf8_lossy(&table.stdout).contains("×1.30 (1.03 to 1.65)"));
    for units in ["0,1", "-1,2", "nan,1", "inf,1", "1e400,1", "1e-300,1e300", "1,", "many"] {
        let wrong = heatline(programs.root(), &["diff", "old", "new", "--work", units]);
        assert_eq!(wrong.status.code(), Some(2), "{units}");
        assert!(String::from_utf8_lossy(&wrong.stderr).contains("expected numbers above 0"), "{units}");
    }
    let wrong = heatline(programs.root(), &["diff", "old", "new", "--work", "10"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("a number for each of the 2 files"));
}

#[test]
fn a_renamed_function_is_the_same_function() {
    let programs = Programs::new();
    programs.write_examples();
    // Where the text is known, a line is the same line by what it says.
    std::fs::remove_file(programs.path("app.c")).unwrap();
    for by in ["function", "line"] {
        let document = programs.diff(&["A", "B", "--by", by, "--rename", "fn3=fn5"]);
        let renamed = row(&document, "fn5");
        assert_eq!((&renamed["status"], &renamed["baseline"]["samples"]), (&json!("both"), &json!(15)), "{by}");
        assert!(close(&renamed["new"][0]["delta"], 25.0), "{renamed}");
        assert!(!names(&document).contains(&"fn3"));
    }
}

#[test]
fn what_a_rename_does_not_do_is_said() {
    let programs = Programs::new();
    programs.write_examples();
    let warnings = |renames: &[&str]| -> Vec<String> {
        let renames: Vec<&str> = renames.iter().flat_map(|names| ["--rename", names]).collect();
        let document = programs.diff(&[&["A", "B"], &renames[..]].concat());
        document["warnings"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(warnings(&["fn3=fn5"]), [""; 0]);
    assert_eq!(
        warnings(&["fm3=quicksort"]),
        [
            "--rename fm3=quicksort: the baseline has no cost in a function fm3; did you mean fn3?",
            "--rename fm3=quicksort: what is compared has no cost in a function quicksort",
        ]
    );
    let both = " as well; both count as one function";
    assert_eq!(warnings(&["fn3=fn5", "fn1=fn5"]), [format!("--rename fn1=fn5: fn3 is renamed to fn5{both}")]);
    assert_eq!(warnings(&["fn3=fn4"]), [format!("--rename fn3=fn4: the baseline has fn4{both}")]);
    // Two that change places are no doubt.
    assert_eq!(warnings(&["fn1=fn2", "fn2=fn1"]), [""; 0]);
    for (arguments, reason) in [
        (&["--rename", "fn1="][..], "NEW is empty"),
        (&["--rename", "=fn1"], "OLD is empty"),
        (&["--rename", "fn1"], "expected OLD=NEW"),
        (&["--rename", "fn1=fn2", "--rename", "fn1=fn3"], "fn1 is renamed twice"),
        (&["--rename", "fn1=fn2", "--by", "module"], "by function or line"),
    ] {
        let output = heatline(programs.root(), &[&["diff", "A", "B"], arguments].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(errors.contains(reason), "{arguments:?}: {errors}");
    }
}

#[test]
fn options_of_perf_work_on_our_own_rows() {
    let programs = Programs::new();
    programs.write_examples();
    assert_eq!(names(&programs.diff(&["-c", "delta", "A", "B"])), ["fn5", "fn4", "fn2", "fn3", "fn1"]);
    assert_eq!(names(&programs.diff(&["-o", "0", "A", "B"])), ["fn1", "fn2", "fn3", "fn4", "fn5"]);
    // Shares stay those of the whole, other than perf's.
    let paired = programs.diff(&["-b", "A", "B"]);
    assert_eq!(names(&paired), ["fn1", "fn4", "fn2"]);
    assert_eq!(row(&paired, "fn1")["baseline"]["percent"], 50.0);
    let weighted = programs.diff(&["-c", "wdiff:3,1", "A", "B"]);
    assert_eq!(row(&weighted, "fn1")["new"][0]["wdiff"], -11_000);
    let relative = programs.diff(&["A", "B", "-S", "fn1,fn2", "--percentage", "relative"]);
    assert_eq!(row(&relative, "fn1")["baseline"]["percent"], 62.5);
    assert!(close(&row(&relative, "fn1")["new"][0]["delta"], -22.5));
    let second = programs.diff(&["A", "B", "C", "-o", "2"]);
    assert_eq!(names(&second)[..2], ["g1", "fn1"]);
    assert_eq!(row(&second, "fn2")["new"][1]["samples"], 0);
    std::fs::write(programs.path("list"), "fn1\n\nfn4\n").unwrap();
    assert_eq!(names(&programs.diff(&["A", "B", "-S", "file://list"])), ["fn1", "fn4"]);
    let by_comm = programs.diff(&["A", "C", "-s", "comm,dso"]);
    let first = &by_comm["rows"][0];
    assert_eq!((&first["comm"], &first["module"], &first["status"]), (&json!("app"), &json!("app"), &json!("both")));
    let by_cpu = programs.diff(&["A", "B", "-s", "cpu"]);
    assert_eq!(by_cpu["rows"].as_array().unwrap().len(), 4);
    let modules = programs.diff(&["A", "C", "--by", "module"]);
    assert_eq!(modules["rows"][0]["new"][0]["delta"].as_f64().map(f64::abs), Some(40.0));
}

#[test]
fn without_names_the_two_recordings_of_perf_are_compared() {
    let programs = Programs::new();
    programs.write_examples();
    let output = heatline(programs.root(), &["diff"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("perf.data.old: no such file"));
    std::fs::rename(programs.path("A"), programs.path("perf.data.old")).unwrap();
    std::fs::rename(programs.path("B"), programs.path("perf.data")).unwrap();
    assert_eq!(programs.diff(&[])["files"][0]["path"], "perf.data.old");
    assert_eq!(programs.diff(&["C"])["files"][1]["path"], "C");
}

#[test]
fn runs_of_a_side_are_pooled() {
    let programs = Programs::new();
    programs.write_examples();
    programs.write("A2", &[("fn1", 52, 100), ("fn2", 28, 100), ("fn3", 15, 100), ("fn4", 5, 100)]);
    let document = programs.diff(&["--baseline", "A", "--baseline", "A2", "--pool", "B", "B"]);
    assert_eq!(
        document["files"].as_array().unwrap().iter().map(|file| &file["column"]).collect::<Vec<_>>(),
        [0, 0, 1, 1]
    );
    let fn1 = row(&document, "fn1");
    assert_eq!((&fn1["baseline"]["percent"], &fn1["baseline"]["samples"]), (&json!(51.0), &json!(102)));
    assert_eq!((&fn1["new"][0]["samples"], fn1["new"].as_array().unwrap().len()), (&json!(80), 1));
    // That is said of a recording that counts twice.
    let twice = "B: it is pooled with itself, so that runs seem to differ less than they do";
    assert_eq!(document["warnings"], json!([twice]));
    // With a baseline named, every other file is compared with it.
    let apart = programs.diff(&["--baseline", "A", "B", "C"]);
    assert_eq!(row(&apart, "fn1")["new"].as_array().unwrap().len(), 2);
}

#[test]
fn what_does_not_compare_is_said() {
    let programs = Programs::new();
    programs.write_examples();
    let other = EventSpec { config: 1, ..EventSpec::default() };
    programs.write_with(Writer::with_events(Order::Little, vec![other]), "task", &[("fn1", 10, 100)]);
    let document = programs.diff(&["A", "task"]);
    assert!(document["warnings"][0].as_str().unwrap().contains("no samples of cpu-clock; it has task-clock"));
    assert!(document["rows"].as_array().unwrap().iter().all(|row| row["new"] == json!([null])));
    let period = EventSpec { period: 5000, ..EventSpec::default() };
    programs.write_with(Writer::with_events(Order::Little, vec![period]), "period", &[("fn1", 10, 5000)]);
    let document = programs.diff(&["A", "period"]);
    assert!(document["warnings"][0].as_str().unwrap().contains("sampled every 5000, the baseline every 1000"));
    let bytes = std::fs::read(programs.path("B")).unwrap();
    std::fs::write(programs.path("cut"), &bytes[..bytes.len() / 2]).unwrap();
    let document = programs.diff(&["A", "cut"]);
    assert!(document["warnings"].as_array().unwrap().iter().any(|text| text == "cut: the recording ends early"));
}

#[test]
fn an_empty_whole_is_no_number() {
    let programs = Programs::new();
    programs.write_examples();
    let document = programs.diff(&["A", "B", "--comm", "nobody", "--percentage", "relative"]);
    assert_eq!(document["rows"], json!([]));
    let output = heatline(programs.root(), &["diff", "A", "C", "--comm", "other", "--percentage", "relative"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.lines().any(|line| line.contains("g1") && line.contains("n/a")), "{text}");
}

#[test]
fn what_cannot_be_done_is_refused_with_a_reason() {
    let programs = Programs::new();
    programs.write_examples();
    for (arguments, reason) in [
        (&["-c", "cycles"][..], "branch stacks"),
        (&["--cycles-hist"], "-c cycles"),
        (&["--stream"], "branch stacks"),
        (&["-o", "2"], "there are 1 files"),
        (&["-c", "wdiff:0,1"], "other than 0"),
        (&["-t", "."], "a dot"),
        (&["-t", ""], "a text on one line"),
        (&["-t", "\n"], "a text on one line"),
        (&["-", "-"], "standard input can be read once"),
        (&["-", "-s", "cpu"], "reads a recording several times"),
        (&["--time", "1,2:1,2:1,2"], "3 parts for 2 files"),
        // What perf has not got would be left undone without a word.
        (&["--perf", "--fail-on", "+1pp"], "cannot be used with"),
        (&["--perf", "--threshold", "1"], "cannot be used with"),
        (&["--perf", "--inclusive"], "cannot be used with"),
        (&["--perf", "--by", "line"], "cannot be used with"),
        (&["-D", "--fail-on", "+1pp"], "cannot be used with"),
        (&["-D", "--format", "json"], "cannot be used with"),
        (&["--metric", "cycles"], "no metric cycles; it has cpu-clock"),
    ] {
        let output = heatline(programs.root(), &[&["diff", "A", "B"], arguments].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(errors.contains(reason), "{arguments:?}: {errors}");
    }
}

#[test]
fn tables_say_what_is_noise() {
    let programs = Programs::new();
    programs.write_examples();
    let text = |arguments: &[&str]| {
        let output = heatline(programs.root(), &[&["diff", "A", "B"], arguments].concat());
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let table = text(&[]);
    let line = |name: &str| table.lines().find(|line| line.contains(name) && line.contains(" pp ")).unwrap_or_default();
    assert!(line("fn4").contains("+5.0 pp") && line("fn4").contains("within noise (±6.4)"), "{table}");
    assert!(line("fn1").contains("−30.0 pp") && !line("fn1").contains("noise"));
    assert!(line("fn3").contains("removed") && line("fn5").contains("new"));
    assert!(table.contains("one run each"));
    let separated = text(&["-t", ";", "-q"]);
    assert_eq!(separated.lines().count(), 5);
    assert!(separated.lines().next().unwrap().contains(";+40.0 pp;"));
    let csv = text(&["--format", "csv"]);
    assert_eq!(csv.lines().count(), 6);
    assert!(csv.starts_with("column,status,paired_by,baseline_weight"));
}
