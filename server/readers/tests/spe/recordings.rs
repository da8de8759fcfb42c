//! Recordings in perf.data: whose a record is, where its address lies, what was lost.

use super::forge::{Happening, Info, Piece, Random, Recording, Stream, USER};
use super::{E1, E2, E3, E4, E5, E6, bytes};
use heatline_profile::{Profile, ProfileKind, Ratio, Silent, SpeSource};
use heatline_readers::spe::{Group, Item, Options, RawModule, RecordFields, Sink};
use heatline_readers::{Folder, Input, ReadError, ReadOptions, ReadSeek, read};
use std::io::{self, Cursor};
use std::sync::{Arc, Mutex};

const PROGRAM: (u64, u64, u64) = (0x40_0000, 0x1000, 0);

fn examples(all: &[&str]) -> Recording {
    let stream = all.iter().flat_map(|example| bytes(example)).collect();
    Recording::of_program("/opt/prog", PROGRAM, 1000, stream)
}

fn options(sink: Option<Sink>) -> ReadOptions {
    ReadOptions { spe: Options { sink, ..Options::default() }, ..ReadOptions::default() }
}

fn read_file(recording: &Recording) -> Profile {
    read(Input::File(&mut Cursor::new(recording.file())), &options(None), &Silent).expect("a profile")
}

/// The records with whom they belong to and when they were taken, and the last line of the dump.
fn dump(recording: &Recording) -> (Vec<RecordFields>, Item) {
    let items = Arc::new(Mutex::new(Vec::new()));
    let into = items.clone();
    let sink = Sink::new(false, move |item| into.lock().expect("one thread").push(item));
    read(Input::File(&mut Cursor::new(recording.file())), &options(Some(sink)), &Silent).expect("a profile");
    let mut items = std::mem::take(&mut *items.lock().expect("one thread"));
    let summary = items.pop().expect("a summary");
    let record = |item| match item {
        Item::Record(record) => *record,
        other => panic!("expected a record, found {other:?}"),
    };
    (items.into_iter().map(record).collect(), summary)
}

/// Each place with its module, thread and number of records.
fn places(profile: &Profile) -> Vec<(String, u64, i32, u64)> {
    let table = profile.spe.as_ref().expect("SPE data");
    let mut all: Vec<_> = table
        .rows
        .iter()
        .map(|row| {
            let node = profile.stacks.node(row.stack);
            let tid = row.thread.map_or(-2, |thread| profile.thread(thread).tid);
            (profile.module(node.module).path.clone(), node.address.recorded().0, tid, row.stats.records)
        })
        .collect();
    all.sort();
    all
}

fn problem(profile: &Profile, kind: &str) -> u64 {
    profile.problems.iter().filter(|problem| problem.kind == kind).map(|problem| problem.count).sum()
}

#[test]
fn records_belong_to_threads_and_lie_in_modules() {
    let profile = read_file(&examples(&[E1, E2, E3, E5, E6]));
    assert_eq!(profile.kind, ProfileKind::PerfData);
    let expected = [
        ("/opt/prog".to_string(), 0x6d4, 1000, 2),
        ("/opt/prog".to_string(), 0x6dc, 1000, 1),
        ("/opt/prog".to_string(), 0x6f0, 1000, 1),
        ("[kernel.kallsyms]".to_string(), 0xffff_8000_1012_3456, 0, 1),
    ];
    assert_eq!(places(&profile), expected);
    let table = profile.spe.as_ref().expect("SPE data");
    let load = &table.rows.iter().find(|row| row.stats.records == 2).expect("the load").stats;
    assert_eq!((load.total_latency.sum(), load.total_latency.percentile(95)), (34 + 412, Some(412)));
    assert_eq!(load.execution_latency.counts(), [(27, 1), (401, 1)]);
    assert_eq!((load.l1d_miss, load.tlb_miss), (Ratio { count: 1, of: 2 }, Ratio { count: 1, of: 2 }));
    assert_eq!((load.llc_miss, load.remote), (Ratio { count: 1, of: 1 }, Ratio { count: 1, of: 2 }));
    assert_eq!((load.source(SpeSource::L2), load.source(SpeSource::Remote)), (1, 1));
    let names: Vec<_> = profile.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names[..4], ["arm_spe_0//", "dummy:u", "spe:records", "spe:total-latency"]);
    let totals = profile.totals();
    let total = |name: &str| totals[profile.find_event(name).expect("an event").0 as usize];
    assert_eq!((total("spe:records").samples, total("spe:records").weight.0), (5, 5));
    assert_eq!((total("spe:total-latency").samples, total("spe:total-latency").weight.0), (5, 34 + 9 + 20 + 412 + 5));
    assert_eq!((total("spe:mispredicted").samples, total("spe:l1d-miss").samples), (1, 1));
}

