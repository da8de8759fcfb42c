//! The layout of an SPT file: header, tables and opcodes.

use heatline_profile::{PdbId, Unit};

/// The signature in the order that a little-endian store of `'SPT:'` gives.
pub(crate) const SIGNATURE_STORED: [u8; 4] = *b":TPS";
/// The signature in reading order.
pub(crate) const SIGNATURE_READ: [u8; 4] = *b"SPT:";
/// The only version that is documented.
pub(crate) const VERSION: u32 = 1;
/// Bytes of the header.
pub(crate) const HEADER_SIZE: usize = 32;
/// Bytes of an entry of the program-id table.
pub(crate) const PROGRAM_SIZE: usize = 24;
/// Bytes of a record that starts a segment.
pub(crate) const SEGMENT_HEADER: u64 = 8;
/// Bytes of a record that repeats the next one.
pub(crate) const REPEAT_SIZE: usize = 10;
/// The longest record: 255 pairs.
pub(crate) const LONGEST_RECORD: usize = 2 + 255 * 8;

pub(crate) const OP_BINARY_ID: u8 = 0x81;
pub(crate) const OP_REPEAT: u8 = 0x82;

/// In which order the signature's four characters lie in the file. The documentation allows both readings; the order
/// says nothing about the other fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Signature {
    /// `3a 54 50 53`, the number stored little-endian.
    #[default]
    Stored,
    /// `53 50 54 3a`, the characters as they are read.
    Read,
}

impl Signature {
    /// The bytes in the file.
    pub fn bytes(self) -> [u8; 4] {
        match self {
            Signature::Stored => SIGNATURE_STORED,
            Signature::Read => SIGNATURE_READ,
        }
    }

    /// The same as text, `:TPS` or `SPT:`.
    pub fn text(self) -> &'static str {
        match self {
            Signature::Stored => ":TPS",
            Signature::Read => "SPT:",
        }
    }

    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        [Signature::Stored, Signature::Read].into_iter().find(|s| bytes.starts_with(&s.bytes()))
    }
}

/// The header's fields, as they are in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Which order of the signature was seen.
    pub signature: Signature,
    /// Version of the layout.
    pub version: u32,
    /// Reserved, normally 0.
    pub raw_data_id: u32,
    /// Reserved, normally 0: the file does not say for which processor it is.
    pub target_arch: u32,
    /// Where the string table starts, in bytes from the start of the file.
    pub string_table_offset: u32,
    /// Where the program-id table starts, in bytes from the start of the file.
    pub program_table_offset: u32,
    /// Bytes of the string table that are in use.
    pub string_table_used: u16,
    /// Bytes that the string table takes up.
    pub string_table_capacity: u16,
    /// Entries of the program-id table that are in use.
    pub programs_used: u16,
    /// Entries that the program-id table takes up.
    pub program_capacity: u16,
}

impl Header {
    /// Where the records start: behind the whole capacity of the program-id table.
    pub fn data_start(&self) -> u64 {
        u64::from(self.program_table_offset) + u64::from(self.program_capacity) * PROGRAM_SIZE as u64
    }
}

/// One name of the string table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// Where it starts, in bytes from the start of the string table.
    pub offset: u16,
    /// The text, with replacement characters for what is not UTF-8.
    pub text: String,
}

/// One used entry of the program-id table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// GUID and age of the binary; an all-zero GUID is no identity.
    pub id: PdbId,
    /// The "string index" as it is in the file.
    pub string_index: u32,
    /// The name that the index leads to, or `unknown-` and the position where it leads to none.
    pub name: String,
}

/// What a record of the data stream holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Op {
    /// Samples of unhalted cycles.
    UnhaltCycle,
    /// Samples of retired instructions.
    RetireInstr,
    /// Samples of retired branch instructions.
    RetireBrInstr,
    /// Samples of misses of the first-level instruction cache.
    L1IcacheMiss,
    /// Samples of misses of the first-level data cache.
    L1DcacheMiss,
    /// Samples of the operating system's timer.
    EtwInstr,
    /// Taken branches, target before source.
    Lbr,
    /// Call stacks, as far as they lie in one binary.
    EtwCallstack,
}

