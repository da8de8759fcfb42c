//! The names of events and of perf's groups of records.

use super::packet::Events;
use super::record::Record;
use super::source::Cpu;

/// Numbers of the event bits that something here depends on.
pub(super) mod bit {
    pub const L1D_ACCESS: u32 = 2;
    pub const L1D_MISS: u32 = 3;
    pub const TLB_ACCESS: u32 = 4;
    pub const TLB_MISS: u32 = 5;
    pub const NOT_TAKEN: u32 = 6;
    pub const MISPREDICTED: u32 = 7;
    pub const LLC_ACCESS: u32 = 8;
    pub const LLC_MISS: u32 = 9;
    pub const REMOTE: u32 = 10;
    pub const MISALIGNED: u32 = 11;
    pub const LATE_PREFETCH: u32 = 12;
    pub const L2D_ACCESS: u32 = 19;
    pub const L2D_MISS: u32 = 20;
    pub const MODIFIED: u32 = 21;
    pub const RECENTLY_FETCHED: u32 = 22;
    pub const SNOOPED: u32 = 23;
}

/// Our word and perf's word for an event bit; empty where it is left to the implementation.
pub(super) const EVENT_WORDS: [(&str, &str); 26] = [
    ("exception", "EXCEPTION-GEN"),
    ("retired", "RETIRED"),
    ("l1d-access", "L1D-ACCESS"),
    ("l1d-miss", "L1D-REFILL"),
    ("tlb-access", "TLB-ACCESS"),
    ("tlb-miss", "TLB-REFILL"),
    ("not-taken", "NOT-TAKEN"),
    ("mispredicted", "MISPRED"),
    ("llc-access", "LLC-ACCESS"),
    ("llc-miss", "LLC-REFILL"),
    ("remote", "REMOTE-ACCESS"),
    ("misaligned", "ALIGNMENT"),
    ("", ""),
    ("", ""),
    ("", ""),
    ("", ""),
    ("transaction", "TXN"),
    ("partial-predicate", "SVE-PARTIAL-PRED"),
    ("empty-predicate", "SVE-EMPTY-PRED"),
    ("l2d-access", "L2D-ACCESS"),
    ("l2d-miss", "L2D-MISS"),
    ("modified", "HITM"),
    ("recently-fetched", "LFB"),
    ("snooped", "SNOOPED"),
    ("streaming-sve", "STREAMING-SVE"),
    ("smcu", "SMCU"),
];

/// The word for an event bit, `bit-N` where the implementation defines it and `cpu` is not known to.
pub fn event_name(bit: u32, cpu: &Cpu) -> String {
    match EVENT_WORDS.get(bit as usize) {
        _ if bit == bit::LATE_PREFETCH && cpu.has_late_prefetch() => "late-prefetch".into(),
        Some((word, _)) if !word.is_empty() => (*word).into(),
        _ => format!("bit-{bit}"),
    }
}

/// The words for all events that happened, in the order of their bits.
pub fn event_names(events: Events, cpu: &Cpu) -> Vec<String> {
    (0..64).filter(|&bit| events.has(bit)).map(|bit| event_name(bit, cpu)).collect()
}

/// perf's groups of records, by which it names the events it makes of SPE. A record can be in several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Group {
    /// Loads and stores that missed the first data cache.
    L1dMiss,
    /// Loads and stores that looked into the first data cache.
    L1dAccess,
    /// Misses of the last cache.
    LlcMiss,
    /// Look-ups in the last cache.
    LlcAccess,
    /// Walks of the page tables.
    TlbMiss,
    /// Look-ups in the translation buffers.
    TlbAccess,
    /// Branches and exception returns.
    Branch,
    /// Mispredicted branches.
    BranchMiss,
    /// Accesses to another socket.
    RemoteAccess,
    /// Loads, stores and atomics.
    Memory,
    /// Every record.
    Instructions,
}

impl Group {
    /// All of them.
    pub const ALL: [Group; 11] = [
        Group::L1dMiss,
        Group::L1dAccess,
        Group::LlcMiss,
        Group::LlcAccess,
        Group::TlbMiss,
        Group::TlbAccess,
        Group::Branch,
        Group::BranchMiss,
        Group::RemoteAccess,
        Group::Memory,
        Group::Instructions,
    ];

    /// perf's name.
    pub fn name(self) -> &'static str {
        match self {
            Group::L1dMiss => "l1d-miss",
            Group::L1dAccess => "l1d-access",
            Group::LlcMiss => "llc-miss",
            Group::LlcAccess => "llc-access",
            Group::TlbMiss => "tlb-miss",
            Group::TlbAccess => "tlb-access",
            Group::Branch => "branch",
            Group::BranchMiss => "branch-miss",
            Group::RemoteAccess => "remote-access",
            Group::Memory => "memory",
            Group::Instructions => "instructions",
        }
    }

    /// The group that perf calls `name`.
    pub fn from_name(name: &str) -> Option<Group> {
        Group::ALL.into_iter().find(|group| group.name() == name)
    }

    /// Whether `record` is in this group.
    pub fn holds(self, record: &Record) -> bool {
        let events = record.events();
        let class = record.operation().map(|operation| operation.class);
        match self {
            Group::L1dMiss => events.has(bit::L1D_MISS),
            Group::L1dAccess => events.has(bit::L1D_ACCESS),
            Group::LlcMiss => events.has(bit::LLC_MISS),
            Group::LlcAccess => events.has(bit::LLC_ACCESS),
            Group::TlbMiss => events.has(bit::TLB_MISS),
            Group::TlbAccess => events.has(bit::TLB_ACCESS),
            Group::Branch => class == Some(2),
            Group::BranchMiss => events.has(bit::MISPREDICTED),
            Group::RemoteAccess => events.has(bit::REMOTE),
            Group::Memory => class == Some(1),
            Group::Instructions => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implementation_defined_bits_have_numbers_unless_the_processor_is_known() {
        let events = Events { bits: 1 << 1 | 1 << 12 | 1 << 16 | 1 << 63, size: 8 };
        assert_eq!(event_names(events, &Cpu::default()), ["retired", "bit-12", "transaction", "bit-63"]);
        let n1 = Cpu::new(Some(0x410f_d0c0), None);
        assert_eq!(event_names(events, &n1), ["retired", "late-prefetch", "transaction", "bit-63"]);
    }

    #[test]
    fn groups_are_found_by_perfs_names() {
        assert!(Group::ALL.into_iter().all(|group| Group::from_name(group.name()) == Some(group)));
        assert_eq!(Group::from_name("cycles"), None);
    }
}