#[test]
fn times_come_from_the_clock_wherever_it_stands() {
    let mut recording = examples(&[E1, E2, E4]);
    let times = |recording: &Recording| dump(recording).0.iter().map(|record| record.time_ns).collect::<Vec<_>>();
    assert_eq!(times(&recording), [Some(201_000), Some(241_000), None]);
    assert_eq!(read_file(&recording).recording.duration_ns, Some(40_000));
    recording.clock_last = true;
    assert_eq!(times(&recording), [Some(201_000), Some(241_000), None]);
    recording.clock = None;
    assert_eq!(times(&recording), [Some(5000), Some(6000), None]);
    let profile = read_file(&recording);
    assert_eq!(problem(&profile, "spe-no-clock"), 1);
    assert_eq!(places(&profile)[0].0, "/opt/prog");
}

#[test]
fn only_a_wanted_time_or_processor_is_read() {
    let recording = examples(&[E1, E2, E3]);
    let with = |options: ReadOptions| read(Input::File(&mut Cursor::new(recording.file())), &options, &Silent);
    let profile =
        with(ReadOptions { time: Some((241_000, 300_000).into()), ..ReadOptions::default() }).expect("a profile");
    assert_eq!(places(&profile).iter().map(|place| place.1).collect::<Vec<_>>(), [0x6dc, 0x6f0]);
    let profile = with(ReadOptions { cpus: Some(vec![2]), ..ReadOptions::default() }).expect("a profile");
    assert_eq!(places(&profile).len(), 3);
    let profile = with(ReadOptions { cpus: Some(vec![0, 1]), ..ReadOptions::default() }).expect("a profile");
    assert_eq!(places(&profile).len(), 0);
    let spe = Options { groups: vec![Group::from_name("branch").expect("a group")], ..Options::default() };
    let profile = with(ReadOptions { spe, ..ReadOptions::default() }).expect("a profile");
    assert_eq!(places(&profile).iter().map(|place| place.1).collect::<Vec<_>>(), [0x6f0]);
}

#[test]
fn what_the_recorder_lost_is_honoured_and_told() {
    let mut recording = examples(&[E1, E2, E4]);
    recording.pieces[0].flags = Some(0xd);
    let (records, summary) = dump(&recording);
    assert_eq!(records.iter().map(|record| record.pc.as_str()).collect::<Vec<_>>(), ["0x4006d4", "0x4006dc"]);
    let expected = serde_json::json!({"summary": {
        "records": 2, "dropped_records": 1, "bad_bytes": 0,
        "aux": {"truncated": 1, "partial": 1, "collision": 1},
    }});
    assert_eq!(serde_json::to_value(summary).expect("plain"), expected);
    let profile = read_file(&recording);
    let problems = ["spe-truncated", "spe-partial", "spe-collision"].map(|kind| problem(&profile, kind));
    assert_eq!(problems, [1, 1, 1]);
    let recording = profile.spe.expect("SPE data").recording;
    assert_eq!(
        recording.losses().as_deref(),
        Some(
            "data lost in 1 of 1 buffers, gaps in 1 of 1 buffers, collisions in 1 of 1 buffers, 1 record dropped (33.3 %)"
        )
    );
    assert!(recording.advice.iter().any(|advice| advice.contains("raise the interval")));
}

