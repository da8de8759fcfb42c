//! The differences that an editor shows, of the places that it shows: those of [`crate::compare`], by line and by
//! function.

use crate::compare::{Delta, Ledger, Measure, Pairs, Place, Side, TextOf};
use crate::model::{FileId, FunctionId};
use crate::table::{By, CostTable};
use crate::tree::{NONE, Pair};
use crate::view::Places;
use rustc_hash::FxHashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// What costs are compared with, and the texts that the two builds were made of as far as they are known.
pub struct Against<'a> {
    /// The costs of the baseline.
    pub table: Arc<CostTable>,
    /// The texts of its sources.
    pub text_before: TextOf<'a>,
    /// The texts of the sources of what is compared with it.
    pub text_now: TextOf<'a>,
}

/// A place that only the baseline has.
#[derive(Clone, PartialEq, Debug)]
pub struct Removed {
    /// Its names in the baseline.
    pub place: Place,
    /// Minus its share.
    pub delta: Delta,
}

/// What is kept of the comparison besides the differences of the places that are shown.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) functions: FxHashMap<FunctionId, Delta>,
    pub(crate) removed_functions: Vec<Removed>,
    pub(crate) removed_lines: Vec<Removed>,
}

/// Two recordings, compared by line and by function.
pub(crate) struct Differences {
    lines: Kind,
    functions: Kind,
    /// The difference of each function's own cost.
    of_function: FxHashMap<FunctionId, Delta>,
    rows_of_line: FxHashMap<(FileId, NonZeroU32), Vec<u32>>,
    /// With everything that is called, where there are stacks.
    inclusive: Option<Inclusive>,
    threshold: f64,
}

/// The rows of one kind.
struct Kind {
    pairs: Pairs,
    ledgers: [Ledger; 2],
}

struct Inclusive {
    kind: Kind,
    /// What the baseline has of each place of the editor.
    before: Vec<Pair>,
}

impl Kind {
    fn new(table: &CostTable, against: &Against<'_>, by: By, measure: Measure) -> Self {
        let before = Ledger::of(&against.table, by, measure, against.text_before);
        let now = Ledger::of(table, by, measure, against.text_now);
        let (mut before, mut now) = (vec![before], vec![vec![now]]);
        let pairs = Pairs::new(&before, &now);
        let ledgers = [before.remove(0), now.remove(0).remove(0)];
        Kind { pairs, ledgers }
    }

    /// The entries of the recording that is shown, with the rows they belong to.
    fn entries_now(&self) -> impl Iterator<Item = (&crate::compare::Entry, u32)> {
        self.ledgers[1].entries.iter().zip(self.pairs.joint.rows_of[1].iter().copied())
    }

    /// The difference of what several rows are together.
    fn delta(&self, rows: &[u32], threshold: f64) -> Option<Delta> {
        let sum = |column: usize| -> Option<Side> {
            let mut sides = rows.iter().filter_map(|&row| self.pairs.sides(row)[column].as_ref());
            let first = sides.next()?.clone();
            Some(sides.fold(first, Side::and))
        };
        self.pairs.delta(&sum(0)?, &sum(1)?, threshold)
    }

    fn removed(&self, threshold: f64) -> Vec<Removed> {
        let rows = (0u32..).zip(&self.pairs.joint.rows);
        let removed = rows.filter_map(|(row, (place, _))| {
            let [Some(before), Some(now)] = self.pairs.sides(row) else { return None };
            let only_before = before.present && !now.present;
            let delta = only_before.then(|| self.pairs.delta(before, now, threshold))??;
            Some(Removed { place: place.clone(), delta })
        });
        let mut removed: Vec<Removed> = removed.collect();
        removed.sort_by(|a, b| a.delta.points.total_cmp(&b.delta.points));
        removed
    }
}

impl Differences {
    pub(crate) fn new(table: &CostTable, against: &Against<'_>, places: &Places, threshold: f64) -> Self {
        let lines = Kind::new(table, against, By::Line, Measure::Exclusive);
        let mut rows_of_line: FxHashMap<(FileId, NonZeroU32), Vec<u32>> = FxHashMap::default();
        for (entry, row) in lines.entries_now() {
            if let (Some(file), Some(line)) = (entry.file, entry.place.line) {
                rows_of_line.entry((places.file(FileId(file)), line)).or_default().push(row);
            }
        }
        let functions = Kind::new(table, against, By::Function, Measure::Exclusive);
        let of_entry =
            |(entry, row): (&crate::compare::Entry, u32)| Some((entry.function?, functions.delta(&[row], threshold)?));
        let of_function = functions.entries_now().filter_map(of_entry).collect();
        let inclusive = table.has_inclusive() && against.table.has_inclusive();
        let inclusive = inclusive.then(|| {
            let kind = Kind::new(table, against, By::Function, Measure::Inclusive);
            let before = before_of_places(&kind, &against.table, places);
            Inclusive { kind, before }
        });
        Differences { lines, functions, of_function, rows_of_line, inclusive, threshold }
    }

    /// The difference of the exclusive share of a line. A line that has none of its own in either recording has none.
    pub(crate) fn of_line(&self, file: FileId, line: NonZeroU32) -> Option<Delta> {
        self.lines.delta(self.rows_of_line.get(&(file, line))?, self.threshold)
    }

    /// The difference of the functions declared at a place of the editor: of the inclusive share where there is one.
    pub(crate) fn of_functions(&self, place: usize, functions: &[FunctionId], now: &Pair) -> Option<Delta> {
        if let Some(Inclusive { kind, before }) = &self.inclusive {
            let before = Side::of_tally(&kind.ledgers[0], before.get(place)?.inclusive);
            let now = Side::of_tally(&kind.ledgers[1], now.inclusive);
            return kind.pairs.delta(&before, &now, self.threshold);
        }
        let entries = self.functions.entries_now();
        let mut rows: Vec<u32> = entries
            .filter(|(entry, _)| entry.function.is_some_and(|function| functions.contains(&function)))
            .map(|(_, row)| row)
            .collect();
        rows.sort_unstable();
        rows.dedup();
        self.functions.delta(&rows, self.threshold)
    }

    pub(crate) fn into_changes(self) -> Changes {
        Changes {
            removed_functions: self.functions.removed(self.threshold),
            removed_lines: self.lines.removed(self.threshold),
            functions: self.of_function,
        }
    }
}

/// What the baseline has of each place of the editor: of the functions that are those declared there.
fn before_of_places(kind: &Kind, baseline: &CostTable, places: &Places) -> Vec<Pair> {
    let mut place_of_row: FxHashMap<u32, u32> = FxHashMap::default();
    for (entry, row) in kind.entries_now() {
        let place = entry.function.map_or(NONE, |function| places.of_function[function.0 as usize]);
        if place != NONE {
            place_of_row.entry(row).or_insert(place);
        }
    }
    let mut place_of_function: FxHashMap<FunctionId, u32> = FxHashMap::default();
    for (entry, row) in kind.ledgers[0].entries.iter().zip(&kind.pairs.joint.rows_of[0]) {
        if let (Some(function), Some(&place)) = (entry.function, place_of_row.get(row)) {
            place_of_function.insert(function, place);
        }
    }
    baseline.accumulate(places.functions.len(), |frame, _| {
        frame.function.and_then(|function| place_of_function.get(&function).copied()).unwrap_or(NONE)
    })
}
