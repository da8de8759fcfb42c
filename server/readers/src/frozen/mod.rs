//! Frozen profiles: one file with all that the costs of a recording need, on any machine, after any rebuild.
//!
//! A `.heatline` file is a zip archive of
//!
//! - `heatline.json`, the manifest: format, version, events with totals, modules with their identities, and for each
//!   text of a source file its path, its SHA-256 and its member. It is the first member, which tells the format at
//!   once; somebody may have packed the members anew in another order;
//! - `tables`, everything of the [`Profile`] but those texts, in an encoding of our own: numbers in groups of seven
//!   bits, counted lists in the order of the fields of [`Profile`], addresses and stacks as distances;
//! - `sources/N-name`, the texts;
//! - `profile.pb.gz`, what the pprof format can hold of it, for other programs. It is never read here.
//!
//! What the addresses were resolved to is part of the tables and becomes [`Profile::symbolization`]; no binary is ever
//! asked again. The same profile gives the same bytes.
//!
//! Files are not trusted: names of members must be plain and different; sizes, the factor of compression and the memory
//! that the tables take have limits; checksums must hold; each number in the tables must name something that is there.
//! A file is read whole or not at all: half a table would show wrong shares. Only a text that has not the SHA-256 of the
//! manifest is left out and told of.

mod archive;
mod codec;
mod manifest;
mod spe;
mod symbols;
mod tables;

use crate::ReadSeek;
use archive::{Reader, Writer};
use codec::Damage;
use heatline_profile::{Monitor, Profile, ProfileKind, Symbolization};
use manifest::{Manifest, Source};
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::sync::Arc;

const MANIFEST: &str = "heatline.json";
const TABLES: &str = "tables";
const PPROF: &str = "profile.pb.gz";

/// A longer manifest is not ours.
const LONGEST_MANIFEST: u64 = 64 << 20;

/// Larger tables than this are not read.
const LARGEST_TABLES: u64 = 256 << 20;

/// Larger source files than this are neither written nor read.
pub const LARGEST_TEXT: u64 = 16 << 20;

/// Texts of more bytes than this in all are left out.
pub const MOST_TEXT: u64 = 128 << 20;

/// Names of source files are cut to so many characters in the names of their members.
const LONGEST_NAME: usize = 64;

