//! Symbols of a module: its functions and the calls that were inlined into them.

use super::bytes::{Bytes, signed};
use super::format::Place;
use super::lines::{Declared, Row};

const SIGNATURE_C13: u32 = 4;

const S_END: u16 = 0x0006;
const S_THUNK32: u16 = 0x1102;
const S_BLOCK32: u16 = 0x1103;
const S_WITH32: u16 = 0x1104;
const S_LPROC32: u16 = 0x110f;
const S_GPROC32: u16 = 0x1110;
const S_SEPCODE: u16 = 0x1132;
const S_LPROC32_ID: u16 = 0x1146;
const S_GPROC32_ID: u16 = 0x1147;
const S_INLINESITE: u16 = 0x114d;
const S_INLINESITE_END: u16 = 0x114e;
const S_PROC_ID_END: u16 = 0x114f;
const S_LPROC32_DPC: u16 = 0x1155;
const S_LPROC32_DPC_ID: u16 = 0x1156;
const S_INLINESITE2: u16 = 0x115d;

/// Scopes nested deeper than this are damage; the deepest inlining seen in real code is below 100.
const DEEPEST_SCOPE: usize = 1024;

/// A function with code in the image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Procedure<'a> {
    pub start: Place,
    pub size: u32,
    /// Number of its type; 0 if it has none.
    pub type_index: u32,
    pub name: &'a [u8],
    /// The records between its own and its end.
    body: &'a [u8],
}

/// A call that was inlined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    /// Number of the inlined function.
    pub inlinee: u32,
    /// The site that it was inlined into, a number below its own, or `None` for the procedure.
    pub parent: Option<usize>,
    annotations: &'a [u8],
}

/// What a module's symbols say.
#[derive(Default)]
pub(super) struct Symbols<'a> {
    /// The procedures of whose code some is asked for.
    pub wanted: Vec<Procedure<'a>>,
    /// Where all procedures start.
    pub starts: Vec<Place>,
    pub damaged: bool,
}

/// Reads the symbols of a module; `wanted` says whether some code of a procedure is asked for.
pub(super) fn read(symbols: &[u8], wanted: impl Fn(Place, u32) -> bool) -> Symbols<'_> {
    let mut found = Symbols::default();
    found.damaged = found.procedures(symbols, wanted).is_none();
    found
}

impl<'a> Symbols<'a> {
    /// Adds all procedures up to the first damage, for which it returns `None`.
    fn procedures(&mut self, symbols: &'a [u8], wanted: impl Fn(Place, u32) -> bool) -> Option<()> {
        if symbols.is_empty() {
            return Some(());
        }
        let mut rest = Bytes(symbols);
        if rest.u32()? != SIGNATURE_C13 {
            return None;
        }
        while !rest.0.is_empty() {
            let (kind, record) = record(&mut rest)?;
            let (procedure, end) = match kind {
                S_LPROC32 | S_GPROC32 | S_LPROC32_ID | S_GPROC32_ID | S_LPROC32_DPC | S_LPROC32_DPC_ID => {
                    procedure(Bytes(record))?
                }
                S_THUNK32 => thunk(Bytes(record))?,
                _ => continue,
            };
            // Everything up to the procedure's end is its body.
            let (here, end) = (symbols.len() - rest.0.len(), end as usize);
            let Some(body) = symbols.get(here..end) else { continue };
            rest = Bytes(symbols.get(end..).unwrap_or_default());
            self.starts.push(procedure.start);
            if wanted(procedure.start, procedure.size) {
                self.wanted.push(Procedure { body, ..procedure });
            }
        }
        Some(())
    }
}

/// The next record: its kind and what follows it.
fn record<'a>(rest: &mut Bytes<'a>) -> Option<(u16, &'a [u8])> {
    let size = rest.u16()?;
    let mut record = Bytes(rest.take(usize::from(size))?);
    Some((record.u16()?, record.0))
}

/// A procedure and where in the symbols its end is.
fn procedure(mut record: Bytes<'_>) -> Option<(Procedure<'_>, u32)> {
    let (_parent, end, _next, size) = (record.u32()?, record.u32()?, record.u32()?, record.u32()?);
    let (_debug_start, _debug_end) = (record.u32()?, record.u32()?);
    let (type_index, offset, section, _flags) = (record.u32()?, record.u32()?, record.u16()?, record.u8()?);
    let procedure = Procedure { start: Place { section, offset }, size, type_index, name: record.text(), body: &[] };
    Some((procedure, end))
}

