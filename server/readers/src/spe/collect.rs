//! Statistics per code address, fast enough to keep up with the decoder.
//!
//! There are more addresses and histograms than fit into a processor's caches, and waiting for memory would take several
//! times as long as decoding. So nothing waits for it: records are gathered in batches and handed out in tight loops
//! whose accesses do not depend on each other; each address has a cache line of its last records and a list of earlier
//! ones, eight bytes per record; and only when a list is full are the histograms fetched and all of it counted. An
//! address with few records never grows histograms. Memory follows the number of addresses and of their different
//! latencies, not the number of records.

use super::histogram::{Brief, Bulk};
use super::index::Index;
use super::record::Record;
use super::signature::{Signature, Signatures};
use super::source::Cpu;
use heatline_profile::SpeStats;
use std::hint::black_box;

/// More kinds of processors than this in one recording are taken as unknown ones.
const MOST_CPU_KINDS: usize = 256;
/// Records that are handed out together.
const BATCH: usize = 256;
/// Records that an address holds itself.
const RECENT: usize = 5;
/// Length of the first and of the last list of an address, multiples of [`RECENT`].
const LISTS: [u8; 2] = [10, 60];

/// Threads that finish statistics, and addresses that are worth one.
const MOST_THREADS: usize = 8;
const FEWEST: usize = 512;

/// Who a record belongs to, in the numbers of the caller: it decides which addresses are the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Owner(pub u32);

/// A kind of processor in a [`Collector`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuKind(pub(super) u8);

/// Adds up records per address and owner.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    batch: Vec<Arrival>,
    index: Index,
    places: Vec<Place>,
    lists: Vec<Brief>,
    /// First lists that were outgrown.
    free: Vec<u32>,
    bulks: Vec<Option<Box<Bulk>>>,
    signatures: Signatures,
    cpus: Vec<Cpu>,
}

/// What statistics need of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pc: u64,
    owner: Owner,
    latencies: u64,
    signature: Signature,
}

impl Arrival {
    #[inline(always)]
    pub(super) fn new(owner: Owner, cpu: CpuKind, record: &Record) -> Arrival {
        let signature = Signature::new(record, cpu);
        Arrival { pc: record.pc(), owner, latencies: record.counters_or_zero(), signature }
    }
}

/// An address with its last records; `listed` of at most `room` earlier ones are at `start` in all lists. A cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Place {
    pc: u64,
    owner: Owner,
    start: u32,
    listed: u8,
    room: u8,
    held: u8,
    recent: [Brief; RECENT],
}

/// One address of one owner with its statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct Collected {
    /// Address of the operation, as it was in the process or the kernel.
    pub pc: u64,
    /// Whose.
    pub owner: Owner,
    /// The sum of its records.
    pub stats: SpeStats,
}

impl Collector {
    /// An empty collector.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty collector that knows some kinds of processors.
    pub(super) fn with_cpus(cpus: Vec<Cpu>) -> Self {
        Collector { cpus, ..Self::default() }
    }

    /// The kinds of processors, by their numbers.
    pub(super) fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// The number of a kind of processor.
    pub fn cpu_kind(&mut self, cpu: Cpu) -> CpuKind {
        let known = self.cpus.iter().position(|&known| known == cpu);
        let index = known.unwrap_or_else(|| {
            if self.cpus.len() < MOST_CPU_KINDS {
                self.cpus.push(cpu);
            }
            self.cpus.len() - 1
        });
        CpuKind(u8::try_from(index).unwrap_or(u8::MAX))
    }

    /// Adds a record.
    #[inline]
    pub fn add(&mut self, owner: Owner, cpu: CpuKind, record: &Record) {
        self.batch.push(Arrival::new(owner, cpu, record));
        if self.batch.len() >= BATCH {
            self.empty_batch();
        }
    }

    /// Adds some records.
    pub(super) fn add_all(&mut self, arrivals: &[Arrival]) {
        let mut rest = arrivals;
        while !rest.is_empty() {
            let done = self.hand_out(rest);
            rest = rest.get(done..).unwrap_or_default();
            if done == 0 {
                self.forget_signatures();
            }
        }
    }

