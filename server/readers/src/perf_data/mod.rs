//! Linux `perf.data`: what `perf record` writes, as a file, through a pipe or as a directory.
//!
//! The reader is our own and streaming: blocks of the file are walked once, records are read in place, and each sample
//! costs one look-up of its call chain. It follows the kernel's `perf_event.h` and perf's
//! `Documentation/perf.data-file-format.txt`, and where these leave a choice, what perf itself does.
//!
//! Chains are recorded innermost first. Callers are return addresses that nobody has stepped back; the first address
//! of each mode (kernel, user, guest) is the interrupted instruction itself.

mod accesses;
pub(crate) mod attr;
mod blocks;
mod branches;
pub(crate) mod bytes;
mod chains;
mod compressed;
mod deferred;
mod describe;
mod directory;
mod elf;
mod facts;
mod features;
mod fields;
mod folding;
mod header;
mod layout;
mod mappings;
mod modules;
mod names;
mod off_cpu;
mod piped;
mod queue;
mod scanner;
mod session;
pub(crate) mod state;
mod topology;
#[allow(dead_code)] // Offers decoders of trace data more than each of them uses.
pub(crate) mod trace;
mod unwind;
pub(crate) mod world;

pub use describe::{FeatureFields, FieldValue, RecordFields, RecordSink};
pub use directory::{FOLDER_MEMBER, read_folder};

use crate::{ReadOptions, ReadSeek};
use blocks::{Blocks, Source};
use header::{Header, PIPE_HEADER, Start};
use heatline_profile::{Cancelled, Monitor, Profile};
use session::Session;
use std::io::{self, Read, SeekFrom};
use trace::FileBytes;

/// Limits on counts that come from the file.
mod limit {
    /// Events in one recording.
    pub const EVENTS: usize = 1 << 16;
    /// Bytes of an entry of the attribute section; the kernel's attribute has 136.
    pub const ATTR_ENTRY: usize = 4096;
    /// Bytes in front of the records, and behind them, that are kept of a file that comes through a pipe.
    pub const PIPED_SECTIONS: u64 = 64 << 20;
}

/// Why a perf.data file gives nothing at all.
#[derive(Debug, thiserror::Error)]
pub enum PerfDataError {
    /// The bytes could not be had.
    #[error("cannot read the profile")]
    Io(#[from] io::Error),
    /// The input does not begin as a perf.data file does.
    #[error("expected a perf.data file that starts with PERFILE2; files of before 2009 must be recorded anew")]
    BadMagic,
    /// The header is of no known size.
    #[error(
        "expected a header of 16 or at least 104 bytes, found {found} (offset 0x8); the file is damaged, copy or record it anew"
    )]
    HeaderSize {
        /// The size that the header states.
        found: u64,
    },
    /// The attribute section's entries are of no possible size.
    #[error(
        "expected event attributes of 80 to 4096 bytes, found {found} (offset 0x10); the file is damaged, copy or record it anew"
    )]
    AttributeSize {
        /// The size that the header states.
        found: u64,
    },
    /// The input ends inside its header.
    #[error(
        "expected {expected} bytes of header at offset {offset:#x}, found the end of the file; copy or record it anew"
    )]
    Short {
        /// How many bytes should be there.
        expected: u64,
        /// Where they should be.
        offset: u64,
    },
    /// A file came through a pipe, and its records lie where they cannot be read in order.
    #[error(
        "expected the records at most {most} bytes into the file, found them at {found:#x} (offset 0x28); such a file cannot be read \
         from a pipe, name the file instead"
    )]
    NotInOrder {
        /// Where the records begin.
        found: u64,
        /// How many bytes may lie in front of them.
        most: u64,
    },
    /// Samples should be chosen by processor, but do not say theirs.
    #[error("the samples do not say their processor; leave out --cpu or record with --sample-cpu")]
    NoCpus,
    /// Samples should be chosen by time, but do not say theirs.
    #[error("the samples do not say their time; leave out --time or record with -T")]
    NoTimes,
    /// Somebody asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Whether an input that starts with these bytes is a perf.data file, of either byte order.
