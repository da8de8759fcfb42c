//! Records out of a byte stream, block by block.

use super::PerfDataError;
use super::bytes::Order;
use super::state::record_type;
use crate::ReadSeek;
use heatline_profile::Monitor;
use std::io::{self, ErrorKind, Read, SeekFrom};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

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
    Stream(&'a mut (dyn Read + Send)),
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

/// Inputs at least this large are read by one thread while another takes their records.
const WORTH_A_THREAD: u64 = 2 << 20;

/// Blocks that are read or wait while the records of one are taken.
const READ_AHEAD: usize = 4;

/// Room in front of a block for the record that began in the block before.
const HEADROOM: usize = 1 << 16;

/// A part of the input.
struct Block {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Block {
    fn new(size: usize) -> Block {
        Block { buffer: vec![0; HEADROOM + size], start: HEADROOM, end: HEADROOM }
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or(&[])
    }

    /// Empties the block except for what is left of the one before.
    fn clear(&mut self, left: &[u8]) {
        self.end = HEADROOM;
        self.put_in_front(left);
    }

    /// Puts what is left of the block before in front.
    fn put_in_front(&mut self, left: &[u8]) {
        debug_assert!(left.len() <= HEADROOM, "a record has at most 64 KiB");
        self.start = HEADROOM.saturating_sub(left.len());
        if let Some(room) = self.buffer.get_mut(self.start..HEADROOM)
            && room.len() == left.len()
        {
            room.copy_from_slice(left);
        }
    }
}

/// What became of a block.
#[derive(Clone, Copy, Default)]
struct Taken {
    used: usize,
    bad_size: Option<u16>,
    /// How many bytes behind the block belong to a payload still.
    payload: u64,
}

/// Hands the records of a block to `visitor`. `payload` bytes at its front belong to the payload of an earlier record.
fn take(
    visitor: &mut impl Visit,
    bytes: &[u8],
    offset: u64,
    mut payload: u64,
    keeps_payload: bool,
) -> Result<Taken, PerfDataError> {
    let mut used = 0;
    loop {
        let rest = bytes.get(used..).unwrap_or(&[]);
        let part = usize::try_from(payload).unwrap_or(usize::MAX).min(rest.len());
        if keeps_payload && part > 0 {
            visitor.payload(rest.get(..part).unwrap_or(&[]));
        }
        used += part;
        payload -= part as u64;
        if payload > 0 {
            return Ok(Taken { used, bad_size: None, payload });
        }
        let progress = visitor.block(rest.get(part..).unwrap_or(&[]), offset.saturating_add(used as u64))?;
        used += progress.used;
        payload = progress.payload;
        if payload == 0 {
            return Ok(Taken { used, bad_size: progress.bad_size, payload });
        }
    }
}

/// An input, block by block.
pub(crate) struct Blocks<'a> {
    source: Source<'a>,
    /// What is left of the last block lies in front, ready for the next one.
    block: Block,
    /// Position in the input of the first byte of the block.
    offset: u64,
    /// Where the records end, if that was announced.
    limit: Option<u64>,
    /// How many bytes from `offset` on belong to a payload.
    payload: u64,
}

impl<'a> Blocks<'a> {
    /// Records from `offset`, where `source` stands, up to `limit`.
    pub fn new(source: Source<'a>, offset: u64, limit: Option<u64>) -> Self {
        // A small input needs no more room than it has bytes.
        let size = limit.and_then(|limit| usize::try_from(limit.saturating_sub(offset)).ok()).unwrap_or(BLOCK);
        Self::sized(size.clamp(1 << 12, BLOCK), source, offset, limit)
    }

    /// As [`Self::new`], reading so many bytes at once.
    pub fn sized(size: usize, source: Source<'a>, offset: u64, limit: Option<u64>) -> Self {
        Blocks { source, block: Block::new(size), offset, limit, payload: 0 }
    }

    /// Position of the next record.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Hands all records to `visitor`.
    pub fn walk(&mut self, visitor: &mut impl Visit, monitor: &dyn Monitor) -> Result<End, PerfDataError> {
        if self.limit.is_none_or(|limit| limit.saturating_sub(self.offset) >= WORTH_A_THREAD) {
            return self.walk_read_ahead(visitor, monitor);
        }
        loop {
            if let Some(end) = self.walk_block(visitor)? {
                return Ok(end);
            }
            monitor.progress(self.offset, self.limit.unwrap_or(0))?;
        }
    }

    /// Hands the records of about one block to `visitor`; how it ended if there are no more.
    pub fn walk_block(&mut self, visitor: &mut impl Visit) -> Result<Option<End>, PerfDataError> {
        let position = self.offset.saturating_add(self.block.bytes().len() as u64);
        if fill(&mut self.block, &mut self.source, position, self.limit)? == 0 {
            return Ok(Some(self.end()?));
        }
        let taken = take(visitor, self.block.bytes(), self.offset, self.payload, self.keeps_payload())?;
        self.advance(taken);
        if let Some(size) = taken.bad_size {
            return Ok(Some(End::BadSize { offset: self.offset, size }));
        }
        let left = self.block.bytes().get(taken.used..).unwrap_or(&[]).to_vec();
        self.block.clear(&left);
        self.seek_behind_payload()?;
        Ok(None)
    }

    /// This thread takes records while another reads ahead.
    fn walk_read_ahead(&mut self, visitor: &mut impl Visit, monitor: &dyn Monitor) -> Result<End, PerfDataError> {
        let keeps_payload = self.keeps_payload();
        let size = self.block.buffer.len() - HEADROOM;
        let (limit, mut expected) = (self.limit, self.offset.saturating_add(self.block.bytes().len() as u64));
        let skip = AtomicU64::new(expected);
        let (empty, to_fill) = mpsc::channel::<Block>();
        let (filled, blocks) = mpsc::channel();
        for _ in 0..READ_AHEAD {
            // The receiver lives.
            let _ = empty.send(Block::new(size));
        }
        let mut left = self.block.bytes().to_vec();
        let mut bad_size = None;
        let source = &mut self.source;
        std::thread::scope(|scope| {
            let ahead = ReadAhead { source, limit, skip: &skip, to_fill, filled };
            std::thread::Builder::new().name("reading".into()).spawn_scoped(scope, || ahead.run())?;
            // Dropped when the records end early, which ends the thread.
            let empty = empty;
            for block in blocks {
                let (mut block, position): (Block, u64) = block?;
                // Where the thread has skipped some of a payload.
                self.payload = self.payload.saturating_sub(position - expected);
                expected = position.saturating_add(block.bytes().len() as u64);
                block.put_in_front(&left);
                self.offset = position.saturating_sub(left.len() as u64);
                let taken = take(visitor, block.bytes(), self.offset, self.payload, keeps_payload)?;
                self.offset = self.offset.saturating_add(taken.used as u64);
                self.payload = taken.payload;
                left.clear();
                left.extend_from_slice(block.bytes().get(taken.used..).unwrap_or(&[]));
                if let Some(size) = taken.bad_size {
                    bad_size = Some(size);
                    break;
                }
                if !keeps_payload && self.payload > 0 {
                    skip.fetch_max(self.offset.saturating_add(self.payload), Ordering::Relaxed);
                }
                block.clear(&[]);
                // If the thread has ended there is nothing more to fill.
                let _ = empty.send(block);
                monitor.progress(self.offset, self.limit.unwrap_or(0))?;
            }
            Ok::<_, PerfDataError>(())
        })?;
        if let Some(size) = bad_size {
            return Ok(End::BadSize { offset: self.offset, size });
        }
        self.block.clear(&left);
        Ok(self.end()?)
    }

    /// Whether payloads must be handed on now, as the input cannot be read again.
    fn keeps_payload(&self) -> bool {
        matches!(self.source, Source::Stream(_))
    }

    fn advance(&mut self, taken: Taken) {
        self.offset = self.offset.saturating_add(taken.used as u64);
        self.payload = taken.payload;
    }

    /// Goes on behind a payload without reading it, where that can be done.
    fn seek_behind_payload(&mut self) -> io::Result<bool> {
        let Source::File(file) = &mut self.source else { return Ok(false) };
        if self.payload == 0 {
            return Ok(false);
        }
        self.offset = self.offset.saturating_add(std::mem::take(&mut self.payload));
        file.seek(SeekFrom::Start(self.offset))?;
        Ok(true)
    }

    /// How it ended, when there is nothing more to read.
    fn end(&mut self) -> io::Result<End> {
        let whole = self.block.bytes().is_empty() && self.payload == 0;
        let reached = match (&mut self.source, self.limit) {
            (_, Some(limit)) => self.offset == limit,
            (Source::File(file), None) => self.offset <= file.seek(SeekFrom::End(0))?,
            (Source::Stream(_), None) => true,
        };
        Ok(if whole && reached { End::Complete } else { End::Cut { offset: self.offset } })
    }
}

/// The thread that reads blocks before they are asked for.
struct ReadAhead<'r, 's> {
    source: &'r mut Source<'s>,
    limit: Option<u64>,
    /// What lies in front of this position need not be read, where that can be done.
    skip: &'r AtomicU64,
    to_fill: mpsc::Receiver<Block>,
    /// Blocks with the positions of their first bytes.
    filled: mpsc::Sender<io::Result<(Block, u64)>>,
}

impl ReadAhead<'_, '_> {
    /// Fills blocks until the input or its records end, or nobody takes them any more.
    fn run(self) {
        let mut position = self.skip.load(Ordering::Relaxed);
        for mut block in &self.to_fill {
            let read = Self::seek(self.source, self.skip.load(Ordering::Relaxed), &mut position)
                .and_then(|()| fill(&mut block, self.source, position, self.limit));
            let start = position;
            let message = match read {
                Ok(0) => return,
                Ok(count) => {
                    position = position.saturating_add(count as u64);
                    Ok((block, start))
                }
                Err(error) => Err(error),
            };
            if self.filled.send(message).is_err() {
                return;
            }
        }
    }

    fn seek(source: &mut Source<'_>, target: u64, position: &mut u64) -> io::Result<()> {
        if let Source::File(file) = source
            && target > *position
        {
            *position = file.seek(SeekFrom::Start(target))?;
        }
        Ok(())
    }
}

/// Reads on, from `position`, until the block is full or the input or its records end. Says how many bytes came.
fn fill(block: &mut Block, source: &mut Source<'_>, position: u64, limit: Option<u64>) -> io::Result<usize> {
    let left = limit.map_or(u64::MAX, |limit| limit.saturating_sub(position));
    let room = (block.buffer.len() - HEADROOM).min(usize::try_from(left).unwrap_or(usize::MAX));
    let mut count = 0;
    while count < room {
        let target = block.buffer.get_mut(HEADROOM + count..HEADROOM + room).unwrap_or(&mut []);
        match source.read(target)?.min(room - count) {
            0 => break,
            read => count += read,
        }
    }
    block.end = HEADROOM + count;
    Ok(count)
}

/// How many bytes follow a record that its size does not count.
pub(crate) fn payload_size(record: &Record<'_>, order: Order) -> u64 {
    match record.kind {
        record_type::AUXTRACE => order.u64_at(record.body, 0).unwrap_or(0),
        record_type::TRACING_DATA => order.u32_at(record.body, 0).map_or(0, |size| u64::from(size).next_multiple_of(8)),
        _ => 0,
    }
}
