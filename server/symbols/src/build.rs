//! Puts together what units and symbol tables say: each file and function once, each address its chain.

use crate::demangle::demangle;
use crate::dwarf::UnitFrames;
use crate::resolution::{Chain, FileId, Frame, Function, FunctionId, Reason, Resolution, SourceFile};
use crate::symbol_table::SymbolTable;
use heatline_profile::Problems;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// A function's identity: its linkage name (else its name) and where it is declared.
type FunctionKey = (Vec<u8>, Option<FileId>, Option<NonZeroU32>);

/// A resolution in the making.
#[derive(Default)]
pub(crate) struct Builder {
    pub problems: Problems,
    files: Vec<SourceFile>,
    file_ids: HashMap<SourceFile, FileId>,
    functions: Vec<Function>,
    function_ids: HashMap<FunctionKey, FunctionId>,
    frames: Vec<Frame>,
    chains: Vec<Chain>,
    reasons: Vec<Reason>,
    /// Per different address: its chain, or [`NO_CHAIN`].
    of_address: Vec<u32>,
}

/// Which addresses without function get the name of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nameless {
    All,
    /// Those of which at least the line is known.
    WithLine,
}

const NO_CHAIN: u32 = u32::MAX;

impl Builder {
    /// For this many different addresses.
    pub fn new(addresses: usize) -> Builder {
        Builder { of_address: vec![NO_CHAIN; addresses], ..Builder::default() }
    }

    /// Takes over what a unit says of the addresses with the numbers `members`.
    pub fn add_unit(&mut self, members: &[u32], unit: UnitFrames<'_>) {
        let files: Vec<_> = unit.files.into_iter().map(|file| self.file(file)).collect();
        let file_of = |id: Option<FileId>| id.and_then(|id| files.get(id.index()).copied().flatten());
        let mut functions = Vec::with_capacity(unit.functions.len());
        for function in &unit.functions {
            functions.push(self.function(function.name, function.linkage_name, file_of(function.file), function.line));
        }
        let function_of = |id: Option<FunctionId>| id.and_then(|id| functions.get(id.index()).copied().flatten());
        let (first_frame, first_chain) = (self.frames.len() as u32, self.chains.len() as u32);
        let global =
            |frame: &Frame| Frame { function: function_of(frame.function), file: file_of(frame.file), ..*frame };
        self.frames.extend(unit.frames.iter().map(global));
        for (start, end) in &unit.chains {
            self.chains.push(Chain { start: start + first_frame, end: end + first_frame, reason: 0 });
        }
        for (member, chain) in members.iter().zip(&unit.of_address) {
            if let (Some(slot), Some(chain)) = (self.of_address.get_mut(*member as usize), chain.checked_sub(1)) {
                *slot = first_chain + chain;
            }
        }
    }

    fn file(&mut self, file: SourceFile) -> Option<FileId> {
        if let Some(id) = self.file_ids.get(&file) {
            return Some(*id);
        }
        let id = FileId::new(self.files.len())?;
        self.files.push(file.clone());
        self.file_ids.insert(file, id);
        Some(id)
    }

    fn function(
        &mut self,
        name: Option<&[u8]>,
        linkage_name: Option<&[u8]>,
        file: Option<FileId>,
        line: Option<NonZeroU32>,
    ) -> Option<FunctionId> {
        let key = linkage_name.or(name).unwrap_or_default().to_vec();
        let key = (key, file, line);
        if let Some(id) = self.function_ids.get(&key) {
            return Some(*id);
        }
        let id = FunctionId::new(self.functions.len())?;
        let text = |bytes: &[u8]| Arc::<str>::from(String::from_utf8_lossy(bytes));
        self.functions.push(Function {
            name: name.map(text).unwrap_or_default(),
            linkage_name: linkage_name.map(text),
            file,
            line,
            from_symbol_table: false,
        });
        self.function_ids.insert(key, id);
        Some(id)
    }

    /// Whether an address has no function yet.
    pub fn lacks_functions(&self) -> bool {
        self.of_address.iter().any(|chain| self.outermost(*chain).is_none_or(|frame| frame.function.is_none()))
    }

    fn outermost(&self, chain: u32) -> Option<&Frame> {
        let chain = self.chains.get(chain as usize)?;
        self.frames.get(chain.end.checked_sub(1)? as usize)
    }

