//! One program in two versions in two folders, recorded here: every option beside perf, and our own rows.

use super::programs::as_perf;
use crate::lab::{heatline, perf};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A version of the program: its functions in this order, each with the turns of its loop.
fn source(functions: &[(&str, u32)]) -> String {
    let mut text = "volatile unsigned sink;\n".to_owned();
    for (name, turns) in functions {
        text += &format!(
            "__attribute__((noipa)) void {name}(void) {{\n    for (unsigned i = 0; i < {turns}; i++)\n        sink = \
             sink * 16777619u + i; // {name}\n}}\n"
        );
    }
    let calls: String = functions.iter().map(|(name, _)| format!("        {name}();\n")).collect();
    text + &format!("int main(void) {{\n    for (int i = 0; i < 700; i++) {{\n{calls}    }}\n    return 0;\n}}\n")
}

fn record(folder: &Path, functions: &[(&str, u32)]) {
    std::fs::create_dir(folder).expect("a new folder");
    std::fs::write(folder.join("app.c"), source(functions)).expect("a file");
    // Linked statically, so that hardly a sample is outside of it.
    let flags = ["-g", "-O1", "-static", "-falign-functions=64", "-falign-loops=64"];
    run(folder, Command::new("gcc").args(flags).args(["app.c", "-o", "app"]));
    sample(folder, "perf.data");
}

fn sample(folder: &Path, name: &str) {
    let options = ["record", "-q", "-N", "-e", "cpu-clock:u", "-c", "250000", "--sample-cpu", "-o", name, "./app"];
    run(folder, perf().args(options));
}

fn run(folder: &Path, command: &mut Command) {
    let output = command.current_dir(folder).output().expect("an installed program");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Two folders: functions have moved, `third` was removed, `fifth` is new, `second` and `fourth` take longer.
fn two_versions() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let old = [("first", 50_000), ("second", 30_000), ("third", 15_000), ("fourth", 5_000)];
    let new = [("fifth", 60_000), ("fourth", 20_000), ("second", 50_000), ("first", 50_000)];
    record(&folder.path().join("old"), &old);
    record(&folder.path().join("new"), &new);
    folder
}

#[test]
fn every_option_prints_as_perf_prints_it() {
    let folder = two_versions();
    std::fs::write(folder.path().join("names"), "first\nsecond\n").unwrap();
    // Loader and kernel entries that perf names in other ways are left out by the module.
    let options = [
        "",
        "-c delta",
        "-c delta-abs",
        "-c ratio",
        "-c wdiff:1,2",
        "-c wdiff:3,-1",
        "-o 0",
        "-o 1",
        "-b",
        "-p",
        "-F",
        "-p -F -c ratio",
        "-b -p -F",
        "-t ;",
        "-t , -c ratio",
        "-q",
        "-q -v",
        "-v",
        "-m",
        "-S first,fourth",
        "-S first",
        "-S beef,first",
        "-S add",
        "-C app",
        "-C none",
        "-s symbol",
        "-s dso",
        "-s comm",
        "-s pid",
        "-s pid,comm,symbol",
        "-s cpu",
        "-s cpu,symbol -t ;",
        "-s parent",
        // Where nothing has a line, perf asks the linker's tools for the file of an object.
        "-s srcline -S first,second,third,fourth,fifth",
        "-s srcline,symbol -S first,second,third,fourth,fifth",
        "-s dso,symbol",
        "--percentage relative -S first,second",
        "--percentage absolute -S first,second",
        "-S file://names",
        "-d app,other",
        "--cpu 0",
        "--time 0,1",
        "--time 10%-20%",
        "--time 10%/2",
        "--time 50%",
        "--time 0%-10%,30%-40%",
        "--time 30%-40%,0%-10%",
        "--time 12.5%/1,12.5%/3,12.5%/8",
        "--pid 1",
        "--tid 1",
    ];
    for options in options {
        let options: Vec<&str> = options.split(' ').filter(|word| !word.is_empty()).collect();
        let of_app: &[&str] = if options.contains(&"-d") { &[] } else { &["-d", "app"] };
        as_perf(folder.path(), &[&options[..], of_app, &["old/perf.data", "new/perf.data"]].concat());
    }
    std::fs::rename(folder.path().join("old/perf.data"), folder.path().join("new/perf.data.old")).unwrap();
    as_perf(&folder.path().join("new"), &["-d", "app", "-s", "symbol"]);
    as_perf(&folder.path().join("new"), &["-d", "app", "-s", "symbol", "perf.data"]);
}

