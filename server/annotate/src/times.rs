//! The four times of a place: elapsed and application, inclusive and exclusive; and its calls.
//!
//! The definitions are those of Visual Studio's instrumentation: an interval of a thread is elapsed time of each function
//! on its stack, once, and of the current one exclusively; it is application time too unless the thread waited. Elapsed
//! shares are of all elapsed time, application shares of all application time.

use crate::metric::Metric;
use crate::model::ModelFrame;
use crate::table::{Cost, CostTable, Selection};
use crate::text::{amount, counted, duration};
use crate::tree::{NONE, Pair};
use heatline_profile::{CallStats, CallTable, CodeAddress, ModuleId, StackId, Tally, Unit, Weight};
use std::sync::{Arc, OnceLock};

/// One of the two kinds of time of a place.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Timed {
    /// With everything it called.
    pub inclusive: Cost,
    /// Of the place itself.
    pub exclusive: Cost,
}

/// The times and calls of a place.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Times {
    /// Time, waits included.
    pub elapsed: Timed,
    /// Time in which the thread ran; absent where the recording does not tell.
    pub application: Option<Timed>,
    /// The calls of a function, or those made on a line; absent where calls were not recorded.
    pub calls: Option<CallStats>,
}

/// The tables that the four times of a profile are read from.
#[derive(Debug)]
pub(crate) struct TimeTables {
    elapsed: CostTable,
    application: Option<CostTable>,
}

/// Which calls count for a place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calling {
    /// Those of the functions that it is.
    Called,
    /// Those of the functions that begin there, and those made there.
    CalledOrCalling,
}

impl CostTable {
    /// The tables of the four times; none where the profile has no such times, or for such a table itself.
    fn time_tables(&self) -> Option<&TimeTables> {
        let make = || {
            let profile = &self.model.profile;
            let table = |name: &str| {
                let metric = Metric::sum(profile.find_event(name)?);
                let selection = Selection { metric, ..self.selection.clone() };
                Some(CostTable::without_times(Arc::clone(&self.model), selection))
            };
            Some(Box::new(TimeTables {
                elapsed: table(CallTable::ELAPSED)?,
                application: table(CallTable::APPLICATION),
            }))
        };
        self.times.get_or_init(make).as_deref()
    }

    /// Leaves the four times out of this table's rows.
    pub(crate) fn no_times() -> OnceLock<Option<Box<TimeTables>>> {
        OnceLock::from(None)
    }

    /// The times of all places of a kind, numbered by `key`; empty where the profile has none.
    pub(crate) fn times(
        &self,
        places: usize,
        key: impl Fn(&ModelFrame, ModuleId) -> u32 + Copy,
        calling: Calling,
    ) -> Vec<Times> {
        let Some(tables) = self.time_tables() else { return Vec::new() };
        let elapsed = tables.elapsed.accumulate(places, key);
        let application = tables.application.as_ref().map(|table| (table, table.accumulate(places, key)));
        let calls = self.call_stats(places, key, calling);
        let times = |at: usize, pair: &Pair| Times {
            elapsed: tables.elapsed.timed(pair),
            application: application.as_ref().and_then(|(table, pairs)| Some(table.timed(pairs.get(at)?))),
            calls: calls.as_ref().and_then(|calls| calls.get(at).copied()),
        };
        elapsed.iter().enumerate().map(|(at, pair)| times(at, pair)).collect()
    }

    /// The times of everything that the thread filters select.
    pub fn times_of_all(&self) -> Option<Times> {
        let tables = self.time_tables()?;
        let all = |table: &CostTable| {
            let cost = table.selected();
            Timed { inclusive: cost, exclusive: cost }
        };
        let calls = self.call_stats(1, |_, _| 0, Calling::Called).and_then(|calls| calls.first().copied());
        Some(Times { elapsed: all(&tables.elapsed), application: tables.application.as_ref().map(all), calls })
    }

