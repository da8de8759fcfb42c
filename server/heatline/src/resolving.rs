//! From the addresses of recordings to frames. Recordings that are loaded together and hold the same binary have it read
//! once, for the addresses of all.

use crate::binaries::{Companions, Found, SearchPaths};
use crate::kernel_symbols::KernelSymbols;
use heatline_annotate::{Addresses, ModuleSymbols};
use heatline_profile::{
    Cancelled, Module, ModuleAddress, ModuleId, ModuleKind, Monitor, Problems, Profile, ProfileKind, Svma,
};
use heatline_symbols::{Image, Locate, Nowhere, Recorded, Resolution, SymbolError};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A recording whose addresses are looked up.
pub struct Unresolved<'a> {
    /// What was read.
    pub profile: &'a Profile,
    /// Its addresses.
    pub addresses: &'a Addresses,
    /// Where its binaries are.
    pub search: &'a SearchPaths,
    /// Names of its kernel's functions.
    pub kernel: Option<&'a KernelSymbols>,
    /// Functions by symbol tables alone.
    pub symbols_only: bool,
}

/// What was found out of the modules of a recording, by [`ModuleId`].
#[derive(Default)]
pub struct Resolved {
    /// What its addresses are.
    pub symbols: Vec<ModuleSymbols>,
    /// Where the binary was found.
    pub binaries: Vec<Option<PathBuf>>,
    /// Where the binary was looked for, in order.
    pub looked: Vec<Vec<PathBuf>>,
    /// What could not be read or believed.
    pub problems: Problems,
}

/// Looks the addresses of recordings up. The monitor counts addresses.
///
/// # Errors
/// If the monitor says to stop.
pub fn resolve(recordings: &[Unresolved<'_>], monitor: &dyn Monitor) -> anyhow::Result<Vec<Resolved>> {
    let mut resolving = Resolving::new(recordings, monitor);
    for (number, recording) in recordings.iter().enumerate() {
        for module in 0..recording.profile.modules.len() {
            resolving.module(number, module)?;
        }
    }
    let finish = |answers: Vec<Option<Answer>>| {
        let mut resolved = Resolved::default();
        for answer in answers.into_iter().flatten() {
            resolved.symbols.push(answer.symbols);
            resolved.binaries.push(answer.binary);
            resolved.looked.push(answer.looked);
            resolved.problems.append(&answer.problems);
        }
        resolved
    };
    Ok(resolving.answers.into_iter().map(finish).collect())
}

struct Resolving<'a> {
    recordings: &'a [Unresolved<'a>],
    /// Recordings and numbers of the modules with a path.
    by_path: HashMap<&'a str, Vec<(usize, usize)>>,
    /// By recording and module, in the order of the modules.
    answers: Vec<Vec<Option<Answer>>>,
    monitor: &'a dyn Monitor,
    /// Addresses that are done, of all there are.
    done: u64,
    of: u64,
}

/// What was found out of a module.
struct Answer {
    symbols: ModuleSymbols,
    binary: Option<PathBuf>,
    looked: Vec<PathBuf>,
    problems: Problems,
}

/// A module of a recording with the addresses that the recording itself does not name.
struct Job<'a> {
    recording: usize,
    number: usize,
    module: &'a Module,
    recorded: Option<Recorded>,
    wanted: Vec<ModuleAddress>,
    found: Found,
}

/// Of one look-up in a binary: the addresses that are done before, and of how many.
struct Part<'a> {
    monitor: &'a dyn Monitor,
    before: u64,
    of: u64,
}

impl Monitor for Part<'_> {
    fn progress(&self, done: u64, _of: u64) -> Result<(), Cancelled> {
        self.monitor.progress((self.before + done).min(self.of), self.of)
    }
}