/// A library whose functions have several names: aliases, weak ones, local ones, some with underscores, two of C++ in two
/// versions.
const MANY_NAMES: &str = r#"
volatile unsigned sink;
#define LOOP() for (int i = 0; i < n; i++) sink = sink * 16777619u + i
#define KEPT __attribute__((noipa))
#define ALSO(name) __attribute__((alias(name)))
namespace lab { KEPT void ru(int n) { LOOP(); } KEPT void longer_than_run(int n) { LOOP(); } }
__asm__(".symver _ZN3lab2ruEi,_ZN3lab3runEi@@LAB_2");
__asm__(".symver _ZN3lab15longer_than_runEi,_ZN3lab3runEi@LAB_1");
namespace lab { void run(int); }
extern "C" {
KEPT void plain(int n) { LOOP(); }
ALSO("plain") void plainer(int);
ALSO("plain") void __plain_with_underscores(int);
__attribute__((weak)) ALSO("plain") void weak_but_longest_of_all(int);
__attribute__((noipa, used)) static void only_local(int n) { LOOP(); }
__attribute__((weak)) ALSO("only_local") void only_weak(int);
KEPT void sized(int n) { LOOP(); }
void go(int n) { lab::ru(n); lab::longer_than_run(n); plain(n); only_weak(n); sized(n); }
}
__asm__(".globl label_of_sized\n.set label_of_sized, sized\n");
"#;

const CALLS_LIBRARIES: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern void go(int);
volatile double real;
int main(void) {
    char text[64];
    go(8000000);
    for (int i = 1; i < 60000; i++) {
        real = exp(i * 1e-4) + pow(i, 1.3) + log(i) + sin(i) + atan2(i, 3) + fmod(i, 0.3);
        snprintf(text, sizeof text, "%d %f", i, real);
        real += strtod(text, 0) + strtol(text, 0, 10) + strlen(text);
        free(memset(malloc(i % 4000 + 1), 0, 1));
    }
    return 0;
}
"#;

#[test]
fn of_several_names_of_one_function_the_one_of_perf_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    std::fs::write(root.join("library.cpp"), MANY_NAMES).unwrap();
    std::fs::write(root.join("app.c"), CALLS_LIBRARIES).unwrap();
    std::fs::write(root.join("versions"), "LAB_1 { global: *; };\nLAB_2 { } LAB_1;\n").unwrap();
    let library = ["-O1", "-g", "-shared", "-fPIC", "-Wl,--version-script=versions", "library.cpp", "-o", "library.so"];
    run(root, Command::new("g++").args(library));
    run(root, Command::new("gcc").args(["-O1", "-g", "app.c", "./library.so", "-lm", "-Wl,-rpath,.", "-o", "app"]));
    sample(root, "old");
    sample(root, "new");
    let table = as_perf(root, &["old", "new", "-d", "library.so,libc.so.6,libm.so.6"]);
    for name in ["lab::run", "plainer", "only_local", "label_of_sized"] {
        assert!(table.lines().any(|line| line.trim_end().ends_with(&format!("[.] {name}"))), "{name}\n{table}");
    }
}

