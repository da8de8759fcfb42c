//! Function names from symbol tables, for code that debug information does not cover.

use crate::object_file::{ObjectFile, RawSymbol, SectionKind};
use heatline_profile::Problems;

const STT_NOTYPE: u8 = 0;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const STB_WEAK: u8 = 2;
const STB_GLOBAL: u8 = 1;
const SHN_UNDEF: u16 = 0;
const SHN_ABS: u16 = 0xfff1;

/// A named range of code. `rank` decides between names of one address: the higher is the better known.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    start: u64,
    /// Exclusive.
    end: u64,
    rank: u8,
    name: Name,
}

#[derive(Clone, Copy, Debug)]
enum Name {
    /// In the strings of the table, by offset.
    Text(u32),
    /// One of the made-up names, by position.
    Made(u32),
}

/// The symbols of code by address, one name per address.
#[derive(Default)]
pub(crate) struct SymbolTable {
    symbols: Vec<Symbol>,
    strings: Vec<u8>,
    made: Vec<String>,
}

impl SymbolTable {
    /// Reads `.symtab`, or `.dynsym` where that was stripped, and names linkage stubs after what they call.
    /// `code` are the executable ranges, sorted; what lies outside is no function.
    pub fn read(files: &[&ObjectFile], code: &[(u64, u64)], problems: &mut Problems) -> SymbolTable {
        let mut table = SymbolTable::default();
        let sources = [SectionKind::Symbols, SectionKind::DynamicSymbols];
        for (kind, file) in sources.into_iter().flat_map(|kind| files.iter().map(move |file| (kind, *file))) {
            match table.add(file, kind, code) {
                Ok(true) => break,
                Ok(false) => {}
                Err(e) => problems.add("symbol-table", 1, None, format!("the symbol table cannot be read: {e}")),
            }
        }
        for file in files {
            for (start, end, name) in crate::plt::stubs(file) {
                let number = table.made.len() as u32;
                table.made.push(name);
                table.symbols.push(Symbol { start, end, rank: 0, name: Name::Made(number) });
            }
        }
        table.sort(code);
        table
    }

    /// From named ranges, the end of each excluded.
    pub fn of_ranges(ranges: impl IntoIterator<Item = (u64, u64, String)>, code: &[(u64, u64)]) -> SymbolTable {
        let mut table = SymbolTable::default();
        for (start, end, name) in ranges {
            let number = table.made.len() as u32;
            table.made.push(name);
            table.symbols.push(Symbol { start, end, rank: 0, name: Name::Made(number) });
        }
        table.sort(code);
        table
    }

    fn add(&mut self, file: &ObjectFile, kind: SectionKind, code: &[(u64, u64)]) -> std::io::Result<bool> {
        let Some(section) = file.sections.iter().find(|s| s.kind == kind && s.stored > 0) else { return Ok(false) };
        let symbols = file.symbols(&file.content(section)?);
        let Some(strings) = file.sections.get(section.link) else { return Ok(false) };
        self.strings = file.content(strings)?;
        let before = self.symbols.len();
        self.symbols.extend(symbols.iter().filter_map(|raw| symbol(raw, code)));
        Ok(self.symbols.len() > before)
    }

    /// Sorts, keeps the best name of each address, and lets symbols without size reach to the next one.
    fn sort(&mut self, code: &[(u64, u64)]) {
        let strings = &self.strings;
        let empty = |s: &Symbol| matches!(s.name, Name::Text(at) if strings.get(at as usize).is_none_or(|b| *b == 0));
        self.symbols.retain(|s| !empty(s));
        self.symbols.sort_by_key(|s| (s.start, std::cmp::Reverse((s.rank, s.end))));
        self.symbols.dedup_by_key(|s| s.start);
        let mut next = u64::MAX;
        for symbol in self.symbols.iter_mut().rev() {
            if symbol.end == symbol.start {
                symbol.end = next.min(section_end(code, symbol.start));
            }
            next = symbol.start;
        }
    }

    /// Number of the symbol that covers `address`: the last one that starts at or before it, if it reaches that far.
    /// `after` is a number that was found for a lower address, or 0.
    pub fn find(&self, address: u64, after: usize) -> Option<usize> {
        let rest = self.symbols.get(after..)?;
        let mut at = after + rest.partition_point(|s| s.start <= address);
        // A label inside a function may end before the function does.
        for _ in 0..FARTHEST_BACK {
            at = at.checked_sub(1)?;
            if self.symbols.get(at)?.end > address {
                return Some(at);
            }
        }
        None
    }

    /// The first byte of a found symbol, and the one behind its last.
    pub fn range(&self, number: usize) -> Option<(u64, u64)> {
        self.symbols.get(number).map(|symbol| (symbol.start, symbol.end))
    }

    /// The name of a found symbol.
    pub fn name(&self, number: usize) -> Option<String> {
        match self.symbols.get(number)?.name {
            Name::Made(at) => self.made.get(at as usize).cloned(),
            Name::Text(at) => {
                let text = self.strings.get(at as usize..)?;
                let text = text.split(|b| *b == 0).next()?;
                Some(String::from_utf8_lossy(text).into_owned())
            }
        }
    }
}

/// How many shorter symbols may lie between an address and the start of the symbol that covers it.
pub(crate) const FARTHEST_BACK: usize = 8;

fn section_end(code: &[(u64, u64)], address: u64) -> u64 {
    let after = code.partition_point(|range| range.0 <= address);
    let range = after.checked_sub(1).and_then(|at| code.get(at));
    range.map_or(address, |range| range.1.max(address))
}

fn symbol(raw: &RawSymbol, code: &[(u64, u64)]) -> Option<Symbol> {
    let (kind, bind) = (raw.info & 15, raw.info >> 4);
    let defined = raw.section != SHN_UNDEF && raw.section != SHN_ABS;
    if !defined || !matches!(kind, STT_NOTYPE | STT_FUNC | STT_GNU_IFUNC) || section_end(code, raw.value) <= raw.value {
        return None;
    }
    let kind_rank = if kind == STT_NOTYPE { 0 } else { 8 };
    let size_rank = if raw.size > 0 { 4 } else { 0 };
    let bind_rank = match bind {
        STB_GLOBAL => 2,
        STB_WEAK => 1,
        _ => 0,
    };
    Some(Symbol {
        start: raw.value,
        end: raw.value.saturating_add(raw.size),
        rank: 1 + kind_rank + size_rank + bind_rank,
        name: Name::Text(raw.name),
    })
}