pub fn recognise(head: &[u8]) -> bool {
    head.starts_with(b"PERFILE2") || head.starts_with(b"2ELIFREP")
}

/// Reads a perf.data file, or a stored pipe, from where `file` stands.
///
/// # Errors
/// [`PerfDataError`] if nothing of it can be used.
pub fn read_file(
    file: &mut dyn ReadSeek,
    options: &ReadOptions,
    monitor: &dyn Monitor,
) -> Result<Profile, PerfDataError> {
    let mut session = Session::empty(options);
    let Some(range) = open_file(file, &mut session)? else {
        read_records(Source::File(file), &mut session, monitor)?;
        return session.finish(&mut Files(vec![file]), monitor);
    };
    let mut blocks = Blocks::new(Source::File(file), range.offset, range.limit);
    let end = blocks.walk(&mut session, monitor)?;
    session.ended(end, range.limit.is_none());
    session.finish(&mut Files(vec![file]), monitor)
}

/// When the first and the last sample of a file were taken, in nanoseconds of its clock, if its header says so.
pub fn sample_times(file: &mut dyn ReadSeek) -> Option<(u64, u64)> {
    let options = ReadOptions::default();
    let mut session = Session::empty(&options);
    open_file(file, &mut session).ok()??;
    session.features.recording.span
}

/// The files of the input, to be read again.
struct Files<'a>(Vec<&'a mut dyn ReadSeek>);

impl FileBytes for Files<'_> {
    fn read_at(&mut self, member: usize, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(file) = self.0.get_mut(member) else { return Ok(0) };
        file.seek(SeekFrom::Start(position))?;
        file.read(buffer)
    }
}

/// Where the records of a file lie.
struct Range {
    offset: u64,
    /// Their end, where the recorder came to write it.
    limit: Option<u64>,
}

impl Range {
    fn of(header: &Header) -> Range {
        Range { offset: header.data.offset, limit: (!header.unclosed).then(|| header.data.end()) }
    }
}

/// Reads the header into `session` and leaves the file at its records; `None` for a stored pipe, which has no header.
fn open_file(file: &mut dyn ReadSeek, session: &mut Session<'_>) -> Result<Option<Range>, PerfDataError> {
    let start = Start::read(file)?;
    if start.is_stream() {
        session.set_order(start.order);
        return Ok(None);
    }
    let header = Header::read(file, start, &mut session.problems)?;
    header.read_features(file, 0, start.order, &mut session.features, &mut session.problems)?;
    let range = Range::of(&header);
    session.begin(start.order, header.events);
    file.seek(SeekFrom::Start(range.offset))?;
    Ok(Some(range))
}

/// Reads what `perf record -o -` writes, or a file whose bytes come in order.
///
/// # Errors
/// As [`read_file`].
pub fn read_stream(
    stream: &mut (dyn Read + Send),
    options: &ReadOptions,
    monitor: &dyn Monitor,
) -> Result<Profile, PerfDataError> {
    let start = Start::read(stream)?;
    let mut session = Session::empty(options);
    session.set_order(start.order);
    session.set_member(None);
    if !start.is_stream() {
        piped::read(stream, start, &mut session, monitor)?;
        return session.finish(&mut Files(Vec::new()), monitor);
    }
    read_records(Source::Stream(stream), &mut session, monitor)?;
    session.finish(&mut Files(Vec::new()), monitor)
}

fn read_records(source: Source<'_>, session: &mut Session<'_>, monitor: &dyn Monitor) -> Result<(), PerfDataError> {
    session.piped = true;
    let mut blocks = Blocks::new(source, PIPE_HEADER, None);
    let end = blocks.walk(session, monitor)?;
    session.ended(end, false);
    Ok(())
}
