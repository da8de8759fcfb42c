//! How long placement takes: an edit in a file of 30 000 lines, the comparison of two such texts, and a search through a
//! history of 50 000 commits for a text that is not in it.
//!
//! Makes what it measures: a program that is recorded, and a repository by `git fast-import`.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark records, starts servers and prints")]

#[path = "../../../tests/protocol/client.rs"]
mod client;

use client::Client;
use heatline_annotate::placement::Comparison;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LINES: usize = 30_000;
const FUNCTIONS: usize = 200;
const COMMITS: usize = 50_000;
const ROUNDS: usize = 1_000;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("a folder");
    record(&root);
    edits(&root);
    comparisons(&std::fs::read_to_string(root.join("long.c")).expect("a source"));
    history(&root);
}

fn run(root: &Path, program: &str, arguments: &[&str]) {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(root).output().expect("the tools run");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Writes, builds (with checksums) and records a program of `LINES` lines.
fn record(root: &Path) {
    let mut text = String::new();
    let per_function = LINES / FUNCTIONS - 6;
    for function in 0..FUNCTIONS {
        writeln!(text, "__attribute__((noinline)) unsigned f{function}(unsigned x)\n{{").unwrap();
        for line in 0..per_function {
            writeln!(text, "    x = (x ^ {}u) * 16777619u + (x >> {});", function * 1000 + line, line % 13 + 1)
                .unwrap();
        }
        writeln!(text, "    return x;\n}}\n").unwrap();
    }
    writeln!(text, "volatile unsigned sink;\nint main(void)\n{{\n    for (int i = 0; i < 3000; i++) {{").unwrap();
    (0..FUNCTIONS).for_each(|function| writeln!(text, "        sink = f{function}(sink + i);").unwrap());
    writeln!(text, "    }}\n    return 0;\n}}").unwrap();
    std::fs::write(root.join("long.c"), text).expect("room");
    run(root, "clang-19", &["-gdwarf-5", "-O1", "long.c", "-o", "long"]);
    run(root, "perf", &["record", "-q", "-N", "-e", "cpu-clock", "-F", "20000", "-o", "perf.data", "./long"]);
}

fn percentiles(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("{name}: median {:.3} ms, p99 {:.3} ms, longest {:.3} ms", at(0.5), at(0.99), at(1.0));
}

/// From sending an edit to having the answer to a request behind it.
fn edits(root: &Path) {
    let mut client = Client::begin(root, json!({}));
    let (uri, text) = client.open(&root.join("long.c"));
    let lines = text.lines().count() as u64;
    println!("{lines} lines, {} hints", client.hints(&uri).len());
    let mut version = 1;
    for (name, place) in [("top", 0), ("middle", lines / 2), ("end", lines - 1)] {
        let times = (0..ROUNDS).map(|round| {
            version += 1;
            let begin = Instant::now();
            let typed = if round % 10 == 9 { "\n" } else { " x" };
            client.edit(&uri, version, [place, 0, place, 0], typed);
            client.time(begin, "heatline/status", json!(null))
        });
        let times = times.collect();
        percentiles(&format!("edit and answer at the {name}"), times);
    }
    client.end();
}

/// Compares a text with itself after 300 edits all over, and after its functions were turned round.
fn comparisons(text: &str) {
    let lines = || (1..=LINES as u32).step_by(15).filter_map(NonZeroU32::new);
    let edited = |every: usize| -> String {
        let edit = |(at, line): (usize, &str)| match at % every {
            0 if at % (3 * every) == 0 => format!("{line}\n    x += 1;\n"),
            0 if at % (3 * every) == every => String::new(),
            0 => format!("{line} // edited\n"),
            _ => format!("{line}\n"),
        };
        text.lines().enumerate().map(edit).collect()
    };
    let mut functions: Vec<&str> = text.split_inclusive("}\n\n").collect();
    functions.swap(3, 150);
    functions.swap(20, 90);
    for (name, now) in [("300 edits", edited(100)), ("3000 edits", edited(10)), ("moved functions", functions.concat())]
    {
        let times = (0..30).map(|_| {
            let begin = Instant::now();
            let places = Comparison::new(text, &now, lines());
            assert!(places.is_sure());
            begin.elapsed()
        });
        percentiles(&format!("comparison after {name}"), times.collect());
    }
}

/// Times a report with and without a repository in which the text that was built is looked for in vain.
fn history(root: &Path) {
    let text = std::fs::read_to_string(root.join("long.c")).expect("a source");
    std::fs::write(root.join("long.c"), format!("// Edited.\n{text}")).expect("room");
    let report = || {
        let begin = Instant::now();
        run(root, env!("CARGO_BIN_EXE_heatline"), &["report", "perf.data", "--by", "line", "--format", "json"]);
        begin.elapsed()
    };
    let without = report();
    run(root, "git", &["init", "-q"]);
    let mut import = Command::new("git");
    let import = import.args(["fast-import", "--quiet"]).current_dir(root).stdin(Stdio::piped()).spawn();
    let mut import = import.expect("git runs");
    let mut stream = std::io::BufWriter::new(import.stdin.take().expect("its input"));
    for commit in 0..COMMITS {
        write!(stream, "commit refs/heads/main\ncommitter Nobody <n@example.org> {} +0000\n", 1_500_000_000 + commit)
            .and_then(|()| write!(stream, "data 2\nc\n"))
            .and_then(|()| writeln!(stream, "M 100644 inline src/{}/file{}.c", commit % 40, commit % 1999))
            .and_then(|()| write!(stream, "data {}\n{commit:>9}\n", 10))
            .expect("git reads");
        if commit % 500 == 0 {
            let long = format!("// Commit {commit}.\n{}", &text[..20_000]);
            write!(stream, "M 100644 inline long.c\ndata {}\n{long}\n", long.len()).expect("git reads");
        }
    }
    drop(stream);
    assert!(import.wait().expect("it ends").success());
    run(root, "git", &["symbolic-ref", "HEAD", "refs/heads/main"]);
    println!(
        "report without a repository {:.2} s, with {COMMITS} commits searched {:.2} s",
        without.as_secs_f64(),
        report().as_secs_f64()
    );
}
