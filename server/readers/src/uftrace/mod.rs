//! uftrace: the data directories of a function tracer, as version 0.13 and later write them.
//!
//! A directory holds `info` (how it was recorded), `task.txt` (programs, processes, threads), `sid-….map` (what was mapped
//! where), `<tid>.dat` (entries of and returns from functions, per thread) and, unless that was turned off,
//! `perf-cpu<n>.dat` (when threads were switched out and in). Where functions of the kernel were traced, there are
//! `kernel_header`, `kernel-cpu<n>.dat` and `kallsyms`; where other programs had something to say, `extern.dat`. Images
//! have `<image>.sym` (names) and `<image>.dbg` (lines). The format is that of uftrace's own reader.
//!
//! Times are measured, not sampled: the moments of entries, returns and switches cut each thread's time into intervals,
//! and each interval is added to the stack that was there. Reading is streaming, so memory follows the number of different
//! call paths. Functions of the kernel lie above the function that called it.

mod ahead;
mod calls;
mod expected;
mod fold;
mod in_kernel;
mod info;
mod kernel;
mod messages;
mod names;
mod plain;
mod reading;
mod records;
mod report;
mod spaces;
mod switches;
mod symbols;
mod tasks;
mod tree;
mod walk;

pub use calls::{CallEdge, Placing, call_edges, calls_over, place_calls};

use crate::{Folder, ReadOptions};
use heatline_profile::{Cancelled, Identity, Monitor, Problems, Profile};
use info::Info;
use kernel::Layout;
use reading::Reading;
use spaces::{Modules, Space};
use std::collections::HashMap;
use std::io::{self, Read};
use switches::Switches;
use tasks::{Loaded, Tasks};

/// The member that every directory has.
pub const FOLDER_MEMBER: &str = "info";

/// The member that stands in for [`FOLDER_MEMBER`] where the recorder did not come to write that.
const TASKS_MEMBER: &str = "task.txt";

/// Bytes of a text member that are read at most.
const MOST_TEXT: u64 = 16 << 20;

