//! The container: a zip archive of stored and deflated members. Nothing is believed of one that was not looked at: its
//! names, its sizes, how much they grow.

use super::FrozenError;
use crate::ReadSeek;
use std::borrow::Cow;
use std::io::{BufReader, Cursor, Read, Write};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// More members than this are not ours.
const MOST_MEMBERS: usize = 100_000;

/// All members together may hold so many bytes.
pub(super) const MOST_BYTES: u64 = 512 << 20;

/// A member may be so many times as large as its compressed form; what would shrink more is written as it is.
const MOST_GROWTH: u64 = 200;

/// Members that are smaller may grow as they like.
const SMALL: u64 = 64 << 10;

/// How hard to compress. What archivers usually do takes twice as long and saves a twentieth.
const LEVEL: i64 = 3;

/// Room for so many bytes of a member is made before any has come.
const AT_ONCE: u64 = 4 << 20;

/// Writes an archive into memory. The same members give the same bytes.
#[derive(Default)]
pub(super) struct Writer<'a> {
    members: Vec<(String, Cow<'a, [u8]>, CompressionMethod)>,
}

impl<'a> Writer<'a> {
    /// Adds a member that deflate makes smaller.
    pub fn add(&mut self, name: &str, bytes: impl Into<Cow<'a, [u8]>>) {
        self.members.push((name.into(), bytes.into(), CompressionMethod::Deflated));
    }

    /// Adds a member as it is.
    pub fn store(&mut self, name: &str, bytes: impl Into<Cow<'a, [u8]>>) {
        self.members.push((name.into(), bytes.into(), CompressionMethod::Stored));
    }

    /// The finished archive.
    pub fn finish(mut self) -> Result<Vec<u8>, FrozenError> {
        let mut archive = ZipArchive::new(self.write()?).map_err(FrozenError::container)?;
        let mut again = false;
        for (number, (_, _, method)) in self.members.iter_mut().enumerate() {
            let entry = archive.by_index(number).map_err(FrozenError::container)?;
            if grows_too_much(entry.size(), entry.compressed_size()) {
                *method = CompressionMethod::Stored;
                again = true;
            }
        }
        let bytes = if again { self.write()? } else { archive.into_inner() };
        Ok(bytes.into_inner())
    }

    fn write(&self) -> Result<Cursor<Vec<u8>>, FrozenError> {
        let mut out = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes, method) in &self.members {
            // Neither the time nor the person's rights belong to the content.
            let options = SimpleFileOptions::default().compression_method(*method);
            let options = options.last_modified_time(zip::DateTime::default());
            let level = (*method == CompressionMethod::Deflated).then_some(LEVEL);
            out.start_file(name.as_str(), options.compression_level(level)).map_err(FrozenError::container)?;
            out.write_all(bytes).map_err(FrozenError::Io)?;
        }
        out.finish().map_err(FrozenError::container)
    }
}

/// Whether something may be made to fill memory.
fn grows_too_much(size: u64, compressed: u64) -> bool {
    size > SMALL && size / compressed.max(1) > MOST_GROWTH
}

/// Whether something is an archive with this member, whatever else is to be said of it.
pub(super) fn has_member(input: &mut dyn ReadSeek, name: &str) -> bool {
    ZipArchive::new(BufReader::new(input)).is_ok_and(|archive| archive.index_for_name(name).is_some())
}

/// Reads an archive.
pub(super) struct Reader<'a> {
    archive: ZipArchive<BufReader<&'a mut dyn ReadSeek>>,
    left: u64,
}

impl<'a> Reader<'a> {
    /// Looks at the directory of an archive, of whose members no more than `most` bytes in all will be read.
    pub fn new(input: &'a mut dyn ReadSeek, most: u64) -> Result<Self, FrozenError> {
        let mut archive = ZipArchive::new(BufReader::new(input)).map_err(FrozenError::container)?;
        if archive.len() > MOST_MEMBERS {
            return Err(FrozenError::Container(format!(
                "expected at most {MOST_MEMBERS} members, found {}",
                archive.len()
            )));
        }
        if archive.has_duplicate_names() {
            return Err(FrozenError::Container("two members have the same name".into()));
        }
        if let Some(name) = archive.file_names_raw().find(|name| !is_plain(name)) {
            return Err(FrozenError::Name(String::from_utf8_lossy(name).into_owned()));
        }
        if archive.has_overlapping_entries().map_err(FrozenError::container)? {
            return Err(FrozenError::Container("members overlap".into()));
        }
        Ok(Reader { archive, left: most })
    }

    /// A whole member of at most `most` bytes.
    pub fn read(&mut self, name: &str, most: u64) -> Result<Vec<u8>, FrozenError> {
        let damaged = |error: &dyn std::fmt::Display| FrozenError::Member { name: name.into(), why: error.to_string() };
        let member = match self.archive.by_name(name) {
            Ok(member) => member,
            Err(ZipError::FileNotFound) => return Err(FrozenError::Missing(name.into())),
            Err(error) => return Err(damaged(&error)),
        };
        let (size, compressed) = (member.size(), member.compressed_size());
        let limit = most.min(self.left);
        if size > limit {
            return Err(FrozenError::TooLarge { name: name.into(), limit, found: size });
        }
        if grows_too_much(size, compressed) {
            return Err(FrozenError::TooDense { name: name.into(), limit: MOST_GROWTH });
        }
        let mut bytes = Vec::with_capacity(size.min(AT_ONCE) as usize + 1);
        // The size is only a claim.
        member.take(size + 1).read_to_end(&mut bytes).map_err(|error| damaged(&error))?;
        if bytes.len() as u64 != size {
            return Err(damaged(&format_args!("expected {size} bytes, found {}", bytes.len())));
        }
        self.left -= size;
        Ok(bytes)
    }
}

/// Whether a name stays below the folder that somebody may unpack the archive in, on any system.
fn is_plain(name: &[u8]) -> bool {
    // Folders are members, too, for some.
    let name = name.strip_suffix(b"/").unwrap_or(name);
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-/+ ".contains(byte);
    !name.is_empty()
        && name.iter().all(is_allowed)
        && name.split(|&byte| byte == b'/').all(|part| !part.is_empty() && part.iter().any(|&byte| byte != b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_not_plain() {
        for name in ["heatline.json", "sources/12-main.c", "a.b/c", "sources/"] {
            assert!(is_plain(name.as_bytes()), "{name}");
        }
        for name in ["", "/etc/passwd", "../a", "a/../b", "a/./b", "C:\\a", "a\\b", "a//b", "a//", "/", "../", "nul\0"]
        {
            assert!(!is_plain(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_compresses_too_well_is_stored_so_that_it_can_be_read() {
        let zeros = vec![0; 1 << 20];
        let mut writer = Writer::default();
        writer.add("zeros", &zeros);
        let mut archive = Cursor::new(writer.finish().unwrap());
        assert_eq!(Reader::new(&mut archive, 1 << 20).unwrap().read("zeros", 1 << 20).unwrap(), zeros);
    }
}
