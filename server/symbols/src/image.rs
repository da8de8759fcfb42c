//! A binary: its identity, its address spaces, and the way from addresses to frames.

use crate::build::{Builder, Nameless};
use crate::call_sites::{self, FunctionRange};
use crate::calls;
use crate::code::Code;
use crate::dwarf::{self, Sections};
use crate::object_file::{ImageKind, ObjectFile};
use crate::pdb::{self, IdentityMatch};
use crate::pdb_link::{self, PdbLink};
use crate::resolution::{Reason, Resolution};
use crate::separate::Separate;
use crate::symbol_table::{Choice, SymbolTable};
use crate::{Locate, Nowhere, Storage, SymbolError};
use heatline_profile::{AddressSpace, Identity, ModuleAddress, Monitor, Svma};
use std::collections::BTreeSet;
use std::sync::Arc;

/// More addresses in one look-up than this are refused; the tables number them with 32 bits.
const MOST_ADDRESSES: usize = 1 << 30;

/// An opened ELF or PE image. Only its headers are kept.
pub struct Image {
    file: ObjectFile,
    separate: Separate,
    code: Code,
    pdb: PdbLink,
}

impl Image {
    /// Reads headers, identity and segments, and finds out where the debug information is.
    ///
    /// # Errors
    /// For what is neither ELF nor PE, and for damaged headers.
    pub fn open(storage: Arc<dyn Storage>, locate: &dyn Locate) -> Result<Image, SymbolError> {
        let file = ObjectFile::open(storage)?;
        let code = Code::of(&file);
        let separate = Separate::find(&file, locate);
        let pdb = if separate.missing.is_some() { PdbLink::find(&file, locate) } else { PdbLink::None };
        Ok(Image { file, separate, code, pdb })
    }

    /// Build id, or GUID and age; `None` for an image without.
    pub fn identity(&self) -> Option<&Identity> {
        self.file.identity.as_ref()
    }

    /// Whether this is the image with that identity.
    ///
    /// # Errors
    /// If a PDB alone cannot be read any more.
    pub fn fits(&self, wanted: &Identity) -> Result<IdentityMatch, SymbolError> {
        pdb_link::fits(&self.file, wanted)
    }

    /// ELF, PE, or a PDB alone.
    pub fn kind(&self) -> ImageKind {
        self.file.kind
    }

    /// The link-time address that RVAs count from; 0 for ELF.
    pub fn base(&self) -> Svma {
        Svma(self.file.base)
    }

    /// The link-time address of an address of another space. A file offset goes through the segment that holds it,
    /// an executable one where several do. `None` where nothing of the image lies there, and for addresses in a
    /// process, which need the mapping.
    pub fn to_svma(&self, address: ModuleAddress, space: AddressSpace) -> Option<Svma> {
        match space {
            AddressSpace::Svma => Some(Svma(address.0)),
            AddressSpace::Rva => self.file.base.checked_add(address.0).map(Svma),
            AddressSpace::FileOffset => self.offset_to_svma(address.0),
            AddressSpace::FromFirstSegment => self.first_segment().checked_add(address.0).map(Svma),
            AddressSpace::Avma => None,
        }
    }

    /// The link-time address of the page that the first segment begins in.
    fn first_segment(&self) -> u64 {
        const PAGE: u64 = 4096;
        self.file.segments.iter().map(|segment| segment.address).min().unwrap_or(0) / PAGE * PAGE
    }

    /// Whether the instruction before an address is a call, as it is with return addresses. `None` where the code is
    /// not at hand (a PDB alone, say) or of a processor that is not known.
    pub fn follows_call(&self, address: Svma) -> Option<bool> {
        calls::follows_call(&self.file, address.0)
    }

    /// The ranges of the functions that hold these addresses, as symbol tables say them; linkage stubs are functions too.
    /// `None` where no symbol covers an address.
    pub fn function_ranges(&self, addresses: &[Svma]) -> Vec<Option<FunctionRange>> {
        let files: Vec<_> = std::iter::once(&self.file).chain(&self.separate.debug).collect();
        call_sites::function_ranges(&files, self.code.ranges(), addresses)
    }

    /// The direct calls from a function to the beginnings of others: the address of the instruction, and the target.
    pub fn calls_in(&self, function: FunctionRange, targets: &BTreeSet<Svma>) -> Vec<(Svma, Svma)> {
        call_sites::calls_in(&self.file, function, targets)
    }

    /// The calls in a function that lead where a register or memory says: the address of the instruction, and where it
    /// ends. Code is not disassembled, so bytes that look like one may be none.
    pub fn indirect_calls_in(&self, function: FunctionRange) -> Vec<(Svma, Svma)> {
        call_sites::indirect_calls_in(&self.file, function)
    }

    /// Looks up code in the PDB; tells why that cannot be done if so.
    fn resolve_by_pdb(
        &self,
        addresses: &[u64],
        is_code: &[bool],
        builder: &mut Builder,
        monitor: &dyn Monitor,
    ) -> Result<Option<Reason>, SymbolError> {
        let storage = match self.pdb.usable(&mut builder.problems) {
            Ok(storage) => storage,
            Err(reason) => return Ok(Some(reason)),
        };
        let base = self.file.base;
        let rva =
            |(address, is_code): (&u64, &bool)| u32::try_from(address.checked_sub(base)?).ok().filter(|_| *is_code);
        let rvas: Vec<Option<u32>> = addresses.iter().zip(is_code).map(rva).collect();
        match pdb::resolve(storage, &rvas, builder, monitor) {
            Ok(names) => {
                if builder.lacks_functions() {
                    let range = |range: &pdb::NamedRange| {
                        (base + u64::from(range.start), base + u64::from(range.end), range.name.clone())
                    };
                    // A function with symbols of its own ends where they say; behind it only code with lines is its.
                    let without = names.iter().filter(|range| !range.has_symbols).map(range);
                    let table = SymbolTable::of_ranges(without, self.code.ranges());
                    builder.add_symbols(addresses, &table, Nameless::All);
                    let table = SymbolTable::of_ranges(names.iter().map(range), self.code.ranges());
                    builder.add_symbols(addresses, &table, Nameless::WithLine);
                }
                Ok(None)
            }
            Err(SymbolError::Cancelled(cancelled)) => Err(cancelled.into()),
            Err(error) => {
                builder.problems.add("damaged-pdb", 1, None, error.to_string());
                Ok(Some(self.pdb.unusable(&error)))
            }
        }
    }

