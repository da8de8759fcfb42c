//! `heatline diff`: recordings compared with a baseline.

mod csv;
mod document;
mod heading;
mod options;
mod perf;
mod recordings;
mod remarks;
mod renames;
mod result;
mod review;
mod sayings;
mod table;
mod values;

pub use options::DiffArgs;

use super::output::{print, print_json};
use anyhow::{Context, bail};
use heatline_annotate::compare::{Ledger, SortKey};
use options::{Files, Output};
use recordings::Recordings;
use result::Outcome;
use std::process::ExitCode;

/// Exit status of a run in which a difference crossed the limit of `--fail-on`.
const CROSSED: u8 = 1;

/// Runs the command.
pub fn run(args: DiffArgs) -> anyhow::Result<ExitCode> {
    let files = args.files()?;
    args.refuse(&files)?;
    if args.dump {
        return dump(&files);
    }
    if args.perf {
        perf::run(&args, &files)?;
        return Ok(ExitCode::SUCCESS);
    }
    let threshold = args.threshold.unwrap_or(settings_threshold(&args, &files)?);
    let outcome = Outcome::new(&args, &read(&args, &files)?, threshold)
        .with_context(|| format!("{}: no samples to compare with", files.baseline[0].display()))?;
    recordings::warn(&outcome.warnings);
    let rows = args.most_rows();
    match args.format {
        Output::Json => print_json(&document::document(&outcome, rows))?,
        Output::Csv => print(|out| csv::csv(&outcome, rows).write_csv(out))?,
        Output::Table => print(|out| table::write(out, &args, &outcome))?,
        Output::Markdown => print(|out| review::markdown(out, &outcome, rows))?,
        Output::Sarif => print_json(&review::sarif(&outcome))?,
    }
    if outcome.limit.is_some()
        && let Some(path) = outcome.without_answer()
    {
        let metric = &outcome.metric.id;
        let path = path.display();
        bail!(
            "--fail-on: nothing was compared, as {path} has no {metric} that was asked for; choose others with --event or --metric, or other filters"
        );
    }
    if outcome.limit.is_some() && outcome.comparison.rows.is_empty() {
        bail!("--fail-on: nothing was compared, as the filters leave no rows; name others, or none");
    }
    if outcome.limit.is_some()
        && let Some(reason) = outcome.uneven.first()
    {
        bail!("--fail-on: it cannot be told what got better and worse: {reason}");
    }
    Ok(if outcome.failed().is_empty() { ExitCode::SUCCESS } else { ExitCode::from(CROSSED) })
}

fn settings_threshold(args: &DiffArgs, files: &Files) -> anyhow::Result<f64> {
    Ok(args.for_file(&files.baseline[0], 0)?.settings().diff_threshold)
}

/// Prints the records of each file.
fn dump(files: &Files) -> anyhow::Result<ExitCode> {
    for path in files.baseline.iter().chain(files.columns.iter().flatten()) {
        super::dump::everything(path)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the files. Which processor took a sample is not kept in a profile, so rows by processor are read one by one.
fn read(args: &DiffArgs, files: &Files) -> anyhow::Result<Recordings<Ledger>> {
    if !args.sort.contains(&SortKey::Cpu) {
        return recordings::ledgers(args, files);
    }
    recordings::by_processor(args, files, &|table, cpu| {
        let cpu = cpu.map_or_else(|| "-1".to_owned(), |cpu| cpu.to_string());
        Ledger::by_keys(table, &args.sort, &cpu)
    })
}
