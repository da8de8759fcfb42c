//! The containers ELF and PE: headers, sections, segments, identity. The one door to the crate `object`.
//!
//! Opening reads headers, section names and notes only. The content of a section is read when it is asked for, into a
//! vector of its own, and decompressed where the section says so.

use crate::pdb::{self, Pdb};
use crate::storage::{Source, read_part};
use crate::{Storage, SymbolError};
use heatline_profile::{BuildId, Identity, PdbId};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable};
use object::read::pe::{ImageNtHeaders, PeFile};
use object::read::{CompressedData, CompressionFormat, Object, ObjectSection, ReadCache, ReadCacheOps};
use object::{Endianness, elf, pe};
use std::io;
use std::sync::Arc;

/// More sections than any linker writes; their names are kept.
const MOST_SECTIONS: usize = 1 << 20;
/// More segments than any linker writes.
const MOST_SEGMENTS: usize = 1 << 12;
/// A section may not claim to unpack to more than this many bytes.
const MOST_UNPACKED: u64 = 16 << 30;
/// Nor to more than this many times its size: deflate cannot do better, and no debug information comes near.
const MOST_UNPACKED_RATIO: u64 = 1032;
/// A build id longer than this is none.
const LONGEST_BUILD_ID: usize = 64;

/// The kind of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageKind {
    /// Executable and Linkable Format.
    Elf,
    /// Portable Executable.
    Pe,
    /// A program database alone, without its PE image.
    Pdb,
}

/// The processors of whose instructions some are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Machine {
    X86,
    X86_64,
    Aarch64,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SectionKind {
    Symbols,
    DynamicSymbols,
    /// Relocations with addend.
    Rela,
    /// Takes no bytes of the file.
    NoBits,
    Other,
}

/// A section; `offset` and `stored` say where its bytes are in the file, still compressed.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub name: String,
    pub kind: SectionKind,
    pub address: u64,
    pub size: u64,
    pub executable: bool,
    pub offset: u64,
    pub stored: u64,
    /// The number of another section, for symbols that of their strings.
    pub link: usize,
    compression: Compression,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Compression {
    None,
    /// Format from a header that says how many bytes it unpacks to.
    Packed(CompressionFormat, u64),
    /// `.zdebug_…`: the header lies in the data.
    Gnu,
}

/// A part of the file that is mapped when the image is loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub offset: u64,
    pub file_size: u64,
    pub address: u64,
    pub memory_size: u64,
    pub executable: bool,
}

/// The headers of one ELF or PE file.
pub(crate) struct ObjectFile {
    pub storage: Arc<dyn Storage>,
    pub kind: ImageKind,
    pub machine: Machine,
    pub big_endian: bool,
    pub is_64: bool,
    /// The address that RVAs count from; 0 for ELF.
    pub base: u64,
    pub identity: Option<Identity>,
    /// The path of the PDB, as the linker recorded it.
    pub pdb_path: Option<String>,
    pub segments: Vec<Segment>,
    pub sections: Vec<Section>,
}

/// Lets `object` read from a [`Storage`].
struct Cursor {
    storage: Arc<dyn Storage>,
    position: u64,
}

impl ReadCacheOps for Cursor {
    fn len(&mut self) -> Result<u64, ()> {
        Ok(self.storage.len())
    }

