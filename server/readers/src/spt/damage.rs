//! What can be wrong with an SPT file that is still of use, and what is done about it.

use super::format::{LengthReading, Op};
use heatline_profile::{FileOffset, Problems};
use rustc_hash::FxHashMap;
use std::fmt;

/// One thing that is wrong, where it was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damage {
    /// What it is.
    pub kind: DamageKind,
    /// Where, in bytes from the start of the file.
    pub offset: u64,
    /// In which segment, counted from 0; `None` before the first.
    pub segment: Option<u64>,
}

/// A kind of damage with what is known of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DamageKind {
    /// A reserved field of the header holds this number.
    Reserved(u32),
    /// Header and tables lie over one another.
    TablesOverlap,
    /// The string table runs past the end of the file.
    StringTableCut,
    /// More programs are said to be used than the table has room for.
    ProgramsClamped {
        /// How many are said to be used.
        used: u16,
        /// How many there is room for.
        capacity: u16,
    },
    /// A name is not UTF-8.
    NotUtf8,
    /// The string index of a program leads to no name.
    NoName {
        /// The program's position in its table.
        program: u16,
        /// The index.
        index: u32,
    },
    /// The data stream does not begin with a segment; nothing of it is read.
    NoSegment(u8),
    /// The lengths of segments are read in another way than the literal one.
    Reading(LengthReading),
    /// No reading of the lengths fits the file; this one fits best.
    ReadingAssumed(LengthReading),
    /// A segment is shorter than the record that starts it.
    SegmentTooShort(u32),
    /// The file ends so many bytes before a segment does.
    SegmentCut(u64),
    /// The file ends inside the record that starts a segment, of which so many bytes are there.
    SegmentStartCut(u64),
    /// A segment starts inside another one.
    SegmentInside,
    /// A segment names a program that the table does not have.
    UnknownProgram(u16),
    /// Every segment names a program from 1 up to the number of programs: ids may be counted from 1.
    CountedFromOne,
    /// A record of unknown length: the rest of its segment is skipped.
    UnknownOpcode {
        /// The byte found.
        opcode: u8,
        /// Bytes skipped, the opcode included.
        skipped: u64,
    },
    /// A record runs past the end of its segment by so many bytes, at least; it is dropped.
    RecordCut {
        /// The record's first byte.
        opcode: u8,
        /// Bytes dropped.
        dropped: u64,
    },
    /// A REPEAT follows another one, which is lost.
    RepeatReplaced,
    /// A REPEAT has no record after it.
    RepeatAlone,
    /// So many bytes after the last segment are no segment.
    Trailing(u64),
}

impl DamageKind {
    /// The stable word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            DamageKind::Reserved(_) => "reserved-field",
            DamageKind::TablesOverlap => "tables-overlap",
            DamageKind::StringTableCut => "string-table-cut",
            DamageKind::ProgramsClamped { .. } => "programs-clamped",
            DamageKind::NotUtf8 => "not-utf8",
            DamageKind::NoName { .. } => "no-name",
            DamageKind::NoSegment(_) => "no-segment",
            DamageKind::Reading(_) => "length-reading",
            DamageKind::ReadingAssumed(_) => "length-assumed",
            DamageKind::SegmentTooShort(_) => "bad-segment-length",
            DamageKind::SegmentCut(_) | DamageKind::SegmentStartCut(_) => "truncated",
            DamageKind::SegmentInside => "segment-inside",
            DamageKind::UnknownProgram(_) => "unknown-program",
            DamageKind::CountedFromOne => "one-based-ids",
            DamageKind::UnknownOpcode { .. } => "unknown-opcode",
            DamageKind::RecordCut { .. } => "record-past-end",
            DamageKind::RepeatReplaced => "repeat-replaced",
            DamageKind::RepeatAlone => "repeat-without-record",
            DamageKind::Trailing(_) => "trailing-bytes",
        }
    }

    /// What tells two causes of one kind apart, so that each is reported once.
    fn cause(&self) -> u32 {
        match *self {
            DamageKind::Reserved(value) => value,
            DamageKind::NoName { program, .. } => u32::from(program),
            DamageKind::UnknownProgram(id) => u32::from(id),
            DamageKind::UnknownOpcode { opcode, .. } | DamageKind::RecordCut { opcode, .. } => u32::from(opcode),
            _ => 0,
        }
    }

    /// How many bytes it made unreadable.
    fn lost(&self) -> u64 {
        match *self {
            DamageKind::UnknownOpcode { skipped, .. } => skipped,
            DamageKind::RecordCut { dropped, .. } => dropped,
            _ => 0,
        }
    }
}

