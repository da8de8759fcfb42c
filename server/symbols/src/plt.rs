//! Linkage stubs (`.plt`), which no symbol names: called `name@plt` after the function they jump to.

use crate::object_file::{Machine, ObjectFile, Section, SectionKind};
use rustc_hash::FxHashMap;

/// Stubs as (start, end, name). A stub is recognised by its jump through a slot of the global offset table; the
/// dynamic relocation of that slot names the function. Nothing where the processor is not known.
pub(crate) fn stubs(file: &ObjectFile) -> Vec<(u64, u64, String)> {
    let mut found = Vec::new();
    if !matches!(file.machine, Machine::X86_64 | Machine::Aarch64) || !file.is_64 {
        return found;
    }
    let plts: Vec<&Section> = file.sections.iter().filter(|s| s.executable && s.name.starts_with(".plt")).collect();
    if plts.is_empty() {
        return found;
    }
    let slots = slots(file);
    for section in plts {
        let Ok(content) = file.content(section) else { continue };
        let stub = if file.machine == Machine::X86_64 { x86_64_slot } else { aarch64_slot };
        let length =
            if section.name == ".plt.got" && file.machine == Machine::X86_64 && !has_endbr(&content) { 8 } else { 16 };
        for (i, code) in content.chunks(length).enumerate() {
            let Some(start) = section.address.checked_add((i * length) as u64) else { break };
            let name = stub(code, start).and_then(|slot| slots.get(&slot));
            if let Some(name) = name {
                found.push((start, start.saturating_add(length as u64), format!("{name}@plt")));
            }
        }
    }
    found
}

fn has_endbr(code: &[u8]) -> bool {
    code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa])
}

/// `[endbr64] [mov $number, %r11d] [bnd] jmp *displacement(%rip)`: the address of the slot.
fn x86_64_slot(code: &[u8], start: u64) -> Option<u64> {
    let at = code.windows(2).position(|bytes| bytes == [0xff, 0x25])?;
    if at > 10 {
        return None;
    }
    let displacement = i32::from_le_bytes(*code.get(at + 2..)?.first_chunk()?);
    start.wrapping_add(at as u64 + 6).checked_add_signed(displacement.into())
}

/// `adrp x16, page; ldr x17, [x16, #offset]`, perhaps behind `bti c`: the address of the slot.
fn aarch64_slot(code: &[u8], start: u64) -> Option<u64> {
    let word = |i: usize| code.get(i * 4..)?.first_chunk().map(|b| u32::from_le_bytes(*b));
    let at = (0..2).find(|i| word(*i).is_some_and(|w| w & 0x9f00_001f == 0x9000_0010))?;
    let (adrp, ldr) = (word(at)?, word(at + 1)?);
    if ldr & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    let pages = ((adrp >> 5 & 0x7_ffff) << 2) | (adrp >> 29 & 3);
    let pages = i64::from((pages << 11) as i32 >> 11);
    let page = (start.checked_add(at as u64 * 4)? & !0xfff).checked_add_signed(pages << 12)?;
    page.checked_add(u64::from(ldr >> 10 & 0xfff) * 8)
}

/// The stubs of `.plt` as perf 6.1 names them: it gives them the names of `.rela.plt` one after the other, whatever they
/// jump to; a function that is chosen at run time has no name.
pub(crate) fn stubs_as_perf(file: &ObjectFile) -> Vec<(u64, u64, String)> {
    const STUB: u64 = 16;
    let header = match file.machine {
        Machine::X86_64 => 16,
        Machine::Aarch64 => 32,
        _ => return Vec::new(),
    };
    let named = |name: &str| file.sections.iter().find(|section| section.name == name);
    let (Some(plt), Some(section)) = (named(".plt"), named(".rela.plt")) else { return Vec::new() };
    let names = relocated(file, section).map(|(_, name)| name.unwrap_or_default());
    let starts = (0..).map_while(|number: u64| plt.address.checked_add(header + number.checked_mul(STUB)?));
    starts.zip(names).map(|(start, name)| (start, start.saturating_add(STUB), format!("{name}@plt"))).collect()
}

/// Slot → name of the function that the dynamic linker puts there.
fn slots(file: &ObjectFile) -> FxHashMap<u64, String> {
    let sections = file.sections.iter().filter(|s| s.kind == SectionKind::Rela && s.name.starts_with(".rela."));
    let all = sections.flat_map(|section| relocated(file, section));
    all.filter_map(|(slot, name)| Some((slot, name?))).collect()
}

/// The places that a section of relocations fills, each with the name of the dynamic symbol that it is filled from.
fn relocated(file: &ObjectFile, section: &Section) -> impl Iterator<Item = (u64, Option<String>)> {
    let symbols = file.sections.get(section.link).filter(|s| s.kind == SectionKind::DynamicSymbols);
    let strings = symbols.and_then(|symbols| file.sections.get(symbols.link));
    let content = |section: Option<&Section>| file.content(section?).ok();
    let (symbols, strings) = (content(symbols), content(strings));
    let relocations = if strings.is_some() { content(Some(section)) } else { None };
    let symbols = file.symbols(&symbols.unwrap_or_default());
    let (strings, relocations) = (strings.unwrap_or_default(), relocations.unwrap_or_default());
    let big_endian = file.big_endian;
    let field = move |bytes: &[u8; 8]| if big_endian { u64::from_be_bytes(*bytes) } else { u64::from_le_bytes(*bytes) };
    (0..relocations.len() / 24).filter_map(move |number| {
        let relocation: &[u8; 24] = relocations.get(number * 24..)?.first_chunk()?;
        let (slot, info) = (field(relocation.first_chunk()?), field(relocation.get(8..)?.first_chunk()?));
        let symbol = symbols.get((info >> 32) as usize).filter(|symbol| symbol.name != 0);
        let name = symbol.and_then(|symbol| strings.get(symbol.name as usize..)?.split(|b| *b == 0).next());
        Some((slot, name.map(|name| String::from_utf8_lossy(name).into_owned())))
    })
}
