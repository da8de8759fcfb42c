//! Reading the recordings that are compared. Only what the comparison needs is kept of each, so that memory does not
//! grow with their number.

use super::options::{DiffArgs, Files, Kind, Needs};
use super::sayings::Sayings;
use crate::base_text::BaseTexts;
use crate::cli::options::{ProfileArgs, ReadingArgs};
use crate::cli::output::{self, say};
use crate::cli::progress::Bar;
use crate::cli::session::{no_events, refuse_impossible_filters};
use crate::load::{LoadOptions, Loaded, in_twos, load, load_together};
use crate::settings::Settings;
use anyhow::{Context, anyhow, bail};
use heatline_annotate::compare::{Ledger, Measure};
use heatline_annotate::{CostTable, FileId, Metric, Selection, gaps};
use heatline_profile::{EventId, Problems, Profile, ProfileKind, Sampling, round};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One recording: what it is, and what is kept of each of its metrics.
pub struct Recording<T> {
    /// Where it lies.
    pub path: PathBuf,
    /// What can make it incomparable.
    pub facts: Facts,
    /// By the metric's id, in the order of the recording.
    pub metrics: Vec<(MetricName, T)>,
    /// Where source files are on this machine that were recorded at another path.
    pub local: HashMap<String, PathBuf>,
    /// The number of samples of each.
    samples: Vec<u64>,
    /// What of each could not be resolved.
    unresolved: Vec<Unresolved>,
    /// What was damaged.
    problems: Problems,
}

/// The shares of a metric that are of no function and of no line, and where and why.
struct Unresolved {
    nameless: f64,
    lineless: f64,
    gaps: Vec<String>,
}

/// Where the unresolved shares of recordings differ by more, rows of one are not those of the other.
const UNEVEN: f64 = 0.05;

/// The names of a metric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetricName {
    /// By which it is chosen.
    pub id: String,
    /// The name of its event as recorded.
    pub event: String,
    /// The unit of its weight.
    pub unit: &'static str,
    /// Whether weights are a statistic that does not add up.
    pub is_statistic: bool,
    /// How it was sampled.
    pub sampling: Option<Sampling>,
}

/// What makes recordings comparable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    kind: ProfileKind,
    cpu: Option<String>,
    arch: Option<String>,
    spe: Vec<String>,
    truncated: bool,
}

/// All recordings of a comparison.
pub struct Recordings<T> {
    /// Runs of the baseline.
    pub baseline: Vec<Recording<T>>,
    /// For each column its runs.
    pub columns: Vec<Vec<Recording<T>>>,
    /// Sources that have changed since the programs of the columns were built, where lines are compared.
    pub changed: BTreeSet<String>,
}

/// What is read of one recording.
struct Wish {
    args: ProfileArgs,
    settings: Settings,
    options: LoadOptions,
    /// Whether it is one of the baseline.
    is_baseline: bool,
}

impl Wish {
    fn new(args: ProfileArgs, is_baseline: bool, needs: Needs) -> anyhow::Result<Self> {
        let settings = args.settings();
        let Needs { symbols_only, without_callers } = needs;
        let options = LoadOptions { symbols_only, without_callers, ..args.load_options(&settings)? };
        Ok(Wish { args, settings, options, is_baseline })
    }

    /// How many bytes its recordings have; of folders and pipes it is not known.
    fn size(&self) -> u64 {
        let size = |path: &PathBuf| path.metadata().ok().filter(std::fs::Metadata::is_file).map(|file| file.len());
        let sizes = self.args.profiles.iter().map(size);
        sizes.map(|size| size.unwrap_or(LARGEST_BATCH)).fold(0, u64::saturating_add)
    }
}

