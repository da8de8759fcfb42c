//! Damaged files: whatever is cut or changed, the reader gives what it can and says what is wrong.

use super::recording::{Scratch, perf, record, record_pipe, run, small};
use super::writer::{Order, USER, Writer, build_id_section};
use heatline_profile::{Profile, Silent};
use heatline_readers::perf_data::RecordSink;
use heatline_readers::{Input, ReadError, ReadOptions};
use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    heatline_readers::read(Input::File(&mut Cursor::new(bytes)), &ReadOptions::default(), &Silent)
}

fn samples(profile: &Profile) -> u64 {
    profile.rows.iter().map(|row| row.tally.samples).sum()
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// The end of each record in the data section and how many samples lie up to there.
fn sample_ends(bytes: &[u8]) -> Vec<(usize, u64)> {
    let (mut at, size) = (u64_at(bytes, 40), u64_at(bytes, 48));
    let (end, mut count, mut ends) = (at + size, 0, vec![(at, 0)]);
    while at < end {
        count += u64::from(bytes[at] == 9);
        at += usize::from(u16::from_le_bytes([bytes[at + 6], bytes[at + 7]]));
        ends.push((at, count));
    }
    ends
}

#[test]
fn a_file_cut_anywhere_keeps_the_samples_before_the_cut() {
    let bytes = small();
    let ends = sample_ends(bytes);
    let (data_start, data_end) = (ends[0].0, ends[ends.len() - 1].0);
    assert!(ends[ends.len() - 1].1 > 30);
    for cut in 0..bytes.len() {
        let result = read(&bytes[..cut]);
        if cut < 104 {
            assert!(result.is_err(), "cut at {cut}");
            continue;
        }
        let profile = result.unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        let said = profile.problems.iter().any(|p| ["truncated", "damaged-header"].contains(&p.kind));
        assert!(said || cut >= data_end, "cut at {cut}: {:?}", profile.problems);
        if cut >= data_start {
            let whole = ends.partition_point(|(end, _)| *end <= cut) - 1;
            assert_eq!(samples(&profile), ends[whole].1, "cut at {cut}");
        }
    }
}

#[test]
fn an_unclosed_file_is_read_to_its_end() {
    let mut bytes = small().to_vec();
    let (whole, end) = (read(&bytes).unwrap(), u64_at(&bytes, 40) + u64_at(&bytes, 48));
    bytes[48..56].fill(0);
    bytes.truncate(end);
    let unclosed = read(&bytes).unwrap();
    assert_eq!(samples(&unclosed), samples(&whole));
    assert_eq!(unclosed.problems.iter().map(|p| p.kind).collect::<Vec<_>>(), ["unclosed"]);
    // Without the section that names the events, perf makes the names from their attributes.
    let scratch = Scratch::new("unclosed");
    let data = scratch.path("perf.data");
    std::fs::write(&data, &bytes).unwrap();
    let names: String = unclosed.events.iter().map(|event| event.name.clone() + "\n").collect();
    assert_eq!(run(perf(&scratch).arg("evlist").arg("-i").arg(data)), names);
}

/// A small generator of repeatable numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Changes some bytes: single bits, whole words to extremes, ranges copied, swapped or removed.
fn mutate(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    const EXTREMES: [u64; 6] = [0, 1, 7, 0xffff, u64::MAX, 1 << 63];
    for _ in 0..=numbers.below(6) {
        // Half of the time near the front, where the header is.
        let span = if numbers.below(2) == 0 { bytes.len().min(400) } else { bytes.len() };
        let at = numbers.below(span.saturating_sub(8).max(1));
        match numbers.below(6) {
            0 => bytes[at] ^= 1 << numbers.below(8),
            1 => bytes[at] = numbers.next() as u8,
            2 => {
                let word = EXTREMES[numbers.below(EXTREMES.len())];
                let size = [1, 2, 4, 8][numbers.below(4)];
                bytes[at..at + size].copy_from_slice(&word.to_le_bytes()[..size]);
            }
            3 => {
                let length = numbers.below(64).min(bytes.len() - at);
                let from = numbers.below(bytes.len() - length);
                bytes.copy_within(from..from + length, at);
            }
            4 => {
                let length = numbers.below(64).min(bytes.len() - at);
                bytes.drain(at..at + length);
            }
            _ => bytes.truncate(bytes.len() - numbers.below(bytes.len() / 2)),
        }
        if bytes.len() < 200 {
            return;
        }
    }
}

/// Reads twenty thousand damaged copies; with five kinds of files that makes a hundred thousand.
#[track_caller]
fn survives_mutations(base: &[u8]) {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut usable = 0;
    for _ in 0..20_000 {
        let mut bytes = base.to_vec();
        mutate(&mut bytes, &mut numbers);
        usable += u64::from(read(&bytes).is_ok());
    }
    assert!(usable > 4_000, "{usable}");
}

fn recorded(name: &str, options: &[&str]) -> Vec<u8> {
    let scratch = Scratch::new(name);
    std::fs::read(record(&scratch, &[options, &["-e", "cpu-clock:u", "-F", "100"]].concat())).unwrap()
}

#[test]
fn mutations_of_a_plain_file_neither_panic_nor_hang() {
    survives_mutations(small());
}

#[test]
fn mutations_of_a_compressed_file_neither_panic_nor_hang() {
    survives_mutations(&recorded("damaged-zstd", &["-z", "-g"]));
}

#[test]
fn mutations_of_recorded_stacks_neither_panic_nor_hang() {
    survives_mutations(&recorded("damaged-stacks", &["--call-graph", "dwarf,256"]));
}

#[test]
fn mutations_of_a_pipe_neither_panic_nor_hang() {
    let scratch = Scratch::new("damaged-pipe");
    let pipe = record_pipe(&scratch, &["-e", "cpu-clock:u", "-F", "100", "-g", "--switch-events"]);
    survives_mutations(&std::fs::read(pipe).unwrap());
}

#[test]
fn mutations_of_a_file_of_big_byte_order_neither_panic_nor_hang() {
    let mut writer = Writer::new(Order::Big);
    writer.comm(100, 100, "app", 0, 0);
    writer.mmap(100, [0x40_0000, 0x1000, 0x1000], "/usr/bin/app", 1, 0);
    for time in 1..60 {
        writer.sample((100, 100), time, time, &[USER, 0x40_0010, 0x40_0000 + time]);
        if time % 8 == 0 {
            writer.fork((200 + time as u32, 200), (100, 100), 0, time);
            writer.round();
        }
    }
    survives_mutations(&writer.file(&[(2, build_id_section(&writer, "/usr/bin/app", [7; 20]))]));
}

/// Memory accesses, and everything that a dump shows: fields of samples and sections about the machine.
#[test]
fn mutations_of_what_a_dump_shows_neither_panic_nor_hang() {
    for base in [super::memory::file(Order::Little, true), small().to_vec()] {
        let mut numbers = Numbers(0x1357_9bdf_0246_8ace);
        let shown = Arc::new(AtomicU64::new(0));
        for _ in 0..1_000 {
            let mut bytes = base.clone();
            mutate(&mut bytes, &mut numbers);
            let (of_records, of_features) = (shown.clone(), shown.clone());
            let count = |shown: &AtomicU64, fields: usize| shown.fetch_add(fields as u64, Ordering::Relaxed);
            let sink = RecordSink::new(move |record| _ = count(&of_records, record.fields.len()))
                .with_features(move |feature| _ = count(&of_features, feature.fields.len()));
            let options = ReadOptions { records: Some(sink), ..ReadOptions::default() };
            let _ = heatline_readers::read(Input::File(&mut Cursor::new(bytes)), &options, &Silent);
        }
        assert!(shown.load(Ordering::Relaxed) > 30_000);
    }
}

/// Names the file of which a process of its own reads damaged copies.
const MEMORY_OF: &str = "HEATLINE_TEST_MEMORY_OF";

/// Starts this test again in a process of its own, as other tests need memory too.
#[track_caller]
fn needs_little_memory(scratch: &Scratch, base: &[u8]) {
    let file = scratch.path("base");
    std::fs::write(&file, base).unwrap();
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "damage::damaged_files_need_at_most_four_times_their_size_and_64_mib"]);
    let printed = run(again.env(MEMORY_OF, file));
    assert!(printed.contains("1 passed"), "{printed}");
}

/// Reads damaged copies, as files and as streams, and checks the most memory that the process ever held.
fn read_damaged_copies(base: &[u8]) {
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    for _ in 0..1000 {
        let mut bytes = base.to_vec();
        mutate(&mut bytes, &mut numbers);
        let _ = read(&bytes);
        let _ = heatline_readers::read(Input::Stream(&mut bytes.as_slice()), &ReadOptions::default(), &Silent);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: usize = line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10;
    assert!(peak <= 4 * base.len() + (64 << 20), "{peak} bytes for a file of {}", base.len());
}

#[test]
fn damaged_files_need_at_most_four_times_their_size_and_64_mib() {
    if let Some(file) = std::env::var_os(MEMORY_OF) {
        return read_damaged_copies(&std::fs::read(file).unwrap());
    }
    let scratch = Scratch::new("memory");
    needs_little_memory(&scratch, small());
    needs_little_memory(&scratch, &recorded("memory-zstd", &["-z", "-g"]));
    needs_little_memory(&scratch, &recorded("memory-stacks", &["--call-graph", "dwarf,256"]));
}
