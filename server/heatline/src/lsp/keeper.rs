//! Decides what is shown: takes orders, loads, swaps, tells the client.
//!
//! It is one task, so orders are obeyed one after the other. While a load runs, further orders are taken: those that
//! want something else end it, those that want the same again are fulfilled by one more load, however many they are.

use super::builds;
use super::configuration::Configuration;
use super::job::{self, Job, Wish};
use super::placing::{self, Shares};
use super::progress;
use super::shown::Shown;
use super::stamp::Stamp;
use super::state::{Loading, Shared};
use super::status::{Phase, ProblemStatus, Status, StatusNotification};
use super::watching::Watching;
use crate::base_text::Bases;
use crate::discovery::{self, Found, Pattern};
use crate::settings;
use heatline_annotate::FileId;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tower_lsp::ls_types::ProgressToken;

/// How long the last words of a progress may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// So many source files, the hottest, are watched for changes that no editor makes.
const MOST_SOURCES: usize = 200;

/// What the keeper is asked to do.
#[derive(Debug)]
pub enum Order {
    /// The client's settings may have changed; it sent these along.
    Configure(Value),
    /// The workspace folders changed.
    Roots,
    /// Show this profile.
    Open(PathBuf),
    /// Show nothing.
    Close,
    /// Compare with this profile, or with none.
    Baseline(Option<PathBuf>),
    /// Show this metric.
    Metric(String),
    /// Read everything again.
    Refresh,
    /// Files may have changed: those of [`Shared::take_changes`].
    Changed,
    /// Base texts were found, or are placed anew.
    Bases(Arc<Bases>),
    /// The places of lines in open documents may be others.
    Placed,
    /// Files or folders were renamed in the editor, links resolved.
    Renamed(Vec<(PathBuf, PathBuf)>),
    /// A file was opened that is none of the profile; it may be one by another name.
    LookForRenames(PathBuf),
}

/// Which profile is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Choice {
    /// The newest that is found.
    Newest,
    /// A certain one.
    This(PathBuf),
    /// None.
    Nothing,
}

/// What has to be done, the greater including the lesser.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Need {
    Nothing,
    /// Compute what is shown from what has been read, reading what has not.
    Show,
    /// Read again, whatever has been read.
    Read,
    /// The same, but a file is being written: wait until it is finished.
    ReadWhenSettled,
}

/// The task.
pub struct Keeper {
    shared: Arc<Shared>,
    orders: mpsc::UnboundedReceiver<Order>,
    own_orders: mpsc::UnboundedSender<Order>,
    configuration: Configuration,
    watching: Watching,
    found: Found,
    choice: Choice,
    /// What a person chose; `None` as long as the settings decide.
    baseline: Option<Option<PathBuf>>,
    metric: Option<String>,
    /// What was read last, and for which wish.
    shown: Option<(Wish, Arc<Shown>)>,
    /// Set to end the search for base texts.
    searching: Option<Arc<AtomicBool>>,
    /// What is to be said of binaries that are another build by now.
    rebuilt: Vec<String>,
    need: Need,
    /// Profiles are to be looked for again.
    look: bool,
    /// Files may have changed.
    touched: bool,
    loads: u32,
}

impl Keeper {
    /// A keeper that takes orders from `orders`; `order` is the other end, for what it watches itself.
    pub fn new(
        shared: Arc<Shared>,
        order: mpsc::UnboundedSender<Order>,
        orders: mpsc::UnboundedReceiver<Order>,
    ) -> Self {
        Keeper {
            configuration: Configuration::new(shared.clone()),
            watching: Watching::new(shared.clone(), order.clone()),
            own_orders: order,
            searching: None,
            shared,
            orders,
            found: Found::default(),
            choice: Choice::Newest,
            baseline: None,
            metric: None,
            shown: None,
            rebuilt: Vec::new(),
            need: Need::Nothing,
            look: false,
            touched: false,
            loads: 0,
        }
    }

