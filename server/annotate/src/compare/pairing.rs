//! Which rows of several recordings are one place.
//!
//! The first recording that is compared with the baseline is the reference: lines of all others are brought to the
//! lines of its sources, by the difference of the two texts where both are known, else by the function and the
//! distance from its beginning. By the number of the line alone only where both recorded the same build of a module:
//! its line table is one, so that even lines of which nothing else is known are the same.

use super::ledger::{Entry, Ledger, Place};
use super::names::without_clone_suffix;
use crate::path::{comparison_key, components, folds_case, is_windows};
use crate::placement::{Comparison, LineMap, Placement};
use crate::table::By;
use heatline_profile::Identity;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;

/// A function's module and name.
type FunctionKey = (Option<String>, String);

/// A file's number and a line of it.
type FileLine = (u32, NonZeroU32);

/// By what two rows were found to be one place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Pairing {
    /// The same names.
    #[default]
    Exact,
    /// The same line of source text, wherever it stands in the two texts.
    Content,
    /// The same function and the same distance from its beginning.
    Offset,
    /// The same name once what a compiler appends to clones is left out.
    Name,
}

impl Pairing {
    /// The word that JSON has for it.
    pub fn name(self) -> &'static str {
        match self {
            Pairing::Exact => "exact",
            Pairing::Content => "content",
            Pairing::Offset => "function-offset",
            Pairing::Name => "name",
        }
    }
}

/// The common rows of several ledgers.
#[derive(Debug, Default)]
pub(crate) struct Joint {
    /// For each ledger and each of its entries the number of the common row.
    pub(crate) rows_of: Vec<Vec<u32>>,
    /// The names of each row and how it was paired.
    pub(crate) rows: Vec<(Place, Pairing)>,
}

/// What makes a row one with another.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Key {
    module: Option<String>,
    name: Option<String>,
    file: Option<String>,
    line: LineAt,
    others: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
enum LineAt {
    /// The row is of no line.
    #[default]
    Nowhere,
    /// A line of the reference's text.
    Line(u32),
    /// Not in the reference's text: what the line says.
    Removed(String),
    /// Not in the reference: so far from the beginning of a function.
    RemovedAt(i64),
    /// A line that nothing is known of, of one recording alone.
    Alone(usize, u32),
}

/// Brings the rows of all ledgers together. `reference` is the number of the one whose places count, `columns` says for
/// each ledger which column of the comparison it is a run of.
pub(crate) fn pair(ledgers: &[&Ledger], columns: &[usize], reference: usize) -> Joint {
    let Some(&main) = ledgers.get(reference) else { return Joint::default() };
    let modules = ModuleNames::of(ledgers);
    let ambiguous = ambiguous_names(ledgers, &modules);
    let mut keyed: Vec<Vec<(Key, Pairing)>> = Vec::with_capacity(ledgers.len());
    for (number, ledger) in ledgers.iter().enumerate() {
        let lines = (ledger.by == Some(By::Line)).then(|| Lines::new(ledger, main, number == reference, &modules));
        let files = FileMap::new(ledger, main);
        let context = Context { number, ledger, main, modules: &modules, files: &files, ambiguous: &ambiguous };
        keyed.push(ledger.entries.iter().map(|entry| context.key(entry, lines.as_ref())).collect());
    }
    let mut joint = join(ledgers, reference, &keyed);
    pair_leftovers(&mut joint, ledgers, columns, &keyed, &ambiguous);
    joint
}

/// Numbers the rows by their keys. The reference's names count, then those of the first ledger that has the row.
fn join(ledgers: &[&Ledger], reference: usize, keyed: &[Vec<(Key, Pairing)>]) -> Joint {
    let mut numbers: HashMap<&Key, u32> = HashMap::new();
    let mut joint = Joint { rows_of: vec![Vec::new(); ledgers.len()], rows: Vec::new() };
    let order = std::iter::once(reference).chain((0..ledgers.len()).filter(|&at| at != reference));
    for number in order {
        let keyed_entries = ledgers[number].entries.iter().zip(&keyed[number]);
        let rows = keyed_entries.map(|(entry, (key, pairing))| {
            let row = *numbers.entry(key).or_insert_with(|| {
                joint.rows.push((entry.place.clone(), Pairing::Exact));
                joint.rows.len() as u32 - 1
            });
            if number != reference {
                let known = &mut joint.rows[row as usize].1;
                *known = (*known).max(*pairing);
            }
            row
        });
        joint.rows_of[number] = rows.collect();
    }
    joint
}

