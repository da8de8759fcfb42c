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

/// Whether a recorded path begins at a root, of whichever system.
pub fn is_absolute(path: &str) -> bool {
    !split_prefix(path, is_windows(path)).0.is_empty()
}

/// Whether names on the root of this path are the same in upper and lower case: on drives and shares of Windows.
pub fn folds_case(path: &str) -> bool {
    is_windows(path) && is_absolute(path)
}

/// One spelling for all spellings of a recorded path, to compare paths by; not to open files by.
pub fn comparison_key(path: &str) -> String {
    let path = normalize(path);
    if folds_case(&path) { path.to_lowercase() } else { path }
}

/// Whether two components are one name on a root that does or does not fold case.
pub fn same_name(a: &str, b: &str, folds_case: bool) -> bool {
    a == b || (folds_case && a.to_lowercase() == b.to_lowercase())
}

/// The components of a path below a folder; `None` if the path is not in the folder, by the rules of its root.
pub fn below<'a>(path: &'a str, folder: &str) -> Option<impl DoubleEndedIterator<Item = &'a str> + use<'a>> {
    let is_bare_drive = |folder: &str| matches!(folder.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic());
    let folder = if is_bare_drive(folder) { &format!("{folder}\\") } else { folder };
    let root = |path: &str| split_prefix(path, is_windows(path)).0.to_ascii_lowercase();
    if root(path) != root(folder) {
        return None;
    }
    let mut rest = components(path);
    let folds_case = folds_case(path);
    for name in components(folder) {
        rest.next().filter(|found| same_name(found, name, folds_case))?;
    }
    Some(rest)
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

    #[test]
    fn case_counts_by_the_root() {
        let same = |a: &str, b: &str| comparison_key(a) == comparison_key(b);
        assert!(same("C:\\Proj\\A.cpp", "c:/proj/x/../a.cpp"));
        assert!(same("\\\\Host\\share\\a.c", "\\\\host\\Share\\A.c"));
        assert!(!same("C:\\proj\\a.cpp", "D:\\proj\\a.cpp"));
        assert!(!same("/Proj/a.cpp", "/proj/a.cpp"));
        assert!(!same("src\\A.cpp", "src\\a.cpp"), "of no root");
    }

    #[test]
    fn what_is_below_a_folder_is_told_by_whole_names() {
        let rest = |path, folder| below(path, folder).map(|rest| rest.collect::<Vec<_>>().join("|"));
        for (path, folder, expected) in [
            ("/build/src/a.c", "/build", Some("src|a.c")),
            ("/build/src/a.c", "/build/", Some("src|a.c")),
            ("/build/src/a.c", "/", Some("build|src|a.c")),
            ("/builder/a.c", "/build", None),
            ("/Build/a.c", "/build", None),
            ("build/a.c", "/build", None),
            ("src/a.c", "src", Some("a.c")),
            ("C:\\proj\\src\\a.cpp", "c:/Proj/", Some("src|a.cpp")),
            ("C:\\proj\\a.cpp", "C:", Some("proj|a.cpp")),
            ("C:\\proj\\a.cpp", "C:\\", Some("proj|a.cpp")),
            ("C:\\proj\\a.cpp", "D:\\proj", None),
            ("\\\\host\\share\\a.c", "\\\\HOST\\share", Some("a.c")),
        ] {
            assert_eq!(rest(path, folder).as_deref(), expected, "{path} below {folder}");
        }
    }
}
