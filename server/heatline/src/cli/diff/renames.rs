//! What becomes of the functions that `--rename` names.

use super::options::DiffArgs;
use crate::cli::similar::did_you_mean;
use heatline_annotate::compare::Ledger;

/// Why renames do not do what their writer may think. The ledgers are as they were read.
pub fn doubts(args: &DiffArgs, baseline: &[Ledger], columns: &[Vec<Ledger>]) -> Vec<String> {
    let now: Vec<&Ledger> = columns.iter().flatten().collect();
    let before: Vec<&Ledger> = baseline.iter().collect();
    let mut doubts = Vec::new();
    for (at, (old, new)) in args.rename.iter().enumerate() {
        let renaming = format!("--rename {old}={new}");
        doubts.extend(missing(old, &before).map(|text| format!("{renaming}: the baseline has {text}")));
        doubts.extend(missing(new, &now).map(|text| format!("{renaming}: what is compared has {text}")));
        if let Some((other, _)) = args.rename[..at].iter().find(|(_, to)| to == new) {
            doubts.push(format!("{renaming}: {other} is renamed to {new} as well; both count as one function"));
        }
        let stays = old != new && !args.rename.iter().any(|(other, _)| other == new);
        if stays && before.iter().any(|ledger| ledger.has_function(new)) {
            doubts.push(format!("{renaming}: the baseline has {new} as well; both count as one function"));
        }
    }
    doubts
}

/// That no row is of this function, and what may be meant.
fn missing(name: &str, ledgers: &[&Ledger]) -> Option<String> {
    let is_missing = !ledgers.iter().any(|ledger| ledger.has_function(name));
    let names = ledgers.iter().flat_map(|ledger| ledger.function_names());
    is_missing.then(|| format!("no cost in a function {name}{}", did_you_mean(name, names)))
}
