//! Whether an address follows a call: so it is with return addresses, and with few others.

use crate::object_file::{Machine, ObjectFile};
use crate::storage::read_part;

/// The longest call through a register or memory: opcode, two bytes that say where, four of a distance.
const LONGEST_CALL: u64 = 7;

/// Whether the instruction before the link-time address `address` is a call; `None` where the code is not at hand, or
/// of a processor that is not known here.
pub(crate) fn follows_call(file: &ObjectFile, address: u64) -> Option<bool> {
    let segment = file.segments.iter().find(|s| s.executable && address.wrapping_sub(s.address) < s.memory_size)?;
    let within = address - segment.address;
    let length = within.min(LONGEST_CALL);
    // What lies behind the end of the file's part is filled with zeros.
    if within > segment.file_size {
        return None;
    }
    let before = read_part(&*file.storage, segment.offset.checked_add(within - length)?, length).ok()?;
    match file.machine {
        Machine::X86 | Machine::X86_64 => Some(is_x86_call(&before)),
        Machine::Aarch64 => Some(is_aarch64_call(&before)),
        Machine::Other => None,
    }
}

/// Whether the bytes can end in a call: `E8` with a distance, or `FF /2` with any operand.
fn is_x86_call(before: &[u8]) -> bool {
    let ending = |length: usize| before.len().checked_sub(length).and_then(|start| before.get(start..));
    if ending(5).is_some_and(|call| call[0] == 0xe8) {
        return true;
    }
    // The operand is in a register, or in memory without, with a short or with a long distance; with or without an
    // index.
    (2..=LONGEST_CALL as usize).any(|length| ending(length).and_then(x86_indirect_call) == Some(length))
}

/// The length of a call through a register or memory (`FF /2`) that code begins with, if it can be one.
pub(crate) fn x86_indirect_call(code: &[u8]) -> Option<usize> {
    match code {
        [0xff, operand, rest @ ..] if operand >> 3 & 7 == 2 => Some(indirect_length(*operand, rest)),
        _ => None,
    }
}

/// Whether a word is `BLR` or one of its forms with pointer authentication.
pub(crate) fn is_aarch64_indirect_call(word: u32) -> bool {
    word & 0xfeff_f000 == 0xd63f_0000
}

/// The length of `FF` with this operand byte and what follows it.
fn indirect_length(operand: u8, rest: &[u8]) -> usize {
    let (mode, register) = (operand >> 6, operand & 7);
    if mode == 3 {
        return 2;
    }
    let has_index = register == 4;
    let base = if has_index { rest.first().map_or(0, |index| index & 7) } else { register };
    let distance = match mode {
        0 if base == 5 => 4,
        0 => 0,
        1 => 1,
        _ => 4,
    };
    2 + usize::from(has_index) + distance
}

/// Whether the last word is `BL`, `BLR` or one of the latter's forms with pointer authentication.
fn is_aarch64_call(before: &[u8]) -> bool {
    let Some(word) = before.last_chunk().map(|word| u32::from_le_bytes(*word)) else { return false };
    word >> 26 == 0b10_0101 || is_aarch64_indirect_call(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_x86(bytes: &[u8], is_call: bool) {
        let mut before = vec![0x90; 7 - bytes.len()];
        before.extend(bytes);
        assert_eq!(is_x86_call(&before), is_call, "{bytes:x?}");
    }

    #[test]
    fn x86_calls_of_every_form() {
        check_x86(&[0xe8, 1, 2, 3, 4], true); // call rel32
        check_x86(&[0xff, 0xd0], true); // call rax
        check_x86(&[0x41, 0xff, 0xd3], true); // call r11
        check_x86(&[0xff, 0x10], true); // call [rax]
        check_x86(&[0xff, 0x50, 8], true); // call [rax+8]
        check_x86(&[0xff, 0x90, 0, 1, 0, 0], true); // call [rax+100h]
        check_x86(&[0xff, 0x15, 0, 1, 0, 0], true); // call [rip+100h]
        check_x86(&[0xff, 0x14, 0xc8], true); // call [rax+rcx*8]
        check_x86(&[0xff, 0x54, 0xc8, 8], true); // call [rax+rcx*8+8]
        check_x86(&[0xff, 0x14, 0xc5, 0, 0, 0, 0], true); // call [rax*8]
        check_x86(&[0xff, 0x94, 0xc8, 0, 1, 0, 0], true); // call [rax+rcx*8+100h]
    }

    #[test]
    fn what_is_no_x86_call() {
        check_x86(&[], false);
        check_x86(&[0xff, 0xe0], false); // jmp rax
        check_x86(&[0xff, 0x25, 0, 1, 0, 0], false); // jmp [rip+100h]
        check_x86(&[0xe9, 1, 2, 3, 4], false); // jmp rel32
        check_x86(&[0xff, 0x50], false); // a call whose distance would come after
        assert!(!is_x86_call(&[0xe8, 1]));
    }

    #[test]
    fn aarch64_calls() {
        for (word, is_call) in [
            (0x9400_0010_u32, true), // bl
            (0x97ff_fff0, true),     // bl, backwards
            (0xd63f_0100, true),     // blr x8
            (0xd63f_081f, true),     // blraaz x0
            (0x1400_0010, false),    // b
            (0xd61f_0100, false),    // br x8
            (0xd65f_03c0, false),    // ret
        ] {
            assert_eq!(is_aarch64_call(&word.to_le_bytes()), is_call, "{word:#x}");
        }
        assert!(!is_aarch64_call(&[0]));
    }
}
