//! The tree of entries of a unit: which function, inlined or not, is innermost at each address.

use super::format::{
    Abbreviation, AttributeSpecification, AttributeValue, Entries, Error, Slice, UnitOffset, Value, constants,
};
use super::names::EntryRef;
use super::ranges::RangeAttributes;
use super::units::{UnitRoot, Units};
use crate::code::Code;
use std::ops::Range;

/// Deeper inlining than this is damage; the deepest seen in real code is below 100.
const DEEPEST_INLINING: usize = 1024;
/// How often, on average, the entries of one unit may cover each of its addresses. Real ones do as often as functions
/// are inlined into each other.
const MOST_COVERS: usize = 1024;

/// A function or an inlined call that covers at least one of the wanted addresses.
pub(super) struct Node {
    /// The function inlined into, `None` for one that is not inlined.
    pub parent: Option<u32>,
    /// The entry that names it, or leads to the one that does.
    pub entry: EntryRef,
    pub inlined: bool,
    /// Number in the unit's file table.
    pub call_file: u32,
    pub call_line: u32,
    pub call_column: u32,
}

/// The nodes, and for each address the innermost one.
pub(super) struct Tree {
    pub nodes: Vec<Node>,
    /// Per address: 1 + node, 0 where no function covers it.
    pub innermost: Vec<u32>,
    /// Why reading ended before the unit did, if it did.
    pub error: Option<Error>,
}

struct Open {
    depth: isize,
    /// 1 + node, 0 for a function that covers no wanted address.
    node: u32,
    /// The addresses that the function covers lie within.
    within: Range<usize>,
    inlining: usize,
}

struct Walk<'a, 'u> {
    units: &'u Units<'a>,
    root: &'u UnitRoot<'a>,
    code: &'u Code,
    addresses: &'u [u64],
    tree: Tree,
    open: Vec<Open>,
    covers_left: usize,
    /// Over functions without wanted addresses.
    may_jump: bool,
    jumped: bool,
}

/// With fewer addresses per byte of entries than one in so many, most functions hold none and are jumped over.
const SPARSE: usize = 256;

/// Walks the entries of a unit. `addresses` are sorted.
///
/// Functions inside functions that hold no wanted address are met only on the way through all entries, which is taken
/// where the short way leaves an address without function.
pub(super) fn walk<'a>(units: &Units<'a>, root: &UnitRoot<'a>, code: &Code, addresses: &[u64]) -> Tree {
    let sparse = addresses.len() < root.unit.header.unit_length() / SPARSE;
    let (tree, jumped) = walk_once(units, root, code, addresses, sparse);
    if jumped && tree.innermost.contains(&0) {
        return walk_once(units, root, code, addresses, false).0;
    }
    tree
}

fn walk_once<'a>(
    units: &Units<'a>,
    root: &UnitRoot<'a>,
    code: &Code,
    addresses: &[u64],
    may_jump: bool,
) -> (Tree, bool) {
    let tree = Tree { nodes: Vec::new(), innermost: vec![0; addresses.len()], error: None };
    let covers_left = addresses.len().saturating_mul(MOST_COVERS);
    let open = Vec::new();
    let mut walk = Walk { units, root, code, addresses, tree, open, covers_left, may_jump, jumped: false };
    if let Err(error) = walk.entries() {
        walk.tree.error = Some(error);
    }
    (walk.tree, walk.jumped)
}

/// The attributes of a function or of an inlined call.
#[derive(Default)]
struct Attributes<'a> {
    ranges: RangeAttributes<'a>,
    origin: Option<Value<'a>>,
    sibling: Option<Value<'a>>,
    call_file: u32,
    call_line: u32,
    call_column: u32,
}

