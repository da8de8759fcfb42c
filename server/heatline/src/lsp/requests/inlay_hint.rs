//! `textDocument/inlayHint`: one hint at the end of each line whose cost reaches the threshold.

use crate::lsp::server::{place, position};
use crate::lsp::state::{Costed, State};
use crate::lsp::texts::{Label, LineText, Tooltip};
use crate::shared_calls::SharedLine;
use heatline_annotate::placement::Placement;
use heatline_annotate::text;
use serde::Serialize;
use std::ops::RangeInclusive;
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
    let Some(costed) = state.costed(&params.text_document.uri).filter(|_| state.settings.hints.enable) else {
        return write(&[]);
    };
    let (start, end) = (place(params.range.start), place(params.range.end));
    let texts = costed.shown.texts(costed.file);
    let mut hints: Vec<Hint<'_>> = Vec::new();
    let mut push = |now, label, tooltip| {
        let at = costed.document.text.line_end(now, state.encoding);
        if (start..=end).contains(&at) {
            let tooltip = Markdown { kind: "markdown", value: tooltip };
            hints.push(Hint { position: position(at), label, tooltip, padding_left: true });
        }
    };
    for Hinted { now, index, placement, label } in hinted(state, &costed, &texts, start.line..=end.line) {
        let label = if state.abilities.paints_deltas { label.without_delta() } else { label };
        push(now, label, texts[index].tooltip(placement));
    }
    let shared = shared(state, &costed, &texts, start.line..=end.line);
    for (now, placement, line, notes) in &shared {
        push(*now, Label::of(&line.hint, *placement), Tooltip::of(notes, *placement));
    }
    hints.sort_by_key(|hint| hint.position.line);
    write(&hints)
}

/// The lines without a hint of their own that may have made calls, with what the tooltip says.
fn shared<'a>(
    state: &State,
    costed: &'a Costed<'_>,
    texts: &[LineText],
    lines: RangeInclusive<u32>,
) -> Vec<(u32, Placement, &'a SharedLine, String)> {
    let Some(shared) = costed.shown.kept.loaded.shared.get(&costed.file) else { return Vec::new() };
    let own: Vec<u32> = hinted(state, costed, texts, lines.clone()).map(|hinted| hinted.now).collect();
    let told = costed.document.lines(*lines.start(), *lines.end()).filter_map(|(now, line, placement)| {
        let line = shared.get(&line).filter(|line| line.share >= state.settings.hints.threshold)?;
        own.binary_search(&now).is_err().then(|| (now, placement, line, line.notes.join("\n\n") + "\n\n"))
    });
    told.collect()
}

/// A line of a document that has a hint.
pub(super) struct Hinted<'a> {
    /// Its number in the text as it is now.
    pub now: u32,
    /// The number of its costs in the file's view.
    pub index: usize,
    /// How it is placed.
    pub placement: Placement,
    /// The hint.
    pub label: Label<'a>,
}

/// The lines of a document that have hints, in order. Lines that were joined share one: that of the first.
pub(super) fn hinted<'a>(
    state: &'a State,
    costed: &'a Costed<'_>,
    texts: &'a [LineText],
    lines: RangeInclusive<u32>,
) -> impl Iterator<Item = Hinted<'a>> {
    let settings = &state.settings.hints;
    let mut last = None;
    costed.document.lines(*lines.start(), *lines.end()).filter_map(move |(now, line, placement)| {
        let index = costed.view.lines.binary_search_by_key(&line, |view| view.line).ok()?;
        let view = &costed.view.lines[index];
        if last == Some(now) || !text::reaches(&view.exclusive, view.inclusive.as_ref(), settings.threshold) {
            return None;
        }
        let label = texts[index].hint(settings.inclusive, placement)?;
        last = Some(now);
        Some(Hinted { now, index, placement, label })
    })
}
