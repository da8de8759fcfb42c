//! Writing: aligned tables, JSON and CSV, on standard output.

use crate::out_file;
use anyhow::Context;
use heatline_annotate::Cost;
use heatline_annotate::text::{counted, extent, samples};
use heatline_profile::{EventId, Problem, Problems, Profile, Tally};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// A cost in JSON.
#[derive(Serialize, Clone, Copy, Debug)]
pub struct CostJson {
    weight: u64,
    percent: f64,
    samples: u64,
}

impl From<Cost> for CostJson {
    fn from(cost: Cost) -> Self {
        CostJson { weight: cost.weight.0, percent: cost.share(), samples: cost.samples }
    }
}

/// A problem in JSON.
#[derive(Serialize, Debug)]
pub struct ProblemJson {
    kind: &'static str,
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    message: String,
}

/// All problems in JSON.
pub fn problems_json(problems: &Problems) -> Vec<ProblemJson> {
    let json = |problem: &Problem| ProblemJson {
        kind: problem.kind,
        count: problem.count,
        offset: problem.offset.map(|offset| offset.0),
        message: problem.message.clone(),
    };
    problems.iter().map(json).collect()
}

/// Says something on standard error, on one line. That nobody reads there is no reason to fail.
pub fn say(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "heatline: {}", printable(&text.to_string()));
}

/// Text of others without what a terminal would act on: control characters other than tabs become `�`.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| c.is_control() && c != '\t';
    if text.contains(is_control) { text.replace(is_control, "\u{fffd}").into() } else { text.into() }
}

/// A path as it may be printed.
pub fn printable_path(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}

/// Says on standard error what was damaged.
pub fn warn(problems: &Problems) {
    warn_but(problems, None);
}

/// The same but for problems of a kind.
pub fn warn_but(problems: &Problems, told_elsewhere: Option<&str>) {
    let told = problems.iter().filter(|problem| Some(problem.kind) != told_elsewhere);
    told.for_each(|problem| say(format_args!("warning: {}", in_words(problem))));
}

/// A problem with its place and how often it happened.
pub fn in_words(problem: &Problem) -> String {
    let times = if problem.count > 1 { format!(" ({} times)", problem.count) } else { String::new() };
    let at = problem.offset.map(|offset| format!(" at offset {offset}")).unwrap_or_default();
    format!("{}{at}{times}", problem.message)
}

/// Standard output, written in one go.
pub fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    write(&mut out).and_then(|()| out.flush()).context("standard output")
}

/// Writes a file, or standard output for `-`, and says on one line what it holds.
///
/// # Errors
/// If there is something else already, or writing fails.
pub fn write_file(
    path: &Path,
    bytes: &[u8],
    may_replace: impl FnOnce(&[u8]) -> bool,
    what: &str,
) -> anyhow::Result<()> {
    let size = size(bytes.len());
    if path.as_os_str() == "-" {
        print(|out| out.write_all(bytes))?;
        say(format_args!("standard output: {size}, {what}"));
        return Ok(());
    }
    out_file::write(path, bytes, may_replace)?;
    print(|out| writeln!(out, "{}: {size}, {}", printable_path(path), printable(what)))
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => counted(bytes as u64, "byte"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// So many events are named.
const MOST_EVENTS: usize = 4;

/// `1 320 samples of cpu-clock`: those of one event, or of all that have some.
pub fn samples_of(profile: &Profile, event: Option<EventId>) -> String {
    let sampled = (0..).map(EventId).zip(profile.totals()).filter(|(id, total)| match event {
        Some(event) => *id == event,
        None => total.samples > 0,
    });
    let sampled: Vec<(EventId, Tally)> = sampled.collect();
    let names: Vec<&str> = sampled.iter().take(MOST_EVENTS).map(|(id, _)| profile.metric_id(*id)).collect();
    let more = if sampled.len() > MOST_EVENTS { ", …" } else { "" };
    let number = match sampled.as_slice() {
        [(_, total)] => samples(total.samples),
        _ if event.is_some() => samples(0),
        _ => extent(profile),
    };
    if names.is_empty() || profile.calls.is_some() { number } else { format!("{number} of {}{more}", names.join(", ")) }
}

/// One JSON document and a line end.
pub fn print_json(document: &impl Serialize) -> anyhow::Result<()> {
    print(|out| {
        serde_json::to_writer(&mut *out, document)?;
        writeln!(out)
    })
}

/// Whether writing failed because nobody reads any more (`heatline … | head`).
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(io::ErrorKind::BrokenPipe)
    })
}

/// An error with its causes on one line.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Some errors repeat in their own text what caused them.
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text.replace('\n', " ")
}

