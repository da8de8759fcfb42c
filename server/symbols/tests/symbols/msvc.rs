//! PDBs that Microsoft's tool chain made, against pdb-addr2line where a row covers the address. Which rows there are
//! says llvm-pdbutil, since pdb-addr2line answers with the row before where none covers, and knows no hidden ones.

use crate::tools::{Disk, Random, run};
use heatline_profile::{AddressSpace, ModuleAddress, Silent, Svma};
use heatline_symbols::{Checksum, DebugFile, Image, Locate, Nowhere, Resolution, Storage};
use pdb_addr2line::pdb::PDB;
use pdb_addr2line::{Context, ContextPdbData};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LOOK_UPS: usize = 10_000;
/// A look-up without the cache that mixes up inlined functions of several modules is slow, so it is done so often only.
const FRESH_LOOK_UPS: usize = 20;

/// The package as it was fetched by `tests/msvc/install`.
fn package() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/msvc/node_modules/node-pty");
    assert!(path.exists(), "the binaries of MSVC are missing: run tests/msvc/install");
    path
}

/// The lines of a function, or those in one file of it: from its start up to its end, sorted; line 0 where code is
/// hidden.
struct Function {
    start: u32,
    end: u32,
    rows: Vec<(u32, u32)>,
}

/// What llvm-pdbutil lists of the first section's lines.
fn functions(pdb: &Path) -> Vec<Function> {
    let text = run(Path::new("/"), &format!("llvm-pdbutil-19 dump -l {}", pdb.display()));
    let mut functions: Vec<Function> = Vec::new();
    let mut in_first = false;
    let hex = |text: &str| u32::from_str_radix(text, 16).ok();
    for line in text.lines() {
        if let Some((range, _)) = line.trim().split_once(", line/") {
            in_first = range.starts_with("0001:");
            let (start, end) = range[5..].split_once('-').expect("a range");
            let (start, end) = (hex(start).expect("hex"), hex(end).expect("hex"));
            if in_first {
                functions.push(Function { start, end, rows: Vec::new() });
            }
        } else if in_first && let Some(function) = functions.last_mut() {
            let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "!").collect();
            for pair in words.chunks(2) {
                if let [line, address] = pair
                    && let Some(address) = hex(address).filter(|_| address.len() == 8)
                {
                    function.rows.push((address, line.parse().unwrap_or(0)));
                }
            }
        }
    }
    functions.iter_mut().for_each(|function| function.rows.sort_by_key(|row| row.0));
    functions
}

/// The lines of the rows that cover an offset in the first section; several where functions were folded, or where the
/// lines of a function are in several files.
fn lines_at(functions: &[Function], offset: u32) -> BTreeSet<u32> {
    let covering = functions.iter().filter(|f| f.start <= offset && offset < f.end);
    covering.filter_map(|f| f.rows.iter().rev().find(|row| row.0 <= offset)).map(|row| row.1).collect()
}

type Frames = Vec<(String, String, u32)>;

fn ours(resolution: &Resolution, i: usize) -> Frames {
    let frame = |frame: &heatline_symbols::Frame| {
        let name = frame.function.map(|id| resolution.function(id).name.to_string()).unwrap_or_default();
        let file = frame.file.map(|id| resolution.file(id).path.clone()).unwrap_or_default();
        (name, file, frame.line.map_or(0, |line| line.get()))
    };
    resolution.frames(i).iter().map(frame).collect()
}

fn theirs(context: &Context<'_, '_>, rva: u32) -> Frames {
    let found = context.find_frames(rva).expect("it is readable");
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let frame = |frame: &pdb_addr2line::Frame<'_>| {
        (text(frame.function.as_deref()), text(frame.file.as_deref()), frame.line.unwrap_or(0))
    };
    found.map(|found| found.frames.iter().map(frame).collect()).unwrap_or_default()
}

fn places(frames: &Frames) -> Vec<(&str, u32)> {
    frames.iter().map(|frame| (frame.1.as_str(), frame.2)).collect()
}

