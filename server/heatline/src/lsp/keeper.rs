//! Decides what is shown: takes orders, loads, swaps, tells the client.
//!
//! It is one task, so orders are obeyed one after the other. While a load runs, further orders are taken: those that
//! want something else end it, those that want the same again are fulfilled by one more load, however many they are.
//!
//! Here orders become needs; [`loading`] fulfils them, [`changes`] finds out what files that changed mean, [`places`]
//! follows lines, and [`telling`] says how it stands.

mod changes;
mod loading;
mod places;
mod telling;

use super::configuration::Configuration;
use super::job::Wish;
use super::shown::Shown;
use super::state::Shared;
use super::watching::Watching;
use crate::base_text::Bases;
use crate::discovery::{self, Found};
use crate::settings;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::mpsc;

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

    /// What is wanted now, or `None` for nothing.
    fn wish(&self) -> Option<Wish> {
        let state = self.shared.lock();
        let in_root = |path: &String| state.roots.first().map_or_else(|| path.into(), |root| root.join(path));
        let baseline = match &self.baseline {
            Some(chosen) => chosen.clone(),
            None => state.settings.baseline.as_ref().map(in_root),
        };
        let profile = match &self.choice {
            // A baseline that lies beside the recordings is none to be shown by itself, unless it is all there is.
            Choice::Newest => {
                let mut others = self.found.profiles.iter().filter(|path| Some(*path) != baseline.as_ref());
                others.next().or(self.found.profiles.first())?.clone()
            }
            Choice::This(path) => path.clone(),
            Choice::Nothing => return None,
        };
        let metric = self.metric.clone().or_else(|| state.settings.metric.clone());
        Some(Wish { profile, baseline, metric, settings: state.settings.clone(), roots: state.roots.clone() })
    }
}
