//! What `perf diff` prints: its pairing, its order, its columns, its texts, those of version 6.1.
//!
//! perf pairs by the names of sort keys and knows nothing of inlined functions. Rows are read anew by its rules and not
//! taken from our own comparison, which differs on purpose.

mod entry;
mod keys;
mod order;
mod print;

use super::options::{DiffArgs, Files};
use super::recordings::{self, Recordings};
use crate::cli::output;
use entry::Recorded;
use heatline_annotate::CostTable;
use heatline_annotate::compare::{Compute, SortKey};
use keys::Keys;
use std::path::Path;

pub use keys::names;

/// What is asked of perf.
pub struct Wish {
    keys: Keys,
    compute: Compute,
    order: usize,
    baseline_only: bool,
    period: bool,
    formula: bool,
    quiet: bool,
    verbose: bool,
    separator: Option<String>,
}

/// Runs the command as perf would.
pub fn run(args: &DiffArgs, files: &Files) -> anyhow::Result<()> {
    let wish = Wish::of(args)?;
    let make = |table: &CostTable, cpu: Option<u32>| Recorded::of(table, &wish.keys, cpu);
    let recordings = if wish.keys.all.contains(&SortKey::Cpu) {
        recordings::by_processor(args, files, &make)?
    } else {
        Recordings::read(args, files, |_, table| make(table, None))?
    };
    output::print(|out| print::write(out, &wish, &recordings))
}

impl Wish {
    fn of(args: &DiffArgs) -> anyhow::Result<Self> {
        let reading = args.for_file(Path::new(""), 0)?.reading;
        let symbols = keys::names(&args.symbol_names()?).len();
        let usual = [SortKey::Dso, SortKey::Symbol];
        let sort = if args.sort.is_empty() { &usual[..] } else { &args.sort };
        // A key that is the same in all rows is not shown, unless none would be left.
        let same = |key: &SortKey| match key {
            SortKey::Comm => reading.comm.len() == 1,
            SortKey::Dso => reading.dso.len() == 1,
            SortKey::Symbol => symbols == 1,
            _ => false,
        };
        let all_same = sort.iter().all(same);
        Ok(Wish {
            keys: Keys {
                all: sort.to_vec(),
                shown: sort.iter().copied().filter(|key| all_same || !same(key)).collect(),
                verbose: args.verbose && !args.quiet,
            },
            compute: args.compute,
            order: args.order,
            baseline_only: args.baseline_only,
            period: args.period,
            formula: args.formula,
            quiet: args.quiet,
            verbose: args.verbose && !args.quiet,
            separator: args.field_separator.clone(),
        })
    }
}
