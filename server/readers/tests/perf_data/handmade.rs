//! Files made by hand: byte orders, the order of rounds, what mappings and names mean when, odd records.

use super::oracle::{assert_same, of_ours, of_perf};
use super::recording::Scratch;
use super::writer::{EventSpec, IN_KERNEL, IN_USER, KERNEL, Order, SAMPLE_TYPE, USER, Writer, build_id_section};
use expect_test::expect;
use heatline_profile::{CodeAddress, ModuleKind, Profile, Silent};
use heatline_readers::perf_data::RecordSink;
use heatline_readers::{Input, ReadError, ReadOptions};
use std::io::Cursor;
use std::sync::{Arc, Mutex};

const APP: &str = "/usr/bin/app";
const LIB: &str = "/usr/lib/lib.so";
const P: (u32, u32) = (100, 100);

fn read(bytes: &[u8]) -> Profile {
    read_with(bytes, &ReadOptions::default()).unwrap()
}

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<Profile, ReadError> {
    heatline_readers::read(Input::File(&mut Cursor::new(bytes)), options, &Silent)
}

/// Samples, weight, thread name and frames of each row, innermost frame first, in the order of the rows.
fn rows(profile: &Profile) -> Vec<String> {
    let row = |row: &heatline_profile::SampleRow| {
        let thread = profile.thread(row.thread.unwrap());
        let frames: Vec<String> = profile
            .stacks
            .frames(row.stack)
            .map(|frame| {
                let sign = if matches!(frame.address, CodeAddress::Ip(_)) { "@" } else { "<" };
                format!("{}{sign}{}", profile.module(frame.module).base_name(), frame.address.recorded())
            })
            .collect();
        format!("{}x{} {} {}", row.tally.samples, row.tally.weight.0, thread.comm, frames.join(" "))
    };
    profile.rows.iter().map(row).collect()
}

fn problems(profile: &Profile) -> Vec<(&'static str, u64)> {
    profile.problems.iter().map(|problem| (problem.kind, problem.count)).collect()
}

/// Compares our reading with the expected rows, and with perf's reading of the same bytes.
#[track_caller]
fn check(name: &str, writer: &Writer, expect: &[&str]) -> Profile {
    let bytes = writer.file(&[]);
    let profile = read(&bytes);
    assert_eq!(rows(&profile), expect);
    let scratch = Scratch::new(name);
    let data = scratch.path("perf.data");
    std::fs::write(&data, &bytes).unwrap();
    assert_same(&of_perf(&scratch, &data, true), &of_ours(&profile, true));
    profile
}

/// A process with a name and two mappings.
fn begin(order: Order) -> Writer {
    let mut writer = Writer::new(order);
    writer.comm(100, 100, "app", 0, 0);
    writer.mmap(100, [0x40_0000, 0x1000, 0x1000], APP, 1, 0);
    writer.mmap(100, [0x7f00_0000, 0x2000, 0], LIB, 2, 0);
    writer
}

#[test]
fn both_byte_orders_say_the_same() {
    for order in [Order::Little, Order::Big] {
        let mut writer = begin(order);
        writer.sample(P, 10, 5, &[USER, 0x40_0010, 0x7f00_0100]);
        writer.sample(P, 11, 7, &[USER, 0x40_0010, 0x7f00_0100]);
        writer.round();
        writer.comm(100, 100, "renamed", 0, 12);
        writer.sample(P, 13, 9, &[USER, 0x7f00_1000, 0x40_0020]);
        let name = if order == Order::Little { "little" } else { "big" };
        let expect = ["2x12 app app@0x1010 lib.so<0x100", "1x9 renamed lib.so@0x1000 app<0x1020"];
        let profile = check(name, &writer, &expect);
        assert_eq!((profile.events[0].name.as_str(), problems(&profile)), ("cpu-clock", vec![("missing-build-id", 3)]));
        assert_eq!(profile.recording.duration_ns, Some(3));
    }
}