    fn seek(&mut self, position: u64) -> Result<u64, ()> {
        self.position = position;
        Ok(position)
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ()> {
        let left = self.storage.len().saturating_sub(self.position);
        let count = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.read_exact(buffer.get_mut(..count).ok_or(())?)?;
        Ok(count)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ()> {
        self.storage.read_at(self.position, buffer).map_err(|_| ())?;
        self.position = self.position.checked_add(buffer.len() as u64).ok_or(())?;
        Ok(())
    }
}

type Cache<'a> = &'a ReadCache<Cursor>;

impl ObjectFile {
    /// Reads the headers.
    ///
    /// # Errors
    /// For what is neither ELF nor PE, or whose headers are damaged.
    pub fn open(storage: Arc<dyn Storage>) -> Result<ObjectFile, SymbolError> {
        let mut start = vec![0; storage.len().min(64) as usize];
        storage
            .read_at(0, &mut start)
            .map_err(|source| SymbolError::Read { what: "the first bytes".to_owned(), source })?;
        let cache = ReadCache::new(Cursor { storage: storage.clone(), position: 0 });
        let headers = |format| move |e: object::Error| SymbolError::Headers { format, message: e.to_string() };
        match start.as_slice() {
            [0x7f, b'E', b'L', b'F', 1, ..] => {
                open_elf::<elf::FileHeader32<Endianness>>(&cache, storage).map_err(headers("ELF"))
            }
            [0x7f, b'E', b'L', b'F', 2, ..] => {
                open_elf::<elf::FileHeader64<Endianness>>(&cache, storage).map_err(headers("ELF"))
            }
            [b'M', b'Z', ..] => open_pe(&cache, storage).map_err(headers("PE")),
            start if pdb::is_pdb(start) => Ok(of_pdb(&pdb::open(&storage)?, storage)),
            _ => {
                start.truncate(8);
                Err(SymbolError::UnknownFormat { found: start })
            }
        }
    }

    /// The section of that name, under its old compressed name too (`.zdebug_info` for `.debug_info`).
    pub fn section(&self, name: &str) -> Option<&Section> {
        let matches = |section: &&Section| {
            section.kind != SectionKind::NoBits
                && (section.name == name
                    || section.compression == Compression::Gnu && section.name.get(2..) == name.get(1..))
        };
        self.sections.iter().find(matches)
    }

    /// Whether there is a section of that name with content.
    pub fn has(&self, name: &str) -> bool {
        self.section(name).is_some_and(|section| section.stored > 0)
    }

    /// The content of a section, unpacked.
    ///
    /// # Errors
    /// Where the file ends too early, or the packed data is damaged or claims too much.
    pub fn content(&self, section: &Section) -> io::Result<Vec<u8>> {
        if section.kind == SectionKind::NoBits {
            return Ok(Vec::new());
        }
        let mut stored = read_part(&*self.storage, section.offset, section.stored)?;
        let (format, size) = match section.compression {
            Compression::None => return Ok(stored),
            Compression::Packed(format, size) => (format, size),
            Compression::Gnu => {
                let size = gnu_unpacked_size(&stored).ok_or_else(|| invalid("a damaged .zdebug header"))?;
                stored.drain(..GNU_HEADER);
                (CompressionFormat::Zlib, size)
            }
        };
        unpack(&stored, format, size)
    }

    /// Where the content of the section of that name is; nowhere where there is none. What is packed is unpacked now,
    /// anything else is read when it is looked at.
    ///
    /// # Errors
    /// As [`ObjectFile::content`].
    pub fn source_of(&self, name: &str) -> io::Result<Source> {
        let Some(section) = self.section(name).filter(|section| section.kind != SectionKind::NoBits) else {
            return Ok(Source::empty());
        };
        if section.compression != Compression::None {
            return Ok(Source::Whole(Arc::new(self.content(section)?)));
        }
        let end = section.offset.checked_add(section.stored);
        if end.is_none_or(|end| end > self.storage.len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let size = usize::try_from(section.stored).map_err(|_| io::ErrorKind::OutOfMemory)?;
        Ok(Source::Stored { storage: self.storage.clone(), offset: section.offset, size })
    }

    /// The content of the section of that name; empty where there is none.
    ///
    /// # Errors
    /// As [`ObjectFile::content`].
    pub fn content_of(&self, name: &str) -> io::Result<Vec<u8>> {
        self.section(name).map_or(Ok(Vec::new()), |section| self.content(section))
    }
}

fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

/// The length of the header `ZLIB` + size of `.zdebug_…` sections.
const GNU_HEADER: usize = 12;

fn gnu_unpacked_size(stored: &[u8]) -> Option<u64> {
    let size = stored.strip_prefix(b"ZLIB")?.first_chunk::<8>()?;
    Some(u64::from_be_bytes(*size))
}

fn unpack(packed: &[u8], format: CompressionFormat, size: u64) -> io::Result<Vec<u8>> {
    if size > MOST_UNPACKED || size > (packed.len() as u64 + 64).saturating_mul(MOST_UNPACKED_RATIO) {
        return Err(invalid(format!("a section of {} bytes claims to unpack to {size}", packed.len())));
    }
    let data = CompressedData { format, data: packed, uncompressed_size: size };
    Ok(data.decompress().map_err(|e| invalid(e.to_string()))?.into_owned())
}

fn open_elf<H: FileHeader<Endian = Endianness>>(
    data: Cache<'_>,
    storage: Arc<dyn Storage>,
) -> object::Result<ObjectFile> {
    let header = H::parse(data)?;
    let endian = header.endian()?;
    let program_headers = header.program_headers(endian, data).unwrap_or_default();
    let table = header.sections(endian, data).unwrap_or_default();
    let load = |p: &&H::ProgramHeader| p.p_type(endian) == elf::PT_LOAD;
    Ok(ObjectFile {
        storage,
        kind: ImageKind::Elf,
        machine: match header.e_machine(endian) {
            elf::EM_X86_64 => Machine::X86_64,
            elf::EM_AARCH64 => Machine::Aarch64,
            _ => Machine::Other,
        },
        big_endian: header.is_big_endian(),
        is_64: header.is_class_64(),
        base: 0,
        pdb_path: None,
        identity: elf_identity::<H>(endian, data, program_headers, &table),
        segments: program_headers
            .iter()
            .filter(load)
            .take(MOST_SEGMENTS)
            .map(|p| Segment {
                offset: p.p_offset(endian).into(),
                file_size: p.p_filesz(endian).into(),
                address: p.p_vaddr(endian).into(),
                memory_size: p.p_memsz(endian).into(),
                executable: p.p_flags(endian).contains(elf::PF_X),
            })
            .collect(),
        sections: table.iter().take(MOST_SECTIONS).map(|s| elf_section::<H>(endian, data, &table, s)).collect(),
    })
}

fn elf_section<'a, H: FileHeader<Endian = Endianness>>(
    endian: Endianness,
    data: Cache<'a>,
    table: &SectionTable<'a, H, Cache<'a>>,
    section: &H::SectionHeader,
) -> Section {
    let name = table.section_name(endian, section).unwrap_or_default();
    let name = String::from_utf8_lossy(name).into_owned();
    let flags = section.sh_flags(endian);
    let (mut offset, mut stored) = (section.sh_offset(endian).into(), section.sh_size(endian).into());
    let mut compression = if name.starts_with(".zdebug_") { Compression::Gnu } else { Compression::None };
    if let Ok(Some((header, at, size))) = section.compression(endian, data) {
        use object::read::elf::CompressionHeader;
        let format = match header.ch_type(endian) {
            elf::ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
            elf::ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
            _ => CompressionFormat::Unknown,
        };
        (offset, stored) = (at, size);
        compression = Compression::Packed(format, header.ch_size(endian).into());
    }
    Section {
        name,
        kind: match section.sh_type(endian) {
            elf::SHT_SYMTAB => SectionKind::Symbols,
            elf::SHT_DYNSYM => SectionKind::DynamicSymbols,
            elf::SHT_RELA => SectionKind::Rela,
            elf::SHT_NOBITS => SectionKind::NoBits,
            _ => SectionKind::Other,
        },
        address: section.sh_addr(endian).into(),
        size: section.sh_size(endian).into(),
        executable: flags.contains(elf::SHF_EXECINSTR) && flags.contains(elf::SHF_ALLOC),
        offset,
        stored,
        link: section.sh_link(endian) as usize,
        compression,
    }
}

/// The build id: from the sections, or, where they are stripped, from the segments. Each note is tried on its own, so
/// a damaged one hides no other.
fn elf_identity<'a, H: FileHeader<Endian = Endianness>>(
    endian: Endianness,
    data: Cache<'a>,
    program_headers: &'a [H::ProgramHeader],
    table: &SectionTable<'a, H, Cache<'a>>,
) -> Option<Identity> {
    let sections = table.iter().filter_map(|s| s.notes(endian, data).ok().flatten());
    let segments = program_headers.iter().filter_map(|p| p.notes(endian, data).ok().flatten());
    for mut notes in sections.chain(segments) {
        while let Ok(Some(note)) = notes.next() {
            if note.name() == elf::ELF_NOTE_GNU
                && note.n_type(endian) == elf::NT_GNU_BUILD_ID
                && (1..=LONGEST_BUILD_ID).contains(&note.desc().len())
            {
                return Some(Identity::BuildId(BuildId(note.desc().to_vec())));
            }
        }
    }
    None
}

fn open_pe(data: Cache<'_>, storage: Arc<dyn Storage>) -> object::Result<ObjectFile> {
    match object::read::pe::optional_header_magic(data)? {
        pe::IMAGE_NT_OPTIONAL_HDR64_MAGIC => open_pe_as(PeFile::<pe::ImageNtHeaders64, _>::parse(data)?, true, storage),
        _ => open_pe_as(PeFile::<pe::ImageNtHeaders32, _>::parse(data)?, false, storage),
    }
}

fn open_pe_as<'a, P: ImageNtHeaders>(
    file: PeFile<'a, P, Cache<'a>>,
    is_64: bool,
    storage: Arc<dyn Storage>,
) -> object::Result<ObjectFile> {
    let base = file.relative_address_base();
    let pdb = file.pdb_info().ok().flatten();
    let identity = pdb.map(|view| Identity::Pdb(PdbId { guid: view.guid(), age: view.age() }));
    let pdb_path = pdb.map(|view| String::from_utf8_lossy(view.path()).into_owned());
    let sections: Vec<_> = file.sections().take(MOST_SECTIONS).map(|s| pe_section(&s)).collect();
    let segment = |s: &Section| Segment {
        offset: s.offset,
        file_size: s.stored,
        address: s.address,
        memory_size: s.size,
        executable: s.executable,
    };
    Ok(ObjectFile {
        storage,
        kind: ImageKind::Pe,
        machine: match file.architecture() {
            object::Architecture::I386 => Machine::X86,
            object::Architecture::X86_64 => Machine::X86_64,
            object::Architecture::Aarch64 => Machine::Aarch64,
            _ => Machine::Other,
        },
        big_endian: false,
        is_64,
        base,
        identity: identity.filter(|id| !matches!(id, Identity::Pdb(id) if id.is_nil())),
        pdb_path,
        segments: sections.iter().map(segment).collect(),
        sections,
    })
}

