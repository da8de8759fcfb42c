//! What an editor shows: costs per source file, with the difference to a baseline.
//!
//! Rows of the same source line in several modules, and of all clones and instances of a function, are one place here,
//! and a sample counts once in it.

use crate::calls::Calls;
use crate::model::{FileId, FunctionId, LineKey, ModelFrame};
use crate::statistics::newcombe;
use crate::table::{Cost, CostTable};
use crate::times::{Calling, Times};
use crate::tree::{NONE, Pair};
use heatline_profile::{ModuleId, SpeStats, Tally, Weight};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The difference of a share to that of the baseline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Delta {
    /// This profile's share minus the baseline's, in percentage points.
    pub points: f64,
    /// Lower end of the 95 % interval, in percentage points.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// Whether the interval excludes zero and the difference reaches the threshold.
    pub significant: bool,
}

/// The costs of one source line over all modules.
#[derive(Clone, PartialEq, Debug)]
pub struct LineView {
    /// The line in the text the profile was built from.
    pub line: NonZeroU32,
    /// Cost of the line itself.
    pub exclusive: Cost,
    /// Cost with everything it called; absent without stacks.
    pub inclusive: Option<Cost>,
    /// Difference of the exclusive share to the baseline's.
    pub delta: Option<Delta>,
    /// Heat from 0 to 9: tenths of the hottest line's exclusive cost, 9 for the hottest.
    pub level: u8,
    /// What stands in a hint in place of the exclusive share, where the metric is a statistic: `p95 412 cyc`.
    pub label: Option<String>,
    /// The four times of the line and its calls; absent where the profile has none.
    pub times: Option<Times>,
}

/// The costs of all functions that are declared on one line: a function with its clones and instances.
#[derive(Clone, PartialEq, Debug)]
pub struct FunctionView {
    /// The line of the declaration in the text the profile was built from.
    pub line: NonZeroU32,
    /// The functions, the one with most cost first.
    pub functions: Vec<FunctionId>,
    /// Cost of the function itself.
    pub exclusive: Cost,
    /// Cost with everything it called; absent without stacks.
    pub inclusive: Option<Cost>,
    /// Difference to the baseline: of the inclusive share where there is one, else of the exclusive.
    pub delta: Option<Delta>,
    /// What a lens says besides costs: with SPE the mean latency and the share of L1 misses.
    pub extra: Vec<String>,
    /// The four times of the function and its calls; absent where the profile has none.
    pub times: Option<Times>,
}

/// The costs of one source file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FileView {
    /// Lines with cost, ascending.
    pub lines: Vec<LineView>,
    /// Functions with cost, ascending by line.
    pub functions: Vec<FunctionView>,
}

impl FileView {
    /// The costs of a line.
    pub fn line(&self, line: NonZeroU32) -> Option<&LineView> {
        self.lines.binary_search_by_key(&line, |view| view.line).ok().map(|at| &self.lines[at])
    }

    /// The functions declared on a line.
    pub fn function(&self, line: NonZeroU32) -> Option<&FunctionView> {
        self.functions.binary_search_by_key(&line, |view| view.line).ok().map(|at| &self.functions[at])
    }
}

/// Of what [`LineView::level`] counts the tenths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HeatScope {
    /// The hottest line of the profile.
    #[default]
    Profile,
    /// The hottest line of the file.
    File,
}

/// How annotations are made.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AnnotationOptions {
    /// Files that are one file on this machine: for each file of the model the number of the one that stands for it.
    /// Empty: every file stands for itself.
    pub same_file: Vec<FileId>,
    /// Of what the heat levels are tenths.
    pub heat_scope: HeatScope,
    /// A smaller difference in percentage points is not significant.
    pub delta_threshold: f64,
}

/// Everything an editor shows of a cost table. Immutable; computed once per metric and baseline.
#[derive(Debug)]
pub struct Annotations {
    table: Arc<CostTable>,
    baseline: Option<Arc<CostTable>>,
    options: AnnotationOptions,
    files: FxHashMap<FileId, FileView>,
    hottest: Vec<(FileId, NonZeroU32)>,
    others: Vec<OtherEvent>,
}