#[test]
fn records_take_effect_at_their_times_whatever_their_place_in_the_file() {
    let mut writer = begin(Order::Little);
    // The buffer of one processor…
    writer.sample(P, 30, 1, &[USER, 0x50_0010]);
    writer.sample(P, 10, 1, &[USER, 0x50_0010]);
    writer.round();
    // …and that of another, with a mapping that came between the two samples.
    writer.mmap(100, [0x50_0000, 0x1000, 0], "/usr/lib/late.so", 3, 20);
    writer.sample(P, 40, 1, &[USER, 0x50_0010]);
    writer.round();
    check("rounds", &writer, &["1x1 app [unknown]@0x500010", "2x2 app late.so@0x10"]);
}

#[test]
fn a_mapping_replaces_what_it_overlaps() {
    let mut writer = begin(Order::Little);
    writer.sample(P, 10, 1, &[USER, 0x7f00_1800, 0x40_0010]);
    writer.mmap(100, [0x7f00_1000, 0x400, 0x5000], "/usr/lib/new.so", 4, 20);
    writer.sample(P, 30, 1, &[USER, 0x7f00_1008, 0x7f00_1808]);
    writer.sample(P, 40, 1, &[USER, 0x7f00_1800, 0x40_0010]);
    let expect = ["2x2 app lib.so@0x1800 app<0x1010", "1x1 app new.so@0x5008 lib.so<0x1808"];
    check("overlap", &writer, &expect);
}

#[test]
fn a_child_inherits_mappings_and_name_and_then_goes_its_own_way() {
    let child = (200, 200);
    let mut writer = begin(Order::Little);
    writer.fork(child, P, 0, 10);
    writer.sample(child, 11, 1, &[USER, 0x40_0010]);
    writer.comm(200, 200, "other", 1 << 13, 20);
    writer.mmap(200, [0x40_0000, 0x1000, 0], "/usr/bin/other", 9, 21);
    writer.sample(child, 22, 1, &[USER, 0x40_0010]);
    writer.sample(P, 23, 1, &[USER, 0x40_0010]);
    let expect = ["1x1 app app@0x1010", "1x1 other other@0x10", "1x1 app app@0x1010"];
    check("fork", &writer, &expect);
}

#[test]
fn a_process_that_ran_already_brings_its_own_mappings() {
    let child = (200, 200);
    let mut writer = begin(Order::Little);
    writer.fork(child, P, 1 << 13, 0);
    writer.sample(child, 11, 1, &[USER, 0x40_0010]);
    check("synthesized", &writer, &["1x1 app [unknown]@0x400010"]);
}

#[test]
fn threads_share_mappings_and_have_names_of_their_own() {
    let thread = (100, 101);
    let mut writer = begin(Order::Little);
    writer.fork(thread, P, 0, 10);
    writer.sample(thread, 11, 1, &[USER, 0x40_0010]);
    writer.comm(100, 101, "worker", 0, 12);
    writer.sample(thread, 13, 1, &[USER, 0x40_0010]);
    writer.sample(P, 14, 1, &[USER, 0x40_0010]);
    check("threads", &writer, &["1x1 app app@0x1010", "1x1 worker app@0x1010", "1x1 app app@0x1010"]);
}

#[test]
fn kernel_frames_come_before_user_frames_and_have_modules_of_their_own() {
    let mut writer = begin(Order::Little);
    writer.map_kernel(0xffff_ffff_8100_0000, 0x100_0000, "[kernel.kallsyms]_text");
    writer.map_kernel(0xffff_ffff_c000_0000, 0x1000, "[ext4]");
    let chain = [KERNEL, 0xffff_ffff_c000_0010, 0xffff_ffff_8100_0020, USER, 0x40_0030, 0x7f00_0040];
    writer.sample_with(IN_KERNEL, P, 10, 1, &chain, &[]);
    let expect = ["1x1 app [ext4]@0xffffffffc0000010 [kernel.kallsyms]<0xffffffff81000020 app<0x1030 lib.so<0x40"];
    let profile = read(&writer.file(&[]));
    assert_eq!(rows(&profile), expect);
    let kinds: Vec<_> = profile.modules.iter().map(|module| module.kind).collect();
    assert!(kinds.contains(&ModuleKind::Kernel) && kinds.contains(&ModuleKind::KernelModule));
}

