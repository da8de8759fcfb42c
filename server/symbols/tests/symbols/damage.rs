//! Damaged binaries: no panic, no hang, no wild allocation, whatever the bytes.

use crate::tools::{Random, folder, run, write};
use heatline_profile::{AddressSpace, ModuleAddress, Silent, Svma};
use heatline_symbols::{DebugFile, Image, Locate, Nowhere, Resolution, Storage};
use std::path::Path;
use std::sync::{Arc, LazyLock};

const TINY: &str = "static inline __attribute__((always_inline)) int twice(int n) { return n * 2 + (n >> 3); }\n\
    __attribute__((noinline)) int one(int n) { return twice(n) + twice(n + 1); }\n\
    void _start(void) { for (int i = 0; i < 100; i++) __asm__ volatile(\"\" :: \"r\"(one(i))); for (;;) {} }\n";

/// Without a C library: some kilobytes, most of them headers and debug information.
fn tiny(name: &str, options: &str) -> Vec<u8> {
    let folder = folder(&format!("damage-{name}"));
    write(&folder, "tiny.c", TINY);
    run(&folder, &format!("clang-19 -O2 -fuse-ld=lld -nostdlib -static {options} tiny.c -o tiny"));
    std::fs::read(folder.join("tiny")).expect("built")
}

/// Built once for all tests.
fn kinds() -> Vec<(&'static str, Vec<u8>)> {
    static KINDS: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(|| {
        let build = |name, options| (name, tiny(name, options));
        vec![
            build("dwarf-5", "-gdwarf-5"),
            build("dwarf-4", "-gdwarf-4"),
            build("dwarf-2", "-gdwarf-2"),
            build("zlib", "-gdwarf-5 -gz=zlib"),
            build("zstd", "-gdwarf-4 -gz=zstd"),
        ]
    });
    KINDS.clone()
}

/// Opens and resolves; what comes out must only hang together.
fn exercise(bytes: Vec<u8>) -> Option<Resolution> {
    let image = Image::open(Arc::new(bytes), &Nowhere).ok()?;
    let mut addresses: Vec<_> = (0x20_0000..0x20_4000).step_by(16).map(Svma).collect();
    addresses.extend([0, 1, u64::MAX].map(Svma));
    for offset in (0..0x2000).step_by(256) {
        addresses.extend(image.to_svma(ModuleAddress(offset), AddressSpace::FileOffset));
    }
    let resolution = image.resolve(&addresses, &Silent).ok()?;
    for i in 0..addresses.len() {
        for frame in resolution.frames(i) {
            frame.function.map(|id| resolution.function(id));
            frame.file.map(|id| resolution.file(id));
        }
        assert!(resolution.unresolved(i).is_some() || !resolution.frames(i).is_empty());
    }
    let uncaught = resolution.problems.iter().find(|p| p.message.contains("no check caught"));
    assert!(uncaught.is_none(), "{uncaught:?}");
    Some(resolution)
}

#[test]
fn the_undamaged_ones_resolve() {
    for (name, bytes) in kinds() {
        let resolution = exercise(bytes).unwrap_or_else(|| panic!("{name} opens"));
        assert!(resolution.functions.iter().any(|f| &*f.name == "twice" && !f.from_symbol_table), "{name}");
        assert!(resolution.problems.is_empty(), "{name}: {:?}", resolution.problems);
    }
}

#[test]
fn changed_bytes() {
    let mut random = Random(0xdead_beef);
    for (_, bytes) in kinds() {
        for _ in 0..1000 {
            let mut bytes = bytes.clone();
            for _ in 0..=random.below(8) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = match random.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => bytes[at] ^ (1 << random.below(8)),
                    _ => random.next() as u8,
                };
            }
            exercise(bytes);
        }
    }
}

#[test]
fn cut_files() {
    for (_, bytes) in kinds() {
        for length in (0..bytes.len()).step_by(7) {
            exercise(bytes[..length].to_vec());
        }
    }
}

#[test]
fn numbers_that_claim_too_much() {
    let mut random = Random(0x0bad_cafe);
    for (_, bytes) in kinds() {
        for _ in 0..500 {
            let mut bytes = bytes.clone();
            let at = random.below(bytes.len() as u64 - 8) as usize & !3;
            let huge = [u64::MAX, u64::MAX / 2, 1 << 40, u64::from(u32::MAX), 1 << 31][random.below(5) as usize];
            let width = if random.below(2) == 0 { 4 } else { 8 };
            bytes[at..at + width].copy_from_slice(&huge.to_le_bytes()[..width]);
            exercise(bytes);
        }
    }
}

