//! The profile: all that one recording yields.

use crate::{
    BranchArc, CallTable, Event, EventId, Module, ModuleId, Problems, SampleRow, SpeOrigin, SpeTable, StackTable,
    Symbolization, Tally, Thread, ThreadId,
};
use std::sync::Arc;

/// The format a profile came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ProfileKind {
    /// A Linux `perf.data` file.
    PerfData,
    /// A sample profile trace of MSVC.
    Spt,
    /// A raw buffer of the Arm Statistical Profiling Extension.
    Spe,
    /// A uftrace data directory.
    Uftrace,
    /// A pprof file.
    Pprof,
    /// A frozen profile of Heatline itself.
    Heatline,
}

impl ProfileKind {
    /// The word that JSON output has for it.
    pub fn name(self) -> &'static str {
        match self {
            ProfileKind::PerfData => "perf.data",
            ProfileKind::Spt => "spt",
            ProfileKind::Spe => "spe",
            ProfileKind::Uftrace => "uftrace",
            ProfileKind::Pprof => "pprof",
            ProfileKind::Heatline => "heatline",
        }
    }
}

/// How and where a profile was recorded, as far as the file says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recording {
    /// Time from the first to the last sample, in nanoseconds.
    pub duration_ns: Option<u64>,
    /// When the first and the last sample were taken, in nanoseconds of the recording's own clock.
    pub span: Option<(u64, u64)>,
    /// Machine architecture as the recorder names it (`x86_64`, `aarch64`).
    pub arch: Option<String>,
    /// Processor model or identification as recorded.
    pub cpu: Option<String>,
    /// The recorder's command line, word by word.
    pub command_line: Vec<String>,
    /// The recorder's version.
    pub recorder: Option<String>,
    /// Operating system release.
    pub os_release: Option<String>,
    /// The format that a frozen profile had before.
    pub frozen_from: Option<ProfileKind>,
    /// Whether all stacks are those that frame pointers lead to. Code without them cuts such stacks short.
    pub by_frame_pointers: bool,
    /// How many samples were taken, where several events tell of the same ones; else those of all events add up.
    pub samples: Option<u64>,
}

/// All that one recording yields. Immutable once read.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The format it came in.
    pub kind: ProfileKind,
    /// What was counted, by [`EventId`], in the order of the recording.
    pub events: Vec<Event>,
    /// Binary images, by [`ModuleId`].
    pub modules: Vec<Module>,
    /// Threads under their names, by [`ThreadId`]; empty where the format knows none.
    pub threads: Vec<Thread>,
    /// Call stacks; a stack of one frame where there are none.
    pub stacks: StackTable,
    /// The samples, one row per stack, event and thread.
    pub rows: Vec<SampleRow>,
    /// Taken branches, each arc of an event once; empty where none were recorded.
    pub arcs: Vec<BranchArc>,
    /// Statistics of Arm SPE records, or of samples of memory accesses, where there are any.
    pub spe: Option<SpeTable>,
    /// Instrumented calls, where they were recorded. Weights of such a profile are measured and not sampled.
    pub calls: Option<CallTable>,
    /// What the recording itself says of the source of its code; `None` where binaries have to be asked.
    pub symbolization: Option<Arc<Symbolization>>,
    /// How it was recorded.
    pub recording: Recording,
    /// What could not be read.
    pub problems: Problems,
}

impl Profile {
    /// An empty profile of a kind.
    pub fn new(kind: ProfileKind) -> Self {
        Profile {
            kind,
            events: Vec::new(),
            modules: Vec::new(),
            threads: Vec::new(),
            stacks: StackTable::new(),
            rows: Vec::new(),
            arcs: Vec::new(),
            spe: None,
            calls: None,
            symbolization: None,
            recording: Recording::default(),
            problems: Problems::new(),
        }
    }

    /// The format it was recorded in, frozen since or not.
    pub fn origin(&self) -> ProfileKind {
        self.recording.frozen_from.unwrap_or(self.kind)
    }

    /// The event with this number.
    ///
    /// # Panics
    /// If the number is of another profile.
    pub fn event(&self, id: EventId) -> &Event {
        &self.events[id.0 as usize]
    }

