//! Line programs: the row of each address, and the files that rows and entries name.

use super::format::{Dwarf, FileEntry, LineHeader, LineProgram, LineRow, Slice, Unit, Value, bytes};
use crate::resolution::{Checksum, SourceFile};
use std::sync::Arc;

/// A longer text is not kept: embedded sources come again with every unit that names them.
const MOST_EMBEDDED: usize = 4 << 20;

/// What the row of an address says.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Place {
    /// Number in the program's file table; [`Place::NONE`] where no row covers the address.
    pub file: u32,
    pub line: u32,
    pub column: u32,
}

impl Place {
    pub const NONE: Place = Place { file: u32::MAX, line: 0, column: 0 };
}

#[derive(Clone, Copy)]
struct Row {
    address: u64,
    place: Place,
}

/// Rows `first..last` of one sequence, covering `start..end`.
struct Sequence {
    start: u64,
    end: u64,
    first: usize,
    last: usize,
}

/// The row of each of the sorted `addresses`: the last one at or before it in the sequence that covers it. The second
/// value is the number of damaged places: what follows one in this program is lost, what precedes it is kept.
pub(super) fn places(program: LineProgram<'_>, addresses: &[u64]) -> (Vec<Place>, u64) {
    let mut places = vec![Place::NONE; addresses.len()];
    let mut rows: Vec<Row> = Vec::new();
    let mut sequences: Vec<Sequence> = Vec::new();
    let damaged = each_sequence(program, &mut rows, |rows, start, end| {
        let next = addresses.partition_point(|address| *address < start);
        let wanted = addresses.get(next).is_some_and(|address| *address < end);
        let first = sequences.last().map_or(0, |s| s.last);
        if wanted {
            sequences.push(Sequence { start, end, first, last: rows.len() });
        } else {
            rows.truncate(first);
        }
    });
    sequences.sort_by_key(|sequence| (sequence.start, sequence.end));
    let mut next = 0;
    for sequence in &sequences {
        next += addresses.get(next..).unwrap_or_default().partition_point(|address| *address < sequence.start);
        let covered = addresses.get(next..).unwrap_or_default().partition_point(|address| *address < sequence.end);
        let rows = rows.get(sequence.first..sequence.last).unwrap_or_default();
        let (addresses, places) = (addresses.get(next..next + covered), places.get_mut(next..next + covered));
        join(rows, addresses.unwrap_or_default(), places.unwrap_or_default());
        next += covered;
    }
    (places, damaged)
}

fn join(rows: &[Row], addresses: &[u64], places: &mut [Place]) {
    let mut rows = rows.iter().peekable();
    let mut current = Place::NONE;
    for (address, place) in addresses.iter().zip(places) {
        while let Some(row) = rows.next_if(|row| row.address <= *address) {
            current = row.place;
        }
        *place = current;
    }
}

/// What a program covers, as (start, end).
pub(super) fn sequences(program: LineProgram<'_>) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    each_sequence(program, &mut Vec::new(), |rows, start, end| {
        rows.clear();
        ranges.push((start, end));
    });
    ranges
}

/// Runs a program, adding rows to `rows`, and calls `ended` at each end of a sequence that covers something. Of rows
/// with one address the last is kept. Returns the number of damaged places.
fn each_sequence(program: LineProgram<'_>, rows: &mut Vec<Row>, mut ended: impl FnMut(&mut Vec<Row>, u64, u64)) -> u64 {
    let mut first = 0;
    let mut program = program.rows();
    loop {
        let row = match program.next_row() {
            Ok(Some((_, row))) => row,
            Ok(None) => return 0,
            Err(_) => return 1,
        };
        if row.end_sequence() {
            let end = row.address();
            match rows.get(first).map(|row| row.address) {
                Some(start) if start < end => ended(rows, start, end),
                _ => rows.truncate(first),
            }
            first = rows.len();
            continue;
        }
        let new = Row { address: row.address(), place: place(row) };
        match rows.get_mut(first..).and_then(|rows| rows.last_mut()) {
            Some(last) if last.address == new.address => *last = new,
            Some(last) if last.place == new.place => {}
            _ => rows.push(new),
        }
    }
}

