//! Records out of a byte stream, block by block.

use super::PerfDataError;
use super::bytes::Order;
use super::chains::ChainPrint;
use super::scanner::Scanner;
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

/// The prints of the chains of samples, in their order.
pub(crate) type Prints<'a> = std::slice::Iter<'a, ChainPrint>;

/// Takes records.
pub(crate) trait Visit {
    /// Takes the whole records that `bytes` start with, up to one with a payload; `Err` ends the reading. `prints` gives
    /// those of the samples' chains in their order, if it gives any.
    fn block(&mut self, bytes: &[u8], offset: u64, prints: &mut Prints<'_>) -> Result<Progress, PerfDataError>;

    /// What finds the chains of samples ahead of [`Self::block`], where that can be known.
    fn scanner(&mut self) -> Option<Scanner>;

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
    /// Those of the samples that end in it, if they were looked for.
    prints: Vec<ChainPrint>,
}

impl Block {
    fn new(size: usize) -> Block {
        Block { buffer: vec![0; HEADROOM + size], start: HEADROOM, end: HEADROOM, prints: Vec::new() }
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
    mut prints: Prints<'_>,
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
        let rest = rest.get(part..).unwrap_or(&[]);
        let progress = visitor.block(rest, offset.saturating_add(used as u64), &mut prints)?;
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
        let taken =
            take(visitor, self.block.bytes(), self.offset, self.payload, self.keeps_payload(), Prints::default())?;
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
        let mut left = self.block.bytes().to_vec();
        let Blocks { source, offset, limit, payload, .. } = self;
        let limit = *limit;
        let mut bad_size = None;
        // Where the next block begins.
        let mut next = offset.saturating_add(left.len() as u64);
        let skip = AtomicU64::new(next);
        let scanner = visitor.scanner().filter(|_| left.is_empty());
        std::thread::scope(|scope| {
            // Dropped when the records end early, which ends the thread.
            let (empty, to_fill) = mpsc::channel();
            let (filled, blocks) = mpsc::channel();
            let ahead = ReadAhead { source, limit, skip: &skip, scanner, to_fill, filled };
            std::thread::Builder::new().name("reading".into()).spawn_scoped(scope, || ahead.run())?;
            let refill = |block: Block| {
                // If the thread has ended there is nothing more to fill.
                let _ = empty.send(block);
            };
            (0..READ_AHEAD).for_each(|_| refill(Block::new(size)));
            for filled in blocks {
                let (mut block, position) = filled?;
                // The thread may have left out some of a payload.
                *payload = payload.saturating_sub(position.saturating_sub(next));
                next = position.saturating_add(block.bytes().len() as u64);
                block.put_in_front(&left);
                *offset = position.saturating_sub(left.len() as u64);
                let taken = take(visitor, block.bytes(), *offset, *payload, keeps_payload, block.prints.iter())?;
                *offset = offset.saturating_add(taken.used as u64);
                *payload = taken.payload;
                left.clear();
                left.extend_from_slice(block.bytes().get(taken.used..).unwrap_or(&[]));
                if let Some(size) = taken.bad_size {
                    bad_size = Some(size);
                    break;
                }
                skip.fetch_max(offset.saturating_add(*payload), Ordering::Relaxed);
                block.clear(&[]);
                refill(block);
                monitor.progress(*offset, limit.unwrap_or(0))?;
            }
            Ok::<_, PerfDataError>(())
        })?;
        if let Some(size) = bad_size {
            return Ok(End::BadSize { offset: self.offset, size });
        }
        self.block.clear(&left);
        self.seek_behind_payload()?;
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
    fn seek_behind_payload(&mut self) -> io::Result<()> {
        if let Source::File(file) = &mut self.source
            && self.payload > 0
        {
            self.offset = self.offset.saturating_add(std::mem::take(&mut self.payload));
            file.seek(SeekFrom::Start(self.offset))?;
        }
        Ok(())
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
    scanner: Option<Scanner>,
    to_fill: mpsc::Receiver<Block>,
    /// Blocks with the positions of their first bytes.
    filled: mpsc::Sender<io::Result<(Block, u64)>>,
}

impl ReadAhead<'_, '_> {
    /// Fills blocks until the input or its records end, or nobody takes them any more.
    fn run(mut self) {
        let mut position = self.skip.load(Ordering::Relaxed);
        while let Ok(mut block) = self.to_fill.recv() {
            let start = self.seek(position);
            let read = start.and_then(|start| Ok((start, fill(&mut block, self.source, start, self.limit)?)));
            let message = match read {
                Ok((_, 0)) => return,
                Ok((start, count)) => {
                    if let Some(scanner) = &mut self.scanner {
                        let mut prints = std::mem::take(&mut block.prints);
                        prints.clear();
                        scanner.scan(start - position, block.bytes(), &mut prints);
                        block.prints = prints;
                    }
                    position = start.saturating_add(count as u64);
                    Ok((block, start))
                }
                Err(error) => Err(error),
            };
            if self.filled.send(message).is_err() {
                return;
            }
        }
    }

    /// Where to read on from, at `position` or behind it.
    fn seek(&mut self, position: u64) -> io::Result<u64> {
        let target = self.skip.load(Ordering::Relaxed);
        match &mut *self.source {
            Source::File(file) if target > position => file.seek(SeekFrom::Start(target)),
            _ => Ok(position),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use heatline_profile::Silent;
    use std::io::Cursor;

    /// Notes positions and sizes of all records, and how many bytes of payloads it was handed.
    #[derive(Default, PartialEq, Debug)]
    struct Notes {
        records: Vec<(u64, usize)>,
        payload: u64,
    }

    impl Visit for Notes {
        fn block(&mut self, bytes: &[u8], offset: u64, _: &mut Prints<'_>) -> Result<Progress, PerfDataError> {
            let mut progress = Progress::default();
            while progress.payload == 0 {
                let rest = bytes.get(progress.used..).unwrap_or(&[]);
                match Record::split(rest, offset + progress.used as u64, Order::Little) {
                    Ok(Some((record, size))) => {
                        self.records.push((record.offset, size));
                        progress.payload = payload_size(&record, Order::Little);
                        progress.used += size;
                    }
                    Ok(None) => break,
                    Err(size) => {
                        progress.bad_size = Some(size);
                        break;
                    }
                }
            }
            Ok(progress)
        }

        fn scanner(&mut self) -> Option<Scanner> {
            None
        }

        fn payload(&mut self, bytes: &[u8]) {
            self.payload += bytes.len() as u64;
        }
    }

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        [&kind.to_le_bytes()[..], &[0, 0], &(body.len() as u16 + 8).to_le_bytes(), body].concat()
    }

    /// Records of many sizes with a payload of several blocks, and one that ends with the file.
    fn recording() -> (Vec<u8>, Notes) {
        let (mut bytes, mut notes) = (Vec::new(), Notes::default());
        let mut add = |record: Vec<u8>, payload: usize| {
            notes.records.push((bytes.len() as u64, record.len()));
            bytes.extend(record);
            bytes.resize(bytes.len() + payload, 0xff);
        };
        for number in 0..200usize {
            add(record(9, &vec![1; number * 131 % 60_000]), 0);
            if [50, 51, 199].contains(&number) {
                let size = 2_500_001 * (number % 3);
                add(record(record_type::AUXTRACE, &(size as u64).to_le_bytes()), size);
            }
        }
        (bytes, notes)
    }

    #[test]
    fn reading_ahead_gives_the_records_of_reading_block_by_block_and_leaves_payloads_out() {
        let (bytes, expected) = recording();
        let limit = Some(bytes.len() as u64);
        assert!(bytes.len() as u64 > WORTH_A_THREAD);
        for size in [BLOCK, 5_000] {
            let (mut ahead, mut plain) = (Notes::default(), Notes::default());
            let mut file = Cursor::new(&bytes);
            let end = Blocks::sized(size, Source::File(&mut file), 0, limit).walk(&mut ahead, &Silent).unwrap();
            assert_eq!((end, &ahead), (End::Complete, &expected));
            let mut file = Cursor::new(&bytes);
            let mut blocks = Blocks::sized(size, Source::File(&mut file), 0, limit);
            let end = std::iter::repeat_with(|| blocks.walk_block(&mut plain).unwrap()).flatten().next();
            assert_eq!((end, &plain), (Some(End::Complete), &expected));
        }
    }

    #[test]
    fn a_stream_hands_payloads_on() {
        let (bytes, expected) = recording();
        let mut notes = Notes::default();
        let end = Blocks::new(Source::Stream(&mut bytes.as_slice()), 0, None).walk(&mut notes, &Silent).unwrap();
        let whole: usize = expected.records.iter().map(|record| record.1).sum();
        assert_eq!((end, &notes.records), (End::Complete, &expected.records));
        assert_eq!(notes.payload, (bytes.len() - whole) as u64);
    }

    #[test]
    fn a_cut_or_damaged_input_says_where_it_ended() {
        let (bytes, expected) = recording();
        let walk = |bytes: &[u8]| {
            let mut notes = Notes::default();
            let mut file = Cursor::new(bytes);
            let end = Blocks::new(Source::File(&mut file), 0, None).walk(&mut notes, &Silent).unwrap();
            (end, notes.records.len())
        };
        let &(last, _) = expected.records.last().unwrap();
        assert_eq!(walk(&bytes[..last as usize + 9]), (End::Cut { offset: last }, expected.records.len() - 1));
        let mut damaged = bytes.clone();
        let (offset, _) = expected.records[150];
        damaged[offset as usize + 6..][..2].fill(0);
        assert_eq!(walk(&damaged), (End::BadSize { offset, size: 0 }, 150));
    }
}
