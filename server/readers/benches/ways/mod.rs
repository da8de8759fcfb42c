//! The same recording in other shapes: compressed, through a pipe, with stacks as bytes, and eight times as long.
//!
//! Times are those that the processor spent, so that other work of the machine does not count.

use heatline_profile::Module;
use heatline_readers::{Binaries, BinaryBytes};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The records of a file of one event without feature sections.
const RECORDS: usize = 104 + 144;
/// Where its attribute is.
const ATTRIBUTE: usize = 104;

/// The time that the processor spent on this process so far.
pub fn processor_time() -> Duration {
    const TICKS: u64 = 100;
    let text = std::fs::read_to_string("/proc/self/stat").expect("the kernel's accounting");
    let fields = text.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}

/// The time that the processor spends on a command, in milliseconds.
pub fn processor_time_of(command: &str) -> f64 {
    let output = Command::new("sh").args(["-c", &format!("{command} >/dev/null 2>&1; times")]).output().expect("sh");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let seconds = |time: &str| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').expect("a time");
        minutes.parse::<f64>().expect("minutes") * 60.0 + seconds.parse::<f64>().expect("seconds")
    };
    // The first line is the shell itself, the second its children.
    1e3 * text.lines().nth(1).expect("children").split_whitespace().map(seconds).sum::<f64>()
}

/// Writes the same records as `perf record -o -` would: the attribute as a record in front.
pub fn write_pipe(plain: &Path, to: &Path) -> io::Result<()> {
    let bytes = std::fs::read(plain)?;
    let mut out = BufWriter::with_capacity(1 << 20, File::create(to)?);
    out.write_all(b"PERFILE2")?;
    out.write_all(&16u64.to_le_bytes())?;
    out.write_all(&record(64, &bytes[ATTRIBUTE..ATTRIBUTE + 128]))?;
    out.write_all(&bytes[RECORDS..])?;
    out.flush()
}

/// Writes the same records compressed, as `perf record -z` does: pieces of one stream, each in a record.
pub fn write_compressed(plain: &Path, to: &Path) -> io::Result<()> {
    /// Bytes that are compressed together; perf takes what a buffer holds.
    const PIECE: usize = 512 << 10;
    /// Bytes that a record can hold.
    const MOST: usize = 65_000;
    let bytes = std::fs::read(plain)?;
    let mut records = Vec::new();
    let mut context = zstd_safe::CCtx::create();
    let mut piece = vec![0; zstd_safe::compress_bound(PIECE)];
    for data in bytes[RECORDS..].chunks(PIECE) {
        let mut output = zstd_safe::OutBuffer::around(&mut piece[..]);
        let mut input = zstd_safe::InBuffer::around(data);
        while input.pos < data.len() {
            context.compress_stream(&mut output, &mut input).expect("compressible");
        }
        while context.flush_stream(&mut output).expect("compressible") > 0 {}
        for part in output.as_slice().chunks(MOST) {
            records.extend(record(81, part));
        }
    }
    let mut header = bytes[..RECORDS].to_vec();
    header[48..56].copy_from_slice(&(records.len() as u64).to_le_bytes());
    std::fs::write(to, [header, records].concat())
}

fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &[0, 0], &(8 + body.len() as u16).to_le_bytes(), body].concat()
}

/// How long it takes only to decompress such a file, in milliseconds.
pub fn decompress(path: &Path) -> f64 {
    let bytes = std::fs::read(path).expect("a file");
    let mut context = zstd_safe::DCtx::create();
    let mut piece = vec![0; 1 << 20];
    let start = processor_time();
    let mut at = RECORDS;
    while at < bytes.len() {
        let size = usize::from(u16::from_le_bytes([bytes[at + 6], bytes[at + 7]]));
        let mut input = zstd_safe::InBuffer::around(&bytes[at + 8..at + size]);
        while input.pos < size - 8 {
            let mut output = zstd_safe::OutBuffer::around(&mut piece[..]);
            context.decompress_stream(&mut output, &mut input).expect("what was compressed");
        }
        at += size;
    }
    (processor_time() - start).as_secs_f64() * 1e3
}

