//! How much memory a process has had.

use std::path::Path;

/// The status of the process that asks.
#[allow(dead_code)] // Of use to benchmarks that measure themselves.
pub const OF_MINE: &str = "/proc/self/status";

/// The most memory that a process has had, in MiB, by its status in `/proc`; 0 once it is no more.
pub fn peak(status: impl AsRef<Path>) -> f64 {
    let text = std::fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}
