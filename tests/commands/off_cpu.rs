//! Time off the processors, of a program that says itself how much of its time that was.

use super::lab::{perf, report};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Works and sleeps by its own clocks, and prints the share of its time in which it was not running, in percent.
const SLEEPER: &str = "#include <stdio.h>
#include <time.h>
volatile unsigned long sink;
static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}
__attribute__((noipa)) void work(double seconds) {
    double end = now(CLOCK_PROCESS_CPUTIME_ID) + seconds;
    while (now(CLOCK_PROCESS_CPUTIME_ID) < end)
        for (int i = 0; i < 1000; i++)
            sink += i;
}
__attribute__((noipa)) void rest(double seconds) {
    struct timespec time = {0, (long)(seconds * 1e9)};
    nanosleep(&time, 0);
}
int main(void) {
    double wall = now(CLOCK_MONOTONIC), own = now(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < 30; i++) {
        work(0.014);
        rest(0.006);
    }
    wall = now(CLOCK_MONOTONIC) - wall;
    own = now(CLOCK_PROCESS_CPUTIME_ID) - own;
    printf(\"%f\\n\", 100 * (wall - own) / wall);
    return 0;
}
";

fn run(folder: &Path, command: &mut Command) -> String {
    let output = command.current_dir(folder).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn total(document: &Value, metric: &str) -> Option<u64> {
    let metrics = document["metrics"].as_array().unwrap();
    metrics.iter().find(|known| known["id"] == metric).map(|known| known["total"].as_u64().unwrap())
}

#[test]
fn the_share_off_the_processors_is_what_the_program_measured() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("sleeper.c"), SLEEPER).unwrap();
    run(folder, Command::new("gcc").args(["-g", "-O1", "-fno-omit-frame-pointer", "sleeper.c", "-o", "sleeper"]));
    let options = ["record", "-q", "-N", "-e", "cpu-clock", "-F", "2000", "-g"];
    let mut share = f64::NAN;
    for (name, more) in [("with.data", &["--switch-events"][..]), ("without.data", &[])] {
        let printed = run(folder, perf().args(options).args(more).args(["-o", name, "--", "./sleeper"]));
        if name == "with.data" {
            share = printed.trim().parse().expect("a number");
        }
    }
    let with = report(&folder.join("with.data"), &[]);
    let (off, on) = (total(&with, "off-cpu").unwrap() as f64, total(&with, "cpu-clock").unwrap() as f64);
    let ours = 100.0 * off / (off + on);
    assert!((ours - share).abs() < 2.0, "{ours} % off the processors, the program says {share} %");
    assert_eq!(total(&with, "elapsed"), Some((off + on) as u64));
    assert_eq!(total(&with, "application"), Some(on as u64));
    // The costs on processors are those that perf adds up in the same file.
    let periods = run(folder, perf().args(["script", "-f", "-F", "period", "-i", "with.data"]));
    let sum: u64 = periods.split_whitespace().map(|period| period.parse::<u64>().expect("a period")).sum();
    assert_eq!(on as u64, sum);
    assert_eq!(with["metric"], "cpu-clock");
    for row in with["rows"].as_array().unwrap() {
        assert_eq!(row["application"]["exclusive"]["ns"], row["exclusive"]["weight"], "{row}");
        assert!(row["elapsed"]["inclusive"]["ns"].as_u64() >= row["inclusive"]["weight"].as_u64(), "{row}");
    }
    let without = report(&folder.join("without.data"), &[]);
    assert_eq!((total(&without, "off-cpu"), total(&without, "elapsed")), (None, None));
    assert!(without["rows"].as_array().unwrap().iter().all(|row| row.get("elapsed").is_none()));
}
