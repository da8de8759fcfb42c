//! Statistics per code address, fast enough to keep up with the decoder.
//!
//! Records are kept as they come, sixteen bytes each, in a short list per address. When a list is full it is worked off
//! at once, while the address's histograms are at hand; most cache misses of adding record by record fall away. An
//! address with few records never grows histograms. Memory follows the number of addresses and different latencies, not
//! the number of records.

use super::event::bit;
use super::operation::{self, Operation};
use super::packet::Events;
use super::record::{OperationType, Record};
use super::source::{self, Cpu};
use heatline_profile::{Distribution, SpeOperation, SpeStats};
use rustc_hash::FxHashMap;

/// More kinds of processors than this in one recording are taken as unknown ones.
const MOST_CPU_KINDS: usize = 256;
/// Records of an address that wait before they are worked off.
const MOST_PENDING: usize = 64;
/// Different combinations of events and operations of an address that wait before they are added up.
const MOST_SIGNATURES: usize = 64;
/// Latencies below this have a counter each as soon as they occur.
const DENSE: usize = 512;
/// Higher latencies that wait before they are sorted in.
const MOST_WAITING: usize = 64;

/// Who a record belongs to, in the numbers of the caller: it decides which addresses are the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Owner(pub u32);

/// A kind of processor in a [`Collector`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuKind(u8);

/// Adds up records per address and owner.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    ids: FxHashMap<(u64, Owner), u32>,
    places: Vec<Place>,
    cpus: Vec<Cpu>,
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

    /// The number of a kind of processor.
    pub fn cpu_kind(&mut self, cpu: Cpu) -> CpuKind {
        let known = self.cpus.iter().position(|&known| known == cpu);
        let index = known.unwrap_or_else(|| {
            self.cpus.push(if self.cpus.len() < MOST_CPU_KINDS { cpu } else { Cpu::default() });
            self.cpus.len() - 1
        });
        CpuKind(u8::try_from(index).unwrap_or(u8::MAX))
    }

    /// Adds a record.
    #[inline]
    pub fn add(&mut self, owner: Owner, cpu: CpuKind, record: &Record) {
        let pc = record.pc();
        let next = self.places.len() as u32;
        let id = *self.ids.entry((pc, owner)).or_insert(next);
        if id == next {
            self.places.push(Place { pc, owner, pending: Vec::new(), bulk: None });
        }
        if let Some(place) = self.places.get_mut(id as usize) {
            place.pending.push(Pending::new(record, cpu));
            if place.pending.len() >= MOST_PENDING {
                place.work_off(&self.cpus);
            }
        }
    }

    /// How many addresses there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether no record was added.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The statistics, in the order of the first records.
    pub fn finish(self) -> impl Iterator<Item = Collected> {
        let cpus = self.cpus;
        self.places.into_iter().map(move |place| place.finish(&cpus))
    }
}

#[derive(Clone, Debug)]
struct Place {
    pc: u64,
    owner: Owner,
    pending: Vec<Pending>,
    bulk: Option<Box<Bulk>>,
}

impl Place {
    fn work_off(&mut self, cpus: &[Cpu]) {
        let bulk = self.bulk.get_or_insert_default();
        for &pending in &self.pending {
            bulk.add(pending, cpus);
        }
        self.pending.clear();
    }

    fn finish(mut self, cpus: &[Cpu]) -> Collected {
        self.work_off(cpus);
        Collected { pc: self.pc, owner: self.owner, stats: self.bulk.unwrap_or_default().finish(cpus) }
    }
}

/// What the statistics need of a record.
#[derive(Clone, Copy, Debug)]
struct Pending {
    signature: Signature,
    latencies: [u16; 3],
    /// Bit N: latency N is present.
    present: u16,
}

impl Pending {
    fn new(record: &Record, cpu: CpuKind) -> Self {
        let latencies = [record.total_latency(), record.issue_latency(), record.translation_latency()];
        let present = (0..3).map(|i| u16::from(latencies[i].is_some()) << i).sum();
        let latencies = latencies.map(Option::unwrap_or_default);
        Pending { signature: Signature::new(record, cpu), latencies, present }
    }

