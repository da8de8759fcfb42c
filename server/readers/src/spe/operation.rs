//! What kind of operation was sampled: its class and subclass in words.

use super::record::OperationType;
use heatline_profile::SpeOperation;

/// What an operation packet says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A load, a store or an atomic operation.
    Memory {
        /// Whether memory was written. An atomic read-modify-write is either, as the processor reports it.
        store: bool,
        /// To or from what.
        subclass: Memory,
    },
    /// A branch or an exception return.
    Branch {
        /// Whether it depends on a condition.
        conditional: bool,
        /// Whether the target came from a register.
        indirect: bool,
        /// Whether it used the guarded control stack.
        guarded: bool,
        /// Whether it is a call or a return.
        role: Role,
    },
    /// Neither: arithmetic and all the rest.
    Other(Other),
    /// A class that is reserved.
    Reserved,
}

/// What was loaded or stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// A general register.
    General,
    /// A register of SIMD or floating point.
    Simd,
    /// A register that is not told.
    Unspecified,
    /// Allocation tags of memory tagging.
    Tag,
    /// A system register of a nested guest, which lives in memory.
    SystemRegister,
    /// A memory copy instruction.
    Copy,
    /// A memory set instruction.
    Set,
    /// Atomic, exclusive or ordered accesses.
    Extended {
        /// A read-modify-write.
        atomic: bool,
        /// An exclusive.
        exclusive: bool,
        /// With acquire or release order.
        ordered: bool,
    },
    /// A vector or tile of SVE or SME.
    Vector {
        /// The effective length in bits.
        length: u32,
        /// Whether a predicate chose elements.
        predicated: bool,
        /// Whether each element has an address of its own.
        scattered: bool,
    },
    /// The guarded control stack.
    ControlStack {
        /// Whether the access was by a branch, a common one.
        common: bool,
    },
    /// A reserved payload.
    Reserved,
}

/// Whether a branch is a call or a return, as far as the processor tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It does not tell.
    Untold,
    /// A branch with link.
    Call,
    /// A return.
    Return,
    /// Neither of the two.
    Neither,
}

/// Operations that are neither memory accesses nor branches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Other {
    /// No vector of SVE or SME.
    General {
        /// A conditional select.
        select: bool,
        /// Floating point.
        float: bool,
        /// Advanced SIMD.
        simd: bool,
    },
    /// Data processing of SVE.
    Sve {
        /// The effective length in bits.
        length: u32,
        /// Floating point.
        float: bool,
        /// Whether a predicate chose elements.
        predicated: bool,
    },
    /// An operation of SME.
    Sme {
        /// Size of the vector or tile in bits.
        size: u32,
        /// Floating point.
        float: bool,
    },
    /// A reserved payload.
    Reserved,
}

/// Reads an operation packet.
pub fn operation(packet: OperationType) -> Operation {
    let p = packet.payload;
    let bit = |number: u8| p >> number & 1 == 1;
    match packet.class {
        0 => Operation::Other(other(p)),
        1 => Operation::Memory { store: bit(0), subclass: memory(p) },
        2 => Operation::Branch {
            conditional: bit(0),
            indirect: bit(1),
            guarded: bit(2),
            role: match p >> 3 & 3 {
                0 => Role::Untold,
                1 => Role::Call,
                2 => Role::Return,
                _ => Role::Neither,
            },
        },
        _ => Operation::Reserved,
    }
}

fn vector_length(p: u8) -> u32 {
    32 << (p >> 4 & 7)
}

fn other(p: u8) -> Other {
    let bit = |number: u8| p >> number & 1 == 1;
    match p {
        _ if p & 0x89 == 0x08 => Other::Sve { length: vector_length(p), float: bit(1), predicated: bit(2) },
        _ if p & 0x89 == 0x88 => Other::Sme { size: 128 << ((p >> 4 & 7) << 1 | p >> 2 & 1), float: bit(1) },
        _ if p & 0xf8 == 0 => Other::General { select: bit(0), float: bit(1), simd: bit(2) },
        _ => Other::Reserved,
    }
}

