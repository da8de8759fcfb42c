//! From any profile to a pprof file.

use super::gzip;
use super::wire::Message;
use heatline_profile::{
    AddressSpace, EventId, Identity, Module, ModuleAddress, ModuleId, ModuleKind, Problems, Profile, RecordedFileId,
    RecordedFrame, RecordedFunctionId, SampleRow, Sampling, StackCut, StackId, Symbolization, Unit,
};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::io;

/// Modules are laid out at multiples of this.
const PAGE: u64 = 4096;

/// All samples together have no more locations than this, since each is written with all its callers.
const MOST_LOCATIONS: u64 = 1 << 26;

/// All samples together have no more values than this, since each is written with those of all events.
const MOST_VALUES: usize = 1 << 26;

/// The largest value there can be.
const LARGEST_VALUE: u64 = i64::MAX as u64;

/// The first module lies there: below, nothing is ever mapped.
const FIRST_PAGE: u64 = 1 << 22;

/// What the pprof format can hold of a profile and of what its addresses were resolved to, packed with gzip: for each
/// event its weight and, where that is something else, the number of samples; stacks with inlined frames; process,
/// thread and its name as labels. SPE statistics, branches and problems have no place in it; nor has what
/// [`left_out`] tells of.
///
/// # Errors
/// If packing fails, which needs no more than memory.
pub fn write(profile: &Profile, symbolization: &Symbolization) -> io::Result<Vec<u8>> {
    let mut export = Export {
        profile,
        symbolization,
        strings: Strings::default(),
        columns: columns(profile).0,
        deepest: cut(profile).map_or(usize::MAX, |cut| usize::try_from(cut.depth).unwrap_or(usize::MAX)),
        bases: bases(profile),
        locations: FxHashMap::default(),
        of_node: vec![0; profile.stacks.len()],
        functions: FxHashMap::default(),
        out: Message::default(),
    };
    export.strings.of("");
    export.types();
    export.samples();
    export.mappings();
    export.locations();
    export.functions();
    export.rest();
    gzip::pack(&export.out.0)
}

/// What [`write()`] leaves out of a profile that is larger than the format can hold.
pub fn left_out(profile: &Profile) -> Problems {
    let mut problems = Problems::new();
    if let Some(cut) = cut(profile) {
        let (kind, count, message) = cut.problem();
        problems.add(kind, count, None, message);
    }
    let missing = columns(profile).1;
    if missing > 0 {
        let message = "the last events were left out: there are too many samples for that many";
        problems.add("too-many-types", missing as u64, None, message);
    }
    let is_cut = |row: &&SampleRow| row.tally.weight.0.max(row.tally.samples) > LARGEST_VALUE;
    let cut_values = profile.rows.iter().filter(is_cut).count() as u64;
    if cut_values > 0 {
        problems.add("sum-cut-off", cut_values, None, format!("values above {LARGEST_VALUE} are cut off there"));
    }
    problems
}

fn cut(profile: &Profile) -> Option<StackCut> {
    profile.stacks.cut(profile.rows.iter().map(|row| row.stack), MOST_LOCATIONS, |_| 1)
}

/// What a line belongs to; a module where no function is known.
type Named = (Option<RecordedFunctionId>, Option<RecordedFileId>, Option<ModuleId>);

/// A column of values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Weight(EventId),
    Samples(EventId),
}

#[derive(Default)]
struct Strings {
    numbers: HashMap<String, u64>,
    texts: Vec<String>,
}

impl Strings {
    fn of(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.texts.len() as u64;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

struct Export<'a> {
    profile: &'a Profile,
    symbolization: &'a Symbolization,
    strings: Strings,
    columns: Vec<Column>,
    /// More frames of a stack are not written.
    deepest: usize,
    bases: Vec<u64>,
    /// The addresses that samples have, each with its number counted from 1.
    locations: FxHashMap<(ModuleId, ModuleAddress), u64>,
    /// The location of each node of the tree of stacks, 0 before it was asked for.
    of_node: Vec<u64>,
    /// The functions of lines, each with its number counted from 1. A line has no file but that of its function, so a
    /// function is there once for each file that it has lines in.
    functions: FxHashMap<Named, u64>,
    out: Message,
}

/// The weight of each event that has samples; before it the number of samples, unless each weighs 1. And how many of
/// these do not fit.
fn columns(profile: &Profile) -> (Vec<Column>, usize) {
    let mut is_weighted = vec![false; profile.events.len()];
    for row in &profile.rows {
        is_weighted[row.event.0 as usize] |= row.tally.samples != row.tally.weight.0;
    }
    let mut columns = Vec::new();
    for (event, total) in (0..).map(EventId).zip(profile.totals()) {
        if total.samples == 0 && profile.events.len() > 1 {
            continue;
        }
        if is_weighted[event.0 as usize] {
            columns.push(Column::Samples(event));
        }
        columns.push(Column::Weight(event));
    }
    let room = (MOST_VALUES / profile.rows.len().max(1)).max(2);
    let missing = columns.len().saturating_sub(room);
    columns.truncate(room);
    (columns, missing)
}

/// Where each module is laid out: side by side where addresses are those of a file, at 0 where they are of the process.
fn bases(profile: &Profile) -> Vec<u64> {
    let mut ends = vec![0u64; profile.modules.len()];
    for node in profile.stacks.nodes() {
        let end = &mut ends[node.module.0 as usize];
        *end = (*end).max(node.address.lookup().0.saturating_add(1));
    }
    let mut next = FIRST_PAGE;
    let mut place = |(module, end): (&Module, u64)| {
        let above = next.checked_add(end).and_then(|end| end.checked_next_multiple_of(PAGE));
        match above {
            Some(above) if module.kind == ModuleKind::Binary && module.space != AddressSpace::Avma => {
                std::mem::replace(&mut next, above.saturating_add(PAGE))
            }
            _ => 0,
        }
    };
    profile.modules.iter().zip(ends).map(&mut place).collect()
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::Cycles => "cycles",
        Unit::Instructions => "instructions",
        _ => "count",
    }
}

