//! `workspace/executeCommand`: what the person wants to be shown.

use super::freeze::Freeze;
use super::line_calls::LineCalls;
use crate::load::{self, LoadMonitor, LoadOptions, Phase};
use crate::lsp::keeper::Order;
use crate::lsp::server::place;
use crate::lsp::state::State;
use crate::which_profile::profile_at;
use heatline_annotate::Metric;
use heatline_profile::Cancelled;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp::ls_types::{ExecuteCommandParams, Range, Uri};

/// The command of lenses.
pub const CALLS: &str = "heatline.server.calls";

/// All commands.
pub const COMMANDS: [&str; 7] = [
    "heatline.server.open",
    "heatline.server.close",
    "heatline.server.baseline",
    "heatline.server.freeze",
    "heatline.server.metric",
    "heatline.server.refresh",
    CALLS,
];

/// The protocol's code for a request that is well formed and cannot be fulfilled.
const REQUEST_FAILED: ErrorCode = ErrorCode::ServerError(-32803);

/// A command whose arguments are in order.
pub enum Command {
    /// To be done in the background.
    Order(Order),
    /// To be answered.
    Calls(LineCalls),
    /// To be done and answered, and to be the baseline then.
    Freeze(Freeze),
}

/// Checks a command and its arguments.
///
/// # Errors
/// Invalid parameters, or a metric that there is not.
pub fn check(state: &State, params: ExecuteCommandParams) -> Result<Command> {
    let mut arguments = params.arguments.into_iter();
    let first = arguments.next().unwrap_or_default();
    Ok(Command::Order(match params.command.as_str() {
        "heatline.server.open" => Order::Open(path(state, &first)?),
        "heatline.server.close" => Order::Close,
        "heatline.server.baseline" if first.is_null() => Order::Baseline(None),
        "heatline.server.baseline" => Order::Baseline(Some(path(state, &first)?)),
        "heatline.server.metric" => Order::Metric(metric(state, &first)?),
        "heatline.server.refresh" => Order::Refresh,
        "heatline.server.freeze" => return freeze(state, &first),
        CALLS => return calls(state, first, arguments.next().unwrap_or_default()),
        other => return Err(Error::invalid_params(format!("there is no command {other}"))),
    }))
}

fn freeze(state: &State, argument: &Value) -> Result<Command> {
    let path = if argument.is_null() { None } else { Some(path(state, argument)?) };
    let shown = state.shown.as_ref().ok_or_else(|| failed("no profile is shown that could be kept".into()))?;
    let root = state.roots.first().map(PathBuf::as_path);
    Ok(Command::Freeze(Freeze::new(shown.kept.loaded.clone(), path, root)))
}

/// A path, relative to the first workspace folder.
fn path(state: &State, argument: &Value) -> Result<PathBuf> {
    let text = argument.as_str().filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| Error::invalid_params(format!("expected a path, found {argument}")))?;
    Ok(state.roots.first().map_or_else(|| PathBuf::from(text), |root| root.join(text)))
}

/// Looks whether a profile that is to be opened can be read, as far as its beginning tells; a folder becomes the
/// newest profile in it.
///
/// # Errors
/// With the message of the command line.
pub fn look_at(order: Order) -> Result<Order> {
    Ok(match order {
        Order::Open(path) => Order::Open(readable(&path)?),
        Order::Baseline(Some(path)) => Order::Baseline(Some(readable(&path)?)),
        other => other,
    })
}

fn readable(path: &Path) -> Result<PathBuf> {
    let is_other = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    if is_other {
        return Err(failed(format!("{}: expected a file, found a pipe or a device", path.display())));
    }
    let path = profile_at(path).map_err(|error| failed(format!("{error:#}")))?;
    let begun = Begun::default();
    let options = LoadOptions { paths: vec![path.clone()], ..LoadOptions::default() };
    match load::load(&options, &begun) {
        Err(error) if !begun.0.into_inner() => Err(failed(format!("{error:#}"))),
        _ => Ok(path),
    }
}

/// Ends a load as soon as it has begun to read records.
#[derive(Default)]
struct Begun(AtomicBool);

impl LoadMonitor for Begun {
    fn progress(&self, _: Phase, _: u64, _: u64) -> std::result::Result<(), Cancelled> {
        self.0.store(true, Ordering::Relaxed);
        Err(Cancelled)
    }
}

fn metric(state: &State, argument: &Value) -> Result<String> {
    let metric = argument.as_str();
    let metric = metric.ok_or_else(|| Error::invalid_params(format!("expected a metric, found {argument}")))?;
    if let Some(shown) = &state.shown
        && Metric::find(shown.kept.loaded.model.profile(), metric).is_none()
    {
        let known: Vec<&str> = shown.metrics.iter().map(|(id, _)| id.as_str()).collect();
        return Err(failed(format!("the profile has no metric {metric}; it has {}", known.join(", "))));
    }
    Ok(metric.to_owned())
}

/// Of the line of a position, or of the lines of a range.
fn calls(state: &State, uri: Value, lines: Value) -> Result<Command> {
    let invalid = |error: serde_json::Error| {
        Error::invalid_params(format!("expected an address and a position or range: {error}"))
    };
    let uri: Uri = serde_json::from_value(uri).map_err(invalid)?;
    let lines = if lines.get("start").is_some() {
        let Range { start, end } = serde_json::from_value(lines).map_err(invalid)?;
        // A selection of whole lines ends before the first character of the next one.
        let last = if end.character == 0 { end.line.saturating_sub(1) } else { end.line };
        start.line..=last.max(start.line)
    } else {
        let line = place(serde_json::from_value(lines).map_err(invalid)?).line;
        line..=line
    };
    Ok(Command::Calls(LineCalls::take(state, &uri, lines)))
}

/// What is well formed and cannot be done, and why.
pub fn failed(message: String) -> Error {
    Error { code: REQUEST_FAILED, message: message.into(), data: None }
}
