//! The processed format of the Firefox Profiler, version 57: later versions of the viewer bring it up to date.
//!
//! Samples were added up by stack while they were read, so their times are made up: one after the other, each as long
//! as its weight.

use super::frames::{Frames, Place};
use anyhow::Context;
use heatline_profile::{
    EventId, Identity, Module, ModuleId, ModuleKind, RecordedFrame, SampleRow, StackId, Thread, ThreadId, Unit,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;

/// The version of the format.
const VERSION: u32 = 57;

/// The version of the format that Firefox itself writes; the viewer wants one and looks at the other.
const RECORDED_VERSION: u32 = 24;

/// The kind of a resource that is a library.
const LIBRARY: u32 = 1;

/// More frames of stacks than this are not written: the viewer could not show them.
const MOST_FRAMES: usize = 1 << 20;

/// Larger numbers are not exact in the viewer's language.
const LARGEST_EXACT: u64 = 1 << 53;

/// Positions in the list of categories.
const OTHER: u32 = 0;
const USER: u32 = 1;
const KERNEL: u32 = 2;

/// The document with the samples of one event.
pub fn write(frames: &Frames, event: EventId, path: &Path) -> anyhow::Result<Vec<u8>> {
    let profile = &frames.profile;
    let mut by_thread: Vec<(Option<ThreadId>, Vec<&SampleRow>)> = Vec::new();
    let mut known: HashMap<Option<ThreadId>, usize> = HashMap::new();
    for row in profile.rows.iter().filter(|row| row.event == event && row.tally.weight.0 > 0) {
        let at = *known.entry(row.thread).or_insert(by_thread.len());
        if at == by_thread.len() {
            by_thread.push((row.thread, Vec::new()));
        }
        by_thread[at].1.push(row);
    }
    by_thread.sort_by_key(|(thread, _)| *thread);
    let mut strings = Strings::default();
    let unit = profile.event(event).unit;
    let mut room = MOST_FRAMES;
    let mut threads: Vec<Value> = Vec::new();
    for (id, rows) in by_thread {
        let mut tables = Tables::new(frames, room);
        let samples = tables.samples(&rows, unit, &mut strings)?;
        room = tables.room;
        threads.push(tables.thread(id.map(|id| profile.thread(id)), samples));
    }
    let document = json!({
        "meta": meta(profile.metric_id(event), path),
        "libs": profile.modules.iter().map(|module| library(module, profile.recording.arch.as_deref())).collect::<Vec<_>>(),
        "pages": [],
        "counters": [],
        "profilerOverhead": [],
        "shared": { "stringArray": strings.list },
        "threads": threads,
    });
    Ok(serde_json::to_vec(&document)?)
}

/// Whether a file that begins like this was written by [`write()`]: keys are in the order of the alphabet.
pub fn is_begun_by(head: &[u8]) -> bool {
    head.starts_with(br#"{"counters":[],"libs":["#)
}

fn meta(metric: &str, path: &Path) -> Value {
    let category = |name: &str, color: &str| json!({ "name": name, "color": color, "subcategories": ["Other"] });
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    json!({
        "version": RECORDED_VERSION,
        "preprocessedProfileVersion": VERSION,
        "product": format!("{name} ({metric})"),
        "importedFrom": "Heatline",
        "startTime": 0,
        "interval": 1,
        "processType": 0,
        "symbolicated": true,
        "debug": false,
        "categories": [category("Other", "grey"), category("User", "yellow"), category("Kernel", "orange")],
        "markerSchema": [],
        "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" },
        "usesOnlyOneStackType": true,
        "sourceCodeIsNotOnSearchfox": true,
        "extensions": { "length": 0, "baseURL": [], "id": [], "name": [] },
    })
}

fn library(module: &Module, arch: Option<&str>) -> Value {
    let (breakpad_id, code_id) = match &module.identity {
        Some(Identity::BuildId(id)) => (breakpad_id(&id.0), Some(id.to_string())),
        Some(Identity::Pdb(id)) => (id.store_key(), None),
        None => (String::new(), None),
    };
    let name = module.base_name();
    json!({
        "arch": arch.unwrap_or(""), "name": name, "path": module.path, "debugName": name, "debugPath": module.path,
        "breakpadId": breakpad_id, "codeId": code_id,
    })
}

/// A build id cut to a GUID, its first three fields read as little-endian numbers, followed by an age of 0.
fn breakpad_id(build_id: &[u8]) -> String {
    let mut guid = [0; 16];
    guid.iter_mut().zip(build_id).for_each(|(to, from)| *to = *from);
    heatline_profile::PdbId { guid, age: 0 }.store_key()
}

#[derive(Default)]
struct Strings {
    numbers: HashMap<String, usize>,
    list: Vec<String>,
}

impl Strings {
    fn of(&mut self, text: &str) -> usize {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.numbers.insert(text.to_owned(), self.list.len());
        self.list.push(text.to_owned());
        self.list.len() - 1
    }
}

/// The tables of one thread, in columns.
struct Tables<'a> {
    frames: &'a Frames,
    /// So many more frames may be written.
    room: usize,
    /// Per node of the tree of stacks: its row in the table of stacks.
    nodes: HashMap<StackId, usize>,
    stack_frame: Vec<usize>,
    stack_prefix: Vec<Option<usize>>,
    stack_ids: HashMap<(Option<usize>, usize), usize>,
    frame_ids: HashMap<(Place, u64, usize, Option<u32>), usize>,
    frame_rows: Vec<FrameRow>,
    func_ids: HashMap<Place, usize>,
    func_rows: Vec<FuncRow>,
    resources: Vec<(ModuleId, usize)>,
}