    fn latency(&self, index: usize) -> Option<u16> {
        (self.present >> index & 1 == 1).then(|| self.latencies[index])
    }
}

/// Everything but the latencies: events, their width, operation, data source and processor. Few combinations occur at
/// one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Signature(u64);

/// Data sources above this are known of no processor and are told apart no further.
const LAST_SOURCE: u64 = 0x3ff;

impl Signature {
    const EVENTS: u64 = 0xff_ffff;
    /// Events that no statistics depend on would only make more combinations.
    const RELEVANT: u64 = 0xf8_0ffc;

    fn new(record: &Record, cpu: CpuKind) -> Self {
        let events = record.events();
        let mut bits = events.bits & Self::RELEVANT;
        bits |= u64::from(u8::BITS - events.size.leading_zeros()) << 24;
        if let Some(operation) = record.operation() {
            bits |= (u64::from(operation.payload) | u64::from(operation.class) << 8 | 1 << 10) << 27;
        }
        if let Some(source) = record.data_source() {
            bits |= (source.min(LAST_SOURCE) | 1 << 10) << 38;
        }
        Signature(bits | u64::from(cpu.0) << 56)
    }

    fn events(self) -> Events {
        let width = self.0 >> 24 & 7;
        Events { bits: self.0 & Self::EVENTS, size: if width == 0 { 0 } else { 1 << (width - 1) } }
    }

    fn operation(self) -> Option<OperationType> {
        let raw = self.0 >> 27;
        (raw >> 10 & 1 == 1).then_some(OperationType { class: (raw >> 8 & 3) as u8, payload: raw as u8 })
    }

    fn source(self) -> Option<u64> {
        let raw = self.0 >> 38;
        (raw >> 10 & 1 == 1).then_some(raw & LAST_SOURCE)
    }

    fn cpu(self, cpus: &[Cpu]) -> Cpu {
        cpus.get((self.0 >> 56) as usize).copied().unwrap_or_default()
    }

    /// Counts `records` of this combination.
    fn count(self, records: u64, cpus: &[Cpu], stats: &mut SpeStats) {
        stats.records += records;
        let events = self.events();
        let caches = [
            (&mut stats.l1d_miss, bit::L1D_ACCESS, bit::L1D_MISS),
            (&mut stats.l2d_miss, bit::L2D_ACCESS, bit::L2D_MISS),
            (&mut stats.llc_miss, bit::LLC_ACCESS, bit::LLC_MISS),
            (&mut stats.tlb_miss, bit::TLB_ACCESS, bit::TLB_MISS),
        ];
        for (ratio, access, miss) in caches {
            if events.has(access) || events.has(miss) {
                ratio.add(events.has(miss), records);
            }
        }
        let operation = self.operation().map(operation::operation);
        let kind = operation.map_or(SpeOperation::Unknown, |operation| operation.kind());
        stats.operations[kind as usize] += records;
        match operation {
            Some(Operation::Branch { conditional, .. }) => count_branch(conditional, events, records, stats),
            Some(Operation::Memory { store, .. }) => {
                if let Some(misaligned) = events.get(bit::MISALIGNED) {
                    stats.misaligned.add(misaligned, records);
                }
                let source = source::locate(store, events, self.source(), &self.cpu(cpus));
                if let Some(remote) = source.remote {
                    stats.remote.add(remote, records);
                }
                if !store {
                    stats.sources[source.split() as usize] += records;
                }
            }
            _ => {}
        }
    }
}

fn count_branch(conditional: bool, events: Events, records: u64, stats: &mut SpeStats) {
    if let Some(mispredicted) = events.get(bit::MISPREDICTED) {
        stats.mispredicted.add(mispredicted, records);
    }
    if conditional && let Some(not_taken) = events.get(bit::NOT_TAKEN) {
        stats.not_taken.add(not_taken, records);
    }
}

