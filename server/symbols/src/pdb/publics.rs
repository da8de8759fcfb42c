//! Public symbols: names of code for which there is nothing else, and which code the linker has folded.

use super::bytes::Bytes;
use super::format::{Addresses, Contribution, Globals, Place};
use std::collections::{BTreeMap, HashSet};

const S_PUB32: u16 = 0x110e;

/// The public symbols by place; several where identical code was folded.
#[derive(Default)]
pub(super) struct Publics(BTreeMap<Place, Vec<String>>);

/// A named range of addresses of the image, the end excluded.
pub(crate) struct NamedRange {
    pub start: u32,
    pub end: u32,
    pub name: String,
    /// Whether a module has symbols for the function, which say where it ends.
    pub has_symbols: bool,
}

impl Publics {
    pub fn read(globals: &Globals, is_code: impl Fn(Place) -> bool) -> Publics {
        let mut publics = Publics::default();
        globals.each(|record| {
            if let Some((place, name)) = public(Bytes(record)).filter(|(place, _)| is_code(*place)) {
                let names = publics.0.entry(place).or_default();
                names.push(String::from_utf8_lossy(name).into_owned());
            }
        });
        publics
    }

    /// The other names of the function that starts there, if it has any.
    pub fn names(&self, start: Place) -> &[String] {
        self.0.get(&start).map_or(&[], Vec::as_slice)
    }

    /// The ranges that the symbols name: each reaches to the next one, or to the end of the contribution it is in.
    /// `contributions` are sorted. `known` are the starts
    /// of functions with symbols of their own.
    pub fn ranges(
        &self,
        addresses: &Addresses,
        contributions: &[Contribution],
        known: &HashSet<Place>,
    ) -> Vec<NamedRange> {
        let mut ranges = Vec::with_capacity(self.0.len());
        let mut next: Option<Place> = None;
        for (place, names) in self.0.iter().rev() {
            let until_next = next.filter(|next| next.section == place.section).map(|next| next.offset - place.offset);
            next = Some(*place);
            let has_symbols = known.contains(place);
            let within = contribution(contributions, *place)
                .map(|c| c.start.offset.saturating_add(c.size).saturating_sub(place.offset));
            let size = until_next.into_iter().chain(within).min().unwrap_or(0);
            if let (Some(start), Some(name)) = (addresses.rva(*place), names.first()) {
                let (end, name) = (start.saturating_add(size), name.clone());
                ranges.push(NamedRange { start, end, name, has_symbols });
            }
        }
        ranges
    }
}

/// The contribution that holds a place.
pub(super) fn contribution(contributions: &[Contribution], place: Place) -> Option<&Contribution> {
    let after = contributions.partition_point(|c| c.start <= place);
    let found = contributions.get(after.checked_sub(1)?)?;
    let holds = found.start.section == place.section && place.offset - found.start.offset < found.size;
    holds.then_some(found)
}

fn public(mut record: Bytes<'_>) -> Option<(Place, &[u8])> {
    if record.u16()? != S_PUB32 {
        return None;
    }
    let (_flags, offset, section) = (record.u32()?, record.u32()?, record.u16()?);
    Some((Place { section, offset }, record.text()))
}
