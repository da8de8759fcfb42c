//! The bytes of binaries and of their separate debug files, asked for through two traits.
//!
//! Nothing here opens a file. Whoever owns the search paths implements [`Locate`]; tests fake it.

use heatline_profile::{BuildId, PdbId};
use std::io;
use std::sync::Arc;

/// The bytes of one file, read in parts and never as a whole.
///
/// A file may change or shrink while it is read; that shows as an error of [`Storage::read_at`], never as a crash.
pub trait Storage: Send + Sync {
    /// The number of bytes.
    fn len(&self) -> u64;

    /// Whether there is no byte at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// Where fewer bytes are there, or reading fails.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

impl Storage for Vec<u8> {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(self.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A file besides the binary that holds debug information, as the binary (or its debug information) names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DebugFile<'a> {
    /// The separate debug file of the ELF image with this build id: `/usr/lib/debug/.build-id/ab/cdef….debug`.
    BuildId(&'a BuildId),
    /// The separate debug file named by `.gnu_debuglink`, to be looked for beside the binary, in `.debug` beside it
    /// and below the global debug folders. The checksum is compared by the caller of [`Locate::locate`].
    DebugLink {
        /// Its file name, without folder.
        name: &'a str,
        /// The CRC-32 of the whole file.
        crc: u32,
    },
    /// The supplementary file that `dwz` made, named by `.gnu_debugaltlink`.
    Supplementary {
        /// Its path, relative to the file that names it unless absolute.
        path: &'a str,
        /// Its build id.
        id: &'a BuildId,
    },
    /// One unit's split debug information.
    Dwo {
        /// The compilation folder, to which `name` is relative.
        folder: Option<&'a str>,
        /// The path as recorded.
        name: &'a str,
        /// Compared with the one in the file.
        id: u64,
    },
    /// The package of all split units of the binary: its own path with `.dwp` appended.
    Package,
    /// The program database of a PE image.
    Pdb {
        /// The path as the linker recorded it.
        path: &'a str,
        /// Compared with the one in the file.
        id: PdbId,
    },
}

/// Finds the files that debug information is spread over.
pub trait Locate {
    /// The file, or `None` if it is nowhere. Identities are compared by the asker, so the first match by name is fine.
    fn locate(&self, wanted: &DebugFile<'_>) -> Option<Arc<dyn Storage>>;

    /// Whether a file of another build is used all the same; then a problem of the resolution says so.
    fn allow_mismatch(&self) -> bool {
        false
    }
}

/// Finds nothing: for binaries that hold their own debug information.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Locate for Nowhere {
    fn locate(&self, _wanted: &DebugFile<'_>) -> Option<Arc<dyn Storage>> {
        None
    }
}

/// A part of a file as a vector of its own. Nothing is allocated for bytes that the file does not have.
pub(crate) fn read_part(storage: &dyn Storage, offset: u64, size: u64) -> io::Result<Vec<u8>> {
    let end = offset.checked_add(size).ok_or(io::ErrorKind::UnexpectedEof)?;
    if end > storage.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let size = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
    // Zeroed by the system, page by page as they are filled.
    let mut bytes = vec![0; size];
    storage.read_at(offset, &mut bytes)?;
    Ok(bytes)
}

/// Where the content of a section is. Copies share it.
#[derive(Clone)]
pub(crate) enum Source {
    /// It had to be unpacked.
    Whole(Arc<Vec<u8>>),
    /// A part of a file.
    Stored { storage: Arc<dyn Storage>, offset: u64, size: usize },
}

impl Source {
    pub fn empty() -> Source {
        Source::Whole(Arc::default())
    }
}
