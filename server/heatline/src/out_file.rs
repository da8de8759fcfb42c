//! Files that are written: whole or not at all, and never over something else.

use anyhow::{Context, bail};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Writes a file under another name and renames it then, so that nobody ever sees a part of it. What is there already
/// is replaced if `may_replace` says so of its first bytes.
///
/// # Errors
/// If there is something else already, or writing fails.
pub fn write(path: &Path, bytes: &[u8], may_replace: impl FnOnce(&[u8]) -> bool) -> anyhow::Result<()> {
    let name = || path.display().to_string();
    // A link stays one; what it leads to is replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Ok(metadata) = fs::metadata(&path) {
        if !metadata.is_file() {
            bail!("{}: expected a file or nothing, found a folder, pipe or device; choose another name", name());
        }
        if !may_replace(&head(&path).with_context(name)?) {
            bail!("{}: there is another kind of file already; choose another name, or say --force", name());
        }
    }
    let beside = temporary(&path);
    let written = create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, &path)
    });
    if written.is_err() {
        // That it cannot be removed is no news besides the error.
        let _ = fs::remove_file(&beside);
    }
    written.with_context(name)
}

fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(heatline_readers::HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// A name beside the file that nobody else has.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_kind_stays_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        write(&path, b"first", |_| false).unwrap();
        let refused = write(&path, b"second", |head| head == b"other").unwrap_err();
        assert!(refused.to_string().contains("--force"), "{refused}");
        write(&path, b"third", |head| head == b"first").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"third");
        assert!(write(folder.path(), b"x", |_| true).is_err());
        assert!(write(&folder.path().join("no/folder"), b"x", |_| true).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_leads_to_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, b"new", |_| true).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
