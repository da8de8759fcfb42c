//! The text that the lines of a profile are of.
//!
//! For each source file with cost, the first of: the text here if its checksum is that in the debug information; the
//! text that the profile or the debug information brings along; a text of the repository's history with that checksum.
//! Where there are no checksums: the text here if it was not written since the build, or that of the newest commit from
//! before it that has code on every line. Else the text that was here when the profile was loaded, unverified.

mod checksum;
mod guard;
mod history;
mod placed;

pub use checksum::has_any as has_any_checksum;
pub use placed::Bases;

use crate::files;
use crate::load::Loaded;
use heatline_annotate::placement::{Declaration, fit};
use heatline_annotate::{FileId, Model, components, is_absolute};
use heatline_symbols::Checksum;
use history::{Repository, Want};
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Larger files are no sources.
const LARGEST: u64 = 16 << 20;

/// So many ends of a path are tried where the file is not here any more.
const MOST_ENDS: usize = 8;

/// How a text was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The text here has the recorded checksum.
    Checksum,
    /// The text here was not written since the build.
    Unwritten,
    /// The profile or the debug information brought it along.
    Kept,
    /// A commit holds it, named by the beginning of its id.
    Commit(String),
    /// It was here when the profile was loaded; nothing says that it is the right one.
    Seen,
}

impl Origin {
    /// What to say of it; `None` where there is nothing to say: the text here is the profiled one.
    pub fn sentence(&self) -> Option<String> {
        match self {
            Origin::Checksum | Origin::Unwritten | Origin::Seen => None,
            Origin::Kept => Some("the profiled text is recorded with the profile".into()),
            Origin::Commit(id) => Some(format!("the profiled text is that of commit {id}")),
        }
    }
}

/// A text and how it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BaseText {
    /// The text.
    pub text: Arc<str>,
    /// How it was found.
    pub origin: Origin,
}

impl BaseText {
    /// A text of which nothing is known.
    pub fn seen(text: &str) -> Self {
        BaseText { text: text.into(), origin: Origin::Seen }
    }

    /// Whether it is known to be the profiled text.
    pub fn is_verified(&self) -> bool {
        self.origin != Origin::Seen
    }
}

/// The texts that the files of a profile were built from.
#[derive(Clone, Debug, Default)]
pub struct BaseTexts {
    texts: HashMap<FileId, BaseText>,
    renamed: HashMap<FileId, PathBuf>,
}

impl BaseTexts {
    /// The text of a file, by the number that stands for it.
    pub fn get(&self, file: FileId) -> Option<&BaseText> {
        self.texts.get(&file)
    }

    /// The text of any file of the profile, if it is known to be the right one.
    pub fn verified(&self, loaded: &Loaded, file: FileId) -> Option<Arc<str>> {
        let stands = loaded.sources.same_file().get(file.0 as usize).copied().unwrap_or(file);
        self.get(stands).filter(|base| base.is_verified()).map(|base| base.text.clone())
    }

    /// Where a file is that was renamed in version control since.
    pub fn renamed(&self, file: FileId) -> Option<&Path> {
        self.renamed.get(&file).map(PathBuf::as_path)
    }

    /// The file that was renamed to a path.
    pub fn file_at(&self, path: &Path) -> Option<FileId> {
        self.renamed.iter().find(|(_, renamed)| *renamed == path).map(|(file, _)| *file)
    }

