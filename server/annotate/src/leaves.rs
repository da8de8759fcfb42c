//! The samples of a table, one by one as they were folded: where each ended and who took it.

use crate::model::{FileId, FunctionId, LineKey};
use crate::table::{CostTable, Row};
use heatline_profile::{ModuleAddress, ModuleId, Tally, ThreadId};
use std::num::NonZeroU32;

/// Samples of one stack and thread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Leaf {
    /// The module of the innermost frame.
    pub module: ModuleId,
    /// The address in it, in the module's space.
    pub address: ModuleAddress,
    /// The function; the physical one where the table does not tell inlined ones apart.
    pub function: Option<FunctionId>,
    /// The source line, always the innermost.
    pub line: Option<(FileId, NonZeroU32)>,
    /// The thread.
    pub thread: Option<ThreadId>,
    /// How much.
    pub tally: Tally,
}

impl CostTable {
    /// All samples that the filters select, in the order of the recording's first of each kind.
    pub fn leaves(&self) -> impl Iterator<Item = Leaf> + '_ {
        let (model, selection) = (self.model(), self.selection());
        let profile = model.profile();
        let of_event = profile.rows.iter().filter(|row| row.event == selection.metric.event);
        let selected = of_event.filter(|row| selection.filter.selects_thread(row.thread.map(|id| profile.thread(id))));
        let leaf = |row: &heatline_profile::SampleRow| {
            let node = profile.stacks.node(row.stack);
            let innermost = model.frames_of_node(row.stack.0).first();
            let line = innermost.and_then(|frame| match model.line(frame.line) {
                LineKey::Source(_, file, line) => Some((file, line)),
                _ => None,
            });
            Leaf {
                module: node.module,
                address: node.address.lookup(),
                function: self.frames(row.stack.0).first().and_then(|frame| frame.function),
                line,
                thread: row.thread,
                tally: row.tally,
            }
        };
        selected.map(leaf).filter(|leaf| {
            let row = Row { module: Some(leaf.module), function: leaf.function, ..Row::default() };
            selection.filter.selects_row(model, &row)
        })
    }
}
