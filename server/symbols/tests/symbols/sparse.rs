//! Of large debug information little is read where few addresses are wanted.

use crate::tools::{Disk, fill_declared_files, folder, plain, run, symbolizer, symbols, write};
use heatline_profile::{Silent, Svma};
use heatline_symbols::{Image, Nowhere, Storage};
use std::fmt::Write;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const UNITS: usize = 60;
const FUNCTIONS: usize = 40;

/// Counts the bytes that are read.
struct Counted(Arc<dyn Storage>, AtomicU64);

impl Storage for Counted {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.1.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.0.read_at(offset, buffer)
    }
}

/// A program of many units with many functions each, some with names that are longer than what is read at once.
fn build() -> PathBuf {
    let folder = folder("sparse");
    let mut sources = String::from("main.c");
    write(&folder, "main.c", "int main(void) { return 0; }\n");
    for unit in 0..UNITS {
        let mut text = String::new();
        for function in 0..FUNCTIONS {
            let name = format!("f{unit}_{function}_{}", "long".repeat(if function % 13 == 0 { 600 } else { 20 }));
            let body = format!("for (int i = 0; i < n; i++) n += i * {function}; return n;");
            let _ = writeln!(text, "static inline int in_{name}(int n) {{ {body} }}");
            let _ = writeln!(text, "__attribute__((noinline)) int {name}(int n) {{ return in_{name}(n + 1); }}");
        }
        write(&folder, &format!("unit{unit}.c"), &text);
        let _ = write!(sources, " unit{unit}.c");
    }
    run(&folder, &format!("gcc -O2 -g -o program {sources}"));
    folder.join("program")
}

#[test]
fn what_no_address_needs_is_not_read_and_what_is_read_is_right() {
    let program = build();
    let functions: Vec<_> = symbols(&program).into_iter().filter(|symbol| symbol.name.contains("long")).collect();
    assert!(functions.len() >= UNITS * FUNCTIONS);
    let read_for = |addresses: &[u64]| {
        let disk = Arc::new(Counted(Disk::open(&program), AtomicU64::new(0)));
        let image = Image::open(disk.clone(), &Nowhere).expect("the binary opens");
        disk.1.store(0, Ordering::Relaxed);
        let wanted: Vec<Svma> = addresses.iter().map(|address| Svma(*address)).collect();
        let resolution = image.resolve(&wanted, &Silent).expect("the addresses resolve");
        let mut theirs = symbolizer(&program, addresses);
        for (i, theirs) in theirs.iter_mut().enumerate() {
            let ours = plain(&resolution, i);
            fill_declared_files(theirs, &ours);
            assert_eq!(&ours, theirs, "at {:#x}", addresses[i]);
        }
        disk.1.load(Ordering::Relaxed)
    };
    let all: Vec<u64> = functions.iter().flat_map(|symbol| [symbol.start, symbol.start + symbol.size / 2]).collect();
    let one_unit: Vec<u64> =
        functions.iter().filter(|symbol| symbol.name.starts_with("f7_")).map(|s| s.start).collect();
    assert_eq!(one_unit.len(), FUNCTIONS);
    let (all, few) = (read_for(&all), read_for(&one_unit));
    assert!(few * 3 < all, "{few} bytes for one of {UNITS} units, {all} for all of them");
}
