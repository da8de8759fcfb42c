//! What the dump prints.

use crate::with_prefix;
use expect_test::{Expect, expect};
use heatline_profile::Silent;
use heatline_readers::Input;
use heatline_readers::spt::{self, DumpError, DumpFormat, Options, Views};
use std::io::{self, Cursor, Write};

const DATA: &str = "
    81 00 00 00 4c 00 00 00  01 01 00 10 00 00  82 00 02 00 00 00 00 00 00 00  41 02 00 10 00 00 10 10 00 00
    82 00 09 00 00 00 00 00 00 00  10 02 10 10 00 00 25 10 00 00 00 10 00 00 30 10 00 00
    42 03 04 10 00 00 2a 10 00 00 55 10 00 00 77 02 01 02";

#[track_caller]
fn check(views: Views, format: DumpFormat, expected: Expect) {
    let mut out = Vec::new();
    let file = with_prefix(DATA);
    spt::dump(Input::File(&mut Cursor::new(file)), &mut out, views, format, &Options::default(), &Silent).unwrap();
    expected.assert_eq(&String::from_utf8(out).unwrap());
}

#[test]
fn json_has_one_object_per_line() {
    check(
        Views::ALL,
        DumpFormat::Json,
        expect![[r#"
            {"header":{"version":1,"string_table_offset":32,"string_table_used":6,"string_table_capacity":16,"program_table_offset":48,"programs_used":1,"program_capacity":2}}
            {"string":{"offset":0,"text":"m.exe"}}
            {"program":{"id":0,"name":"m.exe","guid":"AD10FDA6-A0D8-B664-4C4C-44205044422E","age":1}}
            {"record":{"offset":104,"program":0,"op":"UNHALT_CYCLE","hits":1,"rvas":["0x1000"]}}
            {"record":{"offset":120,"program":0,"op":"ETW_INSTR","hits":3,"rvas":["0x1000","0x1010"]}}
            {"record":{"offset":140,"program":0,"op":"LBR","hits":10,"arcs":[{"from":"0x1025","to":"0x1010"},{"from":"0x1030","to":"0x1000"}]}}
            {"record":{"offset":158,"program":0,"op":"ETW_CALLSTACK","hits":1,"rvas":["0x1004","0x102a","0x1055"]}}
            {"problem":{"kind":"unknown-opcode","offset":172,"opcode":"0x77","skipped":4,"segment":0,"message":"opcode 0x77 at 0xac, 4 bytes skipped (segment 0)"}}
            {"summary":{"reading":"R1","segments":1,"totals":{"UNHALT_CYCLE":1,"ETW_INSTR":6,"LBR":20,"ETW_CALLSTACK":2},"truncated":false}}
        "#]],
    );
}

#[test]
fn text_is_for_people() {
    check(
        Views::ALL,
        DumpFormat::Text,
        expect![[r#"
            header
              signature               3a 54 50 53 ":TPS"
              version                 1
              raw data id             0
              target architecture     0
              string table offset     0x20
              program table offset    0x30
              data offset             0x60
              string table            6 used of 16
              programs                1 used of 2

            strings
              0x0000  m.exe

            programs
                  0  {AD10FDA6-A0D8-B664-4C4C-44205044422E} age 1  m.exe

            events
            0x00000060  segment 0 of program 0, m.exe
            0x00000068    UNHALT_CYCLE    x1  0x1000
            0x00000078    ETW_INSTR       x3  0x1000  0x1010
            0x0000008c    LBR             x10  0x1025 -> 0x1010  0x1030 -> 0x1000
            0x0000009e    ETW_CALLSTACK   x1  0x1004  0x102a  0x1055
            warning: opcode 0x77 at 0xac, 4 bytes skipped (segment 0)

            summary
              segments          1
              segment lengths   R1, counting from the length field on
              hits
                UNHALT_CYCLE    1
                ETW_INSTR       6
                LBR             20
                ETW_CALLSTACK   2
        "#]],
    );
}

#[test]
fn each_view_prints_its_part() {
    let none = Views::default();
    check(
        Views { strings: true, ..none },
        DumpFormat::Text,
        expect![[r#"
        strings
          0x0000  m.exe

    "#]],
    );
    check(
        Views { programs: true, ..none },
        DumpFormat::Text,
        expect![[r#"
        programs
              0  {AD10FDA6-A0D8-B664-4C4C-44205044422E} age 1  m.exe

    "#]],
    );
    check(
        Views { header: true, ..none },
        DumpFormat::Json,
        expect![[r#"
        {"header":{"version":1,"string_table_offset":32,"string_table_used":6,"string_table_capacity":16,"program_table_offset":48,"programs_used":1,"program_capacity":2}}
    "#]],
    );
}

#[test]
fn names_are_escaped() {
    let mut file = with_prefix("");
    file[0x20..0x26].copy_from_slice(b"\"\\\n\x1b\xff\0");
    let dump = |format| {
        let mut out = Vec::new();
        let views = Views { strings: true, ..Views::default() };
        spt::dump(Input::File(&mut Cursor::new(&file)), &mut out, views, format, &Options::default(), &Silent).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(dump(DumpFormat::Json).contains(r#""text":"\"\\\u000a\u001b�""#));
    assert!(dump(DumpFormat::Text).contains("\"\\���\n"));
}

#[test]
fn a_failing_output_ends_the_dump() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut file = Cursor::new(with_prefix(DATA));
    let result =
        spt::dump(Input::File(&mut file), &mut Full, Views::ALL, DumpFormat::Text, &Options::default(), &Silent);
    assert!(matches!(result, Err(DumpError::Write(_))));
}
