//! Every way in which linkers lay out code and debug information.

use crate::tools::{
    Disk, Plain, fill_declared_files, folder, open, plain, resolve, run, section, symbolizer, symbols, write,
};
use heatline_profile::{AddressSpace, Identity, ModuleAddress, Silent, Svma};
use heatline_symbols::{Image, ImageKind, Nowhere, Reason};
use std::path::{Path, PathBuf};

/// Small, of two files, with an inlined call, a constant that marks its place in the file, a call that never returns
/// as the last instruction of its function, and a function that nothing calls.
const SMALL: &str = r#"#include "twice.h"
__attribute__((noinline, section(".text.hot"))) long marked(long n) {
    volatile long long mark = 0x1122334455667788;
    return mark + twice(n);
}

__attribute__((noreturn, noinline)) void stop(int code) {
    for (;;) __asm__ volatile("" :: "r"(code));
}

__attribute__((noinline)) void ends_in_a_call(int code) {
    stop(code + 1);
}

__attribute__((noinline)) int never_called(int n) {
    for (int i = 0; i < 1000; i++) __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop" : "+r"(n));
    return n + 1;
}

int main(int argc, char **argv) {
    if (argc > 100) ends_in_a_call(argc);
    return marked(argc) > 3;
}
"#;
const TWICE: &str = "static inline __attribute__((always_inline)) long twice(long n) {\n    long sum = n;\n    \
    for (long i = 0; i < n; i++) sum += i ^ n;\n    return sum * 2;\n}\n";

fn build(name: &str, command: &str) -> PathBuf {
    let folder = folder(&format!("layout-{name}"));
    write(&folder, "small.c", SMALL);
    write(&folder, "twice.h", TWICE);
    run(&folder, &format!("{command} small.c -o small"));
    folder.join("small")
}

/// The place of `marked`'s constant in the file.
fn mark(binary: &Path) -> u64 {
    let bytes = std::fs::read(binary).expect("the binary is there");
    let mark = 0x1122_3344_5566_7788u64.to_le_bytes();
    bytes.windows(8).position(|window| window == mark).expect("the constant is in the code") as u64
}

fn is_of(frames: &[Plain], function: &str) -> bool {
    frames.last().is_some_and(|frame| frame.function == function)
}

#[track_caller]
fn check(binary: &Path) {
    check_against(binary, binary);
}

/// All addresses of the program's own functions as llvm-symbolizer has them in `known`, and the marked constant found
/// through its file offset.
#[track_caller]
fn check_against(binary: &Path, known: &Path) {
    let own = ["marked", "stop", "ends_in_a_call", "never_called", "main"];
    let functions: Vec<_> = symbols(binary).into_iter().filter(|s| own.contains(&s.name.as_str())).collect();
    assert!(functions.len() >= 4);
    let addresses: Vec<u64> = functions.iter().flat_map(|s| s.start..s.start + s.size).collect();
    let resolution = resolve(binary, &addresses);
    assert!(resolution.problems.is_empty(), "{:?}", resolution.problems);
    for (i, theirs) in symbolizer(known, &addresses).iter_mut().enumerate() {
        let ours = plain(&resolution, i);
        fill_declared_files(theirs, &ours);
        assert_eq!(&ours, theirs, "at {:#x}", addresses[i]);
        assert_eq!(resolution.frames(i).iter().map(|f| f.inlined).collect::<Vec<_>>(), inlined(theirs.len()));
    }
    let svma = open(binary).to_svma(ModuleAddress(mark(binary)), AddressSpace::FileOffset).expect("in a segment");
    let resolution = resolve(binary, &[svma.0]);
    assert!(is_of(&plain(&resolution, 0), "marked"), "{svma} is {:?}", plain(&resolution, 0));
}

fn inlined(depth: usize) -> Vec<bool> {
    (0..depth).map(|i| i + 1 < depth).collect()
}

#[test]
fn every_version_of_dwarf_by_both_compilers() {
    for version in 2..=5 {
        check(&build(&format!("gcc-{version}"), &format!("gcc -O2 -gdwarf-{version} -gstrict-dwarf")));
        check(&build(&format!("clang-{version}"), &format!("clang-19 -O2 -gdwarf-{version}")));
    }
    check(&build("dwarf64", "clang-19 -O2 -gdwarf-5 -gdwarf64"));
}

