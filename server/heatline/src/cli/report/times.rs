//! The four times of instrumented functions, and their calls: in JSON and as columns.

use heatline_annotate::text::{amount, count, duration};
use heatline_annotate::{Cost, Timed, Times};
use heatline_profile::{CallStats, Unit, Weight};
use serde::Serialize;

/// One of the two kinds of time.
#[derive(Serialize)]
pub struct TimedJson {
    inclusive: TimeJson,
    exclusive: TimeJson,
}

#[derive(Serialize)]
struct TimeJson {
    ns: u64,
    percent: f64,
}

/// How long the calls took, in nanoseconds.
#[derive(Serialize)]
pub struct CallTimeJson {
    average_ns: u64,
    shortest_ns: u64,
    longest_ns: u64,
}

impl From<Timed> for TimedJson {
    fn from(timed: Timed) -> Self {
        let time = |cost: Cost| TimeJson { ns: cost.weight.0, percent: cost.share() };
        TimedJson { inclusive: time(timed.inclusive), exclusive: time(timed.exclusive) }
    }
}

impl CallTimeJson {
    /// `None` without calls.
    pub fn of(calls: &CallStats) -> Option<Self> {
        let average_ns = calls.average_ns()?;
        Some(CallTimeJson { average_ns, shortest_ns: calls.shortest_ns, longest_ns: calls.longest_ns })
    }
}

/// The headings of the columns for people.
pub const HEADINGS: [&str; 12] = [
    ">elapsed incl",
    ">%",
    ">elapsed excl",
    ">%",
    ">application incl",
    ">%",
    ">application excl",
    ">%",
    ">calls",
    ">average",
    ">shortest",
    ">longest",
];

/// The cells under [`HEADINGS`].
pub fn cells(times: Option<&Times>) -> [String; 12] {
    let mut cells: [String; 12] = Default::default();
    let Some(times) = times else { return cells };
    let costs = [Some(times.elapsed), times.application].map(|timed| timed.map(|t| [t.inclusive, t.exclusive]));
    for (at, cost) in costs.into_iter().flat_map(|pair| pair.map_or([None; 2], |pair| pair.map(Some))).enumerate() {
        let Some(cost) = cost else { continue };
        cells[2 * at] = amount(cost.weight, Unit::Nanoseconds);
        cells[2 * at + 1] = cost.percent.map_or_else(String::new, |percent| percent.to_string());
    }
    if let Some(calls) = times.calls {
        cells[8] = count(calls.calls);
        let times = [calls.average_ns(), Some(calls.shortest_ns), Some(calls.longest_ns)];
        for (cell, time) in cells[9..].iter_mut().zip(times).filter(|_| calls.calls > 0) {
            *cell = time.map_or_else(String::new, |ns| duration(Weight(ns)));
        }
    }
    cells
}

/// The names of the columns in CSV.
pub const COLUMNS: [&str; 12] = [
    "elapsed_inclusive_ns",
    "elapsed_inclusive_percent",
    "elapsed_exclusive_ns",
    "elapsed_exclusive_percent",
    "application_inclusive_ns",
    "application_inclusive_percent",
    "application_exclusive_ns",
    "application_exclusive_percent",
    "calls",
    "average_ns",
    "shortest_ns",
    "longest_ns",
];

/// The values under [`COLUMNS`], unrounded.
pub fn values(times: Option<&Times>) -> [String; 12] {
    let mut values: [String; 12] = Default::default();
    let Some(times) = times else { return values };
    let costs = [Some(times.elapsed), times.application].map(|timed| timed.map(|t| [t.inclusive, t.exclusive]));
    for (at, cost) in costs.into_iter().flat_map(|pair| pair.map_or([None; 2], |pair| pair.map(Some))).enumerate() {
        let Some(cost) = cost else { continue };
        values[2 * at] = cost.weight.0.to_string();
        values[2 * at + 1] = cost.share().to_string();
    }
    if let Some(calls) = times.calls {
        values[8] = calls.calls.to_string();
        if let Some(average) = calls.average_ns() {
            values[9..].clone_from_slice(&[average, calls.shortest_ns, calls.longest_ns].map(|ns| ns.to_string()));
        }
    }
    values
}
