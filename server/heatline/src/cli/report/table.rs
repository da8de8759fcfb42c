//! The tables of `heatline report`: for people, and as comma-separated values.

use super::{ReportRow, document, places, times};
use crate::cli::output::{LONGEST_NAME, NO_SYMBOL, Table, colour, from_here, printable, printable_path};
use crate::cli::session::Session;
use heatline_annotate::text::{self, amount, count, counted, coverage_sentence, recording, samples};
use heatline_annotate::{Call, CallBasis, Cost, Coverage, Party, cut_stacks, gaps, short_name};
use heatline_profile::{CallTable, EventId, Percent, ProfileKind, round};
use heatline_readers::spt;
use std::io::{self, Write};

/// Writes the rows that are shown, of `all` rows, and `remarks` below them.
pub fn write(
    out: &mut dyn Write,
    session: &Session,
    shown: &[ReportRow],
    all: usize,
    remarks: &[String],
) -> io::Result<()> {
    write_heading(out, session)?;
    if shown.iter().any(|row| row.calls.is_some()) && session.table.call_basis() == Some(CallBasis::Branches) {
        writeln!(
            out,
            "calls are recorded branches into functions; their samples say how often they were taken, not for how long\n"
        )?;
    }
    // As in lenses: the inclusive ones where there are stacks.
    let of_samples = if shown.iter().any(|row| row.row.inclusive.is_some()) { ">incl samples" } else { ">samples" };
    let mut headings = vec![">exclusive", ">inclusive", of_samples];
    headings.extend(times::HEADINGS);
    let thread = if shown.iter().any(|row| row.row.is_process) { "process" } else { "thread" };
    headings.extend(["event", thread, "function", "source", "now", "module"]);
    let mut table = Table::new(&headings);
    let of_code = shown.iter().any(|row| row.row.function.is_some());
    for row in shown {
        table.push(cells(session, row, of_code));
        for (arrow, calls) in row.calls.iter().flat_map(|calls| [("  ← ", &calls.callers), ("  → ", &calls.callees)])
        {
            calls.iter().take(MOST_CALLS).for_each(|call| table.push(call_cells(session, arrow, call)));
        }
    }
    table.drop_empty();
    table.write(out, colour())?;
    if all == 0 && session.table.total().samples > 0 {
        writeln!(out, "nothing is selected: no sample or row has what the filters ask for")?;
    }
    if all > shown.len() {
        writeln!(out, "… {}; --limit {all} shows all", counted((all - shown.len()) as u64, "more row"))?;
    }
    for remark in remarks {
        writeln!(out, "{remark}")?;
    }
    Ok(())
}

/// What the profile is, which metric is shown, what its percentages are of, how much reached a line and where it did not.
pub fn write_heading(out: &mut dyn Write, session: &Session) -> io::Result<()> {
    let coverage = session.table.coverage();
    write_whole(out, session, &coverage)?;
    for remark in gaps(&session.loaded.model, &coverage, REST_OF_GAPS).into_iter().chain(cut_stacks(&session.table)) {
        writeln!(out, "{}", printable(&remark))?;
    }
    write_recording(out, session)
}

/// Where the gaps are told that a heading has no room for.
pub const REST_OF_GAPS: &str = ": --coverage lists them";

/// What the profile is, which metric is shown, what its percentages are of, and how much reached a line.
fn write_whole(out: &mut dyn Write, session: &Session, coverage: &Coverage) -> io::Result<()> {
    let profile = session.loaded.model.profile();
    let metric = session.table.selection().metric;
    let total = session.table.total();
    let weight = amount(total.weight, profile.event(metric.event).unit);
    let (path, id) = (printable_path(&session.loaded.path), metric.id(profile));
    writeln!(out, "{path} · {} · {} · {weight}", printable(&id), extent(session))?;
    for choice in &session.choices {
        writeln!(out, "{}", printable(choice))?;
    }
    if let Some(only) = session.selected.sentence(&session.table) {
        writeln!(out, "{}", printable(&only))?;
    }
    let base = session.selected.base(if session.table.is_measured() { &id } else { "samples" });
    if total.samples == 0 {
        // Of nothing there are no shares.
        writeln!(
            out,
            "no samples of {}; choose another metric with --metric, other times, or record longer",
            printable(&id)
        )?;
    } else {
        let reached = match session.table.selected().samples {
            0 => "nothing is selected".to_owned(),
            _ => coverage_sentence(coverage),
        };
        writeln!(out, "percentages are of {}; {}", printable(&base), reached)?;
    }
    Ok(())
}

