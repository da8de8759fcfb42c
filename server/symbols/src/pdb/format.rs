//! The container of a PDB: streams, modules, addresses and type names. The one door to the crates `pdb2` and
//! `pdb_addr2line`.
//!
//! Only what is small or hard to get right is left to them: the paged container, the lists of modules and of section
//! contributions, the address maps (OMAP), and how types are written. Lines and symbols are decoded by ourselves: `pdb2`
//! drops the rows that hide code, lets rows reach past gaps, and panics or allocates without measure on damage.

use super::names::NameKey;
use super::types::Extents;
use crate::Storage;
use crate::storage::read_part;
use pdb_addr2line::{ModuleProvider, TypeFormatter, TypeFormatterFlags};
use pdb2::{
    AddressMap, DebugInformation, FallibleIterator, IdIndex, Module, ModuleInfo, PDB, PdbInternalSectionOffset, Rva,
    Source, SourceSlice, SourceView, StreamIndex, StringRef, StringTable, TypeIndex,
};
use std::fmt;
use std::io;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};

pub(super) use pdb2::Error;

/// The streams of types and of functions and scopes that are not types.
const TYPES: u16 = 2;
const IDS: u16 = 4;
/// A name longer than this is cut off; types can be shared so that names double at each step.
const LONGEST_NAME: usize = 1 << 12;
/// More modules than any linker writes, and than a section contribution can name.
const MOST_MODULES: usize = 1 << 16;
/// More contributions than the largest binaries have.
const MOST_CONTRIBUTIONS: usize = 1 << 24;
/// More sections than a PE file can have.
const MOST_SECTIONS: usize = 1 << 16;

/// Lets `pdb2` read from a [`Storage`].
#[derive(Clone)]
struct Reader(Arc<dyn Storage>);

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reader({} bytes)", self.0.len())
    }
}

struct View(Vec<u8>);

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({} bytes)", self.0.len())
    }
}

impl SourceView<'_> for View {
    fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl Source<'static> for Reader {
    fn view(&mut self, slices: &[SourceSlice]) -> Result<Box<dyn SourceView<'static> + Send + Sync>, io::Error> {
        // A stream that is larger than the file uses pages of it twice.
        let wanted = slices.iter().fold(0_u64, |sum, slice| sum.saturating_add(slice.size as u64));
        // The last page may be shorter than the others.
        if wanted > self.0.len().saturating_add(slices.len() as u64) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = Vec::with_capacity(wanted as usize);
        for slice in slices {
            bytes.extend(read_part(&*self.0, slice.offset, slice.size as u64)?);
        }
        Ok(Box::new(View(bytes)))
    }
}

/// An opened PDB.
pub(super) struct File {
    pdb: PDB<'static, Reader>,
    debug: DebugInformation<'static>,
    /// Bytes in the file.
    size: u64,
}

/// An address as the PDB has it: section, from 1, and offset in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Place {
    pub section: u16,
    pub offset: u32,
}

/// A piece of a section that one module contributed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contribution {
    pub start: Place,
    pub size: u32,
    pub module: usize,
}

/// A section of the image.
pub(super) struct SectionHeader {
    pub name: String,
    pub rva: u32,
    pub size: u32,
    pub executable: bool,
}

/// The stream of one module: its symbols, then lines of an old kind, then lines.
pub(super) struct ModuleStream {
    /// Of a type that `pdb2` has no public name for.
    stream: Box<dyn Deref<Target = [u8]> + Send + Sync>,
    symbols: usize,
    old_lines: usize,
    lines: usize,
}

impl ModuleStream {
    pub fn size(&self) -> usize {
        self.stream.len()
    }

    pub fn symbols(&self) -> &[u8] {
        self.stream.get(..self.symbols).unwrap_or(&self.stream)
    }

    pub fn lines(&self) -> &[u8] {
        let start = self.symbols.saturating_add(self.old_lines);
        let rest = self.stream.get(start..).unwrap_or_default();
        rest.get(..self.lines).unwrap_or(rest)
    }
}

impl File {
    pub fn open(storage: &Arc<dyn Storage>) -> Result<File, Error> {
        let mut pdb = PDB::open(Reader(storage.clone()))?;
        let debug = pdb.debug_information()?;
        Ok(File { pdb, debug, size: storage.len() })
    }

    /// GUID as it lies in the file, the age of the information stream, and that of the debug information, if it has
    /// one.
    pub fn identity(&mut self) -> Result<([u8; 16], u32, Option<u32>), Error> {
        let information = self.pdb.pdb_information()?;
        Ok((information.guid.to_bytes_le(), information.age, self.debug.age()))
    }

    /// The information stream as a whole.
    pub fn information_stream(&mut self) -> Result<Vec<u8>, Error> {
        Ok(self.pdb.raw_stream(StreamIndex(1))?.map(|stream| stream.to_vec()).unwrap_or_default())
    }

    pub fn sections(&mut self) -> Result<Vec<SectionHeader>, Error> {
        let headers = self.pdb.sections()?.unwrap_or_default();
        let section = |header: &pdb2::ImageSectionHeader| SectionHeader {
            name: header.name().to_owned(),
            rva: header.virtual_address,
            size: header.virtual_size,
            executable: header.characteristics.execute(),
        };
        Ok(headers.iter().take(MOST_SECTIONS).map(section).collect())
    }

    pub fn addresses(&mut self) -> Result<Addresses, Error> {
        Ok(Addresses(self.pdb.address_map()?))
    }

    pub fn contributions(&self) -> Result<Vec<Contribution>, Error> {
        let all = self.debug.section_contributions()?.map(|contribution| {
            Ok(Contribution { start: contribution.offset.into(), size: contribution.size, module: contribution.module })
        });
        all.take(MOST_CONTRIBUTIONS).collect()
    }

