//! From paths of profiles to a finished model: reading, finding binaries, resolving, finding sources.

use crate::binaries::SearchPaths;
use crate::call_lines::{self, SharedCalls};
use crate::files;
use crate::kernel_symbols::KernelSymbols;
use crate::resolving::{self, Resolved, Unresolved};
use crate::shared_calls::{self, SharedLines};
use crate::sources::{SourcePaths, Sources};
use crate::time_choice::TimeChoice;
use crate::which_profile::{self, is_member, profile_at};
use anyhow::{Context, anyhow};
use heatline_annotate::{Addresses, FileId, Model};
use heatline_profile::{
    AddressSpace, Cancelled, ModuleAddress, ModuleId, ModuleKind, Monitor, Problems, Profile, ProfileKind, Rva,
};
use heatline_readers::{Folder, Input, ReadOptions, spt};
use heatline_symbols::Image;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The kind of problem that several files here could be one that was recorded.
pub const AMBIGUOUS_SOURCE: &str = "ambiguous-source";

/// What loading needs to know.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The profiles; several are added up.
    pub paths: Vec<PathBuf>,
    /// Which samples to read.
    pub read: ReadOptions,
    /// Of which part of each recording.
    pub time: Option<TimeChoice>,
    /// Where binaries are; the folders of the profiles are added.
    pub search: SearchPaths,
    /// Where sources are; the folders of the profiles are added.
    pub sources: SourcePaths,
    /// Functions by symbol tables alone, as perf names them; no lines.
    pub symbols_only: bool,
    /// Exclusive costs alone: callers are neither kept nor resolved where the costs can do without.
    pub without_callers: bool,
}

/// A loaded profile.
#[derive(Debug)]
pub struct Loaded {
    /// The profile with resolved addresses.
    pub model: Arc<Model>,
    /// Its source files on this machine.
    pub sources: Arc<Sources>,
    /// The path of the (first) profile.
    pub path: PathBuf,
    /// Everything that went wrong, of reading and of resolving.
    pub problems: Problems,
    /// Where the binary of each module was looked for, by [`ModuleId`].
    pub looked: Vec<Vec<PathBuf>>,
    /// Where the binary of each module was found, by [`ModuleId`].
    pub binaries: Vec<Option<PathBuf>>,
    /// Lines that may have made calls of which nobody recorded who made them.
    pub shared: SharedLines,
    /// The lines of [`Loaded::lines_of`], made when first needed.
    lines: OnceLock<HashMap<FileId, Arc<[NonZeroU32]>>>,
}

impl Loaded {
    /// The lines of a file that code of the profile is on, that functions are declared on or that may have called,
    /// ascending. Files that are one here are asked for by the one that stands for them.
    pub fn lines_of(&self, file: FileId) -> Arc<[NonZeroU32]> {
        self.lines.get_or_init(|| self.group_lines()).get(&file).cloned().unwrap_or_default()
    }

    fn group_lines(&self) -> HashMap<FileId, Arc<[NonZeroU32]>> {
        let same = self.sources.same_file();
        let mut lines: HashMap<FileId, BTreeSet<NonZeroU32>> = HashMap::new();
        for (_, file, line) in self.model.source_lines() {
            let stands = same.get(file.0 as usize).copied().unwrap_or(file);
            lines.entry(stands).or_default().insert(line);
        }
        for (&file, shared) in &self.shared {
            lines.entry(file).or_default().extend(shared.keys());
        }
        lines.into_iter().map(|(file, lines)| (file, lines.into_iter().collect())).collect()
    }
}

/// What long work is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Reading the recording; counts are bytes.
    Reading,
    /// Resolving addresses; counts are addresses.
    Resolving,
    /// Looking for source files.
    Sources,
}

/// Progress of a load.
pub trait LoadMonitor: Send + Sync {
    /// `done` of `of` in a phase; `of` is 0 where unknown.
    ///
    /// # Errors
    /// [`Cancelled`] when loading should end.
    fn progress(&self, phase: Phase, done: u64, of: u64) -> Result<(), Cancelled>;
}