impl Op {
    /// All of them, in the order in which their events are listed: samples by opcode, then branches, then stacks.
    pub const ALL: [Op; 8] = [
        Op::UnhaltCycle,
        Op::RetireInstr,
        Op::RetireBrInstr,
        Op::L1IcacheMiss,
        Op::L1DcacheMiss,
        Op::EtwInstr,
        Op::Lbr,
        Op::EtwCallstack,
    ];

    /// The operation of an opcode that carries hits.
    pub fn from_opcode(opcode: u8) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.opcode() == opcode)
    }

    /// The byte in the file.
    pub const fn opcode(self) -> u8 {
        match self {
            Op::UnhaltCycle => 0x01,
            Op::RetireInstr => 0x02,
            Op::RetireBrInstr => 0x03,
            Op::L1IcacheMiss => 0x04,
            Op::L1DcacheMiss => 0x05,
            Op::EtwInstr => 0x41,
            Op::Lbr => 0x10,
            Op::EtwCallstack => 0x42,
        }
    }

    /// The documented name without its prefix.
    pub fn name(self) -> &'static str {
        match self {
            Op::UnhaltCycle => "UNHALT_CYCLE",
            Op::RetireInstr => "RETIRE_INSTR",
            Op::RetireBrInstr => "RETIRE_BR_INSTR",
            Op::L1IcacheMiss => "L1_ICACHE_MISS",
            Op::L1DcacheMiss => "L1_DCACHE_MISS",
            Op::EtwInstr => "ETW_INSTR",
            Op::Lbr => "LBR",
            Op::EtwCallstack => "ETW_CALLSTACK",
        }
    }

    /// The name of the event that its hits become.
    pub fn event_name(self) -> &'static str {
        match self {
            Op::UnhaltCycle => "spt:unhalt-cycle",
            Op::RetireInstr => "spt:retire-instr",
            Op::RetireBrInstr => "spt:retire-br-instr",
            Op::L1IcacheMiss => "spt:l1-icache-miss",
            Op::L1DcacheMiss => "spt:l1-dcache-miss",
            Op::EtwInstr => "spt:etw-instr",
            Op::Lbr => "spt:lbr-taken",
            Op::EtwCallstack => "spt:stacks",
        }
    }

    /// The unit of that event: each hit of an instruction is one sample, whatever the processor counted in between.
    pub fn unit(self) -> Unit {
        match self {
            Op::Lbr => Unit::Branches,
            Op::EtwCallstack => Unit::Stacks,
            _ => Unit::Hits,
        }
    }

    /// Whether its records list sampled instructions.
    pub fn is_sample(self) -> bool {
        !matches!(self, Op::Lbr | Op::EtwCallstack)
    }

    /// Bytes of one element of its records.
    pub(crate) fn element(self) -> usize {
        if self == Op::Lbr { 8 } else { 4 }
    }
}

/// What the length of a segment counts. The documentation can be read in three ways; the file's own chain of segments
/// decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LengthReading {
    /// From the length field on, as the text says literally.
    #[default]
    R1,
    /// The whole record that starts the segment, too.
    R2,
    /// The records of the segment alone.
    R3,
}

impl LengthReading {
    /// All of them, the likeliest first.
    pub const ALL: [LengthReading; 3] = [LengthReading::R1, LengthReading::R2, LengthReading::R3];

    /// `R1`, `R2` or `R3`.
    pub fn name(self) -> &'static str {
        match self {
            LengthReading::R1 => "R1",
            LengthReading::R2 => "R2",
            LengthReading::R3 => "R3",
        }
    }

    /// What the length counts, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            LengthReading::R1 => "from the length field on",
            LengthReading::R2 => "the whole record that starts the segment, too",
            LengthReading::R3 => "the segment's records alone",
        }
    }

    /// How much the length of a segment is above the bytes of its records.
    pub(crate) fn extra(self) -> u32 {
        match self {
            LengthReading::R1 => 4,
            LengthReading::R2 => 8,
            LengthReading::R3 => 0,
        }
    }

    /// Where the segment ends that starts at `start` with this length, or `None` if the length is below what it must
    /// count at least.
    pub(crate) fn end(self, start: u64, length: u32) -> Option<u64> {
        let records = length.checked_sub(self.extra())?;
        start.checked_add(SEGMENT_HEADER)?.checked_add(u64::from(records))
    }
}

/// The little-endian number in the four bytes from `at` on, 0 where they are not all there.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b))
}

/// The little-endian number in the two bytes from `at` on, 0 where they are not all there.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u16::from_le_bytes(*b))
}