/// The costs of the lines in an event that is not the chosen one.
#[derive(Debug)]
struct OtherEvent {
    table: Arc<CostTable>,
    lines: FxHashMap<(FileId, NonZeroU32), Pair>,
}

/// The costs of one line in one event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LineCosts {
    /// Cost of the line itself.
    pub exclusive: Cost,
    /// Cost with everything it called; absent without stacks.
    pub inclusive: Option<Cost>,
}

impl Annotations {
    /// The annotations of `table`, with differences to `baseline` if there is one.
    pub fn new(table: Arc<CostTable>, baseline: Option<Arc<CostTable>>, options: AnnotationOptions) -> Self {
        let places = Places::of(&table, &options.same_file);
        let old = baseline.as_ref().map(|base| OldShares::of(base));
        let builder = Builder { table: &table, old: old.as_ref(), threshold: options.delta_threshold };
        let mut files: FxHashMap<FileId, FileView> = FxHashMap::default();
        builder.add_lines(&places, &mut files);
        builder.add_functions(&places, &mut files);
        let mut hottest: Vec<(FileId, NonZeroU32, Weight)> = Vec::new();
        for (&file, view) in &mut files {
            view.lines.sort_by_key(|line| line.line);
            view.functions.sort_by_key(|function| function.line);
            let exclusive = view.lines.iter().filter(|line| line.exclusive.samples > 0);
            hottest.extend(exclusive.map(|line| (file, line.line, line.exclusive.weight)));
        }
        let model = table.model();
        hottest.sort_by(|a, b| (b.2, &model.file(a.0).path, a.1).cmp(&(a.2, &model.file(b.0).path, b.1)));
        set_levels(&mut files, options.heat_scope);
        let hottest = hottest.into_iter().map(|(file, line, _)| (file, line)).collect();
        Annotations { table, baseline, options, files, hottest, others: Vec::new() }
    }

    /// Adds the costs of other events, for the hover.
    pub fn with_others(mut self, tables: impl IntoIterator<Item = Arc<CostTable>>) -> Self {
        for table in tables {
            let places = Places::of(&table, &self.options.same_file);
            let pairs = table.accumulate(places.lines.len(), |frame, _| places.of_line[frame.line.0 as usize]);
            let lines = places.lines.into_iter().zip(pairs).filter(|(_, pair)| table.has_cost(pair)).collect();
            self.others.push(OtherEvent { table, lines });
        }
        self
    }

    /// The costs of a line in every event that has some there, the chosen one first.
    pub fn events_of_line(&self, file: FileId, line: NonZeroU32) -> Vec<(&Arc<CostTable>, LineCosts)> {
        let file = self.representative(file);
        let chosen = self.file(file).and_then(|view| view.line(line));
        let chosen =
            chosen.map(|view| (&self.table, LineCosts { exclusive: view.exclusive, inclusive: view.inclusive }));
        let others = self.others.iter().filter_map(|other| {
            let pair = other.lines.get(&(file, line))?;
            let cost = |tally| other.table.cost(tally);
            let inclusive = other.table.has_inclusive().then(|| cost(pair.inclusive));
            Some((&other.table, LineCosts { exclusive: cost(pair.exclusive), inclusive }))
        });
        chosen.into_iter().chain(others).collect()
    }

    /// The statistics over the SPE records of a line, `None` where there are none.
    pub fn spe_of_line(&self, file: FileId, line: NonZeroU32) -> Option<SpeStats> {
        let wanted = self.representative(file);
        let key = |frame: &ModelFrame, _| if self.is_line(frame, wanted, line) { 0 } else { NONE };
        self.table.spe(1, key).pop().filter(|stats| stats.records > 0)
    }

    /// The modules that hold code of a line.
    pub fn modules_of_line(&self, file: FileId, line: NonZeroU32) -> Vec<ModuleId> {
        let wanted = self.representative(file);
        let mut modules: Vec<ModuleId> = self
            .table
            .model()
            .lines
            .iter()
            .filter_map(|key| match *key {
                LineKey::Source(module, file, at) if at == line && self.representative(file) == wanted => Some(module),
                _ => None,
            })
            .collect();
        modules.sort_unstable();
        modules
    }

