//! Function names from symbol tables, for code that debug information does not cover.

use crate::demangle::bare_name;
use crate::object_file::{ObjectFile, RawSymbol, SectionKind};
use heatline_profile::Problems;
use std::cmp::Ordering;

const STT_NOTYPE: u8 = 0;
const STT_OBJECT: u8 = 1;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const STB_WEAK: u8 = 2;
const STB_GLOBAL: u8 = 1;
const SHN_UNDEF: u16 = 0;
const SHN_ABS: u16 = 0xfff1;
const STV_INTERNAL: u8 = 1;
const STV_HIDDEN: u8 = 2;

/// Which of several names of one address is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// That of a function before that of a label, one with a size, then a global one.
    Kind,
    /// The one that perf 6.1 takes: with a size, not weak, global, with few underscores in front, long.
    Perf,
}

/// A named range of code. `rank` decides between names of one address: the higher is the better known.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    start: u64,
    /// Exclusive.
    end: u64,
    rank: u8,
    bind: u8,
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
    pub fn read(files: &[&ObjectFile], code: &[(u64, u64)], choice: Choice, problems: &mut Problems) -> SymbolTable {
        let mut table = SymbolTable::default();
        let sources = [SectionKind::Symbols, SectionKind::DynamicSymbols];
        for (kind, file) in sources.into_iter().flat_map(|kind| files.iter().map(move |file| (kind, *file))) {
            match table.add(file, kind, choice, code) {
                Ok(true) => break,
                Ok(false) => {}
                Err(e) => problems.add("symbol-table", 1, None, format!("the symbol table cannot be read: {e}")),
            }
        }
        match choice {
            Choice::Kind => {
                files.iter().for_each(|file| table.add_made(crate::plt::stubs(file)));
                table.sort(code);
            }
            Choice::Perf => {
                table.sort_as_perf(code);
                files.iter().for_each(|file| table.add_made(crate::plt::stubs_as_perf(file)));
                table.symbols.sort_by_key(|s| s.start);
            }
        }
        table
    }

    fn add_made(&mut self, ranges: impl IntoIterator<Item = (u64, u64, String)>) {
        for (start, end, name) in ranges {
            let number = self.made.len() as u32;
            self.made.push(name);
            self.symbols.push(Symbol { start, end, rank: 0, bind: 0, name: Name::Made(number) });
        }
    }

    /// From named ranges, the end of each excluded.
    pub fn of_ranges(ranges: impl IntoIterator<Item = (u64, u64, String)>, code: &[(u64, u64)]) -> SymbolTable {
        let mut table = SymbolTable::default();
        table.add_made(ranges);
        table.sort(code);
        table
    }

    fn add(
        &mut self,
        file: &ObjectFile,
        kind: SectionKind,
        choice: Choice,
        code: &[(u64, u64)],
    ) -> std::io::Result<bool> {
        let Some(section) = file.sections.iter().find(|s| s.kind == kind && s.stored > 0) else { return Ok(false) };
        let symbols = file.symbols(&file.content(section)?);
        let Some(strings) = file.sections.get(section.link) else { return Ok(false) };
        self.strings = file.content(strings)?;
        let before = self.symbols.len();
        let is_named = |raw: &RawSymbol| match choice {
            Choice::Kind => matches!(raw.info & 15, STT_NOTYPE | STT_FUNC | STT_GNU_IFUNC),
            Choice::Perf => names_code_for_perf(raw, file),
        };
        let named = symbols.iter().filter(|raw| is_named(raw) && !is_mapping(raw, &self.strings));
        let found: Vec<Symbol> = named.filter_map(|raw| symbol(raw, code)).collect();
        self.symbols.extend(found);
        Ok(self.symbols.len() > before)
    }

    /// Keeps of each address the name that perf keeps. It lets symbols without size reach to the next one first, then
    /// compares those of one address in their order, each with the best so far.
    fn sort_as_perf(&mut self, code: &[(u64, u64)]) {
        self.remove_nameless();
        self.symbols.sort_by_key(|s| s.start);
        let next = self.symbols.iter().skip(1).map(|next| next.start).chain([u64::MAX]).collect::<Vec<_>>();
        for (symbol, next) in self.symbols.iter_mut().zip(next).filter(|(symbol, _)| symbol.end == symbol.start) {
            symbol.end = next.min(section_end(code, symbol.start));
        }
        let mut kept: Vec<Symbol> = Vec::with_capacity(self.symbols.len());
        for symbol in &self.symbols {
            match kept.last_mut().filter(|best| best.start == symbol.start) {
                Some(best) if self.is_kept_by_perf(best, symbol) => {}
                Some(best) => *best = *symbol,
                None => kept.push(*symbol),
            }
        }
        self.symbols = kept;
    }

    /// Whether perf keeps the first of two symbols of one address.
    fn is_kept_by_perf(&self, first: &Symbol, second: &Symbol) -> bool {
        let facts = |s: &Symbol| (s.end > s.start, s.bind != STB_WEAK, s.bind == STB_GLOBAL);
        match facts(first).cmp(&facts(second)) {
            Ordering::Greater => return true,
            Ordering::Less => return false,
            Ordering::Equal => {}
        }
        let names = [first, second].map(|symbol| self.text(symbol).unwrap_or_default());
        let names = names.each_ref().map(|name| bare_name(name));
        let wish = |name: &str| (std::cmp::Reverse(name.bytes().take_while(|b| *b == b'_').count()), name.len());
        wish(&names[0]) >= wish(&names[1])
    }

    fn remove_nameless(&mut self) {
        let strings = &self.strings;
        let empty = |s: &Symbol| matches!(s.name, Name::Text(at) if strings.get(at as usize).is_none_or(|b| *b == 0));
        self.symbols.retain(|s| !empty(s));
    }

    /// Sorts, keeps the best name of each address, and lets symbols without size reach to the next one.
    fn sort(&mut self, code: &[(u64, u64)]) {
        self.remove_nameless();
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
        self.text(self.symbols.get(number)?)
    }

    fn text(&self, symbol: &Symbol) -> Option<String> {
        match symbol.name {
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

/// Whether perf takes a symbol: a function, an object, or a label of a section of code or data that is visible.
fn names_code_for_perf(raw: &RawSymbol, file: &ObjectFile) -> bool {
    let section = || file.sections.get(usize::from(raw.section)).map_or("", |section| section.name.as_str());
    match raw.info & 15 {
        STT_FUNC | STT_GNU_IFUNC | STT_OBJECT => true,
        STT_NOTYPE => {
            let is_hidden = matches!(raw.other & 3, STV_HIDDEN | STV_INTERNAL);
            !is_hidden && (section().contains(".text") || section().contains(".data"))
        }
        _ => false,
    }
}

/// `$x`, `$d.1`: where an assembler of Arm code changes between instructions and data. No function is called so.
fn is_mapping(raw: &RawSymbol, strings: &[u8]) -> bool {
    let name = strings.get(raw.name as usize..).unwrap_or_default();
    matches!(name, [b'$', b'a' | b'd' | b't' | b'x', 0 | b'.', ..]) && raw.info & 15 == STT_NOTYPE
}

fn symbol(raw: &RawSymbol, code: &[(u64, u64)]) -> Option<Symbol> {
    let (kind, bind) = (raw.info & 15, raw.info >> 4);
    let defined = raw.section != SHN_UNDEF && raw.section != SHN_ABS;
    if !defined || section_end(code, raw.value) <= raw.value {
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
        bind,
        name: Name::Text(raw.name),
    })
}
