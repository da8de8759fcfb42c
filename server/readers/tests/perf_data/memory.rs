//! Memory accesses as x86 samples them, in files written by hand: what `perf script` says of each sample.

use super::recording::{Scratch, perf, run};
use super::writer::{EventSpec, IN_USER, Order, SAMPLE_TYPE, Writer};
use heatline_profile::{Profile, Ratio, Silent, SpeOrigin, SpeSnoop, SpeSource, SpeStats};
use heatline_readers::perf_data::RecordSink;
use heatline_readers::{Input, ReadOptions};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::{Arc, Mutex};

const WEIGHT: u64 = 1 << 14;
const DATA_SRC: u64 = 1 << 15;
const WEIGHT_STRUCT: u64 = 1 << 24;

/// Operation, level bits, snoop, translation, level number, remote, further snoop bits: what the kernel writes for
/// Intel's and AMD's processors.
const KINDS: [[u64; 7]; 13] = [
    [2, 0x0a, 0x02, 0x1a, 0x1, 0, 0],  // L1
    [2, 0x12, 0x02, 0x1a, 0xc, 0, 0],  // fill buffer
    [2, 0x22, 0x02, 0x1a, 0x2, 0, 0],  // L2
    [2, 0x42, 0x02, 0x1a, 0x3, 0, 0],  // L3, nobody asked
    [2, 0x42, 0x04, 0x1a, 0x3, 0, 0],  // L3, another core had it
    [2, 0x42, 0x10, 0x1a, 0x3, 0, 0],  // L3, another core had changed it
    [2, 0x42, 0x08, 0x14, 0x3, 0, 0],  // L3, and no translation
    [2, 0x82, 0x02, 0x14, 0xd, 0, 0],  // memory
    [2, 0x102, 0x02, 0x1a, 0xd, 1, 0], // memory of another socket
    [2, 0x402, 0x10, 0x1a, 0xb, 1, 0], // a cache of another socket
    [2, 0x01, 0x01, 0x01, 0xf, 0, 0],  // nothing is told
    [4, 0x0a, 0x01, 0x1a, 0x1, 0, 0],  // a store that hit L1
    [4, 0x0c, 0x01, 0x14, 0x1, 0, 0],  // a store that missed it
];

fn data_source(kind: [u64; 7]) -> u64 {
    const NOT_LOCKED: u64 = 1 << 24;
    kind.iter().zip([0, 5, 19, 26, 33, 37, 38]).map(|(field, shift)| field << shift).sum::<u64>() | NOT_LOCKED
}

/// Samples of all kinds at four addresses, of latencies that differ; with three weights if `parts`.
pub fn file(order: Order, parts: bool) -> Vec<u8> {
    let weight = if parts { WEIGHT_STRUCT } else { WEIGHT };
    // `cpu/mem-loads/`, precise.
    let event = EventSpec {
        kind: 4,
        config: 0x1cd,
        sample_type: SAMPLE_TYPE | weight | DATA_SRC,
        more_flags: 2 << 15,
        ..EventSpec::default()
    };
    let mut writer = Writer::with_events(order, vec![event]);
    writer.comm(100, 100, "app", 0, 0);
    writer.mmap(100, [0x40_0000, 0x1000, 0], "/usr/bin/app", 1, 0);
    for number in 0..500u64 {
        let kind = KINDS[(number * 7 % 13) as usize];
        let latency = if kind[0] == 4 { 0 } else { 4 + number * number % 600 };
        let weight = if parts { latency | 77 << 32 | 5 << 48 } else { latency };
        let more = writer.words(&[weight, data_source(kind)]);
        writer.sample_with(IN_USER, (100, 100), 10 + number, 1, &[super::writer::USER, 0x40_0010 + number % 4], &more);
    }
    writer.file(&[])
}

fn read(bytes: &[u8]) -> Profile {
    heatline_readers::read(Input::File(&mut Cursor::new(bytes)), &ReadOptions::default(), &Silent).unwrap()
}

/// Statistics by address, out of what perf prints: weight, and the data source in words.
fn of_perf(bytes: &[u8], name: &str) -> BTreeMap<u64, (SpeStats, Vec<u16>)> {
    let scratch = Scratch::new(name);
    let data = scratch.path("perf.data");
    std::fs::write(&data, bytes).unwrap();
    let text = run(perf(&scratch).args(["script", "-f", "-G", "-F", "ip,weight,data_src", "-i"]).arg(&data));
    let mut all: BTreeMap<u64, (SpeStats, Vec<u16>)> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let numbers: Vec<&str> = line.split_whitespace().rev().take(2).collect();
        let (ip, weight) = (u64::from_str_radix(numbers[0], 16).unwrap(), numbers[1].parse::<u16>().unwrap());
        let parts: BTreeMap<&str, &str> =
            line.split('|').filter_map(|part| part.trim().split_once(' ')).map(|(k, v)| (k, v.trim())).collect();
        let (stats, weights) = all.entry(ip).or_default();
        weights.extend(Some(weight).filter(|weight| *weight > 0));
        add(stats, parts["OP"] == "LOAD", parts["LVL"], parts["SNP"], parts["TLB"]);
    }
    all
}