impl<T> Recordings<T> {
    /// Reads all files; `keep` makes what is kept of a table. Says on standard error what was damaged.
    ///
    /// # Errors
    /// If a file cannot be used, or the metric that was named is none of the baseline's.
    pub fn read(
        args: &DiffArgs,
        files: &Files,
        keep: impl Fn(&Loaded, &CostTable) -> T + Sync,
    ) -> anyhow::Result<Recordings<T>>
    where
        T: Send,
    {
        let paths = files.baseline.iter().chain(files.columns.iter().flatten()).enumerate();
        let wish = |(number, path): (usize, &PathBuf)| {
            Wish::new(args.for_file(path, number)?, number < files.baseline.len(), args.needs())
        };
        let wishes = paths.map(wish).collect::<anyhow::Result<Vec<Wish>>>()?;
        let mut all = in_batches(&wishes, &keep)?.into_iter();
        let mut take = |count: usize| -> Vec<Recording<T>> { all.by_ref().take(count).collect() };
        let baseline = take(files.baseline.len());
        let columns = files.columns.iter().map(|column| take(column.len())).collect();
        let recordings = Recordings { baseline, columns, changed: BTreeSet::new() };
        warn(&recordings.damages());
        Ok(recordings)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Recording<T>> {
        self.baseline.iter_mut().chain(self.columns.iter_mut().flatten())
    }

    /// All recordings, the baseline's first.
    pub fn all(&self) -> impl Iterator<Item = &Recording<T>> {
        self.baseline.iter().chain(self.columns.iter().flatten())
    }

    /// The metric that is compared unless one is named: the first of the baseline that has samples there and in another
    /// recording, else the first that has samples at all.
    pub fn common_metric(&self) -> Option<&MetricName> {
        let base = self.baseline.first()?;
        let is_elsewhere = |name: &MetricName| self.columns.iter().flatten().any(|other| other.has_samples(name));
        let names = || base.metrics.iter().map(|(name, _)| name);
        let sampled = || names().filter(|name| base.has_samples(name));
        sampled().find(|name| is_elsewhere(name)).or_else(|| sampled().next()).or_else(|| names().next())
    }

    /// What was damaged, in words.
    fn damages(&self) -> Vec<String> {
        let problems = || self.all().flat_map(|recording| recording.problems.iter().map(move |it| (recording, it)));
        let mut times: HashMap<&str, usize> = HashMap::new();
        problems().for_each(|(_, problem)| *times.entry(&problem.message).or_default() += 1);
        let mut sayings = Sayings::default();
        for (recording, problem) in problems() {
            // Where it was and how often is of one recording.
            let is_of_one = times.get(problem.message.as_str()) == Some(&1);
            let text = if is_of_one { output::in_words(problem) } else { problem.message.clone() };
            sayings.say(&recording.path, text);
        }
        sayings.lines(self.all().count())
    }

    /// What could not be resolved, where that is so much more of one recording than of another that rows which are
    /// one are taken for two; nothing where rows are of no code.
    pub fn uneven(&self, metric: &MetricName, kind: Kind) -> Vec<String> {
        let share = |unresolved: &Unresolved| match kind {
            Kind::Function => Some(unresolved.nameless),
            Kind::Line | Kind::File => Some(unresolved.lineless),
            Kind::Module => None,
        };
        let shares: Vec<(&Recording<T>, &Unresolved, f64)> = self
            .all()
            .filter(|recording| recording.has_samples(metric))
            .filter_map(|recording| {
                let unresolved = recording.unresolved(metric)?;
                Some((recording, unresolved, share(unresolved)?))
            })
            .collect();
        let least = shares.iter().map(|(.., share)| *share).fold(1.0, f64::min);
        let what = if kind == Kind::Function { "function" } else { "line" };
        let mut sayings = Sayings::default();
        for (recording, unresolved, share) in shares.iter().filter(|(.., share)| share - least >= UNEVEN) {
            let whole = format!("{} % of it is of no known {what}", round(100.0 * share));
            let gaps = unresolved.gaps.iter().map(|gap| format!("; {gap}")).collect::<String>();
            sayings.say(&recording.path, format!("{whole}, and so the same code is new or removed here{gaps}"));
        }
        sayings.lines(self.all().count())
    }

    /// Why numbers of the recordings may not compare, in words.
    pub fn warnings(&self, metric: &MetricName) -> Vec<String> {
        let Some(base) = self.baseline.first() else { return Vec::new() };
        let mut sayings = Sayings::default();
        if !base.has_samples(metric) {
            sayings.say(&base.path, format!("no samples of {}", metric.id));
        }
        for other in self.all().skip(1) {
            let mut say = |text: String| sayings.say(&other.path, text);
            base.facts.differences(&other.facts).into_iter().for_each(&mut say);
            match other.find(metric) {
                _ if !other.has_samples(metric) => {
                    let has = other.metrics.iter().map(|(name, _)| name).filter(|name| other.has_samples(name));
                    let has: Vec<&str> = has.map(|name| name.id.as_str()).collect();
                    let has = if has.is_empty() { vec!["no samples"] } else { has };
                    say(format!("no samples of {}; it has {}", metric.id, has.join(", ")));
                }
                Some((found, _)) if found.sampling != metric.sampling => {
                    let (here, there) = (in_words(found.sampling), in_words(metric.sampling));
                    say(format!("sampled {here}, the baseline {there}"));
                }
                Some((found, _)) if found.event != metric.event && base.facts.kind == other.facts.kind => {
                    say(format!("the event is {}, that of the baseline {}", found.event, metric.event));
                }
                _ => {}
            }
        }
        for runs in std::iter::once(&self.baseline).chain(&self.columns) {
            let is_again = |(at, run): &(usize, &Recording<T>)| runs[..*at].iter().any(|other| other.path == run.path);
            runs.iter().enumerate().filter(is_again).for_each(|(_, run)| {
                sayings
                    .say(&run.path, "it is pooled with itself, so that runs seem to differ less than they do".into());
            });
        }
        let cut = self.all().filter(|recording| recording.facts.truncated);
        cut.for_each(|recording| sayings.say(&recording.path, "the recording ends early".into()));
        sayings.lines(self.all().count())
    }
}

fn in_words(sampling: Option<Sampling>) -> String {
    match sampling {
        Some(Sampling::Period(period)) => format!("every {period}"),
        Some(Sampling::Frequency(frequency)) => format!("at {frequency} Hz"),
        None => "in a way that is not known".into(),
    }
}

impl<T> Recording<T> {
    fn read(wish: &Wish, keep: &impl Fn(&Loaded, &CostTable) -> T) -> anyhow::Result<Self> {
        let bar = Bar::new();
        let loaded = load(&wish.options, &bar);
        bar.finish();
        Recording::new(wish, loaded?, keep)
    }

