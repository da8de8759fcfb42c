//! `heatline/adjacentHotspot`: the next hotter or colder line, or the next one in the text.

use super::locate::Locator;
use crate::lsp::state::State;
use crate::lsp::uri;
use heatline_annotate::text;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use tower_lsp::ls_types::{Location, Position, TextDocumentIdentifier};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Next,
    Previous,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Rank,
    Document,
}

/// The question.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Params {
    text_document: TextDocumentIdentifier,
    position: Position,
    direction: Direction,
    #[serde(default)]
    order: Order,
}

/// The answer.
#[derive(Debug, Serialize)]
pub struct Answer {
    location: Location,
    /// From 1, the hottest.
    rank: usize,
    of: usize,
}

/// A hotspot: the key of its document, its line now, and where it is.
struct Spot {
    document: String,
    line: u32,
    location: Location,
    rank: usize,
}

/// The neighbour of a position, or `None` where there is no hotspot at all.
pub fn answer(state: &State, params: &Params) -> Option<Answer> {
    let mut spots = hotspots(state)?;
    let of = spots.len();
    let document = uri::key(&params.text_document.uri);
    let here = (document.as_str(), params.position.line);
    let place = |spot: &Spot| (spot.document.clone(), spot.line);
    if params.order == Order::Document {
        spots.sort_by_key(place);
    }
    let at = spots.iter().position(|spot| (spot.document.as_str(), spot.line) == here);
    // Outside of every hotspot: in a document those before and behind, by rank the two ends.
    let behind = match params.order {
        Order::Rank => 0,
        Order::Document => spots.partition_point(|spot| (spot.document.as_str(), spot.line) <= here),
    };
    let chosen = match (params.direction, at) {
        (Direction::Next, Some(at)) => (at + 1) % of,
        (Direction::Next, None) => behind % of,
        (Direction::Previous, Some(at)) => (at + of - 1) % of,
        (Direction::Previous, None) => (behind + of - 1) % of,
    };
    let spot = spots.into_iter().nth(chosen)?;
    Some(Answer { location: spot.location, rank: spot.rank, of })
}

/// All lines whose exclusive cost reaches the threshold and whose file exists, hottest first; `None` without any.
fn hotspots(state: &State) -> Option<Vec<Spot>> {
    let locator = Locator::take(state)?;
    let shown = locator.shown();
    let threshold = state.settings.hints.threshold;
    let mut seen: HashSet<(String, u32)> = HashSet::new();
    let mut spots: Vec<Spot> = Vec::new();
    for &(file, line) in shown.annotations.hottest_lines() {
        let view = shown.annotations.file(file).and_then(|view| view.line(line));
        if !view.is_some_and(|view| text::reaches(&view.exclusive, None, threshold)) {
            continue;
        }
        let Some(location) = locator.line(file, line).location else { continue };
        let document = uri::key(&location.uri);
        // Lines that were joined are one place, that of the hotter.
        if seen.insert((document.clone(), location.range.start.line)) {
            let line = location.range.start.line;
            spots.push(Spot { document, line, location, rank: spots.len() + 1 });
        }
    }
    (!spots.is_empty()).then_some(spots)
}