    /// The times of threads, by the number of the one that they are counted with. All time of a thread is its own.
    pub(crate) fn times_of_threads(&self, parts: &[usize]) -> Vec<Times> {
        let Some(tables) = self.time_tables() else { return Vec::new() };
        let mut calls = self.model.profile.calls.as_ref().map(|_| vec![CallStats::default(); parts.len()]);
        for row in self.model.profile.calls.iter().flat_map(|table| &table.rows) {
            if let (Some(calls), Some(thread)) = (&mut calls, row.thread)
                && self.selects_thread(row.thread)
            {
                calls[parts[thread.0 as usize]] += row.stats;
            }
        }
        let timed = |table: &CostTable| -> Vec<Timed> {
            let mut tallies = vec![Tally::default(); parts.len()];
            for (&part, tally) in parts.iter().zip(&table.threads) {
                tallies[part] += *tally;
            }
            let costs = tallies.into_iter().map(|tally| table.cost(tally));
            costs.map(|cost| Timed { inclusive: cost, exclusive: cost }).collect()
        };
        let elapsed = timed(&tables.elapsed);
        let application = tables.application.as_ref().map(timed);
        let times = |(at, elapsed)| Times {
            elapsed,
            application: application.as_ref().map(|timed| timed[at]),
            calls: calls.as_ref().and_then(|calls| calls.get(at).copied()),
        };
        elapsed.into_iter().enumerate().map(times).collect()
    }

    fn timed(&self, pair: &Pair) -> Timed {
        Timed { inclusive: self.cost(pair.inclusive), exclusive: self.cost(pair.exclusive) }
    }

    /// The calls of each place; a call counts once, also where a function is called on the line it begins on.
    fn call_stats(
        &self,
        places: usize,
        key: impl Fn(&ModelFrame, ModuleId) -> u32,
        calling: Calling,
    ) -> Option<Vec<CallStats>> {
        let table = self.model.profile.calls.as_ref()?;
        let mut sums = vec![CallStats::default(); places];
        let place = |node: u32| {
            let location = self.model.node_location[node as usize].0 as usize;
            key(&self.frames(node)[0], self.model.module_of[location])
        };
        for row in table.rows.iter().filter(|row| self.selects_thread(row.thread)) {
            let called = place(row.stack.0);
            let caller = self.model.tree.parent(row.stack.0).filter(|_| calling == Calling::CalledOrCalling);
            let caller = caller.filter(|&node| self.is_call(node)).map(place).filter(|&caller| caller != called);
            for place in [Some(called), caller].into_iter().flatten().filter(|&place| place != NONE) {
                sums[place as usize] += row.stats;
            }
        }
        Some(sums)
    }
}

impl CostTable {
    /// Whether a stack ends in the instruction of a call; callers of which that is not known stand at their entries.
    fn is_call(&self, node: u32) -> bool {
        !matches!(self.model.profile.stacks.node(StackId(node)).address, CodeAddress::Ip(_))
    }
}

impl Times {
    /// `elapsed 420 ms incl · 12 ms excl · application 40 ms · 1 200 calls`; application time is inclusive.
    pub fn lens(&self) -> Option<String> {
        let calls = self.calls?;
        let Timed { inclusive, exclusive } = self.elapsed;
        let mut text = format!("elapsed {} incl · {} excl", duration(inclusive.weight), duration(exclusive.weight));
        if let Some(application) = self.application {
            text += &format!(" · application {}", duration(application.inclusive.weight));
        }
        Some(format!("{text} · {}", calls_text(calls.calls)))
    }

    /// The four times with their shares, and the calls, as a table in markdown.
    pub fn markdown(&self) -> String {
        let cell = |cost: &Cost| {
            let share = cost.percent.map_or_else(String::new, |percent| format!(" · {percent}"));
            format!("{}{share}", amount(cost.weight, Unit::Nanoseconds))
        };
        let mut text = String::from("| time | inclusive | exclusive |\n|---|---|---|");
        let rows = [("elapsed", Some(self.elapsed)), ("application", self.application)];
        for (name, timed) in rows.into_iter().filter_map(|(name, timed)| Some((name, timed?))) {
            text += &format!("\n| {name} | {} | {} |", cell(&timed.inclusive), cell(&timed.exclusive));
        }
        if let Some(calls) = self.calls.filter(|calls| calls.calls > 0) {
            text += &format!("\n\n{}", calls_sentence(&calls));
        }
        text
    }
}

/// `1 200 calls`.
pub(crate) fn calls_text(calls: u64) -> String {
    counted(calls, "call")
}

/// `1 200 calls, 350 ns on average, from 100 ns to 2 ms`.
fn calls_sentence(calls: &CallStats) -> String {
    let [average, shortest, longest] =
        [calls.average_ns().unwrap_or(0), calls.shortest_ns, calls.longest_ns].map(|ns| duration(Weight(ns)));
    format!("{}, {average} on average, from {shortest} to {longest}", calls_text(calls.calls))
}