struct InPhase<'a> {
    phase: Phase,
    before: u64,
    of: u64,
    monitor: &'a dyn LoadMonitor,
}

impl Monitor for InPhase<'_> {
    fn progress(&self, done: u64, of: u64) -> Result<(), Cancelled> {
        self.monitor.progress(self.phase, self.before + done, if self.of > 0 { self.of } else { of })
    }
}

/// Loads profiles to finished costs.
///
/// # Errors
/// If a profile cannot be used at all, or loading was cancelled ([`Cancelled`] is then the cause).
pub fn load(options: &LoadOptions, monitor: &dyn LoadMonitor) -> anyhow::Result<Loaded> {
    let read = Read::new(options, monitor)?;
    let resolved = resolve(std::slice::from_ref(&read), monitor)?.pop().unwrap_or_default();
    read.finish(resolved, monitor)
}

/// Loads profiles together, of which each may be several files. A binary that several hold is read once.
///
/// # Errors
/// As [`load`].
pub fn load_together(options: Vec<&LoadOptions>, monitor: &dyn LoadMonitor) -> anyhow::Result<Vec<Loaded>> {
    let read = in_twos(options, |options| Read::new(options, monitor))?;
    let resolved = resolve(&read, monitor)?;
    let read = read.into_iter().zip(resolved).collect();
    in_twos(read, |(read, resolved)| read.finish(resolved, monitor))
}

