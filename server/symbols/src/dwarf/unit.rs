//! One unit's addresses to chains of frames.

use super::format::line_program;
use super::lines::{self, FileTable, Place};
use super::names::{EntryRef, FileRef, Library, Origin};
use super::tree::{self, Tree};
use super::units::UnitRoot;
use crate::code::Code;
use crate::resolution::{FileId, Frame, FunctionId, SourceFile};
use rustc_hash::FxHashMap;
use std::num::NonZeroU32;

/// A function before names are demangled; the file is of the unit's own list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct UnitFunction<'a> {
    pub name: Option<&'a [u8]>,
    pub linkage_name: Option<&'a [u8]>,
    pub file: Option<FileId>,
    pub line: Option<NonZeroU32>,
}

/// What a unit says of its addresses. Files and functions are numbered within it.
#[derive(Default)]
pub(crate) struct UnitFrames<'a> {
    pub files: Vec<SourceFile>,
    pub functions: Vec<UnitFunction<'a>>,
    pub frames: Vec<Frame>,
    /// Start and end in `frames`.
    pub chains: Vec<(u32, u32)>,
    /// Per address: 1 + chain, 0 where the unit knows nothing.
    pub of_address: Vec<u32>,
    /// What was damaged, for people.
    pub damage: Vec<String>,
}

/// Resolves the sorted addresses of one unit.
pub(super) fn resolve<'a>(library: Library<'a, '_>, number: usize, code: &Code, addresses: &[u64]) -> UnitFrames<'a> {
    let root = match library.units.read_root(number) {
        Ok(root) => root,
        Err(error) => {
            let damage = vec![format!("a unit of .debug_info is damaged: {error}")];
            return UnitFrames { damage, ..UnitFrames::default() };
        }
    };
    let mut build = Build {
        library,
        number,
        out: UnitFrames::default(),
        tables: FxHashMap::default(),
        files: FxHashMap::default(),
        functions: FxHashMap::default(),
    };
    let places = build.places(root, addresses);
    let (units, with_entries) = match library.split.and_then(|(units, number)| Some((units, units.root(number)?))) {
        Some(split) => split,
        None => (library.units, root),
    };
    let tree = tree::walk(units, with_entries, code, addresses);
    if let Some(error) = tree.error {
        build.out.damage.push(format!("entries of a unit are damaged: {error}"));
    }
    build.chains(&tree, &places);
    build.out
}

struct Build<'a, 'l> {
    library: Library<'a, 'l>,
    number: usize,
    out: UnitFrames<'a>,
    /// The file tables of this unit and of those that its entries refer to.
    tables: FxHashMap<(usize, Origin), Option<FileTable<'a>>>,
    files: FxHashMap<FileRef, Option<FileId>>,
    functions: FxHashMap<EntryRef, Option<FunctionId>>,
}

/// The last chains made, so that code that goes to and fro between a few places does not repeat them. Of fixed size,
/// so that no input can make it slow.
const RECENT: usize = 1 << 10;

