//! Where functions begin, and where they call others directly.
//!
//! Calls are found by their targets: four bytes behind a call that lead exactly to a wanted function are, by all odds, a
//! call of it, so nothing needs to be disassembled.

use crate::calls;
use crate::object_file::{Machine, ObjectFile};
use crate::storage::read_part;
use crate::symbol_table::{Choice, SymbolTable};
use heatline_profile::{Problems, Svma};
use std::collections::BTreeSet;

/// Code of one function that is looked through at most.
const LONGEST_FUNCTION: u64 = 16 << 20;

/// The code of a function: from its first byte to behind its last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FunctionRange {
    /// The entry.
    pub start: Svma,
    /// Behind the last byte.
    pub end: Svma,
}

/// The ranges of the functions that hold these addresses, from the symbol tables; `None` where no symbol covers one.
pub(crate) fn function_ranges(
    files: &[&ObjectFile],
    code: &[(u64, u64)],
    addresses: &[Svma],
) -> Vec<Option<FunctionRange>> {
    let table = SymbolTable::read(files, code, Choice::Kind, &mut Problems::new());
    let range = |address: &Svma| {
        let (start, end) = table.range(table.find(address.0, 0)?)?;
        Some(FunctionRange { start: Svma(start), end: Svma(end) })
    };
    addresses.iter().map(range).collect()
}

/// The direct calls, and jumps that leave for good, from a function to the beginnings of others: the instruction's
/// address and the target. Empty where the code is not at hand, or of a processor that is not known here.
pub(crate) fn calls_in(file: &ObjectFile, function: FunctionRange, targets: &BTreeSet<Svma>) -> Vec<(Svma, Svma)> {
    let find = match file.machine {
        Machine::X86 | Machine::X86_64 => x86_calls,
        Machine::Aarch64 => aarch64_calls,
        Machine::Other => return Vec::new(),
    };
    let mut found = code_of(file, function).map_or_else(Vec::new, |code| find(&code, function.start.0));
    found.retain(|(_, target)| targets.contains(target));
    found
}

/// The calls in a function whose target is in a register or in memory: the instruction's address, and where it ends.
/// Empty where the code is not at hand, or of a processor that is not known here.
pub(crate) fn indirect_calls_in(file: &ObjectFile, function: FunctionRange) -> Vec<(Svma, Svma)> {
    let Some(code) = code_of(file, function) else { return Vec::new() };
    let start = function.start.0;
    match file.machine {
        Machine::X86 | Machine::X86_64 => {
            let in_code = |target: Svma| {
                file.segments.iter().any(|s| s.executable && target.0.wrapping_sub(s.address) < s.file_size)
            };
            x86_indirect_calls(&code, start, in_code)
        }
        Machine::Aarch64 => aarch64_indirect_calls(&code, start),
        Machine::Other => Vec::new(),
    }
}

/// The bytes of a function, as far as they are looked through.
fn code_of(file: &ObjectFile, function: FunctionRange) -> Option<Vec<u8>> {
    let (start, end) = (function.start.0, function.end.0);
    let segment = file.segments.iter().find(|s| s.executable && start.wrapping_sub(s.address) < s.file_size)?;
    let within = start - segment.address;
    let length = end.saturating_sub(start).min(segment.file_size - within).min(LONGEST_FUNCTION);
    read_part(&*file.storage, segment.offset.checked_add(within)?, length).ok()
}

/// Everything that looks like `FF /2` and is not part of a direct call or jump into code.
fn x86_indirect_calls(code: &[u8], start: u64, in_code: impl Fn(Svma) -> bool) -> Vec<(Svma, Svma)> {
    let mut found = Vec::new();
    let mut behind_direct = 0;
    let mut direct = x86_calls(code, start).into_iter().filter(|(_, target)| in_code(*target)).peekable();
    for (at, address) in (0..code.len()).zip(start..) {
        while direct.next_if(|(site, _)| site.0 < address).is_some() {}
        if at >= behind_direct && direct.peek().is_some_and(|(site, _)| site.0 == address) {
            behind_direct = at + 5;
        }
        if at < behind_direct {
            continue;
        }
        if let Some(length) = code.get(at..).and_then(calls::x86_indirect_call) {
            found.push((Svma(address), Svma(address.saturating_add(length as u64))));
        }
    }
    found
}

