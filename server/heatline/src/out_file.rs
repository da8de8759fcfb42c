//! Files that are written: whole or not at all, and never over something else.

use anyhow::{Context, bail};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Refuses to write over a profile that is read.
///
/// # Errors
/// If the file is one of `inputs`, or in one that is a folder.
pub fn refuse_input(path: &Path, inputs: &[PathBuf]) -> anyhow::Result<()> {
    let Ok(real) = path.canonicalize() else { return Ok(()) };
    if inputs.iter().any(|input| input.canonicalize().is_ok_and(|input| real.starts_with(input))) {
        bail!("{}: this is the profile that is read; choose another name", path.display());
    }
    Ok(())
}

/// Writes a file under another name and renames it then, so that nobody ever sees a part of it. What is there already
/// is replaced if it is empty or `may_replace` says so of its first bytes.
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
        let head = head(&path).with_context(name)?;
        if !head.is_empty() && !may_replace(&head) {
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

    #[test]
    fn what_is_read_is_never_written() {
        let folder = tempfile::tempdir().unwrap();
        let (input, other) = (folder.path().join("input"), folder.path().join("other"));
        fs::write(&input, "a profile").unwrap();
        fs::write(&other, "something").unwrap();
        let inputs = [input.clone()];
        assert!(refuse_input(&input, &inputs).is_err());
        assert!(refuse_input(&folder.path().join(".").join("input"), &inputs).is_err());
        assert!(refuse_input(&input, &[folder.path().to_owned()]).is_err(), "a member of a folder");
        refuse_input(&other, &inputs).unwrap();
        refuse_input(&folder.path().join("absent"), &inputs).unwrap();
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