    /// Names what has no function from the symbol table. `addresses` are those of [`Builder::new`], in order.
    pub fn add_symbols(&mut self, addresses: &[u64], table: &SymbolTable, of: Nameless) {
        let mut functions: FxHashMap<usize, Option<FunctionId>> = FxHashMap::default();
        let (mut from, mut last) = (0, None);
        for (number, address) in addresses.iter().enumerate() {
            let Some(chain) = self.of_address.get(number).copied() else { continue };
            if self.outermost(chain).is_some_and(|frame| frame.function.is_some()) {
                continue;
            }
            if of == Nameless::WithLine && chain == NO_CHAIN {
                continue;
            }
            let Some(symbol) = table.find(*address, from) else { continue };
            from = symbol.saturating_sub(crate::symbol_table::FARTHEST_BACK);
            let function = *functions.entry(symbol).or_insert_with(|| self.symbol(table.name(symbol)?));
            let named = match last {
                Some((c, s, named)) if c == chain && s == symbol => named,
                _ => self.named(chain, function),
            };
            last = Some((chain, symbol, named));
            if let Some(slot) = self.of_address.get_mut(number) {
                *slot = named;
            }
        }
    }

    fn symbol(&mut self, name: String) -> Option<FunctionId> {
        let id = FunctionId::new(self.functions.len())?;
        self.functions.push(Function {
            name: Arc::default(),
            linkage_name: Some(name.into()),
            file: None,
            line: None,
            from_symbol_table: true,
        });
        Some(id)
    }

    /// The chain with its outermost frame given a function; one frame of nothing else where there was none.
    fn named(&mut self, chain: u32, function: Option<FunctionId>) -> u32 {
        let old = self.chains.get(chain as usize).copied();
        let start = self.frames.len() as u32;
        match old {
            Some(old) => self.frames.extend_from_within(old.start as usize..old.end as usize),
            None => self.frames.push(Frame { function, file: None, line: None, column: None, inlined: false }),
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.function = function;
        }
        self.chains.push(Chain { start, end: self.frames.len() as u32, reason: 0 });
        self.chains.len() as u32 - 1
    }

    /// Demangles, gives each address without line its reason, and spreads the chains over the input. `order` is the
    /// number of the different address of each input address; `reason` tells why debug information is missing as a
    /// whole, if it is.
    pub fn finish(mut self, order: Vec<u32>, is_code: &[bool], missing: Option<Reason>) -> Resolution {
        self.functions.par_iter_mut().for_each(name_for_people);
        let reason_of_none = missing.clone().unwrap_or(Reason::NoSymbol);
        // Where a file is missing that would know more, that is what to say, symbol or not.
        let file_is_missing = missing.as_ref().is_some_and(|reason| *reason != Reason::NoDebugInfo);
        let reason_of_bare = missing.unwrap_or(Reason::NotCovered);
        let empty = |reason| Chain { start: 0, end: 0, reason };
        self.reasons = vec![Reason::OutsideSections, reason_of_none, reason_of_bare, Reason::NoLine];
        let first_empty = self.chains.len() as u32;
        self.chains.extend([empty(1), empty(if file_is_missing { 3 } else { 2 })]);
        for slot in self.of_address.iter_mut().zip(is_code) {
            match slot {
                (slot, false) => *slot = first_empty,
                (slot, true) if *slot == NO_CHAIN => *slot = first_empty + 1,
                _ => {}
            }
        }
        let functions = &self.functions;
        for chain in self.chains.iter_mut().filter(|chain| chain.start < chain.end) {
            let Some(frame) = self.frames.get(chain.start as usize) else { continue };
            if frame.line.is_none() {
                let bare = frame.function.and_then(|id| functions.get(id.index())).is_some_and(|f| f.from_symbol_table);
                chain.reason = if bare && frame.file.is_none() { 3 } else { 4 };
            }
        }
        let of_address = &self.of_address;
        Resolution {
            of_address: order
                .iter()
                .map(|number| of_address.get(*number as usize).copied().unwrap_or(first_empty))
                .collect(),
            files: self.files,
            functions: self.functions,
            problems: self.problems,
            frames: self.frames,
            chains: self.chains,
            reasons: self.reasons,
        }
    }
}

/// A linkage name that says no more than the name is dropped.
fn name_for_people(function: &mut Function) {
    let Some(linkage_name) = &function.linkage_name else { return };
    let stub = linkage_name.strip_suffix("@plt");
    let name = demangle(stub.unwrap_or(linkage_name));
    let known = *name != **linkage_name || function.name.is_empty();
    // What Microsoft's names unfold to is spelled otherwise than what types unfold to; the latter is kept.
    if known && (function.name.is_empty() || !linkage_name.starts_with('?')) {
        function.name = if stub.is_some() { format!("{name}@plt").into() } else { name.into() };
    }
    if function.name == *linkage_name {
        function.linkage_name = None;
    }
}
