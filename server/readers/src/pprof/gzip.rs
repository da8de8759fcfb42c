//! The gzip that pprof files are usually wrapped in.

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::io::{self, Read, Write};

/// Whether bytes begin like gzip.
pub(super) fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(&[0x1f, 0x8b, 8])
}

/// As much as can be unpacked of the beginning of a file, at most `most` bytes.
pub(super) fn beginning(head: &[u8], most: usize) -> Vec<u8> {
    let mut bytes = vec![0; most];
    let mut decoder = MultiGzDecoder::new(head);
    let mut filled = 0;
    while let Some(room) = bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
        match decoder.read(room) {
            Ok(count) if count > 0 => filled += count,
            _ => break,
        }
    }
    bytes.truncate(filled);
    bytes
}

/// All of a file, of which no more than `most` bytes are unpacked; one more is asked for to tell whether there are.
pub(super) fn unpack(input: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(input).take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// How hard to pack: quickly, as what is packed is read by programs and seldom kept.
const LEVEL: u32 = 1;

/// Packs bytes; no time or name gets in.
pub(super) fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(LEVEL));
    encoder.write_all(bytes)?;
    encoder.finish()
}
