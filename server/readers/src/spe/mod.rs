//! The Arm Statistical Profiling Extension: packets, records, statistics.
//!
//! SPE samples operations and tells how long each took, whether it missed caches or was mispredicted and where its data
//! came from; it knows no call stacks. The stream is a sequence of packets; a record is the packets up to and including
//! a timestamp or an end packet. Follows the packet formats of the Arm Architecture Reference Manual (chapter
//! Statistical Profiling Extension) as Linux perf reads them.
//!
//! Layers, each usable alone: [`parse`] frames one packet; [`Decoder`] assembles records and counts what it had to drop;
//! [`Collector`] adds records up per address; [`PacketDump`] and [`RecordFields`] are for people and programs that look.

mod collect;
mod container;
mod decode;
mod event;
mod fields;
mod histogram;
mod history;
mod index;
mod layout;
mod operation;
mod options;
mod packet;
mod perf;
mod raw;
mod reading;
mod record;
mod setup;
mod signature;
mod source;
mod table;
mod text;
mod worker;

pub use collect::{Collected, Collector, CpuKind, Owner};
pub use decode::{DecodeCounts, Decoder};
pub use event::{Group, event_name, event_names};
pub use fields::RecordFields;
pub use operation::{Memory, Operation, Other, Role, operation};
pub use options::{AuxSummary, DumpSummary, Item, Options, RawModule, Sink};
pub use packet::{Events, Packet, Parsed, parse};
pub use record::{OperationType, Record};
pub use source::{Cpu, DataSource, Level, Snoop, data_source};
pub use text::{PacketDump, PacketLine, packet_text};

pub(crate) use perf::{Decoded, decode, is_named};
pub(crate) use raw::read as read_raw;
pub(crate) use table::add_events;
