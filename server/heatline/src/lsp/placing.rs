//! Base texts in the server: which one a document has, and what share of the cost is placed how.

use super::document::Document;
use super::followed::Followed;
use super::shown::Shown;
use super::state::State;
use crate::base_text::{BaseText, Bases};
use heatline_annotate::placement::{LEAST_CONFIDENCE, Placement};
use heatline_annotate::{FileId, FileView, text};
use heatline_profile::round;
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;

/// The texts of the documents that are files of what is shown.
pub fn buffers(state: &State) -> HashMap<FileId, Arc<str>> {
    let documents = state.documents.values();
    documents.filter_map(|document| Some((document.profiled.as_ref()?.file, document.text.as_str().into()))).collect()
}

/// The base of a document: what was found, else its text as it is.
pub fn base_of(bases: Option<&Bases>, file: FileId, document: &Document) -> BaseText {
    let found = bases.and_then(|bases| bases.texts.get(file)).cloned();
    found.unwrap_or_else(|| BaseText::seen(document.text.as_str()))
}

/// How the cost of a profile is placed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Shares {
    /// The share of the cost in files that are here, by placement, 0 to 1.
    pub shares: BTreeMap<&'static str, f64>,
    /// Files in which no line is placed, and the share of each that is left.
    pub too_different: Vec<(String, f64)>,
}

impl Shares {
    /// Adds up what is known of all files; `None` while nothing is.
    pub fn of(state: &State) -> Option<Self> {
        let shown = state.shown.as_ref()?;
        let bases = state.bases.as_ref()?;
        let open: HashMap<FileId, &Document> = state
            .documents
            .values()
            .filter_map(|document| Some((document.profiled.as_ref()?.file, document)))
            .collect();
        let mut weights = [0u128; Placement::ALL.len()];
        let mut too_different = Vec::new();
        for (file, view) in shown.annotations.files() {
            let followed = open.get(&file).and_then(|document| document.profiled.as_ref());
            let confidence = followed.map(Followed::confidence).or_else(|| bases.confidence(file));
            let Some(confidence) = confidence else { continue };
            let is_sure = confidence >= LEAST_CONFIDENCE;
            if !is_sure {
                too_different.push((shown.kept.loaded.model.file(file).path.clone(), confidence));
            }
            let place = |line| match followed {
                Some(followed) => followed.find(line),
                None => bases.line(file, line),
            };
            for (line, weight) in weights_of(shown, view) {
                let placement = place(line).map_or(Placement::Gone, |(_, placement)| placement);
                let placement = if is_sure { placement } else { Placement::Gone };
                weights[Placement::ALL.iter().position(|one| *one == placement).unwrap_or(0)] += u128::from(weight);
            }
        }
        too_different.sort_by(|a, b| a.0.cmp(&b.0));
        let whole: u128 = weights.iter().sum();
        let shares = Placement::ALL.iter().zip(weights).filter(|(_, weight)| *weight > 0);
        let shares = shares.map(|(placement, weight)| (placement.name(), weight as f64 / whole as f64)).collect();
        Some(Shares { shares, too_different })
    }

    fn share(&self, placement: Placement) -> f64 {
        self.shares.get(placement.name()).copied().unwrap_or(0.0)
    }

    /// What to tell of sources that changed since the build; `None` where all lines are where they were.
    pub fn sentence(&self) -> Option<String> {
        let [moved, changed, gone] = [Placement::Moved, Placement::Changed, Placement::Gone].map(|one| self.share(one));
        if moved + changed + gone == 0.0 {
            return None;
        }
        let percent = |share: f64| round(100.0 * share);
        let mut text = format!("source changed since the build: {} % of cost placed", percent(1.0 - changed - gone));
        for (share, what) in
            [(changed, "on changed lines"), (gone, "gone")].into_iter().filter(|(share, _)| *share > 0.0)
        {
            text += &format!(", {} % {what}", percent(share));
        }
        Some(text)
    }

    /// What to tell of files in which no line is placed.
    pub fn problems(&self) -> impl Iterator<Item = String> + '_ {
        self.too_different.iter().map(|(path, confidence)| format!("{path}: {}", left_over(*confidence)))
    }
}

/// Why no line of a text is placed of which such a share is left.
pub fn left_over(confidence: f64) -> String {
    let left = round(100.0 * confidence);
    format!("only {left} % of the profiled lines are left, so costs are shown for functions only; record again")
}

/// The weight of each line; inclusive where nothing is exclusive.
fn weights_of<'a>(shown: &Shown, view: &'a FileView) -> impl Iterator<Item = (NonZeroU32, u64)> + 'a {
    let exclusive = shown.annotations.table().has_exclusive();
    view.lines.iter().map(move |line| {
        let cost = if exclusive { line.exclusive } else { line.inclusive.unwrap_or(line.exclusive) };
        (line.line, cost.weight.0)
    })
}

/// For each function of a file, by the line it is declared on, the share of its cost that was on lines that are gone,
/// in words.
pub fn removed(document: &Document, view: &FileView) -> HashMap<NonZeroU32, String> {
    let mut percents: HashMap<NonZeroU32, f64> = HashMap::new();
    let Some(followed) = document.profiled.as_ref().filter(|followed| followed.is_sure()) else {
        return HashMap::new();
    };
    for (line, _, _) in followed.all().filter(|(.., placement)| *placement == Placement::Gone) {
        let Some(cost) = view.line(line).filter(|cost| cost.exclusive.samples > 0) else { continue };
        let above = view.functions.partition_point(|function| function.line <= line);
        if let Some(function) = above.checked_sub(1).and_then(|at| view.functions.get(at)) {
            *percents.entry(function.line).or_default() += cost.exclusive.share();
        }
    }
    percents.into_iter().map(|(line, percent)| (line, text::removed(percent))).collect()
}
