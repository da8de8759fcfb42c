//! The member `extern.dat`: what other programs had to say while the recording was made, a moment and a text on each line.

use crate::Folder;
use std::io::{BufRead, BufReader, Read};

/// The member's name.
pub(super) const MEMBER: &str = "extern.dat";

/// Bytes that are read at most.
const MOST_BYTES: u64 = 64 << 20;

/// How many messages there are. Lines that begin with `#` or have no text are none.
pub(super) fn count(folder: &dyn Folder, names: &[String]) -> std::io::Result<u64> {
    if !names.iter().any(|name| name == MEMBER) {
        return Ok(0);
    }
    let mut input = BufReader::new(folder.open(MEMBER)?.take(MOST_BYTES));
    let (mut line, mut messages) = (Vec::new(), 0);
    while input.read_until(b'\n', &mut line)? > 0 {
        messages += u64::from(is_message(line.trim_ascii()));
        line.clear();
    }
    Ok(messages)
}

fn is_message(line: &[u8]) -> bool {
    let moment = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    line.len() > moment.len() && moment.first().is_some_and(u8::is_ascii_digit)
}
