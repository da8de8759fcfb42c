//! Small profiles for tests, written as text.
//!
//! Each line is a number of samples, a weight where it is not 1, and a stack, innermost frame first:
//! `6 x100: g@a.c:5 < f@a.c:12 < main@a.c:20`. Frames joined by ` ^ ` are one address, inlined from left to right.
//!
//! `7: main@a.c:22 -> f@a.c:200 after g@a.c:190` is a branch that was taken seven times, and what precedes its target.

use crate::{Addresses, Model, ModuleSymbols};
use heatline_profile::{
    AddressSpace, BranchArc, CallTable, CodeAddress, CodePlace, Event, EventId, Module, ModuleAddress, ModuleId,
    ModuleKind, Profile, ProfileKind, SampleFold, StackNode, Tally, Thread, ThreadId, Unit, Weight,
};
use heatline_symbols::{FileId, Frame, Function, FunctionId, Resolution, SourceFile};
use std::num::NonZeroU32;
use std::sync::Arc;

/// The model of a profile of one module, one event `cycles` and one thread per name in front of a line (`[name]`).
pub(crate) fn model(text: &str) -> Arc<Model> {
    make(text, false)
}

/// The model of measured intervals: each line has the nanoseconds of one, `5 wait` where its thread did not run.
pub(crate) fn timed_model(text: &str) -> Arc<Model> {
    make(text, true)
}

fn make(text: &str, timed: bool) -> Arc<Model> {
    let mut maker = Maker::default();
    let mut profile = Profile::new(if timed { ProfileKind::Uftrace } else { ProfileKind::PerfData });
    if timed {
        profile.calls = Some(CallTable::default());
        profile.events = [CallTable::ELAPSED, CallTable::APPLICATION]
            .map(|name| Event { has_stacks: true, ..Event::new(name, Unit::Nanoseconds) })
            .to_vec();
    } else {
        profile.events.push(Event { has_stacks: text.contains('<'), ..Event::new("cycles", Unit::Cycles) });
    }
    profile.modules.push(Module {
        path: "/bin/app".into(),
        kind: ModuleKind::Binary,
        identity: None,
        space: AddressSpace::Svma,
    });
    let mut fold = SampleFold::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, stack) = line.split_once(": ").expect("samples, a colon, a stack");
        let (comm, head) = head.strip_prefix('[').and_then(|h| h.split_once("] ")).unwrap_or(("app", head));
        if let Some(branch) = stack.split_once(" -> ") {
            profile.arcs.push(maker.arc(branch, head.parse().unwrap()));
            continue;
        }
        let (head, waits) = head.strip_suffix(" wait").map_or((head, false), |head| (head, true));
        let (samples, weight) = head.split_once(" x").unwrap_or((head, "1"));
        let (samples, weight) = if timed { ("1", head) } else { (samples, weight) };
        let tally = Tally::repeated(Weight(weight.parse().unwrap()), samples.parse().unwrap());
        let thread = thread(&mut profile, comm);
        let mut parent = None;
        for (depth, address) in stack.split(" < ").enumerate().collect::<Vec<_>>().into_iter().rev() {
            let address = ModuleAddress(maker.address(address));
            let address = if depth == 0 {
                CodeAddress::Ip(address)
            } else {
                CodeAddress::ReturnAddress(ModuleAddress(address.0 + 1))
            };
            parent = Some(profile.stacks.intern(StackNode { parent, module: ModuleId(0), address }));
        }
        fold.add(parent.expect("a frame"), EventId(0), Some(thread), tally);
        if timed && !waits {
            fold.add(parent.expect("a frame"), EventId(1), Some(thread), tally);
        }
    }
    profile.rows = fold.into_rows();
    let addresses = Addresses::of(&profile);
    let frames: Vec<Vec<Frame>> =
        addresses.of_module(ModuleId(0)).iter().map(|a| maker.frames[(a.0 / 16) as usize].clone()).collect();
    let resolution = Resolution::from_frames(maker.files, maker.functions, &frames);
    Arc::new(Model::build(Arc::new(profile), addresses, vec![ModuleSymbols::Resolved(resolution)]))
}

fn thread(profile: &mut Profile, comm: &str) -> ThreadId {
    let known = profile.threads.iter().position(|thread| thread.comm == comm);
    let at = known.unwrap_or_else(|| {
        let tid = profile.threads.len() as i32 + 1;
        profile.threads.push(Thread { pid: 1, tid, comm: comm.into() });
        profile.threads.len() - 1
    });
    ThreadId(at as u32)
}

#[derive(Default)]
struct Maker {
    texts: Vec<String>,
    frames: Vec<Vec<Frame>>,
    files: Vec<SourceFile>,
    functions: Vec<Function>,
}

impl Maker {
    fn address(&mut self, text: &str) -> u64 {
        let known = self.texts.iter().position(|known| known == text);
        known.map_or_else(|| self.fresh_address(text), |at| 16 * at as u64)
    }

    /// The address behind the one that was made last.
    fn fresh_address(&mut self, text: &str) -> u64 {
        let parts: Vec<&str> = text.split(" ^ ").collect();
        let frames = parts.iter().enumerate().map(|(i, part)| self.frame(part, i + 1 < parts.len())).collect();
        self.frames.push(frames);
        self.texts.push(text.into());
        16 * (self.texts.len() as u64 - 1)
    }

    fn arc(&mut self, (from, target): (&str, &str), taken: u64) -> BranchArc {
        let (to, before) = target.split_once(" after ").expect("what precedes the target");
        let from = self.address(from);
        self.fresh_address(before);
        let to = self.fresh_address(to);
        let place = |address| CodePlace { module: ModuleId(0), address: ModuleAddress(address) };
        BranchArc { event: EventId(0), from: place(from), to: place(to), taken: Weight(taken) }
    }

    /// `name@file:line`, `name` without a line, or `?` for nothing known. A function is declared on the line of
    /// hundreds below its first use: `f@a.c:212` is declared on line 200.
    fn frame(&mut self, text: &str, inlined: bool) -> Frame {
        let (name, place) = text.split_once('@').map_or((text, None), |(name, place)| (name, Some(place)));
        let place = place.map(|place| place.rsplit_once(':').expect("file:line"));
        let file = place.map(|(file, _)| self.file(file));
        let line = place.and_then(|(_, line)| line.parse().ok());
        let function = (name != "?").then(|| self.function(name, file, line));
        Frame { function, file, line, column: None, inlined }
    }

    fn file(&mut self, path: &str) -> FileId {
        let at = self.files.iter().position(|file| file.path == path).unwrap_or_else(|| {
            self.files.push(SourceFile { path: path.into(), checksum: None, text: None });
            self.files.len() - 1
        });
        FileId::new(at).unwrap()
    }

    fn function(&mut self, name: &str, file: Option<FileId>, line: Option<NonZeroU32>) -> FunctionId {
        let at = self.functions.iter().position(|function| *function.name == *name).unwrap_or_else(|| {
            let line = line.and_then(|line| NonZeroU32::new((line.get() / 100 * 100).max(1)));
            let (linkage_name, from_symbol_table) = (None, file.is_none());
            self.functions.push(Function { name: name.into(), linkage_name, file, line, from_symbol_table });
            self.functions.len() - 1
        });
        FunctionId::new(at).unwrap()
    }
}
