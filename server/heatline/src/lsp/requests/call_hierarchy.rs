//! Call hierarchy: the measured call graph, with the cost of each edge.

use super::cost::CostJson;
use super::locate::Locator;
use crate::lsp::shown::Shown;
use crate::lsp::state::State;
use heatline_annotate::text::{self, samples};
use heatline_annotate::{Call, Calls, FileId, FunctionId, Party};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use tower_lsp::ls_types::{
    CallHierarchyIncomingCall, CallHierarchyItem, CallHierarchyOutgoingCall, CallHierarchyPrepareParams, Location,
    SymbolKind, Uri,
};

/// The line that was asked about, in the text the profile was built from.
struct Line {
    file: FileId,
    line: NonZeroU32,
}

/// `textDocument/prepareCallHierarchy`.
pub struct Prepare {
    locator: Locator,
    lines: Vec<Line>,
    file: FileId,
    /// The word at the position.
    word: String,
}

impl Prepare {
    /// Takes what is needed; `None` in a file without cost.
    pub fn take(state: &State, params: &CallHierarchyPrepareParams) -> Option<Self> {
        let asked = &params.text_document_position_params;
        let costed = state.costed(&asked.text_document.uri)?;
        let file = costed.file;
        let now = asked.position.line;
        let lines = costed.document.lines(now, now).map(|(_, line, _)| Line { file, line }).collect();
        let word = costed.document.text.word(crate::lsp::server::place(asked.position), state.encoding).to_owned();
        Some(Prepare { locator: Locator::take(state)?, lines, file, word })
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
        if found.iter().any(|(file, _)| *file == self.file) {
            found.retain(|(file, _)| *file == self.file);
        }
        found.sort();
        found.into_iter().map(|(_, functions)| functions).collect()
    }

    fn on_line(&self, shown: &Shown) -> Vec<Vec<FunctionId>> {
        let view = shown.annotations.file(self.file);
        let declared =
            self.lines.iter().filter_map(|line| view?.function(line.line)).map(|view| view.functions.clone());
        let declared: Vec<Vec<FunctionId>> = declared.collect();
        if !declared.is_empty() {
            return declared;
        }
        let code = self.lines.iter().flat_map(|line| shown.annotations.functions_of_line(line.file, line.line));
        code.map(|id| group_of(shown, id)).collect()
    }
}

/// A function with its clones and instances.
fn group_of(shown: &Shown, id: FunctionId) -> Vec<FunctionId> {
    let function = shown.kept.loaded.model.function(id);
    let view = function.file.zip(function.line).and_then(|(file, line)| shown.annotations.file(file)?.function(line));
    view.map_or_else(|| vec![id], |view| view.functions.clone())
}

