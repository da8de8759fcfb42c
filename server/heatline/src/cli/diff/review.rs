//! What a code review shows of a comparison: markdown for a pull request, SARIF for its lines.

use super::result::Outcome;
use super::values::{self, Cell};
use crate::cli::output::printable;
use crate::lsp::uri;
use heatline_annotate::compare::{ComparedRow, Status, Verdict};
use heatline_annotate::text::{UNTESTABLE, counted, interval, points};
use heatline_annotate::{Delta, is_absolute, normalize};
use heatline_profile::round;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;

/// A change worth a review's attention: a row, its column and the difference.
type Finding<'a> = (&'a ComparedRow, usize, Delta);

/// All significant differences, greatest first.
fn findings(outcome: &Outcome) -> Vec<Finding<'_>> {
    let rows = outcome.comparison.rows.iter();
    let mut found: Vec<Finding<'_>> = rows
        .flat_map(|row| row.new.iter().enumerate().map(move |(column, change)| (row, column + 1, change)))
        .filter_map(|(row, column, change)| Some((row, column, change.as_ref()?.delta?)))
        .filter(|(_, _, delta)| delta.significant)
        .collect();
    found.sort_by(|a, b| b.2.points.abs().total_cmp(&a.2.points.abs()));
    found
}

/// Writes a report for a pull request.
pub fn markdown(out: &mut dyn Write, outcome: &Outcome, rows: usize) -> io::Result<()> {
    let failed = outcome.failed();
    let found = findings(outcome);
    let empty = outcome.without_answer().map(|path| path.display().to_string());
    let verdict = match (outcome.limit, failed.len(), found.len()) {
        (limit, 0, 0) if empty.is_some() => {
            let mark = if limit.is_some() { "❌ " } else { "" };
            format!("{mark}nothing compared: {} has no cost", prose(empty.as_deref().unwrap_or_default()))
        }
        (Some(limit), 0, _) => format!("✅ no significant difference beyond {}", points(signed(limit))),
        (Some(limit), 1, _) => format!("❌ 1 significant difference beyond {}", points(signed(limit))),
        (Some(limit), count, _) => format!("❌ {count} significant differences beyond {}", points(signed(limit))),
        (None, _, 0) => "no significant difference".into(),
        (None, _, 1) => "1 significant difference".into(),
        (None, _, count) => format!("{count} significant differences"),
    };
    writeln!(out, "### Heatline: {verdict}\n")?;
    for file in &outcome.files {
        let role = if file.column == 0 { "baseline" } else { "compared" };
        writeln!(out, "- {role}: `{}`, {}", code(&file.path.display().to_string()), file.extent)?;
    }
    let (metric, by) = (&outcome.metric.id, outcome.by.name());
    writeln!(out, "- `{}` by {by}; shares of all samples, 95 % intervals\n", code(metric))?;
    for warning in &outcome.warnings {
        writeln!(out, "> ⚠️ compare with care: {}\n", prose(warning))?;
    }
    for remark in outcome.remarks() {
        writeln!(out, "> ℹ️ {}\n", prose(&remark))?;
    }
    if empty.is_some() && found.is_empty() {
        return Ok(());
    }
    if found.is_empty() {
        let why =
            if outcome.has(Verdict::Untestable) { UNTESTABLE } else { "all are within noise or below the threshold" };
        return writeln!(out, "{}: {why}.", counted(outcome.comparison.rows.len() as u64, "row"));
    }
    let (work, align) = if outcome.work.is_empty() { ("", "") } else { (" per unit of work |", "--:|") };
    writeln!(
        out,
        "| | baseline | new | Δ | 95 % interval | ratio |{work} {by} |\n|---|--:|--:|--:|--:|--:|{align}---|"
    )?;
    for (row, column, delta) in found.iter().take(rows) {
        let mark = if outcome.is_beyond_limit(delta) {
            "❌"
        } else if delta.points > 0.0 {
            "▲"
        } else {
            "▼"
        };
        let name = cell(&format!("`{}`", code(&outcome.label(row))));
        writeln!(out, "| {mark} | {} | {name} |", values(outcome, row, *column).join(" | "))?;
    }
    if found.len() > rows {
        writeln!(out, "\n… {} more significant differences; --limit {} shows all.", found.len() - rows, found.len())?;
    }
    let is_found = |row: &ComparedRow| row.new.iter().flatten().any(|it| it.delta.is_some_and(|it| it.significant));
    let rest = outcome.comparison.rows.iter().filter(|row| !is_found(row)).count();
    writeln!(out, "\n{rest} other rows are within noise or below the threshold.")
}

/// The cells of both sides of a row, as the table has them.
fn values(outcome: &Outcome, row: &ComparedRow, column: usize) -> Vec<String> {
    let Some(cell) = Cell::new(outcome, row, column) else { return Vec::new() };
    let before = row.baseline.filter(|_| row.status != Status::New).map_or_else(|| "new".into(), values::share);
    let now = cell.share().unwrap_or_else(|| "removed".into());
    let mut values = vec![before, now];
    values.extend([cell.delta(), cell.interval(), cell.ratio()].map(Option::unwrap_or_default));
    values.extend((!outcome.work.is_empty()).then(|| cell.per_unit().unwrap_or_default()));
    values
}

