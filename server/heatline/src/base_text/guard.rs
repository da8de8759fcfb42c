//! Whether a repository may be opened: what is in its folder comes with the sources of others, and opening a named pipe
//! or device in it would wait, or read, for ever.

use crate::files;
use std::collections::HashSet;
use std::fs::FileType;
use std::path::{Path, PathBuf};

/// A repository with more files of its own is not looked at.
const MOST_ENTRIES: usize = 500_000;

/// A file that names other folders is not longer.
const LONGEST_POINTER: u64 = 1 << 20;

/// Folders in that of a repository that are never read.
const UNREAD: [&str; 3] = ["hooks", "lfs", "modules"];

/// Whether all files of the repositories that a folder can be in are such that reading them ends.
pub fn may_be_opened(folder: &Path) -> bool {
    let mut walk = Walk::default();
    folder.ancestors().all(|above| walk.finds_no_trap_in(&above.join(".git")) && walk.finds_no_trap_in_bare(above))
}

#[derive(Default)]
struct Walk {
    seen: HashSet<PathBuf>,
    open: Vec<PathBuf>,
    entries: usize,
}

impl Walk {
    /// A folder, or a file that says where it is.
    fn finds_no_trap_in(&mut self, git: &Path) -> bool {
        let Ok(metadata) = git.metadata() else { return true };
        if metadata.is_file() {
            self.point(git, git.parent());
        } else if metadata.is_dir() {
            self.push(git);
        }
        !is_trap(metadata.file_type()) && self.is_sound()
    }

    /// A folder without sources, which is recognised by what is in it.
    fn finds_no_trap_in_bare(&mut self, folder: &Path) -> bool {
        if folder.join("objects").is_dir() && folder.join("refs").is_dir() {
            self.push(folder);
        }
        self.is_sound()
    }

    fn push(&mut self, folder: &Path) {
        if let Some(folder) = folder.canonicalize().ok().filter(|folder| self.seen.insert(folder.clone())) {
            self.open.push(folder);
        }
    }

    /// Goes on with the folders that a file names, each on a line, seen from `base`.
    fn point(&mut self, file: &Path, base: Option<&Path>) {
        let Ok(bytes) = files::read(file, LONGEST_POINTER) else { return };
        for line in String::from_utf8_lossy(&bytes).lines() {
            let path = line.strip_prefix("gitdir:").unwrap_or(line).trim();
            if let Some(base) = base.filter(|_| !path.is_empty()) {
                self.push(&base.join(path));
            }
        }
    }

    fn is_sound(&mut self) -> bool {
        while let Some(folder) = self.open.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                self.entries += 1;
                if self.entries > MOST_ENTRIES || !self.is_entry_sound(&entry, &folder) {
                    return false;
                }
            }
        }
        true
    }

    fn is_entry_sound(&mut self, entry: &std::fs::DirEntry, folder: &Path) -> bool {
        let path = entry.path();
        let Ok(mut kind) = entry.file_type() else { return true };
        if kind.is_symlink() {
            // What a link leads to counts; one that leads nowhere cannot be opened.
            let Ok(metadata) = path.metadata() else { return true };
            kind = metadata.file_type();
        }
        let name = entry.file_name();
        let is_named = |wanted: &str| name == wanted;
        if kind.is_dir() && !UNREAD.into_iter().any(is_named) {
            self.push(&path);
        } else if kind.is_file() && is_named("commondir") {
            self.point(&path, Some(folder));
        } else if kind.is_file() && is_named("alternates") {
            self.point(&path, folder.parent());
        }
        !is_trap(kind)
    }
}

/// Whether opening a file may wait, or reading it never end. Sockets, as of a file system monitor, cannot be opened.
#[cfg(unix)]
fn is_trap(kind: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_trap(_: FileType) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    #[track_caller]
    fn check(expected: bool, change: impl FnOnce(&Path)) {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("src");
        for inside in ["src", ".git/refs/heads", ".git/objects/info", "other/objects"] {
            std::fs::create_dir_all(folder.path().join(inside)).unwrap();
        }
        std::fs::write(folder.path().join(".git/config"), "").unwrap();
        change(folder.path());
        assert_eq!(may_be_opened(&source), expected);
    }

    fn pipe(path: &Path) {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn what_waits_or_never_ends_is_found_wherever_it_is() {
        check(true, |root| std::fs::write(root.join(".git/HEAD"), "ref: refs/heads/main").unwrap());
        check(true, |root| symlink("absent", root.join(".git/HEAD")).unwrap());
        check(true, |root| pipe(&root.join("src/pipe")));
        check(false, |root| pipe(&root.join(".git/HEAD")));
        check(false, |root| pipe(&root.join(".git/refs/heads/main")));
        check(false, |root| symlink("/dev/zero", root.join(".git/packed-refs")).unwrap());
        check(false, |root| pipe(&root.join("src/.git")));
    }

    #[test]
    fn other_folders_that_are_named_are_looked_into() {
        check(true, |root| std::fs::write(root.join("src/.git"), "gitdir: ../other\n").unwrap());
        check(false, |root| {
            std::fs::write(root.join("src/.git"), "gitdir: ../other\n").unwrap();
            pipe(&root.join("other/HEAD"));
        });
        check(false, |root| {
            std::fs::write(root.join(".git/commondir"), "../other\n").unwrap();
            pipe(&root.join("other/config"));
        });
        check(false, |root| {
            std::fs::write(root.join(".git/objects/info/alternates"), "../../other/objects\n").unwrap();
            pipe(&root.join("other/objects/pack"));
        });
    }
}
