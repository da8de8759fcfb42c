//! Real source files: the project's own, and of the crates that it is built from.

#![allow(clippy::disallowed_methods, reason = "tests read sources and ask cargo where they are")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// So many sources of the project and of other crates, each.
const SOURCES: usize = 30;

/// Shorter files say little, longer ones take long.
const SIZES: std::ops::Range<usize> = 4_000..80_000;

/// A source file.
pub struct Source {
    pub text: String,
}

/// The sources of the corpus; the same ones as long as the files are the same.
pub fn sources() -> Vec<Source> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own = ["server", "editors", "tests", "fixtures"].map(|folder| workspace.join(folder));
    let mut sources = some_of(own.into_iter());
    sources.extend(some_of(crates(&workspace).into_iter()));
    assert!(sources.len() > SOURCES, "sources of both kinds are at hand");
    sources
}

/// The folders of the crates that the project is built from, from cargo itself.
fn crates(workspace: &Path) -> Vec<PathBuf> {
    let output = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(workspace).output().expect("the tools run");
        String::from_utf8(output.stdout).expect("they write text")
    };
    let version = output("rustc", &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names the host");
    // Crates for other systems need not be at hand.
    let text = output("cargo", &["metadata", "--format-version", "1", "--offline", "--filter-platform", host]);
    let key = "\"manifest_path\":\"";
    let mut folders: Vec<PathBuf> = text
        .match_indices(key)
        .filter_map(|(at, _)| text[at + key.len()..].split('"').next())
        .filter(|path| path.contains("registry"))
        .filter_map(|path| Path::new(path).parent().map(Path::to_owned))
        .collect();
    folders.sort();
    folders
}

/// Sources from all over some folders.
fn some_of(folders: impl Iterator<Item = PathBuf>) -> Vec<Source> {
    let mut paths = Vec::new();
    folders.for_each(|folder| add_sources(&folder, &mut paths));
    paths.sort();
    let step = (paths.len() / SOURCES).max(1);
    let texts = paths.iter().step_by(step).take(SOURCES).filter_map(|path| std::fs::read_to_string(path).ok());
    texts.map(|text| Source { text }).collect()
}

fn add_sources(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && !matches!(path.file_name().and_then(|n| n.to_str()), Some("node_modules" | "target")) {
            add_sources(&path, paths);
        }
        let is_source =
            matches!(path.extension().and_then(|e| e.to_str()), Some("rs" | "c" | "cpp" | "h" | "ts" | "mjs"));
        let has_size = || entry.metadata().is_ok_and(|data| SIZES.contains(&(data.len() as usize)));
        if kind.is_file() && is_source && has_size() {
            paths.push(path);
        }
    }
}
