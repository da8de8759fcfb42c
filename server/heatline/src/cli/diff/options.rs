//! The options of `heatline diff`.

use super::perf::names as perf_names;
use crate::cli::options::{Format, ProfileArgs, ReadingArgs, number};
use crate::files;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use heatline_annotate::By;
use heatline_annotate::compare::{Compute, SortKey};
use std::path::{Path, PathBuf};

/// How a comparison is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Output {
    /// Aligned, for people.
    Table,
    /// One document, for programs.
    Json,
    /// Comma-separated values with a header line.
    Csv,
    /// A report for a pull request.
    Markdown,
    /// SARIF 2.1.0, which code reviews show on the lines.
    Sarif,
}

/// By what rows are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kind {
    /// Functions.
    Function,
    /// Source lines.
    Line,
    /// Source files.
    File,
    /// Modules.
    Module,
}

impl Kind {
    /// As the cost tables have it.
    pub fn by(self) -> By {
        match self {
            Kind::Function => By::Function,
            Kind::Line => By::Line,
            Kind::File => By::File,
            Kind::Module => By::Module,
        }
    }

    /// The word of the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Function => "function",
            Kind::Line => "line",
            Kind::File => "file",
            Kind::Module => "module",
        }
    }
}

/// Options of `heatline diff`. Those of reading are also spelled as perf spells them.
#[derive(Args, Debug)]
#[command(mut_arg("comm", |it| it.short('C').visible_alias("comms").help("Only threads of these names (comma-separated, or file://LIST with one a line)")))]
#[command(mut_arg("dso", |it| it.short('d').visible_alias("dsos").help("Only rows of these modules (comma-separated, or file://LIST)")))]
#[command(mut_arg("symbol", |it| it.short('S').visible_alias("symbols").value_name("FUNCTIONS").help("Only rows of these functions (comma-separated, or file://LIST)")))]
#[command(mut_arg("time", |it| it.help("Only samples between two times, in seconds of the recording's clock: 12.5,13; or of a part of the recording: 10%-20%, 10%/2 (the second tenth), several with commas between; for each file its own with \":\" between")))]
#[command(after_help = "Examples:
  heatline diff                                   perf.data.old against perf.data, by function
  heatline diff old/perf.data new/perf.data --by line
  heatline diff --baseline a.data --baseline b.data --pool c.data d.data
                                                  several runs of each program, with their spread
  heatline diff base.heatline perf.data --fail-on +2pp --format markdown
                                                  for a pull request; exit status 1 after a real regression
  heatline diff --perf -c ratio old.data new.data what perf diff prints

