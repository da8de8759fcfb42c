//! From a large perf.data file to finished costs per line, beside `perf report` on the same file in the same run.
//!
//! `cargo bench -p heatline --bench load`. The recording is generated over this package's own binary: a million samples
//! with chains of 13 frames, about 160 MB.

#![allow(clippy::disallowed_methods, clippy::print_stdout)] // It starts processes and prints results.

#[path = "../../readers/benches/generate/mod.rs"]
mod generate;
mod watched;

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use watched::{Run, millis, run};

/// Measurements of our side; the fastest counts, as it is the least disturbed.
const RUNS: usize = 5;

/// `perf report --sort srcline` is stopped after so long; the ratio is then a lower bound.
const PATIENCE: Duration = Duration::from_secs(180);

fn main() {
    let folder = std::env::temp_dir().join(format!("heatline-load-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let profile = folder.join("perf.data");
    let binary = Path::new(env!("CARGO_BIN_EXE_heatline"));
    let text = generate::text_of(binary).expect("an ELF binary");
    let plan = generate::Plan { texts: vec![text.clone(), text], ..generate::Plan::default() };
    generate::write(&profile, &plan).expect("room for the file");
    compare(&profile, binary);
    let _ = std::fs::remove_dir_all(folder);
}

fn compare(profile: &Path, binary: &Path) {
    let size = |path: &Path| std::fs::metadata(path).map_or(0.0, |metadata| metadata.len() as f64 / 1e6);
    println!("recording {:.0} MB, binary with debug information {:.0} MB", size(profile), size(binary));
    let ours: Vec<Run> = (0..RUNS).map(|_| run(heatline(binary, profile), None)).collect();
    let best = ours.iter().map(|run| run.time).min().unwrap_or_default();
    let memory = ours.iter().map(|run| run.memory).fold(0.0, f64::max);
    println!("heatline report --by line:       {:8.0} ms, peak memory {memory:.0} MiB", millis(best));
    println!("  of the binary {:.0} MiB are debug sections", debug_sections(binary));
    let symbols = run(perf(profile, "sym"), None);
    println!("perf report --sort sym:          {:8.0} ms, peak memory {:.0} MiB", millis(symbols.time), symbols.memory);
    println!("  ratio {:.1}", symbols.time.as_secs_f64() / best.as_secs_f64());
    let lines = run(perf(profile, "srcline"), Some(PATIENCE));
    let bound = if lines.finished { "" } else { "more than " };
    println!("perf report --sort srcline:  {bound}{:8.0} ms", millis(lines.time));
    println!("  ratio {bound}{:.0}", lines.time.as_secs_f64() / best.as_secs_f64());
}

/// The size of a binary's debug sections in MiB, by `readelf`.
fn debug_sections(binary: &Path) -> f64 {
    let output = Command::new("readelf").arg("-SW").arg(binary).output().expect("readelf");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let size = |line: &str| u64::from_str_radix(line.split(" .debug_").nth(1)?.split_whitespace().nth(4)?, 16).ok();
    text.lines().filter_map(size).sum::<u64>() as f64 / f64::from(1 << 20)
}

fn heatline(binary: &Path, profile: &Path) -> Command {
    let mut command = Command::new(binary);
    command.args(["report", "--by", "line", "--limit", "20"]).arg(profile);
    command
}

fn perf(profile: &Path, sort: &str) -> Command {
    let mut command = Command::new("perf");
    command.args(["report", "-f", "--stdio", "--no-children", "--sort", sort, "-i"]).arg(profile);
    command.env("PAGER", "cat").env("DEBUGINFOD_URLS", "").current_dir(profile.parent().unwrap_or(Path::new("/")));
    command
}