    /// The table they are of.
    pub fn table(&self) -> &Arc<CostTable> {
        &self.table
    }

    /// The table they are compared with.
    pub fn baseline(&self) -> Option<&Arc<CostTable>> {
        self.baseline.as_ref()
    }

    /// The costs of a file, under the number that stands for it.
    pub fn file(&self, file: FileId) -> Option<&FileView> {
        self.files.get(&self.representative(file))
    }

    /// All files with cost, in no particular order.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &FileView)> {
        self.files.iter().map(|(&id, view)| (id, view))
    }

    /// All lines with exclusive cost, hottest first.
    pub fn hottest_lines(&self) -> &[(FileId, NonZeroU32)] {
        &self.hottest
    }

    /// The calls into and out of a range of lines of a file.
    pub fn calls_of_lines(&self, file: FileId, lines: std::ops::RangeInclusive<NonZeroU32>) -> Calls {
        let wanted = self.representative(file);
        self.table.calls(|frame| match self.table.model().line(frame.line) {
            LineKey::Source(_, file, line) => self.representative(file) == wanted && lines.contains(&line),
            _ => false,
        })
    }

    /// The calls of all functions declared on a line of a file.
    pub fn calls_of_functions(&self, functions: &[FunctionId]) -> Calls {
        self.table.calls(|frame| frame.function.is_some_and(|id| functions.contains(&id)))
    }

    /// The functions that a line's code belongs to, most exclusive, then most inclusive weight first.
    pub fn functions_of_line(&self, file: FileId, line: NonZeroU32) -> Vec<FunctionId> {
        let wanted = self.representative(file);
        let model = self.table.model();
        let mut functions: Vec<FunctionId> = (0..model.locations())
            .flat_map(|location| model.frames_at(location))
            .filter(|frame| self.is_line(frame, wanted, line))
            .filter_map(|frame| frame.function)
            .collect();
        functions.sort_unstable();
        functions.dedup();
        functions.sort_by_key(|id| {
            let pair = self.table.functions()[id.0 as usize];
            (std::cmp::Reverse(pair.exclusive.weight), std::cmp::Reverse(pair.inclusive.weight), *id)
        });
        functions
    }

    fn is_line(&self, frame: &ModelFrame, wanted: FileId, line: NonZeroU32) -> bool {
        matches!(self.table.model().line(frame.line),
            LineKey::Source(_, file, at) if at == line && self.representative(file) == wanted)
    }

    fn representative(&self, file: FileId) -> FileId {
        self.options.same_file.get(file.0 as usize).copied().unwrap_or(file)
    }
}

fn set_levels(files: &mut FxHashMap<FileId, FileView>, scope: HeatScope) {
    let hottest_of = |view: &FileView| view.lines.iter().map(|l| l.exclusive.weight.0).max().unwrap_or(0);
    let overall = files.values().map(hottest_of).max().unwrap_or(0);
    for view in files.values_mut() {
        let hottest = match scope {
            HeatScope::Profile => overall,
            HeatScope::File => hottest_of(view),
        };
        for line in &mut view.lines {
            let tenths = (10 * u128::from(line.exclusive.weight.0)).checked_div(u128::from(hottest)).unwrap_or(0);
            line.level = tenths.min(9) as u8;
        }
    }
}

/// Dense numbers for the places of an editor: (file, line) of code, (file, line) of declarations.
struct Places {
    of_line: Vec<u32>,
    lines: Vec<(FileId, NonZeroU32)>,
    of_function: Vec<u32>,
    functions: Vec<(FileId, NonZeroU32)>,
}

impl Places {
    fn of(table: &CostTable, same_file: &[FileId]) -> Self {
        let model = table.model();
        let file_of = |file: FileId| same_file.get(file.0 as usize).copied().unwrap_or(file);
        let (of_line, lines) = number(model.lines.iter().map(|key| match *key {
            LineKey::Source(_, file, line) => Some((file_of(file), line)),
            _ => None,
        }));
        let (of_function, functions) =
            number(model.functions.iter().map(|function| Some((file_of(function.file?), function.line?))));
        Places { of_line, lines, of_function, functions }
    }
}

