//! Memory accesses (`perf mem`, `perf record -d -W`): what a sample tells of the data it loaded or stored, as
//! statistics of the instruction.
//!
//! The words and denominators are those of Arm SPE, so that processors read alike. A data source follows the layout of
//! `perf_mem_data_src` in the kernel's `perf_event.h`. A load that found its line under way in the fill buffer has
//! missed the first cache; a page table walk is a miss of all translation buffers.

use heatline_profile::{
    Distribution, Ratio, SpeOperation, SpeOrigin, SpeRow, SpeSnoop, SpeSource, SpeStats, SpeTable, StackId, ThreadId,
};
use rustc_hash::FxHashMap;

/// What a sample says of its access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Access {
    pub source: MemorySource,
    /// Cycles; 0 where not recorded. Larger ones than 65535 are that.
    pub latency: u16,
}

impl Access {
    /// From the fields of a sample. `None` if they tell of no access and no latency.
    pub fn new(source: Option<u64>, weight: Option<u64>, weight_is_struct: bool) -> Option<Access> {
        let source = MemorySource(source.unwrap_or(0));
        // The first of three weights; the others are no latency of the access.
        let latency = weight.map_or(0, |weight| if weight_is_struct { weight & 0xffff_ffff } else { weight });
        let latency = u16::try_from(latency).unwrap_or(u16::MAX);
        (source.tells() || latency > 0).then_some(Access { source, latency })
    }
}

/// Where data came from: `perf_mem_data_src`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct MemorySource(pub u64);

const LOAD: u64 = 2;
const STORE: u64 = 4;
const HIT: u64 = 2;
const MISS: u64 = 4;
const LOCKED: u64 = 2;
const PEER: u64 = 2;

/// The levels that an access went down through, from the core outwards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Level {
    L1,
    FillBuffer,
    L2,
    L3,
    Beyond,
}

impl MemorySource {
    fn field(self, shift: u32, width: u32) -> u64 {
        self.0 >> shift & ((1 << width) - 1)
    }

    fn operation(self) -> u64 {
        self.field(0, 5)
    }

    /// Levels as bits: of old kernels, and still what says whether it was a hit.
    fn levels(self) -> u64 {
        self.field(5, 14)
    }

    fn snoop(self) -> u64 {
        self.field(19, 5)
    }

    fn translation(self) -> u64 {
        self.field(26, 7)
    }

    /// The level as a number, 15 where it is not known; 0 in recordings of old kernels.
    fn level_number(self) -> u64 {
        self.field(33, 4)
    }

    fn tells(self) -> bool {
        self.operation() & (LOAD | STORE) != 0
    }

    /// Whether the access was to another socket.
    fn is_remote(self) -> bool {
        const REMOTE_LEVELS: u64 = 0xf00;
        self.field(37, 1) == 1 || self.levels() & REMOTE_LEVELS != 0 && self.levels() & HIT != 0
    }

    fn is_peer(self) -> bool {
        self.field(38, 2) & PEER != 0
    }

    /// The level that was looked into last, and whether the data was there.
    fn level(self) -> Option<(Level, bool)> {
        let hit = match self.levels() & (HIT | MISS) {
            HIT => true,
            MISS => false,
            _ => return None,
        };
        let by_number = match self.level_number() {
            1 => Some(Level::L1),
            0xc => Some(Level::FillBuffer),
            2 | 5 => Some(Level::L2),
            3 | 4 | 6 => Some(Level::L3),
            9 | 0xd | 0xe => Some(Level::Beyond),
            _ => None,
        };
        let by_bits = || match self.levels() {
            bits if bits & 0xf80 != 0 => Some(Level::Beyond),
            bits if bits & 0x40 != 0 => Some(Level::L3),
            bits if bits & 0x20 != 0 => Some(Level::L2),
            bits if bits & 0x10 != 0 => Some(Level::FillBuffer),
            bits if bits & 0x08 != 0 => Some(Level::L1),
            _ => None,
        };
        Some((by_number.or_else(by_bits)?, hit))
    }

