//! Where a line of the profiled text is in the text of now.
//!
//! While a person types, each edit moves what lies below it ([`LineMap::edit`]); nothing is searched. When typing
//! pauses, and when a file is opened, the two texts are compared ([`Comparison`]): first line by line, then without
//! regard to white space, then for blocks that moved, and last for lines that were changed in their place.

mod anchors;
mod blocks;
mod comparison;
mod doubt;
mod edit;
mod fit;
mod gaps;
mod lines;
#[cfg(test)]
mod tests;

pub use comparison::{Comparison, LEAST_CONFIDENCE};
pub use edit::LineEdit;
pub use fit::{Declaration, Fit, declared, fit};

use std::num::NonZeroU32;

/// How sure it is that a line of the profiled text is the line it is shown on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Placement {
    /// The same text, but for white space at its edges, on the same line.
    Exact,
    /// The same text, but for white space at its edges, on another line.
    Moved,
    /// The text of the line was edited.
    Changed,
    /// The line was removed.
    Gone,
    /// The profiled text is not known.
    Unverified,
}

impl Placement {
    /// All of them.
    pub const ALL: [Placement; 5] =
        [Placement::Exact, Placement::Moved, Placement::Changed, Placement::Gone, Placement::Unverified];

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

    /// The same where the base is not known to be the profiled text: what stands where it stood is not verified by
    /// that.
    pub fn of_unverified_base(self) -> Self {
        match self {
            Placement::Exact | Placement::Moved => Placement::Unverified,
            other => other,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    base: NonZeroU32,
    /// Counted from 0. Of a removed line: where it was.
    now: u32,
    changed: bool,
    gone: bool,
    /// An equal line near by could be meant as well, so it is not called exact.
    doubtful: bool,
}

impl Place {
    fn at_base(base: NonZeroU32) -> Self {
        Place { base, now: base.get() - 1, changed: false, gone: false, doubtful: false }
    }
}

/// Where chosen lines of a base text are now. Lines that nobody asks for are not followed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LineMap {
    /// Ascending by base line.
    places: Vec<Place>,
}

impl LineMap {
    /// All lines are where they were. `lines` may come in any order and repeat.
    pub fn identity(lines: impl IntoIterator<Item = NonZeroU32>) -> Self {
        let mut places: Vec<Place> = lines.into_iter().map(Place::at_base).collect();
        places.sort_by_key(|place| place.base);
        places.dedup();
        LineMap { places }
    }

    /// Follows one change of the text.
    pub fn edit(&mut self, edit: &LineEdit) {
        self.places.iter_mut().for_each(|place| edit.follow(place));
    }

    /// Where a line of the base text is: its line now, counted from 0, and how it got there. `None` for a line that
    /// is not followed.
    pub fn find(&self, base: NonZeroU32) -> Option<(u32, Placement)> {
        let at = self.places.binary_search_by_key(&base, |place| place.base).ok()?;
        Some(Self::answer(&self.places[at]))
    }

    /// The base lines that are on a line of now, counted from 0; removed ones are left out.
    pub fn on_line(&self, now: u32) -> impl Iterator<Item = (NonZeroU32, Placement)> + use<> {
        self.in_range(now, now).map(|(base, _, placement)| (base, placement))
    }

    /// The base lines on the lines of now from `first` to `last`, counted from 0, by line now: base line, line now,
    /// placement. Removed ones are left out.
    pub fn in_range(&self, first: u32, last: u32) -> impl Iterator<Item = (NonZeroU32, u32, Placement)> + use<> {
        let is_in = |place: &&Place| !place.gone && (first..=last).contains(&place.now);
        let mut found: Vec<Place> = self.places.iter().filter(is_in).copied().collect();
        // Blocks that moved stand before others that they were behind.
        if !found.is_sorted_by_key(|place| place.now) {
            found.sort_by_key(|place| place.now);
        }
        found.into_iter().map(|place| {
            let (now, placement) = Self::answer(&place);
            (place.base, now, placement)
        })
    }

    /// All followed lines, by base line: base line, line now, placement.
    pub fn all(&self) -> impl Iterator<Item = (NonZeroU32, u32, Placement)> + '_ {
        self.places.iter().map(|place| {
            let (now, placement) = Self::answer(place);
            (place.base, now, placement)
        })
    }

    fn answer(place: &Place) -> (u32, Placement) {
        let placement = match place {
            Place { gone: true, .. } => Placement::Gone,
            Place { changed: true, .. } => Placement::Changed,
            Place { base, now, doubtful: false, .. } if base.get() - 1 == *now => Placement::Exact,
            _ => Placement::Moved,
        };
        (place.now, placement)
    }
}
