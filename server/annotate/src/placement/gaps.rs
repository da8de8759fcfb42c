//! Lines that were changed: between the same neighbours, and alike.

use super::comparison::{Matches, common};
use super::lines::Lines;
use std::collections::HashMap;
use std::ops::Range;

/// A line of which a smaller share is found again is not the same line.
const RESEMBLES: f64 = 0.5;

/// The same for a line that alone stands where one line stood, by pairs of letters.
const RESEMBLES_ALONE: f64 = 0.4;

/// Longer gaps are not looked into: what is left of so much is no line's place.
const MOST_WORDS: usize = 20_000;

/// Gives lines that were not found a place among the lines that stand between their neighbours now. Only gaps that
/// hold one of `wanted`, ascending, are looked into.
pub(super) fn match_changed(base: &Lines<'_>, now: &Lines<'_>, wanted: &[u32], matches: &mut Matches) {
    let mut behind = 0;
    for &line in wanted {
        if line < behind || line as usize >= base.len() || matches.get(line).is_some() {
            continue;
        }
        let is_open = |line: &u32| matches.get(*line).is_none();
        let start = (0..line).rev().take_while(is_open).last().unwrap_or(line);
        let end = (line..base.len() as u32).find(|line| !is_open(line)).unwrap_or(base.len() as u32);
        behind = end;
        for places in candidates(start..end, now.len() as u32, matches) {
            fill(base, now, start..end, &places, matches);
        }
    }
}

/// The free lines of now between the neighbours of a gap; where those went different ways, what follows the one and
/// what precedes the other.
fn candidates(gap: Range<u32>, lines: u32, matches: &Matches) -> Vec<Vec<u32>> {
    let before = gap.start.checked_sub(1).and_then(|line| matches.get(line));
    let after = matches.get(gap.end);
    let first = before.map_or(0, |line| line + 1);
    let last = after.unwrap_or(lines);
    let is_free = |line: &u32| matches.is_free(*line);
    if first <= last {
        return vec![(first..last).filter(is_free).collect()];
    }
    let most = 2 * gap.len() + 8;
    let following = (first..lines).take_while(is_free).take(most).collect();
    let mut preceding: Vec<u32> = (0..last).rev().take_while(is_free).take(most).collect();
    preceding.reverse();
    vec![following, preceding]
}

fn fill(base: &Lines<'_>, now: &Lines<'_>, gap: Range<u32>, places: &[u32], matches: &mut Matches) {
    let open: Vec<u32> = gap.filter(|line| matches.get(*line).is_none()).collect();
    if open.is_empty() || places.is_empty() {
        return;
    }
    by_words(base, now, &open, places, matches);
    let telling = |line: &&u32| !base.get(**line).trim().is_empty();
    let left: Vec<u32> = open.iter().filter(telling).copied().filter(|line| matches.get(*line).is_none()).collect();
    let free: Vec<u32> =
        places.iter().copied().filter(|l| matches.is_free(*l) && !now.get(*l).trim().is_empty()).collect();
    // As many lines as there were, all of them changed: each where it stood.
    if left.len() == free.len() {
        for (from, to) in left.into_iter().zip(free) {
            if alike(base.get(from), now.get(to)) >= RESEMBLES_ALONE {
                matches.set_changed(from, to);
            }
        }
    }
}

/// A word or a sign of a line.
struct Word<'a> {
    line: u32,
    text: &'a str,
}

impl Word<'_> {
    /// What finding it again is worth: names tell more than signs.
    fn weight(&self) -> usize {
        if self.text.starts_with(is_of_name) { self.text.len() + 1 } else { 1 }
    }
}

/// Compares the lines word by word, so that lines that were split, joined or grew are found.
fn by_words(base: &Lines<'_>, now: &Lines<'_>, open: &[u32], places: &[u32], matches: &mut Matches) {
    let (old, new) = (words(base, open), words(now, places));
    if old.len() > MOST_WORDS || new.len() > MOST_WORDS {
        return;
    }
    let mut found: HashMap<u32, HashMap<u32, usize>> = HashMap::new();
    for (from, to) in common(old.iter().map(|word| word.text), new.iter().map(|word| word.text)) {
        *found.entry(old[from].line).or_default().entry(new[to].line).or_default() += old[from].weight();
    }
    let mut whole: HashMap<u32, usize> = HashMap::new();
    old.iter().for_each(|word| *whole.entry(word.line).or_default() += word.weight());
    for &line in open {
        let Some(places) = found.get(&line) else { continue };
        let share = places.values().sum::<usize>() as f64 / whole.get(&line).copied().unwrap_or(1).max(1) as f64;
        let best = places.iter().max_by_key(|(now, weight)| (**weight, std::cmp::Reverse(**now)));
        if let Some((&now, _)) = best.filter(|_| share >= RESEMBLES) {
            matches.set_changed(line, now);
        }
    }
}

fn words<'a>(lines: &Lines<'a>, of: &[u32]) -> Vec<Word<'a>> {
    let mut words = Vec::new();
    for &line in of {
        words.extend(split(lines.get(line)).map(|text| Word { line, text }));
    }
    words
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Names and numbers as wholes, everything else sign by sign, white space left out.
fn split(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim_start();
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end =
            if is_of_name(first) { rest.find(|c| !is_of_name(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (word, after) = rest.split_at(end);
        rest = after.trim_start();
        Some(word)
    })
}

/// How alike two lines are, 0 to 1: the share of pairs of letters that they have in common.
fn alike(a: &str, b: &str) -> f64 {
    let pairs = |text: &str| {
        let letters: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect();
        let mut pairs: HashMap<[char; 2], i64> = HashMap::new();
        letters.windows(2).for_each(|pair| *pairs.entry([pair[0], pair[1]]).or_default() += 1);
        (pairs, letters.len().saturating_sub(1))
    };
    let ((a, of_a), (b, of_b)) = (pairs(a), pairs(b));
    let both: i64 = a.iter().filter_map(|(pair, count)| Some(*count.min(b.get(pair)?))).sum();
    if of_a + of_b == 0 { 0.0 } else { 2.0 * both as f64 / (of_a + of_b) as f64 }
}
