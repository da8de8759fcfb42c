//! `heatline report`: costs as a table.

mod document;
mod spe;
mod table;

use super::options::{Format, ProfileArgs};
use super::output::{print, print_json};
use super::session::Session;
use clap::{Args, ValueEnum};
use heatline_annotate::{By, CostTable, Metric, Row, Selection};
use heatline_profile::EventId;
use std::sync::Arc;

pub(super) use table::write_heading;

/// Options of `heatline report`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  heatline report perf.data                       functions, hottest first
  heatline report perf.data --by line --limit 20  the twenty hottest lines
  heatline report perf.data --dso libz.so.1       only functions of one module
  heatline report perf.data --format json         for programs
  heatline report perf.data --coverage            what could not be resolved, and why")]
pub struct ReportArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// By what rows are told apart.
    #[arg(long, value_enum, default_value = "function")]
    by: RowKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum RowKind {
    Line,
    Function,
    File,
    Module,
    Thread,
    Event,
}

/// A row to write; an event row is of another table than the session's.
struct ReportRow {
    row: Row,
    event: Option<EventId>,
}

/// Runs the command.
pub fn run(args: ReportArgs) -> anyhow::Result<()> {
    let session = Session::open(&args.profile)?;
    let only_coverage = args.profile.coverage;
    let rows = if only_coverage { Vec::new() } else { rows(&session, args.by) };
    let most = args.profile.most_rows();
    let shown = &rows[..rows.len().min(most)];
    match args.profile.format {
        Format::Json => print_json(&document::document(&session, shown)),
        Format::Csv if only_coverage => print(|out| table::coverage(&session, true).write_csv(out)),
        Format::Csv => print(|out| table::csv(&session, shown).write_csv(out)),
        Format::Table if only_coverage => print(|out| table::write_coverage(out, &session)),
        Format::Table => print(|out| table::write(out, &session, shown, rows.len())),
    }
}

fn rows(session: &Session, by: RowKind) -> Vec<ReportRow> {
    let by = match by {
        RowKind::Line => By::Line,
        RowKind::Function => By::Function,
        RowKind::File => By::File,
        RowKind::Module => By::Module,
        RowKind::Thread => By::Thread,
        RowKind::Event => return event_rows(session),
    };
    session.table.rows(by).into_iter().map(|row| ReportRow { row, event: None }).collect()
}

/// One row per event, each of its own whole.
fn event_rows(session: &Session) -> Vec<ReportRow> {
    let model = &session.loaded.model;
    let events = (0..model.profile().events.len() as u32).map(EventId);
    events
        .map(|event| {
            let selection = Selection { metric: Metric::sum(event), ..session.table.selection().clone() };
            let exclusive = CostTable::new(Arc::clone(model), selection).selected();
            ReportRow { row: Row { exclusive, ..Row::default() }, event: Some(event) }
        })
        .collect()
}
