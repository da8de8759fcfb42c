//! What a reader reads from.

use heatline_profile::Module;
use std::io::{self, Read, Seek};
use std::sync::Arc;

/// A file, or whatever can be read at any position.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send + ?Sized> ReadSeek for T {}

/// A directory, as far as a reader needs one.
pub trait Folder {
    /// The names of the files in it, in any order.
    ///
    /// # Errors
    /// If the directory cannot be listed.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Opens the member with this name.
    ///
    /// # Errors
    /// If there is none, or it cannot be opened.
    fn open(&self, name: &str) -> io::Result<Box<dyn ReadSeek + '_>>;
}

/// The bytes of one binary, read in parts.
pub trait BinaryBytes: Send + Sync {
    /// How many there are.
    fn length(&self) -> u64;

    /// Fills `buffer` from a position on.
    ///
    /// # Errors
    /// If not all of it can be read.
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// Finds the binaries that a recording names; needed where stacks were recorded as bytes and must be unwound.
pub trait Binaries: Send + Sync + std::fmt::Debug {
    /// The binary of a module, with the module's identity if it has one.
    fn open(&self, module: &Module) -> Option<Arc<dyn BinaryBytes>>;
}

/// Where a recording comes from.
pub enum Input<'a> {
    /// A file, or something else that can seek.
    File(&'a mut dyn ReadSeek),
    /// A pipe, read once from the start.
    Stream(&'a mut (dyn Read + Send)),
    /// A directory of files that make one recording.
    Folder(&'a dyn Folder),
}