/// Records a program without frame pointers, its stacks as bytes.
pub fn record_dwarf(folder: &Path) -> Option<()> {
    const PROGRAM: &str = "
        volatile unsigned long sink;
        __attribute__((noinline)) unsigned long spin(unsigned long n) {
            unsigned long sum = 0;
            for (unsigned long i = 0; i < n; i++) sum += (i * 2654435761u) ^ (sum >> 3);
            return sink += sum;
        }
        __attribute__((noinline)) unsigned long recurse(int depth, unsigned long n) {
            return spin(n) + (depth ? recurse(depth - 1, n) + 1 : 0);
        }
        int main(void) { for (int i = 0; i < 500; i++) sink += recurse(24, 300000 + i); return 0; }";
    std::fs::write(folder.join("walk.c"), PROGRAM).ok()?;
    let run = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).current_dir(folder).stdout(Stdio::null()).status();
        status.is_ok_and(|status| status.success()).then_some(())
    };
    let flags = ["-O1", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o", "walk", "walk.c"];
    run("gcc", &flags)?;
    let options =
        ["record", "-q", "-e", "cpu-clock:u", "-F", "10000", "--call-graph", "dwarf,4096", "-o", "dwarf.data"];
    run("perf", &[&options[..], &["./walk"]].concat())
}

/// The binaries at the paths that the recording names.
#[derive(Debug)]
pub struct OnDisk;

struct Bytes(Vec<u8>);

impl Binaries for OnDisk {
    fn open(&self, module: &Module) -> Option<Arc<dyn BinaryBytes>> {
        Some(Arc::new(Bytes(std::fs::read(&module.path).ok()?)))
    }
}

impl BinaryBytes for Bytes {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<()> {
        let part = self.0.get(position as usize..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// What one measurement in a process of its own says.
pub struct Measured {
    /// Milliseconds of the clock.
    pub clock: f64,
    /// Milliseconds of the processor.
    pub processor: f64,
    /// MiB at most.
    pub memory: f64,
}

/// The best of some measurements of reading a file, or with `piped` of reading it through a pipe.
pub fn measure(path: &Path, piped: bool, runs: usize) -> Measured {
    let me = std::env::current_exe().expect("a path");
    let run = |_| {
        let mut command = Command::new(&me);
        let mut cat = None;
        if piped {
            let mut source = Command::new("cat").arg(path).stdout(Stdio::piped()).spawn().expect("cat");
            command.args(["--read", "-"]).stdin(source.stdout.take().expect("a pipe"));
            cat = Some(source);
        } else {
            command.arg("--read").arg(path);
        }
        let output = command.output().expect("a process");
        if let Some(mut cat) = cat {
            let _ = cat.wait();
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers: Vec<f64> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        Measured { clock: numbers[0], processor: numbers[4], memory: numbers[1] }
    };
    let all: Vec<Measured> = (0..runs).map(run).collect();
    let least = |of: fn(&Measured) -> f64| all.iter().map(of).fold(f64::INFINITY, f64::min);
    let memory = all.iter().map(|measured| measured.memory).fold(0.0, f64::max);
    Measured { clock: least(|m| m.clock), processor: least(|m| m.processor), memory }
}

/// Compares the shapes, and prints.
pub fn compare(folder: &Path, plain: &Path, runs: usize) {
    let (pipe, compressed) = (folder.join("pipe.data"), folder.join("compressed.data"));
    write_pipe(plain, &pipe).expect("room");
    write_compressed(plain, &compressed).expect("room");
    let file = measure(plain, false, runs);
    let alone = (0..runs).map(|_| decompress(&compressed)).fold(f64::INFINITY, f64::min);
    let line = |name: &str, measured: &Measured, more: f64| {
        let ratio = (measured.processor - more) / file.processor;
        let (clock, processor, memory) = (measured.clock, measured.processor, measured.memory);
        println!(
            "{name:<28} {clock:6.0} ms, of processor {processor:6.0} ms, {memory:4.0} MiB, {ratio:.2} of the file's"
        );
    };
    line("as a file", &file, 0.0);
    line("through a pipe", &measure(&pipe, true, runs), 0.0);
    println!("decompressing alone          {alone:.0} ms of processor, taken off below");
    line("compressed", &measure(&compressed, false, runs), alone);
    let dwarf = folder.join("dwarf.data");
    if record_dwarf(folder).is_some() {
        let ours = measure(&dwarf, false, runs);
        let theirs = processor_time_of(&format!("perf script -f --no-inline -F ip -i {}", dwarf.display()));
        println!(
            "stacks as bytes              {:.0} ms of processor, perf script {theirs:.0}: {:.1} times as long",
            ours.processor,
            theirs / ours.processor
        );
    }
}
