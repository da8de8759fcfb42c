//! What a reader reads from.

use std::io::{self, Read, Seek};

/// A file, or whatever can be read at any position.
pub trait ReadSeek: Read + Seek {}

impl<T: Read + Seek + ?Sized> ReadSeek for T {}

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

/// Where a recording comes from.
pub enum Input<'a> {
    /// A file, or something else that can seek.
    File(&'a mut dyn ReadSeek),
    /// A pipe, read once from the start.
    Stream(&'a mut dyn Read),
    /// A directory of files that make one recording.
    Folder(&'a dyn Folder),
}
