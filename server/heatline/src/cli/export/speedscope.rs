//! The file format of speedscope: frames once, and for each event its stacks with their weights.

use super::frames::{Frames, Place};
use heatline_profile::{EventId, Problems, StackId, Unit};
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;

/// All samples together have no more frames than this, since each is written with all its callers.
const MOST_FRAMES: u64 = 1 << 25;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: String,
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Sampled<'a>>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

/// Whether a file that begins like this was written by [`write()`].
pub fn is_begun_by(head: &[u8]) -> bool {
    let schema = head.strip_prefix(br#"{"$schema":""#);
    schema.is_some_and(|rest| rest.starts_with(SCHEMA.as_bytes()))
}

/// The document, and what was left out of it. A function is one frame, whatever its line: that is what the viewer adds
/// up by.
pub fn write(frames: &Frames, path: &Path) -> anyhow::Result<(Vec<u8>, Problems)> {
    let rows = frames.profile.rows.iter().filter(|row| row.tally.weight.0 > 0);
    let cut = frames.profile.stacks.cut(rows.map(|row| row.stack), MOST_FRAMES, |node| frames.count(node) as u64);
    let mut left_out = Problems::new();
    if let Some((kind, count, message)) = cut.map(|cut| cut.problem()) {
        left_out.add(kind, count, None, message);
    }
    let deepest = cut.map_or(usize::MAX, |cut| usize::try_from(cut.depth).unwrap_or(usize::MAX));
    let mut places = Places { frames, deepest, numbers: HashMap::new(), list: Vec::new() };
    let profiles = frames.events().into_iter().map(|event| sampled(frames, event, &mut places)).collect();
    let frame = |&place: &Place| Frame {
        name: frames.name(place),
        file: frames.file(place),
        line: frames.function(place).and_then(|function| function.line).map(|line| line.get()),
    };
    let document = Document {
        schema: SCHEMA,
        exporter: concat!("heatline ", env!("CARGO_PKG_VERSION")).into(),
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        active_profile_index: 0,
        shared: Shared { frames: places.list.iter().map(frame).collect() },
        profiles,
    };
    Ok((serde_json::to_vec(&document)?, left_out))
}

struct Places<'a> {
    frames: &'a Frames,
    /// More frames of a stack are not written.
    deepest: usize,
    numbers: HashMap<Place, u32>,
    list: Vec<Place>,
}

impl Places<'_> {
    /// The frames of a stack, outermost first.
    fn of_stack(&mut self, stack: StackId) -> Vec<u32> {
        let inwards = self.frames.profile.stacks.frames(stack);
        let all = inwards.flat_map(|node| self.frames.at(&node).into_iter().rev()).take(self.deepest);
        let number = |(place, _)| {
            *self.numbers.entry(place).or_insert_with(|| {
                self.list.push(place);
                self.list.len() as u32 - 1
            })
        };
        let mut numbers: Vec<u32> = all.map(number).collect();
        numbers.reverse();
        numbers
    }
}

fn sampled<'a>(frames: &'a Frames, event: EventId, places: &mut Places<'_>) -> Sampled<'a> {
    let profile = &frames.profile;
    let rows = || profile.rows.iter().filter(move |row| row.event == event && row.tally.weight.0 > 0);
    let weights: Vec<u64> = rows().map(|row| row.tally.weight.0).collect();
    Sampled {
        kind: "sampled",
        name: profile.metric_id(event),
        unit: match profile.event(event).unit {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
            _ => "none",
        },
        start_value: 0,
        end_value: weights.iter().fold(0, |sum, &weight| sum.saturating_add(weight)),
        samples: rows().map(|row| places.of_stack(row.stack)).collect(),
        weights,
    }
}