    /// Whether a cache was looked into, and whether it missed.
    fn missed(self, cache: Level) -> Option<bool> {
        let (level, hit) = self.level()?;
        // What was found on another socket is in no cache of this one.
        let level = if self.is_remote() && hit { Level::Beyond } else { level };
        match level.cmp(&cache) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Equal => Some(!hit),
            std::cmp::Ordering::Greater => Some(true),
        }
    }

    fn split(self) -> SpeSource {
        match self.level() {
            _ if self.is_remote() => SpeSource::Remote,
            _ if self.is_peer() => SpeSource::Peer,
            Some((Level::L1, true)) => SpeSource::L1,
            Some((Level::FillBuffer, true)) => SpeSource::FillBuffer,
            Some((Level::L2, true)) => SpeSource::L2,
            Some((Level::L3, true)) => SpeSource::L3,
            Some((Level::Beyond, true)) => SpeSource::Ram,
            _ => SpeSource::Unknown,
        }
    }

    fn snooped(self) -> Option<SpeSnoop> {
        Some(match self.snoop() {
            bits if bits & 0x10 != 0 => SpeSnoop::Modified,
            _ if self.is_peer() => SpeSnoop::Peer,
            bits if bits & 4 != 0 => SpeSnoop::Hit,
            bits if bits & 8 != 0 => SpeSnoop::Miss,
            bits if bits & 2 != 0 => SpeSnoop::None,
            _ => return None,
        })
    }

    fn kind(self) -> SpeOperation {
        match self.operation() {
            _ if self.field(24, 2) & LOCKED != 0 => SpeOperation::Atomic,
            bits if bits & LOAD != 0 => SpeOperation::Load,
            bits if bits & STORE != 0 => SpeOperation::Store,
            _ => SpeOperation::Unknown,
        }
    }

    /// What it says, in words: operation, level, whether the data was there, snoop, translation, whether remote.
    pub fn words(self) -> Vec<(&'static str, &'static str)> {
        let level = self.level().map(|(level, hit)| {
            let name = match level {
                Level::L1 => "L1",
                Level::FillBuffer => "LFB",
                Level::L2 => "L2",
                Level::L3 => "L3",
                Level::Beyond => "RAM",
            };
            [("level", name), ("outcome", if hit { "hit" } else { "miss" })]
        });
        let translation = match self.translation() & (HIT | MISS) {
            0 => None,
            bits => Some(("tlb", if bits & MISS != 0 { "miss" } else { "hit" })),
        };
        let remote = self.level().map(|_| ("remote", if self.is_remote() { "yes" } else { "no" }));
        let operation = Some(("operation", self.kind().name())).filter(|_| self.tells());
        let snoop = self.snooped().map(|snoop| ("snoop", snoop.name()));
        operation.into_iter().chain(level.into_iter().flatten()).chain(snoop).chain(translation).chain(remote).collect()
    }

    /// Counts `records` accesses of this kind.
    fn count(self, records: u64, stats: &mut SpeStats) {
        stats.records = stats.records.saturating_add(records);
        let add = |sum: &mut u64| *sum = sum.saturating_add(records);
        add(&mut stats.operations[self.kind() as usize]);
        let ratio =
            |ratio: &mut Ratio, happened: Option<bool>| happened.into_iter().for_each(|it| ratio.add(it, records));
        ratio(&mut stats.l1d_miss, self.missed(Level::L1));
        ratio(&mut stats.l2d_miss, self.missed(Level::L2));
        ratio(&mut stats.llc_miss, self.missed(Level::L3));
        let walked = match self.translation() & (HIT | MISS) {
            0 => None,
            bits => Some(bits & MISS != 0),
        };
        ratio(&mut stats.tlb_miss, walked);
        ratio(&mut stats.remote, self.level().map(|_| self.is_remote()));
        if self.operation() & LOAD != 0 {
            add(&mut stats.sources[self.split() as usize]);
        }
        if let Some(snoop) = self.snooped() {
            add(&mut stats.snoops[snoop as usize]);
        }
    }
}

/// Number of a row of [`Accesses`].
type RowNumber = u32;

/// The accesses so far: by instruction and thread, and what they were.
#[derive(Default)]
pub(crate) struct Accesses {
    rows: Vec<(StackId, Option<ThreadId>)>,
    row_ids: FxHashMap<(StackId, Option<ThreadId>), RowNumber>,
    cells: Vec<(RowNumber, Access, u64)>,
    cell_ids: FxHashMap<(RowNumber, Access), u32>,
}

impl Accesses {
    /// The number under which accesses of this kind are counted.
    pub fn cell(&mut self, stack: StackId, thread: Option<ThreadId>, access: Access) -> u32 {
        let next = self.rows.len() as RowNumber;
        let row = *self.row_ids.entry((stack, thread)).or_insert(next);
        if row == next {
            self.rows.push((stack, thread));
        }
        let next = self.cells.len() as u32;
        let cell = *self.cell_ids.entry((row, access)).or_insert(next);
        if cell == next {
            self.cells.push((row, access, 0));
        }
        cell
    }

    /// Counts samples.
    pub fn count(&mut self, cell: u32, samples: u64) {
        if let Some((_, _, count)) = self.cells.get_mut(cell as usize) {
            *count = count.saturating_add(samples);
        }
    }

