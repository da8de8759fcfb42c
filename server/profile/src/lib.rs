//! The vocabulary of Heatline: what one recording of a native program's costs holds, whatever format it came in.
//!
//! Readers make a [`Profile`]; symbols name its addresses; costs, comparison and placement are computed from both.
//! Nothing here reads, resolves or prints.

mod address;
mod arc;
mod calls;
mod event;
mod leaves;
mod merge;
mod module;
mod monitor;
mod problem;
mod profile;
mod sample;
mod spe;
mod stack;
mod symbolization;

pub use address::{AddressSpace, Avma, CodeAddress, FileOffset, ModuleAddress, Rva, Svma};
pub use arc::{BranchArc, CodePlace};
pub use calls::{CallRow, CallStats, CallTable};
pub use event::{Event, EventId, Sampling, Unit};
pub use merge::DifferentKinds;
pub use module::{BuildId, Identity, Module, ModuleId, ModuleKind, PdbId};
pub use monitor::{Cancelled, Monitor, Silent};
pub use problem::{Problem, Problems};
pub use profile::{Profile, ProfileKind, Recording};
pub use sample::{Percent, SampleFold, SampleRow, Tally, Thread, ThreadId, Weight, round};
pub use spe::{
    Distribution, Ratio, SpeOperation, SpeOrigin, SpeRecording, SpeRow, SpeSnoop, SpeSource, SpeStats, SpeTable,
};
pub use stack::{StackCut, StackId, StackNode, StackTable};
pub use symbolization::{
    Checksum, ModuleFrames, RecordedFile, RecordedFileId, RecordedFrame, RecordedFunction, RecordedFunctionId,
    Symbolization,
};
