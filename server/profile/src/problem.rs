//! Problems: what could not be read or believed, counted and kept beside the profile.

use crate::FileOffset;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Longer words are no kind of problem.
const LONGEST_KIND: usize = 64;

/// One kind of thing that went wrong, with how often.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// A stable word for programs: `truncated`, `lost-samples`, `unknown-record`, `build-id-mismatch`, …
    pub kind: &'static str,
    /// How often it happened, at least 1.
    pub count: u64,
    /// Where it happened first.
    pub offset: Option<FileOffset>,
    /// For people: what was expected, what was found and what to do. Lower case, no full stop.
    pub message: String,
}

/// The problems of one profile, each kind and message once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// More different messages than this are folded into the first of their kind, so that hostile input cannot fill
    /// memory with texts.
    pub const MOST: usize = 256;

    /// The word for a kind of problem that was read from a file. Each different one is kept as long as the program
    /// runs, so there is an end: behind [`Self::MOST`] of them it is `other`.
    pub fn kind(word: &str) -> &'static str {
        static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = words.get(word) {
            return known;
        }
        if words.len() >= Self::MOST || word.len() > LONGEST_KIND {
            return "other";
        }
        let word: &'static str = Box::leak(word.into());
        words.insert(word);
        word
    }

    /// No problems.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts `count` more occurrences. The first offset and message of a kind and message are kept.
    pub fn add(&mut self, kind: &'static str, count: u64, offset: Option<FileOffset>, message: impl Into<String>) {
        let message = message.into();
        let full = self.0.len() >= Self::MOST;
        match self.0.iter_mut().find(|p| p.kind == kind && (full || p.message == message)) {
            Some(problem) => problem.count = problem.count.saturating_add(count),
            None if full => {}
            None => self.0.push(Problem { kind, count, offset, message }),
        }
    }

    /// All of them, in the order of their first occurrence.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds those of another list.
    pub fn append(&mut self, other: &Problems) {
        for problem in other.iter() {
            self.add(problem.kind, problem.count, problem.offset, problem.message.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_problem_is_counted_and_keeps_its_first_place() {
        let mut problems = Problems::new();
        problems.add("unknown-record", 1, Some(FileOffset(8)), "record type 99");
        problems.add("unknown-record", 2, Some(FileOffset(80)), "record type 99");
        let all: Vec<_> = problems.iter().collect();
        assert_eq!((all.len(), all[0].count, all[0].offset), (1, 3, Some(FileOffset(8))));
    }

    #[test]
    fn kinds_from_files_are_one_word_each_and_not_without_end() {
        let copy = String::from("truncated");
        assert!(std::ptr::eq(Problems::kind("truncated"), Problems::kind(&copy)));
        assert_eq!(Problems::kind(&"x".repeat(LONGEST_KIND + 1)), "other");
    }

    #[test]
    fn endless_different_messages_do_not_fill_memory() {
        let mut problems = Problems::new();
        for i in 0..10_000 {
            problems.add("odd", 1, None, i.to_string());
        }
        assert_eq!(problems.iter().count(), Problems::MOST);
        assert_eq!(problems.iter().map(|p| p.count).sum::<u64>(), 10_000);
    }
}
