//! What perf says about a recording, and what we say, in one shape.

use super::recording::{Scratch, perf, run};
use heatline_profile::{AddressSpace, CallTable, ModuleKind, Profile};
use std::collections::BTreeMap;
use std::path::Path;

/// Event, command, process, thread, and the frames innermost first as binary and address in it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    pub event: String,
    pub comm: String,
    pub pid: i32,
    pub tid: i32,
    pub frames: Vec<(String, u64)>,
}

/// Samples and the sum of their weights per key.
pub type Sums = BTreeMap<Key, (u64, u64)>;

/// What `perf script` prints. It prints addresses in files only for samples with chains.
pub fn of_perf(scratch: &Scratch, data: &Path, chains: bool) -> Sums {
    let fields = "comm,pid,tid,event,period,ip,dso";
    let text = run(perf(scratch).args(["script", "-f", "--no-inline", "-F", fields, "-i"]).arg(data));
    let mut sums = Sums::new();
    let mut current: Option<(Key, u64)> = None;
    let mut close = |sample: Option<(Key, u64)>| {
        if let Some((key, weight)) = sample {
            let sum = sums.entry(key).or_default();
            *sum = (sum.0 + 1, sum.1 + weight);
        }
    };
    for line in text.lines() {
        if line.trim().is_empty() {
            continue;
        }
        if line.starts_with('\t') {
            let (key, _) = current.as_mut().unwrap_or_else(|| panic!("a frame without a sample: {line}"));
            key.frames.push(frame(line));
            continue;
        }
        close(current.take());
        current = Some(sample(line, chains));
    }
    close(current);
    sums
}

/// `busy 13080/13080     250000 cpu-clock:u: ` and in flat samples the frame behind it.
fn sample(line: &str, chains: bool) -> (Key, u64) {
    let mut words = line.split_whitespace();
    let mut word = || words.next().unwrap_or_else(|| panic!("not a sample: {line}"));
    let comm = word().to_owned();
    let (pid, tid) = word().split_once('/').unwrap();
    let weight = word().parse().unwrap();
    let event = word().trim_end_matches(':').to_owned();
    let rest = words.collect::<Vec<_>>().join(" ");
    let frames = if rest.is_empty() { Vec::new() } else { vec![(frame(&rest).0, 0)] };
    assert_eq!(frames.is_empty(), chains, "{line}");
    (Key { event, comm, pid: pid.parse().unwrap(), tid: tid.parse().unwrap(), frames }, weight)
}

/// `11b3 (/usr/bin/busy)`, for a pipe with the symbol between.
fn frame(line: &str) -> (String, u64) {
    let (front, binary) = line.trim().rsplit_once(" (").unwrap_or_else(|| line.trim().split_once('(').unwrap());
    let address = front.split(' ').next().unwrap();
    (binary.trim_end_matches(')').to_owned(), u64::from_str_radix(address, 16).unwrap())
}

/// The same of our profile.
pub fn of_ours(profile: &Profile, chains: bool) -> Sums {
    let mut sums = Sums::new();
    for row in profile.rows.iter().filter(|row| is_of_perf(&profile.event(row.event).name)) {
        let thread = profile.thread(row.thread.unwrap());
        let frames = profile.stacks.frames(row.stack).map(|node| {
            let module = profile.module(node.module);
            let is_path = module.path.starts_with('/') && !module.path.starts_with("//anon");
            assert_eq!(module.kind == ModuleKind::Binary, is_path, "{module:?}");
            assert!(module.kind != ModuleKind::Binary || module.space == AddressSpace::FileOffset);
            (module.path.clone(), if chains { node.address.recorded().0 } else { 0 })
        });
        let key = Key {
            event: profile.event(row.event).name.clone(),
            comm: if thread.comm.is_empty() { format!(":{}", thread.tid) } else { thread.comm.clone() },
            pid: thread.pid,
            tid: thread.tid,
            frames: frames.collect(),
        };
        let sum = sums.entry(key).or_default();
        *sum = (sum.0 + row.tally.samples, sum.1 + row.tally.weight.0);
    }
    sums
}

/// perf does not follow threads off the processors.
fn is_of_perf(event: &str) -> bool {
    ![CallTable::OFF_CPU, CallTable::ELAPSED, CallTable::APPLICATION].contains(&event)
}

/// Compares both, and says what differs first.
#[track_caller]
pub fn assert_same(perf: &Sums, ours: &Sums) {
    let keys: std::collections::BTreeSet<_> = perf.keys().chain(ours.keys()).collect();
    let differ: Vec<_> = keys.iter().filter(|key| perf.get(key) != ours.get(key)).collect();
    let shown: Vec<_> = differ.iter().take(3).map(|key| (key, perf.get(key), ours.get(key))).collect();
    assert!(differ.is_empty(), "{} of {} differ (key, perf, ours): {shown:#x?}", differ.len(), keys.len());
}

/// Totals per event as `perf report` heads them: samples and event count.
pub fn report_totals(scratch: &Scratch, data: &Path) -> BTreeMap<String, (u64, u64)> {
    let options =
        ["report", "-f", "--stdio", "--no-children", "-g", "none", "-t", "\x1f", "-F", "sample,period", "-s", "pid"];
    let text = run(perf(scratch).args(options).arg("--no-group").arg("-i").arg(data));
    let mut totals = BTreeMap::new();
    let mut event = String::new();
    for line in text.lines() {
        if let Some((_, name)) = line.strip_prefix("# Samples: ").and_then(|rest| rest.split_once("of event")) {
            event = name.trim_start_matches(['s', ' ', '\'']).trim_end_matches('\'').to_owned();
        } else if !line.starts_with('#') && !line.trim().is_empty() {
            let mut cells = line.split('\x1f').map(|cell| cell.trim().parse::<u64>());
            let (samples, weight) = (cells.next().unwrap().unwrap(), cells.next().unwrap().unwrap());
            let total: &mut (u64, u64) = totals.entry(event.clone()).or_default();
            *total = (total.0 + samples, total.1 + weight);
        }
    }
    totals
}

/// The same of our profile, of the events that have samples.
pub fn our_totals(profile: &Profile) -> BTreeMap<String, (u64, u64)> {
    let totals = profile.totals();
    let named = profile.events.iter().zip(totals).filter(|(event, total)| is_of_perf(&event.name) && total.samples > 0);
    named.map(|(event, total)| (event.name.clone(), (total.samples, total.weight.0))).collect()
}