Removed rows are minus their share and new ones plus theirs, so differences add up to zero; perf diff leaves removed
rows blank. A difference is significant when its p-value, corrected for all rows, is below 5 %, its 95 % interval
excludes zero and it reaches the threshold. Everything else is within noise.")]
pub struct DiffArgs {
    /// The baseline and what is compared with it (default: perf.data.old and perf.data, or the two of uftrace; one file: the old one and it).
    #[arg(value_name = "PROFILE")]
    pub profiles: Vec<PathBuf>,
    /// A run of the baseline; repeated, the runs are pooled. All other files are then compared with it.
    #[arg(long = "baseline", value_name = "FILE")]
    pub baselines: Vec<PathBuf>,
    /// The files that are compared with the baseline are runs of one program: one column, with their spread.
    #[arg(long)]
    pub pool: bool,
    /// By what rows are told apart.
    #[arg(long, value_enum, default_value = "function", conflicts_with_all = ["sort", "perf"])]
    pub by: Kind,
    /// Compare cost with everything that was called, where there are stacks.
    #[arg(long, conflicts_with = "perf")]
    pub inclusive: bool,
    /// What is computed: delta, delta-abs, ratio or wdiff:B,N (weights times N less the baseline's times B).
    #[arg(short, long, value_name = "WHAT", default_value = "delta-abs", value_parser = compute)]
    pub compute: Compute,
    /// Order rows by what is computed for this file, counted from 1; 0: by the baseline's share.
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = number::<usize>)]
    pub order: usize,
    /// Only rows that the baseline and another file have.
    #[arg(short, long)]
    pub baseline_only: bool,
    /// Units of work that each file did (requests, seconds), in the order of the files, the baseline's first: adds how
    /// much more of a row there is per unit.
    #[arg(long, value_name = "UNITS", value_delimiter = ',', value_parser = units, allow_hyphen_values = true, conflicts_with = "perf")]
    pub work: Vec<f64>,
    /// A function of the baseline that is called otherwise now. May be repeated.
    #[arg(long, value_name = "OLD=NEW", value_parser = renaming, conflicts_with = "perf")]
    pub rename: Vec<(String, String)>,
    /// Show the weights.
    #[arg(short, long)]
    pub period: bool,
    /// Show how each number is computed.
    #[arg(short = 'F', long)]
    pub formula: bool,
    /// Tell rows apart by these keys: pid, comm, dso, symbol, cpu, parent, srcline (comma-separated).
    #[arg(short, long, value_name = "KEYS", value_delimiter = ',', value_parser = sort_key)]
    pub sort: Vec<SortKey>,
    /// Separate columns by this instead of aligning them; in names it becomes a dot.
    #[arg(short = 't', long, value_name = "TEXT")]
    pub field_separator: Option<String>,
    /// No headings.
    #[arg(short, long)]
    pub quiet: bool,
    /// Also how rows were paired, and p-values; with --perf what perf adds.
    #[arg(short, long)]
    pub verbose: bool,
    /// Accepted as perf has it; whose file it is never matters here.
    #[arg(short, long)]
    pub force: bool,
    /// Accepted as perf has it; symbols of kernel modules are looked for in any case.
    #[arg(short = 'm', long = "modules")]
    pub modules: bool,
    /// Instead of comparing, print the records of each file, as `heatline dump` does.
    #[arg(short = 'D', long = "dump-raw-trace")]
    pub dump: bool,
    /// Print what `perf diff` prints: its columns, its order, its conventions.
    #[arg(long)]
    pub perf: bool,
    /// End with status 1 if a significant difference is above this, such as +2pp; -2pp for one that falls below.
    #[arg(long, value_name = "LIMIT", value_parser = limit, allow_hyphen_values = true, conflicts_with_all = ["perf", "dump"])]
    pub fail_on: Option<Limit>,
    /// A smaller difference is not significant, in percentage points (default: the setting diff.threshold, 0.5).
    #[arg(long, value_name = "PP", value_parser = points, allow_negative_numbers = true, conflicts_with = "perf")]
    pub threshold: Option<f64>,
    /// Needs branch records; says so.
    #[arg(long, hide = true)]
    pub stream: bool,
    /// Needs branch records; says so.
    #[arg(long, hide = true)]
    pub cycles_hist: bool,
    /// What to read of the recordings.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// How to write.
    #[arg(long, value_enum, default_value = "table", conflicts_with = "dump")]
    pub format: Output,
}

/// A difference that fails a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limit {
    /// Its size in percentage points.
    pub points: f64,
    /// Whether it is a fall that fails.
    pub falls: bool,
}

impl Limit {
    /// Whether a difference is beyond it.
    pub fn is_crossed(self, points: f64) -> bool {
        if self.falls { points < -self.points } else { points > self.points }
    }
}

/// Which files are compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Files {
    /// Runs of the baseline.
    pub baseline: Vec<PathBuf>,
    /// For each column its runs.
    pub columns: Vec<Vec<PathBuf>>,
}

/// What rows need of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Functions are named by symbol tables alone, as perf names them.
    pub symbols_only: bool,
    /// Costs are exclusive.
    pub without_callers: bool,
}

impl DiffArgs {
    /// Which files are compared, by their roles.
    ///
    /// # Errors
    /// If there are too few, or a file is asked for that is not there.
    pub fn files(&self) -> anyhow::Result<Files> {
        let mut files = self.profiles.clone();
        let baseline = if !self.baselines.is_empty() {
            if files.is_empty() {
                files.push(PathBuf::from("perf.data"));
            }
            self.baselines.clone()
        } else {
            match files.len() {
                0 => files.extend(kept_recordings().map(PathBuf::from)),
                1 => files.insert(0, kept_recordings()[0].into()),
                _ => {}
            }
            if self.profiles.len() < 2 && !files[0].exists() {
                bail!(
                    "{}: no such file; perf renames the recording before the last to it, uftrace to uftrace.data.old. Name two profiles: heatline \
                     diff BASELINE NEW",
                    files[0].display()
                );
            }
            vec![files.remove(0)]
        };
        let columns = if self.pool { vec![files] } else { files.into_iter().map(|file| vec![file]).collect() };
        Ok(Files { baseline, columns })
    }