/// The base names of modules, one for all modules of one identity.
struct ModuleNames {
    of_identity: HashMap<Identity, String>,
}

impl ModuleNames {
    fn of(ledgers: &[&Ledger]) -> Self {
        let mut of_identity: HashMap<Identity, String> = HashMap::new();
        for (name, identity) in ledgers.iter().flat_map(|ledger| &ledger.modules) {
            if let Some(identity) = identity {
                of_identity.entry(identity.clone()).or_insert_with(|| name.clone());
            }
        }
        ModuleNames { of_identity }
    }

    fn name(&self, ledger: &Ledger, module: u32) -> Option<String> {
        let (name, identity) = ledger.modules.get(module as usize)?;
        let shared = identity.as_ref().and_then(|identity| self.of_identity.get(identity)).unwrap_or(name);
        // Windows does not tell names apart by case.
        let folds = shared.to_ascii_lowercase();
        let windows = [".exe", ".dll", ".sys"].iter().any(|ending| folds.ends_with(ending));
        Some(if windows { folds } else { shared.clone() })
    }
}

/// Names of several functions of one module in one recording: the file has to tell them apart.
fn ambiguous_names(ledgers: &[&Ledger], modules: &ModuleNames) -> HashSet<FunctionKey> {
    let mut ambiguous = HashSet::new();
    for ledger in ledgers {
        let mut files: HashMap<(Option<u32>, &str), Option<u32>> = HashMap::new();
        for entry in ledger.entries.iter().filter(|_| ledger.by == Some(By::Function)) {
            let Some(name) = entry.linkage.as_deref() else { continue };
            let first = *files.entry((entry.module, name)).or_insert(entry.file);
            if first != entry.file {
                let module = entry.module.and_then(|module| modules.name(ledger, module));
                ambiguous.insert((module, name.to_owned()));
            }
        }
    }
    ambiguous
}

struct Context<'a> {
    number: usize,
    ledger: &'a Ledger,
    main: &'a Ledger,
    modules: &'a ModuleNames,
    files: &'a FileMap,
    ambiguous: &'a HashSet<FunctionKey>,
}

impl Context<'_> {
    fn key(&self, entry: &Entry, lines: Option<&Lines>) -> (Key, Pairing) {
        let module = entry.module.and_then(|module| self.modules.name(self.ledger, module));
        match (self.ledger.by, entry.file, entry.place.line) {
            (Some(By::Line), Some(file), Some(line)) => {
                let (key, pairing) = self.line(entry, file, line, lines);
                (Key { module, ..key }, pairing)
            }
            (Some(By::File), Some(file), _) => {
                (Key { module, file: Some(self.file(file)), ..Key::default() }, Pairing::Exact)
            }
            (None, ..) => {
                let Place { file, line, others, .. } = entry.place.clone();
                let line = line.map_or(LineAt::Nowhere, |line| LineAt::Line(line.get()));
                (Key { module, name: entry.linkage.clone(), file, line, others }, Pairing::Exact)
            }
            _ => {
                let name = entry.linkage.clone();
                let ambiguous = name.as_ref().is_some_and(|n| self.ambiguous.contains(&(module.clone(), n.clone())));
                let file =
                    entry.file.filter(|_| ambiguous).map(|file| base_name(&self.ledger.files[file as usize].path));
                (Key { module, name, file, ..Key::default() }, Pairing::Exact)
            }
        }
    }

    /// A file by the path it has in the reference, else by its own.
    fn file(&self, file: u32) -> String {
        let path = match self.files.of[file as usize] {
            Some(file) => &self.main.files[file as usize].path,
            None => &self.ledger.files[file as usize].path,
        };
        comparison_key(path)
    }

    /// The key of a line but for its module.
    fn line(&self, entry: &Entry, file: u32, line: NonZeroU32, lines: Option<&Lines>) -> (Key, Pairing) {
        let key = |line, file| Key { line, file: Some(file), ..Key::default() };
        let path = self.file(file);
        match (lines.and_then(|lines| lines.find(entry, file, line)), &entry.owner) {
            (Some((Found::Line(line, elsewhere), pairing)), _) => {
                let path = elsewhere.map_or(path, |file| comparison_key(&self.main.files[file as usize].path));
                (key(LineAt::Line(line.get()), path), pairing)
            }
            (Some((Found::Removed(text), pairing)), _) => (key(LineAt::Removed(text), path), pairing),
            (None, Some((name, offset))) => {
                let name = Some(without_clone_suffix(name).to_owned());
                (Key { name, ..key(LineAt::RemovedAt(*offset), path) }, Pairing::Offset)
            }
            (None, None) => (key(LineAt::Alone(self.number, line.get()), path), Pairing::Exact),
        }
    }
}

