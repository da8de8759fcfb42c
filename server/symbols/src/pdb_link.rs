//! Which PDB belongs to an image, and whether it may be believed.

use crate::object_file::{ImageKind, ObjectFile};
use crate::pdb::{self, IdentityMatch};
use crate::{DebugFile, Locate, Reason, Storage, SymbolError};
use heatline_profile::{Identity, PdbId, Problems};
use std::sync::Arc;

/// The PDB of an image.
pub(crate) enum PdbLink {
    /// The image names none and is none.
    None,
    /// One that may be used.
    Usable {
        /// Its path, as the image has it.
        name: String,
        storage: Arc<dyn Storage>,
        /// What is to be said of its identity.
        note: Option<(&'static str, String)>,
    },
    /// One that may not, or that was not found.
    Unusable(Reason),
}

impl PdbLink {
    /// Asks for the PDB that a PE image without debug information of its own names, and compares identities.
    pub fn find(file: &ObjectFile, locate: &dyn Locate) -> PdbLink {
        if file.kind == ImageKind::Pdb {
            let name = "the PDB".to_owned();
            return PdbLink::Usable { name, storage: file.storage.clone(), note: None };
        }
        let (Some(path), Some(Identity::Pdb(id))) = (&file.pdb_path, &file.identity) else { return PdbLink::None };
        let Some(storage) = locate.locate(&DebugFile::Pdb { path, id: *id }) else {
            return PdbLink::Unusable(Reason::MissingDebugFile(path.clone()));
        };
        match pdb::open(&storage) {
            Ok(pdb) => judge(path, *id, &pdb.identity, storage, locate.allow_mismatch()),
            Err(error) => PdbLink::Unusable(Reason::UnusableDebugFile { name: path.clone(), why: error.to_string() }),
        }
    }

    /// The PDB, or why there is none. What is to be said of its identity is added to `problems`.
    pub fn usable(&self, problems: &mut Problems) -> Result<&Arc<dyn Storage>, Reason> {
        match self {
            PdbLink::None => Err(Reason::NoDebugInfo),
            PdbLink::Usable { storage, note, .. } => {
                if let Some((kind, message)) = note {
                    problems.add(kind, 1, None, message.clone());
                }
                Ok(storage)
            }
            PdbLink::Unusable(reason) => {
                let kind = match reason {
                    Reason::MissingDebugFile(_) => "missing-debug-file",
                    Reason::OtherBuild { .. } => "pdb-mismatch",
                    _ => "unusable-debug-file",
                };
                problems.add(kind, 1, None, reason.to_string());
                Err(reason.clone())
            }
        }
    }

    /// The reason that an error in the PDB gives.
    pub fn unusable(&self, error: &SymbolError) -> Reason {
        match self {
            PdbLink::Usable { name, .. } => Reason::UnusableDebugFile { name: name.clone(), why: error.to_string() },
            PdbLink::Unusable(reason) => reason.clone(),
            PdbLink::None => Reason::NoDebugInfo,
        }
    }
}

fn judge(path: &str, id: PdbId, found: &pdb::PdbIdentity, storage: Arc<dyn Storage>, allow_mismatch: bool) -> PdbLink {
    let name = path.to_owned();
    let other = || Reason::OtherBuild { name: name.clone(), expected: id.to_string(), found: found.id().to_string() };
    let note = match found.fits(id) {
        IdentityMatch::Exact => None,
        IdentityMatch::Rewritten => Some((
            "pdb-age",
            format!("{path} was rewritten after linking: its age is {}, its content's {}", found.age, found.id().age),
        )),
        IdentityMatch::OtherAge | IdentityMatch::OtherBuild if allow_mismatch => {
            Some(("pdb-mismatch", format!("{}; used all the same, lines may be wrong", other())))
        }
        IdentityMatch::OtherAge | IdentityMatch::OtherBuild => return PdbLink::Unusable(other()),
    };
    PdbLink::Usable { name, storage, note }
}

/// How an image, or a PDB alone, fits an identity.
pub(crate) fn fits(file: &ObjectFile, wanted: &Identity) -> Result<IdentityMatch, SymbolError> {
    let same = |same| if same { IdentityMatch::Exact } else { IdentityMatch::OtherBuild };
    Ok(match (wanted, &file.identity) {
        (Identity::Pdb(wanted), _) if file.kind == ImageKind::Pdb => pdb::open(&file.storage)?.identity.fits(*wanted),
        (Identity::Pdb(wanted), Some(Identity::Pdb(own))) if wanted.guid == own.guid && !own.is_nil() => {
            if wanted.age == own.age { IdentityMatch::Exact } else { IdentityMatch::OtherAge }
        }
        (wanted, own) => same(own.as_ref() == Some(wanted) && !matches!(wanted, Identity::Pdb(id) if id.is_nil())),
    })
}
