//! Lines that each of two texts has once, in the order that most of them agree on.

use super::lines::Numbers;

/// The pairs of such lines, ascending on both sides.
pub(super) fn find(before: &[&str], after: &[&str]) -> Vec<(u32, u32)> {
    let mut numbers = Numbers::with_room(before.len());
    let of_before: Vec<u32> = before.iter().map(|line| numbers.of(line)).collect();
    let of_after: Vec<u32> = after.iter().map(|line| numbers.of(line)).collect();
    let mut seen = vec![Seen::default(); numbers.count() as usize];
    (0..).zip(&of_before).for_each(|(line, number)| seen[*number as usize].before.note(line));
    (0..).zip(&of_after).for_each(|(line, number)| seen[*number as usize].after.note(line));
    let once = of_before.iter().filter_map(|number| {
        let Seen { before: Times::Once(before), after: Times::Once(after) } = seen[*number as usize] else {
            return None;
        };
        Some((before, after))
    });
    longest_ascending(&once.collect::<Vec<_>>())
}

/// How often a line was seen on one side, and where.
#[derive(Clone, Copy, Default)]
enum Times {
    #[default]
    Never,
    Once(u32),
    More,
}

impl Times {
    fn note(&mut self, line: u32) {
        *self = if matches!(self, Times::Never) { Times::Once(line) } else { Times::More };
    }
}

#[derive(Clone, Copy, Default)]
struct Seen {
    before: Times,
    after: Times,
}

/// The longest choice of pairs, ascending by their first, that ascends by the second too.
fn longest_ascending(pairs: &[(u32, u32)]) -> Vec<(u32, u32)> {
    // For each length the pair that ends such a choice lowest, and for each pair the one before it.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < pair.1);
        previous.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut chosen: Vec<(u32, u32)> =
        std::iter::successors(ends.last().copied(), |at| previous[*at]).map(|at| pairs[at]).collect();
    chosen.reverse();
    chosen
}