/// The name without scope, template arguments and parameters.
fn simple_name(name: &str) -> &str {
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

/// What an item carries back to us.
#[derive(Debug, Serialize, Deserialize)]
struct Data {
    functions: Vec<u32>,
    name: String,
}

/// A function as an item; one without a place in a file here has none.
fn item(locator: &Locator, functions: &[FunctionId], detail: Option<String>) -> Option<CallHierarchyItem> {
    let shown = locator.shown();
    let model = &shown.kept.loaded.model;
    let function = model.function(*functions.first()?);
    let location = function.file.zip(function.line).and_then(|(file, line)| locator.line(file, line).location)?;
    let module = model.profile().module(function.module).base_name();
    let view = shown.annotations.file(function.file?).and_then(|file| file.function(function.line?));
    let detail = detail.or_else(|| Some(format!("{} · {module}", text::lens(view?))));
    Some(CallHierarchyItem {
        name: function.name.clone(),
        kind: SymbolKind::FUNCTION,
        tags: None,
        detail,
        uri: location.uri,
        range: location.range,
        selection_range: location.range,
        data: serde_json::to_value(Data {
            functions: functions.iter().map(|id| id.0).collect(),
            name: function.name.clone(),
        })
        .ok(),
    })
}

/// `callHierarchy/incomingCalls` and `callHierarchy/outgoingCalls`.
pub struct OfItem {
    locator: Locator,
    functions: Vec<FunctionId>,
    item: CallHierarchyItem,
}

impl OfItem {
    /// Takes what is needed; `None` if the item is of a profile that is no longer shown.
    pub fn take(state: &State, item: CallHierarchyItem) -> Option<Self> {
        let locator = Locator::take(state)?;
        let model = &locator.shown().kept.loaded.model;
        let data: Data = serde_json::from_value(item.data.clone()?).ok()?;
        let known = |id: &u32| model.functions().get(*id as usize).is_some_and(|function| function.name == data.name);
        let functions = if data.functions.first().is_some_and(known) {
            let count = model.functions().len();
            data.functions.iter().filter(|id| (**id as usize) < count).map(|id| FunctionId(*id)).collect()
        } else {
            let named = (0..).map(FunctionId).zip(model.functions()).find(|(_, function)| function.name == data.name);
            group_of(locator.shown(), named?.0)
        };
        Some(OfItem { locator, functions, item })
    }

    /// Who called it.
    pub fn incoming(&self) -> Vec<CallHierarchyIncomingCall> {
        let calls = self.calls().callers;
        let items = self.parties(&calls, &self.item.name);
        items.map(|from| CallHierarchyIncomingCall { from_ranges: vec![from.selection_range], from }).collect()
    }

    /// Whom it called.
    pub fn outgoing(&self) -> Vec<CallHierarchyOutgoingCall> {
        let calls = self.calls().callees;
        let items = self.parties(&calls, &self.item.name);
        items.map(|to| CallHierarchyOutgoingCall { to, from_ranges: vec![self.item.selection_range] }).collect()
    }

    fn calls(&self) -> Calls {
        self.locator.shown().annotations.calls_of_functions(&self.functions)
    }

    /// The other ends of calls as items. What has no place in a file here stands at the place of this item.
    fn parties<'a>(&'a self, calls: &'a [Call], of: &'a str) -> impl Iterator<Item = CallHierarchyItem> + 'a {
        let shown = self.locator.shown();
        let view = self.functions.first().and_then(|id| {
            let function = shown.kept.loaded.model.function(*id);
            shown.annotations.file(function.file?)?.function(function.line?)
        });
        let whole = view.map(|view| view.inclusive.unwrap_or(view.exclusive).weight);
        calls.iter().map(move |call| {
            let mut detail = format!("{} · {}", share(call.cost.percent), samples(call.cost.samples));
            let part = whole.and_then(|whole| heatline_profile::Percent::of(call.cost.weight, whole));
            if let Some(part) = part {
                detail += &format!(" · {part} of {of}");
            }
            let functions = match call.party {
                Party::Function(id) => group_of(shown, id),
                Party::Unnamed(_) => Vec::new(),
            };
            item(&self.locator, &functions, Some(detail.clone())).unwrap_or_else(|| CallHierarchyItem {
                name: shown.annotations.party_name(call.party),
                kind: SymbolKind::FUNCTION,
                detail: Some(detail),
                data: serde_json::to_value(Data {
                    functions: functions.iter().map(|id| id.0).collect(),
                    name: shown.annotations.party_name(call.party),
                })
                .ok(),
                ..self.item.clone()
            })
        })
    }
}

fn share(percent: Option<heatline_profile::Percent>) -> String {
    percent.map_or_else(String::new, |percent| percent.to_string())
}

/// The command `heatline.server.calls`.
pub struct LineCalls {
    locator: Option<Locator>,
    /// Whether it was asked for one line, not a selection of several.
    one: bool,
    lines: Vec<Line>,
}

impl LineCalls {
    /// Takes what is needed of the lines as they are now.
    pub fn take(state: &State, uri: &Uri, now: RangeInclusive<u32>) -> Self {
        let costed = state.costed(uri);
        let one = now.start() == now.end();
        let lines = costed.iter().flat_map(|costed| {
            let lines = costed.document.lines(*now.start(), *now.end());
            lines.map(|(_, line, _)| Line { file: costed.file, line }).collect::<Vec<_>>()
        });
        LineCalls { one, lines: lines.collect(), locator: Locator::take(state) }
    }

    /// Callers and callees: of the functions declared on the line if it is one, else of the lines.
    pub fn answer(&self) -> Value {
        let Some(locator) = &self.locator else { return json!({ "callers": [], "callees": [] }) };
        let annotations = &locator.shown().annotations;
        let mut declaring = self.lines.iter().filter(|_| self.one);
        let declared = declaring.find_map(|line| annotations.file(line.file)?.function(line.line));
        let calls = match (declared, self.lines.first(), self.lines.last()) {
            (Some(view), ..) => annotations.calls_of_functions(&view.functions),
            (None, Some(first), Some(last)) => annotations.calls_of_lines(first.file, first.line..=last.line),
            _ => Calls::default(),
        };
        let rows = |calls: &[Call]| calls.iter().map(|call| row(locator, call)).collect::<Vec<_>>();
        json!({ "callers": rows(&calls.callers), "callees": rows(&calls.callees) })
    }
}

#[derive(Serialize)]
struct Row {
    name: String,
    module: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<Location>,
    cost: CostJson,
    /// The cost in words.
    text: String,
}

fn row(locator: &Locator, call: &Call) -> Row {
    let shown = locator.shown();
    let model = &shown.kept.loaded.model;
    let (module, location) = match call.party {
        Party::Function(id) => {
            let function = model.function(id);
            let place = function.file.zip(function.line);
            (function.module, place.and_then(|(file, line)| locator.line(file, line).location))
        }
        Party::Unnamed(module) => (module, None),
    };
    Row {
        name: shown.annotations.party_name(call.party),
        module: model.profile().module(module).base_name().to_owned(),
        location,
        cost: (&call.cost).into(),
        text: text::share(&call.cost),
    }
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
