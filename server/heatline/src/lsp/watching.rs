//! Watching the files that decide what is shown: by the client if it can, else by ourselves.

use super::keeper::Order;
use super::state::Shared;
use super::uri;
use crate::discovery::Pattern;
use crate::settings::FILE_NAME;
use crate::watch::Watcher;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;
use tower_lsp::ls_types::{
    DidChangeWatchedFilesRegistrationOptions, FileSystemWatcher, GlobPattern, OneOf, Registration, RelativePattern,
    Unregistration,
};

const METHOD: &str = "workspace/didChangeWatchedFiles";

fn id(number: u32) -> String {
    format!("heatline/watch/{number}")
}

/// What is watched.
pub struct Watching {
    shared: Arc<Shared>,
    orders: mpsc::UnboundedSender<Order>,
    own: Option<Watcher>,
    patterns: Vec<Pattern>,
    /// The number of the registration in force.
    registered: Option<u32>,
}

impl Watching {
    /// Nothing yet; changes that we see ourselves become orders.
    pub fn new(shared: Arc<Shared>, orders: mpsc::UnboundedSender<Order>) -> Self {
        Watching { shared, orders, own: None, patterns: Vec::new(), registered: None }
    }

    /// Watches these files, the patterns of the settings and the settings file.
    pub fn set(&mut self, files: Vec<PathBuf>) {
        let (by_client, relative, mut patterns) = {
            let state = self.shared.lock();
            let of_root = |root: &PathBuf| {
                let texts = state.settings.profiles.iter().map(String::as_str);
                texts.map(|text| Pattern::new(root, text)).collect::<Vec<_>>()
            };
            let mut patterns: Vec<Pattern> = state.roots.iter().flat_map(of_root).collect();
            patterns.extend(state.roots.first().map(|root| Pattern::new(root, FILE_NAME)));
            (state.abilities.watch, state.abilities.relative_patterns, patterns)
        };
        let others = files.into_iter().filter(|file| !patterns.iter().any(|pattern| pattern.matches(file)));
        let others: Vec<Pattern> = others
            .filter_map(|file| {
                let name = file.file_name()?.to_string_lossy().into_owned();
                Some(Pattern { folder: file.parent()?.to_owned(), rest: name })
            })
            .collect();
        patterns.extend(others);
        if patterns == self.patterns {
            return;
        }
        self.patterns = patterns;
        if by_client { self.register(relative) } else { self.watch() }
    }

    /// Tells the client what to watch. Nothing waits for its answer.
    fn register(&mut self, relative: bool) {
        let watchers =
            self.patterns.iter().map(|pattern| FileSystemWatcher { glob_pattern: glob(pattern, relative), kind: None });
        let options = DidChangeWatchedFilesRegistrationOptions { watchers: watchers.collect() };
        let old = self.registered.map(|number| Unregistration { id: id(number), method: METHOD.into() });
        let number = self.registered.map_or(1, |number| number + 1);
        self.registered = Some(number);
        let register_options = serde_json::to_value(options).ok();
        let new = Registration { id: id(number), method: METHOD.into(), register_options };
        let client = self.shared.client.clone();
        tokio::spawn(async move {
            if let Err(error) = client.register_capability(vec![new]).await {
                tracing::warn!(%error, "the client does not watch files; use heatline.server.refresh");
            }
            if let Some(old) = old {
                let _ = client.unregister_capability(vec![old]).await;
            }
        });
    }

    fn watch(&mut self) {
        if self.own.is_none() {
            let (shared, orders) = (self.shared.clone(), self.orders.clone());
            let changed = move |paths: Vec<PathBuf>| {
                if shared.note_changes(paths) {
                    // Nobody takes orders any more only when the session has ended.
                    let _ = orders.send(Order::Changed);
                }
            };
            self.own = Watcher::new(changed)
                .inspect_err(|error| tracing::warn!(error, "files cannot be watched; use heatline.server.refresh"))
                .ok();
        }
        let mut folders: BTreeMap<PathBuf, bool> = BTreeMap::new();
        for pattern in &self.patterns {
            *folders.entry(pattern.folder.clone()).or_default() |= pattern.is_deep();
        }
        if let Some(own) = &mut self.own {
            own.set(folders);
        }
    }
}

fn glob(pattern: &Pattern, relative: bool) -> GlobPattern {
    match uri::from_path(&pattern.folder).filter(|_| relative) {
        Some(base) => {
            GlobPattern::Relative(RelativePattern { base_uri: OneOf::Right(base), pattern: pattern.rest.clone() })
        }
        None => GlobPattern::String(format!("{}/{}", pattern.folder.to_string_lossy(), pattern.rest)),
    }
}
