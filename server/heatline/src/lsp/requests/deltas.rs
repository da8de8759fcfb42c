//! `heatline/deltas`: the differences that belong behind the hints of a file, for a client that shows them in colours.
//! Such a client says `"experimental": {"heatline": {"paintsDeltas": true}}`, and its hints come without them.

use super::heat::Params;
use super::inlay_hint::hinted;
use crate::lsp::state::State;
use heatline_annotate::Delta;
use heatline_annotate::compare::Verdict;
use serde::Serialize;

/// The answer.
#[derive(Debug, Serialize)]
pub struct Answer<'a> {
    /// The client's number of the text that the lines are of; absent of a document that is not open.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i32>,
    lines: Vec<Line<'a>>,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    line: u32,
    text: &'a str,
    verdict: &'static str,
}

/// Hands the differences of a document as it is now to `write`: of the lines that have hints.
pub fn answer<T>(state: &State, params: &Params, write: impl FnOnce(&Answer<'_>) -> T) -> T {
    let uri = &params.text_document.uri;
    let mut answer = Answer { version: state.document(uri).map(|document| document.version), lines: Vec::new() };
    let Some(costed) = state.costed(uri).filter(|_| state.settings.hints.enable) else { return write(&answer) };
    let texts = costed.shown.texts(costed.file);
    for hinted in hinted(state, &costed, &texts, 0..=u32::MAX) {
        let delta = costed.view.lines[hinted.index].delta.as_ref();
        if let (Some(delta), Some(text)) = (delta, texts[hinted.index].delta()) {
            answer.lines.push(Line { line: hinted.now, text, verdict: verdict(delta) });
        }
    }
    write(&answer)
}

/// The word for what a difference is taken for.
fn verdict(delta: &Delta) -> &'static str {
    match delta.verdict {
        Verdict::Significant if delta.points > 0.0 => "regression",
        Verdict::Significant => "improvement",
        Verdict::BelowThreshold => "below-threshold",
        Verdict::Noise => "noise",
        Verdict::Untestable => "untestable",
    }
}