/// A PDB alone stands for its image, as if that were loaded at 0.
fn of_pdb(pdb: &Pdb, storage: Arc<dyn Storage>) -> ObjectFile {
    let section = |section: &pdb::Section| Section {
        name: section.name.clone(),
        kind: SectionKind::NoBits,
        address: section.rva.into(),
        size: section.size.into(),
        executable: section.executable,
        offset: 0,
        stored: 0,
        link: 0,
        compression: Compression::None,
    };
    ObjectFile {
        storage,
        kind: ImageKind::Pdb,
        machine: Machine::Other,
        big_endian: false,
        is_64: true,
        base: 0,
        identity: Some(Identity::Pdb(pdb.identity.id())).filter(|id| !matches!(id, Identity::Pdb(id) if id.is_nil())),
        pdb_path: None,
        segments: Vec::new(),
        sections: pdb.sections.iter().map(section).collect(),
    }
}

fn pe_section<'a>(section: &impl ObjectSection<'a>) -> Section {
    let (offset, stored) = section.file_range().unwrap_or_default();
    let executable = match section.flags() {
        object::SectionFlags::Coff { characteristics } => characteristics.contains(pe::IMAGE_SCN_MEM_EXECUTE),
        _ => false,
    };
    Section {
        name: String::from_utf8_lossy(section.name_bytes().unwrap_or_default()).into_owned(),
        kind: if stored == 0 { SectionKind::NoBits } else { SectionKind::Other },
        address: section.address(),
        size: section.size(),
        executable,
        offset,
        stored,
        link: 0,
        compression: Compression::None,
    }
}

