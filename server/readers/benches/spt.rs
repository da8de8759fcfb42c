//! Decoding and folding SPT files, beside a plain pass over the same bytes in the same run.
//!
//! `cargo bench -p heatline-readers --bench spt [MIB]` makes files of that size (default 64) in memory.
#![allow(clippy::print_stdout)] // a benchmark prints what it measured

use heatline_profile::{PdbId, Silent};
use heatline_readers::spt::{self, Description, Elements, Op, ProgramData, Record, RecordData, SegmentData, Visitor};
use heatline_readers::{Input, ReadOptions};
use std::hint::black_box;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::time::Instant;

fn main() {
    let mib = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(64_usize);
    println!("{:<28} {:>9} {:>9} {:>9}   GB/s, {mib} MiB each", "", "plain", "decode", "read");
    for (name, make) in INPUTS {
        let file = file(mib << 20, make);
        let plain = rate(&file, |file| {
            black_box(sum(file));
        });
        let decode = rate(&file, |file| {
            let mut count = Count::default();
            let options = spt::Options::default();
            spt::decode(&mut Cursor::new(file), &options, &Silent, &mut count).expect("a good file");
            black_box(count);
        });
        let read = rate(&file, |file| {
            let options = ReadOptions::default();
            black_box(spt::read(Input::File(&mut Cursor::new(file)), &options, &Silent).expect("a good file"));
        });
        println!("{name:<28} {plain:>9.2} {decode:>9.2} {read:>9.2}");
    }
}

/// The best of eight, in gigabytes per second.
fn rate(file: &[u8], mut work: impl FnMut(&[u8])) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..8 {
        let start = Instant::now();
        work(file);
        best = best.min(start.elapsed().as_secs_f64());
    }
    file.len() as f64 / best / 1e9
}

/// Reads every byte once, word by word.
fn sum(file: &[u8]) -> u64 {
    file.as_chunks::<8>().0.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

#[derive(Default)]
struct Count {
    hits: u64,
    places: u64,
}

impl Visitor for Count {
    fn record(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        self.hits = self.hits.wrapping_add(record.total());
        let places = record.rvas().fold(0, |sum: u64, rva| sum.wrapping_add(u64::from(rva)));
        self.places = self.places.wrapping_add(places);
        ControlFlow::Continue(())
    }
}

/// Makes a record from a source of numbers.
type Make = fn(&mut Numbers) -> RecordData;

const INPUTS: [(&str, Make); 5] = [
    ("samples, one per record", |numbers| samples(numbers, 1)),
    ("samples, 200 per record", |numbers| samples(numbers, 200)),
    ("repeated samples", |numbers| RecordData { hits: 3, ..samples(numbers, 4) }),
    ("branches, 32 per record", |numbers| {
        let elements = Elements::Arcs((0..32).map(|_| numbers.branch()).collect());
        RecordData { hits: 1, elements }
    }),
    ("stacks of 20", |numbers| {
        let outer = 0x10_0000 + numbers.next() as u32 % 64 * 0x1000;
        let inner = (0..4).map(|_| numbers.callee());
        RecordData {
            hits: 1,
            elements: Elements::Stack(inner.chain((0..16).map(|depth| outer + depth * 64)).collect()),
        }
    }),
];

fn samples(numbers: &mut Numbers, count: usize) -> RecordData {
    RecordData { hits: 1, elements: Elements::Samples(Op::EtwInstr, (0..count).map(|_| numbers.rva()).collect()) }
}

/// A file of about this many bytes, in segments of some megabytes.
fn file(size: usize, make: Make) -> Vec<u8> {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut segment = SegmentData::default();
    let mut bytes = 0;
    while bytes < 4 << 20 {
        let record = make(&mut numbers);
        bytes += match &record.elements {
            Elements::Samples(_, rvas) | Elements::Stack(rvas) => 2 + rvas.len() * 4,
            Elements::Arcs(arcs) => 2 + arcs.len() * 8,
        } + if record.hits > 1 { 10 } else { 0 };
        segment.records.push(record);
    }
    let programs = vec![ProgramData { id: PdbId { guid: [7; 16], age: 1 }, name: "bench.exe".into() }];
    let description = Description { programs, segments: vec![segment], ..Description::default() };
    let mut file = Vec::new();
    spt::write(&description, &mut file).expect("a small file");
    let start = file.len() - bytes - 8;
    let segment = file.split_off(start);
    for _ in 0..size / segment.len() {
        file.extend_from_slice(&segment);
    }
    file
}

/// Numbers that look random and are the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A branch of some ten thousand; every other one goes to either of two places.
    fn branch(&mut self) -> (u32, u32) {
        let from = self.rva();
        let target = from.wrapping_mul(0x9e37_79b9) >> 12;
        (from, if self.next() & 3 == 0 { from + 2 } else { target })
    }

    /// One of eight functions that may be called at a place, a few of them much oftener than the others.
    fn callee(&mut self) -> u32 {
        0x1000 + (self.next().trailing_zeros() % 8) * 0x40
    }

    /// An address of some ten thousand, a few of them much hotter than the others.
    fn rva(&mut self) -> u32 {
        let number = self.next();
        let spread = if number & 0xf == 0 { 1 << 16 } else { 1 << 12 };
        0x1000 + ((number >> 8) as u32 % spread) * 4
    }
}
