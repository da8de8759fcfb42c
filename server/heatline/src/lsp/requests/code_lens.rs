//! `textDocument/codeLens`: one lens above each function whose cost reaches the threshold.

use super::execute_command::CALLS;
use crate::lsp::placing;
use crate::lsp::server::{at, position};
use crate::lsp::state::State;
use crate::lsp::text::Place;
use heatline_annotate::text;
use serde_json::json;
use tower_lsp::ls_types::{CodeLens, CodeLensParams, Command};

/// The lenses of a file; none where it has no cost.
pub fn answer(state: &State, params: &CodeLensParams) -> Vec<CodeLens> {
    let settings = &state.settings.lenses;
    let Some(costed) = state.costed(&params.text_document.uri).filter(|_| settings.enable) else { return Vec::new() };
    let removed = placing::removed(costed.document, costed.view);
    let mut lenses: Vec<CodeLens> = Vec::new();
    for function in &costed.view.functions {
        let Some((now, _)) = costed.document.line_now(function.line) else { continue };
        if !text::reaches(&function.exclusive, function.inclusive.as_ref(), settings.threshold) {
            continue;
        }
        let place = Place { line: now, character: 0 };
        let removed = removed.get(&function.line).map(|text| format!(" · {text}")).unwrap_or_default();
        lenses.push(CodeLens {
            range: at(place),
            command: Some(Command {
                title: text::lens(function) + &removed,
                command: CALLS.into(),
                arguments: Some(vec![json!(costed.document.uri), json!(position(place))]),
            }),
            data: None,
        });
    }
    lenses
}
