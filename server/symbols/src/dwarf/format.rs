//! The names of the crate `gimli` that this folder uses, and how its types are instantiated. The one door to it.

use crate::object_file::ObjectFile;
use gimli::{
    DebugAddrBase, DebugLocListsBase, DebugRngListsBase, DebugStrOffsetsBase, DwarfPackage, DwarfPackageSections,
    DwarfSections, EndianSlice, RunTimeEndian, SectionId, UnitHeader,
};
use heatline_profile::Problems;
use rayon::prelude::*;

pub(super) use gimli::{
    Abbreviation, AttributeSpecification, AttributeValue, DebugInfoOffset, DebugLineOffset, DwoId, Error, LineRow,
    Reader, Section, UnitOffset, UnitType, constants,
};

/// Part of a section, with its byte order.
pub(super) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
pub(super) type Dwarf<'a> = gimli::Dwarf<Slice<'a>>;
pub(super) type Unit<'a> = gimli::Unit<Slice<'a>>;
pub(super) type Value<'a> = AttributeValue<Slice<'a>>;
pub(super) type Entries<'a, 'u> = gimli::EntriesRaw<'u, Slice<'a>>;
pub(super) type LineProgram<'a> = gimli::IncompleteLineProgram<Slice<'a>>;
pub(super) type LineHeader<'a> = gimli::LineProgramHeader<Slice<'a>>;
pub(super) type FileEntry<'a> = gimli::FileEntry<Slice<'a>>;

/// The content of the sections that resolving needs, kept as long as it lasts.
pub(crate) struct Sections {
    sections: DwarfSections<Vec<u8>>,
    endian: RunTimeEndian,
}

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

impl Sections {
    /// Reads and unpacks them, several at a time. One that cannot be read is empty, and a problem.
    pub fn read(file: &ObjectFile, problems: &mut Problems) -> Sections {
        let read = |id: SectionId| {
            let mut problems = Problems::new();
            (section(file, id.name(), &mut problems), problems)
        };
        // The long ones first, so that the last one read is short.
        let mut content: Vec<(Vec<u8>, Problems)> = NEEDED.into_par_iter().with_max_len(1).map(read).collect();
        content.iter().for_each(|(_, found)| problems.append(found));
        let load = |id: SectionId| {
            let place = NEEDED.iter().position(|needed| *needed == id).and_then(|place| content.get_mut(place));
            Ok::<_, std::convert::Infallible>(place.map(|(content, _)| std::mem::take(content)).unwrap_or_default())
        };
        let Ok(sections) = DwarfSections::load(load);
        Sections { sections, endian: endian(file) }
    }

    /// Those of a `.dwo` file.
    pub(super) fn read_split(file: &ObjectFile, problems: &mut Problems) -> Sections {
        let Ok(sections) =
            DwarfSections::load(|id| Ok::<_, std::convert::Infallible>(split_section(file, id, problems)));
        Sections { sections, endian: endian(file) }
    }

    /// As a file of split units, whose skeletons are in `parent`.
    pub(super) fn borrow_split<'a>(&'a self, parent: &Dwarf<'a>) -> Dwarf<'a> {
        let mut dwarf = self.borrow();
        dwarf.make_dwo(parent);
        dwarf
    }

    pub(super) fn borrow(&self) -> Dwarf<'_> {
        self.sections.borrow(|section| EndianSlice::new(section, self.endian))
    }
}

/// The content of a `.dwp` file: the split units of a whole binary, with an index by their ids.
pub(super) struct PackageSections {
    sections: DwarfPackageSections<Vec<u8>>,
    endian: RunTimeEndian,
}

impl PackageSections {
    /// Reads and unpacks them, as [`Sections::read`] does.
    pub fn read(file: &ObjectFile, problems: &mut Problems) -> PackageSections {
        let load = |id: SectionId| Ok::<_, Error>(split_section(file, id, problems));
        PackageSections { sections: DwarfPackageSections::load(load).unwrap_or_default(), endian: endian(file) }
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
        let slice = |section| EndianSlice::new(section, self.endian);
        self.sections.borrow(|section: &Vec<u8>| slice(section), slice(&[])).ok()
    }
}

/// The content of a section; one that cannot be read is empty, and a problem.
fn section(file: &ObjectFile, name: &str, problems: &mut Problems) -> Vec<u8> {
    file.content_of(name).unwrap_or_else(|e| {
        problems.add("debug-section", 1, None, format!("section {name} cannot be read: {e}"));
        Vec::new()
    })
}

fn split_section(file: &ObjectFile, id: SectionId, problems: &mut Problems) -> Vec<u8> {
    let needed = NEEDED.contains(&id) || matches!(id, SectionId::DebugCuIndex | SectionId::DebugTuIndex);
    let name = id.dwo_name().filter(|_| needed);
    name.map_or_else(Vec::new, |name| section(file, name, problems))
}

fn endian(file: &ObjectFile) -> RunTimeEndian {
    if file.big_endian { RunTimeEndian::Big } else { RunTimeEndian::Little }
}

/// The bytes of a slice as long as the section lives.
pub(super) fn bytes<'a>(slice: &Slice<'a>) -> &'a [u8] {
    slice.slice()
}

/// A unit before its root is read.
pub(super) fn default_bases<'a>(dwarf: &Dwarf<'a>, header: UnitHeader<Slice<'a>>) -> Result<Unit<'a>, Error> {
    let (encoding, file) = (header.encoding(), dwarf.file_type);
    Ok(Unit {
        abbreviations: dwarf.abbreviations(&header)?,
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
    })
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
