//! What a pipeline and a code review are given.

use super::programs::Programs;
use crate::lab::heatline;
use serde_json::{Value, json};

fn run(programs: &Programs, arguments: &[&str]) -> (Option<i32>, String) {
    run_on(programs, &["A", "B"], arguments)
}

fn run_on(programs: &Programs, files: &[&str], arguments: &[&str]) -> (Option<i32>, String) {
    let output = heatline(programs.root(), &[&["diff"], files, arguments].concat());
    (output.status.code(), String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn only_a_significant_regression_beyond_the_limit_fails() {
    let programs = Programs::new();
    programs.write_examples();
    for (limit, status) in [("+2pp", 1), ("+39pp", 1), ("+40pp", 0), ("+50pp", 0), ("-20pp", 1), ("-30pp", 0)] {
        assert_eq!(run(&programs, &["--fail-on", limit]).0, Some(status), "{limit}");
    }
    // fn4 is up by five points, which is noise.
    assert_eq!(run(&programs, &["--fail-on", "+2pp", "-S", "fn4"]).0, Some(0));
    let (_, text) = run(&programs, &["--fail-on", "+2pp"]);
    assert!(text.ends_with("beyond +2.0 pp:\n  +40.0 pp fn5\n"), "{text}");
    let document = programs.diff(&["A", "B", "--fail-on", "+2pp"]);
    assert_eq!((document["failed"].as_array().unwrap().len(), &document["failed"][0]["function"]), (1, &json!("fn5")));
    assert!(document["failed"][0]["delta"].as_f64().is_some_and(|delta| (delta - 40.0).abs() < 1e-9));
    let output = heatline(programs.root(), &["diff", "A", "B", "--fail-on", "much"]);
    assert_eq!(output.status.code(), Some(2));
    // That nothing was compared is no sign that nothing got worse.
    let nothing = ["--fail-on", "+2pp", "-S", "nowhere", "--percentage", "relative"];
    assert_eq!(run(&programs, &nothing).0, Some(2));
    assert_eq!(run(&programs, &["--fail-on", "+2pp", "-S", "nowhere"]).0, Some(2));
}

#[test]
fn a_pull_request_gets_a_table_of_what_changed() {
    let programs = Programs::new();
    programs.write_examples();
    let (status, text) = run(&programs, &["--fail-on", "+2pp", "--format", "markdown"]);
    assert_eq!(status, Some(1));
    assert!(text.starts_with("### Heatline: ❌ 1 significant difference beyond +2.0 pp\n"));
    assert!(text.contains("| ❌ | new | 40.0 % | +40.0 pp | +32.5 to +46.9 |  | `fn5` |"), "{text}");
    assert!(
        text.contains("| ▼ | 15.0 % | removed | −15.0 pp |")
            && text.contains("2 other rows are within noise or below the threshold.")
    );
    assert!(!text.contains("`fn4`"));
    let (_, text) = run(&programs, &["--format", "markdown", "--limit", "1"]);
    assert!(text.contains("… 2 more significant differences; --limit 3 shows all."), "{text}");
    assert!(text.contains("2 other rows are within noise") && !text.contains("`fn1`"), "{text}");
}

#[test]
fn a_side_without_samples_is_no_good_news() {
    let programs = Programs::new();
    programs.write_examples();
    programs.write("none", &[]);
    for (files, empty) in [(["none", "A"], "none"), (["A", "none"], "none")] {
        let (status, text) = run_on(&programs, &files, &["--fail-on", "+2pp", "--format", "markdown"]);
        assert_eq!(status, Some(2));
        assert!(text.starts_with(&format!("### Heatline: ❌ nothing compared: {empty} has no cost\n")), "{text}");
        assert!(!text.contains("within noise") && text.contains("compare with care: none: no samples of"), "{text}");
        let (status, text) = run_on(&programs, &files, &[]);
        assert!(status == Some(0) && !text.contains("no significant"), "{text}");
    }
}

#[test]
fn names_of_recordings_are_text_in_a_review_and_nothing_else() {
    let programs = Programs::new();
    let before = "a <b>|*bold*|";
    programs.write(before, &[("fn1", 5, 100)]);
    programs.write("B", &[("fn1", 500, 100)]);
    let (_, text) = run_on(&programs, &[before, "B"], &["--format", "markdown"]);
    assert!(text.contains("- baseline: `a <b>|*bold*|`, 5 samples"), "{text}");
    assert!(text.contains(r"> ℹ️ a \<b\>\|\*bold\*\|: 5 samples are few"), "{text}");
}

#[test]
fn a_review_shows_regressions_on_their_lines() {
    let programs = Programs::new();
    programs.write_examples();
    let (_, text) = run(&programs, &["--by", "line", "--fail-on", "+2pp", "--format", "sarif"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    check_sarif(&document);
    let run = &document["runs"][0];
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 1, "improvements are nothing to review");
    let result = &results[0];
    assert_eq!((&result["level"], &result["ruleId"]), (&json!("error"), &json!("performance-limit")));
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules[result["ruleIndex"].as_u64().unwrap() as usize]["id"], result["ruleId"]);
    let place = &result["locations"][0]["physicalLocation"];
    // Functions of the program are one line each.
    assert_eq!(place["region"]["startLine"], 5);
    assert_eq!(place["artifactLocation"], json!({ "uri": "app.c", "uriBaseId": "SRCROOT" }));
    assert!(run["originalUriBaseIds"]["SRCROOT"]["uri"].as_str().unwrap().starts_with("file:///"));
    assert!(result["message"]["text"].as_str().unwrap().contains("+40.0 pp of cpu-clock"));
    // Recorded elsewhere, the file is where the person says it is.
    let map = format!("{}=elsewhere", programs.root().display());
    std::fs::create_dir(programs.path("elsewhere")).unwrap();
    std::fs::rename(programs.path("app.c"), programs.path("elsewhere/app.c")).unwrap();
    let (_, text) = self::run(&programs, &["--by", "line", "--format", "sarif", "--source-map", &map]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let place = &document["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"], json!({ "uri": "elsewhere/app.c", "uriBaseId": "SRCROOT" }));
}

/// What SARIF 2.1.0 asks for, as far as we use it: addresses are whole or relative to a base that is declared, without
/// `.` and `..`, lines count from 1, and every result names its rule.
#[track_caller]
fn check_sarif(document: &Value) {
    assert_eq!(document["version"], "2.1.0");
    for run in document["runs"].as_array().unwrap() {
        for (_, base) in run["originalUriBaseIds"].as_object().unwrap() {
            let uri = base["uri"].as_str().unwrap();
            assert!(uri.starts_with("file:///") && uri.ends_with('/'), "{uri}");
        }
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        for result in run["results"].as_array().unwrap() {
            let rule = &rules[result["ruleIndex"].as_u64().unwrap() as usize];
            assert_eq!(rule["id"], result["ruleId"]);
            assert!(["none", "note", "warning", "error"].map(Value::from).contains(&result["level"]));
            assert!(!result["message"]["text"].as_str().unwrap().is_empty());
            for place in result["locations"].as_array().unwrap() {
                let Some(place) = place.get("physicalLocation") else { continue };
                check_place(place, &run["originalUriBaseIds"]);
            }
        }
    }
}

#[track_caller]
fn check_place(place: &Value, bases: &Value) {
    let uri = place["artifactLocation"]["uri"].as_str().unwrap();
    match place["artifactLocation"].get("uriBaseId") {
        Some(base) => {
            assert!(bases.get(base.as_str().unwrap()).is_some(), "{base}");
            assert!(!uri.starts_with('/') && !uri.contains(':'), "{uri}");
        }
        None => assert!(uri.starts_with("file://"), "{uri}"),
    }
    assert!(!uri.split('/').any(|part| part == "." || part == ".."), "{uri}");
    assert!(place.get("region").is_none_or(|region| region["startLine"].as_u64() > Some(0)));
}

#[test]
fn a_review_never_names_a_file_that_nobody_could_find() {
    let programs = Programs::new();
    programs.write("A", &[("fn1", 80, 100), ("fn2", 20, 100)]);
    programs.write("B", &[("fn1", 10, 100), ("fn2", 50, 100), ("g1", 40, 100)]);
    let places = |by: &str| {
        let (_, text) = self::run(&programs, &["--by", by, "--format", "sarif"]);
        let document: Value = serde_json::from_str(&text).unwrap();
        check_sarif(&document);
        let results = document["runs"][0]["results"].as_array().unwrap();
        let of = |result: &Value| result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].clone();
        results.iter().map(of).collect::<Vec<_>>()
    };
    // Both are in the folder, whatever debug information says.
    assert_eq!(places("line"), ["x.c", "app.c"]);
    assert_eq!(places("file"), ["x.c"]);
    for name in ["app.c", "x.c"] {
        std::fs::remove_file(programs.path(name)).unwrap();
    }
    // One was recorded with its folder, the other without.
    assert_eq!(places("line"), [Value::Null, "app.c".into()]);
    assert_eq!(places("module"), [Value::Null]);
}