#[test]
fn linkers_and_position() {
    for linker in ["bfd", "gold", "lld", "mold"] {
        check(&build(&format!("{linker}-pie"), &format!("clang-19 -O2 -g -fuse-ld={linker} -fPIE -pie")));
        check(&build(&format!("{linker}-fixed"), &format!("clang-19 -O2 -g -fuse-ld={linker} -fno-pie -no-pie")));
    }
}

#[test]
fn offsets_that_differ_from_addresses() {
    check(&build("far", "gcc -O2 -g -no-pie -Wl,-Ttext-segment=0x7000000"));
    check(&build("pages", "clang-19 -O2 -g -fuse-ld=lld -Wl,-z,max-page-size=65536"));
    check(&build("pages-bfd", "gcc -O2 -g -Wl,-z,max-page-size=65536 -Wl,-z,common-page-size=65536"));
    check(&build("together", "gcc -O2 -g -Wl,-z,noseparate-code"));
}

#[test]
fn several_executable_segments() {
    let binary = build(
        "segments",
        "clang-19 -O2 -g -no-pie -fuse-ld=lld -Wl,-z,keep-text-section-prefix -Wl,--section-start=.text.hot=0x5000000",
    );
    let headers = run(Path::new("/"), &format!("readelf -lW {}", binary.display()));
    let executable = headers.lines().filter(|line| line.contains("LOAD") && line.contains("R E")).count();
    assert!(executable >= 2, "{headers}");
    check(&binary);
}

#[test]
fn windows_images_with_dwarf() {
    let folder = folder("layout-pe");
    write(&folder, "small.c", SMALL);
    write(&folder, "twice.h", TWICE);
    for version in [4, 5] {
        let target = "--target=x86_64-w64-mingw32 -ffreestanding -O2 -fno-stack-check";
        run(&folder, &format!("clang-19 {target} -gdwarf-{version} -Dmain=start -c small.c -o small.o"));
        run(&folder, "ld.lld-19 -m i386pep -e start --build-id small.o -o small.exe");
        let binary = folder.join("small.exe");
        let (base, text) = (0x1_4000_0000, 0x1000);
        let addresses: Vec<u64> = (base + text..base + text + 0x100).collect();
        let resolution = resolve(&binary, &addresses);
        assert!(resolution.problems.is_empty(), "{:?}", resolution.problems);
        let theirs = symbolizer(&binary, &addresses);
        assert!(theirs.iter().any(|frames| frames.len() == 2));
        // Where no function is declared it is padding, which the symbol table names.
        let is_padding = |frames: &[Plain]| frames.last().is_none_or(|frame| frame.declared.1 == 0);
        for (i, theirs) in theirs.iter().enumerate().filter(|(_, theirs)| !is_padding(theirs)) {
            assert_eq!(&plain(&resolution, i), theirs, "at {:#x}", addresses[i]);
        }
        let image = open(&binary);
        assert_eq!(image.kind(), ImageKind::Pe);
        assert_eq!(image.to_svma(ModuleAddress(text), AddressSpace::Rva), Some(Svma(base + text)));
        let by_offset = image.to_svma(ModuleAddress(mark(&binary)), AddressSpace::FileOffset).expect("in a section");
        assert!(is_of(&plain(&resolve(&binary, &[by_offset.0]), 0), "marked"));
        let directory = run(&folder, "llvm-readobj-19 --coff-debug-directory small.exe");
        let Some(Identity::Pdb(id)) = image.identity() else { panic!("no identity") };
        assert!(directory.contains(&format!("PDBGUID: {{{}}}", id.guid_text())), "{directory}");
        assert!(directory.contains(&format!("PDBAge: {}", id.age)), "{directory}");
    }
}

#[test]
fn compressed_sections() {
    check(&build("zlib", "gcc -O2 -g -gz=zlib"));
    check(&build("zstd", "clang-19 -O2 -g -gz=zstd -fuse-ld=lld"));
    let binary = build("zdebug", "gcc -O2 -g");
    let folder = binary.parent().expect("in a folder");
    run(folder, "objcopy --compress-debug-sections=zlib-gnu small zdebug");
    assert!(run(folder, "readelf -SW zdebug").contains(".zdebug_info"));
    // llvm-symbolizer does not know this form any more.
    check_against(&folder.join("zdebug"), &binary);
}

