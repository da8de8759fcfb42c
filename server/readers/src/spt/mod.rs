//! Sample profile traces (SPT, version 1) of the MSVC tool chain: the files that SPGO aggregates from ETW traces.
//!
//! [`decode`] walks over a file and tells a [`Visitor`] of its records; [`read`] and [`read_all`] fold them to a
//! [`Profile`](heatline_profile::Profile), [`dump`] prints them, [`write()`] and [`write_profile`] make such files.
//! The layout follows Microsoft's page on SPTDump; what that page leaves open is decided by the file itself where it
//! can be (the length of segments), by an option with a default elsewhere (the order of stacks).
//!
//! The format knows no threads, no times and no processors, and each of its stacks sees one binary only.

mod chain;
mod damage;
mod decode;
mod dump;
mod export;
mod fold;
mod format;
mod order;
mod preamble;
mod read;
mod stacks;
mod table;
mod window;
mod write;

pub use damage::{Damage, DamageKind};
pub use decode::{Record, Segment, Summary, Visitor, decode, decode_preamble};
pub use dump::{DumpError, DumpFormat, Views, dump};
pub use export::write_profile;
pub use format::{Header, LengthReading, Name, Op, Program, Signature};
pub use order::{CallVote, Direction, settle_stack_order, stack_arcs, turn_stacks, vote};
pub use preamble::Preamble;
pub use read::{ConvertMode, SPOOL_LIMIT, first_event, read, read_all};
pub use write::{Description, Elements, ProgramData, RecordData, SegmentData, WriteError, write};

use heatline_profile::Cancelled;
use std::io;

/// How to read what the format leaves open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Which end of a recorded stack comes first.
    pub stack_order: StackOrder,
    /// Tries files of a version that is not documented, too.
    pub any_version: bool,
}

/// Which end of a stack its record starts with. The documentation does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum StackOrder {
    /// The innermost frame, as ETW itself records stacks; the others are return addresses.
    #[default]
    LeafFirst,
    /// The outermost frame; all but the last are return addresses.
    RootFirst,
}

/// Why nothing of an SPT file can be used.
#[derive(Debug, thiserror::Error)]
pub enum SptError {
    /// The file cannot be read.
    #[error("cannot read the SPT file")]
    Io(#[from] io::Error),
    /// There is not even a header.
    #[error("not an SPT file: expected a header of 32 bytes, found {found} bytes in all")]
    TooShort {
        /// Bytes in the file.
        found: u64,
    },
    /// It does not start with the signature.
    #[error("not an SPT file: expected the signature 0x5350543a at offset 0, found {found:#010x}")]
    Signature {
        /// The first four bytes as a little-endian number.
        found: u32,
    },
    /// It is of another version.
    #[error("SPT version {found} not supported (only 1 is documented)")]
    Version {
        /// The version found.
        found: u32,
    },
    /// A table, or the records, would start behind the end of the file.
    #[error("damaged SPT file: its {table} should start at {offset:#x}, but the file ends at {file_len:#x}")]
    BeyondEnd {
        /// What would start there.
        table: &'static str,
        /// Where it would start.
        offset: u64,
        /// Bytes in the file.
        file_len: u64,
    },
    /// A pipe brought more than is kept of one.
    #[error("more than {} MiB came through the pipe, and an SPT file is needed as a whole; save it and give its path", limit >> 20)]
    TooLongForPipe {
        /// The most that is kept, in bytes.
        limit: u64,
    },
    /// A folder was given.
    #[error("an SPT profile is a file, found a folder")]
    IsFolder,
    /// The options ask for what the format does not hold.
    #[error("an SPT profile holds no {wanted}, so it cannot be filtered by them")]
    Unknowable {
        /// What is asked for, in the plural.
        wanted: &'static str,
    },
    /// More different places than a profile can number.
    #[error("the SPT files have hits in more than 4294967295 different places")]
    TooManyPlaces,
    /// Somebody asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Whether a file starts as SPT files do.
pub fn recognise(head: &[u8]) -> bool {
    Signature::of(head).is_some()
}
