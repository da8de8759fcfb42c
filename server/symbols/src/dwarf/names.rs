//! What an entry says of its function, along the references to the entries that say the rest.

use super::format::{AttributeValue, Error, UnitOffset, Value, bytes, constants};
use super::tree::number;
use super::units::{UnitRoot, Units};

/// How many references may lead from an entry to its names: an inlined copy, its abstract form, its declaration, and
/// as many again across units.
const LONGEST_PATH: usize = 8;

/// In which file's `.debug_info` an entry lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Origin {
    /// The one that holds the lines.
    Own,
    /// The one that several binaries share.
    Supplementary,
    /// The one that holds the entries of the skeleton at hand.
    Split,
}

/// An entry by its offset in `.debug_info`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct EntryRef {
    pub offset: u64,
    pub origin: Origin,
}

impl EntryRef {
    pub fn in_unit(root: &UnitRoot<'_>, offset: UnitOffset) -> EntryRef {
        let start = root.unit.header.debug_info_offset().map_or(0, |start| start.0 as u64);
        EntryRef { offset: start.saturating_add(offset.0 as u64), origin: root.origin }
    }

    pub fn of_value(root: &UnitRoot<'_>, value: Value<'_>) -> Option<EntryRef> {
        match value {
            AttributeValue::UnitRef(offset) => Some(EntryRef::in_unit(root, offset)),
            AttributeValue::DebugInfoRef(offset) => Some(EntryRef { offset: offset.0 as u64, origin: root.origin }),
            AttributeValue::DebugInfoRefSup(offset) => {
                Some(EntryRef { offset: offset.0 as u64, origin: Origin::Supplementary })
            }
            _ => None,
        }
    }
}

/// A file by unit and number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct FileRef {
    pub unit: usize,
    pub origin: Origin,
    pub number: u32,
}

/// What is known of a function. Text is as it lies in the sections.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct FunctionEntry<'a> {
    pub name: Option<&'a [u8]>,
    pub linkage_name: Option<&'a [u8]>,
    pub file: Option<FileRef>,
    pub line: u32,
}

/// The units that the entries of one unit may refer to.
#[derive(Clone, Copy)]
pub(super) struct Library<'a, 'l> {
    pub units: &'l Units<'a>,
    pub supplementary: Option<&'l Units<'a>>,
    /// Those that hold the entries of the unit, and its number among them, if it is a skeleton.
    pub split: Option<(&'l Units<'a>, usize)>,
}

impl<'a, 'l> Library<'a, 'l> {
    pub fn units(&self, origin: Origin) -> Option<&'l Units<'a>> {
        match origin {
            Origin::Own => Some(self.units),
            Origin::Supplementary => self.supplementary,
            Origin::Split => self.split.map(|split| split.0),
        }
    }

    /// Follows an entry to its abstract origin or its declaration. Each fact is taken where it is met first: a
    /// definition's own place goes before that of its declaration. What cannot be read is left out.
    pub fn function(&self, entry: EntryRef) -> FunctionEntry<'a> {
        let mut function = FunctionEntry::default();
        let mut next = Some(entry);
        for _ in 0..LONGEST_PATH {
            let Some(entry) = next.take() else { break };
            let Some(units) = self.units(entry.origin) else { break };
            let Some(unit) = units.holding(entry.offset) else { break };
            let Some(root) = units.root(unit) else { break };
            next = read(units, unit, root, entry, &mut function).ok().flatten();
        }
        function
    }
}

fn read<'a>(
    units: &Units<'a>,
    number_of_unit: usize,
    root: &UnitRoot<'a>,
    entry: EntryRef,
    function: &mut FunctionEntry<'a>,
) -> Result<Option<EntryRef>, Error> {
    let within = entry.offset.checked_sub(units.start(number_of_unit)).and_then(|o| usize::try_from(o).ok());
    let offset = UnitOffset(within.ok_or(Error::UnsupportedOffset)?);
    let mut entries = root.unit.entries_raw(Some(offset))?;
    let Some(abbreviation) = entries.read_abbreviation()? else { return Ok(None) };
    let mut next = None;
    let text = |value| units.dwarf.attr_string(&root.unit, value).ok().map(|text| bytes(&text));
    for spec in abbreviation.attributes() {
        match spec.name() {
            constants::DW_AT_name if function.name.is_none() => {
                function.name = text(entries.read_attribute(*spec)?.value());
            }
            constants::DW_AT_linkage_name | constants::DW_AT_MIPS_linkage_name if function.linkage_name.is_none() => {
                function.linkage_name = text(entries.read_attribute(*spec)?.value());
            }
            constants::DW_AT_decl_line if function.line == 0 => {
                function.line = number(entries.read_attribute(*spec)?.value());
            }
            constants::DW_AT_decl_file if function.file.is_none() => {
                if let AttributeValue::FileIndex(file) = entries.read_attribute(*spec)?.value() {
                    let number = u32::try_from(file).unwrap_or(u32::MAX);
                    function.file = Some(FileRef { unit: number_of_unit, origin: entry.origin, number });
                }
            }
            constants::DW_AT_abstract_origin | constants::DW_AT_specification => {
                next = EntryRef::of_value(root, entries.read_attribute(*spec)?.value());
            }
            _ => entries.skip_attributes(std::slice::from_ref(spec))?,
        }
    }
    Ok(next)
}
