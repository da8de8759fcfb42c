//! The one list of places where source files are looked for.
//!
//! In order: the person's prefix map, the recorded path, the library of the Rust toolchain that it names, and the file of
//! the workspace that shares the longest path end with the recorded one, if there is only one such file or only one with
//! the recorded checksum.

use crate::rust_source;
use heatline_annotate::{
    AnnotationOptions, FileId, Model, below, comparison_key, components, folds_case, is_absolute, is_windows, same_name,
};
use heatline_symbols::Checksum;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// More files than this are not indexed in a workspace.
const MOST_FILES: usize = 1_000_000;

/// So many files that a path could be are named.
const MOST_NAMED: usize = 4;

/// So many of them are compared by their content.
const MOST_COMPARED: usize = 64;

/// Where to look for sources.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourcePaths {
    /// Recorded prefixes and what stands for them here, tried in this order.
    pub map: Vec<(String, String)>,
    /// The roots of the workspace.
    pub roots: Vec<PathBuf>,
    /// What recorded relative paths are relative to, beside the roots.
    pub beside: Vec<PathBuf>,
    /// Folders of Rust toolchains, for the sources of Rust's library.
    pub toolchains: Vec<PathBuf>,
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
    ambiguous: Vec<Ambiguous>,
}

/// A recorded path that could be several files of the workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ambiguous {
    /// The file of the model.
    pub file: FileId,
    /// The path.
    pub recorded: String,
    /// The files, in order.
    pub candidates: Vec<PathBuf>,
}

impl Ambiguous {
    /// The prefixes, recorded and here, that settle it in favour of a candidate, and for all files beside it: what is left
    /// without the names that both paths end with. Where that would be a whole system, the file alone.
    pub fn settled_by(&self, candidate: &Path) -> (String, String) {
        let here = candidate.to_string_lossy();
        let names = components(&self.recorded).rev().zip(components(&here).rev());
        let shared = names.take_while(|(a, b)| a == b).count();
        match (above(&self.recorded, shared), above(&here, shared)) {
            (Some(from), Some(to)) => (from.to_owned(), to.to_owned()),
            _ => (self.recorded.clone(), here.into_owned()),
        }
    }
}

/// A path without its last names; `None` if nothing but a root would be left.
fn above(path: &str, names: usize) -> Option<&str> {
    let is_separator = |c: char| c == '/' || (c == '\\' && is_windows(path));
    let mut left = path;
    for _ in 0..names {
        left = &left[..left.rfind(is_separator)?];
    }
    components(left).next().is_some().then_some(left)
}

impl fmt::Display for Ambiguous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ambiguous { recorded, candidates, .. } = self;
        let shown: Vec<String> = candidates.iter().take(MOST_NAMED).map(|path| path.display().to_string()).collect();
        let more = if candidates.len() > MOST_NAMED { ", …" } else { "" };
        write!(f, "several files could be {recorded}: {}{more}", shown.join(", "))?;
        let (from, to) = candidates.first().map(|path| self.settled_by(path)).unwrap_or_default();
        write!(f, "; settle it with sourceMap (--source-map), like {from}={to}")
    }
}

