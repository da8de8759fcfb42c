//! `heatline annotate`: the source text with costs beside the lines.

use super::options::{Format, ProfileArgs};
use super::output::{CostJson, colour, csv_cell, print, print_json, printable};
use super::report::write_heading;
use super::session::Session;
use anyhow::Context;
use clap::Args;
use heatline_annotate::text::share;
use heatline_annotate::{Annotations, Cost, FileId, FileView, LineView};
use serde::Serialize;
use std::cmp::Reverse;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

/// Options of `heatline annotate`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  heatline annotate perf.data                      hottest files first
  heatline annotate perf.data --source '*/fib.c'   one file
  heatline annotate fixtures/quickstart            the newest profile of a folder")]
pub struct AnnotateArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// Only source files whose path or name matches.
    #[arg(long, value_name = "GLOB")]
    source: Option<String>,
    /// Show so many lines above and below each line with cost.
    #[arg(long, value_name = "N", default_value_t = 5)]
    context: u32,
    /// Lines with a smaller exclusive and inclusive share are shown without cost, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    threshold: f64,
}

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
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exclusive: Option<CostJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inclusive: Option<CostJson>,
}

/// Runs the command.
pub fn run(args: AnnotateArgs) -> anyhow::Result<()> {
    let session = Session::open(&args.profile)?;
    if args.profile.coverage {
        return super::report::print_coverage(&session, args.profile.format);
    }
    let annotations = session.annotations();
    let mut files = hottest_files(&session, &annotations);
    if let Some(pattern) = &args.source {
        let glob = globset::Glob::new(pattern).with_context(|| format!("--source {pattern}"))?.compile_matcher();
        let name = |path: &str| path.rsplit(['/', '\\']).next().is_some_and(|name| glob.is_match(name));
        files.retain(|(id, _)| {
            let path = &session.loaded.model.file(*id).path;
            glob.is_match(path) || name(path)
        });
    }
    match args.profile.format {
        Format::Json => {
            files.truncate(args.profile.most_rows());
            print_json(&document(&session, &files))
        }
        Format::Csv => print(|out| write_csv(out, &session, &files)),
        Format::Table => print(|out| write_text(out, &session, &files, &args)),
    }
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

fn text_of(session: &Session, file: FileId) -> Option<String> {
    let bytes = std::fs::read(session.loaded.sources.path(file)?).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn document(session: &Session, files: &[(FileId, &FileView)]) -> Document {
    let file = |&(id, view): &(FileId, &FileView)| {
        let text = text_of(session, id);
        let lines: Vec<&str> = text.as_deref().map(|text| text.lines().collect()).unwrap_or_default();
        let line = |line: &LineView| LineJson {
            line: line.line.get(),
            text: lines.get(line.line.get() as usize - 1).map(|text| (*text).to_owned()),
            exclusive: session.table.has_exclusive().then(|| line.exclusive.into()),
            inclusive: line.inclusive.map(CostJson::from),
        };
        FileJson {
            file: session.loaded.model.file(id).path.clone(),
            path: session.loaded.sources.path(id).map(|path| path.display().to_string()),
            lines: view.lines.iter().map(line).collect(),
        }
    };
    let metric = session.table.selection().metric.id(session.loaded.model.profile());
    Document { version: 1, metric, files: files.iter().map(file).collect() }
}

fn write_csv(out: &mut dyn Write, session: &Session, files: &[(FileId, &FileView)]) -> io::Result<()> {
    write!(out, "file,line,exclusive_weight,exclusive_percent,exclusive_samples,")?;
    writeln!(out, "inclusive_weight,inclusive_percent,inclusive_samples")?;
    let cost = |cost: Option<Cost>| match cost {
        Some(cost) => format!("{},{},{}", cost.weight.0, cost.share(), cost.samples),
        None => ",,".into(),
    };
    for (id, view) in files {
        let path = csv_cell(&session.loaded.model.file(*id).path);
        for line in &view.lines {
            writeln!(out, "{path},{},{},{}", line.line, cost(Some(line.exclusive)), cost(line.inclusive))?;
        }
    }
    Ok(())
}

fn write_text(
    out: &mut dyn Write,
    session: &Session,
    files: &[(FileId, &FileView)],
    args: &AnnotateArgs,
) -> io::Result<()> {
    write_heading(out, session)?;
    let most = args.profile.limit.unwrap_or(MOST_FILES);
    let paint = Paint { inclusive: session.table.has_inclusive(), threshold: args.threshold, colour: colour() };
    for (id, view) in files.iter().take(most) {
        paint.file(out, session, *id, view, args.context)?;
    }
    if files.len() > most {
        writeln!(out, "… {} more files; --limit {} shows all, --source GLOB chooses", files.len() - most, files.len())?;
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
        id: FileId,
        view: &FileView,
        context: u32,
    ) -> io::Result<()> {
        let recorded = &session.loaded.model.file(id).path;
        let path = session.loaded.sources.path(id);
        let shown = path.map_or_else(|| recorded.clone(), |path| path.display().to_string());
        let (bold, plain) = if self.colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        writeln!(out, "{bold}{shown}{plain}")?;
        let second = if self.inclusive { format!("{:>WIDTH$}  ", "inclusive") } else { String::new() };
        writeln!(out, "{:>WIDTH$}  {second}{:>5}", "exclusive", "line")?;
        let Some(text) = text_of(session, id) else {
            writeln!(out, "  (source not found here; say where it is with --source-map RECORDED=HERE)")?;
            for line in &view.lines {
                self.line(out, Some(line), line.line.get(), "")?;
            }
            return writeln!(out);
        };
        if path.is_some_and(|path| is_newer(path, &session.loaded.path)) {
            writeln!(out, "  (changed after the recording: its lines may have moved; record again to be sure)")?;
        }
        let lines: Vec<&str> = text.lines().collect();
        let mut last = 0u32;
        for (number, text) in (1u32..).zip(&lines).filter(|(number, _)| is_near(view, *number, context)) {
            if number > last + 1 {
                writeln!(out, "{:>WIDTH$}", "⋮")?;
            }
            last = number;
            let line = NonZeroU32::new(number).and_then(|line| view.line(line));
            self.line(out, line, number, text)?;
        }
        let beyond = view.lines.iter().filter(|line| line.line.get() as usize > lines.len()).count();
        if beyond > 0 {
            writeln!(out, "  ({beyond} lines with cost lie past the end: this is not the text that was profiled)")?;
        }
        writeln!(out)
    }

    fn line(&self, out: &mut dyn Write, line: Option<&LineView>, number: u32, text: &str) -> io::Result<()> {
        let cell = |cost: Option<Cost>| match cost {
            Some(cost) if cost.samples > 0 && cost.share() >= self.threshold => share(&cost),
            _ => String::new(),
        };
        let heat = line.filter(|line| self.colour && line.exclusive.samples > 0).map_or(0, |line| line.level);
        let (paint, end) = match heat {
            7.. => ("\x1b[31m", "\x1b[0m"),
            3.. => ("\x1b[33m", "\x1b[0m"),
            _ => ("", ""),
        };
        write!(out, "{paint}{:>WIDTH$}{end}  ", cell(line.map(|line| line.exclusive)))?;
        if self.inclusive {
            write!(out, "{:>WIDTH$}  ", cell(line.and_then(|line| line.inclusive)))?;
        }
        let text = printable(text.trim_end());
        if text.is_empty() { writeln!(out, "{number:>5}") } else { writeln!(out, "{number:>5}  {text}") }
    }
}

/// A checkout writes sources and recording within moments of each other; only what is clearly later counts.
const MOMENT: Duration = Duration::from_secs(60);

/// Whether a source was written after the recording.
fn is_newer(source: &Path, profile: &Path) -> bool {
    let time = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    match (time(source), time(profile)) {
        (Some(source), Some(profile)) => source.duration_since(profile).is_ok_and(|later| later > MOMENT),
        _ => false,
    }
}

fn is_near(view: &FileView, line: u32, context: u32) -> bool {
    let first = view.lines.partition_point(|view| view.line.get() < line.saturating_sub(context));
    view.lines.get(first).is_some_and(|view| view.line.get() <= line.saturating_add(context))
}
