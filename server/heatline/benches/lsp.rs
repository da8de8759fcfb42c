//! How long the language server takes, seen from its client, in a file of 10 000 lines of which 2 000 have cost.
//!
//! Makes a program of that size, records it, starts the server that was built for benchmarks and asks it. The same is
//! asked of clangd (`clangd-19`, else `clangd`) on the same file, where there is one and it has such a request. Prints
//! median and 99th percentile, and the processor time that the server used, which says more on a busy machine.
//!
//! First it says how long the first hint takes from the start of the server, over recordings of 10 and 160 MB of the same
//! program.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark records, starts servers and prints")]

#[path = "../../../tests/protocol/client.rs"]
mod client;
#[path = "../../readers/benches/generate/mod.rs"]
mod generate;

use client::{Client, all_of};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const LINES: usize = 10_000;
const COSTED: usize = 2_000;
const ROUNDS: u32 = 300;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("a folder");
    record(&root);
    let source = root.join("long.c");
    [62_500, 1_000_000].into_iter().for_each(|samples| first_hint(&root, samples));
    let mut ours = Client::begin(&root, json!({ "general": { "positionEncodings": ["utf-16"] } }));
    let (uri, text) = ours.open(&source);
    let hints = ours.hints(&uri).len();
    println!("{} lines, {hints} hints", text.lines().count());
    measure("heatline", &mut ours, &uri);
    assert_eq!(ours.end().code(), Some(0));
    match ["clangd-19", "clangd"].into_iter().find(|name| Command::new(name).arg("--version").output().is_ok()) {
        Some(name) => measure_clangd(name, &root, &source),
        None => println!("clangd: not installed"),
    }
}

/// Opens a workspace with a generated recording of so many samples, and the program's source; says when the first hints came.
fn first_hint(program: &Path, samples: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("a folder");
    let text = generate::text_of(&program.join("long")).expect("an ELF binary");
    let plan = generate::Plan { samples, texts: vec![text], ..generate::Plan::default() };
    generate::write(&root.join("perf.data"), &plan).expect("room for the recording");
    let size = std::fs::metadata(root.join("perf.data")).map_or(0, |file| file.len());
    let mut times: Vec<Duration> = (0..5)
        .map(|_| {
            let start = Instant::now();
            let mut client = Client::begin(&root, json!({}));
            let (uri, _) = client.open(&program.join("long.c"));
            assert!(!client.hints(&uri).is_empty(), "hints come");
            let time = start.elapsed();
            client.end();
            time
        })
        .collect();
    times.sort_unstable();
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "first hint of {:3.0} MB: fastest {:.0} ms, median {:.0} ms",
        size as f64 / 1e6,
        millis(times[0]),
        millis(times[2])
    );
}

/// Writes, builds and records a program with `LINES` lines, of which about `COSTED` are sampled.
fn record(root: &Path) {
    let functions = 100;
    let per_function = COSTED / functions;
    let mut text = String::new();
    for function in 0..functions {
        writeln!(text, "__attribute__((noinline)) unsigned f{function}(unsigned x)\n{{").unwrap();
        for line in 0..per_function {
            writeln!(text, "    x = x * {}u + (x >> {});", 2 * line + 3, line % 7 + 3).unwrap();
        }
        writeln!(text, "    return x;\n}}").unwrap();
        let filled = LINES / functions - per_function - 5;
        text.extend((0..filled).map(|line| format!("/* line {line} between {function} */\n")));
        text.push('\n');
    }
    text.push_str("int main(int argc, char **argv)\n{\n    unsigned x = (unsigned)argc;\n    (void)argv;\n");
    text.push_str("    for (unsigned i = 0; i < 400000u; i++) {\n");
    (0..functions).for_each(|function| writeln!(text, "        x = f{function}(x);").unwrap());
    text.push_str("    }\n    volatile unsigned result = x;\n    (void)result;\n    return 0;\n}\n");
    std::fs::write(root.join("long.c"), text).expect("the source is written");
    run(root, "gcc", &["-g", "-O1", "-fno-omit-frame-pointer", "long.c", "-o", "long"]);
    run(root, "perf", &["record", "-q", "-e", "cpu-clock", "-F", "10000", "-g", "-o", "perf.data", "./long"]);
}

fn run(root: &Path, program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).current_dir(root).status();
    assert!(status.is_ok_and(|status| status.success()), "{program} {arguments:?}");
}

