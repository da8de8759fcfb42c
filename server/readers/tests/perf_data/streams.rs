//! Input that comes in order and once: pipes, and files through them, cut into reads of any size.

use super::recording::{Scratch, record, small};
use super::writer::{Order, USER, Writer, build_id_section};
use heatline_profile::{Problems, Profile, Silent};
use heatline_readers::{Input, ReadError, ReadOptions};
use std::io::{self, Cursor, Read};

/// Reads at most so many bytes at once.
struct Slowly<'a>(&'a [u8], usize);

impl Read for Slowly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(buffer.len()).min(self.0.len());
        let (now, later) = self.0.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.0 = later;
        Ok(count)
    }
}

fn read_file(bytes: &[u8]) -> Profile {
    heatline_readers::read(Input::File(&mut Cursor::new(bytes)), &ReadOptions::default(), &Silent).unwrap()
}

fn read_stream(bytes: &[u8], size: usize) -> Result<Profile, ReadError> {
    heatline_readers::read(Input::Stream(&mut Slowly(bytes, size)), &ReadOptions::default(), &Silent)
}

/// Compares all that a profile says.
#[track_caller]
fn assert_equal(stream: &Profile, file: &Profile, context: &str) {
    let rows = |profile: &Profile| {
        let row = |row: &heatline_profile::SampleRow| {
            let frames: Vec<_> = profile.stacks.frames(row.stack).map(|frame| (frame.module, frame.address)).collect();
            (format!("{row:?}"), frames)
        };
        profile.rows.iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(rows(stream), rows(file), "{context}");
    let facts = |profile: &Profile| {
        let problems: Vec<_> = profile.problems.iter().collect();
        format!(
            "{:#?}",
            (&profile.events, &profile.modules, &profile.threads, &profile.recording, &profile.arcs, problems)
        )
    };
    assert_eq!(facts(stream), facts(file), "{context}");
}

/// A process that runs through two mappings and renames itself.
fn busy(order: Order) -> Writer {
    let mut writer = Writer::new(order);
    writer.comm(100, 100, "app", 0, 0);
    writer.mmap(100, [0x40_0000, 0x1000, 0x1000], "/usr/bin/app", 1, 0);
    writer.mmap(100, [0x7f00_0000, 0x2000, 0], "/usr/lib/lib.so", 2, 0);
    for time in 10..3000 {
        let chain = [USER, 0x40_0000 + time % 50, 0x7f00_0000 + time % 11];
        writer.sample((100, 100), time, time % 7, &chain);
        if time % 100 == 0 {
            writer.comm(100, 100, if time % 200 == 0 { "even" } else { "odd" }, 0, time);
            writer.round();
        }
    }
    writer
}

const SIZES: [usize; 6] = [1, 7, 8, 13, 4096, 100_000];

#[test]
fn a_pipe_gives_the_same_however_it_is_cut_into_reads() {
    let writer = busy(Order::Little);
    let mut whole = read_file(&writer.file(&[]));
    // Only in a file are build ids expected.
    assert!(whole.problems.iter().all(|problem| problem.kind == "missing-build-id"));
    whole.problems = Problems::new();
    let pipe = writer.pipe();
    assert_equal(&read_file(&pipe), &whole, "stored pipe");
    for size in SIZES {
        assert_equal(&read_stream(&pipe, size).unwrap(), &whole, &format!("reads of {size} bytes"));
    }
}

#[test]
fn a_file_through_a_pipe_gives_the_same_as_the_file() {
    for order in [Order::Little, Order::Big] {
        let writer = busy(order);
        let bytes = writer.file(&[(2, build_id_section(&writer, "/usr/bin/app", [7; 20]))]);
        let whole = read_file(&bytes);
        assert!(whole.modules.iter().any(|module| module.identity.is_some()));
        for size in SIZES {
            assert_equal(&read_stream(&bytes, size).unwrap(), &whole, &format!("{order:?}, reads of {size} bytes"));
        }
    }
}

#[test]
fn recorded_files_through_a_pipe_give_the_same_as_the_files() {
    assert_equal(&read_stream(small(), 5000).unwrap(), &read_file(small()), "plain");
    for options in [&["-z", "-g"][..], &["--call-graph", "dwarf,512"]] {
        let scratch = Scratch::new("through-a-pipe");
        let bytes = std::fs::read(record(&scratch, &[options, &["-e", "cpu-clock:u", "-F", "100"]].concat())).unwrap();
        assert_equal(&read_stream(&bytes, 5000).unwrap(), &read_file(&bytes), &options.join(" "));
    }
}

#[test]
fn a_file_that_ends_early_in_a_pipe_says_so() {
    let bytes = small();
    let records = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    for cut in [records + 100, bytes.len() - 2000] {
        let stream = read_stream(&bytes[..cut], 5000).unwrap();
        let file = read_file(&bytes[..cut]);
        let kinds = |profile: &Profile| {
            let mut kinds: Vec<_> = profile.problems.iter().map(|problem| problem.kind).collect();
            kinds.sort_unstable();
            kinds
        };
        assert_eq!(kinds(&stream), kinds(&file), "cut at {cut}");
        assert_eq!(stream.totals(), file.totals(), "cut at {cut}");
    }
    assert!(read_stream(&bytes[..80], 5000).is_err());
}

#[test]
fn what_lies_behind_a_damaged_record_in_a_pipe_is_still_read() {
    let mut bytes = small().to_vec();
    let records = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    // The size of the first record.
    bytes[records + 6..records + 8].fill(0);
    let (stream, file) = (read_stream(&bytes, 5000).unwrap(), read_file(&bytes));
    assert_equal(&stream, &file, "damaged");
    assert_eq!(stream.problems.iter().map(|problem| problem.kind).collect::<Vec<_>>(), ["damaged-record"]);
    assert!(!stream.recording.command_line.is_empty());
}

#[test]
fn a_file_with_its_records_far_behind_or_in_front_is_refused_in_a_pipe() {
    for offset in [0u64, 1 << 40] {
        let mut bytes = small().to_vec();
        bytes[40..48].copy_from_slice(&offset.to_le_bytes());
        let error = read_stream(&bytes, 5000).unwrap_err().to_string();
        assert!(error.contains(&format!("{offset:#x}")) && error.contains("name the file instead"), "{error}");
    }
}