    /// Works until there is nobody left to give orders.
    pub async fn run(mut self) {
        self.configure(&Value::Null).await;
        self.discover().await;
        if self.need == Need::Nothing {
            self.tell_idle().await;
        }
        loop {
            if std::mem::take(&mut self.touched) {
                self.changed(self.shared.take_changes()).await;
            }
            if std::mem::take(&mut self.look) {
                self.discover().await;
            }
            self.watch();
            if self.need != Need::Nothing {
                self.fulfil().await;
                continue;
            }
            let Some(order) = self.orders.recv().await else { return };
            self.take(order).await;
            while let Ok(order) = self.orders.try_recv() {
                self.take(order).await;
            }
        }
    }

    /// Notes what an order wants. Does nothing that takes long.
    async fn take(&mut self, order: Order) {
        match order {
            Order::Configure(sent) => self.configure(&sent).await,
            Order::Roots => {
                self.configure(&Value::Null).await;
                self.look = true;
                // Sources are looked for in the roots.
                self.want_if_other();
            }
            Order::Open(path) => {
                self.choice = Choice::This(path);
                self.want(Need::Read);
            }
            Order::Close => {
                self.choice = Choice::Nothing;
                self.want(Need::Show);
            }
            Order::Baseline(path) => {
                self.baseline = Some(path);
                self.want(Need::Show);
            }
            Order::Metric(metric) => {
                self.metric = Some(metric);
                self.want(Need::Show);
            }
            Order::Refresh => {
                self.look = true;
                self.want(Need::Read);
            }
            Order::Changed => self.touched = true,
            Order::Bases(bases) => self.take_bases(bases).await,
            Order::Placed => self.tell_again().await,
            Order::Renamed(renames) => self.renamed(renames).await,
            Order::LookForRenames(path) => self.place_anew(move |bases| bases.with_renames_to(&path)),
        }
    }

    fn want(&mut self, need: Need) {
        self.need = self.need.max(need);
    }

    /// Wants to show what is to be shown now, if that is not what is shown.
    fn want_if_other(&mut self) {
        if let (Some((old, _)), Some(new)) = (&self.shown, self.wish())
            && !new.shows_as(old)
        {
            self.want(Need::Show);
        }
    }

    async fn configure(&mut self, sent: &Value) {
        let before = self.shared.lock().settings.clone();
        let now = self.configuration.read(sent).await;
        if *before == *now {
            return;
        }
        self.shared.lock().settings = now.clone();
        if before.baseline != now.baseline {
            self.baseline = None;
        }
        if before.metric != now.metric {
            self.metric = None;
        }
        self.look |= before.profiles != now.profiles;
        self.want_if_other();
        let of_hints = |s: &settings::Settings| (s.hints.clone(), s.heat.clone());
        if self.shown.is_some() && (of_hints(&before) != of_hints(&now) || before.lenses != now.lenses) {
            self.shared.refresh_editors();
        }
    }

    /// Looks for profiles, and wants the newest if none was chosen.
    async fn discover(&mut self) {
        let (roots, settings) = {
            let state = self.shared.lock();
            (state.roots.clone(), state.settings.clone())
        };
        let search = tokio::task::spawn_blocking(move || discovery::discover(&roots, &settings.profiles));
        self.found = search.await.unwrap_or_default();
        if self.choice == Choice::Newest {
            let newest = self.found.profiles.first();
            let shown = self.shown.as_ref().map(|(wish, _)| &wish.profile);
            if newest.is_some() && newest != shown {
                self.want(Need::Show);
            }
        }
    }

    async fn changed(&mut self, paths: Vec<PathBuf>) {
        let (of_settings, of_patterns) = self.concerns(&paths);
        if of_settings {
            self.configure(&Value::Null).await;
        }
        if of_patterns {
            let before = self.need;
            self.discover().await;
            // A profile that has just appeared is most likely being written.
            if self.need > before {
                self.want(Need::ReadWhenSettled);
            }
        }
        self.look_at_binaries(&paths).await;
        self.look_at_sources(paths.clone());
        let wish = self.wish();
        let mut wanted = wish.iter().flat_map(|wish| [Some(&wish.profile), wish.baseline.as_ref()]).flatten();
        if wanted.any(|path| paths.contains(path)) && self.is_outdated() {
            self.want(Need::ReadWhenSettled);
        }
    }