#[test]
fn a_torn_record_at_the_end_of_a_partial_range_is_the_one_that_is_dropped() {
    let mut recording = examples(&[E1, E2]);
    let torn = bytes(E3)[..20].to_vec();
    recording.pieces[0].bytes.extend(torn);
    recording.pieces[0].flags = Some(4);
    let next = recording.pieces[0].bytes.len() as u64;
    // The next range goes on at once, but its first bytes do not belong to the torn record.
    let piece = Piece { offset: next, bytes: bytes(E5), flags: Some(0), ..recording.pieces[0].clone() };
    recording.pieces.push(piece);
    let (records, _) = dump(&recording);
    assert_eq!(records.iter().map(|r| r.pc.as_str()).collect::<Vec<_>>(), ["0x4006d4", "0x4006dc", "0x4006d4"]);
}

#[test]
fn pieces_of_a_queue_are_one_stream_however_they_are_cut() {
    let whole = examples(&[E1, E2, E3, E5]);
    let expected = dump(&whole).0;
    let stream = whole.pieces[0].bytes.clone();
    for cut in [1, 30, 61, 100, stream.len() - 1] {
        let mut recording = whole.clone();
        let (front, back) = stream.split_at(cut);
        let piece = |offset: usize, bytes: &[u8]| Piece {
            offset: offset as u64,
            bytes: bytes.to_vec(),
            ..whole.pieces[0].clone()
        };
        recording.pieces = vec![piece(0, front), piece(cut, back)];
        assert_eq!(dump(&recording).0, expected, "cut at {cut}");
    }
}

#[test]
fn the_second_version_tells_each_processor() {
    let mut recording = examples(&[E1]);
    recording.midr = None;
    recording.pieces.push(Piece { queue: 1, cpu: Some(3), ..recording.pieces[0].clone() });
    recording.info = Info::Second(vec![(2, 0x410f_d4f0, 0), (3, 0xc00f_ac40, 0)]);
    let (records, _) = dump(&recording);
    let levels: Vec<_> = records.iter().map(|record| (record.cpu, record.level)).collect();
    assert_eq!(levels, [(Some(2), Some("L2")), (Some(3), Some("L1"))]);
}

#[test]
fn a_recording_that_is_not_described_is_known_by_the_name_of_its_event() {
    let recording = Recording { info: Info::Missing, ..examples(&[E1, E2]) };
    let profile = read_file(&recording);
    assert_eq!(places(&profile).len(), 2);
    assert_eq!(problem(&profile, "damaged-record"), 1);
}

#[test]
fn without_contexts_the_thread_is_who_ran_there() {
    let record = |time| {
        let mut stream = Stream::default();
        stream.address(0, 0x40_06d4, USER).operation(0, 0).time(time);
        stream.0
    };
    let mut recording = Recording::of_program("/opt/prog", PROGRAM, 1000, [record(5000), record(6000)].concat());
    let map = Happening::Map { pid: 7, start: 0x40_0000, length: 0x1000, offset: 0x2000, path: "/opt/other".into() };
    recording.happenings.extend([
        (30, Happening::Comm { pid: 7, tid: 8, name: "worker".into() }),
        (40, map),
        (100, Happening::Switch { cpu: 2, pid: 1000, tid: 1000 }),
        (220_000, Happening::Switch { cpu: 2, pid: 7, tid: 8 }),
        (221_000, Happening::Switch { cpu: 3, pid: 1000, tid: 1000 }),
    ]);
    let profile = read_file(&recording);
    let expected = [("/opt/other".to_string(), 0x26d4, 8, 1), ("/opt/prog".to_string(), 0x6d4, 1000, 1)];
    assert_eq!(places(&profile), expected);
    assert_eq!(problem(&profile, "spe-inexact-threads"), 2);
}