fn signed(limit: super::options::Limit) -> f64 {
    if limit.falls { -limit.points } else { limit.points }
}

/// Text that may stand between backticks.
fn code(text: &str) -> String {
    printable(&text.replace('`', "'").replace(['\n', '\r'], " ")).into_owned()
}

/// Text that is nothing but text: names in it are of the recording, and may look like anything.
fn prose(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in printable(&text.replace(['\n', '\r'], " ")).chars() {
        if "\\`*_[]<>&#|~!".contains(c) {
            plain.push('\\');
        }
        plain.push(c);
    }
    plain
}

/// Text that may stand in a cell of a table.
fn cell(text: &str) -> String {
    printable(&text.replace('|', "\\|").replace(['\n', '\r'], " ")).into_owned()
}

/// The rules of our results.
const RULES: [(&str, &str); 2] = [
    ("performance-regression", "A place costs a significantly greater share than in the baseline."),
    ("performance-limit", "A place's share differs from the baseline's by more than the limit of the run."),
];

/// The comparison as SARIF 2.1.0. Significant regressions are warnings, rows beyond the limit errors.
pub fn sarif(outcome: &Outcome) -> Value {
    let shown = findings(outcome)
        .into_iter()
        .filter(|(_, _, delta)| delta.points > 0.0 || outcome.is_beyond_limit(delta))
        .map(|(row, column, delta)| result(outcome, row, column, &delta));
    let rules: Vec<Value> =
        RULES.iter().map(|(id, text)| json!({ "id": id, "shortDescription": { "text": text } })).collect();
    let current = std::env::current_dir().unwrap_or_default();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "heatline",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "utf16CodeUnits",
            "originalUriBaseIds": { "SRCROOT": { "uri": folder_uri(&current) } },
            "results": shown.collect::<Vec<_>>(),
        }],
    })
}

fn result(outcome: &Outcome, row: &ComparedRow, column: usize, delta: &Delta) -> Value {
    let (rule, level) = if outcome.is_beyond_limit(delta) { (1, "error") } else { (0, "warning") };
    let now = row.new.get(column - 1).and_then(Option::as_ref).map_or(0.0, |change| change.amount.percent);
    let ratio = Cell::new(outcome, row, column).and_then(|cell| cell.ratio());
    let ratio = ratio.map(|ratio| format!("; {ratio} times the weight")).unwrap_or_default();
    let text = format!(
        "{}: {} of {} ({} % instead of {} %; 95 % interval {} pp{ratio})",
        outcome.label(row),
        points(delta.points),
        outcome.metric.id,
        round(now),
        round(delta.before),
        interval(delta)
    );
    let mut location = json!({});
    if let Some(artifact) = row.place.file.as_ref().and_then(|file| artifact(outcome, file)) {
        location["physicalLocation"] = json!({ "artifactLocation": artifact });
        if let Some(line) = row.place.line {
            location["physicalLocation"]["region"] = json!({ "startLine": line.get() });
        }
    }
    let name = row.place.function.as_ref().or(row.place.module.as_ref());
    if let Some(name) = name {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": name }]);
    }
    let locations = if location == json!({}) { json!([]) } else { json!([location]) };
    // The same place of the same metric is the same finding in the next run.
    let place = [row.place.module.as_deref(), row.place.function.as_deref()];
    let fingerprint = format!("{}/{}/{}", outcome.metric.id, place[0].unwrap_or(""), place[1].unwrap_or(""));
    json!({
        "ruleId": RULES[rule].0,
        "ruleIndex": rule,
        "level": level,
        "message": { "text": text },
        "locations": locations,
        "partialFingerprints": { "heatlinePlace/v1": fingerprint },
        "properties": { "delta": delta.points, "low": delta.low, "high": delta.high, "baseline": delta.before,
            "percent": now, "p": delta.p },
    })
}

/// A source file: relative to the current folder where it is in it, which is what a review can show; else its whole
/// address. `None` of a file that is not here and was recorded without the folder it lay in.
fn artifact(outcome: &Outcome, recorded: &str) -> Option<Value> {
    let current = std::env::current_dir().unwrap_or_default();
    let here = |path: &Path| std::path::absolute(path).ok().filter(|path| path.is_file());
    let local = outcome.local.get(recorded).and_then(|path| here(path)).or_else(|| here(Path::new(recorded)));
    let file = local.map_or_else(|| recorded.to_owned(), |path| path.to_string_lossy().into_owned());
    let file = normalize(&file);
    match Path::new(&file).strip_prefix(&current) {
        Ok(below) => Some(json!({ "uri": escaped(&below.to_string_lossy()), "uriBaseId": "SRCROOT" })),
        Err(_) if is_absolute(&file) => Some(json!({ "uri": uri::from_path(Path::new(&file))?.as_str() })),
        Err(_) => None,
    }
}

fn folder_uri(folder: &Path) -> String {
    format!("file://{}/", escaped(folder.to_string_lossy().trim_end_matches('/')))
}

/// A path as part of an address.
fn escaped(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~+".contains(&byte);
    path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
