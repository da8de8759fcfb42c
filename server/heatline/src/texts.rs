//! The texts that programs were built of, as far as they can be told to be those.

use crate::load::Loaded;
use heatline_annotate::FileId;
use std::path::Path;

/// Longer files are no source texts.
const LONGEST_TEXT: u64 = 64 << 20;

/// The text that a source file had when the recorded program was built: what lies on this machine, unless it was
/// written after the recording.
pub fn text_as_built(loaded: &Loaded, file: FileId) -> Option<String> {
    let path = loaded.sources.path(file)?;
    let metadata = path.metadata().ok()?;
    if metadata.len() > LONGEST_TEXT || is_newer(path, &loaded.path) {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a source was written after the recording.
fn is_newer(source: &Path, profile: &Path) -> bool {
    let time = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    match (time(source), time(profile)) {
        (Some(source), Some(profile)) => source > profile,
        _ => false,
    }
}