/// Which file of the reference each file is: the one at the same path, else the one that shares the longest end of its
/// path and is at no other file's path.
struct FileMap {
    of: Vec<Option<u32>>,
}

impl FileMap {
    fn new(ledger: &Ledger, main: &Ledger) -> Self {
        let exact: HashMap<String, u32> =
            (0..).zip(&main.files).map(|(id, file)| (comparison_key(&file.path), id)).collect();
        let mut of: Vec<Option<u32>> =
            ledger.files.iter().map(|file| exact.get(&comparison_key(&file.path)).copied()).collect();
        let mut taken = vec![false; main.files.len()];
        of.iter().flatten().for_each(|&id| taken[id as usize] = true);
        let mut free: HashMap<String, Vec<u32>> = HashMap::new();
        for (id, file) in (0u32..).zip(&main.files).filter(|(id, _)| !taken[*id as usize]) {
            free.entry(base_name(&file.path)).or_default().push(id);
        }
        // The best of both sides, so that two files never become one.
        let mut wishes: Vec<(usize, usize, u32)> = Vec::new();
        for (number, file) in ledger.files.iter().enumerate().filter(|(number, _)| of[*number].is_none()) {
            let candidates = free.get(&base_name(&file.path)).into_iter().flatten();
            let shared = |id: u32| shared_end(&file.path, &main.files[id as usize].path);
            let best = candidates.clone().map(|&id| shared(id)).max();
            let mut winners = candidates.filter(|&&id| Some(shared(id)) == best);
            if let (Some(best), Some(&winner), None) = (best, winners.next(), winners.next()) {
                wishes.push((best, number, winner));
            }
        }
        wishes.sort_by_key(|&(shared, number, _)| (std::cmp::Reverse(shared), number));
        for (_, number, id) in wishes {
            if !std::mem::replace(&mut taken[id as usize], true) {
                of[number] = Some(id);
            }
        }
        FileMap { of }
    }
}

fn base_name(path: &str) -> String {
    let name = components(path).next_back().unwrap_or(path);
    if folds_case(path) || is_windows(path) { name.to_lowercase() } else { name.to_owned() }
}

fn shared_end(first: &str, second: &str) -> usize {
    components(first).rev().zip(components(second).rev()).take_while(|(a, b)| a == b).count()
}

/// Where a line is in the reference.
enum Found {
    /// On this line, of another file than the one its own became if one is named.
    Line(NonZeroU32, Option<u32>),
    /// Not any more; what it says.
    Removed(String),
}

/// The lines of one ledger in the sources of the reference.
struct Lines {
    is_reference: bool,
    /// By file: how its text became that of the reference, where both are known.
    texts: Vec<Option<TextPair>>,
    /// Where functions of the reference begin, by module and name without marks of clones.
    starts: HashMap<FunctionKey, Vec<FileLine>>,
    /// Functions that are several in the ledger, of one name: which of them one of the reference is cannot be told.
    namesakes: HashSet<FunctionKey>,
    /// The same by file, ascending.
    starts_of_file: HashMap<u32, Vec<(NonZeroU32, String)>>,
    modules: Vec<Option<String>>,
    /// By module: whether the reference recorded the same build of it.
    same_builds: Vec<bool>,
    files: FileMap,
}

