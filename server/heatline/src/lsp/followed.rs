//! Where the profiled lines of an open document are: followed edit by edit, and compared anew when typing pauses.

use super::text::Text;
use crate::base_text::BaseText;
use heatline_annotate::FileId;
use heatline_annotate::placement::{Comparison, LineEdit, Placement};
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::num::NonZeroU32;
use std::sync::Arc;

/// So many texts are remembered, for which it is known where the lines are.
const REMEMBERED: usize = 8;

/// The profiled lines of a document.
#[derive(Clone, Debug)]
pub struct Followed {
    /// The file of the profile that the document is.
    pub file: FileId,
    base: BaseText,
    lines: Arc<[NonZeroU32]>,
    places: Comparison,
    /// Whether they are what a comparison of the texts gives.
    settled: bool,
    known: Vec<(Mark, Comparison)>,
}

/// What a text is recognised by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mark {
    length: usize,
    hash: u64,
}

impl Mark {
    fn of(text: &str) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(text.as_bytes());
        Mark { length: text.len(), hash: hasher.finish() }
    }
}

/// A comparison that is to be made.
pub struct Task {
    base: BaseText,
    lines: Arc<[NonZeroU32]>,
    text: String,
}

impl Task {
    /// Makes it.
    pub fn run(&self) -> Comparison {
        Comparison::new(&self.base.text, &self.text, self.lines.iter().copied())
    }
}

impl Followed {
    /// Finds `lines` of a file's base text in the text of a document.
    pub fn new(file: FileId, base: BaseText, lines: Arc<[NonZeroU32]>, text: &Text) -> Self {
        let places = Comparison::new(&base.text, text.as_str(), lines.iter().copied());
        let mut followed = Followed { file, base, lines, places, settled: true, known: Vec::new() };
        followed.remember(text);
        followed
    }

    /// The same lines in another text, as if it were opened.
    #[cfg(test)]
    pub fn found_in(&self, text: &Text) -> Self {
        Followed::new(self.file, self.base.clone(), self.lines.clone(), text)
    }

    /// The same for another base.
    pub fn based_on(&self, file: FileId, base: BaseText, lines: Arc<[NonZeroU32]>, text: &Text) -> Self {
        if self.file == file && self.base == base && self.lines == lines {
            return self.clone();
        }
        Followed::new(file, base, lines, text)
    }

    /// The text that the lines are of.
    pub fn base(&self) -> &BaseText {
        &self.base
    }

    /// Whether lines are placed at all: the texts have enough in common.
    pub fn is_sure(&self) -> bool {
        self.places.is_sure()
    }

    /// The share of the base that is in the text.
    pub fn confidence(&self) -> f64 {
        self.places.confidence
    }

    /// Follows one change.
    pub fn edit(&mut self, edit: &LineEdit) {
        self.settled = false;
        self.places.map.edit(edit);
    }

    /// After changes: whether the text is one for which it is known where the lines are, as after an undo.
    pub fn recall(&mut self, text: &Text) {
        if self.settled {
            return;
        }
        if text.as_str() == &*self.base.text {
            self.places = Comparison::new("", "", self.lines.iter().copied());
            self.settled = true;
        } else if self.known.iter().any(|(mark, _)| mark.length == text.as_str().len()) {
            let mark = Mark::of(text.as_str());
            if let Some((_, places)) = self.known.iter().find(|(known, _)| *known == mark) {
                self.places = places.clone();
                self.settled = true;
            }
        }
    }

    /// The comparison that is to be made, if one is.
    pub fn task(&self, text: &Text) -> Option<Task> {
        let task = || Task { base: self.base.clone(), lines: self.lines.clone(), text: text.as_str().to_owned() };
        (!self.settled).then(task)
    }

    /// Takes the comparison with the text as it is now. Tells whether something is elsewhere now than it was said.
    pub fn settle(&mut self, places: Comparison, text: &Text) -> bool {
        let is_other = self.places.map != places.map || self.is_sure() != places.is_sure();
        self.places = places;
        self.settled = true;
        self.remember(text);
        is_other
    }

    fn remember(&mut self, text: &Text) {
        if self.known.len() == REMEMBERED {
            self.known.remove(0);
        }
        self.known.push((Mark::of(text.as_str()), self.places.clone()));
    }

    /// Where a line is, and how sure that is, whether the text is sure or not.
    pub fn find(&self, line: NonZeroU32) -> Option<(u32, Placement)> {
        self.places.map.find(line).map(|(now, placement)| (now, self.honest(placement)))
    }

    /// All lines: line, line now, placement.
    pub fn all(&self) -> impl Iterator<Item = (NonZeroU32, u32, Placement)> + '_ {
        self.places.map.all().map(|(base, now, placement)| (base, now, self.honest(placement)))
    }

    /// The lines on some lines of now: line now, line, placement. None in a text that has too little in common.
    pub fn lines(&self, first: u32, last: u32) -> impl Iterator<Item = (u32, NonZeroU32, Placement)> + '_ {
        let found = self.is_sure().then(|| self.places.map.in_range(first, last));
        found.into_iter().flatten().map(|(base, now, placement)| (now, base, self.honest(placement)))
    }

    fn honest(&self, placement: Placement) -> Placement {
        if self.base.is_verified() { placement } else { placement.of_unverified_base() }
    }
}
