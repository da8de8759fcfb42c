//! Lines that may have made calls of which nobody recorded who made them: what an editor says there instead of a cost.

use crate::call_lines::SharedCalls;
use heatline_annotate::text::{counted, duration};
use heatline_annotate::{FileId, Model};
use heatline_profile::{CallTable, Weight};
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;

/// What is known of one line.
#[derive(Clone, Debug, Default)]
pub struct SharedLine {
    /// The largest part of all elapsed time that calls from this line, or from the others, took; in percent.
    pub share: f64,
    /// What its hint says.
    pub hint: String,
    /// What else is known, a sentence for each called function.
    pub notes: Vec<String>,
}

/// Such lines by file; of several files that are one here under the one that stands for them.
pub type SharedLines = HashMap<FileId, BTreeMap<NonZeroU32, SharedLine>>;

/// Finds the lines in the files of a profile.
pub fn lines(shared: &[SharedCalls], model: &Model, same_file: &[FileId]) -> SharedLines {
    let mut found = SharedLines::new();
    if shared.is_empty() {
        return found;
    }
    let files: HashMap<&str, FileId> =
        model.files().iter().zip(same_file).map(|(file, &stands)| (file.path.as_str(), stands)).collect();
    let profile = model.profile();
    let event = profile.find_event(CallTable::ELAPSED);
    let whole = event.and_then(|id| Some(profile.totals().get(id.0 as usize)?.weight.0)).unwrap_or(0);
    for calls in shared {
        let share = if whole == 0 { 0.0 } else { (100.0 * calls.stats.total_ns as f64 / whole as f64).min(100.0) };
        for (path, line) in &calls.lines {
            let Some(&file) = files.get(path.as_str()) else { continue };
            let known = found.entry(file).or_default().entry(*line).or_default();
            if known.hint.is_empty() || share > known.share {
                (known.share, known.hint) = (share, hint(calls));
            }
            known.notes.push(note(calls));
        }
    }
    found
}

/// `3 calls here or on 1 other line`.
fn hint(calls: &SharedCalls) -> String {
    let others = calls.lines.len().saturating_sub(1);
    format!("{} here or on {}", counted(calls.stats.calls, "call"), counted(others as u64, "other line"))
}

fn note(calls: &SharedCalls) -> String {
    let lines: Vec<String> = calls.lines.iter().map(|(_, line)| line.to_string()).collect();
    let average =
        calls.stats.average_ns().map_or_else(String::new, |ns| format!(", {} on average", duration(Weight(ns))));
    let SharedCalls { caller, callee, stats, .. } = calls;
    format!(
        "`{caller}` calls `{callee}` on lines {}: {} from all of them{average}. uftrace does not record which of them makes a \
         call, so their inclusive time is on none, but on the first line of `{caller}`",
        lines.join(", "),
        counted(stats.calls, "call")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use heatline_profile::CallStats;

    #[test]
    fn what_is_not_known_is_said_in_words() {
        let line = |line| ("a.c".to_owned(), NonZeroU32::new(line).unwrap());
        let stats = CallStats { calls: 3, total_ns: 1_500, shortest_ns: 400, longest_ns: 600 };
        let calls =
            SharedCalls { caller: "main".into(), callee: "work".into(), lines: vec![line(12), line(14)], stats };
        assert_eq!(hint(&calls), "3 calls here or on 1 other line");
        assert_eq!(
            note(&calls),
            "`main` calls `work` on lines 12, 14: 3 calls from all of them, 500 ns on average. uftrace does not record which of \
             them makes a call, so their inclusive time is on none, but on the first line of `main`"
        );
        // The longest hint an editor shows whole has 43 characters.
        let most = SharedCalls {
            lines: (1..100).map(line).collect(),
            stats: CallStats { calls: 12_345_678, ..stats },
            ..calls
        };
        assert!(hint(&most).chars().count() <= 43);
    }
}
