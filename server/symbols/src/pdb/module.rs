//! One module's addresses to chains of frames.

use super::format::{ModuleStream, Place, Strings};
use super::lines::{self, Declared, Lines, Row};
use super::names::NameKey;
use super::symbols::{self, Procedure};
use crate::resolution::{FileId, Frame, FunctionId, SourceFile};
use rustc_hash::{FxHashMap, FxHashSet};
use std::num::NonZeroU32;
use std::ops::Range;

/// What a module says of its addresses. Files and functions are numbered within it.
#[derive(Default)]
pub(super) struct ModuleFrames {
    pub files: Vec<SourceFile>,
    pub functions: Vec<ModuleFunction>,
    pub frames: Vec<Frame>,
    /// Start and end in `frames`.
    pub chains: Vec<(u32, u32)>,
    /// Per address: 1 + chain, 0 where the module knows nothing.
    pub of_address: Vec<u32>,
    /// Where all procedures start.
    pub starts: Vec<Place>,
    /// Where those start that have an address.
    pub found: Vec<Place>,
    /// Whether something was damaged.
    pub damaged: bool,
}

/// A function before it is named.
pub(super) struct ModuleFunction {
    pub key: NameKey,
    pub file: Option<FileId>,
    pub line: Option<NonZeroU32>,
}

/// An activation of a function at some addresses, with that of its caller before it.
#[derive(Clone, Copy)]
struct Mark {
    /// 1 + the mark of the caller that it is inlined into.
    parent: u32,
    /// 1 + the number of the site among those of its procedure, 0 for the procedure itself.
    site: u32,
    function: Option<FunctionId>,
    file: Option<FileId>,
    line: u32,
    column: u32,
}

/// Resolves the sorted addresses of one module.
pub(super) fn resolve(
    number: usize,
    stream: &ModuleStream,
    addresses: &[Place],
    strings: Option<&Strings>,
) -> ModuleFrames {
    let wanted = |start: Place, size: u32| !range(addresses, start, size).is_empty();
    let lines = lines::read(stream.lines(), wanted);
    let symbols = symbols::read(stream.symbols(), wanted);
    let mut build = Build {
        number,
        addresses,
        strings,
        lines: &lines,
        marks: Vec::new(),
        mark_of: vec![0; addresses.len()],
        out: ModuleFrames {
            damaged: symbols.damaged || lines.damaged > 0,
            starts: symbols.starts,
            ..ModuleFrames::default()
        },
        files: FxHashMap::default(),
        inlinees: FxHashMap::default(),
    };
    let mut starts = FxHashSet::default();
    for procedure in symbols.wanted.iter().filter(|procedure| starts.insert(procedure.start)) {
        build.procedure(procedure);
    }
    build.rows_without_procedure();
    build.finish()
}

/// Which of the sorted addresses lie in a piece of code.
fn range(addresses: &[Place], start: Place, size: u32) -> Range<usize> {
    let end = Place { offset: start.offset.saturating_add(size), ..start };
    let first = addresses.partition_point(|address| *address < start);
    let count = addresses.get(first..).unwrap_or_default().partition_point(|address| *address < end);
    first..first + count
}

struct Build<'a> {
    number: usize,
    addresses: &'a [Place],
    strings: Option<&'a Strings>,
    lines: &'a Lines<'a>,
    marks: Vec<Mark>,
    /// Per address: 1 + its innermost mark.
    mark_of: Vec<u32>,
    out: ModuleFrames,
    files: FxHashMap<u32, Option<FileId>>,
    inlinees: FxHashMap<u32, Option<FunctionId>>,
}

impl<'a> Build<'a> {
    fn procedure(&mut self, procedure: &Procedure<'_>) {
        let within = range(self.addresses, procedure.start, procedure.size);
        let function = self.name_procedure(procedure);
        self.out.found.push(procedure.start);
        self.lines_of(within.clone(), function);
        let mut rows = Vec::new();
        for (number, site) in procedure.sites().iter().enumerate() {
            // Without its declaration the lines of an inlined function are not known, but its code is.
            let declared = self.lines.inlinees.get(&site.inlinee).copied();
            site.rows(procedure.start, declared.unwrap_or(Declared { file: u32::MAX, line: 0 }), &mut rows);
            let parent = site.parent.map_or(0, |parent| parent as u32 + 1);
            self.site(number as u32 + 1, parent, site.inlinee, declared, &rows, &within);
        }
    }