fn memory(p: u8) -> Memory {
    let bit = |number: u8| p >> number & 1 == 1;
    match p & 0xfe {
        0x00 => Memory::General,
        0x04 => Memory::Simd,
        0x10 => Memory::Unspecified,
        0x14 => Memory::Tag,
        0x30 => Memory::SystemRegister,
        0x20 => Memory::Copy,
        _ if p == 0x25 => Memory::Set,
        _ if p & 0xe2 == 0x02 => Memory::Extended { atomic: bit(2), exclusive: bit(3), ordered: bit(4) },
        _ if p & 0x0a == 0x08 => Memory::Vector { length: vector_length(p), predicated: bit(2), scattered: bit(7) },
        _ if p & 0xfa == 0x40 => Memory::ControlStack { common: bit(2) },
        _ => Memory::Reserved,
    }
}

impl Operation {
    /// `load`, `store`, `branch` or `other`.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Memory { store: false, .. } => "load",
            Operation::Memory { store: true, .. } => "store",
            Operation::Branch { .. } => "branch",
            Operation::Other(_) | Operation::Reserved => "other",
        }
    }

    /// The words for its subclass, most telling first.
    pub fn classes(self) -> Vec<&'static str> {
        let mut words = Vec::new();
        let mut add = |given: bool, word| {
            if given {
                words.push(word);
            }
        };
        match self {
            Operation::Memory { subclass, .. } => memory_classes(subclass, &mut add),
            Operation::Branch { conditional, indirect, guarded, role } => {
                add(conditional, "conditional");
                add(indirect, "indirect");
                add(role == Role::Call, "call");
                add(role == Role::Return, "return");
                add(guarded, "gcs");
            }
            Operation::Other(other) => other_classes(other, &mut add),
            Operation::Reserved => {}
        }
        words
    }

    /// The effective vector length, or the size of the tile, in bits.
    pub fn vector_length(self) -> Option<u32> {
        match self {
            Operation::Memory { subclass: Memory::Vector { length, .. }, .. } => Some(length),
            Operation::Other(Other::Sve { length, .. }) => Some(length),
            Operation::Other(Other::Sme { size, .. }) => Some(size),
            _ => None,
        }
    }

    /// Where it counts in the mix of operations.
    pub fn kind(self) -> SpeOperation {
        match self {
            Operation::Memory { subclass: Memory::Extended { atomic: true, .. }, .. } => SpeOperation::Atomic,
            Operation::Memory { store, subclass: Memory::Simd | Memory::Vector { .. } } => {
                if store {
                    SpeOperation::VectorStore
                } else {
                    SpeOperation::VectorLoad
                }
            }
            Operation::Memory { store: false, .. } => SpeOperation::Load,
            Operation::Memory { store: true, .. } => SpeOperation::Store,
            Operation::Branch { conditional: true, .. } => SpeOperation::ConditionalBranch,
            Operation::Branch { role: Role::Call, .. } => SpeOperation::Call,
            Operation::Branch { role: Role::Return, .. } => SpeOperation::Return,
            Operation::Branch { indirect: true, .. } => SpeOperation::IndirectBranch,
            Operation::Branch { .. } => SpeOperation::Branch,
            Operation::Other(Other::General { simd: true, .. } | Other::Sve { .. } | Other::Sme { .. }) => {
                SpeOperation::Vector
            }
            Operation::Other(Other::General { float: true, .. }) => SpeOperation::Float,
            Operation::Other(Other::General { .. }) => SpeOperation::General,
            Operation::Other(Other::Reserved) | Operation::Reserved => SpeOperation::Unknown,
        }
    }
}