    /// The module with this number.
    ///
    /// # Panics
    /// If the number is of another profile.
    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0 as usize]
    }

    /// The thread with this number.
    ///
    /// # Panics
    /// If the number is of another profile.
    pub fn thread(&self, id: ThreadId) -> &Thread {
        &self.threads[id.0 as usize]
    }

    /// The totals per event, by [`EventId`].
    pub fn totals(&self) -> Vec<Tally> {
        let mut totals = vec![Tally::default(); self.events.len()];
        for row in &self.rows {
            totals[row.event.0 as usize] += row.tally;
        }
        totals
    }

    /// Adds a problem, once, if the weights or samples of an event add up to more than can be counted.
    pub fn tell_cut_sums(&mut self) {
        const KIND: &str = "sum-cut-off";
        let mut sums = vec![(0u128, 0u128); self.events.len()];
        let mut is_cut = false;
        for SampleRow { event, tally, .. } in &self.rows {
            let (weight, samples) = &mut sums[event.0 as usize];
            *weight += u128::from(tally.weight.0);
            *samples += u128::from(tally.samples);
            is_cut |= tally.weight.0 == u64::MAX || tally.samples == u64::MAX;
        }
        is_cut |= sums.iter().any(|&(weight, samples)| weight.max(samples) > u64::MAX.into());
        if is_cut && !self.problems.iter().any(|problem| problem.kind == KIND) {
            let message = format!(
                "sums that exceed {} are cut off there, so shares of them are wrong; record for less long",
                u64::MAX
            );
            self.problems.add(KIND, 1, None, message);
        }
    }

    /// The metric's id of an event: its name without modifiers, or with them where another event would clash.
    pub fn metric_id(&self, id: EventId) -> &str {
        let event = self.event(id);
        let base = event.base_name();
        let clashes = self.events.iter().filter(|e| e.base_name() == base).count() > 1;
        if clashes { &event.name } else { base }
    }

    /// The number of samples: every record once, whatever events follow from it. Of instrumented calls their number.
    pub fn samples(&self) -> u64 {
        if let Some(table) = &self.calls {
            return table.total().calls;
        }
        if let Some(samples) = self.recording.samples {
            return samples;
        }
        let derived = |event: &Event| match self.spe.as_ref().map(|table| table.origin) {
            Some(SpeOrigin::Spe) => event.name.starts_with("spe:") && event.name != "spe:records",
            Some(SpeOrigin::Memory) => event.name.starts_with("mem:"),
            None => false,
        };
        let times = [CallTable::OFF_CPU, CallTable::ELAPSED, CallTable::APPLICATION];
        let derived = |event: &Event| derived(event) || times.contains(&event.name.as_str());
        let recorded = self.events.iter().zip(self.totals()).filter(|(event, _)| !derived(event));
        recorded.map(|(_, total)| total.samples).fold(0, u64::saturating_add)
    }

    /// The event shown first: the first recorded one with samples, else the first.
    pub fn default_event(&self) -> Option<EventId> {
        let totals = self.totals();
        let with_samples = totals.iter().position(|total| total.samples > 0);
        (!self.events.is_empty()).then(|| EventId(with_samples.unwrap_or(0) as u32))
    }

    /// The event that a person means by `name`: a metric's id or an event's full name.
    pub fn find_event(&self, name: &str) -> Option<EventId> {
        let ids = || (0..self.events.len() as u32).map(EventId);
        ids().find(|&id| self.event(id).name == name).or_else(|| ids().find(|&id| self.metric_id(id) == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;

    #[test]
    fn metric_ids_lose_modifiers_unless_they_would_clash() {
        let mut profile = Profile::new(ProfileKind::PerfData);
        profile.events = ["cpu-clock:u", "cycles:u", "cycles:k"].map(|n| Event::new(n, Unit::Events)).to_vec();
        let ids: Vec<_> = (0..3).map(|i| profile.metric_id(EventId(i))).collect();
        assert_eq!(ids, ["cpu-clock", "cycles:u", "cycles:k"]);
        assert_eq!(profile.find_event("cpu-clock"), Some(EventId(0)));
        assert_eq!(profile.find_event("cpu-clock:u"), Some(EventId(0)));
        assert_eq!(profile.find_event("cycles"), None);
    }
}
