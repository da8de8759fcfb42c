//! A finished comparison with all that is said beside its rows.

use super::options::{DiffArgs, Kind, Limit};
use super::recordings::{MetricName, Recording, Recordings};
use super::renames;
use heatline_annotate::compare::{Change, ComparedRow, Comparison, Compute, Delta, Ledger, SortKey, Verdict};
use heatline_annotate::statistics::RateTest;
use heatline_annotate::text;
use heatline_profile::Weight;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A finished comparison.
pub struct Outcome {
    /// The rows, in order.
    pub comparison: Comparison,
    /// What is compared.
    pub metric: MetricName,
    /// What is computed.
    pub compute: Compute,
    /// The column that rows are ordered by.
    pub order: usize,
    /// By what rows are told apart.
    pub by: Kind,
    /// The keys that tell rows apart in place of it.
    pub sort: Vec<SortKey>,
    /// All files: the column they belong to (the baseline is 0), path, total and samples.
    pub files: Vec<File>,
    /// The units of work that the baseline and each column did; empty where nobody said.
    pub work: Vec<f64>,
    /// Whether costs are those with everything that was called.
    pub inclusive: bool,
    /// Whether of each file another part was read.
    pub has_own_times: bool,
    /// Below this no difference is significant, in percentage points.
    pub threshold: f64,
    /// What fails the run.
    pub limit: Option<Limit>,
    /// Why numbers may not compare.
    pub warnings: Vec<String>,
    /// Those of them that say what one recording could be resolved to and another not.
    pub uneven: Vec<String>,
    /// Sources that have changed since the programs of the columns were built.
    pub changed: Vec<String>,
    /// Where source files are on this machine that were recorded at another path.
    pub local: HashMap<String, PathBuf>,
}

/// How much there is of a row per unit of work.
pub struct PerWork {
    /// As a multiple of the baseline's.
    pub ratio: f64,
    /// Its interval and p-value, where samples tell them.
    pub test: Option<RateTest>,
}

/// One file of a comparison.
pub struct File {
    /// The column: 0 for the baseline.
    pub column: usize,
    /// Where it lies.
    pub path: PathBuf,
    /// What its shares are of.
    pub total: u64,
    /// The samples in it.
    pub samples: u64,
    /// What it is of, in words: so many samples, or what was measured.
    pub extent: String,
    /// Whether it was measured, not sampled.
    pub is_measured: bool,
}

impl Outcome {
    /// Whether any difference is taken for this.
    pub fn has(&self, verdict: Verdict) -> bool {
        let mut deltas = self.comparison.rows.iter().flat_map(|row| &row.new).filter_map(|change| (*change)?.delta);
        deltas.any(|delta| delta.verdict == verdict)
    }

    /// Compares what was read.
    pub fn new(args: &DiffArgs, recordings: &Recordings<Ledger>, threshold: f64) -> Option<Self> {
        let metric = recordings.common_metric()?.clone();
        let ledgers = |side: &[Recording<Ledger>]| -> Vec<Ledger> {
            side.iter().filter_map(|recording| Some(recording.find(&metric)?.1.clone())).collect()
        };
        let mut baseline = ledgers(&recordings.baseline);
        let mut columns: Vec<Vec<Ledger>> = recordings.columns.iter().map(|column| ledgers(column)).collect();
        let doubts = renames::doubts(args, &baseline, &columns);
        let uneven = if args.sort.is_empty() { recordings.uneven(&metric, args.by) } else { Vec::new() };
        // New names are brought to one spelling as well.
        let names_now: Vec<(String, String)> = args.rename.iter().map(|(_, new)| (new.clone(), new.clone())).collect();
        baseline.iter_mut().for_each(|ledger| ledger.rename(&args.rename));
        columns.iter_mut().flatten().for_each(|ledger| ledger.rename(&names_now));
        let mut comparison = Comparison::new(&baseline, &columns, threshold);
        if args.baseline_only {
            comparison.keep_paired();
        }
        comparison.sort(args.compute, args.order);
        let columns = std::iter::once(&recordings.baseline).chain(&recordings.columns).enumerate();
        let file = |column: usize, recording: &Recording<Ledger>| {
            let ledger = recording.find(&metric).map(|(_, ledger)| ledger);
            let samples = ledger.map_or(0, Ledger::samples);
            let total = ledger.map_or(0, |ledger| ledger.whole().0);
            let is_measured = ledger.is_some_and(Ledger::is_measured);
            let extent = match (is_measured, metric.unit) {
                (true, "ns") => text::duration(Weight(total)),
                (true, unit) => format!("{} {unit}", text::count(total)),
                (false, _) => text::samples(samples),
            };
            File { column, path: recording.path.clone(), total, samples, extent, is_measured }
        };
        let files: Vec<File> = columns.flat_map(|(column, side)| side.iter().map(move |r| file(column, r))).collect();
        Some(Outcome {
            comparison,
            work: args.work_of_columns(&files.iter().map(|file| file.column).collect::<Vec<_>>()),
            compute: args.compute,
            order: args.order,
            inclusive: args.inclusive,
            has_own_times: args.reading.time.as_ref().is_some_and(|times| times.contains(':')),
            by: args.by,
            sort: args.sort.clone(),
            files,
            threshold,
            limit: args.fail_on,
            warnings: [recordings.warnings(&metric), uneven.clone(), doubts].concat(),
            uneven,
            changed: recordings.changed.iter().cloned().collect(),
            local: recordings.all().flat_map(|recording| recording.local.clone()).collect(),
            metric,
        })
    }