fn number(places: impl Iterator<Item = Option<(FileId, NonZeroU32)>>) -> (Vec<u32>, Vec<(FileId, NonZeroU32)>) {
    let mut ids: FxHashMap<(FileId, NonZeroU32), u32> = FxHashMap::default();
    let mut numbered = Vec::new();
    let of = places
        .map(|place| {
            let Some(place) = place else { return NONE };
            *ids.entry(place).or_insert_with(|| {
                numbered.push(place);
                numbered.len() as u32 - 1
            })
        })
        .collect();
    (of, numbered)
}

struct Builder<'a> {
    table: &'a CostTable,
    old: Option<&'a OldShares>,
    threshold: f64,
}

impl Builder<'_> {
    fn add_lines(&self, places: &Places, files: &mut FxHashMap<FileId, FileView>) {
        let table = self.table;
        let key = |frame: &ModelFrame, module| {
            if table.selects_frame(frame, module) { places.of_line[frame.line.0 as usize] } else { NONE }
        };
        let pairs = table.accumulate(places.lines.len(), key);
        let spe = table.spe(places.lines.len(), key);
        let times = table.times(places.lines.len(), key, Calling::CalledOrCalling);
        let owners = self.old.map(|_| line_owners(table));
        let costed = places.lines.iter().zip(&pairs).enumerate().filter(|(_, (_, pair))| table.has_cost(pair));
        for (id, (&(file, line), pair)) in costed {
            let delta = self.old.map(|old| {
                let key = owners.as_ref().and_then(|owners| owners.get(&(file, line)));
                let before = key.and_then(|key| old.lines.get(key)).copied().unwrap_or_default();
                self.delta(old, before.exclusive, pair.exclusive)
            });
            let inclusive = table.has_inclusive().then(|| table.cost(pair.inclusive));
            let mut exclusive = table.cost(pair.exclusive);
            let mut label = None;
            if let Some(stats) = spe.get(id) {
                exclusive = table.statistic(stats, &exclusive).unwrap_or(exclusive);
                label = table.statistic_label(stats);
            }
            files.entry(file).or_default().lines.push(LineView {
                line,
                exclusive,
                inclusive,
                delta,
                level: 0,
                label,
                times: times.get(id).copied(),
            });
        }
    }

    fn add_functions(&self, places: &Places, files: &mut FxHashMap<FileId, FileView>) {
        let table = self.table;
        let key = |frame: &ModelFrame, module| match frame.function {
            Some(id) if table.selects_frame(frame, module) => places.of_function[id.0 as usize],
            _ => NONE,
        };
        let pairs = table.accumulate(places.functions.len(), key);
        let spe = table.spe(places.functions.len(), key);
        let times = table.times(places.functions.len(), key, Calling::Called);
        let mut members: Vec<Vec<FunctionId>> = vec![Vec::new(); places.functions.len()];
        for (id, &place) in (0..).map(FunctionId).zip(&places.of_function) {
            if place != NONE && table.functions()[id.0 as usize].inclusive.samples > 0 {
                members[place as usize].push(id);
            }
        }
        let costed = places.functions.iter().zip(&pairs).zip(members).enumerate();
        for (id, ((&(file, line), pair), mut functions)) in costed.filter(|(_, ((_, pair), _))| table.has_cost(pair)) {
            let extra = spe.get(id).map(|stats| table.spe_lens(stats)).unwrap_or_default();
            functions.sort_by_key(|id| std::cmp::Reverse(table.functions()[id.0 as usize].inclusive.weight));
            let delta = self.old.map(|old| {
                let mut names: Vec<&str> = functions.iter().map(|&id| linkage_name(table, id)).collect();
                names.dedup();
                let before = names.iter().filter_map(|&name| old.functions.get(name)).fold(Pair::default(), add);
                if table.has_inclusive() {
                    self.delta(old, before.inclusive, pair.inclusive)
                } else {
                    self.delta(old, before.exclusive, pair.exclusive)
                }
            });
            let inclusive = table.has_inclusive().then(|| table.cost(pair.inclusive));
            let exclusive = table.cost(pair.exclusive);
            let view =
                FunctionView { line, functions, exclusive, inclusive, delta, extra, times: times.get(id).copied() };
            files.entry(file).or_default().functions.push(view);
        }
    }

    fn delta(&self, old: &OldShares, before: Tally, now: Tally) -> Delta {
        let total = self.table.total();
        let share = |tally: Tally, of: Tally| Cost::new(tally, of.weight).share();
        let points = share(now, total) - share(before, old.total);
        let side = |share: f64, of: Tally| (share / 100.0 * effective_samples(of), effective_samples(of));
        let (low, high) = newcombe(side(share(before, old.total), old.total), side(share(now, total), total))
            .map_or((-100.0, 100.0), |(low, high)| (100.0 * low, 100.0 * high));
        let enough = before.samples.saturating_add(now.samples) >= 10;
        let significant = enough && (low > 0.0 || high < 0.0) && points.abs() >= self.threshold;
        Delta { points, low, high, significant }
    }
}

