//! Damaged files: what was read before the damage stays, and the damage is told.

use crate::{bytes, costs, list, list_with, problems, read_bytes, with_prefix};
use expect_test::{Expect, expect};
use heatline_profile::{Cancelled, Monitor, Silent};
use heatline_readers::spt::{LengthReading, Options, SptError};

#[track_caller]
fn check(data: &str, expected: Expect) {
    let (listing, summary) = list(&with_prefix(data));
    let mut text = listing.records.join("\n");
    listing.damages.iter().for_each(|damage| text += &format!("\n! {damage}"));
    text += if summary.truncated { "\ntruncated\n" } else { "\n" };
    expected.assert_eq(text.trim_start());
}

#[test]
fn an_empty_stream_is_an_empty_profile() {
    check("", expect![[""]]);
    let profile = read_bytes(&with_prefix("")).unwrap();
    assert!(profile.events.is_empty() && profile.rows.is_empty() && profile.problems.is_empty());
}

#[test]
fn a_stream_that_begins_with_something_else_is_not_read() {
    check(
        "01 01 00 10 00 00 81 00 00 00 0a 00 00 00 01 01 00 10 00 00",
        expect![[r#"
            ! the data at 0x60 begins with 0x01, expected 0x81; no record was read
        "#]],
    );
}

#[test]
fn zeros_are_padding_within_and_after_segments() {
    check(
        "81 00 00 00 0e 00 00 00 01 01 00 10 00 00 00 00 00 00 81 00 00 00 0a 00 00 00 01 01 00 20 00 00
         00 00 00 00 00 00 00 00 00 00 00 00",
        expect![[r#"
            #0 UNHALT_CYCLE x1 0x1000
            #0 UNHALT_CYCLE x1 0x2000
        "#]],
    );
    // A single zero is padding, too.
    check(
        "81 00 00 00 0b 00 00 00 01 01 00 10 00 00 00",
        expect![[r#"
            #0 UNHALT_CYCLE x1 0x1000
        "#]],
    );
    check(
        "81 00 00 00 0e 00 00 00 01 01 00 10 00 00 00 00 00 01",
        expect![[r#"
            #0 UNHALT_CYCLE x1 0x1000
            ! opcode 0x00 at 0x6e, 4 bytes skipped (segment 0)
        "#]],
    );
}

#[test]
fn trailing_bytes_are_told() {
    check(
        "81 00 00 00 0a 00 00 00 01 01 00 10 00 00 01 02 03",
        expect![[r#"
            #0 UNHALT_CYCLE x1 0x1000
            ! no reading of the segment lengths reaches the end of the file; assumed R1
            ! 3 bytes from 0x6e on are no segment and were not read (segment 0)
        "#]],
    );
    // The start of another segment.
    check(
        "81 00 00 00 0a 00 00 00 01 01 00 10 00 00 81 00 00",
        expect![[r#"
            #0 UNHALT_CYCLE x1 0x1000
            ! no reading of the segment lengths reaches the end of the file; assumed R1
            ! the file ends 3 bytes into the record at 0x6e that starts a segment (segment 0)
            truncated
        "#]],
    );
}

#[test]
fn a_record_that_runs_past_its_segment_is_dropped_whole() {
    check(
        "81 00 00 00 0a 00 00 00 01 02 00 10 00 00 81 00 00 00 0a 00 00 00 01 01 00 20 00 00",
        expect![[r#"
            #0 UNHALT_CYCLE x1 0x2000
            ! record UNHALT_CYCLE at 0x68 runs past the end of its segment, 6 bytes dropped (segment 0)
        "#]],
    );
    // The record that is dropped uses up the repeat before it.
    check(
        "81 00 00 00 14 00 00 00 82 00 01 00 00 00 00 00 00 00 01 02 00 10 00 00 81 00 00 00 0a 00 00 00 01 01 00 20 00 00",
        expect![[r#"
            #0 UNHALT_CYCLE x1 0x2000
            ! record UNHALT_CYCLE at 0x72 runs past the end of its segment, 6 bytes dropped (segment 0)
        "#]],
    );
}

#[test]
fn a_segment_that_starts_inside_another_one_is_read() {
    check(
        "81 00 00 00 18 00 00 00 01 01 00 10 00 00 81 00 00 00 0a 00 00 00 01 01 00 20 00 00",
        expect![[r#"
            #0 UNHALT_CYCLE x1 0x1000
            #0 UNHALT_CYCLE x1 0x2000
            ! a segment starts at 0x6e, inside another one (segment 0)
        "#]],
    );
}

#[test]
fn a_segment_shorter_than_its_own_start_ends_the_reading() {
    check(
        "81 00 00 00 0a 00 00 00 01 01 00 10 00 00 81 00 00 00 03 00 00 00 01 01 00 20 00 00",
        expect![[r#"
            #0 UNHALT_CYCLE x1 0x1000
            ! no reading of the segment lengths reaches the end of the file; assumed R1
            ! segment length 3 at 0x6e is too small (segment 0)
        "#]],
    );
}

#[test]
fn a_repeat_at_the_end_of_a_segment_is_lost() {
    check(
        "81 00 00 00 0e 00 00 00 82 00 01 00 00 00 00 00 00 00 81 00 00 00 0a 00 00 00 01 01 00 20 00 00",
        expect![[r#"
            #0 UNHALT_CYCLE x1 0x2000
            ! repeat without a record before 0x72 (segment 0)
        "#]],
    );
}

#[test]
fn hits_of_programs_that_are_not_in_the_table_are_kept() {
    let file = with_prefix("81 00 07 00 0a 00 00 00 01 01 00 10 00 00 81 00 00 00 0a 00 00 00 01 01 00 20 00 00");
    let profile = read_bytes(&file).unwrap();
    expect![[r#"
        m.exe spt:unhalt-cycle 0x2000 x1
        unknown program #7 spt:unhalt-cycle 0x1000 x1
    "#]]
    .assert_eq(&costs(&profile));
    assert_eq!(profile.modules[1].identity, None);
    expect![[r#"
        unknown-program x1: program id 7 at 0x60 is not in the table (segment 0)
    "#]]
    .assert_eq(&problems(&profile));
}

#[test]
fn ids_that_seem_to_be_counted_from_one_are_pointed_out() {
    let file = with_prefix("81 00 01 00 0a 00 00 00 01 01 00 10 00 00");
    assert!(problems(&read_bytes(&file).unwrap()).contains("one-based-ids x1: no segment is of program 0"));
    let file = with_prefix("81 00 02 00 0a 00 00 00 01 01 00 10 00 00");
    assert!(!problems(&read_bytes(&file).unwrap()).contains("one-based-ids"));
}

#[test]
fn equal_damages_are_counted_not_listed() {
    let segment = "81 00 00 00 06 00 00 00 77 00 ";
    let profile = read_bytes(&with_prefix(&segment.repeat(1000))).unwrap();
    expect![[r#"
        unknown-opcode x1000: opcode 0x77 at 0x68, 2 bytes skipped (segment 0); 1000 times, 2000 bytes in all
    "#]]
    .assert_eq(&problems(&profile));
}

#[test]
fn trailing_garbage_does_not_change_the_reading() {
    for (length, reading) in [("0a", LengthReading::R1), ("0e", LengthReading::R2), ("06", LengthReading::R3)] {
        let segment = format!("81 00 00 00 {length} 00 00 00 01 01 00 10 00 00 ");
        for tail in ["55 55 55 55 55 55 55 55 55", "81 00 00 00 ff 00 00 00 01 01 00 20 00 00"] {
            let (listing, summary) = list(&with_prefix(&format!("{}{tail}", segment.repeat(3))));
            assert_eq!((summary.reading, summary.assumed), (reading, true), "{tail}");
            assert_eq!(listing.records.iter().filter(|r| r.ends_with("0x1000")).count(), 3, "{tail}");
        }
    }
}

#[test]
fn a_reading_that_ends_exactly_beats_one_that_leaves_zeros() {
    // Under R1 two zeros are left over; under R3 the file ends exactly.
    let (_, summary) = list(&with_prefix("81 00 00 00 0a 00 00 00 01 01 00 10 00 00 00 00 00 00"));
    assert_eq!((summary.reading, summary.assumed), (LengthReading::R3, false));
}

fn edit(file: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    file[at..at + new.len()].copy_from_slice(new);
    file
}

#[track_caller]
fn check_error(file: &[u8], message: &str) {
    assert_eq!(read_bytes(file).unwrap_err().to_string(), message);
}

#[test]
fn what_makes_a_file_useless_is_an_error() {
    let file = with_prefix("81 00 00 00 0a 00 00 00 01 01 00 10 00 00");
    check_error(&file[..31], "not an SPT file: expected a header of 32 bytes, found 31 bytes in all");
    check_error(
        &edit(&file, 0, b"TPS:"),
        "not an SPT file: expected the signature 0x5350543a at offset 0, found 0x3a535054",
    );
    check_error(&edit(&file, 4, &[2]), "SPT version 2 not supported (only 1 is documented)");
    check_error(
        &edit(&file, 0x10, &[0, 0, 1]),
        "damaged SPT file: its string table should start at 0x10000, but the file ends at 0x6e",
    );
    check_error(
        &edit(&file, 0x14, &[0, 0, 1]),
        "damaged SPT file: its program-id table should start at 0x10000, but the file ends at 0x6e",
    );
    check_error(
        &edit(&file, 0x1e, &[3]),
        "damaged SPT file: its data stream should start at 0x78, but the file ends at 0x6e",
    );
}

#[test]
fn another_version_is_tried_when_asked_for() {
    let file = edit(&with_prefix("81 00 00 00 0a 00 00 00 01 01 00 10 00 00"), 4, &[2]);
    let options = Options { any_version: true, ..Options::default() };
    let (listing, _) = list_with(&file, &options, &Silent).unwrap();
    assert_eq!(listing.records.len(), 1);
}

#[test]
fn odd_headers_are_told_and_read() {
    let file = with_prefix("81 00 00 00 0a 00 00 00 01 01 00 10 00 00");
    let told = |file: &[u8]| list(file).0.damages.join("; ");
    assert_eq!(told(&edit(&file, 8, &[7])), "reserved field at 0x8 is 0x7, expected 0");
    assert_eq!(told(&edit(&file, 12, &[7])), "reserved field at 0xc is 0x7, expected 0");
    assert_eq!(told(&edit(&file, 0x1a, &[0x11])), "header and tables lie over one another at 0x30");
    assert_eq!(
        told(&edit(&file, 0x1c, &[3])),
        "3 programs in use, but the table has room for 2; the others are left out"
    );
    assert_eq!(told(&edit(&file, 0x20, &[0xff])), "name at 0x20 is not UTF-8");
}

#[test]
fn string_indices_are_offsets_or_else_positions() {
    let name = |strings: &[u8; 16], used: u8, index: u32| {
        let file = edit(&with_prefix(""), 0x20, strings);
        let file = edit(&file, 0x18, &[used]);
        let (listing, _) = list(&edit(&file, 0x44, &index.to_le_bytes()));
        (listing.preamble.unwrap().programs[0].name.clone(), listing.damages.join("; "))
    };
    let strings = b"a.dll\0b.dll\0c\0\0\0";
    assert_eq!(name(strings, 14, 0).0, "a.dll");
    assert_eq!(name(strings, 14, 6).0, "b.dll");
    assert_eq!(name(strings, 14, 1).0, "b.dll", "not the start of a name, so a position");
    assert_eq!(name(strings, 14, 2).0, "c");
    assert_eq!(name(strings, 13, 12).0, "c", "the used part ends without a NUL");
    let (unknown, told) = name(strings, 14, 5);
    assert_eq!(unknown, "unknown-0");
    assert_eq!(told, "string index 5 of program 0 leads to no name");
    assert_eq!(name(strings, 14, u32::MAX).0, "unknown-0");
}

#[test]
fn unused_entries_and_nil_ids() {
    let mut file = bytes(crate::PREFIX);
    file[0x30..0x40].fill(0);
    file.extend(bytes("81 00 00 00 0a 00 00 00 01 01 00 10 00 00"));
    let profile = read_bytes(&file).unwrap();
    assert_eq!(profile.modules.len(), 1, "the second entry is unused");
    assert_eq!(profile.modules[0].identity, None, "a GUID of zeros identifies nothing");
}

#[test]
fn a_monitor_can_stop_the_work() {
    struct Stop;
    impl Monitor for Stop {
        fn progress(&self, _: u64, _: u64) -> Result<(), Cancelled> {
            Err(Cancelled)
        }
    }
    let file = with_prefix(&"81 00 00 00 0a 00 00 00 01 01 00 10 00 00 ".repeat(100_000));
    assert!(matches!(list_with(&file, &Options::default(), &Stop), Err(SptError::Cancelled(_))));
}