impl fmt::Display for Damage {
    /// What was found and what was done. Lower case, no full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.offset;
        match self.kind {
            DamageKind::Reserved(value) => write!(f, "reserved field at {at:#x} is {value:#x}, expected 0"),
            DamageKind::TablesOverlap => write!(f, "header and tables lie over one another at {at:#x}"),
            DamageKind::StringTableCut => write!(f, "string table at {at:#x} runs past the end of the file"),
            DamageKind::ProgramsClamped { used, capacity } => {
                write!(f, "{used} programs in use, but the table has room for {capacity}; the others are left out")
            }
            DamageKind::NotUtf8 => write!(f, "name at {at:#x} is not UTF-8"),
            DamageKind::NoName { program, index } => {
                write!(f, "string index {index} of program {program} leads to no name")
            }
            DamageKind::NoSegment(opcode) => {
                write!(f, "the data at {at:#x} begins with {opcode:#04x}, expected 0x81; no record was read")
            }
            DamageKind::Reading(reading) => {
                write!(
                    f,
                    "segment lengths count {} ({}), as the chain of segments shows",
                    reading.meaning(),
                    reading.name()
                )
            }
            DamageKind::ReadingAssumed(reading) => {
                write!(f, "no reading of the segment lengths reaches the end of the file; assumed {}", reading.name())
            }
            DamageKind::SegmentTooShort(length) => write!(f, "segment length {length} at {at:#x} is too small"),
            DamageKind::SegmentCut(missing) => {
                write!(f, "the file ends {missing} bytes before the segment at {at:#x} does")
            }
            DamageKind::SegmentStartCut(bytes) => {
                write!(f, "the file ends {bytes} bytes into the record at {at:#x} that starts a segment")
            }
            DamageKind::SegmentInside => write!(f, "a segment starts at {at:#x}, inside another one"),
            DamageKind::UnknownProgram(id) => write!(f, "program id {id} at {at:#x} is not in the table"),
            DamageKind::CountedFromOne => f.write_str("no segment is of program 0; the ids may be counted from 1"),
            DamageKind::UnknownOpcode { opcode, skipped } => {
                write!(f, "opcode {opcode:#04x} at {at:#x}, {skipped} bytes skipped")
            }
            DamageKind::RecordCut { opcode, dropped } => {
                write!(
                    f,
                    "record {} at {at:#x} runs past the end of its segment, {dropped} bytes dropped",
                    name(opcode)
                )
            }
            DamageKind::RepeatReplaced => write!(f, "repeat at {at:#x} follows another repeat, the later counts"),
            DamageKind::RepeatAlone => write!(f, "repeat without a record before {at:#x}"),
            DamageKind::Trailing(bytes) => write!(f, "{bytes} bytes from {at:#x} on are no segment and were not read"),
        }?;
        self.segment.map_or(Ok(()), |segment| write!(f, " (segment {segment})"))
    }
}

fn name(opcode: u8) -> String {
    match (opcode, Op::from_opcode(opcode)) {
        (_, Some(op)) => op.name().to_owned(),
        (super::format::OP_BINARY_ID, _) => "BINARY_ID".to_owned(),
        (super::format::OP_REPEAT, _) => "REPEAT".to_owned(),
        _ => format!("{opcode:#04x}"),
    }
}

/// Damages, counted by cause: however many there are, this stays small.
#[derive(Debug, Default)]
pub(crate) struct DamageCount {
    order: Vec<(Damage, u64, u64)>,
    places: FxHashMap<(std::mem::Discriminant<DamageKind>, u32), usize>,
}

impl DamageCount {
    /// Counts one more.
    pub(crate) fn add(&mut self, damage: &Damage) {
        let next = self.order.len();
        let place = *self.places.entry((std::mem::discriminant(&damage.kind), damage.kind.cause())).or_insert(next);
        if place == next {
            self.order.push((*damage, 0, 0));
        }
        if let Some((_, count, lost)) = self.order.get_mut(place) {
            *count += 1;
            *lost = lost.saturating_add(damage.kind.lost());
        }
    }

    /// Moves all to `problems`; `prefix` stands before each message.
    pub(crate) fn report(self, prefix: &str, problems: &mut Problems) {
        for (first, count, lost) in self.order {
            let more = match (count, lost) {
                (1, _) => String::new(),
                (_, 0) => format!("; {count} times"),
                _ => format!("; {count} times, {lost} bytes in all"),
            };
            problems.add(first.kind.word(), count, Some(FileOffset(first.offset)), format!("{prefix}{first}{more}"));
        }
    }
}