#[test]
fn functions_that_the_linker_threw_away_resolve_nothing() {
    for linker in ["bfd", "gold", "lld", "mold"] {
        for version in [4, 5] {
            let binary = build(
                &format!("gc-{linker}-{version}"),
                &format!("clang-19 -O2 -gdwarf-{version} -fuse-ld={linker} -ffunction-sections -Wl,--gc-sections"),
            );
            assert!(symbols(&binary).iter().all(|s| s.name != "never_called"), "{linker} kept it");
            check(&binary);
            // Its debug information is still there, at 0, 1 or the top of the address space, and it is long enough
            // to reach from there into the code of a position-independent executable.
            let (start, size) = section(&binary, ".text");
            let mut addresses: Vec<u64> = (0..0x3000).chain(start..start + size).collect();
            addresses.extend((u64::MAX - 0x100)..=u64::MAX);
            let resolution = resolve(&binary, &addresses);
            for (i, address) in addresses.iter().enumerate() {
                let frames = plain(&resolution, i);
                assert!(
                    frames.iter().all(|frame| frame.function != "never_called"),
                    "{linker} {address:#x}: {frames:?}"
                );
            }
            assert_eq!(resolution.unresolved(0), Some(&Reason::OutsideSections));
            assert!(resolution.frames(0).is_empty());
        }
    }
}

#[test]
fn a_symbol_table_names_what_debug_information_does_not() {
    let binary = build("symbols", "gcc -O2");
    let folder = binary.parent().expect("in a folder");
    run(folder, "gcc -O2 -shared -fPIC small.c -o exported.so");
    run(folder, "strip exported.so");
    for binary in [binary.clone(), folder.join("exported.so")] {
        let text = run(folder, &format!("nm -D --defined-only --print-size {}", binary.display()));
        let all = symbols(&folder.join("small"));
        let marked = if binary.ends_with("small") {
            all.iter().find(|s| s.name == "marked").map(|s| s.start).expect("a symbol")
        } else {
            let line = text.lines().find(|line| line.ends_with(" marked")).expect("exported");
            u64::from_str_radix(line.split(' ').next().expect("an address"), 16).expect("hex")
        };
        let resolution = resolve(&binary, &[marked, marked + 3]);
        for i in 0..2 {
            let frame = resolution.frames(i)[0];
            let function = resolution.function(frame.function.expect("a function"));
            assert_eq!((&*function.name, function.from_symbol_table), ("marked", true));
            assert_eq!((frame.file, frame.line, frame.inlined), (None, None, false));
            assert_eq!(resolution.unresolved(i), Some(&Reason::NoDebugInfo));
        }
    }
}

#[test]
fn stubs_are_named_after_what_they_call() {
    let program =
        "#include <stdio.h>\n#include <stdlib.h>\nint main(int n, char **v) { puts(v[0]); return atoi(v[0]); }\n";
    for (name, command) in [
        ("bfd", "gcc -O2 -g -fcf-protection=none -Wl,-z,lazy"),
        ("ibt", "gcc -O2 -g -fcf-protection=full -Wl,-z,ibtplt"),
        ("lld", "clang-19 -O2 -g -fuse-ld=lld -Wl,-z,lazy"),
    ] {
        let folder = folder(&format!("stubs-{name}"));
        write(&folder, "stubs.c", program);
        run(&folder, &format!("{command} stubs.c -o stubs"));
        // objdump names them independently.
        let listing = run(&folder, "objdump -d stubs");
        let stub = |line: &str| {
            line.strip_suffix(">:").and_then(|l| l.split_once(" <")).map(|(a, n)| (a.to_owned(), n.to_owned()))
        };
        let stubs: Vec<_> = listing.lines().filter_map(stub).filter(|(_, name)| name.ends_with("@plt")).collect();
        assert!(stubs.iter().any(|(_, name)| name == "puts@plt"), "{name}: {stubs:?}");
        for (address, stub) in stubs {
            let address = u64::from_str_radix(&address, 16).expect("hex");
            let resolution = resolve(&folder.join("stubs"), &[address, address + 5]);
            for i in 0..2 {
                assert_eq!(plain(&resolution, i).first().map(|f| f.function.clone()), Some(stub.clone()), "{name}");
            }
        }
    }
}

