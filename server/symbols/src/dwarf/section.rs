//! A section of a file that is read where it is looked at, and the reader of it that `gimli` works with.
//!
//! The debug information of a large program is many times larger than what a profile's addresses need of it. So a
//! section is a row of blocks, each of which is read when a reader first gets there, and several at once where the one
//! before is there already. A reader holds the rest of its block as a slice; only at the end of a block it does more
//! than a reader of a slice would.

use super::format::{Error, Reader, ReaderOffsetId, RunTimeEndian};
use crate::storage::Source;
use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

/// The bytes of a block. The roots of all units are looked at, and little around them.
const BLOCK: usize = 1 << 10;
/// The blocks that are read at once where reading goes on.
const AHEAD: usize = 32;

/// A section, with what was read of it so far.
pub(super) struct Section {
    source: Source,
    endian: RunTimeEndian,
    blocks: Vec<OnceLock<Box<Block>>>,
}

struct Block {
    bytes: Vec<u8>,
    /// The text that begins in this block and ends in a later one, with its terminator.
    text: OnceLock<Box<[u8]>>,
}

impl Section {
    pub fn new(source: Source, endian: RunTimeEndian) -> Section {
        let count = match &source {
            Source::Whole(_) => 0,
            Source::Stored { size, .. } => size.div_ceil(BLOCK),
        };
        Section { source, endian, blocks: (0..count).map(|_| OnceLock::new()).collect() }
    }

    /// A reader of all of it.
    pub fn part(&self) -> Part<'_> {
        match &self.source {
            Source::Whole(bytes) => Part { section: self, window: bytes, next: bytes.len(), rest: 0 },
            Source::Stored { size, .. } => Part { section: self, window: &[], next: 0, rest: *size },
        }
    }

    /// The bytes from `position` to the end of their block.
    fn rest_of_block(&self, position: usize) -> Result<&[u8], Error> {
        let block = self.block(position / BLOCK).ok_or(Error::Io)?;
        block.bytes.get(position % BLOCK..).filter(|bytes| !bytes.is_empty()).ok_or(Error::Io)
    }

    fn block(&self, number: usize) -> Option<&Block> {
        let cell = self.blocks.get(number)?;
        if cell.get().is_none() {
            self.read(number)?;
        }
        cell.get().map(|block| &**block)
    }

    /// Reads a block, and those that follow where the one before was read already.
    fn read(&self, number: usize) -> Option<()> {
        let Source::Stored { storage, offset, size } = &self.source else { return None };
        let is_read = |number: usize| self.blocks.get(number).is_some_and(|block| block.get().is_some());
        let goes_on = number.checked_sub(1).is_some_and(is_read);
        let most = if goes_on { AHEAD } else { 1 };
        let count = 1 + (number + 1..self.blocks.len()).take(most - 1).take_while(|next| !is_read(*next)).count();
        let start = number.checked_mul(BLOCK)?;
        let mut bytes = [0; AHEAD * BLOCK];
        let bytes = bytes.get_mut(..(count * BLOCK).min(size.checked_sub(start)?))?;
        storage.read_at(offset.checked_add(start as u64)?, bytes).ok()?;
        for (cell, bytes) in self.blocks.get(number..)?.iter().zip(bytes.chunks(BLOCK)) {
            // Whoever else has read it in the meantime has read the same.
            let _ = cell.set(Box::new(Block { bytes: bytes.to_vec(), text: OnceLock::new() }));
        }
        Some(())
    }

    /// A text without its terminator that begins in one block and ends in another. Linkers let texts begin within
    /// each other, but not more than one of them crosses the end of a block.
    fn long_text(&self, position: usize, length: usize) -> Option<&[u8]> {
        let block = self.block(position / BLOCK)?;
        let within = position % BLOCK;
        let start = block.bytes.iter().rposition(|byte| *byte == 0).map_or(0, |terminator| terminator + 1);
        let text = match block.text.get() {
            Some(text) => text,
            None => {
                let mut part = self.part();
                part.skip(position - within + start).ok()?;
                let length = (position + length).checked_sub(position - within + start)?;
                let mut bytes = vec![0; length];
                part.read_slice(&mut bytes).ok()?;
                block.text.get_or_init(|| bytes.into())
            }
        };
        let start = within.checked_sub(start)?;
        text.get(start..start.checked_add(length)?)
    }
}

/// A part of a section, from a position that moves as it is read.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    section: &'a Section,
    /// The next bytes: what the block still has of them.
    window: &'a [u8],
    /// The position behind the window.
    next: usize,
    /// How many bytes follow the window.
    rest: usize,
}

impl<'a> Part<'a> {
    fn position(&self) -> usize {
        self.next - self.window.len()
    }

    fn end(&self) -> Error {
        Error::UnexpectedEof(self.offset_id())
    }

    /// Moves the window on to the next bytes; there must be none left in it.
    #[cold]
    fn refill(&mut self) -> Result<(), Error> {
        if self.rest == 0 {
            return Err(self.end());
        }
        let bytes = self.section.rest_of_block(self.next)?;
        self.window = bytes.get(..self.rest).unwrap_or(bytes);
        self.next += self.window.len();
        self.rest -= self.window.len();
        Ok(())
    }

