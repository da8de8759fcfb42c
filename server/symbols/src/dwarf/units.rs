//! The units of `.debug_info`: their roots, their address ranges, and which unit holds an entry.

use super::format::{
    Abbreviations, AttributeValue, DebugInfoOffset, DebugLineOffset, Dwarf, DwoId, Error, Reader, Section, Sections,
    Slice, Unit, UnitHeader, UnitType, Value, bytes, constants, default_bases, line_program, root_abbreviation,
};
use super::lines;
use super::names::Origin;
use super::ranges::RangeAttributes;
use crate::code::Code;
use heatline_profile::{FileOffset, Problems};
use rayon::prelude::*;
use std::sync::{Arc, OnceLock};

/// A unit with what its root entry says.
pub(super) struct UnitRoot<'a> {
    pub unit: Unit<'a>,
    pub origin: Origin,
    pub lines: Option<DebugLineOffset>,
    /// Types of C and C++ hold no function bodies and can be jumped over.
    pub plain_types: bool,
    /// Name of the file that holds the entries, if this is a skeleton.
    pub dwo_name: Option<&'a [u8]>,
}

/// What was read to look at so many roots is let go before the next are looked at.
const ROOTS_AT_ONCE: usize = 1024;

/// Where the units of a file start in its `.debug_info`, ascending.
pub(super) struct Starts {
    starts: Vec<u64>,
    end: u64,
}

impl Starts {
    /// By the lengths of the units alone, so that a damaged one hides no other.
    pub fn read(dwarf: &Dwarf<'_>, problems: &mut Problems) -> Starts {
        let mut starts = Vec::new();
        let whole = *dwarf.debug_info.reader();
        let mut rest = whole;
        while !rest.is_empty() {
            let start = (whole.len() - rest.len()) as u64;
            let length = rest.read_initial_length().map(|(length, _)| length);
            if length.and_then(|length| rest.skip(length)).is_err() {
                problems.add("debug-unit", 1, Some(FileOffset(start)), "the last unit of .debug_info is cut off");
                break;
            }
            starts.push(start);
        }
        Starts { starts, end: whole.len() as u64 }
    }

    /// Where a unit starts.
    pub fn start(&self, number: usize) -> u64 {
        self.starts.get(number).copied().unwrap_or(0)
    }

    /// The bytes of a unit.
    pub fn length(&self, number: usize) -> u64 {
        self.starts.get(number + 1).copied().unwrap_or(self.end).saturating_sub(self.start(number))
    }

    /// The code that each unit's root claims, or, where it claims none, that its line program covers. A damaged unit
    /// claims nothing and is counted.
    pub fn claims(&self, sections: &Sections, code: &Code, problems: &mut Problems) -> Vec<Vec<(u64, u64)>> {
        let mut claims: Vec<_> = Vec::with_capacity(self.starts.len());
        for starts in self.starts.chunks(ROOTS_AT_ONCE) {
            let open = sections.open();
            let dwarf = open.borrow();
            claims.par_extend(starts.par_iter().map(|start| self::claims(&dwarf, *start, code)));
        }
        let counted = claims.into_iter().zip(&self.starts).map(|(ranges, start)| {
            ranges.unwrap_or_else(|e| {
                let message = format!("a unit of .debug_info is damaged: {e}");
                problems.add("debug-unit", 1, Some(FileOffset(*start)), message);
                Vec::new()
            })
        });
        counted.collect()
    }
}

/// All units of one file, in the order of their offsets. Their roots are read when they are asked for.
pub(super) struct Units<'a> {
    pub dwarf: Dwarf<'a>,
    starts: Arc<Starts>,
    origin: Origin,
    roots: Vec<OnceLock<Result<Box<UnitRoot<'a>>, Error>>>,
}

