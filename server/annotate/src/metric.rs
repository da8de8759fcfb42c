//! Metrics: an event, or a statistic over the records of one.

use heatline_profile::{Distribution, EventId, Profile, Ratio, SpeOrigin, SpeStats};

/// A statistic over the SPE records of a place, in place of their sum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Statistic {
    /// The share of the records that could have, in percent.
    Rate,
    /// The mean of a latency, in cycles.
    Mean,
    /// The median of a latency by nearest rank, in cycles.
    P50,
    /// The 95th percentile of a latency by nearest rank, in cycles.
    P95,
}

impl Statistic {
    const ALL: [Statistic; 4] = [Statistic::Rate, Statistic::Mean, Statistic::P50, Statistic::P95];

    fn suffix(self) -> &'static str {
        match self {
            Statistic::Rate => "-rate",
            Statistic::Mean => "-mean",
            Statistic::P50 => "-p50",
            Statistic::P95 => "-p95",
        }
    }
}

/// What a table shows of its event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Metric {
    /// The event.
    pub event: EventId,
    /// A statistic over its records; the sum of their weights otherwise.
    pub statistic: Option<Statistic>,
}

impl Metric {
    /// The sum of an event's weights.
    pub fn sum(event: EventId) -> Self {
        Metric { event, statistic: None }
    }

    /// The metric that a person means: an event by id or name, or an SPE event with `-rate`, `-mean`, `-p50` or `-p95`.
    pub fn find(profile: &Profile, name: &str) -> Option<Self> {
        if let Some(event) = profile.find_event(name) {
            return Some(Metric::sum(event));
        }
        Statistic::ALL.into_iter().find_map(|statistic| {
            let event = profile.find_event(name.strip_suffix(statistic.suffix())?)?;
            let metric = Metric { event, statistic: Some(statistic) };
            metric.fits(profile).then_some(metric)
        })
    }

    /// All metrics of a profile: each event, followed by its statistics.
    pub fn all(profile: &Profile) -> Vec<Self> {
        let events = (0..profile.events.len() as u32).map(EventId);
        let with_statistics = |event| {
            let statistics = Statistic::ALL.into_iter().map(move |s| Metric { event, statistic: Some(s) });
            std::iter::once(Metric::sum(event)).chain(statistics.filter(|metric| metric.fits(profile)))
        };
        events.flat_map(with_statistics).collect()
    }

    /// Its id: that of the event, with the statistic appended.
    pub fn id(&self, profile: &Profile) -> String {
        let suffix = self.statistic.map_or("", Statistic::suffix);
        format!("{}{suffix}", profile.metric_id(self.event))
    }

    /// The unit of its weight.
    pub fn unit(&self, profile: &Profile) -> &'static str {
        profile.event(self.event).unit.name()
    }

    fn fits(&self, profile: &Profile) -> bool {
        let part = Part::of(&profile.event(self.event).name);
        match self.statistic {
            None => true,
            Some(Statistic::Rate) => matches!(part, Some(Part::Ratio(..))),
            Some(_) => matches!(part, Some(Part::Latency(..))),
        }
    }
}

/// The part of the SPE statistics that an event is made of, with its short name for hints.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Ratio(&'static str, fn(&SpeStats) -> Ratio),
    Latency(&'static str, fn(&SpeStats) -> &Distribution),
}

impl Part {
    pub(crate) fn of(event: &str) -> Option<Part> {
        let (origin, name) = event.split_once(':')?;
        if !SpeOrigin::ALL.iter().any(|known| known.name() == origin) {
            return None;
        }
        Some(match name {
            "total-latency" => Part::Latency("", |stats| &stats.total_latency),
            "issue-latency" => Part::Latency("issue ", |stats| &stats.issue_latency),
            "translation-latency" => Part::Latency("translation ", |stats| &stats.translation_latency),
            "execution-latency" => Part::Latency("execution ", |stats| &stats.execution_latency),
            "l1d-miss" => Part::Ratio("L1 miss", |stats| stats.l1d_miss),
            "l2d-miss" => Part::Ratio("L2 miss", |stats| stats.l2d_miss),
            "llc-miss" => Part::Ratio("LLC miss", |stats| stats.llc_miss),
            "tlb-miss" => Part::Ratio("TLB miss", |stats| stats.tlb_miss),
            "mispredicted" => Part::Ratio("mispredicted", |stats| stats.mispredicted),
            "not-taken" => Part::Ratio("not taken", |stats| stats.not_taken),
            "misaligned" => Part::Ratio("misaligned", |stats| stats.misaligned),
            "remote" => Part::Ratio("remote", |stats| stats.remote),
            _ => return None,
        })
    }
}
