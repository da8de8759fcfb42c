//! The header of a perf.data file: attributes, and where records and feature sections lie.

use super::attr::{Attr, SMALLEST};
use super::bytes::Order;
use super::features::{Features, feature};
use super::{PerfDataError, limit};
use crate::ReadSeek;
use heatline_profile::{FileOffset, Problems};
use std::io::{self, Read, SeekFrom};

/// The size of a header with feature bits.
pub(crate) const FILE_HEADER: u64 = 104;

/// The size of the header of a stream.
pub(crate) const PIPE_HEADER: u64 = 16;

/// A range of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Section {
    pub offset: u64,
    pub size: u64,
}

impl Section {
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// The first bytes of a file or stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Start {
    pub order: Order,
    /// The size of the header, which tells a file from a stream.
    pub size: u64,
}

impl Start {
    /// Reads the magic and the header's size.
    pub fn read(input: &mut (impl Read + ?Sized)) -> Result<Start, PerfDataError> {
        let mut bytes = [0; PIPE_HEADER as usize];
        input.read_exact(&mut bytes).map_err(|error| short(error, 0))?;
        let order = match bytes.first_chunk() {
            Some(b"PERFILE2") => Order::Little,
            Some(b"2ELIFREP") => Order::Big,
            _ => return Err(PerfDataError::BadMagic),
        };
        let size = order.u64_at(&bytes, 8).unwrap_or(0);
        Ok(Start { order, size })
    }

    pub fn is_stream(&self) -> bool {
        self.size == PIPE_HEADER
    }

    /// Where the records begin, according to the bytes of a file's header.
    pub fn records_offset(&self, header: &[u8]) -> u64 {
        self.order.u64_at(header, 40).unwrap_or(0)
    }
}

/// One event of the attribute section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct EventHeader {
    pub attr: Attr,
    pub ids: Vec<u64>,
}

/// What the header of a file says.
pub(crate) struct Header {
    pub events: Vec<EventHeader>,
    pub data: Section,
    /// The numbers of the feature sections, whose table lies behind the records.
    feature_bits: Vec<u32>,
    /// Whether the recorder never came to write the header a second time.
    pub unclosed: bool,
}

impl Header {
    /// Reads the header and the attributes that it refers to. `file` stands behind [`Start`].
    pub fn read(file: &mut dyn ReadSeek, start: Start, problems: &mut Problems) -> Result<Header, PerfDataError> {
        if start.size < FILE_HEADER {
            return Err(PerfDataError::HeaderSize { found: start.size });
        }
        let mut sections = Sections::new(file, 0, start.order)?;
        let fixed = sections.whole(Section { offset: PIPE_HEADER, size: FILE_HEADER - PIPE_HEADER })?;
        let word = |index: usize| start.order.u64_at(&fixed, 8 * index).unwrap_or(0);
        let section = |index: usize| Section { offset: word(index), size: word(index + 1) };
        let data = section(3);
        let events = sections.attributes(word(0), section(1), problems)?;
        let unclosed = data.size == 0;
        let feature_bits = if unclosed { Vec::new() } else { feature_bits(&fixed, start.order) };
        Ok(Header { events, data, feature_bits, unclosed })
    }

    /// Reads the feature sections into `features`. `file` holds the bytes from position `first` of the input on.
    pub fn read_features(
        &self,
        file: &mut dyn ReadSeek,
        first: u64,
        order: Order,
        features: &mut Features,
        problems: &mut Problems,
    ) -> Result<(), PerfDataError> {
        if self.unclosed {
            return Ok(());
        }
        Sections::new(file, first, order)?.features(self.data.end(), &self.feature_bits, features, problems)
    }
}

/// Reads ranges of a file, none longer than what the file holds.
struct Sections<'a> {
    file: &'a mut dyn ReadSeek,
    /// The position in the input of the first byte that `file` holds.
    first: u64,
    /// The position in the input of the end of `file`.
    end: u64,
    order: Order,
}

impl<'a> Sections<'a> {
    fn new(file: &'a mut dyn ReadSeek, first: u64, order: Order) -> Result<Self, PerfDataError> {
        let length = file.seek(SeekFrom::End(0))?;
        Ok(Sections { file, first, end: first.saturating_add(length), order })
    }

    /// A section that must be there.
    fn whole(&mut self, section: Section) -> Result<Vec<u8>, PerfDataError> {
        let bytes = self.part(section)?;
        if (bytes.len() as u64) < section.size {
            return Err(PerfDataError::Short { expected: section.size, offset: section.offset });
        }
        Ok(bytes)
    }

