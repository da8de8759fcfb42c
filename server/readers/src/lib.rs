//! Readers: from the bytes of a recording to a [`Profile`]. One module per format; formats are recognised by content,
//! never by file name.
//!
//! Nothing here opens a file: the caller hands over an [`Input`], and whatever else a reader needs it asks for through
//! [`ReadOptions`]. Reading is streaming, so memory follows the number of unique stacks and not the size of the file.

pub mod frozen;
pub mod perf_data;
pub mod pprof;
pub mod spe;
pub mod spt;
pub mod uftrace;

mod input;
mod time_filter;
mod unknown;

pub use input::{Binaries, BinaryBytes, Folder, Input, ReadSeek};
pub use time_filter::TimeFilter;

use heatline_profile::{Cancelled, Monitor, Profile, ProfileKind};
use std::io::{self, Read};
use std::sync::Arc;

/// What to read of a recording and what a reader may ask for meanwhile.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Only samples of these times.
    pub time: Option<TimeFilter>,
    /// Only samples of these processors.
    pub cpus: Option<Vec<u32>>,
    /// What to read of Arm SPE data, and who is told of its packets and records.
    pub spe: spe::Options,
    /// Who is told of the records of a perf.data file, one by one.
    pub records: Option<perf_data::RecordSink>,
    /// Where to find binaries; without, stacks that were recorded as bytes (`--call-graph dwarf`) have one user frame.
    pub binaries: Option<Arc<dyn Binaries>>,
    /// Only where samples were taken is wanted: a reader may leave callers out.
    pub without_callers: bool,
    /// How to read what the SPT format leaves open.
    pub spt: spt::Options,
}

