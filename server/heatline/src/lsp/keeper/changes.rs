//! Files that change: which are watched, and what follows from a change.

use super::{Keeper, Need};
use crate::base_text::Bases;
use crate::discovery::Pattern;
use crate::lsp::builds;
use crate::lsp::stamp::Stamp;
use crate::settings;
use heatline_annotate::FileId;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// So many source files, the hottest, are watched for changes that no editor makes.
const MOST_SOURCES: usize = 200;

impl Keeper {
    pub(super) async fn changed(&mut self, paths: Vec<PathBuf>) {
        let (of_settings, of_patterns) = self.concerns(&paths);
        if of_settings {
            self.configure(&Value::Null).await;
        }
        if of_patterns {
            let before = self.need;
            self.discover().await;
            // A profile that has just appeared is most likely being written.
            if self.need > before {
                self.want(Need::ReadWhenSettled);
            }
        }
        self.look_at_binaries(&paths).await;
        self.look_at_sources(paths.clone());
        let wish = self.wish();
        let mut wanted = wish.iter().flat_map(|wish| [Some(&wish.profile), wish.baseline.as_ref()]).flatten();
        if wanted.any(|path| paths.contains(path)) && self.is_outdated() {
            self.want(Need::ReadWhenSettled);
        }
    }

    /// Says it when binaries of what is shown have been built again.
    async fn look_at_binaries(&mut self, paths: &[PathBuf]) {
        let Some((_, shown)) = &self.shown else { return };
        let binaries = builds::binaries(&shown.kept.loaded).map(|(_, path)| path.clone());
        let binaries: Vec<PathBuf> = binaries.collect();
        if !binaries.iter().any(|path| paths.contains(path)) {
            return;
        }
        let loaded = shown.kept.loaded.clone();
        let rebuilt = tokio::task::spawn_blocking(move || builds::rebuilt(&loaded, &binaries)).await;
        self.rebuilt = rebuilt.unwrap_or_default();
        self.tell_again().await;
    }

    /// Places lines anew in sources that have changed on the disk.
    fn look_at_sources(&self, paths: Vec<PathBuf>) {
        self.place_anew(move |bases| {
            let changed = bases.after_changes(&paths)?;
            Some(found_again(&changed).unwrap_or(changed))
        });
    }

    /// Whether files are the settings file, and whether they may be profiles to be found.
    fn concerns(&self, paths: &[PathBuf]) -> (bool, bool) {
        let state = self.shared.lock();
        let file = state.roots.first().map(|root| root.join(settings::FILE_NAME));
        let of_settings = file.is_some_and(|file| paths.contains(&file));
        let patterns = state.roots.iter().flat_map(|root| {
            let texts = state.settings.profiles.iter();
            texts.map(|text| Pattern::new(root, text)).collect::<Vec<_>>()
        });
        let of_patterns = patterns.into_iter().any(|pattern| paths.iter().any(|path| pattern.matches(path)));
        (of_settings, of_patterns)
    }

    /// Whether a file that is shown, or could not be, is not as it was when it was read.
    fn is_outdated(&self) -> bool {
        let Some((_, shown)) = &self.shown else { return true };
        let outdated = |path: &Path, stamp: Stamp| Stamp::of(path) != stamp;
        let kept = [Some(&shown.kept), shown.baseline.as_ref()];
        self.wish().is_some_and(|wish| wish.profile != shown.kept.path)
            || kept.into_iter().flatten().any(|kept| outdated(&kept.path, kept.stamp))
    }

    /// Watches all that could change what is shown or is said of it.
    pub(super) fn watch(&mut self) {
        let wish = self.wish();
        let files = wish.iter().flat_map(|wish| [Some(wish.profile.clone()), wish.baseline.clone()]).flatten();
        let mut files: Vec<PathBuf> = files.collect();
        if let Some((wish, shown)) = &self.shown {
            // Libraries of the system are not built here.
            let in_workspace = |path: &&PathBuf| wish.roots.iter().any(|root| path.starts_with(root));
            let binaries = builds::binaries(&shown.kept.loaded).map(|(_, path)| path);
            files.extend(binaries.filter(in_workspace).cloned());
            let hottest = shown.annotations.hottest_lines().iter().map(|(file, _)| *file);
            let mut sources: Vec<FileId> = Vec::new();
            for file in hottest {
                if sources.len() < MOST_SOURCES && !sources.contains(&file) {
                    sources.push(file);
                }
            }
            let bases = self.shared.lock().bases.clone();
            let paths = |file: FileId| {
                let renamed = bases.as_ref().and_then(|bases| bases.texts.renamed(file));
                [shown.kept.loaded.sources.path(file), renamed].into_iter().flatten().map(Path::to_owned).collect()
            };
            let sources = sources.into_iter().flat_map(|file| -> Vec<PathBuf> { paths(file) });
            files.extend(sources.filter(|path| in_workspace(&path)));
        }
        self.watching.set(files);
    }
}

/// What becomes of places if files are not where they were said to be.
fn found_again(bases: &Bases) -> Option<Bases> {
    if bases.may_be_renamed() { bases.with_renames(&AtomicBool::new(false)) } else { None }
}
