//! The table of `heatline diff`, for people and with `--field-separator` for scripts.

use super::heading::{failed, heading};
use super::options::{DiffArgs, Kind};
use super::result::Outcome;
use super::values::{self, Cell, Value};
use crate::cli::output::{LONGEST_NAME, NO_SYMBOL, Table, colour, from_here};
use heatline_annotate::compare::{ComparedRow, Pairing, Status};
use heatline_annotate::short_name;
use heatline_annotate::text::counted;
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
        writeln!(out, "… {}; --limit {all} shows all", counted((all - shown) as u64, "more row"))?;
    }
    failed(out, outcome)
}

fn table(args: &DiffArgs, outcome: &Outcome, shown: usize) -> Table {
    let values = values::shown(args, outcome);
    let mut header = vec![">baseline".to_owned()];
    header.extend(args.period.then(|| ">base period".to_owned()));
    for column in 1..=outcome.columns() {
        let number = if outcome.columns() > 1 { format!("/{column}") } else { String::new() };
        header.extend(values.iter().map(|value| format!("{}{number}", value.title)));
    }
    let sort: Vec<&str> = outcome.sort.iter().map(|key| key.name()).collect();
    let names = if sort.is_empty() { vec!["function", "source", "module"] } else { sort };
    header.extend(names.into_iter().map(str::to_owned));
    header.extend(args.verbose.then(|| "paired by".to_owned()));
    let mut table = Table::new(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for row in outcome.comparison.rows.iter().take(shown) {
        table.push(cells(args, outcome, &values, row));
    }
    table
}

fn cells(args: &DiffArgs, outcome: &Outcome, values: &[Value], row: &ComparedRow) -> Vec<String> {
    let present = row.status != Status::New;
    let baseline = |amount| if present { values::share(amount) } else { String::new() };
    let mut cells = vec![row.baseline.map_or_else(|| "n/a".into(), baseline)];
    if args.period {
        cells.push(row.baseline.map_or_else(String::new, |amount| amount.weight.0.to_string()));
    }
    for column in 1..=row.new.len() {
        match Cell::new(outcome, row, column) {
            Some(cell) => cells.extend(values.iter().map(|value| (value.text)(&cell).unwrap_or_default())),
            None => cells.extend((0..values.len()).map(|at| if at == 0 { "n/a".into() } else { String::new() })),
        }
    }
    cells.extend(if outcome.sort.is_empty() { place(args, row) } else { sorted(outcome, row) });
    if args.verbose {
        cells.push(if row.status == Status::Both { row.pairing.name().into() } else { String::new() });
    }
    cells
}

fn sorted(outcome: &Outcome, row: &ComparedRow) -> Vec<String> {
    outcome.sort_cells(row).into_iter().map(|(_, cell)| cell).collect()
}

fn place(args: &DiffArgs, row: &ComparedRow) -> Vec<String> {
    let place = &row.place;
    let mark = if row.pairing == Pairing::Name { "~ " } else { "" };
    let named = |name: &str| format!("{mark}{}", short_name(name, LONGEST_NAME));
    let source = match (&place.file, place.line) {
        (Some(file), Some(line)) => format!("{}:{line}", from_here(file)),
        (Some(file), None) => from_here(file),
        _ => String::new(),
    };
    vec![
        place.function.as_deref().map_or_else(|| nameless(args, row), named),
        source,
        place.module.clone().unwrap_or_default(),
    ]
}

/// What stands for the function in a row without one.
fn nameless(args: &DiffArgs, row: &ComparedRow) -> String {
    let is_code = matches!(args.by, Kind::Function | Kind::Line) && row.place.file.is_none();
    if is_code { NO_SYMBOL.to_owned() } else { String::new() }
}

fn separated(out: &mut dyn Write, table: &Table, separator: &str, quiet: bool) -> io::Result<()> {
    for row in table.rows().iter().skip(usize::from(quiet)) {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace(separator, ".")).collect();
        writeln!(out, "{}", cells.join(separator))?;
    }
    Ok(())
}
