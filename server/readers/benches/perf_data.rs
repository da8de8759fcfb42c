//! Reading and folding a large perf.data file, beside `perf script` on the same file in the same run; the same records
//! compressed and through a pipe; stacks that are walked; a file of 1 GB.
//!
//! `cargo bench -p heatline-readers --bench perf_data`. With `--read FILE` it only reads a file and says how long that
//! took and how much memory; so each measurement is a process of its own.

#![allow(clippy::disallowed_methods, clippy::print_stdout)] // It starts processes and prints results.

mod generate;
mod memory;
mod ways;

use heatline_profile::Silent;
use heatline_readers::{Input, ReadOptions};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

/// Measurements of each side; the fastest counts, as it is the least disturbed.
const RUNS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|argument| argument == "--read") {
        Some(at) => read(Path::new(&arguments[at + 1])),
        None => compare(),
    }
}

/// Reads the file (`-`: standard input) once and prints milliseconds, peak memory in MiB, samples, stacks, and
/// milliseconds of the processor.
fn read(path: &Path) {
    let (start, before) = (Instant::now(), ways::processor_time());
    let options = ReadOptions { binaries: Some(Arc::new(ways::OnDisk)), ..ReadOptions::default() };
    let profile = if path.as_os_str() == "-" {
        heatline_readers::read(Input::Stream(&mut std::io::stdin()), &options, &Silent)
    } else {
        let mut file = std::fs::File::open(path).expect("a file");
        heatline_readers::read(Input::File(&mut file), &options, &Silent)
    };
    let profile = profile.expect("a profile");
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    let processor = (ways::processor_time() - before).as_secs_f64() * 1e3;
    let samples: u64 = profile.totals().iter().map(|total| total.samples).sum();
    println!(
        "{milliseconds:.1} {:.1} {samples} {} {processor:.0}",
        memory::peak(memory::OF_MINE),
        profile.stacks.len()
    );
}

fn compare() {
    let folder = std::env::temp_dir().join(format!("heatline-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a scratch folder");
    let path = folder.join("plain.data");
    generate::write(&path, &generate::Plan::default()).expect("room for the file");
    let size = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    let ours: Vec<(f64, f64)> = (0..RUNS).map(|_| ours(&path)).collect();
    let perf: Vec<f64> = (0..2).map(|_| perf(&path)).collect();
    let fastest = ours.iter().map(|(time, _)| *time).fold(f64::INFINITY, f64::min);
    let rival = perf.iter().copied().fold(f64::INFINITY, f64::min);
    let memory = ours.iter().map(|(_, memory)| *memory).fold(0.0, f64::max);
    println!("file: {:.0} MB, 1 M samples of 13 frames", size as f64 / 1e6);
    println!("heatline reading and folding: {fastest:.0} ms, peak memory {memory:.0} MiB");
    println!("perf script -F ip:            {rival:.0} ms");
    println!("ratio:                        {:.1}", rival / fastest);
    ways::compare(&folder, &path, RUNS);
    let large = folder.join("large.data");
    generate::write(&large, &generate::Plan { samples: 6_500_000, ..generate::Plan::default() }).expect("room");
    let size = std::fs::metadata(&large).map_or(0, |metadata| metadata.len());
    let measured = ways::measure(&large, false, 1);
    println!(
        "a file of {:.0} MB              {:.0} MiB at most, as above but longer",
        size as f64 / 1e6,
        measured.memory
    );
    let _ = std::fs::remove_dir_all(&folder);
}

fn ours(path: &Path) -> (f64, f64) {
    let me = std::env::current_exe().expect("a path");
    let output = Command::new(me).arg("--read").arg(path).output().expect("a process");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = text.split_whitespace().map(|word| word.parse::<f64>().expect("a number"));
    (numbers.next().expect("a time"), numbers.next().expect("a size"))
}

fn perf(path: &Path) -> f64 {
    let start = Instant::now();
    let status = Command::new("perf").args(["script", "-f", "-F", "ip", "-i"]).arg(path).stdout(Stdio::null()).status();
    assert!(status.expect("perf").success());
    start.elapsed().as_secs_f64() * 1e3
}
