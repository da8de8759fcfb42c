//! The names of the crate `gimli` that this folder uses, and how its types are instantiated. The one door to it.

use super::section::{Part, Section as Bytes};
use crate::object_file::ObjectFile;
use crate::storage::Source;
use gimli::{
    DebugAbbrev, DebugAbbrevOffset, DebugAddrBase, DebugLocListsBase, DebugRngListsBase, DebugStrOffsetsBase,
    DwarfPackage, DwarfPackageSections, DwarfSections, SectionId,
};
use heatline_profile::Problems;
use rayon::prelude::*;
use std::convert::Infallible;
use std::sync::Arc;

pub(super) use gimli::{
    Abbreviation, Abbreviations, AttributeSpecification, AttributeValue, DebugInfoOffset, DebugLineOffset, DwoId,
    EndianSlice, Error, LineRow, Reader, ReaderOffsetId, RunTimeEndian, Section, UnitHeader, UnitOffset, UnitType,
    constants,
};

/// Part of a section, with its byte order.
pub(super) type Slice<'a> = Part<'a>;
pub(super) type Dwarf<'a> = gimli::Dwarf<Slice<'a>>;
pub(super) type Unit<'a> = gimli::Unit<Slice<'a>>;
pub(super) type Value<'a> = AttributeValue<Slice<'a>>;
pub(super) type Entries<'a, 'u> = gimli::EntriesRaw<'u, Slice<'a>>;
pub(super) type LineProgram<'a> = gimli::IncompleteLineProgram<Slice<'a>>;
pub(super) type LineHeader<'a> = gimli::LineProgramHeader<Slice<'a>>;
pub(super) type FileEntry<'a> = gimli::FileEntry<Slice<'a>>;

/// What functions, lines and inlined frames are made from. Locations of variables, for one, are not needed.
const NEEDED: [SectionId; 9] = [
    SectionId::DebugInfo,
    SectionId::DebugStr,
    SectionId::DebugLine,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugAddr,
    SectionId::DebugStrOffsets,
    SectionId::DebugLineStr,
    SectionId::DebugAbbrev,
];

/// Where the sections are that resolving needs.
pub(crate) struct Sections {
    sources: Vec<(SectionId, Source)>,
    endian: RunTimeEndian,
}

/// The sections themselves, with what was read of them; given back with all that when dropped.
pub(super) struct OpenSections(DwarfSections<Bytes>);

impl Sections {
    /// Finds them, and unpacks those that are packed, several at a time. One that cannot be read is empty, and a
    /// problem.
    pub fn find(file: &ObjectFile, problems: &mut Problems) -> Sections {
        let find = |id: SectionId| {
            let mut problems = Problems::new();
            (id, source(file, id.name(), &mut problems), problems)
        };
        let found: Vec<_> = NEEDED.into_par_iter().with_max_len(1).map(find).collect();
        found.iter().for_each(|(.., found)| problems.append(found));
        Sections { sources: found.into_iter().map(|(id, source, _)| (id, source)).collect(), endian: endian(file) }
    }

    /// Those of a `.dwo` file.
    pub(super) fn find_split(file: &ObjectFile, problems: &mut Problems) -> Sections {
        let find = |id: SectionId| Some((id, source(file, id.dwo_name()?, problems)));
        Sections { sources: NEEDED.into_iter().filter_map(find).collect(), endian: endian(file) }
    }

    /// Opens them; nothing is read yet.
    pub(super) fn open(&self) -> OpenSections {
        let load = |wanted: SectionId| {
            let source = self.sources.iter().find(|(id, _)| *id == wanted).map(|(_, source)| source.clone());
            Ok::<_, Infallible>(Bytes::new(source.unwrap_or_else(Source::empty), self.endian))
        };
        let Ok(sections) = DwarfSections::load(load);
        OpenSections(sections)
    }
}

impl OpenSections {
    /// As a file of split units, whose skeletons are in `parent`.
    pub fn borrow_split<'a>(&'a self, parent: &Dwarf<'a>) -> Dwarf<'a> {
        let mut dwarf = self.borrow();
        dwarf.make_dwo(parent);
        dwarf
    }

    pub fn borrow(&self) -> Dwarf<'_> {
        self.0.borrow(Bytes::part)
    }
}

/// The content of a `.dwp` file: the split units of a whole binary, with an index by their ids.
pub(super) struct PackageSections {
    sections: DwarfPackageSections<Bytes>,
    /// What stands in for a section that is not there.
    nothing: Bytes,
}

