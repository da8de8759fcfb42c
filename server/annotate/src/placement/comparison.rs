//! Two texts, compared: which line of the one is which of the other.

use super::lines::{Lines, Numbers};
use super::{LineMap, Place, anchors, blocks, doubt, gaps};
use imara_diff::{Algorithm, Diff, InternedInput, Interner, Token};
use std::num::NonZeroU32;
use std::ops::Range;

/// A text that has kept a smaller share of its telling lines is another text: lines are not placed in it.
pub const LEAST_CONFIDENCE: f64 = 0.3;

/// So many letters and digits make a line tell something; a brace alone is in every text.
const TELLING: usize = 4;

/// Where chosen lines of a base text are in another text.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// Where the lines are.
    pub map: LineMap,
    /// The share of the telling lines of the base that are in the other text, 0 to 1.
    pub confidence: f64,
}

impl Comparison {
    /// Compares two texts. `lines` are the lines that are asked for, in any order.
    pub fn new(base: &str, now: &str, lines: impl IntoIterator<Item = NonZeroU32>) -> Self {
        let mut map = LineMap::identity(lines);
        if base == now || map.places.is_empty() {
            return Comparison { map, confidence: 1.0 };
        }
        let (base, now) = (Lines::of(base), Lines::of(now));
        let mut matches = Matches::new(base.len(), now.len());
        let anchors = match_lines(&base, &now, &mut matches);
        doubt::mark(&base, now.len(), &anchors, &mut matches);
        blocks::match_moved(&base, &now, &mut matches);
        let confidence = matches.confidence(&base);
        let wanted: Vec<u32> = map.places.iter().map(|place| place.base.get() - 1).collect();
        gaps::match_changed(&base, &now, &wanted, &mut matches);
        for place in &mut map.places {
            matches.answer(place);
        }
        Comparison { map, confidence }
    }

    /// Whether the texts have enough in common to place lines at all.
    pub fn is_sure(&self) -> bool {
        self.confidence >= LEAST_CONFIDENCE
    }
}

/// Whether a line says something that is not in every text.
pub(super) fn is_telling(line: &str) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    line.bytes().filter(is_letter).take(TELLING).count() == TELLING
}

/// Which lines have found each other, counted from 0.
pub(super) struct Matches {
    of_base: Vec<Option<u32>>,
    changed: Vec<bool>,
    doubtful: Vec<bool>,
    taken: Vec<bool>,
}

impl Matches {
    fn new(base: usize, now: usize) -> Self {
        Matches {
            of_base: vec![None; base],
            changed: vec![false; base],
            doubtful: vec![false; base],
            taken: vec![false; now],
        }
    }

    /// Where a base line is.
    pub fn get(&self, base: u32) -> Option<u32> {
        self.of_base.get(base as usize).copied().flatten()
    }

    /// Whether a line of now is free.
    pub fn is_free(&self, now: u32) -> bool {
        self.taken.get(now as usize) == Some(&false)
    }

    /// Notes that a line is another, unchanged.
    pub fn set(&mut self, base: u32, now: u32) {
        if let (Some(there), Some(taken)) = (self.of_base.get_mut(base as usize), self.taken.get_mut(now as usize)) {
            *there = Some(now);
            *taken = true;
        }
    }

    /// The same for a run of lines.
    fn set_run(&mut self, base: u32, now: u32, count: u32) {
        (0..count).for_each(|i| self.set(base + i, now + i));
    }

    /// Notes that an equal line near by could be meant as well.
    pub fn set_doubtful(&mut self, base: u32) {
        if let Some(doubtful) = self.doubtful.get_mut(base as usize) {
            *doubtful = true;
        }
    }

    /// Notes that a line became another. Several may become one.
    pub fn set_changed(&mut self, base: u32, now: u32) {
        self.set(base, now);
        if let Some(changed) = self.changed.get_mut(base as usize) {
            *changed = true;
        }
    }

    fn confidence(&self, base: &Lines<'_>) -> f64 {
        let telling = base.all().iter().zip(&self.of_base).filter(|(line, _)| is_telling(line));
        let (kept, of) =
            telling.fold((0u32, 0u32), |(kept, of), (_, found)| (kept + u32::from(found.is_some()), of + 1));
        if of == 0 { 1.0 } else { f64::from(kept) / f64::from(of) }
    }

    fn answer(&self, place: &mut Place) {
        let base = place.base.get() - 1;
        match self.get(base) {
            Some(now) => {
                place.now = now;
                place.changed = self.changed.get(base as usize) == Some(&true);
                place.doubtful = self.doubtful.get(base as usize) == Some(&true);
            }
            None => {
                // Where it was: behind the line that was before it.
                let before = self.of_base[..(base as usize).min(self.of_base.len())].iter().rev().find_map(|now| *now);
                place.now = before.map_or(0, |now| now + 1);
                place.gone = true;
            }
        }
    }
}