/// Why a directory gives nothing at all.
#[derive(Debug, thiserror::Error)]
pub enum UftraceError {
    /// The bytes could not be had.
    #[error("cannot read the profile")]
    Io(#[from] io::Error),
    /// There is no file with records of a thread.
    #[error("expected files with records of threads (such as 1234.dat), found none; record anew with 'uftrace record'")]
    NoRecords,
    /// Samples should be chosen by processor.
    #[error("uftrace does not record processors; leave out --cpu")]
    NoProcessors,
    /// Somebody asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Whether a directory with these members is uftrace's.
pub(crate) fn recognise(folder: &dyn Folder, names: &[String]) -> io::Result<bool> {
    let starts = |member: &str, beginnings: &[&[u8]]| -> io::Result<bool> {
        if !names.iter().any(|name| name == member) {
            return Ok(false);
        }
        let mut head = Vec::new();
        folder.open(member)?.take(8).read_to_end(&mut head)?;
        Ok(beginnings.iter().any(|beginning| head.starts_with(beginning)))
    };
    // One of the two is enough, whatever is wrong with the other.
    let by_info = starts(FOLDER_MEMBER, &[info::MAGIC]);
    match (by_info, starts(TASKS_MEMBER, &[b"SESS ", b"TASK "])) {
        (Ok(true), _) | (_, Ok(true)) => Ok(true),
        (Err(error), _) | (_, Err(error)) => Err(error),
        _ => Ok(false),
    }
}

/// Reads a data directory.
///
/// # Errors
/// [`UftraceError`] if nothing of it can be used.
pub fn read_folder(folder: &dyn Folder, options: &ReadOptions, monitor: &dyn Monitor) -> Result<Profile, UftraceError> {
    if options.cpus.is_some() {
        return Err(UftraceError::NoProcessors);
    }
    let mut names = folder.names()?;
    names.sort();
    let mut problems = Problems::new();
    let info = read_text(folder, FOLDER_MEMBER, &mut problems);
    let info = info.map_or_else(Info::default, |bytes| Info::parse(&bytes));
    report::info(&info, &mut problems);
    let tasks = Tasks::parse(&read_text(folder, TASKS_MEMBER, &mut problems).unwrap_or_default());
    report::tasks(&tasks, &mut problems);
    let mut modules = Modules::default();
    let spaces = read_spaces(folder, &names, &info, &tasks, &mut modules, &mut problems);
    let layout = kernel_layout(folder, &names, &info, &mut problems);
    let mut switches = Switches::open(folder, &names, info.order, layout);
    let mut reading = Reading::new(options, &tasks, &spaces, info.order);
    reading.open_threads(folder, &names, &info, &mut problems)?;
    reading.read(folder, &mut switches, monitor)?;
    report::counts(&reading, &mut problems);
    report::switches(&switches, &info, &mut problems);
    report::messages(messages::count(folder, &names), &mut problems);
    let has_scheduling = switches.is_present && (switches.any || !info.without_scheduling());
    let mut profile = fold::profile(reading, modules, has_scheduling);
    profile.recording = heatline_profile::Recording {
        duration_ns: profile.recording.duration_ns,
        span: profile.recording.span,
        ..info.recording
    };
    problems.append(&profile.problems);
    profile.problems = problems;
    symbols::add_names(&mut profile, folder, &names);
    Ok(profile)
}

/// The content of a text member; a problem where it is missing.
fn read_text(folder: &dyn Folder, member: &str, problems: &mut Problems) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = folder.open(member).and_then(|file| file.take(MOST_TEXT).read_to_end(&mut bytes));
    match read {
        Ok(_) => Some(bytes),
        Err(error) => {
            report::missing(member, &error, problems);
            None
        }
    }
}

/// How the records of the kernel's functions are laid out, where there are any that can be read.
fn kernel_layout(folder: &dyn Folder, names: &[String], info: &Info, problems: &mut Problems) -> Option<Layout> {
    let has_files = names.iter().any(|name| switches::is_of_processor(name, switches::FUNCTIONS));
    if !has_files {
        report::no_kernel_functions(info, problems);
        return None;
    }
    let bytes = read_text(folder, kernel::HEADER_MEMBER, problems)?;
    let layout = Layout::parse(&bytes);
    if layout.is_none() {
        report::kernel_header(problems);
    }
    layout
}

/// What was mapped in each session, in the order of [`Tasks::sessions`]; without sessions what the only map says.
fn read_spaces(
    folder: &dyn Folder,
    names: &[String],
    info: &Info,
    tasks: &Tasks,
    modules: &mut Modules,
    problems: &mut Problems,
) -> Vec<Space> {
    let executable = info.executable.as_ref().map(|(path, id)| (path.clone(), id.clone().map(Identity::BuildId)));
    let mut read = |member: &str, modules: &mut Modules| {
        let bytes = read_text(folder, member, problems).unwrap_or_default();
        let space = Space::parse(&bytes, executable.as_ref(), modules);
        report::map(member, &space, &bytes, problems);
        space
    };
    if tasks.sessions.is_empty() {
        let maps: Vec<_> = names.iter().filter(|name| name.starts_with("sid-") && name.ends_with(".map")).collect();
        return maps.into_iter().take(1).map(|member| read(member, modules)).collect();
    }
    let mut spaces: Vec<Space> = Vec::with_capacity(tasks.sessions.len());
    let mut loaded: HashMap<&str, Vec<&Loaded>> = HashMap::new();
    for library in &tasks.loaded {
        loaded.entry(&library.session).or_default().push(library);
    }
    let mut known: HashMap<&str, Space> = HashMap::new();
    for session in &tasks.sessions {
        let space = known.entry(&session.id).or_insert_with(|| {
            let mut space = read(&format!("sid-{}.map", session.id), modules);
            for library in loaded.get(session.id.as_str()).into_iter().flatten() {
                space.add_library(library.base, &library.path, modules);
            }
            space
        });
        spaces.push(space.clone());
    }
    spaces
}
