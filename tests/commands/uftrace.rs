//! Instrumented programs, recorded by uftrace: times and calls against `uftrace report`.

use super::lab::{heatline, report};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Recursion, threads that sleep and contend for a lock, a jump over several calls, and the start of another program.
pub const MIXED: &str = "#include <pthread.h>
#include <setjmp.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static jmp_buf place;
volatile long sink;
__attribute__((noipa)) long fib(long n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
__attribute__((noipa)) void spin(long n) {
    for (long i = 0; i < n; i++)
        sink += i;
}
__attribute__((noipa)) void nap(void) {
    usleep(2000);
}
__attribute__((noipa)) void locked(void) {
    pthread_mutex_lock(&lock);
    spin(20000);
    nap();
    pthread_mutex_unlock(&lock);
}
__attribute__((noipa)) void deep(int n) {
    spin(100);
    if (n == 0)
        longjmp(place, 1);
    deep(n - 1);
    sink++;
}
__attribute__((noipa)) void *worker(void *unused) {
    for (int i = 0; i < 5; i++)
        locked();
    return unused;
}
int main(int count, char **words) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, worker, 0);
    sink = fib(15);
    if (!setjmp(place))
        deep(3);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    nap();
    if (count > 1)
        execl(words[1], words[1], (char *)0);
    return 0;
}
";

/// Exceptions through several frames with destructors on the way, and one that is thrown on.
pub const THROWING: &str = "#include <stdexcept>
#include <unistd.h>
volatile long sink;
struct Guard {
    ~Guard();
};
__attribute__((noipa)) Guard::~Guard() {
    sink = sink + 1;
}
__attribute__((noipa)) void thrower(int n) {
    Guard guard;
    if (n == 0)
        throw std::runtime_error(\"enough\");
    thrower(n - 1);
    sink = sink + 1;
}
__attribute__((noipa)) void middle(int n) {
    try {
        thrower(n);
    } catch (std::exception &) {
        sink = sink + 1;
        throw;
    }
}
__attribute__((noipa)) void rest() {
    usleep(1000);
}
int main() {
    for (int i = 0; i < 4; i++) {
        try {
            middle(i);
        } catch (std::exception &) {
            rest();
        }
    }
    return 0;
}
";

/// A folder with programs and their recordings.
pub struct Traced {
    pub folder: TempDir,
}

impl Traced {
    pub fn new() -> Self {
        Traced { folder: tempfile::tempdir().expect("a folder") }
    }

    pub fn run(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path()).env("LC_ALL", "C");
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub fn compile(&self, source: &str, text: &str, program: &str, flags: &[&str]) {
        std::fs::write(self.folder.path().join(source), text).expect("a source file");
        let all = [&["-g", "-O1", "-fno-optimize-sibling-calls", source, "-o", program, "-pthread"], flags].concat();
        self.run("g++", &[&["-x", if source.ends_with(".c") { "c" } else { "c++" }], all.as_slice()].concat());
    }

    pub fn record(&self, name: &str, options: &[&str], command: &[&str]) -> PathBuf {
        self.run("uftrace", &[&["record", "-d", name], options, command].concat());
        self.folder.path().join(name)
    }

    pub fn theirs(&self, recording: &str) -> BTreeMap<String, Theirs> {
        let text = self.run("uftrace", &["report", "-d", recording, "-f", "total,self,call"]);
        let lines = text.lines().filter(|line| !line.contains("=====") && !line.contains("Total time"));
        lines.filter(|line| !line.trim().is_empty()).map(Theirs::parse).collect()
    }
}

/// A row of `uftrace report`: times in nanoseconds, and half a step of their rounding.
#[derive(Debug, Clone, Copy, Default)]
pub struct Theirs {
    pub total: (f64, f64),
    own: (f64, f64),
    pub calls: u64,
}

impl Theirs {
    fn parse(line: &str) -> (String, Theirs) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let time = |number: &str, unit: &str| {
            let step = match unit {
                "us" => 1.0,
                "ms" => 1e3,
                "s" => 1e6,
                "m" => 60e6,
                _ => panic!("a unit of time in {line:?}"),
            };
            (number.parse::<f64>().expect("a time") * 1e3 * step, step)
        };
        let (total, own) = (time(words[0], words[1]), time(words[2], words[3]));
        (words[5..].join(" "), Theirs { total, own, calls: words[4].parse().expect("a count") })
    }
}

