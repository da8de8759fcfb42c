//! `heatline annotate`: the source text with costs beside the lines.

use super::options::{self, Format, ProfileArgs, number};
use super::output;
use super::output::{CostJson, colour, csv_cell, from_here, print, print_json, printable, printable_path};
use super::placed::Placed;
use super::report::{REST_OF_GAPS, write_heading};
use super::session::Session;
use crate::base_text::BaseText;
use crate::call_lines::AMBIGUOUS_LINES;
use crate::sources::is_newer;
use anyhow::Context;
use clap::Args;
use heatline_annotate::placement::Placement;
use heatline_annotate::text::{counted, hint_mark, share};
use heatline_annotate::{Annotations, Cost, FileId, FileView, LineView, gaps};
use heatline_profile::round;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Options of `heatline annotate`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  heatline annotate perf.data                      your own files first, the hottest first
  heatline annotate perf.data --source '*/fib.c'   one file
  heatline annotate fixtures/quickstart            the newest profile of a folder")]
pub struct AnnotateArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// Only source files whose path or name matches.
    #[arg(long, value_name = "GLOB")]
    source: Option<String>,
    /// Show so many lines above and below each line with cost.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = number::<u32>)]
    context: u32,
    /// Lines with a smaller exclusive and inclusive share are shown without cost, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = options::share, allow_negative_numbers = true)]
    threshold: f64,
}

/// So many files are named where none is as wanted.
const MOST_NAMED: usize = 5;

/// So many files are shown to people unless --limit says otherwise.
const MOST_FILES: usize = 10;

#[derive(Serialize)]
struct Document {
    version: u32,
    metric: String,
    files: Vec<FileJson>,
}

#[derive(Serialize)]
struct FileJson {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    lines: Vec<LineJson>,
}

#[derive(Serialize)]
struct LineJson {
    /// In the file as it is now; of a line that is gone, in the text that was profiled.
    line: u32,
    /// In the text that was profiled, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    profiled_line: Option<u32>,
    placement: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exclusive: Option<CostJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inclusive: Option<CostJson>,
}

/// Runs the command.
pub fn run(args: AnnotateArgs) -> anyhow::Result<()> {
    // Below each source it is said of which calls.
    let told = (args.profile.format == Format::Table && !args.profile.coverage).then_some(AMBIGUOUS_LINES);
    let session = Session::open(&args.profile, told)?;
    if args.profile.coverage {
        return super::report::print_coverage(&session, args.profile.format);
    }
    let placed = Placed::of(&session);
    let annotations = session.annotations();
    let mut files = hottest_files(&session, &annotations);
    if let Some(pattern) = &args.source {
        let all = files.clone();
        let glob = globset::Glob::new(pattern).with_context(|| format!("--source {pattern}"))?.compile_matcher();
        let name = |path: &str| path.rsplit(['/', '\\']).next().is_some_and(|name| glob.is_match(name));
        files.retain(|(id, _)| {
            let recorded = &session.loaded.model.file(*id).path;
            let here = placed.bases().path(*id).map(|path| path.to_string_lossy());
            [Some(recorded.as_str()), here.as_deref()]
                .into_iter()
                .flatten()
                .any(|path| glob.is_match(path) || name(path))
        });
        if files.is_empty() && !all.is_empty() {
            output::say(format_args!("warning: {}", no_match(&session, pattern, &all)));
            if args.profile.format == Format::Table {
                warn_of_gaps(&session);
                return Ok(());
            }
        }
    }
    if files.is_empty() && args.profile.format != Format::Table {
        warn_of_gaps(&session);
    }
    match args.profile.format {
        Format::Json => {
            files.truncate(args.profile.most_rows());
            print_json(&document(&session, &placed, &files))
        }
        Format::Csv => print(|out| write_csv(out, &session, &placed, &files)),
        Format::Table => {
            own_first(&mut files, &placed);
            print(|out| write_text(out, &session, &placed, &files, &args))
        }
    }
}

/// Why there may be no lines where some were expected.
fn warn_of_gaps(session: &Session) {
    for gap in gaps(&session.loaded.model, &session.table.coverage(), REST_OF_GAPS) {
        output::say(format_args!("warning: {gap}"));
    }
}

/// What to say where a pattern leaves nothing of files with cost.
fn no_match(session: &Session, pattern: &str, files: &[(FileId, &FileView)]) -> String {
    let path = |(id, _): &(FileId, &FileView)| from_here(&session.loaded.model.file(*id).path);
    let hottest: Vec<String> = files.iter().take(MOST_NAMED).map(path).collect();
    format!(
        "--source {pattern}: no source with cost has such a path or name; write a name ('fib.c') or a pattern for the \
         whole path ('*/src/*'); the hottest of {}: {}",
        files.len(),
        hottest.join(", ")
    )
}