/// Does something with all things, with two at the same time.
///
/// # Errors
/// The first of what was done; what comes behind is not begun.
pub fn in_twos<T: Send, R: Send>(
    things: Vec<T>,
    work: impl Fn(T) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let mut done = Vec::with_capacity(things.len());
    let mut things = things.into_iter();
    while let Some(first) = things.next() {
        let Some(second) = things.next() else {
            done.push(work(first)?);
            break;
        };
        let (first, second) = std::thread::scope(|scope| {
            let other = scope.spawn(|| work(second));
            (work(first), other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        done.extend([first?, second?]);
    }
    Ok(done)
}

fn resolve(read: &[Read<'_>], monitor: &dyn LoadMonitor) -> anyhow::Result<Vec<Resolved>> {
    let unresolved: Vec<Unresolved<'_>> = read.iter().map(Read::unresolved).collect();
    let phase = InPhase { phase: Phase::Resolving, before: 0, of: 0, monitor };
    resolving::resolve(&unresolved, &phase)
}

/// A profile that was read.
struct Read<'a> {
    options: &'a LoadOptions,
    path: PathBuf,
    /// The folders that hold its files.
    beside: Vec<PathBuf>,
    search: SearchPaths,
    kernel: Option<KernelSymbols>,
    profile: Arc<Profile>,
    addresses: Addresses,
    /// Calls of which nobody recorded which line made them.
    shared: Vec<SharedCalls>,
    problems: Problems,
}

impl<'a> Read<'a> {
    fn new(options: &'a LoadOptions, monitor: &dyn LoadMonitor) -> anyhow::Result<Self> {
        let paths = options.paths.iter().map(|path| profile_at(path)).collect::<anyhow::Result<Vec<_>>>()?;
        let path = paths.first().cloned().ok_or_else(|| anyhow!("no profile was named"))?;
        let beside = folders_of(&paths);
        let search = SearchPaths { beside: join(&options.search.beside, &beside), ..options.search.clone() };
        let reading = ReadOptions {
            binaries: Some(Arc::new(search.clone())),
            without_callers: options.without_callers,
            ..options.read.clone()
        };
        let mut profile: Option<Profile> = None;
        for path in &paths {
            let time = options.time.as_ref().map(|choice| choice.of(path, monitor)).transpose()?;
            let read = read_profile(path, &ReadOptions { time, ..reading.clone() }, monitor)?;
            profile = Some(match profile {
                None => read,
                Some(sum) => sum.merge(&read).map_err(|error| anyhow!("{}: {error}", path.display()))?,
            });
        }
        let mut profile = profile.ok_or_else(|| anyhow!("no profile was named"))?;
        if profile.kind == ProfileKind::Spt {
            settle_stack_order(&mut profile, options.read.spt.stack_order, &search);
        }
        let mut problems = profile.problems.clone();
        let shared = match profile.kind {
            ProfileKind::Uftrace => call_lines::place(&mut profile, &search, &mut problems),
            _ => Vec::new(),
        };
        if options.without_callers {
            profile.drop_callers();
        }
        let profile = Arc::new(profile);
        let addresses = Addresses::of(&profile);
        let kernel = kernel_symbols(&search, &profile, &paths, &mut problems)?;
        Ok(Read { options, path, beside, search, kernel, profile, addresses, shared, problems })
    }

    fn unresolved(&self) -> Unresolved<'_> {
        Unresolved {
            profile: &self.profile,
            addresses: &self.addresses,
            search: &self.search,
            kernel: self.kernel.as_ref(),
            symbols_only: self.options.symbols_only,
        }
    }

    fn finish(self, resolved: Resolved, monitor: &dyn LoadMonitor) -> anyhow::Result<Loaded> {
        let Read { options, path, beside, profile, addresses, shared, mut problems, .. } = self;
        let Resolved { symbols, binaries, looked, problems: unresolved } = resolved;
        problems.append(&unresolved);
        let model = Arc::new(Model::build(profile, addresses, symbols));
        monitor.progress(Phase::Sources, 0, 1)?;
        let places = SourcePaths {
            roots: join(&options.sources.roots, &beside),
            beside: join(&options.sources.beside, &beside),
            map: options.sources.map.clone(),
            toolchains: options.sources.toolchains.clone(),
        };
        let sources = Arc::new(Sources::find(&model, &places));
        for ambiguous in sources.ambiguous() {
            problems.add(AMBIGUOUS_SOURCE, 1, None, ambiguous.to_string());
        }
        monitor.progress(Phase::Sources, 1, 1)?;
        note_newer(&mut problems, model.profile(), &binaries, &path);
        let shared = shared_calls::lines(&shared, &model, &sources.same_file());
        Ok(Loaded { model, sources, path, problems, looked, binaries, shared, lines: OnceLock::new() })
    }
}

/// Finds out from the code of the binaries which end of the stacks of an SPT profile comes first.
fn settle_stack_order(profile: &mut Profile, read_as: spt::StackOrder, search: &SearchPaths) {
    let images: Vec<Option<Image>> = profile.modules.iter().map(|module| search.find(module).image.ok()).collect();
    let has_stacks = profile.rows.iter().any(|row| !profile.event(row.event).exclusive);
    let mut follows_call = |module: ModuleId, rva: Rva| {
        let image = images.get(module.0 as usize)?.as_ref()?;
        image.follows_call(image.to_svma(ModuleAddress(u64::from(rva.0)), AddressSpace::Rva)?)
    };
    let direction = spt::settle_stack_order(profile, read_as, &mut follows_call);
    if has_stacks && matches!(direction, spt::Direction::Assumed(_)) {
        let message = format!("order of stacks: {direction}, as no code at hand shows it; --stack-order chooses");
        profile.problems.add("stack-order", 1, None, message);
    }
}

fn join(first: &[PathBuf], second: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = first.to_vec();
    all.extend(second.iter().filter(|path| !first.contains(path)).cloned());
    all
}

/// The folders of files, each once; a folder-shaped profile lies in its parent.
fn folders_of(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for path in paths {
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Reads one profile; nothing is resolved.
///
/// # Errors
/// If it cannot be used at all, or reading was cancelled.
pub fn read_profile(path: &Path, options: &ReadOptions, monitor: &dyn LoadMonitor) -> anyhow::Result<Profile> {
    let monitor = InPhase { phase: Phase::Reading, before: 0, of: 0, monitor };
    let span = tracing::info_span!("reading", path = %path.display());
    let _entered = span.enter();
    let name = || path.display().to_string();
    if path.as_os_str() == "-" {
        let mut input = std::io::stdin();
        return heatline_readers::read(Input::Stream(&mut input), options, &monitor).context("standard input");
    }
    if path.is_dir() {
        let folder = DiskFolder { root: path.to_owned() };
        return heatline_readers::read(Input::Folder(&folder), options, &monitor).with_context(name);
    }
    let mut file = File::open(path).with_context(name)?;
    let profile = if file.metadata().with_context(name)?.is_file() {
        heatline_readers::read(Input::File(&mut file), options, &monitor)
    } else {
        heatline_readers::read(Input::Stream(&mut file), options, &monitor)
    };
    match profile {
        Err(heatline_readers::ReadError::Unrecognised { .. }) if is_member(path) => Err(which_profile::member(path)),
        profile => profile.with_context(name),
    }
}

/// The names of kernel functions that were given, else those that uftrace copied into its directory.
fn kernel_symbols(
    search: &SearchPaths,
    profile: &Profile,
    paths: &[PathBuf],
    problems: &mut Problems,
) -> anyhow::Result<Option<KernelSymbols>> {
    if let Some(path) = &search.kallsyms {
        return KernelSymbols::read(path).map(Some);
    }
    let has_kernel = profile.modules.iter().any(|module| module.kind == ModuleKind::Kernel);
    if profile.kind != ProfileKind::Uftrace || !has_kernel {
        return Ok(None);
    }
    let mut copies = paths.iter().map(|path| path.join("kallsyms")).filter(|path| path.is_file());
    Ok(copies.find_map(|path| match KernelSymbols::read(&path) {
        Ok(symbols) => Some(symbols),
        Err(error) => {
            problems.add("damaged-record", 1, None, format!("{error:#}; or name a copy with --kallsyms"));
            None
        }
    }))
}

/// A checkout writes binary and recording within moments of each other; only what is clearly later counts.
const MOMENT: Duration = Duration::from_secs(60);

/// A binary whose build was not recorded and that was written after the recording is most likely another build.
fn note_newer(problems: &mut Problems, profile: &Profile, binaries: &[Option<PathBuf>], recording: &Path) {
    let written = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    let Some(recorded) = written(recording) else { return };
    for (module, path) in profile.modules.iter().zip(binaries).filter(|(module, _)| module.identity.is_none()) {
        let newer = path.as_deref().and_then(written).and_then(|time| time.duration_since(recorded).ok());
        if newer.is_some_and(|later| later > MOMENT) {
            let name = module.base_name();
            let message = format!("{name} was written after the recording and may be another build; record again");
            problems.add("newer-binary", 1, None, message);
        }
    }
}

/// Whether something is a profile, by its content.
pub fn is_profile(path: &Path) -> bool {
    if path.is_dir() {
        return is_folder_profile(path);
    }
    // Opening a named pipe would wait for a writer.
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let Ok(file) = File::open(path) else { return false };
    file.take(heatline_readers::HEAD as u64).read_to_end(&mut head).is_ok()
        && heatline_readers::recognise(&head).is_some()
}

/// Whether a folder is a profile.
pub fn is_folder_profile(path: &Path) -> bool {
    recognise_folder(path).is_ok_and(|kind| kind.is_some())
}

/// What kind of profile a folder is.
///
/// # Errors
/// If it cannot be looked into.
pub fn recognise_folder(path: &Path) -> std::io::Result<Option<ProfileKind>> {
    heatline_readers::recognise_folder(&DiskFolder { root: path.to_owned() })
}

/// An error of a member that does not exist stays plain: readers say which it is.
fn named(name: &str, error: std::io::Error) -> std::io::Error {
    match error.kind() {
        std::io::ErrorKind::InvalidInput => std::io::Error::new(error.kind(), format!("{name}: {error}")),
        _ => error,
    }
}

/// A folder of the file system, for the readers.
struct DiskFolder {
    root: PathBuf,
}

impl Folder for DiskFolder {
    fn names(&self) -> std::io::Result<Vec<String>> {
        let entries = std::fs::read_dir(&self.root)?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }

    fn open(&self, name: &str) -> std::io::Result<Box<dyn heatline_readers::ReadSeek>> {
        Ok(Box::new(files::open(&self.root.join(name)).map_err(|error| named(name, error))?))
    }
}
