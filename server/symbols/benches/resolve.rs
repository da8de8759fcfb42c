//! One million random addresses of a big binary: in process against `addr2line`'s `Context`, as text against
//! llvm-symbolizer-19. All on one core. Prints times and ratios; the binary is built once, which takes minutes.
//!
//! `cargo bench -p heatline-symbols` or, for another binary, `cargo bench -p heatline-symbols -- BINARY`.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark is a program, not the library")]

use addr2line::gimli::{self, EndianSlice, LittleEndian};
use heatline_profile::{Silent, Svma};
use heatline_symbols::{Image, Nowhere, Resolution, Storage};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ADDRESSES: usize = 1_000_000;
const UNITS: usize = 10;

struct Disk(fs::File, u64);

impl Storage for Disk {
    fn len(&self) -> u64 {
        self.1
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }
}

fn open(path: &Path) -> Image {
    let file = fs::File::open(path).expect("the binary is there");
    let length = file.metadata().expect("a size").len();
    Image::open(Arc::new(Disk(file, length)), &Nowhere).expect("it opens")
}

/// Many units of templates, with functions inlined into functions.
fn build() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench");
    let binary = folder.join("big");
    if binary.exists() {
        return binary;
    }
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("unit.cpp"), include_str!("../tests/symbols/sources/templates.cpp")).expect("a source");
    let units: Vec<usize> = (0..UNITS).collect();
    std::thread::scope(|scope| {
        for half in units.chunks(UNITS.div_ceil(2)) {
            let folder = &folder;
            scope.spawn(move || half.iter().for_each(|unit| compile(folder, *unit)));
        }
    });
    let calls = |each: fn(usize) -> String| (0..UNITS).map(each).collect::<String>();
    let program = calls(|i| format!("int main{i}(int, char **);\n"))
        + "int main(int n, char **v) { return 0"
        + &calls(|i| format!(" + main{i}(n, v)"))
        + "; }\n";
    fs::write(folder.join("main.cpp"), program).expect("a source");
    let objects = calls(|i| format!("unit{i}.o "));
    run(&folder, &format!("g++ -O2 -g main.cpp {objects} -o big"));
    binary
}

fn compile(folder: &Path, unit: usize) {
    run(
        folder,
        &format!("g++ -std=c++17 -O2 -g -DMANY -Dshop=shop{unit} -Dmain=main{unit} -c unit.cpp -o unit{unit}.o"),
    );
}

fn run(folder: &Path, command: &str) {
    let mut words = command.split_whitespace();
    let status = Command::new(words.next().expect("a program")).args(words).current_dir(folder).status();
    assert!(status.expect("it starts").success(), "{command}");
}

/// Uniform over `.text`, the same in each run.
fn addresses(binary: &Path) -> Vec<u64> {
    let output = Command::new("readelf").arg("-SW").arg(binary).output().expect("readelf is needed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.contains(" .text ")).expect("a section .text");
    let words: Vec<_> = line.split(']').nth(1).expect("columns").split_whitespace().collect();
    let hex = |i: usize| u64::from_str_radix(words[i], 16).expect("hex");
    let (start, size) = (hex(2), hex(4));
    let mut state = 0x5eed_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..ADDRESSES).map(|_| start + next() % size).collect()
}

/// The best of three, and what the last run gave.
fn best<T>(mut work: impl FnMut() -> T) -> (Duration, T) {
    let mut timed = || {
        let start = Instant::now();
        let result = work();
        (start.elapsed(), result)
    };
    let first = timed().0;
    let second = timed().0;
    let (third, result) = timed();
    (first.min(second).min(third), result)
}

fn ours(binary: &Path, addresses: &[Svma]) -> Resolution {
    open(binary).resolve(addresses, &Silent).expect("it resolves")
}

/// Frames and lines met, so that nothing is optimised away.
fn of_addr2line(binary: &Path, addresses: &[u64], demangled: bool) -> (usize, usize) {
    let image = fs::read(binary).expect("the binary is there");
    let section = |id: gimli::SectionId| -> Result<EndianSlice<'_, LittleEndian>, gimli::Error> {
        Ok(EndianSlice::new(elf_section(&image, id.name()).unwrap_or_default(), LittleEndian))
    };
    let dwarf = gimli::Dwarf::load(section).expect("sections");
    let context = addr2line::Context::from_dwarf(dwarf).expect("a context");
    let (mut frames, mut lines) = (0, 0);
    for address in addresses {
        let mut found = context.find_frames(*address).skip_all_loads().expect("frames");
        while let Ok(Some(frame)) = found.next() {
            frames += 1;
            if let Some(function) = &frame.function {
                let length =
                    if demangled { function.demangle().map(|n| n.len()) } else { function.raw_name().map(|n| n.len()) };
                frames += usize::from(length.unwrap_or(0) == 0);
            }
            lines += usize::from(frame.location.is_some_and(|l| l.line.is_some() && l.file.is_some()));
        }
    }
    (frames, lines)
}

