//! Addresses of documents and paths of files.

use heatline_annotate::{comparison_key, is_absolute, is_windows};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use tower_lsp::ls_types::Uri;

/// The file that an address names, in the spelling of the system that it is of; `None` for what is no file.
///
/// `file:///c%3A/a.c` is `C:\a.c` and `file://host/share/a.c` is `\\host\share\a.c`, wherever this runs: the client may
/// have files that are not on this machine.
pub fn to_path(uri: &Uri) -> Option<PathBuf> {
    if !uri.scheme().as_str().eq_ignore_ascii_case("file") {
        return None;
    }
    let path = uri.path().decode().to_string_lossy();
    let host = uri.authority().map(|authority| authority.host()).unwrap_or_default();
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        return Some(format!("\\\\{host}{}", path.replace('/', "\\")).into());
    }
    Some(
        match path.as_bytes() {
            [] => return None,
            [b'/', letter, b':'] if letter.is_ascii_alphabetic() => {
                format!("{}:\\", char::from(letter.to_ascii_uppercase()))
            }
            [b'/', letter, b':', b'/', ..] if letter.is_ascii_alphabetic() => {
                format!("{}{}", char::from(letter.to_ascii_uppercase()), path[2..].replace('/', "\\"))
            }
            _ => path.into_owned(),
        }
        .into(),
    )
}

/// The address of a file of whichever system, or `None` of a relative path that is none here.
pub fn from_path(path: &Path) -> Option<Uri> {
    let text = path.to_string_lossy();
    let text = without_device(&text);
    if !is_windows(&text) || !is_absolute(&text) {
        return Uri::from_file_path(path);
    }
    let text = text.replace('\\', "/");
    match text.strip_prefix("//") {
        Some(rest) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            format!("file://{}/{}", escaped(host), escaped(path)).parse().ok()
        }
        // The drive as VS Code spells it.
        None => {
            let (drive, rest) = text.split_at(1);
            format!("file:///{}{}", drive.to_ascii_lowercase(), escaped(rest)).parse().ok()
        }
    }
}

/// A path without the prefix that Windows puts before paths whose links it has resolved.
fn without_device(path: &str) -> Cow<'_, str> {
    match path.strip_prefix("\\\\?\\UNC\\") {
        Some(share) => format!("\\\\{share}").into(),
        None => path.strip_prefix("\\\\?\\").unwrap_or(path).into(),
    }
}

/// The path with all bytes escaped that an address might mean something by.
fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// One spelling for all spellings of an address, by which documents are told apart.
pub fn key(uri: &Uri) -> String {
    match to_path(uri) {
        Some(path) => format!("file:{}", comparison_key(&path.to_string_lossy())),
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
    fn paths_of_windows_and_their_addresses_are_told_apart_on_any_system() {
        for (path, address) in [
            ("C:\\proj\\src\\a b.cpp", "file:///c%3A/proj/src/a%20b.cpp"),
            ("D:\\", "file:///d%3A/"),
            ("\\\\host\\share\\ü.c", "file://host/share/%C3%BC.c"),
            ("/w/c:/a.c", "file:///w/c%3A/a.c"),
        ] {
            assert_eq!(to_path(&uri(address)), Some(path.into()), "{address}");
            assert_eq!(from_path(Path::new(path)).unwrap().as_str(), address, "{path}");
        }
        for (spelled, path) in [
            ("file:///C:/proj/a.cpp", "C:\\proj\\a.cpp"),
            ("file:///c%3a/proj%2Fa.cpp", "C:\\proj\\a.cpp"),
            ("file:///c:", "C:\\"),
            ("file://localhost/w/a.c", "/w/a.c"),
        ] {
            assert_eq!(to_path(&uri(spelled)), Some(path.into()), "{spelled}");
        }
        let resolved = [("\\\\?\\C:\\a.c", "file:///c%3A/a.c"), ("\\\\?\\UNC\\host\\s\\a.c", "file://host/s/a.c")];
        for (path, address) in resolved {
            assert_eq!(from_path(Path::new(path)).unwrap().as_str(), address);
        }
    }

    #[test]
    fn spellings_of_one_file_of_windows_are_one() {
        for text in ["file:///c%3A/Proj/a.cpp", "file:///C:/proj/A.cpp", "file:///c:/x/../proj/a.cpp"] {
            assert_eq!(key(&uri(text)), "file:c:\\proj\\a.cpp");
        }
        assert_ne!(key(&uri("file:///w/A.c")), key(&uri("file:///w/a.c")));
    }

    #[test]
    fn what_is_no_file_has_no_path() {
        for text in ["untitled:Untitled-1", "git:/a/b.c?x", "vscode-notebook-cell:/a#b"] {
            assert_eq!((to_path(&uri(text)), key(&uri(text))), (None, text.to_owned()));
        }
    }
}
