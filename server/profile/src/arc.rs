//! Branch arcs: where control went, as processors record it.

use crate::{EventId, ModuleAddress, ModuleId, Weight};

/// An address of one module, taken as it is: the target or the source of a branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CodePlace {
    /// The module that holds the code.
    pub module: ModuleId,
    /// Where in the module.
    pub address: ModuleAddress,
}

/// A taken branch and how often it was seen in branch records (LBR, branch stacks).
///
/// The arcs of one interrupt are not independent samples, and no time can be read from them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BranchArc {
    /// The event whose samples carried the branch.
    pub event: EventId,
    /// The branch instruction.
    pub from: CodePlace,
    /// The instruction it went to.
    pub to: CodePlace,
    /// How often it was recorded.
    pub taken: Weight,
}
