//! A small strict client: it refuses whatever the protocol does not allow and answers what a server may ask.

#![allow(dead_code, reason = "tests and benchmarks each use a part")]

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A server that says nothing for so long will never say anything.
const HUNG: Duration = Duration::from_secs(60);

/// A server and what it has said.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    /// Messages and when they were there.
    messages: Receiver<(Instant, Value)>,
    arrived: Instant,
    next_id: i64,
    /// The answers by id, in the order they came.
    answers: HashMap<String, Vec<Value>>,
    /// Notifications and requests of the server, in the order they came.
    pub said: Vec<Value>,
    /// What section `heatline` holds when the server asks.
    pub settings: Value,
}

impl Client {
    /// Starts a server in a folder.
    pub fn start(folder: &Path, environment: &[(&str, &str)]) -> Self {
        let mut client = Self::start_unread(folder, environment);
        let output = client.take_output();
        client.read_from(output);
        client
    }

    /// Starts a server whose output nobody reads until [`Self::read_from`].
    pub fn start_unread(folder: &Path, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heatline"));
        command.arg("lsp").current_dir(folder).envs(environment.iter().copied());
        Self::spawn(command.env("HEATLINE_LOG", "error").env("RUST_BACKTRACE", "0"))
    }

    /// Starts another server.
    pub fn start_other(command: &mut Command) -> Self {
        let mut client = Self::spawn(command);
        let output = client.take_output();
        client.read_from(output);
        client
    }

    fn spawn(command: &mut Command) -> Self {
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = pipes.spawn().expect("the server starts");
        let input = child.stdin.take();
        let messages = channel().1;
        let settings = json!({ "hints": { "threshold": 0 }, "lenses": { "threshold": 0 } });
        Client {
            child,
            input,
            messages,
            arrived: Instant::now(),
            next_id: 0,
            answers: HashMap::new(),
            said: Vec::new(),
            settings,
        }
    }

    /// Takes the output that was not read so far.
    pub fn take_output(&mut self) -> ChildStdout {
        self.child.stdout.take().expect("nobody reads its output yet")
    }

    /// Reads messages from an output, on a thread of its own.
    pub fn read_from(&mut self, output: ChildStdout) {
        let (sender, messages) = channel();
        self.messages = messages;
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = read_message(&mut output) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
    }

