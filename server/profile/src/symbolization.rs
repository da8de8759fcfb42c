//! What a recording itself says of the source of its code: some bring functions, files and lines with them, so that
//! no binary is needed to show their costs.

use crate::{ModuleAddress, ModuleId, Profile};
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

/// A hash of a source file's content, as the compiler saw it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Checksum {
    /// MD5, as DWARF 5 and PDB have it.
    Md5([u8; 16]),
    /// SHA-1, from PDB only.
    Sha1([u8; 20]),
    /// SHA-256, from PDB only.
    Sha256([u8; 32]),
}

/// Number of a [`RecordedFile`] in its [`Symbolization`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RecordedFileId(pub u32);

/// Number of a [`RecordedFunction`] in its [`Symbolization`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RecordedFunctionId(pub u32);

/// A source file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedFile {
    /// Its path as recorded.
    pub path: String,
    /// The hash of its content at build time, where known.
    pub checksum: Option<Checksum>,
    /// Its text at the time of the recording, where the profile holds it.
    pub text: Option<Arc<str>>,
}

/// A function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedFunction {
    /// The name for people.
    pub name: Arc<str>,
    /// The name the linker knows, where it differs.
    pub linkage_name: Option<Arc<str>>,
    /// Where it is declared, where known.
    pub file: Option<RecordedFileId>,
    /// The line of its declaration.
    pub line: Option<NonZeroU32>,
}

/// One source-level activation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RecordedFrame {
    /// The function, where known.
    pub function: Option<RecordedFunctionId>,
    /// The file of the line being executed.
    pub file: Option<RecordedFileId>,
    /// The line being executed.
    pub line: Option<NonZeroU32>,
    /// Whether this function was inlined into that of the next frame.
    pub inlined: bool,
}

/// The frames of the addresses of one module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModuleFrames {
    /// Why code of the module has no line where it has none.
    pub reason: Option<String>,
    frames: Vec<RecordedFrame>,
    chains: Vec<Range<u32>>,
    addresses: Vec<(ModuleAddress, u32)>,
}

impl ModuleFrames {
    /// Adds a chain of frames, innermost first, and returns its number. A chain of no frames stands for code of which
    /// it is known that nothing is known.
    pub fn add_chain(&mut self, frames: impl IntoIterator<Item = RecordedFrame>) -> u32 {
        let start = self.frames.len() as u32;
        self.frames.extend(frames);
        self.chains.push(start..self.frames.len() as u32);
        self.chains.len() as u32 - 1
    }

    /// Says that look-ups of `address` give the chain with this number. The first word on an address counts, once
    /// [`Self::sort`] was called.
    pub fn add_address(&mut self, address: ModuleAddress, chain: u32) {
        debug_assert!((chain as usize) < self.chains.len());
        self.addresses.push((address, chain));
    }

    /// Makes the addresses ready to be looked up.
    pub fn sort(&mut self) {
        self.addresses.sort_by_key(|&(address, _)| address);
        self.addresses.dedup_by_key(|&mut (address, _)| address);
    }

    /// All addresses that something is said of, ascending, each with the number of its chain.
    pub fn addresses(&self) -> &[(ModuleAddress, u32)] {
        &self.addresses
    }

    /// How many chains there are.
    pub fn chain_count(&self) -> usize {
        self.chains.len()
    }

    /// The frames of a chain, innermost first.
    ///
    /// # Panics
    /// If there is no such chain.
    pub fn chain(&self, number: u32) -> &[RecordedFrame] {
        let range = self.chains[number as usize].clone();
        &self.frames[range.start as usize..range.end as usize]
    }

    /// The number of the chain of an address to look up, if anything is said of it.
    pub fn find(&self, address: ModuleAddress) -> Option<u32> {
        let at = self.addresses.binary_search_by_key(&address, |&(known, _)| known).ok()?;
        Some(self.addresses[at].1)
    }
}

/// What a recording says of the source of its code. Addresses are those that are looked up: see
/// [`CodeAddress::lookup`](crate::CodeAddress::lookup).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Symbolization {
    /// Source files, each path once.
    pub files: Vec<RecordedFile>,
    /// Functions.
    pub functions: Vec<RecordedFunction>,
    /// By [`ModuleId`]; modules behind the end have no frames.
    pub modules: Vec<ModuleFrames>,
}

impl Symbolization {
    /// What is said of a module.
    pub fn module(&self, id: ModuleId) -> Option<&ModuleFrames> {
        self.modules.get(id.0 as usize)
    }

