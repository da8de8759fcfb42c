//! Frames of the base protocol: header lines, an empty line, a body of `Content-Length` bytes.
//!
//! A reader meets whatever a program may write to its standard input, so nothing here trusts a length or a header:
//! bodies are bounded, long ones are skipped without being collected, and after a bad header reading goes on at the
//! next `Content-Length:`. Follows the Language Server Protocol 3.17, "Base Protocol".

use std::io::{self, BufRead, Read, Write};

/// The longest body that is read.
pub const LONGEST_BODY: u64 = 64 << 20;

/// The longest header line that is believed to be one.
const LONGEST_HEADER_LINE: u64 = 1024;

/// More header lines than this are no header.
const MOST_HEADER_LINES: usize = 32;

/// What comes before the number that matters.
const LENGTH: &[u8] = b"content-length:";

/// One thing that was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// A body; not yet looked at.
    Body(Vec<u8>),
    /// The bytes were no header; reading goes on behind them.
    BadHeader,
    /// The announced length is above [`LONGEST_BODY`]; the body is skipped by the next call of [`Reader::next`].
    TooLong(u64),
}

/// Reads frames one after the other.
pub struct Reader<R> {
    input: R,
    /// Bytes of a body that is not wanted.
    skip: u64,
    /// After a bad header its successor has to be looked for; so many bytes of [`LENGTH`] were matched already.
    lost: Option<usize>,
}

impl<R: BufRead> Reader<R> {
    /// A reader at the beginning of a frame.
    pub fn new(input: R) -> Self {
        Reader { input, skip: 0, lost: None }
    }

    /// The next frame, or `None` at the end of the input, also inside a frame.
    ///
    /// # Errors
    /// Those of the input.
    pub fn next(&mut self) -> io::Result<Option<Frame>> {
        self.skip_body()?;
        let header = match self.lost.take() {
            Some(matched) => self.find_header(matched)?,
            None => self.header_lines(None)?,
        };
        match header {
            Header::End => Ok(None),
            Header::Bad(matched) => {
                self.lost = Some(matched);
                Ok(Some(Frame::BadHeader))
            }
            Header::Length(length) if length > LONGEST_BODY => {
                self.skip = length;
                Ok(Some(Frame::TooLong(length)))
            }
            Header::Length(length) => self.body(length),
        }
    }

    fn body(&mut self, length: u64) -> io::Result<Option<Frame>> {
        // The vector grows with what arrives, not with what was announced.
        let mut body = Vec::new();
        self.input.by_ref().take(length).read_to_end(&mut body)?;
        Ok((body.len() as u64 == length).then_some(Frame::Body(body)))
    }

    fn skip_body(&mut self) -> io::Result<()> {
        while self.skip > 0 {
            let there = self.input.fill_buf()?.len();
            if there == 0 {
                self.skip = 0;
            }
            let used = self.skip.min(there as u64);
            self.input.consume(used as usize);
            self.skip -= used;
        }
        Ok(())
    }

    /// Reads header lines to the empty one. `known` is a length that was read already.
    fn header_lines(&mut self, known: Option<u64>) -> io::Result<Header> {
        let mut length = known;
        for _ in 0..MOST_HEADER_LINES {
            let mut line = Vec::new();
            self.input.by_ref().take(LONGEST_HEADER_LINE).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Ok(Header::End);
            }
            match header_line(&line) {
                Line::Empty => return Ok(length.map_or(Header::Bad(0), Header::Length)),
                Line::Length(n) => length = Some(n),
                Line::Other => {}
                Line::Bad => return self.embedded_header(&line),
            }
        }
        Ok(Header::Bad(0))
    }

    /// A bad line may still end in a good one: the rest of a body that was longer than announced has no line end.
    fn embedded_header(&mut self, line: &[u8]) -> io::Result<Header> {
        let mut matched = 0;
        for (i, byte) in line.iter().enumerate().skip(1) {
            matched = step(matched, *byte);
            if matched == LENGTH.len() {
                return self.header_behind_name(&line[i + 1..]);
            }
        }
        Ok(Header::Bad(matched))
    }

    /// Looks for the next `Content-Length:`, wherever it stands.
    fn find_header(&mut self, mut matched: usize) -> io::Result<Header> {
        while matched < LENGTH.len() {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(Header::End);
            }
            let mut used = 0;
            while matched < LENGTH.len() && used < buffer.len() {
                matched = step(matched, buffer[used]);
                used += 1;
            }
            self.input.consume(used);
        }
        self.header_behind_name(b"")
    }

    /// Reads on behind a `Content-Length:`, of whose line `rest` has been read.
    fn header_behind_name(&mut self, rest: &[u8]) -> io::Result<Header> {
        let mut line = [LENGTH, rest].concat();
        if !line.ends_with(b"\n") {
            self.input.by_ref().take(LONGEST_HEADER_LINE).read_until(b'\n', &mut line)?;
        }
        match header_line(&line) {
            Line::Length(length) => self.header_lines(Some(length)),
            _ => Ok(Header::Bad(0)),
        }
    }
}

/// How many bytes of [`LENGTH`] are matched after `byte`, when `matched` were before it. Its first byte occurs
/// nowhere else in it, so a mismatch never hides an earlier beginning.
fn step(matched: usize, byte: u8) -> usize {
    let byte = byte.to_ascii_lowercase();
    if LENGTH.get(matched) == Some(&byte) { matched + 1 } else { usize::from(byte == LENGTH[0]) }
}

