//! Exports, read back by programs and code that know nothing of us: each function has the cost that `report` says.

use super::lab::{Lab, heatline, report};
use super::protoc;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Exclusive and inclusive weight by the name of a function; what several functions of one name have inclusively is not
/// told by the name, since they may be on one stack.
type Costs = BTreeMap<String, (u64, Option<u64>)>;

/// What a report says, functions of one name added up; code without a name goes by its module.
fn expected(profile: &Path, arguments: &[&str]) -> Costs {
    let document = report(profile, &[&["--by", "function"], arguments].concat());
    let mut costs = Costs::new();
    for row in document["rows"].as_array().expect("rows") {
        let name = match row["function"].as_str() {
            Some(name) => name.to_owned(),
            None => format!("[{}]", row["module"].as_str().expect("a module").trim_matches(['[', ']'])),
        };
        let weight = |kind: &str| row[kind]["weight"].as_u64().expect("a weight");
        let (exclusive, inclusive) = (weight("exclusive"), weight("inclusive"));
        let another = |entry: &mut (u64, Option<u64>)| *entry = (entry.0 + exclusive, None);
        costs.entry(name).and_modify(another).or_insert((exclusive, Some(inclusive)));
    }
    costs
}

/// Adds up stacks, outermost function first: what each has by itself, and with all it called, once per stack.
fn add_up<'a>(stacks: impl Iterator<Item = (Vec<&'a str>, u64)>) -> Costs {
    let mut costs = Costs::new();
    for (stack, weight) in stacks {
        costs.entry((*stack.last().expect("a frame")).to_owned()).or_default().0 += weight;
        for name in stack.into_iter().collect::<BTreeSet<_>>() {
            *costs.entry(name.to_owned()).or_default().1.get_or_insert(0) += weight;
        }
    }
    costs
}

/// Static functions of one name in several files are told apart by us and not by names.
#[track_caller]
fn assert_same(found: &Costs, expected: &Costs, what: &str) {
    let same =
        |a: &(u64, Option<u64>), b: &(u64, Option<u64>)| a.0 == b.0 && (a.1 == b.1 || a.1.is_none() || b.1.is_none());
    let differs = |(name, cost): &(&String, &(u64, Option<u64>))| !found.get(*name).is_some_and(|it| same(it, cost));
    let differing: Vec<_> = expected.iter().filter(differs).map(|(name, cost)| (name, cost, found.get(name))).collect();
    assert!(differing.is_empty(), "{what}: {differing:?}");
    assert_eq!(found.len(), expected.len(), "{what}");
}

