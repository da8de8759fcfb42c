//! The methods of the protocol, each handed to the file that answers it.
//!
//! Every handler does what depends on the order of messages before its first await: notifications change the state
//! there, requests take from it what they need.

use super::abilities::{self, Abilities};
use super::document::Document;
use super::keeper::{Keeper, Order};
use super::requests::{
    adjacent_hotspot, call_hierarchy, code_lens, deltas, execute_command, heat, hotspots, hover, initialize,
    inlay_hint, prepare_call_hierarchy,
};
use super::settling;
use super::state::Shared;
use super::status::Status;
use super::text::{Place, Text};
use super::transport::Methods;
use super::uri;
use crate::base_text;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tower_lsp::jsonrpc::{Error, Request, Result};
use tower_lsp::ls_types::{
    CallHierarchyIncomingCall, CallHierarchyIncomingCallsParams, CallHierarchyItem, CallHierarchyOutgoingCall,
    CallHierarchyOutgoingCallsParams, CallHierarchyPrepareParams, DidChangeConfigurationParams,
    DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidChangeWorkspaceFoldersParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DidSaveTextDocumentParams, ExecuteCommandParams, Hover,
    HoverParams, InitializeParams, InitializeResult, InitializedParams, LSPAny, Position, Range, RenameFilesParams,
    WorkDoneProgressCancelParams,
};
use tower_lsp::{Client, LanguageServer, LspService};

/// The language server.
pub struct Server {
    shared: Arc<Shared>,
    orders: mpsc::UnboundedSender<Order>,
    /// The other end, until the keeper begins.
    waiting: Mutex<Option<mpsc::UnboundedReceiver<Order>>>,
}

/// The requests of the protocol that are answered; the others are unknown methods, whatever their parameters.
const REQUESTS: [&str; 9] = [
    "initialize",
    "shutdown",
    "textDocument/inlayHint",
    "textDocument/codeLens",
    "textDocument/hover",
    "textDocument/prepareCallHierarchy",
    "callHierarchy/incomingCalls",
    "callHierarchy/outgoingCalls",
    "workspace/executeCommand",
];

/// What the transport has to know of them.
pub const METHODS: Methods<Server> =
    Methods { known: |method| REQUESTS.contains(&method) || method.starts_with("heatline/"), direct };

/// Answers the requests whose answers are long, or are more than the library's types can say, at once, as JSON: the
/// way over the library's values takes many times as long as finding the answer. `None` for all others, and outside of
/// a session, where the library refuses them.
fn direct(server: &Server, request: &Request) -> Option<Result<Vec<u8>>> {
    let state = server.shared.lock();
    let answer = match request.method() {
        _ if !state.in_session => return None,
        "textDocument/inlayHint" => {
            parameters(request).and_then(|params| inlay_hint::answer(&state, &params, |hints| json(hints)))
        }
        "textDocument/codeLens" => {
            parameters(request).and_then(|params| json(code_lens::answer(&state, &params).as_slice()))
        }
        "heatline/heat" => parameters(request).and_then(|params| heat::answer(&state, &params, |heat| json(heat))),
        "heatline/deltas" => {
            parameters(request).and_then(|params| deltas::answer(&state, &params, |deltas| json(deltas)))
        }
        _ => return None,
    };
    Some(answer)
}

fn parameters<T: DeserializeOwned>(request: &Request) -> Result<T> {
    T::deserialize(request.params().unwrap_or(&LSPAny::Null)).map_err(|error| Error::invalid_params(error.to_string()))
}

fn json(answer: &(impl Serialize + ?Sized)) -> Result<Vec<u8>> {
    serde_json::to_vec(answer).map_err(|_| Error::internal_error())
}

