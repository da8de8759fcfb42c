//! Files that somebody prepared, and arguments that are none: nothing is overwritten, hangs, or reaches the terminal.

use super::lab::heatline;
use std::path::{Path, PathBuf};
use std::process::Output;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/quickstart").join(name)
}

/// A folder with the example and its program.
fn example() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["perf.data", "neighbours"] {
        std::fs::copy(fixture(name), folder.path().join(name)).expect("the example");
    }
    folder
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], part: &str) {
    let output = heatline(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", errors(&output));
    assert!(errors(&output).contains(part), "{arguments:?}: {}", errors(&output));
}

#[test]
fn an_export_replaces_its_own_kind_and_never_what_it_reads() {
    let folder = example();
    let at = folder.path();
    let recording = std::fs::read(at.join("perf.data")).expect("the example");
    std::fs::write(at.join("notes.txt"), "mine").expect("a file");
    let mut others = vec!["notes.txt".to_owned()];
    for format in ["pprof", "speedscope", "firefox"] {
        let export = |output| ["export", "perf.data", "--to", format, "-o", output];
        refused(at, &export("perf.data"), "perf.data: this is the profile that is read");
        refused(at, &[&export("./perf.data")[..], &["--force"]].concat(), "this is the profile that is read");
        for other in &others {
            refused(at, &export(other), "--force");
        }
        let output = format!("out.{format}");
        for _ in 0..2 {
            let done = heatline(at, &export(&output));
            assert!(done.status.success(), "{format}: {}", errors(&done));
        }
        others.push(output);
    }
    refused(at, &["export", "out.pprof", "--to", "pprof", "-o", "out.pprof"], "this is the profile that is read");
    refused(at, &["freeze", "perf.data", "-o", "perf.data", "--force"], "this is the profile that is read");
    assert!(heatline(at, &["export", ".", "--to", "pprof", "-o", "notes.txt", "--force"]).status.success());
    assert_eq!(std::fs::read(at.join("perf.data")).expect("the example"), recording);
}

#[test]
fn a_threshold_is_a_number() {
    let folder = example();
    for number in ["nan", "inf", "-inf", "1e400", "-1"] {
        let expected = "expected a number of at least 0 such as 0.5";
        let threshold = format!("--threshold={number}");
        refused(folder.path(), &["annotate", "perf.data", &threshold], expected);
        let diff = ["diff", "perf.data", "perf.data", &threshold, "--fail-on", "+1pp"];
        refused(folder.path(), &diff, "expected 0 to 100 percentage points such as 0.5");
    }
    for limit in ["nan", "+inf", "-inf", "1e400pp"] {
        let limit = format!("--fail-on={limit}");
        refused(
            folder.path(),
            &["diff", "perf.data", "perf.data", &limit],
            "expected 0 to 100 percentage points with one sign",
        );
    }
    for option in ["--pid", "--tid", "--limit"] {
        refused(folder.path(), &["report", "perf.data", option, "abc"], "expected a whole number such as 1234");
    }
    refused(folder.path(), &["dump", "perf.data", "--pid", "abc"], "expected a whole number such as 1234");
}

/// The example, its event's name one that clears the screen.
#[cfg(unix)]
#[test]
fn names_in_a_recording_cannot_steer_the_terminal() {
    let folder = example();
    let mut recording = std::fs::read(fixture("perf.data")).expect("the example");
    let (name, evil) = (b"cpu-clock", b"\x1b[2J\nlock");
    let places: Vec<usize> =
        (0..recording.len() - name.len()).filter(|&at| recording[at..].starts_with(name)).collect();
    assert!(places.len() > 1, "the event and the command line name it");
    places.iter().for_each(|&at| recording[at..at + name.len()].copy_from_slice(evil));
    let path = "\x1b]0;title\x07\n.data";
    std::fs::write(folder.path().join(path), recording).expect("a file");
    for arguments in [
        &["report", path][..],
        &["report", path, "--by", "event"],
        &["report", path, "--coverage"],
        &["report", path, "--metric", "none"],
        &["report", path, "--format", "csv", "--by", "event"],
        &["annotate", path],
        &["annotate", path, "--format", "csv"],
        &["dump", path],
        &["diff", path, path, "--fail-on", "+1pp"],
        &["diff", path, path, "--format", "markdown"],
        &["diff", path, path, path, "--perf"],
        &["diff", path, "perf.data"],
    ] {
        let output = heatline(folder.path(), arguments);
        for text in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(text);
            let control = text.lines().find(|line| line.contains(|c: char| c.is_control() && c != '\t'));
            assert_eq!(control, None, "{arguments:?}");
            assert!(!text.lines().any(|line| line.starts_with(".data") || line.starts_with("lock")), "{arguments:?}");
        }
    }
}

#[cfg(unix)]
fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(made.success());
}

#[cfg(unix)]
#[test]
fn what_never_ends_is_refused_and_not_waited_for() {
    let folder = example();
    let at = folder.path();
    refused(at, &["report", "perf.data", "--kallsyms", "/dev/zero"], "/dev/zero: expected at most 64 MiB, found more");
    let list = ["diff", "perf.data", "perf.data", "-S", "file:///dev/zero"];
    refused(at, &list, "list /dev/zero: expected at most 64 MiB, found more");
    let expected = "expected a regular file, found a pipe or device";
    for (directory, member) in [("instrumented", "info"), ("listed", "task.txt"), ("threads", "data")] {
        std::fs::create_dir(at.join(directory)).expect("a folder");
        pipe(&at.join(directory).join(member));
        for command in ["report", "dump"] {
            refused(at, &[command, directory], &format!("{directory}: {member}: {expected}"));
        }
    }
    let calls = at.join("calls");
    std::fs::create_dir(&calls).expect("a folder");
    std::fs::write(calls.join("task.txt"), "TASK timestamp=1.000000000 tid=7 pid=7\n").expect("a file");
    pipe(&calls.join("7.dat"));
    refused(at, &["report", "calls"], "calls: ");
    pipe(&at.join("heatline.toml"));
    let output = heatline(at, &["report", "perf.data"]);
    assert!(output.status.success() && errors(&output).contains(expected), "{}", errors(&output));
}

#[cfg(unix)]
#[test]
fn a_repository_with_a_pipe_in_it_has_no_history() {
    let folder = example();
    for inside in ["src", ".git/objects", ".git/refs"] {
        std::fs::create_dir_all(folder.path().join(inside)).expect("a folder");
    }
    for source in std::fs::read_dir(fixture("src")).expect("the sources").flatten() {
        // Not as it was compiled, so that the history is wanted.
        let text = std::fs::read_to_string(source.path()).expect("a source");
        std::fs::write(folder.path().join("src").join(source.file_name()), format!("\n{text}")).expect("a source");
    }
    pipe(&folder.path().join(".git/HEAD"));
    for arguments in [
        &["annotate", "perf.data"][..],
        &["diff", "perf.data", "perf.data", "--by", "line"],
        &["freeze", "perf.data", "-o", "a.heatline"],
    ] {
        let output = heatline(folder.path(), arguments);
        assert!(output.status.success(), "{arguments:?}: {}", errors(&output));
    }
}