    /// What the file holds of a section.
    fn part(&mut self, section: Section) -> Result<Vec<u8>, PerfDataError> {
        let size = section.size.min(self.end.saturating_sub(section.offset));
        let mut bytes = Vec::new();
        if let Some(position) = section.offset.checked_sub(self.first)
            && size > 0
        {
            self.file.seek(SeekFrom::Start(position))?;
            (&mut *self.file).take(size).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    fn attributes(
        &mut self,
        entry_size: u64,
        section: Section,
        problems: &mut Problems,
    ) -> Result<Vec<EventHeader>, PerfDataError> {
        let entry = usize::try_from(entry_size).ok().filter(|size| (SMALLEST + 16..=limit::ATTR_ENTRY).contains(size));
        let Some(entry) = entry else { return Err(PerfDataError::AttributeSize { found: entry_size }) };
        let bytes = self.part(section)?;
        let mut events = Vec::new();
        for attribute in bytes.chunks_exact(entry).take(limit::EVENTS) {
            let (attr, ids) = attribute.split_at(entry - 16);
            let Some(attr) = Attr::parse(attr, self.order) else { continue };
            let word = |at| self.order.u64_at(ids, at).unwrap_or(0);
            let ids = Section { offset: word(0), size: word(8) };
            events.push(EventHeader { attr, ids: self.ids(ids, problems)? });
        }
        let cut = (bytes.len() as u64) < section.size;
        if cut || events.is_empty() || bytes.len() / entry > limit::EVENTS {
            let message = format!(
                "expected {} bytes of event attributes, found {}; record anew if events are missing",
                section.size,
                bytes.len()
            );
            problems.add("truncated", 1, Some(FileOffset(section.offset)), message);
        }
        Ok(events)
    }

    fn ids(&mut self, section: Section, problems: &mut Problems) -> Result<Vec<u64>, PerfDataError> {
        let bytes = self.part(section)?;
        if (bytes.len() as u64) < section.size {
            let message = "the ids of an event lie beyond the end of the file; its samples may be missing";
            problems.add("truncated", 1, Some(FileOffset(section.offset)), message);
        }
        Ok(bytes.as_chunks::<8>().0.iter().map(|&id| self.order.u64(id)).collect())
    }

    /// The table of feature sections lies behind the records, with one entry for each set bit.
    fn features(
        &mut self,
        table: u64,
        bits: &[u32],
        features: &mut Features,
        problems: &mut Problems,
    ) -> Result<(), PerfDataError> {
        let entries = self.part(Section { offset: table, size: 16 * bits.len() as u64 })?;
        let mut missing = bits.len() - entries.len() / 16;
        for (&bit, entry) in bits.iter().zip(entries.as_chunks::<16>().0) {
            let word = |at| self.order.u64_at(entry, at).unwrap_or(0);
            let section = Section { offset: word(0), size: word(8) };
            if !features.wants(bit) {
                continue;
            }
            let bytes = self.part(section)?;
            features.tell(bit, section.offset, &bytes, self.order);
            let damaged = features.section(bit, &bytes, self.order).is_none();
            missing += usize::from(damaged || (bytes.len() as u64) < section.size);
        }
        if missing > 0 {
            let message = "header sections are missing or damaged, so names of events or identities of binaries may \
                           be unknown; the file may be incomplete";
            problems.add("damaged-header", missing as u64, Some(FileOffset(table)), message);
        }
        Ok(())
    }
}

/// The numbers of the set feature bits.
fn feature_bits(fixed: &[u8], order: Order) -> Vec<u32> {
    let field = fixed.get(56..88).unwrap_or(&[]);
    let numbers = |words: [u64; 4]| -> Vec<u32> {
        (0..256).filter(|bit| words[*bit as usize / 64] >> (bit % 64) & 1 == 1).collect()
    };
    let words = std::array::from_fn(|i| order.u64_at(field, 8 * i).unwrap_or(0));
    let bits = numbers(words);
    // A 32-bit machine of big byte order has the halves of each word the other way round. perf tells by the host name,
    // which every recorder writes.
    if order == Order::Big && !bits.contains(&feature::HOSTNAME) {
        let swapped = numbers(words.map(|word| word.rotate_left(32)));
        if swapped.contains(&feature::HOSTNAME) {
            return swapped;
        }
    }
    bits
}

fn short(error: io::Error, offset: u64) -> PerfDataError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => PerfDataError::Short { expected: PIPE_HEADER, offset },
        _ => PerfDataError::Io(error),
    }
}
