//! From the messages of a pprof file to a [`Profile`].

use super::message::{Location, Mapping, Message, Sample};
use super::prune::{Fate, Pruning, pruned};
use super::{PprofError, SAMPLES_OF};
use crate::ReadError;
use heatline_profile::{
    AddressSpace, BuildId, CodeAddress, Event, EventId, Identity, Module, ModuleAddress, ModuleId, ModuleKind, Monitor,
    Problems, Profile, ProfileKind, RecordedFile, RecordedFileId, RecordedFrame, RecordedFunction, RecordedFunctionId,
    SampleFold, Sampling, StackNode, Symbolization, Tally, Thread, ThreadId, Unit, Weight,
};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::num::NonZeroU32;
use std::sync::Arc;

/// More sample types are left out: whatever is shown is added up for each.
const MOST_TYPES: usize = 256;

/// Deeper stacks lose their outermost frames.
const DEEPEST: usize = 1 << 16;

/// More nodes of the tree of stacks are not made; what would need them is left out.
const MOST_NODES: usize = 1 << 26;

/// Samples between two reports of progress.
const STRIDE: usize = 1 << 14;

/// Where samples without any frame are put.
const NO_FRAMES: &str = "[no stack]";

/// The profile of a message.
pub(super) fn profile(message: Message<'_>, monitor: &dyn Monitor) -> Result<Profile, ReadError> {
    if message.types.is_empty() {
        return Err(PprofError::NoTypes.into());
    }
    let mut reading = Reading {
        profile: Profile::new(ProfileKind::Pprof),
        columns: Vec::new(),
        symbolization: Symbolization::default(),
        file_ids: HashMap::new(),
        functions: FxHashMap::default(),
        module_ids: HashMap::new(),
        places: FxHashMap::default(),
        threads: HashMap::new(),
        problems: Problems::new(),
        message,
    };
    reading.events();
    reading.functions();
    reading.locations()?;
    reading.samples(monitor)?;
    Ok(reading.finish())
}

/// A sample type and what becomes of its values.
struct Column {
    event: EventId,
    /// Values are multiplied by it.
    scale: u64,
    /// The type that says how many samples a value stands for.
    samples: Option<usize>,
}

/// Where a location lies, and what of it stays.
#[derive(Clone, Copy)]
struct Place {
    module: ModuleId,
    address: ModuleAddress,
    fate: Fate,
}

struct Reading<'a> {
    message: Message<'a>,
    profile: Profile,
    /// By sample type; `None` for one that only counts the samples of another.
    columns: Vec<Option<Column>>,
    symbolization: Symbolization,
    file_ids: HashMap<String, RecordedFileId>,
    functions: FxHashMap<u64, RecordedFunctionId>,
    module_ids: HashMap<(String, Option<Identity>), ModuleId>,
    places: FxHashMap<u64, Place>,
    threads: HashMap<Thread, ThreadId>,
    problems: Problems,
}

