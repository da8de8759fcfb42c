//! What is shown, and when it changes.

use crate::client::Client;
use crate::{HOTTEST, HOTTEST_SHARE, Workspace};
use serde_json::{Value, json};

/// A client that can do all that the server may use.
fn able() -> Value {
    json!({
        "window": { "workDoneProgress": true },
        "workspace": {
            "configuration": true,
            "didChangeWatchedFiles": { "dynamicRegistration": true, "relativePatternSupport": true },
            "inlayHint": { "refreshSupport": true },
            "codeLens": { "refreshSupport": true },
        },
    })
}

fn execute(client: &mut Client, command: &str, arguments: &Value) {
    let command = format!("heatline.server.{command}");
    client.call("workspace/executeCommand", json!({ "command": command, "arguments": arguments }));
}

fn wait_for_refresh(client: &mut Client) {
    client.until(|client| {
        let both = ["workspace/inlayHint/refresh", "workspace/codeLens/refresh"];
        both.iter().all(|method| client.count(method) > 0).then_some(())
    });
}

#[test]
fn the_newest_profile_of_the_workspace_is_shown_with_progress() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace.root(), &[]);
    client.initialize(&workspace.root(), able());
    client.notify("initialized", json!({}));
    client.until(|client| {
        let of_progress = |said: &&Value| said["method"] == "$/progress";
        let progress: Vec<&Value> =
            client.said.iter().filter(of_progress).map(|said| &said["params"]["value"]).collect();
        let begin = progress.first()?;
        assert_eq!((&begin["kind"], &begin["cancellable"]), (&json!("begin"), &json!(true)));
        let percents: Vec<u64> = progress.iter().filter_map(|value| value["percentage"].as_u64()).collect();
        assert!(percents.is_sorted() && !percents.is_empty());
        (progress.last()?["kind"] == "end").then_some(())
    });
    let created = client.said.iter().position(|said| said["method"] == "window/workDoneProgress/create");
    let begun = client.said.iter().position(|said| said["method"] == "$/progress");
    assert!(created.unwrap() < begun.unwrap());
    let status = client.status("ready");
    assert_eq!(status["profile"]["samples"], 1320);
    assert_eq!(status["metric"], "cpu-clock");
    assert_eq!(status["profiles"], json!([workspace.path("perf.data")]));
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn the_status_says_why_a_module_has_no_lines_and_which_setting_helps() {
    let workspace = Workspace::new();
    std::fs::remove_file(workspace.path("neighbours")).unwrap();
    // The home may hold a copy of it, kept by perf.
    let root = workspace.root();
    let mut client = Client::start(&root, &[("HOME", root.to_str().unwrap())]);
    client.initialize(&root, able());
    client.notify("initialized", json!({}));
    let status = client.status("ready");
    let gap = status["coverage"]["gaps"][0].as_str().expect("a gap");
    assert!(gap.contains("neighbours without lines: binary not found"), "{gap}");
    assert!(gap.contains("heatline.search.debugDirs") && !gap.contains("--"), "{gap}");
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn refreshes_are_asked_for_only_when_something_else_is_shown() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace.root(), &[]);
    client.initialize(&workspace.root(), able());
    client.notify("initialized", json!({}));
    wait_for_refresh(&mut client);
    client.status("ready");
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    assert_ne!(client.hints(&uri), []);
    client.said.clear();
    // The same again is nothing else.
    execute(&mut client, "refresh", &json!([]));
    client.status("ready");
    client.edit(&uri, 2, [0, 0, 0, 0], "\n");
    client.hints(&uri);
    assert_eq!(client.count("workspace/inlayHint/refresh") + client.count("workspace/codeLens/refresh"), 0);
    execute(&mut client, "close", &json!([]));
    wait_for_refresh(&mut client);
    client.status("idle");
    assert_eq!(client.hints(&uri), []);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn reading_the_same_recording_again_keeps_edited_lines_in_their_places() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    client.edit(&uri, 2, [0, 0, 0, 0], "\n\n");
    let before = client.hints(&uri);
    assert!(before.iter().any(|(line, _, label)| *line == HOTTEST + 2 && label.starts_with(HOTTEST_SHARE)));
    execute(&mut client, "refresh", &json!([]));
    client.status("ready");
    assert_eq!(client.hints(&uri), before);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn many_refreshes_in_a_row_are_few_loads_and_the_old_is_shown_meanwhile() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let command = json!({ "command": "heatline.server.refresh", "arguments": [] });
    let refreshes: Vec<i64> = (0..40).map(|_| client.post("workspace/executeCommand", command.clone())).collect();
    for _ in 0..20 {
        assert_ne!(client.hints(&uri), []);
    }
    for id in refreshes {
        client.wait(id);
    }
    client.until(|client| client.said.iter().any(|said| said["params"]["state"] == "ready").then_some(()));
    // Whatever was ordered before is done before this is shown.
    execute(&mut client, "close", &json!([]));
    let loads = client.until(|client| {
        let states: Vec<&Value> = client.said.iter().map(|said| &said["params"]["state"]).collect();
        let is = |state: &str| states.iter().filter(|found| **found == state).count();
        (is("idle") > 0).then(|| is("loading"))
    });
    assert!((1..10).contains(&loads), "{loads} loads");
    assert_eq!(client.end().code(), Some(0));
}

