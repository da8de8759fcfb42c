//! What goes to the client: a queue without end and a thread that writes it.

use super::frame;
use serde::Serialize;
use std::io::{BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

/// How long the last answers may take to be written when the client does not read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Takes messages and never waits: the queue has no bound, because a bound would let a client that does not read stop
/// the reading of its own messages. Clones share the queue.
#[derive(Clone)]
pub struct Outbox {
    queue: mpsc::Sender<Option<Vec<u8>>>,
    written: Arc<Mutex<mpsc::Receiver<()>>>,
}

impl Outbox {
    /// Starts the thread that writes to `output`.
    pub fn start(output: impl Write + Send + 'static) -> Self {
        let (queue, messages) = mpsc::channel();
        let (done, written) = mpsc::channel();
        std::thread::spawn(move || {
            if let Err(error) = write_all(&messages, output) {
                tracing::warn!(%error, "the client does not take messages any more");
            }
            let _ = done.send(());
        });
        Outbox { queue, written: Arc::new(Mutex::new(written)) }
    }

    /// Appends a message.
    pub fn send(&self, message: &impl Serialize) {
        match serde_json::to_vec(message) {
            Ok(body) => self.send_body(body),
            Err(error) => tracing::error!(%error, "a message could not be written as JSON"),
        }
    }

    /// Appends a message that is JSON already.
    pub fn send_body(&self, body: Vec<u8>) {
        // Fails only when the thread has ended because the client has gone.
        let _ = self.queue.send(Some(body));
    }

    /// Waits until all is written, or for a second.
    pub fn finish(&self) {
        let _ = self.queue.send(None);
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = written.recv_timeout(LAST_WORDS);
    }
}

/// Writes messages until the end mark, flushing whenever there is none to follow.
fn write_all(messages: &mpsc::Receiver<Option<Vec<u8>>>, output: impl Write) -> std::io::Result<()> {
    let mut output = BufWriter::with_capacity(1 << 16, output);
    while let Ok(Some(body)) = messages.recv() {
        frame::write(&mut output, &body)?;
        let mut more = messages.try_recv();
        while let Ok(Some(body)) = more {
            frame::write(&mut output, &body)?;
            more = messages.try_recv();
        }
        output.flush()?;
        if let Ok(None) = more {
            break;
        }
    }
    Ok(())
}