    /// The files whose text was found, in no particular order.
    pub fn files(&self) -> impl Iterator<Item = FileId> + '_ {
        self.texts.keys().copied()
    }

    /// Keeps what was found of the same recording before, where nothing is known for sure now: the text here may have
    /// been edited since. Tells whether anything is another text by that.
    pub fn keep(&mut self, before: &BaseTexts) -> bool {
        let mut any = false;
        for (&file, base) in &before.texts {
            if self.texts.get(&file).is_none_or(|found| !found.is_verified() && found != base) {
                self.texts.insert(file, base.clone());
                any = true;
            }
        }
        for (file, path) in &before.renamed {
            self.renamed.entry(*file).or_insert_with(|| path.clone());
        }
        any
    }

    /// Finds the texts that are at hand, and takes what is here for the others. Reads all sources with cost once.
    pub fn at_hand(loaded: &Loaded, cancelled: &AtomicBool) -> Self {
        let mut found = BaseTexts::default();
        let files = Costed::all(loaded);
        for file in files.iter().take_while(|_| !cancelled.load(Ordering::Relaxed)) {
            let here = || Some(BaseText::seen(&read(file.path.as_deref()?)?));
            found.texts.extend(file.at_hand(None).or_else(here).map(|base| (file.file, base)));
        }
        found
    }

    /// Looks in `buffers`, texts that are open in an editor, and in the history of repositories for what is not known
    /// for sure. Takes long; ends early when `cancelled` is set. Tells whether anything was found.
    pub fn search(&mut self, loaded: &Loaded, buffers: &HashMap<FileId, Arc<str>>, cancelled: &AtomicBool) -> bool {
        let mut left = Costed::all(loaded);
        left.retain(|file| !self.get(file.file).is_some_and(BaseText::is_verified));
        let before = left.len();
        for file in &left {
            let buffer = buffers.get(&file.file).and_then(|buffer| file.at_hand(Some(buffer)));
            self.texts.extend(buffer.map(|base| (file.file, base)));
        }
        left.retain(|file| !self.get(file.file).is_some_and(BaseText::is_verified));
        self.search_history(&left, loaded, cancelled);
        left.retain(|file| !self.get(file.file).is_some_and(BaseText::is_verified));
        left.len() < before
    }

    fn search_history(&mut self, left: &[Costed], loaded: &Loaded, cancelled: &AtomicBool) {
        let mut repositories: Vec<(Repository, Vec<&Costed>)> = Vec::new();
        for file in left {
            let folders = file.folders(loaded.sources.roots());
            if let Some(at) = folders.iter().find_map(|folder| known_or_new(folder, &mut repositories)) {
                repositories[at].1.push(file);
            }
        }
        for (repository, files) in repositories {
            let wants: Vec<Want<'_>> = files.iter().map(|file| file.want(&repository.folder)).collect();
            let found = repository.search(&wants, cancelled);
            for (file, found) in files.iter().zip(found).filter_map(|(file, found)| Some((file, found?))) {
                if file.path.is_none() {
                    self.renamed.extend(repository.renamed(&found).map(|path| (file.file, path)));
                }
                self.texts.insert(file.file, BaseText { text: found.text, origin: Origin::Commit(found.commit) });
            }
        }
    }
}

/// The position of the repository that a folder is in, opened if it was not yet.
fn known_or_new<T: Default>(folder: &Path, repositories: &mut Vec<(Repository, T)>) -> Option<usize> {
    let folder = folder.canonicalize().ok()?;
    let is_nested = |known: &Path| folder.ancestors().take_while(|a| *a != known).any(|a| a.join(".git").exists());
    if let Some(at) =
        repositories.iter().position(|(known, _)| folder.starts_with(&known.folder) && !is_nested(&known.folder))
    {
        return Some(at);
    }
    repositories.push((Repository::of(&folder)?, T::default()));
    Some(repositories.len() - 1)
}

fn seconds(time: SystemTime) -> Option<i64> {
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

/// The text of a source file here; `None` if there is none or it is too large for one.
pub fn read(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&read_bytes(path)?).into_owned())
}

/// The bytes of a source file here, as [`read`] has its text.
pub fn read_bytes(path: &Path) -> Option<Vec<u8>> {
    files::read(path, LARGEST).ok()
}

/// A source file with cost, under all names it has in the profile.
struct Costed {
    file: FileId,
    recorded: String,
    /// Where it is here.
    path: Option<PathBuf>,
    checksums: Vec<Checksum>,
    kept: Option<Arc<str>>,
    lines: BTreeSet<NonZeroU32>,
    declarations: Vec<Declaration>,
    /// When the last of the binaries that hold its code was written, or the recording if that was before.
    built: Option<SystemTime>,
}