#[test]
fn a_recording_of_a_thread_needs_no_contexts() {
    let mut recording = Recording::of_program("/opt/prog", PROGRAM, 1000, bytes(E4));
    recording.pieces[0] = Piece { cpu: None, tid: 1000, ..recording.pieces[0].clone() };
    assert_eq!(places(&read_file(&recording)), [("/opt/prog".to_string(), 0x6d8, 1000, 1)]);
    recording.timeless = true;
    assert_eq!(places(&read_file(&recording)), [("/opt/prog".to_string(), 0x6d8, 1000, 1)]);
}

#[test]
fn an_address_means_what_was_mapped_when_it_was_sampled() {
    let mut recording = examples(&[E1, E2, E3]);
    // Between the first and the other records another file takes the place of the program.
    let map = Happening::Map { pid: 1000, start: 0x40_0000, length: 0x1000, offset: 0, path: "/opt/later".into() };
    recording.happenings.push((230_000, map));
    recording.happenings.push((235_000, Happening::Comm { pid: 1000, tid: 1000, name: "renamed".into() }));
    let profile = read_file(&recording);
    let found: Vec<_> = places(&profile).into_iter().map(|place| (place.0, place.1)).collect();
    assert_eq!(found, [("/opt/later".into(), 0x6dc), ("/opt/later".into(), 0x6f0), ("/opt/prog".to_string(), 0x6d4)]);
    let mut names: Vec<_> = profile.threads.iter().map(|thread| thread.comm.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["program", "renamed"]);
    // Without times nothing can be ordered: the mappings at the end count.
    recording.timeless = true;
    assert!(places(&read_file(&recording)).iter().all(|place| place.0 == "/opt/later"));
}

#[test]
fn pipes_give_what_files_give() {
    let recording = examples(&[E1, E2, E3, E5, E6]);
    let expected = places(&read_file(&recording));
    let pipe = recording.pipe();
    let streamed = read(Input::Stream(&mut pipe.as_slice()), &options(None), &Silent).expect("a profile");
    assert_eq!(places(&streamed), expected);
    let stored = read(Input::File(&mut Cursor::new(pipe)), &options(None), &Silent).expect("a profile");
    assert_eq!(places(&stored), expected);
    let unindexed = Recording { indexed: false, ..recording };
    assert_eq!(places(&read_file(&unindexed)), expected);
}

/// A directory in memory.
struct Members(Vec<(&'static str, Vec<u8>)>);

impl Folder for Members {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.iter().map(|(name, _)| (*name).to_owned()).collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn ReadSeek + '_>> {
        let found = self.0.iter().find(|(known, _)| *known == name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Cursor::new(found.1.as_slice())))
    }
}

#[test]
fn members_of_a_directory_hold_data_of_their_own() {
    let whole = examples(&[E1, E2, E3, E5, E6]);
    let header = Recording { pieces: Vec::new(), ..whole.clone() };
    let folder = Members(vec![("data", header.file()), ("data.0", whole.piece_records().0)]);
    let profile = read(Input::Folder(&folder), &options(None), &Silent).expect("a profile");
    assert_eq!(places(&profile), places(&read_file(&whole)));
}

