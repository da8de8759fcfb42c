//! Modules: binary images and what stands in for them.

use crate::AddressSpace;
use std::fmt;

/// Number of a [`Module`] in its profile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ModuleId(pub u32);

/// The build id of an ELF image: the bytes of its `NT_GNU_BUILD_ID` note, 20 for SHA-1.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId(pub Vec<u8>);

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// The identity of a PE image and its PDB: the bytes behind `RSDS` in the CodeView record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PdbId {
    /// The GUID as it lies in the file: three little-endian fields, then eight bytes in order.
    pub guid: [u8; 16],
    /// Counts relinks of one build.
    pub age: u32,
}

impl PdbId {
    /// The GUID as text in upper case, without braces: `AD10FDA6-A0D8-B664-4C4C-44205044422E`.
    pub fn guid_text(&self) -> String {
        let g = &self.guid;
        format!(
            "{:08X}-{:04X}-{:04X}-{:02X}{:02X}-{:02X}{:02X}{:02X}{:02X}{:02X}{:02X}",
            u32::from_le_bytes([g[0], g[1], g[2], g[3]]),
            u16::from_le_bytes([g[4], g[5]]),
            u16::from_le_bytes([g[6], g[7]]),
            g[8],
            g[9],
            g[10],
            g[11],
            g[12],
            g[13],
            g[14],
            g[15]
        )
    }

    /// The key of symbol stores: the GUID without dashes followed by the age in hex.
    pub fn store_key(&self) -> String {
        format!("{}{:X}", self.guid_text().replace('-', ""), self.age)
    }

    /// Whether nothing identifies the image (an all-zero GUID).
    pub fn is_nil(&self) -> bool {
        self.guid == [0; 16]
    }
}

impl fmt::Display for PdbId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}} age {}", self.guid_text(), self.age)
    }
}

impl fmt::Debug for PdbId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PdbId({self})")
    }
}

/// What a profile knows of the identity of an image; compared before debug information is believed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Identity {
    /// An ELF build id.
    BuildId(BuildId),
    /// GUID and age of a PE image.
    Pdb(PdbId),
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identity::BuildId(id) => id.fmt(f),
            Identity::Pdb(id) => id.fmt(f),
        }
    }
}

/// What kind of thing a module is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ModuleKind {
    /// An image that lies (or lay) in a file: ELF or PE.
    Binary,
    /// The kernel's own text.
    Kernel,
    /// A loadable kernel module.
    KernelModule,
    /// Kernel or user code of a virtual machine.
    Guest,
    /// The virtual shared object that the kernel maps into each process.
    Vdso,
    /// Code generated at run time, or other executable memory without a file.
    Anonymous,
    /// No mapping covered the address.
    Unmapped,
}

/// One binary image, or a named group of code that has none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// The path as recorded (`/usr/bin/app`, `C:\app\app.exe`), or the recorder's name for what is no file
    /// (`[kernel.kallsyms]`, `[vdso]`, `//anon`, `[unknown]`).
    pub path: String,
    /// What kind of thing it is.
    pub kind: ModuleKind,
    /// Its identity, where the recording holds one.
    pub identity: Option<Identity>,
    /// In which space its addresses are recorded.
    pub space: AddressSpace,
}

impl Module {
    /// The last component of the path, whichever system's separators it has.
    pub fn base_name(&self) -> &str {
        if self.kind == ModuleKind::Binary {
            self.path.rsplit(['/', '\\']).next().unwrap_or(&self.path)
        } else {
            &self.path
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guid_prints_as_symbol_servers_name_it() {
        let guid = [0xa6, 0xfd, 0x10, 0xad, 0xd8, 0xa0, 0x64, 0xb6, 0x4c, 0x4c, 0x44, 0x20, 0x50, 0x44, 0x42, 0x2e];
        let id = PdbId { guid, age: 1 };
        assert_eq!(id.to_string(), "{AD10FDA6-A0D8-B664-4C4C-44205044422E} age 1");
        assert_eq!(id.store_key(), "AD10FDA6A0D8B6644C4C44205044422E1");
        assert!(!id.is_nil());
    }

    #[test]
    fn base_names_of_both_systems() {
        let module = |path: &str, kind| Module { path: path.into(), kind, identity: None, space: AddressSpace::Rva };
        assert_eq!(module("/usr/lib/libc.so.6", ModuleKind::Binary).base_name(), "libc.so.6");
        assert_eq!(module("C:\\app\\a.exe", ModuleKind::Binary).base_name(), "a.exe");
        assert_eq!(module("[kernel.kallsyms]", ModuleKind::Kernel).base_name(), "[kernel.kallsyms]");
    }
}
