//! Texts out of the history of a repository: read, never written, and no program is started.
//!
//! One walk over the commits, newest first, serves all files. Folders that are as they were in a commit seen before are
//! not looked into again, so that most commits cost one look at their root.

use super::{checksum, guard};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::revision::walk::Sorting;
use gix::traverse::commit::simple::CommitTimeOrder;
use heatline_annotate::placement::{Declaration, declared, fit};
use heatline_symbols::Checksum;
use std::collections::{BTreeSet, HashSet};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A search that takes longer ends without having found the rest.
const LONGEST: Duration = Duration::from_secs(10);

/// A file that none of so many commits from before the build has is none of the repository, and not looked for any more.
const MOST_WITHOUT: usize = 1_000;

/// More branches than this are not looked at.
const MOST_TIPS: usize = 1_000;

/// Larger files are no sources.
const LARGEST: u64 = 16 << 20;

/// So much of what was read is kept while searching.
const CACHE: usize = 64 << 20;

/// A file whose text is wanted.
pub struct Want<'a> {
    /// Where it may have been in the repository, with `/`; several where only the end of its path is known.
    pub paths: Vec<String>,
    /// What its text is known by.
    pub checksums: &'a [Checksum],
    /// Without checksums: seconds since 1970 that the commit may not be newer than.
    pub not_newer: Option<i64>,
    /// Without checksums: the path that tells how comments are written.
    pub recorded: &'a str,
    /// Without checksums: the lines that must have code.
    pub lines: &'a BTreeSet<NonZeroU32>,
    /// Without checksums: the functions that must be declared where debug information says.
    pub declarations: &'a [Declaration],
}

/// With fewer of the functions on the lines of their declarations a text is another one.
pub const LEAST_DECLARED: f64 = 0.9;

impl Want<'_> {
    fn is(&self, bytes: &[u8], text: &str) -> bool {
        if self.checksums.is_empty() {
            fit(text, self.recorded, self.lines.iter().copied()).is_whole()
                && declared(text, self.declarations).share() >= LEAST_DECLARED
        } else {
            checksum::has_any(bytes, self.checksums)
        }
    }
}

/// A text of the history.
#[derive(Clone, Debug)]
pub struct Found {
    /// The text.
    pub text: Arc<str>,
    /// The commit it was found in, shortened.
    pub commit: String,
    /// Where it was in the repository.
    pub path: String,
    /// The commit.
    pub in_commit: ObjectId,
}

/// A repository that is only read.
pub struct Repository {
    repo: gix::Repository,
    /// Its working folder, links resolved.
    pub folder: PathBuf,
}

impl Repository {
    /// The repository that a folder is in, if it is in one. Configuration is read from the repository alone.
    ///
    /// # Errors
    /// Why the history cannot be read: reading it might never end, or it is damaged.
    pub fn of(folder: &Path) -> Result<Option<Self>, String> {
        let nearest = folder.ancestors().find(|above| above.join(".git").exists());
        let unreadable =
            |why: String| format!("{}: the history cannot be read: {why}", nearest.unwrap_or(folder).display());
        if !guard::may_be_opened(folder) {
            return Err(unreadable("it holds pipes, devices or too many files".into()));
        }
        let path = match gix::discover::upwards(folder) {
            Ok((path, _)) => path,
            Err(_) if nearest.is_none() => return Ok(None),
            Err(_) => return Err(unreadable("its .git is no whole repository".into())),
        };
        let repo = gix::open_opts(path.as_ref().to_owned(), gix::open::Options::isolated());
        let mut repo = repo.map_err(|error| unreadable(error.to_string()))?;
        repo.object_cache_size_if_unset(CACHE);
        let Some(folder) = repo.workdir().and_then(|folder| folder.canonicalize().ok()) else { return Ok(None) };
        if nearest.and_then(|nearest| nearest.canonicalize().ok()).is_some_and(|nearest| nearest != folder) {
            return Err(unreadable("its .git is no whole repository".into()));
        }
        if !is_whole(&repo) {
            return Err(unreadable("what is checked out is missing or damaged in it; git fsck says more".into()));
        }
        Ok(Some(Repository { repo, folder }))
    }

