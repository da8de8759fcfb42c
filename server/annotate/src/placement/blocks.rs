//! Blocks that were moved, like a function that stands elsewhere in the file now.

use super::comparison::{Matches, is_telling};
use super::lines::Lines;
use rustc_hash::FxHashMap;

/// A run with fewer letters and digits is no block: short phrases are written twice by chance.
const LEAST_LETTERS: usize = 16;

/// Lines that are unique only among what is left are found when the others have been.
const MOST_ROUNDS: usize = 3;

/// Where a text stands on each side, as long as it stands there once.
#[derive(Default)]
struct Seed {
    base: Option<u32>,
    now: Option<u32>,
    repeated: bool,
}

/// Finds runs of lines that were removed in one place and put in in another, indentation aside. A run begins where a
/// telling line stands once on each side and goes on as far as the lines are the same.
pub(super) fn match_moved(base: &Lines<'_>, now: &Lines<'_>, matches: &mut Matches) {
    let _ = (0..MOST_ROUNDS).take_while(|_| match_round(base, now, matches)).count();
}

/// Tells whether anything was found.
fn match_round(base: &Lines<'_>, now: &Lines<'_>, matches: &mut Matches) -> bool {
    let mut seeds: FxHashMap<&str, Seed> = FxHashMap::default();
    for line in (0..base.len() as u32).filter(|line| matches.get(*line).is_none()) {
        let text = base.get(line).trim();
        if is_telling(text) {
            let seed = seeds.entry(text).or_default();
            seed.repeated |= seed.base.replace(line).is_some();
        }
    }
    if seeds.is_empty() {
        return false;
    }
    for line in (0..now.len() as u32).filter(|line| matches.is_free(*line)) {
        if let Some(seed) = seeds.get_mut(now.get(line).trim()) {
            seed.repeated |= seed.now.replace(line).is_some();
        }
    }
    let mut found: Vec<(u32, u32)> =
        seeds.values().filter(|seed| !seed.repeated).filter_map(|seed| seed.base.zip(seed.now)).collect();
    found.sort_unstable();
    let mut any = false;
    for (from, to) in found {
        if matches.get(from).is_none() && matches.is_free(to) {
            any |= match_run(base, now, from, to, matches);
        }
    }
    any
}

fn match_run(base: &Lines<'_>, now: &Lines<'_>, from: u32, to: u32, matches: &mut Matches) -> bool {
    let is_same = |from: u32, to: u32, matches: &Matches| {
        (from as usize) < base.len()
            && matches.get(from).is_none()
            && matches.is_free(to)
            && base.get(from).trim() == now.get(to).trim()
    };
    let above = (1..=from.min(to)).take_while(|i| is_same(from - i, to - i, matches)).count() as u32;
    let below = (1..).take_while(|i| is_same(from + i, to + i, matches)).count() as u32;
    let run = (from - above..=from + below).zip(to - above..);
    let letters = |line: u32| base.get(line).chars().filter(|c| c.is_alphanumeric()).count();
    let is_block = run.clone().map(|(line, _)| letters(line)).sum::<usize>() >= LEAST_LETTERS;
    if is_block {
        run.for_each(|(from, to)| matches.set(from, to));
    }
    is_block
}
