//! pprof files, encoded by protoc: what they become, and what is refused.
#![allow(clippy::disallowed_methods, reason = "tests run protoc, which reads and writes files")]

#[path = "../../../../tests/commands/protoc.rs"]
mod protoc;

use expect_test::{Expect, expect};
use heatline_profile::{
    AddressSpace, CodeAddress, Event, EventId, Identity, Module, ModuleAddress, ModuleId, ModuleKind, Profile,
    ProfileKind, RecordedFile, RecordedFileId, RecordedFrame, SampleRow, Silent, StackNode, Symbolization, Tally, Unit,
    Weight,
};
use heatline_readers::{Input, ReadError, ReadOptions};
use std::num::NonZeroU32;

fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    heatline_readers::read(Input::Stream(&mut &*bytes), &ReadOptions::default(), &Silent)
}

/// A profile as text: events, modules, and each row with its stack, innermost frame first.
fn text(profile: &Profile) -> String {
    let mut out = String::new();
    for (event, total) in profile.events.iter().zip(profile.totals()) {
        out += &format!("{} {} {}", event.name, total.weight.0, event.unit);
        out += &event.sampling.map(|sampling| format!(" {sampling:?}")).unwrap_or_default();
        out += if event.has_stacks { " stacks\n" } else { "\n" };
    }
    for module in &profile.modules {
        let identity = match &module.identity {
            Some(Identity::BuildId(id)) => id.to_string(),
            _ => "-".into(),
        };
        out += &format!("module {} {:?} {:?} {identity}\n", module.path, module.kind, module.space);
    }
    for row in &profile.rows {
        let thread = row.thread.map(|id| profile.thread(id));
        let thread = thread.map(|t| format!(" {}/{}/{}", t.pid, t.tid, t.comm)).unwrap_or_default();
        let frames: Vec<_> = profile.stacks.frames(row.stack).map(|node| frames(profile, &node)).collect();
        let (name, tally) = (&profile.event(row.event).name, row.tally);
        out += &format!("{name} {} in {}{thread}: {}\n", tally.weight.0, tally.samples, frames.join(" < "));
    }
    for problem in profile.problems.iter() {
        out += &format!("problem {} x{}\n", problem.kind, problem.count);
    }
    out
}

fn frames(profile: &Profile, node: &heatline_profile::StackNode) -> String {
    let all = profile.symbolization.as_ref().expect("a pprof file has one");
    let module = all.module(node.module);
    let chain = module.and_then(|module| Some(module.chain(module.find(node.address.lookup())?)));
    let Some(chain) = chain else { return format!("{:?}", node.address) };
    let frame = |frame: &heatline_profile::RecordedFrame| {
        let name = frame.function.map_or("?", |id| &*all.functions[id.0 as usize].name);
        let file = frame.file.map_or("?", |id| all.files[id.0 as usize].path.as_str());
        format!("{name} {file}:{}", frame.line.map_or(0, |line| line.get()))
    };
    chain.iter().map(frame).collect::<Vec<_>>().join(" in ")
}

/// Strings of the examples, by number.
const STRINGS: [&str; 20] = [
    "",
    "samples",
    "count",
    "cpu",
    "nanoseconds",
    "main.work",
    "main.main",
    "/src/main.go",
    "/bin/app",
    "deadbeef01",
    "pid",
    "thread",
    "worker",
    "main.helper",
    "seconds",
    "inuse_space",
    "bytes",
    "_ZN1a1bEi",
    "a::b(int)",
    "x/y",
];

fn encode(profile: &str) -> Vec<u8> {
    let strings: String = STRINGS.iter().map(|text| format!("string_table: \"{text}\"\n")).collect();
    protoc::encode(&format!("{profile}\n{strings}"))
}

#[track_caller]
fn check(profile: &str, expected: Expect) {
    expected.assert_eq(&text(&read(&encode(profile)).unwrap()));
}

