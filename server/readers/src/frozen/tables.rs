//! The tables of a frozen profile: everything of a [`Profile`] but the texts of its sources, in the order of its fields.

use super::codec::{Decoded, Decoder, Encoder};
use super::spe::{decode_spe, encode_spe};
use super::symbols::{decode_symbols, encode_symbols};
use heatline_profile::{
    AddressSpace, BranchArc, BuildId, CallRow, CallStats, CallTable, CodeAddress, CodePlace, Event, EventId,
    FileOffset, Identity, Module, ModuleAddress, ModuleId, ModuleKind, PdbId, Problems, Profile, ProfileKind,
    Recording, SampleRow, Sampling, StackId, StackNode, StackTable, Symbolization, Tally, Thread, ThreadId, Unit,
    Weight,
};
use std::sync::Arc;

/// Tables of more events are not read: what is shown of each is compared with all others.
const MOST_EVENTS: usize = 4096;

/// Longer identities than this are damage.
const LONGEST_BUILD_ID: usize = 256;

/// The number that a variant is written as, and back. A number that was written once keeps its meaning.
macro_rules! codes {
    ($encode:ident, $decode:ident: $type:ident { $($variant:ident = $code:literal,)* }) => {
        pub(super) fn $encode(value: $type) -> u64 {
            match value {
                $($type::$variant => $code,)*
            }
        }

        pub(super) fn $decode(code: u64) -> Option<$type> {
            match code {
                $($code => Some($type::$variant),)*
                _ => None,
            }
        }
    };
}

pub(super) use codes;

codes!(unit_code, unit: Unit {
    Nanoseconds = 0, Cycles = 1, Instructions = 2, Events = 3, Records = 4, Hits = 5, Branches = 6, Stacks = 7,
    Calls = 8, Bytes = 9,
});

codes!(kind_code, kind: ProfileKind { PerfData = 0, Spt = 1, Spe = 2, Uftrace = 3, Pprof = 4, Heatline = 5, });

codes!(module_kind_code, module_kind: ModuleKind {
    Binary = 0, Kernel = 1, KernelModule = 2, Guest = 3, Vdso = 4, Anonymous = 5, Unmapped = 6,
});

codes!(space_code, space: AddressSpace { FileOffset = 0, Rva = 1, Svma = 2, Avma = 3, FromFirstSegment = 4, });

/// All tables of a profile, and what its addresses were resolved to.
pub(super) fn encode(profile: &Profile, symbolization: &Symbolization) -> Vec<u8> {
    // Named one by one, here and below, so that a new one cannot be forgotten.
    let Profile {
        kind: _,
        events,
        modules,
        threads,
        stacks,
        rows,
        arcs,
        spe,
        calls,
        symbolization: _,
        recording,
        problems,
    } = profile;
    let mut out = Encoder::default();
    out.number(kind_code(profile.origin()));
    out.list(events, encode_event);
    out.list(modules, encode_module);
    out.list(threads, |out, thread| {
        out.signed(thread.pid.into());
        out.signed(thread.tid.into());
        out.text(&thread.comm);
    });
    encode_stacks(&mut out, stacks);
    encode_rows(&mut out, rows);
    out.list(arcs, |out, arc| {
        out.number(arc.event.0.into());
        for place in [arc.from, arc.to] {
            out.number(place.module.0.into());
            out.number(place.address.0);
        }
        out.number(arc.taken.0);
    });
    out.optional(spe.as_ref(), encode_spe);
    out.optional(calls.as_ref(), |out, calls| out.list(&calls.rows, encode_calls));
    encode_symbols(&mut out, symbolization);
    encode_recording(&mut out, recording);
    let problems: Vec<_> = problems.iter().collect();
    out.list(&problems, |out, problem| {
        out.text(problem.kind);
        out.number(problem.count);
        out.optional(problem.offset, |out, offset| out.number(offset.0));
        out.text(&problem.message);
    });
    out.0
}

/// The profile of some tables.
pub(super) fn decode(bytes: &[u8]) -> Decoded<Profile> {
    let input = &mut Decoder::new(bytes);
    let mut profile = Profile::new(ProfileKind::Heatline);
    let Some(origin) = kind(input.number()?) else { return input.damage("a format") };
    profile.events = input.list(decode_event)?;
    if profile.events.len() > MOST_EVENTS {
        return input.damage("at most 4096 events");
    }
    profile.modules = input.list(decode_module)?;
    profile.threads = input.list(|input| {
        let mut id = || -> Decoded<i32> { i32::try_from(input.signed()?).or_else(|_| input.damage("a thread id")) };
        Ok(Thread { pid: id()?, tid: id()?, comm: input.text()? })
    })?;
    profile.stacks = decode_stacks(input, profile.modules.len())?;
    profile.rows = decode_rows(input, &profile)?;
    profile.arcs = decode_arcs(input, &profile)?;
    profile.spe = input.optional(|input| decode_spe(input, &profile))?;
    profile.calls =
        input.optional(|input| Ok(CallTable { rows: input.list(|input| decode_calls(input, &profile))? }))?;
    profile.symbolization = Some(Arc::new(decode_symbols(input, profile.modules.len())?));
    profile.recording = Recording { frozen_from: Some(origin), ..decode_recording(input)? };
    profile.problems = decode_problems(input)?;
    if input.is_at_end() { Ok(profile) } else { input.damage("the end of the tables") }
}

