//! The one list of places where source files are looked for.
//!
//! In order: the person's prefix map, the recorded path, and the file of the workspace that shares the longest path
//! end with the recorded one, if there is only one such file.

use heatline_annotate::{
    AnnotationOptions, FileId, Model, below, comparison_key, components, folds_case, is_absolute, same_name,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

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
    roots: Vec<PathBuf>,
    paths: Vec<Option<PathBuf>>,
    same_file: Vec<FileId>,
    by_canonical: HashMap<PathBuf, FileId>,
    /// Whole paths, as recorded and as the prefix map has them, by [`comparison_key`]: a client may have files open
    /// that are not on this machine.
    by_name: HashMap<String, FileId>,
    /// Recorded paths for which several files of the workspace are equally good.
    ambiguous: Vec<String>,
}

impl Sources {
    /// Looks for all files of a model.
    pub fn find(model: &Model, places: &SourcePaths) -> Self {
        let index = Index { roots: &places.roots, files: OnceLock::new() };
        let mut sources = Sources { roots: places.roots.clone(), ..Sources::default() };
        for (id, file) in (0..).map(FileId).zip(model.files()) {
            let path = match places.find(&file.path, &index) {
                Ok(path) => path,
                Err(Ambiguous) => {
                    sources.ambiguous.push(file.path.clone());
                    None
                }
            };
            let canonical = path.as_ref().and_then(|path| path.canonicalize().ok());
            let names = places.names(&file.path);
            let same = match canonical {
                Some(canonical) => *sources.by_canonical.entry(canonical).or_insert(id),
                None => names.iter().find_map(|name| sources.by_name.get(name)).copied().unwrap_or(id),
            };
            for name in names {
                sources.by_name.entry(name).or_insert(same);
            }
            sources.same_file.push(same);
            sources.paths.push(path);
        }
        sources
    }

    /// The roots of the workspace, in which files were looked for.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Where a file of the model is on this machine.
    pub fn path(&self, file: FileId) -> Option<&Path> {
        self.paths.get(file.0 as usize)?.as_deref()
    }

    /// The file of the model that a path is: one of this machine, or a recorded one that is not on this machine.
    pub fn file_at(&self, path: &Path) -> Option<FileId> {
        if let Some(&id) = self.by_canonical.get(path) {
            return Some(id);
        }
        match path.canonicalize() {
            Ok(canonical) => self.by_canonical.get(&canonical).copied(),
            Err(_) => self.by_name.get(&comparison_key(&path.to_string_lossy())).copied(),
        }
    }

    /// Which files of the model are one file here, for [`AnnotationOptions::same_file`].
    pub fn same_file(&self) -> Vec<FileId> {
        self.same_file.clone()
    }

    /// Recorded paths for which several files of the workspace are equally good.
    pub fn ambiguous(&self) -> &[String] {
        &self.ambiguous
    }

    /// The file that stands for all that are one file here.
    pub fn representative(&self, file: FileId) -> FileId {
        self.same_file.get(file.0 as usize).copied().unwrap_or(file)
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
        if is_absolute(recorded) {
            // A path of another system is no path here.
            if path.is_absolute() && path.is_file() {
                return Ok(Some(path.to_owned()));
            }
        } else {
            let path: PathBuf = components(recorded).collect();
            let mut places = self.beside.iter().chain(&self.roots).map(|root| root.join(&path));
            if let Some(found) = places.find(|path| path.is_file()) {
                return Ok(Some(found));
            }
        }
        index.longest_suffix(recorded)
    }

    /// The whole paths that a recorded one stands for, to compare with those of a client.
    fn names(&self, recorded: &str) -> Vec<String> {
        let mapped = self.map.iter().filter_map(|(from, to)| map_prefix(recorded, from, to));
        let mapped = mapped.map(|path| path.to_string_lossy().into_owned());
        let names = mapped.chain([recorded.to_owned()]).filter(|name| is_absolute(name));
        names.map(|name| comparison_key(&name)).collect()
    }
}

