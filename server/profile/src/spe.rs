//! Statistics of sampled operations, by code address: of the Arm Statistical Profiling Extension, and of memory accesses
//! as x86 samples them.
//!
//! Operations are sampled, not stacks: everything here is exclusive. A record is counted in several of the ratios, so
//! they must never be added to each other; each has its own denominator.

use crate::{StackId, ThreadId, round};
use std::ops::AddAssign;

/// All SPE records of a profile, or its samples of memory accesses, added up per place and thread.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SpeTable {
    /// What was sampled.
    pub origin: SpeOrigin,
    /// One row per place and thread, in the order of their first records.
    pub rows: Vec<SpeRow>,
    /// How the records were chosen and what was lost.
    pub recording: SpeRecording,
}

/// The records of one code address in one thread.
#[derive(Clone, PartialEq, Debug)]
pub struct SpeRow {
    /// Where: a stack of one frame, as SPE knows no callers.
    pub stack: StackId,
    /// Who, where that is known.
    pub thread: Option<ThreadId>,
    /// What.
    pub stats: SpeStats,
}

/// Statistics over some records. Those of a line or function are the sum of those of its addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpeStats {
    /// How many records.
    pub records: u64,
    /// Cycles from dispatch to completion.
    pub total_latency: Distribution,
    /// Cycles from dispatch to issue.
    pub issue_latency: Distribution,
    /// Cycles of address translation.
    pub translation_latency: Distribution,
    /// What is left of the total latency after issue.
    pub execution_latency: Distribution,
    /// Misses of the first data cache, of the records that accessed it.
    pub l1d_miss: Ratio,
    /// Misses of the second data cache, of the records that accessed it.
    pub l2d_miss: Ratio,
    /// Misses of the last cache, of the records that accessed it.
    pub llc_miss: Ratio,
    /// Page table walks, of the records that were translated.
    pub tlb_miss: Ratio,
    /// Mispredicted, of the branches.
    pub mispredicted: Ratio,
    /// Not taken, of the conditional branches.
    pub not_taken: Ratio,
    /// Misaligned, of the loads and stores.
    pub misaligned: Ratio,
    /// Accesses to another socket, of the loads and stores where it is known.
    pub remote: Ratio,
    /// Where loads got their data, by [`SpeSource`] as index; the sum is the number of loads.
    pub sources: [u64; SpeSource::ALL.len()],
    /// What other caches had to say of accesses, by [`SpeSnoop`] as index, where it is known.
    pub snoops: [u64; SpeSnoop::ALL.len()],
    /// What was sampled, by [`SpeOperation`] as index; the sum is the number of records.
    pub operations: [u64; SpeOperation::ALL.len()],
}

impl SpeStats {
    /// The loads that got their data from `source`.
    pub fn source(&self, source: SpeSource) -> u64 {
        self.sources[source as usize]
    }

    /// The accesses of which other caches had this to say.
    pub fn snoop(&self, snoop: SpeSnoop) -> u64 {
        self.snoops[snoop as usize]
    }

    /// The records of an operation of this kind.
    pub fn operation(&self, kind: SpeOperation) -> u64 {
        self.operations[kind as usize]
    }
}

impl AddAssign<&SpeStats> for SpeStats {
    fn add_assign(&mut self, other: &SpeStats) {
        self.records = self.records.saturating_add(other.records);
        self.total_latency += &other.total_latency;
        self.issue_latency += &other.issue_latency;
        self.translation_latency += &other.translation_latency;
        self.execution_latency += &other.execution_latency;
        self.l1d_miss += other.l1d_miss;
        self.l2d_miss += other.l2d_miss;
        self.llc_miss += other.llc_miss;
        self.tlb_miss += other.tlb_miss;
        self.mispredicted += other.mispredicted;
        self.not_taken += other.not_taken;
        self.misaligned += other.misaligned;
        self.remote += other.remote;
        for (sum, part) in self.sources.iter_mut().zip(other.sources) {
            *sum = sum.saturating_add(part);
        }
        for (sum, part) in self.snoops.iter_mut().zip(other.snoops) {
            *sum = sum.saturating_add(part);
        }
        for (sum, part) in self.operations.iter_mut().zip(other.operations) {
            *sum = sum.saturating_add(part);
        }
    }
}

/// A count together with what it is a share of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ratio {
    /// How often it happened.
    pub count: u64,
    /// How often it could have happened and the record tells.
    pub of: u64,
}