/// As Go writes a profile of the processor: counts and times, the times shown first.
const GO: &str = "
    sample_type { type: 1 unit: 2 } sample_type { type: 3 unit: 4 }
    sample { location_id: [1, 2] value: [3, 30000000] }
    sample { location_id: [2] value: [1, 10000000] label { key: 10 num: 41 } label { key: 11 str: 12 } }
    mapping { id: 1 memory_start: 0x400000 memory_limit: 0x500000 filename: 8 build_id: 19 has_functions: true }
    location { id: 1 mapping_id: 1 address: 0x401234 line { function_id: 3 line: 7 } line { function_id: 1 line: 21 } }
    location { id: 2 mapping_id: 1 address: 0x402000 line { function_id: 2 line: 40 } }
    function { id: 1 name: 5 system_name: 5 filename: 7 start_line: 20 }
    function { id: 2 name: 6 system_name: 6 filename: 7 }
    function { id: 3 name: 13 filename: 7 }
    time_nanos: 1700000000000000000 duration_nanos: 2000000000 period_type { type: 3 unit: 4 } period: 10000000";

#[test]
fn a_profile_of_go_has_its_times_first_and_counts_its_samples() {
    check(
        GO,
        expect![[r#"
            cpu 40000000 ns Period(10000000) stacks
            samples 4 events stacks
            module /bin/app Binary FileOffset -
            samples 3 in 3: main.helper /src/main.go:7 in main.work /src/main.go:21 < main.main /src/main.go:40
            cpu 30000000 in 3: main.helper /src/main.go:7 in main.work /src/main.go:21 < main.main /src/main.go:40
            samples 1 in 1 41/-1/worker: main.main /src/main.go:40
            cpu 10000000 in 1 41/-1/worker: main.main /src/main.go:40
        "#]],
    );
    let profile = read(&encode(GO)).unwrap();
    assert_eq!((profile.samples(), profile.recording.duration_ns), (4, Some(2_000_000_000)));
}

#[test]
fn the_default_type_comes_first_and_units_are_made_ours() {
    check(
        "sample_type { type: 3 unit: 14 } sample_type { type: 15 unit: 16 } default_sample_type: 3
         sample { location_id: 1 value: [2, 4096] } location { id: 1 address: 1 line { function_id: 1 line: 1 } }
         function { id: 1 name: 5 }",
        expect![[r#"
            cpu 2000000000 ns
            inuse_space 4096 bytes
            module [unknown] Unmapped Avma -
            cpu 2000000000 in 1: main.work ?:1
            inuse_space 4096 in 1: main.work ?:1
        "#]],
    );
}

/// As eBPF agents write it: addresses only, to be looked up in the binary by its build id.
#[test]
fn locations_without_lines_have_addresses_in_their_file() {
    check(
        "sample_type { type: 1 unit: 2 } sample { location_id: [1, 2] value: 5 }
         mapping { id: 7 memory_start: 0x7f0000001000 memory_limit: 0x7f0000002000 file_offset: 0x1000 filename: 8 build_id: 9 }
         location { id: 1 mapping_id: 7 address: 0x7f0000001234 } location { id: 2 address: 0x55 }",
        expect![[r#"
            samples 5 events stacks
            module /bin/app Binary FileOffset deadbeef01
            module [unknown] Unmapped Avma -
            samples 5 in 5: Ip(ModuleAddress(0x1234)) < AdjustedReturnAddress(ModuleAddress(0x55))
        "#]],
    );
}

/// As recorders of interpreted code write it.
#[test]
fn locations_without_addresses_stay_apart() {
    check(
        "sample_type { type: 1 unit: 2 } sample { location_id: [1, 2] value: 1 } sample { location_id: [3] value: 2 }
         location { id: 1 line { function_id: 1 line: 3 } } location { id: 2 line { function_id: 2 line: 9 } }
         location { id: 3 line { function_id: 1 line: 3 } }
         function { id: 1 name: 5 filename: 7 } function { id: 2 name: 6 filename: 7 }",
        expect![[r#"
            samples 3 events stacks
            module [unknown] Unmapped Avma -
            samples 1 in 1: main.work /src/main.go:3 < main.main /src/main.go:9
            samples 2 in 2: main.work /src/main.go:3
        "#]],
    );
}

#[test]
fn frames_that_are_not_to_be_seen_go_with_all_they_called() {
    let of = |patterns: &str| format!("{GO} {patterns}");
    // 5 is main.work, into which main.helper is inlined.
    check(
        &of("drop_frames: 5"),
        expect![[r#"
            cpu 40000000 ns Period(10000000) stacks
            samples 4 events stacks
            module /bin/app Binary FileOffset -
            samples 3 in 3: main.main /src/main.go:40
            cpu 30000000 in 3: main.main /src/main.go:40
            samples 1 in 1 41/-1/worker: main.main /src/main.go:40
            cpu 10000000 in 1 41/-1/worker: main.main /src/main.go:40
        "#]],
    );
    let kept = read(&encode(&of("drop_frames: 5 keep_frames: 5"))).unwrap();
    assert_eq!(text(&kept), text(&read(&encode(GO)).unwrap()));
}

#[test]
fn records_that_name_what_is_not_there_are_left_out_and_told() {
    check(
        "sample_type { type: 1 unit: 2 } sample { location_id: 9 value: 1 } sample { location_id: 1 value: [1, 2] }
         sample { location_id: 1 value: -4 } sample { location_id: 1 value: 6 } sample { value: 1 }
         location { id: 1 mapping_id: 3 address: 16 line { function_id: 8 line: -1 } } function { id: 1 name: 99 }",
        expect![[r#"
            samples 7 events
            module [unknown] Unmapped Avma -
            module [no stack] Unmapped Avma -
            samples 6 in 6: ? ?:0
            samples 1 in 1: Ip(ModuleAddress(0x0))
            problem unknown-string x1
            problem unknown-mapping x1
            problem unknown-function x1
            problem unknown-location x1
            problem damaged-sample x1
            problem negative-value x1
        "#]],
    );
}

#[test]
fn damaged_files_are_read_or_refused_and_never_more() {
    let whole = encode(GO);
    let mut refused = 0;
    for length in 0..whole.len() {
        refused += usize::from(read(&whole[..length]).is_err());
    }
    assert!(refused > whole.len() / 2, "{refused} of {}", whole.len());
    let mut state = 3u64;
    let mut random = |end: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % end
    };
    for _ in 0..20_000 {
        let mut changed = whole.clone();
        for _ in 0..=random(4) {
            let at = random(changed.len());
            changed[at] = random(256) as u8;
        }
        if let Ok(profile) = read(&changed) {
            text(&profile);
        }
    }
}

/// The gzip of zeros, as `gzip` makes it of `head -c 64M /dev/zero`, is about 64 KB.
#[test]
fn damaged_and_exploding_gzip_is_refused() {
    let packed = protoc::gzip(&encode(GO));
    assert_eq!(text(&read(&packed).unwrap()), text(&read(&encode(GO)).unwrap()));
    for length in 20..packed.len() {
        let error = read(&packed[..length]).unwrap_err().to_string();
        assert!(error.contains("gzip") || error.contains("not a profile"), "{error}");
    }
    let mut bomb = encode(GO);
    bomb.resize(64 << 20, 0x0a);
    let message = read(&protoc::gzip(&bomb)).unwrap_err().to_string();
    assert!(message.contains("unpacks to more than"), "{message}");
}

#[test]
fn other_packed_files_are_no_profiles() {
    let message = read(&protoc::gzip(b"a text that was packed")).unwrap_err().to_string();
    assert!(message.contains("not a profile"), "{message}");
}

#[test]
fn sample_types_without_end_are_left_out_and_told() {
    let (types, values) = ("sample_type { type: 1 unit: 2 }\n".repeat(20_000), "value: 1 ".repeat(20_000));
    let sample = format!("sample {{ location_id: 1 {values} }} ");
    let profile = format!("{types} {} location {{ id: 1 address: 16 }}", sample.repeat(5));
    let profile = read(&encode(&profile)).unwrap();
    assert_eq!((profile.events.len(), profile.rows.len()), (256, 256));
    let problems: Vec<_> = profile.problems.iter().map(|problem| (problem.kind, problem.count)).collect();
    assert_eq!(problems, [("too-many-types", 19_744)]);
}

#[test]
fn sums_that_are_cut_off_are_told() {
    let sample = format!("sample {{ location_id: 1 value: {} }} ", i64::MAX);
    let of = |samples: usize| {
        let samples = sample.repeat(samples);
        read(&encode(&format!("sample_type {{ type: 1 unit: 2 }} {samples} location {{ id: 1 address: 16 }}"))).unwrap()
    };
    assert!(of(2).problems.is_empty());
    let problems = of(3).problems;
    assert_eq!(problems.iter().map(|problem| problem.kind).collect::<Vec<_>>(), ["sum-cut-off"]);
}

#[test]
fn a_profile_without_sample_types_is_called_one() {
    let bytes = encode(
        "sample { location_id: 1 value: 5 } mapping { id: 1 memory_limit: 4096 filename: 8 }
         location { id: 1 mapping_id: 1 address: 16 line { function_id: 1 line: 3 } }
         function { id: 1 name: 5 system_name: 5 filename: 7 }",
    );
    for bytes in [&protoc::gzip(&bytes), &bytes] {
        assert_eq!(read(bytes).unwrap_err().to_string(), "the pprof file has no sample types");
    }
}

/// As of assembler, whose lines debug information may know and whose functions not.
#[test]
fn lines_without_function_are_called_by_their_module() {
    let mut profile = Profile::new(ProfileKind::PerfData);
    profile.events.push(Event::new("cpu", Unit::Events));
    let mut symbolization = Symbolization::default();
    symbolization.files.push(RecordedFile { path: "memmove.S".into(), checksum: None, text: None });
    for (number, path) in (0..).zip(["/lib/libc.so.6", "[vdso]"]) {
        let (kind, space) = (ModuleKind::Binary, AddressSpace::Svma);
        profile.modules.push(Module { path: path.into(), kind, identity: None, space });
        let (module, address) = (ModuleId(number), ModuleAddress(0x10));
        let frame =
            RecordedFrame { function: None, file: Some(RecordedFileId(0)), line: NonZeroU32::new(373), inlined: false };
        let frames = symbolization.module_mut(module);
        let chain = frames.add_chain([frame]);
        frames.add_address(address, chain);
        let stack = profile.stacks.intern(StackNode { parent: None, module, address: CodeAddress::Ip(address) });
        let tally = Tally::one(Weight(1));
        profile.rows.push(SampleRow { stack, event: EventId(0), thread: None, tally });
    }
    let bytes = heatline_readers::pprof::write(&profile, &symbolization).expect("it is written");
    let read = read(&bytes).expect("it is read");
    let seen: Vec<String> =
        read.rows.iter().flat_map(|row| read.stacks.frames(row.stack)).map(|node| frames(&read, &node)).collect();
    assert_eq!(seen, ["[libc.so.6] memmove.S:373", "[vdso] memmove.S:373"]);
}

/// A chain of 12 000 callers with a sample in each has 72 006 000 frames; 2²⁶ fit.
#[test]
fn what_is_too_large_to_be_written_is_told() {
    let mut profile = Profile::new(ProfileKind::Spt);
    profile.events.push(Event::new("cpu", Unit::Events));
    let (path, kind, space) = ("app".into(), ModuleKind::Binary, AddressSpace::Rva);
    profile.modules.push(Module { path, kind, identity: None, space });
    let mut parent = None;
    for depth in 0..12_000 {
        let address = CodeAddress::Ip(ModuleAddress(depth));
        let stack = profile.stacks.intern(StackNode { parent, module: ModuleId(0), address });
        let tally = Tally::one(Weight(if depth == 0 { u64::MAX } else { 1 }));
        profile.rows.push(SampleRow { stack, event: EventId(0), thread: None, tally });
        parent = Some(stack);
    }
    let problems = heatline_readers::pprof::left_out(&profile);
    let problems: Vec<_> = problems.iter().map(|problem| (problem.kind, problem.count)).collect();
    // The deepest d for which d (d + 1) / 2 + (12000 - d) d is at most 2²⁶ is 8870.
    assert_eq!(problems, [("deep-stack", 12_000 - 8870), ("sum-cut-off", 1)]);
}