/// The files of whoever asks, and what is known of the text of the build alone, before others that are here, and these
/// before what is not; each kind hottest first.
fn own_first(files: &mut [(FileId, &FileView)], placed: &Placed) {
    let here = std::env::current_dir().and_then(|folder| folder.canonicalize()).ok();
    files.sort_by_cached_key(|(id, _)| {
        let path = placed.bases().path(*id).and_then(|path| path.canonicalize().ok());
        let is_own = path.as_ref().zip(here.as_ref()).is_some_and(|(path, here)| path.starts_with(here));
        let is_kept = path.is_none() && placed.base(*id).is_some_and(BaseText::is_verified);
        (!is_own && !is_kept, path.is_none() && !is_kept)
    });
}

/// All files with cost, by exclusive, then inclusive weight.
fn hottest_files<'a>(session: &Session, annotations: &'a Annotations) -> Vec<(FileId, &'a FileView)> {
    let weight = |view: &FileView| -> (u64, u64) {
        let exclusive = view.lines.iter().map(|line| line.exclusive.weight.0).fold(0, u64::saturating_add);
        let inclusive = view.lines.iter().filter_map(|line| line.inclusive).map(|cost| cost.weight.0).max();
        (exclusive, inclusive.unwrap_or(0))
    };
    let mut files: Vec<(FileId, &FileView)> = annotations.files().filter(|(_, view)| !view.lines.is_empty()).collect();
    files.sort_by_cached_key(|(id, view)| (Reverse(weight(view)), session.loaded.model.file(*id).path.clone()));
    files
}

/// A source file as it is shown: the text here with its lines where they are now, or the text that was profiled if
/// there is no file here.
struct Source<'a> {
    /// Where it is here.
    path: Option<PathBuf>,
    text: Option<String>,
    lines: Vec<PlacedLine<'a>>,
    /// Lines are not placed: so little is left of the text.
    too_different: Option<f64>,
    verified: bool,
    /// Where it was when it was built, if it was renamed since.
    before: Option<PathBuf>,
}

/// A line with cost and where it is.
#[derive(Clone, Copy)]
struct PlacedLine<'a> {
    /// From 1; of a line that is gone, in the text that was profiled.
    now: u32,
    placement: Placement,
    view: &'a LineView,
}

impl<'a> Source<'a> {
    fn of(placed: &Placed, id: FileId, view: &'a FileView) -> Self {
        let path = placed.bases().path(id).map(Path::to_owned);
        let here = path.as_deref().and_then(crate::base_text::read);
        let base = placed.base(id);
        let lines = view.lines.iter().map(|line| {
            let (now, placement) = match (&here, base) {
                (None, Some(base)) if base.is_verified() => (line.line.get() - 1, Placement::Exact),
                _ => placed.line(id, line.line),
            };
            let now = if placement == Placement::Gone { line.line.get() } else { now + 1 };
            PlacedLine { now, placement, view: line }
        });
        let mut lines: Vec<PlacedLine<'_>> = lines.collect();
        lines.sort_by_key(|line| (line.now, line.view.line));
        Source {
            text: here.or_else(|| base.map(|base| base.text.to_string())),
            lines,
            too_different: placed.too_different(id),
            verified: base.is_some_and(BaseText::is_verified),
            before: placed.bases().texts.renamed_from(id).map(Path::to_owned),
            path,
        }
    }

    /// The costs that stand on a line of the text.
    fn on_line(&self, number: u32) -> Option<PlacedLine<'a>> {
        let first = self.lines.partition_point(|line| line.now < number);
        let on_it = self.lines[first..].iter().take_while(|line| line.now == number);
        on_it.copied().find(|line| line.placement != Placement::Gone)
    }

    /// The share of the cost that was on lines that are gone, in percent, and how many those are.
    fn gone(&self) -> (f64, usize) {
        let gone = self.lines.iter().filter(|line| line.placement == Placement::Gone);
        gone.fold((0.0, 0), |(share, count), line| (share + line.view.exclusive.share(), count + 1))
    }

    fn is_near(&self, number: u32, context: u32) -> bool {
        let first = self.lines.partition_point(|line| line.now < number.saturating_sub(context));
        let near = self.lines[first..].iter().take_while(|line| line.now <= number.saturating_add(context));
        near.into_iter().any(|line| line.placement != Placement::Gone)
    }
}