/// A stretch of the base and what stands in its place now.
type Hunk = (Range<u32>, Range<u32>);

/// Line by line, then without regard to white space at the edges in what differs. Returns which lines of the base each
/// text has once, in their place.
fn match_lines(base: &Lines<'_>, now: &Lines<'_>, matches: &mut Matches) -> Vec<bool> {
    let mut once = vec![false; base.len()];
    let hunks = without_islands(base, difference(base.all(), now.all(), |line| once[line as usize] = true));
    between(&hunks, base.len() as u32, |from, to, count| matches.set_run(from, to, count));
    for (before, after) in hunks.iter().filter(|(before, after)| !before.is_empty() && !after.is_empty()) {
        let inner = difference(&base.trimmed(before), &now.trimmed(after), |_| ());
        let lines = before.len() as u32;
        between(&inner, lines, |from, to, count| matches.set_run(before.start + from, after.start + to, count));
    }
    once
}

/// Runs of lines between two differences that tell nothing, like a brace, hold nothing apart: they are part of what
/// differs.
fn without_islands(base: &Lines<'_>, hunks: Vec<Hunk>) -> Vec<Hunk> {
    let mut joined: Vec<Hunk> = Vec::with_capacity(hunks.len());
    for (before, after) in hunks {
        match joined.last_mut() {
            Some((last, there)) if !(last.end..before.start).any(|line| is_telling(base.get(line))) => {
                (last.end, there.end) = (before.end, after.end);
            }
            _ => joined.push((before, after)),
        }
    }
    joined
}

/// Tells the runs of equal lines between stretches that differ: where they begin on each side, and their length.
fn between(hunks: &[Hunk], lines: u32, mut tell: impl FnMut(u32, u32, u32)) {
    let (mut from, mut to) = (0, 0);
    for (before, after) in hunks {
        tell(from, to, before.start - from);
        (from, to) = (before.end, after.end);
    }
    tell(from, to, lines - from);
}

/// The stretches in which lines differ. Lines that each side has once hold the others in their places, so that what is
/// compared at length is short.
fn difference(before: &[&str], after: &[&str], mut anchor: impl FnMut(u32)) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut add = |before: Range<u32>, after: Range<u32>| match hunks.last_mut() {
        Some((last, there)) if last.end == before.start && there.end == after.start => {
            (last.end, there.end) = (before.end, after.end);
        }
        _ => hunks.push((before, after)),
    };
    let (mut from, mut to) = (0, 0);
    let end = (before.len() as u32, after.len() as u32);
    for (old, new) in anchors::find(before, after).into_iter().inspect(|pair| anchor(pair.0)).chain([end]) {
        if (from, to) != (old, new) {
            let (old_lines, new_lines) = (&before[from as usize..old as usize], &after[to as usize..new as usize]);
            for (a, b) in in_short(old_lines, new_lines) {
                add(from + a.start..from + a.end, to + b.start..to + b.end);
            }
        }
        (from, to) = (old + 1, new + 1);
    }
    hunks
}

fn in_short(before: &[&str], after: &[&str]) -> Vec<Hunk> {
    if before.is_empty() || after.is_empty() {
        return vec![(0..before.len() as u32, 0..after.len() as u32)];
    }
    let mut input = InternedInput { before: Vec::new(), after: Vec::new(), interner: Interner::new(before.len()) };
    input.update_before(before.iter().copied());
    input.update_after(after.iter().copied());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    diff.hunks().map(|hunk| (hunk.before, hunk.after)).collect()
}

/// The pairs of equal things of two short sequences, in order.
pub(super) fn common<'a>(
    before: impl Iterator<Item = &'a str>,
    after: impl Iterator<Item = &'a str>,
) -> Vec<(usize, usize)> {
    let mut numbers = Numbers::new();
    let before: Vec<Token> = before.map(|text| Token(numbers.of(text))).collect();
    let after: Vec<Token> = after.map(|text| Token(numbers.of(text))).collect();
    let mut diff = Diff::default();
    diff.compute_with(Algorithm::Myers, &before, &after, numbers.count());
    let hunks: Vec<Hunk> = diff.hunks().map(|hunk| (hunk.before, hunk.after)).collect();
    let mut pairs = Vec::new();
    between(&hunks, before.len() as u32, |from, to, count| {
        pairs.extend((0..count).map(|i| ((from + i) as usize, (to + i) as usize)));
    });
    pairs
}
