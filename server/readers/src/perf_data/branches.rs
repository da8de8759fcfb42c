//! Branch records (`perf record -b`): the branches that led to a sample, as metrics of their own.
//!
//! Each recorded branch counts on the place it left from, and as an arc between both places. The branches of one sample
//! are no independent samples: they say where control went, not where time was spent.

use super::bytes::Order;
use heatline_profile::{Event, Unit};

/// The numbers that branch metrics have while the file is read, far above those of its own events.
pub(crate) mod metric {
    pub const FIRST: u32 = 1 << 30;
    pub const TAKEN: u32 = FIRST;
    pub const MISPREDICTED: u32 = FIRST + 1;
    pub const CYCLES: u32 = FIRST + 2;
    pub const COUNT: usize = 3;
    /// Samples that become statistics of memory accesses, not rows.
    pub const ACCESS: u32 = FIRST + 3;
}

/// One recorded branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Branch {
    pub from: u64,
    pub to: u64,
    pub mispredicted: bool,
    /// Cycles since the branch before; 0 where not recorded.
    pub cycles: u64,
}

/// The branches in the 24-byte entries of a sample, the last one first.
pub(crate) fn branches(entries: &[u8], order: Order) -> impl Iterator<Item = Branch> {
    entries.as_chunks::<24>().0.iter().map(move |entry| {
        let word = |at| order.u64_at(entry, at).unwrap_or(0);
        let flags = word(16);
        // Machines of big byte order lay bit fields out from the other end.
        let (mispredicted, cycles) = match order {
            Order::Little => (flags & 1, flags >> 4 & 0xffff),
            Order::Big => (flags >> 63, flags >> 44 & 0xffff),
        };
        Branch { from: word(0), to: word(8), mispredicted: mispredicted == 1, cycles }
    })
}

/// The event that a branch metric becomes in the profile.
pub(crate) fn event(metric: u32) -> Event {
    match metric {
        metric::MISPREDICTED => Event::new("branch:mispredicted", Unit::Branches),
        metric::CYCLES => Event::new("branch:cycles", Unit::Cycles),
        _ => Event::new("branch:taken", Unit::Branches),
    }
}
