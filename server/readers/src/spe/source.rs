//! Where the data of a load or store came from: the processor's own numbers where they are known, else what the events
//! tell.

use super::event::bit;
use super::operation::Operation;
use super::packet::Events;
use super::record::Record;
use heatline_profile::{SpeSnoop, SpeSource};

/// What the decoding depends on of the processor that recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct Cpu {
    midr: Option<u32>,
    tells_snoops: bool,
}

/// Processors that number data sources alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Family {
    Common,
    AmpereOne,
    HiSilicon,
    Unknown,
}

/// A level of the memory system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// The first data cache.
    L1,
    /// The fill buffer of the first data cache: the line was under way already.
    FillBuffer,
    /// The second cache.
    L2,
    /// The last cache, of the cluster or the system.
    L3,
    /// Memory.
    Ram,
    /// A device or uncached memory.
    Io,
}

impl Level {
    /// `L1`, `LFB`, `L2`, `L3`, `RAM` or `IO`.
    pub fn name(self) -> &'static str {
        match self {
            Level::L1 => "L1",
            Level::FillBuffer => "LFB",
            Level::L2 => "L2",
            Level::L3 => "L3",
            Level::Ram => "RAM",
            Level::Io => "IO",
        }
    }
}

/// What other caches had to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Snoop {
    /// Nothing.
    None,
    /// One had the line.
    Hit,
    /// One had changed the line.
    Modified,
    /// The line came from a peer's cache.
    Peer,
}

impl Snoop {
    /// Under what it is counted.
    pub(super) fn counted(self) -> SpeSnoop {
        match self {
            Snoop::None => SpeSnoop::None,
            Snoop::Hit => SpeSnoop::Hit,
            Snoop::Modified => SpeSnoop::Modified,
            Snoop::Peer => SpeSnoop::Peer,
        }
    }

    /// `none`, `hit`, `hitm` or `peer`.
    pub fn name(self) -> &'static str {
        match self {
            Snoop::None => "none",
            Snoop::Hit => "hit",
            Snoop::Modified => "hitm",
            Snoop::Peer => "peer",
        }
    }
}

/// Where data came from, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataSource {
    /// The level that was looked into last.
    pub level: Option<Level>,
    /// Whether the data was there.
    pub hit: Option<bool>,
    /// What other caches had to say.
    pub snoop: Option<Snoop>,
    /// Whether a peer's cache gave the data.
    pub peer: bool,
    /// Whether another socket was accessed.
    pub remote: Option<bool>,
}

impl Cpu {
    /// A processor by its `MIDR_EL1` and by the mask of the events it can filter on, where the recording has them.
    pub fn new(midr: Option<u64>, event_filter: Option<u64>) -> Self {
        let tells_snoops = event_filter.is_some_and(|mask| mask >> bit::SNOOPED & 1 == 1);
        Cpu { midr: midr.map(|midr| midr as u32), tells_snoops }
    }

    /// Its `MIDR_EL1`, where known.
    pub fn midr(&self) -> Option<u32> {
        self.midr
    }

    fn model(&self) -> Option<(u32, u32)> {
        self.midr.map(|midr| (midr >> 24, midr >> 4 & 0xfff))
    }

    pub(super) fn has_late_prefetch(&self) -> bool {
        self.model() == Some((ARM, NEOVERSE_N1))
    }

    fn family(&self) -> Family {
        match self.model() {
            Some((ARM, part)) if COMMON_PARTS.contains(&part) => Family::Common,
            Some((AMPERE, 0xac4)) => Family::AmpereOne,
            Some((HISILICON, 0xd06)) => Family::HiSilicon,
            _ => Family::Unknown,
        }
    }
}

const ARM: u32 = 0x41;
const AMPERE: u32 = 0xc0;
const HISILICON: u32 = 0x48;
const NEOVERSE_N1: u32 = 0xd0c;

/// Arm's own cores that number data sources alike.
const COMMON_PARTS: [u32; 10] = [
    NEOVERSE_N1,
    0xd40, // Neoverse V1
    0xd49, // Neoverse N2
    0xd4c, // Cortex-X1C
    0xd4e, // Cortex-X3
    0xd4f, // Neoverse V2
    0xd81, // Cortex-A720
    0xd85, // Cortex-X925
    0xd87, // Cortex-A725
    0xd89, // Cortex-A720AE
];

/// Where the data of `record`, recorded on `cpu`, came from. Nothing is known of what is no load or store.
pub fn data_source(record: &Record, cpu: &Cpu) -> DataSource {
    match record.operation().map(super::operation::operation) {
        Some(Operation::Memory { store, .. }) => locate(store, record.events(), record.data_source(), cpu),
        _ => DataSource::default(),
    }
}

