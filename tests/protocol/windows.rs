//! Sources that are recorded with paths of Windows: of a client there, and of files here.

use crate::client::{Client, places, uri_of};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// An SPT file over a program whose sources are recorded below `C:\lab\src`, and these sources in `src`.
struct Lab(TempDir);

impl Lab {
    fn new() -> Lab {
        let lab = Lab(tempfile::tempdir().unwrap());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/spt/make.sh");
        let output = Command::new(script).arg(lab.root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        lab
    }

    fn root(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Takes the sources away and gives their texts.
    fn without_sources(&self) -> [(&'static str, String); 3] {
        let texts = ["start.cpp", "scale.cpp", "twice.h"]
            .map(|name| (name, std::fs::read_to_string(self.path("src").join(name)).unwrap()));
        std::fs::remove_dir_all(self.path("src")).unwrap();
        texts
    }

    /// The lines of a source that `heatline report` has, from 0.
    fn lines(&self, name: &str) -> BTreeSet<u64> {
        let arguments = ["report", "profile.spt", "--by", "line", "--format", "json"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_heatline"));
        let output = command.args(arguments).current_dir(self.root()).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = report["rows"].as_array().unwrap().iter();
        let of_file = rows.filter(|row| row["file"] == format!("C:\\lab\\src\\{name}"));
        of_file.filter_map(|row| Some(row["line"].as_u64()? - 1)).collect()
    }
}

fn open(client: &mut Client, uri: &str, text: &str) {
    let document = json!({ "uri": uri, "languageId": "cpp", "version": 1, "text": text });
    client.notify("textDocument/didOpen", json!({ "textDocument": document }));
}

/// The hints stand on the lines of the report, each at the end of the line's text, before a carriage return.
#[track_caller]
fn check(client: &mut Client, lab: &Lab, uri: &str, name: &str, text: &str) {
    let hints = client.hints(uri);
    assert_eq!(hints.iter().map(|(line, ..)| *line).collect::<BTreeSet<_>>(), lab.lines(name), "{uri}");
    assert!(hints.len() > 1, "{uri}");
    let lines: Vec<&str> = text.split('\n').map(|line| line.trim_end_matches('\r')).collect();
    for (line, character, _) in hints {
        assert_eq!(character, lines[line as usize].len() as u64, "{uri}, line {line}");
    }
}

#[test]
fn documents_of_a_client_on_windows_are_the_recorded_files() {
    let lab = Lab::new();
    let texts = lab.without_sources();
    assert!(texts[1].1.contains("\r\n"), "one file has line ends of Windows");
    let mut client = Client::begin(&lab.root(), json!({}));
    for (folder, (name, text)) in ["c%3A/lab", "C:/LAB", "c:/lab/x/.."].into_iter().zip(&texts) {
        let uri = format!("file:///{folder}/src/{name}");
        open(&mut client, &uri, text);
        check(&mut client, &lab, &uri, name, text);
    }
    let elsewhere = "file:///d%3A/lab/src/start.cpp";
    open(&mut client, elsewhere, &texts[0].1);
    assert_eq!(client.hints(elsewhere), []);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn the_prefix_map_leads_to_another_folder_of_a_client_on_windows() {
    let lab = Lab::new();
    let [(name, text), ..] = lab.without_sources();
    let mut client = Client::start(&lab.root(), &[]);
    client.settings["sourceMap"] = json!({ "c:/Lab": "D:\\mine" });
    client.initialize(&lab.root(), json!({}));
    client.notify("initialized", json!({}));
    client.status("ready");
    let uri = format!("file:///d%3A/Mine/src/{name}");
    open(&mut client, &uri, &text);
    check(&mut client, &lab, &uri, name, &text);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn files_here_are_found_by_the_end_of_their_path_and_keep_their_line_ends() {
    let lab = Lab::new();
    let mut client = Client::begin(&lab.root(), json!({}));
    for name in ["start.cpp", "scale.cpp", "twice.h"] {
        let (uri, text) = client.open(&lab.path("src").join(name));
        check(&mut client, &lab, &uri, name, &text);
    }
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn an_ambiguous_source_is_told_and_settled_by_the_prefix_map() {
    let lab = Lab::new();
    for copy in ["old", "new"] {
        std::fs::create_dir_all(lab.path(copy).join("src")).unwrap();
        std::fs::copy(lab.path("src/start.cpp"), lab.path(copy).join("src/start.cpp")).unwrap();
    }
    std::fs::remove_file(lab.path("src/start.cpp")).unwrap();
    let mut client = Client::start(&lab.root(), &[]);
    client.initialize(&lab.root(), json!({}));
    client.notify("initialized", json!({}));
    let ambiguous = |status: &Value| {
        let problems = status["problems"].as_array().unwrap().iter();
        let messages = problems.filter(|problem| problem["kind"] == "ambiguous-source");
        messages.map(|problem| problem["message"].to_string()).collect::<Vec<_>>()
    };
    let status = client.status("ready");
    let told = ambiguous(&status);
    assert_eq!(told.len(), 1);
    let candidate =
        |copy: &str| json!({ "path": lab.path(copy).join("src/start.cpp"), "from": "C:\\lab", "to": lab.path(copy) });
    let asked = json!([{ "recorded": "C:\\lab\\src\\start.cpp", "candidates": [candidate("new"), candidate("old")] }]);
    assert_eq!(status["ambiguous"], asked);
    assert!(told[0].contains("start.cpp") && told[0].contains("sourceMap"), "{told:?}");
    let (new, text) = client.open(&lab.path("new/src/start.cpp"));
    let old = uri_of(&lab.path("old/src/start.cpp"));
    open(&mut client, &old, &text);
    assert_eq!((client.hints(&new), client.hints(&old)), (vec![], vec![]));

    let mut settings = client.settings.clone();
    settings["sourceMap"] = json!({ "C:\\lab": lab.path("new") });
    client.notify("workspace/didChangeConfiguration", json!({ "settings": { "heatline": settings } }));
    let status = client.status("ready");
    assert!(ambiguous(&status).is_empty() && status["ambiguous"].is_null(), "{status}");
    check(&mut client, &lab, &new, "start.cpp", &text);
    let hints = client.call("textDocument/inlayHint", crate::client::all_of(&old));
    assert_eq!(places(&hints), []);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn taken_branches_are_the_calls_of_functions_without_stacks() {
    let lab = Lab::new();
    let mut client = Client::begin(&lab.root(), json!({}));
    let (uri, text) = client.open(&lab.path("src/start.cpp"));
    let line = text.lines().position(|line| line.contains("int shrink(")).unwrap();
    let position = json!({ "line": line, "character": 0 });
    let command = json!({ "command": "heatline.server.calls", "arguments": [uri, position] });
    let calls = client.call("workspace/executeCommand", command);
    assert_eq!(calls["basis"], "branches");
    let named = |row: &Value, name: &str| row["name"].as_str().is_some_and(|full| full.starts_with(name));
    let caller = calls["callers"].as_array().unwrap().iter().find(|row| named(row, "start"));
    let callee = calls["callees"].as_array().unwrap().iter().find(|row| named(row, "scale"));
    for row in [caller.unwrap(), callee.unwrap()] {
        let taken = row["cost"]["samples"].as_u64().unwrap();
        assert_eq!(row["text"], format!("taken {taken} times"));
    }
    let at = json!({ "textDocument": { "uri": uri }, "position": position });
    let item = &client.call("textDocument/prepareCallHierarchy", at)[0];
    let outgoing = client.call("callHierarchy/outgoingCalls", json!({ "item": item }));
    let outgoing = outgoing.as_array().unwrap();
    assert!(outgoing.iter().any(|call| named(&call["to"], "scale") && call["to"]["detail"] == callee.unwrap()["text"]));
    assert_eq!(client.end().code(), Some(0));
}
