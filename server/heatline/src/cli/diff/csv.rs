//! All values of a comparison, unrounded, as comma-separated values.

use super::result::Outcome;
use crate::cli::output::Table;
use heatline_annotate::compare::{Amount, Change, ComparedRow, Status};

const VALUES: [&str; 17] = [
    "column",
    "status",
    "paired_by",
    "baseline_weight",
    "baseline_percent",
    "baseline_samples",
    "weight",
    "percent",
    "samples",
    "delta",
    "low",
    "high",
    "p",
    "p_adjusted",
    "significant",
    "ratio",
    "wdiff",
];
const PLACE: [&str; 4] = ["module", "function", "file", "line"];

/// One line per row and column.
pub fn csv(outcome: &Outcome, rows: usize) -> Table {
    let sort: Vec<&str> = outcome.sort.iter().map(|key| key.name()).collect();
    let places = if sort.is_empty() { &PLACE[..] } else { &sort };
    let mut table = Table::new(&[&VALUES[..], places].concat());
    for row in outcome.comparison.rows.iter().take(rows) {
        for (column, change) in (1..).zip(&row.new) {
            let values = values(outcome, row, change.as_ref(), column);
            table.push(values.into_iter().chain(place(outcome, row)).collect());
        }
    }
    table
}

fn values(outcome: &Outcome, row: &ComparedRow, change: Option<&Change>, column: usize) -> Vec<String> {
    let delta = change.and_then(|change| change.delta);
    let paired = if row.status == Status::Both { row.pairing.name() } else { "" };
    let mut cells = vec![column.to_string(), row.status.name().into(), paired.into()];
    cells.extend(amount(row.baseline));
    cells.extend(amount(change.map(|change| change.amount)));
    cells.extend([
        text(delta.map(|delta| delta.points)),
        text(delta.map(|delta| delta.low)),
        text(delta.map(|delta| delta.high)),
        text(delta.map(|delta| delta.p)),
        text(delta.and_then(|delta| delta.p_adjusted)),
        text(delta.map(|delta| delta.significant)),
        text(change.and_then(|change| change.ratio)),
        text(change.and_then(|change| outcome.compute.wdiff(row, change))),
    ]);
    cells
}

fn amount(amount: Option<Amount>) -> [String; 3] {
    [
        text(amount.map(|amount| amount.weight.0)),
        text(amount.map(|amount| amount.percent)),
        text(amount.map(|amount| amount.samples)),
    ]
}

fn place(outcome: &Outcome, row: &ComparedRow) -> Vec<String> {
    if !outcome.sort.is_empty() {
        return outcome.sort_cells(row).into_iter().map(|(_, cell)| cell).collect();
    }
    let place = row.place.clone();
    vec![text(place.module), text(place.function), text(place.file), text(place.line)]
}

fn text(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
