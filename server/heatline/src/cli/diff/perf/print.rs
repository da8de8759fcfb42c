//! The tables of perf, to the last blank.

use super::entry::Recorded;
use super::keys::Keys;
use super::order::{Row, Rows, ratio, wdiff};
use super::{Wish, order};
use crate::cli::diff::recordings::Recordings;
use crate::cli::output::{printable, printable_path};
use heatline_annotate::compare::{Compute, SortKey};
use std::io::{self, Write};

/// A column in front of the names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    Baseline,
    BasePeriod,
    Computed(usize),
    Formula(usize),
    Period(usize),
}

struct Column {
    value: Value,
    title: String,
    width: usize,
}

/// Writes one table per event of the baseline.
pub fn write(out: &mut dyn Write, wish: &Wish, recordings: &Recordings<Recorded>) -> io::Result<()> {
    let Some(baseline) = recordings.baseline.first() else { return Ok(()) };
    for (number, (metric, recorded)) in baseline.metrics.iter().enumerate() {
        let others = recordings.columns.iter().map(|column| column.first().and_then(|file| file.find(metric)));
        let others: Vec<Option<&Recorded>> = others.map(|found| found.map(|(_, recorded)| recorded)).collect();
        if !wish.quiet {
            let gap = if number > 0 { "\n" } else { "" };
            writeln!(out, "{gap}# Event '{}'\n#", printable(&metric.event))?;
            if wish.verbose || others.len() > 1 {
                write_files(out, recordings)?;
            }
        }
        write_table(out, wish, &order::Rows::new(wish, recorded, &others))?;
    }
    Ok(())
}

fn write_files(out: &mut dyn Write, recordings: &Recordings<Recorded>) -> io::Result<()> {
    writeln!(out, "# Data files:")?;
    for (number, recording) in recordings.all().enumerate() {
        let role = if number == 0 { "(Baseline)" } else { "" };
        writeln!(out, "#  [{number}] {} {role}", printable_path(&recording.path))?;
    }
    writeln!(out, "#")
}

fn write_table(out: &mut dyn Write, wish: &Wish, rows: &Rows) -> io::Result<()> {
    let columns = columns(wish, rows.totals.len() - 1);
    let separator = wish.separator.as_deref().unwrap_or("  ");
    let wide = wish.separator.is_none() && wish.keys.shown.contains(&SortKey::Dso);
    let width = |key: &SortKey| (*key, wish.keys.width(*key, rows.rows.iter().map(|row| &row.entry), wide));
    let keys: Vec<(SortKey, usize)> = wish.keys.shown.iter().map(width).collect();
    if !wish.quiet {
        let titles = columns.iter().map(|column| format!("{:>1$}", column.title, column.width));
        let names = keys.iter().map(|&(key, width)| format!("{:width$}", Keys::title(key)));
        writeln!(out, "# {}", titles.chain(names).collect::<Vec<_>>().join(separator))?;
        if wish.separator.is_none() {
            let widths = columns.iter().map(|column| column.width).chain(keys.iter().map(|(_, width)| *width));
            let dots: Vec<String> = widths.map(|width| ".".repeat(width)).collect();
            writeln!(out, "# {}\n#", dots.join("  "))?;
        }
    }
    let last = keys.len().saturating_sub(1);
    for row in &rows.rows {
        let values = columns.iter().map(|column| value(wish, rows, row, column));
        let names = keys.iter().enumerate().map(|(at, &(key, width))| {
            let mut cell = printable(&wish.keys.cell(key, &row.entry, width)).into_owned();
            if let Some(separator) = &wish.separator {
                cell = cell.replace(separator, ".");
            }
            if at == last { cell } else { format!("{cell:width$}") }
        });
        let indent = if wish.separator.is_none() { "  " } else { "" };
        writeln!(out, "{indent}{}", values.chain(names).collect::<Vec<_>>().join(separator))?;
    }
    Ok(())
}

