//! Symbols: from the addresses of a binary to functions, files, lines and inlined frames.
//!
//! An [`Image`] is opened from a [`Storage`], asked for its identity, and given all addresses of interest at once. The
//! answer is a [`Resolution`], which keeps no debug information. Nothing here opens a file: what else is needed
//! (separate debug files and the like) is asked for through [`Locate`].
//!
//! Binaries are not trusted: damage costs the unit it is in and becomes a problem, sizes are believed only as far as
//! the file has bytes for them, and depths and counts have named limits.

mod build;
mod call_sites;
mod calls;
mod code;
mod demangle;
mod dwarf;
mod error;
mod image;
mod object_file;
mod parts;
mod pdb;
mod pdb_link;
mod plt;
mod recorded;
mod resolution;
mod separate;
mod storage;
mod symbol_table;

pub use call_sites::FunctionRange;
pub use demangle::bare_name;
pub use error::SymbolError;
pub use image::Image;
pub use object_file::ImageKind;
pub use pdb::IdentityMatch;
pub use recorded::Recorded;
pub use resolution::{Checksum, FileId, Frame, Function, FunctionId, Reason, Resolution, SourceFile};
pub use storage::{DebugFile, Locate, Nowhere, Storage};