/// A row of ours, summed over modules as uftrace does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ours {
    pub elapsed: f64,
    pub application_own: f64,
    pub elapsed_own: f64,
    pub calls: u64,
}

pub fn ours(document: &Value) -> BTreeMap<String, Ours> {
    let mut rows: BTreeMap<String, Ours> = BTreeMap::new();
    for row in document["rows"].as_array().expect("rows") {
        let name = row["function"].as_str().unwrap_or("?");
        let name = name.split('(').next().unwrap_or(name);
        let ns = |time: &str, kind: &str| row[time][kind]["ns"].as_f64();
        let entry = rows.entry(name.to_owned()).or_default();
        entry.elapsed += ns("elapsed", "inclusive").expect("elapsed time");
        let own = ns("elapsed", "exclusive").expect("elapsed time");
        entry.elapsed_own += own;
        entry.application_own += ns("application", "exclusive").unwrap_or(own);
        entry.calls += row["calls"].as_u64().expect("calls");
    }
    rows
}

/// Whether a time is that of uftrace, which rounds.
pub fn is_near(ours: f64, theirs: (f64, f64), terms: f64) -> bool {
    (ours - theirs.0).abs() <= theirs.1 * terms
}

/// How far a switch and a call that are written at the same time may lie apart, in nanoseconds.
const MOMENT: f64 = 500.0;

/// Compares all functions but `except`, of which the two are known to differ.
#[track_caller]
pub fn check(traced: &Traced, recording: &Path, except: &[&str]) {
    let theirs = traced.theirs(recording.file_name().unwrap().to_str().unwrap());
    let document = report(recording, &[]);
    let ours = ours(&document);
    let is_compared = |name: &&String| !except.contains(&name.as_str()) && !name.starts_with("linux:schedule");
    let names = |all: Vec<&String>| all.into_iter().filter(is_compared).cloned().collect::<Vec<_>>();
    assert_eq!(names(ours.keys().collect()), names(theirs.keys().collect()));
    let switches = theirs.iter().filter(|(name, _)| name.starts_with("linux:schedule")).map(|(_, row)| row.calls).sum();
    for (name, theirs) in theirs.iter().filter(|(name, _)| is_compared(name)) {
        let ours = ours[name];
        assert_eq!(ours.calls, theirs.calls, "calls of {name}");
        assert!(is_near(ours.elapsed, theirs.total, 1.0), "total of {name}: {ours:?} {theirs:?}");
        // Switches are written by the kernel and calls by the program: of a switch beside a call either may seem to be
        // first, and uftrace and we then give the moment between them to different functions.
        let moment = MOMENT * ours.calls.min(switches) as f64;
        let own = (theirs.own.0, theirs.own.1 + moment);
        assert!(is_near(ours.application_own, own, 1.0), "self of {name}: {ours:?} {theirs:?}");
    }
    let waits: Vec<&Theirs> =
        theirs.iter().filter(|(name, _)| name.starts_with("linux:schedule")).map(|(_, theirs)| theirs).collect();
    let has_application = document["rows"][0].get("application").is_some();
    // It forgets waits while a program is being replaced together with the call.
    let waits_of = ours.iter().filter(|(name, _)| name.as_str() != "execl");
    let waiting: f64 = waits_of.map(|(_, ours)| ours.elapsed_own - ours.application_own).sum();
    let scheduled: f64 = waits.iter().map(|theirs| theirs.total.0).sum();
    let step = waits.iter().map(|theirs| theirs.total.1).fold(0.0, f64::max);
    assert_eq!(has_application, !waits.is_empty(), "application times exist where scheduling was recorded");
    // What uftrace makes of a wait at such a moment is short.
    let slack = 2.0 * step + MOMENT * switches as f64;
    assert!((waiting - scheduled).abs() <= slack, "off-CPU {waiting}, uftrace {scheduled}");
    assert_eq!(document["problems"], Value::Array(Vec::new()));
}

/// What uftrace forgets of functions that were jumped out of it gives to the second return of setjmp.
pub const JUMPED: [&str; 3] = ["_setjmp", "deep", "longjmp"];

