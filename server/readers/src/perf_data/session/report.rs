//! What went wrong, counted and put into words.

use super::Session;
use crate::perf_data::blocks::End;
use crate::perf_data::unwind::{Depths, Unwinding};
use heatline_profile::{BuildId, FileOffset, ModuleId, ModuleKind, Problems, Profile};
use std::collections::BTreeSet;

/// Problems that are counted without a text each.
#[derive(Default)]
pub(super) struct Counts {
    pub unknown_ids: u64,
    pub short: Option<(u64, u64)>,
    pub lost: u64,
    pub lost_samples: u64,
    pub throttled: u64,
    pub unfinished_chains: u64,
    pub not_walked: u64,
    pub without_cpu: u64,
    pub without_time: u64,
}

impl Session<'_> {
    pub(super) fn count_short(&mut self, offset: u64) {
        let (count, first) = self.counts.short.unwrap_or((0, offset));
        self.counts.short = Some((count + 1, first));
    }

    /// Notes how the records ended.
    pub fn ended(&mut self, end: End, unclosed: bool) {
        match end {
            End::Complete if unclosed => self.problems.add(
                "unclosed",
                1,
                None,
                "the recorder did not finish the file, so it lacks names of events and identities of binaries; \
                 end perf record with Ctrl-C and wait for it",
            ),
            End::Complete => {}
            End::Cut { offset } => self.problems.add(
                "truncated",
                1,
                Some(FileOffset(offset)),
                "the file ends in the middle of its records; what comes before is shown, record or copy it anew for \
                 the rest",
            ),
            End::BadSize { offset, size } => self.problems.add(
                "damaged-record",
                1,
                Some(FileOffset(offset)),
                format!(
                    "expected a record of at least 8 bytes, found size {size}; what comes before is shown, record or \
                     copy the file anew for the rest"
                ),
            ),
        }
    }

    pub(super) fn note_counts(&mut self) {
        let world = &self.folding.world;
        let (short, first_short) = self.counts.short.map_or((0, None), |(count, at)| (count, Some(FileOffset(at))));
        let notes: [(&str, u64, Option<FileOffset>, &str); 11] = [
            (
                "kernel-hidden",
                u64::from(world.kernel_hidden),
                None,
                "the kernel hid its addresses from the recorder; record as root or set kernel.kptr_restrict to 0",
            ),
            (
                "stacks-not-walked",
                self.counts.not_walked,
                None,
                "stacks were recorded as bytes (--call-graph dwarf) and could not be walked, so they have one user frame; \
                 record 64-bit x86 or Arm programs, or with --call-graph fp",
            ),
            (
                "unfinished-chains",
                self.counts.unfinished_chains,
                None,
                "samples were recorded without the user part of their stacks, and it never came; they show the kernel only, \
                 record until the program ends or without deferred chains",
            ),
            (
                "lost-samples",
                self.counts.lost.saturating_add(self.counts.lost_samples),
                None,
                "the recorder could not keep up and lost records; record with larger buffers (-m) or less often (-F)",
            ),
            (
                "throttled",
                self.counts.throttled,
                None,
                "the kernel held back an event that came too often; record less often (-F) or with a larger period (-c)",
            ),
            (
                "damaged-record",
                short,
                first_short,
                "records are shorter than what they must hold and were skipped; copy or record the file anew",
            ),
            (
                "unknown-event",
                self.counts.unknown_ids,
                None,
                "samples belong to no event that the header names and were skipped; copy or record the file anew",
            ),
            (
                "out-of-order",
                self.queue.late,
                None,
                "changes of mappings or names came later in the file than samples they apply to; some addresses may be \
                 given to the wrong binary, record with larger buffers (-m)",
            ),
            (
                "unknown-context",
                world.unknown_markers,
                None,
                "markers in call chains are unknown and were skipped; a later Heatline may know them",
            ),
            (
                "too-many-mappings",
                world.dropped_mappings,
                None,
                "so many processes inherited mappings that some were dropped; their addresses are not resolved, record fewer \
                 processes (-p)",
            ),
            ("no-events", u64::from(self.events.is_empty()), None, "the file describes no event; record anew"),
        ];
        for (kind, count, offset, message) in notes {
            if count > 0 {
                self.problems.add(kind, count, offset, message);
            }
        }
    }

    /// Stacks that were deeper than what was copied of them, if they are more than a few.
    pub(super) fn note_shallow_copies(&mut self) {
        const FEWEST: u64 = 10;
        let Some(Depths { walked, beyond }) = self.folding.unwinding.as_ref().map(Unwinding::depths) else { return };
        if beyond >= FEWEST && beyond >= walked / 20 {
            let message = "stacks were deeper than what was copied of them, so their outer callers are missing; record with \
                           --call-graph dwarf,65528";
            self.problems.add("shallow-stack-copy", beyond, None, message);
        }
    }

    /// Binaries whose unwind information was needed: those that code ran in. What else is mapped into a process is
    /// data, or nothing that has a file.
    pub(super) fn note_missing_binaries(&mut self) {
        let Some(unwinding) = &self.folding.unwinding else { return };
        let ran: BTreeSet<ModuleId> = self.folding.stacks.nodes().iter().map(|node| node.module).collect();
        for id in unwinding.missing().filter(|id| ran.contains(id)) {
            if let Some(module) = self.folding.world.modules.all().get(id.0 as usize) {
                let message = format!(
                    "{} was not found, so stacks through it are cut; say where it is (--symfs, --debug-dir)",
                    module.path
                );
                self.problems.add("missing-binary", 1, None, message);
            }
        }
    }
}

/// Counts samples in binaries of which no build id was recorded. Files that lack their header sections say so already,
/// and so do binaries that were replaced, which `build_ids` names. `perf record -o -` writes no build ids unless it is
/// told to, so a pipe that has none at all lacks nothing.
pub(super) fn note_missing_build_ids(profile: &Profile, build_ids: &[(String, BuildId)], problems: &mut Problems) {
    /// Binaries that are named; of more only the number is said.
    const NAMED: usize = 3;
    if problems.iter().any(|problem| ["unclosed", "damaged-header"].contains(&problem.kind)) {
        return;
    }
    let known: BTreeSet<&str> = build_ids.iter().map(|(path, _)| path.as_str()).collect();
    let mut count = 0u64;
    let mut paths = BTreeSet::new();
    for row in &profile.rows {
        let module = profile.module(profile.stacks.node(row.stack).module);
        let is_sample =
            (row.event.0 as usize) < profile.events.len() && !profile.event(row.event).name.starts_with("branch:");
        let lacks = module.kind == ModuleKind::Binary && module.identity.is_none();
        if is_sample && lacks && !known.contains(module.path.as_str()) {
            count = count.saturating_add(row.tally.samples);
            paths.insert(module.path.as_str());
        }
    }
    if count > 0 {
        let mut names = paths.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        if let Some(more) = paths.len().checked_sub(NAMED).filter(|&more| more > 0) {
            names.push_str(&format!(" and {more} more"));
        }
        let message = format!(
            "samples fall into binaries whose build ids were not recorded ({names}), so a later build of them would \
             go unnoticed; record into a file without -B, or with --buildid-mmap, and link with -Wl,--build-id"
        );
        problems.add("missing-build-id", count, None, message);
    }
}