    /// Marks addresses that no function has yet with the rows that cover them.
    fn lines_of(&mut self, within: Range<usize>, function: Option<FunctionId>) {
        let lines = self.lines;
        let mut next = within.start;
        let first = self.addresses.get(next).map_or(0, |address| {
            lines.rows.partition_point(|row| (row.section, row.end) <= (address.section, address.offset))
        });
        let mut rows = lines.rows.get(first..).unwrap_or_default().iter().peekable();
        let mut last = None;
        while let Some(address) = self.addresses.get(next).filter(|_| next < within.end) {
            while rows.next_if(|row| (row.section, row.end) <= (address.section, address.offset)).is_some() {}
            let covering =
                rows.peek().copied().filter(|row| row.section == address.section && row.start <= address.offset);
            let key = covering.map(|row| row.start);
            let mark = match last {
                Some((known, mark)) if known == key => mark,
                _ if covering.is_none() && function.is_none() => 0,
                _ => self.mark(0, 0, function, covering.copied()),
            };
            last = Some((key, mark));
            if let Some(slot) = self.mark_of.get_mut(next).filter(|slot| **slot == 0) {
                *slot = mark;
            }
            next += 1;
        }
    }

    /// Marks the addresses that the rows of an inlined call cover, as far as the call that holds it covers them too.
    fn site(
        &mut self,
        number: u32,
        parent: u32,
        inlinee: u32,
        declared: Option<Declared>,
        rows: &[Row],
        within: &Range<usize>,
    ) {
        let own = self.addresses.get(within.clone()).unwrap_or_default();
        for row in rows {
            let start = Place { section: row.section, offset: row.start };
            let covered = range(own, start, row.end - row.start);
            let mut last = (0, 0);
            for at in within.start + covered.start..within.start + covered.end {
                let outer = self.mark_of.get(at).copied().unwrap_or(0);
                let holds = outer.checked_sub(1).and_then(|mark| self.marks.get(mark as usize));
                if holds.is_none_or(|mark| mark.site != parent) {
                    continue;
                }
                if last.0 != outer {
                    let function = self.name_inlinee(inlinee, declared);
                    last = (outer, self.mark(outer, number, function, Some(*row)));
                }
                if let Some(slot) = self.mark_of.get_mut(at) {
                    *slot = last.1;
                }
            }
        }
    }

    /// Rows of code that belongs to no procedure, as assembler makes it.
    fn rows_without_procedure(&mut self) {
        self.lines_of(0..self.addresses.len(), None);
    }

    /// 1 + the number of a new mark.
    fn mark(&mut self, parent: u32, site: u32, function: Option<FunctionId>, row: Option<Row>) -> u32 {
        let file = row.filter(|row| row.line > 0).and_then(|row| self.file(row.file));
        let (line, column) = row.map_or((0, 0), |row| (row.line, row.column));
        self.marks.push(Mark { parent, site, function, file, line, column });
        self.marks.len() as u32
    }

    fn file(&mut self, key: u32) -> Option<FileId> {
        if let Some(known) = self.files.get(&key) {
            return *known;
        }
        let file = self.lines.files.get(key, self.strings);
        let id = file.and_then(|file| {
            self.out.files.push(file);
            FileId::new(self.out.files.len() - 1)
        });
        self.files.insert(key, id);
        id
    }

    fn name_procedure(&mut self, procedure: &Procedure<'_>) -> Option<FunctionId> {
        let declared = self.lines.functions.get(&procedure.start).copied();
        let name = String::from_utf8_lossy(procedure.name).into_owned();
        self.function(NameKey::Procedure { module: self.number, name, type_index: procedure.type_index }, declared)
    }

    fn name_inlinee(&mut self, id: u32, declared: Option<Declared>) -> Option<FunctionId> {
        if let Some(known) = self.inlinees.get(&id) {
            return *known;
        }
        let function = self.function(NameKey::Inlinee { module: self.number, id }, declared);
        self.inlinees.insert(id, function);
        function
    }

    fn function(&mut self, key: NameKey, declared: Option<Declared>) -> Option<FunctionId> {
        let file = declared.and_then(|declared| self.file(declared.file));
        let line = declared.and_then(|declared| NonZeroU32::new(declared.line));
        self.out.functions.push(ModuleFunction { key, file, line });
        FunctionId::new(self.out.functions.len() - 1)
    }

    /// Makes a chain of each mark that an address has.
    fn finish(mut self) -> ModuleFrames {
        let mut chains = vec![0_u32; self.marks.len()];
        self.out.of_address.reserve(self.mark_of.len());
        for mark in &self.mark_of {
            let Some(chain) = mark.checked_sub(1).and_then(|mark| chains.get_mut(mark as usize)) else {
                self.out.of_address.push(0);
                continue;
            };
            if *chain == 0 {
                let start = self.out.frames.len() as u32;
                let mut next = *mark;
                while let Some(mark) = next.checked_sub(1).and_then(|mark| self.marks.get(mark as usize)) {
                    self.out.frames.push(Frame {
                        function: mark.function,
                        file: mark.file,
                        line: NonZeroU32::new(mark.line),
                        column: NonZeroU32::new(mark.column),
                        inlined: mark.site > 0,
                    });
                    next = mark.parent;
                }
                self.out.chains.push((start, self.out.frames.len() as u32));
                *chain = self.out.chains.len() as u32;
            }
            self.out.of_address.push(*chain);
        }
        self.out
    }
}
