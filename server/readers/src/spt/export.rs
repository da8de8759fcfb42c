//! From any profile to an SPT file.

use super::format::Op;
use super::write::{Description, Elements, MOST_ELEMENTS, ProgramData, RecordData, SegmentData, WriteError, write};
use heatline_profile::{
    AddressSpace, CodeAddress, Event, Identity, ModuleId, PdbId, Problems, Profile, SampleRow, StackNode, Unit,
};
use std::collections::BTreeMap;
use std::io::Write;

/// Capacities that SPT files usually have.
const USUAL_CAPACITIES: (u16, u16) = (0x4000, 0x100);
/// Bytes of records after which another segment of the same binary is begun.
const SEGMENT_BYTES: usize = 64 << 20;

/// Writes what an SPT file can hold of a profile: of every binary whose addresses are relative to its image base, the
/// sampled instructions of events that the format has an operation for, branches, and stacks innermost frame first.
/// Returns what had to be left out.
///
/// Writing what was read from an SPT file and reading it again gives the same modules, events, rows and arcs.
///
/// # Errors
/// [`WriteError`] if there is no such binary, if they are too many, or if writing fails.
pub fn write_profile(profile: &Profile, out: &mut dyn Write) -> Result<Problems, WriteError> {
    let mut export = Export { profile, binaries: BTreeMap::new(), left_out: Problems::new() };
    for (id, module) in (0..).map(ModuleId).zip(&profile.modules) {
        if module.space == AddressSpace::Rva {
            export.binaries.insert(id, Records::new());
        } else {
            let message = format!("{}: its addresses are not relative to an image base", module.path);
            export.left_out.add("no-rva", 1, None, message);
        }
    }
    if export.binaries.is_empty() {
        return Err(WriteError::NoBinary);
    }
    if export.binaries.len() > usize::from(u16::MAX) {
        return Err(WriteError::TooManyPrograms { found: export.binaries.len() });
    }
    export.add_rows();
    export.add_arcs();
    write(&export.describe(), out)?;
    Ok(export.left_out)
}

/// The hits of one binary: what was hit equally often by an operation goes into records together.
type Records = BTreeMap<(Op, u64), Vec<Vec<u32>>>;

struct Export<'a> {
    profile: &'a Profile,
    binaries: BTreeMap<ModuleId, Records>,
    left_out: Problems,
}

impl Export<'_> {
    fn add_rows(&mut self) {
        let profile = self.profile;
        let operations: Vec<Option<Op>> = profile.events.iter().map(operation).collect();
        for (event, _) in profile.events.iter().zip(&operations).filter(|(_, op)| op.is_none()) {
            self.left_out.add("no-operation", 1, None, format!("{}: an SPT file has no record for it", event.name));
        }
        // The stacks of one event are enough; those of the next would be counted on top of them.
        let with_stacks = profile.events.iter().position(|event| event.has_stacks);
        let mut sums: BTreeMap<(ModuleId, Op, Vec<u32>), u64> = BTreeMap::new();
        for row in &profile.rows {
            let event = row.event.0 as usize;
            let op = operations.get(event).copied().flatten();
            if let Some((module, rva)) = rva(&profile.stacks.node(row.stack))
                && let Some(op) = op.filter(|op| op.is_sample())
            {
                let sum = sums.entry((module, op, vec![rva])).or_insert(0);
                *sum = sum.saturating_add(row.tally.samples);
            }
            if with_stacks == Some(event) {
                for (module, frames) in self.stacks(row) {
                    let sum = sums.entry((module, Op::EtwCallstack, frames)).or_insert(0);
                    *sum = sum.saturating_add(row.tally.samples);
                }
            }
        }
        for ((module, op, numbers), hits) in sums {
            self.add(module, op, hits, numbers);
        }
    }

    fn add_arcs(&mut self) {
        for arc in &self.profile.arcs {
            let numbers = [arc.to, arc.from].map(|place| u32::try_from(place.address.0).ok());
            if let [Some(to), Some(from)] = numbers
                && arc.from.module == arc.to.module
            {
                self.add(arc.from.module, Op::Lbr, arc.taken.0, vec![from, to]);
            } else {
                self.left_out.add("far-branch", 1, None, "branches from one binary to another cannot be written");
            }
        }
    }

    fn add(&mut self, module: ModuleId, op: Op, hits: u64, numbers: Vec<u32>) {
        if let Some(records) = self.binaries.get_mut(&module) {
            records.entry((op, hits)).or_default().push(numbers);
        }
    }

    /// The frames of a row's stack by binary, innermost first.
    fn stacks(&self, row: &SampleRow) -> BTreeMap<ModuleId, Vec<u32>> {
        let mut stacks: BTreeMap<ModuleId, Vec<u32>> = BTreeMap::new();
        for frame in self.profile.stacks.frames(row.stack) {
            if let Some((module, rva)) = rva(&frame) {
                stacks.entry(module).or_default().push(rva);
            }
        }
        stacks
    }

    fn describe(&self) -> Description {
        let mut description = Description {
            string_capacity: USUAL_CAPACITIES.0,
            program_capacity: USUAL_CAPACITIES.1,
            ..Description::default()
        };
        for (program, (id, records)) in (0_u16..=u16::MAX).zip(&self.binaries) {
            let module = self.profile.module(*id);
            let id = match module.identity {
                Some(Identity::Pdb(id)) => id,
                _ => PdbId { guid: [0; 16], age: 0 },
            };
            description.programs.push(ProgramData { id, name: module.path.clone() });
            description.segments.extend(segments(program, records));
        }
        description
    }
}