#[test]
fn a_call_that_ends_its_function_belongs_to_it() {
    let binary = build("noreturn", "gcc -O2 -g -fno-reorder-functions -falign-functions=1");
    let all = symbols(&binary);
    let caller = all.iter().find(|s| s.name == "ends_in_a_call").expect("a symbol");
    let end = caller.start + caller.size;
    let resolution = resolve(&binary, &[end - 1, end]);
    assert!(is_of(&plain(&resolution, 0), "ends_in_a_call"));
    assert!(!is_of(&plain(&resolution, 1), "ends_in_a_call"));
}

#[test]
fn rows_end_where_their_sequence_ends() {
    let binary = build("ends", "clang-19 -O2 -g -fuse-ld=lld -ffunction-sections -falign-functions=256");
    let all = symbols(&binary);
    let gaps: Vec<u64> = all.iter().filter(|s| s.name == "stop").map(|s| s.start + s.size).collect();
    let resolution = resolve(&binary, &gaps);
    assert_eq!(gaps.len(), 1);
    assert_eq!(resolution.unresolved(0), Some(&Reason::NoSymbol));
    assert!(resolution.frames(0).is_empty());
}

#[test]
fn checksums_of_sources_are_kept() {
    let binary = build("checksums", "clang-19 -O2 -gdwarf-5");
    let folder = binary.parent().expect("in a folder");
    let sum = run(folder, "md5sum small.c");
    let resolution = resolve(&binary, &[symbols(&binary).iter().find(|s| s.name == "main").expect("main").start]);
    let file = resolution.frames(0)[0].file.map(|id| resolution.file(id)).expect("a file");
    let heatline_symbols::Checksum::Md5(found) = file.checksum.expect("a checksum") else { panic!("another kind") };
    let hex: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(Some(hex.as_str()), sum.split_whitespace().next());
}

#[test]
fn embedded_sources_are_kept() {
    let binary = build("embedded", "clang-19 -O2 -gdwarf-5 -gembed-source");
    let resolution = resolve(&binary, &[symbols(&binary).iter().find(|s| s.name == "main").expect("main").start]);
    let file = resolution.frames(0)[0].file.map(|id| resolution.file(id)).expect("a file");
    assert_eq!(file.text.as_deref(), Some(SMALL));
}

#[test]
fn build_ids_are_read_with_and_without_sections() {
    let binary = build("id", "gcc -O2 -g -Wl,--build-id=0x0123456789abcdef");
    let folder = binary.parent().expect("in a folder");
    run(folder, "llvm-objcopy-19 --strip-sections small bare");
    for path in [binary.clone(), folder.join("bare")] {
        let image = open(&path);
        let Some(Identity::BuildId(id)) = image.identity() else { panic!("no build id in {}", path.display()) };
        assert_eq!(id.to_string(), "0123456789abcdef");
    }
}

#[test]
fn repeated_and_unordered_addresses_answer_in_input_order() {
    let binary = build("order", "gcc -O2 -g");
    let all = symbols(&binary);
    let start = |name: &str| all.iter().find(|s| s.name == name).expect("a symbol").start;
    let asked = [start("marked"), start("stop"), start("marked"), 3, start("main"), start("stop")];
    let resolution = resolve(&binary, &asked);
    let names: Vec<_> = (0..asked.len()).map(|i| plain(&resolution, i).last().map(|f| f.function.clone())).collect();
    let expected = [Some("marked"), Some("stop"), Some("marked"), None, Some("main"), Some("stop")];
    assert_eq!(names, expected.map(|name| name.map(str::to_owned)));
}

#[test]
fn what_is_no_image_is_refused() {
    for bytes in [&b""[..], b"x", b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF\x02\x01\x01", b"MZ"] {
        assert!(Image::open(std::sync::Arc::new(bytes.to_vec()), &Nowhere).is_err(), "{bytes:?}");
    }
}

#[test]
fn cancelling_ends_the_look_up() {
    struct Stop;
    impl heatline_profile::Monitor for Stop {
        fn progress(&self, _done: u64, _of: u64) -> Result<(), heatline_profile::Cancelled> {
            Err(heatline_profile::Cancelled)
        }
    }
    let binary = build("cancel", "gcc -O2 -g");
    let image = Image::open(Disk::open(&binary), &Nowhere).expect("it opens");
    let main = Svma(symbols(&binary).iter().find(|s| s.name == "main").expect("main").start);
    assert!(image.resolve(&[main], &Stop).is_err());
    assert!(image.resolve(&[main], &Silent).is_ok());
}
