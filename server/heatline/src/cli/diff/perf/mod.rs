//! What `perf diff` prints.
use super::options::{DiffArgs, Files};
pub fn run(_args: &DiffArgs, _files: &Files) -> anyhow::Result<()> {
    anyhow::bail!("not yet")
}