/// A jump that the linker or compiler put between caller and callee, under its own name.
fn thunk(mut record: Bytes<'_>) -> Option<(Procedure<'_>, u32)> {
    let (_parent, end, _next, offset) = (record.u32()?, record.u32()?, record.u32()?, record.u32()?);
    let (section, size, _kind) = (record.u16()?, record.u16()?, record.u8()?);
    let start = Place { section, offset };
    Some((Procedure { start, size: size.into(), type_index: 0, name: record.text(), body: &[] }, end))
}

impl<'a> Procedure<'a> {
    /// The calls inlined into it, each after the one that holds it. Reading ends at the first damaged record.
    pub fn sites(&self) -> Vec<Site<'a>> {
        let mut sites: Vec<Site<'a>> = Vec::new();
        // The open scopes; a site by its number.
        let mut open: Vec<Option<usize>> = Vec::new();
        let mut rest = Bytes(self.body);
        while let Some((kind, record)) = record(&mut rest) {
            match kind {
                S_INLINESITE | S_INLINESITE2 => {
                    let Some((inlinee, annotations)) = site(Bytes(record), kind == S_INLINESITE2) else { break };
                    let parent = open.iter().rev().find_map(|scope| *scope);
                    open.push(Some(sites.len()));
                    sites.push(Site { inlinee, parent, annotations });
                }
                S_BLOCK32 | S_WITH32 | S_THUNK32 | S_SEPCODE => open.push(None),
                S_LPROC32 | S_GPROC32 | S_LPROC32_ID | S_GPROC32_ID | S_LPROC32_DPC | S_LPROC32_DPC_ID => {
                    open.push(None);
                }
                S_END | S_INLINESITE_END | S_PROC_ID_END => {
                    open.pop();
                }
                _ => {}
            }
            if open.len() > DEEPEST_SCOPE {
                break;
            }
        }
        sites
    }
}

fn site(mut record: Bytes<'_>, with_count: bool) -> Option<(u32, &[u8])> {
    let (_parent, _end, inlinee) = (record.u32()?, record.u32()?, record.u32()?);
    if with_count {
        record.u32()?;
    }
    Some((inlinee, record.0))
}

impl Site<'_> {
    /// The code of the inlined call as rows with the lines of the inlined function, by start. `start` is that of the
    /// procedure, `declared` where the inlined function is.
    pub fn rows(&self, start: Place, declared: Declared, rows: &mut Vec<Row>) {
        rows.clear();
        let first = Row {
            section: start.section,
            start: start.offset,
            end: 0,
            file: declared.file,
            line: declared.line,
            column: 0,
        };
        // What is read before damage is kept.
        let _damaged: Option<()> = annotate(Bytes(self.annotations), first, rows);
        rows.retain(|row| row.start < row.end);
        rows.sort_by_key(|row| row.start);
    }
}

/// Runs a program of binary annotations. A row without end reaches to the next one; the last one must have an end.
fn annotate(mut program: Bytes<'_>, first: Row, rows: &mut Vec<Row>) -> Option<()> {
    let mut at = first;
    let mut base = 0_u32;
    while !program.0.is_empty() {
        let operation = program.compressed()?;
        let mut length = None;
        match operation {
            // Padding at the end.
            0 => return Some(()),
            1 => at.start = program.compressed()?,
            2 => base = program.compressed()?,
            3 => at.start = at.start.wrapping_add(program.compressed()?),
            4 => {
                let length = program.compressed()?;
                close(rows, None, Some(length));
                at.start = at.start.wrapping_add(length);
            }
            5 => at.file = program.compressed()?,
            6 => at.line = at.line.wrapping_add_signed(signed(program.compressed()?)),
            9 => at.column = program.compressed()?,
            11 => {
                let both = program.compressed()?;
                at.start = at.start.wrapping_add(both & 0xf);
                at.line = at.line.wrapping_add_signed(signed(both >> 4));
            }
            12 => {
                length = Some(program.compressed()?);
                at.start = at.start.wrapping_add(program.compressed()?);
            }
            // The end of a line or column, the kind of a row.
            7 | 8 | 10 | 13 => _ = program.compressed()?,
            _ => return None,
        }
        if matches!(operation, 3 | 11 | 12) {
            let start = at.start.wrapping_add(base);
            close(rows, Some(start), None);
            rows.push(Row { start, end: length.map_or(0, |length| start.saturating_add(length)), ..at });
        }
    }
    Some(())
}

/// Gives the last row its end, if it has none yet.
fn close(rows: &mut [Row], end: Option<u32>, length: Option<u32>) {
    if let Some(row) = rows.last_mut().filter(|row| row.end == 0) {
        row.end = end.or(length.map(|length| row.start.saturating_add(length))).unwrap_or(0);
    }
}
