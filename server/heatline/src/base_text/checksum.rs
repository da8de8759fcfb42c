//! Whether a text is the one whose checksum the compiler wrote down.

use heatline_symbols::Checksum;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// Whether the bytes of a source have one of some checksums, as they are or with the line ends of the other system:
/// version control may have changed those.
pub fn has_any(bytes: &[u8], checksums: &[Checksum]) -> bool {
    let is_any = |bytes: &[u8]| checksums.iter().any(|checksum| has(bytes, checksum));
    !checksums.is_empty() && (is_any(bytes) || is_any(&other_line_ends(bytes)))
}

fn has(bytes: &[u8], checksum: &Checksum) -> bool {
    match checksum {
        Checksum::Md5(expected) => Md5::digest(bytes)[..] == expected[..],
        Checksum::Sha1(expected) => Sha1::digest(bytes)[..] == expected[..],
        Checksum::Sha256(expected) => Sha256::digest(bytes)[..] == expected[..],
        // A kind that nothing can be said of.
        _ => false,
    }
}

/// The same text with `\n` for `\r\n`, or with `\r\n` for `\n` if it has none.
fn other_line_ends(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.windows(2).any(|pair| pair == b"\r\n") {
        let mut out = Vec::with_capacity(bytes.len());
        for (at, &byte) in bytes.iter().enumerate() {
            if byte != b'\r' || bytes.get(at + 1) != Some(&b'\n') {
                out.push(byte);
            }
        }
        return out.into();
    }
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 16);
    for &byte in bytes {
        if byte == b'\n' {
            out.push(b'\r');
        }
        out.push(byte);
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of "abc\n" and of "abc\r\n", by `md5sum`, `sha1sum` and `sha256sum`.
    #[test]
    fn a_text_is_known_by_each_kind_of_checksum_with_either_line_ends() {
        let digest = |text: &str| -> Vec<u8> {
            (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
        };
        let md5 = Checksum::Md5(digest("0bee89b07a248e27c83fc3d5951213c1").try_into().unwrap());
        let sha1 = Checksum::Sha1(digest("03cfd743661f07975fa2f1220c5194cbaff48451").try_into().unwrap());
        let sha256 = digest("edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb");
        let sha256 = Checksum::Sha256(sha256.try_into().unwrap());
        for checksum in [md5, sha1, sha256] {
            assert!(has_any(b"abc\n", &[checksum]), "{checksum:?}");
            assert!(has_any(b"abc\r\n", &[checksum]), "{checksum:?}");
            assert!(!has_any(b"abd\n", &[checksum]), "{checksum:?}");
        }
        let of_windows = Checksum::Md5(Md5::digest(b"a\r\nb\r\n").into());
        assert!(has_any(b"a\nb\n", &[of_windows]));
        assert!(!has_any(b"", &[]));
    }
}
