//! Open documents: their text, and where the profiled lines are in it.

use super::followed::Followed;
use super::text::{Encoding, Place, Span, Text};
use heatline_annotate::placement::{Comparison, LineEdit, Placement};
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
    /// Where the lines of the profile are in it, if it is a file of the profile.
    pub profiled: Option<Followed>,
}

impl Document {
    /// Makes one change: of a range, or of the whole text.
    pub fn change(&mut self, range: Option<(Place, Place)>, new: &str, encoding: Encoding) {
        let (span, new) = match range {
            Some((from, to)) => (self.text.span(from, to, encoding), new),
            None => self.text.difference(new),
        };
        let Some(followed) = &mut self.profiled else { return self.text.replace(&span, new) };
        let mut edit = line_edit(&self.text, &span, new);
        let before = self.text.line_count();
        self.text.replace(&span, new);
        // Counted in the text itself, since a line end of two bytes may have been made or broken at the edge.
        let after = self.text.line_count() + (edit.end_line - edit.start_line);
        if after < before {
            // The line above ended in `\r`, which is one line end with the `\n` that follows now.
            edit.start_line -= 1;
            edit.keeps_head = !self.text.line(edit.start_line).trim().is_empty();
            (edit.touches_head, edit.cuts_head) = (false, false);
        }
        edit.inserted_breaks = self.text.line_count() + (edit.end_line - edit.start_line) - before;
        followed.edit(&edit);
    }

    /// After all changes of one message.
    pub fn changed(&mut self) {
        if let Some(followed) = &mut self.profiled {
            followed.recall(&self.text);
        }
    }

    /// Takes the exact places. Tells whether something is elsewhere now than it was said.
    pub fn settle(&mut self, places: Comparison) -> bool {
        self.profiled.as_mut().is_some_and(|followed| followed.settle(places, &self.text))
    }

    /// Where a profiled line is now, unless it was removed.
    pub fn line_now(&self, line: NonZeroU32) -> Option<(u32, Placement)> {
        let found = self.profiled.as_ref()?.find(line);
        found.filter(|(now, placement)| *placement != Placement::Gone && *now < self.text.line_count())
    }

    /// The profiled lines on the lines of now from `first` to `last`: line now, profiled line, placement.
    pub fn lines(&self, first: u32, last: u32) -> impl Iterator<Item = (u32, NonZeroU32, Placement)> + '_ {
        let last = last.min(self.text.line_count() - 1);
        self.profiled.iter().flat_map(move |followed| followed.lines(first, last))
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
        is_empty: span.bytes.is_empty() && new.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base_text::{BaseText, Origin};
    use heatline_annotate::FileId;

    /// A document all of whose lines are profiled.
    fn followed(text: &str) -> Document {
        let text = Text::new(text.into());
        let base = BaseText { text: text.as_str().into(), origin: Origin::Unwritten };
        let lines = (1..=text.line_count()).filter_map(NonZeroU32::new).collect();
        let profiled = Some(Followed::new(FileId(0), base, lines, &text));
        Document { uri: String::new(), path: None, version: 1, text, profiled }
    }

    /// Where the lines of `before` are after a change: `old line → line now`, with the placement.
    #[track_caller]
    fn check(before: &str, from: (u32, u32), to: (u32, u32), new: &str, expect: &str) {
        let place = |(line, character)| Place { line, character };
        let mut document = followed(before);
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
        let mut document = followed("a\nb\nc\n");
        document.change(None, "new\na\nb\nc\n", Encoding::Utf16);
        assert_eq!(document.lines(0, 99).map(|(now, ..)| now).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(document.text.line_count(), 5);
    }

    /// Numbers that look random.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % limit.max(1)
        }
    }

    const PIECES: [&str; 10] =
        ["", "\n", "\r\n", "\r", "x", "let 😀 = naïve(漢, 7);", "one\ntwo\r\n", "\n\n", "    ", "}\r\n😀"];

    fn some_text(random: &mut Random) -> String {
        let ends = ["\n", "\r\n"];
        let end = ends[random.below(2)];
        (0..30).map(|line| format!("{}let name{line} = call(\"ü😀\", {line});{end}", " ".repeat(line % 9))).collect()
    }

    /// One change as a client makes it, and the one that takes it back.
    fn change(document: &mut Document, random: &mut Random, encoding: Encoding) {
        let place = |random: &mut Random| Place {
            line: random.below(document.text.line_count() as usize + 1) as u32,
            character: random.below(40) as u32,
        };
        let from = place(random);
        let to = match random.below(3) {
            0 => from,
            1 => Place { line: from.line, character: from.character + random.below(9) as u32 },
            _ => Place { line: from.line + random.below(3) as u32, ..place(random) },
        };
        let new = PIECES[random.below(PIECES.len())];
        if random.below(12) == 0 {
            let whole = format!("{new}{}", document.text.as_str());
            document.change(None, &whole, encoding);
        } else {
            document.change(Some((from, to)), new, encoding);
        }
    }

    fn all(document: &Document) -> Vec<(NonZeroU32, u32, Placement)> {
        document.profiled.as_ref().unwrap().all().collect()
    }

    /// Typing pauses.
    fn pause(document: &mut Document) {
        let task = document.profiled.as_ref().unwrap().task(&document.text);
        task.map(|task| document.settle(task.run()));
    }

    #[test]
    fn any_edits_give_the_places_that_the_final_text_gives_when_opened() {
        let mut random = Random(1);
        for round in 0..150 {
            let encoding = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32][round % 3];
            let text = some_text(&mut random);
            let base: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
            let mut document = followed(&text);
            for _ in 0..1 + random.below(8) {
                change(&mut document, &mut random, encoding);
                // What is said to be unchanged before typing pauses has the text that it had.
                for (line, now, placement) in all(&document) {
                    if matches!(placement, Placement::Exact | Placement::Moved) {
                        let was = base.get(line.get() as usize - 1).map_or("", String::as_str);
                        assert_eq!(document.text.line(now).trim(), was, "round {round}");
                    }
                }
            }
            document.changed();
            pause(&mut document);
            let mut opened = followed(&text);
            opened.text = Text::new(document.text.as_str().into());
            let known = opened.profiled.take().unwrap();
            opened.profiled = Some(known.found_in(&opened.text));
            assert_eq!(all(&document), all(&opened), "round {round}");
        }
    }

    #[test]
    fn undo_restores_exactly_what_was_there() {
        let mut random = Random(2);
        for round in 0..60 {
            let text = some_text(&mut random);
            let mut document = followed(&text);
            change(&mut document, &mut random, Encoding::Utf16);
            document.changed();
            pause(&mut document);
            let (edited, places) = (document.text.as_str().to_owned(), all(&document));
            // Typed and undone, without a pause between.
            document.change(Some((Place::default(), Place::default())), "typed\n", Encoding::Utf16);
            document.change(
                Some((Place { line: 3, character: 0 }, Place { line: 9, character: 2 })),
                "",
                Encoding::Utf16,
            );
            document.changed();
            document.change(None, &edited, Encoding::Utf16);
            document.changed();
            assert_eq!(all(&document), places, "round {round}");
            document.change(None, &text, Encoding::Utf16);
            document.changed();
            assert!(all(&document).iter().all(|(.., placement)| *placement == Placement::Exact), "round {round}");
        }
    }
}