/// One entry of a symbol table, without its name's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawSymbol {
    pub value: u64,
    pub size: u64,
    /// Where its name starts in the strings.
    pub name: u32,
    /// 0 undefined, 0xfff1 absolute.
    pub section: u16,
    /// Low half `STT_…`, high half `STB_…`.
    pub info: u8,
    /// Its lowest two bits: `STV_…`.
    pub other: u8,
}

impl ObjectFile {
    /// Decodes the entries of an ELF symbol table.
    pub fn symbols(&self, content: &[u8]) -> Vec<RawSymbol> {
        let endian = if self.big_endian { Endianness::Big } else { Endianness::Little };
        if self.is_64 {
            decode::<elf::Sym64<Endianness>>(endian, content)
        } else {
            decode::<elf::Sym32<Endianness>>(endian, content)
        }
    }
}

fn decode<S: object::read::elf::Sym<Endian = Endianness>>(endian: Endianness, content: &[u8]) -> Vec<RawSymbol> {
    let count = content.len() / size_of::<S>();
    let whole = content.get(..count * size_of::<S>()).unwrap_or_default();
    let Ok(symbols) = object::pod::slice_from_all_bytes::<S>(whole) else { return Vec::new() };
    let raw = |s: &S| RawSymbol {
        value: s.st_value(endian).into(),
        size: s.st_size(endian).into(),
        name: s.st_name(endian),
        section: s.st_shndx(endian).0,
        info: s.st_info().0,
        other: s.st_other().0,
    };
    symbols.iter().map(raw).collect()
}
