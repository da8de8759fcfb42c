//! What unwinding needs of an ELF file: its unwind sections, and how its segments lie.

use crate::BinaryBytes;
use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of one unwind section at most.
const MOST_SECTION: u64 = 256 << 20;

/// A section of a file and where it is linked to.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub addresses: Range<u64>,
    pub bytes: Arc<[u8]>,
}

/// A loadable part of a file.
#[derive(Clone, Copy, Debug)]
struct Segment {
    address: u64,
    file_offset: u64,
    file_size: u64,
    executable: bool,
}

/// One ELF file.
#[derive(Clone, Debug)]
pub(crate) struct ElfImage {
    segments: Vec<Segment>,
    pub text: Option<Range<u64>>,
    pub got: Option<Range<u64>>,
    pub eh_frame: Option<Section>,
    pub eh_frame_header: Option<Section>,
    pub debug_frame: Option<Section>,
}

impl ElfImage {
    /// Reads what is needed; `None` if this is no ELF file of 64 bits or it is damaged.
    pub fn read(bytes: Arc<dyn BinaryBytes>) -> Option<ElfImage> {
        let cache = ReadCache::new(Reading { length: bytes.length(), bytes, position: 0 });
        let file = object::File::parse(&cache).ok()?;
        if !file.is_64() {
            return None;
        }
        let segments = file.segments().map(|segment| {
            let (file_offset, file_size) = segment.file_range();
            let executable = segment.permissions().executable();
            Segment { address: segment.address(), file_offset, file_size, executable }
        });
        let range = |name: &str| file.section_by_name(name).map(|s| s.address()..s.address().saturating_add(s.size()));
        let section = |name: &str| {
            let section = file.section_by_name(name).filter(|section| section.size() <= MOST_SECTION)?;
            let bytes = section.uncompressed_data().ok().filter(|bytes| !bytes.is_empty())?;
            let addresses = section.address()..section.address().saturating_add(section.size());
            Some(Section { addresses, bytes: Arc::from(&*bytes) })
        };
        let eh_frame = section(".eh_frame");
        let debug_frame = if eh_frame.is_none() { section(".debug_frame") } else { None };
        Some(ElfImage {
            segments: segments.collect(),
            text: range(".text"),
            got: range(".got"),
            eh_frame,
            eh_frame_header: section(".eh_frame_hdr"),
            debug_frame,
        })
    }

    /// The address that a position of the file is linked to, as a mapping of code from there on has it.
    pub fn address_of(&self, file_offset: u64) -> Option<u64> {
        const PAGE: u64 = 0xffff;
        let holds = |segment: &&Segment| {
            let start = segment.file_offset & !PAGE;
            start <= file_offset && file_offset < segment.file_offset.saturating_add(segment.file_size)
        };
        let mut fitting = self.segments.iter().filter(holds);
        let segment = fitting.clone().rfind(|segment| segment.executable).or_else(|| fitting.next_back())?;
        Some(segment.address.wrapping_sub(segment.file_offset).wrapping_add(file_offset))
    }
}

/// The bytes of a file as a stream.
struct Reading {
    bytes: Arc<dyn BinaryBytes>,
    length: u64,
    position: u64,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.length.saturating_sub(self.position);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        if let Some(part) = buffer.get_mut(..count) {
            self.bytes.read_at(self.position, part)?;
            self.position += count as u64;
        }
        Ok(count)
    }
}

impl Seek for Reading {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(distance) => self.length.checked_add_signed(distance),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