#[test]
fn an_event_that_counts_other_code_is_warned_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    record(&program, &[("first", 50_000)]);
    let everywhere = ["record", "-q", "-N", "-e", "cpu-clock", "-c", "250000", "-o", "everywhere", "./app"];
    run(&program, perf().args(everywhere));
    let document = diff(&program, &["perf.data", "everywhere"]);
    let warnings = document["warnings"].as_array().unwrap();
    let is_it = |text: &Value| text == "everywhere: the event is cpu-clock, that of the baseline cpu-clock:u";
    assert!(warnings.iter().any(is_it), "{warnings:?}");
    let same = diff(&program, &["perf.data", "perf.data"]);
    assert_eq!(same["warnings"], serde_json::json!([]));
}

#[test]
fn parts_of_a_recording_hold_the_samples_that_perf_finds_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    record(&program, &[("first", 50_000), ("second", 30_000)]);
    for time in ["10%-20%", "25%/3", "33.3%", "0%-10%,20%-30%,90%-100%"] {
        let theirs = perf()
            .args(["report", "-i", "perf.data", "--stdio", "-F", "sample,symbol", "-t", ";", "--time", time])
            .current_dir(&program)
            .output()
            .expect("perf is installed");
        let text = String::from_utf8_lossy(&theirs.stdout).into_owned();
        let counts = text.lines().filter_map(|line| line.split(';').next()?.trim().parse::<u64>().ok());
        let ours = heatline(&program, &["report", "perf.data", "--format", "json", "--time", time]);
        let document: Value = serde_json::from_slice(&ours.stdout).expect("JSON");
        assert_eq!(document["metrics"][0]["samples"], counts.sum::<u64>(), "{time}\n{text}");
    }
    let refused = heatline(&program, &["report", "perf.data", "--time", "10%/11"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("the recording ends at 100 %"));
}