    /// Looks for the texts of files; one answer for each. Ends early when `cancelled` is set or time is up.
    pub fn search(&self, wants: &[Want<'_>], cancelled: &AtomicBool) -> Vec<Option<Found>> {
        let mut search = Search::new(&self.repo, wants, cancelled);
        search.what_was_checked_out();
        search.walk();
        search.found
    }

    /// The text of a file in a commit, if it has one.
    pub fn text_at(&self, commit: ObjectId, path: &str) -> Option<String> {
        let tree = self.repo.find_commit(commit).ok()?.tree().ok()?;
        let entry = tree.lookup_entry(path.split('/')).ok()??;
        let bytes = text_of(&self.repo, entry.mode().is_blob().then(|| entry.object_id())?)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The paths of all files of a commit.
    pub fn names_of(&self, commit: ObjectId) -> HashSet<String> {
        let mut names = HashSet::new();
        let tree = self.repo.find_commit(commit).ok().and_then(|commit| Some(commit.tree_id().ok()?.detach()));
        let mut open: Vec<(String, ObjectId)> = tree.map(|id| (String::new(), id)).into_iter().collect();
        while let Some((folder, id)) = open.pop() {
            let Ok(tree) = self.repo.find_tree(id) else { continue };
            for entry in tree.iter().flatten() {
                let path = format!("{folder}{}", entry.filename().to_str_lossy());
                if entry.mode().is_tree() {
                    open.push((path + "/", entry.object_id()));
                } else if entry.mode().is_blob() {
                    names.insert(path);
                }
            }
        }
        names
    }

    /// All commits, those of what is checked out first, each time newest first.
    pub fn commits(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let head: Vec<ObjectId> = self.repo.head_id().ok().map(gix::Id::detach).into_iter().collect();
        let walk = |tips: Vec<ObjectId>| {
            let sorting = Sorting::ByCommitTime(CommitTimeOrder::NewestFirst);
            let walk = self.repo.rev_walk(tips).sorting(sorting).use_commit_graph(true).all();
            walk.into_iter().flatten().flatten().map(|info| info.id)
        };
        let mut seen = HashSet::new();
        walk(head)
            .chain(std::iter::once_with(move || walk(tips(&self.repo))).flatten())
            .filter(move |id| seen.insert(*id))
    }
}

/// Whether the commit that is checked out can be read. Before the first there is none.
fn is_whole(repo: &gix::Repository) -> bool {
    let is_unborn = || repo.head().is_ok_and(|head| head.is_unborn());
    repo.head_id().map_or_else(|_| is_unborn(), |head| repo.find_commit(head).is_ok())
}

fn text_of(repo: &gix::Repository, id: ObjectId) -> Option<Vec<u8>> {
    repo.find_header(id).ok().filter(|header| header.size() <= LARGEST)?;
    Some(repo.find_blob(id).ok()?.take_data())
}

/// A folder or file that is looked for, and what is in it.
#[derive(Default)]
struct Node {
    children: Vec<(Vec<u8>, usize)>,
    wants: Vec<usize>,
    path: String,
}

struct Search<'a> {
    repo: &'a gix::Repository,
    wants: &'a [Want<'a>],
    cancelled: &'a AtomicBool,
    begin: Instant,
    nodes: Vec<Node>,
    /// What was looked into: node, object, and for how many wants.
    seen: HashSet<(usize, ObjectId, usize)>,
    found: Vec<Option<Found>>,
    /// For each want how many commits from before the build have no file of its names; `None` once one has.
    without: Vec<Option<usize>>,
}

/// The commit that is looked into.
#[derive(Clone, Copy)]
struct At {
    commit: ObjectId,
    /// Its time; wants that may not be newer are looked for only if they are not.
    time: i64,
    /// Tells apart looks for different wants.
    round: usize,
}

