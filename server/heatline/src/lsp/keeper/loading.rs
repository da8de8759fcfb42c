//! Loading what is wanted, taking orders meanwhile, and swapping it in.

use super::telling::summary;
use super::{Keeper, Need};
use crate::lsp::job::{self, Job, Wish};
use crate::lsp::progress;
use crate::lsp::shown::Shown;
use crate::lsp::stamp::Stamp;
use crate::lsp::state::Loading;
use crate::lsp::status::{Phase, ProblemStatus};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tower_lsp::ls_types::ProgressToken;

/// How long the last words of a progress may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Keeper {
    /// Does what is needed now. Orders that come meanwhile may leave a new need.
    pub(super) async fn fulfil(&mut self) {
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
}

/// Waits a little for the end of a progress that was shown.
async fn finish(showing: Option<Option<tokio::task::JoinHandle<()>>>) {
    if let Some(task) = showing.flatten() {
        let _ = tokio::time::timeout(LAST_WORDS, task).await;
    }
}