/// The statistics of an address with many records.
#[derive(Clone, Debug, Default)]
struct Bulk {
    signatures: Vec<(Signature, u32)>,
    /// What left [`Self::signatures`]; its distributions stay empty.
    stats: SpeStats,
    total: Histogram,
    issue: Histogram,
    translation: Histogram,
    execution: Histogram,
}

impl Bulk {
    fn add(&mut self, record: Pending, cpus: &[Cpu]) {
        self.count(record.signature, cpus);
        let (total, issue) = (record.latency(0), record.latency(1));
        if let Some(total) = total {
            self.total.add(total);
        }
        if let Some(issue) = issue {
            self.issue.add(issue);
        }
        if let Some(translation) = record.latency(2) {
            self.translation.add(translation);
        }
        if let (Some(total), Some(issue)) = (total, issue)
            && let Some(execution) = total.checked_sub(issue)
        {
            self.execution.add(execution);
        }
    }

    fn count(&mut self, signature: Signature, cpus: &[Cpu]) {
        match self.signatures.iter_mut().find(|known| known.0 == signature) {
            Some((_, count)) if *count < u32::MAX => *count += 1,
            _ => {
                if self.signatures.len() >= MOST_SIGNATURES {
                    self.add_up(cpus);
                }
                self.signatures.push((signature, 1));
            }
        }
    }

    fn add_up(&mut self, cpus: &[Cpu]) {
        for (signature, count) in self.signatures.drain(..) {
            signature.count(u64::from(count), cpus, &mut self.stats);
        }
    }

    fn finish(mut self, cpus: &[Cpu]) -> SpeStats {
        self.add_up(cpus);
        SpeStats {
            total_latency: self.total.finish(),
            issue_latency: self.issue.finish(),
            translation_latency: self.translation.finish(),
            execution_latency: self.execution.finish(),
            ..self.stats
        }
    }
}

/// How often each latency was seen. Low ones, which nearly all are, have a counter each; the others are sorted in now
/// and then, so that no order of values is slow and none takes much memory.
#[derive(Clone, Debug, Default)]
struct Histogram {
    dense: Vec<u32>,
    sparse: Vec<(u16, u32)>,
    waiting: Vec<(u16, u32)>,
}

impl Histogram {
    #[inline]
    fn add(&mut self, value: u16) {
        match self.dense.get_mut(usize::from(value)) {
            Some(count) => *count = count.saturating_add(1),
            None => self.add_rare(value),
        }
    }

    #[cold]
    fn add_rare(&mut self, value: u16) {
        let index = usize::from(value);
        if index < DENSE {
            self.dense.resize((index + 1).next_power_of_two().max(32), 0);
            self.dense[index] = 1;
            return;
        }
        self.waiting.push((value, 1));
        if self.waiting.len() >= MOST_WAITING.max(self.sparse.len()) {
            self.sort_in();
        }
    }

    fn sort_in(&mut self) {
        let mut sum = Distribution::new(std::mem::take(&mut self.sparse));
        sum += &Distribution::new(std::mem::take(&mut self.waiting));
        self.sparse = sum.counts().to_vec();
    }

    fn finish(self) -> Distribution {
        let dense = self.dense.into_iter().zip(0..).map(|(count, value)| (value, count));
        let mut counts: Vec<_> = dense.filter(|&(_, count)| count > 0).collect();
        counts.extend(self.sparse);
        counts.extend(self.waiting);
        Distribution::new(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::Packet;
    use super::*;
    use heatline_profile::{Ratio, SpeSource};
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
        collector.finish().collect()
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
            record(1, &[load, events(0x0e, 1), Packet::DataSource(0xe)]),
            record(1, &[load, events(0x0806, 2), Packet::DataSource(0x8)]),
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
    fn the_same_address_of_another_owner_is_another_place() {
        let mut collector = Collector::new();
        let cpu = collector.cpu_kind(Cpu::default());
        for owner in [1, 2, 1] {
            collector.add(Owner(owner), cpu, &record(0x40, &[]));
        }
        let all: Vec<_> = collector.finish().map(|c| (c.owner.0, c.stats.records)).collect();
        assert_eq!(all, [(1, 2), (2, 1)]);
    }
}
