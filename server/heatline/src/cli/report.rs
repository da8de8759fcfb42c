//! `heatline report`: costs as a table.

mod document;
mod places;
mod spe;
mod table;
mod times;

use super::options::{Format, ProfileArgs};
use super::output::{print, print_json};
use super::session::Session;
use crate::call_lines::AMBIGUOUS_LINES;
use anyhow::bail;
use clap::{Args, ValueEnum};
use heatline_annotate::{By, Call, Calls, CostTable, Metric, Party, Row, Selection};
use heatline_profile::EventId;
use places::Now;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

pub(super) use table::{REST_OF_GAPS, write_heading};

/// Options of `heatline report`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  heatline report perf.data                       functions, hottest first
  heatline report perf.data --by line --limit 20  the twenty hottest lines
  heatline report perf.data --order inclusive     what costs most with all it calls
  heatline report perf.data --dso libz.so.1       only functions of one module
  heatline report perf.data --format json         for programs
  heatline report perf.data --calls               functions with callers and callees
  heatline report perf.data --coverage            what could not be resolved, and why")]
pub struct ReportArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// By what rows are told apart.
    #[arg(long, value_enum, default_value = "function")]
    by: RowKind,
    /// What comes first.
    #[arg(long, value_enum, default_value = "exclusive")]
    order: RowOrder,
    /// With each function also its callers and callees, as measured.
    #[arg(long)]
    calls: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum RowKind {
    Line,
    Function,
    File,
    Module,
    Thread,
    Process,
    Event,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum RowOrder {
    /// The cost of the place itself
    Exclusive,
    /// The cost with everything it called
    Inclusive,
}

/// A row to write; an event row is of another table than the session's.
struct ReportRow {
    row: Row,
    event: Option<EventId>,
    calls: Option<Calls>,
    /// Where its line is now, where that was asked for.
    now: Option<Now>,
}

/// Runs the command.
pub fn run(args: ReportArgs) -> anyhow::Result<()> {
    // Only lines lack such times, not what they are in.
    let told = (args.by != RowKind::Line && args.profile.format != Format::Json).then_some(AMBIGUOUS_LINES);
    let session = Session::open(&args.profile, told)?;
    let profile = session.loaded.model.profile();
    if matches!(args.by, RowKind::Thread | RowKind::Process) && profile.threads.is_empty() {
        let by = if args.by == RowKind::Thread { "thread" } else { "process" };
        bail!("--by {by}: this {} profile does not record threads", profile.kind.name());
    }
    if args.profile.coverage {
        return print_coverage(&session, args.profile.format);
    }
    let mut rows = rows(&session, args.by);
    if args.order == RowOrder::Inclusive {
        // They come by exclusive weight, and sorting keeps the order of equals.
        rows.sort_by_key(|row| Reverse(row.row.inclusive.unwrap_or(row.row.exclusive).weight));
    }
    if args.calls {
        add_calls(&session, args.by, &mut rows)?;
    }
    let all = rows.len();
    rows.truncate(args.profile.most_rows());
    let shown = &mut rows[..];
    // Functions are found by their names; only programs want to know where each begins now.
    let is_placed = args.by == RowKind::Line || args.profile.format == Format::Json;
    let remarks = if is_placed { places::add(&session, shown) } else { Vec::new() };
    let shown = &*shown;
    match args.profile.format {
        Format::Json => print_json(&document::document(&session, shown)),
        Format::Csv => print(|out| table::csv(&session, shown).write_csv(out)),
        Format::Table => print(|out| table::write(out, &session, shown, all, &remarks)),
    }
}

/// Prints only how much of the weight reached a line, by module.
pub(super) fn print_coverage(session: &Session, format: Format) -> anyhow::Result<()> {
    match format {
        Format::Json => print_json(&document::document(session, &[])),
        Format::Csv => print(|out| table::coverage(session, true).write_csv(out)),
        Format::Table => print(|out| table::write_coverage(out, session)),
    }
}

/// Gives each function its callers and callees.
fn add_calls(session: &Session, by: RowKind, rows: &mut [ReportRow]) -> anyhow::Result<()> {
    if by != RowKind::Function {
        bail!("--calls: only functions call; leave --by out or say --by function");
    }
    if session.table.call_basis().is_none() {
        let branches = !session.loaded.model.profile().arcs.is_empty();
        bail!(
            "--calls: this metric was recorded without stacks, {}",
            if branches { "and branches are not kept by thread" } else { "so nothing is known of calls" }
        );
    }
    let mut calls: HashMap<Party, Calls> = HashMap::new();
    for (caller, callee, cost) in session.table.call_graph() {
        calls.entry(callee).or_default().callers.push(Call { party: caller, cost });
        calls.entry(caller).or_default().callees.push(Call { party: callee, cost });
    }
    for row in rows {
        let party = row.row.function.map(Party::Function).or(row.row.module.map(Party::Unnamed));
        row.calls = Some(party.and_then(|party| calls.remove(&party)).unwrap_or_default());
    }
    Ok(())
}

fn rows(session: &Session, by: RowKind) -> Vec<ReportRow> {
    let by = match by {
        RowKind::Line => By::Line,
        RowKind::Function => By::Function,
        RowKind::File => By::File,
        RowKind::Module => By::Module,
        RowKind::Thread => By::Thread,
        RowKind::Process => By::Process,
        RowKind::Event => return event_rows(session),
    };
    session.table.rows(by).into_iter().map(|row| ReportRow { row, event: None, calls: None, now: None }).collect()
}

/// One row per event, each of its own whole.
fn event_rows(session: &Session) -> Vec<ReportRow> {
    let model = &session.loaded.model;
    let events = (0..model.profile().events.len() as u32).map(EventId);
    events
        .map(|event| {
            let selection = Selection { metric: Metric::sum(event), ..session.table.selection().clone() };
            let table = CostTable::new(Arc::clone(model), selection);
            let times = table.times_of_all().map(Box::new);
            ReportRow {
                row: Row { exclusive: table.selected(), times, ..Row::default() },
                event: Some(event),
                calls: None,
                now: None,
            }
        })
        .collect()
}