impl<'a> Search<'a> {
    fn new(repo: &'a gix::Repository, wants: &'a [Want<'a>], cancelled: &'a AtomicBool) -> Self {
        let mut search = Search {
            repo,
            wants,
            cancelled,
            begin: Instant::now(),
            nodes: vec![Node::default()],
            seen: HashSet::new(),
            found: vec![None; wants.len()],
            without: vec![Some(0); wants.len()],
        };
        for (number, want) in wants.iter().enumerate() {
            want.paths.iter().for_each(|path| search.add(path, number));
        }
        search
    }

    fn add(&mut self, path: &str, want: usize) {
        let mut at = 0;
        for name in path.split('/') {
            let known = self.nodes[at].children.iter().find(|(known, _)| known == name.as_bytes());
            at = match known {
                Some((_, node)) => *node,
                None => {
                    self.nodes.push(Node::default());
                    let node = self.nodes.len() - 1;
                    self.nodes[at].children.push((name.as_bytes().to_vec(), node));
                    node
                }
            };
        }
        self.nodes[at].wants.push(want);
        self.nodes[at].path = path.to_owned();
    }

    fn is_over(&self) -> bool {
        let is_hopeless = |without: &Option<usize>| without.is_some_and(|count| count >= MOST_WITHOUT);
        self.found.iter().zip(&self.without).all(|(found, without)| found.is_some() || is_hopeless(without))
            || self.cancelled.load(Ordering::Relaxed)
            || self.begin.elapsed() > LONGEST
    }

    /// Where nothing but a time is known, what was checked out at that time is the best guess.
    fn what_was_checked_out(&mut self) {
        let mut times: Vec<i64> = self.wants.iter().filter_map(|want| want.not_newer).collect();
        times.sort_unstable();
        times.dedup();
        for time in times {
            if let Some(commit) = self.checked_out_at(time) {
                // Later than the time only by the clock of who committed it.
                self.look_into(At { commit, time, round: usize::MAX - time as usize % 1_000_000 });
            }
        }
    }

    fn checked_out_at(&self, time: i64) -> Option<ObjectId> {
        let head = self.repo.head().ok()?;
        let mut log = head.log_iter();
        let entries = log.all().ok()??;
        let entries = entries.filter_map(Result::ok).map(|line| {
            let at = line.signature.time().map_or(i64::MAX, |time| time.seconds);
            (at, line.new_oid())
        });
        entries.take_while(|(at, _)| *at <= time).last().map(|(_, id)| id)
    }

    fn walk(&mut self) {
        let sorting = Sorting::ByCommitTime(CommitTimeOrder::NewestFirst);
        let Ok(walk) = self.repo.rev_walk(tips(self.repo)).sorting(sorting).use_commit_graph(true).all() else {
            return;
        };
        for info in walk {
            if self.is_over() {
                return;
            }
            // A shallow clone ends somewhere.
            let Ok(info) = info else { continue };
            let time = info.commit_time.unwrap_or(i64::MAX);
            let round = self.wants.iter().filter(|want| is_due(want, time)).count();
            if round > 0 {
                self.look_into(At { commit: info.id, time, round });
                self.count_without(time);
            }
        }
    }

    fn count_without(&mut self, time: i64) {
        for (want, without) in self.wants.iter().zip(&mut self.without) {
            if want.not_newer.is_none_or(|limit| time <= limit) {
                without.iter_mut().for_each(|count| *count += 1);
            }
        }
    }

    fn look_into(&mut self, at: At) {
        let tree = self.repo.find_commit(at.commit).ok().and_then(|commit| Some(commit.tree_id().ok()?.detach()));
        if let Some(tree) = tree {
            self.visit(0, tree, at);
        }
    }

    fn visit(&mut self, node: usize, id: ObjectId, at: At) {
        if !self.seen.insert((node, id, at.round)) {
            return;
        }
        for want in self.nodes[node].wants.clone() {
            self.without[want] = None;
            if self.found[want].is_none() && is_due(&self.wants[want], at.time) {
                self.found[want] = self.examine(&self.wants[want], node, id, at);
            }
        }
        if self.nodes[node].children.is_empty() {
            return;
        }
        let Ok(tree) = self.repo.find_tree(id) else { return };
        let mut inside = Vec::new();
        for entry in tree.iter().flatten() {
            let child = self.nodes[node].children.iter().find(|(name, _)| name == entry.filename().as_bytes());
            inside.extend(child.map(|(_, child)| (*child, entry.object_id())));
        }
        inside.into_iter().for_each(|(child, id)| self.visit(child, id, at));
    }

    /// Whether a file is the wanted one.
    fn examine(&self, want: &Want<'_>, node: usize, id: ObjectId, at: At) -> Option<Found> {
        let bytes = text_of(self.repo, id)?;
        let text = String::from_utf8_lossy(&bytes);
        want.is(&bytes, &text).then(|| Found {
            text: text.into(),
            commit: at.commit.to_hex_with_len(12).to_string(),
            path: self.nodes[node].path.clone(),
            in_commit: at.commit,
        })
    }
}

/// Where the history begins: what is checked out, branches and what was stashed.
fn tips(repo: &gix::Repository) -> Vec<ObjectId> {
    let mut tips: Vec<ObjectId> = repo.head_id().ok().map(gix::Id::detach).into_iter().collect();
    let Ok(references) = repo.references() else { return tips };
    let Ok(all) = references.all() else { return tips };
    let is_wanted = |name: &[u8]| {
        [&b"refs/heads/"[..], b"refs/remotes/", b"refs/stash"].iter().any(|prefix| name.starts_with(prefix))
    };
    let wanted = all.filter_map(Result::ok).filter(|reference| is_wanted(reference.name().as_bstr()));
    let commits = wanted.take(MOST_TIPS).filter_map(|mut reference| Some(reference.peel_to_id().ok()?.detach()));
    tips.extend(commits.filter(|id| repo.find_commit(*id).is_ok()));
    tips
}

/// Whether a commit of a time may hold the text.
fn is_due(want: &Want<'_>, time: i64) -> bool {
    !want.checksums.is_empty() || want.not_newer.is_some_and(|limit| time <= limit)
}