    /// Refuses what cannot be done, and says what it would need.
    ///
    /// # Errors
    /// If such an option is given.
    pub fn refuse(&self, files: &Files) -> anyhow::Result<()> {
        if self.stream {
            bail!("--stream needs branch stacks (perf record -b) in both files and is not built; use --by line");
        }
        if self.cycles_hist {
            bail!("--cycles-hist needs -c cycles, which needs branch stacks with cycle counts and is not built");
        }
        if self.order > files.columns.len() {
            bail!("--order {}: there are {} files to order by", self.order, files.columns.len());
        }
        match self.field_separator.as_deref() {
            Some(".") => bail!("--field-separator .: a dot stands in for the separator within names; choose another"),
            Some(text) if text.is_empty() || text.contains(['\n', '\r']) => {
                bail!("--field-separator: expected a text on one line such as ';'");
            }
            _ => {}
        }
        self.refuse_inputs(files)?;
        if self.perf && !matches!(self.format, Output::Table) {
            bail!("--perf prints what perf prints, which has one format; leave --format out");
        }
        if self.perf && (self.pool || self.baselines.len() > 1) {
            bail!("--perf: perf does not pool recordings; leave --pool out and name one baseline");
        }
        let all = files.baseline.len() + files.columns.iter().map(Vec::len).sum::<usize>();
        if !self.work.is_empty() && self.work.len() != all {
            bail!("--work: expected a number for each of the {all} files, found {}", self.work.len());
        }
        self.refuse_renames()?;
        if !self.sort.is_empty() && self.inclusive {
            bail!("--inclusive: rows by --sort keys have exclusive cost only; use --by");
        }
        Ok(())
    }

    /// Refuses what would have to be read several times, and times of files that nobody named.
    fn refuse_inputs(&self, files: &Files) -> anyhow::Result<()> {
        let all = || files.baseline.iter().chain(files.columns.iter().flatten());
        let streams = all().filter(|path| path.as_os_str() == "-").count();
        if streams > 1 {
            bail!("-: standard input can be read once, not as {streams} of the files");
        }
        let is_stream =
            |path: &&PathBuf| path.as_os_str() == "-" || (path.exists() && !path.is_file() && !path.is_dir());
        if self.sort.contains(&SortKey::Cpu)
            && let Some(path) = all().find(is_stream)
        {
            bail!("--sort cpu reads a recording several times, which {} cannot be; write it to a file", path.display());
        }
        let times = self.reading.time.as_ref().map_or(0, |times| times.split(':').count());
        if times > all().count() {
            bail!("--time: {times} parts for {} files", all().count());
        }
        Ok(())
    }

    /// Refuses renames that could not take effect.
    fn refuse_renames(&self) -> anyhow::Result<()> {
        let has_functions = match &self.sort[..] {
            [] => matches!(self.by, Kind::Function | Kind::Line),
            keys => keys.contains(&SortKey::Symbol),
        };
        if !self.rename.is_empty() && !has_functions {
            bail!("--rename: functions are told apart by --by function or line, or --sort with symbol");
        }
        let is_again = |(at, (old, _)): (usize, &(String, String))| self.rename[..at].iter().any(|(it, _)| it == old);
        if let Some((_, (old, new))) = self.rename.iter().enumerate().find(|it| is_again(*it)) {
            bail!("--rename {old}={new}: {old} is renamed twice; it can be paired with one function only");
        }
        Ok(())
    }

    /// The options of reading one file, the `number`-th of the command line.
    ///
    /// # Errors
    /// If a list cannot be read.
    pub fn for_file(&self, path: &Path, number: usize) -> anyhow::Result<ProfileArgs> {
        let mut symbol = self.symbol_names()?;
        if self.perf && !symbol.is_empty() {
            symbol = perf_names(&symbol);
            // A list of numbers selects nothing; no function has an empty name.
            symbol.extend(symbol.is_empty().then(String::new));
        }
        let reading = ReadingArgs {
            comm: expand(&self.reading.comm)?,
            dso: expand(&self.reading.dso)?,
            symbol,
            time: self.time_of(number)?,
            no_inline: self.reading.no_inline || self.perf,
            ..self.reading.clone()
        };
        Ok(ProfileArgs { profiles: vec![path.to_owned()], reading, coverage: false, format: Format::Table })
    }

