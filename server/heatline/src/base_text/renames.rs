//! Files that were renamed or moved since they were built, as version control sees it: a file that is not where it was,
//! and one that was not there then and resembles it. Neither has to be committed.

use super::history::{Found, Repository};
use gix::ObjectId;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A look for where files were in the history ends then, and so does one for where they are.
const LONGEST: Duration = Duration::from_secs(3);

/// So many files of one repository are looked for.
const MOST_LOST: usize = 200;

/// More files than this are not looked through.
const MOST_FILES: usize = 500_000;

/// How many files may be the new name of one that was renamed.
const MOST_CANDIDATES: usize = 500;

/// A file that has kept a smaller share of its lines was not renamed.
const LEAST_ALIKE: f64 = 0.5;

/// A file of the same name that has kept so much is the one that was moved, and no other is looked at.
const CLEARLY_ALIKE: f64 = 0.9;

/// A file so many times larger or smaller is not compared.
const MOST_TIMES: u64 = 4;

/// A file that is not where it was.
pub struct Lost {
    /// Where it may have been in the repository, likeliest first.
    pub names: Vec<String>,
    /// Its text.
    pub text: Arc<str>,
    /// What a search has found of it.
    pub found: Option<Found>,
}

/// From where to where a file was renamed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Renamed {
    /// Where it was.
    pub from: PathBuf,
    /// Where it is.
    pub to: PathBuf,
}

impl Renamed {
    /// Whether the file has not come back.
    pub fn holds(&self) -> bool {
        !self.from.is_file()
    }

    /// Whether the file is there.
    pub fn is_there(&self) -> bool {
        self.to.is_file() && self.holds()
    }
}

/// The files of a commit that had a lost file.
struct Before {
    name: String,
    files: Arc<HashSet<String>>,
}

impl Repository {
    /// Where lost files are now, in their order; those behind the end are nowhere. A path for which `is_other` holds is no answer.
    pub fn follow(
        &self,
        lost: &[Lost],
        is_other: &dyn Fn(&Path) -> bool,
        cancelled: &AtomicBool,
    ) -> Vec<Option<Renamed>> {
        let lost = &lost[..lost.len().min(MOST_LOST)];
        let before = self.befores(lost, cancelled);
        let is_gone = |before: &&Before| !self.folder.join(&before.name).exists();
        let gone: Vec<Option<&Before>> = before.iter().map(|before| before.as_ref().filter(is_gone)).collect();
        if gone.iter().all(Option::is_none) {
            return Vec::new();
        }
        let here = files_below(&self.folder);
        let begin = Instant::now();
        let is_over = || cancelled.load(Ordering::Relaxed) || begin.elapsed() > LONGEST;
        let mut pairs: Vec<Pair> = Vec::new();
        for (number, before) in gone.iter().enumerate().filter_map(|(number, before)| Some((number, (*before)?))) {
            let new = here.iter().filter(|path| !before.files.contains(*path));
            let mut new: Vec<&String> = new.filter(|path| !is_other(&self.folder.join(path))).collect();
            new.sort_by_key(|path| Reverse(kinship(path, &before.name)));
            for path in new.into_iter().take(MOST_CANDIDATES).take_while(|_| !is_over()) {
                let share = share_in(&self.folder.join(path), &lost[number].text);
                let kinship = kinship(path, &before.name);
                if share >= LEAST_ALIKE {
                    pairs.push(Pair { share, kinship, number, path });
                }
                if share >= CLEARLY_ALIKE && kinship.0 {
                    break;
                }
            }
        }
        pairs.sort_by(|a, b| b.share.total_cmp(&a.share).then(b.kinship.cmp(&a.kinship)).then(a.path.cmp(b.path)));
        let mut renamed: Vec<Option<Renamed>> = lost.iter().map(|_| None).collect();
        let mut taken: HashSet<&str> = HashSet::new();
        for pair in &pairs {
            if let (None, Some(before)) = (&renamed[pair.number], gone[pair.number])
                && taken.insert(pair.path)
            {
                let [from, to] = [&before.name, pair.path].map(|name| self.folder.join(name));
                renamed[pair.number] = Some(Renamed { from, to });
            }
        }
        renamed
    }

