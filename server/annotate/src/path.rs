//! Recorded paths, of whichever system, as text.

/// The path with `.` and `..` resolved and doubled separators joined, by the rules of the system it is of.
///
/// Windows paths (a drive letter or backslashes) keep their separators as `\`, others as `/`. No file is asked, so a
/// symbolic link before `..` is taken for a folder, as debug information means it.
pub fn normalize(path: &str) -> String {
    let windows = is_windows(path);
    let separator = if windows { '\\' } else { '/' };
    let is_separator = |c: char| c == '/' || (windows && c == '\\');
    let (prefix, rest) = split_prefix(path, windows);
    let mut parts: Vec<&str> = Vec::new();
    for part in rest.split(is_separator) {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&last) if last != ".." => {
                    parts.pop();
                }
                _ if prefix.is_empty() => parts.push(".."),
                _ => {}
            },
            part => parts.push(part),
        }
    }
    let mut out = prefix;
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            out.push(separator);
        }
        out.push_str(part);
    }
    out
}

/// Whether a recorded path is one of Windows: a drive letter, or a backslash before any slash.
pub fn is_windows(path: &str) -> bool {
    let bytes = path.as_bytes();
    let drive =
        bytes.len() >= 3 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && matches!(bytes[2], b'\\' | b'/');
    drive || path.find(['/', '\\']).is_some_and(|at| bytes[at] == b'\\')
}

/// The components of a recorded path without drive and root, outermost first.
pub fn components(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    let windows = is_windows(path);
    let rest = if windows && path.as_bytes().get(1) == Some(&b':') { &path[2..] } else { path };
    rest.split(move |c| c == '/' || (windows && c == '\\')).filter(|part| !part.is_empty() && *part != ".")
}

fn split_prefix(path: &str, windows: bool) -> (String, &str) {
    let bytes = path.as_bytes();
    if windows && bytes.get(1) == Some(&b':') {
        return (format!("{}\\", &path[..2]), path[2..].trim_start_matches(['/', '\\']));
    }
    if windows && path.starts_with("\\\\") {
        return ("\\\\".into(), path.trim_start_matches(['/', '\\']));
    }
    match path.strip_prefix('/') {
        Some(rest) => ("/".into(), rest),
        None => (String::new(), path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_resolved_by_the_rules_of_the_paths_system() {
        for (path, normal) in [
            ("/src/./a.c", "/src/a.c"),
            ("/src/b/../a.c", "/src/a.c"),
            ("/src//a.c", "/src/a.c"),
            ("/../a.c", "/a.c"),
            ("../a.c", "../a.c"),
            ("a/../../b.c", "../b.c"),
            ("C:\\proj\\src\\..\\a.cpp", "C:\\proj\\a.cpp"),
            ("C:/proj/./a.cpp", "C:\\proj\\a.cpp"),
            ("\\\\host\\share\\a.c", "\\\\host\\share\\a.c"),
            ("/odd\\name.c", "/odd\\name.c"),
            ("", ""),
        ] {
            assert_eq!(normalize(path), normal, "{path}");
        }
    }

    #[test]
    fn components_leave_out_drives_and_roots() {
        assert_eq!(components("C:\\p\\a.c").collect::<Vec<_>>(), ["p", "a.c"]);
        assert_eq!(components("/p/q/a.c").rev().collect::<Vec<_>>(), ["a.c", "q", "p"]);
    }
}
