//! The members `<tid>.dat`: sixteen bytes per record, with what belongs to some of them behind.
//!
//! ```text
//! u64 time            nanoseconds of the recorder's clock
//! u64 word            bits 0–1 kind, 2 more, 3–5 always 5, 6–15 depth, 16–63 address or number of an event
//! ```

use crate::perf_data::bytes::Order;
use std::io::{self, Read};

/// Bytes of a record.
pub(super) const RECORD: usize = 16;

/// Bytes read at once; also how far one can look ahead.
const BLOCK: usize = 128 << 10;

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Entry,
    Exit,
    /// Records were lost here; the address is their number.
    Lost,
    /// An event; the address is its number.
    Event,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub time: u64,
    word: u64,
}

impl Record {
    #[inline]
    pub fn kind(self) -> Kind {
        match self.word & 3 {
            0 => Kind::Entry,
            1 => Kind::Exit,
            2 => Kind::Lost,
            _ => Kind::Event,
        }
    }

    /// Whether arguments, a return value or data of an event follow.
    #[inline]
    pub fn has_more(self) -> bool {
        self.word & 4 != 0
    }

    /// Whether it carries the mark that all records have.
    #[inline]
    pub fn is_marked(self) -> bool {
        self.word >> 3 & 7 == 5
    }

    #[inline]
    pub fn depth(self) -> usize {
        (self.word >> 6 & 0x3ff) as usize
    }

    #[inline]
    pub fn address(self) -> u64 {
        self.word >> 16
    }
}

/// The records of one thread, read in blocks.
pub(super) struct Records<'a> {
    input: Box<dyn Read + 'a>,
    order: Order,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Position in the file of the buffer's start.
    base: u64,
    ended: bool,
}

impl<'a> Records<'a> {
    /// From an input that stands at a position of the file. The buffer is lent, since many files are read one after the
    /// other.
    pub fn new(input: Box<dyn Read + 'a>, order: Order, position: u64, mut buffer: Vec<u8>) -> Self {
        buffer.resize(BLOCK, 0);
        Records { input, order, buffer, start: 0, end: 0, base: position, ended: false }
    }

    /// Gives the buffer back.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// The position in the file of the next record.
    pub fn position(&self) -> u64 {
        self.base.saturating_add(self.start as u64)
    }

    /// The next record, without going on to the one behind it.
    #[inline]
    pub fn peek(&mut self) -> io::Result<Option<Record>> {
        if self.end - self.start < RECORD {
            self.fill(RECORD)?;
        }
        Ok(self.at(0))
    }

    /// The bytes at hand, if plain records can be told from their words: from there on, whole records only by chance.
    pub fn plain(&self) -> &[u8] {
        match self.order {
            Order::Little => self.buffer.get(self.start..self.end).unwrap_or_default(),
            Order::Big => &[],
        }
    }

    /// The record that would be so many bytes ahead.
    pub fn peek_at(&mut self, ahead: usize) -> io::Result<Option<Record>> {
        if self.end - self.start < ahead + RECORD {
            self.fill(ahead + RECORD)?;
        }
        Ok(self.at(ahead))
    }

    #[inline]
    fn at(&self, ahead: usize) -> Option<Record> {
        let bytes = self.buffer.get(self.start + ahead..self.end)?;
        let time = self.order.u64(*bytes.first_chunk()?);
        let word = self.order.u64(*bytes.get(8..)?.first_chunk()?);
        Some(Record { time, word })
    }

    /// The half word so many bytes ahead.
    pub fn u16_at(&mut self, ahead: usize) -> io::Result<Option<u16>> {
        if self.end - self.start < ahead + 2 {
            self.fill(ahead + 2)?;
        }
        let bytes = self.buffer.get(self.start + ahead..self.end);
        Ok(bytes.and_then(|bytes| bytes.first_chunk()).map(|bytes| self.order.u16(*bytes)))
    }

    /// Goes on by so many bytes of those that were looked at, or to the end.
    #[inline]
    pub fn advance(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
    }

    /// How many bytes are left, as far as they have been read.
    pub fn left(&self) -> usize {
        self.end - self.start
    }

    #[cold]
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        if self.ended || wanted > BLOCK {
            return Ok(());
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.base = self.base.saturating_add(self.start as u64);
        self.end -= self.start;
        self.start = 0;
        while self.end < BLOCK {
            let Some(room) = self.buffer.get_mut(self.end..) else { break };
            match self.input.read(room) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