    /// Takes up to `most` bytes; fewer where the block ends.
    fn take(&mut self, most: usize) -> Result<&'a [u8], Error> {
        if self.window.is_empty() {
            self.refill()?;
        }
        let (taken, window) = self.window.split_at(most.min(self.window.len()));
        self.window = window;
        Ok(taken)
    }

    /// The next bytes, if so many of them follow each other in the block or are read from several.
    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        match self.window.split_first_chunk() {
            Some((bytes, window)) => {
                self.window = window;
                Ok(*bytes)
            }
            None => {
                let mut bytes = [0; N];
                self.read_slice(&mut bytes)?;
                Ok(bytes)
            }
        }
    }

    /// A text, as long as the section lives; empty for what cannot be read any more.
    pub fn text(mut self) -> &'a [u8] {
        if self.window.is_empty() && self.rest > 0 && self.refill().is_err() {
            return &[];
        }
        match self.rest {
            0 => self.window,
            rest => self.section.long_text(self.position(), self.window.len() + rest).unwrap_or_default(),
        }
    }
}

impl fmt::Debug for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes from {:#x}", self.len(), self.position())
    }
}

impl PartialEq for Part<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.section, other.section) && self.position() == other.position() && self.len() == other.len()
    }
}

impl<'a> Reader for Part<'a> {
    type Endian = RunTimeEndian;
    type Offset = usize;

    fn endian(&self) -> RunTimeEndian {
        self.section.endian
    }

    fn len(&self) -> usize {
        self.window.len() + self.rest
    }

    fn is_empty(&self) -> bool {
        self.window.is_empty() && self.rest == 0
    }

    fn empty(&mut self) {
        (self.next, self.window, self.rest) = (self.position(), &[], 0);
    }

    fn truncate(&mut self, length: usize) -> Result<(), Error> {
        match length.checked_sub(self.window.len()) {
            Some(rest) if rest > self.rest => return Err(self.end()),
            Some(rest) => self.rest = rest,
            None => {
                self.next = self.position() + length;
                (self.window, self.rest) = (self.window.get(..length).unwrap_or_default(), 0);
            }
        }
        Ok(())
    }

    fn offset_from(&self, base: &Self) -> usize {
        self.position() - base.position()
    }

    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId(self.position() as u64)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        let offset = usize::try_from(id.0).ok()?.checked_sub(self.position())?;
        (offset <= self.len()).then_some(offset)
    }

    fn find(&self, byte: u8) -> Result<usize, Error> {
        let mut part = *self;
        let mut passed = 0;
        while !part.is_empty() {
            let bytes = part.take(usize::MAX)?;
            if let Some(found) = memchr::memchr(byte, bytes) {
                return Ok(passed + found);
            }
            passed += bytes.len();
        }
        Err(self.end())
    }

    #[inline]
    fn skip(&mut self, length: usize) -> Result<(), Error> {
        if let Some(window) = self.window.get(length..) {
            self.window = window;
            return Ok(());
        }
        let further = length - self.window.len();
        if further > self.rest {
            return Err(self.end());
        }
        self.window = &[];
        self.next += further;
        self.rest -= further;
        Ok(())
    }

    fn split(&mut self, length: usize) -> Result<Self, Error> {
        let mut first = *self;
        first.truncate(length)?;
        self.skip(length)?;
        Ok(first)
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>, Error> {
        let mut part = *self;
        if part.window.is_empty() && part.rest > 0 {
            part.refill()?;
        }
        if part.rest == 0 {
            return Ok(Cow::Borrowed(part.window));
        }
        let mut bytes = vec![0; part.len()];
        part.read_slice(&mut bytes)?;
        Ok(Cow::Owned(bytes))
    }

    fn to_string(&self) -> Result<Cow<'_, str>, Error> {
        match self.to_slice()? {
            Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| Error::BadUtf8),
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Error::BadUtf8),
        }
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>, Error> {
        Ok(match self.to_slice()? {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        })
    }

    fn read_slice(&mut self, buffer: &mut [u8]) -> Result<(), Error> {
        if buffer.len() > self.len() {
            return Err(self.end());
        }
        let mut left = buffer;
        while !left.is_empty() {
            let bytes = self.take(left.len())?;
            let (filled, after) = left.split_at_mut(bytes.len());
            filled.copy_from_slice(bytes);
            left = after;
        }
        Ok(())
    }

    #[inline]
    fn read_u8(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    fn read_i8(&mut self) -> Result<i8, Error> {
        self.array::<1>().map(|[byte]| byte as i8)
    }

    #[inline]
    fn read_u16(&mut self) -> Result<u16, Error> {
        self.array().map(|bytes| self.pick(u16::from_le_bytes(bytes), u16::from_be_bytes(bytes)))
    }

    #[inline]
    fn read_u32(&mut self) -> Result<u32, Error> {
        self.array().map(|bytes| self.pick(u32::from_le_bytes(bytes), u32::from_be_bytes(bytes)))
    }

    #[inline]
    fn read_u64(&mut self) -> Result<u64, Error> {
        self.array().map(|bytes| self.pick(u64::from_le_bytes(bytes), u64::from_be_bytes(bytes)))
    }
}

