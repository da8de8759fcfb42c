//! `heatline/status`: what is shown and why not more, told to the client whenever it changes.

use super::placing::Shares;
use super::shown::Shown;
use crate::discovery::Found;
use crate::sources::Ambiguous;
use heatline_annotate::{FileId, text};
use heatline_profile::Problem;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tower_lsp::ls_types::notification::Notification;

/// So many ambiguous sources, and so many files that each could be, are told.
const MOST_AMBIGUOUS: usize = 50;

/// Whether costs are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Nothing is shown and nothing is being loaded.
    #[default]
    Idle,
    /// A profile is being loaded; the one before it, if any, is shown.
    Loading,
    /// The profile is shown.
    Ready,
    /// The profile cannot be used; the one before it, if any, is shown.
    Failed,
}

/// The content of the notification and of the answer to the request.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Whether costs are shown.
    pub state: Phase,
    /// One sentence for people.
    pub message: String,
    /// The profile that is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileStatus>,
    /// Its number of samples, of all events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// The profiles that were found, newest first.
    pub profiles: Vec<String>,
    /// The metric that is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The metrics that can be shown.
    pub metrics: Vec<MetricStatus>,
    /// How much of the weight reached a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<CoverageStatus>,
    /// The share of the cost in files that are here, by placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<BTreeMap<String, f64>>,
    /// How the sources differ from those that were built, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement_text: Option<String>,
    /// Recorded sources that could be several files here, the costliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ambiguous: Vec<AmbiguousStatus>,
    /// Where there are such: the pairs of the setting `sourceMap`, to which an answer is to be added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_map: Vec<(String, String)>,
    /// The profile compared with.
    pub baseline: Option<String>,
    /// A profile to compare with that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_on_offer: Option<String>,
    /// What could not be read or believed.
    pub problems: Vec<ProblemStatus>,
}

/// The profile of a [`Status`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProfileStatus {
    /// Where it lies.
    pub path: String,
    /// The format, as in JSON output.
    pub kind: String,
    /// The number of samples, of all events.
    pub samples: u64,
    /// How it was recorded, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recording: Vec<String>,
}

/// A metric of a [`Status`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MetricStatus {
    /// By which it is chosen.
    pub id: String,
    /// The unit of its weight.
    pub unit: String,
}

/// The coverage of a [`Status`], in shares of 1 and in words.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CoverageStatus {
    line: f64,
    symbol: f64,
    none: f64,
    text: String,
    sentence: String,
    /// Where a considerable share reached no line, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<String>,
}

/// A recorded source of a [`Status`] that could be several files here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AmbiguousStatus {
    /// Its path.
    recorded: String,
    candidates: Vec<CandidateStatus>,
}

/// One of the files that a recorded source could be, and the pair of `sourceMap` that says so.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct CandidateStatus {
    path: String,
    from: String,
    to: String,
}

impl AmbiguousStatus {
    fn of(ambiguous: &Ambiguous) -> Self {
        let candidate = |path: &PathBuf| {
            let (from, to) = ambiguous.settled_by(path);
            CandidateStatus { path: path_text(path), from, to }
        };
        let candidates = ambiguous.candidates.iter().take(MOST_AMBIGUOUS).map(candidate).collect();
        AmbiguousStatus { recorded: ambiguous.recorded.clone(), candidates }
    }

    /// Those of a profile, the costliest first.
    fn all(shown: &Shown) -> Vec<Self> {
        let weight = |file: FileId| {
            let lines = shown.annotations.file(file).map(|view| view.lines.as_slice()).unwrap_or_default();
            lines.iter().map(|line| line.exclusive.weight.0).fold(0, u64::saturating_add)
        };
        let mut all: Vec<&Ambiguous> = shown.kept.loaded.sources.ambiguous().iter().collect();
        all.sort_by_cached_key(|ambiguous| Reverse(weight(ambiguous.file)));
        all.into_iter().take(MOST_AMBIGUOUS).map(AmbiguousStatus::of).collect()
    }
}

/// A problem of a [`Status`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProblemStatus {
    kind: String,
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    message: String,
}

impl ProblemStatus {
    /// A problem that occurred once.
    pub fn new(kind: &str, message: impl Into<String>) -> Self {
        ProblemStatus { kind: kind.into(), count: 1, offset: None, message: message.into() }
    }
}

impl From<&Problem> for ProblemStatus {
    fn from(problem: &Problem) -> Self {
        ProblemStatus {
            kind: problem.kind.into(),
            count: problem.count,
            offset: problem.offset.map(|offset| offset.0),
            message: in_words_of_settings(problem.message.clone()),
        }
    }
}

impl Status {
    /// What is to be said of a profile, or of none, in a state.
    pub fn of(state: Phase, message: String, shown: Option<&Shown>, found: &Found) -> Self {
        let mut status = Status {
            state,
            message,
            profiles: found.profiles.iter().map(|path| path_text(path)).collect(),
            baseline_on_offer: found.baseline_on_offer.as_deref().map(path_text),
            ..Status::default()
        };
        if let Some(shown) = shown {
            status.describe(shown);
        }
        status
    }

    /// Adds how the cost is placed.
    pub fn place(&mut self, shares: &Shares) {
        self.placement = Some(shares.shares.iter().map(|(name, share)| ((*name).to_owned(), *share)).collect());
        self.placement_text = shares.sentence();
        if let (Phase::Ready, Some(sentence)) = (self.state, &self.placement_text) {
            self.message += &format!("; {sentence}");
        }
        self.problems.extend(shares.problems().map(|message| ProblemStatus::new("too-different", message)));
    }

    fn describe(&mut self, shown: &Shown) {
        let profile = shown.kept.loaded.model.profile();
        self.profile = Some(ProfileStatus {
            path: path_text(&shown.kept.path),
            kind: profile.kind.name().into(),
            samples: shown.samples,
            recording: text::recording(profile).into_iter().chain(shown.cut_stacks.clone()).collect(),
        });
        self.samples = Some(shown.samples);
        self.metric = Some(shown.metric.clone());
        self.metrics =
            shown.metrics.iter().map(|(id, unit)| MetricStatus { id: id.clone(), unit: (*unit).into() }).collect();
        let coverage = &shown.coverage;
        self.coverage = Some(CoverageStatus {
            line: coverage.line,
            symbol: coverage.symbol,
            none: coverage.none,
            text: text::coverage(coverage),
            sentence: text::coverage_sentence(coverage),
            gaps: shown.gaps.iter().cloned().map(in_words_of_settings).collect(),
        });
        self.baseline = shown.baseline.as_ref().map(|baseline| path_text(&baseline.path));
        self.ambiguous = AmbiguousStatus::all(shown);
        self.problems = shown.kept.loaded.problems.iter().map(ProblemStatus::from).collect();
        self.problems.extend(shown.remarks.iter().map(|remark| ProblemStatus::new("choice", remark)));
    }
}

/// The settings of an editor that do what options of the command line do.
const SETTINGS: [(&str, &str); 3] = [
    ("--debug-dir", "heatline.search.debugDirs"),
    ("--symfs", "heatline.search.symfs"),
    ("--symbol-path", "heatline.search.symbolPath"),
];

/// Advice with settings where it names options.
fn in_words_of_settings(text: String) -> String {
    SETTINGS.iter().fold(text, |text, (option, setting)| text.replace(option, setting))
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The notification.
pub enum StatusNotification {}

impl Notification for StatusNotification {
    type Params = Status;
    const METHOD: &'static str = "heatline/status";
}