impl Reading<'_> {
    fn text(&mut self, number: u64) -> String {
        match usize::try_from(number).ok().and_then(|at| self.message.strings.get(at)) {
            Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            None if number == 0 => String::new(),
            None => {
                self.problems.add("unknown-string", 1, None, "texts that the file does not hold were left out");
                String::new()
            }
        }
    }

    /// The events, the one that is shown first in front.
    fn events(&mut self) {
        let mut types = self.message.types.clone();
        if types.len() > MOST_TYPES {
            let message = format!("sample types behind the first {MOST_TYPES} were left out");
            self.problems.add("too-many-types", (types.len() - MOST_TYPES) as u64, None, message);
            types.truncate(MOST_TYPES);
        }
        let names: Vec<String> = types.iter().map(|of| self.text(of.name)).collect();
        let period = self.message.period_type.map(|of| self.text(of.name));
        let default = Some(self.message.default_type).filter(|&name| name != 0).map(|name| self.text(name));
        let counted = |name: &str| names.iter().position(|other| other.strip_prefix(SAMPLES_OF) == Some(name));
        let is_event = |name: &String| {
            let of = name.strip_prefix(SAMPLES_OF);
            of.is_none_or(|of| !names.iter().any(|other| other == of))
        };
        let first = default.and_then(|default| names.iter().position(|name| *name == default));
        let first = first.or_else(|| names.iter().rposition(is_event)).unwrap_or(0);
        let mut order: Vec<usize> = (0..types.len()).filter(|&at| is_event(&names[at])).collect();
        order.sort_by_key(|&at| at != first);
        self.columns.extend(types.iter().map(|_| None));
        let samples = names.iter().position(|name| name == "samples");
        for at in order {
            let unit_text = self.text(types[at].unit);
            let (unit, scale) = unit_of(&unit_text, &names[at]);
            let mut event = Event::new(names[at].clone(), unit);
            let sampled = period.as_ref().filter(|name| **name == names[at]);
            event.sampling = sampled.and_then(|_| self.sampling(scale));
            let id = EventId(self.profile.events.len() as u32);
            self.profile.events.push(event);
            let samples = counted(&names[at]).or(samples);
            self.columns[at] = Some(Column { event: id, scale, samples });
        }
    }

    fn sampling(&self, scale: u64) -> Option<Sampling> {
        let period = u64::try_from(self.message.period).ok().filter(|&period| period > 0)?;
        Some(Sampling::Period(period.saturating_mul(scale)))
    }

    fn file(&mut self, path: String) -> Option<RecordedFileId> {
        if path.is_empty() {
            return None;
        }
        let files = &mut self.symbolization.files;
        let id = self.file_ids.entry(path).or_insert_with_key(|path| {
            files.push(RecordedFile { path: path.clone(), checksum: None, text: None });
            RecordedFileId(files.len() as u32 - 1)
        });
        Some(*id)
    }

    fn functions(&mut self) {
        for function in std::mem::take(&mut self.message.functions) {
            let (name, system_name) = (self.text(function.name), self.text(function.system_name));
            let path = self.text(function.file);
            let name = if name.is_empty() { system_name.clone() } else { name };
            let linkage_name = Some(system_name).filter(|system| !system.is_empty() && *system != name);
            let file = self.file(path);
            let id = RecordedFunctionId(self.symbolization.functions.len() as u32);
            let line = line_number(function.line);
            let (name, linkage_name) = (name.into(), linkage_name.map(Into::into));
            self.symbolization.functions.push(RecordedFunction { name, linkage_name, file, line });
            self.functions.insert(function.id, id);
        }
    }

    fn locations(&mut self) -> Result<(), PprofError> {
        let (drop, keep) = (self.text(self.message.drop_frames), self.text(self.message.keep_frames));
        let pruning = Pruning::new(&drop, &keep)?;
        let mappings = std::mem::take(&mut self.message.mappings);
        let modules: FxHashMap<u64, (ModuleId, &Mapping)> =
            mappings.iter().map(|mapping| (mapping.id, (self.module(mapping), mapping))).collect();
        let mut known: FxHashMap<(ModuleId, ModuleAddress), Vec<RecordedFrame>> = FxHashMap::default();
        let mut free = u64::MAX;
        for location in std::mem::take(&mut self.message.locations) {
            let mapped = modules.get(&location.mapping).copied();
            if mapped.is_none() && location.mapping != 0 {
                self.problems.add("unknown-mapping", 1, None, "locations name mappings that the file does not hold");
            }
            let (module, mut address) = match mapped {
                Some((module, mapping)) => (module, self.address_in(module, mapping, location.address)),
                None => (self.stray_module("[unknown]"), ModuleAddress(location.address)),
            };
            let mut frames = self.frames(&location);
            let fate = self.fate(pruning.as_ref(), &mut frames);
            if !frames.is_empty() {
                // Interpreted code has no addresses; its locations get some that nothing else has.
                while known.get(&(module, address)).is_some_and(|other| *other != frames) {
                    address = ModuleAddress(free);
                    free -= 1;
                }
                if let Entry::Vacant(place) = known.entry((module, address)) {
                    let frames_of = self.symbolization.module_mut(module);
                    let chain = frames_of.add_chain(frames.iter().copied());
                    frames_of.add_address(address, chain);
                    place.insert(frames);
                }
            }
            self.places.insert(location.id, Place { module, address, fate });
        }
        Ok(())
    }

    /// What becomes of a location; the frames that go are taken away.
    fn fate(&self, pruning: Option<&Pruning>, frames: &mut Vec<RecordedFrame>) -> Fate {
        let Some(pruning) = pruning else { return Fate::Kept };
        let functions = &self.symbolization.functions;
        let name = |frame: &RecordedFrame| frame.function.map_or("", |id| &*functions[id.0 as usize].name);
        let fate = pruning.fate(frames.iter().map(name));
        if let Fate::Cut(from) = fate {
            frames.drain(..from);
        }
        fate
    }

    fn frames(&mut self, location: &Location) -> Vec<RecordedFrame> {
        let mut frames = Vec::with_capacity(location.lines.len());
        for (at, &(function, line)) in location.lines.iter().enumerate() {
            let function = self.functions.get(&function).copied();
            if function.is_none() {
                self.problems.add("unknown-function", 1, None, "lines name functions that the file does not hold");
            }
            let file = function.and_then(|id| self.symbolization.functions[id.0 as usize].file);
            let inlined = at + 1 < location.lines.len();
            frames.push(RecordedFrame { function, file, line: line_number(line), inlined });
        }
        frames
    }

    /// The module of a mapping; the segments of one image are one module.
    fn module(&mut self, mapping: &Mapping) -> ModuleId {
        let path = self.text(mapping.file);
        let build_id = self.text(mapping.build_id);
        let identity = build_id_of(&build_id).map(Identity::BuildId);
        if path.is_empty() && identity.is_none() {
            return self.stray_module("[unknown]");
        }
        let path = if path.is_empty() { "[unknown]".to_owned() } else { path };
        let kind = kind_of(&path);
        let space = if kind == ModuleKind::Binary { AddressSpace::FileOffset } else { AddressSpace::Avma };
        self.add_module(Module { path, kind, identity, space })
    }

    fn stray_module(&mut self, name: &str) -> ModuleId {
        let (path, kind, space) = (name.to_owned(), ModuleKind::Unmapped, AddressSpace::Avma);
        self.add_module(Module { path, kind, identity: None, space })
    }

    fn add_module(&mut self, module: Module) -> ModuleId {
        let modules = &mut self.profile.modules;
        *self.module_ids.entry((module.path.clone(), module.identity.clone())).or_insert_with(|| {
            modules.push(module);
            ModuleId(modules.len() as u32 - 1)
        })
    }

    fn address_in(&mut self, module: ModuleId, mapping: &Mapping, address: u64) -> ModuleAddress {
        if self.profile.module(module).space == AddressSpace::Avma {
            return ModuleAddress(address);
        }
        let is_inside = address >= mapping.start && (mapping.limit == 0 || address < mapping.limit);
        if !is_inside && address != 0 {
            self.problems.add(
                "outside-mapping",
                1,
                None,
                "addresses lie outside the mapping that they are said to be in",
            );
        }
        ModuleAddress(address.wrapping_sub(mapping.start).wrapping_add(mapping.offset))
    }

    fn samples(&mut self, monitor: &dyn Monitor) -> Result<(), ReadError> {
        let all = std::mem::take(&mut self.message.samples);
        let mut fold = SampleFold::new();
        let mut sample = Sample::default();
        let mut places = Vec::new();
        let mut taken = 0u64;
        for (number, bytes) in all.iter().enumerate() {
            if number % STRIDE == 0 {
                monitor.progress(number as u64, all.len() as u64)?;
            }
            sample.parse(bytes)?;
            if !self.find_places(&sample, &mut places) {
                continue;
            }
            let stack = self.stack(&places);
            let thread = self.thread(&sample);
            let mut most = 0;
            for (at, column) in self.columns.iter().enumerate() {
                let (Some(column), Some(&value)) = (column, sample.values.get(at)) else { continue };
                let Ok(value) = u64::try_from(value) else {
                    let message = "negative values were left out: the file is a difference of two profiles";
                    self.problems.add("negative-value", 1, None, message);
                    continue;
                };
                if value == 0 {
                    continue;
                }
                let weight = Weight(value.saturating_mul(column.scale));
                let samples = column.samples.and_then(|at| u64::try_from(*sample.values.get(at)?).ok());
                let samples = samples.filter(|&samples| samples > 0).unwrap_or(1);
                most = most.max(samples);
                fold.add(stack, column.event, thread, tally(weight, samples));
            }
            taken = taken.saturating_add(most);
        }
        self.profile.rows = fold.into_rows();
        self.profile.recording.samples = Some(taken);
        Ok(())
    }

    /// The places of a sample's frames, innermost first. Says whether the sample can be used.
    fn find_places(&mut self, sample: &Sample, places: &mut Vec<Place>) -> bool {
        if sample.values.len() != self.message.types.len() {
            self.problems.add("damaged-sample", 1, None, "samples without one value for each type were left out");
            return false;
        }
        places.clear();
        places.extend(sample.locations.iter().map_while(|id| self.places.get(id)).copied());
        if places.len() < sample.locations.len() {
            let message = "samples that name locations which the file does not hold were left out";
            self.problems.add("unknown-location", 1, None, message);
            return false;
        }
        if self.profile.stacks.len() > MOST_NODES {
            self.problems.add("too-many-stacks", 1, None, "samples behind too many different stacks were left out");
            return false;
        }
        places.drain(..pruned(places.iter().map(|place| place.fate)));
        if places.len() > DEEPEST {
            places.truncate(DEEPEST);
            self.problems.add("deep-stack", 1, None, format!("stacks deeper than {DEEPEST} frames were cut"));
        }
        true
    }

    fn stack(&mut self, places: &[Place]) -> heatline_profile::StackId {
        let mut parent = None;
        for (depth, place) in places.iter().enumerate().rev() {
            let address = match depth {
                0 => CodeAddress::Ip(place.address),
                _ => CodeAddress::AdjustedReturnAddress(place.address),
            };
            parent = Some(self.profile.stacks.intern(StackNode { parent, module: place.module, address }));
        }
        parent.unwrap_or_else(|| {
            let module = self.stray_module(NO_FRAMES);
            let address = CodeAddress::Ip(ModuleAddress(0));
            self.profile.stacks.intern(StackNode { parent: None, module, address })
        })
    }

    fn thread(&mut self, sample: &Sample) -> Option<ThreadId> {
        let (mut pid, mut tid, mut comm) = (None, None, None);
        for label in &sample.labels {
            let key = usize::try_from(label.key).ok().and_then(|at| self.message.strings.get(at)).copied();
            let slot = match key {
                Some(b"pid" | b"process_id") => &mut pid,
                Some(b"tid" | b"thread_id") => &mut tid,
                Some(b"thread" | b"thread_name" | b"comm") => {
                    comm = Some(self.text(label.text));
                    continue;
                }
                _ => continue,
            };
            *slot = if label.text == 0 {
                i32::try_from(label.number).ok()
            } else {
                let text = self.text(label.text);
                text.parse().ok()
            };
        }
        if pid.is_none() && tid.is_none() && comm.is_none() {
            return None;
        }
        let thread = Thread { pid: pid.unwrap_or(-1), tid: tid.unwrap_or(-1), comm: comm.unwrap_or_default() };
        let threads = &mut self.profile.threads;
        Some(*self.threads.entry(thread).or_insert_with_key(|thread| {
            threads.push(thread.clone());
            ThreadId(threads.len() as u32 - 1)
        }))
    }

    fn finish(mut self) -> Profile {
        let has_stacks = self.profile.stacks.nodes().iter().any(|node| node.parent.is_some())
            || self.symbolization.modules.iter().any(|m| (0..m.chain_count() as u32).any(|n| m.chain(n).len() > 1));
        self.profile.events.iter_mut().for_each(|event| event.has_stacks = has_stacks);
        self.profile.stacks.seal();
        for module in &mut self.symbolization.modules {
            module.sort();
            module.reason = Some("the profile names no line for this code".into());
        }
        self.profile.symbolization = Some(Arc::new(self.symbolization));
        self.profile.recording.duration_ns = u64::try_from(self.message.duration_ns).ok().filter(|&ns| ns > 0);
        self.profile.problems = self.problems;
        self.profile
    }
}

