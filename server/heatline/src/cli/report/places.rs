//! Where the lines of rows are in the sources as they are now.

use super::ReportRow;
use crate::cli::output::{from_here, printable};
use crate::cli::placed::Placed;
use crate::cli::session::Session;
use heatline_annotate::FileId;
use heatline_annotate::placement::Placement;
use heatline_annotate::text::hint_mark;
use heatline_profile::round;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// So many files are named below the table.
const MOST_NAMED: usize = 5;

/// Where the line of a row is now.
pub struct Now {
    /// From 1; absent of a line that is gone.
    pub line: Option<u32>,
    pub placement: Placement,
    /// Where its file is, if it was renamed since.
    pub renamed: Option<PathBuf>,
    is_here: bool,
}

/// Places the lines of rows. Returns what is to be said below a table of them.
pub fn add(session: &Session, rows: &mut [ReportRow]) -> Vec<String> {
    if rows.iter().all(|row| row.row.line.is_none()) {
        return Vec::new();
    }
    let placed = Placed::of(session);
    let mut files: BTreeSet<FileId> = BTreeSet::new();
    for row in rows.iter_mut() {
        let (Some(file), Some(line)) = (row.row.file, row.row.line) else { continue };
        let file = session.loaded.sources.representative(file);
        let (now, placement) = placed.line(file, line);
        files.insert(file);
        row.now = Some(Now {
            line: (placement != Placement::Gone).then_some(now + 1),
            placement,
            renamed: placed.bases().texts.renamed(file).map(Path::to_owned),
            is_here: placed.bases().path(file).is_some(),
        });
    }
    remarks(session, &placed, rows, &files)
}

/// What a cell beside the recorded place says: nothing where the line is where it was.
pub fn cell(row: &ReportRow) -> String {
    let (Some(now), Some(line)) = (&row.now, row.row.line) else { return String::new() };
    let place = match (now.line, &now.renamed) {
        (None, _) => return "gone".into(),
        (Some(line), Some(path)) => format!("{}:{line}", from_here(&path.to_string_lossy())),
        (Some(now), None) if now == line.get() => String::new(),
        (Some(now), None) => format!("line {now}"),
    };
    let remark = match now.placement {
        Placement::Changed => "edited",
        Placement::Unverified if now.is_here => "unverified",
        _ => "",
    };
    let words: Vec<&str> = [place.as_str(), remark].into_iter().filter(|word| !word.is_empty()).collect();
    format!("{}{}", hint_mark(now.placement), words.join(", "))
}

fn remarks(session: &Session, placed: &Placed, rows: &[ReportRow], files: &BTreeSet<FileId>) -> Vec<String> {
    let name = |file: &FileId| printable(&from_here(&session.loaded.model.file(*file).path)).into_owned();
    let mut remarks = Vec::new();
    let different = files.iter().filter_map(|file| Some((file, placed.too_different(*file)?)));
    let different: Vec<(&FileId, f64)> = different.collect();
    for (file, left) in different.iter().take(MOST_NAMED) {
        remarks.push(format!(
            "{}: only {} % of the profiled lines are left, so its lines are placed nowhere; record again",
            name(file),
            round(100.0 * left)
        ));
    }
    let moved = rows.iter().filter_map(|row| row.now.as_ref());
    let is_elsewhere = |now: &Now| matches!(now.placement, Placement::Moved | Placement::Changed | Placement::Gone);
    if moved.into_iter().any(|now| is_elsewhere(now) || now.renamed.is_some()) {
        remarks
            .push("sources changed since the build: lines are those that were built, 'now' says where they are".into());
    }
    let unverified = |file: &&FileId| {
        let of_file =
            |row: &&ReportRow| row.row.file.map(|id| session.loaded.sources.representative(id)) == Some(**file);
        let is_unverified = |now: &Now| now.placement == Placement::Unverified && now.is_here;
        rows.iter().filter(of_file).any(|row| row.now.as_ref().is_some_and(is_unverified))
    };
    let unverified: Vec<String> = files.iter().filter(unverified).map(name).collect();
    if let Some(first) = unverified.first() {
        let others = if unverified.len() > 1 { format!(" and {} more", unverified.len() - 1) } else { String::new() };
        remarks.push(format!(
            "{first}{others}: nothing tells whether this is the text of the build, so lines are unverified; record again"
        ));
    }
    remarks
}