impl<'a> Resolving<'a> {
    fn new(recordings: &'a [Unresolved<'a>], monitor: &'a dyn Monitor) -> Self {
        let nothing = |recording: &Unresolved<'_>| recording.profile.modules.iter().map(|_| None).collect();
        let mut by_path: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
        for (recording, unresolved) in recordings.iter().enumerate() {
            for (number, module) in unresolved.profile.modules.iter().enumerate() {
                by_path.entry(&module.path).or_default().push((recording, number));
            }
        }
        Resolving {
            recordings,
            by_path,
            answers: recordings.iter().map(nothing).collect(),
            monitor,
            done: 0,
            of: recordings.iter().map(|recording| recording.addresses.len() as u64).sum(),
        }
    }

    /// Looks up a module, and with it all that are the same, mapped anew or in another recording.
    fn module(&mut self, recording: usize, number: usize) -> anyhow::Result<()> {
        if self.answers[recording][number].is_some() {
            return Ok(());
        }
        let module = &self.recordings[recording].profile.modules[number];
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for &(recording, number) in self.by_path.get(module.path.as_str()).into_iter().flatten() {
            let other = &self.recordings[recording].profile.modules[number];
            if self.answers[recording][number].is_none() && is_same(module, other) {
                let known = jobs.iter().find(|job| !job.wanted.is_empty()).map(|job| &job.found);
                jobs.push(self.job(recording, number, known));
            }
        }
        while let Some(first) = jobs.first() {
            let (path, symbols_only) = (first.found.path.clone(), self.recordings[first.recording].symbols_only);
            let is_joint = |job: &mut Job<'_>| {
                job.found.path == path && self.recordings[job.recording].symbols_only == symbols_only
            };
            let joint: Vec<Job<'_>> = jobs.extract_if(.., is_joint).collect();
            self.answer(joint)?;
        }
        Ok(())
    }

    /// `known` is what was found of the same module, maybe of another recording.
    fn job(&self, recording: usize, number: usize, known: Option<&Found>) -> Job<'a> {
        let Unresolved { profile, addresses, search, .. } = self.recordings[recording];
        let (module, id) = (&profile.modules[number], ModuleId(number as u32));
        let all_wanted = addresses.of_module(id);
        let recorded = profile.symbolization.as_ref().and_then(|said| Recorded::look_up(said, id, all_wanted));
        let wanted = match &recorded {
            Some(recorded) => pick(all_wanted, &recorded.silent),
            None => all_wanted.to_vec(),
        };
        let mut found = Found { image: Err("no samples".into()), path: None, looked: Vec::new(), mismatch: None };
        if !wanted.is_empty() {
            let known = known.and_then(|known| search.as_found(module, known));
            found = known.unwrap_or_else(|| search.find(module));
        }
        Job { recording, number, module, recorded, wanted, found }
    }

    /// Looks up modules that are in the same binary, or in none.
    fn answer(&mut self, jobs: Vec<Job<'_>>) -> anyhow::Result<()> {
        let Some(first) = jobs.first() else { return Ok(()) };
        let span = tracing::info_span!("resolving", module = %first.module.path);
        let _entered = span.enter();
        let together = match &first.found.image {
            Ok(image) => Some(self.look_up(image, &jobs)?),
            Err(_) => None,
        };
        let (parts, reason) = match together {
            Some(Ok(resolution)) => {
                let lengths: Vec<usize> = jobs.iter().map(|job| job.wanted.len()).collect();
                (resolution.into_parts(&lengths).into_iter().map(Some).collect(), None)
            }
            Some(Err(reason)) => (vec![None; jobs.len()], Some(reason)),
            None => (vec![None; jobs.len()], None),
        };
        for (job, part) in jobs.into_iter().zip(parts) {
            let symbols = match (part, &reason, &job.found.image) {
                (Some(resolution), ..) => ModuleSymbols::Resolved(self.named(job.recording, resolution)),
                (None, Some(reason), _) => ModuleSymbols::Unavailable(reason.clone()),
                (None, None, Err(reason)) => self.without_binary(&job, reason),
                (None, None, Ok(_)) => ModuleSymbols::Unavailable(String::new()),
            };
            self.finish(job, symbols)?;
        }
        Ok(())
    }

    /// The frames of all jobs' addresses, one job's behind the other's; or why there are none.
    fn look_up(&self, image: &Image, jobs: &[Job<'_>]) -> anyhow::Result<Result<Resolution, String>> {
        let to_svma = |job: &Job<'_>| {
            let space = job.module.space;
            let svma = |&address: &ModuleAddress| image.to_svma(address, space).unwrap_or(Svma(u64::MAX));
            job.wanted.iter().map(svma).collect::<Vec<Svma>>()
        };
        let svmas: Vec<Svma> = jobs.iter().flat_map(to_svma).collect();
        let recording = jobs.first().map(|job| (&self.recordings[job.recording], job.found.path.as_deref()));
        let companions =
            recording.and_then(|(recording, path)| Some(Companions { search: recording.search, binary: path? }));
        let locate: &dyn Locate = companions.as_ref().map_or(&Nowhere, |companions| companions);
        let symbols_only = recording.is_some_and(|(recording, _)| recording.symbols_only);
        let resolution = if symbols_only && !image.has_pdb() {
            image.resolve_symbols(&svmas)
        } else {
            let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
            image.resolve_with(&svmas, locate, &Part { monitor: self.monitor, before: self.done, of: self.of })
        };
        match resolution {
            Ok(resolution) => Ok(Ok(resolution)),
            Err(SymbolError::Cancelled(cancelled)) => Err(cancelled.into()),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    fn named(&self, recording: usize, mut resolution: Resolution) -> Resolution {
        if self.recordings[recording].profile.kind == ProfileKind::Uftrace {
            name_library_calls(&mut resolution);
        }
        resolution
    }

    fn without_binary(&self, job: &Job<'_>, reason: &str) -> ModuleSymbols {
        match self.recordings[job.recording].kernel {
            Some(kernel) if matches!(job.module.kind, ModuleKind::Kernel | ModuleKind::KernelModule) => {
                kernel.look_up(&job.wanted)
            }
            _ => ModuleSymbols::Unavailable(reason.to_owned()),
        }
    }

    fn finish(&mut self, job: Job<'_>, symbols: ModuleSymbols) -> anyhow::Result<()> {
        let mut problems = Problems::new();
        if let Some(mismatch) = &job.found.mismatch {
            problems.add("build-id-mismatch", 1, None, format!("{mismatch}; used because mismatches are allowed"));
        }
        if let ModuleSymbols::Resolved(resolution) = &symbols {
            problems.append(&resolution.problems);
        }
        note_unavailable(&mut problems, job.module, &symbols);
        let symbols = match (job.recorded, symbols) {
            (None, symbols) => symbols,
            (Some(recorded), ModuleSymbols::Resolved(rest)) => ModuleSymbols::Resolved(recorded.complete(rest)),
            (Some(recorded), ModuleSymbols::Unavailable(reason)) => {
                ModuleSymbols::Resolved(recorded.without_rest(reason))
            }
        };
        let addresses = self.recordings[job.recording].addresses.of_module(ModuleId(job.number as u32));
        self.done += addresses.len() as u64;
        self.answers[job.recording][job.number] =
            Some(Answer { symbols, binary: job.found.path, looked: job.found.looked, problems });
        Ok(self.monitor.progress(self.done, self.of)?)
    }
}

/// Held while debug information is read. That uses all processors by itself; two at once would only take twice the
/// memory.
static ALONE: Mutex<()> = Mutex::new(());

/// Whether two modules are most likely one binary.
fn is_same(one: &Module, other: &Module) -> bool {
    let key = |module: &Module| (module.kind, module.space);
    key(one) == key(other) && one.path == other.path && one.identity == other.identity
}

/// Calls of libraries were recorded where the program's linkage table passes them on; what took the time is the function
/// behind, after which the recorder names them.
fn name_library_calls(resolution: &mut Resolution) {
    for function in &mut resolution.functions {
        if let Some(name) = function.name.strip_suffix("@plt") {
            function.name = name.into();
        }
    }
}

fn pick(addresses: &[ModuleAddress], positions: &[usize]) -> Vec<ModuleAddress> {
    positions.iter().filter_map(|&at| addresses.get(at).copied()).collect()
}

/// A binary that exists but is another build must never pass in silence.
fn note_unavailable(problems: &mut Problems, module: &Module, answer: &ModuleSymbols) {
    if let ModuleSymbols::Unavailable(reason) = answer
        && reason.contains("differs")
    {
        let advice = "record again, or name the folder of the recorded build with --debug-dir";
        problems.add("build-id-mismatch", 1, None, format!("{}: {reason}; {advice}", module.base_name()));
    }
}