fn place(row: &LineRow) -> Place {
    let line = row.line().and_then(|line| u32::try_from(line.get()).ok()).unwrap_or(0);
    Place {
        file: u32::try_from(row.file_index()).unwrap_or(u32::MAX - 1),
        line,
        column: if line == 0 { 0 } else { super::format::column(row) },
    }
}

/// The files of one line program, by number.
pub(super) struct FileTable<'a> {
    header: LineHeader<'a>,
    comp_dir: &'a [u8],
}

impl<'a> FileTable<'a> {
    pub fn new(program: &LineProgram<'a>, unit: &Unit<'a>) -> FileTable<'a> {
        let comp_dir = unit.comp_dir.as_ref().map_or(&[][..], bytes);
        FileTable { header: program.header().clone(), comp_dir }
    }

    /// The file of that number, with its path joined from compilation folder, include folder and name. Before DWARF 5
    /// files count from 1, folders too, and folder 0 is the compilation folder; since then both count from 0.
    pub fn file(&self, dwarf: &Dwarf<'a>, unit: &Unit<'a>, number: u32) -> Option<SourceFile> {
        let entry = self.entry(number)?;
        let name = text(dwarf, unit, entry.path_name())?;
        let folder_number = entry.directory_index();
        let folder = match self.header.version() {
            ..=4 if folder_number == 0 => None,
            _ => self.header.directory(folder_number).and_then(|folder| text(dwarf, unit, folder)),
        };
        let mut path = Vec::new();
        if !is_absolute(name) {
            let folder = folder.unwrap_or_default();
            let folder_is_whole = self.header.version() >= 5 && folder_number == 0 || is_absolute(folder);
            if !folder_is_whole {
                append(&mut path, self.comp_dir);
            }
            append(&mut path, folder);
        }
        append(&mut path, name);
        let checksum = self.header.file_has_md5().then(|| Checksum::Md5(*entry.md5()));
        let text = self.embedded(dwarf, unit, entry);
        Some(SourceFile { path: String::from_utf8_lossy(&path).into_owned(), checksum, text })
    }

    /// The text of a file, if the compiler was told to embed it; an empty one is none.
    fn embedded(&self, dwarf: &Dwarf<'a>, unit: &Unit<'a>, entry: &FileEntry<'a>) -> Option<Arc<str>> {
        let source = text(dwarf, unit, entry.source()?)?;
        let has_size = (1..=MOST_EMBEDDED).contains(&source.len());
        has_size.then(|| String::from_utf8_lossy(source).into())
    }

    fn entry(&self, number: u32) -> Option<&FileEntry<'a>> {
        let index = if self.header.version() >= 5 { number } else { number.checked_sub(1)? };
        self.header.file_names().get(index as usize)
    }
}

fn text<'a>(dwarf: &Dwarf<'a>, unit: &Unit<'a>, value: Value<'a>) -> Option<&'a [u8]> {
    let text: Slice<'a> = dwarf.attr_string(unit, value).ok()?;
    Some(bytes(&text))
}

/// On either system: debug information of Windows is read on others.
fn is_absolute(path: &[u8]) -> bool {
    match path {
        [b'/' | b'\\', ..] => true,
        [letter, b':', b'/' | b'\\', ..] => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

fn append(path: &mut Vec<u8>, part: &[u8]) {
    if part.is_empty() {
        return;
    }
    let is_separator = |byte: Option<&u8>| byte.is_some_and(|b| matches!(b, b'/' | b'\\'));
    if !path.is_empty() && !is_separator(path.last()) && !is_separator(part.first()) {
        let windows = path.get(1) == Some(&b':') && path.contains(&b'\\');
        path.push(if windows { b'\\' } else { b'/' });
    }
    path.extend_from_slice(part);
}
