//! Texts as lines that can be compared fast.

use rustc_hash::FxHashMap;
use std::ops::Range;

/// A text as its lines.
pub(super) struct Lines<'a> {
    lines: Vec<&'a str>,
}

impl<'a> Lines<'a> {
    /// The lines of a text; they end at `\n`, `\r\n` or `\r`, as editors count them.
    pub fn of(text: &'a str) -> Self {
        let mut lines = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'\n' | b'\r')) {
            lines.push(&rest[..at]);
            let end = if rest[at..].starts_with("\r\n") { at + 2 } else { at + 1 };
            rest = &rest[end..];
        }
        lines.push(rest);
        Lines { lines }
    }

    /// How many there are, at least one.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// A line without its end.
    pub fn get(&self, line: u32) -> &'a str {
        self.lines.get(line as usize).copied().unwrap_or_default()
    }

    /// Some of them without white space at their edges.
    pub fn trimmed(&self, lines: &Range<u32>) -> Vec<&'a str> {
        lines.clone().map(|line| self.get(line).trim()).collect()
    }

    /// All of them.
    pub fn all(&self) -> &[&'a str] {
        &self.lines
    }
}

/// Numbers for equal things: of two sequences, the same number where both have the same.
pub(super) struct Numbers<'a> {
    known: FxHashMap<&'a str, u32>,
}

impl<'a> Numbers<'a> {
    pub fn new() -> Self {
        Numbers { known: FxHashMap::default() }
    }

    /// With room for so many.
    pub fn with_room(count: usize) -> Self {
        Numbers { known: FxHashMap::with_capacity_and_hasher(count + count / 8, rustc_hash::FxBuildHasher) }
    }

    pub fn of(&mut self, text: &'a str) -> u32 {
        let next = self.known.len() as u32;
        *self.known.entry(text).or_insert(next)
    }

    /// How many different ones there are.
    pub fn count(&self) -> u32 {
        self.known.len() as u32
    }
}