/// The service with all methods, ours and the protocol's.
pub fn service() -> (LspService<Server>, tower_lsp::ClientSocket) {
    let mut builder = LspService::build(Server::new)
        .custom_method("window/workDoneProgress/cancel", Server::cancel_progress)
        .custom_method("heatline/status", Server::status)
        .custom_method("heatline/heat", Server::answered)
        .custom_method("heatline/deltas", Server::answered)
        .custom_method("heatline/hotspots", Server::hotspots)
        .custom_method("heatline/adjacentHotspot", Server::adjacent_hotspot);
    // For the test that a panic becomes one error answer.
    if std::env::var_os("HEATLINE_TEST_PANIC").is_some() {
        builder = builder.custom_method("heatline/testPanic", Server::test_panic);
    }
    builder.finish()
}

impl Server {
    fn new(client: Client) -> Self {
        let (orders, waiting) = mpsc::unbounded_channel();
        Server { shared: Arc::new(Shared::new(client)), orders, waiting: Mutex::new(Some(waiting)) }
    }

    fn order(&self, order: Order) {
        // Fails only when the session has ended.
        let _ = self.orders.send(order);
    }

    /// The file on the disk may be another text now.
    fn note_change(&self, uri: &tower_lsp::ls_types::Uri) {
        if self.shared.note_changes(uri::to_path(uri)) {
            self.order(Order::Changed);
        }
    }

    async fn cancel_progress(&self, params: WorkDoneProgressCancelParams) {
        self.shared.lock().cancel_loading(&params.token);
    }

    async fn status(&self, _: LSPAny) -> Result<Status> {
        Ok(self.shared.lock().status.clone())
    }

    /// Refuses what [`direct`] leaves.
    async fn answered(&self, _: LSPAny) -> Result<()> {
        Err(Error::invalid_request())
    }

    async fn hotspots(&self, params: hotspots::Params) -> Result<hotspots::Answer> {
        let question = hotspots::Question::take(&self.shared.lock(), params);
        compute(move || question.answer()).await
    }

    async fn adjacent_hotspot(&self, params: adjacent_hotspot::Params) -> Result<Option<adjacent_hotspot::Answer>> {
        Ok(adjacent_hotspot::answer(&self.shared.lock(), &params))
    }

    async fn test_panic(&self, params: TestPanicParams) -> Result<()> {
        if params.late {
            tokio::task::yield_now().await;
        }
        let _lock = self.shared.lock();
        panic!("asked to panic");
    }
}

#[derive(Deserialize)]
struct TestPanicParams {
    /// Behind the first await instead of before it.
    late: bool,
}

/// Computes on a thread that may take its time.
async fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

