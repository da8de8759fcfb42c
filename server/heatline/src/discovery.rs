//! Which profiles a workspace holds: the files that the setting `profiles` names, newest first.

use globset::{GlobBuilder, GlobMatcher};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// What perf renames the recording before the last to; never shown by itself, but offered as the baseline. So is what
/// uftrace keeps.
const OLD_RECORDING: &str = "perf.data.old";

/// More folder entries than this are not looked at per pattern.
const MOST_ENTRIES: usize = 100_000;

/// Deeper folders than this are not searched.
const DEEPEST: usize = 16;

/// Folders that hold no recordings and many files.
const NOT_SEARCHED: [&str; 2] = ["node_modules", "target"];

/// The profiles of a workspace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// All profiles, newest first.
    pub profiles: Vec<PathBuf>,
    /// The recording before the last, if the recorder left one.
    pub baseline_on_offer: Option<PathBuf>,
}

/// A path or glob of the setting `profiles`, relative to a workspace root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// The folder that holds all matches: the pattern up to its first component with a wildcard.
    pub folder: PathBuf,
    /// The rest, with `/` between its components; the pattern is a plain path if it has no wildcard.
    pub rest: String,
}

impl Pattern {
    /// Splits a pattern. An absolute one ignores the root.
    pub fn new(root: &Path, pattern: &str) -> Self {
        let whole = root.join(pattern);
        let mut folder = PathBuf::new();
        let mut rest: Vec<String> = Vec::new();
        let components: Vec<Component<'_>> = whole.components().collect();
        for (at, component) in components.iter().enumerate() {
            let text = component.as_os_str().to_string_lossy();
            // The root is no pattern, whatever characters its folders have.
            let fixed = at < root.components().count() && whole.starts_with(root);
            let last = at + 1 == components.len();
            if rest.is_empty() && !last && (fixed || !has_wildcard(&text)) {
                folder.push(component);
            } else if !matches!(component, Component::CurDir) {
                rest.push(text.into_owned());
            }
        }
        Pattern { folder, rest: rest.join("/") }
    }

    /// Whether a path is one the pattern means.
    pub fn matches(&self, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(&self.folder) else { return false };
        if !has_wildcard(&self.rest) {
            return below == Path::new(&self.rest);
        }
        self.matcher().is_some_and(|matcher| matcher.is_match(below))
    }

    /// Whether matches can lie in folders below [`Self::folder`].
    pub fn is_deep(&self) -> bool {
        has_wildcard(&self.rest) && (self.rest.contains('/') || self.rest.contains("**"))
    }

    fn matcher(&self) -> Option<GlobMatcher> {
        let glob = GlobBuilder::new(&self.rest).literal_separator(true).build();
        glob.inspect_err(|error| tracing::warn!(%error, "a pattern of the setting profiles cannot be used"))
            .ok()
            .map(|g| g.compile_matcher())
    }

    fn find(&self, add: &mut impl FnMut(PathBuf)) {
        if !has_wildcard(&self.rest) {
            add(self.folder.join(&self.rest));
        } else if let Some(matcher) = self.matcher() {
            let mut left = MOST_ENTRIES;
            let depth = if self.is_deep() { DEEPEST } else { 0 };
            walk(&self.folder, depth, &mut left, &mut |path| {
                if path.strip_prefix(&self.folder).is_ok_and(|below| matcher.is_match(below)) {
                    add(path.to_owned());
                }
            });
        }
    }
}

fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// All profiles that the patterns name below the roots.
pub fn discover(roots: &[PathBuf], patterns: &[String]) -> Found {
    let mut dated: Vec<(SystemTime, PathBuf)> = Vec::new();
    for pattern in roots.iter().flat_map(|root| patterns.iter().map(|pattern| Pattern::new(root, pattern))) {
        pattern.find(&mut |path| {
            if let Some(modified) = modified(&path)
                && !dated.iter().any(|(_, known)| *known == path)
            {
                dated.push((modified, path));
            }
        });
    }
    dated.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let profiles: Vec<PathBuf> = dated.into_iter().map(|(_, path)| path).collect();
    let of_newest = profiles.first().map(|newest| with_old(newest));
    let of_perf = roots.iter().map(|root| root.join(OLD_RECORDING));
    let baseline_on_offer = of_newest.into_iter().chain(of_perf).find(|path| path.exists());
    Found { profiles, baseline_on_offer }
}

