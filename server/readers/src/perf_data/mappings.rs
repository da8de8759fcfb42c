//! The mappings of one address space, sorted and without overlaps.

use heatline_profile::{ModuleAddress, ModuleId};
use std::collections::BTreeMap;

/// A range of addresses that one module lies at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mapping {
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Position in the module's file that is mapped at the start; `None` where addresses are kept as they are.
    pub file_offset: Option<u64>,
    pub module: ModuleId,
}

impl Mapping {
    pub fn contains(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }

    /// The address inside the module, for an address inside the mapping.
    pub fn address(&self, address: u64) -> ModuleAddress {
        let offset = self.file_offset.map(|base| address.wrapping_sub(self.start).wrapping_add(base));
        ModuleAddress(offset.unwrap_or(address))
    }

    /// What is left of it in front of `end` and from `start` on, when the range between is taken away.
    fn without(&self, start: u64, end: u64) -> [Option<Mapping>; 2] {
        let front = (self.start < start).then_some(Mapping { end: start.min(self.end), ..*self });
        let back = (end < self.end).then(|| {
            let skipped = end.saturating_sub(self.start);
            let file_offset = self.file_offset.map(|base| base.wrapping_add(skipped));
            Mapping { start: end, file_offset, ..*self }
        });
        [front, back]
    }
}

/// Mappings by their starts.
#[derive(Clone, Default, Debug)]
pub(crate) struct Mappings(BTreeMap<u64, Mapping>);

impl Mappings {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.0.values()
    }

    /// The mapping that covers an address.
    pub fn find(&self, address: u64) -> Option<Mapping> {
        let (_, mapping) = self.0.range(..=address).next_back()?;
        mapping.contains(address).then_some(*mapping)
    }

    /// Whether exactly this mapping is there already.
    pub fn holds(&self, mapping: &Mapping) -> bool {
        self.0.get(&mapping.start) == Some(mapping)
    }

    /// Adds a mapping that replaces, cuts or splits those it overlaps; whether it overlapped any.
    pub fn insert(&mut self, mapping: Mapping) -> bool {
        let replaced = self.remove(mapping.start, mapping.end);
        self.0.insert(mapping.start, mapping);
        replaced
    }

    /// Takes a range of addresses away; whether anything was there.
    pub fn remove(&mut self, start: u64, end: u64) -> bool {
        let before = self.0.range(..start).next_back().filter(|(_, m)| m.end > start).map(|(&at, _)| at);
        let inside: Vec<u64> = before.into_iter().chain(self.0.range(start..end).map(|(&at, _)| at)).collect();
        for at in &inside {
            let Some(old) = self.0.remove(at) else { continue };
            self.0.extend(old.without(start, end).into_iter().flatten().map(|left| (left.start, left)));
        }
        !inside.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, module: u32) -> Mapping {
        Mapping { start, end, file_offset: Some(0x1000), module: ModuleId(module) }
    }

    #[track_caller]
    fn check(new: &[(u64, u64)], expect: &[(u64, u64, u64, u32)]) {
        let mut mappings = Mappings::default();
        for (module, &(start, end)) in new.iter().enumerate() {
            mappings.insert(mapping(start, end, module as u32));
        }
        let all: Vec<_> = mappings.0.values().map(|m| (m.start, m.end, m.file_offset.unwrap(), m.module.0)).collect();
        assert_eq!(all, expect);
    }

    #[test]
    fn a_new_mapping_splits_cuts_and_replaces_older_ones() {
        check(&[(10, 20), (30, 40)], &[(10, 20, 0x1000, 0), (30, 40, 0x1000, 1)]);
        check(&[(10, 40), (20, 30)], &[(10, 20, 0x1000, 0), (20, 30, 0x1000, 1), (30, 40, 0x1014, 0)]);
        check(&[(10, 20), (15, 25)], &[(10, 15, 0x1000, 0), (15, 25, 0x1000, 1)]);
        check(&[(10, 20), (5, 15)], &[(5, 15, 0x1000, 1), (15, 20, 0x1005, 0)]);
        check(&[(10, 20), (30, 40), (12, 35)], &[(10, 12, 0x1000, 0), (12, 35, 0x1000, 2), (35, 40, 0x1005, 1)]);
        check(&[(10, 20), (10, 20)], &[(10, 20, 0x1000, 1)]);
    }

    #[test]
    fn addresses_become_offsets_in_the_file() {
        let mut mappings = Mappings::default();
        mappings.insert(mapping(0x7000, 0x8000, 3));
        let found = mappings.find(0x7123).unwrap();
        assert_eq!((found.module, found.address(0x7123)), (ModuleId(3), ModuleAddress(0x1123)));
        assert_eq!(mappings.find(0x8000), None);
        assert_eq!(mappings.find(0x6fff), None);
    }
}
