//! Adding records up beside decoding them, on a thread of its own.

use super::collect::{Arrival, Collector, CpuKind, Owner};
use super::record::Record;
use super::source::Cpu;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

/// Records that are handed over together.
const BATCH: usize = 8192;
/// Batches that wait at most.
const MOST_WAITING: usize = 4;

enum Message {
    /// Another kind of processor.
    Cpu(Cpu),
    Records(Vec<Arrival>),
}

/// The end of the line that records are put into.
pub(super) struct Feeder {
    batch: Vec<Arrival>,
    line: SyncSender<Message>,
    /// Batches that come back to be filled again.
    empty: Receiver<Vec<Arrival>>,
    cpus: Vec<Cpu>,
    kind: CpuKind,
}

/// Runs `work`, which puts records into a [`Feeder`], and adds them up meanwhile.
pub(super) fn collect<T>(work: impl FnOnce(Feeder) -> T) -> (T, Collector) {
    thread::scope(|scope| {
        let (line, messages) = sync_channel(MOST_WAITING);
        let (back, empty) = channel();
        let worker = scope.spawn(move || {
            let mut collector = Collector::new();
            for message in messages {
                match message {
                    Message::Cpu(cpu) => {
                        collector.cpu_kind(cpu);
                    }
                    Message::Records(mut batch) => {
                        collector.add_all(&batch);
                        batch.clear();
                        // Nobody takes it back once all is decoded.
                        let _ = back.send(batch);
                    }
                }
            }
            collector
        });
        let mut feeder = Feeder {
            batch: Vec::new(),
            line,
            empty,
            cpus: Vec::new(),
            kind: Collector::new().cpu_kind(Cpu::default()),
        };
        feeder.set_cpu(Cpu::default());
        let result = work(feeder);
        (result, worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

impl Feeder {
    /// The records that follow are of this processor.
    pub fn set_cpu(&mut self, cpu: Cpu) {
        // The same order of kinds gives the same numbers on the other side.
        let mut numbers = Collector::with_cpus(std::mem::take(&mut self.cpus));
        let before = numbers.cpus().len();
        self.kind = numbers.cpu_kind(cpu);
        self.cpus = numbers.cpus().to_vec();
        if self.cpus.len() > before {
            self.send(Message::Cpu(cpu));
        }
    }

    /// Puts a record in.
    #[inline]
    pub fn add(&mut self, owner: Owner, record: &Record) {
        self.batch.push(Arrival::new(owner, self.kind, record));
        if self.batch.len() >= BATCH {
            self.send_batch();
        }
    }

    fn send_batch(&mut self) {
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        let batch = std::mem::replace(&mut self.batch, next);
        self.send(Message::Records(batch));
    }

    fn send(&self, message: Message) {
        // The other side ends before this one only in a panic, which ends this one too.
        let _ = self.line.send(message);
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.send_batch();
    }
}