/// The same from the fields it depends on, for a load or store.
pub(super) fn locate(store: bool, events: Events, source: Option<u64>, cpu: &Cpu) -> DataSource {
    let remote = events.get(bit::REMOTE);
    let family = cpu.family();
    let told = match (family, source) {
        (_, None) | (Family::Unknown, _) => None,
        (Family::Common | Family::HiSilicon, Some(_)) if store => Some(DataSource::default()),
        (Family::Common, Some(number)) => common(number),
        (Family::AmpereOne, Some(number)) => ampere_one(number).and_then(common),
        (Family::HiSilicon, Some(number)) => hisilicon(number),
    };
    match told {
        Some(told) => DataSource { remote: either(told.remote, remote), ..told },
        None => DataSource { remote, ..by_events(store, events, cpu) },
    }
}

/// Yes wins over no, and knowing over not knowing.
fn either(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a || b),
        (a, b) => a.or(b),
    }
}

fn found(level: Level, snoop: Option<Snoop>, peer: bool, remote: bool) -> Option<DataSource> {
    Some(DataSource { level: Some(level), hit: Some(true), snoop, peer, remote: Some(remote) })
}

fn common(number: u64) -> Option<DataSource> {
    match number {
        0x0 => found(Level::L1, Some(Snoop::None), false, false),
        0x8 => found(Level::L2, Some(Snoop::None), false, false),
        0x9 => found(Level::L2, Some(Snoop::Peer), true, false),
        0xa | 0xc => found(Level::L3, Some(Snoop::Peer), true, false),
        0xb => found(Level::L3, Some(Snoop::Hit), false, false),
        0xd => Some(DataSource { level: None, hit: None, snoop: Some(Snoop::Peer), peer: true, remote: Some(true) }),
        0xe => found(Level::Ram, Some(Snoop::None), false, false),
        _ => None,
    }
}

/// AmpereOne's numbers in terms of the common ones.
fn ampere_one(number: u64) -> Option<u64> {
    match number {
        0x0 => Some(0x9),
        0x3 => Some(0xb),
        0x5 => Some(0xd),
        0x7 => Some(0xe),
        0x8 => Some(0x0),
        0x9 => Some(0x8),
        _ => None,
    }
}

fn hisilicon(number: u64) -> Option<DataSource> {
    match number {
        0 => found(Level::L2, Some(Snoop::Peer), true, false),
        1 => found(Level::L2, Some(Snoop::Modified), true, false),
        2 => found(Level::L3, Some(Snoop::Hit), false, false),
        3 => found(Level::L3, Some(Snoop::Modified), false, false),
        4 => found(Level::L3, Some(Snoop::Peer), true, false),
        5 => found(Level::L3, Some(Snoop::Modified), true, false),
        6 | 7 => Some(DataSource {
            level: None,
            hit: None,
            snoop: Some(if number == 6 { Snoop::Peer } else { Snoop::Modified }),
            peer: true,
            remote: Some(true),
        }),
        8 => found(Level::Ram, Some(Snoop::None), false, false),
        9 => found(Level::Ram, None, false, true),
        13 => found(Level::Io, None, false, false),
        16 => found(Level::L2, Some(Snoop::None), false, false),
        17 => found(Level::L2, Some(Snoop::Modified), false, false),
        18 => found(Level::L1, Some(Snoop::None), false, false),
        _ => None,
    }
}

fn by_events(store: bool, events: Events, cpu: &Cpu) -> DataSource {
    let level = if store { store_level(events) } else { load_level(events) };
    let snoop = match events.get(bit::SNOOPED) {
        Some(true) if events.has(bit::MODIFIED) => Some(Snoop::Modified),
        Some(true) => Some(Snoop::Hit),
        Some(false) if cpu.tells_snoops => Some(Snoop::None),
        _ => None,
    };
    DataSource { level: level.map(|l| l.0), hit: level.map(|l| l.1), snoop, peer: false, remote: None }
}

fn load_level(events: Events) -> Option<(Level, bool)> {
    let hit = |access, miss| events.has(access) && events.get(miss) == Some(false);
    match () {
        () if hit(bit::L1D_ACCESS, bit::L1D_MISS) => Some((Level::L1, true)),
        () if events.has(bit::RECENTLY_FETCHED) => Some((Level::FillBuffer, true)),
        () if hit(bit::L2D_ACCESS, bit::L2D_MISS) => Some((Level::L2, true)),
        () if hit(bit::LLC_ACCESS, bit::LLC_MISS) => Some((Level::L3, true)),
        () if events.has(bit::LLC_MISS) => Some((Level::L3, false)),
        () if events.has(bit::L2D_MISS) => Some((Level::L2, false)),
        () if events.has(bit::L1D_MISS) => Some((Level::L1, false)),
        () => None,
    }
}