impl Part<'_> {
    #[inline]
    fn pick<T>(&self, little: T, big: T) -> T {
        match self.section.endian {
            RunTimeEndian::Little => little,
            RunTimeEndian::Big => big,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::EndianSlice;
    use super::*;
    use crate::Storage;
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts the bytes that are asked for.
    struct Counted(Vec<u8>, AtomicUsize);

    impl Storage for Counted {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            self.1.fetch_add(buffer.len(), Ordering::Relaxed);
            self.0.read_at(offset, buffer)
        }
    }

    fn stored(bytes: Vec<u8>, offset: usize) -> (Section, Arc<Counted>) {
        let size = bytes.len() - offset;
        let storage = Arc::new(Counted(bytes, AtomicUsize::new(0)));
        let source = Source::Stored { storage: storage.clone(), offset: offset as u64, size };
        (Section::new(source, RunTimeEndian::Big), storage)
    }

    /// Bytes that repeat only after a prime number of them, without zeros.
    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|at| (at % 251) as u8 + 1).collect()
    }

    #[test]
    fn numbers_and_texts_are_read_across_the_ends_of_blocks() {
        let mut content = bytes(5 * BLOCK + 17);
        content[3 * BLOCK - 5] = 0;
        content[4 * BLOCK + 9] = 0;
        let (section, _) = stored(content.clone(), 7);
        let slice = EndianSlice::new(&content[7..], RunTimeEndian::Big);
        // Every way of reading, at every place near the ends of two blocks and of the section.
        let places = [BLOCK, 2 * BLOCK, slice.len()].into_iter().flat_map(|end| end.saturating_sub(20)..=end);
        for place in places.filter(|place| *place <= slice.len()) {
            let (mut ours, mut theirs) = (section.part(), slice);
            assert_eq!(ours.skip(place).is_ok(), theirs.skip(place).is_ok());
            assert_eq!(ours.len(), theirs.len());
            assert_eq!(ours.offset_from(&section.part()), place);
            assert_eq!(ours.clone().read_u8().ok(), theirs.clone().read_u8().ok());
            assert_eq!(ours.clone().read_u16().ok(), theirs.clone().read_u16().ok());
            assert_eq!(ours.clone().read_u32().ok(), theirs.clone().read_u32().ok());
            assert_eq!(ours.clone().read_u64().ok(), theirs.clone().read_u64().ok());
            assert_eq!(ours.find(0).ok(), Reader::find(&theirs, 0).ok());
            for length in [0, 1, 13, 19, 2 * BLOCK] {
                let (mut rest, mut other) = (ours, theirs);
                let (first, wanted) = (rest.split(length), Reader::split(&mut other, length));
                assert_eq!(first.is_ok(), wanted.is_ok());
                let (Ok(first), Ok(wanted)) = (first, wanted) else { continue };
                assert_eq!(first.to_slice().unwrap(), wanted.slice());
                assert_eq!(rest.to_slice().unwrap(), other.slice());
                let mut cut = ours;
                cut.truncate(length).unwrap();
                assert_eq!(cut, first);
            }
            let text = ours.clone().read_null_terminated_slice().ok().map(Part::text);
            assert_eq!(text, theirs.clone().read_null_terminated_slice().ok().map(|text| text.slice()));
        }
    }

    #[test]
    fn texts_within_each_other_that_cross_blocks_are_all_whole() {
        let mut content = bytes(4 * BLOCK);
        content[100] = 0;
        content[3 * BLOCK + 1] = 0;
        let (section, _) = stored(content.clone(), 0);
        for start in [BLOCK - 1, 101, 500, 2 * BLOCK + 3, BLOCK, 300] {
            let mut part = section.part();
            part.skip(start).unwrap();
            let text = part.read_null_terminated_slice().unwrap().text();
            assert_eq!(text, &content[start..3 * BLOCK + 1], "from {start}");
        }
    }

    #[test]
    fn only_what_is_looked_at_is_read_and_once() {
        let (section, storage) = stored(bytes(1000 * BLOCK), 0);
        let read = || storage.1.load(Ordering::Relaxed);
        let mut part = section.part();
        part.skip(500 * BLOCK + 10).unwrap();
        assert_eq!(read(), 0);
        part.clone().read_u32().unwrap();
        part.clone().read_u64().unwrap();
        assert_eq!(read(), BLOCK);
        let mut rest = vec![0; 3 * BLOCK];
        part.read_slice(&mut rest).unwrap();
        assert_eq!(read(), (1 + AHEAD) * BLOCK, "where reading goes on, more is read at once");
    }

    #[test]
    fn a_file_that_shrank_is_an_error() {
        let (mut section, _) = stored(bytes(10), 0);
        if let Source::Stored { size, .. } = &mut section.source {
            *size = 20;
        }
        assert_eq!(section.part().read_u8(), Err(Error::Io));
        assert_eq!(section.part().text(), b"");
    }
}