enum Header {
    Length(u64),
    /// With how many bytes of [`LENGTH`] the bad line ended.
    Bad(usize),
    End,
}

enum Line {
    Empty,
    Length(u64),
    Other,
    Bad,
}

/// What one header line says; the line end may be a line feed alone.
fn header_line(line: &[u8]) -> Line {
    let Some(line) = line.strip_suffix(b"\n") else { return Line::Bad };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return Line::Empty;
    }
    if let Some(name) = line.get(..LENGTH.len())
        && name.eq_ignore_ascii_case(LENGTH)
    {
        return number(&line[LENGTH.len()..]).map_or(Line::Bad, Line::Length);
    }
    let is_name = |name: &[u8]| !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-');
    match line.iter().position(|b| *b == b':') {
        Some(colon) if is_name(&line[..colon]) => Line::Other,
        _ => Line::Bad,
    }
}

/// A decimal number between blanks; one that is too large for 64 bits is the largest.
fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0u64, |n, digit| n.saturating_mul(10).saturating_add(u64::from(digit - b'0'))))
}

/// Writes one frame.
///
/// # Errors
/// Those of the output.
pub fn write(output: &mut impl Write, body: &[u8]) -> io::Result<()> {
    write!(output, "Content-Length: {}\r\n\r\n", body.len())?;
    output.write_all(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `input` whole and in pieces of one byte; both must say the same.
    #[track_caller]
    fn check(input: &[u8], expect: &[Frame]) {
        for size in [1, 7, 8192] {
            let mut reader = Reader::new(io::BufReader::with_capacity(size, input));
            let mut frames = Vec::new();
            while let Some(frame) = reader.next().unwrap() {
                frames.push(frame);
            }
            assert_eq!(frames, expect, "with a buffer of {size} bytes");
        }
    }

    fn body(text: &str) -> Frame {
        Frame::Body(text.into())
    }

    #[test]
    fn frames_follow_each_other() {
        check(b"Content-Length: 2\r\n\r\n{}Content-Length: 0\r\n\r\n", &[body("{}"), body("")]);
        check(b"content-type: x\r\nCONTENT-LENGTH:2 \r\n\r\n{}", &[body("{}")]);
        check(b"Content-Length: 2\n\n{}", &[body("{}")]);
        check(b"", &[]);
    }

    #[test]
    fn the_end_inside_a_frame_is_the_end() {
        check(b"Content-Length: 500\r\n\r\n{", &[]);
        check(b"Content-Length: 5", &[Frame::BadHeader]);
    }

    #[test]
    fn reading_goes_on_behind_a_bad_header() {
        for bad in
            ["Content-Length: abc\r\n\r\n", "Content-Length: -5\r\n\r\n", "X-Other: 1\r\n\r\n", "\r\n", "%&/\r\n"]
        {
            let input = format!("{bad}Content-Length: 2\r\n\r\n{{}}");
            check(input.as_bytes(), &[Frame::BadHeader, body("{}")]);
        }
    }

    #[test]
    fn a_header_is_found_behind_a_body_that_was_longer_than_announced() {
        check(b"Content-Length: 1\r\n\r\n{}Content-Length: 2\r\n\r\n[]", &[body("{"), body("[]")]);
        check(
            b"Content-Length: 1\r\n\r\n{\nxx\ncoContent-Length: 2\r\nA: b\r\n\r\n[]",
            &[body("{"), Frame::BadHeader, body("[]")],
        );
    }

    #[test]
    fn long_bodies_are_skipped() {
        let length = LONGEST_BODY + 1;
        let head = format!("Content-Length: {length}\r\n\r\n");
        let tail = "Content-Length: 2\r\n\r\n{}";
        let input = io::Cursor::new(head).chain(io::repeat(b'x').take(length)).chain(io::Cursor::new(tail));
        let mut reader = Reader::new(io::BufReader::new(input));
        assert_eq!(reader.next().unwrap(), Some(Frame::TooLong(length)));
        assert_eq!(reader.next().unwrap(), Some(body("{}")));
        assert_eq!(reader.next().unwrap(), None);
    }

    #[test]
    fn a_length_beyond_every_integer_is_only_too_long() {
        check(b"Content-Length: 1000000000000000000000000000000\r\n\r\nxx", &[Frame::TooLong(u64::MAX)]);
    }

    #[test]
    fn endless_headers_are_bad() {
        let mut input = b"A: b\r\n".repeat(MOST_HEADER_LINES);
        input.extend(b"x".repeat(5000));
        input.extend(b"Content-Length: 2\r\n\r\n{}");
        check(&input, &[Frame::BadHeader, body("{}")]);
    }

    #[test]
    fn a_header_is_found_wherever_the_bounded_line_was_cut() {
        for junk in LONGEST_HEADER_LINE as usize - 30..LONGEST_HEADER_LINE as usize + 30 {
            let input = ["%".repeat(junk).as_bytes(), b"Content-Length: 2\r\n\r\n{}"].concat();
            let mut reader = Reader::new(&input[..]);
            let frames: Vec<_> = std::iter::from_fn(|| reader.next().unwrap()).collect();
            assert_eq!(frames.last(), Some(&body("{}")), "{junk}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let mut bytes = Vec::new();
        write(&mut bytes, b"[1]").unwrap();
        check(&bytes, &[body("[1]")]);
    }
}