fn memory_classes(subclass: Memory, add: &mut dyn FnMut(bool, &'static str)) {
    match subclass {
        Memory::General => add(true, "gp-reg"),
        Memory::Simd => add(true, "simd-fp"),
        Memory::Unspecified => add(true, "unspecified"),
        Memory::Tag => add(true, "mte-tag"),
        Memory::SystemRegister => add(true, "nv-sysreg"),
        Memory::Copy => add(true, "memcpy"),
        Memory::Set => add(true, "memset"),
        Memory::Extended { atomic, exclusive, ordered } => {
            add(atomic, "atomic");
            add(exclusive, "exclusive");
            add(ordered, "acquire-release");
        }
        Memory::Vector { predicated, scattered, .. } => {
            add(true, "sve");
            add(predicated, "predicated");
            add(scattered, "gather-scatter");
        }
        Memory::ControlStack { common } => {
            add(true, "gcs");
            add(common, "common");
        }
        Memory::Reserved => {}
    }
}

fn other_classes(other: Other, add: &mut dyn FnMut(bool, &'static str)) {
    match other {
        Other::General { select, float, simd } => {
            add(!select, "general");
            add(select, "conditional-select");
            add(float, "fp");
            add(simd, "simd");
        }
        Other::Sve { float, predicated, .. } => {
            add(float, "fp");
            add(true, "sve");
            add(predicated, "predicated");
        }
        Other::Sme { float, .. } => {
            add(float, "fp");
            add(true, "sme");
        }
        Other::Reserved => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(class: u8, payload: u8, name: &str, classes: &[&str], length: Option<u32>) {
        let operation = operation(OperationType { class, payload });
        assert_eq!((operation.name(), operation.vector_length()), (name, length));
        assert_eq!(operation.classes(), classes);
    }

    #[test]
    fn subclasses_of_memory_accesses() {
        check(1, 0x00, "load", &["gp-reg"], None);
        check(1, 0x05, "store", &["simd-fp"], None);
        check(1, 0x10, "load", &["unspecified"], None);
        check(1, 0x14, "load", &["mte-tag"], None);
        check(1, 0x30, "load", &["nv-sysreg"], None);
        check(1, 0x20, "load", &["memcpy"], None);
        check(1, 0x25, "store", &["memset"], None);
        check(1, 0x24, "load", &[], None);
        check(1, 0x0e, "load", &["atomic", "exclusive"], None);
        check(1, 0x1f, "store", &["atomic", "exclusive", "acquire-release"], None);
        check(1, 0x1a, "load", &["exclusive", "acquire-release"], None);
        check(1, 0xdd, "store", &["sve", "predicated", "gather-scatter"], Some(1024));
        check(1, 0x44, "load", &["gcs", "common"], None);
    }

    #[test]
    fn subclasses_of_branches_and_of_the_rest() {
        check(2, 0x01, "branch", &["conditional"], None);
        check(2, 0x02, "branch", &["indirect"], None);
        check(2, 0x03, "branch", &["conditional", "indirect"], None);
        check(2, 0x0a, "branch", &["indirect", "call"], None);
        check(2, 0x12, "branch", &["indirect", "return"], None);
        check(2, 0x1c, "branch", &["gcs"], None);
        check(0, 0x00, "other", &["general"], None);
        check(0, 0x01, "other", &["conditional-select"], None);
        check(0, 0x06, "other", &["general", "fp", "simd"], None);
        check(0, 0x58, "other", &["sve"], Some(1024));
        check(0, 0x0e, "other", &["fp", "sve", "predicated"], Some(32));
        check(0, 0x8e, "other", &["fp", "sme"], Some(256));
        check(0, 0x80, "other", &[], None);
        check(3, 0x00, "other", &[], None);
    }

    /// Each payload fits one subclass at most, so the order of the tests decides nothing.
    #[test]
    fn the_tests_for_memory_subclasses_exclude_each_other() {
        for p in 0..=255u8 {
            let tests = [
                p & 0xfe == 0x00,
                p & 0xfe == 0x04,
                p & 0xfe == 0x10,
                p & 0xfe == 0x14,
                p & 0xfe == 0x30,
                p & 0xfe == 0x20,
                p == 0x25,
                p & 0xe2 == 0x02,
                p & 0x0a == 0x08,
                p & 0xfa == 0x40,
            ];
            assert!(tests.iter().filter(|&&fits| fits).count() <= 1, "{p:#x}");
        }
    }
}