impl Ratio {
    /// One more record where it could have happened, and did or did not.
    pub fn add(&mut self, happened: bool, records: u64) {
        self.of = self.of.saturating_add(records);
        if happened {
            self.count = self.count.saturating_add(records);
        }
    }
}

impl AddAssign for Ratio {
    fn add_assign(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.of = self.of.saturating_add(other.of);
    }
}

/// How often each latency was seen: exact, so that mean and percentiles of sums of distributions are exact too.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Distribution {
    /// (cycles, how often), ascending, each value once, no zero counts.
    counts: Vec<(u16, u32)>,
    records: u64,
    sum: u64,
    squares: u128,
}

impl Distribution {
    /// A distribution from values in any order with how often each was seen.
    pub fn new(mut counts: Vec<(u16, u32)>) -> Self {
        counts.sort_unstable();
        counts.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                first.1 = first.1.saturating_add(later.1);
            }
            same
        });
        counts.retain(|&(_, count)| count > 0);
        counts.shrink_to_fit();
        Self::from_ascending(counts)
    }

    /// A distribution from ascending values, each once, with how often each was seen, which is not 0.
    pub fn from_ascending(counts: Vec<(u16, u32)>) -> Self {
        debug_assert!(counts.is_sorted_by(|a, b| a.0 < b.0) && counts.iter().all(|count| count.1 > 0));
        let (mut records, mut sum, mut squares) = (0, 0, 0);
        for &(value, count) in &counts {
            let (value, count) = (u64::from(value), u64::from(count));
            records += count;
            sum += value * count;
            squares += u128::from(value * value * count);
        }
        Distribution { counts, records, sum, squares }
    }

    /// The values with how often each was seen, ascending.
    pub fn counts(&self) -> &[(u16, u32)] {
        &self.counts
    }

    /// Whether no record had this latency.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How many records had this latency.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Sum of the latencies in cycles.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Sum of the squares of the latencies, from which the effective sample size follows.
    pub fn squares(&self) -> f64 {
        self.squares as f64
    }

    /// Mean in cycles, `None` without records.
    pub fn mean(&self) -> Option<f64> {
        let records = self.records();
        (records > 0).then(|| self.sum() as f64 / records as f64)
    }

    /// The value at `percent` (1..=100) by nearest rank: the smallest that at least so many percent do not exceed.
    pub fn percentile(&self, percent: u32) -> Option<u16> {
        let records = u128::from(self.records());
        let rank = (records * u128::from(percent.clamp(1, 100))).div_ceil(100);
        let mut seen = 0;
        self.counts.iter().find_map(|&(value, count)| {
            seen += u128::from(count);
            (seen >= rank).then_some(value)
        })
    }

    /// The largest value.
    pub fn max(&self) -> Option<u16> {
        self.counts.last().map(|&(value, _)| value)
    }
}

impl AddAssign<&Distribution> for Distribution {
    /// Merges another distribution. How often one value was seen saturates at 2³²−1.
    fn add_assign(&mut self, other: &Distribution) {
        if other.counts.is_empty() {
            return;
        }
        if self.counts.is_empty() {
            *self = other.clone();
            return;
        }
        // Sums of many soon know all values; then nothing moves.
        let mut missing = Vec::new();
        let mut rest = self.counts.iter_mut();
        let mut next = rest.next();
        for &(value, count) in &other.counts {
            while next.as_ref().is_some_and(|known| known.0 < value) {
                next = rest.next();
            }
            match &mut next {
                Some(known) if known.0 == value => {
                    let added = u64::from(count.min(u32::MAX - known.1));
                    known.1 += added as u32;
                    let value = u64::from(value);
                    self.records += added;
                    self.sum += value * added;
                    self.squares += u128::from(value * value * added);
                }
                _ => missing.push((value, count)),
            }
        }
        if !missing.is_empty() {
            self.insert(missing);
        }
    }
}

impl Distribution {
    /// Takes in values that it does not hold yet, which ascend.
    fn insert(&mut self, values: Vec<(u16, u32)>) {
        let ours = std::mem::take(&mut self.counts);
        let mut merged = Vec::with_capacity(ours.len() + values.len());
        let (mut a, mut b) = (ours.iter().copied().peekable(), values.iter().copied().peekable());
        while let (Some(&x), Some(&y)) = (a.peek(), b.peek()) {
            merged.push(if x.0 < y.0 { x } else { y });
            if x.0 < y.0 {
                a.next();
            } else {
                b.next();
            }
        }
        merged.extend(a.chain(b));
        *self = Distribution::from_ascending(merged);
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All of them, each at its own index.
            pub const ALL: [$name; [$($word),*].len()] = [$($name::$variant),*];

            /// The word for it, as JSON has it.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }
    };
}