fn export(lab: &Lab, arguments: &[&str]) {
    let output = heatline(&lab.path(""), &[&["export"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn json(lab: &Lab, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(lab.path(name)).expect("a file")).expect("JSON")
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().expect("an array").iter().map(|number| number.as_u64().expect("a number")).collect()
}

#[test]
fn each_viewer_gets_the_costs_of_the_report() {
    let lab = Lab::new();
    let profile = lab.record("perf.data", &["-g", "-e", "cpu-clock", "-F", "2000"]);
    for options in [&[][..], &["--no-inline"], &["--comm", "first"]] {
        let expected = expected(&profile, options);
        for (format, read) in
            [("pprof", from_pprof as fn(&Lab) -> Costs), ("speedscope", from_speedscope), ("firefox", from_firefox)]
        {
            export(&lab, &[&["perf.data", "--to", format, "-o", "out", "--force"], options].concat());
            assert_same(&read(&lab), &expected, &format!("{format} {options:?}"));
        }
    }
    // What was exported opens here, too.
    export(&lab, &["perf.data", "--to", "pprof", "-o", "cpu.pb.gz"]);
    assert_same(&self::expected(&lab.path("cpu.pb.gz"), &[]), &self::expected(&profile, &[]), "read again");
    refusals(&lab);
}

fn refusals(lab: &Lab) {
    for (arguments, expected) in [
        (&["--to", "pprof", "--metric", "cpu-clock"][..], "--metric"),
        (&["--to", "spt", "--comm", "first"], "--comm"),
        (&["--to", "firefox", "--metric", "none"], "no event none; this profile has: cpu-clock"),
        (&["--to", "firefox", "--comm", "nobody"], "there are app, first, second"),
    ] {
        let output = heatline(&lab.path(""), &[&["export", "perf.data", "-o", "none"], arguments].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(!lab.path("none").exists());
    }
}

/// Through the text form of protoc: one field a line, messages in braces.
fn from_pprof(lab: &Lab) -> Costs {
    let text = protoc::decode(&protoc::gunzip(&std::fs::read(lab.path("out")).expect("a file")));
    let mut strings: Vec<String> = Vec::new();
    let mut functions: HashMap<u64, usize> = HashMap::new();
    let mut lines: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut modules: HashMap<u64, u64> = HashMap::new();
    let mut files: HashMap<u64, usize> = HashMap::new();
    let mut samples: Vec<(Vec<u64>, Vec<u64>)> = Vec::new();
    let mut types = 0;
    let mut path: Vec<&str> = Vec::new();
    let mut id = 0;
    for line in text.lines().map(str::trim) {
        if line == "}" {
            path.pop();
            continue;
        }
        if let Some(message) = line.strip_suffix(" {") {
            path.push(message);
            types += usize::from(message == "sample_type");
            if message == "sample" {
                samples.push(Default::default());
            }
            continue;
        }
        let (key, value) = line.split_once(": ").expect("a field");
        let number = || value.parse::<u64>().expect("a number");
        match (path.join(".").as_str(), key) {
            ("", "string_table") => strings.push(value.trim_matches('"').to_owned()),
            ("location" | "function" | "mapping", "id") => id = number(),
            ("function", "name") => drop(functions.insert(id, number() as usize)),
            ("mapping", "filename") => drop(files.insert(id, number() as usize)),
            ("location", "mapping_id") => drop(modules.insert(id, number())),
            ("location.line", "function_id") => lines.entry(id).or_default().push(number()),
            ("sample", "location_id") => samples.last_mut().expect("a sample").0.push(number()),
            ("sample", "value") => samples.last_mut().expect("a sample").1.push(number()),
            _ => {}
        }
    }
    let unnamed: HashMap<u64, String> = files
        .iter()
        .map(|(id, name)| {
            let path = &strings[*name];
            let name = if path.starts_with('[') { path } else { path.rsplit('/').next().expect("a name") };
            (*id, format!("[{}]", name.trim_matches(['[', ']'])))
        })
        .collect();
    let stack = |locations: &[u64]| {
        let frames = locations.iter().rev().flat_map(|location| match lines.get(location) {
            Some(lines) => lines.iter().rev().map(|line| strings[functions[line]].as_str()).collect::<Vec<_>>(),
            None => vec![unnamed[&modules[location]].as_str()],
        });
        frames.collect::<Vec<&str>>()
    };
    // The time is the last of the sample types; the one before counts the samples.
    assert_eq!(types, 2);
    add_up(samples.iter().map(|(locations, values)| (stack(locations), values[1])))
}

/// By the published description of the format: which fields there must be, and of which kinds.
fn from_speedscope(lab: &Lab) -> Costs {
    let document = json(lab, "out");
    assert_eq!(document["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let allowed = ["$schema", "exporter", "name", "activeProfileIndex", "shared", "profiles"];
    assert!(document.as_object().expect("an object").keys().all(|key| allowed.contains(&key.as_str())));
    let frames = document["shared"]["frames"].as_array().expect("frames");
    let names: Vec<&str> = frames.iter().map(|frame| frame["name"].as_str().expect("a name")).collect();
    for frame in frames {
        assert!(frame.as_object().expect("an object").iter().all(|(key, value)| match key.as_str() {
            "name" | "file" => value.is_string(),
            "line" | "col" => value.is_u64(),
            _ => false,
        }));
    }
    let profile = &document["profiles"][document["activeProfileIndex"].as_u64().expect("a number") as usize];
    assert_eq!((&profile["type"], &profile["unit"]), (&"sampled".into(), &"nanoseconds".into()));
    assert_eq!(profile["name"], "cpu-clock");
    let weights = numbers(&profile["weights"]);
    assert_eq!(profile["endValue"].as_u64().expect("a number"), weights.iter().sum::<u64>());
    let samples = profile["samples"].as_array().expect("samples");
    assert_eq!(samples.len(), weights.len());
    let stack = |sample: &Value| numbers(sample).into_iter().map(|frame| names[frame as usize]).collect::<Vec<_>>();
    add_up(samples.iter().map(stack).zip(weights))
}

/// By the types that the viewer's source declares for version 57.
fn from_firefox(lab: &Lab) -> Costs {
    let document = json(lab, "out");
    let meta = &document["meta"];
    assert_eq!((&meta["preprocessedProfileVersion"], &meta["symbolicated"]), (&57.into(), &true.into()));
    assert!(meta["categories"].as_array().expect("categories").iter().any(|category| category["color"] == "grey"));
    let strings = document["shared"]["stringArray"].as_array().expect("strings");
    let mut stacks = Vec::new();
    for thread in document["threads"].as_array().expect("threads") {
        assert!(thread["pid"].is_string() && thread["isMainThread"].is_boolean() && thread["name"].is_string());
        for (table, columns) in [
            ("stackTable", &["frame", "prefix"][..]),
            (
                "frameTable",
                &[
                    "address",
                    "inlineDepth",
                    "category",
                    "subcategory",
                    "func",
                    "nativeSymbol",
                    "innerWindowID",
                    "line",
                    "column",
                ],
            ),
            ("funcTable", &["name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber"]),
            ("resourceTable", &["lib", "name", "host", "type"]),
            ("nativeSymbols", &["libIndex", "address", "name", "functionSize"]),
            ("markers", &["data", "name", "startTime", "endTime", "phase", "category"]),
            ("samples", &["stack", "time", "weight"]),
        ] {
            let length = thread[table]["length"].as_u64().expect("a length");
            for column in columns {
                assert_eq!(thread[table][column].as_array().map(Vec::len), Some(length as usize), "{table}.{column}");
            }
        }
        let samples = &thread["samples"];
        assert_eq!(samples["weightType"], "tracing-ms");
        for (at, stack) in numbers(&samples["stack"]).into_iter().enumerate() {
            let milliseconds = samples["weight"][at].as_f64().expect("a weight");
            stacks.push((firefox_stack(thread, stack as usize, strings), (milliseconds * 1e6).round() as u64));
        }
    }
    add_up(stacks.into_iter())
}

/// The names of a stack's functions, outermost first; inlined ones must count their depth from 0 at each address.
fn firefox_stack<'a>(thread: &Value, stack: usize, strings: &'a [Value]) -> Vec<&'a str> {
    let mut names = Vec::new();
    let mut next = Some(stack);
    let mut inner_depth = None;
    while let Some(at) = next {
        let index = |table: &str, column: &str, row: usize| thread[table][column][row].as_u64().map(|n| n as usize);
        let frame = index("stackTable", "frame", at).expect("a frame");
        let depth = index("frameTable", "inlineDepth", frame).expect("a depth");
        assert!(inner_depth.is_none_or(|inner| inner == 0 || inner == depth + 1));
        inner_depth = Some(depth);
        let func = index("frameTable", "func", frame).expect("a function");
        let name = index("funcTable", "name", func).expect("a name");
        names.push(strings[name].as_str().expect("a string"));
        next = index("stackTable", "prefix", at);
    }
    assert_eq!(inner_depth, Some(0));
    names.reverse();
    names
}

/// A few bytes: one location of 30 000 inlined calls, forty times.
#[test]
fn stacks_that_a_viewer_could_not_show_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = "line { function_id: 1 line: 3 } ".repeat(30_000);
    let text = format!(
        "sample_type {{ type: 1 unit: 2 }} sample {{ location_id: [{}] value: 5 }}
         location {{ id: 1 address: 16 {lines} }} function {{ id: 1 name: 1 }}
         string_table: \"\" string_table: \"cpu\" string_table: \"count\"",
        ["1"; 40].join(", ")
    );
    std::fs::write(folder.path().join("deep.pb"), protoc::encode(&text)).expect("a file");
    let output = heatline(folder.path(), &["export", "deep.pb", "--to", "firefox", "-o", "out"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && message.contains("--no-inline"), "{message}");
    let output = heatline(folder.path(), &["export", "deep.pb", "--to", "firefox", "--no-inline", "-o", "out"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