#[test]
fn guest_and_hypervisor_frames_are_groups_of_their_own() {
    let mut writer = begin(Order::Little);
    let (hypervisor, guest, guest_user) = (-32i64 as u64, -2176i64 as u64, -2560i64 as u64);
    writer.sample_with(4, P, 10, 1, &[guest, 0xffff_8000_0000_1000, guest_user, 0x40_0000], &[]);
    writer.sample_with(3, P, 11, 1, &[hypervisor, 0x1234, USER, 0x40_0010], &[]);
    let expect = [
        "1x1 app [guest.kernel.kallsyms]@0xffff800000001000 [guest]<0x400000",
        "1x1 app [hypervisor]@0x1234 app<0x1010",
    ];
    assert_eq!(rows(&read(&writer.file(&[]))), expect);
}

#[test]
fn a_chain_that_leaves_out_the_sampled_address_still_has_it() {
    let mut writer = begin(Order::Little);
    // Only user frames were recorded of a sample in the kernel.
    writer.map_kernel(0xffff_ffff_8100_0000, 0x100_0000, "[kernel.kallsyms]_text");
    let mut body = writer.words(&[0xffff_ffff_8100_0010]);
    body.extend([writer.u32(100), writer.u32(100)].concat());
    body.extend(writer.words(&[10, 0, 1, 2, USER, 0x40_0010]));
    writer.record(9, IN_KERNEL, &body);
    let expect = ["1x1 app [kernel.kallsyms]@0xffffffff81000010 app@0x1010"];
    assert_eq!(rows(&read(&writer.file(&[]))), expect);
}

#[test]
fn deferred_chains_are_put_together_in_either_order() {
    let deferred = -640i64 as u64;
    let mut writer = begin(Order::Little);
    writer.map_kernel(0xffff_ffff_8100_0000, 0x100_0000, "[kernel.kallsyms]_text");
    let rest = |writer: &mut Writer, cookie: u64, chain: &[u64]| {
        let mut body = writer.words(&[cookie, chain.len() as u64]);
        body.extend(writer.words(chain));
        body.extend(writer.words(&[100 << 32 | 100, 50, 0]));
        writer.record(22, 0, &body);
    };
    let kernel = 0xffff_ffff_8100_0010;
    writer.sample_with(IN_KERNEL, P, 10, 1, &[KERNEL, kernel, deferred, 7], &[]);
    writer.sample_with(IN_KERNEL, P, 11, 2, &[KERNEL, kernel, deferred, 7], &[]);
    rest(&mut writer, 7, &[USER, 0x40_0010, 0x7f00_0020]);
    rest(&mut writer, 8, &[USER, 0x40_0030]);
    writer.sample_with(IN_KERNEL, P, 12, 1, &[KERNEL, kernel, deferred, 8], &[]);
    writer.sample_with(IN_KERNEL, P, 13, 1, &[KERNEL, kernel, deferred, 9], &[]);
    let profile = read(&writer.file(&[]));
    let expect = [
        "2x3 app [kernel.kallsyms]@0xffffffff81000010 app<0x1010 lib.so<0x20",
        "1x1 app [kernel.kallsyms]@0xffffffff81000010 app<0x1030",
        "1x1 app [kernel.kallsyms]@0xffffffff81000010",
    ];
    assert_eq!(rows(&profile), expect);
    assert_eq!(problems(&profile), [("unfinished-chains", 1)]);
}

