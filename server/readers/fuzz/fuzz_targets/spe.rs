//! Any bytes as an SPE stream, in any pieces: decoding, adding up and printing must not panic, must not depend on where
//! the stream was cut, and must not invent records.
#![no_main]

use heatline_profile::{Silent, SpeStats};
use heatline_readers::spe::{Collector, Cpu, DecodeCounts, Decoder, Options, Owner, PacketDump, RawModule, RecordFields};
use heatline_readers::{Input, ReadOptions, read};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|data: &[u8]| {
    let Some((&first, stream)) = data.split_first() else { return };
    let cut = usize::from(first).min(stream.len());
    let whole = decode(&[stream]);
    assert_eq!(whole, decode(&[&stream[..cut], &stream[cut..]]));
    assert!(whole.0.records + whole.0.dropped_records <= stream.len() as u64);
    assert_eq!(whole.1.records, whole.0.records);

    let mut bytes = 0;
    let mut dump = PacketDump::new(Cpu::default());
    dump.push(0, stream, &mut |line| bytes += line.bytes.len());
    dump.finish(&mut |line| bytes += line.bytes.len());
    assert_eq!(bytes, stream.len());

    let modules = vec![RawModule { path: "/program".into(), base: 0x40_0000 }];
    let options = ReadOptions { spe: Options { modules, ..Options::default() }, ..ReadOptions::default() };
    let _ = read(Input::File(&mut Cursor::new(data)), &options, &Silent);
});

fn decode(pieces: &[&[u8]]) -> (DecodeCounts, SpeStats) {
    let mut decoder = Decoder::new();
    let mut collector = Collector::new();
    let cpu = Cpu::new(Some(0x410f_d0c0), None);
    let kind = collector.cpu_kind(cpu);
    let mut offset = 0;
    for piece in pieces {
        decoder.push(offset, piece, |record| {
            collector.add(Owner(0), kind, record);
            let _ = RecordFields::new(record, &cpu);
        });
        offset += piece.len() as u64;
    }
    decoder.finish();
    let mut sum = SpeStats::default();
    collector.finish().iter().for_each(|place| sum += &place.stats);
    (*decoder.counts(), sum)
}
