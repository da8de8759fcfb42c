//! The tables of `heatline diff`: for people, and as separated values.

use super::options::{DiffArgs, Kind};
use super::result::Outcome;
use crate::cli::output::{LONGEST_NAME, NO_SYMBOL, Table, colour, from_here, printable, printable_path};
use heatline_annotate::compare::{Amount, Change, ComparedRow, Compute, Delta, Pairing, Status, Verdict};
use heatline_annotate::short_name;
use heatline_annotate::statistics::RateTest;
use heatline_annotate::text::{UNTESTABLE, points};
use heatline_profile::round;
use std::io::{self, Write};

/// Writes the comparison for people.
pub fn write(out: &mut dyn Write, args: &DiffArgs, outcome: &Outcome) -> io::Result<()> {
    if !args.quiet {
        heading(out, outcome)?;
    }
    let all = outcome.comparison.rows.len();
    let shown = all.min(args.most_rows());
    let mut table = table(args, outcome, shown);
    match &args.field_separator {
        Some(separator) => return separated(out, &table, separator, args.quiet),
        None if args.quiet => table.write_rows(out)?,
        None => {
            table.drop_empty();
            table.write(out, colour())?;
        }
    }
    if all == 0 {
        writeln!(out, "nothing to compare: no row has what the filters ask for")?;
    }
    if all > shown {
        writeln!(out, "… {} more rows; --limit {all} shows all", all - shown)?;
    }
    failed(out, outcome)
}

/// What is compared, what shares are of, and what significance means.
fn heading(out: &mut dyn Write, outcome: &Outcome) -> io::Result<()> {
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
        let count = |pairing| outcome.comparison.rows.iter().filter(|row| row.pairing == pairing).count();
        let (content, offset) = (count(Pairing::Content), count(Pairing::Offset));
        writeln!(out, "lines paired by their text: {content}, by function and distance from its start: {offset}")?;
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
    writeln!(out)
}

