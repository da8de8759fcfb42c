//! Debug information that lies beside the binary: separate debug files and what `dwz` took out of several.

use crate::object_file::ObjectFile;
use crate::resolution::Reason;
use crate::storage::read_part;
use crate::{DebugFile, Locate, Storage};
use heatline_profile::{BuildId, Identity, Problems};
use std::sync::Arc;

/// How much of a file is read at a time for its checksum.
const CHUNK: u64 = 1 << 16;

/// What was found beside a binary.
#[derive(Default)]
pub(crate) struct Separate {
    /// The file with the debug information, if the binary itself has none.
    pub debug: Option<ObjectFile>,
    /// The file that debug information refers to for what several binaries share.
    pub supplementary: Option<ObjectFile>,
    /// Why there is no debug information, if there is none.
    pub missing: Option<Reason>,
    pub problems: Problems,
}

impl Separate {
    /// Asks for the files that `file` names, and compares their identities.
    pub fn find(file: &ObjectFile, locate: &dyn Locate) -> Separate {
        let mut found = Separate::default();
        let debug = if file.has(".debug_info") { None } else { found.debug_file(file, locate) };
        if debug.is_none() && !file.has(".debug_info") {
            let link = debug_link(file).map(|(name, _)| Reason::MissingDebugFile(name));
            found.missing = Some(link.unwrap_or(Reason::NoDebugInfo));
            return found;
        }
        found.supplementary = found.supplementary_file(debug.as_ref().unwrap_or(file), locate);
        found.debug = debug;
        found
    }

    fn debug_file(&mut self, file: &ObjectFile, locate: &dyn Locate) -> Option<ObjectFile> {
        if let Some(Identity::BuildId(id)) = &file.identity
            && let Some(storage) = locate.locate(&DebugFile::BuildId(id))
            && let Some(debug) = self.same_build(storage, id)
        {
            return Some(debug);
        }
        let (name, crc) = debug_link(file)?;
        let storage = locate.locate(&DebugFile::DebugLink { name: &name, crc })?;
        if let Some(Identity::BuildId(id)) = &file.identity {
            return self.same_build(storage, id);
        }
        let found = checksum(&*storage);
        if found.as_ref().ok() != Some(&crc) {
            let found = found.map_or_else(|e| e.to_string(), |crc| format!("{crc:#010x}"));
            self.refuse(format!("{name}: expected CRC {crc:#010x}, found {found}"));
            return None;
        }
        self.with_debug_info(storage)
    }

    fn same_build(&mut self, storage: Arc<dyn Storage>, id: &BuildId) -> Option<ObjectFile> {
        let debug = self.with_debug_info(storage)?;
        match &debug.identity {
            Some(Identity::BuildId(found)) if found == id => Some(debug),
            found => {
                let found = found.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
                self.refuse(format!("separate debug file: expected build id {id}, found {found}"));
                None
            }
        }
    }

    fn with_debug_info(&mut self, storage: Arc<dyn Storage>) -> Option<ObjectFile> {
        match ObjectFile::open(storage) {
            Ok(debug) if debug.has(".debug_info") => Some(debug),
            Ok(_) => None,
            Err(e) => {
                self.refuse(format!("separate debug file: {e}"));
                None
            }
        }
    }

    fn supplementary_file(&mut self, file: &ObjectFile, locate: &dyn Locate) -> Option<ObjectFile> {
        let section = file.content_of(".gnu_debugaltlink").ok()?;
        let end = section.iter().position(|byte| *byte == 0)?;
        let (path, id) = section.split_at_checked(end)?;
        let (path, id) = (String::from_utf8_lossy(path), BuildId(id.get(1..)?.to_vec()));
        let Some(storage) = locate.locate(&DebugFile::Supplementary { path: &path, id: &id }) else {
            let message = format!("{path} holds a part of the debug information and was not found");
            self.problems.add("missing-debug-file", 1, None, message);
            return None;
        };
        self.same_build(storage, &id)
    }

    fn refuse(&mut self, message: String) {
        self.problems.add("debug-file-mismatch", 1, None, message);
    }
}

/// Name and CRC-32 from `.gnu_debuglink`; the CRC stands behind the name at the next multiple of four.
fn debug_link(file: &ObjectFile) -> Option<(String, u32)> {
    let section = file.content_of(".gnu_debuglink").ok()?;
    let end = section.iter().position(|byte| *byte == 0)?;
    let name = String::from_utf8_lossy(section.get(..end)?).into_owned();
    let crc = section.get((end + 1).next_multiple_of(4)..)?.first_chunk()?;
    let crc = if file.big_endian { u32::from_be_bytes(*crc) } else { u32::from_le_bytes(*crc) };
    (!name.is_empty()).then_some((name, crc))
}

/// The CRC-32 of a whole file, read in parts.
fn checksum(storage: &dyn Storage) -> std::io::Result<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut offset = 0;
    while offset < storage.len() {
        let part = read_part(storage, offset, CHUNK.min(storage.len() - offset))?;
        offset += part.len() as u64;
        hasher.update(&part);
    }
    Ok(hasher.finalize())
}
