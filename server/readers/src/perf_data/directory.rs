//! What `perf record --threads` writes: a directory with the header and first records in `data`, and the records of
//! each thread of the recorder in `data.0`, `data.1`, …
//!
//! Each file is in order of time by itself, so the files are read side by side, always on with the one that lags.

use super::blocks::{Blocks, End, Source};
use super::compressed::Inflater;
use super::session::Session;
use super::{Files, PerfDataError, open_file};
use crate::{Folder, ReadOptions, ReadSeek};
use heatline_profile::{Monitor, Profile};
use std::io::{Seek, SeekFrom};

/// The member that holds the header.
pub const FOLDER_MEMBER: &str = "data";

/// Files read side by side; each needs a block of memory.
const MOST_FILES: usize = 1024;

/// Bytes of each file read at once.
const BLOCK: usize = 64 << 10;

/// One of the files.
struct Member<'a> {
    blocks: Blocks<'a>,
    inflater: Option<Box<Inflater>>,
    /// The latest time met in it.
    latest: u64,
    ended: bool,
}

/// Reads a directory of `perf record --threads`.
///
/// # Errors
/// As [`read_file`](super::read_file).
pub fn read_folder(
    folder: &dyn Folder,
    options: &ReadOptions,
    monitor: &dyn Monitor,
) -> Result<Profile, PerfDataError> {
    let mut data = folder.open(FOLDER_MEMBER)?;
    let mut session = Session::empty(options);
    let Some(range) = open_file(&mut *data, &mut session)? else {
        return super::read_file(&mut *data, options, monitor);
    };
    session.leave_rounds();
    let mut files = open_members(folder, &mut session)?;
    let lengths = files.iter_mut().map(|file| file.seek(SeekFrom::End(0))).collect::<Result<Vec<_>, _>>()?;
    for file in &mut files {
        file.rewind()?;
    }
    let total = range.limit.unwrap_or(0).saturating_add(lengths.iter().sum());
    let first = Blocks::sized(BLOCK, Source::File(&mut *data), range.offset, range.limit);
    let mut members = vec![Member::new(first)];
    members.extend(
        files
            .iter_mut()
            .zip(&lengths)
            .map(|(file, &length)| Member::new(Blocks::sized(BLOCK, Source::File(&mut **file), 0, Some(length)))),
    );
    read_members(&mut members, &mut session, total, range.limit.is_none(), monitor)?;
    drop(members);
    let mut all: Vec<&mut dyn ReadSeek> = vec![&mut *data];
    for file in &mut files {
        all.push(&mut **file);
    }
    session.finish(&mut Files(all), monitor)
}

/// The files `data.0`, `data.1`, … in the order of their numbers.
fn open_members<'a>(
    folder: &'a dyn Folder,
    session: &mut Session<'_>,
) -> Result<Vec<Box<dyn ReadSeek + 'a>>, PerfDataError> {
    let number = |name: &String| name.strip_prefix("data.").and_then(|number| number.parse::<u32>().ok());
    let mut names = folder.names()?;
    names.retain(|name| number(name).is_some());
    names.sort_by_key(number);
    if names.len() > MOST_FILES {
        let message = format!("only {MOST_FILES} of {} files of the directory are read", names.len());
        session.problems.add("too-many-files", (names.len() - MOST_FILES) as u64, None, message);
        names.truncate(MOST_FILES);
    }
    let mut files = Vec::new();
    for name in &names {
        match folder.open(name) {
            Ok(file) => files.push(file),
            Err(error) => {
                session.problems.add(
                    "missing-file",
                    1,
                    None,
                    format!("{name} cannot be read ({error}); its samples are missing"),
                );
            }
        }
    }
    Ok(files)
}

fn read_members(
    members: &mut [Member<'_>],
    session: &mut Session<'_>,
    total: u64,
    unclosed: bool,
    monitor: &dyn Monitor,
) -> Result<(), PerfDataError> {
    let mut complete = 0;
    loop {
        let lagging = members.iter_mut().enumerate().filter(|(_, member)| !member.ended);
        let Some((number, member)) = lagging.min_by_key(|(_, member)| member.latest) else { return Ok(()) };
        session.set_member(Some(number));
        session.swap_inflater(&mut member.inflater);
        let end = member.blocks.walk_block(session)?;
        session.swap_inflater(&mut member.inflater);
        member.latest = member.latest.max(session.take_latest());
        if let Some(end) = end {
            member.ended = true;
            session.ended(end, unclosed && end == End::Complete);
        }
        // One step behind, as times may go back a little where one thread served several buffers.
        session.complete_to(complete);
        complete = members.iter().filter(|member| !member.ended).map(|member| member.latest).min().unwrap_or(complete);
        let done = members.iter().map(|member| member.blocks.offset()).sum::<u64>();
        monitor.progress(done.min(total), total)?;
    }
}

impl<'a> Member<'a> {
    fn new(blocks: Blocks<'a>) -> Self {
        Member { blocks, inflater: Some(Box::default()), latest: 0, ended: false }
    }
}
