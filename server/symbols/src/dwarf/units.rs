//! The units of `.debug_info`: their roots, their address ranges, and which unit holds an entry.

use super::format::{
    AttributeValue, DebugInfoOffset, DebugLineOffset, Dwarf, DwoId, Error, Reader, Section, Unit, UnitType, Value,
    bytes, constants, default_bases, line_program,
};
use super::lines;
use super::names::Origin;
use super::ranges::RangeAttributes;
use crate::code::Code;
use heatline_profile::{FileOffset, Problems};
use rayon::prelude::*;

/// A unit with what its root entry says.
pub(super) struct UnitRoot<'a> {
    pub unit: Unit<'a>,
    pub origin: Origin,
    pub lines: Option<DebugLineOffset>,
    /// The code that the root claims, or, where it claims none, that its line program covers.
    pub ranges: Vec<(u64, u64)>,
    /// Types of C and C++ hold no function bodies and can be jumped over.
    pub plain_types: bool,
    /// Name of the file that holds the entries, if this is a skeleton.
    pub dwo_name: Option<&'a [u8]>,
}

/// All units of one file, in the order of their offsets.
pub(super) struct Units<'a> {
    pub dwarf: Dwarf<'a>,
    /// Start in `.debug_info` → unit; `None` for one that cannot be read.
    roots: Vec<(u64, Option<UnitRoot<'a>>)>,
}

impl<'a> Units<'a> {
    /// Reads all roots. A damaged unit is left out and counted. `skeleton` is the one whose file this is.
    pub fn read(
        dwarf: Dwarf<'a>,
        code: &Code,
        origin: Origin,
        skeleton: Option<&Unit<'a>>,
        problems: &mut Problems,
    ) -> Units<'a> {
        let starts = starts(&dwarf, problems);
        let read = |start: &u64| (*start, root(&dwarf, *start, code, origin, skeleton));
        let read: Vec<_> = starts.par_iter().map(read).collect();
        let mut roots = Vec::with_capacity(read.len());
        for (start, root) in read {
            if let Err(e) = &root {
                let message = format!("a unit of .debug_info is damaged: {e}");
                problems.add("debug-unit", 1, Some(FileOffset(start)), message);
            }
            roots.push((start, root.ok()));
        }
        Units { dwarf, roots }
    }

    /// The number of units, readable or not.
    pub fn len(&self) -> usize {
        self.roots.len()
    }

    /// The number of the unit that holds the entry at this offset of `.debug_info`.
    pub fn holding(&self, offset: u64) -> Option<usize> {
        self.roots.partition_point(|(start, _)| *start <= offset).checked_sub(1)
    }

    /// A unit that could be read.
    pub fn root(&self, number: usize) -> Option<&UnitRoot<'a>> {
        self.roots.get(number)?.1.as_ref()
    }

    /// Where the unit starts in `.debug_info`.
    pub fn start(&self, number: usize) -> u64 {
        self.roots.get(number).map_or(0, |root| root.0)
    }
}

/// Where the units start, by their lengths alone, so that a damaged one hides no other.
fn starts(dwarf: &Dwarf<'_>, problems: &mut Problems) -> Vec<u64> {
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
    starts
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

fn root<'a>(
    dwarf: &Dwarf<'a>,
    start: u64,
    code: &Code,
    origin: Origin,
    skeleton: Option<&Unit<'a>>,
) -> Result<UnitRoot<'a>, Error> {
    let offset = usize::try_from(start).map_err(|_| Error::UnsupportedOffset)?;
    let header = dwarf.unit_header(DebugInfoOffset(offset))?;
    let mut unit = default_bases(dwarf, header)?;
    if let UnitType::Skeleton(id) | UnitType::SplitCompilation(id) = header.type_() {
        unit.dwo_id = Some(id);
    }
    let mut seen = Root::default();
    let abbreviations = unit.abbreviations.clone();
    let mut entries = header.entries_raw(&abbreviations, None)?;
    let abbreviation = entries.read_abbreviation()?.ok_or(Error::MissingUnitDie)?;
    for spec in abbreviation.attributes() {
        let attribute = entries.read_attribute(*spec)?;
        seen.take(attribute.name(), attribute.value(), &mut unit);
    }
    if let Some(skeleton) = skeleton {
        unit.copy_relocated_attributes(skeleton);
    }
    finish(dwarf, unit, origin, seen, code)
}

impl<'a> Root<'a> {
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

fn finish<'a>(
    dwarf: &Dwarf<'a>,
    mut unit: Unit<'a>,
    origin: Origin,
    seen: Root<'a>,
    code: &Code,
) -> Result<UnitRoot<'a>, Error> {
    let text = |unit: &Unit<'a>, value: Option<Value<'a>>| value.and_then(|v| dwarf.attr_string(unit, v).ok());
    unit.name = text(&unit, seen.name);
    unit.comp_dir = text(&unit, seen.comp_dir);
    let dwo_name = text(&unit, seen.dwo_name).map(|name| bytes(&name));
    if let Some(low) = seen.ranges.low {
        unit.low_pc = dwarf.attr_address(&unit, low)?.unwrap_or(0);
    }
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
    Ok(UnitRoot { unit, origin, lines: seen.lines, ranges, plain_types: seen.plain_types, dwo_name })
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
