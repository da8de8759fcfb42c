//! What a pipeline and a code review are given.

use super::programs::Programs;
use crate::lab::heatline;
use serde_json::{Value, json};

fn run(programs: &Programs, arguments: &[&str]) -> (Option<i32>, String) {
    let output = heatline(programs.root(), &[&["diff", "A", "B"], arguments].concat());
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
}

#[test]
fn a_pull_request_gets_a_table_of_what_changed() {
    let programs = Programs::new();
    programs.write_examples();
    let (status, text) = run(&programs, &["--fail-on", "+2pp", "--format", "markdown"]);
    assert_eq!(status, Some(1));
    assert!(text.starts_with("### Heatline: ❌ 1 significant difference beyond +2.0 pp\n"));
    assert!(text.contains("| ❌ | new | 40.0 % | +40.0 pp | +32.5 to +46.9 | `fn5` |"), "{text}");
    assert!(
        text.contains("| ▼ | 15.0 % | removed | −15.0 pp |")
            && text.contains("2 other rows are within noise or below the threshold.")
    );
    assert!(!text.contains("`fn4`"));
}

#[test]
fn a_review_shows_regressions_on_their_lines() {
    let programs = Programs::new();
    programs.write_examples();
    let (_, text) = run(&programs, &["--by", "line", "--fail-on", "+2pp", "--format", "sarif"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["version"], "2.1.0");
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
