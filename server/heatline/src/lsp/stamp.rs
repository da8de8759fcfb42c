//! The state of a file, to tell whether it was written since.

use std::path::Path;
use std::time::SystemTime;

/// Length and time of the last writing of a file, if it is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp(Option<(u64, SystemTime)>);

impl Stamp {
    /// The state of a file now.
    pub fn of(path: &Path) -> Self {
        let metadata = std::fs::metadata(path).ok();
        Stamp(metadata.and_then(|metadata| Some((metadata.len(), metadata.modified().ok()?))))
    }

    /// Whether the file was there.
    pub fn exists(self) -> bool {
        self.0.is_some()
    }
}
