//! Freezing: a loaded profile with the texts of its sources as one file that needs nothing else.

use crate::base_text::{BaseText, BaseTexts};
use crate::load::{AMBIGUOUS_SOURCE, Loaded};
use crate::sources::is_newer;
use heatline_annotate::FileId;
use heatline_profile::{Problems, Profile};
use heatline_readers::{frozen, pprof};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A frozen profile.
pub struct Frozen {
    /// The content of its file.
    pub bytes: Vec<u8>,
    /// How many texts of sources are in it.
    pub texts: usize,
    /// What could not be put into it.
    pub left_out: Problems,
}

/// Freezes a profile.
///
/// # Errors
/// If it cannot be put together.
pub fn freeze(loaded: &Loaded) -> anyhow::Result<Frozen> {
    let mut symbolization = loaded.model.symbolization();
    let mut left_out = Problems::new();
    let mut room = frozen::MOST_TEXT;
    let texts = texts(loaded, &mut left_out);
    let same = loaded.sources.same_file();
    for id in loaded.model.costed_files() {
        let stands = same.get(id.0 as usize).copied().unwrap_or(id);
        let (Some(file), Some(text)) = (symbolization.files.get_mut(id.0 as usize), texts.get(&stands)) else {
            continue;
        };
        let length = text.len() as u64;
        if length > frozen::LARGEST_TEXT || length > room {
            left_out.add("source-left-out", 1, None, format!("{}: the text is too long to be kept", file.path));
            file.text = None;
        } else {
            room -= length;
            file.text = Some(text.clone());
        }
    }
    let mut profile = Profile::clone(loaded.model.profile());
    profile.problems = problems(loaded);
    for problem in pprof::left_out(&profile).iter() {
        let message = format!("in the copy for pprof: {}", problem.message);
        left_out.add(problem.kind, problem.count, None, message);
    }
    let texts = symbolization.files.iter().filter(|file| file.text.is_some()).count();
    Ok(Frozen { bytes: frozen::freeze(&profile, &symbolization)?, texts, left_out })
}

/// What went wrong with the recording and its binaries; what is of this machine stays here.
fn problems(loaded: &Loaded) -> Problems {
    let mut problems = Problems::new();
    for problem in loaded.problems.iter().filter(|problem| problem.kind != AMBIGUOUS_SOURCE) {
        problems.add(problem.kind, problem.count, problem.offset, problem.message.clone());
    }
    problems
}

/// The texts that the files were built from, by the file that stands for each. A text that was written after the
/// recording and that nothing says to be the right one would put costs on wrong lines.
fn texts(loaded: &Loaded, left_out: &mut Problems) -> HashMap<FileId, Arc<str>> {
    let go_on = AtomicBool::new(false);
    let mut found = BaseTexts::at_hand(loaded, &go_on);
    let is_doubtful = |file: FileId, base: &BaseText| {
        let path = loaded.sources.path(file);
        !base.is_verified()
            && (loaded.model.file(file).checksum.is_some() || path.is_some_and(|path| is_newer(path, &loaded.path)))
    };
    // One without a text may have been renamed.
    let is_missing = |file: FileId| {
        loaded.sources.representative(file) == file && found.get(file).is_none() && !loaded.lines_of(file).is_empty()
    };
    let any_missing = (0..loaded.model.files().len() as u32).map(FileId).any(is_missing);
    if any_missing || found.files().any(|file| found.get(file).is_some_and(|base| is_doubtful(file, base))) {
        found.search(loaded, &HashMap::new(), &go_on);
        found.unread().for_each(|why| left_out.add("unreadable-history", 1, None, why.to_owned()));
    }
    let mut files: Vec<FileId> = found.files().collect();
    files.sort_unstable();
    let mut texts = HashMap::new();
    for (file, base) in files.into_iter().filter_map(|file| Some((file, found.get(file)?))) {
        if is_doubtful(file, base) {
            let path = &loaded.model.file(file).path;
            let message = format!("{path}: the text of the build is not here any more, so none is kept");
            left_out.add("source-left-out", 1, None, message);
        } else {
            texts.insert(file, base.text.clone());
        }
    }
    texts
}
