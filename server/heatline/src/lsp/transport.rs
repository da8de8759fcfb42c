//! Moves messages between the client's pipes and the service, in place of the library's own transport.
//!
//! What it promises: requests and notifications are called in the order of their arrival and polled once before the
//! next one is looked at, so the part of a handler before its first await keeps that order; what is not ready then goes
//! on beside the others; a panic becomes one error answer; bytes that are no message are answered and survived; and
//! reading never waits for writing, so a client that does not read cannot stop its own cancellations.

use super::message::{self, Message};
use super::outbox::Outbox;
use futures::{FutureExt, SinkExt, StreamExt, future::BoxFuture};
use std::any::Any;
use std::io::{Read, Write};
use std::panic::AssertUnwindSafe;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tower::Service;
use tower_lsp::jsonrpc::{Error, ErrorCode, Id, Request, Response};
use tower_lsp::{ClientSocket, ExitedError, LanguageServer, LspService};
use tracing::Instrument;

/// How long answers that are still due may take after the client has said `exit`.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// How a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// After an accepted `shutdown`.
    Orderly,
    /// By `exit` or the end of the input without one.
    Early,
}

/// What has to be known of a server's methods.
pub struct Methods<S> {
    /// Whether a method is more than a name: the service knows all methods of the protocol.
    pub known: fn(&str) -> bool,
    /// Answers a request at once with the JSON of its result, or leaves it to the service.
    pub direct: Direct<S>,
}

/// See [`Methods::direct`].
type Direct<S> = fn(&S, &Request) -> Option<Result<Vec<u8>, Error>>;

/// Serves until the client says `exit` or closes its side.
pub async fn serve<S: LanguageServer>(
    service: LspService<S>,
    socket: ClientSocket,
    methods: Methods<S>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> Ended {
    let outbox = Outbox::start(output);
    let mut incoming = message::start_reading(input);
    let (mut requests, mut answers) = socket.split();
    let (panicked, panics) = mpsc::unbounded_channel();
    let mut calls = Calls { service, methods, outbox: outbox.clone(), tasks: JoinSet::new(), panicked, panics };
    let to_client = outbox.clone();
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            to_client.send(&request);
        }
    });
    let mut ended = Ended::Early;
    while let Some(message) = incoming.recv().await {
        match message {
            Message::Refused(response) => outbox.send(&response),
            // Fails only after `exit`, when nobody waits for it any more.
            Message::Answer(response) => drop(answers.send(response).await),
            Message::Request(request) if request.method() == "exit" => break,
            Message::Request(request) => {
                let is_shutdown = request.method() == "shutdown";
                if calls.begin(request).await && is_shutdown {
                    ended = Ended::Orderly;
                }
            }
        }
    }
    if ended == Ended::Orderly {
        calls.finish().await;
    }
    outbox.finish();
    ended
}

/// Calls of the service and what is known of those that have not ended.
struct Calls<S> {
    service: LspService<S>,
    methods: Methods<S>,
    outbox: Outbox,
    /// Calls that were not ready at once.
    tasks: JoinSet<()>,
    /// Where tasks tell of requests whose handler panicked.
    panicked: mpsc::UnboundedSender<Id>,
    panics: mpsc::UnboundedReceiver<Id>,
}

impl<S: LanguageServer> Calls<S> {
    /// Calls the service, polls once, and answers or leaves the rest to a task. Tells whether it answered well.
    async fn begin(&mut self, request: Request) -> bool {
        self.forget_panicked();
        while self.tasks.try_join_next().is_some() {}
        let known = (self.methods.known)(request.method());
        let id = request.id().cloned();
        if let Some(id) = &id
            && self.answer_directly(id, &request)
        {
            return true;
        }
        let span = tracing::debug_span!("message", method = request.method());
        let call = std::panic::catch_unwind(AssertUnwindSafe(|| self.service.call(request)))
            .unwrap_or_else(|panic| async move { std::panic::resume_unwind(panic) }.boxed());
        let mut answer = answer(call, id, known, self.panicked.clone()).instrument(span).boxed();
        match poll_once(&mut answer).await {
            Poll::Ready(response) => {
                response.iter().for_each(|response| self.outbox.send(response));
                response.is_some_and(|response| response.is_ok())
            }
            Poll::Pending => {
                let outbox = self.outbox.clone();
                self.tasks.spawn(async move { answer.await.iter().for_each(|response| outbox.send(response)) });
                false
            }
        }
    }

    /// Answers what can be answered at once, also if that panics.
    fn answer_directly(&self, id: &Id, request: &Request) -> bool {
        let _entered = tracing::debug_span!("message", method = request.method()).entered();
        let answer = AssertUnwindSafe(|| (self.methods.direct)(self.service.inner(), request));
        let answer = std::panic::catch_unwind(answer).unwrap_or_else(|panic| Some(Err(internal_error(&*panic))));
        match answer {
            None => return false,
            Some(Err(error)) => self.outbox.send(&Response::from_error(id.clone(), error)),
            Some(Ok(result)) => {
                let id = serde_json::to_string(id).unwrap_or_default();
                let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":");
                self.outbox.send_body([head.as_bytes(), &result, b"}"].concat());
            }
        }
        true
    }

    /// Waits a little for the answers that are still due.
    async fn finish(&mut self) {
        let _ = tokio::time::timeout(LAST_ANSWERS, async { while self.tasks.join_next().await.is_some() {} }).await;
    }

    /// The service still counts a request whose handler panicked as running, and would refuse its id for ever.
    fn forget_panicked(&mut self) {
        while let Ok(id) = self.panics.try_recv() {
            let id = serde_json::to_value(id).unwrap_or_default();
            let cancel = Request::build("$/cancelRequest").params(serde_json::json!({ "id": id })).finish();
            let _ = self.service.call(cancel).now_or_never();
        }
    }
}

async fn poll_once<T>(future: &mut BoxFuture<'static, T>) -> Poll<T> {
    std::future::poll_fn(|context| Poll::Ready(future.poll_unpin(context))).await
}

/// Waits for a call and turns every outcome into the one answer its request is due.
async fn answer(
    call: BoxFuture<'static, Result<Option<Response>, ExitedError>>,
    id: Option<Id>,
    known: bool,
    panicked: mpsc::UnboundedSender<Id>,
) -> Option<Response> {
    match AssertUnwindSafe(call).catch_unwind().await {
        // The library reads the parameters of methods that are only a name, and would complain of those.
        Ok(Ok(Some(response))) if !known && response.error().is_some_and(|e| e.code == ErrorCode::InvalidParams) => {
            id.map(|id| Response::from_error(id, Error::method_not_found()))
        }
        Ok(Ok(Some(response))) => Some(response),
        // The library answers nothing to unknown methods that begin with `$/`, even where an answer is due.
        Ok(Ok(None)) => id.map(|id| Response::from_error(id, Error::method_not_found())),
        Ok(Err(ExitedError { .. })) => id.map(|id| Response::from_error(id, Error::invalid_request())),
        Err(panic) => {
            let id = id?;
            let _ = panicked.send(id.clone());
            Some(Response::from_error(id, internal_error(&*panic)))
        }
    }
}

fn internal_error(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown panic");
    let mut error = Error::new(ErrorCode::InternalError);
    error.message = format!("internal error: {text}").into();
    error
}
