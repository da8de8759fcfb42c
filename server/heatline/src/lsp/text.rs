//! The text of an open document, with a table of where its lines begin, and positions in the negotiated encoding.
//!
//! Lines end at `\n`, `\r\n` or `\r`, as the protocol counts them. Positions outside the text are moved to the nearest
//! place inside it, never refused: the client's next edit would be lost otherwise.

use std::ops::Range;

/// What a position's `character` counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units, the protocol's default.
    #[default]
    Utf16,
    /// Code points.
    Utf32,
}

impl Encoding {
    /// The length of `text`.
    pub fn length(self, text: &str) -> u32 {
        let length = match self {
            Encoding::Utf8 => text.len(),
            _ if text.is_ascii() => text.len(),
            Encoding::Utf16 => text.chars().map(char::len_utf16).sum(),
            Encoding::Utf32 => text.chars().count(),
        };
        u32::try_from(length).unwrap_or(u32::MAX)
    }

    /// The byte at which the character `units` of `line` begins; inside of one its beginning, past the end the end.
    fn byte(self, line: &str, units: u32) -> usize {
        let units = units as usize;
        if self == Encoding::Utf8 || line.is_ascii() {
            let at = units.min(line.len());
            return (0..=at).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
        }
        let mut passed = 0;
        for (at, character) in line.char_indices() {
            passed += if self == Encoding::Utf16 { character.len_utf16() } else { 1 };
            if passed > units {
                return at;
            }
        }
        line.len()
    }
}

/// A place as the protocol has it: zero-based, `character` in some [`Encoding`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The character in the line.
    pub character: u32,
}

/// A stretch of a text, in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// Line and byte in the line where it begins.
    pub start: (u32, u32),
    /// Line and byte in the line where it ends.
    pub end: (u32, u32),
    /// The same as bytes of the whole text.
    pub bytes: Range<usize>,
}

/// A text and its lines.
#[derive(Clone, Debug)]
pub struct Text {
    text: String,
    /// Where each line begins; the first at 0.
    starts: Vec<usize>,
}

impl Text {
    /// Takes a text.
    pub fn new(text: String) -> Self {
        let mut starts = vec![0];
        push_starts(&text, 0..text.len(), true, &mut starts);
        Text { text, starts }
    }

    /// All of it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How many lines there are, at least one.
    pub fn line_count(&self) -> u32 {
        self.starts.len() as u32
    }

    /// A line without its end, or nothing past the last.
    pub fn line(&self, line: u32) -> &str {
        let Some(&start) = self.starts.get(line as usize) else { return "" };
        let end = self.starts.get(line as usize + 1).copied().unwrap_or(self.text.len());
        let line = &self.text[start..end];
        line.strip_suffix("\r\n").or_else(|| line.strip_suffix(['\n', '\r'])).unwrap_or(line)
    }

    /// The end of a line.
    pub fn line_end(&self, line: u32, encoding: Encoding) -> Place {
        Place { line, character: encoding.length(self.line(line)) }
    }

    /// The name at a place: letters, digits and underscores before and behind it.
    pub fn word(&self, place: Place, encoding: Encoding) -> &str {
        let line = self.line(place.line);
        let at = encoding.byte(line, place.character);
        let is_outside = |c: char| !c.is_alphanumeric() && c != '_';
        let start = line[..at]
            .rfind(is_outside)
            .map_or(0, |found| found + line[found..].chars().next().map_or(1, char::len_utf8));
        let end = line[at..].find(is_outside).map_or(line.len(), |found| at + found);
        &line[start..end]
    }

    /// What stands between two places. A reversed range is an empty one.
    pub fn span(&self, from: Place, to: Place, encoding: Encoding) -> Span {
        let start = self.offset(from, encoding);
        let end = self.offset(to.max(from), encoding).max(start);
        self.span_of(start, end)
    }