    /// Says it when binaries of what is shown have been built again.
    async fn look_at_binaries(&mut self, paths: &[PathBuf]) {
        let Some((_, shown)) = &self.shown else { return };
        let binaries = builds::binaries(&shown.kept.loaded).map(|(_, path)| path.clone());
        let binaries: Vec<PathBuf> = binaries.collect();
        if !binaries.iter().any(|path| paths.contains(path)) {
            return;
        }
        let loaded = shown.kept.loaded.clone();
        let rebuilt = tokio::task::spawn_blocking(move || builds::rebuilt(&loaded, &binaries)).await;
        self.rebuilt = rebuilt.unwrap_or_default();
        self.tell_again().await;
    }

    /// The base texts of what is to be shown: those known of the same recording stay.
    async fn bases_of(&self, shown: &Shown) -> Option<Arc<Bases>> {
        let new = shown.kept.bases.clone()?;
        let before = self.shared.lock().bases.clone();
        let Some(before) =
            before.filter(|_| self.shown.as_ref().is_some_and(|(_, old)| old.is_of_same_recording(shown)))
        else {
            return Some(new);
        };
        if Arc::ptr_eq(&before.loaded, &new.loaded) {
            return Some(before);
        }
        let keeping = tokio::task::spawn_blocking(move || Arc::new(new.as_ref().clone().keeping(&before))).await;
        keeping.ok()
    }

    /// Searches for the base texts that were not at hand, on a thread of its own.
    fn search_bases(&mut self) {
        self.stop_search();
        let (bases, buffers) = {
            let state = self.shared.lock();
            let Some(bases) = state.bases.clone() else { return };
            (bases, placing::buffers(&state))
        };
        let cancelled = Arc::new(AtomicBool::new(false));
        self.searching = Some(cancelled.clone());
        let orders = self.own_orders.clone();
        tokio::task::spawn_blocking(move || {
            let found = bases.searched(&buffers, &cancelled).filter(|_| !cancelled.load(Ordering::Relaxed));
            if let Some(found) = found {
                // Fails only when the session has ended.
                let _ = orders.send(Order::Bases(Arc::new(found)));
            }
        });
    }

    fn stop_search(&mut self) {
        if let Some(cancelled) = self.searching.take() {
            cancelled.store(true, Ordering::Relaxed);
        }
    }

    async fn take_bases(&mut self, bases: Arc<Bases>) {
        let is_of_shown = |(_, shown): &(Wish, Arc<Shown>)| Arc::ptr_eq(&shown.kept.loaded, &bases.loaded);
        if !self.shown.as_ref().is_some_and(is_of_shown) {
            return;
        }
        // What took long does not know what was renamed meanwhile.
        let bases = match self.shared.lock().bases.as_ref().and_then(|before| bases.with_renames_of(before)) {
            Some(with_renames) => Arc::new(with_renames),
            None => bases,
        };
        let is_other = self.shared.lock().take_bases(bases);
        if is_other {
            self.shared.refresh_editors();
        }
        self.tell_again().await;
    }

    /// Places lines anew in sources that have changed on the disk.
    fn look_at_sources(&self, paths: Vec<PathBuf>) {
        self.place_anew(move |bases| {
            let changed = bases.after_changes(&paths)?;
            Some(found_again(&changed).unwrap_or(changed))
        });
    }

    /// Follows what was renamed in the editor, one after the other.
    async fn renamed(&mut self, renames: Vec<(PathBuf, PathBuf)>) {
        let Some(bases) = self.shared.lock().bases.clone() else { return };
        let placing = tokio::task::spawn_blocking(move || bases.after_renames(&renames));
        if let Ok(Some(bases)) = placing.await {
            self.take_bases(Arc::new(bases)).await;
        }
    }