    /// The stream of a module, `None` where it has none.
    pub fn module(&mut self, module: &Module<'_>) -> Result<Option<ModuleStream>, Error> {
        let info = module.info();
        let stream = self.pdb.raw_stream(info.stream)?;
        Ok(stream.map(|stream| ModuleStream {
            stream: Box::new(stream),
            symbols: info.symbols_size as usize,
            old_lines: info.lines_size as usize,
            lines: info.c13_lines_size as usize,
        }))
    }

    /// The list of modules. It borrows from bytes of its own, so that streams can be read meanwhile.
    pub fn modules(&mut self) -> Result<Modules, Error> {
        Ok(Modules(self.pdb.debug_information()?))
    }

    pub fn strings(&mut self) -> Option<Strings> {
        self.pdb.string_table().ok().map(Strings)
    }

    /// The records of the global symbols.
    pub fn globals(&mut self) -> Result<Globals, Error> {
        Ok(Globals(self.pdb.global_symbols()?))
    }

    /// The name of each function, with parameters where its type is known. `None` where that cannot be told.
    pub fn names(mut self, keys: &[&NameKey]) -> Vec<Option<String>> {
        let mut stream = |number| self.pdb.raw_stream(StreamIndex(number)).ok().flatten();
        let (raw_types, raw_ids) = (stream(TYPES), stream(IDS));
        let extents = Extents::read(raw_types.as_deref().unwrap_or_default(), raw_ids.as_deref().unwrap_or_default());
        drop((raw_types, raw_ids));
        let types = self.pdb.type_information().ok();
        let ids = self.pdb.id_information().ok();
        // A type takes four bytes at least. A table is made for as many as there are said to be.
        let most = self.size / 4;
        let (Some(types), Some(ids)) =
            (types.filter(|t| t.len() as u64 <= most), ids.filter(|i| i.len() as u64 <= most))
        else {
            return keys.iter().map(|key| key.plain().map(str::to_owned)).collect();
        };
        let strings = self.pdb.string_table().ok();
        let modules: Vec<Module<'_>> =
            self.debug.modules().and_then(|m| m.take(MOST_MODULES).collect()).unwrap_or_default();
        let infos = modules.iter().map(|_| OnceLock::new()).collect();
        let provider = Provider { pdb: Mutex::new(self.pdb), infos };
        let flags = TypeFormatterFlags::default();
        let formatter =
            TypeFormatter::new_from_parts(&provider, modules, &self.debug, &types, &ids, strings.as_ref(), flags);

        keys.iter()
            .map(|key| {
                let plain = || key.plain().map(str::to_owned);
                let formatter = formatter.as_ref().ok()?;
                let written = catch_unwind(AssertUnwindSafe(|| extents.allow(key).then(|| write(formatter, key))));
                written.ok().flatten().flatten().or_else(plain)
            })
            .collect()
    }
}

fn write(formatter: &TypeFormatter<'_, '_>, key: &NameKey) -> Option<String> {
    let mut name = Limited::default();
    match key {
        NameKey::Procedure { module, name: own, type_index } => {
            formatter.emit_function(&mut name, own, *module, TypeIndex(*type_index)).ok()?;
        }
        NameKey::Inlinee { module, id } => formatter.emit_id(&mut name, *module, IdIndex(*id)).ok()?,
    }
    Some(name.0)
}

/// Text that refuses to grow beyond [`LONGEST_NAME`].
#[derive(Default)]
struct Limited(String);

impl fmt::Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Hands modules to the formatter, for types that are defined in another module.
struct Provider {
    pdb: Mutex<PDB<'static, Reader>>,
    infos: Vec<OnceLock<Option<ModuleInfo<'static>>>>,
}

impl ModuleProvider<'static> for Provider {
    fn get_module_info(&self, number: usize, module: &Module<'_>) -> Result<Option<&ModuleInfo<'static>>, Error> {
        let Some(info) = self.infos.get(number) else { return Ok(None) };
        let read = || self.pdb.lock().ok().and_then(|mut pdb| pdb.module_info(module).ok().flatten());
        Ok(info.get_or_init(read).as_ref())
    }
}

impl From<PdbInternalSectionOffset> for Place {
    fn from(place: PdbInternalSectionOffset) -> Self {
        Place { section: place.section, offset: place.offset }
    }
}

/// The way between addresses of the image and places of the PDB. They differ by more than the sections' starts where a
/// tool has moved code after linking.
pub(super) struct Addresses(AddressMap<'static>);

impl Addresses {
    pub fn place(&self, rva: u32) -> Option<Place> {
        Rva(rva).to_internal_offset(&self.0).map(Place::from)
    }

    pub fn rva(&self, place: Place) -> Option<u32> {
        let place = PdbInternalSectionOffset { section: place.section, offset: place.offset };
        place.to_rva(&self.0).map(|rva| rva.0)
    }
}

/// The list of modules.
pub(super) struct Modules(DebugInformation<'static>);

impl Modules {
    pub fn list(&self) -> Result<Vec<Module<'_>>, Error> {
        self.0.modules()?.take(MOST_MODULES).collect()
    }
}

/// The names of source files.
pub(super) struct Strings(StringTable<'static>);

impl Strings {
    pub fn get(&self, offset: u32) -> Option<String> {
        self.0.get(StringRef(offset)).ok().map(|text| text.to_string().into_owned())
    }
}

/// Public symbols and more.
pub(super) struct Globals(pdb2::SymbolTable<'static>);

impl Globals {
    /// The records, each without its length, up to the first damaged one.
    pub fn each(&self, mut record: impl FnMut(&[u8])) {
        let mut symbols = self.0.iter();
        while let Ok(Some(symbol)) = symbols.next() {
            record(symbol.raw_bytes());
        }
    }
}