/// Why a recording gives nothing at all. What is merely damaged is read as far as possible, with problems counted in
/// the profile.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No format that we know starts like this.
    #[error(
        "not a profile: expected a perf.data, SPT, pprof or .heatline file or a uftrace folder, found {found}; {advice}"
    )]
    Unrecognised {
        /// What the input is or starts with, for people.
        found: String,
        /// What to do, for people.
        advice: &'static str,
    },
    /// The format is known, but there is no reader for it, or not for this way of giving it.
    #[error("a {} profile cannot be read from {given}", kind.name())]
    Unsupported {
        /// The format.
        kind: ProfileKind,
        /// What was handed over: a file, a stream, a folder.
        given: &'static str,
    },
    /// The bytes could not be had.
    #[error("cannot read the profile")]
    Io(#[from] io::Error),
    /// A perf.data file that cannot be used.
    #[error(transparent)]
    PerfData(#[from] perf_data::PerfDataError),
    /// An SPT file that cannot be used.
    #[error(transparent)]
    Spt(#[from] spt::SptError),
    /// A uftrace data directory that cannot be used.
    #[error(transparent)]
    Uftrace(#[from] uftrace::UftraceError),
    /// A frozen profile that cannot be used.
    #[error(transparent)]
    Frozen(#[from] frozen::FrozenError),
    /// A pprof file that cannot be used.
    #[error(transparent)]
    Pprof(#[from] pprof::PprofError),
    /// Somebody asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Reads a recording of any known format.
///
/// # Errors
/// [`ReadError`] if nothing of it can be used, or if `monitor` stopped the work.
pub fn read(input: Input<'_>, options: &ReadOptions, monitor: &dyn Monitor) -> Result<Profile, ReadError> {
    let mut profile = read_any(input, options, monitor)?;
    profile.tell_cut_sums();
    Ok(profile)
}

fn read_any(input: Input<'_>, options: &ReadOptions, monitor: &dyn Monitor) -> Result<Profile, ReadError> {
    match input {
        Input::File(file) => {
            let head = read_head(file)?;
            let kind = recognise(&head).or_else(|| frozen::recognise_archive(&head, file));
            file.rewind()?;
            match kind {
                Some(ProfileKind::PerfData) => Ok(perf_data::read_file(file, options, monitor)?),
                Some(ProfileKind::Spt) => Ok(spt::read(Input::File(file), options, monitor)?),
                Some(ProfileKind::Heatline) => frozen::read(file, monitor),
                // The bytes of a raw buffer may look like anything that has no magic number.
                None | Some(ProfileKind::Pprof) if !options.spe.modules.is_empty() => {
                    spe::read_raw(file, options, monitor)
                }
                Some(ProfileKind::Pprof) => pprof::read_stream(file, monitor),
                kind => Err(refuse(kind, &head, "a file")),
            }
        }
        Input::Stream(stream) => {
            let head = read_head(stream)?;
            match recognise(&head) {
                Some(ProfileKind::PerfData) => {
                    Ok(perf_data::read_stream(&mut head.as_slice().chain(stream), options, monitor)?)
                }
                Some(ProfileKind::Spt) => {
                    Ok(spt::read(Input::Stream(&mut head.as_slice().chain(stream)), options, monitor)?)
                }
                Some(ProfileKind::Heatline) => frozen::read_stream(&mut head.as_slice().chain(stream), monitor),
                None | Some(ProfileKind::Pprof) if !options.spe.modules.is_empty() => {
                    spe::read_raw(&mut head.as_slice().chain(stream), options, monitor)
                }
                Some(ProfileKind::Pprof) => pprof::read_stream(&mut head.as_slice().chain(stream), monitor),
                None if frozen::is_archive(&head) => {
                    let mut whole = frozen::in_memory(&mut head.as_slice().chain(stream))?;
                    read_any(Input::File(&mut whole), options, monitor)
                }
                kind => Err(refuse(kind, &head, "a stream")),
            }
        }
        Input::Folder(folder) => match recognise_folder(folder)? {
            Some(ProfileKind::PerfData) => Ok(perf_data::read_folder(folder, options, monitor)?),
            Some(ProfileKind::Uftrace) => Ok(uftrace::read_folder(folder, options, monitor)?),
            _ => Err(ReadError::Unrecognised {
                found: "a folder without a perf.data member `data` or a uftrace member `info`".into(),
                advice: "record with 'perf record -g ./prog'",
            }),
        },
    }
}

/// The format of a recording that is a folder of files.
///
/// # Errors
/// If the folder cannot be listed, or its deciding member not be read.
pub fn recognise_folder(folder: &dyn Folder) -> io::Result<Option<ProfileKind>> {
    let names = folder.names()?;
    if uftrace::recognise(folder, &names)? {
        return Ok(Some(ProfileKind::Uftrace));
    }
    if !names.iter().any(|name| name == perf_data::FOLDER_MEMBER) {
        return Ok(None);
    }
    let head = read_head(&mut folder.open(perf_data::FOLDER_MEMBER)?)?;
    Ok(perf_data::recognise(&head).then_some(ProfileKind::PerfData))
}

/// The format that starts with these bytes, of which [`HEAD`] are enough.
pub fn recognise(head: &[u8]) -> Option<ProfileKind> {
    if perf_data::recognise(head) {
        return Some(ProfileKind::PerfData);
    }
    if spt::recognise(head) {
        return Some(ProfileKind::Spt);
    }
    if frozen::recognise(head) {
        return Some(ProfileKind::Heatline);
    }
    if pprof::recognise(head) {
        return Some(ProfileKind::Pprof);
    }
    None
}

/// So many bytes from the start of an input decide its format.
pub const HEAD: usize = 4096;

/// The first [`HEAD`] bytes, or fewer at the end of the input.
fn read_head<R: Read + ?Sized>(input: &mut R) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    input.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

fn refuse(kind: Option<ProfileKind>, head: &[u8], given: &'static str) -> ReadError {
    match kind {
        Some(kind) => ReadError::Unsupported { kind, given },
        None => {
            let unknown = unknown::describe(head);
            ReadError::Unrecognised { found: unknown.what, advice: unknown.advice }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heatline_profile::Silent;

    #[test]
    fn what_is_no_profile_is_named() {
        let error = read(Input::Stream(&mut b"\x7fELF\x02\x01".as_slice()), &ReadOptions::default(), &Silent);
        assert!(error.unwrap_err().to_string().contains("found an ELF binary; that is a program"));
        let error = read(Input::Stream(&mut io::empty()), &ReadOptions::default(), &Silent);
        assert!(error.unwrap_err().to_string().contains("found an empty file;"));
    }
}