    /// Places lines anew, on a thread of its own.
    fn place_anew(&self, place: impl FnOnce(&Bases) -> Option<Bases> + Send + 'static) {
        let Some(bases) = self.shared.lock().bases.clone() else { return };
        let orders = self.own_orders.clone();
        tokio::task::spawn_blocking(move || {
            if let Some(bases) = place(&bases) {
                // Fails only when the session has ended.
                let _ = orders.send(Order::Bases(Arc::new(bases)));
            }
        });
    }

    /// Tells the status again, with what has become of places and binaries.
    async fn tell_again(&mut self) {
        let phase = self.shared.lock().status.state;
        if let Some((_, shown)) = self.shown.as_ref().filter(|_| phase == Phase::Ready) {
            let message = summary(shown);
            self.tell(phase, message, None).await;
        }
    }

    /// Whether files are the settings file, and whether they may be profiles to be found.
    fn concerns(&self, paths: &[PathBuf]) -> (bool, bool) {
        let state = self.shared.lock();
        let file = state.roots.first().map(|root| root.join(settings::FILE_NAME));
        let of_settings = file.is_some_and(|file| paths.contains(&file));
        let patterns = state.roots.iter().flat_map(|root| {
            let texts = state.settings.profiles.iter();
            texts.map(|text| Pattern::new(root, text)).collect::<Vec<_>>()
        });
        let of_patterns = patterns.into_iter().any(|pattern| paths.iter().any(|path| pattern.matches(path)));
        (of_settings, of_patterns)
    }

    /// Whether a file that is shown, or could not be, is not as it was when it was read.
    fn is_outdated(&self) -> bool {
        let Some((_, shown)) = &self.shown else { return true };
        let outdated = |path: &Path, stamp: Stamp| Stamp::of(path) != stamp;
        let kept = [Some(&shown.kept), shown.baseline.as_ref()];
        self.wish().is_some_and(|wish| wish.profile != shown.kept.path)
            || kept.into_iter().flatten().any(|kept| outdated(&kept.path, kept.stamp))
    }

    /// What is wanted now, or `None` for nothing.
    fn wish(&self) -> Option<Wish> {
        let state = self.shared.lock();
        let in_root = |path: &String| state.roots.first().map_or_else(|| path.into(), |root| root.join(path));
        let baseline = match &self.baseline {
            Some(chosen) => chosen.clone(),
            None => state.settings.baseline.as_ref().map(in_root),
        };
        let profile = match &self.choice {
            // A baseline that lies beside the recordings is none to be shown by itself.
            Choice::Newest => self.found.profiles.iter().find(|path| Some(*path) != baseline.as_ref())?.clone(),
            Choice::This(path) => path.clone(),
            Choice::Nothing => return None,
        };
        let metric = self.metric.clone().or_else(|| state.settings.metric.clone());
        Some(Wish { profile, baseline, metric, settings: state.settings.clone(), roots: state.roots.clone() })
    }

