//! Stacks recorded as bytes: chains equal those that perf walks, frame by frame, in all but a few.

use super::oracle::{Key, Sums, of_perf};
use super::recording::{OnDiskBinaries, Scratch, read, read_with, record, record_arguments};
use heatline_profile::{ModuleKind, Profile};
use heatline_readers::ReadOptions;
use std::path::Path;
use std::sync::Arc;

fn read_walking(data: &Path) -> Profile {
    read_with(data, &ReadOptions { binaries: Some(Arc::new(OnDiskBinaries)), ..ReadOptions::default() })
}

/// As perf prints it: user callers one byte before the return address, and at most 127 frames.
fn looked_up(profile: &Profile) -> Sums {
    let mut sums = Sums::new();
    for row in &profile.rows {
        let thread = profile.thread(row.thread.unwrap());
        let mut in_kernel = false;
        let frames = profile.stacks.frames(row.stack).take(127).map(|frame| {
            let module = profile.module(frame.module);
            let was_in_kernel = std::mem::replace(&mut in_kernel, module.kind == ModuleKind::Kernel);
            let as_recorded = in_kernel || was_in_kernel;
            let address = if as_recorded { frame.address.recorded() } else { frame.address.lookup() };
            (module.path.clone(), address.0)
        });
        let key = Key {
            event: profile.event(row.event).name.clone(),
            comm: thread.comm.clone(),
            pid: thread.pid,
            tid: thread.tid,
            frames: frames.collect(),
        };
        let sum = sums.entry(key).or_default();
        *sum = (sum.0 + row.tally.samples, sum.1 + row.tally.weight.0);
    }
    sums
}

#[track_caller]
fn check(name: &str, options: &[&str]) {
    let scratch = Scratch::new(name);
    // After exec perf keeps the old program's mappings and takes the lower one for a library's base, so its walks break
    // off where address randomisation wills. Without a child there is no exec.
    let data = record_arguments(&scratch, options, &["again"]);
    let profile = read_walking(&data);
    // Everything that ran is on this machine; what is mapped besides (caches of the linker, data of the kernel) needs
    // no unwind information.
    assert!(profile.problems.iter().all(|problem| problem.kind != "missing-binary"), "{:?}", profile.problems);
    let (mut perf, mut ours) = (of_perf(&scratch, &data, true), looked_up(&profile));
    let total = |sums: &Sums| sums.values().map(|(samples, _)| samples).sum::<u64>();
    assert_eq!(total(&perf), total(&ours));
    // Lazy binding saves registers in a frame that only a register finds which the walker does not keep.
    let is_binding = |key: &Key| key.frames.iter().any(|(binary, _)| binary.contains("/ld-linux"));
    perf.retain(|key, _| !is_binding(key));
    ours.retain(|key, _| !is_binding(key));
    let samples = total(&perf);
    let equal: u64 = perf.iter().map(|(key, (samples, _))| ours.get(key).map_or(0, |(n, _)| *n.min(samples))).sum();
    let differ: Vec<_> = perf.keys().filter(|key| !ours.contains_key(key)).take(2).collect();
    let instead: Vec<_> = ours.keys().filter(|key| !perf.contains_key(key)).take(2).collect();
    assert!(equal * 100 >= samples * 99, "{equal} of {samples} equal; perf {differ:#x?}, ours {instead:#x?}");
}

#[test]
fn stacks_are_walked_as_perf_walks_them() {
    check("dwarf", &["-e", "cpu-clock:u", "-F", "4000", "--call-graph", "dwarf,8192"]);
    check("dwarf-kernel", &["-e", "cpu-clock", "-F", "3000", "--call-graph", "dwarf,16384"]);
}

#[test]
fn without_binaries_the_interrupted_instruction_is_kept() {
    let scratch = Scratch::new("no-binaries");
    let data = record(&scratch, &["-e", "cpu-clock:u", "-F", "1000", "--call-graph", "dwarf,4096"]);
    let (walked, not) = (read_walking(&data), read(&data));
    assert_eq!(walked.totals(), not.totals());
    assert!(not.problems.iter().any(|problem| problem.kind == "stacks-not-walked"));
    let leaf = |profile: &Profile| {
        let mut leaves: Vec<_> = profile.rows.iter().map(|row| profile.stacks.node(row.stack).address).collect();
        leaves.sort();
        leaves.dedup();
        leaves
    };
    assert_eq!(leaf(&walked), leaf(&not));
}
