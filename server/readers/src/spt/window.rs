//! A window over a file, moved forward as it is read.

use crate::ReadSeek;
use std::io::{self, SeekFrom};

/// Bytes of a file around the place that is being read.
pub(crate) struct Window<'a> {
    source: &'a mut dyn ReadSeek,
    /// Bytes in the file; shrinks if the file turns out to end earlier.
    len: u64,
    /// Where the source would read next.
    position: u64,
    /// Where `buffer` starts in the file.
    start: u64,
    buffer: Vec<u8>,
    filled: usize,
    /// How many bytes to ask for at once.
    step: usize,
}

impl<'a> Window<'a> {
    /// A window that asks for `step` bytes at once.
    pub(crate) fn new(source: &'a mut dyn ReadSeek, step: usize) -> io::Result<Self> {
        let len = source.seek(SeekFrom::End(0))?;
        Ok(Window { source, len, position: len, start: 0, buffer: Vec::new(), filled: 0, step })
    }

    /// Bytes in the file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Asks for `step` bytes at once from now on.
    pub(crate) fn set_step(&mut self, step: usize) {
        self.step = step;
    }

    /// The bytes from `at` on: `wanted` or more, fewer only where the file ends.
    pub(crate) fn at(&mut self, at: u64, wanted: usize) -> io::Result<&[u8]> {
        if self.available(at).len() < wanted {
            self.fill(at, wanted)?;
        }
        Ok(self.available(at))
    }

    /// Whether all bytes from `from` up to `to` are zero.
    pub(crate) fn all_zero(&mut self, from: u64, to: u64) -> io::Result<bool> {
        let mut at = from;
        while at < to {
            let bytes = self.at(at, 1)?;
            let bytes = bytes.get(..at_most(to - at, bytes.len())).unwrap_or(bytes);
            if bytes.is_empty() {
                break;
            }
            if bytes.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            at += bytes.len() as u64;
        }
        Ok(true)
    }

    fn available(&self, at: u64) -> &[u8] {
        let skip = at.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        skip.and_then(|skip| self.buffer.get(skip..self.filled)).unwrap_or_default()
    }

    fn fill(&mut self, at: u64, wanted: usize) -> io::Result<()> {
        let kept = self.available(at).len();
        if kept > 0 {
            self.buffer.copy_within(self.filled - kept..self.filled, 0);
        }
        (self.start, self.filled) = (at, kept);
        let size = at_most(self.len.saturating_sub(at), wanted.max(self.step));
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
        let next = at + kept as u64;
        if self.position != next {
            self.position = self.source.seek(SeekFrom::Start(next))?;
        }
        while let Some(room) = self.buffer.get_mut(self.filled..size).filter(|room| !room.is_empty()) {
            match self.source.read(room) {
                Ok(0) => {
                    self.len = self.position;
                    break;
                }
                Ok(read) => {
                    self.filled += read;
                    self.position += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// `value`, or `most` where that is less.
pub(crate) fn at_most(value: u64, most: usize) -> usize {
    usize::try_from(value).map_or(most, |value| value.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_in_any_order_and_end_with_the_file() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut source = io::Cursor::new(bytes);
        let mut window = Window::new(&mut source, 10).unwrap();
        assert_eq!(window.at(5, 4).unwrap().first_chunk(), Some(&[5, 6, 7, 8]));
        assert_eq!(window.at(12, 8).unwrap(), [12, 13, 14, 15, 16, 17, 18, 19, 20, 21]);
        assert_eq!(window.at(3, 1).unwrap().first(), Some(&3));
        assert_eq!(window.at(98, 8).unwrap(), [98, 99]);
        assert!(window.at(100, 1).unwrap().is_empty());
        assert!(window.at(u64::MAX, 1).unwrap().is_empty());
    }

    #[test]
    fn zeros_are_seen_across_steps() {
        let mut bytes = vec![0; 50];
        bytes.push(1);
        let mut source = io::Cursor::new(bytes);
        let mut window = Window::new(&mut source, 8).unwrap();
        assert!(window.all_zero(3, 50).unwrap());
        assert!(!window.all_zero(3, 51).unwrap());
        assert!(window.all_zero(51, 51).unwrap());
    }
}
