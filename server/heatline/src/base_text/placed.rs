//! Where the lines of a profile are in the files on the disk.

use super::renames::may_be;
use super::{BaseTexts, read, resolved};
use crate::load::Loaded;
use heatline_annotate::FileId;
use heatline_annotate::placement::{Comparison, Placement};
use rayon::prelude::*;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The base texts of a profile, and where its lines are in the files on the disk.
#[derive(Clone, Debug)]
pub struct Bases {
    /// The profile they are of.
    pub loaded: Arc<Loaded>,
    /// The texts.
    pub texts: BaseTexts,
    closed: HashMap<FileId, Closed>,
}

/// Where the lines of a file are on the disk.
#[derive(Clone, PartialEq, Debug)]
struct Closed {
    places: Comparison,
    verified: bool,
}

impl Closed {
    fn honest(&self, placement: Placement) -> Placement {
        if self.verified { placement } else { placement.of_unverified_base() }
    }
}

impl Bases {
    /// The base texts that are at hand. Reads all sources with cost.
    pub fn at_hand(loaded: Arc<Loaded>, cancelled: &AtomicBool) -> Self {
        let texts = BaseTexts::at_hand(&loaded, cancelled);
        Bases { loaded, texts, closed: HashMap::new() }.placed()
    }

    /// With what was known of the same recording before, where nothing is known for sure now.
    pub fn keeping(mut self, before: &Bases) -> Self {
        if self.texts.keep(&before.texts) { self.placed() } else { self }
    }

    /// With what a search finds; `None` if it finds nothing. Takes long.
    pub fn searched(&self, buffers: &HashMap<FileId, Arc<str>>, cancelled: &AtomicBool) -> Option<Self> {
        let mut bases = self.clone();
        let any = bases.texts.search(&self.loaded, buffers, cancelled);
        any.then(|| bases.placed())
    }

    /// With what a search finds, and why it could not look where it should. Takes long.
    pub fn after_search(mut self, cancelled: &AtomicBool) -> Self {
        let any = self.texts.search(&self.loaded, &HashMap::new(), cancelled);
        if any { self.placed() } else { self }
    }

    /// With files that were renamed since; `None` if all are where they were said to be. Takes long.
    pub fn with_renames(&self, cancelled: &AtomicBool) -> Option<Self> {
        let mut bases = self.clone();
        let any = bases.texts.follow_renames(&self.loaded, HashMap::new(), cancelled);
        any.then(|| bases.placed())
    }

    /// After somebody has renamed files or folders, `from` to `to`; `None` if none of them is of the profile. Reads
    /// sources.
    pub fn after_renames(&self, renames: &[(PathBuf, PathBuf)]) -> Option<Self> {
        let mut bases = self.clone();
        let mut any = false;
        for file in self.texts.files() {
            let Some(path) = self.path(file).map(resolved) else { continue };
            let moved = |(from, to): &(PathBuf, PathBuf)| {
                let rest = path.strip_prefix(from).ok()?;
                Some(if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) })
            };
            let Some(to) = renames.iter().find_map(moved) else { continue };
            bases.texts.rename(file, path, to);
            any = true;
        }
        any.then(|| bases.placed())
    }

    /// With what was renamed since according to others; `None` if that is known here.
    pub fn with_renames_of(&self, other: &Bases) -> Option<Self> {
        let mut bases = self.clone();
        bases.texts.keep_renames(&other.texts).then(|| bases.placed())
    }

    /// The same if a file that is none of the profile may be one that is not where it was said to be.
    pub fn with_renames_to(&self, path: &Path) -> Option<Self> {
        let is_gone = |file: &FileId| self.path(*file).is_some_and(|path| !path.is_file());
        let mut gone = self.texts.files().filter(is_gone).filter_map(|file| self.texts.get(file));
        let is_wanted = !self.texts.renames_hold() || gone.any(|base| may_be(path, &base.text));
        if is_wanted { self.with_renames(&AtomicBool::new(false)) } else { None }
    }

    /// Whether a file that was here is not where it was said to be.
    pub fn may_be_renamed(&self) -> bool {
        self.texts.files().any(|file| self.path(file).is_some_and(|path| !path.is_file())) || !self.texts.renames_hold()
    }

    /// With the lines placed in the files of the disk.
    fn placed(mut self) -> Self {
        let files: Vec<FileId> = self.texts.files().collect();
        self.closed = files.into_par_iter().filter_map(|file| Some((file, self.look_at(file)?))).collect();
        self
    }

    /// The same after files on the disk have changed; `None` if none of them is one of the profile's. Reads them.
    pub fn after_changes(&self, paths: &[PathBuf]) -> Option<Self> {
        let changed: Vec<FileId> = paths.iter().filter_map(|path| self.file_at(path)).collect();
        if changed.is_empty() {
            return None;
        }
        let mut bases = self.clone();
        for file in changed {
            match bases.look_at(file) {
                Some(closed) => _ = bases.closed.insert(file, closed),
                None => _ = bases.closed.remove(&file),
            }
        }
        Some(bases)
    }

    /// The file of the profile that a path is, renamed since or not.
    pub fn file_at(&self, path: &Path) -> Option<FileId> {
        let here = || self.loaded.sources.file_at(path).filter(|file| self.texts.renamed(*file).is_none());
        self.texts.file_at(path).or_else(here)
    }

    /// Where a file is on this machine.
    pub fn path(&self, file: FileId) -> Option<&Path> {
        self.texts.renamed(file).or_else(|| self.loaded.sources.path(file))
    }

    /// Where a line of a file is on the disk. Where too little is left of it, it is nowhere.
    pub fn line(&self, file: FileId, line: NonZeroU32) -> Option<(u32, Placement)> {
        let closed = self.closed.get(&file)?;
        if !closed.places.is_sure() {
            return Some((line.get() - 1, Placement::Gone));
        }
        closed.places.map.find(line).map(|(now, placement)| (now, closed.honest(placement)))
    }

    /// The share of a file's base that is in the file on the disk; `None` where either is not known.
    pub fn confidence(&self, file: FileId) -> Option<f64> {
        Some(self.closed.get(&file)?.places.confidence)
    }

    /// Whether lines are placed in a file on the disk: it has enough in common with its base.
    pub fn is_sure(&self, file: FileId) -> bool {
        self.closed.get(&file).is_some_and(|closed| closed.places.is_sure())
    }

    fn look_at(&self, file: FileId) -> Option<Closed> {
        let base = self.texts.get(file)?;
        let text = read(self.path(file)?)?;
        let lines = self.loaded.lines_of(file);
        let places = Comparison::new(&base.text, &text, lines.iter().copied());
        Some(Closed { places, verified: base.is_verified() })
    }
}
