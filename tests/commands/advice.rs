//! What is said of recordings that could tell more, and how.

use super::lab::heatline;
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
        let output = heatline(folder.path(), &["annotate", "perf.data", "--format", "json", "--source", "*/tree.cpp"]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("compile with -g"));
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
