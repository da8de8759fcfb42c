//! Reading a uftrace recording of more than ten million calls, beside `uftrace report` on the same data in the same run.
//!
//! `cargo bench -p heatline-readers --bench uftrace`. With `--read FOLDER` it only reads a recording and says how long
//! that took and how much memory; so each measurement is a process of its own.

#![allow(clippy::disallowed_methods, clippy::print_stdout)] // It starts processes and prints results.

mod memory;

use heatline_profile::Silent;
use heatline_readers::{Folder, Input, ReadOptions, ReadSeek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Measurements of each side; the fastest counts, as it is the least disturbed.
const RUNS: usize = 5;

/// Programs: deep recursion with one leaf, and a wide tree of different functions in two threads.
const PROGRAMS: [(&str, &str); 2] = [
    (
        "recursion",
        "volatile long sink;
__attribute__((noipa)) long leaf(long n) { return n + sink; }
__attribute__((noipa)) long fib(long n) { return n < 2 ? leaf(n) : fib(n - 1) + fib(n - 2); }
int main(void) { sink = fib(32); return 0; }
",
    ),
    (
        "threads",
        "#include <pthread.h>
#include <unistd.h>
volatile long sink;
#define F(name, body) __attribute__((noipa)) void name(long n) { body; }
F(a, sink += n) F(b, sink -= n) F(c, a(n); b(n)) F(d, b(n); a(n); c(n)) F(e, c(n); d(n); a(n))
F(f, d(n); e(n); b(n)) F(g, e(n); f(n)) F(h, f(n); g(n); if (n % 64 == 0) usleep(10))
static void *worker(void *unused) { for (long i = 0; i < 92000; i++) h(i); return unused; }
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, worker, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
",
    ),
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|argument| argument == "--read") {
        Some(at) => read(Path::new(&arguments[at + 1])),
        None => compare(),
    }
}

/// A folder of the file system.
struct OnDisk(PathBuf);

impl Folder for OnDisk {
    fn names(&self) -> std::io::Result<Vec<String>> {
        let entries = std::fs::read_dir(&self.0)?;
        Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    }

    fn open(&self, name: &str) -> std::io::Result<Box<dyn ReadSeek>> {
        Ok(Box::new(std::fs::File::open(self.0.join(name))?))
    }
}

/// Reads a recording once and prints milliseconds, peak memory in MiB, and calls.
fn read(path: &Path) {
    let start = Instant::now();
    let folder = OnDisk(path.to_owned());
    let profile = heatline_readers::read(Input::Folder(&folder), &ReadOptions::default(), &Silent);
    let profile = profile.expect("a profile");
    println!("{:.1} {:.1} {}", start.elapsed().as_secs_f64() * 1e3, memory::peak(memory::OF_MINE), profile.samples());
}

fn compare() {
    let folder = std::env::temp_dir().join(format!("heatline-bench-uftrace-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a scratch folder");
    for (name, source) in PROGRAMS {
        std::fs::write(folder.join("program.c"), source).expect("a source file");
        run(Command::new("gcc").args(["-g", "-O1", "-pg", "-pthread", "program.c", "-o", name]).current_dir(&folder));
        let recording = folder.join(format!("{name}.data"));
        run(Command::new("uftrace").args(["record", "-b", "64M", "-d"]).arg(&recording).arg(folder.join(name)));
        let ours: Vec<(f64, f64, u64)> = (0..RUNS).map(|_| ours(&recording)).collect();
        let theirs: Vec<f64> = (0..2).map(|_| theirs(&recording)).collect();
        let fastest = ours.iter().map(|run| run.0).fold(f64::INFINITY, f64::min);
        let memory = ours.iter().map(|run| run.1).fold(0.0, f64::max);
        let rival = theirs.iter().copied().fold(f64::INFINITY, f64::min);
        println!("{name}: {:.1} M calls", ours[0].2 as f64 / 1e6);
        println!("heatline reading and folding: {fastest:.0} ms, peak memory {memory:.0} MiB");
        println!("uftrace report:               {rival:.0} ms");
        println!("ratio:                        {:.1}", rival / fastest);
    }
    let _ = std::fs::remove_dir_all(&folder);
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).status().expect("gcc and uftrace are installed");
    assert!(status.success(), "{command:?}");
}

fn ours(recording: &Path) -> (f64, f64, u64) {
    let exe = std::env::current_exe().expect("this program");
    let output = Command::new(exe).arg("--read").arg(recording).output().expect("this program runs again");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(numbers.len(), 3, "{text}{}", String::from_utf8_lossy(&output.stderr));
    (numbers[0], numbers[1], numbers[2] as u64)
}

fn theirs(recording: &Path) -> f64 {
    let start = Instant::now();
    run(Command::new("uftrace").args(["report", "--no-pager", "-d"]).arg(recording));
    start.elapsed().as_secs_f64() * 1e3
}