/// Instrumented by the compiler's two ways, with scheduling and without.
#[test]
fn times_and_calls_are_those_of_uftrace() {
    let traced = Traced::new();
    traced.compile("mixed.c", MIXED, "mixed", &["-pg"]);
    traced.compile("mixed.c", MIXED, "entered", &["-finstrument-functions"]);
    for (name, program, options) in [
        ("counted", "./mixed", &[][..]),
        ("quiet", "./mixed", &["--no-event"]),
        ("entered", "./entered", &[]),
        ("with-arguments", "./mixed", &["-a"]),
    ] {
        let recording = traced.record(&format!("{name}.data"), options, &[program]);
        check(&traced, &recording, &JUMPED);
        let calls = |time: &[&str]| ours(&report(&recording, time)).values().map(|row| row.calls).sum::<u64>();
        assert_eq!(calls(&["--time", "0%-100%"]), calls(&[]), "all of {name}");
    }
}

#[test]
fn frames_that_an_exception_leaves_end_there() {
    let traced = Traced::new();
    traced.compile("throwing.cpp", THROWING, "throwing", &["-pg"]);
    for (name, options) in [("counted.data", &[][..]), ("quiet.data", &["--no-event"])] {
        check(&traced, &traced.record(name, options, &["./throwing"]), &[]);
    }
}

/// uftrace forgets the functions that are open when another program starts; they did run.
#[test]
fn a_program_that_another_one_replaces_keeps_its_times() {
    let traced = Traced::new();
    traced.compile("throwing.cpp", THROWING, "throwing", &["-pg"]);
    traced.compile("mixed.c", MIXED, "mixed", &["-pg"]);
    let recording = traced.record("both.data", &[], &["./mixed", "./throwing"]);
    let mut except = JUMPED.to_vec();
    except.extend(["main", "execl"]);
    check(&traced, &recording, &except);
    let document = report(&recording, &[]);
    let rows = document["rows"].as_array().unwrap();
    let mains = rows.iter().filter(|row| row["function"] == "main").map(|row| row["module"].as_str().unwrap());
    let mut mains: Vec<&str> = mains.collect();
    mains.sort_unstable();
    assert_eq!(mains, ["mixed", "throwing"]);
}

