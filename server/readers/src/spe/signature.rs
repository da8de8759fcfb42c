//! Signatures: all that statistics need of a record besides its address and latencies, as one number.

use super::collect::CpuKind;
use super::event::bit;
use super::operation::{self, Operation};
use super::packet::Events;
use super::record::{EVENTS, OPERATION, OperationType, Record, SOURCE, TOTAL};
use super::source::{self, Cpu};
use heatline_profile::{SpeOperation, SpeStats};
use rustc_hash::FxHashMap;

/// Everything but the address and the latencies: events, their width, operation, data source, processor, and which
/// latencies there are. Few combinations occur in one recording.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Signature(u64);

/// Data sources above this are known of no processor and are told apart no further.
const LAST_SOURCE: u64 = 0x3ff;

impl Signature {
    const EVENTS: u64 = 0xff_ffff;
    /// Events that no statistics depend on would only make more combinations.
    const RELEVANT: u64 = 0xf8_0ffc;

    #[inline(always)]
    pub(super) fn new(record: &Record, cpu: CpuKind) -> Self {
        // Which fields there are changes from record to record and cannot be foreseen, so nothing branches on it.
        let if_present = |field: u32, bits: u64| bits & 0u64.wrapping_sub(u64::from(record.present & field != 0));
        let width = u64::from(u8::BITS - record.events_size.leading_zeros());
        let events = if_present(EVENTS, record.events & Self::RELEVANT | width << 24);
        let operation = u64::from(record.payload) | u64::from(record.class) << 8 | 1 << 10;
        let source = record.source.min(LAST_SOURCE) | 1 << 10;
        let latencies = u64::from((record.present / TOTAL) & 7) << 49;
        let fields = if_present(OPERATION, operation << 27) | if_present(SOURCE, source << 38);
        Signature(events | fields | latencies | u64::from(cpu.0) << 56)
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

    /// Whether there is a total, issue and translation latency.
    pub(super) fn latencies(self) -> [bool; 3] {
        [49, 50, 51].map(|shift| self.0 >> shift & 1 == 1)
    }

    fn cpu(self, cpus: &[Cpu]) -> Cpu {
        cpus.get((self.0 >> 56) as usize).copied().unwrap_or_default()
    }

    /// Counts `records` of this combination.
    pub(super) fn count(self, records: u64, cpus: &[Cpu], stats: &mut SpeStats) {
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
                if let Some(snoop) = source.snoop {
                    stats.snoops[snoop.counted() as usize] += records;
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

/// Numbers the signatures of a recording.
#[derive(Clone, Debug)]
pub(super) struct Signatures {
    all: Vec<Signature>,
    ids: FxHashMap<Signature, u16>,
    /// The number of a signature that was met before, by a hash of it.
    recent: Vec<(Signature, u16)>,
}

/// Number of entries of [`Signatures::recent`], a power of two.
const RECENT: usize = 256;

impl Default for Signatures {
    fn default() -> Self {
        Signatures { all: Vec::new(), ids: FxHashMap::default(), recent: vec![(Signature(u64::MAX), 0); RECENT] }
    }
}

impl Signatures {
    fn slot(signature: Signature) -> usize {
        (signature.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
    }

    #[inline(always)]
    pub(super) fn find(&self, signature: Signature) -> Option<u16> {
        self.recent.get(Self::slot(signature)).and_then(|&(known, id)| (known == signature).then_some(id))
    }

    /// The number of a signature, a new one if need be; `None` when all numbers are given away.
    pub(super) fn add(&mut self, signature: Signature) -> Option<u16> {
        let id = match self.ids.get(&signature) {
            Some(&id) => id,
            None => {
                let id = u16::try_from(self.all.len()).ok()?;
                self.all.push(signature);
                self.ids.insert(signature, id);
                id
            }
        };
        if let Some(recent) = self.recent.get_mut(Self::slot(signature)) {
            *recent = (signature, id);
        }
        Some(id)
    }

    pub(super) fn get(&self, id: u16) -> Signature {
        self.all.get(usize::from(id)).copied().unwrap_or_default()
    }
}
