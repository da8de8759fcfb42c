//! Makes large perf.data files whose size, repetition and order are those of real recordings.
//!
//! One event (`cpu-clock`), a few threads on a few processors, chains of 13 frames that grow out of one call tree, so
//! that stacks share their outer frames; some stacks are hot and most are rare. Processors' buffers are written one
//! after the other between round markers, as `perf record` does.

use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A text segment that samples lie in.
#[derive(Clone, Debug)]
pub struct Text {
    /// Path of the binary as the file names it.
    pub path: String,
    /// Position of the segment in the file, and its size.
    pub file_offset: u64,
    /// Bytes of it.
    pub size: u64,
}

/// What to make.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Samples in all.
    pub samples: u64,
    /// Different stacks; the samples of each belong to one thread.
    pub stacks: usize,
    /// Frames per stack.
    pub depth: usize,
    /// Threads of the one process.
    pub threads: u32,
    /// Processors, each with a buffer of its own.
    pub processors: u32,
    /// Samples between two round markers.
    pub round: u64,
    /// Where the code lies; the last holds a quarter of the frames.
    pub texts: Vec<Text>,
}

impl Default for Plan {
    /// One million samples, about 160 MB.
    fn default() -> Self {
        let text = |path: &str, size| Text { path: path.into(), file_offset: 0x1000, size };
        Plan {
            samples: 1_000_000,
            stacks: 30_000,
            depth: 13,
            threads: 8,
            processors: 4,
            round: 8_000,
            texts: vec![text("/usr/bin/application", 8 << 20), text("/usr/lib/libwork.so.1", 2 << 20)],
        }
    }
}

#[allow(dead_code)] // Not every user has a binary.
/// The executable segment of a 64-bit little-endian ELF file.
pub fn text_of(binary: &Path) -> io::Result<Text> {
    let bytes = std::fs::read(binary)?;
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]) as usize;
    let (table, size, count) = (word(32) as usize, half(54), half(56));
    let executable = (0..count).map(|i| table + i * size).find(|&at| bytes[at] == 1 && bytes[at + 4] & 1 == 1);
    let at = executable.ok_or_else(|| io::Error::other("no executable segment"))?;
    let page = word(at + 8) & !0xfff;
    let path = binary.canonicalize()?.display().to_string();
    Ok(Text { path, file_offset: page, size: (word(at + 8) + word(at + 32) - page).next_multiple_of(0x1000) })
}

/// Repeatable numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let x = self.0 ^ self.0 >> 32;
        x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ x >> 29
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

const PID: u32 = 4000;
const PERIOD: u64 = 250_000;
const USER: u64 = -512i64 as u64;

/// Where a text lies in the process.
fn base(text: usize) -> u64 {
    0x7f00_0000_0000 + ((text as u64) << 32)
}

/// Stacks innermost first, each grown from a shorter one so that outer frames are shared.
fn stacks(plan: &Plan, numbers: &mut Numbers) -> Vec<Vec<u64>> {
    let address = |numbers: &mut Numbers| {
        let text = if numbers.below(4) == 0 { plan.texts.len() - 1 } else { 0 };
        // Calls come from a few thousand places.
        base(text) + numbers.below(plan.texts[text].size.min(1 << 20) / 64) * 64 + 5
    };
    let mut roots: Vec<Vec<u64>> = vec![vec![address(numbers)]];
    let mut finished = Vec::with_capacity(plan.stacks);
    while finished.len() < plan.stacks {
        let mut stack = roots[numbers.below(roots.len() as u64) as usize].clone();
        while stack.len() < plan.depth {
            stack.push(address(numbers));
            if roots.len() < plan.stacks / 4 && stack.len() < plan.depth {
                roots.push(stack.clone());
            }
        }
        stack.reverse();
        finished.push(stack);
    }
    finished
}

/// Writes the file.
pub fn write(path: &Path, plan: &Plan) -> io::Result<()> {
    let mut numbers = Numbers(42);
    let stacks = stacks(plan, &mut numbers);
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    let sample_size = 8 + 5 * 8 + 8 * (plan.depth as u64 + 1);
    let preamble = preamble(plan);
    let rounds = plan.samples.div_ceil(plan.round);
    let size = preamble.len() as u64 + plan.samples * sample_size + rounds * 8;
    out.write_all(&header(size))?;
    out.write_all(&preamble)?;
    let mut left = plan.samples;
    let mut time = 1_000_000_000;
    while left > 0 {
        let count = left.min(plan.round);
        left -= count;
        for processor in 0..plan.processors {
            let of_this = count / plan.processors as u64 + u64::from(count % plan.processors as u64 > processor as u64);
            for i in 0..of_this {
                let stack = (numbers.unit().powi(3) * stacks.len() as f64) as usize;
                let at = time + i * PERIOD + numbers.below(PERIOD);
                let thread = PID + stack as u32 % plan.threads;
                out.write_all(&sample(&stacks[stack], thread, at))?;
            }
        }
        time += count * PERIOD / plan.processors as u64;
        out.write_all(&record(68, 0, &[]))?;
    }
    out.flush()
}

fn sample(stack: &[u64], tid: u32, time: u64) -> Vec<u8> {
    let pid_tid = (tid as u64) << 32 | PID as u64;
    let mut words = vec![stack[0], pid_tid, time, PERIOD, stack.len() as u64 + 1, USER];
    words.extend_from_slice(stack);
    let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    record(9, 2, &body)
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes());
    bytes.extend((body.len() as u16 + 8).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// Header, one attribute, no feature sections.
fn header(data_size: u64) -> Vec<u8> {
    let data = 104 + 144;
    let fields = [104, 144, 104, 144, data, data_size, 0, 0, 0, 0, 0, 0];
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend(fields.iter().flat_map(|field: &u64| field.to_le_bytes()));
    // IP, TID, TIME, CALLCHAIN, PERIOD; mmap, comm, task, sample_id_all, mmap2, comm_exec.
    let sample_type = 1 | 2 | 4 | 32 | 256;
    let flags = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 18 | 1 << 23 | 1 << 24;
    let mut attr = [1 | 128 << 32, 0, PERIOD, sample_type, 0, flags].to_vec();
    attr.resize(16, 0);
    bytes.extend(attr.iter().chain(&[0, 0]).flat_map(|word: &u64| word.to_le_bytes()));
    bytes
}

/// Names of the threads and mappings of the texts.
fn preamble(plan: &Plan) -> Vec<u8> {
    let ids = |tid: u32| [PID.to_le_bytes(), tid.to_le_bytes()].concat();
    let end = |tid: u32| [ids(tid), 0u64.to_le_bytes().to_vec()].concat();
    let padded = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize((bytes.len() + 1).next_multiple_of(8), 0);
        bytes
    };
    let mut bytes = Vec::new();
    for tid in (0..plan.threads).map(|i| PID + i) {
        let name = padded(if tid == PID { "application" } else { "worker" });
        bytes.extend(record(3, 0, &[ids(tid), name, end(tid)].concat()));
    }
    for (number, text) in plan.texts.iter().enumerate() {
        let mut body = ids(PID);
        body.extend([base(number), text.size, text.file_offset].iter().flat_map(|word| word.to_le_bytes()));
        body.extend([[8u32, 1, 1000 + number as u32, 0, 0, 0, 5, 2].map(u32::to_le_bytes).concat()].concat());
        body.extend([padded(&text.path), end(PID)].concat());
        bytes.extend(record(10, 2, &body));
    }
    bytes
}
