//! Two large perf.data files compared, beside `perf diff` on the same files in the same run.
//!
//! `cargo bench -p heatline --bench diff`. The recordings are generated over this package's own binary: 90 MB each, with
//! chains of 13 frames, of which the second has other stacks.

#![allow(clippy::disallowed_methods, clippy::print_stdout)] // It starts processes and prints results.

#[path = "../../readers/benches/generate/mod.rs"]
mod generate;
mod watched;

use std::path::Path;
use std::process::Command;
use watched::{Run, millis, run};

/// Measurements of each side; the fastest counts, as it is the least disturbed.
const RUNS: usize = 5;

/// Samples of a recording of 90 MB.
const SAMPLES: u64 = 560_000;

/// What is promised: so many times faster than perf, in at most so many MiB.
const PROMISE: (f64, f64) = (4.0, 60.0);

fn main() {
    let folder = std::env::temp_dir().join(format!("heatline-diff-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let binary = Path::new(env!("CARGO_BIN_EXE_heatline"));
    let text = generate::text_of(binary).expect("an ELF binary");
    let texts = vec![text.clone(), text];
    let (old, new) = (folder.join("perf.data.old"), folder.join("perf.data"));
    let plan = generate::Plan { samples: SAMPLES, texts, ..generate::Plan::default() };
    generate::write(&old, &plan).expect("room for the file");
    generate::write(&new, &generate::Plan { stacks: 25_000, ..plan }).expect("room for the file");
    let size = |path: &Path| std::fs::metadata(path).map_or(0.0, |metadata| metadata.len() as f64 / 1e6);
    println!("recordings of {:.0} and {:.0} MB, binary of {:.0} MB", size(&old), size(&new), size(binary));
    compare(&folder, binary);
    let _ = std::fs::remove_dir_all(folder);
}

fn compare(folder: &Path, binary: &Path) {
    let theirs = best((0..RUNS).map(|_| run(perf(folder), None)));
    println!("perf diff:                  {:6.0} ms, peak memory {:.0} MiB", millis(theirs.time), theirs.memory);
    for options in [&["--perf"][..], &[], &["--by", "line"]] {
        let ours = best((0..RUNS).map(|_| run(heatline(binary, folder, options), None)));
        let ratio = theirs.time.as_secs_f64() / ours.time.as_secs_f64();
        let name = format!("heatline diff {}:", options.join(" "));
        println!("{name:27} {:6.0} ms, peak memory {:.0} MiB, ratio {ratio:.1}", millis(ours.time), ours.memory);
        let kept = if ratio >= PROMISE.0 && ours.memory <= PROMISE.1 { "kept" } else { "not kept" };
        println!("  {} times faster in at most {} MiB: {kept}", PROMISE.0, PROMISE.1);
    }
}

/// The fastest time and the most memory.
fn best(runs: impl Iterator<Item = Run>) -> Run {
    let both = |a: Run, b: Run| Run { time: a.time.min(b.time), memory: a.memory.max(b.memory), ..a };
    runs.reduce(both).expect("a run")
}

fn heatline(binary: &Path, folder: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.arg("diff").args(options).current_dir(folder);
    command
}

fn perf(folder: &Path) -> Command {
    let mut command = Command::new("perf");
    command.args(["diff", "-f"]).env("PAGER", "cat").env("DEBUGINFOD_URLS", "").current_dir(folder);
    command
}