    fn new(wish: &Wish, loaded: Loaded, keep: &impl Fn(&Loaded, &CostTable) -> T) -> anyhow::Result<Self> {
        let Wish { args, settings, is_baseline, .. } = wish;
        let path = &loaded.path;
        let profile = loaded.model.profile().clone();
        refuse_impossible_filters(args, &profile)?;
        let named = args.reading.metric.as_ref().or(args.event_name()).or(settings.metric.as_ref());
        let metrics = match named {
            Some(name) => {
                let metric = Metric::find(&profile, name);
                if metric.is_none() && *is_baseline && settings.metric.as_ref() != Some(name) {
                    let known: Vec<String> = Metric::all(&profile).iter().map(|metric| metric.id(&profile)).collect();
                    return Err(anyhow!("{}: no metric {name}; it has {}", path.display(), known.join(", ")));
                }
                metric.map_or_else(|| events(&profile), |metric| vec![metric])
            }
            None => events(&profile),
        };
        profile.default_event().with_context(|| no_events(path))?;
        let mut unresolved = Vec::new();
        let keep = |metric: Metric| {
            let selection =
                Selection { metric, filter: args.filter(), inline: settings.inline && !args.reading.no_inline };
            let table = CostTable::new(loaded.model.clone(), selection);
            unresolved.push(Unresolved::of(&table));
            (MetricName::of(&profile, metric), keep(&loaded, &table))
        };
        let totals = profile.totals();
        let samples = metrics.iter().map(|metric| totals[metric.event.0 as usize].samples).collect();
        let metrics = metrics.into_iter().map(keep).collect();
        let facts = Facts::of(&profile);
        Ok(Recording {
            path: loaded.path.clone(),
            facts,
            metrics,
            local: moved_sources(&loaded),
            samples,
            unresolved,
            problems: loaded.problems,
        })
    }

    /// Whether it has samples of a metric.
    fn has_samples(&self, metric: &MetricName) -> bool {
        self.number_of(metric).and_then(|at| self.samples.get(at)).is_some_and(|samples| *samples > 0)
    }

    fn unresolved(&self, metric: &MetricName) -> Option<&Unresolved> {
        self.number_of(metric).and_then(|at| self.unresolved.get(at))
    }

    fn number_of(&self, metric: &MetricName) -> Option<usize> {
        let (found, _) = self.find(metric)?;
        self.metrics.iter().position(|(name, _)| name == found)
    }