    /// The frames of a module, to be filled.
    pub fn module_mut(&mut self, id: ModuleId) -> &mut ModuleFrames {
        let at = id.0 as usize;
        if self.modules.len() <= at {
            self.modules.resize_with(at + 1, ModuleFrames::default);
        }
        &mut self.modules[at]
    }

    /// The text of a file at the time of the recording, by its recorded path.
    pub fn text(&self, path: &str) -> Option<&Arc<str>> {
        self.files.iter().filter(|file| file.path == path).find_map(|file| file.text.as_ref())
    }

    /// The physical view: of each address only the function that holds its code, on the line of the outermost call.
    pub fn without_inlined(mut self) -> Self {
        for module in &mut self.modules {
            let mut outermost = ModuleFrames { reason: module.reason.take(), ..ModuleFrames::default() };
            for number in 0..module.chain_count() as u32 {
                outermost.add_chain(module.chain(number).last().copied());
            }
            outermost.addresses = std::mem::take(&mut module.addresses);
            *module = outermost;
        }
        self
    }

    /// Adds what another recording says; `modules` says which number each of its modules has here. Where both speak of
    /// an address, this one is right.
    pub(crate) fn append(&mut self, other: &Symbolization, modules: &[ModuleId]) {
        let (first_file, first_function) = (self.files.len() as u32, self.functions.len() as u32);
        let file = |id: Option<RecordedFileId>| id.map(|id| RecordedFileId(id.0 + first_file));
        self.files.extend(other.files.iter().cloned());
        let moved = |function: &RecordedFunction| RecordedFunction { file: file(function.file), ..function.clone() };
        self.functions.extend(other.functions.iter().map(moved));
        for (theirs, &id) in other.modules.iter().zip(modules) {
            let ours = self.module_mut(id);
            ours.reason = ours.reason.take().or_else(|| theirs.reason.clone());
            let first_chain = ours.chains.len() as u32;
            for chain in 0..theirs.chain_count() as u32 {
                ours.add_chain(theirs.chain(chain).iter().map(|frame| RecordedFrame {
                    function: frame.function.map(|id| RecordedFunctionId(id.0 + first_function)),
                    file: file(frame.file),
                    ..*frame
                }));
            }
            for &(address, chain) in &theirs.addresses {
                ours.add_address(address, first_chain + chain);
            }
            ours.sort();
        }
    }
}

impl Profile {
    /// Adds to the symbolization what that of `other` says, whose modules have the numbers `modules` here.
    pub(crate) fn merge_symbolization(&mut self, other: &Profile, modules: &[ModuleId]) {
        let Some(theirs) = &other.symbolization else { return };
        let mut ours = self.symbolization.take().map(Arc::unwrap_or_clone).unwrap_or_default();
        ours.append(theirs, modules);
        self.symbolization = Some(Arc::new(ours));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: u32) -> RecordedFrame {
        let function = Some(RecordedFunctionId(function));
        RecordedFrame { function, file: Some(RecordedFileId(0)), line: NonZeroU32::new(7), inlined: false }
    }

    fn one_function(name: &str, address: u64) -> Symbolization {
        let mut symbolization = Symbolization::default();
        symbolization.files.push(RecordedFile { path: "a.c".into(), checksum: None, text: Some(name.into()) });
        let name = name.into();
        symbolization.functions.push(RecordedFunction {
            name,
            linkage_name: None,
            file: Some(RecordedFileId(0)),
            line: None,
        });
        let module = symbolization.module_mut(ModuleId(0));
        let chain = module.add_chain([frame(0)]);
        module.add_address(ModuleAddress(address), chain);
        module.sort();
        symbolization
    }

    fn name_at(symbolization: &Symbolization, module: u32, address: u64) -> Option<&str> {
        let module = symbolization.module(ModuleId(module))?;
        let function = module.chain(module.find(ModuleAddress(address))?)[0].function?;
        Some(&symbolization.functions[function.0 as usize].name)
    }

    #[test]
    fn appended_frames_keep_their_functions_and_the_first_word_on_an_address_counts() {
        let mut sum = one_function("first", 16);
        sum.append(&one_function("second", 32), &[ModuleId(0)]);
        sum.append(&one_function("third", 16), &[ModuleId(0)]);
        sum.append(&one_function("fourth", 16), &[ModuleId(2)]);
        assert_eq!([16, 32, 48].map(|at| name_at(&sum, 0, at)), [Some("first"), Some("second"), None]);
        assert_eq!((name_at(&sum, 1, 16), name_at(&sum, 2, 16)), (None, Some("fourth")));
        assert_eq!(sum.text("a.c").map(|text| &**text), Some("first"));
    }
}
