//! Messages of JSON-RPC 2.0 out of frames.

use super::frame::{Frame, LONGEST_BODY, Reader};
use super::status::StatusNotification;
use serde_json::{Map, Value};
use std::io::{BufReader, Read};
use tokio::sync::mpsc;
use tower_lsp::jsonrpc::{Error, Id, Request, Response};
use tower_lsp::ls_types::notification::Notification;

/// How many messages are read ahead of the one being handled.
const READ_AHEAD: usize = 64;

/// What the client sent.
#[derive(Debug)]
pub enum Message {
    /// A request or a notification.
    Request(Request),
    /// An answer to one of our requests.
    Answer(Response),
    /// Nothing that can be understood; the answer that is due.
    Refused(Response),
}

/// Reads messages on a thread of its own until the input ends.
pub fn start_reading(input: impl Read + Send + 'static) -> mpsc::Receiver<Message> {
    let (sender, messages) = mpsc::channel(READ_AHEAD);
    std::thread::spawn(move || {
        let mut reader = Reader::new(BufReader::with_capacity(1 << 16, input));
        loop {
            let message = match reader.next() {
                Ok(Some(frame)) => message(frame),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "the client's messages cannot be read any more");
                    break;
                }
            };
            if sender.blocking_send(message).is_err() {
                break;
            }
        }
    });
    messages
}

fn message(frame: Frame) -> Message {
    match frame {
        Frame::Body(body) => parse(&body),
        Frame::BadHeader => unreadable("expected a header with Content-Length and a number, found none".into()),
        Frame::TooLong(length) => {
            unreadable(format!("a message of {length} bytes is above the limit of {LONGEST_BODY} bytes"))
        }
    }
}

fn parse(body: &[u8]) -> Message {
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => from_object(object),
        Ok(_) => refused(Id::Null, "expected a JSON object"),
        Err(error) => unreadable(format!("the message is no JSON: {error}")),
    }
}

fn from_object(mut object: Map<String, Value>) -> Message {
    let id = match object.remove("id").map(serde_json::from_value) {
        None => None,
        Some(Ok(id @ (Id::Number(_) | Id::String(_)))) => Some(id),
        Some(_) => return refused(Id::Null, "expected an id that is an integer or a string"),
    };
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refused(id.unwrap_or_default(), "expected \"jsonrpc\": \"2.0\"");
    }
    match (object.remove("method"), id) {
        (Some(Value::String(method)), id) => Message::Request(request(method, object.remove("params"), id)),
        (Some(_), id) => refused(id.unwrap_or_default(), "expected a method that is a string"),
        (None, Some(id)) => answer(id, object),
        (None, None) => refused(Id::Null, "expected a method or an id"),
    }
}

fn request(method: String, params: Option<Value>, id: Option<Id>) -> Request {
    // Asked without parameters by some clients, with empty ones by others; the library takes only one of both.
    let params = params.or_else(|| (method == StatusNotification::METHOD).then_some(Value::Null));
    // Some clients send empty parameters where there are none.
    let params = params.filter(|params| method != "shutdown" || params.as_object().is_none_or(|map| !map.is_empty()));
    let mut request = Request::build(method);
    if let Some(params) = params {
        request = request.params(params);
    }
    if let Some(id) = id {
        request = request.id(id);
    }
    request.finish()
}

fn answer(id: Id, mut object: Map<String, Value>) -> Message {
    if let Some(error) = object.remove("error") {
        let error = serde_json::from_value(error).unwrap_or_else(|_| Error::internal_error());
        return Message::Answer(Response::from_error(id, error));
    }
    match object.remove("result") {
        Some(result) => Message::Answer(Response::from_ok(id, result)),
        None => refused(id, "expected a method, a result or an error"),
    }
}

fn refused(id: Id, message: &'static str) -> Message {
    let mut error = Error::invalid_request();
    error.message = message.into();
    Message::Refused(Response::from_error(id, error))
}

fn unreadable(message: String) -> Message {
    let mut error = Error::parse_error();
    error.message = message.into();
    Message::Refused(Response::from_error(Id::Null, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tower_lsp::jsonrpc::ErrorCode;

    #[track_caller]
    fn check_refused(body: &str, id: &Id, code: ErrorCode) {
        match parse(body.as_bytes()) {
            Message::Refused(response) => {
                assert_eq!((response.id(), response.error().map(|e| e.code)), (id, Some(code)), "{body}");
            }
            other => panic!("{body}: expected a refusal, found {other:?}"),
        }
    }

    #[test]
    fn what_is_no_json_is_a_parse_error() {
        check_refused("", &Id::Null, ErrorCode::ParseError);
        check_refused("{\"jsonrpc\": \"2.0\", \"id\": 7, ", &Id::Null, ErrorCode::ParseError);
        check_refused(&("[".repeat(200_000) + &"]".repeat(200_000)), &Id::Null, ErrorCode::ParseError);
    }

    #[test]
    fn what_is_no_message_is_an_invalid_request() {
        for body in ["42", "[]", "null", "{\"jsonrpc\":\"2.0\"}", "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x\"}"]
        {
            check_refused(body, &Id::Null, ErrorCode::InvalidRequest);
        }
        for body in ["\"id\":7,\"method\":5", "\"id\":7"] {
            check_refused(&format!("{{\"jsonrpc\":\"2.0\",{body}}}"), &Id::Number(7), ErrorCode::InvalidRequest);
        }
        check_refused("{\"id\":7,\"method\":\"x\"}", &Id::Number(7), ErrorCode::InvalidRequest);
    }

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        let kind = |body: &str| match parse(body.as_bytes()) {
            Message::Request(request) => format!("{} {:?}", request.method(), request.id()),
            Message::Answer(response) => format!("answer {} {}", response.id(), response.is_ok()),
            Message::Refused(response) => format!("refused {response:?}"),
        };
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{}}"#), "m Some(String(\"a\"))");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","method":"m"}"#), "m None");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":3,"result":null}"#), "answer 3 true");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"x"}}"#), "answer 3 false");
    }
}