words! {
    /// Where a load got its data.
    SpeSource {
        /// The first data cache.
        L1 = "l1",
        /// The fill buffer of the first data cache: the line was under way already.
        FillBuffer = "lfb",
        /// The second cache.
        L2 = "l2",
        /// The last cache of the socket.
        L3 = "l3",
        /// Memory of the own socket.
        Ram = "ram",
        /// Another core's or cluster's cache.
        Peer = "peer",
        /// Another socket.
        Remote = "remote",
        /// Not told, or only that a cache missed.
        Unknown = "unknown",
    }
}

words! {
    /// What other caches had to say of an access.
    SpeSnoop {
        /// They were not asked.
        None = "none",
        /// One had the line.
        Hit = "hit",
        /// None had the line.
        Miss = "miss",
        /// One had changed the line.
        Modified = "hitm",
        /// The line came from a peer's cache.
        Peer = "peer",
    }
}

/// What statistics are of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum SpeOrigin {
    /// Records of Arm SPE.
    #[default]
    Spe,
    /// Samples with a data source or an access latency (`perf mem`, `perf record -d -W`).
    Memory,
}

impl SpeOrigin {
    /// All of them.
    pub const ALL: [SpeOrigin; 2] = [SpeOrigin::Spe, SpeOrigin::Memory];

    /// The front of the ids of their metrics: `spe` or `mem`.
    pub fn name(self) -> &'static str {
        match self {
            SpeOrigin::Spe => "spe",
            SpeOrigin::Memory => "mem",
        }
    }
}

words! {
    /// Kinds of operations; each record has exactly one.
    SpeOperation {
        /// A load that is none of the below.
        Load = "load",
        /// A store that is none of the below.
        Store = "store",
        /// An atomic read-modify-write.
        Atomic = "atomic",
        /// A load of SIMD, floating-point, SVE or SME registers.
        VectorLoad = "vector load",
        /// A store of such.
        VectorStore = "vector store",
        /// A branch on a condition.
        ConditionalBranch = "conditional branch",
        /// A branch with link, where the processor tells.
        Call = "call",
        /// A return, where the processor tells.
        Return = "return",
        /// An indirect branch that is not known to be a call or return.
        IndirectBranch = "indirect branch",
        /// Any other branch.
        Branch = "branch",
        /// Data processing with vectors.
        Vector = "vector",
        /// Floating point without vectors.
        Float = "floating point",
        /// Everything else.
        General = "general",
        /// Not told, or reserved.
        Unknown = "unknown",
    }
}

/// How the records were chosen and what was lost.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpeRecording {
    /// The settings in words, most important first: filters, minimum latency, timestamps, …
    pub settings: Vec<String>,
    /// Whether a filter was on: then every share is of the operations that passed it.
    pub filtered: bool,
    /// Operations between two samples.
    pub interval: Option<u64>,
    /// How many buffers of the recorder were reported at all.
    pub buffers: u64,
    /// Buffers at whose end data was lost.
    pub truncated: u64,
    /// Buffers whose last record was torn.
    pub partial: u64,
    /// Buffers during which samples fell out because the one before was still under way.
    pub collision: u64,
    /// Bytes of SPE data.
    pub bytes: u64,
    /// Records in it, before any choice of time or processor.
    pub records: u64,
    /// Records that were torn or touched by bytes that are no packets.
    pub dropped_records: u64,
    /// Bytes that are no packets.
    pub bad_bytes: u64,
    /// The largest latency seen. Counters stop at 4095 on some processors, at 65535 on others.
    pub largest_latency: u16,
    /// What to do better next time, where the records show a cause.
    pub advice: Vec<String>,
}

impl SpeRecording {
    /// Whether `latency` is where the counters stop, so that it means "at least".
    pub fn is_saturated(&self, latency: u16) -> bool {
        latency == u16::MAX || latency == 4095 && self.largest_latency <= 4095
    }