fn encode_event(out: &mut Encoder, event: &Event) {
    let Event { name, unit, sampling, precise, has_stacks, exclusive } = event;
    out.text(name);
    out.number(unit_code(*unit));
    match *sampling {
        None => out.number(0),
        Some(Sampling::Period(period)) => {
            out.number(1);
            out.number(period);
        }
        Some(Sampling::Frequency(frequency)) => {
            out.number(2);
            out.number(frequency);
        }
    }
    [precise, has_stacks, exclusive].into_iter().for_each(|&flag| out.number(flag.into()));
}

fn decode_event(input: &mut Decoder<'_>) -> Decoded<Event> {
    let name = input.text()?;
    let Some(unit) = unit(input.number()?) else { return input.damage("a unit") };
    let sampling = match input.number()? {
        0 => None,
        1 => Some(Sampling::Period(input.number()?)),
        2 => Some(Sampling::Frequency(input.number()?)),
        _ => return input.damage("a kind of sampling"),
    };
    Ok(Event { name, unit, sampling, precise: input.flag()?, has_stacks: input.flag()?, exclusive: input.flag()? })
}

fn encode_module(out: &mut Encoder, module: &Module) {
    let Module { path, kind, identity, space } = module;
    out.text(path);
    out.number(module_kind_code(*kind));
    out.number(space_code(*space));
    match identity {
        None => out.number(0),
        Some(Identity::BuildId(id)) => {
            out.number(1);
            out.bytes(&id.0);
        }
        Some(Identity::Pdb(id)) => {
            out.number(2);
            out.bytes(&id.guid);
            out.number(id.age.into());
        }
    }
}

fn decode_module(input: &mut Decoder<'_>) -> Decoded<Module> {
    let path = input.text()?;
    let (Some(kind), Some(space)) = (module_kind(input.number()?), space(input.number()?)) else {
        return input.damage("a kind of module");
    };
    let identity = match input.number()? {
        0 => None,
        1 => Some(Identity::BuildId(BuildId(input.bytes(LONGEST_BUILD_ID)?.to_vec()))),
        2 => {
            let Ok(guid) = input.bytes(16)?.try_into() else { return input.damage("a GUID") };
            Some(Identity::Pdb(PdbId { guid, age: input.narrow("an age")? }))
        }
        _ => return input.damage("a kind of identity"),
    };
    Ok(Module { path, kind, identity, space })
}

/// A node is written as the distance to its parent (0 for none), its module and kind of address in one number, and the
/// distance of its address from that of the node before.
fn encode_stacks(out: &mut Encoder, stacks: &StackTable) {
    out.count(stacks.len());
    let mut last = 0u64;
    for (id, node) in (0u32..).zip(stacks.nodes()) {
        out.number(node.parent.map_or(0, |parent| u64::from(id - parent.0)));
        let kind = match node.address {
            CodeAddress::Ip(_) => 0,
            CodeAddress::ReturnAddress(_) => 1,
            CodeAddress::AdjustedReturnAddress(_) => 2,
        };
        out.number(u64::from(node.module.0) * 4 + kind);
        let address = node.address.recorded().0;
        out.signed(address.wrapping_sub(last) as i64);
        last = address;
    }
}

fn decode_stacks(input: &mut Decoder<'_>, modules: usize) -> Decoded<StackTable> {
    let count = input.count_of::<StackNode>()?;
    let mut nodes = Vec::with_capacity(count);
    let mut last = 0u64;
    for id in 0..count as u64 {
        let distance = input.number()?;
        let parent = match id.checked_sub(distance) {
            _ if distance == 0 => None,
            Some(parent) => Some(StackId(parent as u32)),
            None => return input.damage("a parent before its child"),
        };
        let code = input.number()?;
        if code / 4 >= modules as u64 {
            return input.damage("the number of a module");
        }
        last = last.wrapping_add(input.signed()? as u64);
        let address = ModuleAddress(last);
        let address = match code % 4 {
            0 => CodeAddress::Ip(address),
            1 => CodeAddress::ReturnAddress(address),
            2 => CodeAddress::AdjustedReturnAddress(address),
            _ => return input.damage("a kind of address"),
        };
        nodes.push(StackNode { parent, module: ModuleId((code / 4) as u32), address });
    }
    StackTable::from_nodes(nodes).map_or_else(|| input.damage("fewer stacks"), Ok)
}

