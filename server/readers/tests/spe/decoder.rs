//! The decoder alone.

use super::forge::Random;
use super::{E1, E2, E3, E4, E5, E6, bytes};
use heatline_profile::SpeStats;
use heatline_readers::spe::{Collector, Cpu, DecodeCounts, Decoder, Events, Owner, Record, RecordFields};
use proptest::prelude::*;

fn decode(pieces: &[(u64, &[u8])]) -> (Vec<Record>, DecodeCounts) {
    let mut records = Vec::new();
    let mut decoder = Decoder::new();
    for (offset, piece) in pieces {
        decoder.push(*offset, piece, |record| records.push(*record));
    }
    decoder.finish();
    (records, *decoder.counts())
}

fn neoverse_n1() -> Cpu {
    Cpu::new(Some(0x410f_d0c0), None)
}

/// The one record in `hex`, as it is printed.
#[track_caller]
fn check(hex: &str, cpu: Cpu, expected: serde_json::Value) {
    let (records, counts) = decode(&[(0, &bytes(hex))]);
    assert_eq!((records.len(), counts.dropped_records, counts.bad_bytes), (1, 0, 0));
    let fields = RecordFields::new(&records[0], &cpu);
    assert_eq!(serde_json::to_value(fields).expect("plain fields"), expected);
}

#[test]
fn a_load_with_everything() {
    let expected = serde_json::json!({
        "offset": 0, "tid": 1000, "pc": "0x4006d4", "el": 0, "operation": "load", "class": ["gp-reg"],
        "events": ["retired", "l1d-access", "tlb-access"],
        "total_latency": 34, "issue_latency": 7, "translation_latency": 1,
        "va": "0xfffff7ff1238", "pa": "0x812a1238", "source": 8, "level": "L2", "hit": true, "snoop": "none",
        "remote": false,
    });
    check(E1, neoverse_n1(), expected);
    let (records, _) = decode(&[(0, &bytes(E1))]);
    assert_eq!((records[0].time(), records[0].execution_latency()), (Some(5000), Some(27)));
    assert_eq!((records[0].context_index(), records[0].address(3)), (Some(1), Some(0x8000_0000_812a_1238)));
}

#[test]
fn a_store_whose_source_says_nothing() {
    let mut expected = serde_json::json!({
        "offset": 0, "tid": 1000, "pc": "0x4006dc", "el": 0, "operation": "store", "class": ["gp-reg"],
        "events": ["retired", "l1d-access", "tlb-access"],
        "total_latency": 9, "issue_latency": 2, "translation_latency": 1, "va": "0xfffff7ff1240", "source": 0,
        "remote": false,
    });
    check(E2, neoverse_n1(), expected.clone());
    check(E2, Cpu::new(Some(0x410f_d4f0), None), expected.clone());
    // A processor whose numbers are not known: the events say a hit.
    expected["level"] = "L1".into();
    expected["hit"] = true.into();
    check(E2, Cpu::default(), expected);
}

#[test]
fn a_mispredicted_conditional_branch() {
    let expected = serde_json::json!({
        "offset": 0, "tid": 1000, "pc": "0x4006f0", "el": 0, "operation": "branch", "class": ["conditional"],
        "events": ["retired", "mispredicted"], "total_latency": 20, "issue_latency": 3, "target": "0x400708",
    });
    check(E3, neoverse_n1(), expected);
}

#[test]
fn a_record_that_ends_without_a_time() {
    let expected = serde_json::json!({
        "offset": 0, "pc": "0x4006d8", "el": 0, "operation": "other", "class": ["general"], "events": ["retired"],
        "total_latency": 3,
    });
    check(E4, neoverse_n1(), expected);
    assert_eq!(decode(&[(0, &bytes(E4))]).0[0].time(), None);
}

#[test]
fn a_remote_load_of_a_tag_that_misses_everywhere() {
    let expected = serde_json::json!({
        "offset": 0, "tid": 1000, "pc": "0x4006d4", "el": 0, "operation": "load", "class": ["mte-tag"],
        "events": ["retired", "l1d-access", "l1d-miss", "tlb-miss", "llc-access", "llc-miss", "remote"],
        "total_latency": 412, "issue_latency": 11, "translation_latency": 30, "va": "0xf7ff1280", "source": 13,
        "snoop": "peer", "remote": true,
    });
    check(E5, neoverse_n1(), expected);
}

