//! `heatline/hotspots`: the places with most cost, in all files, opened or not.

use super::candidates::{self, Candidate, Order};
use super::cost::{CostJson, DeltaJson};
use super::locate::Locator;
use crate::lsp::shown::Shown;
use crate::lsp::state::State;
use crate::settings::Settings;
use heatline_annotate::compare::Place;
use heatline_annotate::placement::Placement;
use heatline_annotate::text;
use serde::{Deserialize, Serialize};
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
        let candidates = match self.params.by {
            Kind::Line => candidates::lines(shown),
            Kind::Function => candidates::functions(shown),
        };
        let mut candidates = self.params.order.of(candidates);
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
}

fn hotspot(shown: &Shown, locator: &Locator, candidate: &Candidate) -> Hotspot {
    if let Some(place) = &candidate.removed {
        return removed(place, candidate);
    }
    let model = &shown.kept.loaded.model;
    let module = candidate.module.map(|id| model.profile().module(id).base_name().to_owned());
    let name = match candidate.function {
        Some(function) => model.function(function).name.to_string(),
        None => module.clone().unwrap_or_else(|| "[unknown]".into()),
    };
    let located = candidate.file.zip(candidate.line).map(|(file, line)| locator.line(file, line));
    Hotspot {
        name,
        module: module.unwrap_or_else(|| "[unknown]".into()),
        exclusive: (&candidate.exclusive).into(),
        inclusive: candidate.inclusive.as_ref().map(CostJson::from),
        delta: candidate.delta.as_ref().map(DeltaJson::from),
        text: measured(shown, candidate).into_iter().chain([words(candidate)]).collect::<Vec<_>>().join(" · "),
        placement: located.as_ref().map_or("unverified", |located| located.placement.name()),
        location: located.and_then(|located| located.location),
    }
}

/// The amount, where it was measured and not sampled.
fn measured(shown: &Shown, candidate: &Candidate) -> Option<String> {
    let table = shown.annotations.table();
    let unit = table.model().profile().event(table.selection().metric.event).unit;
    let own = candidate.exclusive;
    (own.measured && own.samples > 0).then(|| text::amount(own.weight, unit))
}

/// The cost in words, and the difference to the baseline where there is one.
fn words(candidate: &Candidate) -> String {
    let costs = text::costs(&candidate.exclusive, candidate.inclusive.as_ref());
    let delta = candidate.delta.as_ref().map(text::delta_and_verdict);
    [Some(costs), delta].into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// A place that only the baseline has. Where it was is a line of another text, so it is nowhere now.
fn removed(place: &Place, candidate: &Candidate) -> Hotspot {
    let unknown = || "[unknown]".to_owned();
    let line = place.file.as_ref().zip(place.line).map(|(file, line)| format!("{file}:{line}"));
    Hotspot {
        name: place.function.clone().or(line).or_else(|| place.module.clone()).unwrap_or_else(unknown),
        module: place.module.clone().unwrap_or_else(unknown),
        location: None,
        exclusive: (&candidate.exclusive).into(),
        inclusive: None,
        delta: candidate.delta.as_ref().map(DeltaJson::from),
        placement: Placement::Gone.name(),
        text: format!("removed · {}", words(candidate)),
    }
}
