//! How SPE was set up, in words.

use super::event::event_name;
use super::source::Cpu;

/// What an SPE event's attribute says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Setup {
    pub config: u64,
    /// Events that records must all have.
    pub events: u64,
    /// The lowest total latency.
    pub latency: u64,
    /// Events of which records must have none.
    pub not_events: u64,
    /// Data sources that are left out.
    pub not_sources: u64,
    pub interval: Option<u64>,
}

const TIMESTAMPS: u32 = 0;
const PHYSICAL_ADDRESSES: u32 = 1;
const PHYSICAL_COUNTER: u32 = 2;
const JITTER: u32 = 16;
const DISCARD: u32 = 35;

/// A type of operation: the bit that selects it, the bit of its mask, and its name.
const TYPES: [(u32, u32, &str); 5] =
    [(33, 37, "loads"), (34, 38, "stores"), (32, 36, "branches"), (39, 40, "SIMD"), (41, 42, "floating point")];

impl Setup {
    fn has(&self, bit: u32) -> bool {
        self.config >> bit & 1 == 1
    }

    /// Whether operations were left out.
    pub fn is_filtered(&self) -> bool {
        let types = TYPES.iter().any(|&(select, mask, _)| self.has(select) || self.has(mask));
        types || self.events != 0 || self.not_events != 0 || self.not_sources != 0 || self.minimum() > 0
    }

    fn minimum(&self) -> u64 {
        self.latency & 0xfff
    }

    /// The settings in words, filters first.
    pub fn words(&self, cpu: &Cpu) -> Vec<String> {
        let mut words = self.type_words();
        let names = |bits: u64, glue: &str| {
            let all: Vec<_> = (0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| describe(bit, cpu)).collect();
            all.join(glue)
        };
        if self.events != 0 {
            words.push(format!("must have {}", names(self.events, " and ")));
        }
        if self.not_events != 0 {
            words.push(format!("not {}", names(self.not_events, ", not ")));
        }
        if self.minimum() > 0 {
            words.push(format!("total latency >= {}", self.minimum()));
        }
        if self.not_sources != 0 {
            let all: Vec<_> = (0..64).filter(|n| self.not_sources >> n & 1 == 1).map(|n| n.to_string()).collect();
            words.push(format!("not from data sources {}", all.join(", ")));
        }
        if self.has(DISCARD) {
            words.push("records discarded, only counted".into());
        }
        let on = |bit: u32| if self.has(bit) { "on" } else { "off" };
        let clock = if self.has(TIMESTAMPS) && self.has(PHYSICAL_COUNTER) { " (physical counter)" } else { "" };
        words.push(format!("timestamps {}{clock}", on(TIMESTAMPS)));
        words.push(format!("physical addresses {}", on(PHYSICAL_ADDRESSES)));
        words.push(format!("jitter {}", on(JITTER)));
        if let Some(interval) = self.interval {
            words.push(format!("one of about {interval} operations"));
        }
        words
    }

    /// A type that is masked must be as it is selected; of those that are selected without a mask one suffices.
    fn type_words(&self) -> Vec<String> {
        let selected = |&&(select, mask, _): &&(u32, u32, &'static str)| self.has(select) && !self.has(mask);
        let any: Vec<_> = TYPES.iter().filter(selected).map(|&(_, _, name)| name).collect();
        let mut words = Vec::new();
        if !any.is_empty() {
            words.push(any.join(" or "));
        }
        for &(select, _, name) in TYPES.iter().filter(|&&(_, mask, _)| self.has(mask)) {
            words.push(format!("{} {name}", if self.has(select) { "must be" } else { "must not be" }));
        }
        words
    }
}

/// An event bit in the words of a sentence.
fn describe(bit: u32, cpu: &Cpu) -> String {
    match event_name(bit, cpu).as_str() {
        "l1d-access" => "L1D access".into(),
        "l1d-miss" => "L1D refill".into(),
        "tlb-access" => "TLB access".into(),
        "tlb-miss" => "TLB walk".into(),
        "llc-access" => "last-level cache access".into(),
        "llc-miss" => "last-level cache miss".into(),
        "l2d-access" => "L2D access".into(),
        "l2d-miss" => "L2D miss".into(),
        "remote" => "access to another socket".into(),
        "not-taken" => "not taken".into(),
        other => other.replace('-', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(setup: Setup, filtered: bool, words: &str) {
        assert_eq!((setup.is_filtered(), setup.words(&Cpu::default()).join("; ").as_str()), (filtered, words));
    }

    #[test]
    fn filters_come_in_words() {
        let plain = "timestamps off; physical addresses off; jitter off";
        check(Setup::default(), false, plain);
        let setup = Setup {
            config: 1 | 1 << 1 | 1 << 16 | 1 << 33 | 1 << 34,
            events: 1 << 3 | 1 << 5,
            not_events: 1 << 7,
            latency: 100,
            interval: Some(1024),
            ..Setup::default()
        };
        check(
            setup,
            true,
            "loads or stores; must have L1D refill and TLB walk; not mispredicted; total latency >= 100; timestamps on; \
             physical addresses on; jitter on; one of about 1024 operations",
        );
        let masked = Setup { config: 1 << 33 | 1 << 37 | 1 << 40, ..Setup::default() };
        check(masked, true, &format!("must be loads; must not be SIMD; {plain}"));
        check(Setup { not_sources: 1 << 8, ..Setup::default() }, true, &format!("not from data sources 8; {plain}"));
    }
}
