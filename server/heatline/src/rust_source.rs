//! Rust's own library: recorded below `/rustc/` and the commit it was built from, it lies in the toolchain that was built
//! from that commit, if its component `rust-src` is installed.

use crate::files;
use std::path::{Path, PathBuf};

/// Longer manifests are none.
const LONGEST_MANIFEST: u64 = 16 << 20;

/// The folders of installed toolchains: those of rustup, and the system's.
pub fn toolchains() -> Vec<PathBuf> {
    let home = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".rustup")));
    let folders = home.and_then(|home| std::fs::read_dir(home.join("toolchains")).ok());
    let mut toolchains: Vec<PathBuf> = folders.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    toolchains.sort();
    toolchains
}

/// Where a recorded path of Rust's library is in one of `toolchains`.
pub fn find(recorded: &str, toolchains: &[PathBuf]) -> Option<PathBuf> {
    let (commit, inside) = recorded.strip_prefix("/rustc/")?.split_once('/')?;
    let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    let inside = inside.strip_prefix("library/").filter(|_| is_commit)?;
    let source = |toolchain: &PathBuf| toolchain.join("lib/rustlib/src/rust/library").join(inside);
    let mut of_commit = toolchains.iter().filter(|toolchain| source(toolchain).is_file() && is_of(toolchain, commit));
    of_commit.next().map(source)
}

/// Whether a toolchain was built from a commit: its list of parts names the commit.
fn is_of(toolchain: &Path, commit: &str) -> bool {
    let manifest = toolchain.join("lib/rustlib/multirust-channel-manifest.toml");
    files::read(&manifest, LONGEST_MANIFEST).is_ok_and(|text| String::from_utf8_lossy(&text).contains(commit))
}
