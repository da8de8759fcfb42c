//! SPE statistics as part of a profile: the table itself, and the events whose samples follow from it.

use heatline_profile::{
    Distribution, Event, EventId, Profile, Ratio, SampleRow, Sampling, SpeRow, SpeStats, StackId, Tally, ThreadId,
    Unit, Weight,
};
use rustc_hash::FxHashMap;

/// An event that follows from the statistics: its name behind that of the origin, its unit, and a place's share of it.
type Derived = (&'static str, Unit, fn(&SpeStats) -> Option<Tally>);

/// Counts and sums of what was sampled, in the order in which they are shown.
const DERIVED: [Derived; 13] = [
    ("records", Unit::Records, |stats| Some(Tally::repeated(Weight(1), stats.records))),
    ("total-latency", Unit::Cycles, |stats| latency(&stats.total_latency)),
    ("issue-latency", Unit::Cycles, |stats| latency(&stats.issue_latency)),
    ("translation-latency", Unit::Cycles, |stats| latency(&stats.translation_latency)),
    ("execution-latency", Unit::Cycles, |stats| latency(&stats.execution_latency)),
    ("l1d-miss", Unit::Events, |stats| count(stats.l1d_miss)),
    ("l2d-miss", Unit::Events, |stats| count(stats.l2d_miss)),
    ("llc-miss", Unit::Events, |stats| count(stats.llc_miss)),
    ("tlb-miss", Unit::Events, |stats| count(stats.tlb_miss)),
    ("mispredicted", Unit::Events, |stats| count(stats.mispredicted)),
    ("not-taken", Unit::Events, |stats| count(stats.not_taken)),
    ("misaligned", Unit::Events, |stats| count(stats.misaligned)),
    ("remote", Unit::Events, |stats| count(stats.remote)),
];

fn latency(latencies: &Distribution) -> Option<Tally> {
    let samples = latencies.records();
    (samples > 0).then(|| Tally { samples, weight: Weight(latencies.sum()), squares: latencies.squares() })
}

/// `None` where it could not have happened; a count of 0 where it could have and did not.
fn count(ratio: Ratio) -> Option<Tally> {
    (ratio.of > 0).then(|| Tally::repeated(Weight(1), ratio.count))
}

/// Rows of one place and thread added up.
#[derive(Default)]
pub(crate) struct Rows {
    rows: Vec<SpeRow>,
    numbers: FxHashMap<(StackId, Option<ThreadId>), usize>,
}

impl Rows {
    pub fn add(&mut self, stack: StackId, thread: Option<ThreadId>, stats: SpeStats) {
        let number = *self.numbers.entry((stack, thread)).or_insert(self.rows.len());
        match self.rows.get_mut(number) {
            Some(row) => row.stats += &stats,
            None => self.rows.push(SpeRow { stack, thread, stats }),
        }
    }

    pub fn into_rows(self) -> Vec<SpeRow> {
        self.rows
    }
}

/// Adds to a profile the events that follow from its SPE statistics, with their samples.
pub(crate) fn add_events(profile: &mut Profile) {
    let Some(table) = &profile.spe else { return };
    for (name, unit, share) in DERIVED {
        let tallies: Vec<_> = table.rows.iter().map(|row| share(&row.stats)).collect();
        if tallies.iter().all(Option::is_none) {
            continue;
        }
        let id = EventId(profile.events.len() as u32);
        let sampling = table.recording.interval.map(Sampling::Period);
        let name = format!("{}:{name}", table.origin.name());
        profile.events.push(Event { precise: true, sampling, ..Event::new(name, unit) });
        let shares = table.rows.iter().zip(tallies).filter_map(|(row, tally)| Some((row, tally?)));
        profile.rows.extend(shares.filter(|(_, tally)| tally.samples > 0).map(|(row, tally)| SampleRow {
            stack: row.stack,
            event: id,
            thread: row.thread,
            tally,
        }));
    }
}