/// What else there is, and how it was recorded.
fn write_recording(out: &mut dyn Write, session: &Session) -> io::Result<()> {
    let profile = session.loaded.model.profile();
    let metric = session.table.selection().metric;
    let sampled = (0..).map(EventId).zip(profile.totals()).filter(|(_, total)| total.samples > 0);
    let others = sampled.filter(|(event, _)| *event != metric.event).map(|(event, _)| profile.metric_id(event));
    let others: Vec<&str> = others.collect();
    if !others.is_empty() {
        writeln!(out, "other metrics: {}", printable(&others.join(", ")))?;
    }
    if profile.kind == ProfileKind::Spt {
        writeln!(out, "SPDConvert wants /mode:{} for this file", spt::ConvertMode::of(profile))?;
    }
    for line in recording(profile) {
        writeln!(out, "{}", printable(&line))?;
    }
    writeln!(out)
}

/// What stands behind the shown numbers.
fn extent(session: &Session) -> String {
    let profile = session.loaded.model.profile();
    if session.table.is_measured() { text::extent(profile) } else { samples(session.table.total().samples) }
}

/// So many callers and callees are shown with a function.
const MOST_CALLS: usize = 5;

/// A caller or callee under its function: the cost of the call is inclusive.
fn call_cells(session: &Session, arrow: &str, call: &Call) -> Vec<String> {
    let model = &session.loaded.model;
    let (name, module) = match call.party {
        Party::Function(id) => {
            (short_name(&model.function(id).name, LONGEST_NAME).into_owned(), model.function(id).module)
        }
        Party::Unnamed(module) => (NO_SYMBOL.to_owned(), module),
    };
    let mut cells = vec![String::new(); 9 + times::HEADINGS.len()];
    // How often a branch was taken is no share of what was sampled.
    if session.table.call_basis() == Some(CallBasis::Stacks) {
        cells[1] = call.cost.percent.map_or_else(String::new, |percent| percent.to_string());
    }
    cells[2] = count(call.cost.samples);
    let after = 3 + times::HEADINGS.len();
    cells[after + 2] = format!("{arrow}{name}");
    cells[after + 5] = model.profile().module(module).base_name().to_owned();
    cells
}

/// The cells of a row; `of_code` if rows are of functions, or of lines in them.
fn cells(session: &Session, of: &ReportRow, of_code: bool) -> Vec<String> {
    let ReportRow { row, event, .. } = of;
    let model = &session.loaded.model;
    let profile = model.profile();
    let percent = |cost: Cost| cost.percent.map_or_else(String::new, |percent: Percent| percent.to_string());
    let exclusive = event.is_some() || row.thread.is_some() || session.table.has_exclusive();
    let inlined = if row.inlined { " (inlined)" } else { "" };
    let source = match (row.file.map(|file| from_here(&model.file(file).path)), row.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file,
        _ => String::new(),
    };
    let thread = row.thread.map(|id| profile.thread(id));
    let own = [
        if exclusive { percent(row.exclusive) } else { String::new() },
        row.inclusive.map_or_else(String::new, percent),
        count(row.inclusive.unwrap_or(row.exclusive).samples),
    ];
    // Of what has times the share of the metric is among them, unless it is another.
    let own = match (&row.times, is_time(session)) {
        (Some(_), true) if event.is_none() => Default::default(),
        (Some(_), _) if session.table.is_measured() && event.is_none() => {
            [own[0].clone(), own[1].clone(), String::new()]
        }
        _ => own,
    };
    let rest = [
        event.map_or_else(String::new, |id| profile.metric_id(id).to_owned()),
        thread.map_or_else(String::new, |t| {
            if row.is_process { format!("{} {}", t.comm, t.pid) } else { format!("{} {}/{}", t.comm, t.pid, t.tid) }
        }),
        match row.function {
            Some(id) => format!("{}{inlined}", short_name(&model.function(id).name, LONGEST_NAME)),
            None if of_code && row.file.is_none() && row.module.is_some() => NO_SYMBOL.to_owned(),
            None => String::new(),
        },
        source,
        places::cell(of),
        row.module.map_or_else(String::new, |id| profile.module(id).base_name().to_owned()),
    ];
    let times = row.times.as_deref().filter(|_| event.is_none());
    own.into_iter().chain(times::cells(times)).chain(rest).collect()
}