impl Export<'_> {
    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message.number(1, self.strings.of(name));
        message.number(2, self.strings.of(unit));
        message
    }

    fn types(&mut self) {
        let one_event = self.columns.iter().filter(|column| matches!(column, Column::Weight(_))).count() == 1;
        for column in self.columns.clone() {
            let message = match column {
                Column::Weight(id) => {
                    self.value_type(self.profile.metric_id(id), unit_name(self.profile.event(id).unit))
                }
                Column::Samples(_) if one_event => self.value_type("samples", "count"),
                Column::Samples(id) => {
                    self.value_type(&format!("{}{}", super::SAMPLES_OF, self.profile.metric_id(id)), "count")
                }
            };
            self.out.message(1, &message);
        }
    }

    fn samples(&mut self) {
        let profile = self.profile;
        let (pid, tid, comm) = (self.strings.of("pid"), self.strings.of("tid"), self.strings.of("comm"));
        let mut threads = Vec::with_capacity(profile.threads.len());
        for thread in &profile.threads {
            let mut labels = Message::default();
            for (key, number) in [(pid, thread.pid), (tid, thread.tid)] {
                let mut label = Message::default();
                label.number(1, key);
                label.number(3, i64::from(number) as u64);
                labels.message(3, &label);
            }
            if !thread.comm.is_empty() {
                let mut label = Message::default();
                label.number(1, comm);
                label.number(2, self.strings.of(&thread.comm));
                labels.message(3, &label);
            }
            threads.push(labels);
        }
        for row in &profile.rows {
            let mut sample = Message::default();
            let stack = self.location_ids(row.stack);
            sample.packed(1, stack);
            let value = |column: &Column| match *column {
                Column::Weight(event) if event == row.event => row.tally.weight.0.min(LARGEST_VALUE),
                Column::Samples(event) if event == row.event => row.tally.samples.min(LARGEST_VALUE),
                _ => 0,
            };
            sample.packed(2, self.columns.iter().map(value));
            if let Some(labels) = row.thread.and_then(|thread| threads.get(thread.0 as usize)) {
                sample.0.extend_from_slice(&labels.0);
            }
            self.out.message(2, &sample);
        }
    }

    /// The locations of a stack, innermost first.
    fn location_ids(&mut self, stack: StackId) -> Vec<u64> {
        let (locations, of_node) = (&mut self.locations, &mut self.of_node);
        let mut ids = Vec::new();
        let mut next = Some(stack);
        while let Some(id) = next.filter(|_| ids.len() < self.deepest) {
            let node = self.profile.stacks.node(id);
            let known = &mut of_node[id.0 as usize];
            if *known == 0 {
                let new = locations.len() as u64 + 1;
                *known = *locations.entry((node.module, node.address.lookup())).or_insert(new);
            }
            ids.push(*known);
            next = node.parent;
        }
        ids
    }

    fn mappings(&mut self) {
        let used = self.used_modules();
        let mut modules: Vec<(ModuleId, &Module)> = (0..).map(ModuleId).zip(&self.profile.modules).collect();
        let program = self.program();
        modules.sort_by_key(|&(id, _)| Some(id) != program);
        for (id, module) in modules {
            let Some(&end) = used.get(&id) else { continue };
            let frames = self.symbolization.module(id);
            let has = |what: fn(&RecordedFrame) -> bool| {
                let chains =
                    |frames| (0..heatline_profile::ModuleFrames::chain_count(frames) as u32).map(|n| frames.chain(n));
                u64::from(frames.is_some_and(|frames| chains(frames).flatten().any(what)))
            };
            let mut message = Message::default();
            let base = self.bases[id.0 as usize];
            message.number(1, u64::from(id.0) + 1);
            message.number(2, base);
            message.number(3, base.saturating_add(end).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX));
            message.number(5, self.strings.of(&module.path));
            if let Some(Identity::BuildId(build)) = &module.identity {
                message.number(6, self.strings.of(&build.to_string()));
            }
            message.number(7, has(|frame| frame.function.is_some()));
            message.number(8, has(|frame| frame.file.is_some()));
            message.number(9, has(|frame| frame.line.is_some()));
            message.number(10, has(|frame| frame.inlined));
            self.out.message(3, &message);
        }
    }

    /// The module that viewers name the profile after, which is the first: the program that cost most, else the library.
    fn program(&self) -> Option<ModuleId> {
        let mut weights = vec![0u64; self.profile.modules.len()];
        for row in &self.profile.rows {
            let weight = &mut weights[self.profile.stacks.node(row.stack).module.0 as usize];
            *weight = weight.saturating_add(row.tally.samples);
        }
        let modules = (0..).map(ModuleId).zip(&self.profile.modules).zip(weights);
        let binaries = modules.filter(|((_, module), _)| module.kind == ModuleKind::Binary);
        let is_program = |module: &Module| !module.base_name().contains(".so") && !module.base_name().ends_with(".dll");
        let best = binaries.max_by_key(|((id, module), weight)| (is_program(module), *weight, std::cmp::Reverse(*id)));
        best.map(|((id, _), _)| id)
    }

    /// The modules that samples lie in, each with the end of its code as far as it was sampled.
    fn used_modules(&self) -> FxHashMap<ModuleId, u64> {
        let mut used = FxHashMap::default();
        for &(module, address) in self.locations.keys() {
            let end = used.entry(module).or_insert(0u64);
            *end = (*end).max(address.0.saturating_add(1));
        }
        used
    }

    fn locations(&mut self) {
        let mut locations: Vec<_> = self.locations.iter().map(|(&place, &id)| (id, place)).collect();
        locations.sort_unstable();
        for (id, (module, address)) in locations {
            let mut message = Message::default();
            message.number(1, id);
            message.number(2, u64::from(module.0) + 1);
            message.number(3, self.bases[module.0 as usize].saturating_add(address.0));
            let frames = self.symbolization.module(module);
            let chain = frames.and_then(|frames| Some(frames.chain(frames.find(address)?))).unwrap_or_default();
            for frame in chain {
                let next = self.functions.len() as u64 + 1;
                let nameless_of = Some(module).filter(|_| frame.function.is_none());
                let function = *self.functions.entry((frame.function, frame.file, nameless_of)).or_insert(next);
                let mut line = Message::default();
                line.number(1, function);
                line.number(2, frame.line.map_or(0, |line| line.get().into()));
                message.message(4, &line);
            }
            self.out.message(4, &message);
        }
    }

    fn functions(&mut self) {
        let mut functions: Vec<_> = self.functions.iter().map(|(&named, &id)| (id, named)).collect();
        functions.sort_unstable();
        for (id, (function, file, nameless_of)) in functions {
            let symbolization = self.symbolization;
            let function = function.and_then(|id| symbolization.functions.get(id.0 as usize));
            let module = nameless_of.map(|module| self.profile.module(module).base_name().trim_matches(['[', ']']));
            let name = function.map_or_else(|| format!("[{}]", module.unwrap_or("unknown")), |f| f.name.to_string());
            let linkage_name = function.and_then(|function| function.linkage_name.as_deref());
            let declared = function.and_then(|function| function.file);
            let path = file.or(declared).and_then(|id| symbolization.files.get(id.0 as usize)).map(|file| &file.path);
            let line = function.filter(|_| file.is_none() || file == declared).and_then(|function| function.line);
            let mut message = Message::default();
            message.number(1, id);
            message.number(2, self.strings.of(&name));
            message.number(3, self.strings.of(linkage_name.unwrap_or(&name)));
            message.number(4, path.map_or(0, |path| self.strings.of(path)));
            message.number(5, line.map_or(0, |line| line.get().into()));
            self.out.message(5, &message);
        }
    }

    fn rest(&mut self) {
        self.out.number(10, self.profile.recording.duration_ns.unwrap_or(0).min(i64::MAX as u64));
        if let Some(event) = self.profile.default_event() {
            let name = self.profile.metric_id(event);
            if let Some(Sampling::Period(period)) = self.profile.event(event).sampling {
                let kind = self.value_type(name, unit_name(self.profile.event(event).unit));
                self.out.message(11, &kind);
                self.out.number(12, period.min(i64::MAX as u64));
            }
            let name = self.strings.of(name);
            self.out.number(14, name);
        }
        for text in &self.strings.texts {
            self.out.bytes(6, text.as_bytes());
        }
    }
}
