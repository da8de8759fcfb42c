//! Hotspots, heat, and the measured call graph.

use crate::client::{Client, uri_of};
use crate::{HOTTEST, Workspace};
use serde_json::{Value, json};

/// A place as document and line.
fn place(location: &Value) -> (String, u64) {
    let uri = location["uri"].as_str().unwrap().to_owned();
    (uri, location["range"]["start"]["line"].as_u64().unwrap())
}

#[test]
fn hotspots_come_hottest_first_from_all_files() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let answer = client.call("heatline/hotspots", json!({ "by": "line", "limit": 20 }));
    assert_eq!(answer["metric"], "cpu-clock");
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 20);
    let weights: Vec<u64> = rows.iter().map(|row| row["exclusive"]["weight"].as_u64().unwrap()).collect();
    assert!(weights.iter().rev().is_sorted());
    assert_eq!(place(&rows[0]["location"]), (uri_of(&workspace.path("src/tree.cpp")), HOTTEST));
    assert_eq!(rows[0]["exclusive"]["samples"], 659);
    assert_eq!(rows[0]["module"], "neighbours");
    assert_eq!(rows[0]["name"], "search(Node const*, Vector, int, Nearest&)");
    let functions = client.call("heatline/hotspots", json!({ "by": "function", "order": "inclusive", "limit": 3 }));
    assert_eq!(functions["rows"].as_array().unwrap().len(), 3);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn hotspots_follow_the_text() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    client.edit(&uri, 2, [0, 0, 0, 0], "\n\n\n");
    let answer = client.call("heatline/hotspots", json!({ "by": "line", "limit": 1 }));
    let hottest = &answer["rows"][0];
    assert_eq!(place(&hottest["location"]), (uri, HOTTEST + 3));
    assert_eq!(hottest["placement"], "moved");
    assert_eq!(client.end().code(), Some(0));
}

fn step(client: &mut Client, from: &(String, u64), direction: &str, order: &str) -> Value {
    let params = json!({
        "textDocument": { "uri": from.0 }, "position": { "line": from.1, "character": 0 },
        "direction": direction, "order": order,
    });
    client.call("heatline/adjacentHotspot", params)
}