    /// Does what is needed now. Orders that come meanwhile may leave a new need.
    async fn fulfil(&mut self) {
        let need = std::mem::replace(&mut self.need, Need::Nothing);
        let Some(wish) = self.wish() else { return self.show_nothing().await };
        let usable = self.shown.as_ref().filter(|_| need < Need::Read);
        let same = |old: &Wish| {
            let alike = Wish { profile: old.profile.clone(), baseline: old.baseline.clone(), ..wish.clone() };
            alike.reads_as(old)
        };
        let usable = usable.filter(|(old, _)| same(old));
        let profile = usable.map(|(_, shown)| shown.kept.clone()).filter(|kept| kept.path == wish.profile);
        let baseline = usable.and_then(|(_, shown)| shown.baseline.clone());
        let baseline = baseline.filter(|kept| Some(&kept.path) == wish.baseline.as_ref());
        let (reports, receiver) = watch::channel(progress::Report::default());
        let cancelled = Arc::new(AtomicBool::new(false));
        let job = Job { wish: wish.clone(), profile, baseline, cancelled: cancelled.clone(), reports };
        let showing = job.reads().then(|| self.begin_loading(&wish, &cancelled, receiver));
        if showing.is_some() {
            self.tell(Phase::Loading, format!("loading {}", wish.profile.display()), None).await;
        }
        let settle = (need == Need::ReadWhenSettled).then(|| wish.profile.clone());
        let outcome = self.work(job, settle, &wish, &cancelled).await;
        self.shared.lock().loading = None;
        let is_cancelled = cancelled.load(Ordering::Relaxed);
        match outcome {
            Ok(shown) => self.swap(wish, shown, showing).await,
            Err(error) => {
                finish(showing).await;
                match (is_cancelled, self.need) {
                    // Ended by an order, which is obeyed next.
                    (true, need) if need != Need::Nothing => {}
                    (true, _) => self.cancelled(&wish).await,
                    (false, _) => self.failed(&error).await,
                }
            }
        }
    }

    /// Makes the load known, so that it can be cancelled, and shows its progress.
    fn begin_loading(
        &mut self,
        wish: &Wish,
        cancelled: &Arc<AtomicBool>,
        reports: watch::Receiver<progress::Report>,
    ) -> Option<tokio::task::JoinHandle<()>> {
        self.loads += 1;
        let token = ProgressToken::String(format!("heatline/load/{}", self.loads));
        let mut state = self.shared.lock();
        state.loading = Some(Loading { token: token.clone(), cancelled: cancelled.clone() });
        let name = wish.profile.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let title = format!("Heatline: loading {name}");
        state
            .abilities
            .progress
            .then(|| tokio::spawn(progress::show(self.shared.client.clone(), token, title, reports)))
    }