    /// The statistics; `None` if there was no access.
    pub fn into_table(self, settings: Vec<String>) -> Option<SpeTable> {
        let mut latencies: Vec<Vec<(u16, u32)>> = vec![Vec::new(); self.rows.len()];
        let mut all = vec![SpeStats::default(); self.rows.len()];
        let mut table = SpeTable { origin: SpeOrigin::Memory, ..SpeTable::default() };
        for (row, access, count) in self.cells {
            let (Some(stats), Some(latencies)) = (all.get_mut(row as usize), latencies.get_mut(row as usize)) else {
                continue;
            };
            access.source.count(count, stats);
            table.recording.records = table.recording.records.saturating_add(count);
            if access.latency > 0 {
                latencies.push((access.latency, u32::try_from(count).unwrap_or(u32::MAX)));
                table.recording.largest_latency = table.recording.largest_latency.max(access.latency);
            }
        }
        let stats = all
            .into_iter()
            .zip(latencies)
            .map(|(stats, latencies)| SpeStats { total_latency: Distribution::new(latencies), ..stats });
        table.rows =
            self.rows.into_iter().zip(stats).map(|((stack, thread), stats)| SpeRow { stack, thread, stats }).collect();
        table.recording.settings = settings;
        (!table.rows.is_empty()).then_some(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operation, level bits, snoop, translation, level number, remote, further snoop bits.
    fn source(fields: [u64; 7]) -> MemorySource {
        let shifts = [0, 5, 19, 26, 33, 37, 38];
        MemorySource(fields.iter().zip(shifts).map(|(field, shift)| field << shift).sum())
    }

    fn of(fields: [u64; 7]) -> SpeStats {
        let mut stats = SpeStats::default();
        source(fields).count(1, &mut stats);
        stats
    }

    fn misses(stats: &SpeStats) -> [Option<bool>; 4] {
        [stats.l1d_miss, stats.l2d_miss, stats.llc_miss, stats.tlb_miss].map(|r| (r.of > 0).then_some(r.count > 0))
    }

    #[test]
    fn an_access_missed_the_caches_it_went_through() {
        let (yes, no) = (Some(true), Some(false));
        let of_level = |bits, number| misses(&of([LOAD, bits, 2, HIT | 8, number, 0, 0]));
        assert_eq!(of_level(HIT | 0x08, 1), [no, None, None, no]);
        assert_eq!(of_level(HIT | 0x10, 0xc), [yes, None, None, no]);
        assert_eq!(of_level(HIT | 0x20, 2), [yes, no, None, no]);
        assert_eq!(of_level(HIT | 0x40, 3), [yes, yes, no, no]);
        assert_eq!(of_level(HIT | 0x80, 0xd), [yes, yes, yes, no]);
        // Only that a cache missed is told.
        assert_eq!(of_level(MISS | 0x08, 1), [yes, None, None, no]);
        assert_eq!(of_level(MISS | 0x40, 3), [yes, yes, yes, no]);
        // Nothing is told.
        assert_eq!(of_level(1, 0xf), [None, None, None, no]);
        // Bits alone, as old kernels wrote them.
        assert_eq!(of_level(HIT | 0x40, 0), [yes, yes, no, no]);
    }

    #[test]
    fn loads_are_split_by_where_their_data_was() {
        let at = |bits, number, remote, more| {
            let stats = of([LOAD, bits, 2, HIT | 8, number, remote, more]);
            SpeSource::ALL.into_iter().find(|&source| stats.source(source) == 1).unwrap().name()
        };
        assert_eq!(at(HIT | 0x08, 1, 0, 0), "l1");
        assert_eq!(at(HIT | 0x10, 0xc, 0, 0), "lfb");
        assert_eq!(at(HIT | 0x20, 2, 0, 0), "l2");
        assert_eq!(at(HIT | 0x40, 3, 0, 0), "l3");
        assert_eq!(at(HIT | 0x80, 0xd, 0, 0), "ram");
        assert_eq!(at(HIT | 0x40, 3, 0, PEER), "peer");
        assert_eq!(at(HIT | 0x100, 0xd, 1, 0), "remote");
        assert_eq!(at(HIT | 0x400, 0xb, 0, 0), "remote");
        assert_eq!(at(MISS | 0x40, 3, 0, 0), "unknown");
        assert_eq!(of([STORE, HIT | 0x08, 2, HIT | 8, 1, 0, 0]).sources.iter().sum::<u64>(), 0);
    }

    #[test]
    fn samples_that_tell_nothing_are_no_accesses() {
        // What the kernel writes for events that have no data source.
        let nothing = 1 | 1 << 5 | 1 << 19 | 1 << 24 | 1 << 26;
        assert_eq!(Access::new(Some(nothing), Some(0), false), None);
        assert_eq!(Access::new(None, None, false), None);
        assert_eq!(Access::new(None, Some(70_000), false).unwrap().latency, u16::MAX);
        assert_eq!(Access::new(None, Some(7 << 32 | 12), true).unwrap().latency, 12);
    }

    #[test]
    fn a_changed_line_of_another_core_is_said_so() {
        let snoop = |bits, more| {
            let stats = of([LOAD, HIT | 0x40, bits, HIT | 8, 3, 0, more]);
            SpeSnoop::ALL.into_iter().find(|&snoop| stats.snoop(snoop) == 1).map(SpeSnoop::name)
        };
        let told = [snoop(0x10, 0), snoop(4, 0), snoop(8, 0), snoop(2, 0), snoop(1, 0), snoop(0, PEER)];
        assert_eq!(told, [Some("hitm"), Some("hit"), Some("miss"), Some("none"), None, Some("peer")]);
    }
}
