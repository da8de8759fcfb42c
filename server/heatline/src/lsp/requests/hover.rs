//! `textDocument/hover`: all that the profile says of a line.

use super::code_lens::line_of;
use crate::lsp::placing::left_over;
use crate::lsp::server::place;
use crate::lsp::shown::Shown;
use crate::lsp::state::{Costed, State};
use heatline_annotate::placement::Placement;
use heatline_annotate::{FileId, text};
use std::num::NonZeroU32;
use std::sync::Arc;
use tower_lsp::ls_types::{Hover, HoverContents, HoverParams, MarkupContent, MarkupKind};

/// What was asked, independent of later changes.
pub enum Question {
    /// Of a line with cost.
    Line(Line),
    /// Of a function in a text that is too different to have lines with cost; this is the answer.
    Function(String),
}

/// A line with cost.
pub struct Line {
    shown: Arc<Shown>,
    file: FileId,
    line: NonZeroU32,
    placement: Placement,
    /// What is to be known of the text that was profiled.
    remarks: Vec<String>,
}

impl Question {
    /// Takes what is needed; `None` where the line has no cost.
    pub fn take(state: &State, params: &HoverParams) -> Option<Self> {
        let asked = &params.text_document_position_params;
        let costed = state.costed(&asked.text_document.uri)?;
        let line = place(asked.position).line;
        let followed = costed.document.profiled.as_ref()?;
        if !followed.is_sure() {
            let function = costed.view.functions.iter().find(|function| line_of(&costed, function) == Some(line))?;
            let why = left_over(followed.confidence());
            return Some(Question::Function(format!("{}\n\n{why}", text::lens(function, text::delta_and_verdict))));
        }
        let (_, line, placement) =
            costed.document.lines(line, line).find(|(_, line, _)| says_something(&costed, *line))?;
        let remarks = followed.base().origin.sentence().into_iter().chain(renamed(state, costed.file)).collect();
        Some(Question::Line(Line { shown: costed.shown.clone(), file: costed.file, line, placement, remarks }))
    }

    /// The hover.
    pub fn answer(&self) -> Option<Hover> {
        let value = match self {
            Question::Line(line) => line.answer()?,
            Question::Function(answer) => answer.clone(),
        };
        let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
        Some(Hover { contents, range: None })
    }
}

/// What to say of a file that was renamed since it was built.
fn renamed(state: &State, file: FileId) -> Option<String> {
    let from = state.bases.as_ref()?.texts.renamed_from(file)?;
    let below = state.roots.iter().find_map(|root| from.strip_prefix(root).ok()).unwrap_or(from);
    Some(format!("the file was `{}` when it was built", below.display()))
}

impl Line {
    fn answer(&self) -> Option<String> {
        let costs = self.shown.annotations.hover(self.file, self.line, self.placement);
        let shared = self.shown.kept.loaded.shared.get(&self.file).and_then(|lines| lines.get(&self.line));
        let notes = shared.into_iter().flat_map(|line| line.notes.iter().cloned());
        let parts: Vec<String> = costs.into_iter().chain(notes).collect();
        let mut value = (!parts.is_empty()).then(|| parts.join("\n\n"))?;
        value.extend(self.remarks.iter().map(|remark| format!("  \n{remark}")));
        Some(value)
    }
}

fn says_something(costed: &Costed<'_>, line: NonZeroU32) -> bool {
    let shared = costed.shown.kept.loaded.shared.get(&costed.file);
    costed.view.line(line).is_some() || shared.is_some_and(|lines| lines.contains_key(&line))
}