fn diff(folder: &Path, arguments: &[&str]) -> Value {
    let output = heatline(folder, &[&["diff", "--format", "json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn moved_lines_are_the_same_lines() {
    let folder = two_versions();
    let document = diff(folder.path(), &["old/perf.data", "new/perf.data", "--by", "line"]);
    let text = std::fs::read_to_string(folder.path().join("new/app.c")).unwrap();
    let old_text = std::fs::read_to_string(folder.path().join("old/app.c")).unwrap();
    let line_of = |text: &str, name: &str| text.lines().position(|line| line.contains(&format!("// {name}")));
    let row = |name: &str| {
        let removed = line_of(&text, name).is_none();
        let line = line_of(if removed { &old_text } else { &text }, name).unwrap() + 1;
        let rows = document["rows"].as_array().unwrap().iter();
        let is_it = |row: &&Value| row["line"] == line && (row["status"] == "removed") == removed;
        rows.filter(is_it).find(|row| row["file"].as_str().is_some_and(|file| file.ends_with("app.c"))).unwrap().clone()
    };
    let delta = |name: &str| row(name)["new"][0]["delta"].as_f64().unwrap();
    for name in ["first", "second", "fourth"] {
        assert_eq!((&row(name)["status"], &row(name)["paired_by"]), (&"both".into(), &"content".into()), "{name}");
    }
    assert_eq!((row("third")["status"].as_str(), row("fifth")["status"].as_str()), (Some("removed"), Some("new")));
    assert!(delta("fifth") > 10.0 && delta("third") < -3.0);
    assert_eq!(row("fifth")["new"][0]["significant"], true);
    // Without the baseline's text the lines are found by their functions.
    std::fs::remove_file(folder.path().join("old/app.c")).unwrap();
    std::fs::remove_file(folder.path().join("new/app.c")).unwrap();
    let document = diff(folder.path(), &["old/perf.data", "new/perf.data", "--by", "line"]);
    let rows = document["rows"].as_array().unwrap();
    let line = line_of(&text, "first").unwrap() + 1;
    let is_first =
        |row: &&Value| row["line"] == line && row["file"].as_str().is_some_and(|file| file.ends_with("app.c"));
    let first = rows.iter().filter(is_first).find(|row| row["status"] == "both").unwrap();
    assert_eq!(first["paired_by"], "function-offset");
    assert!(first["new"][0]["delta"].as_f64().unwrap() < 0.0);
}

/// The rows that are taken for changed between two programs whose functions only swapped places, of three runs each:
/// on a busy machine runs of one program differ more than their samples say.
fn swapped(folder: &Path, by: &str) -> Vec<Value> {
    let runs = |name: &str| (1..=3).map(|run| format!("{name}/{run}.data")).collect::<Vec<_>>();
    let (old, new) = (runs("old"), runs("new"));
    let mut arguments: Vec<&str> = old.iter().flat_map(|file| ["--baseline", file]).collect();
    arguments.extend(["--pool", "--by", by]);
    arguments.extend(new.iter().map(String::as_str));
    let document = diff(folder, &arguments);
    let rows = document["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["status"] == "both" && row["baseline"]["percent"].as_f64() > Some(25.0)));
    rows.iter().filter(|row| row["new"][0]["significant"] == true).cloned().collect()
}

#[test]
fn functions_that_only_swap_places_are_within_noise() {
    // One in twenty comparisons of equal programs may take something for real.
    let mut flagged = Vec::new();
    let is_noise = (0..3).any(|_| {
        let folder = tempfile::tempdir().unwrap();
        record(&folder.path().join("old"), &[("first", 50_000), ("second", 30_000), ("third", 20_000)]);
        record(&folder.path().join("new"), &[("third", 20_000), ("first", 50_000), ("second", 30_000)]);
        for name in ["old", "new"] {
            let folder = folder.path().join(name);
            (1..=3).for_each(|run| sample(&folder, &format!("{run}.data")));
        }
        flagged = ["function", "line"].iter().flat_map(|by| swapped(folder.path(), by)).collect();
        flagged.is_empty()
    });
    assert!(is_noise, "{flagged:?}");
}

#[test]
fn a_side_whose_binary_is_gone_is_told_and_is_no_regression() {
    let folder = two_versions();
    let root = folder.path();
    let diff = |options: &[&str]| {
        let output =
            heatline(root, &[&["diff", "old/perf.data", "new/perf.data", "--fail-on", "+2pp"], options].concat());
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    assert_eq!(diff(&[]).0, Some(1), "both are here");
    let heading = |files: [&str; 2]| {
        let output = heatline(root, &[&["diff"], &files[..], &["--by", "line"]].concat());
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().find(|line| line.starts_with("lines paired: ")).unwrap_or_default().to_owned()
    };
    assert!(heading(["old/perf.data", "new/perf.data"]).contains(" by their text"));
    assert!(heading(["new/perf.data", "new/perf.data"]).ends_with(" by their numbers, as the build is the same"));
    std::fs::remove_file(root.join("old/app")).expect("it was there");
    for (by, what) in [("function", "function"), ("line", "line")] {
        let (status, messages) = diff(&["--by", by]);
        assert_eq!(status, Some(2), "{messages}");
        assert!(messages.contains(&format!("is of no known {what}")), "{messages}");
        assert!(messages.contains("--fail-on: it cannot be told what got better and worse"), "{messages}");
    }
    // Modules are known without their code.
    assert_eq!(diff(&["--by", "module"]).0, Some(0));
    let output = heatline(root, &["diff", "old/perf.data", "new/perf.data", "--format", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let warnings = document["warnings"].as_array().expect("a list");
    let is_told = |text: &str| text.starts_with("old/perf.data") && text.contains("binary not found");
    assert!(warnings.iter().filter_map(Value::as_str).any(is_told), "{warnings:?}");
    // A baseline that is kept like this would never know more.
    let output = heatline(root, &["freeze", "old/perf.data", "-o", "old.heatline"]);
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && messages.contains("app without lines: binary not found"), "{messages}");
}
