//! Lines that could as well be others: where a text is written twice, nothing tells which of the two was removed or
//! put in.

use super::comparison::{Matches, is_telling};
use super::lines::Lines;

/// Marks lines that no anchor, a line which each text has once, holds in their place: those between a difference and the
/// nearest anchor. `lines_now` is how many lines the other text has.
pub(super) fn mark(base: &Lines<'_>, lines_now: usize, anchors: &[bool], matches: &mut Matches) {
    let is_once = |line: u32| anchors.get(line as usize) == Some(&true) && is_telling(base.get(line));
    for (start, end) in runs(base.len() as u32, matches) {
        let to = matches.get(start).unwrap_or_default();
        let from_begin = start == 0 && to == 0;
        let to_end = end == base.len() as u32 && (to + (end - start)) as usize == lines_now;
        let first = (start..end).find(|line| is_once(*line));
        let last = (start..end).rev().find(|line| is_once(*line));
        // The whole run, where nothing in it holds it.
        let above = start..first.unwrap_or(end);
        let below = last.map_or(start..end, |last| last + 1..end);
        if !from_begin {
            above.for_each(|line| matches.set_doubtful(line));
        }
        if !to_end {
            below.for_each(|line| matches.set_doubtful(line));
        }
    }
}

/// The runs of base lines that are a run of lines of now: first line, line behind the last.
fn runs(lines: u32, matches: &Matches) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    let mut last: Option<u32> = None;
    for line in 0..lines {
        let now = matches.get(line);
        match (runs.last_mut(), now, last) {
            (Some(run), Some(now), Some(last)) if run.1 == line && now == last + 1 => run.1 = line + 1,
            (_, Some(_), _) => runs.push((line, line + 1)),
            _ => {}
        }
        last = now;
    }
    runs
}