fn columns(wish: &Wish, others: usize) -> Vec<Column> {
    let column = |value: Value, file: usize| {
        let (title, width) = match (value, wish.compute) {
            (Value::Baseline, _) => ("Baseline", 0),
            (Value::BasePeriod, _) => ("Base period", 14),
            (Value::Period(_), _) => ("Period", 14),
            (Value::Formula(_), _) => ("Formula", 70),
            (Value::Computed(_), Compute::Delta) => ("Delta", 7),
            (Value::Computed(_), Compute::DeltaAbs) => ("Delta Abs", 7),
            (Value::Computed(_), Compute::Ratio) => ("Ratio", 14),
            (Value::Computed(_), Compute::Wdiff { .. }) => ("Weighted diff", 14),
        };
        let title = if others > 1 { format!("{title}/{file}") } else { title.to_owned() };
        Column { value, width: width.max(title.len()), title }
    };
    let mut columns = vec![column(Value::Baseline, 0)];
    columns.extend(wish.period.then(|| column(Value::BasePeriod, 0)));
    for file in 1..=others {
        columns.push(column(Value::Computed(file), file));
        columns.extend(wish.formula.then(|| column(Value::Formula(file), file)));
        columns.extend(wish.period.then(|| column(Value::Period(file), file)));
    }
    columns
}

/// A value in its column: flushed right, but with a separator as it is, filled up on the right.
fn value(wish: &Wish, rows: &Rows, row: &Row, column: &Column) -> String {
    let separated = wish.separator.is_some();
    let pair = |file: usize| row.pairs[file - 1];
    let text = match column.value {
        Value::Baseline if row.is_dummy => String::new(),
        Value::Baseline => {
            let share = rows.baseline(row);
            let share = if share.is_nan() { "-nan".to_owned() } else { format!("{share:.2}") };
            if separated { share } else { share + "%" }
        }
        Value::BasePeriod => row.entry.period.to_string(),
        Value::Period(file) => pair(file).map(|period| period.to_string()).unwrap_or_default(),
        Value::Formula(file) => pair(file).map(|period| formula(wish, rows, row, file, period)).unwrap_or_default(),
        Value::Computed(file) => pair(file).map(|period| computed(wish, rows, row, file, period)).unwrap_or_default(),
    };
    let width = column.width;
    // perf gives weighted differences a width of their own.
    let is_wdiff = matches!((column.value, wish.compute), (Value::Computed(_), Compute::Wdiff { .. })) && !row.is_dummy;
    if separated || is_wdiff { format!("{text:<width$}") } else { format!("{text:>width$}") }
}

fn computed(wish: &Wish, rows: &Rows, row: &Row, file: usize, period: u64) -> String {
    let separated = wish.separator.is_some();
    match wish.compute {
        Compute::Delta | Compute::DeltaAbs => match rows.delta(row, file) {
            Some(delta) if delta.is_nan() => if separated { "-NAN%" } else { "-nan%" }.into(),
            delta => format!("{:+.2}%", delta.unwrap_or(0.0)),
        },
        _ if row.is_dummy => "N/A".into(),
        Compute::Ratio => {
            let ratio = ratio(row, period);
            // With a separator perf leaves out what is zero.
            if separated && ratio <= 0.0 { String::new() } else { format!("{ratio:14.6}") }
        }
        Compute::Wdiff { baseline, new } => {
            let difference = wdiff(row, period, (baseline, new));
            if separated && difference == 0 { String::new() } else { format!("{difference:14}") }
        }
    }
}

fn formula(wish: &Wish, rows: &Rows, row: &Row, file: usize, period: u64) -> String {
    let old = row.entry.period;
    match wish.compute {
        Compute::Delta | Compute::DeltaAbs => {
            format!("({period} * 100 / {}) - ({old} * 100 / {})", rows.totals[file], rows.shown_total)
        }
        Compute::Ratio => format!("{period} / {old}"),
        Compute::Wdiff { baseline, new } => format!("({period} * {new}) - ({old} * {baseline})"),
    }
}
