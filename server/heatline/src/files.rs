//! Files that are read although nobody vouches for them: opening never waits for a writer, reading always ends.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A list that a user names is not longer.
pub const LONGEST_LIST: u64 = 64 << 20;

/// Opens a regular file, or what a link to one leads to.
///
/// # Errors
/// If there is none, it is something else, or it cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    // Asked before it is opened: opening a named pipe waits for a writer that may never come.
    if path.metadata()?.is_file() {
        return File::open(path);
    }
    let found = if path.is_dir() { "a folder" } else { "a pipe or device" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("expected a regular file, found {found}")))
}

/// All bytes of a regular file of at most `most`.
///
/// # Errors
/// As of [`open`], or if it is longer.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_to_end(open(path)?, most)
}

/// All bytes of what a user names, which may be a pipe of the shell, of at most `most`.
///
/// # Errors
/// If it cannot be opened or read, or is longer.
pub fn read_named(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_to_end(File::open(path)?, most)
}

fn read_to_end(input: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let limit = if most < 1 << 20 { format!("{most} bytes") } else { format!("{} MiB", most >> 20) };
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("expected at most {limit}, found more")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read(&path, 4).unwrap_err().to_string(), "expected at most 4 bytes, found more");
        assert_eq!(open(folder.path()).unwrap_err().to_string(), "expected a regular file, found a folder");
        assert_eq!(open(&folder.path().join("absent")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn what_never_ends_is_left_alone() {
        let zeros = Path::new("/dev/zero");
        assert_eq!(open(zeros).unwrap_err().to_string(), "expected a regular file, found a pipe or device");
        assert_eq!(read_named(zeros, 1 << 20).unwrap_err().to_string(), "expected at most 1 MiB, found more");
    }
}