impl Costed {
    fn all(loaded: &Loaded) -> Vec<Costed> {
        let model: &Model = &loaded.model;
        let written = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
        let recorded = written(&loaded.path);
        let binaries: Vec<Option<SystemTime>> = loaded.binaries.iter().map(|path| written(path.as_deref()?)).collect();
        let same = loaded.sources.same_file();
        let mut files: HashMap<FileId, Costed> = HashMap::new();
        for (module, file, line) in model.source_lines() {
            let stands = same.get(file.0 as usize).copied().unwrap_or(file);
            let costed = files.entry(stands).or_insert_with(|| Costed {
                file: stands,
                recorded: model.file(stands).path.clone(),
                path: loaded.sources.path(stands).map(Path::to_owned),
                checksums: Vec::new(),
                kept: None,
                lines: BTreeSet::new(),
                declarations: Vec::new(),
                built: recorded,
            });
            costed.lines.insert(line);
            let built = binaries.get(module.0 as usize).copied().flatten();
            costed.built = [costed.built, built].into_iter().flatten().min();
        }
        for (id, file) in (0..).map(FileId).zip(model.files()) {
            let stands = same.get(id.0 as usize).copied().unwrap_or(id);
            let Some(costed) = files.get_mut(&stands) else { continue };
            costed.checksums.extend(file.checksum);
            costed.kept = costed.kept.take().or_else(|| file.text.clone());
        }
        for function in model.functions() {
            let (Some(file), Some(line)) = (function.file, function.line) else { continue };
            let stands = same.get(file.0 as usize).copied().unwrap_or(file);
            if let Some(costed) = files.get_mut(&stands) {
                costed.declarations.extend(Declaration::new(&function.name, line));
            }
        }
        let mut files: Vec<Costed> = files.into_values().collect();
        for file in &mut files {
            file.declarations.sort();
            file.declarations.dedup();
        }
        files.sort_by_key(|file| file.file);
        files
    }

    /// The text if it can be told without a search.
    fn at_hand(&self, buffer: Option<&Arc<str>>) -> Option<BaseText> {
        let found = |text: Arc<str>, origin| Some(BaseText { text, origin });
        if let Some(buffer) = buffer.filter(|buffer| checksum::has_any(buffer.as_bytes(), &self.checksums)) {
            return found(buffer.clone(), Origin::Checksum);
        }
        if !self.checksums.is_empty()
            && let Some(bytes) = self.path.as_deref().and_then(read_bytes)
            && checksum::has_any(&bytes, &self.checksums)
        {
            return found(String::from_utf8_lossy(&bytes).into(), Origin::Checksum);
        }
        if let Some(text) = &self.kept {
            return found(text.clone(), Origin::Kept);
        }
        if self.checksums.is_empty() && self.is_unwritten() {
            let text = self.path.as_deref().and_then(read)?;
            return if self.fits(&text) { found(text.into(), Origin::Unwritten) } else { None };
        }
        None
    }

    /// Whether the file here was last written before the binary was.
    fn is_unwritten(&self) -> bool {
        let written = self.path.as_deref().and_then(|path| path.metadata().and_then(|data| data.modified()).ok());
        matches!((written, self.built), (Some(written), Some(built)) if written <= built)
    }

    fn fits(&self, text: &str) -> bool {
        fit(text, &self.recorded, self.lines.iter().copied()).is_whole()
    }

    /// Folders whose repository may hold the file.
    fn folders(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        if let Some(path) = &self.path {
            return path.canonicalize().ok().and_then(|path| Some(path.parent()?.to_owned())).into_iter().collect();
        }
        let recorded = Path::new(&self.recorded);
        let above = recorded.ancestors().skip(1).find(|folder| folder.is_dir() && folder.parent().is_some());
        let above = above.filter(|_| is_absolute(&self.recorded)).map(Path::to_owned);
        above.into_iter().chain(roots.iter().cloned()).collect()
    }

    /// What is wanted of a repository.
    fn want(&self, folder: &Path) -> Want<'_> {
        Want {
            paths: self.names_in(folder),
            checksums: &self.checksums,
            not_newer: self.built.and_then(seconds),
            recorded: &self.recorded,
            lines: &self.lines,
            declarations: &self.declarations,
        }
    }

    /// Where it may have been in a repository.
    fn names_in(&self, folder: &Path) -> Vec<String> {
        if let Some(inside) = self.path.as_deref().and_then(|path| path.canonicalize().ok())
            && let Ok(inside) = inside.strip_prefix(folder)
        {
            return vec![inside.to_string_lossy().replace('\\', "/")];
        }
        if let Ok(inside) = Path::new(&self.recorded).strip_prefix(folder) {
            return vec![inside.to_string_lossy().into_owned()];
        }
        let names: Vec<&str> = components(&self.recorded).collect();
        (0..names.len()).rev().take(MOST_ENDS).map(|from| names[from..].join("/")).collect()
    }
}