fn document(session: &Session, placed: &Placed, files: &[(FileId, &FileView)]) -> Document {
    let file = |&(id, view): &(FileId, &FileView)| {
        let source = Source::of(placed, id, view);
        let texts: Vec<&str> = source.text.as_deref().map(|text| text.lines().collect()).unwrap_or_default();
        let line = |line: &PlacedLine<'_>| LineJson {
            line: line.now,
            profiled_line: Some(line.view.line.get()).filter(|profiled| *profiled != line.now),
            placement: line.placement.name(),
            text: texts
                .get(line.now as usize - 1)
                .filter(|_| line.placement != Placement::Gone)
                .map(|text| (*text).to_owned()),
            exclusive: session.table.has_exclusive().then(|| line.view.exclusive.into()),
            inclusive: line.view.inclusive.map(CostJson::from),
        };
        FileJson {
            file: session.loaded.model.file(id).path.clone(),
            path: source.path.as_ref().map(|path| path.display().to_string()),
            lines: source.lines.iter().map(line).collect(),
        }
    };
    let metric = session.table.selection().metric.id(session.loaded.model.profile());
    Document { version: 1, metric, files: files.iter().map(file).collect() }
}

fn write_csv(out: &mut dyn Write, session: &Session, placed: &Placed, files: &[(FileId, &FileView)]) -> io::Result<()> {
    write!(out, "file,line,exclusive_weight,exclusive_percent,exclusive_samples,")?;
    writeln!(out, "inclusive_weight,inclusive_percent,inclusive_samples,placement")?;
    let cost = |cost: Option<Cost>| match cost {
        Some(cost) => format!("{},{},{}", cost.weight.0, cost.share(), cost.samples),
        None => ",,".into(),
    };
    for (id, view) in files {
        let path = csv_cell(&printable(&session.loaded.model.file(*id).path));
        for PlacedLine { now, placement, view } in Source::of(placed, *id, view).lines {
            let (exclusive, inclusive) = (cost(Some(view.exclusive)), cost(view.inclusive));
            writeln!(out, "{path},{now},{exclusive},{inclusive},{}", placement.name())?;
        }
    }
    Ok(())
}

fn write_text(
    out: &mut dyn Write,
    session: &Session,
    placed: &Placed,
    files: &[(FileId, &FileView)],
    args: &AnnotateArgs,
) -> io::Result<()> {
    write_heading(out, session)?;
    let most = args.profile.reading.limit.unwrap_or(MOST_FILES);
    let paint = Paint { inclusive: session.table.has_inclusive(), threshold: args.threshold, colour: colour() };
    for (id, view) in files.iter().take(most) {
        paint.file(out, session, (*id, view), &Source::of(placed, *id, view), args.context)?;
    }
    if files.len() > most {
        let more = counted((files.len() - most) as u64, "more file");
        writeln!(out, "… {more}; --limit {} shows all, --source GLOB chooses", files.len())?;
    }
    if files.is_empty() {
        writeln!(out, "no source line has cost here; heatline report --coverage says why")?;
    }
    Ok(())
}

/// The width of a column of costs.
const WIDTH: usize = 10;

struct Paint {
    inclusive: bool,
    threshold: f64,
    colour: bool,
}

impl Paint {
    fn file(
        &self,
        out: &mut dyn Write,
        session: &Session,
        (id, view): (FileId, &FileView),
        source: &Source<'_>,
        context: u32,
    ) -> io::Result<()> {
        let recorded = &session.loaded.model.file(id).path;
        let shown = source
            .path
            .as_ref()
            .map_or_else(|| printable(&from_here(recorded)).into_owned(), |path| printable_path(path));
        let (bold, plain) = if self.colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        writeln!(out, "{bold}{shown}{plain}")?;
        let second = if self.inclusive { format!("{:>WIDTH$}  ", "inclusive") } else { String::new() };
        writeln!(out, "{:>WIDTH$}  {second}{:>5}", "exclusive", "line")?;
        let Some(text) = &source.text else {
            writeln!(out, "  (source not found here; say where it is with --source-map RECORDED=HERE)")?;
            for line in &source.lines {
                self.line(out, Some(line), line.view.line.get(), "")?;
            }
            return writeln!(out);
        };
        if let Some(left) = source.too_different {
            let left = round(100.0 * left);
            writeln!(out, "  (only {left} % of the profiled lines are left: costs of functions only; record again)")?;
            return self.functions(out, session, view);
        }
        self.remark(out, session, source)?;
        let lines: Vec<&str> = text.lines().collect();
        let mut last = 0u32;
        for (number, text) in (1u32..).zip(&lines).filter(|(number, _)| source.is_near(*number, context)) {
            if number > last + 1 {
                writeln!(out, "{:>WIDTH$}", "⋮")?;
            }
            last = number;
            self.line(out, source.on_line(number).as_ref(), number, text)?;
        }
        let is_beyond = |line: &&PlacedLine<'_>| line.placement != Placement::Gone && line.now as usize > lines.len();
        let beyond = source.lines.iter().filter(is_beyond).count();
        if beyond > 0 {
            let beyond = counted(beyond as u64, "line");
            writeln!(out, "  ({beyond} with cost past the end: this is not the text that was profiled)")?;
        }
        // Each of the lines has the same note.
        let shared = session.loaded.shared.get(&id).into_iter().flat_map(|lines| lines.values());
        let notes: BTreeSet<&String> = shared.flat_map(|line| &line.notes).collect();
        for note in notes {
            writeln!(out, "  ({})", printable(&note.replace('`', "")))?;
        }
        writeln!(out)
    }

