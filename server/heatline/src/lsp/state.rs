//! What requests look at: one state behind one lock, held only while a request looks or a change is made.

use super::abilities::Abilities;
use super::document::Document;
use super::shown::Shown;
use super::status::Status;
use super::text::Encoding;
use super::uri;
use crate::settings::Settings;
use heatline_annotate::{FileId, FileView};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tower_lsp::Client;
use tower_lsp::ls_types::{ProgressToken, Uri};

/// What all parts of the server share.
pub struct Shared {
    /// The client.
    pub client: Client,
    state: Mutex<State>,
    /// Files that may have changed and were not yet looked at. A file that is being written tells so without end.
    changes: Mutex<BTreeSet<PathBuf>>,
}

impl Shared {
    /// The beginning of a session.
    pub fn new(client: Client) -> Self {
        Shared { client, state: Mutex::default(), changes: Mutex::default() }
    }

    /// Locks the state. A panic of an earlier holder leaves it as it was then; every change is complete at each step.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes files that may have changed. Tells whether there were none before, so that somebody has to look at them.
    pub fn note_changes(&self, paths: impl IntoIterator<Item = PathBuf>) -> bool {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let were_none = changes.is_empty();
        changes.extend(paths);
        were_none && !changes.is_empty()
    }

    /// The files that were noted since the last call.
    pub fn take_changes(&self) -> Vec<PathBuf> {
        let changes = std::mem::take(&mut *self.changes.lock().unwrap_or_else(PoisonError::into_inner));
        changes.into_iter().collect()
    }
}

/// Everything that answers depend on.
#[derive(Default)]
pub struct State {
    /// Whether the client has begun a session and not yet ended it.
    pub in_session: bool,
    /// What positions count.
    pub encoding: Encoding,
    /// What the client can do.
    pub abilities: Abilities,
    /// The workspace folders.
    pub roots: Vec<PathBuf>,
    /// The settings that the client sent with its first request.
    pub options: Value,
    /// The settings in force.
    pub settings: Arc<Settings>,
    /// Open documents, by [`uri::key`].
    pub documents: HashMap<String, Document>,
    /// What is shown, if a profile is.
    pub shown: Option<Arc<Shown>>,
    /// What the client was told of it last.
    pub status: Status,
    /// The load that is running.
    pub loading: Option<Loading>,
}

/// A load that can be cancelled.
#[derive(Clone, Debug)]
pub struct Loading {
    /// Its progress in the client.
    pub token: ProgressToken,
    /// Set when it should end.
    pub cancelled: Arc<AtomicBool>,
}

impl State {
    /// The document at an address.
    pub fn document(&self, uri: &Uri) -> Option<&Document> {
        self.documents.get(&uri::key(uri))
    }

    /// A document with costs: the document, what is shown, the file it is in the profile, and the file's costs.
    pub fn costed(&self, uri: &Uri) -> Option<Costed<'_>> {
        let document = self.document(uri)?;
        let shown = self.shown.as_ref()?;
        let (file, _) = document.profiled.as_ref()?;
        Some(Costed { document, shown, file: *file, view: shown.annotations.file(*file)? })
    }

    /// Puts a document's lines in relation to what is shown.
    pub fn follow(&mut self, key: &str) {
        let Some(document) = self.documents.get_mut(key) else { return };
        let file = file_of(self.shown.as_deref(), document);
        document.begin_following(file);
    }

    /// Shows something else, or nothing. Lines of documents begin anew unless it is the same recording.
    pub fn show(&mut self, shown: Option<Arc<Shown>>) {
        let same = match (&self.shown, &shown) {
            (Some(old), Some(new)) => old.is_of_same_recording(new),
            _ => false,
        };
        self.shown = shown;
        for document in self.documents.values_mut() {
            let file = file_of(self.shown.as_deref(), document);
            match (&mut document.profiled, file) {
                (Some((known, _)), Some(file)) if same => *known = file,
                _ => document.begin_following(file),
            }
        }
    }

    /// Ends the running load if its progress has this token.
    pub fn cancel_loading(&self, token: &ProgressToken) {
        if let Some(loading) = self.loading.as_ref().filter(|loading| loading.token == *token) {
            loading.cancelled.store(true, Ordering::Relaxed);
        }
    }
}

fn file_of(shown: Option<&Shown>, document: &Document) -> Option<FileId> {
    shown?.kept.loaded.sources.file_at(document.path.as_ref()?)
}

/// A document with costs.
pub struct Costed<'a> {
    /// The document.
    pub document: &'a Document,
    /// What is shown.
    pub shown: &'a Arc<Shown>,
    /// The file it is in the profile.
    pub file: FileId,
    /// The costs of that file.
    pub view: &'a FileView,
}
