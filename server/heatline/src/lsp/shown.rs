//! What is shown of a loaded profile: the costs of one metric, ready to be looked up.

use super::stamp::Stamp;
use super::texts::LineText;
use crate::base_text::Bases;
use crate::load::Loaded;
use crate::settings::{self, Settings};
use anyhow::anyhow;
use heatline_annotate::{
    Against, AnnotationOptions, Annotations, CostTable, Coverage, FileId, Filter, HeatScope, Metric, Selection,
    cut_stacks, gaps,
};
use heatline_profile::{EventId, Profile};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A profile that is kept while it is wanted, whatever is shown of it.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Where it came from.
    pub path: PathBuf,
    /// The state of the file before it was read.
    pub stamp: Stamp,
    /// What it holds.
    pub loaded: Arc<Loaded>,
    /// The texts it was built from that were at hand; absent of a baseline.
    pub bases: Option<Arc<Bases>>,
}

impl Kept {
    /// The text that a file had when the recorded program was built, if it was at hand.
    fn text_as_built(&self, file: FileId) -> Option<Arc<str>> {
        self.bases.as_ref()?.texts.verified(&self.loaded, file)
    }
}

/// What is shown. Immutable; another metric, baseline or profile is another one.
#[derive(Debug)]
pub struct Shown {
    /// The profile.
    pub kept: Kept,
    /// The profile compared with.
    pub baseline: Option<Kept>,
    /// For each file of the profile the one that stands for it: several may be one file here.
    pub same_file: Vec<FileId>,
    /// Costs by file and line.
    pub annotations: Annotations,
    /// The chosen metric's id.
    pub metric: String,
    /// All metrics: id and unit.
    pub metrics: Vec<(String, &'static str)>,
    /// How much of the weight reached a line.
    pub coverage: Coverage,
    /// Where a considerable share of it reached none, and why.
    pub gaps: Vec<String>,
    /// What is said of stacks that end too early.
    pub cut_stacks: Option<String>,
    /// How many samples the profile has.
    pub samples: u64,
    /// What is wrong with the choice, not with the profile.
    pub remarks: Vec<String>,
    texts: Mutex<HashMap<FileId, Arc<[LineText]>>>,
}

impl Shown {
    /// Computes what is shown of a profile. A metric that it does not have is remarked and the first shown instead.
    ///
    /// # Errors
    /// If the profile holds no events.
    pub fn build(
        kept: Kept,
        baseline: Option<Kept>,
        metric: Option<&str>,
        settings: &Settings,
    ) -> anyhow::Result<Shown> {
        let model = &kept.loaded.model;
        let profile = model.profile();
        let mut remarks = Vec::new();
        let first = profile
            .default_event()
            .ok_or_else(|| anyhow!("{}: the profile holds no events, record again", kept.path.display()))?;
        let named = metric.and_then(|name| {
            let metric = Metric::find(profile, name);
            if metric.is_none() {
                remarks.push(format!("the profile has no metric {name}, {} is shown", profile.metric_id(first)));
            }
            metric
        });
        let chosen = named.unwrap_or(Metric::sum(first));
        let metric = chosen.id(profile);
        let table = Arc::new(table(&kept.loaded, chosen, settings));
        let old = baseline.as_ref().and_then(|old| {
            let same = Metric::find(old.loaded.model.profile(), &metric);
            if same.is_none() {
                remarks.push(format!("{}: the baseline has no metric {metric}", old.path.display()));
            }
            Some(Arc::new(self::table(&old.loaded, same?, settings)))
        });
        let same_file = kept.loaded.sources.same_file();
        let options = AnnotationOptions {
            same_file: same_file.clone(),
            heat_scope: match settings.heat.scope {
                settings::HeatScope::Profile => HeatScope::Profile,
                settings::HeatScope::File => HeatScope::File,
            },
            delta_threshold: settings.diff_threshold,
        };
        let others = sampled(profile).filter(|other| *other != chosen.event);
        let others = others.map(|other| Arc::new(self::table(&kept.loaded, Metric::sum(other), settings)));
        let text_before = |file| baseline.as_ref()?.text_as_built(file);
        let text_now = |file| kept.text_as_built(file);
        let against = old.map(|table| Against { table, text_before: &text_before, text_now: &text_now });
        let annotations = Annotations::new(table.clone(), against, options).with_others(others);
        let metrics = Metric::all(profile).into_iter().map(|metric| (metric.id(profile), metric.unit(profile)));
        let coverage = table.coverage();
        Ok(Shown {
            metrics: metrics.collect(),
            gaps: gaps(&kept.loaded.model, &coverage, ""),
            cut_stacks: cut_stacks(&table),
            coverage,
            samples: profile.samples(),
            same_file,
            annotations,
            metric,
            remarks,
            texts: Mutex::default(),
            baseline,
            kept,
        })
    }

    /// The words of the lines of a file's view, in their order.
    pub fn texts(&self, file: FileId) -> Arc<[LineText]> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || match self.annotations.file(file) {
            Some(view) => LineText::of_file(&self.annotations, view).into(),
            None => Arc::default(),
        };
        texts.entry(file).or_insert_with(make).clone()
    }

    /// The file that stands for a file of the profile.
    pub fn representative(&self, file: FileId) -> FileId {
        self.same_file.get(file.0 as usize).copied().unwrap_or(file)
    }

    /// Whether both come from the same state of the same file, so that what was known of its lines still holds.
    pub fn is_of_same_recording(&self, other: &Shown) -> bool {
        self.kept.path == other.kept.path && self.kept.stamp == other.kept.stamp
    }

    /// Whether an editor would show the same of both.
    pub fn looks_like(&self, other: &Shown) -> bool {
        let files = |shown: &Shown| shown.annotations.files().count();
        self.metric == other.metric
            && self.samples == other.samples
            && files(self) == files(other)
            && self.annotations.files().all(|(id, view)| {
                let path = |shown: &Shown| shown.kept.loaded.sources.path(id).map(PathBuf::from);
                other.annotations.file(id) == Some(view) && path(self) == path(other)
            })
    }
}

fn table(loaded: &Loaded, metric: Metric, settings: &Settings) -> CostTable {
    let selection = Selection { metric, filter: Filter::default(), inline: settings.inline };
    CostTable::new(loaded.model.clone(), selection)
}

/// The events that have samples.
fn sampled(profile: &Profile) -> impl Iterator<Item = EventId> + use<> {
    let totals = profile.totals();
    (0..).map(EventId).zip(totals).filter(|(_, total)| total.samples > 0).map(|(id, _)| id)
}