#[test]
fn an_atomic_of_the_idle_kernel() {
    let expected = serde_json::json!({
        "offset": 0, "tid": 0, "pc": "0xffff800010123456", "el": 2, "operation": "load",
        "class": ["atomic", "exclusive"], "events": ["retired", "l1d-access", "tlb-access"], "total_latency": 5,
        "va": "0xffff000012345678", "level": "L1", "hit": true, "remote": false,
    });
    check(E6, neoverse_n1(), expected);
}

#[test]
fn after_bad_bytes_nothing_is_believed_up_to_the_next_end() {
    let stream =
        [bytes("00 00 00 fc fd"), bytes(E1)[..30].to_vec(), bytes(E4), bytes(E2)[4..].to_vec(), bytes(E3)].concat();
    let (records, counts) = decode(&[(0, &stream)]);
    assert_eq!(records.iter().map(Record::pc).collect::<Vec<_>>(), [0x4006f0]);
    assert_eq!(records[0].offset(), stream.len() as u64 - bytes(E3).len() as u64);
    assert_eq!((counts.records, counts.dropped_records, counts.bad_bytes, counts.first_bad), (1, 2, 4, Some(3)));
}

#[test]
fn a_record_without_address_or_end_is_dropped() {
    let (records, counts) = decode(&[(0, &bytes("49 00 98 01 00 01")), (100, &bytes(E1)[..34])]);
    assert_eq!((records.len(), counts.dropped_records, counts.bad_bytes), (0, 2, 0));
    let (records, counts) = decode(&[(0, &bytes("b0 01"))]);
    assert_eq!((records.len(), counts.dropped_records, counts.bad_bytes), (0, 1, 1));
}

#[test]
fn pieces_join_only_where_the_offsets_say_so() {
    let stream = [bytes(E1), bytes(E2)].concat();
    for cut in 0..stream.len() {
        let (front, back) = stream.split_at(cut);
        let (records, counts) = decode(&[(64, front), (64 + cut as u64, back)]);
        assert_eq!((records.len(), counts.dropped_records), (2, 0), "cut at {cut}");
        assert_eq!(records[1].offset(), 64 + bytes(E1).len() as u64);
    }
    let first = bytes(E1);
    let (records, counts) = decode(&[(0, &first[..20]), (21, &first[20..])]);
    assert_eq!((records.len(), counts.dropped_records), (0, 2));
}

#[test]
fn alignment_follows_the_offset_in_the_stream() {
    // An alignment to 16 at 17: it ends at 32, whatever the bytes under it.
    let stream = [bytes(E4), bytes("23 00"), vec![0xff; 13], bytes(E4)].concat();
    let (records, counts) = decode(&[(0, &stream)]);
    assert_eq!((records.len(), records[1].offset(), counts.bad_bytes), (2, 32, 0));
    let (records, counts) = decode(&[(1, &stream)]);
    assert_eq!((records.len(), counts.bad_bytes), (1, 1));
}

#[test]
fn only_padding_and_only_rubbish() {
    let zeros = vec![0; 4 << 20];
    let (records, counts) = decode(&[(0, &zeros)]);
    assert_eq!((records.len(), counts.dropped_records, counts.bad_bytes, counts.bytes), (0, 0, 0, 4 << 20));
    let rubbish = vec![0xff; 1 << 20];
    let (records, counts) = decode(&[(0, &rubbish)]);
    assert_eq!((records.len(), counts.dropped_records, counts.bad_bytes), (0, 1, 1 << 20));
}