/// Every row of every kind has the four values, and they keep their order of size.
#[test]
fn every_row_has_the_four_times() {
    let traced = Traced::new();
    traced.compile("mixed.c", MIXED, "mixed", &["-pg"]);
    let recording = traced.record("uftrace.data", &[], &["./mixed"]);
    for by in ["function", "line", "file", "module", "thread", "process", "event"] {
        let document = report(&recording, &["--by", by]);
        let rows = document["rows"].as_array().unwrap();
        assert!(!rows.is_empty(), "{by}");
        for row in rows {
            let value =
                |time: &str, kind: &str| row[time][kind]["ns"].as_u64().unwrap_or_else(|| panic!("{by}: {row}"));
            let [ei, ee] = ["inclusive", "exclusive"].map(|kind| value("elapsed", kind));
            let [ai, ae] = ["inclusive", "exclusive"].map(|kind| value("application", kind));
            assert!(ee <= ei && ae <= ai && ai <= ei && ae <= ee, "{by}: {row}");
            assert!(row["calls"].is_u64(), "{by}: {row}");
        }
        let sum = |time: &str| rows.iter().map(|row| row[time]["exclusive"]["ns"].as_u64().unwrap()).sum::<u64>();
        if by != "event" {
            let total = |id: &str| {
                let metrics = document["metrics"].as_array().unwrap();
                metrics.iter().find(|metric| metric["id"] == id).unwrap()["total"].as_u64().unwrap()
            };
            assert_eq!((sum("elapsed"), sum("application")), (total("elapsed"), total("application")), "{by}");
        }
    }
    let output = heatline(traced.folder.path(), &["report", "uftrace.data", "--cpu", "0"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--cpu"), "{output:?}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_inclusive_order_begins_with_what_calls_everything() {
    let traced = Traced::new();
    traced.compile("mixed.c", MIXED, "mixed", &["-pg"]);
    let recording = traced.record("uftrace.data", &[], &["./mixed"]);
    for metric in ["elapsed", "application", "waiting"] {
        let document = report(&recording, &["--metric", metric, "--order", "inclusive"]);
        let weights =
            document["rows"].as_array().unwrap().iter().map(|row| row["inclusive"]["weight"].as_u64().unwrap());
        let weights: Vec<u64> = weights.collect();
        assert!(weights.is_sorted_by(|a, b| a >= b), "{metric}: {weights:?}");
        assert!(metric != "elapsed" || document["rows"][0]["function"] != "fib", "{document}");
    }
    let output = heatline(traced.folder.path(), &["report", "uftrace.data"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("percentages are of all elapsed; "), "{output:?}");
    let output = heatline(traced.folder.path(), &["diff", "uftrace.data", "uftrace.data"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("samples"), "{output:?}");
}

/// The line of the source that holds a text, counted from one.
fn line_of(source: &str, text: &str) -> u64 {
    1 + source.lines().position(|line| line.contains(text)).expect("a line with this text") as u64
}

/// The recorder does not say where calls are made; the code of the program does.
#[test]
fn a_line_that_calls_has_the_time_of_what_it_calls() {
    let traced = Traced::new();
    traced.compile("mixed.c", MIXED, "mixed", &["-pg"]);
    let recording = traced.record("uftrace.data", &[], &["./mixed"]);
    let functions = ours(&report(&recording, &[]));
    let document = report(&recording, &["--by", "line"]);
    let row = |text: &str| {
        let line = line_of(MIXED, text);
        let rows = document["rows"].as_array().unwrap();
        rows.iter().find(|row| row["line"] == line).unwrap_or_else(|| panic!("a row for {text}"))
    };
    let elapsed = |text: &str| row(text)["elapsed"]["inclusive"]["ns"].as_f64().unwrap();
    for (line, function, calls) in
        [("sink = fib(15)", "fib", 1), ("pthread_mutex_lock(&lock);", "pthread_mutex_lock", 10)]
    {
        assert_eq!((elapsed(line), &row(line)["calls"]), (functions[function].elapsed, &Value::from(calls)), "{line}");
        assert_eq!(row(line)["exclusive"]["weight"], 0, "{line}");
    }
    assert_eq!((&row("spin(20000)")["calls"], &row("spin(100)")["calls"]), (&Value::from(10), &Value::from(4)));
    // On the line of the recursion are the 1972 calls inside of fib(15), and that from main begins there.
    assert_eq!(row("return n < 2")["calls"], 1972);
    assert_eq!(row("long fib(long n)")["calls"], 1973);
}

/// The recorder wrote down what functions are called; that is enough where the program is gone.
#[test]
fn names_come_from_the_recording_where_the_program_is_gone() {
    let traced = Traced::new();
    traced.compile("throwing.cpp", THROWING, "throwing", &["-pg"]);
    let recording = traced.record("uftrace.data", &[], &["./throwing"]);
    let before = ours(&report(&recording, &[]));
    std::fs::remove_file(traced.folder.path().join("throwing")).unwrap();
    let after = ours(&report(&recording, &[]));
    assert_eq!(after["middle"].calls, before["middle"].calls);
    assert_eq!(after["main"].elapsed, before["main"].elapsed);
}

/// With `--srcline` the recorder also wrote down where functions are; that is enough for lines where the program is gone.
#[test]
fn places_come_from_the_recording_where_the_program_is_gone() {
    let traced = Traced::new();
    traced.compile("mixed.c", MIXED, "mixed", &["-pg"]);
    let recording = traced.record("uftrace.data", &["--srcline"], &["./mixed"]);
    let lines = |document: &Value| {
        let rows = document["rows"].as_array().unwrap().iter().filter(|row| row["module"] == "mixed");
        rows.map(|row| (row["function"].clone(), row["line"].clone())).filter(|(_, line)| !line.is_null()).collect()
    };
    let before: BTreeMap<String, Value> = named(lines(&report(&recording, &[])));
    std::fs::remove_file(traced.folder.path().join("mixed")).unwrap();
    let after = named(lines(&report(&recording, &[])));
    assert!(before.len() >= 7 && before == after, "{before:?} {after:?}");
    let lines = report(&recording, &["--by", "line"]);
    let row = lines["rows"].as_array().unwrap().iter().find(|row| row["function"] == "nap").unwrap();
    assert_eq!(row["line"], line_of(MIXED, "void nap(void)"));
}

fn named(rows: Vec<(Value, Value)>) -> BTreeMap<String, Value> {
    rows.into_iter().map(|(name, line)| (name.as_str().unwrap().to_owned(), line)).collect()
}