enum TextPair {
    Same,
    Placed(Placed),
}

/// The lines of an old text in a new one.
struct Placed {
    map: LineMap,
    /// What the old lines say.
    words: Vec<String>,
    /// The lines of the new text that are lines of the old.
    taken: HashSet<NonZeroU32>,
}

impl Placed {
    /// `None` if the texts have too little in common.
    fn new(old: &str, new: &str) -> Option<Self> {
        let words: Vec<String> = old.lines().map(|line| line.trim().to_owned()).collect();
        let all = (1..=words.len() as u32).filter_map(NonZeroU32::new);
        let placed = Comparison::new(old, new, all);
        let stays =
            placed.map.all().filter(|(_, _, placement)| matches!(placement, Placement::Exact | Placement::Moved));
        let taken = stays.filter_map(|(_, now, _)| NonZeroU32::new(now.checked_add(1)?)).collect();
        placed.is_sure().then_some(Placed { map: placed.map, words, taken })
    }

    fn words(&self, line: NonZeroU32) -> String {
        self.words.get(line.get() as usize - 1).cloned().unwrap_or_default()
    }
}

impl Lines {
    fn new(ledger: &Ledger, main: &Ledger, is_reference: bool, modules: &ModuleNames) -> Self {
        let files = FileMap::new(ledger, main);
        let texts = (0..ledger.files.len()).map(|at| {
            let (old, new) = (&ledger.files[at], &main.files[files.of[at]? as usize]);
            if old.checksum.is_some() && old.checksum == new.checksum {
                return Some(TextPair::Same);
            }
            let (old, new) = (old.text.as_ref()?, new.text.as_ref()?);
            if old == new {
                return Some(TextPair::Same);
            }
            Placed::new(old, new).map(TextPair::Placed)
        });
        let mut starts: HashMap<FunctionKey, Vec<FileLine>> = HashMap::new();
        let mut starts_of_file: HashMap<u32, Vec<(NonZeroU32, String)>> = HashMap::new();
        for start in &main.starts {
            let key = (modules.name(main, start.module), without_clone_suffix(&start.name).to_owned());
            starts_of_file.entry(start.file).or_default().push((start.line, key.1.clone()));
            starts.entry(key).or_default().push((start.file, start.line));
        }
        starts_of_file.values_mut().for_each(|starts| starts.sort());
        let mut first: HashMap<FunctionKey, FileLine> = HashMap::new();
        let mut namesakes = HashSet::new();
        for start in &ledger.starts {
            let key = (modules.name(ledger, start.module), without_clone_suffix(&start.name).to_owned());
            if *first.entry(key.clone()).or_insert((start.file, start.line)) != (start.file, start.line) {
                namesakes.insert(key);
            }
        }
        let names = (0..ledger.modules.len() as u32).map(|module| modules.name(ledger, module));
        let builds: HashSet<&Identity> = main.modules.iter().filter_map(|(_, identity)| identity.as_ref()).collect();
        let same_builds =
            ledger.modules.iter().map(|(_, identity)| identity.as_ref().is_some_and(|id| builds.contains(id)));
        Lines {
            is_reference,
            texts: texts.collect(),
            starts,
            namesakes,
            starts_of_file,
            modules: names.collect(),
            same_builds: same_builds.collect(),
            files,
        }
    }

    fn find(&self, entry: &Entry, file: u32, line: NonZeroU32) -> Option<(Found, Pairing)> {
        let is_same_build = entry.module.is_some_and(|module| self.same_builds[module as usize]);
        if self.is_reference || is_same_build {
            return Some((Found::Line(line, None), Pairing::Exact));
        }
        match &self.texts[file as usize] {
            Some(TextPair::Same) => Some((Found::Line(line, None), Pairing::Content)),
            Some(TextPair::Placed(placed)) => Some(self.by_text(placed, entry, file, line)?),
            None => self.by_offset(entry, file),
        }
    }

