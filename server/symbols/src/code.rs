//! Where an image has code.

use crate::object_file::{ObjectFile, SectionKind};

/// The executable parts of an image, as link-time addresses: sorted, disjoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    ranges: Vec<(u64, u64)>,
}

impl Code {
    /// The executable sections, or, where sections are stripped, the executable segments.
    pub fn of(file: &ObjectFile) -> Code {
        let sections = file.sections.iter().filter(|s| s.executable && (s.kind != SectionKind::NoBits || s.size > 0));
        let mut ranges: Vec<_> = sections.map(|s| (s.address, s.address.saturating_add(s.size))).collect();
        if ranges.is_empty() {
            let segments = file.segments.iter().filter(|s| s.executable);
            ranges.extend(segments.map(|s| (s.address, s.address.saturating_add(s.memory_size))));
        }
        Code::new(ranges)
    }

    /// From ranges in any order.
    pub fn new(mut ranges: Vec<(u64, u64)>) -> Code {
        ranges.retain(|range| range.0 < range.1);
        ranges.sort_unstable();
        let mut disjoint: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match disjoint.last_mut() {
                Some(last) if range.0 < last.1 => last.1 = last.1.max(range.1),
                _ => disjoint.push(range),
            }
        }
        Code { ranges: disjoint }
    }

    /// Sorted and disjoint.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// Whether the address is code.
    pub fn contains(&self, address: u64) -> bool {
        self.end(address).is_some()
    }

    /// The end of the part that holds the address.
    pub fn end(&self, address: u64) -> Option<u64> {
        let after = self.ranges.partition_point(|range| range.0 <= address);
        let range = self.ranges.get(after.checked_sub(1)?)?;
        (address < range.1).then_some(range.1)
    }
}