/// Counts a sample in perf's words.
fn add(stats: &mut SpeStats, load: bool, level: &str, snoop: &str, translation: &str) {
    let remote = level.contains("Remote");
    let depth = match level {
        _ if level.contains("N/A") => None,
        _ if remote || level.contains("RAM") => Some(4),
        _ if level.contains("L3") => Some(3),
        _ if level.contains("L2") => Some(2),
        _ if level.contains("LFB") => Some(1),
        _ => Some(0),
    };
    let hit = level.contains("hit");
    stats.records += 1;
    if let Some(depth) = depth {
        let caches = [(&mut stats.l1d_miss, 0), (&mut stats.l2d_miss, 2), (&mut stats.llc_miss, 3)];
        for (ratio, at) in caches.into_iter().filter(|(_, at)| depth >= *at) {
            ratio.add(depth > at || !hit, 1);
        }
        stats.remote.add(remote, 1);
    }
    if translation != "N/A" {
        stats.tlb_miss.add(translation.contains("miss"), 1);
    }
    let source = match depth {
        _ if remote => SpeSource::Remote,
        Some(depth) if hit => {
            [SpeSource::L1, SpeSource::FillBuffer, SpeSource::L2, SpeSource::L3, SpeSource::Ram][depth]
        }
        _ => SpeSource::Unknown,
    };
    stats.sources[source as usize] += u64::from(load);
    let known = match snoop {
        "None" => Some(SpeSnoop::None),
        "Hit" => Some(SpeSnoop::Hit),
        "Miss" => Some(SpeSnoop::Miss),
        "HitM" => Some(SpeSnoop::Modified),
        _ => None,
    };
    known.into_iter().for_each(|snoop| stats.snoops[snoop as usize] += 1);
}

type Facts = (u64, [Ratio; 5], [u64; 8], [u64; 5]);

fn facts(stats: &SpeStats) -> Facts {
    let ratios = [stats.l1d_miss, stats.l2d_miss, stats.llc_miss, stats.tlb_miss, stats.remote];
    (stats.records, ratios, stats.sources, stats.snoops)
}

#[track_caller]
fn check(order: Order, parts: bool, name: &str) {
    let bytes = file(order, parts);
    let profile = read(&bytes);
    let table = profile.spe.as_ref().expect("statistics");
    assert_eq!(table.origin, SpeOrigin::Memory);
    let expected = of_perf(&bytes, name);
    let base = 0x40_0000;
    let mut found = BTreeMap::new();
    for row in &table.rows {
        let address = profile.stacks.frames(row.stack).next().unwrap().address.recorded().0 + base;
        let latencies = &row.stats.total_latency;
        let all = latencies.counts().iter().flat_map(|&(value, count)| std::iter::repeat_n(value, count as usize));
        found.insert(address, (facts(&row.stats), all.collect::<Vec<u16>>()));
    }
    let expected: BTreeMap<u64, (Facts, Vec<u16>)> = expected
        .into_iter()
        .map(|(ip, (stats, mut weights))| {
            weights.sort_unstable();
            (ip, (facts(&stats), weights))
        })
        .collect();
    assert_eq!(found, expected);
    let metrics: Vec<&str> = profile.events.iter().map(|event| event.name.as_str()).collect();
    let derived = ["records", "total-latency", "l1d-miss", "l2d-miss", "llc-miss", "tlb-miss", "remote"];
    assert_eq!(metrics[1..], derived.map(|name| format!("mem:{name}")));
    assert_eq!(profile.samples(), 500);
}

#[test]
fn accesses_are_what_perf_says_of_each_sample() {
    check(Order::Little, false, "accesses");
    check(Order::Big, false, "accesses-big");
}

#[test]
fn of_three_weights_the_first_is_the_latency_of_the_access() {
    check(Order::Little, true, "accesses-parts");
}

#[test]
fn accesses_are_shown_in_words() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let lines = seen.clone();
    let records = RecordSink::new(move |record| lines.lock().unwrap().push(serde_json::to_value(record).unwrap()));
    let options = ReadOptions { records: Some(records), ..ReadOptions::default() };
    heatline_readers::read(Input::File(&mut Cursor::new(file(Order::Little, true))), &options, &Silent).unwrap();
    let records = seen.lock().unwrap();
    let sample = records.iter().find(|record| record["snoop"] == "hitm" && record["remote"] == "no").unwrap();
    assert_eq!(
        (&sample["operation"], &sample["level"], &sample["outcome"]),
        (&"load".into(), &"L3".into(), &"hit".into())
    );
    assert_eq!((&sample["instruction_latency"], &sample["stage_latency"]), (&77.into(), &5.into()));
}
