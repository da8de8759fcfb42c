//! Files, as the library crates ask for them.

use crate::files;
use heatline_readers::BinaryBytes;
use heatline_symbols::Storage;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A file that is read in parts. It is never mapped: a linker may rewrite it meanwhile.
#[derive(Debug)]
pub struct FileStorage {
    file: Mutex<File>,
    size: u64,
}

impl FileStorage {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// If it is no regular file or cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = files::open(path)?;
        Ok(FileStorage { size: file.metadata()?.len(), file: Mutex::new(file) })
    }
}

impl Storage for FileStorage {
    fn len(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }
}

impl BinaryBytes for FileStorage {
    fn length(&self) -> u64 {
        self.size
    }

    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<()> {
        Storage::read_at(self, position, buffer)
    }
}