#[test]
fn neighbours_by_rank_are_one_cycle_from_the_hottest_to_the_coldest() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let outside = (uri_of(&workspace.path("src/main.cpp")), 0);
    let first = step(&mut client, &outside, "next", "rank");
    assert_eq!(first["rank"], 1);
    assert_eq!(place(&first["location"]), (uri_of(&workspace.path("src/tree.cpp")), HOTTEST));
    let of = first["of"].as_u64().unwrap();
    let mut here = place(&first["location"]);
    for rank in (2..=of).chain([1]) {
        let next = step(&mut client, &here, "next", "rank");
        assert_eq!(next["rank"], rank);
        let there = place(&next["location"]);
        assert_eq!(place(&step(&mut client, &there, "previous", "rank")["location"]), here);
        here = there;
    }
    assert_eq!(step(&mut client, &outside, "previous", "rank")["rank"], of);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn neighbours_in_the_document_are_those_above_and_below() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let tree = uri_of(&workspace.path("src/tree.cpp"));
    let (mut here, mut lines) = ((tree.clone(), 0), Vec::new());
    loop {
        here = place(&step(&mut client, &here, "next", "document")["location"]);
        if here.0 != tree {
            break;
        }
        lines.push(here.1);
    }
    assert!(lines.is_sorted() && lines.contains(&HOTTEST), "{lines:?}");
    let back = step(&mut client, &(tree, HOTTEST + 1), "previous", "document");
    assert_eq!(place(&back["location"]).1, HOTTEST);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn heat_has_nine_for_the_hottest_line() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let heat = client.call("heatline/heat", json!({ "textDocument": { "uri": uri } }));
    assert_eq!((&heat["version"], &heat["metric"]), (&json!(1), &json!("cpu-clock")));
    let lines = heat["lines"].as_array().unwrap();
    let hottest: Vec<&Value> = lines.iter().filter(|line| line["level"] == 9).collect();
    assert_eq!(hottest.len(), 1);
    assert_eq!((&hottest[0]["line"], &hottest[0]["exclusive"]["samples"]), (&json!(HOTTEST), &json!(659)));
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn the_call_graph_goes_both_ways() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, text) = client.open(&workspace.path("src/tree.cpp"));
    let line = text.lines().position(|line| line.contains(" search(") && !line.ends_with(';')).unwrap();
    let character = text.lines().nth(line).unwrap().find("search").unwrap() + 2;
    let at = json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": character } });
    let items = client.call("textDocument/prepareCallHierarchy", at);
    let item = &items[0];
    assert!(item["name"].as_str().unwrap().starts_with("search("), "{items}");
    let named = |calls: &Value, end: &str| -> Vec<String> {
        calls.as_array().unwrap().iter().map(|call| call[end]["name"].as_str().unwrap().to_owned()).collect()
    };
    let incoming = client.call("callHierarchy/incomingCalls", json!({ "item": item }));
    let outgoing = client.call("callHierarchy/outgoingCalls", json!({ "item": item }));
    let recursion = |names: &[String]| names.iter().any(|name| name.starts_with("search("));
    assert!(recursion(&named(&incoming, "from")) && recursion(&named(&outgoing, "to")));
    assert!(
        named(&outgoing, "to").iter().any(|name| name.starts_with("squared_distance(")),
        "an inlined callee: {outgoing}"
    );
    for call in outgoing.as_array().unwrap() {
        assert!(call["to"]["detail"].as_str().unwrap().contains(" sample"), "{call}");
    }
    // The way back: who called the inlined function.
    let callee = outgoing
        .as_array()
        .unwrap()
        .iter()
        .find(|call| call["to"]["name"].as_str().unwrap().starts_with("squared_distance("));
    let back = client.call("callHierarchy/incomingCalls", json!({ "item": callee.unwrap()["to"] }));
    assert!(recursion(&named(&back, "from")), "{back}");
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_lens_leads_to_callers_and_callees() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, _) = client.open(&workspace.path("src/tree.cpp"));
    let lenses = client.call("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
    let lens = lenses.as_array().unwrap().iter().max_by_key(|lens| lens["command"]["title"].as_str().map(str::len));
    let command = &lens.unwrap()["command"];
    let calls = client
        .call("workspace/executeCommand", json!({ "command": command["command"], "arguments": command["arguments"] }));
    let rows = [&calls["callers"], &calls["callees"]].map(|rows| rows.as_array().unwrap().clone()).concat();
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row["name"].is_string() && row["module"].is_string() && row["cost"]["samples"].is_u64(), "{row}");
    }
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_declaration_in_a_file_without_cost_leads_to_the_function() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    let (uri, text) = client.open(&workspace.path("src/tree.h"));
    let line = text.lines().position(|line| line.starts_with("void search(")).unwrap();
    let at = json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": 6 } });
    let items = client.call("textDocument/prepareCallHierarchy", at);
    assert_eq!(items[0]["uri"], uri_of(&workspace.path("src/tree.cpp")), "{items}");
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_hotspot_whose_file_has_gone_has_no_place() {
    let workspace = Workspace::new();
    let mut client = Client::begin(&workspace.root(), json!({}));
    std::fs::rename(workspace.path("src/tree.cpp"), workspace.path("src/renamed.cpp")).unwrap();
    let answer = client.call("heatline/hotspots", json!({ "by": "line", "limit": 1 }));
    assert_eq!(answer["rows"][0]["exclusive"]["samples"], 659);
    assert_eq!(answer["rows"][0].get("location"), None);
    let outside = (uri_of(&workspace.path("src/main.cpp")), 0);
    let first = step(&mut client, &outside, "next", "rank");
    assert!(!first["location"]["uri"].as_str().unwrap().ends_with("tree.cpp"), "{first}");
    assert_eq!(client.end().code(), Some(0));
}
