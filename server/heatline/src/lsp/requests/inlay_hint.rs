//! `textDocument/inlayHint`: one hint at the end of each line whose cost reaches the threshold.

use crate::lsp::server::{place, position};
use crate::lsp::state::{Costed, State};
use heatline_annotate::text;
use heatline_annotate::{LineView, placement::Placement};
use tower_lsp::ls_types::{InlayHint, InlayHintLabel, InlayHintParams, InlayHintTooltip, MarkupContent, MarkupKind};

/// The hints in a range; none where the file has no cost.
pub fn answer(state: &State, params: &InlayHintParams) -> Vec<InlayHint> {
    let settings = &state.settings.hints;
    let Some(costed) = state.costed(&params.text_document.uri).filter(|_| settings.enable) else { return Vec::new() };
    let (start, end) = (place(params.range.start), place(params.range.end));
    let mut hints: Vec<InlayHint> = Vec::new();
    for (now, line, placement) in costed.document.lines(start.line, end.line) {
        let Some(view) = costed.view.line(line) else { continue };
        if !text::reaches(&view.exclusive, view.inclusive.as_ref(), settings.threshold) {
            continue;
        }
        let at = costed.document.text.line_end(now, state.encoding);
        // Lines that were joined share one hint: that of the first.
        let taken = hints.last().is_some_and(|last| last.position.line == now);
        if (start..=end).contains(&at) && !taken {
            hints.extend(hint(&costed, view, placement, settings.inclusive).map(|(label, tooltip)| InlayHint {
                position: position(at),
                label: InlayHintLabel::String(label),
                kind: None,
                text_edits: None,
                tooltip: Some(InlayHintTooltip::MarkupContent(MarkupContent {
                    kind: MarkupKind::Markdown,
                    value: tooltip,
                })),
                padding_left: Some(true),
                padding_right: None,
                data: None,
            }));
        }
    }
    hints
}

fn hint(costed: &Costed<'_>, view: &LineView, placement: Placement, inclusive: bool) -> Option<(String, String)> {
    Some((text::hint(view, inclusive)?, text::tooltip(&costed.shown.annotations, view, placement)))
}
