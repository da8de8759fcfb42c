//! `heatline/heat`: the costs of all lines of a file, with the colour of each.

use super::cost::{CostJson, DeltaJson};
use crate::lsp::state::State;
use crate::lsp::texts::Label;
use serde::{Deserialize, Serialize};
use tower_lsp::ls_types::TextDocumentIdentifier;

/// The question.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Params {
    pub(super) text_document: TextDocumentIdentifier,
}

/// The answer.
#[derive(Debug, Serialize)]
pub struct Answer<'a> {
    /// The client's number of the text that the lines are of; absent of a document that is not open.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<&'a str>,
    lines: Vec<Line<'a>>,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    line: u32,
    level: u8,
    exclusive: CostJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    inclusive: Option<CostJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<DeltaJson>,
    placement: &'static str,
    text: Label<'a>,
}

/// Hands the heat of a document as it is now to `write`.
pub fn answer<T>(state: &State, params: &Params, write: impl FnOnce(&Answer<'_>) -> T) -> T {
    let mut answer = Answer {
        version: state.document(&params.text_document.uri).map(|document| document.version),
        metric: state.shown.as_ref().map(|shown| shown.metric.as_str()),
        lines: Vec::new(),
    };
    let Some(costed) = state.costed(&params.text_document.uri).filter(|_| state.settings.heat.enable) else {
        return write(&answer);
    };
    let texts = costed.shown.texts(costed.file);
    for (now, line, placement) in costed.document.lines(0, u32::MAX) {
        let Ok(index) = costed.view.lines.binary_search_by_key(&line, |view| view.line) else { continue };
        let view = &costed.view.lines[index];
        answer.lines.push(Line {
            line: now,
            level: view.level,
            exclusive: (&view.exclusive).into(),
            inclusive: view.inclusive.as_ref().map(CostJson::from),
            delta: view.delta.as_ref().map(DeltaJson::from),
            placement: placement.name(),
            text: texts[index].hint(true, placement).unwrap_or_default(),
        });
    }
    write(&answer)
}