    /// The stretch in which this text differs from another, and what stands there in the other.
    pub fn difference<'a>(&self, other: &'a str) -> (Span, &'a str) {
        let same = |(a, b): &(u8, u8)| a == b;
        let prefix = self.text.bytes().zip(other.bytes()).take_while(same).count();
        let shorter = self.text.len().min(other.len());
        let suffix = self.text.bytes().rev().zip(other.bytes().rev()).take_while(same).count().min(shorter - prefix);
        let is_boundary = |at: &usize| self.text.is_char_boundary(*at) && other.is_char_boundary(*at);
        let prefix = (0..=prefix).rev().find(is_boundary).unwrap_or(0);
        let is_boundary =
            |at: &usize| self.text.is_char_boundary(self.text.len() - at) && other.is_char_boundary(other.len() - at);
        let suffix = (0..=suffix).rev().find(is_boundary).unwrap_or(0);
        let end = self.text.len() - suffix;
        (self.span_of((self.line_at(prefix), prefix), (self.line_at(end), end)), &other[prefix..other.len() - suffix])
    }

    /// Puts `new` in the place of a stretch of this text.
    pub fn replace(&mut self, span: &Span, new: &str) {
        // A line end of two bytes may be made or broken at the edge, so the line before belongs to what is counted anew.
        let first = self.starts.partition_point(|start| *start < span.bytes.start).saturating_sub(1);
        let after = span.end.0 as usize + 1;
        let counted_to = self.starts.get(after).copied().unwrap_or(self.text.len());
        self.text.replace_range(span.bytes.clone(), new);
        let shift = |at: usize| at - span.bytes.len() + new.len();
        let mut starts = Vec::new();
        let last = after == self.starts.len();
        push_starts(&self.text, self.starts[first]..shift(counted_to), last, &mut starts);
        for start in &mut self.starts[after..] {
            *start = shift(*start);
        }
        self.starts.splice(first + 1..after, starts);
    }

    fn span_of(&self, start: (usize, usize), end: (usize, usize)) -> Span {
        let in_line = |(line, at): (usize, usize)| (line as u32, (at - self.starts[line]) as u32);
        Span { start: in_line(start), end: in_line(end), bytes: start.1..end.1 }
    }

    /// The line that a byte of the text is on.
    fn line_at(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at) - 1
    }

    /// Line and byte of a place.
    fn offset(&self, place: Place, encoding: Encoding) -> (usize, usize) {
        let line = place.line as usize;
        match self.starts.get(line) {
            Some(start) => (line, start + encoding.byte(self.line(place.line), place.character)),
            None => (self.starts.len() - 1, self.text.len()),
        }
    }
}