impl<'a> Build<'a, '_> {
    fn places(&mut self, root: &UnitRoot<'a>, addresses: &[u64]) -> Vec<Place> {
        let none = || vec![Place::NONE; addresses.len()];
        let Some(offset) = root.lines else { return none() };
        match line_program(&self.library.units.dwarf, &root.unit, offset) {
            Ok(program) => {
                self.tables.insert((self.number, Origin::Own), Some(FileTable::new(&program, &root.unit)));
                let (places, damaged) = lines::places(program, addresses);
                if damaged > 0 {
                    self.out.damage.push("a line program is damaged".to_owned());
                }
                places
            }
            Err(e) => {
                self.out.damage.push(format!("a line program is damaged: {e}"));
                none()
            }
        }
    }

    fn chains(&mut self, tree: &Tree, places: &[Place]) {
        let mut recent = vec![(u32::MAX, Place::NONE, 0u32); RECENT];
        // Per node: 1 + start of its callers' frames, and their end.
        let mut callers = vec![(0u32, 0u32); tree.nodes.len()];
        self.out.of_address.reserve(places.len());
        for (node, place) in tree.innermost.iter().zip(places) {
            let key = (node.wrapping_mul(0x9e37_79b1) ^ place.line.wrapping_mul(0x85eb_ca6b) ^ place.column) as usize;
            let Some(slot) = recent.get_mut((key ^ (key >> 15)) % RECENT) else { continue };
            if slot.0 != *node || slot.1 != *place {
                *slot = (*node, *place, self.chain(tree, &mut callers, *node, *place));
            }
            self.out.of_address.push(slot.2);
        }
    }

    /// 1 + number of a new chain, or 0 for an empty one.
    fn chain(&mut self, tree: &Tree, callers: &mut [(u32, u32)], node: u32, place: Place) -> u32 {
        if node == 0 && place == Place::NONE {
            return 0;
        }
        let start = self.out.frames.len() as u32;
        let (function, inlined) = self.function_of(tree, node);
        let file = if place == Place::NONE { None } else { self.own_file(place.file) };
        self.out.frames.push(Frame {
            function,
            file,
            line: NonZeroU32::new(place.line),
            column: NonZeroU32::new(place.column),
            inlined,
        });
        let number = node.checked_sub(1).map_or(usize::MAX, |n| n as usize);
        match callers.get(number).copied() {
            None => {}
            Some((0, _)) => {
                let first = self.out.frames.len() as u32;
                self.caller_frames(tree, node);
                if let Some(known) = callers.get_mut(number) {
                    *known = (first + 1, self.out.frames.len() as u32);
                }
            }
            Some((first, end)) => self.out.frames.extend_from_within(first as usize - 1..end as usize),
        }
        self.out.chains.push((start, self.out.frames.len() as u32));
        self.out.chains.len() as u32
    }

    /// Where the innermost function was inlined, and where that one was, and so on.
    fn caller_frames(&mut self, tree: &Tree, node: u32) {
        let at = |number: u32| tree.nodes.get(number as usize);
        let mut callee = node.checked_sub(1).and_then(at);
        while let Some(inner) = callee {
            let Some(parent) = inner.parent else { break };
            let (function, inlined) = self.function_of(tree, parent + 1);
            let file = self.own_file(inner.call_file);
            let (line, column) = (NonZeroU32::new(inner.call_line), NonZeroU32::new(inner.call_column));
            self.out.frames.push(Frame { function, file, line, column, inlined });
            callee = at(parent);
        }
    }

    fn function_of(&mut self, tree: &Tree, node: u32) -> (Option<FunctionId>, bool) {
        let node = node.checked_sub(1).and_then(|n| tree.nodes.get(n as usize));
        let Some(node) = node else { return (None, false) };
        let known = self.functions.get(&node.entry).copied();
        (known.unwrap_or_else(|| self.new_function(node.entry)), node.inlined)
    }

    fn new_function(&mut self, entry: EntryRef) -> Option<FunctionId> {
        let found = self.library.function(entry);
        let id = if found.name.is_none() && found.linkage_name.is_none() {
            None
        } else {
            let file = found.file.and_then(|file| self.file(file));
            self.out.functions.push(UnitFunction {
                name: found.name,
                linkage_name: found.linkage_name,
                file,
                line: NonZeroU32::new(found.line),
            });
            FunctionId::new(self.out.functions.len() - 1)
        };
        self.functions.insert(entry, id);
        id
    }

    fn own_file(&mut self, number: u32) -> Option<FileId> {
        self.file(FileRef { unit: self.number, origin: Origin::Own, number })
    }

    fn file(&mut self, file: FileRef) -> Option<FileId> {
        if let Some(known) = self.files.get(&file) {
            return *known;
        }
        // Split entries have no file table of their own: their numbers are of the skeleton's.
        let FileRef { unit, origin, .. } = match file.origin {
            Origin::Split => FileRef { unit: self.number, origin: Origin::Own, ..file },
            _ => file,
        };
        let units = self.library.units(origin)?;
        let root = units.root(unit)?;
        let table = self.tables.entry((unit, origin)).or_insert_with(|| {
            let program = line_program(&units.dwarf, &root.unit, root.lines?).ok()?;
            Some(FileTable::new(&program, &root.unit))
        });
        let found = table.as_ref().and_then(|table| table.file(&units.dwarf, &root.unit, file.number));
        let id = found.and_then(|found| {
            self.out.files.push(found);
            FileId::new(self.out.files.len() - 1)
        });
        self.files.insert(file, id);
        id
    }
}
