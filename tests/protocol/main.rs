//! The language server over the real binary's standard input and output.
#![allow(clippy::disallowed_methods, reason = "tests copy recordings and start the server")]

mod client;
mod documents;
mod frozen;
mod hot;
mod instrumented;
mod life;
mod placement;
mod renames;
mod roots;
mod shown;
mod transport;
mod windows;

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The bundled example in a folder of its own, whose name needs escaping in addresses.
pub struct Workspace {
    folder: TempDir,
}

impl Workspace {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("work ü ").tempdir().unwrap();
        let workspace = Workspace { folder };
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/quickstart");
        std::fs::create_dir(workspace.path("src")).unwrap();
        for entry in std::fs::read_dir(example.join("src")).unwrap().flatten() {
            std::fs::copy(entry.path(), workspace.path("src").join(entry.file_name())).unwrap();
        }
        for name in ["neighbours", "perf.data"] {
            std::fs::copy(example.join(name), workspace.path(name)).unwrap();
        }
        workspace
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }
}

/// The line of `src/tree.cpp` with most exclusive cost, counted from 0. `perf report --sort srcline` of the recording
/// has `tree.cpp:58` first, with 659 of 1320 samples.
const HOTTEST: u64 = 57;

/// What its hint says first.
const HOTTEST_SHARE: &str = "49.9 %";
