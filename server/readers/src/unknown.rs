//! Files that are no profile: what they are and what to do, by how they begin.

/// What a file is, and what to do.
pub(crate) struct Unknown {
    /// Behind "found".
    pub what: String,
    /// Behind a semicolon.
    pub advice: &'static str,
}

const RECORD: &str =
    "that is a program: record it with 'perf record -g ./prog' and name the perf.data that this writes";
const UNPACK: &str = "unpack it first";

/// How files of other kinds begin, what they are and what to do.
const KINDS: [(&[u8], &str, &str); 13] = [
    (b"\x7fELF", "an ELF binary", RECORD),
    (b"MZ", "a Windows program or library", RECORD),
    (b"#!", "a script", RECORD),
    (b"Ftrace!", "the file info of a uftrace recording", "name the folder that it is in"),
    (b"\x17\x08Dtracing", "a recording of trace-cmd", "record with 'perf record -g ./prog'"),
    (b"gmon", "counters of gprof (gmon.out)", "record with 'perf record -g ./prog'"),
    (b"# callgrind format", "costs of callgrind", "record with 'perf record -g ./prog'"),
    (b"Microsoft C/C++ MSF", "a PDB file", "name the profile; PDB files are looked for beside it and by --symbol-path"),
    (b"\x28\xb5\x2f\xfd", "a file packed by zstd", UNPACK),
    (b"\xfd7zXZ", "a file packed by xz", UNPACK),
    (b"BZh", "a file packed by bzip2", UNPACK),
    (b"\x1f\x8b", "a packed file that holds no pprof profile", "unpack it first if it holds another"),
    (b"PK\x03\x04", "a zip archive that heatline freeze did not write", UNPACK),
];

/// What to do with a file of which nothing is known.
const CHECK: &str = "check the path, or record with 'perf record -g ./prog'";

/// So much of a text is shown.
const SHOWN: usize = 24;

/// What a file is that begins like this.
pub(crate) fn describe(head: &[u8]) -> Unknown {
    let known = KINDS.iter().find(|(magic, ..)| head.starts_with(magic));
    let (what, advice) = match known {
        Some(&(_, what, advice)) => (what.to_owned(), advice),
        None if head.is_empty() => ("an empty file".to_owned(), "the recorder wrote nothing: record again"),
        None => (text(head).unwrap_or_else(|| format!("bytes {}", hex(head.get(..8).unwrap_or(head)))), CHECK),
    };
    Unknown { what, advice }
}

/// The beginning of a text; `None` if it is none.
fn text(head: &[u8]) -> Option<String> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The last character may be cut.
        Err(error) if error.error_len().is_none() => std::str::from_utf8(head.get(..error.valid_up_to())?).ok()?,
        Err(_) => return None,
    };
    if text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return None;
    }
    let line = text.trim_start().lines().next().unwrap_or_default();
    let shown: String = line.chars().take(SHOWN).collect();
    let more = if line.chars().count() > SHOWN { "…" } else { "" };
    Some(format!("text that begins '{shown}{more}'"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_how_they_begin() {
        for (head, what) in [
            (&b"\x7fELF\x02\x01"[..], "an ELF binary"),
            (b"", "an empty file"),
            (b"{\"a\": 1}\n", "text that begins '{\"a\": 1}'"),
            ("größer als alles was sonst so war, ä".as_bytes(), "text that begins 'größer als alles was son…'"),
            (b"\x01\x02\x03\xff\x05\x06\x07\x08\x09", "bytes 010203ff05060708"),
        ] {
            assert_eq!(describe(head).what, what);
        }
        assert!(describe(b"\x7fELF").advice.contains("perf record -g ./prog"));
    }

    #[test]
    fn a_text_may_be_cut_in_a_character() {
        assert_eq!(describe(&"aä".as_bytes()[..2]).what, "text that begins 'a'");
    }
}
