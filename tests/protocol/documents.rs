//! Open documents: order, encodings, edits.

use crate::client::{Client, all_of, places};
use crate::{HOTTEST, HOTTEST_SHARE, Workspace};
use serde_json::{Value, json};

fn length(text: &str, encoding: &str) -> u64 {
    let length = match encoding {
        "utf-8" => text.len(),
        "utf-16" => text.encode_utf16().count(),
        _ => text.chars().count(),
    };
    length as u64
}

#[test]
fn hints_stand_at_the_ends_of_lines_in_every_encoding() {
    let workspace = Workspace::new();
    for (offered, taken) in
        [(json!(["utf-8"]), "utf-8"), (json!(["utf-7", "utf-32", "utf-8"]), "utf-32"), (json!([]), "utf-16")]
    {
        let mut client = Client::start(&workspace.root(), &[]);
        let answer = client.initialize(&workspace.root(), json!({ "general": { "positionEncodings": offered } }));
        assert_eq!(answer["capabilities"]["positionEncoding"], taken);
        client.notify("initialized", json!({}));
        client.status("ready");
        let (uri, text) = client.open(&workspace.path("src/tree.cpp"));
        let line = text.lines().nth(HOTTEST as usize).unwrap();
        let end = length(line, taken);
        // The edit's place is counted as the hint's is.
        client.edit(&uri, 2, [HOTTEST, end, HOTTEST, end], " // 😀 ü 漢");
        let expected = length(&format!("{line} // 😀 ü 漢"), taken);
        let hint = client.hints(&uri).into_iter().find(|(line, ..)| *line == HOTTEST).unwrap();
        assert_eq!(hint.1, expected, "{taken}");
        assert!(hint.2.starts_with(&format!("~{HOTTEST_SHARE}")), "the line was edited: {}", hint.2);
        assert_eq!(client.end().code(), Some(0));
    }
}

#[test]
fn each_answer_fits_the_text_at_the_moment_of_its_request() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let before = client.hints(&uri);
    let mut asked = Vec::new();
    let mut shift = 0;
    for i in 0..1000u64 {
        let version = i64::try_from(i).unwrap() + 2;
        // A line more above everything for most edits, three lines fewer for some.
        if i % 7 == 6 {
            client.edit(&uri, version, [0, 0, 3, 0], "");
            shift -= 3;
        } else {
            client.edit(&uri, version, [0, 0, 0, 0], "// 😀\r\n");
            shift += 1;
        }
        let id = match i % 3 {
            0 => client.post("textDocument/inlayHint", all_of(&uri)),
            1 => client.post("heatline/heat", json!({ "textDocument": { "uri": uri } })),
            _ => {
                let position = json!({ "line": HOTTEST as i64 + shift, "character": 4 });
                client.post("textDocument/hover", json!({ "textDocument": { "uri": uri }, "position": position }))
            }
        };
        asked.push((id, i % 3, version, shift));
    }
    for (id, kind, version, shift) in asked {
        let result = client.wait(id)["result"].clone();
        let moved: Vec<i64> = before.iter().map(|(line, ..)| *line as i64 + shift).collect();
        match kind {
            0 => {
                let lines: Vec<i64> = places(&result).iter().map(|(line, ..)| *line as i64).collect();
                assert_eq!(lines, moved);
            }
            1 => {
                assert_eq!(result["version"], version);
                let lines = result["lines"].as_array().unwrap().iter().map(|line| line["line"].as_i64().unwrap());
                assert_eq!(lines.collect::<Vec<_>>(), moved);
            }
            _ => assert!(result["contents"]["value"].as_str().unwrap().contains(HOTTEST_SHARE)),
        }
    }
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_range_has_exactly_its_hints() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, text) = client.open(&workspace.path("src/tree.cpp"));
    let all = client.hints(&uri);
    let lines = text.lines().count() as u64;
    for (from, to) in [(0, 0), (0, lines), (HOTTEST, HOTTEST + 1), (HOTTEST + 1, HOTTEST + 9), (9, 3)] {
        let position = |line: u64| json!({ "line": line, "character": 0 });
        let range = json!({ "start": position(from), "end": position(to) });
        let hints = client.call("textDocument/inlayHint", json!({ "textDocument": { "uri": uri }, "range": range }));
        let expected: Vec<_> = all.iter().filter(|(line, ..)| (from..to).contains(line)).cloned().collect();
        assert_eq!(places(&hints), expected, "{from}..{to}");
    }
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_text_sent_as_a_whole_moves_hints_like_an_edit() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, text) = client.open(&workspace.path("src/tree.cpp"));
    let before = client.hints(&uri);
    let change =
        json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "text": format!("\n\n{text}") }] });
    client.notify("textDocument/didChange", change);
    let moved: Vec<_> = before.into_iter().map(|(line, at, label)| (line + 2, at, label)).collect();
    assert_eq!(client.hints(&uri), moved);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn documents_without_cost_get_empty_answers() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let absent = crate::client::uri_of(&workspace.path("absent.cpp"));
    for uri in ["untitled:Untitled-1", "git:/a/b.c?x", "vscode-notebook-cell:/a#b", &absent] {
        let document = json!({ "uri": uri, "languageId": "c", "version": 3, "text": "int x;\n" });
        client.notify("textDocument/didOpen", json!({ "textDocument": document }));
        let at = json!({ "textDocument": { "uri": uri }, "position": { "line": 0, "character": 1 } });
        assert_eq!(client.hints(uri), []);
        assert_eq!(client.call("textDocument/codeLens", json!({ "textDocument": { "uri": uri } })), json!([]));
        assert_eq!(client.call("textDocument/hover", at.clone()), Value::Null);
        assert_eq!(client.call("textDocument/prepareCallHierarchy", at), Value::Null);
        assert_eq!(client.call("heatline/heat", json!({ "textDocument": { "uri": uri } }))["lines"], json!([]));
    }
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn spellings_of_an_address_and_links_lead_to_one_file() {
    let workspace = Workspace::new();
    std::os::unix::fs::symlink(workspace.path("src"), workspace.path("link")).unwrap();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("link/tree.cpp"));
    assert_ne!(client.hints(&uri), []);
    let spelled = uri.replace("tree", "%74ree").replace("%C3%BC", "%c3%bc");
    assert_ne!(client.hints(&spelled), []);
    assert_eq!(client.end().code(), Some(0));
}