#[test]
fn every_truncation_gives_the_records_that_are_whole() {
    let all = [E1, E2, E3, E4, E5, E6].map(bytes);
    let ends: Vec<usize> = all.iter().scan(0, |end, record| Some((*end += record.len(), *end).1)).collect();
    let stream = all.concat();
    for length in 0..=stream.len() {
        let (records, counts) = decode(&[(0, &stream[..length])]);
        let whole = ends.iter().filter(|&&end| end <= length).count();
        assert_eq!(records.len(), whole, "{length} bytes");
        let torn = length > 0 && !ends.contains(&length);
        // What a cut packet leaves may read as the end of a record, so at least one is counted.
        assert_eq!(counts.dropped_records > 0, torn, "{length} bytes");
    }
}

#[test]
fn a_hundred_thousand_mutations_neither_panic_nor_invent_counts() {
    let original = [E1, E2, E3, E4, E5, E6].map(bytes).concat();
    let mut random = Random(42);
    for round in 0..100_000 {
        let mut stream = original.clone();
        for _ in 0..=random.below(4) {
            let at = random.below(stream.len() as u64) as usize;
            match random.below(4) {
                0 => stream[at] = random.below(256) as u8,
                1 => stream[at] ^= 1 << random.below(8),
                2 => drop(stream.remove(at)),
                _ => stream.insert(at, random.below(256) as u8),
            }
        }
        let whole = decode(&[(0, &stream)]);
        assert_eq!(whole.0.len() as u64, whole.1.records);
        assert!(whole.1.bad_bytes <= stream.len() as u64);
        if round % 8 == 0 {
            let cut = random.below(stream.len() as u64 + 1) as usize;
            let joined = decode(&[(0, &stream[..cut]), (cut as u64, &stream[cut..])]);
            assert_eq!(whole.1, joined.1);
        }
    }
}

/// A record as a list of packets in bytes, with what must come back.
#[derive(Clone, Debug)]
struct Made {
    packets: Vec<Vec<u8>>,
    end: Vec<u8>,
    pc: u64,
    level: u8,
    operation: Option<(u8, u8)>,
    events: Option<Events>,
    counters: [Option<u16>; 3],
    target: Option<u64>,
    data: Option<u64>,
    physical: Option<u64>,
    source: Option<u64>,
    context: Option<u32>,
    time: Option<u64>,
}

/// A header with its index in the short or in the long form.
fn header(long: bool, base: u8, index: u8) -> Vec<u8> {
    if long { vec![0x20 | index >> 3, base | index & 7] } else { vec![base | index] }
}

fn address(long: bool, index: u8, payload: u64) -> Vec<u8> {
    [header(long, 0xb0, index), payload.to_le_bytes().to_vec()].concat()
}

fn sized(base: u8, size_code: u8, value: u64) -> Vec<u8> {
    [&[base | size_code << 4], &value.to_le_bytes()[..1 << size_code]].concat()
}

prop_compose! {
    fn made()(
        (pc, level) in (0u64..1 << 47, 0u8..4),
        long in any::<bool>(),
        operation in proptest::option::of((0u8..4, any::<u8>())),
        events in proptest::option::of((0u8..4, any::<u64>())),
        counters in proptest::array::uniform3(proptest::option::of(any::<u16>())),
        target in proptest::option::of(0u64..1 << 47),
        data in proptest::option::of(0u64..1 << 47),
        physical in proptest::option::of(0u64..1 << 56),
        source in proptest::option::of((0u8..4, any::<u64>())),
        context in proptest::option::of((0u8..2, any::<u32>())),
        time in proptest::option::of(any::<u64>()),
        padding in proptest::collection::vec(0usize..4, 12),
        order in any::<u64>(),
    ) -> Made {
        let masked = |size_code: u8, value: u64| value & (u64::MAX >> (64 - (8 << size_code)));
        let flags = 1 << 63 | u64::from(level) << 61;
        let mut packets = vec![address(long, 0, pc | flags)];
        packets.extend(operation.map(|(class, payload)| vec![0x48 | class, payload]));
        packets.extend(events.map(|(code, bits)| sized(0x42, code, bits)));
        for (index, counter) in (0..).zip(counters) {
            packets.extend(counter.map(|value| [header(long, 0x98, index), value.to_le_bytes().to_vec()].concat()));
        }
        packets.extend(target.map(|value| address(long, 1, value | flags)));
        packets.extend(data.map(|value| address(long, 2, value)));
        packets.extend(physical.map(|value| address(long, 3, value | 1 << 63)));
        packets.extend(source.map(|(code, value)| sized(0x43, code, value)));
        packets.extend(context.map(|(index, value)| [&[0x64 | index][..], &value.to_le_bytes()].concat()));
        let mut random = Random(order | 1);
        for i in (1..packets.len()).rev() {
            packets.swap(i, random.below(i as u64 + 1) as usize);
        }
        for (packet, zeros) in packets.iter_mut().zip(padding) {
            packet.extend(std::iter::repeat_n(0, zeros));
        }
        let kernel = |value: u64| if matches!(level, 1 | 2) { value | 0xff << 56 } else { value };
        Made {
            packets,
            end: time.map_or(vec![1], |time| [&[0x71][..], &time.to_le_bytes()].concat()),
            pc: kernel(pc),
            level,
            operation,
            events: events.map(|(code, bits)| Events { bits: masked(code, bits), size: 1 << code }),
            counters,
            target: target.map(kernel),
            data,
            physical,
            source: source.map(|(code, value)| masked(code, value)),
            context: context.map(|(_, value)| value),
            time,
        }
    }
}