    /// Writes bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("its input is open");
        input.write_all(bytes).and_then(|()| input.flush()).expect("the server reads");
    }

    /// Writes a message in a frame.
    pub fn send(&mut self, message: &Value) {
        self.raw(&frame(message.to_string().as_bytes()));
    }

    /// Closes the server's input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request and does not wait.
    pub fn post(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Sends a request and waits for its result.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.post(method, params);
        let answer = self.wait(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request and returns how long it took until its answer was there, not yet understood. The answer is
    /// forgotten.
    #[track_caller]
    pub fn time(&mut self, begin: Instant, method: &str, params: Value) -> Duration {
        let id = self.post(method, params);
        let key = Value::from(id).to_string();
        let answer = self.until(|client| client.answers.contains_key(&key).then_some(client.arrived));
        let answered = self.answers.remove(&key).unwrap_or_default();
        assert!(answered.iter().all(|answer| answer.get("error").is_none()), "{method}: {answered:?}");
        answer - begin
    }

    /// The processor time that the server has used so far, where the system tells it.
    pub fn server_time(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).into_iter().flatten().flatten();
        let used = |task: std::fs::DirEntry| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
        };
        tasks.filter_map(used).sum()
    }

    /// Sends a request that must fail and returns the error's code.
    #[track_caller]
    pub fn refused(&mut self, method: &str, params: Value) -> i64 {
        let id = self.post(method, params);
        let answer = self.wait(id);
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: expected an error, found {answer}"))
    }

    /// The answer to a request, waiting for it.
    pub fn wait(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into().to_string();
        self.until(|client| client.answers.get(&id)?.first().cloned())
    }

    /// All answers to an id that have come, without waiting.
    pub fn answers(&self, id: &Value) -> &[Value] {
        self.answers.get(&id.to_string()).map_or(&[], Vec::as_slice)
    }

    /// Takes messages until something is found.
    #[track_caller]
    pub fn until<T>(&mut self, mut found: impl FnMut(&Self) -> Option<T>) -> T {
        loop {
            if let Some(value) = found(self) {
                return value;
            }
            match self.messages.recv_timeout(HUNG) {
                Ok((arrived, message)) => {
                    self.arrived = arrived;
                    self.take(message);
                }
                Err(RecvTimeoutError::Timeout) => panic!("the server says nothing any more"),
                Err(RecvTimeoutError::Disconnected) => panic!("the server has closed its output"),
            }
        }
    }

    /// Asks again and again until the answers are as they should be: for what nobody tells when it is done.
    #[track_caller]
    pub fn ask_until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        let begin = Instant::now();
        while !is_so(self) {
            assert!(begin.elapsed() < HUNG, "it never becomes so");
        }
    }

    fn take(&mut self, message: Value) {
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        let Some(method) = message["method"].as_str() else {
            let kinds = [message.get("result"), message.get("error")].into_iter().flatten().count();
            assert_eq!(kinds, 1, "an answer has a result or an error: {message}");
            self.answers.entry(message["id"].to_string()).or_default().push(message);
            return;
        };
        if let Some(id) = message.get("id") {
            let result = match method {
                "workspace/configuration" => json!([self.settings]),
                _ => Value::Null,
            };
            self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        }
        self.said.push(message);
    }

    /// Initializes with the given capabilities and the folder as the workspace; does not yet say `initialized`.
    pub fn initialize(&mut self, folder: &Path, capabilities: Value) -> Value {
        let uri = uri_of(folder);
        self.call(
            "initialize",
            json!({
                "processId": null, "rootUri": uri, "capabilities": capabilities,
                "workspaceFolders": [{ "uri": uri, "name": "workspace" }],
                "initializationOptions": self.settings,
            }),
        )
    }

    /// Begins a session in a folder and waits until its profile is shown.
    pub fn begin(folder: &Path, capabilities: Value) -> Self {
        let mut client = Self::start(folder, &[]);
        client.initialize(folder, capabilities);
        client.notify("initialized", json!({}));
        client.status("ready");
        client
    }

    /// Waits for a status of a state that came since the last call, and forgets what was said before it.
    #[track_caller]
    pub fn status(&mut self, state: &str) -> Value {
        let is_it = |said: &Value| said["method"] == "heatline/status" && said["params"]["state"] == state;
        let at = self.until(|client| client.said.iter().position(is_it));
        let status = self.said[at]["params"].clone();
        self.said.drain(..=at);
        status
    }

    /// How often the server asked for or told something.
    pub fn count(&self, method: &str) -> usize {
        self.said.iter().filter(|said| said["method"] == method).count()
    }

    /// Opens a file of the disk and returns its address and text.
    pub fn open(&mut self, path: &Path) -> (String, String) {
        self.open_as(path, "cpp")
    }

    /// Opens a file of the disk as a language and returns its address and text.
    pub fn open_as(&mut self, path: &Path, language: &str) -> (String, String) {
        let text = std::fs::read_to_string(path).expect("the source is there");
        let uri = uri_of(path);
        self.notify(
            "textDocument/didOpen",
            json!({ "textDocument": { "uri": uri, "languageId": language, "version": 1, "text": text } }),
        );
        (uri, text)
    }

    /// Changes a range of a document.
    pub fn edit(&mut self, uri: &str, version: i64, range: [u64; 4], text: &str) {
        let [from, at, to, until] = range;
        let range = json!({ "start": { "line": from, "character": at }, "end": { "line": to, "character": until } });
        self.notify(
            "textDocument/didChange",
            json!({ "textDocument": { "uri": uri, "version": version }, "contentChanges": [{ "range": range, "text": text }] }),
        );
    }

    /// All hints of a document: line, character and label.
    #[track_caller]
    pub fn hints(&mut self, uri: &str) -> Vec<(u64, u64, String)> {
        let hints = self.call("textDocument/inlayHint", all_of(uri));
        places(&hints)
    }

    /// Ends the session in order and returns the exit status.
    pub fn end(mut self) -> ExitStatus {
        self.call("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        self.exit()
    }

    /// Waits for the process.
    pub fn exit(&mut self) -> ExitStatus {
        let begin = Instant::now();
        let status = self.child.wait().expect("the process ends");
        assert!(begin.elapsed() < Duration::from_secs(2), "the process ends within two seconds");
        status
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It has ended in every test that passed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The parameters for hints of a whole document.
pub fn all_of(uri: &str) -> Value {
    let end = json!({ "line": u32::MAX, "character": 0 });
    json!({ "textDocument": { "uri": uri }, "range": { "start": { "line": 0, "character": 0 }, "end": end } })
}

/// Line, character and label of hints.
pub fn places(hints: &Value) -> Vec<(u64, u64, String)> {
    let hints = hints.as_array().into_iter().flatten();
    let number = |value: &Value| value.as_u64().expect("a number");
    hints
        .map(|hint| {
            let position = &hint["position"];
            let label = hint["label"].as_str().expect("the label is a text").to_owned();
            (number(&position["line"]), number(&position["character"]), label)
        })
        .collect()
}

/// A body in its frame.
pub fn frame(body: &[u8]) -> Vec<u8> {
    [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// The address of a file.
pub fn uri_of(path: &Path) -> String {
    let escaped = path.to_str().expect("paths of tests are text").bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => (byte as char).to_string(),
        other => format!("%{other:02X}"),
    });
    format!("file://{}", escaped.collect::<String>())
}

fn read_message(output: &mut impl BufRead) -> Option<(Instant, Value)> {
    let mut header = String::new();
    output.read_line(&mut header).expect("headers are text");
    if header.is_empty() {
        return None;
    }
    let length = header.strip_prefix("Content-Length: ").and_then(|rest| rest.strip_suffix("\r\n"));
    let length: usize = length.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("a bad header: {header:?}"));
    let mut empty = String::new();
    output.read_line(&mut empty).expect("headers are text");
    assert_eq!(empty, "\r\n");
    let mut body = vec![0; length];
    output.read_exact(&mut body).expect("the body is as long as announced");
    let arrived = Instant::now();
    Some((arrived, serde_json::from_slice(&body).expect("the body is JSON")))
}
