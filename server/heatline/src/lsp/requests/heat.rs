//! `heatline/heat`: the costs of all lines of a file, with the colour of each.

use super::cost::{CostJson, DeltaJson};
use crate::lsp::state::State;
use heatline_annotate::text;
use serde::{Deserialize, Serialize};
use tower_lsp::ls_types::TextDocumentIdentifier;

/// The question.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Params {
    text_document: TextDocumentIdentifier,
}

/// The answer.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// The client's number of the text that the lines are of; absent of a document that is not open.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<String>,
    lines: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    line: u32,
    level: u8,
    exclusive: CostJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    inclusive: Option<CostJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<DeltaJson>,
    placement: &'static str,
    text: String,
}

/// The heat of a document as it is now.
pub fn answer(state: &State, params: &Params) -> Answer {
    let mut answer = Answer {
        version: state.document(&params.text_document.uri).map(|document| document.version),
        metric: state.shown.as_ref().map(|shown| shown.metric.clone()),
        lines: Vec::new(),
    };
    let Some(costed) = state.costed(&params.text_document.uri).filter(|_| state.settings.heat.enable) else {
        return answer;
    };
    for (now, line, placement) in costed.document.lines(0, u32::MAX) {
        let Some(view) = costed.view.line(line) else { continue };
        answer.lines.push(Line {
            line: now,
            level: view.level,
            exclusive: (&view.exclusive).into(),
            inclusive: view.inclusive.as_ref().map(CostJson::from),
            delta: view.delta.as_ref().map(DeltaJson::from),
            placement: placement.name(),
            text: text::hint(view, true).unwrap_or_default(),
        });
    }
    answer
}