    fn empty_batch(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        self.add_all(&batch);
        batch.clear();
        self.batch = batch;
    }

    /// There are more combinations than numbers: those met so far are added up and forgotten.
    #[cold]
    fn forget_signatures(&mut self) {
        for number in 0..self.places.len() {
            self.spill(number);
            self.count(number);
            if let Some(Some(bulk)) = self.bulks.get_mut(number) {
                bulk.add_up_signatures(&self.signatures, &self.cpus);
            }
        }
        self.signatures = Signatures::default();
    }

    /// Gives up to a batch of records to their places, and says how many; less if there are no more numbers for
    /// signatures.
    #[inline(never)]
    fn hand_out(&mut self, arrivals: &[Arrival]) -> usize {
        // A loop of its own, where nothing depends on what is read from memory: the processor then looks many places up
        // at a time.
        let mut targets = [(0u32, 0u16); BATCH];
        let mut done = 0;
        for (target, arrival) in targets.iter_mut().zip(arrivals) {
            let found = self.signatures.find(arrival.signature).or_else(|| self.signatures.add(arrival.signature));
            let Some(signature) = found else { break };
            *target = (self.index.guess(arrival.pc, arrival.owner), signature);
            done += 1;
        }
        let mut spilled = [0u32; BATCH];
        let mut spills = 0;
        for (&(target, signature), arrival) in targets.iter().zip(arrivals).take(done) {
            let mut number = target as usize;
            if !self.places.get(number).is_some_and(|place| place.pc == arrival.pc && place.owner == arrival.owner) {
                number = self.find_or_add(arrival.pc, arrival.owner);
            }
            if self.places.get(number).is_some_and(|place| usize::from(place.held) >= RECENT) {
                self.spill(number);
            }
            let Some(place) = self.places.get_mut(number) else { continue };
            if let Some(free) = place.recent.get_mut(usize::from(place.held)) {
                *free = Brief::new(arrival.latencies, signature);
                place.held += 1;
            }
            // Without a branch, which could not be foreseen and would have to wait for the place.
            if let Some(next) = spilled.get_mut(spills) {
                *next = number as u32;
            }
            spills += usize::from(usize::from(place.held) >= RECENT);
        }
        self.spill_all(spilled.get(..spills).unwrap_or_default());
        done
    }

    #[cold]
    fn find_or_add(&mut self, pc: u64, owner: Owner) -> usize {
        let places = &self.places;
        let is_it = |number: u32| places.get(number as usize).is_some_and(|p| p.pc == pc && p.owner == owner);
        let number = self.index.find_or_add(pc, owner, is_it) as usize;
        if number == self.places.len() {
            let recent = [Brief::default(); RECENT];
            self.places.push(Place { pc, owner, start: 0, listed: 0, room: 0, held: 0, recent });
            self.bulks.push(None);
        }
        number
    }

    /// Moves what places hold to their lists, and counts the lists that are full then.
    fn spill_all(&mut self, spilled: &[u32]) {
        let mut full = Vec::new();
        for number in spilled.iter().map(|&number| number as usize) {
            self.spill(number);
            if self.places.get(number).is_some_and(|place| place.listed >= LISTS[1]) {
                full.push(number);
            }
        }
        let bulk = |&number: &usize| self.bulks.get(number).and_then(|bulk| bulk.as_ref());
        black_box(full.iter().filter_map(bulk).map(|bulk| bulk.touch()).fold(0, u32::wrapping_add));
        for number in full {
            self.count(number);
        }
    }

    /// Moves what a place holds to its list.
    fn spill(&mut self, number: usize) {
        let Some(place) = self.places.get(number) else { return };
        if place.listed + place.held > place.room {
            self.make_room(number);
        }
        let Some(place) = self.places.get_mut(number) else { return };
        let start = place.start as usize + usize::from(place.listed);
        let held = place.recent.get(..usize::from(place.held)).unwrap_or_default();
        for (free, &record) in self.lists.iter_mut().skip(start).zip(held) {
            *free = record;
        }
        place.listed += place.held;
        place.held = 0;
    }

