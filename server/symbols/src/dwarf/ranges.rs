//! The address ranges of an entry: `DW_AT_ranges`, or `DW_AT_low_pc` with `DW_AT_high_pc`.

use super::format::{AttributeValue, Dwarf, Error, Unit, Value, constants, is_tombstone};

/// A list longer than this is damaged; the longest real ones have some ten thousand entries.
const MOST_RANGES: usize = 1 << 22;

/// The attributes, not followed yet.
#[derive(Clone, Copy, Default)]
pub(super) struct RangeAttributes<'a> {
    pub low: Option<Value<'a>>,
    pub high: Option<Value<'a>>,
    pub list: Option<Value<'a>>,
}

impl<'a> RangeAttributes<'a> {
    pub fn take(&mut self, name: constants::DwAt, value: Value<'a>) {
        match name {
            constants::DW_AT_low_pc => self.low = Some(value),
            constants::DW_AT_high_pc => self.high = Some(value),
            constants::DW_AT_ranges => self.list = Some(value),
            _ => {}
        }
    }

    /// Whether the entry says that it has code.
    pub fn any(&self) -> bool {
        self.list.is_some() || self.high.is_some()
    }

    /// Calls `found` with start and end (exclusive) of each range. Empty ranges and those that a linker put at the top
    /// of the address space are left out; whether the start is in code is for the caller to see.
    pub fn each(&self, dwarf: &Dwarf<'a>, unit: &Unit<'a>, mut found: impl FnMut(u64, u64)) -> Result<(), Error> {
        let size = unit.header.address_size();
        let mut keep = |start: u64, end: u64| {
            if start < end && !is_tombstone(start, size) {
                found(start, end);
            }
        };
        if let Some(list) = self.list {
            let Some(mut ranges) = dwarf.attr_ranges(unit, list)? else { return Ok(()) };
            for _ in 0..MOST_RANGES {
                let Some(range) = ranges.next()? else { break };
                keep(range.begin, range.end);
            }
            return Ok(());
        }
        let (Some(low), Some(high)) = (self.low, self.high) else { return Ok(()) };
        let Some(start) = dwarf.attr_address(unit, low)? else { return Ok(()) };
        let end = match high {
            AttributeValue::Udata(length) => start.checked_add(length),
            AttributeValue::Sdata(length) => start.checked_add_signed(length),
            high => dwarf.attr_address(unit, high)?,
        };
        keep(start, end.unwrap_or(0));
        Ok(())
    }
}