#[test]
fn a_damaged_unit_costs_only_itself() {
    let folder = folder("damage-unit");
    for (name, function) in [("a", "_start"), ("b", "second"), ("c", "third")] {
        let text = format!("int {function}(int n) {{ for (int i = 0; i < n; i++) n += i ^ n; return n; }}\n");
        write(&folder, &format!("{name}.c"), &text);
    }
    run(&folder, "clang-19 -O1 -g -fuse-ld=lld -nostdlib -static a.c b.c c.c -o three");
    let whole = std::fs::read(folder.join("three")).expect("built");
    let symbols = crate::tools::symbols(&folder.join("three"));
    let start = |name: &str| Svma(symbols.iter().find(|s| s.name == name).expect("a symbol").start);
    let headers = run(&folder, "readelf -SW three");
    let section = |name: &str| {
        let line = headers.lines().find(|line| line.contains(name)).expect("a section");
        let words: Vec<_> = line.split(']').nth(1).expect("columns").split_whitespace().collect();
        usize::from_str_radix(words[3], 16).expect("hex")
    };
    let number = |at: usize| u32::from_le_bytes(whole[at..at + 4].try_into().expect("four bytes")) as usize;
    let second = section(".debug_info") + number(section(".debug_info")) + 4;
    // In the table of the second unit the entry behind that of the root: code 2, a function, with children.
    let table = section(".debug_abbrev") + number(second + 8);
    let next = whole[table..].windows(3).position(|bytes| bytes == [2, 0x2e, 1]).expect("a function");
    let next_code = table + next;
    for (what, place, value) in [("version", second + 4, 99), ("a code that comes twice", next_code, 1)] {
        let mut bytes = whole.clone();
        bytes[place] = value;
        let image = Image::open(Arc::new(bytes), &Nowhere).expect("it opens");
        let asked = ["_start", "second", "third"].map(start);
        let resolution = image.resolve(&asked, &Silent).expect("it resolves");
        let lines: Vec<_> = (0..3).map(|i| resolution.frames(i)[0].line.is_some()).collect();
        assert_eq!(lines, [true, false, true], "{what}");
        let problems: Vec<_> = resolution.problems.iter().map(|p| (p.kind, p.count)).collect();
        assert_eq!(problems, [("debug-unit", 1)], "{what}");
        // The symbol table still names it.
        let function = resolution.frames(1)[0].function.expect("a function");
        assert_eq!(&*resolution.function(function).name, "second");
    }
}

#[test]
fn a_section_that_claims_to_unpack_to_gigabytes_is_not_believed() {
    let folder = folder("damage-claim");
    write(&folder, "tiny.c", TINY);
    run(&folder, "clang-19 -O2 -g -gz=zlib -fuse-ld=lld -nostdlib -static tiny.c -o tiny");
    let headers = run(&folder, "readelf -SW tiny");
    let line = headers.lines().find(|l| l.contains(".debug_info")).expect("a section");
    let words: Vec<_> = line.split(']').nth(1).expect("columns").split_whitespace().collect();
    let at = usize::from_str_radix(words[3], 16).expect("hex");
    let mut bytes = std::fs::read(Path::new(&folder.join("tiny"))).expect("built");
    bytes[at + 8..at + 16].copy_from_slice(&(8u64 << 30).to_le_bytes());
    let resolution = exercise(bytes).expect("it opens");
    assert!(resolution.problems.iter().any(|p| p.kind == "debug-section" && p.message.contains("8589934592")));
}

/// Split files are believed no more than binaries.
#[test]
fn changed_bytes_of_split_files() {
    struct Changed(Vec<u8>);
    impl Locate for Changed {
        fn locate(&self, wanted: &DebugFile<'_>) -> Option<Arc<dyn Storage>> {
            let wanted = matches!(wanted, DebugFile::Dwo { .. });
            wanted.then(|| Arc::new(self.0.clone()) as Arc<dyn Storage>)
        }
    }
    let folder = folder("damage-split");
    write(&folder, "tiny.c", TINY);
    run(&folder, "clang-19 -O2 -gdwarf-5 -gsplit-dwarf -c tiny.c -o tiny.o");
    run(&folder, "ld.lld-19 tiny.o -o tiny");
    let image = Image::open(crate::tools::Disk::open(&folder.join("tiny")), &Nowhere).expect("it opens");
    let bytes = std::fs::read(folder.join("tiny.dwo")).expect("built");
    let addresses: Vec<_> = (0x20_0000..0x20_4000).step_by(4).map(Svma).collect();
    let sound = image.resolve_with(&addresses, &Changed(bytes.clone()), &Silent).expect("it resolves");
    assert!(sound.functions.iter().any(|f| &*f.name == "twice"));
    let mut random = Random(0x1234_5678);
    for _ in 0..1000 {
        let mut bytes = bytes.clone();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = if random.below(2) == 0 { 0xff } else { random.next() as u8 };
        }
        let resolution = image.resolve_with(&addresses, &Changed(bytes), &Silent).expect("it resolves");
        assert!(resolution.problems.iter().all(|p| !p.message.contains("no check caught")));
    }
}
