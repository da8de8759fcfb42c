//! The command `heatline.server.freeze`: keeps what is shown as a file, to compare with from then on.

use crate::load::Loaded;
use crate::{freeze, out_file};
use heatline_profile::ProfileKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file, where none is named: in the first workspace folder, else beside the profile.
const USUAL_NAME: &str = "baseline.heatline";

/// A profile and where it is to be kept.
pub struct Freeze {
    loaded: Arc<Loaded>,
    path: PathBuf,
}

impl Freeze {
    /// To `path`, or where it is usually kept.
    pub fn new(loaded: Arc<Loaded>, path: Option<PathBuf>, root: Option<&Path>) -> Self {
        let folder = root.or(loaded.path.parent()).unwrap_or(Path::new(""));
        let path = path.unwrap_or_else(|| folder.join(USUAL_NAME));
        Freeze { loaded, path }
    }

    /// Writes the file and returns its path. An older frozen profile is replaced, nothing else is.
    ///
    /// # Errors
    /// With the message of the command line.
    pub fn write(self) -> Result<PathBuf, String> {
        let is_frozen = |head: &[u8]| heatline_readers::recognise(head) == Some(ProfileKind::Heatline);
        let written = freeze::freeze(&self.loaded).and_then(|frozen| {
            for problem in frozen.left_out.iter() {
                tracing::warn!(count = problem.count, "{}", problem.message);
            }
            out_file::write(&self.path, &frozen.bytes, is_frozen)
        });
        written.map(|()| self.path).map_err(|error| format!("{error:#}"))
    }
}