/// Whether standard output is a terminal on which colour is welcome.
pub fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The most characters of a name in a table; JSON and CSV have all.
pub const LONGEST_NAME: usize = 72;

/// Stands for the function of code that no symbol covers.
pub const NO_SYMBOL: &str = "[no symbol]";

/// A path as seen from the current folder, if it is below it.
pub fn from_here(path: &str) -> String {
    let here = std::env::current_dir().ok();
    let below = here.as_ref().and_then(|here| Path::new(path).strip_prefix(here).ok());
    below.map_or_else(|| short_rust(path), |below| below.display().to_string())
}

/// A path of Rust's own library without the commit it was built from.
fn short_rust(path: &str) -> String {
    let inside = path.strip_prefix("/rustc/").and_then(|rest| rest.split_once('/'));
    match inside.filter(|(commit, _)| commit.len() >= SHORTEST_COMMIT) {
        Some((_, inside)) => format!("/rustc/…/{inside}"),
        None => path.to_owned(),
    }
}

/// Shorter names of commits are left as they are.
const SHORTEST_COMMIT: usize = 12;

/// A table with aligned columns. Columns marked so are flushed right.
#[derive(Debug)]
pub struct Table {
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a header; a title that starts with `>` makes a column flushed right.
    pub fn new(header: &[&str]) -> Self {
        let right = header.iter().map(|title| title.starts_with('>')).collect();
        Table { right, rows: vec![header.iter().map(|title| title.trim_start_matches('>').to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row.into_iter().map(|cell| printable(&cell).into_owned()).collect());
    }

    /// Leaves out columns that no row fills.
    pub fn drop_empty(&mut self) {
        let is_used = |at: usize| self.rows[1..].iter().any(|row| !row[at].is_empty());
        let used: Vec<bool> = (0..self.right.len()).map(is_used).collect();
        for row in &mut self.rows {
            let mut used = used.iter();
            row.retain(|_| used.next() == Some(&true));
        }
        let mut used = used.iter();
        self.right.retain(|_| used.next() == Some(&true));
    }

    /// Writes it aligned, the header bold if `colour`.
    pub fn write(&self, out: &mut dyn Write, colour: bool) -> io::Result<()> {
        let width = |at: usize| self.rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[at] - cell.chars().count());
                line += if at > 0 { "  " } else { "" };
                line += &if self.right[at] { pad + cell } else { cell.clone() + &pad };
            }
            let line = line.trim_end();
            if number == 0 && colour { writeln!(out, "\x1b[1m{line}\x1b[0m")? } else { writeln!(out, "{line}")? }
        }
        Ok(())
    }

    /// All rows, the header first.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Writes it aligned, without its header.
    pub fn write_rows(mut self, out: &mut dyn Write) -> io::Result<()> {
        self.drop_empty();
        self.rows.remove(0);
        self.write(out, false)
    }

    /// Writes it as comma-separated values.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| csv_cell(cell)).collect();
            writeln!(out, "{}", cells.join(","))?;
        }
        Ok(())
    }
}

/// A cell of comma-separated values, quoted where it must be.
pub fn csv_cell(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let mut table = Table::new(&[">n", "empty", "name"]);
        table.push(vec!["1".into(), String::new(), "a".into()]);
        table.push(vec!["100".into(), String::new(), "long".into()]);
        table.drop_empty();
        let mut out = Vec::new();
        table.write(&mut out, false).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "  n  name\n  1  a\n100  long\n");
    }

    #[test]
    fn paths_of_the_library_of_rust_are_short() {
        let commit = "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860";
        assert_eq!(from_here(&format!("{commit}/library/core/src/hash.rs")), "/rustc/…/library/core/src/hash.rs");
        assert_eq!(from_here("/rustc/own/src/main.rs"), "/rustc/own/src/main.rs");
    }

    #[test]
    fn sizes_are_for_people() {
        assert_eq!([0, 1, 999, 1_000, 12_345_678].map(size), ["0 bytes", "1 byte", "999 bytes", "1.0 kB", "12.3 MB"]);
    }

    #[test]
    fn nothing_that_a_terminal_acts_on_is_printed() {
        assert_eq!(printable("a\x1b[2Jb\tc\x07"), "a\u{fffd}[2Jb\tc\u{fffd}");
        assert_eq!(printable("Größe"), "Größe");
    }

    #[test]
    fn csv_cells_are_quoted_where_needed() {
        assert_eq!(csv_cell("f(int, int)"), "\"f(int, int)\"");
        assert_eq!(csv_cell("say \"x\""), "\"say \"\"x\"\"\"");
        assert_eq!(csv_cell("plain"), "plain");
    }
}