    /// What it has of a metric: under the same id, or of the same event.
    pub fn find(&self, metric: &MetricName) -> Option<&(MetricName, T)> {
        let same_id = self.metrics.iter().find(|(name, _)| name.id == metric.id);
        same_id.or_else(|| self.metrics.iter().find(|(name, _)| name.event == metric.event))
    }
}

impl Unresolved {
    fn of(table: &CostTable) -> Self {
        let coverage = table.coverage();
        let (nameless, lineless) = (coverage.none, coverage.symbol + coverage.none);
        Unresolved { nameless, lineless, gaps: gaps(table.model(), &coverage, "") }
    }
}

fn moved_sources(loaded: &Loaded) -> HashMap<String, PathBuf> {
    let files = (0..).map(FileId).zip(loaded.model.files());
    let local = files.filter_map(|(id, file)| Some((&file.path, loaded.sources.path(id)?)));
    let moved = local.filter(|(recorded, local)| Path::new(recorded) != *local);
    moved.map(|(recorded, local)| (recorded.clone(), local.to_owned())).collect()
}

/// The sums of all events.
fn events(profile: &Profile) -> Vec<Metric> {
    (0..profile.events.len() as u32).map(|id| Metric::sum(EventId(id))).collect()
}

impl MetricName {
    fn of(profile: &Profile, metric: Metric) -> Self {
        let event = profile.event(metric.event);
        let (unit, sampling) = (metric.unit(profile), event.sampling);
        let is_statistic = metric.statistic.is_some();
        MetricName { id: metric.id(profile), event: event.name.clone(), unit, sampling, is_statistic }
    }
}

impl Facts {
    fn of(profile: &Profile) -> Self {
        Facts {
            kind: profile.origin(),
            cpu: profile.recording.cpu.clone(),
            arch: profile.recording.arch.clone(),
            spe: profile.spe.as_ref().map(|table| table.recording.settings.clone()).unwrap_or_default(),
            truncated: profile.problems.iter().any(|problem| problem.kind == "truncated"),
        }
    }

    fn differences(&self, other: &Facts) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, here: &str, there: &str| {
            if here != there {
                found.push(format!("{what} is {here}, that of the baseline {there}"));
            }
        };
        // A frozen profile may be of any format.
        if ![self.kind, other.kind].contains(&ProfileKind::Heatline) {
            compare("the format", other.kind.name(), self.kind.name());
        }
        if let (Some(here), Some(there)) = (&other.cpu, &self.cpu) {
            compare("the processor", here, there);
        }
        if let (Some(here), Some(there)) = (&other.arch, &self.arch) {
            compare("the architecture", here, there);
        }
        compare("how Arm SPE chose records", &other.spe.join("; "), &self.spe.join("; "));
        found
    }
}

