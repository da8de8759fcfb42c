//! Frozen profiles: what comes back, and what is refused.

mod hostile;

use heatline_profile::{
    AddressSpace, BranchArc, BuildId, CallRow, CallStats, CallTable, Checksum, CodeAddress, CodePlace, Distribution,
    Event, EventId, FileOffset, Identity, Module, ModuleAddress, ModuleId, ModuleKind, PdbId, Profile, ProfileKind,
    Ratio, RecordedFile, RecordedFileId, RecordedFrame, RecordedFunction, RecordedFunctionId, SampleFold, Sampling,
    Silent, SpeRecording, SpeRow, SpeStats, SpeTable, StackId, StackNode, Symbolization, Tally, Thread, ThreadId, Unit,
    Weight,
};
use heatline_readers::{Input, ReadError, ReadOptions, frozen};
use std::io::Cursor;
use std::num::NonZeroU32;

/// A profile with something in every field.
fn profile() -> Profile {
    let mut profile = Profile::new(ProfileKind::PerfData);
    profile.events.push(Event::new("cpu-clock:u", Unit::Nanoseconds));
    profile.events.push(Event {
        sampling: Some(Sampling::Frequency(4000)),
        precise: true,
        has_stacks: true,
        exclusive: false,
        ..Event::new("spe:records", Unit::Records)
    });
    let build_id = Identity::BuildId(BuildId((0..20).collect()));
    let pdb = Identity::Pdb(PdbId { guid: *b"0123456789abcdef", age: 7 });
    for (path, kind, identity, space) in [
        ("/usr/bin/app", ModuleKind::Binary, Some(build_id), AddressSpace::FileOffset),
        ("C:\\größe.exe", ModuleKind::Binary, Some(pdb), AddressSpace::Rva),
        ("[kernel.kallsyms]", ModuleKind::Kernel, None, AddressSpace::Avma),
    ] {
        profile.modules.push(Module { path: path.into(), kind, identity, space });
    }
    profile.threads.push(Thread { pid: -1, tid: 4, comm: "worker".into() });
    let mut node = |parent: Option<StackId>, module, address| {
        profile.stacks.intern(StackNode { parent, module: ModuleId(module), address })
    };
    let root = node(None, 0, CodeAddress::AdjustedReturnAddress(ModuleAddress(0x1200)));
    let middle = node(Some(root), 1, CodeAddress::ReturnAddress(ModuleAddress(0x11)));
    let leaf = node(Some(middle), 0, CodeAddress::Ip(ModuleAddress(0x1100)));
    let kernel = node(None, 2, CodeAddress::Ip(ModuleAddress(u64::MAX - 8)));
    profile.stacks.seal();
    let mut fold = SampleFold::new();
    fold.add(leaf, EventId(0), Some(ThreadId(0)), Tally::one(Weight(1_000_000)));
    fold.add(leaf, EventId(0), Some(ThreadId(0)), Tally::one(Weight(3)));
    fold.add(kernel, EventId(1), None, Tally::repeated(Weight(5), 4));
    fold.add(middle, EventId(0), None, Tally::one(Weight(u64::MAX - 2_000_000)));
    profile.rows = fold.into_rows();
    let place = |module, address| CodePlace { module: ModuleId(module), address: ModuleAddress(address) };
    profile.arcs.push(BranchArc { event: EventId(0), from: place(0, 9), to: place(1, 0), taken: Weight(12) });
    let stats = SpeStats {
        records: 3,
        total_latency: Distribution::new(vec![(0, 1), (40, 2), (65535, 1)]),
        l1d_miss: Ratio { count: 1, of: 3 },
        sources: [1, 2, 3, 4, 5, 6, 7, 8],
        snoops: [9, 8, 7, 6, 5],
        ..SpeStats::default()
    };
    let recording = SpeRecording { settings: vec!["loads only".into()], bad_bytes: 4, ..SpeRecording::default() };
    profile.spe = Some(SpeTable {
        origin: heatline_profile::SpeOrigin::Memory,
        rows: vec![SpeRow { stack: leaf, thread: Some(ThreadId(0)), stats }],
        recording,
    });
    let mut stats = CallStats::default();
    [5, 9].into_iter().for_each(|duration| stats.add_call(duration));
    profile.calls = Some(CallTable { rows: vec![CallRow { stack: leaf, thread: Some(ThreadId(0)), stats }] });
    profile.recording.duration_ns = Some(77);
    profile.recording.command_line = vec!["perf".into(), "record".into()];
    profile.problems.add("truncated", 3, Some(FileOffset(99)), "the file ends early");
    profile
}

