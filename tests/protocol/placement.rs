//! Costs in texts that are edited: what is said at once, what when typing has paused, and what of files on the disk.

use crate::client::{Client, all_of, uri_of};
use crate::{HOTTEST, HOTTEST_SHARE, Workspace};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

pub fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org"]).args(arguments).current_dir(folder);
    for date in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
        git.env(date, "2020-02-02T00:00:00Z");
    }
    git.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", folder);
    let output = git.output().expect("git runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Waits for a status that says something of the placement.
#[track_caller]
fn wait_for(client: &mut Client, says: impl Fn(&Value) -> bool) -> Value {
    loop {
        let status = client.status("ready");
        if says(&status) {
            return status;
        }
    }
}

fn heat(client: &mut Client, uri: &str, line: u64) -> Option<Value> {
    let heat = client.call("heatline/heat", json!({ "textDocument": { "uri": uri } }));
    heat["lines"].as_array().unwrap().iter().find(|found| found["line"] == line).cloned()
}

#[test]
fn a_changed_line_looks_different_and_undo_brings_back_what_was_there() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, text) = client.open(&workspace.path("src/tree.cpp"));
    let before = client.call("textDocument/inlayHint", all_of(&uri));
    assert_eq!(heat(&mut client, &uri, HOTTEST).unwrap()["placement"], "exact");
    client.edit(&uri, 2, [HOTTEST, 0, HOTTEST, 0], "if (x) ");
    let hint = client.hints(&uri).into_iter().find(|(line, ..)| *line == HOTTEST).unwrap();
    assert!(hint.2.starts_with(&format!("~{HOTTEST_SHARE}")), "{}", hint.2);
    assert!(hint.2.chars().count() <= 43);
    let status = wait_for(&mut client, |status| status["placement"]["changed"].as_f64().is_some());
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("source changed since the build: "), "{message}");
    assert!(message.contains(" % on changed lines"), "{message}");
    assert_eq!(heat(&mut client, &uri, HOTTEST).unwrap()["placement"], "changed");
    client.edit(&uri, 3, [HOTTEST, 0, HOTTEST, 7], "");
    assert_eq!(client.call("textDocument/inlayHint", all_of(&uri)), before);
    client.edit(&uri, 4, [0, 0, 0, 0], "\n");
    let change = json!({ "textDocument": { "uri": uri, "version": 5 }, "contentChanges": [{ "text": text }] });
    client.notify("textDocument/didChange", change);
    assert_eq!(client.call("textDocument/inlayHint", all_of(&uri)), before);
    let says_exact = |status: &Value| status["placement"]["exact"] == 1.0;
    assert!(wait_for(&mut client, says_exact)["placementText"].is_null());
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn the_cost_of_removed_lines_is_counted_in_the_lens_of_their_function() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    client.edit(&uri, 2, [HOTTEST, 0, HOTTEST + 1, 0], "");
    let gone = wait_for(&mut client, |status| status["placement"]["gone"].as_f64().is_some());
    assert!(gone["message"].as_str().unwrap().ends_with(" % gone"), "{gone}");
    let lenses = client.call("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
    let titles: Vec<&str> = lenses.as_array().unwrap().iter().filter_map(|l| l["command"]["title"].as_str()).collect();
    let removed = format!("{HOTTEST_SHARE} on removed lines");
    assert!(titles.iter().any(|title| title.ends_with(&removed)), "{titles:?}");
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_block_that_moves_keeps_its_costs_when_typing_pauses() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, text) = client.open(&workspace.path("src/tree.cpp"));
    let before = client.hints(&uri);
    let lines: Vec<&str> = text.lines().collect();
    // The function around the hottest line, from blank line to blank line, goes to the end.
    let is_blank = |line: usize| lines[line].trim().is_empty();
    let start = (0..HOTTEST as usize).rev().find(|line| is_blank(*line)).unwrap();
    let end = (HOTTEST as usize..lines.len()).find(|line| is_blank(*line)).unwrap_or(lines.len() - 1);
    let block: String = lines[start..end].iter().map(|line| format!("{line}\n")).collect();
    let last = lines.len() as u64;
    client.edit(&uri, 2, [last, 0, last, 0], &block);
    client.edit(&uri, 3, [start as u64, 0, end as u64, 0], "");
    wait_for(&mut client, |status| status["placement"]["moved"].as_f64().is_some_and(|moved| moved > 0.4));
    let shift = last - end as u64;
    let now = client.hints(&uri);
    let labels = |hints: &[(u64, u64, String)], range: std::ops::Range<u64>, shift: u64| -> Vec<(u64, String)> {
        let inside = hints.iter().filter(|(line, ..)| range.contains(line));
        inside.map(|(line, _, label)| (line + shift, label.clone())).collect()
    };
    let old = labels(&before, start as u64..end as u64, shift);
    assert!(!old.is_empty());
    assert_eq!(labels(&now, last - (end - start) as u64..last + 9, 0), old);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn history_says_what_was_profiled_and_the_editor_is_asked_to_ask_again() {
    let workspace = Workspace::new();
    let root = workspace.root();
    git(&root, &["init", "-q"]);
    git(&root, &["add", "src"]);
    git(&root, &["commit", "-q", "-m", "what was built"]);
    // Written after the build, so nothing but history knows the text that was built.
    let source = workspace.path("src/tree.cpp");
    let text = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, format!("// One.\n// Two.\n{text}")).unwrap();
    let mut client = Client::start(&root, &[]);
    client.initialize(&root, json!({ "workspace": { "inlayHint": { "refreshSupport": true } } }));
    client.notify("initialized", json!({}));
    let (uri, _) = client.open(&source);
    let status = wait_for(&mut client, |status| status["placement"]["moved"].as_f64().is_some());
    assert!(status["placementText"].as_str().unwrap().contains("100.0 % of cost placed"), "{status}");
    assert_eq!(heat(&mut client, &uri, HOTTEST + 2).unwrap()["placement"], "moved");
    let hot = client.call("heatline/hotspots", json!({ "by": "line", "limit": 1 }));
    assert_eq!(hot["rows"][0]["location"]["range"]["start"]["line"], HOTTEST + 2);
    assert_eq!(hot["rows"][0]["placement"], "moved");
    // The same of a file that is not open.
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    let hot = client.call("heatline/hotspots", json!({ "by": "line", "limit": 1 }));
    assert_eq!(hot["rows"][0]["location"]["range"]["start"]["line"], HOTTEST + 2);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_file_that_changes_on_the_disk_is_looked_at_again() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let source = workspace.path("src/tree.cpp");
    let text = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, format!("// One.\n{text}")).unwrap();
    let changes = json!({ "changes": [{ "uri": uri_of(&source), "type": 2 }] });
    client.notify("workspace/didChangeWatchedFiles", changes);
    wait_for(&mut client, |status| status["placement"]["moved"].as_f64().is_some());
    let hot = client.call("heatline/hotspots", json!({ "by": "line", "limit": 1 }));
    assert_eq!(hot["rows"][0]["location"]["range"]["start"]["line"], HOTTEST + 1);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn in_a_text_that_is_too_different_functions_alone_have_costs() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let text = "// All new.\nstruct Node;\n\nvoid nothing()\n{\n}\n\nvoid search(int a)\n{\n    use(a);\n}\n";
    let change = json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "text": text }] });
    client.notify("textDocument/didChange", change);
    let too_different = |status: &Value| status["problems"].to_string().contains("too-different");
    let status = wait_for(&mut client, too_different);
    assert!(status["problems"].to_string().contains("functions only"), "{status}");
    assert_eq!(client.hints(&uri), []);
    assert_eq!(client.call("heatline/heat", json!({ "textDocument": { "uri": uri } }))["lines"], json!([]));
    // The function that is still named has its cost, and the hover says why it is alone.
    let lenses = client.call("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
    assert_eq!(lenses.as_array().unwrap().len(), 1, "{lenses}");
    let (title, line) = (&lenses[0]["command"]["title"], lenses[0]["range"]["start"]["line"].as_u64().unwrap());
    assert_eq!(line, 7);
    let mut hover = |line: u64| {
        let position = json!({ "line": line, "character": 0 });
        client.call("textDocument/hover", json!({ "textDocument": { "uri": uri }, "position": position }))
    };
    let said = hover(line)["contents"]["value"].as_str().unwrap().to_owned();
    assert!(said.starts_with(title.as_str().unwrap()) && said.contains("costs are shown for functions only"), "{said}");
    assert_eq!(hover(9), Value::Null);
    assert_eq!(client.end().code(), Some(0));
}