/// The path with `from` replaced by `to`, if `from` is the path or a folder of it.
fn map_prefix(recorded: &str, from: &str, to: &str) -> Option<PathBuf> {
    Some(Path::new(to).join(below(recorded, from)?.collect::<PathBuf>()))
}

/// The files of the workspace by name in lower case. Made when first needed: most profiles never need it.
struct Index<'a> {
    roots: &'a [PathBuf],
    files: OnceLock<HashMap<String, Vec<PathBuf>>>,
}

impl Index<'_> {
    fn longest_suffix(&self, recorded: &str) -> Result<Option<PathBuf>, Ambiguous> {
        let Some(name) = components(recorded).next_back() else { return Ok(None) };
        let folds_case = folds_case(recorded);
        let Some(candidates) = self.files().get(&name.to_lowercase()) else { return Ok(None) };
        let candidates: Vec<&PathBuf> = candidates
            .iter()
            .filter(|path| path.file_name().is_some_and(|found| same_name(&found.to_string_lossy(), name, folds_case)))
            .collect();
        // Of those that share as many names, the one that shares them to the letter.
        let shared = |path: &Path| {
            let text = path.to_string_lossy();
            let count = |folds_case| {
                let pairs = components(recorded).rev().zip(components(&text).rev());
                pairs.take_while(|(a, b)| same_name(a, b, folds_case)).count()
            };
            (count(folds_case), count(false))
        };
        let Some(best) = candidates.iter().map(|path| shared(path)).max() else { return Ok(None) };
        let mut winners = candidates.into_iter().filter(|path| shared(path) == best);
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
                        let paths = files.entry(entry.file_name().to_string_lossy().to_lowercase()).or_default();
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

/// A checkout writes sources and recording within moments of each other; only what is clearly later counts.
const MOMENT: Duration = Duration::from_secs(60);

/// Whether a source was written after the recording.
pub fn is_newer(source: &Path, profile: &Path) -> bool {
    let time = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    match (time(source), time(profile)) {
        (Some(source), Some(profile)) => source.duration_since(profile).is_ok_and(|later| later > MOMENT),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_of_any_system_is_mapped() {
        assert_eq!(map_prefix("/build/src/a.c", "/build/", "/mine"), Some("/mine/src/a.c".into()));
        assert_eq!(map_prefix("/builder/a.c", "/build", "/home"), None);
        assert_eq!(map_prefix("C:\\proj\\src\\a.cpp", "c:/Proj", "/w"), Some("/w/src/a.cpp".into()));
    }

    #[test]
    fn a_recorded_path_is_known_by_its_names_of_any_system() {
        let places = SourcePaths { map: vec![("/build".into(), "D:\\Mine".into())], ..SourcePaths::default() };
        assert_eq!(places.names("/build/a.c"), ["d:\\mine\\a.c", "/build/a.c"]);
        assert_eq!(places.names("C:\\Proj\\a.cpp"), ["c:\\proj\\a.cpp"]);
        assert!(places.names("src/a.c").is_empty());
    }

    #[test]
    fn the_longest_shared_end_wins_and_a_tie_is_told() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["one/lib/util.c", "two/util.c", "three/util.c", "deep/only.c", "case/Wide.cpp", "case/wide.cpp"] {
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
        assert_eq!(found("C:\\Build\\ONE\\Lib\\util.c").ok().flatten(), Some("one/lib/util.c".into()));
        assert_eq!(found("/build/Deep/Only.c").ok().flatten(), None, "case counts there");
        assert_eq!(found("C:\\case\\Wide.cpp").ok().flatten(), Some("case/Wide.cpp".into()), "to the letter");
        assert!(found("C:\\case\\WIDE.cpp").is_err());
        assert_eq!(found("/elsewhere/none.c").ok().flatten(), None);
    }
}
