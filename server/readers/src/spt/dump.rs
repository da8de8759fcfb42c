//! Prints what is in an SPT file, record by record, as it is read: memory does not grow with the file.

use super::damage::{Damage, DamageKind};
use super::decode::{Record, Segment, Summary, Visitor, decode, decode_preamble};
use super::format::Op;
use super::preamble::Preamble;
use super::read::with_file;
use super::{Options, SptError};
use crate::Input;
use heatline_profile::Monitor;
use std::io::{self, Write};
use std::ops::ControlFlow;

/// Which parts of a file are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Views {
    /// The header's fields.
    pub header: bool,
    /// The string table.
    pub strings: bool,
    /// Name, GUID and age of each binary.
    pub programs: bool,
    /// The records, and a summary of them.
    pub events: bool,
}

impl Views {
    /// Everything.
    pub const ALL: Views = Views { header: true, strings: true, programs: true, events: true };
}

/// How it is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DumpFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Why a file could not be printed to its end.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] SptError),
    /// What was printed cannot be written.
    #[error("cannot write the output")]
    Write(#[source] io::Error),
}

/// Prints `views` of a file to `out`, which should be buffered. Returns whether anything in the file was wrong.
///
/// # Errors
/// [`DumpError`] if nothing of the file can be used, if `monitor` stopped the work, or if `out` failed.
pub fn dump(
    input: Input<'_>,
    out: &mut dyn Write,
    views: Views,
    format: DumpFormat,
    options: &Options,
    monitor: &dyn Monitor,
) -> Result<bool, DumpError> {
    let mut printer = Printer {
        out,
        json: format == DumpFormat::Json,
        views,
        names: Vec::new(),
        program: 0,
        totals: [0; Op::ALL.len()],
        line: Vec::new(),
        problems: 0,
        failed: None,
    };
    with_file(input, |file| {
        if !views.events {
            return decode_preamble(file, options, &mut printer);
        }
        let summary = decode(file, options, monitor, &mut printer)?;
        if printer.failed.is_none() {
            let written = printer.summary(&summary);
            printer.failed = written.err();
        }
        Ok(())
    })?;
    printer.failed.map_or(Ok(printer.problems > 0), |error| Err(DumpError::Write(error)))
}

struct Printer<'a> {
    out: &'a mut dyn Write,
    json: bool,
    views: Views,
    /// The names of the programs.
    names: Vec<String>,
    /// The program of the current segment.
    program: u16,
    /// Hits by operation, as [`Op::ALL`] orders them.
    totals: [u64; Op::ALL.len()],
    line: Vec<u8>,
    problems: u64,
    failed: Option<io::Error>,
}

impl Visitor for Printer<'_> {
    fn preamble(&mut self, preamble: &Preamble) -> ControlFlow<()> {
        self.names = preamble.programs.iter().map(|program| program.name.clone()).collect();
        let written = if self.json { self.json_preamble(preamble) } else { self.text_preamble(preamble) };
        self.keep(written)
    }

    fn segment(&mut self, segment: &Segment) -> ControlFlow<()> {
        self.program = segment.program;
        if self.json {
            return ControlFlow::Continue(());
        }
        let name = self.names.get(usize::from(segment.program)).map_or("unknown program", String::as_str);
        let written = writeln!(
            self.out,
            "{:#010x}  segment {} of program {}, {}",
            segment.offset,
            segment.number,
            segment.program,
            plain(name)
        );
        self.keep(written)
    }

    fn record(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        let totals = self.totals.iter_mut().zip(Op::ALL);
        if let Some((total, _)) = totals.into_iter().find(|(_, op)| *op == record.op) {
            *total = total.saturating_add(record.total());
        }
        self.line.clear();
        if self.json {
            json_record(&mut self.line, self.program, record);
        } else {
            text_record(&mut self.line, record);
        }
        let written = self.out.write_all(&self.line);
        self.keep(written)
    }

    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        self.problems += 1;
        let written = if self.json { self.json_damage(damage) } else { writeln!(self.out, "warning: {damage}") };
        self.keep(written)
    }
}

