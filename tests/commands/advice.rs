//! What is said of recordings that could tell more, and how.

use super::lab::{Lab, heatline, perf, report};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/quickstart").canonicalize().unwrap()
}

/// The recording of the example, with its binary without what `objcopy` takes away.
fn without(option: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(example().join("perf.data"), folder.path().join("perf.data")).unwrap();
    let mut objcopy = Command::new("objcopy");
    objcopy.arg(option).arg(example().join("neighbours")).arg(folder.path().join("neighbours"));
    assert!(objcopy.status().expect("objcopy").success());
    folder
}

/// Runs and returns what is printed.
#[track_caller]
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = heatline(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The header of a table: all above the first empty line.
fn header(text: &str) -> &str {
    text.split("\n\n").next().unwrap_or_default()
}

#[test]
fn the_header_says_which_modules_have_no_lines_why_and_what_helps() {
    for (option, coverage) in [("--strip-debug", "% only a symbol"), ("--strip-all", "% nothing")] {
        let folder = without(option);
        for command in ["report", "annotate"] {
            let text = printed(folder.path(), &[command, "perf.data"]);
            let gap = header(&text).lines().find(|line| line.contains(" % is in neighbours")).expect("the gap");
            assert!(gap.contains("no debug info; compile with -g, or name") && gap.contains("--debug-dir"), "{gap}");
            assert!(header(&text).contains(coverage), "{text}");
        }
        for format in ["table", "json"] {
            let options = ["annotate", "perf.data", "--format", format, "--source", "*/tree.cpp"];
            let output = heatline(folder.path(), &options);
            assert!(String::from_utf8_lossy(&output.stderr).contains("compile with -g"));
        }
    }
}

#[test]
fn the_header_says_that_a_binary_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(example().join("perf.data"), folder.path().join("perf.data")).unwrap();
    let text = printed(folder.path(), &["annotate", "perf.data"]);
    assert!(header(&text).contains(" % is in neighbours without lines: binary not found: "), "{text}");
    let table = printed(folder.path(), &["report", "perf.data", "--coverage"]);
    assert!(!header(&table).contains("binary not found") && table.contains("binary not found"), "{table}");
}

#[test]
fn where_nearly_all_has_lines_nothing_is_said() {
    let text = printed(&example(), &["report", "perf.data"]);
    assert!(!header(&text).contains("without lines"), "{text}");
}

const CALLS: &str = "static volatile unsigned sink;
__attribute__((noipa)) void work(unsigned n) { for (unsigned i = 0; i < n; i++) sink = sink * 16777619u + i; }
__attribute__((noipa)) void middle(unsigned n) { work(n); sink++; }
int main(void) { for (int i = 0; i < 100; i++) middle(1000000); return 0; }
";

/// Compiles the calls with this flag, records with these options and returns the recording's folder.
fn recorded(flag: &str, options: &[&str]) -> TempDir {
    recorded_of(CALLS, flag, options)
}

fn recorded_of(source: &str, flag: &str, options: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("calls.c"), source).unwrap();
    let run = |command: &mut Command| {
        let output = command.current_dir(folder.path()).output().expect("a tool");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(Command::new("gcc").args(["-g", "-O2", flag, "calls.c", "-o", "calls"]));
    run(perf()
        .args(["record", "-q", "-N", "-e", "cpu-clock:u", "-F", "997", "-o", "perf.data"])
        .args(options)
        .arg("./calls"));
    folder
}

#[test]
fn stacks_that_frame_pointers_do_not_lead_out_of_are_told_with_what_helps() {
    let told = |folder: &TempDir| {
        let text = printed(folder.path(), &["report", "perf.data"]);
        let problems = report(&folder.path().join("perf.data"), &[])["problems"].to_string();
        assert_eq!(
            problems.contains("cut-stacks"),
            header(&text).contains("--call-graph dwarf (or lbr)"),
            "{problems}"
        );
        header(&text).contains("stacks that end before main")
    };
    assert!(told(&recorded("-fomit-frame-pointer", &["-g"])));
    assert!(!told(&recorded("-fno-omit-frame-pointer", &["-g"])));
    assert!(!told(&recorded("-fomit-frame-pointer", &["--call-graph", "dwarf"])));
    assert!(!told(&recorded("-fomit-frame-pointer", &[])));
}

#[test]
fn threads_and_child_processes_have_whole_stacks() {
    let lab = Lab::new();
    lab.record("perf.data", &["-e", "cpu-clock", "-g"]);
    for arguments in [&["report", "perf.data"][..], &["report", "perf.data", "--comm", "first"]] {
        let text = printed(lab.path("perf.data").parent().unwrap(), arguments);
        assert!(!header(&text).contains("stacks that end"), "{text}");
    }
}

/// Recursion over more than 20 kB of stack.
const DEEP: &str = "static volatile unsigned sink;
__attribute__((noipa)) unsigned deep(unsigned level) {
    volatile char room[200];
    room[level % 200] = (char)level;
    for (unsigned i = 0; level == 0 && i < 2000000; i++) sink = sink * 16777619u + i;
    return level == 0 ? sink : deep(level - 1) + (unsigned char)room[level % 200];
}
int main(void) { for (int i = 0; i < 30; i++) sink += deep(100); return 0; }
";

#[test]
fn stacks_deeper_than_what_was_copied_are_told_with_what_helps() {
    for (copied, is_whole) in [("dwarf,8192", false), ("dwarf,40000", true)] {
        let folder = recorded_of(DEEP, "-fomit-frame-pointer", &["--call-graph", copied]);
        let document = report(&folder.path().join("perf.data"), &[]);
        let reaches_main = document["rows"].as_array().unwrap().iter().any(|row| row["function"] == "main");
        let problems = document["problems"].to_string();
        assert_eq!(reaches_main, is_whole, "{document}");
        assert_eq!(problems.contains("shallow-stack-copy"), !is_whole, "{problems}");
        assert_eq!(problems.contains("record with --call-graph dwarf,65528"), !is_whole, "{problems}");
    }
}
