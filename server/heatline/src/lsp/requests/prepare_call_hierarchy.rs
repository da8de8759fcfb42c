//! `textDocument/prepareCallHierarchy`: which functions are meant by a place in the text.

use super::call_hierarchy::{group_of, item};
use super::locate::Locator;
use crate::lsp::server::place;
use crate::lsp::shown::Shown;
use crate::lsp::state::State;
use heatline_annotate::{FileId, FunctionId};
use std::num::NonZeroU32;
use tower_lsp::ls_types::{CallHierarchyItem, CallHierarchyPrepareParams};

/// What was asked, independent of later changes.
pub struct Prepare {
    locator: Locator,
    /// The file that was asked about and the lines of it, if it has cost.
    place: Option<(FileId, Vec<NonZeroU32>)>,
    /// The word at the position.
    word: String,
}

impl Prepare {
    /// Takes what is needed; `None` while no profile is shown or the document is not open.
    pub fn take(state: &State, params: &CallHierarchyPrepareParams) -> Option<Self> {
        let asked = &params.text_document_position_params;
        let document = state.document(&asked.text_document.uri)?;
        let now = asked.position.line;
        let word = document.text.word(place(asked.position), state.encoding).to_owned();
        let place = state.costed(&asked.text_document.uri).map(|costed| {
            let lines = costed.document.lines(now, now).map(|(_, line, _)| line);
            (costed.file, lines.collect())
        });
        Some(Prepare { locator: Locator::take(state)?, place, word })
    }

    /// The functions that are meant: those named by the word, else those declared on the line, else those whose code
    /// the line is.
    pub fn answer(&self) -> Option<Vec<CallHierarchyItem>> {
        let shown = self.locator.shown();
        let groups = self.named(shown);
        let groups = if groups.is_empty() { self.on_line(shown) } else { groups };
        let items: Vec<CallHierarchyItem> =
            groups.into_iter().filter_map(|functions| item(&self.locator, &functions, None)).collect();
        (!items.is_empty()).then_some(items)
    }

    /// The costed functions of that name, each with its clones; those of the same file alone if there are any.
    fn named(&self, shown: &Shown) -> Vec<Vec<FunctionId>> {
        if self.word.is_empty() {
            return Vec::new();
        }
        let model = &shown.kept.loaded.model;
        let mut found: Vec<(FileId, Vec<FunctionId>)> = Vec::new();
        for (file, view) in shown.annotations.files() {
            let is_named = |id: &FunctionId| simple_name(&model.function(*id).name) == self.word;
            let of_name = view.functions.iter().filter(|view| view.functions.iter().any(is_named));
            found.extend(of_name.map(|view| (file, view.functions.clone())));
        }
        let here = self.place.as_ref().map(|(file, _)| *file);
        if found.iter().any(|(file, _)| Some(*file) == here) {
            found.retain(|(file, _)| Some(*file) == here);
        }
        found.sort();
        found.into_iter().map(|(_, functions)| functions).collect()
    }

    fn on_line(&self, shown: &Shown) -> Vec<Vec<FunctionId>> {
        let Some((file, lines)) = &self.place else { return Vec::new() };
        let view = shown.annotations.file(*file);
        let declared = lines.iter().filter_map(|line| view?.function(*line)).map(|view| view.functions.clone());
        let declared: Vec<Vec<FunctionId>> = declared.collect();
        if !declared.is_empty() {
            return declared;
        }
        let code = lines.iter().flat_map(|line| shown.annotations.functions_of_line(*file, *line));
        code.map(|id| group_of(shown, id)).collect()
    }
}

/// The name without scope, template arguments and parameters.
pub fn simple_name(name: &str) -> &str {
    let (mut start, mut end, mut depth) = (0, name.len(), 0u32);
    for (at, character) in name.char_indices() {
        match character {
            '<' => {
                end = if depth == 0 { at } else { end };
                depth += 1;
            }
            '>' => depth = depth.saturating_sub(1),
            ':' | ' ' if depth == 0 => (start, end) = (at + 1, name.len()),
            '(' if depth == 0 && !name[at..].starts_with("(anonymous") => {
                end = end.min(at);
                break;
            }
            _ => {}
        }
    }
    name.get(start..end).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_names_are_what_stands_in_the_source() {
        let names = ["fib", "(anonymous namespace)::fib(int)", "void ns::A<b::C>::run<3>(int)", "a::b::{closure#0}"];
        assert_eq!(names.map(simple_name), ["fib", "fib", "run", "{closure#0}"]);
    }
}