impl<'a> Walk<'a, '_> {
    fn entries(&mut self) -> Result<(), Error> {
        let unit = &self.root.unit;
        let mut entries = unit.entries_raw(None)?;
        // Jumping starts a new reader, whose depth counts from 0.
        let mut base = 0;
        while !entries.is_empty() {
            let offset = entries.next_offset();
            let depth = base + entries.next_depth();
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            while self.open.last().is_some_and(|open| open.depth >= depth) {
                self.open.pop();
            }
            let sibling = self.entry(&mut entries, abbreviation, offset, depth)?;
            if let Some(AttributeValue::UnitRef(next)) = sibling
                && next > entries.next_offset()
                && let Ok(after) = unit.entries_raw(Some(next))
            {
                entries = after;
                base = depth;
            }
        }
        Ok(())
    }

    /// Takes an entry in; where to go on if nothing below it is of interest.
    fn entry(
        &mut self,
        entries: &mut Entries<'a, '_>,
        abbreviation: &Abbreviation,
        offset: UnitOffset,
        depth: isize,
    ) -> Result<Option<Value<'a>>, Error> {
        let (tag, specs) = (abbreviation.tag(), abbreviation.attributes());
        let inlined = tag == constants::DW_TAG_inlined_subroutine;
        let within_nothing = inlined && self.open.last().is_some_and(|open| open.node == 0);
        if tag == constants::DW_TAG_subprogram || inlined && !within_nothing {
            let attributes = read_function(entries, specs)?;
            let covers = self.function(offset, depth, inlined, &attributes)?;
            let sibling = attributes.sibling.filter(|_| !covers && !inlined && self.may_jump);
            self.jumped |= sibling.is_some();
            return Ok(sibling);
        }
        if abbreviation.has_children() && self.can_jump(tag) {
            return read_sibling(entries, specs);
        }
        entries.skip_attributes(specs)?;
        Ok(None)
    }

    /// Whether entries of that kind have no code below them.
    fn can_jump(&self, tag: constants::DwTag) -> bool {
        match tag {
            constants::DW_TAG_structure_type | constants::DW_TAG_class_type | constants::DW_TAG_union_type => {
                self.root.plain_types
            }
            constants::DW_TAG_enumeration_type
            | constants::DW_TAG_array_type
            | constants::DW_TAG_subroutine_type
            | constants::DW_TAG_call_site
            | constants::DW_TAG_GNU_call_site => true,
            _ => false,
        }
    }

    fn function(
        &mut self,
        offset: UnitOffset,
        depth: isize,
        inlined: bool,
        attributes: &Attributes<'a>,
    ) -> Result<bool, Error> {
        let outer = self.open.last().filter(|_| inlined);
        let within = outer.map_or(0..self.addresses.len(), |open| open.within.clone());
        let inlining = outer.map_or(0, |open| open.inlining + 1);
        if inlining > DEEPEST_INLINING {
            return Err(Error::UnsupportedOffset);
        }
        let parent = outer.map_or(0, |open| open.node);
        let node = self.tree.nodes.len() as u32 + 1;
        let covered = self.cover(&attributes.ranges, within, node)?;
        if let Some(within) = covered {
            let own = EntryRef::in_unit(self.root, offset);
            let origin = attributes.origin.and_then(|origin| EntryRef::of_value(self.root, origin));
            self.tree.nodes.push(Node {
                parent: parent.checked_sub(1),
                entry: if inlined { origin.unwrap_or(own) } else { own },
                inlined,
                call_file: attributes.call_file,
                call_line: attributes.call_line,
                call_column: attributes.call_column,
            });
            self.open.push(Open { depth, node, within, inlining });
        } else {
            self.open.push(Open { depth, node: 0, within: 0..0, inlining });
        }
        Ok(node as usize == self.tree.nodes.len())
    }

    /// Marks the addresses that the ranges cover; where from and to they reach, if there are any.
    fn cover(
        &mut self,
        ranges: &RangeAttributes<'a>,
        within: Range<usize>,
        node: u32,
    ) -> Result<Option<Range<usize>>, Error> {
        let wanted = self.addresses.get(within.clone()).unwrap_or_default();
        let marks = self.tree.innermost.get_mut(within.clone()).unwrap_or_default();
        let (Some(lowest), Some(highest)) = (wanted.first(), wanted.last()) else { return Ok(None) };
        let mut hull: Option<Range<usize>> = None;
        let mut left = self.covers_left;
        let code = self.code;
        ranges.each(&self.units.dwarf, &self.root.unit, |start, end| {
            if start > *highest || end <= *lowest || !code.contains(start) {
                return;
            }
            let first = wanted.partition_point(|address| *address < start);
            let rest = wanted.get(first..).unwrap_or_default();
            let count = rest.partition_point(|address| *address < end);
            if count == 0 {
                return;
            }
            if count > left {
                left = 0;
                return;
            }
            left -= count;
            marks.get_mut(first..first + count).unwrap_or_default().fill(node);
            let found = within.start + first..within.start + first + count;
            hull = Some(hull.take().map_or(found.clone(), |h| h.start.min(found.start)..h.end.max(found.end)));
        })?;
        self.covers_left = left;
        Ok(hull)
    }
}

fn read_sibling<'a>(
    entries: &mut Entries<'a, '_>,
    specs: &[AttributeSpecification],
) -> Result<Option<Value<'a>>, Error> {
    let mut sibling = None;
    for spec in specs {
        if spec.name() == constants::DW_AT_sibling {
            sibling = Some(entries.read_attribute(*spec)?.value());
        } else {
            entries.skip_attributes(std::slice::from_ref(spec))?;
        }
    }
    Ok(sibling)
}

fn read_function<'a>(entries: &mut Entries<'a, '_>, specs: &[AttributeSpecification]) -> Result<Attributes<'a>, Error> {
    let mut seen = Attributes::default();
    for spec in specs {
        match spec.name() {
            constants::DW_AT_low_pc | constants::DW_AT_high_pc | constants::DW_AT_ranges => {
                let attribute = entries.read_attribute(*spec)?;
                seen.ranges.take(spec.name(), attribute.value());
            }
            constants::DW_AT_sibling => seen.sibling = Some(entries.read_attribute(*spec)?.value()),
            constants::DW_AT_abstract_origin => seen.origin = Some(entries.read_attribute(*spec)?.value()),
            constants::DW_AT_call_file => {
                seen.call_file = match entries.read_attribute(*spec)?.value() {
                    AttributeValue::FileIndex(file) => u32::try_from(file).unwrap_or(u32::MAX),
                    value => number(value),
                }
            }
            constants::DW_AT_call_line => seen.call_line = number(entries.read_attribute(*spec)?.value()),
            constants::DW_AT_call_column => seen.call_column = number(entries.read_attribute(*spec)?.value()),
            _ => entries.skip_attributes(std::slice::from_ref(spec))?,
        }
    }
    Ok(seen)
}

/// 0 for what is no number or too large.
pub(super) fn number(value: AttributeValue<Slice<'_>>) -> u32 {
    value.udata_value().and_then(|value| u32::try_from(value).ok()).unwrap_or(0)
}
