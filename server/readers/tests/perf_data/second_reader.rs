//! The library `linux-perf-data` as a second reader: the same records, samples, events and build ids as ours.
//!
//! It hands records on in the order of time, without their places and without round markers, and takes the records that
//! hold attributes and features of a pipe for itself, so what is compared has no order and leaves those out. Three of
//! its faults are named here, so that nobody takes them for ours:
//!
//! * it reads the counters of a group (`{a,b}:S`) as those of a single event and the other way round, so what follows
//!   them in such a sample is wrong or missing;
//! * it does not read directories (`perf record --threads`);
//! * it knows of the fields behind the registers only what it can place without WEIGHT_STRUCT and CGROUP.

use super::recording::{Scratch, read, record, record_pipe};
use heatline_profile::{Identity, Profile, Sampling, Silent};
use heatline_readers::perf_data::{FieldValue, RecordFields, RecordSink};
use heatline_readers::{Input, ReadOptions};
use linux_perf_data::linux_perf_event_reader::{EventRecord, RawEventRecord, SamplingPolicy};
use linux_perf_data::{Error, PerfFile, PerfFileReader, PerfFileRecord};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Type and size of a record, and how many there are.
type Records = BTreeMap<(String, u64), u64>;

/// What both tell of a sample; the place of its event is that among the attributes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Sample {
    time: u64,
    task: (i32, i32),
    ip: u64,
    period: u64,
    chain: Vec<u64>,
}

/// What a reader says about a file.
struct Read {
    records: Records,
    samples: Vec<Sample>,
}

const CONSUMED: [&str; 3] = ["FINISHED_ROUND", "HEADER_ATTR", "HEADER_FEATURE"];

fn ours(data: &Path) -> Read {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let records = RecordSink::new(move |record: &RecordFields| sink.lock().unwrap().push(record.clone()));
    let options = ReadOptions { records: Some(records), ..ReadOptions::default() };
    let mut file = std::fs::File::open(data).unwrap();
    heatline_readers::read(Input::File(&mut file), &options, &Silent).unwrap();
    let all = std::mem::take(&mut *seen.lock().unwrap());
    let mut read = Read { records: Records::new(), samples: Vec::new() };
    for record in all {
        let field = |name| record.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value);
        let number = |name| match field(name) {
            Some(FieldValue::Number(number) | FieldValue::Address(number)) => *number,
            other => panic!("{name} of {record:?} is {other:?}"),
        };
        let task = |name| match field(name) {
            Some(FieldValue::Task(task)) => *task,
            other => panic!("{name} of {record:?} is {other:?}"),
        };
        let is_consumed = CONSUMED.contains(&record.kind.as_str()) || record.kind.starts_with("COMPRESSED");
        if !is_consumed {
            *read.records.entry((record.kind.clone(), number("size"))).or_default() += 1;
        }
        if record.kind == "SAMPLE" {
            let chain = match field("callchain") {
                Some(FieldValue::Addresses(chain)) => chain.clone(),
                _ => Vec::new(),
            };
            let (time, ip, period) = (number("time"), number("ip"), number("period"));
            read.samples.push(Sample { time, task: (task("pid"), task("tid")), ip, period, chain });
        }
    }
    read.samples.sort();
    read
}

/// The other's word for a type of records as ours.
fn word(theirs: &str) -> String {
    match theirs.trim_matches('"').trim_start_matches("PERF_") {
        // Newer than the library.
        "Unknown UserRecordType 82" => "FINISHED_INIT".to_owned(),
        word => word.to_owned(),
    }
}

fn theirs(bytes: &[u8], piped: bool) -> Result<(PerfFile, Read), Error> {
    let cursor = Cursor::new(bytes);
    let reader = if piped { PerfFileReader::parse_pipe(cursor) } else { PerfFileReader::parse_file(cursor) }?;
    let PerfFileReader { mut perf_file, mut record_iter } = reader;
    let mut read = Read { records: Records::new(), samples: Vec::new() };
    while let Some(record) = record_iter.next_record(&mut perf_file)? {
        let (kind, size) = match &record {
            PerfFileRecord::EventRecord { record, .. } => (format!("{:?}", record.record_type), record.data.len()),
            PerfFileRecord::UserRecord(record) => (format!("{:?}", record.record_type), record.data.len()),
        };
        let kind = word(&kind);
        if !CONSUMED.contains(&kind.as_str()) {
            *read.records.entry((kind, size as u64 + 8)).or_default() += 1;
        }
        if let PerfFileRecord::EventRecord { record, .. } = &record {
            read.samples.extend(sample(record));
        }
    }
    read.samples.sort();
    Ok((perf_file, read))
}

