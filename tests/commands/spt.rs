//! SPT files over PE images and PDBs that clang and lld make here: costs against llvm-symbolizer, identities, weights.

use super::lab::{check_compared, heatline, report};
use heatline_profile::PdbId;
use heatline_readers::spt::{Description, Elements, Op, ProgramData, RecordData, SegmentData, write};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const HEADER: &str = "#pragma once
static inline __attribute__((always_inline)) int twice(int n) {
    int sum = n;
    for (int i = 0; i < (n & 7); i++)
        sum += i ^ n;
    return sum * 2;
}
int scale(int width, int factor);
";
const MAIN: &str = "#include \"twice.h\"
volatile int input = 5;
__attribute__((noinline)) int shrink(int n) {
    return n < 2 ? input : scale(n / 2, 3) + twice(n);
}
extern \"C\" int start() {
    int sum = 0;
    for (int i = 0; i < 10; i++)
        sum += shrink(i) + twice(input);
    return sum;
}
";
const SCALE: &str = "#include \"twice.h\"
__attribute__((noinline)) int scale(int width, int factor) {
    int area = width;
    while (factor-- > 0)
        area += twice(area) >> 1;
    return area;
}
";

/// A folder with `start.exe`, `start.pdb` and the sources, which are recorded below `C:\lab`.
pub(super) struct Fixture {
    folder: TempDir,
    pub(super) id: PdbId,
    /// Where the code starts and how long it is.
    code: (u32, u32),
}

impl Fixture {
    pub(super) fn new(machine: &str) -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        for (name, text) in [("twice.h", HEADER), ("start.cpp", MAIN), ("scale.cpp", SCALE)] {
            std::fs::write(path.join(name), text).expect("a source");
        }
        let map = format!("-fdebug-prefix-map={}=C:\\lab", path.display());
        for source in ["start", "scale"] {
            let target = format!("--target={machine}-pc-windows-msvc");
            let names = [format!("{source}.cpp"), "-o".into(), format!("{source}.obj")];
            let flags = ["-g", "-gcodeview", "-O2", "-ffreestanding", "-fdebug-compilation-dir=C:\\lab", "-c"];
            run(path, Command::new("clang-19").arg(target).arg(&map).args(flags).args(names));
        }
        let link = ["/debug", "/nodefaultlib", "/entry:start", "/subsystem:console", "/pdbaltpath:C:\\build\\%_PDB%"];
        run(path, Command::new("lld-link-19").args(link).args(["start.obj", "scale.obj"]));
        let sections = run(path, Command::new("llvm-readobj-19").args(["--sections", "start.exe"]));
        let number = |name: &str| {
            let text = sections.split(name).nth(1).and_then(|rest| rest.split_whitespace().next()).expect(name);
            u32::from_str_radix(text.trim_start_matches("0x"), 16).expect("a number")
        };
        let code = (number("VirtualAddress:"), number("VirtualSize:"));
        let id = identity(path);
        Fixture { folder, id, code }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes an SPT file of these records over the program under this identity.
    fn spt(&self, name: &str, id: PdbId, records: Vec<RecordData>) -> PathBuf {
        self.spt_of("start.exe", name, id, records)
    }

    fn spt_of(&self, program: &str, name: &str, id: PdbId, records: Vec<RecordData>) -> PathBuf {
        let programs = vec![ProgramData { id, name: program.into() }];
        let segments = vec![SegmentData { program: 0, records }];
        let mut file = Vec::new();
        write(&Description { programs, segments, ..Description::default() }, &mut file).expect("a small file");
        let path = self.path(name);
        std::fs::write(&path, file).expect("a file");
        path
    }

    /// Samples all over the code: address and hits. None is where a function starts: of two rows at one address, as
    /// they may be there, llvm takes the one that covers nothing.
    fn samples(&self) -> Vec<(u32, u64)> {
        (1..self.code.1).step_by(4).map(|offset| (self.code.0 + offset, u64::from(offset % 7 + 1))).collect()
    }

    pub(super) fn sampled(&self, name: &str, id: PdbId) -> PathBuf {
        self.sampled_as(name, "start.exe", id)
    }

    /// Samples of the program under another name.
    pub(super) fn sampled_as(&self, name: &str, program: &str, id: PdbId) -> PathBuf {
        std::fs::copy(self.path("start.exe"), self.path("copy.exe")).expect("a copy");
        std::fs::rename(self.path("copy.exe"), self.path(program)).expect("a new name");
        let record = |(rva, hits)| RecordData { hits, elements: Elements::Samples(Op::EtwInstr, vec![rva]) };
        self.spt_of(program, name, id, self.samples().into_iter().map(record).collect())
    }

    /// What llvm-symbolizer says of an address: function, file and line of the innermost frame, if it has a line.
    fn innermost(&self, rvas: &[u32]) -> Vec<Option<(String, u64)>> {
        let mut command = Command::new("llvm-symbolizer-19");
        command.args(["--obj=start.exe", "--relative-address", "--output-style=JSON"]);
        command.args(rvas.iter().map(|rva| format!("{rva:#x}")));
        let answers: Vec<Value> = serde_json::from_str(&run(self.folder.path(), &mut command)).expect("JSON");
        let place = |answer: &Value| {
            let frame = &answer["Symbol"][0];
            let line = frame["Line"].as_u64().filter(|line| *line > 0)?;
            Some((frame["FileName"].as_str()?.to_owned(), line))
        };
        answers.iter().map(place).collect()
    }
}

