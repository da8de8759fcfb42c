//! Speed of SPE: `cargo bench -p heatline-readers --bench spe`.
//!
//! A stream of 1 GiB with 10 000 addresses: a bare pass over its records, and decoding with statistics per address, each
//! on one core. Then a whole file of 128 MiB beside perf in the same run. Without perf the last part is left out.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // A benchmark writes files, starts perf and prints.

#[path = "../../../fixtures/spe/forge.rs"]
mod forge;

use forge::{Instruction, Random, Recording, Stream};
use heatline_profile::Silent;
use heatline_readers::spe::{Collector, Cpu, Decoder, Owner};
use heatline_readers::{Input, ReadOptions, read};
use std::fs::{self, File};
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
/// Bytes generated; the stream of 1 GiB is eight times the same.
const GENERATED: usize = 128 * MIB;
const TIMES: u64 = 8;
const ADDRESSES: u64 = 10_000;
/// Bytes handed to the decoder at once, as the reader does.
const CHUNK: usize = 256 << 10;
const START: u64 = 0x40_0000;

fn generate() -> Vec<u8> {
    let mut random = Random(1);
    let mut stream = Stream(Vec::with_capacity(GENERATED + 128));
    let mut time = 5000;
    while stream.0.len() < GENERATED {
        let number = random.below(ADDRESSES);
        let pc = START + 4 * number;
        let what = match number % 8 {
            0..=2 => Instruction::Load,
            3 => Instruction::Store,
            4 | 5 => Instruction::Branch { conditional: number % 8 == 4, indirect: false, target: Some(pc + 64) },
            _ => Instruction::Other,
        };
        time += 1 + random.below(300);
        forge::record(&mut stream, &mut random, pc, what, Some(1000), time);
    }
    stream.0
}

/// The shortest of some runs.
fn best(runs: u32, mut run: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..runs).map(time).min().unwrap_or_default()
}

/// Hands the stream to `take`, as from a file: copied into a buffer that stays in the processor's cache.
fn chunks(data: &[u8], times: u64, mut take: impl FnMut(u64, &[u8])) {
    let mut buffer = vec![0; CHUNK];
    let mut offset = 0;
    for _ in 0..times {
        for chunk in data.chunks(CHUNK) {
            let buffer = &mut buffer[..chunk.len()];
            buffer.copy_from_slice(chunk);
            take(offset, buffer);
            offset += chunk.len() as u64;
        }
    }
}

fn main() {
    let data = generate();
    let size = data.len() as f64 * TIMES as f64;
    let mut records = 0;
    let bare = best(3, || {
        let mut decoder = Decoder::new();
        let mut sum = 0u64;
        chunks(&data, TIMES, |offset, bytes| decoder.push(offset, bytes, |record| sum ^= record.pc()));
        decoder.finish();
        black_box(sum);
        records = decoder.counts().records;
    });
    let mut places = 0;
    let statistics = best(3, || {
        let mut decoder = Decoder::new();
        let mut collector = Collector::new();
        let cpu = collector.cpu_kind(Cpu::new(Some(0x410f_d0c0), None));
        chunks(&data, TIMES, |offset, bytes| {
            decoder.push(offset, bytes, |record| collector.add(Owner(0), cpu, record));
        });
        decoder.finish();
        places = black_box(collector.finish()).len();
    });
    let speed = |time: Duration| size / time.as_secs_f64() / 1e6;
    println!("{records} records of {places} addresses in {:.0} MB", size / 1e6);
    println!("bare pass                    {:8.0} MB/s", speed(bare));
    println!("statistics per address       {:8.0} MB/s", speed(statistics));
    beside_perf(data);
}

fn beside_perf(data: Vec<u8>) {
    let folder = std::env::temp_dir().join(format!("heatline-bench-spe-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a scratch folder");
    let path = folder.join("perf.data");
    let code = (START, 4 * ADDRESSES, 0);
    fs::write(&path, Recording::of_program("/opt/program", code, 1000, data).file()).expect("a file");
    let ours = best(3, || {
        let mut file = File::open(&path).expect("the file");
        let profile = read(Input::File(&mut file), &ReadOptions::default(), &Silent).expect("a profile");
        black_box(profile.spe.map(|table| table.rows.len()));
    });
    println!("perf.data of {} MiB: reading {:.2} s", GENERATED / MIB, ours.as_secs_f64());
    let rivals: [&[&str]; 2] = [&["script", "--itrace=i1i", "-F", "ip,weight"], &["report", "-D"]];
    for arguments in rivals {
        let start = Instant::now();
        let status = Command::new("perf")
            .args(arguments)
            .arg("-i")
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if status.is_ok_and(|status| status.success()) {
            let time = start.elapsed();
            let factor = time.as_secs_f64() / ours.as_secs_f64();
            println!("perf {:<40} {:.1} s, {factor:.0} times as long", arguments.join(" "), time.as_secs_f64());
        }
    }
    let _ = fs::remove_dir_all(&folder);
}
