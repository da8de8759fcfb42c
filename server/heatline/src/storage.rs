//! Files, as the library crates ask for them.

use crate::files;
use heatline_readers::BinaryBytes;
use heatline_symbols::Storage;
use std::fs::File;
use std::io;
use std::path::Path;

/// A file that is read in parts. It is never mapped: a linker may rewrite it meanwhile.
#[derive(Debug)]
pub struct FileStorage {
    file: File,
    size: u64,
}

impl FileStorage {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// If it is no regular file or cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = files::open(path)?;
        Ok(FileStorage { size: file.metadata()?.len(), file })
    }
}

impl Storage for FileStorage {
    fn len(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        read_exact_at(&self.file, offset, buffer)
    }
}

/// Several threads may read at the same time.
#[cfg(unix)]
fn read_exact_at(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                offset = offset.saturating_add(read as u64);
                buffer = &mut buffer[read..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl BinaryBytes for FileStorage {
    fn length(&self) -> u64 {
        self.size
    }

    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<()> {
        Storage::read_at(self, position, buffer)
    }
}
