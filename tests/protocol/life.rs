//! The beginning and the end of a session.

use crate::Workspace;
use crate::client::{Client, all_of};
use serde_json::{Value, json};

const NOT_INITIALIZED: i64 = -32002;
const INVALID_REQUEST: i64 = -32600;

#[test]
fn a_session_ends_in_order() {
    let workspace = Workspace::new();
    let client = Client::begin(&workspace.root(), json!({}));
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn exit_without_shutdown_is_an_error() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    client.notify("exit", Value::Null);
    assert_eq!(client.exit().code(), Some(1));
}

#[test]
fn a_closed_input_ends_the_process_in_every_state() {
    let workspace = Workspace::new();
    let states: [fn(&mut Client, &Workspace); 4] = [
        |_, _| {},
        |client, workspace| drop(client.initialize(&workspace.root(), json!({}))),
        |client, workspace| {
            client.initialize(&workspace.root(), json!({}));
            // The load begins now.
            client.notify("initialized", json!({}));
        },
        |client, _| client.raw(b"Content-Length: 500\r\n\r\n{\"jsonrpc\""),
    ];
    for prepare in states {
        let mut client = Client::start(&workspace.root(), &[]);
        prepare(&mut client, &workspace);
        client.close_input();
        assert_eq!(client.exit().code(), Some(1));
    }
}

#[test]
fn a_closed_input_after_shutdown_is_in_order() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    client.call("shutdown", json!({}));
    client.close_input();
    assert_eq!(client.exit().code(), Some(0));
}

#[test]
fn requests_before_initialize_are_refused_and_notifications_ignored() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace.root(), &[]);
    assert_eq!(client.refused("textDocument/inlayHint", all_of("file:///a.c")), NOT_INITIALIZED);
    assert_eq!(client.refused("shutdown", Value::Null), NOT_INITIALIZED);
    client.open(&workspace.path("src/tree.cpp"));
    client.initialize(&workspace.root(), json!({}));
    client.notify("initialized", json!({}));
    client.status("ready");
    let uri = crate::client::uri_of(&workspace.path("src/tree.cpp"));
    assert_eq!(client.hints(&uri), [], "the document was opened too early to count");
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn requests_before_initialized_are_answered() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace.root(), &[]);
    client.initialize(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    assert_eq!(client.hints(&uri), []);
    for parameters in [json!({}), Value::Null] {
        assert_eq!(client.call("heatline/status", parameters)["state"], "idle");
    }
    client.notify("initialized", json!({}));
    client.status("ready");
    assert_ne!(client.hints(&uri), []);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_second_initialize_and_requests_after_shutdown_are_refused() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    assert_eq!(client.refused("initialize", json!({ "capabilities": {} })), INVALID_REQUEST);
    client.call("shutdown", Value::Null);
    assert_eq!(client.refused("textDocument/inlayHint", all_of("file:///a.c")), INVALID_REQUEST);
    client.notify("exit", Value::Null);
    assert_eq!(client.exit().code(), Some(0));
}

#[test]
fn answers_that_are_due_at_shutdown_are_given() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let position = json!({ "textDocument": { "uri": uri }, "position": { "line": crate::HOTTEST, "character": 0 } });
    let ids: Vec<i64> = (0..100).map(|_| client.post("textDocument/hover", position.clone())).collect();
    let shutdown = client.post("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    for id in ids.into_iter().chain([shutdown]) {
        assert!(client.wait(id).get("error").is_none());
    }
    assert_eq!(client.exit().code(), Some(0));
}
