//! The command `heatline.server.calls`: callers and callees of a function, a line or some lines.

use super::cost::CostJson;
use super::locate::Locator;
use crate::lsp::state::State;
use heatline_annotate::{Call, Calls, FileId, Party, text};
use serde::Serialize;
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use tower_lsp::ls_types::{Location, Uri};

/// A line that was asked about, in the text the profile was built from.
struct Line {
    file: FileId,
    line: NonZeroU32,
}

/// What was asked, independent of later changes.
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
        let mut answer = json!({ "callers": rows(&calls.callers), "callees": rows(&calls.callees) });
        if let Some(basis) = annotations.table().call_basis() {
            answer["basis"] = text::basis(basis).into();
        }
        answer
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
        text: text::call(&call.cost, shown.annotations.table().call_basis()),
    }
}
