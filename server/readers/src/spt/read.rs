//! From SPT files to a profile.

use super::SptError;
use super::decode::decode;
use super::fold::Fold;
use super::format::Op;
use crate::{Input, ReadOptions, ReadSeek};
use heatline_profile::{EventId, Monitor, Profile, Weight};
use std::fmt;
use std::io::{Cursor, Read};

/// The most that is kept of a pipe. Which reading of the segment lengths holds is known only at its end, so all of it
/// has to be kept.
pub const SPOOL_LIMIT: u64 = 256 << 20;

/// Reads one SPT file.
///
/// # Errors
/// [`SptError`] if nothing of it can be used, if `options` ask for what the format cannot tell, or if `monitor`
/// stopped the work.
pub fn read(input: Input<'_>, options: &ReadOptions, monitor: &dyn Monitor) -> Result<Profile, SptError> {
    read_all([input], options, monitor)
}

/// Reads several SPT files and adds them up. One that is given twice counts twice.
///
/// # Errors
/// As [`read`], if that is so of any of them.
pub fn read_all<'a>(
    inputs: impl IntoIterator<Item = Input<'a>, IntoIter: ExactSizeIterator>,
    options: &ReadOptions,
    monitor: &dyn Monitor,
) -> Result<Profile, SptError> {
    refuse_filters(options)?;
    let inputs = inputs.into_iter();
    let several = inputs.len() > 1;
    let mut fold = Fold::new(options.spt.stack_order);
    let mut damages = Vec::new();
    for (number, input) in (1_usize..).zip(inputs) {
        with_file(input, |file| decode(file, &options.spt, monitor, &mut fold))?;
        let prefix = if several { format!("file {number}: ") } else { String::new() };
        damages.push((prefix, fold.take_damages()));
    }
    let mut profile = fold.finish()?;
    for (prefix, damages) in damages {
        damages.report(&prefix, &mut profile.problems);
    }
    Ok(profile)
}

fn refuse_filters(options: &ReadOptions) -> Result<(), SptError> {
    match options {
        ReadOptions { time: Some(_), .. } => Err(SptError::Unknowable { wanted: "times" }),
        ReadOptions { cpus: Some(_), .. } => Err(SptError::Unknowable { wanted: "processors" }),
        _ => Ok(()),
    }
}

/// Does `work` on a file, or on what came through a pipe.
pub(crate) fn with_file<T>(
    input: Input<'_>,
    work: impl FnOnce(&mut dyn ReadSeek) -> Result<T, SptError>,
) -> Result<T, SptError> {
    match input {
        Input::File(file) => work(file),
        Input::Stream(stream) => work(&mut Cursor::new(spool(stream, SPOOL_LIMIT)?)),
        Input::Folder(_) => Err(SptError::IsFolder),
    }
}

fn spool(stream: &mut dyn Read, limit: u64) -> Result<Vec<u8>, SptError> {
    let mut bytes = Vec::new();
    stream.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(SptError::TooLongForPipe { limit });
    }
    Ok(bytes)
}

/// The event to show first: the first with hits in the order of [`Op::ALL`].
pub fn first_event(profile: &Profile) -> Option<EventId> {
    let totals = profile.totals();
    let has_hits = |event: &EventId| totals.get(event.0 as usize).is_some_and(|total| total.weight > Weight(0));
    Op::ALL.into_iter().find_map(|op| profile.find_event(op.event_name()).filter(has_hits))
}

/// What SPDConvert is to be told of an SPT file, so that it takes the data that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConvertMode {
    /// `/mode:IP`, its default: sampled instructions.
    Ip,
    /// `/mode:LBR`: recorded branches.
    Lbr,
}

impl ConvertMode {
    /// The mode for a profile: branches if any was hit, else instructions.
    pub fn of(profile: &Profile) -> ConvertMode {
        let event = profile.find_event(Op::Lbr.event_name());
        let has_branches = profile.arcs.iter().any(|arc| Some(arc.event) == event && arc.taken > Weight(0));
        if has_branches { ConvertMode::Lbr } else { ConvertMode::Ip }
    }
}

impl fmt::Display for ConvertMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConvertMode::Ip => "IP",
            ConvertMode::Lbr => "LBR",
        })
    }
}
