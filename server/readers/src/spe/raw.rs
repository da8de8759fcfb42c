//! Raw SPE buffers, without a perf.data file around them: as WindowsPerf's `spe.data` has them.
//!
//! Nothing tells whose the records are, but the context that some processors put into them, and nothing where the
//! binaries lay, but what the caller says.

use super::collect::{Collector, Owner};
use super::decode::Decoder;
use super::options::{Item, RawModule};
use super::perf::{Adding, Printer};
use super::record::Record;
use super::source::Cpu;
use super::table::{Rows, add_events};
use crate::{ReadError, ReadOptions};
use heatline_profile::{
    AddressSpace, CodeAddress, Module, ModuleAddress, ModuleId, ModuleKind, Monitor, Profile, ProfileKind,
    SpeRecording, SpeTable, StackNode, Thread, ThreadId,
};
use rustc_hash::FxHashMap;
use std::io::Read;

/// Bytes read at once.
const CHUNK: usize = 256 << 10;

/// Reads a raw buffer.
///
/// # Errors
/// If `input` fails, or `monitor` stopped the work.
pub(crate) fn read(input: &mut dyn Read, options: &ReadOptions, monitor: &dyn Monitor) -> Result<Profile, ReadError> {
    let mut decoder = Decoder::new();
    let mut collector = Collector::new();
    let cpu = Cpu::default();
    let kind = collector.cpu_kind(cpu);
    let adding = Adding::new(&options.spe.groups);
    let mut printer = Printer::new(options.spe.sink.clone());
    printer.begin(&cpu, None);
    let mut tids = Vec::new();
    let mut tid_numbers = FxHashMap::default();
    let mut chunk = vec![0; CHUNK];
    let mut at = 0;
    loop {
        let count = input.read(&mut chunk)?;
        let Some(bytes) = chunk.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        printer.piece(at, bytes);
        decoder.push(at, bytes, |record: &Record| {
            if adding.wants(record) {
                printer.record(record, record.context().map(u32::cast_signed), None);
                let owner = *tid_numbers.entry(record.context()).or_insert_with(|| {
                    tids.push(record.context());
                    Owner(tids.len() as u32 - 1)
                });
                collector.add(owner, kind, record);
            }
        });
        at += count as u64;
        monitor.progress(at, 0)?;
    }
    decoder.finish();
    printer.end();
    let counts = decoder.counts();
    let recording = SpeRecording {
        bytes: counts.bytes,
        records: counts.records,
        dropped_records: counts.dropped_records,
        bad_bytes: counts.bad_bytes,
        ..SpeRecording::default()
    };
    printer.give(Item::Summary(super::perf::summary(&recording)));
    let mut profile = Profile::new(ProfileKind::Spe);
    super::reading::report_counts(counts, None, &mut profile.problems);
    fill(&mut profile, collector, &tids, &options.spe.modules);
    if let Some(table) = &mut profile.spe {
        let largest = table.rows.iter().filter_map(|row| row.stats.total_latency.max()).max();
        table.recording = SpeRecording { largest_latency: largest.unwrap_or(0), ..recording };
    }
    add_events(&mut profile);
    Ok(profile)
}

fn fill(profile: &mut Profile, collector: Collector, tids: &[Option<u32>], modules: &[RawModule]) {
    let mut modules = modules.to_vec();
    modules.sort_by_key(|module| module.base);
    let module = |path: &str, kind, space| Module { path: path.to_owned(), kind, identity: None, space };
    profile.modules = modules.iter().map(|m| module(&m.path, ModuleKind::Binary, AddressSpace::Rva)).collect();
    let kernel = ModuleId(modules.len() as u32);
    let unknown = ModuleId(kernel.0 + 1);
    profile.modules.push(module("[kernel.kallsyms]", ModuleKind::Kernel, AddressSpace::Avma));
    profile.modules.push(module("[unknown]", ModuleKind::Unmapped, AddressSpace::Avma));
    let locate = |pc: u64| match modules.partition_point(|module| module.base <= pc).checked_sub(1) {
        _ if pc >> 56 == 0xff => (kernel, pc),
        // An image is at most as large as an RVA can tell.
        Some(number) if pc - modules[number].base <= u64::from(u32::MAX) => {
            (ModuleId(number as u32), pc - modules[number].base)
        }
        _ => (unknown, pc),
    };
    let mut threads = FxHashMap::default();
    let mut rows = Rows::default();
    for place in collector.finish() {
        let (module, address) = locate(place.pc);
        let node = StackNode { parent: None, module, address: CodeAddress::Ip(ModuleAddress(address)) };
        let tid = tids.get(place.owner.0 as usize).copied().flatten();
        let thread = tid.map(|tid| {
            *threads.entry(tid).or_insert_with(|| {
                profile.threads.push(Thread { pid: -1, tid: tid.cast_signed(), comm: String::new() });
                ThreadId(profile.threads.len() as u32 - 1)
            })
        });
        rows.add(profile.stacks.intern(node), thread, place.stats);
    }
    profile.stacks.seal();
    profile.spe = Some(SpeTable { rows: rows.into_rows(), ..SpeTable::default() });
}