impl LanguageServer for Server {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let mut state = self.shared.lock();
        state.encoding = abilities::encoding(&params.capabilities);
        state.abilities = Abilities::of(&params.capabilities);
        state.roots = initialize::roots(&params);
        state.in_session = true;
        state.options = params.initialization_options.unwrap_or_default();
        Ok(initialize::answer(state.encoding))
    }

    async fn initialized(&self, _: InitializedParams) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(orders) = waiting {
            tokio::spawn(Keeper::new(self.shared.clone(), self.orders.clone(), orders).run());
            tokio::spawn(settling::run(self.shared.clone(), self.orders.clone()));
        }
    }

    async fn shutdown(&self) -> Result<()> {
        self.shared.lock().in_session = false;
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        let opened = params.text_document;
        let key = uri::key(&opened.uri);
        let document = Document {
            path: uri::to_path(&opened.uri).map(|path| uri::canonical(&path)),
            uri: opened.uri.as_str().to_owned(),
            version: opened.version,
            text: Text::new(opened.text),
            profiled: None,
        };
        let mut state = self.shared.lock();
        state.documents.insert(key.clone(), document);
        state.follow(&key);
        let unknown = state.documents.get(&key).filter(|document| document.profiled.is_none());
        let path = unknown.and_then(|document| document.path.clone());
        drop(state);
        if let Some(path) = path {
            self.order(Order::LookForRenames(path));
        }
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        let mut state = self.shared.lock();
        let encoding = state.encoding;
        let Some(document) = state.documents.get_mut(&uri::key(&params.text_document.uri)) else { return };
        for change in params.content_changes {
            let range = change.range.map(|range| (place(range.start), place(range.end)));
            document.change(range, &change.text, encoding);
        }
        document.version = params.text_document.version;
        document.changed();
        if document.profiled.is_some() {
            self.shared.typing.notify_one();
        }
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        self.shared.lock().documents.remove(&uri::key(&params.text_document.uri));
        self.note_change(&params.text_document.uri);
    }

    async fn did_save(&self, params: DidSaveTextDocumentParams) {
        self.note_change(&params.text_document.uri);
    }

    async fn did_change_configuration(&self, params: DidChangeConfigurationParams) {
        self.order(Order::Configure(params.settings));
    }

    async fn did_change_workspace_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        let mut state = self.shared.lock();
        let paths = |folders: &[tower_lsp::ls_types::WorkspaceFolder]| {
            folders.iter().filter_map(|folder| uri::to_path(&folder.uri)).collect::<Vec<_>>()
        };
        let removed = paths(&params.event.removed);
        state.roots.retain(|root| !removed.contains(root));
        state.roots.extend(paths(&params.event.added));
        drop(state);
        self.order(Order::Roots);
    }

    async fn did_rename_files(&self, params: RenameFilesParams) {
        let path = |text: &str| Some(base_text::resolved(&uri::to_path(&text.parse().ok()?)?));
        let renames = params.files.iter().filter_map(|file| Some((path(&file.old_uri)?, path(&file.new_uri)?)));
        self.order(Order::Renamed(renames.collect()));
    }

    async fn did_change_watched_files(&self, params: DidChangeWatchedFilesParams) {
        let paths = params.changes.iter().filter_map(|change| uri::to_path(&change.uri));
        if self.shared.note_changes(paths) {
            self.order(Order::Changed);
        }
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        let question = hover::Question::take(&self.shared.lock(), &params);
        match question {
            Some(question) => Ok(compute(move || question.answer()).await),
            None => Ok(None),
        }
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<LSPAny>> {
        let command = execute_command::check(&self.shared.lock(), params)?;
        match command {
            execute_command::Command::Order(order) => {
                self.order(execute_command::look_at(order)?);
                Ok(None)
            }
            execute_command::Command::Freeze(freeze) => {
                let path = compute(move || freeze.write()).await.map_err(execute_command::failed)?;
                self.order(Order::Baseline(Some(path.clone())));
                Ok(Some(path.to_string_lossy().into_owned().into()))
            }
            execute_command::Command::Calls(question) => Ok(Some(compute(move || question.answer()).await)),
        }
    }

    async fn prepare_call_hierarchy(
        &self,
        params: CallHierarchyPrepareParams,
    ) -> Result<Option<Vec<CallHierarchyItem>>> {
        let question = prepare_call_hierarchy::Prepare::take(&self.shared.lock(), &params);
        match question {
            Some(question) => Ok(compute(move || question.answer()).await),
            None => Ok(None),
        }
    }

    async fn incoming_calls(
        &self,
        params: CallHierarchyIncomingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyIncomingCall>>> {
        let question = call_hierarchy::OfItem::take(&self.shared.lock(), params.item);
        Ok(compute(move || question.map(|question| question.incoming())).await)
    }

    async fn outgoing_calls(
        &self,
        params: CallHierarchyOutgoingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyOutgoingCall>>> {
        let question = call_hierarchy::OfItem::take(&self.shared.lock(), params.item);
        Ok(compute(move || question.map(|question| question.outgoing())).await)
    }
}

/// A place of the protocol.
pub fn place(position: Position) -> Place {
    Place { line: position.line, character: position.character }
}

/// A position of the protocol.
pub fn position(place: Place) -> Position {
    Position { line: place.line, character: place.character }
}

/// An empty range at a place.
pub fn at(place: Place) -> Range {
    Range { start: position(place), end: position(place) }
}