impl<'a> Units<'a> {
    pub fn new(dwarf: Dwarf<'a>, starts: Arc<Starts>, origin: Origin) -> Units<'a> {
        let roots = starts.starts.iter().map(|_| OnceLock::new()).collect();
        Units { dwarf, starts, origin, roots }
    }

    /// Those of the file that holds the entries of `skeleton`, all of them read. A damaged unit is left out and counted.
    pub fn split(dwarf: Dwarf<'a>, skeleton: &Unit<'a>, problems: &mut Problems) -> Units<'a> {
        let starts = Arc::new(Starts::read(&dwarf, problems));
        let units = Units::new(dwarf, starts, Origin::Split);
        for (start, cell) in units.starts.starts.iter().zip(&units.roots) {
            let root = root(&units.dwarf, *start, Origin::Split, Some(skeleton));
            if let Err(e) = &root {
                let message = format!("a unit of .debug_info is damaged: {e}");
                problems.add("debug-unit", 1, Some(FileOffset(*start)), message);
            }
            cell.get_or_init(|| root.map(Box::new));
        }
        units
    }

    /// The number of units, readable or not.
    pub fn len(&self) -> usize {
        self.roots.len()
    }

    /// The number of the unit that holds the entry at this offset of `.debug_info`.
    pub fn holding(&self, offset: u64) -> Option<usize> {
        self.starts.starts.partition_point(|start| *start <= offset).checked_sub(1)
    }

    /// A unit that can be read.
    pub fn root(&self, number: usize) -> Option<&UnitRoot<'a>> {
        self.read_root(number).ok()
    }

    /// A unit, or why it cannot be read.
    pub fn read_root(&self, number: usize) -> Result<&UnitRoot<'a>, Error> {
        let read = || root(&self.dwarf, self.start(number), self.origin, None).map(Box::new);
        let root = self.roots.get(number).ok_or(Error::UnsupportedOffset)?.get_or_init(read);
        root.as_deref().map_err(|error| *error)
    }

    /// Where the unit starts in `.debug_info`.
    pub fn start(&self, number: usize) -> u64 {
        self.starts.start(number)
    }
}

/// The attributes of a root that matter here.
#[derive(Default)]
struct Root<'a> {
    name: Option<Value<'a>>,
    comp_dir: Option<Value<'a>>,
    dwo_name: Option<Value<'a>>,
    lines: Option<DebugLineOffset>,
    ranges: RangeAttributes<'a>,
    plain_types: bool,
}

fn root<'a>(dwarf: &Dwarf<'a>, start: u64, origin: Origin, skeleton: Option<&Unit<'a>>) -> Result<UnitRoot<'a>, Error> {
    let header = header(dwarf, start)?;
    let (mut unit, seen) = Root::read(dwarf, header, dwarf.abbreviations(&header)?)?;
    if let Some(skeleton) = skeleton {
        unit.copy_relocated_attributes(skeleton);
    }
    let text = |unit: &Unit<'a>, value: Option<Value<'a>>| value.and_then(|v| dwarf.attr_string(unit, v).ok());
    unit.name = text(&unit, seen.name);
    unit.comp_dir = text(&unit, seen.comp_dir);
    let dwo_name = text(&unit, seen.dwo_name).map(|name| bytes(&name));
    Ok(UnitRoot { unit, origin, lines: seen.lines, plain_types: seen.plain_types, dwo_name })
}

/// As little as possible is read: of most units this is all that is looked at.
fn claims(dwarf: &Dwarf<'_>, start: u64, code: &Code) -> Result<Vec<(u64, u64)>, Error> {
    let header = header(dwarf, start)?;
    let alone = root_abbreviation(dwarf, &header).map(Arc::new);
    let read = |abbreviations| Root::read(dwarf, header, abbreviations);
    let (unit, seen) = alone.and_then(read).or_else(|_| read(dwarf.abbreviations(&header)?))?;
    let mut ranges = Vec::new();
    seen.ranges.each(dwarf, &unit, |start, end| {
        if code.contains(start) && start < end {
            ranges.push((start, end));
        }
    })?;
    // DWARF 2 has no lists of ranges: the root of a unit with code in several sections names only one of them.
    let incomplete = if seen.ranges.any() { unit.header.version() == 2 && seen.ranges.list.is_none() } else { true };
    if let Some(offset) = seen.lines.filter(|_| incomplete) {
        let program = line_program(dwarf, &unit, offset)?;
        ranges.extend(lines::sequences(program).into_iter().filter(|range| code.contains(range.0)));
    }
    Ok(ranges)
}

