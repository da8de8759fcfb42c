//! Look-ups in PDBs of MSVC (fetched by `tests/msvc/install`): 100 000 random addresses with inlined frames against
//! pdb-addr2line in process, and one address of a PDB that was just opened. `cargo bench -p heatline-symbols --bench pdb`
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark is a program, not the library")]

use heatline_profile::{Silent, Svma};
use heatline_symbols::{Image, Nowhere};
use pdb_addr2line::ContextPdbData;
use pdb_addr2line::pdb::PDB;
use std::hint::black_box;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const ADDRESSES: usize = 100_000;
const ROUNDS: usize = 10;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/msvc/node_modules/node-pty/prebuilds");
    println!("{:<28} {:>10} {:>10} {:>12} {:>7}", "milliseconds", "first", "100 000", "pdb-addr2line", "factor");
    for name in ["win32-x64/conpty", "win32-x64/winpty-agent", "win32-arm64/conpty", "win32-arm64/winpty-agent"] {
        let path = folder.join(format!("{name}.pdb"));
        let bytes = std::fs::read(&path).expect("the PDBs are there: run tests/msvc/install");
        let rvas = addresses(&bytes);
        let wanted: Vec<Svma> = rvas.iter().map(|rva| Svma(u64::from(*rva))).collect();
        let open = || Image::open(Arc::new(bytes.clone()), &Nowhere).expect("it opens");
        let first = best(|| drop(black_box(open().resolve(&wanted[..1], &Silent))));
        let ours = best(|| drop(black_box(open().resolve(&wanted, &Silent))));
        let theirs = best(|| rival(&bytes, &rvas));
        println!("{name:<28} {first:>10.1} {ours:>10.1} {theirs:>12.1} {:>7.1}", theirs / ours);
    }
}

/// The best of some rounds, in milliseconds.
fn best(mut work: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    best
}

/// Addresses in the first section, which holds all code (xorshift).
fn addresses(bytes: &[u8]) -> Vec<u32> {
    let mut pdb = PDB::open(Cursor::new(bytes)).expect("a PDB");
    let section = pdb.sections().expect("sections").expect("sections").remove(0);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..ADDRESSES).map(|_| section.virtual_address + (next() % u64::from(section.virtual_size)) as u32).collect()
}

fn rival(bytes: &[u8], rvas: &[u32]) {
    let data = ContextPdbData::try_from_pdb(PDB::open(Cursor::new(bytes)).expect("a PDB")).expect("a PDB");
    let context = data.make_context().expect("a context");
    for rva in rvas {
        black_box(context.find_frames(*rva).expect("a readable PDB"));
    }
}
