//! Where the sources of a workspace are: below several roots, below a link, outside, under names that a compiler was
//! told to record.

use crate::client::{Client, uri_of};
use crate::{HOTTEST, HOTTEST_SHARE, Workspace};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the line with most cost is.
fn hottest(client: &mut Client) -> Value {
    client.call("heatline/hotspots", json!({ "by": "line", "limit": 1 }))["rows"][0]["location"].clone()
}

/// Whether the hottest line of the example has its hint.
fn has_hint(client: &mut Client, uri: &str) -> bool {
    client.hints(uri).iter().any(|(line, _, label)| *line == HOTTEST && label.starts_with(HOTTEST_SHARE))
}

/// A client that was initialized finds the hottest line in this source.
#[track_caller]
fn check_hottest(mut client: Client, source: &Path) {
    client.notify("initialized", json!({}));
    client.status("ready");
    let (uri, _) = client.open(source);
    assert!(has_hint(&mut client, &uri));
    assert_eq!(hottest(&mut client)["uri"], uri);
    assert_eq!(client.end().code(), Some(0));
}

fn change_roots(client: &mut Client, added: &[&Path], removed: &[&Path]) {
    let folders = |paths: &[&Path]| -> Value {
        paths.iter().map(|path| json!({ "uri": uri_of(path), "name": "another" })).collect()
    };
    let event = json!({ "added": folders(added), "removed": folders(removed) });
    client.notify("workspace/didChangeWorkspaceFolders", json!({ "event": event }));
}

/// The example with its hottest source in another folder, below `src` there.
fn apart() -> (Workspace, tempfile::TempDir, PathBuf) {
    let workspace = Workspace::new();
    let other = tempfile::tempdir().unwrap();
    let source = other.path().canonicalize().unwrap().join("src/tree.cpp");
    std::fs::create_dir(source.parent().unwrap()).unwrap();
    std::fs::copy(workspace.path("src/tree.cpp"), &source).unwrap();
    std::fs::remove_file(workspace.path("src/tree.cpp")).unwrap();
    (workspace, other, source)
}

#[test]
fn sources_of_all_roots_have_costs_and_roots_come_and_go() {
    let (workspace, other, source) = apart();
    let root = other.path().canonicalize().unwrap();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&source);
    let (main, _) = client.open(&workspace.path("src/main.cpp"));
    assert_eq!(client.hints(&uri), []);
    let of_first_root = client.hints(&main);
    assert_ne!(of_first_root, []);
    change_roots(&mut client, &[&root], &[]);
    client.ask_until(|client| has_hint(client, &uri));
    assert_eq!(hottest(&mut client)["uri"], uri);
    assert_eq!(client.hints(&main), of_first_root);
    change_roots(&mut client, &[], &[&root]);
    client.ask_until(|client| client.hints(&uri).is_empty());
    assert_eq!(client.hints(&main), of_first_root);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn both_roots_are_looked_into_from_the_beginning() {
    let (workspace, other, source) = apart();
    let mut client = Client::start(&workspace.root(), &[]);
    let folders = [workspace.root(), other.path().canonicalize().unwrap()];
    let folders: Vec<Value> = folders.iter().map(|path| json!({ "uri": uri_of(path), "name": "root" })).collect();
    client.call(
        "initialize",
        json!({ "processId": null, "rootUri": null, "capabilities": {}, "workspaceFolders": folders }),
    );
    check_hottest(client, &source);
}

#[test]
fn a_file_outside_of_the_workspace_has_costs_where_the_prefix_map_leads_to_it() {
    let (workspace, other, source) = apart();
    let mut client = Client::start(&workspace.root(), &[]);
    client.settings["sourceMap"] = json!([["/quickstart", other.path()]]);
    client.initialize(&workspace.root(), json!({}));
    check_hottest(client, &source);
}

#[test]
fn a_workspace_below_a_link_is_one_with_the_folder_behind_it() {
    let workspace = Workspace::new();
    let other = tempfile::tempdir().unwrap();
    let link = other.path().canonicalize().unwrap().join("link");
    std::os::unix::fs::symlink(workspace.root(), &link).unwrap();
    let mut client = Client::begin(&link, json!({}));
    // Places are told below the root that the client has.
    let uri = uri_of(&link.join("src/tree.cpp"));
    assert_eq!(hottest(&mut client)["uri"], uri);
    for path in [link.join("src/tree.cpp"), workspace.path("src/tree.cpp")] {
        let (uri, _) = client.open(&path);
        assert!(has_hint(&mut client, &uri), "{uri}");
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    }
    // A rename in the editor goes by the names that it knows.
    std::fs::rename(link.join("src/tree.cpp"), link.join("src/woods.cpp")).unwrap();
    let files = json!([{ "oldUri": uri, "newUri": uri_of(&link.join("src/woods.cpp")) }]);
    client.notify("workspace/didRenameFiles", json!({ "files": files }));
    let (uri, _) = client.open(&link.join("src/woods.cpp"));
    client.ask_until(|client| has_hint(client, &uri));
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    assert_eq!(hottest(&mut client)["uri"], uri);
    assert_eq!(client.end().code(), Some(0));
}

/// Generated from `grammar.y`, as `#line` says.
const GENERATED: &str = "/* Generated. */

#line 1 \"grammar.y\"
volatile unsigned sink;
__attribute__((noipa)) void parse(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        sink += i ^ (sink >> 3);
}
#line 10 \"parser.c\"
int main(void)
{
    parse(60000000);
    return 0;
}
";

#[test]
fn generated_code_and_recorded_names_that_exist_nowhere_lead_to_the_sources_of_the_workspace() {
    for recorded in ["/proc/self/cwd", "/container/build"] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("parser.c"), GENERATED).unwrap();
        std::fs::write(root.join("grammar.y"), GENERATED.lines().skip(3).take(6).collect::<Vec<_>>().join("\n"))
            .unwrap();
        let run = |command: &mut Command| {
            let output = command.current_dir(&root).output().expect("an installed program");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let map = format!("-ffile-prefix-map={}={recorded}", root.display());
        run(Command::new("gcc").args(["-g", "-O1", &map, "parser.c", "-o", "parser"]));
        run(Command::new("perf").args(["record", "-q", "-N", "-e", "cpu-clock", "-o", "perf.data", "./parser"]));
        let mut client = Client::begin(&root, json!({}));
        assert_eq!(hottest(&mut client)["uri"], uri_of(&root.join("grammar.y")));
        let (uri, _) = client.open_as(&root.join("grammar.y"), "yacc");
        let hints = client.hints(&uri);
        assert!(hints.iter().any(|(line, ..)| (3..5).contains(line)), "{recorded}: {hints:?}");
        assert_eq!(client.end().code(), Some(0));
    }
}
