//! Costs per line, function, file, module and thread, and where they stand in the text of today.
//!
//! A [`Model`] is a profile whose addresses are resolved; a [`CostTable`] holds the costs of one of its events; hints,
//! lenses, hovers, reports and annotated sources are all read from that table. Nothing here opens files or knows a
//! protocol: the texts are finished, the numbers raw.

mod addresses;
mod arcs;
mod calls;
pub mod compare;
mod cut_stacks;
mod differences;
#[cfg(test)]
mod fixture;
mod gaps;
mod hover;
mod leaves;
mod metric;
mod model;
mod path;
pub mod placement;
mod recorded;
mod short_name;
mod spe;
pub mod statistics;
mod table;
#[cfg(test)]
mod tests;
pub mod text;
mod times;
mod tree;
mod view;

pub use addresses::Addresses;
pub use calls::{Call, CallBasis, Calls, Party};
pub use compare::Delta;
pub use cut_stacks::cut_stacks;
pub use differences::{Against, Removed};
pub use gaps::gaps;
pub use leaves::Leaf;
pub use metric::{Metric, Statistic};
pub use model::{FileId, FunctionId, Model, ModelFile, ModelFunction, ModuleSymbols};
pub use path::{below, comparison_key, components, folds_case, is_absolute, is_windows, normalize, same_name};
pub use short_name::short_name;
pub use table::{By, Cost, CostTable, Coverage, Filter, ModuleCoverage, Row, Selection, without_parameters};
pub use times::{Timed, Times};
pub use view::{AnnotationOptions, Annotations, FileView, FunctionView, HeatScope, LineCosts, LineView};
