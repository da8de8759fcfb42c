//! Where a line of the profiled text is in the text of now.
//!
//! While a person types, each edit moves what lies below it ([`LineMap::edit`]); nothing is searched. When two texts
//! are at hand, as when a file is opened again, a line difference finds the lines ([`LineMap::between`]).

use std::num::NonZeroU32;

/// How sure it is that a line of the profiled text is the line it is shown on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Placement {
    /// The same text on the same line.
    Exact,
    /// The same text on another line.
    Moved,
    /// The text of the line was edited.
    Changed,
    /// The line was removed.
    Gone,
    /// The profiled text is not known.
    Unverified,
}

impl Placement {
    /// The word that protocol and JSON have for it.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Exact => "exact",
            Placement::Moved => "moved",
            Placement::Changed => "changed",
            Placement::Gone => "gone",
            Placement::Unverified => "unverified",
        }
    }
}

/// A change of a text, in lines counted from 0 and in what is left of the first and last line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineEdit {
    /// The first line the change touches.
    pub start_line: u32,
    /// The last line it touches.
    pub end_line: u32,
    /// Whether anything but white space of the first line stands before the change.
    pub keeps_head: bool,
    /// Whether anything but white space of the last line stands behind the change.
    pub keeps_tail: bool,
    /// The number of line ends in the text that was put in.
    pub inserted_breaks: u32,
    /// Whether anything but white space was put in before its first line end, or in all if it has none.
    pub touches_head: bool,
    /// Whether anything but white space was put in behind its last line end, or in all if it has none.
    pub touches_tail: bool,
    /// Whether anything but white space was taken out of the first line.
    pub cuts_head: bool,
    /// Whether anything but white space was taken out of the last line.
    pub cuts_tail: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    base: NonZeroU32,
    /// Counted from 0. Of a removed line: where it was.
    now: u32,
    changed: bool,
    gone: bool,
}

/// Where chosen lines of a base text are now. Lines that nobody asks for are not followed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LineMap {
    places: Vec<Place>,
}

impl LineMap {
    /// All lines are where they were. `lines` may come in any order and repeat.
    pub fn identity(lines: impl IntoIterator<Item = NonZeroU32>) -> Self {
        let mut places: Vec<Place> =
            lines.into_iter().map(|base| Place { base, now: base.get() - 1, changed: false, gone: false }).collect();
        places.sort_by_key(|place| place.base);
        places.dedup();
        LineMap { places }
    }

    /// Where the lines of `base` are in `now`, by a line difference.
    pub fn between(base: &str, now: &str, lines: impl IntoIterator<Item = NonZeroU32>) -> Self {
        let mut map = Self::identity(lines);
        if base == now {
            return map;
        }
        let input = imara_diff::InternedInput::new(imara_diff::sources::lines(base), imara_diff::sources::lines(now));
        let mut diff = imara_diff::Diff::compute(imara_diff::Algorithm::Histogram, &input);
        diff.postprocess_lines(&input);
        let mut hunks = diff.hunks().peekable();
        let mut shift = 0i64;
        for place in &mut map.places {
            let line = place.base.get() - 1;
            while let Some(hunk) = hunks.next_if(|hunk| hunk.before.end <= line) {
                shift = i64::from(hunk.after.end) - i64::from(hunk.before.end);
            }
            match hunks.peek() {
                Some(hunk) if hunk.before.contains(&line) => {
                    // Replaced line by line: the same number of lines stands where they stood.
                    let replaced = hunk.before.len() == hunk.after.len();
                    place.now = hunk.after.start + if replaced { line - hunk.before.start } else { 0 };
                    place.changed = replaced;
                    place.gone = !replaced;
                }
                _ => place.now = u32::try_from(i64::from(line) + shift).unwrap_or(0),
            }
        }
        map
    }

    /// Follows one change of the text.
    pub fn edit(&mut self, edit: &LineEdit) {
        let removed = edit.end_line - edit.start_line;
        let first = self.places.partition_point(|place| place.now < edit.start_line);
        for place in &mut self.places[first..] {
            if place.now > edit.end_line {
                place.now = place.now - removed + edit.inserted_breaks;
            } else {
                move_touched(place, edit);
            }
        }
    }

    /// Where a line of the base text is: its line now, counted from 0, and how it got there. `None` for a line that
    /// is not followed.
    pub fn find(&self, base: NonZeroU32) -> Option<(u32, Placement)> {
        let at = self.places.binary_search_by_key(&base, |place| place.base).ok()?;
        Some(Self::answer(&self.places[at]))
    }

    /// The base lines that are on a line of now, counted from 0; removed ones are left out.
    pub fn on_line(&self, now: u32) -> impl Iterator<Item = (NonZeroU32, Placement)> + '_ {
        self.in_range(now, now).map(|(base, _, placement)| (base, placement))
    }

    /// The base lines on the lines of now from `first` to `last`, counted from 0: base line, line now, placement.
    pub fn in_range(&self, first: u32, last: u32) -> impl Iterator<Item = (NonZeroU32, u32, Placement)> + '_ {
        let start = self.places.partition_point(|place| place.now < first);
        self.places[start..].iter().take_while(move |place| place.now <= last).filter(|place| !place.gone).map(
            |place| {
                let (now, placement) = Self::answer(place);
                (place.base, now, placement)
            },
        )
    }

    fn answer(place: &Place) -> (u32, Placement) {
        let placement = match place {
            Place { gone: true, .. } => Placement::Gone,
            Place { changed: true, .. } => Placement::Changed,
            Place { base, now, .. } if base.get() - 1 == *now => Placement::Exact,
            _ => Placement::Moved,
        };
        (place.now, placement)
    }
}