    fn by_text(&self, placed: &Placed, entry: &Entry, file: u32, line: NonZeroU32) -> Option<(Found, Pairing)> {
        let (now, placement) = placed.map.find(line)?;
        let now = NonZeroU32::new(now.checked_add(1)?)?;
        // A line that was edited is still the line if it is of the same function.
        let foreign = placement == Placement::Changed && !self.is_of_owner(entry, file, now);
        if placement != Placement::Gone && !foreign {
            return Some((Found::Line(now, None), Pairing::Content));
        }
        // Its function may have moved and a fresh line stand where it stood.
        match self.by_offset(entry, file) {
            Some((Found::Line(now, Some(to)), Pairing::Offset))
                if Some(to) == self.files.of[file as usize] && !placed.taken.contains(&now) =>
            {
                Some((Found::Line(now, None), Pairing::Offset))
            }
            _ => Some((Found::Removed(placed.words(line)), Pairing::Content)),
        }
    }

    /// Whether the function that a line of the reference is of is the one that a row is of, as far as is known.
    fn is_of_owner(&self, entry: &Entry, file: u32, line: NonZeroU32) -> bool {
        let (Some((name, _)), Some(file)) = (&entry.owner, self.files.of[file as usize]) else { return true };
        let Some(starts) = self.starts_of_file.get(&file) else { return true };
        let above = starts.partition_point(|(start, _)| *start <= line);
        let owner = above.checked_sub(1).and_then(|at| starts.get(at));
        owner.is_none_or(|(_, owner)| owner == without_clone_suffix(name))
    }

    fn by_offset(&self, entry: &Entry, file: u32) -> Option<(Found, Pairing)> {
        let (name, offset) = entry.owner.as_ref()?;
        let module = entry.module.and_then(|module| self.modules.get(module as usize)?.clone());
        let key = (module, without_clone_suffix(name).to_owned());
        let starts = self.starts.get(&key)?;
        let same_file = self.files.of[file as usize];
        let in_file = starts.iter().find(|(file, _)| Some(*file) == same_file);
        let is_only = starts.len() == 1 && !self.namesakes.contains(&key);
        let &(file, start) = in_file.or_else(|| starts.first().filter(|_| is_only))?;
        let line = u32::try_from(i64::from(start.get()).checked_add(*offset)?).ok()?;
        Some((Found::Line(NonZeroU32::new(line)?, Some(file)), Pairing::Offset))
    }
}

/// Rows that only some columns have become one with others of the same name without marks of clones.
fn pair_leftovers(
    joint: &mut Joint,
    ledgers: &[&Ledger],
    columns: &[usize],
    keyed: &[Vec<(Key, Pairing)>],
    ambiguous: &HashSet<FunctionKey>,
) {
    let mut groups: HashMap<Key, BTreeSet<u32>> = HashMap::new();
    let mut present: HashSet<(usize, u32)> = HashSet::new();
    for (at, ledger) in ledgers.iter().enumerate() {
        for ((entry, (key, _)), &row) in ledger.entries.iter().zip(&keyed[at]).zip(&joint.rows_of[at]) {
            present.insert((columns[at], row));
            let Some(linkage) = key.name.as_ref().filter(|_| key.line == LineAt::Nowhere) else { continue };
            if !ambiguous.contains(&(key.module.clone(), linkage.clone())) {
                let shown = entry.place.function.as_deref().unwrap_or(linkage);
                let group = Key { name: Some(without_clone_suffix(shown).to_owned()), ..key.clone() };
                groups.entry(group).or_default().insert(row);
            }
        }
    }
    let all_columns: BTreeSet<usize> = columns.iter().copied().collect();
    let is_everywhere = |row: u32| all_columns.iter().all(|&column| present.contains(&(column, row)));
    let mut target: Vec<u32> = (0..joint.rows.len() as u32).collect();
    for members in groups.into_values().filter(|members| members.len() > 1) {
        let Some(&first) = members.first().filter(|_| !members.iter().all(|&row| is_everywhere(row))) else { continue };
        members.iter().for_each(|&row| target[row as usize] = first);
        let (place, pairing) = &mut joint.rows[first as usize];
        *pairing = Pairing::Name;
        place.function = place.function.as_deref().map(|name| without_clone_suffix(name).to_owned());
    }
    joint.rows_of.iter_mut().flatten().for_each(|row| *row = target[*row as usize]);
}
