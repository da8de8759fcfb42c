//! pprof files: `profile.proto` of github.com/google/pprof, plain or in gzip, as Go, Parca, Pyroscope and others write
//! them; and what pprof can hold of any profile, written.
//!
//! - Each sample type is an event. The one that the file names as default, else the last, comes first, since it is the
//!   one that is shown first. Times become nanoseconds. A number of samples is what the type `samples` counts, where
//!   there is one, else each record counts once.
//! - Lines become [`Profile::symbolization`](heatline_profile::Profile::symbolization); a location without lines is
//!   looked up in the binary of its mapping, as the addresses of any other profile are. A caller's address is taken to
//!   have stepped back into the call already, as the format says.
//! - Labels `pid`, `tid` and `thread` or `comm` become threads. There is no place for other labels.
//! - `drop_frames` and `keep_frames` are obeyed as `go tool pprof` obeys them.
//!
//! A record that names what is not there is left out and counted; bytes that are no message end the reading, since the
//! names of everything are usually at the end.

mod gzip;
mod message;
mod prune;
mod read;
mod wire;
mod write;

pub use write::{left_out, write};

use crate::ReadError;
use heatline_profile::{Monitor, Profile};
use std::io::Read;
use wire::{Fields, Value};

/// A sample type that counts the samples of another one is named so, followed by the other's name.
const SAMPLES_OF: &str = "samples:";

/// Longer files, or files that unpack to more, are not read.
const LARGEST: u64 = 512 << 20;

/// A packed file of more than [`SMALL`] bytes may not grow more than this.
const MOST_GROWTH: u64 = 400;

/// Files that unpack to so little may grow as they like.
const SMALL: u64 = 16 << 20;

/// So many bytes from the beginning of the message decide whether it is one.
const LOOKED_AT: usize = 512;

/// Why a pprof file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PprofError {
    /// The gzip around it is damaged or ends early.
    #[error("damaged pprof file: its gzip cannot be unpacked: {0}; save it again")]
    Gzip(String),
    /// It would fill memory.
    #[error("not a pprof file: it unpacks to more than {limit} bytes")]
    TooLarge {
        /// How much is allowed.
        limit: u64,
    },
    /// Its bytes are no message.
    #[error("damaged pprof file: expected a field at offset {at} of the unpacked {what}; save it again")]
    Malformed {
        /// Position in the message.
        at: usize,
        /// Which message.
        what: &'static str,
    },
    /// There is nothing in it.
    #[error("the pprof file has no sample types")]
    NoTypes,
    /// A pattern of frames to drop is none.
    #[error("damaged pprof file: the pattern of {field} cannot be used: {why}")]
    Pattern {
        /// Which.
        field: &'static str,
        /// What is wrong.
        why: String,
    },
}

/// Whether a file that starts with these bytes is a pprof file.
pub fn recognise(head: &[u8]) -> bool {
    if gzip::is_gzip(head) {
        return is_profile(&gzip::beginning(head, LOOKED_AT), true);
    }
    is_profile(head.get(..LOOKED_AT).unwrap_or(head), head.len() > LOOKED_AT)
}

/// Whether a message of which this is the beginning, or all of it, can only be a profile: all its fields are of the
/// profile's types, and one says a type or, should the types be missing, what something was sampled in.
fn is_profile(beginning: &[u8], is_cut: bool) -> bool {
    let mut is_told = false;
    for field in Fields::of(beginning) {
        match field {
            Ok((1 | 11, Value::Bytes(bytes))) => is_told |= is_value_type(bytes),
            Ok((2 | 4 | 5, Value::Bytes(bytes))) => is_told |= is_record(bytes),
            Ok((3 | 6, Value::Bytes(_)) | (7..=10 | 12..=15, Value::Number(_)) | (13, Value::Bytes(_))) => {}
            Ok(_) => return false,
            Err(_) => return is_cut && is_told,
        }
    }
    is_told
}

/// Whether a message can be a sample, a location or a function, and hardly anything else.
fn is_record(bytes: &[u8]) -> bool {
    let is_known = |field: &Result<_, _>| matches!(field, Ok((1..=5, Value::Number(_) | Value::Bytes(_))));
    Fields::of(bytes).count() > 1
        && Fields::of(bytes).all(|field| is_known(&field))
        && matches!(Fields::of(bytes).next(), Some(Ok((1, _))))
}

fn is_value_type(bytes: &[u8]) -> bool {
    let is_number = |field| matches!(field, Ok((1 | 2, Value::Number(_))));
    !bytes.is_empty() && Fields::of(bytes).all(is_number)
}

/// Reads a pprof file.
///
/// # Errors
/// [`ReadError`] if it cannot be used at all, or if `monitor` stopped the work.
pub fn read_stream(input: &mut dyn Read, monitor: &dyn Monitor) -> Result<Profile, ReadError> {
    let mut bytes = Vec::new();
    input.take(LARGEST + 1).read_to_end(&mut bytes)?;
    monitor.progress(0, bytes.len() as u64)?;
    if gzip::is_gzip(&bytes) {
        let limit = (bytes.len() as u64).saturating_mul(MOST_GROWTH).clamp(SMALL, LARGEST);
        bytes = gzip::unpack(bytes.as_slice(), limit).map_err(|error| PprofError::Gzip(error.to_string()))?;
        check_size(&bytes, limit)?;
    }
    check_size(&bytes, LARGEST)?;
    let message = message::parse(&bytes)?;
    read::profile(message, monitor)
}

fn check_size(bytes: &[u8], limit: u64) -> Result<(), PprofError> {
    if bytes.len() as u64 > limit { Err(PprofError::TooLarge { limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_known_by_their_first_fields_and_nothing_else_is() {
        let start = [0x0a, 4, 8, 1, 16, 2, 0x12, 5, 1, 2, 3, 4, 5];
        assert!(recognise(&start));
        assert!(recognise(&gzip::pack(&start).unwrap()));
        // As the Go runtime begins: a time, then the types.
        assert!(recognise(&[0x48, 1, 0x5a, 4, 8, 1, 16, 2]));
        for other in [&b""[..], b"perf", b"\n\n\n\n", b"# text", b"\x7fELF", b"hello world", b"{\"a\": 1}", &[0; 64]] {
            assert!(!recognise(other), "{other:?}");
        }
        assert!(!recognise(&gzip::pack(b"some text").unwrap()));
    }
}
