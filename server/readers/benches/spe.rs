//! Speed of SPE: `cargo bench -p heatline-readers --bench spe`.
//!
//! A stream of 1 GiB with 10 000 addresses: a bare pass over its records, and decoding with statistics per address, each
//! on one core. Then a whole file of 128 MiB beside perf in the same run. Without perf the last part is left out.
//!
//! Speeds are by the time that the processor spent, so that other work of the machine does not count. A file is decoded
//! on one thread and added up on another; so for files both times are shown.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // A benchmark writes files, starts perf and prints.

#[path = "../../../fixtures/spe/forge.rs"]
mod forge;

use forge::{Instruction, Random, Recording, Stream};
use heatline_profile::Silent;
use heatline_readers::spe::{Collector, Cpu, Decoder, Owner};
use heatline_readers::{Input, ReadOptions, read};
use std::fs::{self, File};
use std::hint::black_box;
use std::process::Command;
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

/// Ticks of the kernel's accounting in a second.
const TICKS: u64 = 100;

/// The time that the processor spent on this process so far, in user mode and in the kernel.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/self/stat").expect("the kernel's accounting");
    let fields = text.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}

/// How long something took.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Took {
    processor: Duration,
    clock: Duration,
}

/// The shortest of some runs.
fn best(runs: u32, mut run: impl FnMut()) -> Took {
    let time = |_| {
        let (start, clock) = (processor_time(), Instant::now());
        run();
        Took { processor: processor_time() - start, clock: clock.elapsed() }
    };
    let all: Vec<_> = (0..runs).map(time).collect();
    let shortest = |of: fn(&Took) -> Duration| all.iter().map(of).min().unwrap_or_default();
    Took { processor: shortest(|took| took.processor), clock: shortest(|took| took.clock) }
}

/// The time that the processor spends on perf; `None` if it fails.
fn of_perf(arguments: &[&str]) -> Option<Took> {
    const SCRIPT: &str = r#"perf "$@" >/dev/null 2>&1 </dev/null || exit 1; times"#;
    let start = Instant::now();
    let output = Command::new("sh").args(["-c", SCRIPT, "sh"]).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let seconds = |time: &str| {
        let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    // The first line is the shell itself, the second its children.
    let children = text.lines().nth(1)?.split_whitespace().map(seconds).sum::<Option<f64>>()?;
    let took = Took { processor: Duration::from_secs_f64(children), clock: start.elapsed() };
    output.status.success().then_some(took)
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
    let speed = |took: Took| size / took.processor.as_secs_f64() / 1e6;
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
    let ours = best(5, || {
        let mut file = File::open(&path).expect("the file");
        let profile = read(Input::File(&mut file), &ReadOptions::default(), &Silent).expect("a profile");
        black_box(profile.spe.map(|table| table.rows.len()));
    });
    let seconds = |took: Took| (took.processor.as_secs_f64(), took.clock.as_secs_f64());
    let (processor, clock) = seconds(ours);
    println!("reading perf.data of {} MiB    {processor:6.2} s of processor, {clock:6.2} s", GENERATED / MIB);
    let name = path.to_string_lossy();
    let rivals: [&[&str]; 2] = [&["script", "--itrace=i1i", "-F", "ip,weight"], &["report", "-D"]];
    for arguments in rivals {
        if let Some(theirs) = of_perf(&[arguments, &["-i", &name]].concat()) {
            let (by_processor, by_clock) = seconds(theirs);
            println!(
                "perf {:<40} {by_processor:6.2} s of processor, {by_clock:6.2} s: {:.0} and {:.0} times as long",
                arguments.join(" "),
                by_processor / processor,
                by_clock / clock,
            );
        }
    }
    let _ = fs::remove_dir_all(&folder);
}
