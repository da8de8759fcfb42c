//! Compares texts when typing pauses: edits are followed at once, the exact places come with the pause.

use super::document::Document;
use super::followed::Task;
use super::keeper::Order;
use super::state::Shared;
use heatline_annotate::placement::Comparison;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// So long nobody types before texts are compared.
const PAUSE: Duration = Duration::from_millis(200);

/// Somebody who never pauses gets exact places that often nevertheless.
const LONGEST: Duration = Duration::from_secs(2);

/// Waits for edits and settles documents until the session ends.
pub async fn run(shared: Arc<Shared>, orders: mpsc::UnboundedSender<Order>) {
    loop {
        shared.typing.notified().await;
        let pause = async { while tokio::time::timeout(PAUSE, shared.typing.notified()).await.is_ok() {} };
        let _ = tokio::time::timeout(LONGEST, pause).await;
        settle(&shared, &orders).await;
    }
}

struct Pending {
    key: String,
    version: i32,
    task: Task,
}

async fn settle(shared: &Arc<Shared>, orders: &mpsc::UnboundedSender<Order>) {
    let pending: Vec<Pending> = {
        let state = shared.lock();
        let task = |(key, document): (&String, &Document)| {
            let task = document.profiled.as_ref()?.task(&document.text)?;
            Some(Pending { key: key.clone(), version: document.version, task })
        };
        state.documents.iter().filter_map(task).collect()
    };
    if !pending.is_empty() && take(shared, pending).await {
        shared.refresh_editors();
    }
    // Fails only when the session has ended.
    let _ = orders.send(Order::Placed);
}

/// Compares texts and takes the places that come of it. Tells whether something is elsewhere now than it was said.
async fn take(shared: &Arc<Shared>, pending: Vec<Pending>) -> bool {
    let compare = move || {
        let compared = pending.into_iter().map(|pending| (pending.task.run(), pending));
        compared.collect::<Vec<(Comparison, Pending)>>()
    };
    let Ok(found) = tokio::task::spawn_blocking(compare).await else { return false };
    let mut state = shared.lock();
    found.into_iter().fold(false, |any, (places, pending)| {
        let document = state.documents.get_mut(&pending.key);
        // A text that was edited meanwhile has its own pause.
        document.filter(|document| document.version == pending.version).is_some_and(|d| d.settle(places)) | any
    })
}