    /// Adds what another recording holds and lost; the settings stay.
    pub fn add(&mut self, other: &SpeRecording) {
        self.filtered |= other.filtered;
        let sums = [
            (&mut self.buffers, other.buffers),
            (&mut self.truncated, other.truncated),
            (&mut self.partial, other.partial),
            (&mut self.collision, other.collision),
            (&mut self.bytes, other.bytes),
            (&mut self.records, other.records),
            (&mut self.dropped_records, other.dropped_records),
            (&mut self.bad_bytes, other.bad_bytes),
        ];
        for (sum, part) in sums {
            *sum = sum.saturating_add(part);
        }
        self.largest_latency = self.largest_latency.max(other.largest_latency);
        let new: Vec<String> = other.advice.iter().filter(|advice| !self.advice.contains(advice)).cloned().collect();
        self.advice.extend(new);
    }

    /// A sentence on lost data, `None` if there was none.
    pub fn losses(&self) -> Option<String> {
        let mut parts = Vec::new();
        let mut part = |count: u64, what: &str| {
            if count > 0 {
                parts.push(format!("{what} in {count} of {} buffers", self.buffers.max(count)));
            }
        };
        part(self.truncated, "data lost");
        part(self.partial, "gaps");
        part(self.collision, "collisions");
        if self.dropped_records > 0 {
            let all = self.records.saturating_add(self.dropped_records);
            let share = round(100.0 * self.dropped_records as f64 / all as f64);
            let records = if self.dropped_records == 1 { "record" } else { "records" };
            parts.push(format!("{} {records} dropped ({share} %)", self.dropped_records));
        }
        if self.bad_bytes > 0 {
            let share = round(100.0 * self.bad_bytes as f64 / self.bytes.max(1) as f64);
            parts.push(format!("{} bytes that are no packets ({share} %)", self.bad_bytes));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let of = |values: &[u16]| Distribution::new(values.iter().map(|&v| (v, 1)).collect());
        // The textbook example: ranks 2, 3 and 5 of five.
        let five = of(&[15, 20, 35, 40, 50]);
        assert_eq!([30, 50, 100].map(|p| five.percentile(p)), [Some(20), Some(35), Some(50)]);
        assert_eq!((five.percentile(5), five.percentile(95)), (Some(15), Some(50)));
        let even = of(&[1, 2, 3, 4]);
        assert_eq!((even.percentile(50), even.percentile(95)), (Some(2), Some(4)));
        assert_eq!((even.sum(), even.mean()), (10, Some(2.5)));
        assert_eq!((of(&[]).percentile(50), of(&[]).mean()), (None, None));
    }

    #[test]
    fn a_sum_of_distributions_is_the_distribution_of_all_values() {
        let (a, b) = (vec![(3, 2), (7, 1), (9, 4)], vec![(7, 5), (1, 1), (12, 1)]);
        let mut sum = Distribution::new(a.clone());
        sum += &Distribution::new(b.clone());
        assert_eq!(sum, Distribution::new([a, b].concat()));
        assert_eq!(sum.counts(), [(1, 1), (3, 2), (7, 6), (9, 4), (12, 1)]);
        let mut from_nothing = Distribution::default();
        from_nothing += &sum;
        assert_eq!(from_nothing, sum);
        sum += &Distribution::default();
        assert_eq!(from_nothing, sum);
    }

    #[test]
    fn statistics_add_up_each_with_its_own_denominator() {
        let mut one = SpeStats { records: 1, ..SpeStats::default() };
        one.l1d_miss.add(true, 1);
        one.sources[SpeSource::Ram as usize] = 1;
        let mut two = SpeStats { records: 1, ..SpeStats::default() };
        two.l1d_miss.add(false, 1);
        two.not_taken.add(true, 1);
        two += &one;
        assert_eq!(
            (two.records, two.l1d_miss, two.not_taken),
            (2, Ratio { count: 1, of: 2 }, Ratio { count: 1, of: 1 })
        );
        assert_eq!((two.source(SpeSource::Ram), two.tlb_miss), (1, Ratio::default()));
    }

    #[test]
    fn where_counters_stop_follows_from_the_largest() {
        let short = SpeRecording { largest_latency: 4095, ..SpeRecording::default() };
        let long = SpeRecording { largest_latency: 4096, ..SpeRecording::default() };
        assert!(short.is_saturated(4095) && !long.is_saturated(4095) && long.is_saturated(65535));
        assert!(!short.is_saturated(4094));
    }

    #[test]
    fn losses_are_told_in_one_sentence() {
        assert_eq!(SpeRecording::default().losses(), None);
        let recording = SpeRecording { buffers: 3, truncated: 1, records: 3, dropped_records: 1, ..Default::default() };
        assert_eq!(recording.losses().as_deref(), Some("data lost in 1 of 3 buffers, 1 record dropped (25.0 %)"));
    }
}