/// The content of a section of a 64-bit little-endian ELF file that is known to be sound and uncompressed.
fn elf_section<'a>(image: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let number = |at: usize, width: usize| {
        image[at..at + width].iter().rev().fold(0usize, |value, byte| value << 8 | usize::from(*byte))
    };
    let (headers, count, names) = (number(40, 8), number(60, 2), number(62, 2));
    let field = |section: usize, at: usize, width: usize| number(headers + section * 64 + at, width);
    let names = field(names, 24, 8);
    let is_wanted = |section: &usize| {
        let at = names + field(*section, 0, 4);
        image[at..].starts_with(name.as_bytes()) && image[at + name.len()] == 0
    };
    let section = (0..count).find(is_wanted)?;
    let start = field(section, 24, 8);
    image.get(start..start + field(section, 32, 8))
}

/// As llvm-symbolizer prints it: function, then file:line:column, per frame; an empty line between addresses.
fn as_text(resolution: &Resolution, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let mut text = Vec::with_capacity(1 << 17);
    for i in 0..resolution.len() {
        for frame in resolution.frames(i) {
            let function = frame.function.map_or("??", |id| &resolution.function(id).name);
            let file = frame.file.map_or("??", |id| &resolution.file(id).path);
            let number = |n: Option<std::num::NonZeroU32>| n.map_or(0, std::num::NonZeroU32::get);
            text.extend_from_slice(function.as_bytes());
            text.push(b'\n');
            text.extend_from_slice(file.as_bytes());
            writeln!(text, ":{}:{}", number(frame.line), number(frame.column))?;
        }
        text.push(b'\n');
        if text.len() > 1 << 16 {
            out.write_all(&text)?;
            text.clear();
        }
    }
    out.write_all(&text)
}

fn of_llvm(binary: &Path, input: &Path) {
    let status = Command::new("llvm-symbolizer-19")
        .arg(format!("--obj={}", binary.display()))
        .stdin(fs::File::open(input).expect("the addresses"))
        .stdout(Stdio::null())
        .env("DEBUGINFOD_URLS", "")
        .status();
    assert!(status.expect("llvm-symbolizer-19 is needed").success());
}

fn main() {
    let given = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let binary = given.map_or_else(build, PathBuf::from);
    let numbers = addresses(&binary);
    let svmas: Vec<Svma> = numbers.iter().map(|a| Svma(*a)).collect();
    let one_core = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    let megabytes = fs::metadata(&binary).expect("a size").len() as f64 / 1e6;
    println!("{ADDRESSES} random addresses of a binary of {megabytes:.0} MB, one core, best of three");

    let (time, resolution) = best(|| one_core.install(|| ours(&binary, &svmas)));
    let frames: usize = (0..resolution.len()).map(|i| resolution.frames(i).len()).sum();
    println!("  in process, names demangled            {time:>10.3?}   {frames} frames");
    let (rival, (frames, lines)) = best(|| of_addr2line(&binary, &numbers, false));
    println!("  addr2line Context, names as they are   {rival:>10.3?}   {frames} frames, {lines} lines");
    println!("  ratio                                  {:>10.2}", rival.as_secs_f64() / time.as_secs_f64());

    let input = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-addresses.txt");
    let text: String = numbers.iter().map(|a| format!("{a:#x}\n")).collect();
    fs::write(&input, text).expect("the addresses are written");
    let (time, ()) = best(|| {
        one_core.install(|| {
            let text = fs::read_to_string(&input).expect("the addresses");
            let parsed = text.lines().filter_map(|line| u64::from_str_radix(line.get(2..)?, 16).ok()).map(Svma);
            let resolution = ours(&binary, &parsed.collect::<Vec<_>>());
            let mut null = fs::File::create("/dev/null").expect("a place for the text");
            as_text(&resolution, &mut null).expect("it is written");
        });
    });
    println!("  as text                                {time:>10.3?}");
    let start = Instant::now();
    of_llvm(&binary, &input);
    let rival = start.elapsed();
    println!("  llvm-symbolizer-19                     {rival:>10.3?}");
    println!("  ratio                                  {:>10.2}", rival.as_secs_f64() / time.as_secs_f64());
}