/// Compares look-ups at random addresses of the first section, which holds all code.
fn check(path: &Path) {
    let bytes = std::fs::read(path).expect("a PDB");
    let mut pdb = PDB::open(Cursor::new(bytes.as_slice())).expect("a PDB");
    let section = pdb.sections().expect("sections").expect("sections").remove(0);
    assert!(section.characteristics.execute());
    let data = ContextPdbData::try_from_pdb(pdb).expect("a PDB");
    let context = data.make_context().expect("a context");

    let mut random = Random(0x5eed);
    let offsets: Vec<u32> = (0..LOOK_UPS).map(|_| random.below(section.virtual_size.into()) as u32).collect();
    let image = Image::open(Disk::open(path), &Nowhere).expect("it opens");
    let addresses: Vec<Svma> = offsets.iter().map(|o| Svma(u64::from(section.virtual_address + o))).collect();
    let resolution = image.resolve(&addresses, &Silent).expect("it resolves");

    let functions = functions(path);
    let (mut compared, mut fresh) = (0, 0);
    for (i, offset) in offsets.iter().enumerate() {
        let (ours, lines) = (ours(&resolution, i), lines_at(&functions, *offset));
        let place = format!("{} at {:#x}", path.display(), section.virtual_address + offset);
        let outermost = ours.last().map_or(0, |frame| frame.2);
        match lines.len() {
            0 => assert_eq!(outermost, 0, "{place}: no row covers it, but {ours:?}"),
            // Either is right.
            2.. => assert!(lines.contains(&outermost), "{place}: {ours:?} is not of {lines:?}"),
            1 if lines.contains(&0) => assert_eq!(outermost, 0, "{place} is hidden, but {ours:?}"),
            _ => {
                compared += 1;
                let cached = theirs(&context, section.virtual_address + offset);
                assert_eq!(places(&ours), places(&cached), "{place}");
                if ours != cached && fresh < FRESH_LOOK_UPS {
                    fresh += 1;
                    let context = data.make_context().expect("a context");
                    assert_eq!(ours, theirs(&context, section.virtual_address + offset), "{place}");
                }
            }
        }
    }
    assert!(compared * 10 > LOOK_UPS * 8, "{compared} of {LOOK_UPS} could be compared");
}

#[track_caller]
fn check_all(machine: &str) {
    let folder = package().join("prebuilds").join(machine);
    for name in ["conpty", "conpty_console_list", "pty", "winpty", "winpty-agent"] {
        check(&folder.join(format!("{name}.pdb")));
    }
}

#[test]
fn frames_of_x64_are_those_of_pdb_addr2line() {
    check_all("win32-x64");
}

#[test]
fn frames_of_arm64_are_those_of_pdb_addr2line() {
    check_all("win32-arm64");
}

struct Beside(PathBuf);

impl Locate for Beside {
    fn locate(&self, wanted: &DebugFile<'_>) -> Option<Arc<dyn Storage>> {
        let DebugFile::Pdb { path, .. } = wanted else { return None };
        Some(Disk::open(&self.0.join(path.rsplit('\\').next()?)))
    }
}

#[test]
fn every_binary_finds_its_pdb_by_identity() {
    for machine in ["win32-x64", "win32-arm64"] {
        let folder = package().join("prebuilds").join(machine);
        for binary in ["conpty.node", "conpty_console_list.node", "pty.node", "winpty.dll", "winpty-agent.exe"] {
            let image = Image::open(Disk::open(&folder.join(binary)), &Beside(folder.clone())).expect("it opens");
            let first = image.to_svma(ModuleAddress(0x1000), AddressSpace::Rva).expect("code");
            let addresses: Vec<Svma> = (0..4096).map(|i| Svma(first.0 + i * 4)).collect();
            let resolution = image.resolve(&addresses, &Silent).expect("it resolves");
            let with_line = (0..addresses.len()).filter(|i| resolution.unresolved(*i).is_none()).count();
            assert!(with_line > 3000, "{binary}: {with_line}");
            let unexpected: Vec<_> = resolution.problems.iter().filter(|p| p.kind != "folded-code").collect();
            assert!(unexpected.is_empty(), "{binary}: {unexpected:?}");
        }
    }
}

#[test]
fn checksums_are_those_of_the_sources_with_windows_line_ends() {
    let package = package();
    let path = package.join("prebuilds/win32-x64/conpty.pdb");
    let image = Image::open(Disk::open(&path), &Nowhere).expect("it opens");
    let addresses: Vec<Svma> = (0x1000..0x30000).step_by(4).map(Svma).collect();
    let resolution = image.resolve(&addresses, &Silent).expect("it resolves");
    let recorded = resolution.files.iter().find(|file| file.path.ends_with("\\src\\win\\conpty.cc"));
    let Some(Checksum::Sha256(recorded)) = recorded.expect("a source of the package").checksum else {
        panic!("no SHA-256");
    };
    let source = std::fs::read_to_string(package.join("src/win/conpty.cc")).expect("the source");
    let windows = source.replace("\r\n", "\n").replace('\n', "\r\n");
    assert_eq!(Sha256::digest(windows.as_bytes()).as_slice(), recorded);
}