    /// The functions that --symbol names.
    ///
    /// # Errors
    /// If a list cannot be read.
    pub fn symbol_names(&self) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for list in &self.reading.symbol {
            // Commas between brackets are part of a name.
            names.extend(listed(list, split_names(list))?);
        }
        Ok(names)
    }

    /// What rows need of a recording.
    pub fn needs(&self) -> Needs {
        let symbols_only = self.perf && !self.sort.contains(&SortKey::Srcline);
        Needs { symbols_only, without_callers: !self.inclusive }
    }

    fn time_of(&self, number: usize) -> anyhow::Result<Option<String>> {
        let Some(text) = &self.reading.time else { return Ok(None) };
        let parts: Vec<&str> = text.split(':').collect();
        let part = if parts.len() == 1 { parts[0] } else { parts.get(number).copied().unwrap_or_default() };
        Ok((!part.is_empty()).then(|| part.to_owned()))
    }

    /// The work of the baseline and of each column; empty where nobody said.
    pub fn work_of_columns(&self, files: &[usize]) -> Vec<f64> {
        let mut sums = vec![0.0; files.last().map_or(0, |last| last + 1)];
        for (column, work) in files.iter().zip(&self.work) {
            sums[*column] += work;
        }
        if self.work.is_empty() { Vec::new() } else { sums }
    }

    /// The most rows to write.
    pub fn most_rows(&self) -> usize {
        let few =
            matches!(self.format, Output::Table | Output::Markdown) && !self.perf && self.field_separator.is_none();
        self.reading.limit.unwrap_or(if few { 50 } else { usize::MAX })
    }
}

/// The recording before the last, as the recorder that was used keeps it, and the last.
fn kept_recordings() -> [&'static str; 2] {
    const OF_PERF: [&str; 2] = ["perf.data.old", "perf.data"];
    let kept = [OF_PERF, ["uftrace.data.old", "uftrace.data"]];
    kept.into_iter().find(|[old, _]| Path::new(old).exists()).unwrap_or(OF_PERF)
}

fn expand(items: &[String]) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    for item in items {
        all.extend(listed(item, vec![item.clone()])?);
    }
    Ok(all)
}