/// Replaces the recording by one that ends in the middle, so that it has fewer samples.
fn replace_recording(workspace: &Workspace) {
    let bytes = std::fs::read(workspace.path("perf.data")).unwrap();
    std::fs::write(workspace.path("shorter"), &bytes[..bytes.len() / 2]).unwrap();
    std::fs::rename(workspace.path("shorter"), workspace.path("perf.data")).unwrap();
}

#[track_caller]
fn check_reload(mut client: Client, workspace: &Workspace, told: bool) {
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let before = client.hints(&uri);
    replace_recording(workspace);
    if told {
        let change = json!({ "uri": crate::client::uri_of(&workspace.path("perf.data")), "type": 2 });
        client.notify("workspace/didChangeWatchedFiles", json!({ "changes": [change] }));
    }
    let status = client.status("ready");
    let samples = status["samples"].as_u64().unwrap();
    assert!(samples > 0 && samples < 1320, "{samples} samples");
    assert_ne!(status["problems"], json!([]), "a recording that ends early is told");
    assert_ne!(client.hints(&uri), before);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_recording_that_changes_is_read_again_when_the_client_tells() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace.root(), &[]);
    client.initialize(&workspace.root(), able());
    client.notify("initialized", json!({}));
    client.until(|client| {
        let registered = client.said.iter().find(|said| said["method"] == "client/registerCapability")?;
        let watchers = &registered["params"]["registrations"][0]["registerOptions"]["watchers"];
        assert!(watchers.to_string().contains("perf.data"), "{watchers}");
        Some(())
    });
    client.until(|client| client.said.iter().any(|said| said["params"]["state"] == "ready").then_some(()));
    client.said.clear();
    check_reload(client, &workspace, true);
}

#[test]
fn a_recording_that_changes_is_read_again_without_the_clients_help() {
    let workspace = Workspace::new();
    let client = Client::begin(&workspace.root(), json!({}));
    check_reload(client, &workspace, false);
}