    /// What is to be known of a text before its lines are read.
    fn remark(&self, out: &mut dyn Write, session: &Session, source: &Source<'_>) -> io::Result<()> {
        let changed = source.lines.iter().any(|line| matches!(line.placement, Placement::Moved | Placement::Changed));
        let (percent, count) = source.gone();
        if let Some(before) = &source.before {
            let before = from_here(&before.to_string_lossy());
            writeln!(out, "  (renamed since: it was {})", printable(&before))?;
        }
        match &source.path {
            None => writeln!(out, "  (not here any more: this is the text that was profiled)")?,
            Some(path) if !source.verified && is_newer(path, &session.loaded.path) => {
                writeln!(out, "  (changed after the recording: its lines may have moved; record again to be sure)")?;
            }
            Some(_) if !source.verified => {
                writeln!(
                    out,
                    "  (nothing tells whether this is the text of the build: its lines may have moved since)"
                )?;
            }
            Some(_) if changed || count > 0 => {
                writeln!(
                    out,
                    "  (changed since the build: costs stand where their lines are now, ~ before changed ones)"
                )?;
            }
            Some(_) => {}
        }
        if count > 0 {
            let lines = if count == 1 { "a line that is".to_owned() } else { format!("{count} lines that are") };
            writeln!(out, "  ({} % of the cost was on {lines} gone)", round(percent))?;
        }
        Ok(())
    }

    /// The costs of a file's functions, where its lines cannot be told.
    fn functions(&self, out: &mut dyn Write, session: &Session, view: &FileView) -> io::Result<()> {
        for function in &view.functions {
            write!(out, "{:>WIDTH$}  ", self.cell(Some(function.exclusive)))?;
            if self.inclusive {
                write!(out, "{:>WIDTH$}  ", self.cell(function.inclusive))?;
            }
            let name = function.functions.first().map(|id| &*session.loaded.model.function(*id).name);
            writeln!(out, "{:>5}  {}", "", printable(name.unwrap_or("[unknown]")))?;
        }
        writeln!(out)
    }

    fn cell(&self, cost: Option<Cost>) -> String {
        match cost {
            Some(cost) if cost.samples > 0 && cost.share() >= self.threshold => share(&cost),
            _ => String::new(),
        }
    }

    fn line(&self, out: &mut dyn Write, line: Option<&PlacedLine<'_>>, number: u32, text: &str) -> io::Result<()> {
        let view = line.map(|line| line.view);
        let heat = view.filter(|line| self.colour && line.exclusive.samples > 0).map_or(0, |line| line.level);
        let (paint, end) = match heat {
            7.. => ("\x1b[31m", "\x1b[0m"),
            3.. => ("\x1b[33m", "\x1b[0m"),
            _ => ("", ""),
        };
        let mark = line.map_or("", |line| hint_mark(line.placement));
        let marked = |cell: String| if cell.is_empty() { cell } else { format!("{mark}{cell}") };
        write!(out, "{paint}{:>WIDTH$}{end}  ", marked(self.cell(view.map(|line| line.exclusive))))?;
        if self.inclusive {
            write!(out, "{:>WIDTH$}  ", marked(self.cell(view.and_then(|line| line.inclusive))))?;
        }
        let text = printable(text.trim_end());
        if text.is_empty() { writeln!(out, "{number:>5}") } else { writeln!(out, "{number:>5}  {text}") }
    }
}
