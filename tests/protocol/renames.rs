//! Files that are renamed while the server runs: by the editor, by version control, by anybody.

use crate::client::{Client, uri_of};
use crate::placement::git;
use crate::{HOTTEST, HOTTEST_SHARE, Workspace};
use serde_json::{Value, json};
use std::path::Path;

/// Where the hottest line is.
fn hottest(client: &mut Client) -> Value {
    client.call("heatline/hotspots", json!({ "by": "line", "limit": 1 }))["rows"][0]["location"].clone()
}

#[track_caller]
fn check(client: &mut Client, path: &Path, line: u64) {
    let location = hottest(client);
    assert_eq!(location["uri"], uri_of(path), "{location}");
    assert_eq!(location["range"]["start"]["line"], line);
}

/// Waits until the hint of the hottest line is on a line of a document that is open.
fn wait_for_hint(client: &mut Client, uri: &str, line: u64) {
    client.ask_until(|client| {
        client.hints(uri).iter().any(|(at, _, label)| *at == line && label.starts_with(HOTTEST_SHARE))
    });
}

fn renamed(client: &mut Client, from: &Path, to: &Path) {
    std::fs::rename(from, to).unwrap();
    let files = json!([{ "oldUri": uri_of(from), "newUri": uri_of(to) }]);
    client.notify("workspace/didRenameFiles", json!({ "files": files }));
}

#[test]
fn costs_follow_a_file_and_a_folder_that_the_editor_renames() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace.root(), &[]);
    let answer = client.initialize(&workspace.root(), json!({}));
    assert!(answer["capabilities"]["workspace"]["fileOperations"]["didRename"]["filters"].is_array(), "{answer}");
    client.notify("initialized", json!({}));
    client.status("ready");
    let new = workspace.path("src/woods.cpp");
    renamed(&mut client, &workspace.path("src/tree.cpp"), &new);
    let (uri, _) = client.open(&new);
    wait_for_hint(&mut client, &uri, HOTTEST);
    check(&mut client, &new, HOTTEST);
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    renamed(&mut client, &workspace.path("src"), &workspace.path("sources"));
    let new = workspace.path("sources/woods.cpp");
    let (uri, _) = client.open(&new);
    wait_for_hint(&mut client, &uri, HOTTEST);
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    check(&mut client, &new, HOTTEST);
    // And back again.
    renamed(&mut client, &workspace.path("sources"), &workspace.path("src"));
    renamed(&mut client, &workspace.path("src/woods.cpp"), &workspace.path("src/tree.cpp"));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    wait_for_hint(&mut client, &uri, HOTTEST);
    assert_eq!(client.end().code(), Some(0));
}

/// A workspace under version control, its sources committed.
fn repository() -> Workspace {
    let workspace = Workspace::new();
    git(&workspace.root(), &["init", "-q"]);
    git(&workspace.root(), &["add", "src"]);
    git(&workspace.root(), &["commit", "-q", "-m", "what was built"]);
    workspace
}

#[test]
fn costs_follow_a_file_that_is_renamed_behind_the_editor_and_come_back_with_it() {
    let workspace = repository();
    let mut client = Client::begin(&workspace.root(), json!({}));
    git(&workspace.root(), &["mv", "src/tree.cpp", "src/woods.cpp"]);
    // Nobody tells of it but that the new file is opened.
    let (uri, _) = client.open(&workspace.path("src/woods.cpp"));
    wait_for_hint(&mut client, &uri, HOTTEST);
    let position = json!({ "line": HOTTEST, "character": 5 });
    let hover = client.call("textDocument/hover", json!({ "textDocument": { "uri": uri }, "position": position }));
    let text = hover["contents"]["value"].as_str().unwrap();
    assert!(text.contains("the file was `src/tree.cpp` when it was built"), "{text}");
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    git(&workspace.root(), &["mv", "src/woods.cpp", "src/tree.cpp"]);
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    wait_for_hint(&mut client, &uri, HOTTEST);
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    let changes = json!({ "changes": [{ "uri": uri_of(&workspace.path("src/tree.cpp")), "type": 1 }] });
    client.notify("workspace/didChangeWatchedFiles", changes);
    client.ask_until(|client| hottest(client)["uri"] == uri_of(&workspace.path("src/tree.cpp")));
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_removed_file_is_looked_for_under_another_name_and_one_that_is_alike_is_not_taken_for_it() {
    let workspace = repository();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let source = workspace.path("src/tree.cpp");
    let text = std::fs::read_to_string(&source).unwrap();
    // A copy beside the file has no costs.
    std::fs::write(workspace.path("src/copy.cpp"), format!("// Copied.\n{text}")).unwrap();
    let (copy, _) = client.open(&workspace.path("src/copy.cpp"));
    let changed = |kind: u64| json!({ "changes": [{ "uri": uri_of(&source), "type": kind }] });
    client.notify("workspace/didChangeWatchedFiles", changed(2));
    assert_eq!(client.hints(&copy), []);
    check(&mut client, &source, HOTTEST);
    // Without the file it is what has become of it.
    std::fs::remove_file(&source).unwrap();
    client.notify("workspace/didChangeWatchedFiles", changed(3));
    wait_for_hint(&mut client, &copy, HOTTEST + 1);
    check(&mut client, &workspace.path("src/copy.cpp"), HOTTEST + 1);
    assert_eq!(client.end().code(), Some(0));
}