    /// Runs a job, taking orders meanwhile; one that wants something else ends it.
    async fn work(
        &mut self,
        job: Job,
        settle: Option<PathBuf>,
        wish: &Wish,
        cancelled: &Arc<AtomicBool>,
    ) -> anyhow::Result<Shown> {
        let mut running = std::pin::pin!(async {
            if let Some(path) = settle {
                job::settle(&path, cancelled).await;
            }
            match tokio::task::spawn_blocking(move || job.run()).await {
                Ok(outcome) => outcome,
                Err(panic) => Err(anyhow::anyhow!("internal error while loading: {panic}")),
            }
        });
        loop {
            tokio::select! {
                outcome = &mut running => return outcome,
                Some(order) = self.orders.recv() => {
                    self.take(order).await;
                    if self.need != Need::Nothing && self.wish().is_none_or(|now| !now.reads_as(wish)) {
                        cancelled.store(true, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// Shows what was loaded and says so.
    async fn swap(&mut self, wish: Wish, shown: Shown, showing: Option<Option<tokio::task::JoinHandle<()>>>) {
        let shown = Arc::new(shown);
        // Written to while it was read: what was read is shown, and then what has become of it.
        if shown.kept.stamp != Stamp::of(&shown.kept.path) && shown.kept.stamp.exists() {
            self.want(Need::ReadWhenSettled);
        }
        let bases = self.bases_of(&shown).await;
        let before = self.shown.replace((wish, shown.clone()));
        // What has become of the binaries holds as long as the profile is not read again.
        if before.as_ref().is_none_or(|(_, before)| !Arc::ptr_eq(&before.kept.loaded, &shown.kept.loaded)) {
            self.rebuilt.clear();
        }
        self.shared.lock().show(Some(shown.clone()), bases);
        if before.is_none_or(|(_, before)| !before.looks_like(&shown)) {
            self.shared.refresh_editors();
        }
        self.search_bases();
        finish(showing).await;
        self.tell(Phase::Ready, summary(&shown), None).await;
    }

    async fn show_nothing(&mut self) {
        self.stop_search();
        self.rebuilt.clear();
        if self.shown.take().is_some() {
            self.shared.lock().show(None, None);
            self.shared.refresh_editors();
        }
        self.tell_idle().await;
    }

    async fn cancelled(&mut self, wish: &Wish) {
        let phase = if self.shown.is_some() { Phase::Ready } else { Phase::Idle };
        self.tell(phase, format!("loading {} was cancelled", wish.profile.display()), None).await;
    }

    async fn failed(&mut self, error: &anyhow::Error) {
        let message = format!("{error:#}");
        tracing::warn!(message, "the profile cannot be used");
        self.tell(Phase::Failed, message.clone(), Some(ProblemStatus::new("unreadable", message))).await;
    }

    async fn tell_idle(&mut self) {
        let message = match self.choice {
            Choice::Nothing => "no profile is open",
            _ => "no profile found: record one with 'perf record -g', or open one",
        };
        self.tell(Phase::Idle, message.into(), None).await;
    }

    /// Tells the client the status if it is another than the last it was told.
    async fn tell(&mut self, phase: Phase, message: String, problem: Option<ProblemStatus>) {
        let mut status = Status::of(phase, message, self.shown.as_ref().map(|(_, shown)| &**shown), &self.found);
        if let Some(shares) = Shares::of(&self.shared.lock()) {
            status.place(&shares);
        }
        if let Some((wish, _)) = self.shown.as_ref().filter(|_| !status.ambiguous.is_empty()) {
            status.source_map.clone_from(&wish.settings.source_map);
        }
        status.problems.extend(problem);
        status.problems.extend(self.rebuilt.iter().map(|message| ProblemStatus::new("older-build", message)));
        let is_news = {
            let mut state = self.shared.lock();
            let is_news = state.status != status;
            state.status = status.clone();
            is_news
        };
        if is_news {
            self.shared.client.send_notification::<StatusNotification>(status).await;
        }
    }

    /// Watches all that could change what is shown or is said of it.
    fn watch(&mut self) {
        let wish = self.wish();
        let files = wish.iter().flat_map(|wish| [Some(wish.profile.clone()), wish.baseline.clone()]).flatten();
        let mut files: Vec<PathBuf> = files.collect();
        if let Some((wish, shown)) = &self.shown {
            // Libraries of the system are not built here.
            let in_workspace = |path: &&PathBuf| wish.roots.iter().any(|root| path.starts_with(root));
            let binaries = builds::binaries(&shown.kept.loaded).map(|(_, path)| path);
            files.extend(binaries.filter(in_workspace).cloned());
            let hottest = shown.annotations.hottest_lines().iter().map(|(file, _)| *file);
            let mut sources: Vec<FileId> = Vec::new();
            for file in hottest {
                if sources.len() < MOST_SOURCES && !sources.contains(&file) {
                    sources.push(file);
                }
            }
            let bases = self.shared.lock().bases.clone();
            let paths = |file: FileId| {
                let renamed = bases.as_ref().and_then(|bases| bases.texts.renamed(file));
                [shown.kept.loaded.sources.path(file), renamed].into_iter().flatten().map(Path::to_owned).collect()
            };
            let sources = sources.into_iter().flat_map(|file| -> Vec<PathBuf> { paths(file) });
            files.extend(sources.filter(|path| in_workspace(&path)));
        }
        self.watching.set(files);
    }
}

/// What becomes of places if files are not where they were said to be.
fn found_again(bases: &Bases) -> Option<Bases> {
    if bases.may_be_renamed() { bases.with_renames(&AtomicBool::new(false)) } else { None }
}

/// Waits a little for the end of a progress that was shown.
async fn finish(showing: Option<Option<tokio::task::JoinHandle<()>>>) {
    if let Some(task) = showing.flatten() {
        let _ = tokio::time::timeout(LAST_WORDS, task).await;
    }
}

fn summary(shown: &Shown) -> String {
    let name = shown.kept.path.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}: {} of {}", heatline_annotate::text::extent(shown.kept.loaded.model.profile()), shown.metric)
}