/// A line that the change touches: it goes with its head or its tail, whichever is left of it.
fn move_touched(place: &mut Place, edit: &LineEdit) {
    let end = edit.start_line + edit.inserted_breaks;
    let (is_first, is_last) = (place.now == edit.start_line, place.now == edit.end_line);
    let has_head = is_first && edit.keeps_head;
    let has_tail = is_last && edit.keeps_tail;
    let one_line = is_first && is_last;
    place.now = match (has_head, has_tail) {
        (false, true) => end,
        _ => edit.start_line,
    };
    if !has_head && !has_tail {
        // Nothing of it is left. A line that was replaced within itself is a changed line, not a removed one.
        let replaced = one_line && edit.inserted_breaks == 0 && (edit.touches_head || edit.touches_tail);
        place.changed |= replaced;
        place.gone |= !replaced && (edit.cuts_head || edit.cuts_tail || !one_line);
        return;
    }
    let split = one_line && has_head && has_tail && edit.inserted_breaks > 0;
    let joined = !one_line && edit.inserted_breaks == 0 && edit.keeps_head && edit.keeps_tail;
    let head_touched = has_head && (edit.touches_head || edit.cuts_head);
    let tail_touched = has_tail && (edit.touches_tail || edit.cuts_tail);
    place.changed |= split || joined || head_touched || tail_touched;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(numbers: impl IntoIterator<Item = u32>) -> impl Iterator<Item = NonZeroU32> {
        numbers.into_iter().map(|n| NonZeroU32::new(n).unwrap())
    }

    fn found(map: &LineMap, base: u32) -> (u32, &'static str) {
        let (now, placement) = map.find(NonZeroU32::new(base).unwrap()).unwrap();
        (now + 1, placement.name())
    }

    #[test]
    fn a_difference_finds_moved_changed_and_removed_lines() {
        let base = "one\ntwo\nthree\nfour\nfive\n";
        let map = LineMap::between(base, "zero\none\nTWO\nthree\nfive\n", lines(1..=5));
        assert_eq!(found(&map, 1), (2, "moved"));
        assert_eq!(found(&map, 2), (3, "changed"));
        assert_eq!(found(&map, 3), (4, "moved"));
        assert_eq!(found(&map, 4).1, "gone");
        assert_eq!(found(&map, 5), (5, "exact"));
        assert_eq!(found(&LineMap::between(base, base, lines(1..=5)), 4), (4, "exact"));
    }

    const NOTHING: LineEdit = LineEdit {
        start_line: 0,
        end_line: 0,
        keeps_head: false,
        keeps_tail: false,
        inserted_breaks: 0,
        touches_head: false,
        touches_tail: false,
        cuts_head: false,
        cuts_tail: false,
    };

    #[test]
    fn lines_put_in_above_move_a_line_and_taking_them_out_brings_it_back() {
        let mut map = LineMap::identity(lines([1, 3]));
        map.edit(&LineEdit { start_line: 2, end_line: 2, keeps_tail: true, inserted_breaks: 2, ..NOTHING });
        assert_eq!((found(&map, 1), found(&map, 3)), ((1, "exact"), (5, "moved")));
        map.edit(&LineEdit { start_line: 2, end_line: 4, keeps_tail: true, cuts_head: true, ..NOTHING });
        assert_eq!((found(&map, 1), found(&map, 3)), ((1, "exact"), (3, "exact")));
    }

    #[test]
    fn typing_in_a_line_changes_it_and_a_line_break_at_its_end_does_not() {
        let mut map = LineMap::identity(lines([2, 3]));
        map.edit(&LineEdit { start_line: 1, end_line: 1, keeps_head: true, inserted_breaks: 1, ..NOTHING });
        assert_eq!((found(&map, 2), found(&map, 3)), ((2, "exact"), (4, "moved")));
        let typed = LineEdit { touches_head: true, touches_tail: true, keeps_head: true, keeps_tail: true, ..NOTHING };
        map.edit(&LineEdit { start_line: 1, end_line: 1, ..typed });
        assert_eq!(found(&map, 2), (2, "changed"));
    }

    #[test]
    fn a_removed_line_is_gone_and_a_replaced_one_changed() {
        let mut map = LineMap::identity(lines([2, 3, 4]));
        map.edit(&LineEdit { start_line: 1, end_line: 2, keeps_tail: true, cuts_head: true, ..NOTHING });
        assert_eq!((found(&map, 2).1, found(&map, 3)), ("gone", (2, "moved")));
        map.edit(&LineEdit {
            start_line: 2,
            end_line: 2,
            cuts_head: true,
            touches_head: true,
            touches_tail: true,
            ..NOTHING
        });
        assert_eq!(found(&map, 4), (3, "changed"));
    }

    #[test]
    fn lines_now_are_found_back() {
        let mut map = LineMap::identity(lines([2, 5]));
        map.edit(&LineEdit { start_line: 0, end_line: 0, keeps_tail: true, inserted_breaks: 3, ..NOTHING });
        assert_eq!(map.on_line(4).map(|(base, _)| base.get()).collect::<Vec<_>>(), [2]);
        assert_eq!(map.in_range(0, 99).count(), 2);
        assert_eq!(map.on_line(1).count(), 0);
    }
}
