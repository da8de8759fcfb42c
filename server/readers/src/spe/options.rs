//! What to read of SPE data, and who is told of every packet and record meanwhile.

use super::event::Group;
use super::fields::RecordFields;
use super::text::PacketLine;
use std::sync::{Arc, Mutex, PoisonError};

/// What to read of SPE data.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only records of any of these groups; all if empty.
    pub groups: Vec<Group>,
    /// For raw buffers: where the binaries lay. An input that is nothing else is read as one if there are any.
    pub modules: Vec<RawModule>,
    /// Who is told of every packet and record, in the order of the data of each processor or thread.
    pub sink: Option<Sink>,
}

/// Where a binary lay in the address space that a raw buffer is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawModule {
    /// Path of the binary.
    pub path: String,
    /// Address of its image base.
    pub base: u64,
}

/// Takes items one by one.
#[derive(Clone)]
pub struct Sink {
    take: Arc<Mutex<dyn FnMut(Item) + Send>>,
    packets: bool,
}

impl Sink {
    /// A sink of records and the summary, and with `packets` also of packets: of a processor or thread, the packets of
    /// some bytes come before the records that end in them.
    pub fn new(packets: bool, take: impl FnMut(Item) + Send + 'static) -> Sink {
        Sink { take: Arc::new(Mutex::new(take)), packets }
    }

    pub(crate) fn wants_packets(&self) -> bool {
        self.packets
    }

    pub(crate) fn give(&self, item: Item) {
        (self.take.lock().unwrap_or_else(PoisonError::into_inner))(item);
    }
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").field("packets", &self.packets).finish_non_exhaustive()
    }
}

/// One line of a dump. Serialised, it is an object with the kind of line as its only key.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub enum Item {
    /// A packet.
    #[serde(rename = "packet")]
    Packet(PacketLine),
    /// A record.
    #[serde(rename = "spe")]
    Record(Box<RecordFields>),
    /// At the end, what it was in all.
    #[serde(rename = "summary")]
    Summary(DumpSummary),
}

/// What a dump was in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct DumpSummary {
    /// Records in it.
    pub records: u64,
    /// Records that were torn or touched by bytes that are no packets.
    pub dropped_records: u64,
    /// Bytes that are no packets.
    pub bad_bytes: u64,
    /// What the recorder lost.
    pub aux: AuxSummary,
}

/// What the recorder lost: in how many of its buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct AuxSummary {
    /// Data was lost behind them.
    pub truncated: u64,
    /// Their last record was torn.
    pub partial: u64,
    /// Samples fell out because the one before was still under way.
    pub collision: u64,
}
