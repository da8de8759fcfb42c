//! Records out of a byte stream, block by block.

use super::PerfDataError;
use super::bytes::Order;
use super::state::record_type;
use crate::ReadSeek;
use heatline_profile::Monitor;
use std::io::{self, ErrorKind, Read, SeekFrom};

/// Bytes read at once; a few of these fit a processor's cache.
const BLOCK: usize = 256 << 10;

/// The size of a record header: type, misc, size.
const HEADER: usize = 8;

/// One record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    /// Position of its header in the input.
    pub offset: u64,
    pub kind: u32,
    pub misc: u16,
    /// What follows the header.
    pub body: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record that `bytes` start with: `Ok(None)` if they do not hold all of it, `Err` with a size that cannot be.
    #[inline]
    pub fn split(bytes: &'a [u8], offset: u64, order: Order) -> Result<Option<(Record<'a>, usize)>, u16> {
        let Some(&[k0, k1, k2, k3, m0, m1, s0, s1]) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
        let size = order.u16([s0, s1]);
        if usize::from(size) < HEADER {
            return Err(size);
        }
        let Some(body) = bytes.get(HEADER..usize::from(size)) else { return Ok(None) };
        let kind = order.u32([k0, k1, k2, k3]);
        Ok(Some((Record { offset, kind, misc: order.u16([m0, m1]), body }, usize::from(size))))
    }
}

/// How a stream of records ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// With its last record, at the end that was announced, or at the end of the input where none was.
    Complete,
    /// In the middle of a record, or before the end that was announced.
    Cut { offset: u64 },
    /// With a record whose size cannot be, behind which no record can be found.
    BadSize { offset: u64, size: u16 },
}

/// How far a visitor came in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Progress {
    /// The bytes it has taken, whole records.
    pub used: usize,
    /// How many bytes follow the last record that its size does not count.
    pub payload: u64,
    /// The size of the next record if it cannot be.
    pub bad_size: Option<u16>,
}

/// Takes records.
pub(crate) trait Visit {
    /// Takes the whole records that `bytes` start with, up to one with a payload; `Err` ends the reading.
    fn block(&mut self, bytes: &[u8], offset: u64) -> Result<Progress, PerfDataError>;

    /// Takes the next part of the payload of the last record, if the input cannot be read again.
    fn payload(&mut self, bytes: &[u8]);
}

/// Where blocks come from.
pub(crate) enum Source<'a> {
    File(&'a mut dyn ReadSeek),
    Stream(&'a mut dyn Read),
}

impl Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let result = match self {
                Source::File(file) => file.read(buffer),
                Source::Stream(stream) => stream.read(buffer),
            };
            match result {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

/// A window that moves over an input.
pub(crate) struct Blocks<'a> {
    source: Source<'a>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Position in the input of the byte at `start`.
    offset: u64,
    /// Where the records end, if that was announced.
    limit: Option<u64>,
    block: usize,
}

impl<'a> Blocks<'a> {
    /// Records from `offset`, where `source` stands, up to `limit`.
    pub fn new(source: Source<'a>, offset: u64, limit: Option<u64>) -> Self {
        Self::sized(BLOCK, source, offset, limit)
    }

    /// As [`Self::new`], reading so many bytes at once.
    pub fn sized(block: usize, source: Source<'a>, offset: u64, limit: Option<u64>) -> Self {
        // A whole record always fits beside a block.
        let buffer = vec![0; block + (1 << 16)];
        Blocks { source, buffer, start: 0, end: 0, offset, limit, block }
    }

    /// Position of the next record.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Hands all records to `visitor`.
    pub fn walk(&mut self, visitor: &mut impl Visit, monitor: &dyn Monitor) -> Result<End, PerfDataError> {
        loop {
            if let Some(end) = self.walk_block(visitor)? {
                return Ok(end);
            }
            monitor.progress(self.offset, self.limit.unwrap_or(0))?;
        }
    }

    /// Hands the records of about one block to `visitor`; how it ended if there are no more.
    pub fn walk_block(&mut self, visitor: &mut impl Visit) -> Result<Option<End>, PerfDataError> {
        let full = self.fill()?;
        loop {
            let bytes = self.buffer.get(self.start..self.end).unwrap_or(&[]);
            let Progress { used, payload, bad_size } = visitor.block(bytes, self.offset)?;
            self.start += used;
            self.offset += used as u64;
            if let Some(size) = bad_size {
                return Ok(Some(End::BadSize { offset: self.offset, size }));
            }
            if payload > 0 {
                if !self.skip(payload, visitor)? {
                    return Ok(Some(End::Cut { offset: self.offset }));
                }
            } else if full {
                return Ok(None);
            } else {
                return Ok(Some(self.end_at(self.end - self.start)));
            }
        }
    }

    fn end_at(&self, left: usize) -> End {
        let reached = self.offset + left as u64;
        if left > 0 || self.limit.is_some_and(|limit| reached < limit) {
            return End::Cut { offset: self.offset };
        }
        End::Complete
    }

    /// Reads on until the window is full (`true`), or the input or its records end.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < self.block {
            let reached = self.offset + self.end as u64;
            let left = self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(reached));
            let room = (self.buffer.len() - self.end).min(usize::try_from(left).unwrap_or(usize::MAX));
            let target = self.buffer.get_mut(self.end..self.end + room).unwrap_or(&mut []);
            let count = self.source.read(target)?.min(room);
            if count == 0 {
                return Ok(false);
            }
            self.end += count;
        }
        Ok(true)
    }

    /// Passes over what follows a record outside of its size; whether it was all there.
    fn skip(&mut self, count: u64, visitor: &mut impl Visit) -> io::Result<bool> {
        let mut left = match self.limit {
            Some(limit) => count.min(limit.saturating_sub(self.offset)),
            None => count,
        };
        let whole = left == count;
        loop {
            let buffered = usize::try_from(left).unwrap_or(usize::MAX).min(self.end - self.start);
            if matches!(self.source, Source::Stream(_)) {
                visitor.payload(self.buffer.get(self.start..self.start + buffered).unwrap_or(&[]));
            }
            self.start += buffered;
            self.offset += buffered as u64;
            left -= buffered as u64;
            if left == 0 {
                return Ok(whole);
            }
            if let Source::File(file) = &mut self.source {
                let Ok(distance) = i64::try_from(left) else { return Ok(false) };
                file.seek(SeekFrom::Current(distance))?;
                self.offset = self.offset.saturating_add(left);
                return Ok(whole);
            }
            (self.start, self.end) = (0, 0);
            self.end = self.source.read(&mut self.buffer)?;
            if self.end == 0 {
                return Ok(false);
            }
        }
    }
}

/// How many bytes follow a record that its size does not count.
pub(crate) fn payload_size(record: &Record<'_>, order: Order) -> u64 {
    match record.kind {
        record_type::AUXTRACE => order.u64_at(record.body, 0).unwrap_or(0),
        record_type::TRACING_DATA => order.u32_at(record.body, 0).map_or(0, |size| u64::from(size).next_multiple_of(8)),
        _ => 0,
    }
}