fn sample(record: &RawEventRecord<'_>) -> Option<Sample> {
    let Ok(EventRecord::Sample(sample)) = record.parse() else { return None };
    let chain = sample.callchain.map(|chain| (0..chain.len()).filter_map(|at| chain.get(at)).collect());
    Some(Sample {
        time: sample.timestamp?,
        task: (sample.pid?, sample.tid?),
        ip: sample.ip?,
        period: sample.period?,
        chain: chain.unwrap_or_default(),
    })
}

/// Names, where it tells them, and how often each event was sampled.
#[track_caller]
fn assert_same_events(profile: &Profile, other: &PerfFile) {
    let attributes = other.event_attributes();
    // Behind the recorded events stand those that follow from them.
    assert!(profile.events.len() >= attributes.len());
    for (event, attribute) in profile.events.iter().zip(attributes) {
        assert_eq!(event.name, attribute.name.clone().unwrap_or_else(|| event.name.clone()));
        let sampling = match attribute.attr.sampling_policy {
            SamplingPolicy::NoSampling => None,
            SamplingPolicy::Period(period) => Some(Sampling::Period(period.get())),
            SamplingPolicy::Frequency(frequency) => Some(Sampling::Frequency(frequency)),
        };
        assert_eq!(event.sampling, sampling);
    }
}

/// The build ids of its header section are those of our modules.
#[track_caller]
fn assert_same_build_ids(profile: &Profile, other: &PerfFile) -> usize {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let theirs = other.build_ids().unwrap();
    let mut same = 0;
    for module in profile.modules.iter().filter(|module| module.path.starts_with('/')) {
        let entry = theirs.values().find(|dso| dso.path == module.path.as_bytes());
        let ours = match &module.identity {
            Some(Identity::BuildId(id)) => Some(id.to_string()),
            _ => None,
        };
        if let Some(entry) = entry {
            assert_eq!(ours, Some(hex(&entry.build_id)), "{}", module.path);
            same += 1;
        }
    }
    same
}

#[track_caller]
fn check(name: &str, options: &[&str], piped: bool) -> (Profile, PerfFile) {
    let scratch = Scratch::new(name);
    let data = if piped { record_pipe(&scratch, options) } else { record(&scratch, options) };
    let (file, theirs) = theirs(&std::fs::read(&data).unwrap(), piped).unwrap();
    let ours = ours(&data);
    assert_eq!(ours.records, theirs.records);
    assert_eq!(ours.samples, theirs.samples);
    assert!(ours.samples.len() > 20, "too few samples to say anything");
    let profile = read(&data);
    assert_same_events(&profile, &file);
    (profile, file)
}

#[test]
fn files_hold_the_same_for_a_second_reader() {
    let (profile, file) = check("second-plain", &["-e", "cpu-clock:u,page-faults:u", "-F", "1500", "-g"], false);
    assert!(assert_same_build_ids(&profile, &file) > 0, "no build id to compare");
    check("second-flat", &["--switch-events", "--namespaces", "-e", "cpu-clock", "-F", "1000"], false);
    check("second-dwarf", &["--call-graph", "dwarf,1024", "-e", "cpu-clock:u", "-F", "500"], false);
}

#[test]
fn compressed_files_hold_the_same_for_a_second_reader() {
    check("second-zstd", &["-z", "-e", "cpu-clock:u", "-F", "2000", "-g"], false);
}

#[test]
fn pipes_hold_the_same_for_a_second_reader() {
    check("second-pipe", &["-e", "cpu-clock:u,page-faults:u", "-F", "1500", "-g"], true);
    check("second-pipe-zstd", &["-z", "-e", "cpu-clock:u", "-F", "1500", "-g"], true);
}

/// See the head of this file. If this fails the library has learned to read groups and may be believed there too.
#[test]
fn records_of_groups_are_the_same_though_a_second_reader_mistakes_their_counters() {
    let scratch = Scratch::new("second-group");
    let data = record(&scratch, &["-i", "-e", "{cpu-clock:u,page-faults:u}:S", "-g"]);
    let (_, theirs) = theirs(&std::fs::read(&data).unwrap(), false).unwrap();
    let ours = ours(&data);
    assert_eq!(ours.records, theirs.records);
    assert_ne!(ours.samples, theirs.samples);
}
