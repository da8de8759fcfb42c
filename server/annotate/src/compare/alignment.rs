//! Which line of one text is which line of another, moved blocks included.
//!
//! A line difference keeps the longest common run in order. What it takes for removed in one place and put in at
//! another is then paired by lines that occur once on either side, and from those outwards as long as lines agree: a
//! function that changed places with another keeps its lines.

use crate::placement::{LineMap, Placement};
use std::collections::HashMap;
use std::num::NonZeroU32;

/// The lines of a text in another one.
#[derive(Debug)]
pub(crate) struct Alignment {
    /// By line of the old text, counted from 0.
    now: Vec<Option<u32>>,
    /// Whether a line of the new text is one of the old, counted from 0.
    taken: Vec<bool>,
}

impl Alignment {
    pub(crate) fn new(old: &str, new: &str) -> Self {
        let old_lines: Vec<&str> = old.lines().map(str::trim).collect();
        let new_lines: Vec<&str> = new.lines().map(str::trim).collect();
        let mut alignment = Alignment { now: vec![None; old_lines.len()], taken: vec![false; new_lines.len()] };
        let numbers = (1..=old_lines.len() as u32).filter_map(NonZeroU32::new);
        let map = LineMap::between(old, new, numbers.clone());
        for line in numbers {
            if let Some((now, Placement::Exact | Placement::Moved)) = map.find(line) {
                alignment.pair(line.get() as usize - 1, now as usize);
            }
        }
        alignment.pair_moved(&old_lines, &new_lines);
        alignment
    }

    fn pair(&mut self, old: usize, new: usize) {
        if let (Some(now), Some(taken)) = (self.now.get_mut(old), self.taken.get_mut(new)) {
            *now = Some(new as u32);
            *taken = true;
        }
    }

    fn pair_moved(&mut self, old: &[&str], new: &[&str]) {
        let mut places: HashMap<&str, (Vec<usize>, Vec<usize>)> = HashMap::new();
        for (at, text) in old.iter().enumerate().filter(|(at, text)| self.now[*at].is_none() && !text.is_empty()) {
            places.entry(text).or_default().0.push(at);
        }
        for (at, text) in new.iter().enumerate().filter(|(at, text)| !self.taken[*at] && !text.is_empty()) {
            places.entry(text).or_default().1.push(at);
        }
        let mut anchors: Vec<(usize, usize)> = places
            .into_values()
            .filter_map(|(old, new)| {
                Some((*old.first().filter(|_| old.len() == 1)?, *new.first().filter(|_| new.len() == 1)?))
            })
            .collect();
        anchors.sort_unstable();
        for (from, to) in anchors {
            if self.now[from].is_none() && !self.taken[to] {
                self.pair(from, to);
                self.extend(old, new, (from, to), |at, by| at.checked_add(by));
                self.extend(old, new, (from, to), usize::checked_sub);
            }
        }
    }

    /// Pairs the lines next to a pair as long as they agree, in one direction.
    fn extend(
        &mut self,
        old: &[&str],
        new: &[&str],
        (from, to): (usize, usize),
        step: impl Fn(usize, usize) -> Option<usize>,
    ) {
        for by in 1.. {
            let (Some(from), Some(to)) = (step(from, by), step(to, by)) else { return };
            let agree = from < old.len() && to < new.len() && old[from] == new[to];
            if !agree || self.now[from].is_some() || self.taken[to] {
                return;
            }
            self.pair(from, to);
        }
    }

    /// The line in the new text.
    pub(crate) fn find(&self, line: NonZeroU32) -> Option<NonZeroU32> {
        let now = (*self.now.get(line.get() as usize - 1)?)?;
        NonZeroU32::new(now.checked_add(1)?)
    }

    /// Whether a line of the new text is none of the old.
    pub(crate) fn is_fresh(&self, line: NonZeroU32) -> bool {
        self.taken.get(line.get() as usize - 1).is_some_and(|taken| !taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &[u32]) {
        let alignment = Alignment::new(old, new);
        let lines = (1..=old.lines().count() as u32).filter_map(NonZeroU32::new);
        let found: Vec<u32> = lines.map(|line| alignment.find(line).map_or(0, NonZeroU32::get)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn functions_that_swap_places_keep_their_lines() {
        let f = "void f() {\n  for (;;)\n    one();\n}\n";
        let g = "void g() {\n  for (;;)\n    two();\n}\n";
        check(&format!("{f}{g}"), &format!("{g}{f}"), &[5, 6, 7, 8, 1, 2, 3, 4]);
    }

    #[test]
    fn new_removed_and_indented_lines() {
        check("a\nb\nc\n", "a\nx\nc\n", &[1, 0, 3]);
        check("if (x)\n  work();\n", "work();\n", &[0, 1]);
        check("", "a\n", &[]);
        assert!(Alignment::new("a\nb\n", "a\nx\nb\n").is_fresh(NonZeroU32::new(2).unwrap()));
        assert!(!Alignment::new("a\n", "a\n").is_fresh(NonZeroU32::new(7).unwrap()));
    }
}
