//! Watching folders for changes, for editors that cannot.

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Watches folders and calls back with the paths that changed, on a thread of its own.
pub struct Watcher {
    watcher: RecommendedWatcher,
    /// The folders, and whether those below are watched too.
    folders: BTreeMap<PathBuf, bool>,
}

impl Watcher {
    /// A watcher of nothing yet.
    ///
    /// # Errors
    /// If the system offers no watching.
    pub fn new(changed: impl Fn(Vec<PathBuf>) + Send + 'static) -> Result<Self, String> {
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| match event {
            // Reading is no change; our own would never end.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
            Ok(event) => changed(event.paths),
            Err(error) => tracing::warn!(%error, "watching files"),
        });
        Ok(Watcher { watcher: watcher.map_err(|error| error.to_string())?, folders: BTreeMap::new() })
    }

    /// Watches exactly these folders; `true` stands for those below too. One that is not there is left out.
    pub fn set(&mut self, folders: BTreeMap<PathBuf, bool>) {
        for folder in self.folders.keys().filter(|folder| folders.get(*folder) != self.folders.get(*folder)) {
            // It may have been removed meanwhile, and the watch with it.
            let _ = self.watcher.unwatch(folder);
        }
        for (folder, deep) in folders.iter().filter(|(folder, deep)| self.folders.get(*folder) != Some(*deep)) {
            let mode = if *deep { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
            if let Err(error) = self.watcher.watch(folder, mode) {
                tracing::info!(%error, folder = %folder.display(), "a folder cannot be watched");
            }
        }
        self.folders = folders;
    }
}
