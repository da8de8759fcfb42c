//! Lines of a module (the "C13" debug subsections): rows, files with their checksums, and where inlined functions are
//! declared.

use super::bytes::Bytes;
use super::format::{Place, Strings};
use crate::resolution::{Checksum, SourceFile};
use rustc_hash::{FxHashMap, FxHashSet};

const LINES: u32 = 0xf2;
const FILE_CHECKSUMS: u32 = 0xf4;
const INLINEE_LINES: u32 = 0xf6;
/// A subsection with this bit is to be skipped.
const IGNORED: u32 = 1 << 31;
/// Lines that stand for code which a debugger is not to show.
const HIDDEN: [u32; 2] = [0xfe_efee, 0xf0_0f00];

/// A row: code from `start` up to `end`, both in one section, comes from this line. Line 0 is no line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub section: u16,
    pub start: u32,
    pub end: u32,
    /// Key of a file in [`Files`].
    pub file: u32,
    pub line: u32,
    pub column: u32,
}

/// Where a function is declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    pub file: u32,
    pub line: u32,
}

/// What the lines of a module say.
#[derive(Default)]
pub(super) struct Lines<'a> {
    /// By section and start, none over another.
    pub rows: Vec<Row>,
    /// Of inlined functions, by their numbers.
    pub inlinees: FxHashMap<u32, Declared>,
    /// Of functions with code of their own, by their start: their first row, even where it covers nothing.
    pub functions: FxHashMap<Place, Declared>,
    pub files: Files<'a>,
    /// How many subsections are damaged.
    pub damaged: u64,
}

/// The files of a module; a key is an offset in these bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Files<'a>(&'a [u8]);

impl Files<'_> {
    /// The file with this key.
    pub fn get(&self, key: u32, strings: Option<&Strings>) -> Option<SourceFile> {
        let mut entry = Bytes(self.0.get(key as usize..)?);
        let path = strings?.get(entry.u32()?)?;
        let (size, kind) = (entry.u8()?, entry.u8()?);
        let hash = entry.take(usize::from(size))?;
        let checksum = match kind {
            1 => hash.try_into().ok().map(Checksum::Md5),
            2 => hash.try_into().ok().map(Checksum::Sha1),
            3 => hash.try_into().ok().map(Checksum::Sha256),
            _ => None,
        };
        Some(SourceFile { path, checksum, text: None })
    }
}

/// Reads the lines of a module; of the rows only those of functions for which `wanted` says that some of their code is
/// asked for. Of functions that were folded into one the first is kept, as of the symbols.
pub(super) fn read(bytes: &[u8], wanted: impl Fn(Place, u32) -> bool) -> Lines<'_> {
    let mut lines = Lines::default();
    let mut starts = FxHashSet::default();
    let mut wanted = |start: Place, size| wanted(start, size) && starts.insert(start);
    let mut rest = Bytes(bytes);
    while let Some((kind, data)) = subsection(&mut rest) {
        let read = match kind {
            LINES => lines.rows(data, &mut wanted),
            INLINEE_LINES => inlinees(data, &mut lines.inlinees),
            FILE_CHECKSUMS => {
                lines.files = Files(data);
                Some(())
            }
            _ => Some(()),
        };
        lines.damaged += u64::from(read.is_none());
    }
    lines.damaged += u64::from(!rest.0.is_empty());
    lines.rows.sort_by_key(|row| (row.section, row.start));
    lines
}

fn subsection<'a>(rest: &mut Bytes<'a>) -> Option<(u32, &'a [u8])> {
    let mut ahead = *rest;
    let (kind, size) = (ahead.u32()?, ahead.u32()?);
    let data = ahead.take(size as usize)?;
    // Padding; the last one may lack it.
    let padding = (size.wrapping_neg() & 3) as usize;
    ahead.0 = ahead.0.get(padding..).unwrap_or_default();
    *rest = ahead;
    Some((if kind & IGNORED == 0 { kind } else { 0 }, data))
}

impl Lines<'_> {
    /// Adds the rows of one function, a block for each file. `None` where they are damaged; what came before is kept.
    fn rows(&mut self, data: &[u8], wanted: &mut impl FnMut(Place, u32) -> bool) -> Option<()> {
        let mut rest = Bytes(data);
        let (offset, section) = (rest.u32()?, rest.u16()?);
        let start = Place { section, offset };
        let has_columns = rest.u16()? & 1 != 0;
        let size = rest.u32()?;
        let end = offset.checked_add(size)?;
        if !wanted(start, size) {
            return Some(());
        }
        let mut rows = Vec::new();
        let read = blocks(&mut rest, offset, section, has_columns, &mut rows);
        rows.sort_by_key(|row| row.start);
        if let Some(first) = rows.iter().find(|row| row.line > 0) {
            self.functions.insert(start, Declared { file: first.file, line: first.line });
        }
        let mut next = end;
        for row in rows.iter_mut().rev() {
            row.end = next;
            next = row.start.min(next);
        }
        self.rows.extend(rows.into_iter().filter(|row| row.start < row.end));
        read
    }
}

fn blocks(rest: &mut Bytes<'_>, offset: u32, section: u16, has_columns: bool, all: &mut Vec<Row>) -> Option<()> {
    while !rest.0.is_empty() {
        let (file, count, _size) = (rest.u32()?, rest.u32()?, rest.u32()?);
        let entries = rest.take((count as usize).checked_mul(8)?)?;
        let columns = if has_columns { rest.take((count as usize).checked_mul(4)?)? } else { &[] };
        let mut columns = columns.as_chunks::<4>().0.iter();
        for entry in entries.as_chunks::<8>().0 {
            let mut entry = Bytes(entry);
            let start = offset.checked_add(entry.u32()?)?;
            let line = entry.u32()? & 0xff_ffff;
            let line = if HIDDEN.contains(&line) { 0 } else { line };
            let column = columns.next().map_or(0, |column| u32::from(u16::from_le_bytes([column[0], column[1]])));
            all.push(Row { section, start, end: start, file, line, column });
        }
    }
    Some(())
}

fn inlinees(data: &[u8], all: &mut FxHashMap<u32, Declared>) -> Option<()> {
    let mut rest = Bytes(data);
    let with_more_files = rest.u32()? == 1;
    while !rest.0.is_empty() {
        let (inlinee, file, line) = (rest.u32()?, rest.u32()?, rest.u32()?);
        all.entry(inlinee).or_insert(Declared { file, line });
        if with_more_files {
            let files = rest.u32()?;
            rest.take((files as usize).checked_mul(4)?)?;
        }
    }
    Some(())
}