#[test]
fn a_raw_buffer_lies_where_the_caller_says() {
    let stream = [E1, E2, E3, E6].map(bytes).concat();
    let module = RawModule { path: "/opt/prog".into(), base: 0x40_0000 };
    let spe = Options { modules: vec![module], ..Options::default() };
    let options = ReadOptions { spe, ..ReadOptions::default() };
    let profile = read(Input::File(&mut Cursor::new(&stream)), &options, &Silent).expect("a profile");
    assert_eq!(profile.kind, ProfileKind::Spe);
    let expected = [
        ("/opt/prog".to_string(), 0x6d4, 1000, 1),
        ("/opt/prog".to_string(), 0x6dc, 1000, 1),
        ("/opt/prog".to_string(), 0x6f0, 1000, 1),
        ("[kernel.kallsyms]".to_string(), 0xffff_8000_1012_3456, 0, 1),
    ];
    assert_eq!(places(&profile), expected);
    let streamed = read(Input::Stream(&mut stream.as_slice()), &options, &Silent).expect("a profile");
    assert_eq!(places(&streamed), expected);
    let without = read(Input::File(&mut Cursor::new(&stream)), &ReadOptions::default(), &Silent);
    assert!(matches!(without, Err(ReadError::Unrecognised { .. })));
}

#[test]
fn how_it_was_recorded_is_told_in_words() {
    let mut recording = examples(&[E1]);
    recording.config = [1 | 1 << 1 | 1 << 33 | 1 << 34, 1 << 3, 100, 1 << 7];
    let spe = read_file(&recording).spe.expect("SPE data").recording;
    assert!(spe.filtered);
    let expected = "loads or stores; must have L1D refill; not mispredicted; total latency >= 100; timestamps on; \
        physical addresses on; jitter off; one of about 1024 operations";
    assert_eq!(spe.settings.join("; "), expected);
}

#[test]
fn packets_are_dumped_before_the_records_they_make() {
    let items = Arc::new(Mutex::new(Vec::new()));
    let into = items.clone();
    let sink = Sink::new(true, move |item| into.lock().expect("one thread").push(item));
    let recording = examples(&[E4]);
    read(Input::File(&mut Cursor::new(recording.file())), &options(Some(sink)), &Silent).expect("a profile");
    let lines: Vec<_> =
        items.lock().expect("one thread").iter().map(|item| serde_json::to_value(item).expect("plain")).collect();
    let first =
        serde_json::json!({"packet": {"offset": 0, "bytes": "b0d806400000000080", "text": "PC 0x4006d8 el0 ns=1"}});
    assert_eq!((lines.len(), &lines[0]), (7, &first));
    assert_eq!(lines[4]["packet"]["text"], "END");
    assert_eq!((&lines[5]["spe"]["pc"], &lines[5]["spe"]["cpu"]), (&"0x4006d8".into(), &2.into()));
    assert_eq!(lines[6]["summary"]["records"], 1);
}

#[test]
fn every_truncation_of_a_file_is_survived() {
    let file = examples(&[E1, E2, E3, E4, E5, E6]).file();
    for length in (0..file.len()).step_by(3) {
        let result = read(Input::File(&mut Cursor::new(&file[..length])), &options(None), &Silent);
        if let Ok(profile) = result {
            assert!(profile.spe.is_none_or(|table| table.recording.records <= 6));
        }
    }
}

/// Files and pipes with some bytes of any record changed: nothing may panic, hang or invent records.
#[test]
fn mutated_recordings_are_survived() {
    let mut random = Random(11);
    let recording = examples(&[E1, E2, E3, E4, E5, E6]);
    let second = Recording { info: Info::Second(vec![(2, 0x410f_d4f0, 1 << 23)]), ..recording.clone() };
    let originals = [recording.file(), recording.pipe(), second.file()];
    for round in 0..6000 {
        let mut file = originals[round % originals.len()].clone();
        for _ in 0..=random.below(3) {
            let at = random.below(file.len() as u64) as usize;
            file[at] = if random.below(2) == 0 { random.below(256) as u8 } else { file[at] ^ 1 << random.below(8) };
        }
        if let Ok(profile) = read(Input::File(&mut Cursor::new(&file)), &options(None), &Silent) {
            let records = profile.spe.map_or(0, |table| table.recording.records);
            assert!(records <= file.len() as u64 / 10, "{records} records");
        }
    }
}
