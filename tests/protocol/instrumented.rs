//! A workspace with the recording of an instrumented program.

use crate::client::{Client, all_of};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "#include <unistd.h>
volatile long sink;
__attribute__((noipa)) void work(void) {
    for (long i = 0; i < 300000; i++)
        sink += i;
}
__attribute__((noipa)) void nap(void) {
    usleep(20000);
}
__attribute__((noipa)) void step(void) {
    for (long i = 0; i < 200000; i++)
        sink += i;
}
int main(void) {
    for (int i = 0; i < 3; i++)
        work();
    nap();
    step();
    step();
    return 0;
}
";

fn run(folder: &Path, program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).current_dir(folder).output().expect("an installed program");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn times_and_calls_stand_above_functions_and_on_the_lines_that_call() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::write(root.join("program.c"), PROGRAM).unwrap();
    run(root, "gcc", &["-g", "-O1", "-pg", "program.c", "-o", "program"]);
    run(root, "uftrace", &["record", "-d", "uftrace.data", "./program"]);
    let mut client = Client::start(root, &[]);
    client.initialize(root, json!({}));
    client.notify("initialized", json!({}));
    let status = client.status("ready");
    assert_eq!((&status["profile"]["kind"], &status["metric"]), (&json!("uftrace"), &json!("elapsed")));
    let (uri, _) = client.open(&root.join("program.c"));
    let lenses = client.call("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
    let title = |line: u64| {
        let lens = lenses.as_array().unwrap().iter().find(|lens| lens["range"]["start"]["line"] == line);
        lens.unwrap_or_else(|| panic!("{lenses}"))["command"]["title"].as_str().unwrap().to_owned()
    };
    let nap = title(6);
    assert!(nap.starts_with("elapsed ") && nap.contains(" incl · ") && nap.contains(" excl · application "), "{nap}");
    assert!(nap.ends_with(" · 1 call") && title(2).ends_with(" · 3 calls"), "{nap}");
    // The loop that calls `work` and the line that calls `nap` have the time of what they call.
    let hints = client.call("textDocument/inlayHint", all_of(&uri));
    let label = |line: u64| {
        let hint = hints.as_array().unwrap().iter().find(|hint| hint["position"]["line"] == line);
        hint.unwrap_or_else(|| panic!("{hints}"))["label"].to_string()
    };
    assert!(label(15).contains("incl ") && label(16).contains("incl "), "{hints}");
    // Nobody recorded which line made which of the two calls.
    assert_eq!((label(17), label(18)), (label(18), "\"2 calls here or on 1 other line\"".into()), "{hints}");
    let hover = client.call(
        "textDocument/hover",
        json!({ "textDocument": { "uri": uri }, "position": { "line": 16, "character": 4 } }),
    );
    let text = hover["contents"]["value"].as_str().unwrap();
    assert!(text.contains("| application |") && text.contains("1 call,"), "{text}");
    let shared = client.call(
        "textDocument/hover",
        json!({ "textDocument": { "uri": uri }, "position": { "line": 17, "character": 4 } }),
    );
    let text = shared["contents"]["value"].as_str().unwrap();
    assert!(text.contains("`main` calls `step` on lines 18, 19: 2 calls from all of them"), "{text}");
    let hot = client.call("heatline/hotspots", json!({ "by": "function", "order": "inclusive", "metric": "waiting" }));
    let names: Vec<&Value> = hot["rows"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!(hot["metric"], "waiting");
    let at = |wanted: &str| names.iter().position(|name| *name == wanted).unwrap_or(usize::MAX);
    assert!(at("nap") < at("work"), "{names:?}");
    // What a library does is where most of it is called.
    let waits = client.call("heatline/hotspots", json!({ "by": "function", "metric": "waiting" }));
    let first = &waits["rows"][0];
    assert_eq!((&first["name"], &first["location"]["uri"]), (&json!("usleep"), &json!(uri)), "{waits}");
    assert_eq!(first["location"]["range"]["start"]["line"], 7, "{waits}");
    assert!(first["text"].as_str().unwrap().contains(" ms · "), "{waits}");
    assert_eq!(client.end().code(), Some(0));
}
