//! Stacks that frame pointers do not lead to the end of.

use crate::model::{Model, ModelFrame};
use crate::table::CostTable;
use heatline_profile::{ModuleKind, StackNode, round};

/// A smaller share of such stacks is not spoken of: a program may have ways of its own to begin.
const LEAST_SHARE: f64 = 0.2;

/// Of fewer samples nothing is said.
const FEWEST_SAMPLES: u64 = 50;

/// Deeper stacks may have met the most that the kernel follows (`kernel.perf_event_max_stack`, 127 by default).
const DEEPEST: u32 = 100;

/// Where programs and threads begin, without leading underscores and symbol versions.
const ROOTS: [&str; 24] = [
    "start",
    "start_c",
    "start_user",
    "dl_start",
    "dl_start_user",
    "dl_sysdep_start",
    "main",
    "MAIN__",
    "main.main",
    "libc_start_main",
    "libc_start_main_impl",
    "libc_start_call_main",
    "start_thread",
    "pthread_start",
    "thread_start",
    "clone",
    "clone3",
    "GI_clone",
    "GI_clone3",
    "runtime.goexit",
    "runtime.mstart",
    "runtime.rt0_go",
    "runtime.mcall",
    "runtime.systemstack",
];

fn is_root(name: &str) -> bool {
    let name = name.split('@').next().unwrap_or(name).trim_start_matches('_');
    ROOTS.contains(&name.strip_suffix(".abi0").unwrap_or(name)) || name.ends_with("::main")
}

/// What is known of a stack, from its outermost frame inwards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Only frames that tell nothing, such as addresses that no mapping covers.
    Unknown,
    /// It is not known where such a stack should end: kernel, generated or nameless code is outermost.
    Other,
    /// A named function of a binary is outermost, and none is a root.
    Cut,
    /// It has a root.
    Root,
}

/// What is said if a considerable share of the shown samples have stacks that end before any place where programs or
/// threads begin, as code without frame pointers makes them. `None` where that cannot be told.
pub fn cut_stacks(table: &CostTable) -> Option<String> {
    let model = table.model();
    if !model.profile().recording.by_frame_pointers || !table.has_inclusive() {
        return None;
    }
    let share = share_cut(table, model).filter(|share| *share >= LEAST_SHARE)?;
    Some(format!(
        "{} % of the samples have stacks that end before main or the start of a thread: code without frame pointers \
         hides its callers, so inclusive costs are too low; record with perf record --call-graph dwarf (or lbr), or \
         compile with -fno-omit-frame-pointer",
        round(100.0 * share)
    ))
}

/// The share of samples with cut stacks among all that are shown; those that cannot be judged are taken to be whole.
fn share_cut(table: &CostTable, model: &Model) -> Option<f64> {
    let roots: Vec<bool> = model.functions().iter().map(|function| is_root(&function.name)).collect();
    let mut ends: Vec<(End, u32)> = Vec::with_capacity(model.profile().stacks.len());
    let (mut all, mut cut) = (0u64, 0u64);
    for (number, node) in model.profile().stacks.nodes().iter().enumerate() {
        let before = node.parent.and_then(|parent| ends.get(parent.0 as usize).copied());
        let (before, depth) = before.unwrap_or((End::Unknown, 0));
        let end = end(model, &roots, before, *node, model.frames_of_node(number as u32));
        ends.push((end, depth + 1));
        let samples = table.own_samples(number);
        all = all.saturating_add(samples);
        if end == End::Cut && depth < DEEPEST {
            cut = cut.saturating_add(samples);
        }
    }
    (all >= FEWEST_SAMPLES).then(|| cut as f64 / all as f64)
}

fn end(model: &Model, roots: &[bool], before: End, node: StackNode, frames: &[ModelFrame]) -> End {
    let mut functions = frames.iter().filter_map(|frame| frame.function);
    if before == End::Root || functions.clone().any(|id| roots.get(id.0 as usize) == Some(&true)) {
        return End::Root;
    }
    match (before, model.profile().module(node.module).kind) {
        (End::Unknown, ModuleKind::Unmapped) => End::Unknown,
        (End::Unknown, ModuleKind::Binary) if functions.next().is_some() => End::Cut,
        (End::Unknown, _) => End::Other,
        (before, _) => before,
    }
}
