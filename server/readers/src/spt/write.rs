//! Writes SPT files: from a description that says every byte that matters, and from any profile.

use super::format::{
    HEADER_SIZE, LengthReading, OP_BINARY_ID, OP_REPEAT, Op, PROGRAM_SIZE, SEGMENT_HEADER, Signature, VERSION,
};
use heatline_profile::PdbId;
use std::io::{self, Write};

/// An SPT file as data.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Description {
    /// The order of the signature's characters.
    pub signature: Signature,
    /// What the lengths of segments count.
    pub reading: LengthReading,
    /// Bytes that the string table takes up; as many as the names need where that is more.
    pub string_capacity: u16,
    /// Entries that the program-id table takes up; as many as there are programs where that is more.
    pub program_capacity: u16,
    /// The binaries, by program id.
    pub programs: Vec<ProgramData>,
    /// The data stream.
    pub segments: Vec<SegmentData>,
}

/// One binary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramData {
    /// GUID and age.
    pub id: PdbId,
    /// Its name; what follows a NUL in it is not written.
    pub name: String,
}

/// One segment of the data stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SegmentData {
    /// The program that its records are of.
    pub program: u16,
    /// Its records.
    pub records: Vec<RecordData>,
}

/// One record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordData {
    /// How often each of its elements was hit; a REPEAT is written before the record if that is not once. A record
    /// with 0 hits is not written.
    pub hits: u64,
    /// What it holds; split into several records where it is more than one can hold.
    pub elements: Elements,
}

/// What a record holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Elements {
    /// Sampled instructions of one of the six operations for which [`Op::is_sample`] holds.
    Samples(Op, Vec<u32>),
    /// Branches as (from, to).
    Arcs(Vec<(u32, u32)>),
    /// The frames of one stack, in the order of the file. Those above 255 are not written.
    Stack(Vec<u32>),
}

/// Why no SPT file can be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// More binaries than the format has room for.
    #[error("{found} binaries have hits, but an SPT file holds at most 65535")]
    TooManyPrograms {
        /// How many there are.
        found: usize,
    },
    /// The names do not fit.
    #[error("the names of the binaries take {found} bytes, but an SPT file has room for at most 65535")]
    NamesTooLong {
        /// How many bytes they take.
        found: usize,
    },
    /// One segment holds too much.
    #[error("a segment of {found} bytes is longer than the format can say")]
    SegmentTooLong {
        /// Bytes of its records.
        found: usize,
    },
    /// The profile has nothing that an SPT file can hold.
    #[error(
        "nothing to write: no binary of the profile has addresses relative to an image base, as SPT files need them"
    )]
    NoBinary,
    /// The file cannot be written.
    #[error("cannot write the SPT file")]
    Io(#[from] io::Error),
}

/// Elements of one record at most.
pub(crate) const MOST_ELEMENTS: usize = 255;

/// Writes the file that `description` describes.
///
/// # Errors
/// [`WriteError`] if it cannot be written, or if the format has no room for it; then nothing has been written.
pub fn write(description: &Description, out: &mut dyn Write) -> Result<(), WriteError> {
    let (strings, offsets) = strings(&description.programs)?;
    let programs = u16::try_from(description.programs.len())
        .map_err(|_| WriteError::TooManyPrograms { found: description.programs.len() })?;
    let segments = description.segments.iter().map(|segment| encode(segment, description.reading));
    let segments: Vec<Vec<u8>> = segments.collect::<Result<_, _>>()?;

    let string_capacity = description.string_capacity.max(strings.len() as u16);
    let program_capacity = description.program_capacity.max(programs);
    let program_table = HEADER_SIZE as u32 + u32::from(string_capacity);
    out.write_all(&description.signature.bytes())?;
    for field in [VERSION, 0, 0, HEADER_SIZE as u32, program_table] {
        out.write_all(&field.to_le_bytes())?;
    }
    for field in [strings.len() as u16, string_capacity, programs, program_capacity] {
        out.write_all(&field.to_le_bytes())?;
    }
    out.write_all(&strings)?;
    pad(out, usize::from(string_capacity) - strings.len())?;
    for (program, offset) in description.programs.iter().zip(offsets) {
        out.write_all(&program.id.guid)?;
        out.write_all(&program.id.age.to_le_bytes())?;
        out.write_all(&u32::from(offset).to_le_bytes())?;
    }
    pad(out, usize::from(program_capacity - programs) * PROGRAM_SIZE)?;
    for segment in segments {
        out.write_all(&segment)?;
    }
    Ok(())
}

/// The string table and where each program's name lies in it.
fn strings(programs: &[ProgramData]) -> Result<(Vec<u8>, Vec<u16>), WriteError> {
    let mut table = Vec::new();
    let mut offsets = Vec::with_capacity(programs.len());
    for program in programs {
        // An offset that does not fit belongs to a table that does not either.
        offsets.push(table.len() as u16);
        table.extend(program.name.bytes().take_while(|byte| *byte != 0));
        table.push(0);
    }
    if table.len() > usize::from(u16::MAX) {
        return Err(WriteError::NamesTooLong { found: table.len() });
    }
    Ok((table, offsets))
}

fn pad(out: &mut dyn Write, bytes: usize) -> io::Result<()> {
    io::copy(&mut io::Read::take(io::repeat(0), bytes as u64), out)?;
    Ok(())
}

fn encode(segment: &SegmentData, reading: LengthReading) -> Result<Vec<u8>, WriteError> {
    let mut bytes = vec![OP_BINARY_ID, 0];
    bytes.extend(segment.program.to_le_bytes());
    bytes.extend([0; 4]);
    for record in segment.records.iter().filter(|record| record.hits > 0) {
        match &record.elements {
            Elements::Samples(op, rvas) => chunks(rvas).for_each(|rvas| one(&mut bytes, *op, record.hits, rvas)),
            Elements::Stack(rvas) => {
                one(&mut bytes, Op::EtwCallstack, record.hits, rvas.get(..MOST_ELEMENTS).unwrap_or(rvas));
            }
            Elements::Arcs(arcs) => chunks(arcs).for_each(|arcs| {
                let ends: Vec<u32> = arcs.iter().flat_map(|(from, to)| [*to, *from]).collect();
                one(&mut bytes, Op::Lbr, record.hits, &ends);
            }),
        }
    }
    let found = bytes.len() - SEGMENT_HEADER as usize;
    let length = u32::try_from(found).ok().and_then(|length| length.checked_add(reading.extra()));
    let length = length.ok_or(WriteError::SegmentTooLong { found })?;
    if let Some(field) = bytes.get_mut(4..8) {
        field.copy_from_slice(&length.to_le_bytes());
    }
    Ok(bytes)
}

/// Pieces that fit in a record; an empty record where there is nothing.
fn chunks<T>(elements: &[T]) -> impl Iterator<Item = &[T]> {
    let empty = elements.is_empty().then_some(elements);
    elements.chunks(MOST_ELEMENTS).chain(empty)
}

/// One record of at most 255 elements, which are one number each or, for branches, two.
fn one(bytes: &mut Vec<u8>, op: Op, hits: u64, numbers: &[u32]) {
    if hits > 1 {
        bytes.extend([OP_REPEAT, 0]);
        bytes.extend((hits - 1).to_le_bytes());
    }
    let per_element = op.element() / size_of::<u32>();
    bytes.extend([op.opcode(), (numbers.len() / per_element) as u8]);
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}