fn store_level(events: Events) -> Option<(Level, bool)> {
    let pairs = [
        (Level::L3, bit::LLC_ACCESS, bit::LLC_MISS),
        (Level::L2, bit::L2D_ACCESS, bit::L2D_MISS),
        (Level::L1, bit::L1D_ACCESS, bit::L1D_MISS),
    ];
    let present = pairs.into_iter().find(|&(_, access, miss)| events.has(access) || events.has(miss));
    present.map(|(level, _, miss)| (level, !events.has(miss)))
}

impl DataSource {
    /// Where it counts in the split of loads.
    pub fn split(&self) -> SpeSource {
        match (self.level, self.hit) {
            _ if self.remote == Some(true) => SpeSource::Remote,
            _ if self.peer => SpeSource::Peer,
            (Some(Level::L1), Some(true)) => SpeSource::L1,
            (Some(Level::FillBuffer), Some(true)) => SpeSource::FillBuffer,
            (Some(Level::L2), Some(true)) => SpeSource::L2,
            (Some(Level::L3), Some(true)) => SpeSource::L3,
            (Some(Level::Ram), Some(true)) => SpeSource::Ram,
            _ => SpeSource::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(midr: u64) -> Cpu {
        Cpu::new(Some(midr), None)
    }

    fn load(midr: u64, source: u64) -> DataSource {
        locate(false, Events { bits: 0x16, size: 2 }, Some(source), &cpu(midr))
    }

    #[test]
    fn the_same_number_means_another_place_on_another_processor() {
        assert_eq!((load(0x410f_d0c0, 8).level, load(0x410f_d0c0, 8).snoop), (Some(Level::L2), Some(Snoop::None)));
        assert_eq!(load(0xc00f_ac40, 8).level, Some(Level::L1));
        assert_eq!(load(0x480f_d060, 8).level, Some(Level::Ram));
        // An unknown processor: the events say a hit in L1.
        assert_eq!(load(0x610f_0230, 8).level, Some(Level::L1));
        assert_eq!(load(0x410f_d0c0, 0x77).level, Some(Level::L1));
    }

    #[test]
    fn stores_ignore_the_number_except_on_ampere_one() {
        let events = Events { bits: 0x16, size: 2 };
        assert_eq!(locate(true, events, Some(0), &cpu(0x410f_d0c0)).level, None);
        assert_eq!(locate(true, events, Some(9), &cpu(0xc00f_ac40)).level, Some(Level::L2));
        assert_eq!(locate(true, events, None, &cpu(0x410f_d0c0)).level, Some(Level::L1));
    }

    #[test]
    fn remote_is_known_only_where_something_tells() {
        let short = Events { bits: 0x06, size: 1 };
        assert_eq!(locate(false, short, None, &Cpu::default()).remote, None);
        assert_eq!(locate(false, Events { bits: 0x06, size: 2 }, None, &Cpu::default()).remote, Some(false));
        assert_eq!(locate(false, short, Some(0xd), &cpu(0x410f_d0c0)).remote, Some(true));
        assert_eq!(load(0x410f_d0c0, 0xd).split(), SpeSource::Remote);
        assert_eq!(load(0x410f_d0c0, 0xc).split(), SpeSource::Peer);
    }

    #[test]
    fn events_stand_in_in_their_order() {
        let level = |store, bits, size| {
            let found = locate(store, Events { bits, size }, None, &Cpu::default());
            found.level.zip(found.hit)
        };
        let (l1, l2, llc) = (1 << 2, 1 << 19, 1 << 8);
        assert_eq!(level(false, l1, 1), Some((Level::L1, true)));
        assert_eq!(level(false, l1 | 1 << 3 | 1 << 22, 4), Some((Level::FillBuffer, true)));
        assert_eq!(level(false, l1 | 1 << 3 | l2, 4), Some((Level::L2, true)));
        assert_eq!(level(false, l1 | 1 << 3 | llc, 2), Some((Level::L3, true)));
        assert_eq!(level(false, l1 | 1 << 3 | llc | 1 << 9, 2), Some((Level::L3, false)));
        assert_eq!(level(false, l1 | 1 << 3, 1), Some((Level::L1, false)));
        assert_eq!(level(true, l1 | llc, 2), Some((Level::L3, true)));
        assert_eq!(level(true, l1 | l2 | 1 << 20, 4), Some((Level::L2, false)));
        assert_eq!(level(true, 0, 2), None);
    }

    #[test]
    fn a_quiet_snoop_bit_says_something_only_where_the_processor_has_it() {
        let events = Events { bits: 0x06, size: 4 };
        assert_eq!(locate(false, events, None, &Cpu::default()).snoop, None);
        assert_eq!(locate(false, events, None, &Cpu::new(None, Some(1 << 23))).snoop, Some(Snoop::None));
        let modified = Events { bits: 1 << 23 | 1 << 21, size: 4 };
        assert_eq!(locate(false, modified, None, &Cpu::default()).snoop, Some(Snoop::Modified));
    }
}