/// Reads the recordings as ledgers of one kind of rows.
///
/// # Errors
/// As [`Recordings::read`].
pub fn ledgers(args: &DiffArgs, files: &Files) -> anyhow::Result<Recordings<Ledger>> {
    let measure = if args.inclusive { Measure::Inclusive } else { Measure::Exclusive };
    let (changed, unread) = (Mutex::new(BTreeSet::new()), Mutex::new(BTreeSet::new()));
    let recordings = Recordings::read(args, files, |loaded, table| {
        if args.sort.is_empty() {
            let texts = if args.by == Kind::Line { texts(loaded) } else { BaseTexts::default() };
            lock(&unread).extend(texts.unread().map(str::to_owned));
            if !files.baseline.contains(&loaded.path) {
                lock(&changed).extend(texts.changed(loaded));
            }
            let text_of = |file| texts.verified(loaded, file);
            Ledger::of(table, args.by.by(), measure, &text_of)
        } else {
            Ledger::by_keys(table, &args.sort, "")
        }
    })?;
    warn(&lock(&unread).iter().cloned().collect::<Vec<_>>());
    let changed = std::mem::take(&mut *lock(&changed));
    Ok(Recordings { changed, ..recordings })
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// No machine has processors beyond this number.
const LAST_PROCESSOR: u32 = 4095;

/// The texts that a program was built from: what is at hand, else what version control has.
fn texts(loaded: &Loaded) -> BaseTexts {
    let never = AtomicBool::new(false);
    let mut texts = BaseTexts::at_hand(loaded, &never);
    texts.search(loaded, &HashMap::new(), &never);
    texts
}

/// Reads recordings a batch at a time, so that memory is bounded and what several hold in common is resolved once.
fn in_batches<T: Send>(
    wishes: &[Wish],
    keep: &(impl Fn(&Loaded, &CostTable) -> T + Sync),
) -> anyhow::Result<Vec<Recording<T>>> {
    let mut all = Vec::with_capacity(wishes.len());
    for batch in batches(wishes, Wish::size) {
        let bar = Bar::new();
        let loaded = load_together(batch.iter().map(|wish| &wish.options).collect(), &bar);
        bar.finish();
        let loaded = batch.iter().zip(loaded?).collect();
        all.extend(in_twos(loaded, |(wish, loaded)| Recording::new(wish, loaded, keep))?);
    }
    Ok(all)
}

/// More bytes of recordings are not held at the same time, but for two recordings.
const LARGEST_BATCH: u64 = 32 << 20;

/// The most recordings of a batch.
const MOST_OF_BATCH: usize = 128;

/// Neighbours that are small enough to be held together; two at least.
fn batches<T>(mut items: &[T], size: impl Fn(&T) -> u64) -> Vec<&[T]> {
    let mut batches = Vec::new();
    while !items.is_empty() {
        let mut sum = 0u64;
        let fits = |item: &&T| {
            sum = sum.saturating_add(size(item));
            sum <= LARGEST_BATCH
        };
        let fitting = items.iter().take(MOST_OF_BATCH).take_while(fits).count();
        let (batch, rest) = items.split_at(fitting.max(2).min(items.len()));
        batches.push(batch);
        items = rest;
    }
    batches
}

/// What can be read in parts.
pub trait Parts {
    /// Leaves nothing.
    fn clear(&mut self);
    /// Adds another part.
    fn add(&mut self, part: Self);
}

impl Parts for Ledger {
    fn clear(&mut self) {
        Ledger::clear(self);
    }

    fn add(&mut self, part: Self) {
        self.append(part);
    }
}

/// Reads the recordings processor by processor; `make` is told of which its table is, or that samples do not say it.
///
/// # Errors
/// As [`Recordings::read`], or if processors are filtered at the same time.
pub fn by_processor<T: Parts + Send>(
    args: &DiffArgs,
    files: &Files,
    make: &(impl Fn(&CostTable, Option<u32>) -> T + Sync),
) -> anyhow::Result<Recordings<T>> {
    if args.reading.cpu.is_some() {
        bail!("--sort cpu reads one processor after the other; leave --cpu out");
    }
    let mut all = Recordings::read(args, files, |_, table| make(table, None))?;
    let paths = files.baseline.iter().chain(files.columns.iter().flatten());
    for (number, (path, recording)) in paths.zip(all.all_mut()).enumerate() {
        split_by_processor(&args.for_file(path, number)?, args.needs(), recording, make)?;
    }
    Ok(all)
}

fn split_by_processor<T: Parts>(
    args: &ProfileArgs,
    needs: Needs,
    recording: &mut Recording<T>,
    make: &impl Fn(&CostTable, Option<u32>) -> T,
) -> anyhow::Result<()> {
    let of = |processors: String| {
        let part = ReadingArgs { cpu: Some(processors), ..args.reading.clone() };
        ProfileArgs { reading: part, ..args.clone() }
    };
    let samples = |_: &Loaded, table: &CostTable| table.total().samples;
    let only_samples = Needs { symbols_only: true, without_callers: true };
    // An error here means that the samples do not say it.
    let known = Wish::new(of(format!("0-{LAST_PROCESSOR}")), false, only_samples)?;
    let Ok(known) = Recording::read(&known, &samples) else { return Ok(()) };
    let mut left: u64 = known.metrics.iter().map(|(_, samples)| samples).sum();
    recording.metrics.iter_mut().for_each(|(_, sum)| sum.clear());
    for processor in 0..=LAST_PROCESSOR {
        if left == 0 {
            break;
        }
        let keep = |loaded: &Loaded, table: &CostTable| (samples(loaded, table), make(table, Some(processor)));
        let part = Recording::read(&Wish::new(of(processor.to_string()), false, needs)?, &keep);
        for (metric, (samples, part)) in part.map(|part| part.metrics).unwrap_or_default() {
            left = left.saturating_sub(samples);
            if let Some((_, sum)) = recording.metrics.iter_mut().find(|(name, _)| *name == metric) {
                sum.add(part);
            }
        }
    }
    Ok(())
}

/// Says on standard error why numbers may not compare.
pub fn warn(warnings: &[String]) {
    warnings.iter().for_each(|text| say(format_args!("warning: {text}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_recordings_are_held_together_and_great_ones_two_at_a_time() {
        let sizes = |sizes: &[u64]| batches(sizes, |size| *size).iter().map(|batch| batch.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&[1 << 27, 1 << 27, 1 << 27]), [2, 1]);
        assert_eq!(sizes(&[1 << 20; 300]), [32, 32, 32, 32, 32, 32, 32, 32, 32, 12]);
        assert_eq!(sizes(&[10; 300]), [128, 128, 44]);
        assert_eq!(sizes(&[10, 1 << 27, 10, 10]), [2, 2]);
        assert_eq!(sizes(&[u64::MAX, 1]), [2]);
        assert_eq!(sizes(&[]), [0; 0]);
    }
}
