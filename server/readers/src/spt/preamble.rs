//! Header, string table and program-id table: all that lies before the data stream.

use super::SptError;
use super::damage::{Damage, DamageKind};
use super::format::{HEADER_SIZE, Header, Name, PROGRAM_SIZE, Program, Signature, VERSION, u16_at, u32_at};
use super::window::Window;
use heatline_profile::PdbId;

/// What lies before the data stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preamble {
    /// The header's fields.
    pub header: Header,
    /// The names of the string table, in their order.
    pub names: Vec<Name>,
    /// The used entries of the program-id table, by program id.
    pub programs: Vec<Program>,
}

/// Reads header and tables. What is wrong with them but does no harm is added to `damages`.
pub(crate) fn read(
    window: &mut Window<'_>,
    any_version: bool,
    damages: &mut Vec<Damage>,
) -> Result<Preamble, SptError> {
    let header = header(window, any_version)?;
    check(&header, window.len(), damages)?;
    let names = names(window, &header, damages)?;
    let programs = programs(window, &header, &names, damages)?;
    Ok(Preamble { header, names, programs })
}

fn header(window: &mut Window<'_>, any_version: bool) -> Result<Header, SptError> {
    let file_len = window.len();
    let bytes = window.at(0, HEADER_SIZE)?;
    let Some(bytes) = bytes.first_chunk::<HEADER_SIZE>() else {
        return Err(SptError::TooShort { found: file_len });
    };
    let signature = Signature::of(bytes).ok_or_else(|| SptError::Signature { found: u32_at(bytes, 0) })?;
    let version = u32_at(bytes, 4);
    if version != VERSION && !any_version {
        return Err(SptError::Version { found: version });
    }
    Ok(Header {
        signature,
        version,
        raw_data_id: u32_at(bytes, 8),
        target_arch: u32_at(bytes, 12),
        string_table_offset: u32_at(bytes, 16),
        program_table_offset: u32_at(bytes, 20),
        string_table_used: u16_at(bytes, 24),
        string_table_capacity: u16_at(bytes, 26),
        programs_used: u16_at(bytes, 28),
        program_capacity: u16_at(bytes, 30),
    })
}

/// Checks that the tables lie in the file, and what else can be said from the header alone.
fn check(header: &Header, file_len: u64, damages: &mut Vec<Damage>) -> Result<(), SptError> {
    let strings = u64::from(header.string_table_offset);
    for (table, offset) in [
        ("string table", strings),
        ("program-id table", u64::from(header.program_table_offset)),
        ("data stream", header.data_start()),
    ] {
        if offset > file_len {
            return Err(SptError::BeyondEnd { table, offset, file_len });
        }
    }
    let mut add = |kind, offset| damages.push(Damage { kind, offset, segment: None });
    for (value, offset) in [(header.raw_data_id, 8), (header.target_arch, 12)] {
        if value != 0 {
            add(DamageKind::Reserved(value), offset);
        }
    }
    if let Some(offset) = overlap(header) {
        add(DamageKind::TablesOverlap, offset);
    }
    if strings + u64::from(used_string_bytes(header)) > file_len {
        add(DamageKind::StringTableCut, strings);
    }
    if header.programs_used > header.program_capacity {
        let (used, capacity) = (header.programs_used, header.program_capacity);
        add(DamageKind::ProgramsClamped { used, capacity }, 28);
    }
    Ok(())
}

fn used_string_bytes(header: &Header) -> u16 {
    header.string_table_used.min(header.string_table_capacity)
}

/// Where two of header, string table, program-id table and data stream meet, if any do.
fn overlap(header: &Header) -> Option<u64> {
    let strings = u64::from(header.string_table_offset);
    let programs = u64::from(header.program_table_offset);
    let parts = [
        (0, HEADER_SIZE as u64),
        (strings, strings + u64::from(header.string_table_capacity)),
        (programs, header.data_start()),
        (header.data_start(), u64::MAX),
    ];
    let pairs = [(0, 1), (0, 2), (1, 2), (1, 3)];
    pairs.into_iter().find_map(|(a, b)| {
        let (a, b) = (parts.get(a)?, parts.get(b)?);
        let start = a.0.max(b.0);
        (start < a.1.min(b.1)).then_some(start)
    })
}

fn names(window: &mut Window<'_>, header: &Header, damages: &mut Vec<Damage>) -> Result<Vec<Name>, SptError> {
    let start = u64::from(header.string_table_offset);
    let used = usize::from(used_string_bytes(header));
    let bytes = window.at(start, used)?;
    let bytes = bytes.get(..used).unwrap_or(bytes);
    let mut names = Vec::new();
    let mut offset = 0;
    for part in bytes.split_inclusive(|byte| *byte == 0) {
        let text = String::from_utf8_lossy(part.strip_suffix(&[0]).unwrap_or(part));
        if matches!(text, std::borrow::Cow::Owned(_)) {
            damages.push(Damage { kind: DamageKind::NotUtf8, offset: start + u64::from(offset), segment: None });
        }
        names.push(Name { offset, text: text.into_owned() });
        // The whole table is shorter than 64 KiB.
        offset = offset.saturating_add(part.len() as u16);
    }
    Ok(names)
}

fn programs(
    window: &mut Window<'_>,
    header: &Header,
    names: &[Name],
    damages: &mut Vec<Damage>,
) -> Result<Vec<Program>, SptError> {
    let start = u64::from(header.program_table_offset);
    let count = header.programs_used.min(header.program_capacity);
    let bytes = window.at(start, usize::from(count) * PROGRAM_SIZE)?;
    let (entries, _) = bytes.as_chunks::<PROGRAM_SIZE>();
    let mut programs = Vec::with_capacity(usize::from(count));
    for (program, entry) in (0..count).zip(entries) {
        let string_index = u32_at(entry, 20);
        let name = name(names, string_index).unwrap_or_else(|| {
            let kind = DamageKind::NoName { program, index: string_index };
            let offset = start + u64::from(program) * PROGRAM_SIZE as u64 + 20;
            damages.push(Damage { kind, offset, segment: None });
            format!("unknown-{program}")
        });
        let guid = entry.first_chunk().copied().unwrap_or_default();
        programs.push(Program { id: PdbId { guid, age: u32_at(entry, 16) }, string_index, name });
    }
    Ok(programs)
}

/// The name at an index, which is the offset of a name or else its position.
fn name(names: &[Name], index: u32) -> Option<String> {
    let by_offset = u16::try_from(index).ok().and_then(|offset| names.binary_search_by_key(&offset, |n| n.offset).ok());
    let position = by_offset.or_else(|| usize::try_from(index).ok())?;
    names.get(position).map(|name| name.text.clone())
}
