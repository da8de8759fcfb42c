//! Events: what a profile counted, and in which unit.

use std::fmt;

/// Number of an [`Event`] in its profile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventId(pub u32);

/// What one unit of an event's weight is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Unit {
    /// Time.
    Nanoseconds,
    /// Processor cycles.
    Cycles,
    /// Retired instructions.
    Instructions,
    /// Occurrences of the event, whatever it is.
    Events,
    /// Sampled operations (Arm SPE records).
    Records,
    /// Hits of an SPT record.
    Hits,
    /// Taken branches.
    Branches,
    /// Recorded stacks.
    Stacks,
    /// Calls of a function.
    Calls,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// The unit's symbol or plural noun as it is printed and as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Cycles => "cycles",
            Unit::Instructions => "instructions",
            Unit::Events => "events",
            Unit::Records => "records",
            Unit::Hits => "hits",
            Unit::Branches => "branches",
            Unit::Stacks => "stacks",
            Unit::Calls => "calls",
            Unit::Bytes => "bytes",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How often an event was sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sampling {
    /// Every that many occurrences.
    Period(u64),
    /// So often that about this many samples per second come.
    Frequency(u64),
}

/// What was counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The full name as recorded, modifiers included: `cpu-clock:u`.
    pub name: String,
    /// What one unit of weight is.
    pub unit: Unit,
    /// How it was sampled, where known.
    pub sampling: Option<Sampling>,
    /// Whether the sampled address is exact. An imprecise one lies some instructions behind the cause (skid).
    pub precise: bool,
    /// Whether its samples carry call stacks; without them nothing inclusive can be said.
    pub has_stacks: bool,
    /// Whether a sample's weight arose in its innermost frame. Where that is not known (recorded stacks whose top need
    /// not be the sampled place) its samples give inclusive costs only.
    pub exclusive: bool,
}

impl Event {
    /// An imprecise event without stacks, of unknown sampling, whose weight is that of the innermost frame.
    pub fn new(name: impl Into<String>, unit: Unit) -> Self {
        Event { name: name.into(), unit, sampling: None, precise: false, has_stacks: false, exclusive: true }
    }

    /// The name without modifiers, `cpu-clock` for `cpu-clock:ppp` and `cpu/event=0x3c/` for `cpu/event=0x3c/u`:
    /// the metric's id, as long as no other event has the same.
    ///
    /// A modifier is a run of the letters perf knows behind the last `:` or `/`; `sched:sched_switch` has none.
    pub fn base_name(&self) -> &str {
        let is_modifier = |text: &str| !text.is_empty() && text.chars().all(|c| "ukhGHIpPSDWeb".contains(c));
        if let Some((base, tail)) = self.name.rsplit_once(':')
            && is_modifier(tail)
        {
            return base;
        }
        if let Some(slash) = self.name.rfind('/')
            && is_modifier(&self.name[slash + 1..])
        {
            return &self.name[..=slash];
        }
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, base: &str) {
        assert_eq!(Event::new(name, Unit::Events).base_name(), base);
    }

    #[test]
    fn modifiers_are_cut_and_nothing_else() {
        check("cpu-clock", "cpu-clock");
        check("cpu-clock:ppp", "cpu-clock");
        check("cycles:u", "cycles");
        check("sched:sched_switch", "sched:sched_switch");
        check("cpu/event=0x3c/u", "cpu/event=0x3c/");
        check("cpu/event=0x3c/", "cpu/event=0x3c/");
    }
}
