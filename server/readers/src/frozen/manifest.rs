//! The manifest: what is in a frozen profile, for people and other programs; and which member is the text of which file.

use super::FrozenError;
use heatline_profile::{EventId, Identity, Profile};
use serde::{Deserialize, Serialize};

/// The word that tells a frozen profile.
const FORMAT: &str = "heatline-frozen-profile";

/// The only version there is. Whatever is added to the tables raises it.
const VERSION: u64 = 1;

#[derive(Serialize, Deserialize, Debug)]
pub(super) struct Manifest {
    format: String,
    version: u64,
    #[serde(default)]
    profile: Summary,
    #[serde(default)]
    modules: Vec<ModuleSummary>,
    /// The texts of source files.
    #[serde(default)]
    pub sources: Vec<Source>,
}

#[derive(Serialize, Deserialize, Debug, Default)]
struct Summary {
    kind: String,
    samples: u64,
    events: Vec<EventSummary>,
}

#[derive(Serialize, Deserialize, Debug)]
struct EventSummary {
    name: String,
    unit: String,
    samples: u64,
    weight: u64,
}

#[derive(Serialize, Deserialize, Debug)]
struct ModuleSummary {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    build_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    guid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    age: Option<u32>,
}

/// The text of a source file.
#[derive(Serialize, Deserialize, Debug)]
pub(super) struct Source {
    /// Number of the file in the tables.
    pub file: u32,
    /// Its path as recorded.
    pub path: String,
    /// The member that holds it.
    pub member: String,
    /// The SHA-256 of the text.
    pub sha256: String,
}

impl Manifest {
    pub fn of(profile: &Profile, sources: Vec<Source>) -> Self {
        let ids = (0..).map(EventId).zip(profile.totals());
        let events = ids.map(|(id, total)| EventSummary {
            name: profile.event(id).name.clone(),
            unit: profile.event(id).unit.name().into(),
            samples: total.samples,
            weight: total.weight.0,
        });
        let modules = profile.modules.iter().map(|module| {
            let (build_id, pdb) = match &module.identity {
                Some(Identity::BuildId(id)) => (Some(id.to_string()), None),
                Some(Identity::Pdb(id)) => (None, Some(id)),
                None => (None, None),
            };
            let path = module.path.clone();
            ModuleSummary { path, build_id, guid: pdb.map(|id| id.guid_text()), age: pdb.map(|id| id.age) }
        });
        Manifest {
            format: FORMAT.into(),
            version: VERSION,
            profile: Summary {
                kind: profile.origin().name().into(),
                samples: profile.samples(),
                events: events.collect(),
            },
            modules: modules.collect(),
            sources,
        }
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>, FrozenError> {
        let mut bytes = serde_json::to_vec_pretty(self).map_err(FrozenError::manifest)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The version is looked at first: another one may have another shape.
    pub fn parse(bytes: &[u8]) -> Result<Self, FrozenError> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u64,
        }
        let head: Head = serde_json::from_slice(bytes).map_err(FrozenError::manifest)?;
        if head.format != FORMAT {
            return Err(FrozenError::Manifest(format!("expected format {FORMAT}, found {:?}", head.format)));
        }
        if head.version != VERSION {
            return Err(FrozenError::Version { expected: VERSION, found: head.version });
        }
        serde_json::from_slice(bytes).map_err(FrozenError::manifest)
    }
}