    /// Makes room in the list of a place.
    #[cold]
    fn make_room(&mut self, number: usize) {
        let Some(&place) = self.places.get(number) else { return };
        if place.room >= LISTS[1] {
            return self.count(number);
        }
        let room = if place.room == 0 { LISTS[0] } else { LISTS[1] };
        let reused = if room == LISTS[0] { self.free.pop() } else { None };
        let start = reused.unwrap_or_else(|| {
            let end = self.lists.len();
            self.lists.resize(end + usize::from(room), Brief::default());
            end as u32
        });
        let from = place.start as usize;
        self.lists.copy_within(from..from + usize::from(place.listed), start as usize);
        if place.room > 0 {
            self.free.push(place.start);
        }
        if let Some(place) = self.places.get_mut(number) {
            (place.start, place.room) = (start, room);
        }
    }

    /// Counts the list of a place and empties it.
    fn count(&mut self, number: usize) {
        let (Some(place), Some(bulk)) = (self.places.get_mut(number), self.bulks.get_mut(number)) else { return };
        let start = place.start as usize;
        let list = self.lists.get(start..start + usize::from(place.listed)).unwrap_or_default();
        if !list.is_empty() {
            bulk.get_or_insert_default().add(list);
        }
        place.listed = 0;
    }

    /// The statistics, ordered by owner and address.
    pub fn finish(self) -> Vec<Collected> {
        self.finish_ordered(|owner| owner.0).collect()
    }

    /// The statistics, ordered by a rank of their owners and by address.
    pub(super) fn finish_ordered(mut self, rank: impl Fn(Owner) -> u32) -> impl Iterator<Item = Collected> {
        self.empty_batch();
        let keys = self.places.iter().zip(0usize..).map(|(place, number)| (rank(place.owner), place.pc, number));
        let mut order: Vec<_> = keys.collect();
        order.sort_unstable();
        let take = |&(_, _, number): &(u32, u64, usize)| {
            self.spill(number);
            self.count(number);
            self.bulks.get_mut(number).and_then(Option::take)
        };
        let bulks: Vec<Option<Box<Bulk>>> = order.iter().map(take).collect();
        let stats = finish_all(bulks, &self.signatures, &self.cpus);
        order.into_iter().zip(stats).filter_map(move |((_, _, number), stats)| {
            self.places.get(number).map(|&Place { pc, owner, .. }| Collected { pc, owner, stats })
        })
    }
}

