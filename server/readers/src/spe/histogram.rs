//! Histograms of the latencies of one address.

use super::signature::Signatures;
use super::source::Cpu;
use heatline_profile::{Distribution, SpeStats};

/// Latencies below this have a counter each as soon as they occur.
const DENSE: u16 = 1024;
/// Counts that wait before they are sorted in.
const MOST_WAITING: usize = 64;
/// Records that are counted before the counters are emptied, so that none overflows; with room for one more list.
const MOST_COUNTED: u32 = u16::MAX as u32 - 255;

/// What the statistics need of a record: from the lowest bits total, issue and translation latency and the number of the
/// signature, sixteen bits each. An absent latency is 0; the signature tells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Brief(pub(super) u64);

impl Brief {
    #[inline(always)]
    pub(super) fn new(latencies: u64, signature: u16) -> Self {
        Brief(latencies | u64::from(signature) << 48)
    }

    /// Total, issue, translation and execution latency, and the signature.
    #[inline(always)]
    fn values(self) -> [u16; HISTOGRAMS] {
        let [total, issue, translation] = [self.0 as u16, (self.0 >> 16) as u16, (self.0 >> 32) as u16];
        [total, issue, translation, total.saturating_sub(issue), (self.0 >> 48) as u16]
    }

    fn contradicts_itself(self) -> bool {
        (self.0 as u16) < (self.0 >> 16) as u16
    }
}

const HISTOGRAMS: usize = 5;
const TOTAL: usize = 0;
const ISSUE: usize = 1;
const TRANSLATION: usize = 2;
const EXECUTION: usize = 3;
const SIGNATURES: usize = 4;

/// The statistics of an address: how often each value of four latencies and each signature occurred.
#[derive(Clone, Debug, Default)]
pub(super) struct Bulk {
    /// Counters of the low values, which nearly all are: those of all histograms behind each other. Absent latencies
    /// count as 0 until the end, when the signatures tell how many they were.
    counters: Vec<u16>,
    /// Where the counters of each histogram begin, and how many there are.
    starts: [u16; HISTOGRAMS],
    lengths: [u16; HISTOGRAMS],
    /// Records since the counters were empty.
    counted: u32,
    /// Records that issued after they had completed.
    contradictions: u32,
    /// Zeros of each latency that stand for absent ones, of signatures that have lost their numbers.
    absent: [u32; 4],
    rare: [Rare; HISTOGRAMS],
    /// Of the signatures that have lost their numbers; its distributions stay empty.
    stats: SpeStats,
}

impl Bulk {
    /// Reads what counting will write.
    pub(super) fn touch(&self) -> u32 {
        self.counters.chunks(32).filter_map(|line| line.first()).fold(0, |sum, &count| sum ^ u32::from(count))
    }

    /// Counts some records, at most 255.
    pub(super) fn add(&mut self, records: &[Brief]) {
        if self.counted >= MOST_COUNTED {
            self.empty_counters();
        }
        self.counted += records.len() as u32;
        let mut largest = [0; HISTOGRAMS];
        let mut contradictions = 0;
        for record in records {
            for (largest, value) in largest.iter_mut().zip(record.values()) {
                *largest = value.max(*largest);
            }
            contradictions += u32::from(record.contradicts_itself());
        }
        self.contradictions += contradictions;
        let all_low = largest.iter().all(|&value| value < DENSE);
        let lowest_missing = largest.map(|value| value.min(DENSE - 1));
        if lowest_missing.iter().zip(&self.lengths).any(|(value, length)| value >= length) {
            self.lengthen(lowest_missing);
        }
        if all_low {
            records.iter().for_each(|record| self.add_low(record.values()));
        } else {
            records.iter().for_each(|record| self.add_any(record.values()));
        }
    }

    #[inline(always)]
    fn add_low(&mut self, values: [u16; HISTOGRAMS]) {
        for (start, value) in self.starts.iter().zip(values) {
            if let Some(count) = self.counters.get_mut(usize::from(*start) + usize::from(value)) {
                *count = count.wrapping_add(1);
            }
        }
    }

    fn add_any(&mut self, values: [u16; HISTOGRAMS]) {
        for (histogram, value) in values.into_iter().enumerate() {
            let place = usize::from(self.starts[histogram]) + usize::from(value);
            match self.counters.get_mut(place) {
                Some(count) if value < DENSE => *count = count.wrapping_add(1),
                _ => self.rare[histogram].add(value, 1),
            }
        }
    }

