//! The feature sections of a file's header: facts about the recording that are no records.

use super::attr::Attr;
use super::bytes::{Cursor, Order, text};
use super::describe::RecordSink;
use super::facts;
use super::state::{build_id, misc};
use heatline_profile::{BuildId, Recording};

/// Numbers of the sections.
pub(crate) mod feature {
    pub const BUILD_ID: u32 = 2;
    pub const HOSTNAME: u32 = 3;
    pub const OS_RELEASE: u32 = 4;
    pub const VERSION: u32 = 5;
    pub const ARCH: u32 = 6;
    pub const CPU_COUNT: u32 = 7;
    pub const CPU_DESCRIPTION: u32 = 8;
    pub const CPU_ID: u32 = 9;
    pub const TOTAL_MEMORY: u32 = 10;
    pub const COMMAND_LINE: u32 = 11;
    pub const EVENT_DESCRIPTION: u32 = 12;
    pub const CPU_TOPOLOGY: u32 = 13;
    pub const NUMA_TOPOLOGY: u32 = 14;
    pub const PMU_MAPPINGS: u32 = 16;
    pub const GROUP_DESCRIPTION: u32 = 17;
    pub const CACHE: u32 = 20;
    pub const SAMPLE_TIME: u32 = 21;
    pub const MEMORY_TOPOLOGY: u32 = 22;
    pub const CLOCK_ID: u32 = 23;
    pub const DIRECTORY: u32 = 24;
    pub const COMPRESSED: u32 = 27;
    pub const CPU_CAPABILITIES: u32 = 28;
    pub const CLOCK_DATA: u32 = 29;
    pub const HYBRID: u32 = 30;
    pub const UNIT_CAPABILITIES: u32 = 31;
}

/// An event as the event-description section has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Described {
    pub attr: Attr,
    pub name: String,
    pub ids: Vec<u64>,
}

/// What the sections say.
#[derive(Default)]
pub(crate) struct Features {
    pub build_ids: Vec<(String, BuildId)>,
    pub events: Vec<Described>,
    pub recording: Recording,
    pub cpu_id: Option<String>,
    /// The names of performance units by the type of their events.
    pub units: Vec<(u32, String)>,
    /// How many processors the machine may have.
    pub cpus: Option<u32>,
    /// Who is told of the sections, one by one.
    pub sink: Option<RecordSink>,
}

impl Features {
    /// Tells the sink of a section, if it wants to know.
    pub fn tell(&mut self, number: u32, offset: u64, bytes: &[u8], order: Order) {
        if number == feature::CPU_COUNT {
            self.cpus = Cursor::new(bytes, order).u32();
        }
        if let Some(sink) = &self.sink
            && let Some(fact) = facts::describe(number, offset, bytes, order, self.cpus)
        {
            sink.take_feature(&fact);
        }
    }

    /// Whether anything is done with a section; the others need not be read.
    pub fn wants(&self, number: u32) -> bool {
        use feature::*;
        let told = self.sink.is_some() && facts::is_fact(number);
        told || matches!(
            number,
            BUILD_ID
                | OS_RELEASE
                | VERSION
                | ARCH
                | CPU_DESCRIPTION
                | CPU_ID
                | COMMAND_LINE
                | EVENT_DESCRIPTION
                | PMU_MAPPINGS
                | SAMPLE_TIME
        )
    }

    /// Takes in one section. What it does not know it leaves alone; `None` if the section is damaged, of which the
    /// readable front is kept.
    pub fn section(&mut self, number: u32, bytes: &[u8], order: Order) -> Option<()> {
        let mut cursor = Cursor::new(bytes, order);
        match number {
            feature::BUILD_ID => {
                while !cursor.rest().is_empty() {
                    self.build_ids.extend(build_id_record(&mut cursor)?);
                }
            }
            feature::OS_RELEASE => self.recording.os_release = Some(cursor.counted_text()?),
            feature::VERSION => self.recording.recorder = Some(format!("perf {}", cursor.counted_text()?)),
            feature::ARCH => self.recording.arch = Some(cursor.counted_text()?),
            feature::CPU_DESCRIPTION => self.recording.cpu = Some(cursor.counted_text()?),
            feature::CPU_ID => self.cpu_id = Some(cursor.counted_text()?),
            feature::COMMAND_LINE => {
                for _ in 0..cursor.u32()? {
                    self.recording.command_line.push(cursor.counted_text()?);
                }
            }
            feature::PMU_MAPPINGS => {
                for _ in 0..cursor.u32()? {
                    let kind = cursor.u32()?;
                    self.units.push((kind, cursor.counted_text()?));
                }
            }
            feature::SAMPLE_TIME => {
                let span = (cursor.u64()?, cursor.u64()?);
                self.recording.span = Some(span).filter(|(first, last)| *last > 0 && first <= last);
            }
            feature::EVENT_DESCRIPTION => {
                let (count, attr_size) = (cursor.u32()?, usize::try_from(cursor.u32()?).ok()?);
                for _ in 0..count {
                    let event = described_event(&mut cursor, attr_size, order)?;
                    self.events.push(event);
                }
            }
            _ => {}
        }
        Some(())
    }

    /// The facts about the recording.
    pub fn into_recording(mut self) -> Recording {
        self.recording.cpu = self.recording.cpu.or(self.cpu_id);
        self.recording
    }
}

/// The events of the event-description section, up to the first that is damaged.
pub(super) fn described_events(cursor: &mut Cursor<'_>, order: Order) -> Vec<Described> {
    let size = |cursor: &mut Cursor<'_>| Some((cursor.u32()?, usize::try_from(cursor.u32()?).ok()?));
    let Some((count, attr_size)) = size(cursor) else { return Vec::new() };
    (0..count).map_while(|_| described_event(cursor, attr_size, order)).collect()
}

/// The entries of the build-id section, up to the first that is damaged.
pub(super) fn build_ids_of(bytes: &[u8], order: Order) -> Vec<(String, BuildId)> {
    let mut cursor = Cursor::new(bytes, order);
    let mut all = Vec::new();
    while let Some(entry) = Some(()).filter(|()| !cursor.rest().is_empty()).and_then(|()| build_id_record(&mut cursor))
    {
        all.extend(entry);
    }
    all
}

fn described_event(cursor: &mut Cursor<'_>, attr_size: usize, order: Order) -> Option<Described> {
    let attr = Attr::parse(cursor.take(attr_size)?, order)?;
    let id_count = cursor.u32()?;
    let name = cursor.counted_text()?;
    let ids = cursor.take(usize::try_from(id_count).ok()?.checked_mul(8)?)?;
    let ids = ids.as_chunks::<8>().0.iter().map(|&id| order.u64(id)).collect();
    Some(Described { attr, name, ids })
}

/// One entry of the build-id section, or the body of a build-id record with its header in front.
pub(crate) fn build_id_record(cursor: &mut Cursor<'_>) -> Option<Option<(String, BuildId)>> {
    let (_kind, record_misc, size) = (cursor.u32()?, cursor.u16()?, cursor.u16()?);
    let body = cursor.take(usize::from(size).checked_sub(8)?)?;
    Some(build_id_body(body, record_misc))
}

/// The body of a build-id record: process, id, path.
pub(crate) fn build_id_body(body: &[u8], record_misc: u16) -> Option<(String, BuildId)> {
    let id = body.get(4..24)?;
    let size = if record_misc & misc::BUILD_ID_SIZE != 0 { *body.get(24)? } else { 20 };
    Some((text(body.get(28..)?), build_id(id, size)?))
}
