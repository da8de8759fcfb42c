//! `textDocument/inlayHint`: one hint at the end of each line whose cost reaches the threshold.

use crate::lsp::server::{place, position};
use crate::lsp::state::State;
use crate::lsp::texts::{Label, Tooltip};
use heatline_annotate::text;
use serde::Serialize;
use tower_lsp::ls_types::{InlayHintParams, Position};

/// A hint as the protocol has it; the library's type would need a copy of every text.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hint<'a> {
    position: Position,
    label: Label<'a>,
    tooltip: Markdown<'a>,
    padding_left: bool,
}

#[derive(Debug, Serialize)]
struct Markdown<'a> {
    kind: &'static str,
    value: Tooltip<'a>,
}

/// Hands the hints in a range to `write`; none where the file has no cost.
pub fn answer<T>(state: &State, params: &InlayHintParams, write: impl FnOnce(&[Hint<'_>]) -> T) -> T {
    let settings = &state.settings.hints;
    let Some(costed) = state.costed(&params.text_document.uri).filter(|_| settings.enable) else { return write(&[]) };
    let (start, end) = (place(params.range.start), place(params.range.end));
    let texts = costed.shown.texts(costed.file);
    let mut hints: Vec<Hint<'_>> = Vec::new();
    for (now, line, placement) in costed.document.lines(start.line, end.line) {
        let Ok(index) = costed.view.lines.binary_search_by_key(&line, |view| view.line) else { continue };
        let (view, words) = (&costed.view.lines[index], &texts[index]);
        if !text::reaches(&view.exclusive, view.inclusive.as_ref(), settings.threshold) {
            continue;
        }
        let at = costed.document.text.line_end(now, state.encoding);
        // Lines that were joined share one hint: that of the first.
        let taken = hints.last().is_some_and(|last| last.position.line == now);
        if (start..=end).contains(&at) && !taken {
            hints.extend(words.hint(settings.inclusive, placement).map(|label| Hint {
                position: position(at),
                label,
                tooltip: Markdown { kind: "markdown", value: words.tooltip(placement) },
                padding_left: true,
            }));
        }
    }
    write(&hints)
}