#[test]
fn a_recording_that_appears_is_shown() {
    let workspace = Workspace::new();
    std::fs::rename(workspace.path("perf.data"), workspace.path("later")).unwrap();
    let mut client = Client::start(&workspace.root(), &[]);
    client.initialize(&workspace.root(), json!({}));
    client.notify("initialized", json!({}));
    client.status("idle");
    std::fs::rename(workspace.path("later"), workspace.path("perf.data")).unwrap();
    assert_eq!(client.status("ready")["samples"], 1320);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn what_cannot_be_opened_is_refused_with_the_reason() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    for (path, reason) in [("absent.data", "absent.data: "), ("src/tree.cpp", "not a profile")] {
        let id =
            client.post("workspace/executeCommand", json!({ "command": "heatline.server.open", "arguments": [path] }));
        let error = client.wait(id)["error"].clone();
        assert_eq!(error["code"], -32803);
        assert!(error["message"].as_str().unwrap().contains(reason), "{error}");
    }
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    assert_ne!(client.hints(&uri), [], "what was shown still is");
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_damaged_recording_is_a_failed_state_and_no_message_box() {
    let workspace = Workspace::new();
    std::fs::write(workspace.path("perf.data"), [b"PERFILE2".as_slice(), &[0xff; 200]].concat()).unwrap();
    let mut client = Client::start(&workspace.root(), &[]);
    client.initialize(&workspace.root(), json!({}));
    client.notify("initialized", json!({}));
    let status = client.until(|client| {
        client.said.iter().find(|said| said["params"]["state"] == "failed").map(|said| said["params"].clone())
    });
    assert_eq!(status["problems"][0]["kind"], "unreadable");
    assert_eq!(client.count("window/showMessage"), 0);
    assert_eq!(client.end().code(), Some(0));
}

/// The example with its recording as `old.data` and another in its place.
fn with_baseline() -> Workspace {
    let workspace = Workspace::new();
    std::fs::copy(workspace.path("perf.data"), workspace.path("old.data")).unwrap();
    replace_recording(&workspace);
    workspace
}

#[test]
fn a_baseline_gives_differences_and_null_takes_them_away() {
    let workspace = with_baseline();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let plain = client.hints(&uri);
    assert!(plain.iter().all(|(.., label)| !label.contains('Δ')));
    execute(&mut client, "baseline", &json!(["old.data"]));
    assert_eq!(client.status("ready")["baseline"], json!(workspace.path("old.data")));
    assert!(client.hints(&uri).iter().all(|(.., label)| label.contains("pp")));
    execute(&mut client, "baseline", &json!([null]));
    assert_eq!(client.status("ready")["baseline"], Value::Null);
    assert_eq!(client.hints(&uri), plain);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_profile_that_is_its_own_baseline_stays_and_that_is_told() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let plain = client.hints(&uri);
    for itself in ["perf.data", "."] {
        execute(&mut client, "baseline", &json!([itself]));
        let status = client.status("ready");
        assert!(status["baseline"].as_str().is_some_and(|path| path.ends_with("/perf.data")), "{status}");
        assert!(status["problems"].to_string().contains("the baseline is the profile that is shown"), "{status}");
        assert!(client.hints(&uri).iter().all(|(.., label)| label.ends_with("Δ +0.0 pp")));
        execute(&mut client, "baseline", &json!([null]));
        client.status("ready");
        assert_eq!(client.hints(&uri), plain);
    }
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_client_that_paints_differences_gets_them_apart_from_the_hints() {
    let workspace = with_baseline();
    let mut other = Client::begin(&workspace.root(), json!({}));
    let mut painter =
        Client::begin(&workspace.root(), json!({ "experimental": { "heatline": { "paintsDeltas": true } } }));
    let (uri, _) = other.open(&workspace.path("src/tree.cpp"));
    painter.open(&workspace.path("src/tree.cpp"));
    let ask = |client: &mut Client| client.call("heatline/deltas", json!({ "textDocument": { "uri": uri } }));
    assert_eq!(ask(&mut painter), json!({ "version": 1, "lines": [] }));
    for client in [&mut other, &mut painter] {
        execute(client, "baseline", &json!(["old.data"]));
        client.status("ready");
    }
    painter.edit(&uri, 2, [0, 0, 0, 0], "\n");
    other.edit(&uri, 2, [0, 0, 0, 0], "\n");
    let (deltas, whole) = (ask(&mut painter), other.hints(&uri));
    assert_eq!(deltas["version"], 2);
    let text = |(line, _, label): &(u64, u64, String)| {
        let delta = deltas["lines"].as_array()?.iter().find(|delta| delta["line"] == *line)?;
        Some((*line, format!("{label} · {}", delta["text"].as_str()?)))
    };
    let together: Vec<_> = painter.hints(&uri).iter().filter_map(text).collect();
    assert_eq!(together, whole.into_iter().map(|(line, _, label)| (line, label)).collect::<Vec<_>>());
    let verdicts = ["regression", "improvement", "below-threshold", "noise"].map(Value::from);
    assert!(deltas["lines"].as_array().unwrap().iter().all(|delta| verdicts.contains(&delta["verdict"])));
    let lens = &painter.call("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }))[0]["command"];
    let (title, tooltip) = (lens["title"].as_str().unwrap(), lens["tooltip"].as_str().unwrap());
    assert!(title.contains("pp (within noise)") && tooltip.contains("95 % interval"), "{title}: {tooltip}");
    painter.settings = json!({ "hints": { "enable": false } });
    painter.notify("workspace/didChangeConfiguration", json!({ "settings": { "heatline": painter.settings } }));
    painter.status("ready");
    assert_eq!(ask(&mut painter)["lines"], json!([]));
    assert_eq!([other.end().code(), painter.end().code()], [Some(0), Some(0)]);
}

#[test]
fn settings_come_from_the_file_and_better_from_the_client() {
    let workspace = Workspace::new();
    std::fs::write(workspace.path("heatline.toml"), "lenses.enable = false\nhints.threshold = 40\ncolour = 1\n")
        .unwrap();
    let mut client = Client::start(&workspace.root(), &[]);
    client.settings = json!({});
    client.initialize(&workspace.root(), able());
    client.notify("initialized", json!({}));
    client.until(|client| {
        let complaint = client.said.iter().find(|said| said["method"] == "window/logMessage")?;
        assert_eq!(complaint["params"]["message"], "Heatline: heatline.toml: colour: there is no such setting");
        Some(())
    });
    wait_for_refresh(&mut client);
    client.status("ready");
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let lines: Vec<u64> = client.hints(&uri).iter().map(|(line, ..)| *line).collect();
    assert!(lines.contains(&HOTTEST) && lines.len() < 5, "{lines:?}");
    let document = json!({ "textDocument": { "uri": uri } });
    assert_eq!(client.call("textDocument/codeLens", document.clone()), json!([]));
    client.said.clear();
    client.settings = json!({ "lenses": { "enable": true }, "hints": { "enable": false } });
    client.notify("workspace/didChangeConfiguration", json!({ "settings": null }));
    wait_for_refresh(&mut client);
    assert_eq!(client.hints(&uri), []);
    assert_ne!(client.call("textDocument/codeLens", document), json!([]));
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_setting_that_is_taken_away_holds_no_more_though_the_session_began_with_it() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace.root(), &[]);
    client.settings = json!({ "hints": { "enable": false } });
    client.initialize(&workspace.root(), able());
    client.notify("initialized", json!({}));
    client.status("ready");
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    assert_eq!(client.hints(&uri), []);
    client.settings = json!({});
    client.notify("workspace/didChangeConfiguration", json!({ "settings": { "heatline": {} } }));
    client.ask_until(|client| !client.hints(&uri).is_empty());
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_binary_that_is_built_again_changes_nothing_but_the_status() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let before = client.hints(&uri);
    std::fs::write(workspace.path("linked"), "another build").unwrap();
    std::fs::rename(workspace.path("linked"), workspace.path("neighbours")).unwrap();
    let status = client.status("ready");
    let kinds: Vec<&Value> = status["problems"].as_array().unwrap().iter().map(|problem| &problem["kind"]).collect();
    assert!(kinds.contains(&&json!("older-build")), "{status}");
    assert_eq!(client.hints(&uri), before);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_load_can_be_cancelled_and_what_was_shown_stays() {
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    let workspace = Workspace::new();
    let mut client = Client::start(&workspace.root(), &[]);
    client.initialize(&workspace.root(), json!({ "window": { "workDoneProgress": true } }));
    client.notify("initialized", json!({}));
    client.status("ready");
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let before = client.hints(&uri);
    // As long as somebody writes to it, the recording is waited for.
    let written = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (written, path) = (written.clone(), workspace.path("perf.data"));
        move || {
            let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
            while !written.load(Ordering::Relaxed) {
                file.write_all(&[0]).unwrap();
                std::thread::yield_now();
            }
        }
    });
    let token = client.until(|client| {
        let begin = |said: &&Value| said["method"] == "$/progress" && said["params"]["value"]["kind"] == "begin";
        client.said.iter().find(begin).map(|said| said["params"]["token"].clone())
    });
    client.notify("window/workDoneProgress/cancel", json!({ "token": token }));
    let status = client.status("ready");
    written.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert!(status["message"].as_str().unwrap().ends_with("was cancelled"), "{status}");
    assert_eq!(client.hints(&uri), before);
    assert_eq!(client.end().code(), Some(0));
}

/// The significance of each function as both sides have it: by name, points and verdict.
fn verdicts<'a>(rows: impl Iterator<Item = (&'a Value, &'a Value)>) -> Vec<(String, String, bool)> {
    let mut verdicts: Vec<(String, String, bool)> = rows
        .filter_map(|(name, delta)| {
            let points = delta["pp"].as_f64().or(delta["delta"].as_f64())?;
            Some((name.as_str()?.to_owned(), format!("{points:.6}"), delta["significant"].as_bool()?))
        })
        .collect();
    verdicts.sort();
    // Functions of one name in several files are one row of the command line.
    verdicts.dedup();
    verdicts
}