fn assert_same(record: &Record, made: &Made) {
    assert_eq!((record.pc(), record.exception_level()), (made.pc, made.level));
    assert_eq!(record.operation().map(|o| (o.class, o.payload)), made.operation);
    assert_eq!(record.events(), made.events.unwrap_or_default());
    let counters = [record.total_latency(), record.issue_latency(), record.translation_latency()];
    assert_eq!(counters, made.counters);
    assert_eq!((record.target(), record.data_address()), (made.target, made.data));
    assert_eq!((record.physical_address(), record.data_source()), (made.physical, made.source));
    assert_eq!((record.context(), record.time()), (made.context, made.time));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the order of packets, the form of headers, the padding and the cuts: every record comes back.
    #[test]
    fn encoded_records_come_back(
        all in proptest::collection::vec(made(), 1..6),
        cuts in proptest::collection::vec(0usize..600, 0..5),
        start in 0u64..100,
    ) {
        let stream: Vec<u8> = all.iter().flat_map(|made| [made.packets.concat(), made.end.clone()].concat()).collect();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(stream.len())).chain([0, stream.len()]).collect();
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|w| (start + w[0] as u64, &stream[w[0]..w[1]])).collect();
        let (records, counts) = decode(&pieces);
        prop_assert_eq!((records.len(), counts.dropped_records, counts.bad_bytes), (all.len(), 0, 0));
        for (record, made) in records.iter().zip(&all) {
            assert_same(record, made);
        }
    }

    /// Any bytes in any pieces read as they do in one piece.
    #[test]
    fn cuts_never_change_what_is_read(stream in proptest::collection::vec(any::<u8>(), 0..400), cut in 0usize..400) {
        let cut = cut.min(stream.len());
        let (whole, whole_counts) = decode(&[(7, &stream)]);
        let (joined, counts) = decode(&[(7, &stream[..cut]), (7 + cut as u64, &stream[cut..])]);
        prop_assert_eq!(whole_counts, counts);
        prop_assert_eq!(format!("{whole:?}"), format!("{joined:?}"));
    }

    /// Statistics of a stream are those of its records one by one.
    #[test]
    fn statistics_add_up_over_records(all in proptest::collection::vec(made(), 1..80)) {
        let stream: Vec<u8> = all.iter().flat_map(|made| [made.packets.concat(), made.end.clone()].concat()).collect();
        let (records, _) = decode(&[(0, &stream)]);
        let mut sum = SpeStats::default();
        let mut together = Collector::new();
        let cpu = together.cpu_kind(neoverse_n1());
        for record in &records {
            together.add(Owner(0), cpu, record);
            let mut alone = Collector::new();
            let cpu = alone.cpu_kind(neoverse_n1());
            alone.add(Owner(0), cpu, record);
            alone.finish().iter().for_each(|place| sum += &place.stats);
        }
        let mut total = SpeStats::default();
        together.finish().iter().for_each(|place| total += &place.stats);
        prop_assert_eq!(total, sum);
    }
}
