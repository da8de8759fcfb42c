//! `textDocument/codeLens`: one lens above each function whose cost reaches the threshold.

use super::execute_command::CALLS;
use super::prepare_call_hierarchy::simple_name;
use crate::lsp::followed::Followed;
use crate::lsp::placing;
use crate::lsp::server::{at, position};
use crate::lsp::state::{Costed, State};
use crate::lsp::text::Place;
use heatline_annotate::{FunctionView, text};
use serde::Serialize;
use serde_json::{Value, json};
use tower_lsp::ls_types::{CodeLensParams, Range};

/// A lens as the protocol has it; the library's type does not know tooltips of commands yet.
#[derive(Debug, Serialize)]
pub struct Lens {
    range: Range,
    command: Command,
}

#[derive(Debug, Serialize)]
struct Command {
    title: String,
    /// The difference with its interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    tooltip: Option<String>,
    command: &'static str,
    arguments: [Value; 2],
}

/// The lenses of a file; none where it has no cost.
pub fn answer(state: &State, params: &CodeLensParams) -> Vec<Lens> {
    let settings = &state.settings.lenses;
    let Some(costed) = state.costed(&params.text_document.uri).filter(|_| settings.enable) else { return Vec::new() };
    let removed = placing::removed(costed.document, costed.view);
    // A lens has one colour, so that words tell what others tell by a colour.
    let delta = if state.abilities.paints_deltas { text::delta_and_verdict } else { text::delta };
    let mut lenses: Vec<Lens> = Vec::new();
    for function in &costed.view.functions {
        let Some(now) = line_of(&costed, function) else { continue };
        if !text::reaches(&function.exclusive, function.inclusive.as_ref(), settings.threshold) {
            continue;
        }
        let place = Place { line: now, character: 0 };
        let removed = removed.get(&function.line).map(|text| format!(" · {text}")).unwrap_or_default();
        lenses.push(Lens {
            range: at(place),
            command: Command {
                title: text::lens(function, delta) + &removed,
                tooltip: function.delta.as_ref().map(text::delta_sentence),
                command: CALLS,
                arguments: [json!(costed.document.uri), json!(position(place))],
            },
        });
    }
    lenses
}

/// Where the lens of a function stands: on its line, or in a text that is too different on the first that names it.
pub fn line_of(costed: &Costed<'_>, function: &FunctionView) -> Option<u32> {
    let placed = costed.document.line_now(function.line).map(|(now, _)| now);
    let is_sure = costed.document.profiled.as_ref().is_some_and(Followed::is_sure);
    if placed.is_some() || is_sure {
        return placed;
    }
    let model = &costed.shown.kept.loaded.model;
    let name = simple_name(&model.function(*function.functions.first()?).name);
    let text = &costed.document.text;
    (0..text.line_count()).find(|line| names_function(text.line(*line), name))
}

/// Whether a line names a function as a definition does: the name, then its parameters, and no end of a statement.
fn names_function(line: &str, name: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let is_whole = |at: usize| {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        !before.ends_with(is_of_name) && after.trim_start().starts_with(['(', '<'])
    };
    let begins = line.starts_with(|c: char| is_of_name(c)) && !line.trim_end().ends_with(';');
    !name.is_empty() && begins && line.match_indices(name).any(|(at, _)| is_whole(at))
}
