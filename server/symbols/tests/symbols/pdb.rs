//! PE images and their PDBs, made by clang and lld, against llvm-symbolizer; and what is wrong with a PDB.

use crate::tools::{Disk, folder, run, write};
use heatline_profile::{AddressSpace, Identity, ModuleAddress, PdbId, Silent, Svma};
use heatline_symbols::{
    Checksum, DebugFile, IdentityMatch, Image, ImageKind, Locate, Nowhere, Reason, Resolution, Storage, SymbolError,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const SOURCES: [(&str, &str); 3] = [
    ("start.cpp", include_str!("sources/start.cpp")),
    ("scale.cpp", include_str!("sources/scale.cpp")),
    ("shapes.h", include_str!("sources/shapes.h")),
];

/// Finds a PDB in a folder by the last part of its path.
struct Beside {
    folder: PathBuf,
    allow_mismatch: bool,
}

impl Locate for Beside {
    fn locate(&self, wanted: &DebugFile<'_>) -> Option<Arc<dyn Storage>> {
        let DebugFile::Pdb { path, .. } = wanted else { return None };
        let path = self.folder.join(path.rsplit(['/', '\\']).next()?);
        path.exists().then(|| Disk::open(&path))
    }

    fn allow_mismatch(&self) -> bool {
        self.allow_mismatch
    }
}

/// Compiles and links `start.exe` and `start.pdb` in a folder of the test's own.
pub fn build(name: &str, target: &str, compile: &str, link: &str) -> PathBuf {
    let folder = folder(&format!("pdb-{name}"));
    for (name, text) in SOURCES {
        write(&folder, name, text);
    }
    for source in ["start", "scale"] {
        let map = format!("-fdebug-prefix-map={}=C:\\lab -fdebug-compilation-dir=C:\\lab", folder.display());
        run(
            &folder,
            &format!("clang-19 --target={target} -O2 -ffreestanding {map} {compile} -c {source}.cpp -o {source}.obj"),
        );
    }
    run(
        &folder,
        &format!("lld-link-19 /nodefaultlib /entry:start /subsystem:console /brepro {link} start.obj scale.obj"),
    );
    folder
}

pub const CODEVIEW: &str = "-g -gcodeview";
pub const TO_PDB: &str = "/debug /pdbaltpath:C:\\build\\%_PDB%";

pub fn open(folder: &Path) -> Image {
    let locate = Beside { folder: folder.to_owned(), allow_mismatch: false };
    Image::open(Disk::open(&folder.join("start.exe")), &locate).expect("it opens")
}

pub fn resolve(image: &Image, rvas: &[u64]) -> Resolution {
    let svma = |rva: &u64| image.to_svma(ModuleAddress(*rva), AddressSpace::Rva).expect("in the image");
    let addresses: Vec<Svma> = rvas.iter().map(svma).collect();
    image.resolve(&addresses, &Silent).expect("it resolves")
}

/// Function without parameters, file, line and column, innermost first.
pub type Frames = Vec<(String, String, u64, u64)>;

pub fn frames(resolution: &Resolution, i: usize) -> Frames {
    let frame = |frame: &heatline_symbols::Frame| {
        let name = frame.function.map(|id| &*resolution.function(id).name).unwrap_or_default();
        (
            name.split('(').next().unwrap_or_default().to_owned(),
            frame.file.map(|id| resolution.file(id).path.clone()).unwrap_or_default(),
            frame.line.map_or(0, |line| line.get().into()),
            frame.column.map_or(0, |column| column.get().into()),
        )
    };
    resolution.frames(i).iter().map(frame).collect()
}

/// What llvm-symbolizer says.
pub fn symbolizer(binary: &Path, rvas: &[u64]) -> Vec<Frames> {
    let mut command = Command::new("llvm-symbolizer-19");
    command.arg(format!("--obj={}", binary.display())).args(["--relative-address", "--output-style=JSON"]);
    command.args(["--inlines", "--functions=short"]).args(rvas.iter().map(|rva| format!("{rva:#x}")));
    let output = command.output().expect("llvm-symbolizer-19 is needed");
    let answers: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |value: &serde_json::Value| value.as_str().filter(|s| *s != "??").unwrap_or_default().to_owned();
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
    let frame = |frame: &serde_json::Value| {
        let column = number(&frame["Column"]);
        (text(&frame["FunctionName"]), text(&frame["FileName"]), number(&frame["Line"]), column)
    };
    let frames = |answer: &serde_json::Value| {
        let symbols = answer["Symbol"].as_array().cloned().unwrap_or_default();
        symbols.iter().map(frame).filter(|f| !f.0.is_empty() || !f.1.is_empty()).collect()
    };
    answers.iter().map(frames).collect()
}

/// The code of the image, as RVAs.
pub fn code(folder: &Path) -> Vec<u64> {
    let headers = run(folder, "llvm-readobj-19 --sections start.exe");
    let field = |name: &str| {
        let text = headers.split(name).nth(1).and_then(|rest| rest.split_whitespace().next()).expect(name);
        u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a number")
    };
    assert!(headers.find(".text").expect("code") < headers.find("Number: 2").unwrap_or(usize::MAX));
    let start = field("VirtualAddress:");
    (start..start + field("VirtualSize:")).collect()
}

#[track_caller]
fn check_against_symbolizer(folder: &Path) {
    let rvas = code(folder);
    let theirs_of = symbolizer(&folder.join("start.exe"), &rvas);
    let image = open(folder);
    let resolution = resolve(&image, &rvas);
    let (mut deepest, mut with_line) = (0, 0);
    for (i, theirs) in theirs_of.iter().enumerate() {
        let ours = frames(&resolution, i);
        deepest = deepest.max(ours.len());
        with_line += usize::from(ours.first().is_some_and(|frame| frame.2 > 0));
        // Of two rows at one address llvm takes the first, which covers nothing; a byte later it takes the other.
        if theirs_of.get(i + 1) != Some(&ours) {
            assert_eq!(&ours, theirs, "at {:#x}", rvas[i]);
        }
    }
    assert!(deepest >= 3, "calls were inlined into each other");
    assert!(with_line * 10 > rvas.len() * 8, "{with_line} of {} have a line", rvas.len());
}

#[test]
fn frames_of_x64_are_those_of_llvm() {
    check_against_symbolizer(&build("x64", "x86_64-pc-windows-msvc", CODEVIEW, TO_PDB));
}

#[test]
fn frames_of_arm64_are_those_of_llvm() {
    check_against_symbolizer(&build("arm64", "aarch64-pc-windows-msvc", CODEVIEW, TO_PDB));
}

#[test]
fn frames_of_x86_are_those_of_llvm() {
    check_against_symbolizer(&build("x86", "i686-pc-windows-msvc", CODEVIEW, &format!("{TO_PDB} /safeseh:no")));
}

/// The addresses behind calls, as the disassembler shows them.
fn behind_calls(folder: &Path) -> BTreeSet<u64> {
    let text = run(folder, "llvm-objdump-19 --disassemble --no-show-raw-insn start.exe");
    let instruction = |line: &str| {
        let (address, rest) = line.trim().split_once(':')?;
        Some((u64::from_str_radix(address, 16).ok()?, rest.trim().to_owned()))
    };
    let instructions: Vec<(u64, String)> = text.lines().filter_map(instruction).collect();
    let is_call = |text: &str| ["call", "bl ", "bl\t", "blr"].iter().any(|name| text.starts_with(name));
    let pairs = instructions.windows(2).filter(|pair| is_call(&pair[0].1));
    pairs.map(|pair| pair[1].0).collect()
}

#[test]
fn addresses_behind_calls_are_recognised() {
    for (name, target) in [("calls-x64", "x86_64"), ("calls-arm64", "aarch64"), ("calls-x86", "i686")] {
        let link = if target == "i686" { format!("{TO_PDB} /safeseh:no") } else { TO_PDB.to_owned() };
        let folder = build(name, &format!("{target}-pc-windows-msvc"), CODEVIEW, &link);
        let image = open(&folder);
        let expected = behind_calls(&folder);
        assert!(expected.len() > 1, "{expected:?}");
        for address in expected {
            assert_eq!(image.follows_call(Svma(address)), Some(true), "{target} {address:#x}");
        }
        let first = image.to_svma(ModuleAddress(code(&folder)[0]), AddressSpace::Rva).expect("code");
        assert_eq!(image.follows_call(first), Some(false));
        assert_eq!(image.follows_call(Svma(1)), None);
    }
}

#[test]
fn columns_are_read_where_they_are_recorded() {
    let folder = build("columns", "x86_64-pc-windows-msvc", &format!("{CODEVIEW} -gcolumn-info"), TO_PDB);
    let rvas = code(&folder);
    let resolution = resolve(&open(&folder), &rvas);
    let all = (0..rvas.len()).filter_map(|i| frames(&resolution, i).last().cloned());
    let columns: BTreeSet<u64> = all.filter(|frame| frame.0 == "lab::local" && frame.2 == 9).map(|f| f.3).collect();
    // `return input;` stands at 9, `input` at 16.
    assert_eq!(columns, BTreeSet::from([9, 16]));
}

#[test]
fn dwarf_in_a_pe_is_used_without_a_pdb() {
    let folder = build("dwarf", "x86_64-pc-windows-msvc", "-g -gdwarf-4", "/debug:dwarf");
    let rvas = code(&folder);
    let resolution = resolve(&open(&folder), &rvas);
    assert!((0..rvas.len()).any(|i| frames(&resolution, i).len() >= 3));
}

#[test]
fn names_have_parameters_and_functions_their_declarations() {
    let folder = build("names", "x86_64-pc-windows-msvc", CODEVIEW, TO_PDB);
    let rvas = code(&folder);
    let resolution = resolve(&open(&folder), &rvas);
    let mut functions: Vec<String> = resolution
        .functions
        .iter()
        .map(|f| {
            let file = f.file.map(|id| resolution.file(id).path.clone()).unwrap_or_default();
            format!("{} {file}:{}", f.name, f.line.map_or(0, |line| line.get()))
        })
        .collect();
    functions.sort();
    // The lines of the definitions in the sources.
    assert_eq!(
        functions,
        [
            r"Shape::area() const C:\lab\shapes.h:11",
            r"lab::local(int) C:\lab\start.cpp:7",
            r"scale(Shape const&, int) C:\lab\scale.cpp:3",
            r"start() C:\lab\start.cpp:14",
            r"twice(int) C:\lab\shapes.h:2",
        ]
    );
}

#[test]
fn source_files_carry_their_checksums() {
    for (hash, program, size) in [("md5", "md5sum", 16), ("sha1", "sha1sum", 20), ("sha256", "sha256sum", 32)] {
        let compile = format!("{CODEVIEW} -Xclang -gsrc-hash={hash}");
        let folder = build(hash, "x86_64-pc-windows-msvc", &compile, TO_PDB);
        let resolution = resolve(&open(&folder), &code(&folder));
        assert_eq!(resolution.files.len(), 3);
        for file in &resolution.files {
            let name = file.path.rsplit('\\').next().expect("a name");
            let sum = run(&folder, &format!("{program} {name}"));
            let found = match file.checksum.expect("a checksum") {
                Checksum::Md5(sum) => sum.to_vec(),
                Checksum::Sha1(sum) => sum.to_vec(),
                Checksum::Sha256(sum) => sum.to_vec(),
                other => panic!("an unknown checksum {other:?}"),
            };
            assert_eq!(found.len(), size);
            let found: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(sum.split_whitespace().next(), Some(found.as_str()), "{name}");
        }
    }
}

#[test]
fn a_pdb_alone_resolves_rvas() {
    let folder = build("alone", "x86_64-pc-windows-msvc", CODEVIEW, TO_PDB);
    let with_image = open(&folder);
    let alone = Image::open(Disk::open(&folder.join("start.pdb")), &Nowhere).expect("it opens");
    assert_eq!(alone.kind(), ImageKind::Pdb);
    assert_eq!(alone.identity(), with_image.identity());
    let rvas = code(&folder);
    let (ours, theirs) = (resolve(&alone, &rvas), resolve(&with_image, &rvas));
    for i in 0..rvas.len() {
        assert_eq!(frames(&ours, i), frames(&theirs, i));
    }
    assert_eq!(resolve(&alone, &[0x10]).unresolved(0), Some(&Reason::OutsideSections));
}

fn identity(image: &Image) -> PdbId {
    match image.identity() {
        Some(Identity::Pdb(id)) => *id,
        other => panic!("{other:?} is no identity of a PDB"),
    }
}

#[test]
fn identities_are_compared_by_guid_and_age() {
    let folder = build("identity", "x86_64-pc-windows-msvc", CODEVIEW, TO_PDB);
    let listed = run(&folder, "llvm-pdbutil-19 dump --summary start.pdb");
    let alone = Image::open(Disk::open(&folder.join("start.pdb")), &Nowhere).expect("it opens");
    for image in [&open(&folder), &alone] {
        let id = identity(image);
        assert!(listed.contains(&id.guid_text()), "{listed}");
        let fits = |id| image.fits(&Identity::Pdb(id)).expect("it can be read");
        assert_eq!(fits(id), IdentityMatch::Exact);
        assert_eq!(fits(PdbId { age: id.age + 1, ..id }), IdentityMatch::OtherAge);
        assert_eq!(fits(PdbId { guid: [1; 16], ..id }), IdentityMatch::OtherBuild);
    }
}

#[test]
fn a_pdb_of_another_build_is_not_believed() {
    let folder = build("mismatch", "x86_64-pc-windows-msvc", CODEVIEW, TO_PDB);
    let other = build("mismatch-other", "x86_64-pc-windows-msvc", &format!("{CODEVIEW} -DOTHER -fno-inline"), TO_PDB);
    std::fs::copy(other.join("start.pdb"), folder.join("start.pdb")).expect("a copy");
    let (own, found) = (identity(&open(&folder)), identity(&open(&other)));
    assert_ne!(own.guid, found.guid);

    let rva = code(&folder)[..1].to_vec();
    let resolution = resolve(&open(&folder), &rva);
    let reason = format!("C:\\build\\start.pdb is of another build: expected {own}, found {found}");
    assert_eq!(resolution.unresolved(0).map(ToString::to_string), Some(reason.clone()));
    assert!(resolution.frames(0).is_empty());
    let problems: Vec<_> = resolution.problems.iter().map(|p| (p.kind, p.message.clone())).collect();
    assert_eq!(problems, [("pdb-mismatch", reason)]);

    let locate = Beside { folder: folder.clone(), allow_mismatch: true };
    let image = Image::open(Disk::open(&folder.join("start.exe")), &locate).expect("it opens");
    let resolution = resolve(&image, &rva);
    assert!(!resolution.frames(0).is_empty());
    assert!(resolution.problems.iter().any(|p| p.kind == "pdb-mismatch" && p.message.contains("used all the same")));
}

#[test]
fn a_missing_pdb_is_named() {
    let folder = build("missing", "x86_64-pc-windows-msvc", CODEVIEW, TO_PDB);
    let image = Image::open(Disk::open(&folder.join("start.exe")), &Nowhere).expect("it opens");
    let resolution = resolve(&image, &code(&folder)[..1]);
    let reason = resolution.unresolved(0).map(ToString::to_string);
    assert_eq!(reason.as_deref(), Some("debug info is in C:\\build\\start.pdb, which was not found"));
}

#[track_caller]
fn check_refused(bytes: &[u8], message: &str) {
    let Err(error) = Image::open(Arc::new(bytes.to_vec()), &Nowhere) else { panic!("it should be refused") };
    assert!(matches!(error, SymbolError::UnsupportedPdb { .. }), "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn pdbs_of_other_kinds_are_refused_by_name() {
    check_refused(b"BSJB\x01\0\x01\0\0\0\0\0", "a portable .NET PDB (BSJB)");
    check_refused(b"Microsoft C/C++ program database 2.00\r\n\x1aJG\0\0", "a PDB of format 2.00");
}

#[test]
fn a_pdb_that_leaves_its_content_in_object_files_is_refused() {
    let folder = build("fastlink", "x86_64-pc-windows-msvc", CODEVIEW, TO_PDB);
    let mut pdb = std::fs::read(folder.join("start.pdb")).expect("a PDB");
    // The number that says how types are merged stands at the end of the information stream; the one that says that
    // there are none takes its place.
    let feature = 20_140_508_u32.to_le_bytes();
    let guid = identity(&open(&folder)).guid;
    let stream = pdb.windows(16).position(|window| window == guid).expect("the information stream");
    let at = pdb[stream..].windows(4).position(|window| window == feature).expect("a feature") + stream;
    pdb[at..at + 4].copy_from_slice(&0x494e_494d_u32.to_le_bytes());
    check_refused(&pdb, "/DEBUG:FASTLINK");
}

#[test]
fn public_symbols_name_what_has_nothing_else() {
    let folder = build("publics", "x86_64-pc-windows-msvc", "", TO_PDB);
    let rvas = code(&folder);
    let resolution = resolve(&open(&folder), &rvas);
    let named: BTreeSet<_> = (0..rvas.len())
        .flat_map(|i| resolution.frames(i).iter().filter_map(|frame| frame.function))
        .map(|id| resolution.function(id).name.clone())
        .collect();
    assert!(named.contains("start") && named.contains("scale(Shape const &, int)"), "{named:?}");
    assert_eq!(resolution.unresolved(0), Some(&Reason::NotCovered));
}

#[test]
fn code_that_the_linker_folded_is_told() {
    let folder = folder("pdb-folded");
    write(
        &folder,
        "folded.cpp",
        "__attribute__((noinline)) int one(int n) { return n * 77 + 5; }\n\
         __attribute__((noinline)) int two(int n) { return n * 77 + 5; }\n\
         volatile int sink;\n\
         extern \"C\" int start() { sink = one(sink); return two(sink); }\n",
    );
    run(&folder, &format!("clang-19 --target=x86_64-pc-windows-msvc -O1 {CODEVIEW} -ffunction-sections -c folded.cpp"));
    run(
        &folder,
        &format!("lld-link-19 /nodefaultlib /entry:start /subsystem:console /opt:icf {TO_PDB} folded.o /out:start.exe"),
    );
    let resolution = resolve(&open(&folder), &code(&folder));
    let problems: Vec<_> = resolution.problems.iter().map(|p| (p.kind, p.count, p.message.as_str())).collect();
    let [(kind, count, message)] = problems[..] else { panic!("{problems:?}") };
    assert_eq!((kind, count), ("folded-code", 1));
    assert!(message.contains("one(int)") && message.contains("two(int)"), "{message}");
}

#[test]
fn damage_never_brings_a_pdb_down() {
    let folder = build("damage", "x86_64-pc-windows-msvc", CODEVIEW, TO_PDB);
    let whole = std::fs::read(folder.join("start.pdb")).expect("a PDB");
    let addresses: Vec<Svma> = code(&folder).into_iter().step_by(7).map(Svma).collect();
    let mut random = crate::tools::Random(7);
    for round in 0..400 {
        let mut bytes = whole.clone();
        if round % 8 == 0 {
            bytes.truncate(random.next() as usize % bytes.len());
        }
        for _ in 0..1 + random.next() % 12 {
            let at = 32 + random.next() as usize % bytes.len().saturating_sub(40).max(1);
            let Some(place) = bytes.get_mut(at..at + 4) else { continue };
            match random.next() % 3 {
                0 => place[0] = random.next() as u8,
                1 => place.fill(0xff),
                _ => place.copy_from_slice(&(random.next() as u32).to_le_bytes()),
            }
        }
        if let Ok(image) = Image::open(Arc::new(bytes), &Nowhere) {
            image.resolve(&addresses, &Silent).expect("damage is no error");
        }
    }
}