fn symbolization() -> Symbolization {
    let mut all = Symbolization::default();
    let file = |path: &str, checksum, text: Option<&str>| RecordedFile {
        path: path.into(),
        checksum,
        text: text.map(Into::into),
    };
    all.files.push(file("/src/main.c", Some(Checksum::Md5([7; 16])), Some("int main() { return 0; }\n")));
    all.files.push(file("../outside/..", Some(Checksum::Sha1([8; 20])), Some("größer\n")));
    all.files.push(file("C:\\a\\b.h", Some(Checksum::Sha256([9; 32])), None));
    for (name, linkage_name, file) in [("f(int)", Some("_Z1fi"), Some(0)), ("main", None, None)] {
        all.functions.push(RecordedFunction {
            name: name.into(),
            linkage_name: linkage_name.map(Into::into),
            file: file.map(RecordedFileId),
            line: NonZeroU32::new(3),
        });
    }
    let frame = |function, file: Option<u32>, inlined| RecordedFrame {
        function: Some(RecordedFunctionId(function)),
        file: file.map(RecordedFileId),
        line: file.and_then(|file| NonZeroU32::new(file + 10)),
        inlined,
    };
    let module = all.module_mut(ModuleId(0));
    let two = module.add_chain([frame(0, Some(1), true), frame(1, Some(0), false)]);
    let one = module.add_chain([frame(1, None, false)]);
    module.add_address(ModuleAddress(0x1200), one);
    module.add_address(ModuleAddress(0x1100), two);
    module.sort();
    all.module_mut(ModuleId(2)).reason = Some("kernel code".into());
    all.module_mut(ModuleId(2)).add_chain([]);
    all
}

fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    heatline_readers::read(Input::File(&mut Cursor::new(bytes)), &ReadOptions::default(), &Silent)
}

#[test]
fn everything_comes_back() {
    let (profile, symbolization) = (profile(), symbolization());
    let bytes = frozen::freeze(&profile, &symbolization).unwrap();
    let mut profile = profile;
    profile.recording.frozen_from = Some(profile.kind);
    let expected = Profile { kind: ProfileKind::Heatline, symbolization: Some(symbolization.into()), ..profile };
    let expected = format!("{expected:#?}");
    assert_eq!(format!("{:#?}", read(&bytes).unwrap()), expected);
    let stream = Input::Stream(&mut bytes.as_slice());
    let through_a_pipe = heatline_readers::read(stream, &ReadOptions::default(), &Silent).unwrap();
    assert_eq!(format!("{through_a_pipe:#?}"), expected);
}

#[test]
fn the_same_profile_gives_the_same_bytes_and_one_frozen_again_the_same_tables() {
    let bytes = frozen::freeze(&profile(), &symbolization()).unwrap();
    assert_eq!(bytes, frozen::freeze(&profile(), &symbolization()).unwrap());
    let again = read(&bytes).unwrap();
    let again = frozen::freeze(&again, again.symbolization.as_ref().unwrap()).unwrap();
    assert_eq!(hostile::members(&bytes)[1..], hostile::members(&again)[1..]);
}

#[test]
fn the_manifest_tells_other_programs_what_is_inside() {
    let bytes = frozen::freeze(&profile(), &symbolization()).unwrap();
    let members = hostile::members(&bytes);
    let names: Vec<_> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["heatline.json", "tables", "profile.pb.gz", "sources/0-main.c", "sources/1-.."]);
    let manifest: serde_json::Value = serde_json::from_slice(&members[0].1).unwrap();
    assert_eq!(manifest["profile"]["kind"], "perf.data");
    assert_eq!(manifest["modules"][0]["build_id"], "000102030405060708090a0b0c0d0e0f10111213");
    // From `printf 'int main() { return 0; }\n' | sha256sum`.
    let sum = "deac66ccb79f6d31c0fa7d358de48e083c15c02ff50ec1ebd4b64314b9e6e196";
    assert_eq!(manifest["sources"][0]["sha256"], sum);
}