/// The rows that crossed the limit.
fn failed(out: &mut dyn Write, outcome: &Outcome) -> io::Result<()> {
    let Some(limit) = outcome.limit else { return Ok(()) };
    let failed = outcome.failed();
    let sign = if limit.falls { '\u{2212}' } else { '+' };
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

fn table(args: &DiffArgs, outcome: &Outcome, shown: usize) -> Table {
    let many = outcome.columns() > 1;
    let mut header = vec![">baseline".to_owned()];
    if args.period {
        header.push(">base period".into());
    }
    for column in 1..=outcome.columns() {
        let number = if many { format!("/{column}") } else { String::new() };
        let mut titles = vec![">new", ">delta", ">95 % interval"];
        titles.push(if matches!(outcome.compute, Compute::Wdiff { .. }) { ">weighted diff" } else { ">ratio" });
        titles.push("verdict");
        titles.extend((!outcome.work.is_empty()).then_some(">per unit of work"));
        titles.extend(args.verbose.then_some(">p"));
        titles.extend(args.formula.then_some("formula"));
        titles.extend(args.period.then_some(">period"));
        header.extend(titles.into_iter().map(|title| format!("{title}{number}")));
    }
    let sort: Vec<&str> = outcome.sort.iter().map(|key| key.name()).collect();
    let names = if sort.is_empty() { vec!["function", "source", "module"] } else { sort };
    header.extend(names.into_iter().map(str::to_owned));
    header.extend(args.verbose.then(|| "paired by".to_owned()));
    let mut table = Table::new(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for row in outcome.comparison.rows.iter().take(shown) {
        table.push(cells(args, outcome, row));
    }
    table
}

fn cells(args: &DiffArgs, outcome: &Outcome, row: &ComparedRow) -> Vec<String> {
    let present = row.status != Status::New;
    let mut cells =
        vec![row.baseline.map_or_else(|| "n/a".into(), |amount| if present { share(amount) } else { String::new() })];
    if args.period {
        cells.push(row.baseline.map_or_else(String::new, |amount| amount.weight.0.to_string()));
    }
    for (column, change) in row.new.iter().enumerate() {
        cells.extend(change_cells(args, outcome, row, change.as_ref(), column + 1));
    }
    let place = &row.place;
    if outcome.sort.is_empty() {
        let mark = if row.pairing == Pairing::Name { "~ " } else { "" };
        cells.push(
            place
                .function
                .as_deref()
                .map_or_else(|| nameless(args, row), |name| format!("{mark}{}", short_name(name, LONGEST_NAME))),
        );
        cells.push(match (&place.file, place.line) {
            (Some(file), Some(line)) => format!("{}:{line}", from_here(file)),
            (Some(file), None) => from_here(file),
            _ => String::new(),
        });
        cells.push(place.module.clone().unwrap_or_default());
    } else {
        cells.extend(outcome.sort_cells(row).into_iter().map(|(_, cell)| cell));
    }
    if args.verbose {
        cells.push(if row.status == Status::Both { row.pairing.name().into() } else { String::new() });
    }
    cells
}

/// What stands for the function in a row without one.
fn nameless(args: &DiffArgs, row: &ComparedRow) -> String {
    let is_code = matches!(args.by, Kind::Function | Kind::Line) && row.place.file.is_none();
    if is_code { NO_SYMBOL.to_owned() } else { String::new() }
}

fn interval(delta: Delta) -> String {
    let end = |end: f64| points(end).replace(" pp", "");
    format!("{} to {}", end(delta.low), end(delta.high))
}

fn share(amount: Amount) -> String {
    format!("{} %", round(amount.percent))
}

fn change_cells(
    args: &DiffArgs,
    outcome: &Outcome,
    row: &ComparedRow,
    change: Option<&Change>,
    column: usize,
) -> Vec<String> {
    let with_work = !outcome.work.is_empty();
    let verbose = [args.verbose, args.formula, args.period, with_work].map(usize::from).iter().sum::<usize>();
    let Some(change) = change else {
        return [vec!["n/a".to_owned()], vec![String::new(); 4 + verbose]].concat();
    };
    let delta = change.delta;
    let third = match outcome.compute {
        Compute::Wdiff { .. } => outcome.compute.wdiff(row, change).map(|difference| difference.to_string()),
        _ => change.ratio.filter(|_| change.present).map(|ratio| format!("{ratio:.2}")),
    };
    let mut cells = vec![
        if change.present { share(change.amount) } else { String::new() },
        delta.map_or_else(|| "n/a".into(), |delta| points(delta.points)),
        delta.filter(|delta| delta.verdict != Verdict::Untestable).map_or_else(String::new, interval),
        third.unwrap_or_default(),
        verdict(row, change),
    ];
    if with_work {
        cells.push(outcome.per_work(row, change, column).map_or_else(String::new, per_unit));
    }
    if args.verbose {
        cells.push(delta.map_or_else(String::new, |delta| format!("{:.2e}", delta.p_adjusted.unwrap_or(delta.p))));
    }
    if args.formula {
        cells.push(formula(outcome, row, change, column).unwrap_or_default());
    }
    if args.period {
        cells.push(change.amount.weight.0.to_string());
    }
    cells
}

/// `×1.30 (0.99 to 1.70)`: how many times as much there is per unit of work, with its 95 % interval.
fn per_unit(test: RateTest) -> String {
    let end = |value: f64| if value.is_finite() { format!("{value:.2}") } else { "∞".to_owned() };
    format!("×{} ({} to {})", end(test.ratio), end(test.low), end(test.high))
}

/// `new`, `removed`, and whether the difference is noise.
fn verdict(row: &ComparedRow, change: &Change) -> String {
    let gone = match (row.status, change.present) {
        (Status::New, false) => return "absent".into(),
        (Status::New, true) => "new",
        (_, false) => "removed",
        _ => "",
    };
    let Some(delta) = change.delta else { return gone.to_owned() };
    let noise = match delta.verdict {
        Verdict::Significant if !gone.is_empty() => String::new(),
        Verdict::Significant => if delta.points < 0.0 { "lower" } else { "higher" }.to_owned(),
        Verdict::BelowThreshold => "below the threshold".to_owned(),
        Verdict::Noise => format!("within noise (±{})", round((delta.high - delta.low) / 2.0)),
        Verdict::Untestable => "not testable".to_owned(),
    };
    if gone.is_empty() || noise.is_empty() { format!("{gone}{noise}") } else { format!("{gone}, {noise}") }
}

/// How the number that is computed comes about.
pub fn formula(outcome: &Outcome, row: &ComparedRow, change: &Change, column: usize) -> Option<String> {
    let total = |column: usize| outcome.comparison.totals.get(column).map_or(0, |total| total.weight.0);
    let old = row.baseline?.weight.0;
    let new = change.amount.weight.0;
    Some(match outcome.compute {
        Compute::Delta | Compute::DeltaAbs => {
            format!("({new} * 100 / {}) - ({old} * 100 / {})", total(column), total(0))
        }
        Compute::Ratio => format!("{new} / {old}"),
        Compute::Wdiff { baseline, new: factor } => format!("({new} * {factor}) - ({old} * {baseline})"),
    })
}

fn separated(out: &mut dyn Write, table: &Table, separator: &str, quiet: bool) -> io::Result<()> {
    for row in table.rows().iter().skip(usize::from(quiet)) {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace(separator, ".")).collect();
        writeln!(out, "{}", cells.join(separator))?;
    }
    Ok(())
}

/// All values, unrounded, one line per row and column.
pub fn csv(outcome: &Outcome, rows: usize) -> Table {
    let mut header = vec![
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
    let sort: Vec<&str> = outcome.sort.iter().map(|key| key.name()).collect();
    header.extend(if sort.is_empty() { vec!["module", "function", "file", "line"] } else { sort });
    let mut table = Table::new(&header);
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let amount = |amount: Option<Amount>| match amount {
        Some(of) => [of.weight.0.to_string(), of.percent.to_string(), of.samples.to_string()],
        None => Default::default(),
    };
    for row in outcome.comparison.rows.iter().take(rows) {
        for (column, change) in row.new.iter().enumerate() {
            let change = change.as_ref();
            let delta = change.and_then(|change| change.delta);
            let paired = if row.status == Status::Both { row.pairing.name() } else { "" };
            let mut cells = vec![(column + 1).to_string(), row.status.name().into(), paired.into()];
            cells.extend(amount(row.baseline));
            cells.extend(amount(change.map(|change| change.amount)));
            cells.extend([
                number(delta.map(|delta| delta.points)),
                number(delta.map(|delta| delta.low)),
                number(delta.map(|delta| delta.high)),
                number(delta.map(|delta| delta.p)),
                number(delta.and_then(|delta| delta.p_adjusted)),
                delta.map(|delta| delta.significant.to_string()).unwrap_or_default(),
                number(change.and_then(|change| change.ratio)),
                change.and_then(|change| outcome.compute.wdiff(row, change)).map(|w| w.to_string()).unwrap_or_default(),
            ]);
            if outcome.sort.is_empty() {
                let place = row.place.clone();
                cells.extend([place.module, place.function, place.file].map(Option::unwrap_or_default));
                cells.push(place.line.map(|line| line.to_string()).unwrap_or_default());
            } else {
                cells.extend(outcome.sort_cells(row).into_iter().map(|(_, cell)| cell));
            }
            table.push(cells);
        }
    }
    table
}