#[test]
fn samples_are_told_apart_by_id_and_unknown_ones_are_counted() {
    let sample_type = SAMPLE_TYPE | 1 << 16;
    let event = |config, ids: &[u64]| EventSpec { config, sample_type, ids: ids.to_vec(), ..EventSpec::default() };
    let mut writer = Writer::with_events(Order::Little, vec![event(0, &[11, 12]), event(2, &[21])]);
    for (id, weight) in [(11, 1), (12, 2), (21, 4), (99, 8)] {
        let body = writer.words(&[id, 0x1000, 100 << 32 | 100, 10, 0, weight, 0]);
        writer.record(9, IN_USER, &body);
    }
    let profile = read(&writer.file(&[]));
    let totals: Vec<_> = profile.totals().iter().map(|total| (total.samples, total.weight.0)).collect();
    assert_eq!(totals, [(2, 3), (1, 4)]);
    assert_eq!(
        profile.events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(),
        ["cpu-clock", "page-faults"]
    );
    assert_eq!(problems(&profile), [("unknown-event", 1)]);
}

#[test]
fn what_was_lost_or_is_unknown_is_counted() {
    let mut writer = begin(Order::Little);
    let trailer = writer.words(&[100 << 32 | 100, 5, 0]);
    let lost = [writer.words(&[1, 17]), trailer.clone()].concat();
    writer.record(2, 0, &lost);
    writer.record(13, 0, &[writer.words(&[3]), trailer.clone()].concat());
    writer.record(5, 0, &[writer.words(&[5, 1, 1]), trailer].concat());
    writer.record(63, 0, &[0; 16]);
    writer.record(63, 0, &[0; 16]);
    writer.record(9, IN_USER, &[0; 8]);
    writer.sample(P, 10, 1, &[USER, 0x40_0010]);
    let profile = read(&writer.file(&[]));
    assert_eq!(rows(&profile), ["1x1 app app@0x1010"]);
    let expect =
        [("unknown-record", 2), ("lost-samples", 20), ("throttled", 1), ("damaged-record", 1), ("missing-build-id", 1)];
    assert_eq!(problems(&profile), expect);
}

#[test]
fn build_ids_in_the_header_belong_to_the_last_file_at_their_path() {
    let mut writer = begin(Order::Little);
    writer.mmap(101, [0x40_0000, 0x1000, 0], APP, 77, 0);
    writer.sample(P, 10, 1, &[USER, 0x40_0010]);
    writer.sample((101, 101), 11, 1, &[USER, 0x40_0010]);
    let section = build_id_section(&writer, APP, [0xab; 20]);
    let profile = read(&writer.file(&[(2, section)]));
    let identities: Vec<_> = profile
        .modules
        .iter()
        .filter(|module| module.path == APP)
        .map(|module| module.identity.as_ref().map(ToString::to_string))
        .collect();
    assert_eq!(identities, [None, Some("ab".repeat(20))]);
    assert_eq!(problems(&profile), [("replaced-binary", 1)]);
}

#[test]
fn samples_in_binaries_without_a_build_id_are_counted_and_the_binaries_named() {
    let mut writer = begin(Order::Little);
    writer.mmap(100, [0x50_0000, 0x1000, 0], "[heap]", 0, 0);
    writer.sample(P, 10, 1, &[USER, 0x40_0010, 0x7f00_0100]);
    writer.sample(P, 11, 1, &[USER, 0x50_0010]);
    writer.sample(P, 12, 1, &[USER, 0x60_0010]);
    let app = build_id_section(&writer, APP, [0xab; 20]);
    assert_eq!(problems(&read(&writer.file(&[(2, app.clone())]))), []);
    writer.sample(P, 13, 1, &[USER, 0x7f00_0100, 0x40_0010]);
    writer.sample(P, 14, 1, &[USER, 0x7f00_0104, 0x40_0010]);
    let profile = read(&writer.file(&[(2, app)]));
    assert_eq!(problems(&profile), [("missing-build-id", 2)]);
    let message = &profile.problems.iter().next().unwrap().message;
    assert!(message.contains("(/usr/lib/lib.so)") && message.contains("without -B"), "{message}");
}

