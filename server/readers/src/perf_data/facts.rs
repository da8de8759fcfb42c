//! Feature sections in words, for people and programs that look into a file.

use super::bytes::{Cursor, Order};
use super::describe::{FeatureFields, FieldValue};
use super::features::feature;
use super::topology::{self, MOST_ITEMS};

type List = Vec<(&'static str, FieldValue)>;

/// Whether a section is shown in words.
pub(super) fn is_fact(number: u32) -> bool {
    name(number).is_some()
}

/// A feature section in words: its name, its position in the input, its fields. What is damaged is left out. `cpus` is
/// how many processors the machine may have, where it is known.
pub(super) fn describe(
    number: u32,
    offset: u64,
    bytes: &[u8],
    order: Order,
    cpus: Option<u32>,
) -> Option<FeatureFields> {
    let name = name(number)?;
    let mut fields = List::new();
    if is_of_machine(number) {
        topology::values(number, bytes, order, cpus, &mut fields);
    } else {
        values(number, &mut Cursor::new(bytes, order), &mut fields);
    }
    fields.push(("size", FieldValue::Number(bytes.len() as u64)));
    Some(FeatureFields { name, offset, fields })
}

/// The name of a section as perf has it, of those that hold facts.
fn name(number: u32) -> Option<&'static str> {
    Some(match number {
        feature::HOSTNAME => "HOSTNAME",
        feature::OS_RELEASE => "OSRELEASE",
        feature::VERSION => "VERSION",
        feature::ARCH => "ARCH",
        feature::CPU_COUNT => "NRCPUS",
        feature::CPU_DESCRIPTION => "CPUDESC",
        feature::CPU_ID => "CPUID",
        feature::TOTAL_MEMORY => "TOTAL_MEM",
        feature::COMMAND_LINE => "CMDLINE",
        feature::SAMPLE_TIME => "SAMPLE_TIME",
        feature::CLOCK_ID => "CLOCKID",
        feature::CLOCK_DATA => "CLOCK_DATA",
        feature::HYBRID => "HYBRID_TOPOLOGY",
        feature::BUILD_ID => "BUILD_ID",
        feature::EVENT_DESCRIPTION => "EVENT_DESC",
        feature::CPU_TOPOLOGY => "CPU_TOPOLOGY",
        feature::NUMA_TOPOLOGY => "NUMA_TOPOLOGY",
        feature::PMU_MAPPINGS => "PMU_MAPPINGS",
        feature::GROUP_DESCRIPTION => "GROUP_DESC",
        feature::CACHE => "CACHE",
        feature::MEMORY_TOPOLOGY => "MEM_TOPOLOGY",
        feature::DIRECTORY => "DIR_FORMAT",
        feature::COMPRESSED => "COMPRESSED",
        feature::CPU_CAPABILITIES => "CPU_PMU_CAPS",
        feature::UNIT_CAPABILITIES => "PMU_CAPS",
        _ => return None,
    })
}

/// Whether [`topology`] knows the section.
fn is_of_machine(number: u32) -> bool {
    use feature::*;
    matches!(
        number,
        BUILD_ID
            | EVENT_DESCRIPTION
            | CPU_TOPOLOGY
            | NUMA_TOPOLOGY
            | PMU_MAPPINGS
            | GROUP_DESCRIPTION
            | CACHE
            | MEMORY_TOPOLOGY
            | DIRECTORY
            | COMPRESSED
            | CPU_CAPABILITIES
            | HYBRID
            | UNIT_CAPABILITIES
    )
}

fn values(number: u32, cursor: &mut Cursor<'_>, out: &mut List) -> Option<()> {
    use FieldValue::{Number, Text};
    match number {
        feature::CPU_COUNT => {
            out.push(("available", Number(cursor.u32()?.into())));
            out.push(("online", Number(cursor.u32()?.into())));
        }
        feature::TOTAL_MEMORY => out.push(("kibibytes", Number(cursor.u64()?))),
        feature::COMMAND_LINE => {
            let count = usize::try_from(cursor.u32()?).ok()?.min(MOST_ITEMS);
            let words: Option<Vec<String>> = (0..count).map(|_| cursor.counted_text()).collect();
            out.push(("arguments", FieldValue::Texts(words?)));
        }
        feature::SAMPLE_TIME => {
            out.push(("first", Number(cursor.u64()?)));
            out.push(("last", Number(cursor.u64()?)));
        }
        // The section holds how far apart two ticks are, in nanoseconds.
        feature::CLOCK_ID => out.push(("resolution_ns", Number(cursor.u64()?))),
        feature::CLOCK_DATA => {
            out.push(("version", Number(cursor.u32()?.into())));
            out.push(("clock", Number(cursor.u32()?.into())));
            out.push(("wall_clock_ns", Number(cursor.u64()?)));
            out.push(("clock_ns", Number(cursor.u64()?)));
        }
        _ => out.push(("text", Text(cursor.counted_text()?))),
    }
    Some(())
}