/// The lines of a list that is named as `file://PATH`, else `plain`.
fn listed(item: &str, plain: Vec<String>) -> anyhow::Result<Vec<String>> {
    let Some(path) = item.strip_prefix("file://") else { return Ok(plain) };
    let bytes = files::read_named(Path::new(path), files::LONGEST_LIST).with_context(|| format!("list {path}"))?;
    let text = String::from_utf8(bytes).with_context(|| format!("list {path}"))?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Names separated by commas that are outside of parentheses and angle brackets.
fn split_names(list: &str) -> Vec<String> {
    let mut depth = 0i32;
    let mut names = vec![String::new()];
    for c in list.chars() {
        depth += i32::from("(<[".contains(c)) - i32::from(")>]".contains(c));
        match (c, names.last_mut()) {
            (',', _) if depth <= 0 => names.push(String::new()),
            (c, Some(name)) => name.push(c),
            _ => {}
        }
    }
    names
}

fn compute(text: &str) -> Result<Compute, String> {
    let (what, weights) = text.split_once(':').map_or((text, None), |(what, weights)| (what, Some(weights)));
    match (what, weights) {
        ("delta", None) => Ok(Compute::Delta),
        ("delta-abs", None) => Ok(Compute::DeltaAbs),
        ("ratio", None) => Ok(Compute::Ratio),
        ("wdiff", Some(weights)) => {
            let parse = |text: &str| text.trim().parse::<i64>().ok().filter(|weight| *weight != 0);
            let both = weights.split_once(',').and_then(|(b, n)| Some((parse(b)?, parse(n)?)));
            let (baseline, new) = both.ok_or("expected two whole numbers other than 0, such as wdiff:1,2")?;
            Ok(Compute::Wdiff { baseline, new })
        }
        ("wdiff", None) => Err("wdiff needs two weights, that of the baseline first: wdiff:1,2".into()),
        ("cycles", _) => Err("cycles needs branch stacks with cycle counts (perf record -b) and is not built".into()),
        _ => Err("expected delta, delta-abs, ratio or wdiff:B,N".into()),
    }
}

/// `OLD=NEW`.
fn renaming(text: &str) -> Result<(String, String), String> {
    let (old, new) = text.split_once('=').ok_or("expected OLD=NEW")?;
    match (old.trim(), new.trim()) {
        ("", _) => Err("OLD is empty: expected the function's name in the baseline".into()),
        (_, "") => Err("NEW is empty: expected the function's name now".into()),
        (old, new) => Ok((old.into(), new.into())),
    }
}

/// Beyond these, what is done per unit cannot be told apart from a slip of the pen.
const WORK: std::ops::RangeInclusive<f64> = 1e-9..=1e18;

fn units(text: &str) -> Result<f64, String> {
    let units = text.trim().parse().ok().filter(|units: &f64| WORK.contains(units));
    units.ok_or_else(|| "expected numbers above 0 such as 1000,1200 (at least 1e-9, at most 1e18)".to_owned())
}

fn sort_key(text: &str) -> Result<SortKey, String> {
    let known = SortKey::ALL.into_iter().find(|key| key.name() == text || (text == "sym" && *key == SortKey::Symbol));
    known.ok_or_else(|| format!("expected {}", SortKey::ALL.map(SortKey::name).join(", ")))
}

const EXPECTED_LIMIT: &str = "expected 0 to 100 percentage points with one sign, such as +2pp or -2pp";

/// Percentage points, of which a share can change by 100 at most.
fn points(text: &str) -> Result<f64, String> {
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let points = text.parse().ok().filter(|points: &f64| is_plain && (0.0..=100.0).contains(points));
    points.ok_or_else(|| "expected 0 to 100 percentage points such as 0.5".to_owned())
}

fn limit(text: &str) -> Result<Limit, String> {
    let text = text.trim();
    let (falls, rest) = match text.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if let Some(number) = rest.strip_suffix('%').map(str::trim).filter(|number| points(number).is_ok()) {
        let right = format!("{}{number}pp", if falls { '-' } else { '+' });
        return Err(format!(
            "a limit is a difference of shares in percentage points, not percent of a row: write {right}"
        ));
    }
    let number = rest.strip_suffix("pp").unwrap_or(rest).trim();
    Ok(Limit { points: points(number).map_err(|_| EXPECTED_LIMIT)?, falls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_with_sign_and_unit() {
        assert_eq!(limit("+2pp"), Ok(Limit { points: 2.0, falls: false }));
        assert_eq!(limit("1.5"), Ok(Limit { points: 1.5, falls: false }));
        assert_eq!(limit("-3 pp"), Ok(Limit { points: 3.0, falls: true }));
        for text in ["much", "", "NaN", "+-2pp", "--2pp", "-+2", "2pppp", "+101pp", "-100.5pp", "inf", "1e400", "2p"] {
            assert_eq!(limit(text), Err(EXPECTED_LIMIT.to_owned()), "{text}");
        }
        assert!(
            limit("2%").unwrap_err().ends_with("write +2pp") && limit("-1.5 %").unwrap_err().ends_with("write -1.5pp")
        );
        assert!(Limit { points: 2.0, falls: true }.is_crossed(-2.5));
        assert!(!Limit { points: 2.0, falls: false }.is_crossed(-2.5));
    }

    #[test]
    fn computations_are_read_as_perf_has_them() {
        assert_eq!(compute("wdiff:3,-1"), Ok(Compute::Wdiff { baseline: 3, new: -1 }));
        assert!(compute("wdiff:0,1").is_err() && compute("wdiff").is_err());
        assert!(compute("cycles").unwrap_err().contains("branch stacks"));
    }

    #[test]
    fn names_may_hold_commas_between_brackets() {
        assert_eq!(split_names("f(int, int),g<a, b>"), ["f(int, int)", "g<a, b>"]);
    }
}