    /// Whether a difference fails the run.
    pub fn is_beyond_limit(&self, delta: &Delta) -> bool {
        delta.significant && self.limit.is_some_and(|limit| limit.is_crossed(delta.points))
    }

    /// The rows whose significant difference is beyond the limit, with the columns where it is.
    pub fn failed(&self) -> Vec<(&ComparedRow, usize, Delta)> {
        let crossed = |(column, change): (usize, &Option<Change>)| {
            let delta = change.as_ref()?.delta?;
            self.is_beyond_limit(&delta).then_some((column + 1, delta))
        };
        let of_row =
            |row: &'_ ComparedRow| -> Vec<(usize, Delta)> { row.new.iter().enumerate().filter_map(crossed).collect() };
        let rows = self.comparison.rows.iter();
        rows.flat_map(|row| of_row(row).into_iter().map(move |(column, delta)| (row, column, delta))).collect()
    }

    /// A side of which nothing was compared, so that no difference is not the answer.
    pub fn without_answer(&self) -> Option<&Path> {
        let is_empty = |column: usize| self.files.iter().all(|file| file.column != column || file.total == 0);
        let empty = self.files.iter().find(|file| is_empty(file.column));
        Some(empty?.path.as_path())
    }

    /// How much more of a row there is per unit of work, where that was told.
    pub fn per_work(&self, row: &ComparedRow, change: &Change, column: usize) -> Option<PerWork> {
        let (before, now) = (*self.work.first()?, *self.work.get(column)?);
        if self.files.iter().any(|file| file.is_measured) {
            // How often a function was called says nothing of its time.
            let ratio = change.amount.weight.0 as f64 / now / (row.baseline?.weight.0 as f64 / before);
            return ratio.is_finite().then_some(PerWork { ratio, test: None });
        }
        let test = change.per_work(row.baseline?, (before, now))?;
        Some(PerWork { ratio: test.ratio, test: Some(test) })
    }

    /// How many columns are compared with the baseline.
    pub fn columns(&self) -> usize {
        self.comparison.totals.len().saturating_sub(1)
    }

    /// The paths of a column, in words.
    pub fn name_of(&self, column: usize) -> String {
        let paths: Vec<String> = self
            .files
            .iter()
            .filter(|file| file.column == column)
            .map(|file| file.path.display().to_string())
            .collect();
        paths.join(" + ")
    }

    /// A row in words: what its rows are told apart by.
    pub fn label(&self, row: &ComparedRow) -> String {
        let place = &row.place;
        if !self.sort.is_empty() {
            return self.sort_cells(row).into_iter().map(|(_, cell)| cell).collect::<Vec<_>>().join(" ");
        }
        let unknown = || place.module.as_ref().map_or("[unknown]".to_owned(), |module| format!("[{module}]"));
        match self.by {
            Kind::Module => unknown().trim_matches(['[', ']']).to_owned(),
            Kind::File => place.file.clone().unwrap_or_else(unknown),
            Kind::Function => place.function.clone().unwrap_or_else(unknown),
            Kind::Line => match (&place.file, place.line) {
                (Some(file), Some(line)) => format!("{file}:{line}"),
                _ => place.function.clone().unwrap_or_else(unknown),
            },
        }
    }

    /// The values of the keys of `--sort`, under their names.
    pub fn sort_cells(&self, row: &ComparedRow) -> Vec<(&'static str, String)> {
        let mut others = row.place.others.iter();
        let place = &row.place;
        let line = || match (&place.file, place.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            _ => String::new(),
        };
        let cell = |key: &SortKey| match key {
            SortKey::Dso => place.module.clone().unwrap_or_default(),
            SortKey::Symbol => place.function.clone().unwrap_or_default(),
            SortKey::Srcline => line(),
            _ => others.next().cloned().unwrap_or_default(),
        };
        let names = self.sort.iter().map(|key| key.name());
        names.zip(self.sort.iter().map(cell)).collect()
    }
}
