//! The texts that were built, and where their lines are in those of now: searched for, placed anew, followed through renames.

use super::{Keeper, Order};
use crate::base_text::Bases;
use crate::lsp::job::Wish;
use crate::lsp::placing;
use crate::lsp::shown::Shown;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

impl Keeper {
    /// The base texts of what is to be shown: those known of the same recording stay.
    pub(super) async fn bases_of(&self, shown: &Shown) -> Option<Arc<Bases>> {
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
    pub(super) fn search_bases(&mut self) {
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

    pub(super) fn stop_search(&mut self) {
        if let Some(cancelled) = self.searching.take() {
            cancelled.store(true, Ordering::Relaxed);
        }
    }

    pub(super) async fn take_bases(&mut self, bases: Arc<Bases>) {
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

    /// Follows what was renamed in the editor, one after the other.
    pub(super) async fn renamed(&mut self, renames: Vec<(PathBuf, PathBuf)>) {
        let Some(bases) = self.shared.lock().bases.clone() else { return };
        let placing = tokio::task::spawn_blocking(move || bases.after_renames(&renames));
        if let Ok(Some(bases)) = placing.await {
            self.take_bases(Arc::new(bases)).await;
        }
    }

    /// Places lines anew, on a thread of its own.
    pub(super) fn place_anew(&self, place: impl FnOnce(&Bases) -> Option<Bases> + Send + 'static) {
        let Some(bases) = self.shared.lock().bases.clone() else { return };
        let orders = self.own_orders.clone();
        tokio::task::spawn_blocking(move || {
            if let Some(bases) = place(&bases) {
                // Fails only when the session has ended.
                let _ = orders.send(Order::Bases(Arc::new(bases)));
            }
        });
    }
}
