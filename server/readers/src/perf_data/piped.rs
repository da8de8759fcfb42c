//! A finished file whose bytes come through a pipe: attributes, then records, then what describes them.
//!
//! Records are read as they come. The sections in front of and behind them are kept, up to a limit; names of events and
//! identities of binaries are in the latter and are known only when all records have been read.

use super::blocks::{Blocks, Source};
use super::header::{FILE_HEADER, Header, PIPE_HEADER, Start};
use super::session::Session;
use super::{PerfDataError, Range, limit};
use heatline_profile::{FileOffset, Monitor};
use std::io::{self, Cursor, Read};

/// Reads all of the file; `stream` stands behind `start`.
pub(super) fn read(
    stream: &mut (dyn Read + Send),
    start: Start,
    session: &mut Session<'_>,
    monitor: &dyn Monitor,
) -> Result<(), PerfDataError> {
    let mut stream = Counted { inner: stream, position: PIPE_HEADER };
    let front = read_front(&mut stream, start)?;
    let mut file = Cursor::new(front);
    let mut header = Header::read(&mut file, start, &mut session.problems)?;
    drop(file);
    let range = Range::of(&header);
    session.begin(start.order, std::mem::take(&mut header.events));
    let mut blocks = Blocks::new(Source::Stream(&mut stream), range.offset, range.limit);
    let end = blocks.walk(session, monitor)?;
    session.ended(end, range.limit.is_none());
    let Some(records_end) = range.limit else { return Ok(()) };
    // Behind a damaged record nothing was read.
    stream.skip_to(records_end)?;
    read_features(&mut stream, &header, start, session)
}

/// The bytes in front of the records, with zeros for those that were read already.
fn read_front(stream: &mut Counted<'_>, start: Start) -> Result<Vec<u8>, PerfDataError> {
    if start.size < FILE_HEADER {
        return Err(PerfDataError::HeaderSize { found: start.size });
    }
    let mut front = vec![0; PIPE_HEADER as usize];
    stream.take(FILE_HEADER - PIPE_HEADER).read_to_end(&mut front)?;
    let records = start.records_offset(&front);
    if !(FILE_HEADER..=limit::PIPED_SECTIONS).contains(&records) && front.len() as u64 == FILE_HEADER {
        return Err(PerfDataError::NotInOrder { found: records, most: limit::PIPED_SECTIONS });
    }
    stream.take(records.saturating_sub(FILE_HEADER)).read_to_end(&mut front)?;
    Ok(front)
}

/// What lies behind the records.
fn read_features(
    stream: &mut Counted<'_>,
    header: &Header,
    start: Start,
    session: &mut Session<'_>,
) -> Result<(), PerfDataError> {
    let first = stream.position;
    let mut behind = Vec::new();
    stream.take(limit::PIPED_SECTIONS).read_to_end(&mut behind)?;
    if behind.len() as u64 == limit::PIPED_SECTIONS {
        let message = format!(
            "only {} bytes behind the records are read from a pipe, so names or identities of binaries may be \
             missing; name the file instead",
            limit::PIPED_SECTIONS
        );
        session.problems.add("too-much-behind-records", 1, Some(FileOffset(first)), message);
    }
    let (features, problems) = (&mut session.features, &mut session.problems);
    header.read_features(&mut Cursor::new(behind), first, start.order, features, problems)
}

/// A stream that knows how far it has been read.
struct Counted<'a> {
    inner: &'a mut (dyn Read + Send),
    position: u64,
}

impl Counted<'_> {
    /// Reads up to a position of the input and forgets what came.
    fn skip_to(&mut self, position: u64) -> io::Result<()> {
        let left = position.saturating_sub(self.position);
        io::copy(&mut self.take(left), &mut io::sink())?;
        Ok(())
    }
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.position = self.position.saturating_add(count as u64);
        Ok(count)
    }
}