/// The number of samples that a share is of; Kish's effective number where weights differ much.
fn effective_samples(tally: Tally) -> f64 {
    let samples = tally.samples as f64;
    let weight = tally.weight.0 as f64;
    let effective = if tally.squares > 0.0 { weight * weight / tally.squares } else { samples };
    if effective < 0.8 * samples { effective } else { samples }
}

fn add(mut sum: Pair, pair: &Pair) -> Pair {
    sum.exclusive += pair.exclusive;
    sum.inclusive += pair.inclusive;
    sum
}

fn linkage_name(table: &CostTable, id: FunctionId) -> &str {
    let function = table.model().function(id);
    function.linkage_name.as_deref().unwrap_or(&function.name)
}

/// A line as two builds can be expected to agree on it: the function it belongs to and the distance from its first
/// line.
type LineName = (String, i64);

/// The shares of a baseline, by names that survive a rebuild.
struct OldShares {
    total: Tally,
    lines: HashMap<LineName, Pair>,
    functions: HashMap<String, Pair>,
}

impl OldShares {
    fn of(table: &CostTable) -> Self {
        let places = Places::of(table, &[]);
        let pairs = table.accumulate(places.lines.len(), |frame, _| places.of_line[frame.line.0 as usize]);
        let owners = line_owners(table);
        let mut lines: HashMap<LineName, Pair> = HashMap::new();
        for (place, pair) in places.lines.iter().zip(&pairs) {
            if let Some(name) = owners.get(place) {
                let entry = lines.entry(name.clone()).or_default();
                *entry = add(*entry, pair);
            }
        }
        let mut functions: HashMap<String, Pair> = HashMap::new();
        for id in (0..table.model().functions.len() as u32).map(FunctionId) {
            let entry = functions.entry(linkage_name(table, id).to_owned()).or_default();
            *entry = add(*entry, &table.functions()[id.0 as usize]);
        }
        OldShares { total: table.total(), lines, functions }
    }
}

/// For each source line the name it is compared under: of the functions on it, the one declared nearest above.
fn line_owners(table: &CostTable) -> HashMap<(FileId, NonZeroU32), LineName> {
    let model = table.model();
    let mut owners: HashMap<(FileId, NonZeroU32), (i64, &str)> = HashMap::new();
    for frame in (0..model.locations()).flat_map(|location| model.frames_at(location)) {
        let (LineKey::Source(_, file, line), Some(id)) = (model.line(frame.line), frame.function) else { continue };
        let function = model.function(id);
        let Some(start) = function.line.filter(|_| function.file == Some(file)) else { continue };
        let candidate = (i64::from(line.get()) - i64::from(start.get()), linkage_name(table, id));
        let owner = owners.entry((file, line)).or_insert(candidate);
        *owner = (*owner).min(candidate);
    }
    owners.into_iter().map(|(place, (offset, name))| (place, (name.to_owned(), offset))).collect()
}
