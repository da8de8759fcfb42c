//! `callHierarchy/incomingCalls` and `callHierarchy/outgoingCalls`: the measured calls of a function, each with its
//! cost.

use super::locate::Locator;
use crate::lsp::shown::Shown;
use crate::lsp::state::State;
use heatline_annotate::text;
use heatline_annotate::{Call, CallBasis, Calls, FunctionId, Party};
use heatline_profile::Percent;
use serde::{Deserialize, Serialize};
use tower_lsp::ls_types::{CallHierarchyIncomingCall, CallHierarchyItem, CallHierarchyOutgoingCall, SymbolKind};

/// What was asked, independent of later changes.
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
        let known = |id: &u32| model.functions().get(*id as usize).is_some_and(|function| *function.name == *data.name);
        let functions = if data.functions.first().is_some_and(known) {
            let count = model.functions().len();
            data.functions.iter().filter(|id| (**id as usize) < count).map(|id| FunctionId(*id)).collect()
        } else {
            let named = (0..).map(FunctionId).zip(model.functions()).find(|(_, function)| *function.name == *data.name);
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
        let basis = shown.annotations.table().call_basis();
        calls.iter().map(move |call| {
            let mut parts = vec![text::call(&call.cost, basis)];
            // With few samples their number is all there is to say.
            if (call.cost.measured || call.cost.samples >= text::FEWEST_SAMPLES) && basis != Some(CallBasis::Branches) {
                parts.extend(text::sampled(&call.cost));
                let part = whole.and_then(|whole| Percent::of(call.cost.weight, whole));
                parts.extend(part.map(|part| format!("{part} of {of}")));
            }
            let detail = parts.join(" · ");
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

/// What an item carries back to us.
#[derive(Debug, Serialize, Deserialize)]
struct Data {
    functions: Vec<u32>,
    name: String,
}

/// A function as an item, by default with its costs as the detail; one without a place in a file here has none.
pub fn item(locator: &Locator, functions: &[FunctionId], detail: Option<String>) -> Option<CallHierarchyItem> {
    let shown = locator.shown();
    let model = &shown.kept.loaded.model;
    let function = model.function(*functions.first()?);
    let location = function.file.zip(function.line).and_then(|(file, line)| locator.line(file, line).location)?;
    let module = model.profile().module(function.module).base_name();
    let view = shown.annotations.file(function.file?).and_then(|file| file.function(function.line?));
    let detail = detail.or_else(|| Some(format!("{} · {module}", text::lens(view?, text::delta))));
    Some(CallHierarchyItem {
        name: function.name.to_string(),
        kind: SymbolKind::FUNCTION,
        tags: None,
        detail,
        uri: location.uri,
        range: location.range,
        selection_range: location.range,
        data: serde_json::to_value(Data {
            functions: functions.iter().map(|id| id.0).collect(),
            name: function.name.to_string(),
        })
        .ok(),
    })
}

/// A function with its clones and instances.
pub fn group_of(shown: &Shown, id: FunctionId) -> Vec<FunctionId> {
    let function = shown.kept.loaded.model.function(id);
    let view = function.file.zip(function.line).and_then(|(file, line)| shown.annotations.file(file)?.function(line));
    view.map_or_else(|| vec![id], |view| view.functions.clone())
}