/// The operation whose records are what samples of `event` are.
fn operation(event: &Event) -> Option<Op> {
    let name = event.base_name();
    let own = Op::ALL.into_iter().find(|op| op.event_name() == event.name);
    own.or(match name {
        "cycles" | "cpu-cycles" => Some(Op::UnhaltCycle),
        "instructions" => Some(Op::RetireInstr),
        "branches" | "branch-instructions" => Some(Op::RetireBrInstr),
        "L1-icache-load-misses" | "L1-icache-misses" => Some(Op::L1IcacheMiss),
        "L1-dcache-load-misses" | "L1-dcache-misses" => Some(Op::L1DcacheMiss),
        _ if event.unit == Unit::Nanoseconds => Some(Op::EtwInstr),
        _ => None,
    })
}

/// A frame's address as a record has it. Return addresses are written as such.
fn rva(node: &StackNode) -> Option<(ModuleId, u32)> {
    let address = match node.address {
        CodeAddress::AdjustedReturnAddress(address) => address.checked_add(1)?,
        address => address.recorded(),
    };
    Some((node.module, u32::try_from(address.0).ok()?))
}

/// The segments of one binary: one, unless it would grow too long.
fn segments(program: u16, records: &Records) -> Vec<SegmentData> {
    let mut segments = vec![SegmentData { program, records: Vec::new() }];
    let mut bytes = 0;
    for ((op, hits), places) in records {
        let elements: Vec<Elements> = match op {
            Op::EtwCallstack => places.iter().cloned().map(Elements::Stack).collect(),
            Op::Lbr => {
                places.chunks(MOST_ELEMENTS).map(|arcs| Elements::Arcs(arcs.iter().map(pair).collect())).collect()
            }
            op => places.chunks(MOST_ELEMENTS).map(|rvas| Elements::Samples(*op, rvas.concat())).collect(),
        };
        for elements in elements {
            if bytes > SEGMENT_BYTES {
                segments.push(SegmentData { program, records: Vec::new() });
                bytes = 0;
            }
            bytes += super::format::LONGEST_RECORD;
            if let Some(segment) = segments.last_mut() {
                segment.records.push(RecordData { hits: *hits, elements });
            }
        }
    }
    segments
}

fn pair(ends: &Vec<u32>) -> (u32, u32) {
    match ends.as_slice() {
        [from, to] => (*from, *to),
        _ => (0, 0),
    }
}