fn header<'a>(dwarf: &Dwarf<'a>, start: u64) -> Result<UnitHeader<Slice<'a>>, Error> {
    dwarf.unit_header(DebugInfoOffset(usize::try_from(start).map_err(|_| Error::UnsupportedOffset)?))
}

impl<'a> Root<'a> {
    fn read(
        dwarf: &Dwarf<'a>,
        header: UnitHeader<Slice<'a>>,
        abbreviations: Arc<Abbreviations>,
    ) -> Result<(Unit<'a>, Root<'a>), Error> {
        let mut unit = default_bases(dwarf, header, abbreviations.clone());
        if let UnitType::Skeleton(id) | UnitType::SplitCompilation(id) = header.type_() {
            unit.dwo_id = Some(id);
        }
        let mut seen = Root::default();
        let mut entries = header.entries_raw(&abbreviations, None)?;
        let abbreviation = entries.read_abbreviation()?.ok_or(Error::MissingUnitDie)?;
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec)?;
            seen.take(attribute.name(), attribute.value(), &mut unit);
        }
        if let Some(low) = seen.ranges.low {
            unit.low_pc = dwarf.attr_address(&unit, low)?.unwrap_or(0);
        }
        Ok((unit, seen))
    }

    fn take(&mut self, name: constants::DwAt, value: Value<'a>, unit: &mut Unit<'a>) {
        match (name, value) {
            (constants::DW_AT_name, value) => self.name = Some(value),
            (constants::DW_AT_comp_dir, value) => self.comp_dir = Some(value),
            (constants::DW_AT_dwo_name | constants::DW_AT_GNU_dwo_name, value) => self.dwo_name = Some(value),
            (constants::DW_AT_stmt_list, AttributeValue::DebugLineRef(offset)) => self.lines = Some(offset),
            (constants::DW_AT_language, AttributeValue::Language(language)) => {
                self.plain_types = is_c_family(language);
            }
            (constants::DW_AT_str_offsets_base, AttributeValue::DebugStrOffsetsBase(base)) => {
                unit.str_offsets_base = base;
            }
            (constants::DW_AT_addr_base | constants::DW_AT_GNU_addr_base, AttributeValue::DebugAddrBase(base)) => {
                unit.addr_base = base;
            }
            (
                constants::DW_AT_rnglists_base | constants::DW_AT_GNU_ranges_base,
                AttributeValue::DebugRngListsBase(base),
            ) => unit.rnglists_base = base,
            (constants::DW_AT_GNU_dwo_id, AttributeValue::DwoId(DwoId(id))) => {
                unit.dwo_id.get_or_insert(DwoId(id));
            }
            (name, value) => self.ranges.take(name, value),
        }
    }
}

fn is_c_family(language: constants::DwLang) -> bool {
    let family = [
        constants::DW_LANG_C,
        constants::DW_LANG_C89,
        constants::DW_LANG_C99,
        constants::DW_LANG_C11,
        constants::DW_LANG_C17,
        constants::DW_LANG_C_plus_plus,
        constants::DW_LANG_C_plus_plus_03,
        constants::DW_LANG_C_plus_plus_11,
        constants::DW_LANG_C_plus_plus_14,
        constants::DW_LANG_C_plus_plus_17,
        constants::DW_LANG_C_plus_plus_20,
    ];
    family.contains(&language)
}