impl PackageSections {
    /// Finds and unpacks them, as [`Sections::find`] does.
    pub fn find(file: &ObjectFile, problems: &mut Problems) -> Option<PackageSections> {
        let load = |id: SectionId| {
            let needed = NEEDED.contains(&id) || matches!(id, SectionId::DebugCuIndex | SectionId::DebugTuIndex);
            let name = id.dwo_name().filter(|_| needed);
            let source = name.map_or_else(Source::empty, |name| source(file, name, problems));
            Ok::<_, Error>(Bytes::new(source, endian(file)))
        };
        let sections = DwarfPackageSections::load(load).ok()?;
        Some(PackageSections { sections, nothing: Bytes::new(Source::empty(), endian(file)) })
    }

    /// Whether the index names the unit.
    pub fn holds(&self, id: DwoId) -> bool {
        self.open().is_some_and(|package| package.cu_index.find(id.0).is_some())
    }

    /// The unit's part of each section.
    pub fn borrow<'a>(&'a self, id: DwoId, parent: &Dwarf<'a>) -> Option<Dwarf<'a>> {
        self.open()?.find_cu(id, parent).ok().flatten()
    }

    fn open(&self) -> Option<DwarfPackage<Slice<'_>>> {
        self.sections.borrow(Bytes::part, self.nothing.part()).ok()
    }
}

/// Where a section is; one that cannot be read is empty, and a problem.
fn source(file: &ObjectFile, name: &str, problems: &mut Problems) -> Source {
    file.source_of(name).unwrap_or_else(|e| {
        problems.add("debug-section", 1, None, format!("section {name} cannot be read: {e}"));
        Source::empty()
    })
}

fn endian(file: &ObjectFile) -> RunTimeEndian {
    if file.big_endian { RunTimeEndian::Big } else { RunTimeEndian::Little }
}

/// The bytes of a text as long as the section lives.
pub(super) fn bytes<'a>(text: &Slice<'a>) -> &'a [u8] {
    text.text()
}

/// The abbreviation of a unit's root alone, where it is the first of its table, as compilers have it. Most units of a
/// program hold no wanted address and need no more.
pub(super) fn root_abbreviation(dwarf: &Dwarf<'_>, header: &UnitHeader<Slice<'_>>) -> Result<Abbreviations, Error> {
    let mut table = *dwarf.debug_abbrev.reader();
    table.skip(header.debug_abbrev_offset().0)?;
    let mut rest = table;
    let (_code, _tag, _children) = (rest.read_uleb128()?, rest.read_uleb128()?, rest.read_u8()?);
    loop {
        let (name, form) = (rest.read_uleb128()?, rest.read_uleb128_u16()?);
        if constants::DwForm(form) == constants::DW_FORM_implicit_const {
            rest.read_sleb128()?;
        }
        if (name, form) == (0, 0) {
            break;
        }
    }
    let mut alone = vec![0; table.len() - rest.len() + 1];
    if let Some((_terminator, entry)) = alone.split_last_mut() {
        table.read_slice(entry)?;
    }
    DebugAbbrev::from(EndianSlice::new(&alone, dwarf.debug_abbrev.reader().endian()))
        .abbreviations(DebugAbbrevOffset(0))
}

/// A unit before its root is read.
pub(super) fn default_bases<'a>(
    dwarf: &Dwarf<'a>,
    header: UnitHeader<Slice<'a>>,
    abbreviations: Arc<Abbreviations>,
) -> Unit<'a> {
    let (encoding, file) = (header.encoding(), dwarf.file_type);
    Unit {
        abbreviations,
        name: None,
        comp_dir: None,
        low_pc: 0,
        str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(encoding, file),
        addr_base: DebugAddrBase(0),
        loclists_base: DebugLocListsBase::default_for_encoding_and_file(encoding, file),
        rnglists_base: DebugRngListsBase::default_for_encoding_and_file(encoding, file),
        line_program: None,
        dwo_id: None,
        header,
    }
}

/// The line program of a unit; its header is parsed, its rows are not.
pub(super) fn line_program<'a>(
    dwarf: &Dwarf<'a>,
    unit: &Unit<'a>,
    offset: DebugLineOffset,
) -> Result<LineProgram<'a>, Error> {
    dwarf.debug_line.program(offset, unit.header.address_size(), unit.comp_dir, unit.name)
}

/// The column of a row, 0 for none.
pub(super) fn column(row: &LineRow) -> u32 {
    match row.column() {
        gimli::ColumnType::LeftEdge => 0,
        gimli::ColumnType::Column(column) => u32::try_from(column.get()).unwrap_or(0),
    }
}

/// Whether a linker writes this address for code that it threw away (the top of the address space).
pub(super) fn is_tombstone(address: u64, address_size: u8) -> bool {
    let top = if address_size >= 8 { u64::MAX } else { (1 << (u32::from(address_size) * 8)) - 1 };
    address >= top - 1
}