/// Why a frozen profile cannot be used or made.
#[derive(Debug, thiserror::Error)]
pub enum FrozenError {
    /// The bytes could not be had.
    #[error("cannot read the frozen profile")]
    Io(#[source] io::Error),
    /// It is no whole archive.
    #[error("not a whole frozen profile: {0}; freeze the recording again, or copy the file again")]
    Container(String),
    /// A member would lie outside the archive's folder.
    #[error("not a frozen profile: it has a member named {0:?}")]
    Name(String),
    /// A member is not there.
    #[error("not a whole frozen profile: it has no member {0}")]
    Missing(String),
    /// A member is damaged.
    #[error("damaged frozen profile: {name}: {why}; freeze the recording again, or copy the file again")]
    Member {
        /// Which.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A member holds more than anybody would write.
    #[error("not a frozen profile: {name} would have {found} bytes, expected at most {limit}")]
    TooLarge {
        /// Which.
        name: String,
        /// How much is allowed.
        limit: u64,
        /// How much it claims.
        found: u64,
    },
    /// A member grows more than anything we write.
    #[error("not a frozen profile: {name} would grow to more than {limit} times its compressed size")]
    TooDense {
        /// Which.
        name: String,
        /// How much is allowed.
        limit: u64,
    },
    /// The manifest is not understood.
    #[error("damaged frozen profile: {MANIFEST}: {0}")]
    Manifest(String),
    /// Another version of the format.
    #[error("a frozen profile of version {found}, expected {expected}; use the heatline that made it, or freeze again")]
    Version {
        /// What is understood.
        expected: u64,
        /// What the file says.
        found: u64,
    },
    /// The tables are not understood.
    #[error("damaged frozen profile: {TABLES}: expected {expected} at offset {at}; freeze the recording again")]
    Tables {
        /// Position in the tables.
        at: usize,
        /// What was expected there.
        expected: &'static str,
    },
}

impl FrozenError {
    fn container(error: impl std::fmt::Display) -> Self {
        FrozenError::Container(error.to_string())
    }

    fn manifest(error: impl std::fmt::Display) -> Self {
        FrozenError::Manifest(error.to_string())
    }
}

impl From<Damage> for FrozenError {
    fn from(Damage { at, expected }: Damage) -> Self {
        FrozenError::Tables { at, expected }
    }
}

/// Whether a file that starts with these bytes is an archive.
pub(crate) fn is_archive(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04")
}

/// Whether a file is an archive that has the manifest anywhere, as one that somebody packed anew.
pub(crate) fn recognise_archive(head: &[u8], input: &mut dyn ReadSeek) -> Option<ProfileKind> {
    (is_archive(head) && archive::has_member(input, MANIFEST)).then_some(ProfileKind::Heatline)
}

/// Whether a file that starts with these bytes is a frozen profile: an archive whose first member is the manifest.
pub fn recognise(head: &[u8]) -> bool {
    const LOCAL_HEADER: usize = 30;
    is_archive(head) && head.get(LOCAL_HEADER..).is_some_and(|rest| rest.starts_with(MANIFEST.as_bytes()))
}

/// The bytes of a frozen profile: the profile, and what its addresses were resolved to, with the texts of sources that
/// are to be kept.
///
/// # Errors
/// [`FrozenError`] if the archive cannot be written.
pub fn freeze(profile: &Profile, symbolization: &Symbolization) -> Result<Vec<u8>, FrozenError> {
    let mut texts = Vec::new();
    let mut left = MOST_TEXT;
    for (number, file) in (0u32..).zip(&symbolization.files) {
        let Some(text) = file.text.as_ref().filter(|text| text.len() as u64 <= LARGEST_TEXT.min(left)) else {
            continue;
        };
        left -= text.len() as u64;
        let source = Source {
            file: number,
            path: file.path.clone(),
            member: member_name(number, &file.path),
            sha256: sha256(text),
        };
        texts.push((source, text));
    }
    let (sources, texts): (Vec<_>, Vec<_>) = texts.into_iter().unzip();
    let manifest = Manifest::of(profile, sources);
    let mut archive = Writer::default();
    archive.add(MANIFEST, manifest.to_bytes()?);
    archive.add(TABLES, tables::encode(profile, symbolization));
    archive.store(PPROF, crate::pprof::write(profile, symbolization).map_err(FrozenError::Io)?);
    for (source, text) in manifest.sources.iter().zip(texts) {
        archive.add(&source.member, text.as_bytes());
    }
    archive.finish()
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `sources/3-main.c` for any path of any system.
fn member_name(number: u32, path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-+".contains(c) { c } else { '_' };
    format!("sources/{number}-{}", name.chars().take(LONGEST_NAME).map(plain).collect::<String>())
}

/// Reads a frozen profile.
///
/// # Errors
/// [`ReadError`](crate::ReadError) if it is not whole, or if `monitor` stopped the work.
pub fn read(input: &mut dyn ReadSeek, monitor: &dyn Monitor) -> Result<Profile, crate::ReadError> {
    input.rewind()?;
    let bytes = in_memory(input)?.into_inner();
    let size = bytes.len() as u64;
    let mut whole = io::Cursor::new(&bytes);
    let mut archive = Reader::new(&mut whole, archive::MOST_BYTES - LARGEST_TABLES)?;
    let manifest = Manifest::parse(&archive.read(MANIFEST, LONGEST_MANIFEST)?)?;
    monitor.progress(0, size)?;
    // The tables are unpacked and understood while the texts are unpacked and hashed.
    let (profile, texts) = std::thread::scope(|scope| {
        let decoding = scope.spawn(|| profile_of(&bytes));
        let texts: Result<Vec<_>, FrozenError> =
            manifest.sources.iter().map(|source| text_of(source, &mut archive)).collect();
        (decoding.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), texts)
    });
    let (mut profile, texts) = (profile?, texts?);
    if let Some(symbolization) = profile.symbolization.as_mut().and_then(Arc::get_mut) {
        for (source, text) in manifest.sources.iter().zip(texts) {
            let file = symbolization.files.get_mut(source.file as usize).filter(|file| file.path == source.path);
            let unknown = || FrozenError::Manifest(format!("{} is the text of no file of the tables", source.member));
            let file = file.ok_or_else(unknown)?;
            file.text = text;
            if file.text.is_none() {
                let path = &source.path;
                let message = format!(
                    "{path}: its text has not the SHA-256 that {MANIFEST} says and was left out; freeze the recording again"
                );
                profile.problems.add("damaged-source", 1, None, message);
            }
        }
    }
    monitor.progress(size, size)?;
    Ok(profile)
}

/// All but the texts.
fn profile_of(archive: &[u8]) -> Result<Profile, FrozenError> {
    let tables = Reader::new(&mut io::Cursor::new(archive), LARGEST_TABLES)?.read(TABLES, LARGEST_TABLES)?;
    Ok(tables::decode(&tables)?)
}

/// The text of a source; `None` if it is not the one whose hash was written down.
fn text_of(source: &Source, archive: &mut Reader<'_>) -> Result<Option<Arc<str>>, FrozenError> {
    let text = String::from_utf8(archive.read(&source.member, LARGEST_TEXT)?)
        .map_err(|_| FrozenError::Member { name: source.member.clone(), why: "expected UTF-8".into() })?;
    Ok(source.sha256.eq_ignore_ascii_case(&sha256(&text)).then(|| text.into()))
}

/// Reads a frozen profile that comes through a pipe: its directory is at the end, so all of it is kept meanwhile.
///
/// # Errors
/// As [`read`], and if it is too long for that.
pub fn read_stream(input: &mut dyn Read, monitor: &dyn Monitor) -> Result<Profile, crate::ReadError> {
    read(&mut in_memory(input)?, monitor)
}

/// A whole stream.
pub(crate) fn in_memory(input: &mut dyn Read) -> Result<io::Cursor<Vec<u8>>, crate::ReadError> {
    let mut bytes = Vec::new();
    input.take(archive::MOST_BYTES + 1).read_to_end(&mut bytes)?;
    let found = bytes.len() as u64;
    if found > archive::MOST_BYTES {
        let name = "all of it".into();
        return Err(FrozenError::TooLarge { name, limit: archive::MOST_BYTES, found }.into());
    }
    Ok(io::Cursor::new(bytes))
}