/// A row is written as the distance of its stack from that of the row before, its event, its thread counted from 1,
/// samples and weight. The sum of squares follows where it is not that of samples of equal weight, which the lowest
/// bit of the event's number tells.
fn encode_rows(out: &mut Encoder, rows: &[SampleRow]) {
    out.count(rows.len());
    let mut last = 0i64;
    for row in rows {
        let stack = i64::from(row.stack.0);
        out.signed(stack - last);
        last = stack;
        let told = row.tally.squares != equal_squares(row.tally.samples, row.tally.weight);
        out.number(u64::from(row.event.0) * 2 + u64::from(told));
        out.number(row.thread.map_or(0, |thread| u64::from(thread.0) + 1));
        out.number(row.tally.samples);
        out.number(row.tally.weight.0);
        if told {
            out.float(row.tally.squares);
        }
    }
}

fn decode_rows(input: &mut Decoder<'_>, profile: &Profile) -> Decoded<Vec<SampleRow>> {
    let mut last = 0i64;
    input.list(|input| {
        last = last.wrapping_add(input.signed()?);
        let Some(stack) = u32::try_from(last).ok().filter(|&stack| (stack as usize) < profile.stacks.len()) else {
            return input.damage("the number of a stack");
        };
        let code = input.number()?;
        if code / 2 >= profile.events.len() as u64 {
            return input.damage("the number of an event");
        }
        let thread = decode_thread(input, profile)?;
        let (samples, weight) = (input.number()?, Weight(input.number()?));
        let squares = if code % 2 == 1 { input.float()? } else { equal_squares(samples, weight) };
        let event = EventId((code / 2) as u32);
        Ok(SampleRow { stack: StackId(stack), event, thread, tally: Tally { samples, weight, squares } })
    })
}

pub(super) fn decode_thread(input: &mut Decoder<'_>, profile: &Profile) -> Decoded<Option<ThreadId>> {
    Ok(input.below(profile.threads.len() + 1, "the number of a thread")?.checked_sub(1).map(ThreadId))
}

fn equal_squares(samples: u64, weight: Weight) -> f64 {
    if samples == 0 { 0.0 } else { weight.0 as f64 * weight.0 as f64 / samples as f64 }
}

fn decode_arcs(input: &mut Decoder<'_>, profile: &Profile) -> Decoded<Vec<BranchArc>> {
    input.list(|input| {
        let event = EventId(input.below(profile.events.len(), "the number of an event")?);
        let mut place = || -> Decoded<CodePlace> {
            let module = ModuleId(input.below(profile.modules.len(), "the number of a module")?);
            Ok(CodePlace { module, address: ModuleAddress(input.number()?) })
        };
        Ok(BranchArc { event, from: place()?, to: place()?, taken: Weight(input.number()?) })
    })
}

fn encode_calls(out: &mut Encoder, row: &CallRow) {
    let CallStats { calls, total_ns, shortest_ns, longest_ns } = row.stats;
    out.number(row.stack.0.into());
    out.number(row.thread.map_or(0, |thread| u64::from(thread.0) + 1));
    [calls, total_ns, shortest_ns, longest_ns].into_iter().for_each(|number| out.number(number));
}

fn decode_calls(input: &mut Decoder<'_>, profile: &Profile) -> Decoded<CallRow> {
    let stack = StackId(input.below(profile.stacks.len(), "the number of a stack")?);
    let thread = decode_thread(input, profile)?;
    let stats = CallStats {
        calls: input.number()?,
        total_ns: input.number()?,
        shortest_ns: input.number()?,
        longest_ns: input.number()?,
    };
    Ok(CallRow { stack, thread, stats })
}

fn encode_recording(out: &mut Encoder, recording: &Recording) {
    let Recording {
        duration_ns,
        arch,
        cpu,
        command_line,
        recorder,
        os_release,
        samples,
        span: _,
        frozen_from: _,
        by_frame_pointers: _,
    } = recording;
    out.optional(*duration_ns, Encoder::number);
    for text in [arch, cpu, recorder, os_release] {
        out.optional(text.as_ref(), |out, text| out.text(text));
    }
    out.list(command_line, |out, word| out.text(word));
    out.optional(*samples, Encoder::number);
}

fn decode_recording(input: &mut Decoder<'_>) -> Decoded<Recording> {
    Ok(Recording {
        duration_ns: input.optional(Decoder::number)?,
        span: None,
        arch: input.optional(Decoder::text)?,
        cpu: input.optional(Decoder::text)?,
        recorder: input.optional(Decoder::text)?,
        os_release: input.optional(Decoder::text)?,
        command_line: input.list(Decoder::text)?,
        samples: input.optional(Decoder::number)?,
        frozen_from: None,
        by_frame_pointers: false,
    })
}

fn decode_problems(input: &mut Decoder<'_>) -> Decoded<Problems> {
    let mut problems = Problems::new();
    let count = input.count()?;
    if count > Problems::MOST {
        return input.damage("fewer problems");
    }
    for _ in 0..count {
        let kind = Problems::kind(&input.text()?);
        let count = input.number()?;
        let offset = input.optional(Decoder::number)?.map(FileOffset);
        problems.add(kind, count, offset, input.text()?);
    }
    Ok(problems)
}
