//! Lines that could as well be others: where equal lines stand side by side, no text tells which of them was removed
//! or put in.

use super::comparison::{Matches, is_telling};
use super::lines::Lines;

/// Marks lines whose match is a matter of taste: those over which a difference could be shifted, and runs between
/// differences in which no line tells anything.
pub(super) fn mark(base: &Lines<'_>, now: &Lines<'_>, matches: &mut Matches) {
    let mut doubtful = Vec::new();
    for_each_run((0..base.len() as u32).map(|line| matches.get(line).is_none()), |start, end, open| {
        if open {
            shiftable(base, start, end, |line| doubtful.push(line));
        } else if start > 0 && !(start..end).any(|line| is_telling(base.get(line))) {
            doubtful.extend(start..end);
        }
    });
    for_each_run((0..now.len() as u32).map(|line| matches.is_free(line)), |start, end, open| {
        if open {
            shiftable(now, start, end, |line| doubtful.extend(matches.base_of(line)));
        } else if start > 0 && !(start..end).any(|line| is_telling(now.get(line))) {
            doubtful.extend((start..end).filter_map(|line| matches.base_of(line)));
        }
    });
    doubtful.into_iter().for_each(|line| matches.set_doubtful(line));
}

/// Tells the runs of equal answers: first line, line behind the last, answer.
fn for_each_run(answers: impl Iterator<Item = bool>, mut tell: impl FnMut(u32, u32, bool)) {
    let (mut start, mut last) = (0, None);
    let mut end = 0;
    for answer in answers {
        if last.is_some_and(|last| last != answer) {
            tell(start, end, last == Some(true));
            start = end;
        }
        (last, end) = (Some(answer), end + 1);
    }
    if let Some(answer) = last {
        tell(start, end, answer);
    }
}

/// Tells the lines around a stretch that could stand in it as well: it ends as the lines above it do, or begins as
/// those below.
fn shiftable(lines: &Lines<'_>, start: u32, end: u32, mut tell: impl FnMut(u32)) {
    let is_same = |a: u32, b: u32| lines.get(a).trim() == lines.get(b).trim();
    (1..=start).take_while(|i| is_same(start - i, end - i)).for_each(|i| tell(start - i));
    let below = lines.len() as u32 - end;
    (0..below).take_while(|i| is_same(start + i, end + i)).for_each(|i| tell(end + i));
}