struct FrameRow {
    address: i64,
    depth: usize,
    category: u32,
    func: usize,
    line: Option<u32>,
}

struct FuncRow {
    name: usize,
    resource: usize,
    file: Option<usize>,
    line: Option<u32>,
}

impl<'a> Tables<'a> {
    fn new(frames: &'a Frames, room: usize) -> Self {
        Tables {
            frames,
            room,
            nodes: HashMap::new(),
            stack_frame: Vec::new(),
            stack_prefix: Vec::new(),
            stack_ids: HashMap::new(),
            frame_ids: HashMap::new(),
            frame_rows: Vec::new(),
            func_ids: HashMap::new(),
            func_rows: Vec::new(),
            resources: Vec::new(),
        }
    }

    fn samples(&mut self, rows: &[&SampleRow], unit: Unit, strings: &mut Strings) -> anyhow::Result<Value> {
        let (kind, scale) = match unit {
            Unit::Nanoseconds => ("tracing-ms", 1e-6),
            Unit::Bytes => ("bytes", 1.0),
            _ => ("samples", 1.0),
        };
        let stacks = rows.iter().map(|row| self.stack(row.stack, strings)).collect::<anyhow::Result<Vec<usize>>>()?;
        let number = |weight: u64| if scale == 1.0 { json!(weight) } else { json!(weight as f64 * scale) };
        let weights: Vec<Value> = rows.iter().map(|row| number(row.tally.weight.0)).collect();
        let mut time = 0.0;
        let times: Vec<f64> = rows
            .iter()
            .map(|row| {
                let start = time;
                time += if kind == "tracing-ms" { row.tally.weight.0 as f64 * scale } else { row.tally.samples as f64 };
                start
            })
            .collect();
        Ok(json!({ "length": rows.len(), "stack": stacks, "time": times, "weight": weights, "weightType": kind }))
    }

    /// The row of a stack; those of its callers are made on the way.
    fn stack(&mut self, stack: StackId, strings: &mut Strings) -> anyhow::Result<usize> {
        let mut missing = Vec::new();
        let mut next = Some(stack);
        let mut row = None;
        while let Some(id) = next {
            if let Some(&known) = self.nodes.get(&id) {
                row = Some(known);
                break;
            }
            missing.push(id);
            next = self.frames.profile.stacks.node(id).parent;
        }
        for id in missing.into_iter().rev() {
            let node = self.frames.profile.stacks.node(id);
            self.room = self.room.checked_sub(self.frames.count(&node)).with_context(|| {
                format!(
                    "the Firefox Profiler would not show the more than {MOST_FRAMES} frames of these stacks; choose threads \
                     with --comm, --pid or --tid, leave inlined calls out with --no-inline, or write another format"
                )
            })?;
            for (depth, (place, frame)) in self.frames.at(&node).into_iter().enumerate() {
                let frame = self.frame(place, node.address.lookup().0, depth, frame, strings);
                let next = self.stack_frame.len();
                let at = *self.stack_ids.entry((row, frame)).or_insert(next);
                if at == next {
                    self.stack_frame.push(frame);
                    self.stack_prefix.push(row);
                }
                row = Some(at);
            }
            self.nodes.extend(row.map(|row| (id, row)));
        }
        Ok(row.unwrap_or_default())
    }

