//! Recordings of the tests' own program: every sample's event, thread, weight and frames equal perf's.

use super::oracle::{assert_same, of_ours, of_perf, our_totals, report_totals};
use super::recording::{Scratch, read, record, record_pipe};
use heatline_profile::{Profile, Silent};
use heatline_readers::{Input, ReadOptions};
use std::fs::File;
use std::path::Path;

/// Records with these options and compares all samples with `perf script` and the totals with `perf report`.
#[track_caller]
fn check(name: &str, options: &[&str]) -> Profile {
    let scratch = Scratch::new(name);
    let data = record(&scratch, options);
    compare(&scratch, &data, options)
}

#[track_caller]
fn compare(scratch: &Scratch, data: &Path, options: &[&str]) -> Profile {
    let profile = read(data);
    let chains = options.contains(&"-g");
    assert_same(&of_perf(scratch, data, chains), &of_ours(&profile, chains));
    assert_eq!(report_totals(scratch, data), our_totals(&profile));
    assert!(profile.rows.len() > 8, "too few samples to say anything");
    // perf 6.1 writes empty build ids into compressed files, and none into a pipe, where none is expected.
    let without = profile.modules.iter().all(|module| module.identity.is_none());
    let expected: &[&str] =
        if without && options.iter().any(|option| option.starts_with("-z")) { &["missing-build-id"] } else { &[] };
    assert_eq!(profile.problems.iter().map(|problem| problem.kind).collect::<Vec<_>>(), expected);
    profile
}

#[test]
fn chains_of_user_code() {
    let profile = check("fp", &["-e", "cpu-clock:u", "-c", "250000", "-g"]);
    assert!(profile.events[0].has_stacks);
    assert!(profile.threads.iter().any(|thread| thread.comm == "worker-1"));
}

#[test]
fn chains_through_the_kernel() {
    check("kernel", &["-e", "cpu-clock", "-F", "2000", "-g"]);
}

#[test]
fn samples_without_chains() {
    let profile = check("flat", &["-e", "cpu-clock:u", "-F", "2000"]);
    assert!(!profile.events[0].has_stacks);
}

#[test]
fn several_events() {
    check("events", &["-e", "cpu-clock:u,task-clock:u,page-faults:u", "-F", "1500", "-g"]);
    check("clash", &["-e", "cpu-clock:u,cpu-clock:k", "-F", "1500", "-g"]);
}

#[test]
fn groups_of_events() {
    check("group", &["-e", "{cpu-clock:u,page-faults:u}", "-g"]);
    check("leader", &["-i", "-e", "{cpu-clock:u,page-faults:u}:S", "-g"]);
}

#[test]
fn build_ids_in_mapping_records() {
    let profile = check("buildid", &["--buildid-mmap", "-e", "cpu-clock:u", "-F", "1500", "-g"]);
    assert!(profile.modules.iter().any(|module| module.path.ends_with("busy") && module.identity.is_some()));
}

#[test]
fn build_ids_in_the_header() {
    let profile = check("header", &["-e", "cpu-clock:u", "-F", "1500", "-g"]);
    let module = profile.modules.iter().find(|module| module.path.ends_with("busy")).unwrap();
    assert_eq!(module.identity.as_ref().unwrap().to_string().len(), 40);
    assert_eq!(profile.recording.command_line[1], "record");
    assert!(profile.recording.duration_ns.is_some_and(|duration| duration > 1_000_000));
    assert!(profile.recording.arch.is_some() && profile.recording.os_release.is_some());
}

#[test]
fn weights_as_perf_counts_them() {
    check("no-period", &["-e", "cpu-clock:u", "--no-period", "-F", "1500"]);
    check("fixed", &["-e", "page-faults:u", "-c", "1", "-g"]);
    check("no-inherit", &["-i", "-e", "cpu-clock:u", "-F", "1500", "-g"]);
    check("no-time", &["-e", "cpu-clock:u", "--no-timestamp", "-F", "1500", "-g"]);
}

#[test]
fn compressed_records() {
    check("zstd", &["-z", "-e", "cpu-clock:u", "-F", "3000", "-g"]);
    check("zstd-hard", &["-z19", "-e", "cpu-clock:u,page-faults:u", "-F", "3000", "-g"]);
}

#[test]
fn a_pipe_stored_or_read_as_it_comes() {
    let scratch = Scratch::new("pipe");
    let options = ["-e", "cpu-clock:u,page-faults:u", "-F", "3000", "-g"];
    let data = record_pipe(&scratch, &options);
    let stored = compare(&scratch, &data, &options);
    let mut stream = File::open(&data).unwrap();
    let streamed = heatline_readers::read(Input::Stream(&mut stream), &ReadOptions::default(), &Silent).unwrap();
    assert_same(&of_ours(&stored, true), &of_ours(&streamed, true));
}

#[test]
fn a_directory_of_one_file_per_thread_of_the_recorder() {
    check("threads", &["--threads", "-e", "cpu-clock:u", "-F", "2000", "-g"]);
    check("threads-zstd", &["--threads", "-z", "-e", "cpu-clock:u", "-F", "2000", "-g"]);
}

#[test]
fn all_sorts_of_records_and_fields_beside() {
    check("switch", &["--switch-events", "--namespaces", "--all-cgroups", "-e", "cpu-clock:u", "-F", "2000", "-g"]);
    let fields = ["-d", "-T", "-P", "--sample-cpu", "-W", "--phys-data", "--data-page-size", "--code-page-size"];
    let more = ["--all-cgroups", "--intr-regs=ip,sp", "-e", "cpu-clock:u", "-F", "2000", "-g"];
    check("bits", &[&fields[..], &more].concat());
    check("identifier", &["--sample-identifier", "-e", "cpu-clock:u,page-faults", "-F", "2000", "-g"]);
}
