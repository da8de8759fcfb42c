//! Whether a PDB is that of a binary, and whether it is of a kind that can be used.

use super::format::{Error, File};
use crate::storage::read_part;
use crate::{Storage, SymbolError};
use heatline_profile::PdbId;
use std::sync::Arc;

/// What a PDB says of its build.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PdbIdentity {
    pub guid: [u8; 16],
    /// Of the information stream; tools that rewrite a PDB count it up.
    pub age: u32,
    /// Of the debug information, which the linker sets to that of the image.
    pub image_age: Option<u32>,
}

/// How a PDB, or a binary, fits an identity that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdentityMatch {
    /// The very build.
    Exact,
    /// The GUID is the same and the age is that of the information stream only: the PDB was rewritten later.
    Rewritten,
    /// The GUID is the same, the age is another one: relinked incrementally. Usable on request only.
    OtherAge,
    /// Another build.
    OtherBuild,
}

impl PdbIdentity {
    /// The identity of the image that it belongs to.
    pub fn id(&self) -> PdbId {
        PdbId { guid: self.guid, age: self.image_age.unwrap_or(self.age) }
    }

    /// How it fits.
    pub fn fits(&self, wanted: PdbId) -> IdentityMatch {
        if self.guid != wanted.guid || wanted.is_nil() {
            IdentityMatch::OtherBuild
        } else if self.id().age == wanted.age {
            IdentityMatch::Exact
        } else if self.age == wanted.age {
            IdentityMatch::Rewritten
        } else {
            IdentityMatch::OtherAge
        }
    }
}

const MSF: &[u8] = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0";
const OLD: &[u8] = b"Microsoft C/C++ program database 2.00\r\n\x1aJG\0\0";
const PORTABLE: &[u8] = b"BSJB";

/// Marks a PDB that leaves the debug information in the object files.
const MINIMAL_DEBUG_INFO: u32 = 0x494e_494d;

/// Whether the file is a PDB of any kind.
pub(crate) fn is_pdb(start: &[u8]) -> bool {
    [MSF, OLD, PORTABLE].iter().any(|magic| start.starts_with(magic))
}

/// Opens a PDB of a kind that can be used.
pub(super) fn open(storage: &Arc<dyn Storage>) -> Result<(File, PdbIdentity), SymbolError> {
    let start = read_part(&**storage, 0, storage.len().min(64))
        .map_err(|source| SymbolError::Read { what: "the first bytes".to_owned(), source })?;
    if start.starts_with(PORTABLE) {
        return unsupported("a portable .NET PDB (BSJB), which describes no machine code; expected a native one");
    }
    if start.starts_with(OLD) {
        return unsupported("a PDB of format 2.00, older than Visual Studio .NET; build with a newer tool chain");
    }
    if !start.starts_with(MSF) {
        return Err(SymbolError::UnknownFormat { found: start.get(..8).unwrap_or(&start).to_vec() });
    }
    let damaged = |e: Error| SymbolError::Headers { format: "PDB", message: e.to_string() };
    let mut file = File::open(storage).map_err(damaged)?;
    if features(&file.information_stream().map_err(damaged)?).contains(&MINIMAL_DEBUG_INFO) {
        return unsupported(
            "a PDB made with /DEBUG:FASTLINK, which leaves its content in the object files; link with /DEBUG:FULL, or \
             complete it with `mspdbcmf.exe`",
        );
    }
    let (guid, age, image_age) = file.identity().map_err(damaged)?;
    Ok((file, PdbIdentity { guid, age, image_age }))
}

fn unsupported<T>(what: &'static str) -> Result<T, SymbolError> {
    Err(SymbolError::UnsupportedPdb { what })
}

/// The numbers at the end of the information stream, behind the table of named streams.
fn features(stream: &[u8]) -> Vec<u32> {
    after_named_streams(stream).unwrap_or_default()
}

fn after_named_streams(stream: &[u8]) -> Option<Vec<u32>> {
    use super::bytes::Bytes;
    let mut rest = Bytes(stream);
    // Version, signature, age, GUID; then the names.
    rest.take(28)?;
    let names = rest.u32()?;
    rest.take(names as usize)?;
    // A hash table: its size and capacity, two bit sets, pairs.
    let entries = rest.u32()?;
    let _capacity = rest.u32()?;
    for _ in 0..2 {
        let words = rest.u32()?;
        rest.take((words as usize).checked_mul(4)?)?;
    }
    rest.take((entries as usize).checked_mul(8)?)?;
    let _highest_name = rest.u32();
    Some(rest.0.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUID: [u8; 16] =
        [0xa6, 0xfd, 0x10, 0xad, 0xd8, 0xa0, 0x64, 0xb6, 0x4c, 0x4c, 0x44, 0x20, 0x50, 0x44, 0x42, 0x2e];

    #[track_caller]
    fn check(pdb: PdbIdentity, age: u32, expected: IdentityMatch) {
        assert_eq!(pdb.fits(PdbId { guid: GUID, age }), expected);
    }

    #[test]
    fn the_age_of_the_debug_information_decides() {
        let plain = PdbIdentity { guid: GUID, age: 1, image_age: Some(1) };
        check(plain, 1, IdentityMatch::Exact);
        check(plain, 2, IdentityMatch::OtherAge);
        let rewritten = PdbIdentity { age: 3, ..plain };
        check(rewritten, 1, IdentityMatch::Exact);
        check(rewritten, 3, IdentityMatch::Rewritten);
        check(rewritten, 2, IdentityMatch::OtherAge);
        check(PdbIdentity { image_age: None, ..rewritten }, 3, IdentityMatch::Exact);
        check(PdbIdentity { guid: [1; 16], ..plain }, 1, IdentityMatch::OtherBuild);
        let nil = PdbIdentity { guid: [0; 16], ..plain };
        assert_eq!(nil.fits(PdbId { guid: [0; 16], age: 1 }), IdentityMatch::OtherBuild);
    }

    #[test]
    fn features_follow_the_named_streams() {
        let mut stream = vec![0; 28];
        stream.extend(3_u32.to_le_bytes());
        stream.extend(b"/n\0");
        for word in [1_u32, 2, 1, 1, 0, 0, 5, 0, 20_140_508, MINIMAL_DEBUG_INFO] {
            stream.extend(word.to_le_bytes());
        }
        assert_eq!(features(&stream), [20_140_508, MINIMAL_DEBUG_INFO]);
        for len in 0..stream.len() {
            features(&stream[..len]);
        }
    }
}