fn tally(weight: Weight, samples: u64) -> Tally {
    Tally { samples, weight, squares: weight.0 as f64 * weight.0 as f64 / samples as f64 }
}

fn line_number(line: i64) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(line).ok()?)
}

/// The unit of a sample type, and what its values are multiplied by.
fn unit_of(unit: &str, name: &str) -> (Unit, u64) {
    match unit {
        "nanoseconds" | "nanosecond" | "ns" => (Unit::Nanoseconds, 1),
        "microseconds" | "microsecond" | "us" => (Unit::Nanoseconds, 1_000),
        "milliseconds" | "millisecond" | "ms" => (Unit::Nanoseconds, 1_000_000),
        "seconds" | "second" | "s" => (Unit::Nanoseconds, 1_000_000_000),
        "bytes" | "byte" => (Unit::Bytes, 1),
        "kilobytes" | "kb" => (Unit::Bytes, 1 << 10),
        "megabytes" | "mb" => (Unit::Bytes, 1 << 20),
        "cycles" => (Unit::Cycles, 1),
        "instructions" => (Unit::Instructions, 1),
        _ if name == "calls" => (Unit::Calls, 1),
        _ => (Unit::Events, 1),
    }
}

/// Go writes ids of its own kind there, which identify no ELF file.
fn build_id_of(text: &str) -> Option<BuildId> {
    let bytes = text.as_bytes();
    let is_hex = bytes.len() >= 8
        && bytes.len() <= 128
        && bytes.len().is_multiple_of(2)
        && bytes.iter().all(u8::is_ascii_hexdigit);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if is_hex { bytes.chunks(2).map(byte).collect::<Option<_>>().map(BuildId) } else { None }
}

fn kind_of(path: &str) -> ModuleKind {
    match path {
        "[vdso]" | "[vsyscall]" => ModuleKind::Vdso,
        "[unknown]" => ModuleKind::Unmapped,
        _ if path.starts_with("[kernel") || path.starts_with("[guest") => ModuleKind::Kernel,
        _ if path.starts_with('[') && path.ends_with(']') && path.contains(".ko") => ModuleKind::KernelModule,
        _ if path.starts_with('[') || path.starts_with("//") => ModuleKind::Anonymous,
        _ => ModuleKind::Binary,
    }
}
