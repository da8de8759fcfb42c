//! The JSON document of `heatline diff`.

use super::result::{Outcome, PerWork};
use heatline_annotate::compare::{Amount, Change, ComparedRow, SortKey, Status};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub struct Document {
    version: u32,
    compute: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    wdiff: Option<WeightsJson>,
    order: usize,
    metric: String,
    unit: &'static str,
    by: String,
    threshold: f64,
    files: Vec<FileJson>,
    rows: Vec<RowJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fail_on: Option<f64>,
    /// The rows that crossed the limit; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<Vec<FailedJson>>,
    /// How many rows were paired how, of those that both sides have.
    pairing: BTreeMap<&'static str, usize>,
    warnings: Vec<String>,
    /// What to know of the numbers of recordings that do compare.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
    /// Sources in which lines are not where they were when the newer program was built.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed_sources: Vec<String>,
}

#[derive(Serialize)]
struct WeightsJson {
    baseline: i64,
    new: i64,
}

#[derive(Serialize)]
struct FileJson {
    path: String,
    total: u64,
    samples: u64,
    /// 0 for the baseline.
    column: usize,
}

#[derive(Serialize)]
struct PlaceJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
struct RowJson {
    #[serde(flatten)]
    place: PlaceJson,
    #[serde(flatten)]
    keys: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<AmountJson>,
    new: Vec<Option<ChangeJson>>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    paired_by: Option<&'static str>,
}

#[derive(Serialize)]
struct AmountJson {
    weight: u64,
    percent: f64,
    samples: u64,
}

#[derive(Serialize)]
struct ChangeJson {
    #[serde(flatten)]
    amount: AmountJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wdiff: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p_adjusted: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    significant: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_work: Option<RateJson>,
}

/// Samples, or times that were measured, per unit of work as a multiple of the baseline's; what is infinite or not known
/// is absent.
#[derive(Serialize)]
struct RateJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<f64>,
}

#[derive(Serialize)]
struct FailedJson {
    #[serde(flatten)]
    place: PlaceJson,
    column: usize,
    delta: f64,
    low: f64,
    high: f64,
}

pub fn document(outcome: &Outcome, rows: usize) -> Document {
    let weights = match outcome.compute {
        heatline_annotate::compare::Compute::Wdiff { baseline, new } => Some(WeightsJson { baseline, new }),
        _ => None,
    };
    let file = |file: &super::result::File| FileJson {
        path: file.path.display().to_string(),
        total: file.total,
        samples: file.samples,
        column: file.column,
    };
    let mut pairing: BTreeMap<&'static str, usize> = BTreeMap::new();
    for row in outcome.comparison.rows.iter().filter(|row| row.status == Status::Both) {
        *pairing.entry(row.pairing.name()).or_default() += 1;
    }
    let keys: Vec<&str> = outcome.sort.iter().copied().map(SortKey::name).collect();
    Document {
        version: 1,
        compute: outcome.compute.name(),
        wdiff: weights,
        order: outcome.order,
        metric: outcome.metric.id.clone(),
        unit: outcome.metric.unit,
        by: if keys.is_empty() { outcome.by.name().to_owned() } else { keys.join(",") },
        threshold: outcome.threshold,
        files: outcome.files.iter().map(file).collect(),
        rows: outcome.comparison.rows.iter().take(rows).map(|of| row(outcome, of)).collect(),
        fail_on: outcome.limit.map(|limit| if limit.falls { -limit.points } else { limit.points }),
        failed: outcome.limit.map(|_| failed(outcome)),
        pairing,
        warnings: outcome.warnings.clone(),
        remarks: outcome.remarks(),
        changed_sources: outcome.changed.clone(),
    }
}

fn failed(outcome: &Outcome) -> Vec<FailedJson> {
    let json = |(row, column, delta): (&ComparedRow, usize, heatline_annotate::Delta)| FailedJson {
        place: place(row),
        column,
        delta: delta.points,
        low: delta.low,
        high: delta.high,
    };
    outcome.failed().into_iter().map(json).collect()
}

fn place(row: &ComparedRow) -> PlaceJson {
    let place = &row.place;
    PlaceJson {
        module: place.module.clone(),
        function: place.function.clone(),
        file: place.file.clone(),
        line: place.line.map(|line| line.get()),
    }
}

fn row(outcome: &Outcome, row: &ComparedRow) -> RowJson {
    let of_place = [SortKey::Dso, SortKey::Symbol, SortKey::Srcline].map(SortKey::name);
    let keys = outcome.sort_cells(row).into_iter().filter(|(name, _)| !of_place.contains(name));
    RowJson {
        place: place(row),
        keys: keys.collect(),
        baseline: row.baseline.map(AmountJson::from),
        new: (1..).zip(&row.new).map(|(at, change)| Some(self::change(outcome, row, change.as_ref()?, at))).collect(),
        status: row.status.name(),
        paired_by: (row.status == Status::Both).then(|| row.pairing.name()),
    }
}

fn change(outcome: &Outcome, row: &ComparedRow, change: &Change, column: usize) -> ChangeJson {
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    let rate = |PerWork { ratio, test }: PerWork| RateJson {
        ratio: finite(ratio),
        low: test.map(|test| test.low),
        high: test.and_then(|test| finite(test.high)),
        p: test.map(|test| test.p),
    };
    let delta = change.delta;
    ChangeJson {
        amount: change.amount.into(),
        delta: delta.map(|delta| delta.points),
        ratio: change.ratio,
        wdiff: outcome.compute.wdiff(row, change),
        low: delta.map(|delta| delta.low),
        high: delta.map(|delta| delta.high),
        p: delta.map(|delta| delta.p),
        p_adjusted: delta.and_then(|delta| delta.p_adjusted),
        significant: delta.map(|delta| delta.significant),
        per_work: outcome.per_work(row, change, column).map(rate),
    }
}

impl From<Amount> for AmountJson {
    fn from(amount: Amount) -> Self {
        AmountJson { weight: amount.weight.0, percent: amount.percent, samples: amount.samples }
    }
}