/// What recorders rename a recording to before they write it anew.
fn with_old(recording: &Path) -> PathBuf {
    let mut name = recording.file_name().unwrap_or_default().to_owned();
    name.push(".old");
    recording.with_file_name(name)
}

/// When a file or folder was written last, if it is there. A pipe is no recording: reading it could wait for ever.
fn modified(path: &Path) -> Option<SystemTime> {
    let metadata = std::fs::metadata(path).ok().filter(|metadata| metadata.is_file() || metadata.is_dir())?;
    metadata.modified().ok()
}

/// Calls `visit` for the files in a folder and those below it, `depth` levels down. Links to folders are not followed.
fn walk(folder: &Path, depth: usize, left: &mut usize, visit: &mut impl FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let name = entry.file_name();
        let hidden = name.to_string_lossy().starts_with('.');
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => {
                if depth > 0 && !hidden && !NOT_SEARCHED.iter().any(|skipped| *skipped == name) {
                    walk(&entry.path(), depth - 1, left, visit);
                }
            }
            Ok(_) => visit(&entry.path()),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn folder_with(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (age, file) in files.iter().enumerate() {
            let file = folder.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            let written = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64);
            std::fs::File::create(file).unwrap().set_modified(written).unwrap();
        }
        folder
    }

    /// `files` are written from the newest to the oldest.
    #[track_caller]
    fn check(files: &[&str], patterns: &[&str], expect: &[&str]) {
        let folder = folder_with(files);
        let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
        let found = discover(&[folder.path().to_owned()], &patterns);
        let below = |path: &PathBuf| path.strip_prefix(folder.path()).unwrap().to_string_lossy().into_owned();
        assert_eq!(found.profiles.iter().map(below).collect::<Vec<_>>(), expect);
        let old = files.contains(&OLD_RECORDING).then(|| OLD_RECORDING.to_owned());
        assert_eq!(found.baseline_on_offer.as_ref().map(below), old);
    }

    #[test]
    fn the_newest_comes_first_and_the_old_recording_is_only_offered() {
        let defaults = ["perf.data", "*.spt", "*.heatline", "uftrace.data"];
        check(&["b.spt", "perf.data", "a.spt", OLD_RECORDING], &defaults, &["b.spt", "perf.data", "a.spt"]);
        check(&["sub/perf.data", "x.txt"], &defaults, &[]);
    }

    #[test]
    fn of_uftrace_the_old_recording_is_offered_while_the_new_one_is_the_newest() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["uftrace.data", "uftrace.data.old"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        let patterns = ["perf.data", "uftrace.data"].map(str::to_owned);
        let offered = || discover(&[folder.path().to_owned()], &patterns).baseline_on_offer;
        assert_eq!(offered(), Some(path("uftrace.data.old")));
        let later = SystemTime::now() + Duration::from_secs(1000);
        std::fs::File::create(path("perf.data")).unwrap().set_modified(later).unwrap();
        assert_eq!(offered(), None);
        std::fs::write(path("perf.data.old"), "").unwrap();
        assert_eq!(offered(), Some(path("perf.data.old")));
    }

    #[test]
    fn patterns_may_name_folders_and_depths() {
        let files = ["out/a.data", "out/deep/b.data", "target/c.data", ".git/d.data"];
        check(&files, &["**/*.data"], &["out/a.data", "out/deep/b.data"]);
        check(&files, &["out/*.data", "out/a.data"], &["out/a.data"]);
        check(&files, &["*/*.data"], &["out/a.data"]);
        check(&files, &["./out/deep/b.data"], &["out/deep/b.data"]);
        check(&files, &["[", "out/a.data"], &["out/a.data"]);
    }

    #[test]
    fn a_root_may_look_like_a_pattern() {
        let pattern = Pattern::new(Path::new("/w[1]/x"), "*.spt");
        assert_eq!(pattern, Pattern { folder: "/w[1]/x".into(), rest: "*.spt".into() });
        assert!(pattern.matches(Path::new("/w[1]/x/a.spt")));
        assert!(!pattern.matches(Path::new("/w[1]/x/y/a.spt")));
        assert!(Pattern::new(Path::new("/w"), "/else/perf.data").matches(Path::new("/else/perf.data")));
    }
}
