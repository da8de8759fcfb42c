//! `heatline/hotspots`: the places with most cost, in all files, opened or not.

use super::cost::{CostJson, DeltaJson};
use super::locate::Locator;
use crate::lsp::shown::Shown;
use crate::lsp::state::State;
use crate::settings::Settings;
use heatline_annotate::text;
use heatline_annotate::{By, Cost, Delta, FileId, FunctionId, Row};
use heatline_profile::ModuleId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use tower_lsp::jsonrpc::{Error, Result};
use tower_lsp::ls_types::Location;

/// What the places are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Line,
    Function,
}

/// What comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Exclusive,
    Inclusive,
    Regression,
    Improvement,
}

/// The question's parameters.
#[derive(Debug, Deserialize)]
pub struct Params {
    #[serde(default)]
    by: Kind,
    #[serde(default)]
    order: Order,
    #[serde(default = "usual_limit")]
    limit: usize,
    metric: Option<String>,
}

fn usual_limit() -> usize {
    50
}

/// The answer.
#[derive(Debug, Default, Serialize)]
pub struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<String>,
    rows: Vec<Hotspot>,
}

#[derive(Debug, Serialize)]
struct Hotspot {
    name: String,
    module: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<Location>,
    exclusive: CostJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    inclusive: Option<CostJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<DeltaJson>,
    placement: &'static str,
    /// The cost in words.
    text: String,
}

/// What was asked, independent of later changes.
pub struct Question {
    params: Params,
    locator: Option<Locator>,
    settings: Arc<Settings>,
}

/// A place before it is written down.
struct Candidate {
    file: Option<FileId>,
    line: Option<NonZeroU32>,
    function: Option<FunctionId>,
    module: Option<ModuleId>,
    exclusive: Cost,
    inclusive: Option<Cost>,
    delta: Option<Delta>,
}

impl Question {
    /// Takes what is needed.
    pub fn take(state: &State, params: Params) -> Self {
        Question { params, locator: Locator::take(state), settings: state.settings.clone() }
    }

    /// The hotspots.
    ///
    /// # Errors
    /// If the metric is none of the profile.
    pub fn answer(&self) -> Result<Answer> {
        let Some(locator) = &self.locator else { return Ok(Answer::default()) };
        let other = match &self.params.metric {
            Some(metric) if *metric != locator.shown().metric => Some(self.other(locator.shown(), metric)?),
            _ => None,
        };
        let shown = other.as_ref().unwrap_or(locator.shown());
        let mut candidates = match self.params.by {
            Kind::Line => lines(shown),
            Kind::Function => functions(shown),
        };
        self.sort(&mut candidates);
        candidates.truncate(self.params.limit);
        let rows = candidates.iter().map(|candidate| hotspot(shown, locator, candidate)).collect();
        Ok(Answer { metric: Some(shown.metric.clone()), rows })
    }

    /// The same profile by another metric.
    fn other(&self, shown: &Shown, metric: &str) -> Result<Arc<Shown>> {
        if shown.kept.loaded.model.profile().find_event(metric).is_none() {
            return Err(Error::invalid_params(format!("the profile has no metric {metric}")));
        }
        let built = Shown::build(shown.kept.clone(), shown.baseline.clone(), Some(metric), &self.settings);
        built.map(Arc::new).map_err(|error| Error::invalid_params(format!("{error:#}")))
    }

    fn sort(&self, candidates: &mut Vec<Candidate>) {
        let points = |candidate: &Candidate| candidate.delta.map_or(0.0, |delta| delta.points);
        let inclusive = |candidate: &Candidate| candidate.inclusive.map_or(candidate.exclusive.weight, |c| c.weight);
        // Candidates come by exclusive weight, and sorting keeps the order of equals.
        match self.params.order {
            Order::Exclusive => candidates.retain(|candidate| candidate.exclusive.samples > 0),
            Order::Inclusive => candidates.sort_by_key(|candidate| std::cmp::Reverse(inclusive(candidate))),
            Order::Regression => {
                candidates.retain(|candidate| points(candidate) > 0.0);
                candidates.sort_by(|a, b| points(b).total_cmp(&points(a)));
            }
            Order::Improvement => {
                candidates.retain(|candidate| points(candidate) < 0.0);
                candidates.sort_by(|a, b| points(a).total_cmp(&points(b)));
            }
        }
    }
}

/// All lines with cost, by exclusive weight.
fn lines(shown: &Shown) -> Vec<Candidate> {
    let rows = shown.annotations.table().rows(By::Line);
    let mut owners: HashMap<(FileId, NonZeroU32), &Row> = HashMap::new();
    for row in &rows {
        if let (Some(file), Some(line)) = (row.file, row.line) {
            owners.entry((shown.representative(file), line)).or_insert(row);
        }
    }
    let files = shown.annotations.files();
    let mut candidates: Vec<Candidate> = files
        .flat_map(|(file, view)| view.lines.iter().map(move |line| (file, line)))
        .map(|(file, line)| {
            let owner = owners.get(&(file, line.line));
            Candidate {
                file: Some(file),
                line: Some(line.line),
                function: owner.and_then(|row| row.function),
                module: owner.and_then(|row| row.module),
                exclusive: line.exclusive,
                inclusive: line.inclusive,
                delta: line.delta,
            }
        })
        .collect();
    let path = |candidate: &Candidate| candidate.file.map(|file| &shown.kept.loaded.model.file(file).path);
    let key = |c: &Candidate| (std::cmp::Reverse((c.exclusive.weight, c.inclusive.map(|i| i.weight))), c.line);
    candidates.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| path(a).cmp(&path(b))));
    candidates
}

/// All functions with cost, by exclusive weight.
fn functions(shown: &Shown) -> Vec<Candidate> {
    let delta = |row: &Row| {
        let view = shown.annotations.file(row.file?)?.function(row.line?)?;
        view.delta.filter(|_| row.function.is_some_and(|function| view.functions.contains(&function)))
    };
    let rows = shown.annotations.table().rows(By::Function);
    let candidate = |row: &Row| Candidate {
        file: row.file,
        line: row.line,
        function: row.function,
        module: row.module,
        exclusive: row.exclusive,
        inclusive: row.inclusive,
        delta: delta(row),
    };
    rows.iter().map(candidate).collect()
}

fn hotspot(shown: &Shown, locator: &Locator, candidate: &Candidate) -> Hotspot {
    let model = &shown.kept.loaded.model;
    let module = candidate.module.map(|id| model.profile().module(id).base_name().to_owned());
    let name = match candidate.function {
        Some(function) => model.function(function).name.clone(),
        None => module.clone().unwrap_or_else(|| "[unknown]".into()),
    };
    let located = candidate.file.zip(candidate.line).map(|(file, line)| locator.line(file, line));
    Hotspot {
        name,
        module: module.unwrap_or_else(|| "[unknown]".into()),
        exclusive: (&candidate.exclusive).into(),
        inclusive: candidate.inclusive.as_ref().map(CostJson::from),
        delta: candidate.delta.as_ref().map(DeltaJson::from),
        text: text::costs(&candidate.exclusive, candidate.inclusive.as_ref()),
        placement: located.as_ref().map_or("unverified", |located| located.placement.name()),
        location: located.and_then(|located| located.location),
    }
}
