//! What an editor shows: costs per source file, with the difference to a baseline.
//!
//! Rows of the same source line in several modules, and of all clones and instances of a function, are one place here,
//! and a sample counts once in it.

use crate::calls::Calls;
use crate::compare::Delta;
use crate::differences::{Against, Changes, Differences, Removed};
use crate::model::{FileId, FunctionId, LineKey, ModelFrame};
use crate::table::{Cost, CostTable};
use crate::times::{Calling, Times};
use crate::tree::{NONE, Pair};
use heatline_profile::{ModuleId, SpeStats, Weight};
use rustc_hash::FxHashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

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
    changes: Changes,
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
    /// The annotations of `table`, with differences to a baseline if there is one.
    pub fn new(table: Arc<CostTable>, baseline: Option<Against<'_>>, options: AnnotationOptions) -> Self {
        let places = Places::of(&table, &options.same_file);
        let differences =
            baseline.as_ref().map(|baseline| Differences::new(&table, baseline, &places, options.delta_threshold));
        let builder = Builder { table: &table, differences: differences.as_ref() };
        let mut files = builder.files(&places);
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
        let changes = differences.map(Differences::into_changes).unwrap_or_default();
        let baseline = baseline.map(|baseline| baseline.table);
        Annotations { table, baseline, options, files, hottest, others: Vec::new(), changes }
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

    /// The difference of a function's own cost, whatever else is declared on its line.
    pub fn delta_of_function(&self, function: FunctionId) -> Option<Delta> {
        self.changes.functions.get(&function).copied()
    }

    /// The functions that only the baseline has, greatest share first.
    pub fn removed_functions(&self) -> &[Removed] {
        &self.changes.removed_functions
    }

    /// The lines that only the baseline has, greatest share first; their numbers are those of the baseline's text.
    pub fn removed_lines(&self) -> &[Removed] {
        &self.changes.removed_lines
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
pub(crate) struct Places {
    of_line: Vec<u32>,
    lines: Vec<(FileId, NonZeroU32)>,
    pub(crate) of_function: Vec<u32>,
    pub(crate) functions: Vec<(FileId, NonZeroU32)>,
    same_file: Vec<FileId>,
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
        Places { of_line, lines, of_function, functions, same_file: same_file.to_vec() }
    }

    /// The file that stands for a file.
    pub(crate) fn file(&self, file: FileId) -> FileId {
        self.same_file.get(file.0 as usize).copied().unwrap_or(file)
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
    differences: Option<&'a Differences>,
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
        let costed = places.lines.iter().zip(&pairs).enumerate().filter(|(_, (_, pair))| table.has_cost(pair));
        for (id, (&(file, line), pair)) in costed {
            let delta = self.differences.and_then(|differences| differences.of_line(file, line));
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

    /// Lines and functions at the same time.
    fn files(&self, places: &Places) -> FxHashMap<FileId, FileView> {
        let (mut files, mut with_functions) = (FxHashMap::default(), FxHashMap::default());
        std::thread::scope(|scope| {
            scope.spawn(|| self.add_functions(places, &mut with_functions));
            self.add_lines(places, &mut files);
        });
        for (file, view) in with_functions {
            files.entry(file).or_default().functions = view.functions;
        }
        files
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
            let delta = self.differences.and_then(|differences| differences.of_functions(id, &functions, pair));
            let inclusive = table.has_inclusive().then(|| table.cost(pair.inclusive));
            let exclusive = table.cost(pair.exclusive);
            let view =
                FunctionView { line, functions, exclusive, inclusive, delta, extra, times: times.get(id).copied() };
            files.entry(file).or_default().functions.push(view);
        }
    }
}
