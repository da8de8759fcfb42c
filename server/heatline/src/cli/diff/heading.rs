//! What stands before and after the rows of a comparison for people.

use super::options::Kind;
use super::result::Outcome;
use crate::cli::output::{from_here, printable, printable_path};
use heatline_annotate::compare::{Pairing, Status, Verdict};
use heatline_annotate::text::{UNTESTABLE, points};
use heatline_profile::round;
use std::io::{self, Write};

/// What is compared, what shares are of, and what significance means.
pub fn heading(out: &mut dyn Write, outcome: &Outcome) -> io::Result<()> {
    let many = outcome.columns() > 1;
    for file in &outcome.files {
        let role = match (file.column, many) {
            (0, _) => "baseline".to_owned(),
            (_, false) => "new".to_owned(),
            (column, true) => format!("new/{column}"),
        };
        let (path, metric) = (printable_path(&file.path), printable(&outcome.metric.id));
        writeln!(out, "{role:9} {path} · {metric} · {}", file.extent)?;
    }
    let runs = outcome.comparison.totals.iter().map(|total| total.runs).max().unwrap_or(1);
    let runs = if runs > 1 { "runs pooled with their spread" } else { "one run each" };
    writeln!(
        out,
        "differences of shares in percentage points, 95 % intervals, {runs}; significant: adjusted p below 5 % and at \
         least {} pp",
        round(outcome.threshold)
    )?;
    if outcome.has(Verdict::Untestable) {
        writeln!(out, "nothing is taken for significant: {UNTESTABLE}; --baseline and --pool take several runs")?;
    }
    if outcome.by == Kind::Line && outcome.sort.is_empty() {
        let lines =
            || outcome.comparison.rows.iter().filter(|row| row.place.line.is_some() && row.status == Status::Both);
        let parts: Vec<String> = [
            (Pairing::Content, "by their text"),
            (Pairing::Offset, "by function and distance from its start"),
            (Pairing::Exact, "by their numbers, as the build is the same"),
        ]
        .into_iter()
        .map(|(pairing, how)| (lines().filter(|row| row.pairing == pairing).count(), how))
        .filter(|(count, _)| *count > 0)
        .map(|(count, how)| format!("{count} {how}"))
        .collect();
        if !parts.is_empty() {
            writeln!(out, "lines paired: {}", parts.join(", "))?;
        }
    }
    if let Some(first) = outcome.changed.first() {
        let others =
            if outcome.changed.len() > 1 { format!(" and {} more", outcome.changed.len() - 1) } else { String::new() };
        let first = printable(&from_here(first)).into_owned();
        writeln!(
            out,
            "{first}{others} changed since the build: lines are those that were built; report --by line says where they are now"
        )?;
    }
    for warning in &outcome.warnings {
        writeln!(out, "compare with care: {}", printable(warning))?;
    }
    for remark in outcome.remarks() {
        writeln!(out, "note: {}", printable(&remark))?;
    }
    writeln!(out)
}

/// The rows that crossed the limit.
pub fn failed(out: &mut dyn Write, outcome: &Outcome) -> io::Result<()> {
    let Some(limit) = outcome.limit else { return Ok(()) };
    let failed = outcome.failed();
    let sign = if limit.falls { '\u{2212}' } else { '+' };
    if outcome.without_answer().is_some() {
        return Ok(());
    }
    if failed.is_empty() {
        return writeln!(out, "\nno significant difference beyond {sign}{} pp", round(limit.points));
    }
    writeln!(out, "\nbeyond {sign}{} pp:", round(limit.points))?;
    for (row, column, delta) in failed {
        let of = if outcome.columns() > 1 { format!(" in {}", outcome.name_of(column)) } else { String::new() };
        writeln!(out, "  {} {}", points(delta.points), printable(&(outcome.label(row) + &of)))?;
    }
    Ok(())
}
