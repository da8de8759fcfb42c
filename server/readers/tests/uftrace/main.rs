//! uftrace data directories made by hand: what is measured, what damage leaves.
#![allow(clippy::disallowed_methods, reason = "nothing is opened but what tests of the whole product open too")]

mod damage;
mod invariants;
mod kernel;
mod measured;
mod writer;

use heatline_profile::{CallStats, Profile, Silent};
use heatline_readers::{Input, ReadError, ReadOptions};
use std::collections::{BTreeMap, BTreeSet};
use writer::{BASE, Members};

fn read_with(members: &Members, options: &ReadOptions) -> Result<Profile, ReadError> {
    heatline_readers::read(Input::Folder(members), options, &Silent)
}

fn read(members: &Members) -> Profile {
    read_with(members, &ReadOptions::default()).unwrap()
}

/// The four times of each function, by its address in the program: elapsed inclusive and exclusive, application
/// inclusive and exclusive; a function counts once per interval.
fn times(profile: &Profile) -> BTreeMap<u64, [u64; 4]> {
    let mut times: BTreeMap<u64, [u64; 4]> = BTreeMap::new();
    for (event, first) in [("elapsed", 0), ("application", 2)] {
        let Some(event) = profile.find_event(event) else { continue };
        for row in profile.rows.iter().filter(|row| row.event == event) {
            let frames: Vec<u64> = profile.stacks.frames(row.stack).map(|node| node.address.recorded().0).collect();
            for function in frames.iter().collect::<BTreeSet<_>>() {
                times.entry(*function).or_default()[first] += row.tally.weight.0;
            }
            times.entry(frames[0]).or_default()[first + 1] += row.tally.weight.0;
        }
    }
    times
}

/// The calls of each function by all threads.
fn calls(profile: &Profile) -> BTreeMap<u64, CallStats> {
    let mut calls: BTreeMap<u64, CallStats> = BTreeMap::new();
    for row in &profile.calls.as_ref().unwrap().rows {
        *calls.entry(profile.stacks.node(row.stack).address.recorded().0).or_default() += row.stats;
    }
    calls
}

fn counts(profile: &Profile) -> BTreeMap<u64, u64> {
    calls(profile).into_iter().map(|(function, stats)| (function, stats.calls)).collect()
}

fn problems(profile: &Profile) -> Vec<(&'static str, u64)> {
    profile.problems.iter().map(|problem| (problem.kind, problem.count)).collect()
}

/// The address that records of a function hold.
fn recorded(function: u64) -> u64 {
    BASE + function
}