/// Every `BLR`.
fn aarch64_indirect_calls(code: &[u8], start: u64) -> Vec<(Svma, Svma)> {
    let words = code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let calls = words.zip((start..).step_by(4)).filter(|(word, _)| calls::is_aarch64_indirect_call(*word));
    calls.map(|(_, address)| (Svma(address), Svma(address.saturating_add(4)))).collect()
}

/// Everything that looks like `CALL` or `JMP` with a distance of 32 bits.
fn x86_calls(code: &[u8], start: u64) -> Vec<(Svma, Svma)> {
    let branch = |(at, bytes): (usize, &[u8])| {
        let (&opcode, distance) = bytes.split_first()?;
        let distance = i32::from_le_bytes(*distance.first_chunk()?);
        let address = start.checked_add(at as u64)?;
        let target = address.checked_add(5)?.checked_add_signed(distance.into())?;
        matches!(opcode, 0xe8 | 0xe9).then_some((Svma(address), Svma(target)))
    };
    code.windows(5).enumerate().filter_map(branch).collect()
}

/// Every `BL` and `B`.
fn aarch64_calls(code: &[u8], start: u64) -> Vec<(Svma, Svma)> {
    let branch = |(at, word): (usize, &[u8; 4])| {
        let word = u32::from_le_bytes(*word);
        let address = start.checked_add(4 * at as u64)?;
        let distance = ((word << 6) as i32 >> 6) * 4;
        let target = address.checked_add_signed(distance.into())?;
        (word >> 26 & 0b1_1111 == 0b0_0101).then_some((Svma(address), Svma(target)))
    };
    code.as_chunks::<4>().0.iter().enumerate().filter_map(branch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x86_calls_and_tail_calls_lead_to_their_targets() {
        // nop; call +0x10; jmp -0xb
        let code = [0x90, 0xe8, 0x10, 0, 0, 0, 0xe9, 0xf5, 0xff, 0xff, 0xff];
        let calls = x86_calls(&code, 0x1000);
        assert_eq!(calls, [(Svma(0x1001), Svma(0x1016)), (Svma(0x1006), Svma(0x1000))]);
    }

    /// `call *%rax`; `call *0x10(%rax)`; `call *0x2000(%rip)`; a direct call whose distance ends like one, with a `nop` behind.
    #[test]
    fn x86_calls_through_registers_and_memory_are_found() {
        let code = [
            &[0x90, 0xff, 0xd0][..],
            &[0xff, 0x50, 0x10],
            &[0xff, 0x15, 0x00, 0x20, 0x00, 0x00],
            &[0xe8, 0xf0, 0xff, 0xff, 0xff, 0x90, 0x90, 0x90, 0x90, 0x90],
        ];
        let calls = x86_indirect_calls(&code.concat(), 0x1000, |_| true);
        let places: Vec<(u64, u64)> = calls.iter().map(|(site, end)| (site.0 - 0x1000, end.0 - 0x1000)).collect();
        assert_eq!(places, [(1, 3), (3, 6), (6, 12)]);
    }

    #[test]
    fn aarch64_calls_through_registers_are_found() {
        // nop; blr x1; bl +0x40
        let code: Vec<u8> =
            [0xd503_201f_u32, 0xd63f_0020, 0x9400_0010].iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(aarch64_indirect_calls(&code, 0x1000), [(Svma(0x1004), Svma(0x1008))]);
    }

    #[test]
    fn aarch64_calls_and_tail_calls_lead_to_their_targets() {
        // bl +0x40; nop; b -8
        let words = [0x9400_0010_u32, 0xd503_201f, 0x17ff_fffe];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let calls = aarch64_calls(&code, 0x1000);
        assert_eq!(calls, [(Svma(0x1000), Svma(0x1040)), (Svma(0x1008), Svma(0x1000))]);
    }
}
