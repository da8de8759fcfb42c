//! The worked examples of the format, byte by byte.

use crate::{bytes, costs, list, problems, read_bytes, with_prefix};
use expect_test::expect;
use heatline_profile::{EventId, Identity, Silent};
use heatline_readers::spt::{self, ConvertMode, LengthReading, Signature};
use heatline_readers::{Input, ReadOptions};
use std::io::Cursor;

const E1: &str = "
    81 00 00 00 48 00 00 00  01 01 00 10 00 00  82 00 02 00 00 00 00 00 00 00  41 02 00 10 00 00 10 10 00 00
    82 00 09 00 00 00 00 00 00 00  10 02 10 10 00 00 25 10 00 00 00 10 00 00 30 10 00 00
    42 03 04 10 00 00 2a 10 00 00 55 10 00 00";

#[test]
fn e1_every_kind_of_record() {
    let file = with_prefix(E1);
    assert_eq!(file.len(), 172);
    let (listing, summary) = list(&file);
    assert_eq!(summary.reading, LengthReading::R1);
    assert!(!summary.assumed && !summary.truncated);
    assert_eq!(
        listing.records,
        [
            "#0 UNHALT_CYCLE x1 0x1000",
            "#0 ETW_INSTR x3 0x1000 0x1010",
            "#0 LBR x10 0x1025->0x1010 0x1030->0x1000",
            "#0 ETW_CALLSTACK x1 0x1004 0x102a 0x1055"
        ]
    );
    assert!(listing.damages.is_empty());
    let profile = read_bytes(&file).unwrap();
    expect![[r#"
        m.exe spt:unhalt-cycle 0x1000 x1
        m.exe spt:etw-instr 0x1000 x3
        m.exe spt:etw-instr 0x1010 x3
        m.exe spt:lbr-taken 0x1025 x10
        m.exe spt:lbr-taken 0x1030 x10
        m.exe spt:stacks 0x1004<0x102a<0x1055 x1
        m.exe arc 0x1025->0x1010 x10
        m.exe arc 0x1030->0x1000 x10
    "#]]
    .assert_eq(&costs(&profile));
    let totals: Vec<_> = profile.totals().iter().map(|total| total.weight.0).collect();
    assert_eq!(totals, [1, 6, 20, 1]);
    let arcs: Vec<_> =
        spt::stack_arcs(&profile).iter().map(|a| (a.to.address.0, a.from.address.0, a.taken.0)).collect();
    assert_eq!(arcs, [(0x1004, 0x102a, 1), (0x102a, 0x1055, 1)]);
    assert_eq!(ConvertMode::of(&profile), ConvertMode::Lbr);
    let Some(Identity::Pdb(id)) = &profile.modules[0].identity else { panic!("no identity") };
    assert_eq!(id.to_string(), "{AD10FDA6-A0D8-B664-4C4C-44205044422E} age 1");
    assert_eq!(id.store_key(), "AD10FDA6A0D8B6644C4C44205044422E1");
}

#[track_caller]
fn check_repeats_and_readings(first: &str, second: &str, reading: LengthReading) {
    let file = with_prefix(&format!(
        "81 00 00 00 {first} 00 00 00 02 02 00 10 00 00 00 10 00 00 82 00 ff ff ff ff ff ff ff ff 03 01 00 20 00 00
         81 00 00 00 {second} 00 00 00 04 01 00 30 00 00"
    ));
    let profile = read_bytes(&file).unwrap();
    assert_eq!(list(&file).1.reading, reading);
    expect![[r#"
        m.exe spt:retire-instr 0x1000 x2
        m.exe spt:retire-br-instr 0x2000 x18446744073709551615
        m.exe spt:l1-icache-miss 0x3000 x1
    "#]]
    .assert_eq(&costs(&profile));
    let named = problems(&profile).contains(&format!("({})", reading.name()));
    assert_eq!(named, reading != LengthReading::R1, "a reading other than R1 is named");
    assert_eq!(ConvertMode::of(&profile), ConvertMode::Ip);
}

#[test]
fn e2_to_e4_hits_saturate_and_each_reading_is_recognised() {
    check_repeats_and_readings("1e", "0a", LengthReading::R1);
    check_repeats_and_readings("22", "0e", LengthReading::R2);
    check_repeats_and_readings("1a", "06", LengthReading::R3);
}

#[test]
fn e5_two_programs_under_the_other_signature() {
    let file = bytes(
        "53 50 54 3a 01 00 00 00 00 00 00 00 00 00 00 00 20 00 00 00 30 00 00 00 0c 00 10 00 02 00 02 00
         61 2e 64 6c 6c 00 62 2e 64 6c 6c 00 00 00 00 00
         a6 fd 10 ad d8 a0 64 b6 4c 4c 44 20 50 44 42 2e 01 00 00 00 00 00 00 00
         00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 2b 00 00 00 06 00 00 00
         81 00 01 00 0a 00 00 00 05 01 10 00 00 00  81 00 00 00 0a 00 00 00 05 01 20 00 00 00
         81 00 01 00 14 00 00 00 82 00 01 00 00 00 00 00 00 00 05 01 30 00 00 00",
    );
    assert_eq!(file.len(), 148);
    let (listing, summary) = list(&file);
    let preamble = listing.preamble.unwrap();
    assert_eq!(preamble.header.signature, Signature::Read);
    assert_eq!(summary.segments, 3);
    assert_eq!(preamble.programs[1].id.to_string(), "{03020100-0504-0706-0809-0A0B0C0D0E0F} age 43");
    expect![[r#"
        a.dll spt:l1-dcache-miss 0x20 x1
        b.dll spt:l1-dcache-miss 0x10 x1
        b.dll spt:l1-dcache-miss 0x30 x2
    "#]]
    .assert_eq(&costs(&read_bytes(&file).unwrap()));
}

#[test]
fn e6_an_unknown_opcode_costs_the_rest_of_its_segment_only() {
    let file =
        with_prefix("81 00 00 00 0e 00 00 00 01 01 00 10 00 00 77 02 01 02 81 00 00 00 0a 00 00 00 01 01 00 20 00 00");
    let profile = read_bytes(&file).unwrap();
    expect![[r#"
        m.exe spt:unhalt-cycle 0x1000 x1
        m.exe spt:unhalt-cycle 0x2000 x1
    "#]]
    .assert_eq(&costs(&profile));
    expect![[r#"
        unknown-opcode x1: opcode 0x77 at 0x6e, 4 bytes skipped (segment 0)
    "#]]
    .assert_eq(&problems(&profile));
}

#[test]
fn e7_a_cut_file_gives_what_came_before_the_cut() {
    let file = with_prefix("81 00 00 00 14 00 00 00 01 01 00 10 00 00 01 02 04 10 00 00 08");
    assert_eq!(file.len(), 117);
    let (listing, summary) = list(&file);
    assert_eq!(listing.records, ["#0 UNHALT_CYCLE x1 0x1000"]);
    assert!(summary.truncated && summary.assumed);
    assert_eq!(summary.reading, LengthReading::R1);
    expect![[r#"
        length-assumed x1: no reading of the segment lengths reaches the end of the file; assumed R1
        truncated x1: the file ends 3 bytes before the segment at 0x60 does (segment 0)
        record-past-end x1: record UNHALT_CYCLE at 0x6e runs past the end of its segment, 7 bytes dropped (segment 0)
    "#]]
    .assert_eq(&problems(&read_bytes(&file).unwrap()));
}

#[test]
fn e9_a_repeat_is_for_the_next_record_alone() {
    let repeat = |count: u8| format!("82 00 {count:02x} 00 00 00 00 00 00 00 ");
    let sample = "41 01 00 10 00 00";

    let twice = format!("81 00 00 00 1e 00 00 00 {}{}{sample}", repeat(5), repeat(1));
    let (listing, _) = list(&with_prefix(&twice));
    assert_eq!(listing.records, ["#0 ETW_INSTR x2 0x1000"]);
    assert_eq!(listing.damages, ["repeat at 0x72 follows another repeat, the later counts (segment 0)"]);

    let alone = format!("81 00 00 00 0e 00 00 00 {}81 00 00 00 0a 00 00 00 {sample}", repeat(5));
    let (listing, _) = list(&with_prefix(&alone));
    assert_eq!(listing.records, ["#0 ETW_INSTR x1 0x1000"]);
    assert_eq!(listing.damages, ["repeat without a record before 0x72 (segment 0)"]);

    let used_up = format!("81 00 00 00 16 00 00 00 {}01 00 {sample}", repeat(5));
    let (listing, _) = list(&with_prefix(&used_up));
    assert_eq!(listing.records, ["#0 UNHALT_CYCLE x6", "#0 ETW_INSTR x1 0x1000"]);
    assert!(listing.damages.is_empty());
}

#[test]
fn e10_the_data_start_behind_the_whole_capacity() {
    let header =
        bytes("3a 54 50 53 01 00 00 00 00 00 00 00 00 00 00 00 20 00 00 00 20 40 00 00 06 00 00 40 01 00 00 01");
    let mut file = vec![0; 0x5820];
    file[..32].copy_from_slice(&header);
    file[32..38].copy_from_slice(b"m.exe\0");
    file.extend(bytes("81 00 00 00 0a 00 00 00 41 01 00 10 00 00"));
    let (listing, summary) = list(&file);
    assert_eq!(listing.preamble.unwrap().header.data_start(), 0x5820);
    assert_eq!((summary.segments, listing.records.len()), (1, 1));
}

#[test]
fn several_files_add_up_and_one_given_twice_counts_twice() {
    let one = with_prefix("81 00 00 00 0a 00 00 00 41 01 00 10 00 00");
    let other = with_prefix("81 00 00 00 0e 00 00 00 41 02 00 10 00 00 00 20 00 00");
    let mut files = [&one, &other, &other].map(Cursor::new);
    let inputs: Vec<_> = files.iter_mut().map(|file| Input::File(file)).collect();
    let profile = spt::read_all(inputs, &ReadOptions::default(), &Silent).unwrap();
    assert_eq!(profile.modules.len(), 1);
    assert_eq!(spt::first_event(&profile), Some(EventId(0)));
    expect![[r#"
        m.exe spt:etw-instr 0x1000 x3
        m.exe spt:etw-instr 0x2000 x2
    "#]]
    .assert_eq(&costs(&profile));
}

#[test]
fn a_pipe_gives_what_the_file_gives() {
    let file = with_prefix(E1);
    let piped = heatline_readers::read(Input::Stream(&mut file.as_slice()), &ReadOptions::default(), &Silent).unwrap();
    assert_eq!(costs(&piped), costs(&read_bytes(&file).unwrap()));
}

#[test]
fn filters_that_the_format_cannot_honour_are_refused() {
    let file = with_prefix(E1);
    let read = |options| spt::read(Input::File(&mut Cursor::new(&file)), &options, &Silent).unwrap_err().to_string();
    let by_time = read(ReadOptions { time: Some((0, 1).into()), ..ReadOptions::default() });
    assert_eq!(by_time, "an SPT profile holds no times, so it cannot be filtered by them");
    let by_cpu = read(ReadOptions { cpus: Some(vec![0]), ..ReadOptions::default() });
    assert_eq!(by_cpu, "an SPT profile holds no processors, so it cannot be filtered by them");
}
