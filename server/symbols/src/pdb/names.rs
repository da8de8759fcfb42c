//! What the name of a function is made from.

/// A function whose name is to be written. Types are numbered per module where another module defines them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum NameKey {
    /// A function with code of its own: its qualified name, and its type for the parameters.
    Procedure { module: usize, name: String, type_index: u32 },
    /// An inlined function, by its number.
    Inlinee { module: usize, id: u32 },
}

impl NameKey {
    /// The name that is known without any type.
    pub fn plain(&self) -> Option<&str> {
        match self {
            NameKey::Procedure { name, .. } => Some(name),
            NameKey::Inlinee { .. } => None,
        }
    }
}
