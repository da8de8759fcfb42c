//! What the bytes between client and server may be.

use crate::Workspace;
use crate::client::{Client, all_of, frame};
use serde_json::{Value, json};

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;
const REQUEST_CANCELLED: i64 = -32800;

/// Sends bytes, then asks for hints; returns the codes of the errors that were answered to nobody.
#[track_caller]
fn check(client: &mut Client, uri: &str, bytes: &[u8], expect: &[i64]) {
    let before = client.answers(&Value::Null).len();
    client.raw(bytes);
    assert_ne!(client.hints(uri), [], "the server lives");
    let codes: Vec<i64> =
        client.answers(&Value::Null)[before..].iter().filter_map(|answer| answer["error"]["code"].as_i64()).collect();
    assert_eq!(codes, expect, "{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(80)]));
}

#[test]
fn bytes_that_are_no_message_are_answered_and_survived() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let mut check = |bytes: &[u8], expect: &[i64]| check(&mut client, &uri, bytes, expect);
    check(&frame(b"{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": "), &[PARSE_ERROR]);
    check(&frame(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\xfe\"}"), &[PARSE_ERROR]);
    check(&frame(b""), &[PARSE_ERROR]);
    check(&frame(&[b"[".repeat(200_000), b"]".repeat(200_000)].concat()), &[PARSE_ERROR]);
    check(&[frame(b"42"), frame(b"null"), frame(b"[]")].concat(), &[INVALID_REQUEST; 3]);
    check(&frame(b"{\"jsonrpc\":\"2.0\"}"), &[INVALID_REQUEST]);
    check(b"Content-Length: abc\r\n\r\n", &[PARSE_ERROR]);
    check(b"Content-Length: -5\r\n\r\n", &[PARSE_ERROR]);
    check(b"X-Other: 1\r\n\r\n", &[PARSE_ERROR]);
    check(b"no header at all\n\n\n", &[PARSE_ERROR]);
    check(b"Content-Length: 1\r\n\r\n{} and more than was announced", &[PARSE_ERROR]);
    check(&frame(b"{\"jsonrpc\":\"2.0\",\"id\":\"nobody\",\"result\":null}"), &[]);
    check(&frame(b"{\"jsonrpc\":\"2.0\",\"method\":\"no/such\"}"), &[]);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_message_above_the_limit_is_skipped() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let bytes = [b"Content-Length: 67108865\r\n\r\n".as_slice(), &vec![b'x'; 67_108_865]].concat();
    check(&mut client, &uri, &bytes, &[PARSE_ERROR]);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_frame_may_come_in_pieces_and_with_other_headers() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let body = json!({ "jsonrpc": "2.0", "id": "a", "method": "heatline/status", "params": {} }).to_string();
    let header =
        format!("Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: {}\r\n\r\n", body.len());
    for byte in header.bytes().chain(body.bytes()) {
        client.raw(&[byte]);
    }
    assert_eq!(client.wait("a")["result"]["state"], "ready");
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn wrong_requests_are_refused_by_the_right_code() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let document = json!({ "textDocument": { "uri": uri } });
    for method in ["no/such", "$/no/such", "heatline/noSuch", "textDocument/rename"] {
        assert_eq!(client.refused(method, document.clone()), METHOD_NOT_FOUND, "{method}");
    }
    let wrong = [
        ("textDocument/hover", json!({})),
        ("textDocument/hover", Value::Null),
        ("textDocument/inlayHint", document.clone()),
        ("heatline/heat", json!({})),
        ("heatline/hotspots", json!({ "by": "colour" })),
        ("heatline/hotspots", json!({ "metric": "no-such-metric" })),
        ("heatline/adjacentHotspot", document),
        ("workspace/executeCommand", json!({ "command": "no.such", "arguments": [] })),
        ("workspace/executeCommand", json!({ "command": "heatline.server.open", "arguments": [5] })),
        ("callHierarchy/incomingCalls", json!({ "item": {} })),
    ];
    for (method, params) in wrong {
        assert_eq!(client.refused(method, params.clone()), INVALID_PARAMS, "{method} {params}");
    }
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_panic_becomes_one_error_answer_and_its_id_can_be_used_again() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace.root(), &[("HEATLINE_TEST_PANIC", "1")]);
    client.initialize(&workspace.root(), json!({}));
    client.notify("initialized", json!({}));
    client.status("ready");
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    for (late, id) in [(false, "a"), (true, "b")] {
        let ask = |method: &str, params| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        client.send(&ask("heatline/testPanic", json!({ "late": late })));
        let answer = client.wait(id);
        assert_eq!(answer["error"]["code"], INTERNAL_ERROR);
        assert_eq!(answer["error"]["message"], "internal error: asked to panic");
        client.send(&ask("textDocument/inlayHint", all_of(&uri)));
        let again = client.until(|client| client.answers(&json!(id)).get(1).cloned());
        assert_ne!(again["result"], json!([]), "the server lives: {again}");
    }
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn the_panic_of_tests_is_unknown_otherwise() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    assert_eq!(client.refused("heatline/testPanic", json!({ "late": false })), METHOD_NOT_FOUND);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn each_request_is_answered_once_however_many_are_cancelled() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let position = json!({ "textDocument": { "uri": uri }, "position": { "line": crate::HOTTEST, "character": 0 } });
    let mut ids = Vec::new();
    for _ in 0..300 {
        ids.push(client.post("textDocument/hover", position.clone()));
        ids.push(client.post("textDocument/inlayHint", all_of(&uri)));
        for id in &ids[ids.len() - 2..] {
            client.notify("$/cancelRequest", json!({ "id": id }));
        }
    }
    client.notify("$/cancelRequest", json!({ "id": "nobody" }));
    for id in &ids {
        let code = client.wait(*id)["error"]["code"].as_i64();
        assert!(code.is_none_or(|code| code == REQUEST_CANCELLED), "{code:?}");
    }
    client.call("heatline/status", json!({}));
    assert!(ids.iter().all(|id| client.answers(&json!(id)).len() == 1));
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_client_that_does_not_read_stops_nothing() {
    let workspace = Workspace::new();
    let mut client = Client::start_unread(&workspace.root(), &[]);
    let output = client.take_output();
    let root = crate::client::uri_of(&workspace.root());
    let initialize = client.post("initialize", json!({ "capabilities": {}, "rootUri": root }));
    client.notify("initialized", json!({}));
    // The answers are much more than the pipes hold.
    let ids: Vec<i64> =
        (0..20_000).map(|_| client.post("heatline/status", json!({ "unused": "x".repeat(100) }))).collect();
    client.read_from(output);
    for id in [initialize].into_iter().chain(ids) {
        assert!(client.wait(id).get("error").is_none());
    }
    assert_eq!(client.end().code(), Some(0));
}
