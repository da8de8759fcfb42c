//! Progress of a load: counted by the thread that loads, shown by the client.

use crate::load::{LoadMonitor, Phase};
use heatline_profile::Cancelled;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tower_lsp::Client;
use tower_lsp::ls_types::notification::Progress;
use tower_lsp::ls_types::{
    ProgressParams, ProgressParamsValue, ProgressToken, WorkDoneProgress, WorkDoneProgressBegin, WorkDoneProgressEnd,
    WorkDoneProgressReport,
};

/// The client is told no more often than this.
const PAUSE: Duration = Duration::from_millis(100);

/// How long the client may take to make a place for the progress.
const PATIENCE: Duration = Duration::from_secs(2);

/// How far a load is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// In percent of everything.
    pub percent: u32,
    /// The phase and its counts.
    pub message: String,
}

/// Takes the progress of loading on the thread that loads.
pub struct Meter {
    cancelled: Arc<AtomicBool>,
    reports: watch::Sender<Report>,
    /// The part of the whole, in percent, that this load is.
    part: (u32, u32),
    /// What is loaded: `perf.data`.
    name: String,
}

impl Meter {
    /// A meter of a part of the whole; it stops the load when `cancelled` is set.
    pub fn new(reports: watch::Sender<Report>, cancelled: Arc<AtomicBool>, part: (u32, u32), name: String) -> Self {
        Meter { cancelled, reports, part, name }
    }
}

impl LoadMonitor for Meter {
    fn progress(&self, phase: Phase, done: u64, of: u64) -> Result<(), Cancelled> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Cancelled);
        }
        let name = &self.name;
        let (from, to, message) = match phase {
            Phase::Reading => (0, 50, format!("reading {name}{}", counts(done >> 20, of >> 20, "MiB"))),
            Phase::Resolving => (50, 95, format!("resolving {name}{}", counts(done, of, "addresses"))),
            Phase::Sources => (95, 100, format!("finding the sources of {name}")),
        };
        let within = (u64::from(to - from) * done.min(of)).checked_div(of).unwrap_or(0);
        let of_load = from + u32::try_from(within).unwrap_or(0);
        let percent = self.part.0 + (self.part.1 - self.part.0) * of_load / 100;
        self.reports.send_if_modified(|report| {
            let changed = percent > report.percent || message != report.message;
            report.percent = percent.max(report.percent);
            report.message = message;
            changed
        });
        Ok(())
    }
}

fn counts(done: u64, of: u64, unit: &str) -> String {
    match (done, of) {
        (0, 0) => String::new(),
        (done, 0) => format!(": {done} {unit}"),
        (done, of) => format!(": {done} of {of} {unit}"),
    }
}

/// Shows progress in the client until the other end of `reports` is dropped. Without an answer of the client to the
/// first question nothing more is sent.
pub async fn show(client: Client, token: ProgressToken, title: String, mut reports: watch::Receiver<Report>) {
    let created = tokio::time::timeout(PATIENCE, client.create_work_done_progress(token.clone())).await;
    if !matches!(created, Ok(Ok(()))) {
        return;
    }
    let send = |value| {
        let params = ProgressParams { token: token.clone(), value: ProgressParamsValue::WorkDone(value) };
        client.send_notification::<Progress>(params)
    };
    let report = reports.borrow_and_update().clone();
    send(WorkDoneProgress::Begin(WorkDoneProgressBegin {
        title,
        cancellable: Some(true),
        message: Some(report.message).filter(|message| !message.is_empty()),
        percentage: Some(report.percent),
    }))
    .await;
    while reports.changed().await.is_ok() {
        // The end of the load does not wait for the pause.
        let ended = tokio::time::timeout(PAUSE, async { while reports.changed().await.is_ok() {} }).await;
        if ended.is_ok() {
            break;
        }
        let report = reports.borrow_and_update().clone();
        send(WorkDoneProgress::Report(WorkDoneProgressReport {
            cancellable: Some(true),
            message: Some(report.message),
            percentage: Some(report.percent),
        }))
        .await;
    }
    send(WorkDoneProgress::End(WorkDoneProgressEnd { message: None })).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentage_only_grows_and_the_message_has_phase_and_counts() {
        let (sender, reports) = watch::channel(Report::default());
        let meter = Meter::new(sender, Arc::default(), (0, 50), "perf.data".into());
        let mut seen = Vec::new();
        let steps = [(Phase::Reading, 1 << 20, 4 << 20), (Phase::Reading, 0, 0), (Phase::Resolving, 50, 100)];
        for (phase, done, of) in steps {
            meter.progress(phase, done, of).unwrap();
            let report = reports.borrow().clone();
            seen.push((report.percent, report.message));
        }
        let expected = [
            (6, "reading perf.data: 1 of 4 MiB"),
            (6, "reading perf.data"),
            (36, "resolving perf.data: 50 of 100 addresses"),
        ];
        assert_eq!(seen, expected.map(|(percent, message)| (percent, message.to_owned())));
    }

    #[test]
    fn a_cancelled_load_is_told_to_end() {
        let cancelled = Arc::new(AtomicBool::new(false));
        let meter = Meter::new(watch::channel(Report::default()).0, cancelled.clone(), (0, 100), String::new());
        assert_eq!(meter.progress(Phase::Reading, 1, 2), Ok(()));
        cancelled.store(true, Ordering::Relaxed);
        assert_eq!(meter.progress(Phase::Reading, 1, 2), Err(Cancelled));
    }
}