impl Printer<'_> {
    /// Keeps the error, if it is one, and ends the decoding then.
    fn keep(&mut self, written: io::Result<()>) -> ControlFlow<()> {
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// The operations that were hit, with their hits.
    fn hit(&self) -> impl Iterator<Item = (Op, u64)> {
        Op::ALL.into_iter().zip(self.totals).filter(|(_, total)| *total > 0)
    }

    fn summary(&mut self, summary: &Summary) -> io::Result<()> {
        if !self.json {
            return self.text_summary(summary);
        }
        let totals: Vec<_> = self.hit().map(|(op, total)| format!("\"{}\":{total}", op.name())).collect();
        let assumed = if summary.assumed { ",\"assumed\":true" } else { "" };
        writeln!(
            self.out,
            "{{\"summary\":{{\"reading\":\"{}\"{assumed},\"segments\":{},\"totals\":{{{}}},\"truncated\":{}}}}}",
            summary.reading.name(),
            summary.segments,
            totals.join(","),
            summary.truncated
        )
    }

    fn text_summary(&mut self, summary: &Summary) -> io::Result<()> {
        let assumed = if summary.assumed { " (assumed)" } else { "" };
        writeln!(self.out, "\nsummary")?;
        writeln!(self.out, "  segments          {}", summary.segments)?;
        writeln!(
            self.out,
            "  segment lengths   {}{assumed}, counting {}",
            summary.reading.name(),
            summary.reading.meaning()
        )?;
        writeln!(self.out, "  hits")?;
        let hit: Vec<_> = self.hit().collect();
        for (op, total) in hit {
            writeln!(self.out, "    {:<16}{total}", op.name())?;
        }
        if summary.truncated {
            writeln!(self.out, "  truncated: the file ends inside a segment")?;
        }
        Ok(())
    }

    fn json_preamble(&mut self, preamble: &Preamble) -> io::Result<()> {
        let header = &preamble.header;
        if self.views.header {
            let signature = match header.signature {
                super::Signature::Stored => String::new(),
                other => format!(",\"signature\":\"{}\"", other.text()),
            };
            writeln!(
                self.out,
                "{{\"header\":{{\"version\":{},\"string_table_offset\":{},\"string_table_used\":{},\
                 \"string_table_capacity\":{},\"program_table_offset\":{},\"programs_used\":{},\
                 \"program_capacity\":{}{signature}}}}}",
                header.version,
                header.string_table_offset,
                header.string_table_used,
                header.string_table_capacity,
                header.program_table_offset,
                header.programs_used,
                header.program_capacity
            )?;
        }
        for name in preamble.names.iter().filter(|_| self.views.strings) {
            writeln!(self.out, "{{\"string\":{{\"offset\":{},\"text\":{}}}}}", name.offset, quoted(&name.text))?;
        }
        for (id, program) in preamble.programs.iter().enumerate().filter(|_| self.views.programs) {
            writeln!(
                self.out,
                "{{\"program\":{{\"id\":{id},\"name\":{},\"guid\":\"{}\",\"age\":{}}}}}",
                quoted(&program.name),
                program.id.guid_text(),
                program.id.age
            )?;
        }
        Ok(())
    }

    fn text_preamble(&mut self, preamble: &Preamble) -> io::Result<()> {
        if self.views.header {
            self.text_header(preamble)?;
        }
        if self.views.strings {
            writeln!(self.out, "strings")?;
            for name in &preamble.names {
                writeln!(self.out, "  {:#06x}  {}", name.offset, plain(&name.text))?;
            }
            writeln!(self.out)?;
        }
        if self.views.programs {
            writeln!(self.out, "programs")?;
            for (id, program) in preamble.programs.iter().enumerate() {
                let note = if program.id.is_nil() { "  no identity" } else { "" };
                writeln!(self.out, "  {id:>5}  {}  {}{note}", program.id, plain(&program.name))?;
            }
            writeln!(self.out)?;
        }
        if self.views.events {
            writeln!(self.out, "events")?;
        }
        Ok(())
    }

    fn text_header(&mut self, preamble: &Preamble) -> io::Result<()> {
        let header = &preamble.header;
        let bytes = header.signature.bytes().map(|byte| format!("{byte:02x}")).join(" ");
        writeln!(self.out, "header")?;
        writeln!(self.out, "  signature               {bytes} \"{}\"", header.signature.text())?;
        for (field, value) in [
            ("version", header.version),
            ("raw data id", header.raw_data_id),
            ("target architecture", header.target_arch),
        ] {
            writeln!(self.out, "  {field:<22}  {value}")?;
        }
        for (field, offset) in [
            ("string table offset", u64::from(header.string_table_offset)),
            ("program table offset", u64::from(header.program_table_offset)),
            ("data offset", header.data_start()),
        ] {
            writeln!(self.out, "  {field:<22}  {offset:#x}")?;
        }
        for (part, used, capacity) in [
            ("string table", header.string_table_used, header.string_table_capacity),
            ("programs", header.programs_used, header.program_capacity),
        ] {
            writeln!(self.out, "  {part:<22}  {used} used of {capacity}")?;
        }
        writeln!(self.out)
    }

    fn json_damage(&mut self, damage: &Damage) -> io::Result<()> {
        write!(self.out, "{{\"problem\":{{\"kind\":\"{}\",\"offset\":{}", damage.kind.word(), damage.offset)?;
        match damage.kind {
            DamageKind::UnknownOpcode { opcode, skipped } => {
                write!(self.out, ",\"opcode\":\"{opcode:#04x}\",\"skipped\":{skipped}")?;
            }
            DamageKind::RecordCut { opcode, dropped } => {
                write!(self.out, ",\"opcode\":\"{opcode:#04x}\",\"skipped\":{dropped}")?;
            }
            _ => {}
        }
        if let Some(segment) = damage.segment {
            write!(self.out, ",\"segment\":{segment}")?;
        }
        writeln!(self.out, ",\"message\":{}}}}}", quoted(&damage.to_string()))
    }
}