    /// Where each file was, in what a search has found or else in the newest commit that has it.
    fn befores(&self, lost: &[Lost], cancelled: &AtomicBool) -> Vec<Option<Before>> {
        let mut lists: HashMap<ObjectId, Arc<HashSet<String>>> = HashMap::new();
        let mut list = |commit: ObjectId| lists.entry(commit).or_insert_with(|| self.names_of(commit).into()).clone();
        let mut befores: Vec<Option<Before>> = lost.iter().map(|_| None).collect();
        let mut open: Vec<usize> = Vec::new();
        for (number, lost) in lost.iter().enumerate() {
            match &lost.found {
                Some(found) => {
                    befores[number] = Some(Before { name: found.path.clone(), files: list(found.in_commit) });
                }
                None => open.push(number),
            }
        }
        let begin = Instant::now();
        for commit in self.commits() {
            if open.is_empty() || cancelled.load(Ordering::Relaxed) || begin.elapsed() > LONGEST {
                break;
            }
            open.retain(|&number| match self.name_in(commit, &lost[number]) {
                Whereabouts::Unknown => true,
                Whereabouts::AnotherFile => false,
                Whereabouts::Name(name) => {
                    befores[number] = Some(Before { name, files: list(commit) });
                    false
                }
            });
        }
        befores
    }

    /// Under which of its names a commit has a file.
    fn name_in(&self, commit: ObjectId, lost: &Lost) -> Whereabouts {
        let mut answer = Whereabouts::Unknown;
        for name in &lost.names {
            let Some(text) = self.text_at(commit, name) else { continue };
            if alike(&lost.text, &text) >= LEAST_ALIKE {
                return Whereabouts::Name(name.clone());
            }
            answer = Whereabouts::AnotherFile;
        }
        answer
    }
}

enum Whereabouts {
    Unknown,
    AnotherFile,
    Name(String),
}

/// A lost file and one that may be it.
struct Pair<'a> {
    share: f64,
    kinship: (bool, bool),
    number: usize,
    path: &'a String,
}

/// Whether two paths have the same name, and the same ending.
fn kinship(a: &str, b: &str) -> (bool, bool) {
    let [a, b] = [a, b].map(Path::new);
    (a.file_name() == b.file_name(), a.extension() == b.extension())
}

/// The files below a folder but for those that version control ignores, with `/`.
fn files_below(folder: &Path) -> Vec<String> {
    let entries = ignore::WalkBuilder::new(folder).require_git(false).build().flatten();
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let inside = |path: &Path| Some(path.strip_prefix(folder).ok()?.to_string_lossy().replace('\\', "/"));
    files.filter_map(|entry| inside(entry.path())).take(MOST_FILES).collect()
}

/// Whether a file may be a text under another name.
pub fn may_be(path: &Path, text: &str) -> bool {
    share_in(path, text) >= LEAST_ALIKE
}

/// The share of a text's lines that a file has.
fn share_in(path: &Path, text: &str) -> f64 {
    let length = path.metadata().map_or(0, |data| data.len());
    let whole = text.len() as u64;
    if length > whole.saturating_mul(MOST_TIMES) || whole > length.saturating_mul(MOST_TIMES) {
        return 0.0;
    }
    super::read(path).map_or(0.0, |now| alike(text, &now))
}

/// The share of the lines of the longer text that both have. Lines without a letter or digit are in every text.
fn alike(a: &str, b: &str) -> f64 {
    let says = |line: &&str| line.chars().any(char::is_alphanumeric);
    let mut left: HashMap<&str, usize> = HashMap::new();
    let mut of_a = 0usize;
    for line in a.lines().map(str::trim).filter(says) {
        *left.entry(line).or_default() += 1;
        of_a += 1;
    }
    let (mut both, mut of_b) = (0usize, 0usize);
    for line in b.lines().map(str::trim).filter(says) {
        of_b += 1;
        if let Some(count) = left.get_mut(line).filter(|count| **count > 0) {
            *count -= 1;
            both += 1;
        }
    }
    both as f64 / of_a.max(of_b).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_as_alike_as_the_lines_that_say_something() {
        assert_eq!(alike("int a;\n\n{\n}\n", "  int a;\r\n"), 1.0);
        assert_eq!(alike("a\nb\nb\n", "b\nc\nd\ne\n"), 0.25);
        assert_eq!(alike("{\n}\n", "{\n}\n"), 0.0);
    }
}
