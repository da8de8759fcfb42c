//! Records that `perf record -z` compressed: one zstd stream that runs through all compressed records of a file.

use zstd_safe::{DCtx, InBuffer, OutBuffer};

/// Bytes decompressed at once; with the rest of a record before them there is always room for a whole record.
const ROOM: usize = 256 << 10;

/// The decompressor of one file.
pub(crate) struct Inflater {
    context: DCtx<'static>,
    buffer: Vec<u8>,
    filled: usize,
    broken: bool,
}

impl Default for Inflater {
    fn default() -> Inflater {
        // Room is made when it is needed first.
        Inflater { context: DCtx::create(), buffer: Vec::new(), filled: 0, broken: false }
    }
}

impl Inflater {
    /// Whether something was wrong before, so that nothing more can be read.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    pub fn break_off(&mut self) {
        self.broken = true;
    }

    /// Bytes that wait for the rest of their record.
    pub fn left(&self) -> usize {
        self.filled
    }

    /// Decompresses as much as there is room for, from the front of `input`, and gives all bytes not [`Self::consume`]d
    /// yet. `None` if the input is damaged.
    pub fn fill(&mut self, input: &mut &[u8]) -> Option<&[u8]> {
        self.buffer.resize(ROOM, 0);
        let mut source = InBuffer::around(input);
        let mut target = OutBuffer::around_pos(self.buffer.as_mut_slice(), self.filled);
        let result = self.context.decompress_stream(&mut target, &mut source);
        self.filled = target.pos();
        let used = source.pos();
        *input = input.get(used..).unwrap_or(&[]);
        result.ok()?;
        self.buffer.get(..self.filled)
    }

    /// Whether the last [`Self::fill`] may have held back output for want of room.
    pub fn is_full(&self) -> bool {
        self.filled == self.buffer.len()
    }

    /// Drops bytes from the front.
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.filled);
        self.buffer.copy_within(count..self.filled, 0);
        self.filled -= count;
    }
}