    fn offset_to_svma(&self, offset: u64) -> Option<Svma> {
        let holds = |s: &&crate::object_file::Segment| offset.checked_sub(s.offset).is_some_and(|o| o < s.file_size);
        let mut holding = self.file.segments.iter().filter(holds);
        let first = holding.clone().find(|s| s.executable).or_else(|| holding.next())?;
        first.address.checked_add(offset - first.offset).map(Svma)
    }

    /// The frames of each address, in any order and with repetitions. Debug information is read for this call and
    /// dropped at its end.
    ///
    /// # Errors
    /// With more addresses than the tables can number, and when the monitor says to stop. Damage in the file is no
    /// error; it is a problem of the resolution.
    pub fn resolve(&self, addresses: &[Svma], monitor: &dyn Monitor) -> Result<Resolution, SymbolError> {
        self.resolve_with(addresses, &Nowhere, monitor)
    }

    /// The function of each address by the symbol table alone, as perf names them: nothing of lines and inlined calls,
    /// and no debug information is read. An image whose symbols are in a PDB has none here.
    ///
    /// # Errors
    /// With more addresses than the tables can number.
    pub fn resolve_symbols(&self, addresses: &[Svma]) -> Result<Resolution, SymbolError> {
        if addresses.len() > MOST_ADDRESSES {
            return Err(SymbolError::TooManyAddresses { limit: MOST_ADDRESSES, found: addresses.len() });
        }
        let (different, order) = sort(addresses);
        let is_code: Vec<bool> = different.iter().map(|address| self.code.contains(*address)).collect();
        let mut builder = Builder::new(different.len());
        builder.problems.append(&self.separate.problems);
        let files: Vec<_> = std::iter::once(&self.file).chain(&self.separate.debug).collect();
        let table = SymbolTable::read(&files, self.code.ranges(), Choice::Perf, &mut builder.problems);
        builder.add_symbols(&different, &table, Nameless::All);
        Ok(builder.finish(order, &is_code, Some(Reason::NoDebugInfo)))
    }

    /// Whether its symbols are in a PDB.
    pub fn has_pdb(&self) -> bool {
        !matches!(self.pdb, PdbLink::None)
    }

    /// As [`Image::resolve`], with a way to the files of split debug information (`.dwo`, `.dwp`), whose names only
    /// show while resolving. One that is not found costs its unit the functions and inlined calls, not the lines, and
    /// is a problem that names it.
    ///
    /// # Errors
    /// As [`Image::resolve`].
    pub fn resolve_with(
        &self,
        addresses: &[Svma],
        locate: &dyn Locate,
        monitor: &dyn Monitor,
    ) -> Result<Resolution, SymbolError> {
        if addresses.len() > MOST_ADDRESSES {
            return Err(SymbolError::TooManyAddresses { limit: MOST_ADDRESSES, found: addresses.len() });
        }
        let (different, order) = sort(addresses);
        let is_code: Vec<bool> = different.iter().map(|address| self.code.contains(*address)).collect();
        let mut builder = Builder::new(different.len());
        builder.problems.append(&self.separate.problems);
        let mut missing = self.separate.missing.clone();
        if is_code.contains(&true) {
            if missing.is_none() {
                let debug = self.separate.debug.as_ref().unwrap_or(&self.file);
                let sections = Sections::find(debug, &mut builder.problems);
                let supplementary = self.separate.supplementary.as_ref();
                let supplementary = supplementary.map(|file| Sections::find(file, &mut builder.problems));
                let input = dwarf::Input {
                    sections: &sections,
                    supplementary: supplementary.as_ref(),
                    code: &self.code,
                    locate,
                };
                dwarf::resolve(&input, &different, &mut builder, monitor)?;
            } else if !matches!(self.pdb, PdbLink::None) {
                missing = self.resolve_by_pdb(&different, &is_code, &mut builder, monitor)?;
            }
            if builder.lacks_functions() {
                let files: Vec<_> = std::iter::once(&self.file).chain(&self.separate.debug).collect();
                let table = SymbolTable::read(&files, self.code.ranges(), Choice::Kind, &mut builder.problems);
                builder.add_symbols(&different, &table, Nameless::All);
            }
        }
        Ok(builder.finish(order, &is_code, missing))
    }
}

/// The different addresses in order, and for each input address the number of its own.
fn sort(addresses: &[Svma]) -> (Vec<u64>, Vec<u32>) {
    let mut pairs: Vec<(u64, u32)> = addresses.iter().enumerate().map(|(i, a)| (a.0, i as u32)).collect();
    pairs.sort_unstable();
    let mut different: Vec<u64> = Vec::with_capacity(pairs.len());
    let mut order = vec![0; pairs.len()];
    for (address, input) in pairs {
        if different.last() != Some(&address) {
            different.push(address);
        }
        if let Some(number) = order.get_mut(input as usize) {
            *number = different.len() as u32 - 1;
        }
    }
    (different, order)
}