    /// Makes counters for values up to these, and for some more, as growing takes long.
    #[cold]
    fn lengthen(&mut self, values: [u16; HISTOGRAMS]) {
        let mut lengths = self.lengths;
        for (length, value) in lengths.iter_mut().zip(values) {
            if value >= *length {
                *length = (value + value / 4 + 1).next_multiple_of(32).min(DENSE);
            }
        }
        let mut counters = Vec::with_capacity(lengths.iter().map(|&length| usize::from(length)).sum());
        let mut starts = self.starts;
        for (i, start) in starts.iter_mut().enumerate() {
            *start = counters.len() as u16;
            counters.extend_from_slice(self.counters_of(i));
            counters.resize(usize::from(*start) + usize::from(lengths[i]), 0);
        }
        (self.counters, self.starts, self.lengths) = (counters, starts, lengths);
    }

    fn counters_of(&self, histogram: usize) -> &[u16] {
        let start = usize::from(self.starts[histogram]);
        self.counters.get(start..start + usize::from(self.lengths[histogram])).unwrap_or_default()
    }

    #[cold]
    fn empty_counters(&mut self) {
        for histogram in 0..HISTOGRAMS {
            let counts = distribution(self.counters_of(histogram));
            self.rare[histogram].sorted += &counts;
        }
        self.counters.fill(0);
        self.counted = 0;
    }

    fn take(&mut self, histogram: usize) -> Distribution {
        let mut sum = distribution(self.counters_of(histogram));
        sum += &std::mem::take(&mut self.rare[histogram]).finish();
        sum
    }

    /// The latencies without the zeros of absent ones.
    fn take_latency(&mut self, latency: usize) -> Distribution {
        let all = self.take(latency);
        let absent = self.absent[latency];
        match all.counts() {
            [(0, zeros), ..] if absent > 0 => {
                let mut counts = all.counts().to_vec();
                counts[0].1 = zeros.saturating_sub(absent);
                Distribution::new(counts)
            }
            _ => all,
        }
    }

    /// Adds up what the signatures say, which are then forgotten.
    pub(super) fn add_up_signatures(&mut self, signatures: &Signatures, cpus: &[Cpu]) {
        for &(id, count) in self.take(SIGNATURES).counts() {
            let signature = signatures.get(id);
            signature.count(u64::from(count), cpus, &mut self.stats);
            let [total, issue, translation] = signature.latencies();
            let present = [total, issue, translation, total && issue];
            for (absent, present) in self.absent.iter_mut().zip(present) {
                *absent = absent.saturating_add(if present { 0 } else { count });
            }
        }
        let start = usize::from(self.starts[SIGNATURES]);
        self.counters.truncate(start);
        self.lengths[SIGNATURES] = 0;
    }

    /// The statistics.
    pub(super) fn finish(mut self, signatures: &Signatures, cpus: &[Cpu]) -> SpeStats {
        self.add_up_signatures(signatures, cpus);
        self.absent[EXECUTION] = self.absent[EXECUTION].saturating_add(self.contradictions);
        SpeStats {
            total_latency: self.take_latency(TOTAL),
            issue_latency: self.take_latency(ISSUE),
            translation_latency: self.take_latency(TRANSLATION),
            execution_latency: self.take_latency(EXECUTION),
            ..self.stats
        }
    }
}

fn distribution(counters: &[u16]) -> Distribution {
    let used = counters.iter().map(|&count| usize::from(count > 0)).sum();
    let mut counts = Vec::with_capacity(used);
    // Most counters are 0: eight are passed over at once.
    for (eight, first) in counters.chunks(8).zip((0..).step_by(8)) {
        if eight.iter().fold(0, |all, &count| all | count) != 0 {
            let values = (first..).zip(eight).filter(|&(_, &count)| count > 0);
            counts.extend(values.map(|(value, &count)| (value, u32::from(count))));
        }
    }
    Distribution::from_ascending(counts)
}

/// Counts of values that have no counter, sorted in now and then, so that no order of values is slow and none takes much
/// memory.
#[derive(Clone, Debug, Default)]
struct Rare {
    sorted: Distribution,
    waiting: Vec<(u16, u32)>,
}

impl Rare {
    fn add(&mut self, value: u16, count: u32) {
        self.waiting.push((value, count));
        if self.waiting.len() >= MOST_WAITING.max(self.sorted.counts().len()) {
            self.sort_in();
        }
    }

    fn sort_in(&mut self) {
        if !self.waiting.is_empty() {
            self.sorted += &Distribution::new(std::mem::take(&mut self.waiting));
        }
    }

    fn finish(mut self) -> Distribution {
        self.sort_in();
        self.sorted
    }
}
