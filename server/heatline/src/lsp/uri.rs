//! Addresses of documents and paths of files.

use std::path::{Path, PathBuf};
use tower_lsp::ls_types::Uri;

/// The file that an address names; `None` for what is no file.
pub fn to_path(uri: &Uri) -> Option<PathBuf> {
    let is_file = uri.scheme().as_str().eq_ignore_ascii_case("file");
    is_file.then(|| uri.to_file_path()).flatten().map(|path| path.into_owned())
}

/// The address of a file, or `None` of a path that is none.
pub fn from_path(path: &Path) -> Option<Uri> {
    Uri::from_file_path(path)
}

/// One spelling for all spellings of an address, by which documents are told apart.
pub fn key(uri: &Uri) -> String {
    match to_path(uri) {
        Some(path) => format!("file:{}", path.to_string_lossy()),
        None => uri.as_str().to_owned(),
    }
}

/// The path with links resolved, as far as it exists.
pub fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn spellings_of_one_file_are_one() {
        let spelled = ["file:///w/a%20%C3%BC.c", "file:///w/a%20%c3%bc.c", "FILE:///w/%61%20%C3%BC.c"];
        for text in spelled {
            assert_eq!(key(&uri(text)), "file:/w/a ü.c");
        }
        assert_eq!(from_path(Path::new("/w/a ü.c")).unwrap().as_str(), spelled[0]);
    }

    #[test]
    fn what_is_no_file_has_no_path() {
        for text in ["untitled:Untitled-1", "git:/a/b.c?x", "vscode-notebook-cell:/a#b"] {
            assert_eq!((to_path(&uri(text)), key(&uri(text))), (None, text.to_owned()));
        }
    }
}