/// What to do stands behind a semicolon.
#[test]
fn every_warning_says_what_to_do() {
    let mut writer = begin(Order::Little);
    let trailer = writer.words(&[100 << 32 | 100, 5, 0]);
    writer.record(2, 0, &[writer.words(&[1, 17]), trailer.clone()].concat());
    writer.record(5, 0, &[writer.words(&[5, 1, 1]), trailer].concat());
    writer.record(63, 0, &[0; 16]);
    writer.record(9, IN_USER, &[0; 8]);
    writer.sample(P, 100, 1, &[USER, 0x40_0010]);
    writer.round();
    writer.sample(P, 200, 1, &[USER, 0x40_0010]);
    writer.round();
    writer.comm(100, 100, "late", 0, 50);
    writer.sample(P, 300, 1, &[USER, 0x40_0010]);
    let mut bytes = writer.file(&[]);
    bytes.truncate(bytes.len() - 8);
    let profile = read(&bytes);
    let kinds: Vec<_> = profile.problems.iter().map(|problem| problem.kind).collect();
    for kind in ["truncated", "lost-samples", "throttled", "damaged-record", "unknown-record", "out-of-order"] {
        assert!(kinds.contains(&kind), "{kind} of {kinds:?}");
    }
    for problem in profile.problems.iter() {
        assert!(problem.message.contains("; "), "{}", problem.message);
    }
}

#[test]
fn times_and_processors_choose_samples_and_shrink_the_whole() {
    let mut writer = begin(Order::Little);
    for time in 10..20 {
        writer.sample(P, time, 1, &[USER, 0x40_0000 + time]);
    }
    let bytes = writer.file(&[]);
    let total = |time, cpus: Option<&[u32]>| {
        let cpus = cpus.map(<[u32]>::to_vec);
        read_with(&bytes, &ReadOptions { time, cpus, ..ReadOptions::default() }).unwrap().totals()[0].samples
    };
    assert_eq!(total(None, None), 10);
    assert_eq!(total(Some((12, 15).into()), None), 4);
    assert_eq!(total(None, Some(&[1])), 2);
    assert_eq!(total(Some((12, 15).into()), Some(&[0, 1])), 2);
}

#[test]
fn choosing_by_what_was_not_recorded_is_an_error() {
    let event = EventSpec { sample_type: 1 | 2, ..EventSpec::default() };
    let mut writer = Writer::with_events(Order::Little, vec![event]);
    let body = writer.words(&[0x1000, 100 << 32 | 100]);
    writer.record(9, IN_USER, &body);
    let bytes = writer.file(&[]);
    let error = |options| read_with(&bytes, &options).unwrap_err().to_string();
    assert!(error(ReadOptions { time: Some((1, 2).into()), ..ReadOptions::default() }).contains("--time"));
    assert!(error(ReadOptions { cpus: Some(vec![0]), ..ReadOptions::default() }).contains("--cpu"));
}

/// A sample type with branches, whose entries are from, to and flags.
const WITH_BRANCHES: u64 = SAMPLE_TYPE | 1 << 11;

fn branch_stack(writer: &Writer, branches: &[[u64; 3]]) -> Vec<u8> {
    [writer.words(&[branches.len() as u64]), writer.words(branches.as_flattened())].concat()
}

