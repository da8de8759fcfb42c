//! What a reader should know of the numbers of a comparison before trusting them: true of recordings that compare well, too.

use super::options::Kind;
use super::result::Outcome;
use super::values::Cell;
use heatline_annotate::compare::{Delta, Status};
use heatline_annotate::text::samples;

/// Wholes that differ by less count as equal: runs of one program differ as much.
const EQUAL_WHOLES: f64 = 1.1;

/// So many remarks of one kind are made.
const MOST_ALIKE: usize = 3;

/// With fewer samples only great differences can be told from noise.
const FEW_SAMPLES: u64 = 200;

impl Outcome {
    /// All remarks, each a sentence without its full stop.
    pub fn remarks(&self) -> Vec<String> {
        let of_wholes = (1..=self.columns()).filter_map(|column| self.of_wholes(column)).collect();
        [first_of(of_wholes), first_of(self.of_few_samples())].concat()
    }

    /// Where shares moved because what they are of did: code that costs what it did is not better or worse.
    fn of_wholes(&self, column: usize) -> Option<String> {
        let (before, now) = (self.comparison.totals.first()?, self.comparison.totals.get(column)?);
        let is_same_effort =
            before.runs == now.runs && self.work.is_empty() && !self.metric.is_statistic && !self.has_own_times;
        if !is_same_effort || before.weight.0 == 0 || now.weight.0 == 0 {
            return None;
        }
        let growth = now.weight.0 as f64 / before.weight.0 as f64;
        if (1.0 / EQUAL_WHOLES..EQUAL_WHOLES).contains(&growth) {
            return None;
        }
        let pushed = self.cells(column).filter(|cell| cell.is_pushed(growth > 1.0)).count();
        let (share, weight) = if growth > 1.0 { ("lower", "less") } else { ("higher", "more") };
        let rows = match pushed {
            0 => return None,
            1 => format!("1 row has a {share} share though it does not weigh significantly {weight}"),
            many => format!("{many} rows have a {share} share though they do not weigh significantly {weight}"),
        };
        let of = if self.columns() > 1 { format!("{}: ", self.name_of(column)) } else { String::new() };
        let cause = self.cause(column, now.weight.0 as f64 - before.weight.0 as f64);
        let cause = cause.map(|name| format!(", most of it in {name}")).unwrap_or_default();
        let change = if growth > 1.0 { "grew" } else { "shrank" };
        Some(format!(
            "{of}shares are of the whole, which {change} to {growth:.2} times the baseline's{cause}: {rows}. The ratio is \
             of weights; --work, with the units of work of each file, compares per unit"
        ))
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = Cell<'_>> {
        let cell = move |row| Cell::new(self, row, column);
        self.comparison.rows.iter().filter_map(cell)
    }

    /// The row that most of a whole's change is in. Rows of inclusive cost hold one another.
    fn cause(&self, column: usize, change: f64) -> Option<String> {
        let part = |cell: &Cell<'_>| cell.weight_change() / change;
        let rows = self.cells(column).map(|cell| (part(&cell), cell));
        let (part, cell) = rows.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let is_told = part > 0.5 && !self.inclusive && self.by != Kind::Module;
        is_told.then(|| self.label(cell.row))
    }

    fn of_few_samples(&self) -> Vec<String> {
        let few = self.files.iter().filter(|file| !file.is_measured && (1..FEW_SAMPLES).contains(&file.samples));
        let remark = |file: &super::result::File| {
            format!(
                "{}: {} are few, only great differences can be told from noise; record longer or more often, or pool \
                 several runs with --baseline and --pool",
                file.path.display(),
                samples(file.samples)
            )
        };
        few.map(remark).collect()
    }
}

/// The first remarks of a kind, and how many there are more.
fn first_of(mut remarks: Vec<String>) -> Vec<String> {
    let more = remarks.len().saturating_sub(MOST_ALIKE);
    if more > 0 {
        remarks.truncate(MOST_ALIKE);
        remarks.push(format!("the same of {more} more"));
    }
    remarks
}

impl Cell<'_> {
    /// Whether the share is significantly lower though nothing says that the weight is, or higher likewise.
    fn is_pushed(&self, is_lower: bool) -> bool {
        let is_on_both = self.row.status == Status::Both && self.change.present;
        let is_so = |delta: &Delta| delta.significant && is_lower == (delta.points < 0.0);
        if !is_on_both || !self.change.delta.as_ref().is_some_and(is_so) {
            return false;
        }
        let Some(ratio) = self.change.ratio else { return false };
        // Where the weight did not even move that way there is nothing to test.
        if is_lower == (ratio >= 1.0) {
            return true;
        }
        self.weight_test().is_some_and(|rate| if is_lower { rate.high >= 1.0 } else { rate.low <= 1.0 })
    }
}
