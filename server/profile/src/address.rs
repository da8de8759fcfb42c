//! Addresses, one type per address space.
//!
//! The spaces are easily confused and a confusion goes unnoticed wherever two of them coincide, so each has a type of
//! its own, prints as hex and is converted only where the base it needs is at hand.

use std::fmt;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $int);

        impl $name {
            /// This address plus `bytes`, or `None` past the end of the address space.
            pub fn checked_add(self, bytes: $int) -> Option<Self> {
                self.0.checked_add(bytes).map(Self)
            }

            /// This address minus `bytes`, or `None` below zero.
            pub fn checked_sub(self, bytes: $int) -> Option<Self> {
                self.0.checked_sub(bytes).map(Self)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    };
}

address! {
    /// Actual virtual memory address: where the code was in the process.
    Avma, u64
}
address! {
    /// Stated virtual memory address: where the linker put the code, as debug information and symbol tables say it.
    Svma, u64
}
address! {
    /// Relative virtual address: distance from the image base, as PE and PDB files say it.
    Rva, u32
}
address! {
    /// Position in a file, in bytes.
    FileOffset, u64
}
address! {
    /// An address inside one module, in the address space named by the module's [`AddressSpace`].
    ModuleAddress, u64
}

/// In which space the [`ModuleAddress`]es of a module are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum AddressSpace {
    /// Position in the file of the image ([`FileOffset`]): what a mapping of an ELF file yields.
    FileOffset,
    /// Distance from the image base ([`Rva`]).
    Rva,
    /// Distance from where the first segment of an ELF file was mapped, for recorders that keep only the whole range of
    /// an image. Segments keep their distances in the process, so the distances as linked are the same.
    FromFirstSegment,
    /// As linked ([`Svma`]).
    Svma,
    /// As in the process ([`Avma`]): no image is known, or, as for the kernel, the image is not a file.
    Avma,
}

/// An address together with how it was obtained, which decides whether a look-up steps back into the call.
///
/// A return address points behind its call, possibly to another line or another function, so look-ups use the byte
/// before it. Some recorders have stepped back already. The address of the innermost frame is exact.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CodeAddress {
    /// The sampled instruction, or the interrupted instruction of a signal frame: looked up as it is.
    Ip(ModuleAddress),
    /// The instruction after a call: looked up one byte earlier.
    ReturnAddress(ModuleAddress),
    /// A return address from which the recorder has subtracted already: looked up as it is.
    AdjustedReturnAddress(ModuleAddress),
}

impl CodeAddress {
    /// The address as recorded.
    pub fn recorded(self) -> ModuleAddress {
        match self {
            CodeAddress::Ip(a) | CodeAddress::ReturnAddress(a) | CodeAddress::AdjustedReturnAddress(a) => a,
        }
    }

    /// The address to look up: that of the call for a return address.
    pub fn lookup(self) -> ModuleAddress {
        match self {
            CodeAddress::Ip(a) | CodeAddress::AdjustedReturnAddress(a) => a,
            CodeAddress::ReturnAddress(a) => ModuleAddress(a.0.saturating_sub(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked example V6.
    #[test]
    fn return_addresses_step_back_once_and_only_they() {
        assert_eq!(CodeAddress::Ip(ModuleAddress(0x2005)).lookup(), ModuleAddress(0x2005));
        assert_eq!(CodeAddress::ReturnAddress(ModuleAddress(0x2005)).lookup(), ModuleAddress(0x2004));
        assert_eq!(CodeAddress::AdjustedReturnAddress(ModuleAddress(0x2004)).lookup(), ModuleAddress(0x2004));
        assert_eq!(CodeAddress::ReturnAddress(ModuleAddress(0)).lookup(), ModuleAddress(0));
    }

    #[test]
    fn addresses_print_as_hex() {
        assert_eq!(Svma(0x1139).to_string(), "0x1139");
        assert_eq!(format!("{:?}", Rva(16)), "Rva(0x10)");
    }
}
