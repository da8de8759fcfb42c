//! Open documents: their text, and where the profiled lines are in it.

use super::text::{Encoding, Place, Span, Text};
use heatline_annotate::FileId;
use heatline_annotate::placement::{LineEdit, LineMap, Placement};
use std::num::NonZeroU32;
use std::path::PathBuf;

/// A document that the client has open.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its address as the client spells it.
    pub uri: String,
    /// The file it is, links resolved; absent for what is no file.
    pub path: Option<PathBuf>,
    /// The client's number of the text.
    pub version: i32,
    /// The text now.
    pub text: Text,
    /// The file of the profile that this is, and where its lines are now.
    pub profiled: Option<(FileId, LineMap)>,
}

impl Document {
    /// Takes the text as it is now for the text that the lines of `file` are of.
    pub fn begin_following(&mut self, file: Option<FileId>) {
        let lines = (1..=self.text.line_count()).filter_map(NonZeroU32::new);
        self.profiled = file.map(|file| (file, LineMap::identity(lines)));
    }

    /// Makes one change: of a range, or of the whole text.
    pub fn change(&mut self, range: Option<(Place, Place)>, new: &str, encoding: Encoding) {
        let (span, new) = match range {
            Some((from, to)) => (self.text.span(from, to, encoding), new),
            None => self.text.difference(new),
        };
        let Some((_, map)) = &mut self.profiled else { return self.text.replace(&span, new) };
        let mut edit = line_edit(&self.text, &span, new);
        let before = self.text.line_count();
        self.text.replace(&span, new);
        // Counted in the text itself, since a line end of two bytes may have been made or broken at the edge.
        edit.inserted_breaks = self.text.line_count() + (edit.end_line - edit.start_line) - before;
        map.edit(&edit);
    }

    /// Where a profiled line is now, unless it was removed.
    pub fn line_now(&self, line: NonZeroU32) -> Option<(u32, Placement)> {
        let (_, map) = self.profiled.as_ref()?;
        map.find(line).filter(|(now, placement)| *placement != Placement::Gone && *now < self.text.line_count())
    }

    /// The profiled lines on the lines of now from `first` to `last`: line now, profiled line, placement.
    pub fn lines(&self, first: u32, last: u32) -> impl Iterator<Item = (u32, NonZeroU32, Placement)> + '_ {
        let map = self.profiled.as_ref().map(|(_, map)| map);
        map.into_iter().flat_map(move |map| map.in_range(first, last)).map(|(base, now, how)| (now, base, how))
    }
}

/// What a change does to whole lines; the line ends that it puts in are left to be counted.
fn line_edit(text: &Text, span: &Span, new: &str) -> LineEdit {
    let says = |text: &str| !text.trim().is_empty();
    let (first, last) = (text.line(span.start.0), text.line(span.end.0));
    let removed = &text.as_str()[span.bytes.clone()];
    let ends = ['\n', '\r'];
    let first_of = |text: &str| text.find(ends).map_or(says(text), |at| says(&text[..at]));
    let last_of = |text: &str| text.rfind(ends).map_or(says(text), |at| says(&text[at..]));
    LineEdit {
        start_line: span.start.0,
        end_line: span.end.0,
        keeps_head: first.get(..span.start.1 as usize).is_some_and(says),
        keeps_tail: last.get(span.end.1 as usize..).is_some_and(says),
        inserted_breaks: 0,
        touches_head: first_of(new),
        touches_tail: last_of(new),
        cuts_head: first_of(removed),
        cuts_tail: last_of(removed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the lines of `before` are after a change: `old line → line now`, with the placement.
    #[track_caller]
    fn check(before: &str, from: (u32, u32), to: (u32, u32), new: &str, expect: &str) {
        let place = |(line, character)| Place { line, character };
        let mut document =
            Document { uri: String::new(), path: None, version: 1, text: Text::new(before.into()), profiled: None };
        document.begin_following(Some(FileId(0)));
        document.change(Some((place(from), place(to))), new, Encoding::Utf16);
        let lines: Vec<String> =
            document.lines(0, 99).map(|(now, base, how)| format!("{}→{now} {}", base.get() - 1, how.name())).collect();
        assert_eq!(lines.join(", "), expect);
    }

    #[test]
    fn lines_follow_what_is_typed() {
        check("a\nb\nc", (1, 0), (1, 0), "\n", "0→0 exact, 1→2 moved, 2→3 moved");
        check("a\nb\nc", (0, 1), (0, 1), "\r\n", "0→0 exact, 1→2 moved, 2→3 moved");
        check("a\nb\nc", (0, 0), (1, 0), "", "1→0 moved, 2→1 moved");
        check("a\nbb\nc", (1, 1), (1, 1), "x", "0→0 exact, 1→1 changed, 2→2 exact");
        check("a\nb\nc", (1, 1), (2, 0), "", "0→0 exact, 1→1 changed, 2→1 changed");
        check("a\nb\nc", (1, 0), (1, 0), "", "0→0 exact, 1→1 exact, 2→2 exact");
    }

    #[test]
    fn a_whole_new_text_is_the_change_in_it() {
        let text = Text::new("a\nb\nc\n".into());
        let mut document = Document { uri: String::new(), path: None, version: 1, text, profiled: None };
        document.begin_following(Some(FileId(0)));
        document.change(None, "new\na\nb\nc\n", Encoding::Utf16);
        assert_eq!(document.lines(0, 99).map(|(now, ..)| now).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(document.text.line_count(), 5);
    }
}
