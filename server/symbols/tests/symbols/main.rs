//! The crate against llvm-symbolizer-19 on binaries that compilers and linkers make here, and against damage.
#![allow(clippy::disallowed_methods, reason = "tests build binaries and read them")]

mod damage;
mod layouts;
mod msvc;
mod omap;
mod oracle;
mod pdb;
mod separate;
mod sparse;
mod tools;