impl Sources {
    /// Looks for all files of a model.
    pub fn find(model: &Model, places: &SourcePaths) -> Self {
        let index = Index { roots: &places.roots, files: OnceLock::new() };
        let mut sources = Sources { roots: places.roots.clone(), ..Sources::default() };
        for (id, file) in (0..).map(FileId).zip(model.files()) {
            let path = places.find(&file.path, &index).unwrap_or_else(|candidates| {
                let chosen = only_with_checksum(&candidates, file.checksum.as_ref());
                if chosen.is_none() {
                    sources.ambiguous.push(Ambiguous { file: id, recorded: file.path.clone(), candidates });
                }
                chosen
            });
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
        let canonical = path.canonicalize().ok();
        let known = canonical.as_ref().and_then(|canonical| self.by_canonical.get(canonical));
        // It may have come here since.
        let is_elsewhere = |file: &&FileId| self.path(**file).is_some_and(Path::is_file);
        let named = || self.by_name.get(&comparison_key(&path.to_string_lossy())).filter(|file| !is_elsewhere(file));
        known.or_else(named).copied()
    }

    /// Which files of the model are one file here, for [`AnnotationOptions::same_file`].
    pub fn same_file(&self) -> Vec<FileId> {
        self.same_file.clone()
    }

    /// Recorded paths for which several files of the workspace are equally good.
    pub fn ambiguous(&self) -> &[Ambiguous] {
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

/// The one of some files that has a checksum, if it is one.
fn only_with_checksum(candidates: &[PathBuf], checksum: Option<&Checksum>) -> Option<PathBuf> {
    let checksums = [*checksum?];
    let has_it = |path: &&PathBuf| {
        crate::base_text::read_bytes(path).is_some_and(|bytes| crate::base_text::has_any_checksum(&bytes, &checksums))
    };
    let mut with_it = candidates.iter().take(MOST_COMPARED).filter(has_it);
    with_it.next().filter(|_| with_it.next().is_none()).cloned()
}

/// A recorded path without the folder of whoever compiled it, as Bazel has it.
fn without_working_folder(recorded: &str) -> &str {
    recorded.strip_prefix("/proc/self/cwd/").unwrap_or(recorded)
}

impl SourcePaths {
    /// Where a recorded file is; the files that it could be where that cannot be told.
    fn find(&self, recorded: &str, index: &Index<'_>) -> Result<Option<PathBuf>, Vec<PathBuf>> {
        for (from, to) in &self.map {
            if let Some(mapped) = map_prefix(recorded, from, to).filter(|path| path.is_file()) {
                return Ok(Some(mapped));
            }
        }
        if let Some(library) = rust_source::find(recorded, &self.toolchains) {
            return Ok(Some(library));
        }
        let recorded = without_working_folder(recorded);
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
    let rest: PathBuf = below(recorded, from)?.collect();
    // With nothing behind it would end in a slash, as no file does.
    Some(if rest.as_os_str().is_empty() { to.into() } else { Path::new(to).join(rest) })
}

/// The files of the workspace by name in lower case. Made when first needed: most profiles never need it.
struct Index<'a> {
    roots: &'a [PathBuf],
    files: OnceLock<HashMap<String, Vec<PathBuf>>>,
}

impl Index<'_> {
    fn longest_suffix(&self, recorded: &str) -> Result<Option<PathBuf>, Vec<PathBuf>> {
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
        let mut winners: Vec<PathBuf> = candidates.into_iter().filter(|path| shared(path) == best).cloned().collect();
        if winners.len() == 1 {
            return Ok(winners.pop());
        }
        winners.sort();
        Err(winners)
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

    /// A folder with some files in it, each its own path as content.
    fn folder_of(paths: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in paths {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        }
        folder
    }

    /// What a recorded path is in a workspace with these files.
    #[track_caller]
    fn check(files: &[&str], recorded: &str, expect: Option<&str>) {
        let folder = folder_of(files);
        let root = folder.path().canonicalize().unwrap();
        let toolchains = ["one", "two"].map(|name| root.join(name)).to_vec();
        let places = SourcePaths { roots: vec![root.clone()], toolchains, ..SourcePaths::default() };
        let index = Index { roots: &places.roots, files: OnceLock::new() };
        let found = places.find(recorded, &index).expect("no tie");
        assert_eq!(found, expect.map(|name| root.join(name)), "{recorded}");
    }

    #[test]
    fn relative_and_remapped_paths_are_looked_for_in_the_workspace() {
        // -ffile-prefix-map=/home/me=. and a relative DW_AT_comp_dir.
        check(&["src/a.c", "lib/src/a.c"], "src/a.c", Some("src/a.c"));
        check(&["src/a.c", "lib/src/a.c"], "./src/a.c", Some("src/a.c"));
        check(&["src/a.c", "lib/src/a.c"], "/proc/self/cwd/src/a.c", Some("src/a.c"));
        check(&["src/a.c"], "/container/build/project/src/a.c", Some("src/a.c"));
        check(&["src/a.c"], "/container/build/project/src/b.c", None);
        check(&["grammar/parser.y"], "/container/grammar/parser.y", Some("grammar/parser.y"));
        check(&["Src/A.cpp"], "C:\\agent\\work\\src\\a.cpp", Some("Src/A.cpp"));
    }

    #[test]
    fn the_library_of_rust_is_in_the_toolchain_of_its_commit() {
        const COMMIT: &str = "59807616e1fa2540724bfbac14d7976d7e4a3860";
        let inside = "lib/rustlib/src/rust/library/core/src/iter.rs";
        let folder = folder_of(&[&format!("one/{inside}"), &format!("two/{inside}")]);
        let toolchains = ["one", "two"].map(|name| folder.path().join(name));
        let manifest = |name: &str| folder.path().join(name).join("lib/rustlib/multirust-channel-manifest.toml");
        std::fs::write(manifest("one"), "git_commit_hash = \"0000000000000000000000000000000000000000\"").unwrap();
        let find = |path: &str| rust_source::find(path, &toolchains);
        let recorded = format!("/rustc/{COMMIT}/library/core/src/iter.rs");
        assert_eq!(find(&recorded), None, "another version is not that text");
        std::fs::write(manifest("two"), format!("git_commit_hash = \"{COMMIT}\"")).unwrap();
        assert_eq!(find(&recorded), Some(toolchains[1].join(inside)));
        assert_eq!(find(&format!("/rustc/{COMMIT}/library/core/src/none.rs")), None);
        assert_eq!(find("/rustc/short/library/core/src/iter.rs"), None);
    }

    #[test]
    fn a_tie_names_the_files_and_how_to_settle_it() {
        let folder = folder_of(&["two/util.c", "three/util.c"]);
        let roots = [folder.path().to_owned()];
        let index = Index { roots: &roots, files: OnceLock::new() };
        let candidates = index.longest_suffix("/elsewhere/util.c").unwrap_err();
        assert_eq!(candidates, ["three/util.c", "two/util.c"].map(|name| folder.path().join(name)));
        // Of "two/util.c", by md5sum.
        let md5 = |number: u128| Checksum::Md5(number.to_be_bytes());
        assert_eq!(
            only_with_checksum(&candidates, Some(&md5(0x7fdd_9a0d_e44c_284d_0f1b_720c_a414_3295))),
            Some(folder.path().join("two/util.c"))
        );
        assert_eq!(only_with_checksum(&candidates, Some(&md5(1))), None);
        let text = Ambiguous {
            file: FileId(0),
            recorded: "/elsewhere/util.c".into(),
            candidates: vec!["/a/util.c".into(), "/b/util.c".into()],
        };
        assert_eq!(
            text.to_string(),
            "several files could be /elsewhere/util.c: /a/util.c, /b/util.c; settle it with sourceMap (--source-map), \
             like /elsewhere=/a"
        );
    }

    #[test]
    fn one_answer_settles_all_files_beside_it() {
        let settled = |recorded: &str, candidate: &str| {
            let ambiguous = Ambiguous { file: FileId(0), recorded: recorded.into(), candidates: Vec::new() };
            let (from, to) = ambiguous.settled_by(Path::new(candidate));
            assert_eq!(map_prefix(recorded, &from, &to).unwrap().as_os_str(), candidate);
            [from, to]
        };
        assert_eq!(settled("/build/app/lib/util.c", "/w/two/lib/util.c"), ["/build/app", "/w/two"]);
        assert_eq!(settled("C:\\agent\\src\\Util.cpp", "/w/src/util.cpp")[1], "/w/src/util.cpp", "case counts here");
        assert_eq!(settled("C:\\agent\\src\\util.cpp", "/w/src/util.cpp"), ["C:\\agent", "/w"]);
        assert_eq!(settled("/src/util.c", "/w/src/util.c"), ["/src/util.c", "/w/src/util.c"], "not the whole system");
        assert_eq!(settled("src/util.c", "/w/src/util.c"), ["src/util.c", "/w/src/util.c"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_the_file_and_a_second_root_is_looked_into() {
        let (first, second) = (folder_of(&["x.c"]), folder_of(&["deep/y.c"]));
        std::os::unix::fs::symlink(second.path().join("deep"), first.path().join("link")).unwrap();
        let roots = vec![first.path().to_owned(), second.path().to_owned()];
        let places = SourcePaths { roots: roots.clone(), ..SourcePaths::default() };
        let index = Index { roots: &roots, files: OnceLock::new() };
        let find = |recorded: &str| places.find(recorded, &index).unwrap();
        assert_eq!(find("/build/deep/y.c"), Some(second.path().join("deep/y.c")));
        assert_eq!(find("link/y.c"), Some(first.path().join("link/y.c")));
        let outside = second.path().join("deep/y.c");
        assert_eq!(find(&outside.to_string_lossy()), Some(outside.clone()), "outside of every root too");
    }
}