/// Adds what is a record's own line; writing to memory does not fail.
fn json_record(line: &mut Vec<u8>, program: u16, record: &Record<'_>) {
    let (offset, op, hits) = (record.offset, record.op.name(), record.hits);
    let _ = write!(line, "{{\"record\":{{\"offset\":{offset},\"program\":{program},\"op\":\"{op}\",\"hits\":{hits},");
    let mut comma = "";
    if record.op == Op::Lbr {
        line.extend_from_slice(b"\"arcs\":[");
        for (from, to) in record.arcs() {
            let _ = write!(line, "{comma}{{\"from\":\"{from:#x}\",\"to\":\"{to:#x}\"}}");
            comma = ",";
        }
    } else {
        line.extend_from_slice(b"\"rvas\":[");
        for rva in record.rvas() {
            let _ = write!(line, "{comma}\"{rva:#x}\"");
            comma = ",";
        }
    }
    line.extend_from_slice(b"]}}\n");
}

fn text_record(line: &mut Vec<u8>, record: &Record<'_>) {
    let _ = write!(line, "{:#010x}    {:<15} x{}", record.offset, record.op.name(), record.hits);
    if record.op == Op::Lbr {
        for (from, to) in record.arcs() {
            let _ = write!(line, "  {from:#x} -> {to:#x}");
        }
    } else {
        for rva in record.rvas() {
            let _ = write!(line, "  {rva:#x}");
        }
    }
    line.push(b'\n');
}

/// A text as a JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            control if u32::from(control) < 0x20 => quoted.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A text without what would move the cursor of a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}