/// Whether the metric is one of the times that rows have anyway.
fn is_time(session: &Session) -> bool {
    let metric = session.table.selection().metric.id(session.loaded.model.profile());
    session.table.is_measured() && [CallTable::ELAPSED, CallTable::APPLICATION].contains(&metric.as_str())
}

/// All values of the rows, unrounded.
pub fn csv(session: &Session, rows: &[ReportRow]) -> Table {
    let mut headings = vec![
        "event",
        "pid",
        "tid",
        "comm",
        "module",
        "function",
        "file",
        "line",
        "exclusive_weight",
        "exclusive_percent",
        "exclusive_samples",
        "inclusive_weight",
        "inclusive_percent",
        "inclusive_samples",
    ];
    headings.extend(times::COLUMNS);
    headings.extend(["file_now", "line_now", "placement"]);
    let mut table = Table::new(&headings);
    let number = |value: Option<i64>| value.map(|value| value.to_string()).unwrap_or_default();
    let cost = |cost: Option<Cost>| match cost {
        Some(cost) => [cost.weight.0.to_string(), cost.share().to_string(), cost.samples.to_string()],
        None => Default::default(),
    };
    for report_row in rows {
        let json = document::row(session, report_row);
        let mut row = vec![
            json.event.unwrap_or_default(),
            number(json.pid.map(i64::from)),
            number(json.tid.map(i64::from)),
            json.comm.unwrap_or_default(),
            json.module.unwrap_or_default(),
            json.function.unwrap_or_default(),
            json.file.unwrap_or_default(),
            number(json.line.map(i64::from)),
        ];
        row.extend(cost(json.exclusive.map(|_| report_row.row.exclusive)));
        row.extend(cost(report_row.row.inclusive));
        row.extend(times::values(report_row.row.times.as_deref()));
        row.extend([
            json.file_now.unwrap_or_default(),
            number(json.line_now.map(i64::from)),
            json.placement.unwrap_or_default().into(),
        ]);
        table.push(row);
    }
    table.drop_empty();
    table
}

/// Writes how much of the weight reached a line, by module.
pub fn write_coverage(out: &mut dyn Write, session: &Session) -> io::Result<()> {
    write_whole(out, session, &session.table.coverage())?;
    write_recording(out, session)?;
    let mut table = coverage(session, false);
    table.drop_empty();
    table.write(out, colour())
}

/// The coverage by module; `raw` numbers are unrounded and without units.
pub fn coverage(session: &Session, raw: bool) -> Table {
    let mut table = Table::new(&[">weight", ">line", ">symbol", ">nothing", "module", "reason", "looked in"]);
    let profile = session.loaded.model.profile();
    let unit = profile.event(session.table.selection().metric.event).unit;
    let share = |part: f64| if raw { (100.0 * part).to_string() } else { format!("{} %", round(100.0 * part)) };
    for module in session.table.coverage().by_module {
        let looked = &session.loaded.looked[module.module.0 as usize];
        let looked: Vec<String> = looked.iter().map(|path| path.display().to_string()).collect();
        table.push(vec![
            if raw { module.weight.0.to_string() } else { amount(module.weight, unit) },
            share(module.line),
            share(module.symbol),
            share(module.none),
            profile.module(module.module).base_name().to_owned(),
            module.reason.clone().unwrap_or_default(),
            if module.reason.is_some() { looked.join(", ") } else { String::new() },
        ]);
    }
    table
}
