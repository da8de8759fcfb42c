//! The names of events that come without one, as perf makes them from the attribute.

use super::attr::{Attr, event_type};

const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

const CACHES: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];

/// Per operation: the plural for accesses, the singular in front of `misses`.
const CACHE_OPERATIONS: [[&str; 2]; 3] = [["loads", "load"], ["stores", "store"], ["prefetches", "prefetch"]];

/// The full name with modifiers.
pub(crate) fn of(attr: &Attr) -> String {
    let index = (attr.config & 0xffff_ffff) as usize;
    let name = match attr.kind {
        event_type::HARDWARE => HARDWARE.get(index).map_or("unknown-hardware".to_owned(), |&n| n.to_owned()),
        event_type::SOFTWARE => SOFTWARE.get(index).map_or("unknown-software".to_owned(), |&n| n.to_owned()),
        event_type::TRACEPOINT => return format!("tracepoint {}", attr.config),
        event_type::HW_CACHE => cache(attr.config),
        event_type::RAW => format!("raw {:#x}", attr.config),
        event_type::BREAKPOINT => breakpoint(attr),
        kind => format!("type {kind} config {:#x}", attr.config),
    };
    match attr.modifiers().as_str() {
        "" => name,
        modifiers => format!("{name}:{modifiers}"),
    }
}

fn cache(config: u64) -> String {
    let part = |shift: u32| (config >> shift & 0xff) as usize;
    let (Some(cache), Some(operation)) = (CACHES.get(part(0)), CACHE_OPERATIONS.get(part(8))) else {
        return format!("unknown-cache {config:#x}");
    };
    match part(16) {
        0 => format!("{cache}-{}", operation[0]),
        _ => format!("{cache}-{}-misses", operation[1]),
    }
}

fn breakpoint(attr: &Attr) -> String {
    let letters = [(1, 'r'), (2, 'w'), (4, 'x')];
    let access: String =
        letters.iter().filter(|(bit, _)| attr.breakpoint_kind & bit != 0).map(|(_, letter)| letter).collect();
    format!("mem:{:#x}:{access}", attr.config1)
}
