//! Reading ahead: while one thread takes records, another has the next blocks of the file copied.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Bytes of a block.
const BLOCK: usize = 128 << 10;

/// Blocks that wait at most.
const WAITING: usize = 4;

/// The side that reads the file.
pub(super) struct Feeder {
    full: SyncSender<io::Result<Vec<u8>>>,
    empty: Receiver<Vec<u8>>,
}

/// The side that takes what was read.
pub(super) struct Blocks {
    full: Receiver<io::Result<Vec<u8>>>,
    empty: Sender<Vec<u8>>,
    block: Vec<u8>,
    used: usize,
}

/// Two ends of a queue of blocks.
pub(super) fn queue() -> (Feeder, Blocks) {
    let (full_in, full_out) = sync_channel(WAITING);
    let (empty_in, empty_out) = channel();
    let blocks = Blocks { full: full_out, empty: empty_in, block: Vec::new(), used: 0 };
    (Feeder { full: full_in, empty: empty_out }, blocks)
}

impl Feeder {
    /// Reads to the end, or until nobody takes blocks any more.
    pub fn feed(self, input: &mut dyn Read) {
        loop {
            let mut block = self.empty.try_recv().unwrap_or_default();
            block.resize(BLOCK, 0);
            let read = loop {
                match input.read(&mut block) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read,
                }
            };
            let is_last = !matches!(read, Ok(1..));
            let block = read.map(|length| {
                block.truncate(length);
                block
            });
            if self.full.send(block).is_err() || is_last {
                return;
            }
        }
    }
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.used >= self.block.len() {
            // The file ends with an empty block; behind it nothing comes.
            let Ok(next) = self.full.recv() else { return Ok(0) };
            let done = std::mem::replace(&mut self.block, next?);
            self.used = 0;
            let _ = self.empty.send(done);
        }
        let rest = self.block.get(self.used..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..length), rest.get(..length)) {
            to.copy_from_slice(from);
        }
        self.used += length;
        Ok(length)
    }
}
