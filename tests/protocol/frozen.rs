//! Frozen profiles in the editor, and what a rebuild does to what is shown: nothing.

use crate::client::Client;
use crate::{HOTTEST, HOTTEST_SHARE, Workspace};
use serde_json::{Value, json};

fn execute(client: &mut Client, command: &str, arguments: &Value) -> Value {
    let command = format!("heatline.server.{command}");
    client.call("workspace/executeCommand", json!({ "command": command, "arguments": arguments }))
}

/// The linker writes a new build over the old one, byte by byte.
fn build_again_in_place(workspace: &Workspace) {
    std::fs::write(workspace.path("neighbours"), "another build").unwrap();
}

fn label_of_hottest(hints: &[(u64, u64, String)]) -> &str {
    &hints.iter().find(|(line, ..)| *line == HOTTEST).expect("a hint").2
}

#[test]
fn freezing_makes_a_baseline_that_is_not_shown_by_itself() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let plain = client.hints(&uri);
    let path = workspace.path("baseline.heatline");
    assert_eq!(execute(&mut client, "freeze", &json!([])), json!(path));
    let status = client.status("ready");
    assert_eq!((&status["baseline"], &status["profile"]["path"]), (&json!(path), &json!(workspace.path("perf.data"))));
    let compared = client.hints(&uri);
    let label = label_of_hottest(&compared);
    assert!(label.starts_with(HOTTEST_SHARE) && label.contains("Δ"), "{label}");
    // Opened as a profile it gives the same, without binary and sources.
    execute(&mut client, "baseline", &json!([null]));
    client.status("ready");
    std::fs::remove_file(workspace.path("neighbours")).unwrap();
    execute(&mut client, "open", &json!(["baseline.heatline"]));
    let status = client.status("ready");
    assert_eq!((&status["profile"]["kind"], &status["profile"]["samples"]), (&json!("heatline"), &json!(1320)));
    assert_eq!(client.hints(&uri), plain);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn freezing_replaces_nothing_but_frozen_profiles() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let command = json!({ "command": "heatline.server.freeze", "arguments": ["src/tree.cpp"] });
    assert_eq!(client.refused("workspace/executeCommand", command), -32803);
    assert!(std::fs::read_to_string(workspace.path("src/tree.cpp")).unwrap().contains("search"));
    execute(&mut client, "close", &json!([]));
    client.status("idle");
    let command = json!({ "command": "heatline.server.freeze", "arguments": [] });
    assert_eq!(client.refused("workspace/executeCommand", command), -32803);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_build_over_the_binary_changes_no_number_with_a_live_baseline() {
    let workspace = Workspace::new();
    std::fs::copy(workspace.path("perf.data"), workspace.path("perf.data.old")).unwrap();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    execute(&mut client, "baseline", &json!(["perf.data.old"]));
    client.status("ready");
    let before = client.hints(&uri);
    assert!(label_of_hottest(&before).contains("Δ"));
    build_again_in_place(&workspace);
    client.until(|client| client.said.iter().any(|said| said.to_string().contains("older-build")).then_some(()));
    assert_eq!(client.hints(&uri), before);
    // Another metric or none is computed from what was read before.
    execute(&mut client, "metric", &json!(["cpu-clock"]));
    assert_eq!(client.hints(&uri), before);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_frozen_baseline_survives_a_build_and_a_new_recording() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    execute(&mut client, "freeze", &json!(["before.heatline"]));
    client.status("ready");
    let before = client.hints(&uri);
    build_again_in_place(&workspace);
    client.until(|client| client.said.iter().any(|said| said.to_string().contains("older-build")).then_some(()));
    assert_eq!(client.hints(&uri), before);
    // Read again, the recording has lost its binary; the baseline has lost nothing, and the server goes on.
    execute(&mut client, "refresh", &json!([]));
    let status = client.status("ready");
    assert_eq!(status["baseline"], json!(workspace.path("before.heatline")));
    execute(&mut client, "open", &json!(["before.heatline"]));
    client.until(|client| {
        let is_it =
            |said: &&Value| said["params"]["profile"]["kind"] == "heatline" && said["params"]["state"] == "ready";
        client.said.iter().find(is_it).map(|_| ())
    });
    assert_eq!(label_of_hottest(&client.hints(&uri)), label_of_hottest(&before));
    assert_eq!(client.end().code(), Some(0));
}
