//! The places that may be hotspots, and their order.

use crate::lsp::shown::Shown;
use heatline_annotate::compare::Place;
use heatline_annotate::{By, Cost, Delta, FileId, FunctionId, Removed, Row};
use heatline_profile::ModuleId;
use serde::Deserialize;
use std::collections::HashMap;
use std::num::NonZeroU32;

/// A place before it is written down.
pub struct Candidate {
    pub file: Option<FileId>,
    pub line: Option<NonZeroU32>,
    pub function: Option<FunctionId>,
    pub module: Option<ModuleId>,
    pub exclusive: Cost,
    pub inclusive: Option<Cost>,
    pub delta: Option<Delta>,
    /// Its names in the baseline, of what only that has.
    pub removed: Option<Place>,
}

/// What comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    #[default]
    Exclusive,
    Inclusive,
    Regression,
    Improvement,
}

impl Order {
    /// Sorts places that come by exclusive weight, and leaves out those that the order says nothing of.
    pub fn of(self, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
        let points = |candidate: &Candidate| candidate.delta.map_or(0.0, |delta| delta.points);
        let inclusive = |candidate: &Candidate| candidate.inclusive.map_or(candidate.exclusive.weight, |c| c.weight);
        if matches!(self, Order::Exclusive | Order::Inclusive) {
            candidates.retain(|candidate| candidate.removed.is_none());
        }
        // Candidates come by exclusive weight, and sorting keeps the order of equals.
        match self {
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
        candidates
    }
}

/// All lines with cost, by exclusive weight.
pub fn lines(shown: &Shown) -> Vec<Candidate> {
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
                removed: None,
            }
        })
        .collect();
    let path = |candidate: &Candidate| candidate.file.map(|file| &shown.kept.loaded.model.file(file).path);
    let key = |c: &Candidate| (std::cmp::Reverse((c.exclusive.weight, c.inclusive.map(|i| i.weight))), c.line);
    candidates.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| path(a).cmp(&path(b))));
    candidates.extend(shown.annotations.removed_lines().iter().map(removed));
    candidates
}

/// What only the baseline has costs nothing any more.
fn removed(of: &Removed) -> Candidate {
    Candidate {
        file: None,
        line: None,
        function: None,
        module: None,
        exclusive: Cost::default(),
        inclusive: None,
        delta: Some(of.delta),
        removed: Some(of.place.clone()),
    }
}

/// All functions with cost, by exclusive weight. Calls of libraries that were measured are where most of that is called.
pub fn functions(shown: &Shown) -> Vec<Candidate> {
    let table = shown.annotations.table();
    let rows = table.rows(By::Function);
    let callers = if table.is_measured() { table.costliest_call_lines() } else { HashMap::default() };
    let place = |row: &Row| match (row.file, row.function) {
        (None, Some(function)) => callers.get(&function).map(|&(file, line)| (Some(file), Some(line))),
        _ => None,
    };
    let placed = |row: &Row| place(row).unwrap_or((row.file, row.line));
    let candidate = |row: &Row| Candidate {
        file: placed(row).0,
        line: placed(row).1,
        function: row.function,
        module: row.module,
        exclusive: row.exclusive,
        inclusive: row.inclusive,
        delta: row.function.and_then(|function| shown.annotations.delta_of_function(function)),
        removed: None,
    };
    let removed = shown.annotations.removed_functions().iter().map(removed);
    rows.iter().map(candidate).chain(removed).collect()
}
