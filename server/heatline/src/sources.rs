//! The one list of places where source files are looked for.
//!
//! In order: the person's prefix map, the recorded path, and the file of the workspace that shares the longest path
//! end with the recorded one, if there is only one such file.

use heatline_annotate::{AnnotationOptions, FileId, Model, components};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// More files than this are not indexed in a workspace.
const MOST_FILES: usize = 1_000_000;

/// Where to look for sources.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourcePaths {
    /// Recorded prefixes and what stands for them here, tried in this order.
    pub map: Vec<(String, String)>,
    /// The roots of the workspace.
    pub roots: Vec<PathBuf>,
    /// What recorded relative paths are relative to, beside the roots.
    pub beside: Vec<PathBuf>,
}

/// The source files of a model, as far as they are on this machine.
#[derive(Debug, Default)]
pub struct Sources {
    paths: Vec<Option<PathBuf>>,
    same_file: Vec<FileId>,
    by_canonical: HashMap<PathBuf, FileId>,
    /// Recorded paths for which several files of the workspace are equally good.
    ambiguous: Vec<String>,
}

impl Sources {
    /// Looks for all files of a model.
    pub fn find(model: &Model, places: &SourcePaths) -> Self {
        let index = Index { roots: &places.roots, files: OnceLock::new() };
        let mut sources = Sources::default();
        for (id, file) in (0..).map(FileId).zip(model.files()) {
            let path = match places.find(&file.path, &index) {
                Ok(path) => path,
                Err(Ambiguous) => {
                    sources.ambiguous.push(file.path.clone());
                    None
                }
            };
            let canonical = path.as_ref().and_then(|path| path.canonicalize().ok());
            let same = canonical.map_or(id, |canonical| *sources.by_canonical.entry(canonical).or_insert(id));
            sources.same_file.push(same);
            sources.paths.push(path);
        }
        sources
    }

    /// Where a file of the model is on this machine.
    pub fn path(&self, file: FileId) -> Option<&Path> {
        self.paths.get(file.0 as usize)?.as_deref()
    }

    /// The file of the model that a path of this machine is.
    pub fn file_at(&self, path: &Path) -> Option<FileId> {
        if let Some(&id) = self.by_canonical.get(path) {
            return Some(id);
        }
        self.by_canonical.get(&path.canonicalize().ok()?).copied()
    }

    /// Which files of the model are one file here, for [`AnnotationOptions::same_file`].
    pub fn same_file(&self) -> Vec<FileId> {
        self.same_file.clone()
    }

    /// Recorded paths for which several files of the workspace are equally good.
    pub fn ambiguous(&self) -> &[String] {
        &self.ambiguous
    }

    /// Annotation options with the files of this machine.
    pub fn options(&self) -> AnnotationOptions {
        AnnotationOptions { same_file: self.same_file(), ..AnnotationOptions::default() }
    }
}

struct Ambiguous;

impl SourcePaths {
    fn find(&self, recorded: &str, index: &Index<'_>) -> Result<Option<PathBuf>, Ambiguous> {
        for (from, to) in &self.map {
            if let Some(mapped) = map_prefix(recorded, from, to).filter(|path| path.is_file()) {
                return Ok(Some(mapped));
            }
        }
        let path = Path::new(recorded);
        if path.is_absolute() {
            if path.is_file() {
                return Ok(Some(path.to_owned()));
            }
        } else if let Some(found) =
            self.beside.iter().chain(&self.roots).map(|root| root.join(path)).find(|p| p.is_file())
        {
            return Ok(Some(found));
        }
        index.longest_suffix(recorded)
    }
}

/// The path with `from` replaced by `to`, if `from` is the path or a folder of it.
fn map_prefix(recorded: &str, from: &str, to: &str) -> Option<PathBuf> {
    let from = from.trim_end_matches(['/', '\\']);
    let rest = recorded.strip_prefix(from)?;
    if !rest.is_empty() && !rest.starts_with(['/', '\\']) {
        return None;
    }
    Some(Path::new(to).join(components(rest).collect::<PathBuf>()))
}

/// The files of the workspace by name. Made when first needed: most profiles never need it.
struct Index<'a> {
    roots: &'a [PathBuf],
    files: OnceLock<HashMap<String, Vec<PathBuf>>>,
}

impl Index<'_> {
    fn longest_suffix(&self, recorded: &str) -> Result<Option<PathBuf>, Ambiguous> {
        let Some(name) = components(recorded).next_back() else { return Ok(None) };
        let Some(candidates) = self.files().get(name) else { return Ok(None) };
        let shared = |path: &Path| {
            let text = path.to_string_lossy();
            components(recorded).rev().zip(components(&text).rev()).take_while(|(a, b)| a == b).count()
        };
        let Some(best) = candidates.iter().map(|path| shared(path)).max() else { return Ok(None) };
        let mut winners = candidates.iter().filter(|path| shared(path) == best);
        match (winners.next(), winners.next()) {
            (Some(path), None) => Ok(Some(path.clone())),
            _ => Err(Ambiguous),
        }
    }

    fn files(&self) -> &HashMap<String, Vec<PathBuf>> {
        self.files.get_or_init(|| {
            let mut files: HashMap<String, Vec<PathBuf>> = HashMap::new();
            let mut seen = 0;
            for root in self.roots {
                for entry in ignore::WalkBuilder::new(root).require_git(false).build().flatten() {
                    if seen < MOST_FILES && entry.file_type().is_some_and(|kind| kind.is_file()) {
                        seen += 1;
                        let paths = files.entry(entry.file_name().to_string_lossy().into_owned()).or_default();
                        let path = entry.into_path();
                        if !paths.contains(&path) {
                            paths.push(path);
                        }
                    }
                }
            }
            files
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_whole_components() {
        assert_eq!(map_prefix("/build/src/a.c", "/build", "/mine"), Some("/mine/src/a.c".into()));
        assert_eq!(map_prefix("/build/src/a.c", "/build/", "/mine"), Some("/mine/src/a.c".into()));
        assert_eq!(map_prefix("/builder/a.c", "/build", "/home"), None);
        assert_eq!(map_prefix("C:\\proj\\src\\a.cpp", "C:\\proj", "/w"), Some("/w/src/a.cpp".into()));
    }

    #[test]
    fn the_longest_shared_end_wins_and_a_tie_is_told() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["one/lib/util.c", "two/util.c", "three/util.c", "deep/only.c"] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let roots = [folder.path().to_owned()];
        let index = Index { roots: &roots, files: OnceLock::new() };
        let found = |recorded: &str| {
            index.longest_suffix(recorded).map(|path| path.map(|p| p.strip_prefix(folder.path()).unwrap().to_owned()))
        };
        assert_eq!(found("/build/one/lib/util.c").ok().flatten(), Some("one/lib/util.c".into()));
        assert_eq!(found("/elsewhere/only.c").ok().flatten(), Some("deep/only.c".into()));
        assert!(found("/elsewhere/util.c").is_err());
        assert_eq!(found("/elsewhere/none.c").ok().flatten(), None);
    }
}
