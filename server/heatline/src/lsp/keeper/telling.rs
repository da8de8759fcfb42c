//! The status: told whenever it is another.

use super::{Choice, Keeper};
use crate::lsp::placing::Shares;
use crate::lsp::shown::Shown;
use crate::lsp::status::{Phase, ProblemStatus, Status, StatusNotification};

impl Keeper {
    /// Tells the status again, with what has become of places and binaries.
    pub(super) async fn tell_again(&mut self) {
        let phase = self.shared.lock().status.state;
        if let Some((_, shown)) = self.shown.as_ref().filter(|_| phase == Phase::Ready) {
            let message = summary(shown);
            self.tell(phase, message, None).await;
        }
    }

    pub(super) async fn tell_idle(&mut self) {
        let message = match self.choice {
            Choice::Nothing => "no profile is open",
            _ => "no profile found: record one with 'perf record -g', or open one",
        };
        self.tell(Phase::Idle, message.into(), None).await;
    }

    /// Tells the client the status if it is another than the last it was told.
    pub(super) async fn tell(&mut self, phase: Phase, message: String, problem: Option<ProblemStatus>) {
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
}

/// What is shown, in a few words.
pub(super) fn summary(shown: &Shown) -> String {
    let name = shown.kept.path.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}: {} of {}", heatline_annotate::text::extent(shown.kept.loaded.model.profile()), shown.metric)
}
