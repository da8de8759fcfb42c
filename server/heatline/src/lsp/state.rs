//! What requests look at: one state behind one lock, held only while a request looks or a change is made.

use super::abilities::Abilities;
use super::document::Document;
use super::followed::Followed;
use super::placing;
use super::shown::Shown;
use super::status::Status;
use super::text::Encoding;
use super::uri;
use crate::base_text::Bases;
use crate::settings::Settings;
use heatline_annotate::{FileId, FileView};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tower_lsp::Client;
use tower_lsp::ls_types::{ProgressToken, Uri};

/// What all parts of the server share.
pub struct Shared {
    /// The client.
    pub client: Client,
    state: Mutex<State>,
    /// Files that may have changed and were not yet looked at. A file that is being written tells so without end.
    changes: Mutex<BTreeSet<PathBuf>>,
    /// Told of each edit of a profiled document.
    pub typing: Notify,
}

impl Shared {
    /// The beginning of a session.
    pub fn new(client: Client) -> Self {
        Shared { client, state: Mutex::default(), changes: Mutex::default(), typing: Notify::new() }
    }

    /// Locks the state. A panic of an earlier holder leaves it as it was then; every change is complete at each step.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the client to ask again. Does not wait for its answer.
    pub fn refresh_editors(&self) {
        let abilities = self.lock().abilities;
        let client = self.client.clone();
        tokio::spawn(async move {
            if abilities.refresh_hints {
                let _ = client.inlay_hint_refresh().await;
            }
        });
        let client = self.client.clone();
        tokio::spawn(async move {
            if abilities.refresh_lenses {
                let _ = client.code_lens_refresh().await;
            }
        });
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
    /// The texts that it was built from, as far as they have been found.
    pub bases: Option<Arc<Bases>>,
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
        let file = document.profiled.as_ref()?.file;
        Some(Costed { document, shown, file, view: shown.annotations.file(file)? })
    }

    /// Puts a document's lines in relation to what is shown.
    pub fn follow(&mut self, key: &str) {
        let Some(document) = self.documents.get_mut(key) else { return };
        document.profiled = followed(self.shown.as_deref(), self.bases.as_deref(), document);
    }

    /// Shows something else, or nothing.
    pub fn show(&mut self, shown: Option<Arc<Shown>>, bases: Option<Arc<Bases>>) {
        self.shown = shown;
        self.bases = bases;
        for document in self.documents.values_mut() {
            document.profiled = followed(self.shown.as_deref(), self.bases.as_deref(), document);
        }
    }

    /// Takes base texts. Tells whether that moves something.
    pub fn take_bases(&mut self, bases: Arc<Bases>) -> bool {
        self.bases = Some(bases);
        let mut any = false;
        for document in self.documents.values_mut() {
            let new = followed(self.shown.as_deref(), self.bases.as_deref(), document);
            let places = |followed: &Option<Followed>| {
                followed.as_ref().map(|one| (one.is_sure(), one.all().collect::<Vec<_>>()))
            };
            any |= places(&document.profiled) != places(&new);
            document.profiled = new;
        }
        any
    }

    /// Ends the running load if its progress has this token.
    pub fn cancel_loading(&self, token: &ProgressToken) {
        if let Some(loading) = self.loading.as_ref().filter(|loading| loading.token == *token) {
            loading.cancelled.store(true, Ordering::Relaxed);
        }
    }
}

fn file_of(shown: Option<&Shown>, bases: Option<&Bases>, document: &Document) -> Option<FileId> {
    let path = document.path.as_ref()?;
    match bases {
        Some(bases) => bases.file_at(path),
        None => shown?.kept.loaded.sources.file_at(path),
    }
}

/// The lines of what is shown in a document.
fn followed(shown: Option<&Shown>, bases: Option<&Bases>, document: &Document) -> Option<Followed> {
    let file = file_of(shown, bases, document)?;
    let base = placing::base_of(bases, file, document);
    let lines = shown?.kept.loaded.lines_of(file);
    Some(match &document.profiled {
        Some(known) => known.based_on(file, base, lines, &document.text),
        None => Followed::new(file, base, lines, &document.text),
    })
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