fn run(folder: &Path, command: &mut Command) -> String {
    let output = command.current_dir(folder).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// GUID and age from the bytes behind `RSDS` in the image.
fn identity(folder: &Path) -> PdbId {
    let image = std::fs::read(folder.join("start.exe")).expect("an image");
    let at = image.windows(4).position(|bytes| bytes == b"RSDS").expect("a CodeView record") + 4;
    let guid = image[at..at + 16].try_into().expect("16 bytes");
    PdbId { guid, age: u32::from_le_bytes(image[at + 16..at + 20].try_into().expect("4 bytes")) }
}

/// The exclusive weights of the lines that a report has.
fn by_line(report: &Value) -> BTreeMap<(String, u64), u64> {
    let rows = report["rows"].as_array().expect("rows");
    let line = |row: &Value| {
        let place = (row["file"].as_str()?.to_owned(), row["line"].as_u64()?);
        Some((place, row["exclusive"]["weight"].as_u64().filter(|weight| *weight > 0)?))
    };
    rows.iter().filter_map(line).collect()
}

#[track_caller]
fn check_lines(machine: &str) {
    let fixture = Fixture::new(machine);
    let samples = fixture.samples();
    let rvas: Vec<u32> = samples.iter().map(|sample| sample.0).collect();
    let mut expected = BTreeMap::new();
    for (place, (_, hits)) in fixture.innermost(&rvas).into_iter().zip(samples) {
        if let Some(place) = place {
            *expected.entry(place).or_insert(0) += hits;
        }
    }
    let profile = fixture.sampled("a.spt", fixture.id);
    let report = report(&profile, &["--by", "line"]);
    assert_eq!(by_line(&report), expected);
    assert_eq!(report["metric"], "spt:etw-instr");
}

#[test]
fn lines_of_x64_have_the_weights_that_llvm_symbolizer_gives_them() {
    check_lines("x86_64");
}

#[test]
fn lines_of_arm64_have_the_weights_that_llvm_symbolizer_gives_them() {
    check_lines("aarch64");
}

#[test]
fn a_file_named_twice_counts_twice() {
    let fixture = Fixture::new("x86_64");
    let profile = fixture.sampled("a.spt", fixture.id);
    let (once, twice) = (report(&profile, &[]), report(&profile, &["a.spt"]));
    let total = |report: &Value| report["metrics"][0]["total"].as_u64().expect("a total");
    assert_eq!(total(&twice), 2 * total(&once));
}

#[test]
fn a_pdb_alone_or_in_a_store_is_enough() {
    let fixture = Fixture::new("x86_64");
    let profile = fixture.sampled("a.spt", fixture.id);
    let whole = by_line(&report(&profile, &["--by", "line"]));
    std::fs::remove_file(fixture.path("start.exe")).expect("it was there");
    assert_eq!(by_line(&report(&profile, &["--by", "line"])), whole);

    let store = fixture.path("store").join("start.pdb").join(fixture.id.store_key());
    std::fs::create_dir_all(&store).expect("a folder");
    std::fs::rename(fixture.path("start.pdb"), store.join("start.pdb")).expect("it was there");
    assert!(by_line(&report(&profile, &["--by", "line"])).is_empty());
    let path = format!("srv*{}", fixture.path("store").display());
    assert_eq!(by_line(&report(&profile, &["--by", "line", "--symbol-path", &path])), whole);
}

/// No line is shown, and the reason is told.
#[track_caller]
fn check_not_believed(fixture: &Fixture, id: PdbId, reason: &str) {
    let profile = fixture.sampled("other.spt", id);
    let report = report(&profile, &["--by", "line"]);
    assert!(by_line(&report).is_empty());
    let told = report["coverage"]["by_module"][0]["reason"].as_str().expect("a reason");
    assert!(told.contains(reason), "{told}");
}

#[test]
fn binaries_of_another_build_are_not_believed() {
    let fixture = Fixture::new("x86_64");
    let other_age = PdbId { age: fixture.id.age + 1, ..fixture.id };
    check_not_believed(&fixture, other_age, &format!("expected {other_age}, found {}", fixture.id));
    let other_build = PdbId { guid: [7; 16], ..fixture.id };
    check_not_believed(&fixture, other_build, &format!("expected {other_build}, found {}", fixture.id));
    check_not_believed(&fixture, PdbId { guid: [0; 16], age: 1 }, "no identity");
}

#[test]
fn stacks_are_turned_round_where_the_code_shows_it() {
    let fixture = Fixture::new("x86_64");
    let folder = fixture.folder.path();
    let text = run(folder, Command::new("llvm-objdump-19").args(["-d", "--no-show-raw-insn", "start.exe"]));
    let instruction = |line: &str| {
        let (address, rest) = line.trim().split_once(':')?;
        Some((u64::from_str_radix(address, 16).ok()?, rest.trim().starts_with("call")))
    };
    let instructions: Vec<(u64, bool)> = text.lines().filter_map(instruction).collect();
    let base = instructions[0].0 - u64::from(fixture.code.0);
    let behind_call = instructions.windows(2).find(|pair| pair[0].1).expect("a call")[1].0 - base;
    let leaf = fixture.code.0;
    let stack = |frames| vec![RecordData { hits: 3, elements: Elements::Stack(frames) }];
    let leaf_first = fixture.spt("leaf.spt", fixture.id, stack(vec![leaf, behind_call as u32]));
    let root_first = fixture.spt("root.spt", fixture.id, stack(vec![behind_call as u32, leaf]));
    let rows = |profile| report(profile, &["--by", "line"])["rows"].clone();
    assert_eq!(rows(&leaf_first), rows(&root_first));
    assert!(!report(&root_first, &[])["problems"].to_string().contains("stack-order"));
}

/// Every call of a number in the code: where it is, and where it goes. Also what lies behind it.
fn direct_calls(fixture: &Fixture) -> Vec<(u32, u32, u32)> {
    let text =
        run(fixture.folder.path(), Command::new("llvm-objdump-19").args(["-d", "--no-show-raw-insn", "start.exe"]));
    let instruction = |line: &str| {
        let (address, rest) = line.trim().split_once(':')?;
        let mut words = rest.split_whitespace();
        let is_call = words.next().is_some_and(|mnemonic| mnemonic.starts_with("call"));
        let target = words.next().filter(|_| is_call).and_then(|target| target.strip_prefix("0x"));
        let target = target.and_then(|target| u64::from_str_radix(target, 16).ok());
        Some((u64::from_str_radix(address, 16).ok()?, target))
    };
    let instructions: Vec<(u64, Option<u64>)> = text.lines().filter_map(instruction).collect();
    let rva = |address: u64| (address - instructions[0].0) as u32 + fixture.code.0;
    let call = |pair: &[(u64, Option<u64>)]| Some((rva(pair[0].0), rva(pair[0].1?), rva(pair[1].0)));
    instructions.windows(2).filter_map(call).collect()
}

/// What llvm-symbolizer calls the innermost functions at addresses.
fn functions_at(fixture: &Fixture, rvas: &[u32]) -> Vec<String> {
    let mut command = Command::new("llvm-symbolizer-19");
    command.args(["--obj=start.exe", "--relative-address", "--output-style=JSON"]);
    command.args(rvas.iter().map(|rva| format!("{rva:#x}")));
    let answers: Vec<Value> = serde_json::from_str(&run(fixture.folder.path(), &mut command)).expect("JSON");
    answers.iter().map(|answer| answer["Symbol"][0]["FunctionName"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn taken_branches_to_functions_are_calls_and_their_returns_are_none() {
    let fixture = Fixture::new("x86_64");
    let calls = direct_calls(&fixture);
    assert!(calls.len() >= 2, "{calls:x?}");
    let callers = functions_at(&fixture, &calls.iter().map(|call| call.0).collect::<Vec<_>>());
    let callees = functions_at(&fixture, &calls.iter().map(|call| call.1).collect::<Vec<_>>());
    let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut records = Vec::new();
    for (hits, ((from, to, behind), ends)) in (3..).zip(calls.iter().zip(callers.into_iter().zip(callees))) {
        *expected.entry(ends).or_default() += hits;
        records.push(RecordData { hits, elements: Elements::Arcs(vec![(*from, *to)]) });
        // Back from somewhere in the function that was called.
        records.push(RecordData { hits: 100, elements: Elements::Arcs(vec![(to + 4, *behind)]) });
    }
    let profile = fixture.spt("branches.spt", fixture.id, records);
    let report = report(&profile, &["--calls"]);
    assert_eq!((&report["metric"], &report["call_basis"]), (&"spt:lbr-taken".into(), &"branches".into()));
    let mut found: BTreeMap<(String, String), u64> = BTreeMap::new();
    for row in report["rows"].as_array().expect("rows") {
        // Both tools leave out parameters where the linkage name has none, but not for the same functions.
        let name = |row: &Value| row["function"].as_str().expect("a name").trim_end_matches("()").to_owned();
        for call in row["callees"].as_array().expect("callees") {
            found.insert((name(row), name(call)), call["cost"]["samples"].as_u64().expect("a count"));
        }
    }
    assert_eq!(found, expected);
    check_compared(&profile);
}

#[test]
fn what_an_spt_file_cannot_tell_is_an_error_that_says_so() {
    let fixture = Fixture::new("x86_64");
    fixture.sampled("a.spt", fixture.id);
    for (option, value) in [("--time", "0,1"), ("--cpu", "0"), ("--tid", "1")] {
        let output = heatline(fixture.folder.path(), &["report", "a.spt", option, value]);
        assert_eq!(output.status.code(), Some(2), "{option}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("spt"), "{option}: {output:?}");
    }
}