    fn frame(
        &mut self,
        place: Place,
        address: u64,
        depth: usize,
        frame: Option<RecordedFrame>,
        strings: &mut Strings,
    ) -> usize {
        let line = frame.and_then(|frame| frame.line).map(|line| line.get());
        if let Some(&known) = self.frame_ids.get(&(place, address, depth, line)) {
            return known;
        }
        let func = self.func(place, strings);
        let (Place::Function(module, _) | Place::Unnamed(module)) = place;
        let category = match self.frames.profile.module(module).kind {
            ModuleKind::Kernel | ModuleKind::KernelModule => KERNEL,
            ModuleKind::Unmapped => OTHER,
            _ => USER,
        };
        // Where an address is none of a file, or no number of the viewer's, there is none.
        let shown = if address < LARGEST_EXACT { address as i64 } else { -1 };
        self.frame_rows.push(FrameRow { address: shown, depth, category, func, line });
        self.frame_ids.insert((place, address, depth, line), self.frame_rows.len() - 1);
        self.frame_rows.len() - 1
    }

    fn func(&mut self, place: Place, strings: &mut Strings) -> usize {
        if let Some(&known) = self.func_ids.get(&place) {
            return known;
        }
        let (Place::Function(module, _) | Place::Unnamed(module)) = place;
        let name = strings.of(&self.frames.name(place));
        let file = self.frames.file(place).map(|file| strings.of(file));
        let line = self.frames.function(place).and_then(|function| function.line).map(|line| line.get());
        let resource = self.resources.iter().position(|(known, _)| *known == module).unwrap_or_else(|| {
            let name = strings.of(self.frames.profile.module(module).base_name());
            self.resources.push((module, name));
            self.resources.len() - 1
        });
        self.func_rows.push(FuncRow { name, resource, file, line });
        self.func_ids.insert(place, self.func_rows.len() - 1);
        self.func_rows.len() - 1
    }

    fn thread(&self, thread: Option<&Thread>, samples: Value) -> Value {
        let (pid, tid) = thread.map_or((0, 0), |thread| (thread.pid, thread.tid));
        let name = thread.map_or("all samples", |thread| thread.comm.as_str());
        let no_markers = json!({
            "length": 0, "data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [],
        });
        json!({
            "processType": "default", "processStartupTime": 0, "processShutdownTime": null, "registerTime": 0,
            "unregisterTime": null, "pausedRanges": [], "name": name, "isMainThread": pid == tid,
            "processName": name, "pid": pid.to_string(), "tid": tid.to_string(), "samples": samples,
            "markers": no_markers,
            "stackTable": {
                "length": self.stack_frame.len(), "frame": self.stack_frame, "prefix": self.stack_prefix,
            },
            "frameTable": self.frame_table(),
            "funcTable": self.func_table(),
            "resourceTable": {
                "length": self.resources.len(),
                "lib": column(&self.resources, |(module, _)| json!(module.0)),
                "name": column(&self.resources, |(_, name)| json!(name)),
                "host": column(&self.resources, |_| Value::Null),
                "type": column(&self.resources, |_| json!(LIBRARY)),
            },
            "nativeSymbols": { "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [] },
        })
    }

    fn frame_table(&self) -> Value {
        let rows = &self.frame_rows;
        json!({
            "length": rows.len(),
            "address": column(rows, |row| json!(row.address)),
            "inlineDepth": column(rows, |row| json!(row.depth)),
            "category": column(rows, |row| json!(row.category)),
            "subcategory": column(rows, |_| json!(0)),
            "func": column(rows, |row| json!(row.func)),
            "nativeSymbol": column(rows, |_| Value::Null),
            "innerWindowID": column(rows, |_| json!(0)),
            "line": column(rows, |row| json!(row.line)),
            "column": column(rows, |_| Value::Null),
        })
    }

    fn func_table(&self) -> Value {
        let rows = &self.func_rows;
        json!({
            "length": rows.len(),
            "name": column(rows, |row| json!(row.name)),
            "isJS": column(rows, |_| json!(false)),
            "relevantForJS": column(rows, |_| json!(false)),
            "resource": column(rows, |row| json!(row.resource)),
            "fileName": column(rows, |row| json!(row.file)),
            "lineNumber": column(rows, |row| json!(row.line)),
            "columnNumber": column(rows, |_| Value::Null),
        })
    }
}

fn column<T>(rows: &[T], cell: impl Fn(&T) -> Value) -> Vec<Value> {
    rows.iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pair that the viewer's own tests have of `dump_syms`.
    #[test]
    fn breakpad_ids_follow_from_build_ids() {
        let id = [0x51, 0x0d, 0x0a, 0x5c, 0x19, 0xea, 0xdf, 0x80, 0x43, 0xf2, 0x03, 0xb4, 0x52, 0x5b, 0xe9, 0xbe, 0x3d];
        assert_eq!(breakpad_id(&id), "5C0A0D51EA1980DF43F203B4525BE9BE0");
    }
}