/// Appends where lines begin behind a line end in `range`; one at the end of the range only if `with_last`.
fn push_starts(text: &str, range: Range<usize>, with_last: bool, starts: &mut Vec<usize>) {
    let bytes = text.as_bytes();
    let mut at = range.start;
    while at < range.end {
        let end = match bytes[at] {
            b'\n' => at + 1,
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => at + 2,
            b'\r' => at + 1,
            _ => {
                at += 1;
                continue;
            }
        };
        if end < range.end || (with_last && end == range.end) {
            starts.push(end);
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: u32, character: u32) -> Place {
        Place { line, character }
    }

    /// After each edit the table must be what it would be for the same text read anew.
    #[track_caller]
    fn check(before: &str, from: (u32, u32), to: (u32, u32), new: &str, after: &str) {
        let mut text = Text::new(before.into());
        let span = text.span(place(from.0, from.1), place(to.0, to.1), Encoding::Utf16);
        text.replace(&span, new);
        assert_eq!(text.as_str(), after);
        assert_eq!(text.starts, Text::new(after.into()).starts);
    }

    #[test]
    fn lines_end_in_three_ways() {
        let text = Text::new("a\nb\r\nc\rd".into());
        assert_eq!((0..4).map(|l| text.line(l)).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        assert_eq!((text.line_count(), text.line(4)), (4, ""));
        assert_eq!(Text::new("a\n".into()).line_count(), 2);
        assert_eq!(Text::new(String::new()).line_count(), 1);
    }

    #[test]
    fn edits_keep_the_line_table() {
        check("ab\ncd\n", (0, 1), (1, 1), "X", "aXd\n");
        check("ab\ncd\n", (1, 0), (1, 0), "x\ny\n", "ab\nx\ny\ncd\n");
        check("ab\ncd", (1, 2), (1, 2), "\n", "ab\ncd\n");
        check("ab\n", (0, 0), (1, 0), "", "");
        check("", (0, 0), (0, 0), "a\r\nb", "a\r\nb");
    }

    #[test]
    fn line_ends_of_two_bytes_are_made_and_broken() {
        check("a\rb\nc", (1, 0), (1, 1), "", "a\r\nc");
        check("a\r", (1, 0), (1, 0), "\n", "a\r\n");
        check("a\nb", (0, 1), (0, 1), "\r", "a\r\nb");
        check("a\r\nb", (0, 1), (1, 0), "", "ab");
        check("a\rb", (0, 1), (1, 0), "\n", "a\nb");
    }

    #[test]
    fn places_outside_are_moved_inside() {
        check("ab\ncd", (7, 3), (9, 9), "X", "ab\ncdX");
        check("ab\ncd", (0, 99), (0, 99), "X", "abX\ncd");
        check("ab\ncd", (1, 1), (0, 1), "X", "ab\ncXd");
    }

    #[test]
    fn characters_are_counted_in_three_ways() {
        let line = "ü😀x";
        for (encoding, length) in [(Encoding::Utf8, 7), (Encoding::Utf16, 4), (Encoding::Utf32, 3)] {
            assert_eq!(encoding.length(line), length);
            assert_eq!(encoding.byte(line, length - 1), 6);
            assert_eq!(encoding.byte(line, 99), 7);
        }
        assert_eq!(Encoding::Utf16.byte(line, 2), 2, "inside a surrogate pair");
        assert_eq!(Encoding::Utf8.byte(line, 4), 2, "inside a character");
    }

    #[test]
    fn a_span_says_where_it_is_in_bytes() {
        let text = Text::new("aü\ncd\n".into());
        let span = text.span(place(0, 2), place(1, 1), Encoding::Utf16);
        assert_eq!(span, Span { start: (0, 3), end: (1, 1), bytes: 3..5 });
    }

    #[test]
    fn the_word_at_a_place_is_a_whole_name() {
        let text = Text::new("ü = walk_2(n);".into());
        let word = |character| text.word(place(0, character), Encoding::Utf16);
        assert_eq!([0, 2, 4, 6, 10, 11, 12, 99].map(word), ["ü", "", "walk_2", "walk_2", "walk_2", "n", "n", ""]);
    }

    #[test]
    fn a_difference_is_the_smallest_stretch_of_whole_characters() {
        let difference = |old: &str, new: &str| {
            let text = Text::new(old.into());
            let (span, inserted) = text.difference(new);
            let mut replaced = text.clone();
            replaced.replace(&span, inserted);
            assert_eq!(replaced.as_str(), new);
            (old[span.bytes].to_owned(), inserted.to_owned())
        };
        assert_eq!(difference("a\nb\nc", "a\nx\nc"), ("b".into(), "x".into()));
        assert_eq!(difference("aaa", "aa"), ("a".into(), String::new()));
        assert_eq!(difference("ü", "ö"), ("ü".into(), "ö".into()));
        assert_eq!(difference("same", "same"), (String::new(), String::new()));
        assert_eq!(difference("", "x"), (String::new(), "x".into()));
    }

    #[test]
    fn many_random_edits_keep_the_line_table() {
        let mut seed = 7u64;
        let mut random = |below: u32| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((seed >> 33) as u32) % below
        };
        let pieces = ["", "\n", "\r", "\r\n", "a", "ü\n😀", "\n\r", "xyz\r\n\r"];
        let mut text = Text::new("one\ntwo\r\nthree\rfour".into());
        for _ in 0..3000 {
            let from = place(random(text.line_count() + 1), random(6));
            let to = if random(3) == 0 { from } else { place(from.line + random(3), random(6)) };
            let span = text.span(from, to, Encoding::Utf16);
            text.replace(&span, pieces[random(8) as usize]);
            assert_eq!(text.starts, Text::new(text.as_str().into()).starts, "{:?}", text.as_str());
        }
    }
}