#[test]
fn branches_are_metrics_of_their_own_and_arcs() {
    for order in [Order::Little, Order::Big] {
        let event = EventSpec { sample_type: WITH_BRANCHES, ..EventSpec::default() };
        let mut writer = Writer::with_events(order, vec![event]);
        writer.comm(100, 100, "app", 0, 0);
        writer.mmap(100, [0x40_0000, 0x1000, 0], APP, 1, 0);
        // Mispredicted, and 50 cycles after the one before.
        let flags = if order == Order::Little { 1 | 50 << 4 } else { 1 << 63 | 50 << 44 };
        let more = branch_stack(&writer, &[[0x40_0010, 0x40_0100, flags], [0x40_0020, 0x40_0008, 0]]);
        writer.sample_with(IN_USER, P, 10, 1000, &[USER, 0x40_0104], &more);
        writer.sample_with(IN_USER, P, 11, 1000, &[USER, 0x40_0104], &more);
        let profile = read(&writer.file(&[]));
        let ids: Vec<_> = profile.events.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(ids, ["cpu-clock", "branch:taken", "branch:mispredicted", "branch:cycles"]);
        let totals: Vec<_> = profile.totals().iter().map(|total| (total.samples, total.weight.0)).collect();
        assert_eq!(totals, [(2, 2000), (4, 4), (2, 2), (2, 100)]);
        assert_eq!(rows(&profile)[..3], ["2x2 app app@0x10", "2x2 app app@0x10", "2x100 app app@0x10"]);
        let arcs: Vec<_> = profile.arcs.iter().map(|arc| (arc.from.address.0, arc.to.address.0, arc.taken.0)).collect();
        assert_eq!(arcs, [(0x10, 0x100, 2), (0x20, 0x8, 2)]);
        assert!(profile.arcs.iter().all(|arc| profile.event(arc.event).name == "branch:taken"));
    }
}

#[test]
fn a_call_stack_of_branches_completes_the_chain_with_the_places_of_the_calls() {
    let event = EventSpec { sample_type: WITH_BRANCHES, branch_sample_type: 1 << 11, ..EventSpec::default() };
    let mut writer = Writer::with_events(Order::Little, vec![event]);
    writer.comm(100, 100, "app", 0, 0);
    writer.mmap(100, [0x40_0000, 0x1000, 0], APP, 1, 0);
    let more = branch_stack(&writer, &[[0x40_0020, 0x40_0100, 0], [0x40_0030, 0x40_0018, 0]]);
    writer.sample_with(IN_USER, P, 10, 1, &[USER, 0x40_0104], &more);
    let profile = read(&writer.file(&[]));
    assert_eq!(rows(&profile), ["1x1 app app@0x104 app@0x20 app@0x30"]);
    assert_eq!(profile.events.len(), 1);
}

#[test]
fn every_record_can_be_looked_at() {
    let mut writer = begin(Order::Little);
    writer.sample(P, 10, 5, &[USER, 0x40_0010]);
    writer.round();
    writer.record(63, 0, &[0; 8]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let lines = seen.clone();
    let sink = RecordSink::new(move |record| {
        lines.lock().unwrap().push(serde_json::to_string(record).unwrap());
    });
    read_with(&writer.file(&[]), &ReadOptions { records: Some(sink), ..ReadOptions::default() }).unwrap();
    expect![[r#"
        {"type":"COMM","offset":248,"pid":100,"tid":100,"comm":"app","cpu":0,"size":48}
        {"type":"MMAP2","offset":296,"mode":"user","pid":100,"address":"0x400000","length":"0x1000","file_offset":"0x1000","path":"/usr/bin/app","inode":1,"cpu":0,"size":112}
        {"type":"MMAP2","offset":408,"mode":"user","pid":100,"address":"0x7f000000","length":"0x2000","file_offset":"0x0","path":"/usr/lib/lib.so","inode":2,"cpu":0,"size":112}
        {"type":"SAMPLE","offset":520,"event":"cpu-clock","mode":"user","ip":"0x400010","pid":100,"tid":100,"time":10,"cpu":2,"period":5,"callchain":["0xfffffffffffffe00","0x400010"],"size":72}
        {"type":"FINISHED_ROUND","offset":592,"size":8}
        {"type":"TYPE_63","offset":600,"cpu":0,"size":16}"#]]
    .assert_eq(&seen.lock().unwrap().join("\n"));
}