/// The statistics of addresses, which do not depend on each other: made on all processors.
fn finish_all(mut bulks: Vec<Option<Box<Bulk>>>, signatures: &Signatures, cpus: &[Cpu]) -> Vec<SpeStats> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let part = bulks.len().div_ceil(threads).max(FEWEST);
    std::thread::scope(|scope| {
        let finish = |bulks: Vec<Option<Box<Bulk>>>| -> Vec<SpeStats> {
            bulks.into_iter().map(|bulk| bulk.unwrap_or_default().finish(signatures, cpus)).collect()
        };
        let mut parts = Vec::new();
        while bulks.len() > part {
            let last = bulks.split_off(bulks.len() - part);
            parts.push(scope.spawn(move || finish(last)));
        }
        let mut all = finish(bulks);
        for part in parts.into_iter().rev() {
            all.extend(part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::super::packet::{Events, Packet};
    use super::*;
    use heatline_profile::{Ratio, SpeOperation, SpeSource};
    use std::collections::BTreeMap;

    fn record(pc: u64, packets: &[Packet]) -> Record {
        let mut record = Record::default();
        record.take(Packet::Address { index: 0, payload: pc });
        packets.iter().for_each(|&packet| record.take(packet));
        record
    }

    fn collect(records: &[Record]) -> Vec<Collected> {
        let mut collector = Collector::new();
        let cpu = collector.cpu_kind(Cpu::new(Some(0x410f_d0c0), None));
        records.iter().for_each(|record| collector.add(Owner(0), cpu, record));
        collector.finish()
    }

    #[test]
    fn latencies_of_many_records_keep_their_exact_distribution() {
        let mut expected: [BTreeMap<u16, u32>; 2] = Default::default();
        let mut records = Vec::new();
        let mut state = 1u32;
        for _ in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let total = if state >> 30 == 0 { (state >> 8) as u16 } else { (state >> 8 & 0xff) as u16 };
            let issue = total / 3;
            *expected[0].entry(total).or_default() += 1;
            *expected[1].entry(total - issue).or_default() += 1;
            let counters = [(0, total), (1, issue)].map(|(index, value)| Packet::Counter { index, value });
            records.push(record(0x1000, &counters));
        }
        let all = collect(&records);
        assert_eq!((all.len(), all[0].stats.records), (1, 20_000));
        let counts = |expected: &BTreeMap<u16, u32>| expected.iter().map(|(&v, &c)| (v, c)).collect::<Vec<_>>();
        assert_eq!(all[0].stats.total_latency.counts(), counts(&expected[0]));
        assert_eq!(all[0].stats.execution_latency.counts(), counts(&expected[1]));
        assert!(all[0].stats.translation_latency.is_empty());
    }

    #[test]
    fn each_ratio_counts_only_records_that_could_have() {
        let events = |bits, size| Packet::Events(Events { bits, size });
        let load = Packet::Operation { class: 1, payload: 0 };
        let branch = |payload| Packet::Operation { class: 2, payload };
        let all = collect(&[
            record(1, &[load, events(0x0e, 1), Packet::DataSource { value: 0xe, size: 1 }]),
            record(1, &[load, events(0x0806, 2), Packet::DataSource { value: 0x8, size: 1 }]),
            record(1, &[branch(1), events(0xc2, 1)]),
            record(1, &[branch(0), events(0x02, 1)]),
            record(1, &[branch(1)]),
            record(1, &[]),
        ]);
        let stats = &all[0].stats;
        assert_eq!(stats.records, 6);
        assert_eq!(stats.l1d_miss, Ratio { count: 1, of: 2 });
        assert_eq!(stats.llc_miss, Ratio::default());
        assert_eq!(stats.mispredicted, Ratio { count: 1, of: 2 });
        assert_eq!(stats.not_taken, Ratio { count: 1, of: 1 });
        assert_eq!(stats.misaligned, Ratio { count: 1, of: 1 });
        assert_eq!(stats.remote, Ratio { count: 0, of: 2 });
        assert_eq!([SpeSource::Ram, SpeSource::L2].map(|s| stats.source(s)), [1, 1]);
        assert_eq!(stats.operation(SpeOperation::ConditionalBranch), 2);
        assert_eq!(stats.operations.iter().sum::<u64>(), 6);
    }

    #[test]
    fn more_combinations_than_numbers_lose_nothing() {
        let mut collector = Collector::new();
        let cpu = collector.cpu_kind(Cpu::default());
        let (mut misses, mut all) = (0, 0);
        for i in 0..200_000u64 {
            let bits = (i & 0x3ff) << 2 | (i >> 10 & 0x1f) << 19;
            let operation = Packet::Operation { class: 1, payload: (i >> 15) as u8 };
            collector.add(Owner(0), cpu, &record(i % 3, &[operation, Packet::Events(Events { bits, size: 4 })]));
            all += u64::from(i & 3 != 0);
            misses += i >> 1 & 1;
        }
        let mut sum = SpeStats::default();
        collector.finish().iter().for_each(|place| sum += &place.stats);
        assert_eq!((sum.records, sum.l1d_miss), (200_000, Ratio { count: misses, of: all }));
    }

    #[test]
    fn the_same_address_of_another_owner_is_another_place() {
        let mut collector = Collector::new();
        let cpu = collector.cpu_kind(Cpu::default());
        for owner in [1, 2, 1] {
            collector.add(Owner(owner), cpu, &record(0x40, &[]));
        }
        let all: Vec<_> = collector.finish().iter().map(|c| (c.owner.0, c.stats.records)).collect();
        assert_eq!(all, [(1, 2), (2, 1)]);
    }
}