#[test]
fn the_editor_and_the_command_line_agree_on_what_changed() {
    let workspace = Workspace::new();
    std::fs::copy(workspace.path("perf.data"), workspace.path("perf.data.old")).unwrap();
    replace_recording(&workspace);
    let mut client = Client::begin(&workspace.root(), json!({}));
    execute(&mut client, "baseline", &json!(["perf.data.old"]));
    client.status("ready");
    for by in ["function", "line"] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_heatline"))
            .args(["diff", "--format", "json", "--by", by])
            .current_dir(workspace.root())
            .output()
            .unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = document["rows"].as_array().unwrap().iter();
        let ours =
            verdicts(rows.filter(|row| row["new"][0]["delta"] != 0.0).map(|row| (&row["function"], &row["new"][0])));
        let ask = |client: &mut Client, order: &str| {
            client.call("heatline/hotspots", json!({ "by": by, "order": order, "limit": 10_000 }))["rows"].clone()
        };
        let (up, down) = (ask(&mut client, "regression"), ask(&mut client, "improvement"));
        let rows = up.as_array().unwrap().iter().chain(down.as_array().unwrap());
        let theirs = verdicts(rows.map(|row| (&row["name"], &row["delta"])));
        assert!(theirs.len() > 5 && theirs.iter().any(|(_, _, significant)| !significant));
        if by == "function" {
            assert_eq!(theirs, ours);
        } else {
            // A line of the command line is of one module; rows without a line are none of the editor's.
            assert!(theirs.iter().all(|row| ours.contains(row)), "{theirs:?} of {ours:?}");
        }
    }
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn removed_functions_are_improvements_without_a_place() {
    let workspace = Workspace::new();
    std::fs::copy(workspace.path("perf.data"), workspace.path("perf.data.old")).unwrap();
    replace_recording(&workspace);
    let mut client = Client::begin(&workspace.root(), json!({}));
    assert_eq!(client.call("heatline/status", Value::Null)["baselineOnOffer"], json!(workspace.path("perf.data.old")));
    execute(&mut client, "baseline", &json!(["perf.data.old"]));
    client.status("ready");
    let question = json!({ "by": "line", "order": "improvement", "limit": 10_000 });
    let rows = client.call("heatline/hotspots", question)["rows"].clone();
    let removed: Vec<&Value> = rows
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["exclusive"]["samples"] == 0 && row["placement"] == "gone")
        .collect();
    assert!(!removed.is_empty());
    for row in removed {
        assert!(row["delta"]["pp"].as_f64().unwrap() < 0.0 && row.get("location").is_none());
        assert!(row["text"].as_str().unwrap().starts_with("removed · Δ −"), "{row}");
    }
    // None of them costs anything now.
    let hot = client.call("heatline/hotspots", json!({ "by": "line", "order": "inclusive", "limit": 10_000 }))["rows"]
        .clone();
    assert!(hot.as_array().unwrap().iter().all(|row| row["placement"] != "gone"));
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn recording_again_refreshes_the_differences() {
    let workspace = Workspace::new();
    std::fs::copy(workspace.path("perf.data"), workspace.path("base.data")).unwrap();
    let refreshes = json!({ "workspace": { "inlayHint": { "refreshSupport": true } } });
    let mut client = Client::begin(&workspace.root(), refreshes);
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    execute(&mut client, "baseline", &json!(["base.data"]));
    client.status("ready");
    assert!(client.hints(&uri).iter().all(|(.., label)| label.ends_with("Δ +0.0 pp")));
    let hover = |client: &mut Client| {
        let position = json!({ "line": HOTTEST, "character": 0 });
        let asked = json!({ "textDocument": { "uri": uri }, "position": position });
        client.call("textDocument/hover", asked)["contents"]["value"].as_str().unwrap().to_owned()
    };
    let text = hover(&mut client);
    assert!(
        text.contains("Δ +0.0 pp against 49.9 % (659 samples) in the baseline") && text.contains("within noise"),
        "{text}"
    );
    client.said.clear();
    replace_recording(&workspace);
    client.until(|client| (client.count("workspace/inlayHint/refresh") > 0).then_some(()));
    client.status("ready");
    assert!(client.hints(&uri).iter().any(|(.., label)| label.contains('Δ') && !label.ends_with("+0.0 pp")));
    assert!(hover(&mut client).contains("against 49.9 % (659 samples) in the baseline"));
    assert_eq!(client.end().code(), Some(0));
}