fn measure(who: &str, client: &mut Client, uri: &str) {
    let document = json!({ "textDocument": { "uri": uri } });
    let hints = "textDocument/inlayHint";
    report(
        who,
        "hints of 60 lines",
        times(client, |client, round, now| client.time(now, hints, part(uri, line(round)))),
    );
    report(who, "hints of the whole file", times(client, |client, _, now| client.time(now, hints, all_of(uri))));
    report(
        who,
        "code lenses",
        times(client, |client, _, now| client.time(now, "textDocument/codeLens", document.clone())),
    );
    // The functions begin every hundred lines; their third line has cost.
    let costed = |round: u64| at(uri, round % 100 * 100 + 4);
    report(who, "hover", times(client, |client, round, now| client.time(now, "textDocument/hover", costed(round))));
    report(
        who,
        "heat of the whole file",
        times(client, |client, _, now| client.time(now, "heatline/heat", document.clone())),
    );
    // An edit has no answer: it is timed together with the cheapest request behind it, and that request alone.
    let status = "heatline/status";
    report(who, "status", times(client, |client, _, now| client.time(now, status, json!({}))));
    let mut version = 1;
    let mut edit = |client: &mut Client, line: u64| {
        version += 1;
        client.edit(uri, version, [line, 0, line, 0], if version % 2 == 0 { "\n" } else { "x" });
    };
    let edited = times(client, |client, round, now| {
        edit(client, line(round));
        client.time(now, status, json!({}))
    });
    report(who, "didChange, then status", edited);
    let edited = times(client, |client, round, now| {
        edit(client, line(round));
        client.time(now, hints, part(uri, line(round)))
    });
    report(who, "edit to new hints of 60 lines", edited);
    let edited = times(client, |client, round, now| {
        edit(client, line(round));
        client.time(now, hints, all_of(uri))
    });
    report(who, "edit to new hints of the file", edited);
}

fn measure_clangd(name: &str, root: &Path, source: &Path) {
    let client = &mut Client::start_other(Command::new(name).arg("--log=error").current_dir(root));
    client.initialize(root, json!({}));
    client.notify("initialized", json!({}));
    let (uri, _) = client.open_as(source, "c");
    let hints = "textDocument/inlayHint";
    let end = json!({ "line": LINES, "character": 0 });
    let start = json!({ "line": 0, "character": 0 });
    let whole = json!({ "textDocument": { "uri": uri }, "range": { "start": start, "end": end } });
    // It answers nothing before it has read the file.
    client.call("textDocument/hover", at(&uri, 4));
    report(
        name,
        "hints of 60 lines",
        times(client, |client, round, now| client.time(now, hints, part(&uri, line(round)))),
    );
    report(name, "hints of the whole file", times(client, |client, _, now| client.time(now, hints, whole.clone())));
    let costed = |round: u64| at(&uri, round % 100 * 100 + 4);
    report(name, "hover", times(client, |client, round, now| client.time(now, "textDocument/hover", costed(round))));
    let mut version = 1;
    let edited = times_of(20, client, |client, round, now| {
        version += 1;
        client.edit(&uri, version, [line(round), 0, line(round), 0], "\n");
        client.time(now, hints, part(&uri, line(round)))
    });
    report(name, "edit to new hints of 60 lines", edited);
}

/// Lines all over the file.
fn line(round: u64) -> u64 {
    round * 97 % LINES as u64
}

fn at(uri: &str, line: u64) -> Value {
    json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": 6 } })
}

fn part(uri: &str, line: u64) -> Value {
    let (start, end) = (json!({ "line": line, "character": 0 }), json!({ "line": line + 60, "character": 0 }));
    json!({ "textDocument": { "uri": uri }, "range": { "start": start, "end": end } })
}

/// How long requests took, in order, and what processor time the server used for each of them.
struct Times {
    times: Vec<Duration>,
    used: Duration,
}

fn times(client: &mut Client, work: impl FnMut(&mut Client, u64, Instant) -> Duration) -> Times {
    times_of(ROUNDS, client, work)
}

fn times_of(rounds: u32, client: &mut Client, mut work: impl FnMut(&mut Client, u64, Instant) -> Duration) -> Times {
    let before = client.server_time();
    let rounds_of = 0..u64::from(rounds);
    let mut times: Vec<Duration> = rounds_of.map(|round| work(client, round, Instant::now())).collect();
    let used = (client.server_time() - before) / rounds;
    times.sort_unstable();
    Times { times, used }
}

fn report(who: &str, what: &str, Times { times, used }: Times) {
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    let used = used.as_secs_f64() * 1e3;
    println!("{who:10} {what:30} p50 {:8.3} ms   p99 {:8.3} ms   of processor {used:8.3} ms", at(50), at(99));
}
