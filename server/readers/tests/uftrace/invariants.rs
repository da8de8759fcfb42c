//! What holds for every recording: the four times against a list of intervals, and their order of size.

use super::writer::{Records, recording, switches};
use super::{problems, read, times};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What a thread does next.
#[derive(Clone, Copy, Debug)]
enum Act {
    Enter(u8),
    Leave,
    Run(u8),
    Wait(u8),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => (0u8..4).prop_map(Act::Enter),
        3 => Just(Act::Leave),
        2 => (0u8..50).prop_map(Act::Run),
        1 => (1u8..50).prop_map(Act::Wait),
    ];
    proptest::collection::vec(act, 0..60)
}

/// An interval: how long, the functions on the stack from the outermost on, whether the thread waited.
type Interval = (u64, Vec<u64>, bool);

fn function(number: u8) -> u64 {
    0x100 * (1 + u64::from(number))
}

/// The records of a thread that does this, its switches, and the intervals that it consists of.
fn play(acts: &[Act], tid: i32, start: u64) -> (Records, Vec<(u64, i32, bool)>, Vec<Interval>) {
    let (mut now, mut stack) = (start, vec![function(9)]);
    let mut records = Records::new().enter(now, stack[0]);
    let (mut moments, mut intervals) = (Vec::new(), Vec::new());
    for act in acts {
        // No two things happen to a thread in the same nanosecond.
        intervals.push((1, stack.clone(), false));
        now += 1;
        match *act {
            Act::Enter(number) => {
                stack.push(function(number));
                records = records.enter(now, function(number));
            }
            Act::Leave if stack.len() > 1 => records = records.leave(now, stack.pop().unwrap()),
            Act::Leave => {}
            Act::Run(ns) => {
                intervals.push((u64::from(ns), stack.clone(), false));
                now += u64::from(ns);
            }
            Act::Wait(ns) => {
                intervals.push((u64::from(ns), stack.clone(), true));
                moments.extend([(now, tid, true), (now + u64::from(ns), tid, false)]);
                now += u64::from(ns);
            }
        }
    }
    intervals.push((1, stack.clone(), false));
    now += 1;
    while let Some(function) = stack.pop() {
        records = records.leave(now, function);
    }
    (records, moments, intervals)
}

/// The four times as the definitions have them: each interval once for each function on its stack.
fn by_definition(intervals: &[Interval]) -> BTreeMap<u64, [u64; 4]> {
    let mut times: BTreeMap<u64, [u64; 4]> = BTreeMap::new();
    for (ns, stack, waited) in intervals {
        let ran = if *waited { 0 } else { *ns };
        for function in stack.iter().collect::<BTreeSet<_>>() {
            let times = times.entry(*function).or_default();
            times[0] += ns;
            times[2] += ran;
        }
        let times = times.entry(*stack.last().unwrap()).or_default();
        times[1] += ns;
        times[3] += ran;
    }
    times
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn the_four_times_are_sums_over_intervals(first in acts(), second in acts()) {
        let (one, mut waits, mut intervals) = play(&first, 10, 1000);
        let (two, more_waits, more_intervals) = play(&second, 11, 1003);
        intervals.extend(more_intervals);
        waits.extend(more_waits);
        waits.sort_by_key(|(time, ..)| *time);
        let mut members = recording(&[(10, one), (11, two)]);
        members.0.insert("perf-cpu0.dat".into(), switches(&waits));
        let profile = read(&members);
        let (mut measured, mut expected) = (times(&profile), by_definition(&intervals));
        measured.retain(|_, times| times[0] > 0);
        expected.retain(|_, times| times[0] > 0);
        prop_assert_eq!(&measured, &expected);
        prop_assert_eq!(problems(&profile), vec![]);

        let total = |name: &str| profile.totals()[profile.find_event(name).unwrap().0 as usize].weight.0;
        let sum = |at: usize| measured.values().map(|times| times[at]).sum::<u64>();
        prop_assert_eq!((sum(1), sum(3)), (total("elapsed"), total("application")));
        for [ei, ee, ai, ae] in measured.into_values() {
            prop_assert!(ee <= ei && ae <= ai && ai <= ei && ae <= ee && ei <= total("elapsed"));
        }
    }
}
