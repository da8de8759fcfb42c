//! The cost table: costs of one event by any kind of place. Every view reads it.

use crate::gaps::Remedy;
use crate::metric::{Metric, Statistic};
use crate::model::{FileId, FunctionId, LineKey, Model, ModelFrame, Reached};
use crate::times::{Calling, TimeTables, Times};
use crate::tree::{Keys, Pair, accumulate};
use heatline_profile::{ModuleId, Percent, SampleRow, SpeStats, Tally, Thread, ThreadId, Weight};
use heatline_symbols::bare_name;
use rustc_hash::FxHashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};

/// The cost of one place in one event.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Cost {
    /// Summed weight in the event's unit.
    pub weight: Weight,
    /// Its share of the table's whole; `None` of an empty whole.
    pub percent: Option<Percent>,
    /// The number of samples.
    pub samples: u64,
    /// Whether the weight was measured and not sampled: then few samples are no reason to doubt the share.
    pub measured: bool,
}

impl Cost {
    pub(crate) fn new(tally: Tally, whole: Weight) -> Self {
        Cost {
            weight: tally.weight,
            percent: Percent::of(tally.weight, whole),
            samples: tally.samples,
            measured: false,
        }
    }

    /// The share as a number in 0..=100, 0 of an empty whole.
    pub fn share(&self) -> f64 {
        self.percent.map_or(0.0, Percent::value)
    }
}

/// Which samples and places a table is of. Empty lists select everything.
///
/// Thread filters choose samples, module and symbol filters choose rows; neither shrinks the whole that percentages
/// are of, unless [`Self::relative`] says so.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Filter {
    /// Names of threads.
    pub comms: Vec<String>,
    /// Process ids.
    pub pids: Vec<i32>,
    /// Thread ids.
    pub tids: Vec<i32>,
    /// Modules, by path or base name.
    pub modules: Vec<String>,
    /// Functions, by name, name without parameters, or linkage name.
    pub symbols: Vec<String>,
    /// Whether percentages are of what the filter leaves instead of the whole event.
    pub relative: bool,
}

impl Filter {
    /// Whether samples of a thread are selected; `None` stands for samples of which the thread is not known.
    pub fn selects_thread(&self, thread: Option<&Thread>) -> bool {
        let Some(thread) = thread else { return !self.selects_threads() };
        (self.comms.is_empty() || self.comms.contains(&thread.comm))
            && (self.pids.is_empty() || self.pids.contains(&thread.pid))
            && (self.tids.is_empty() || self.tids.contains(&thread.tid))
    }

    /// Whether only some threads are chosen.
    pub(crate) fn selects_threads(&self) -> bool {
        !(self.comms.is_empty() && self.pids.is_empty() && self.tids.is_empty())
    }

    pub(crate) fn selects_row(&self, model: &Model, row: &Row) -> bool {
        let module = || {
            row.module.map(|id| model.profile.module(id)).is_some_and(|module| {
                self.modules.iter().any(|wanted| *wanted == module.path || wanted == module.base_name())
            })
        };
        let symbol = || row.function.is_some_and(|id| self.selects_symbol(model, id));
        (self.modules.is_empty() || module()) && (self.symbols.is_empty() || symbol())
    }

    fn selects_symbol(&self, model: &Model, id: FunctionId) -> bool {
        let function = model.function(id);
        self.symbols.iter().any(|wanted| {
            **wanted == *function.name
                || function.linkage_name.as_deref() == Some(wanted)
                || wanted == without_parameters(&function.name)
                || function.linkage_name.as_deref().is_some_and(|name| bare_name(name) == *wanted)
        })
    }
}

/// `fib` of `fib(int)`; operators and names without parameters stay as they are.
pub fn without_parameters(name: &str) -> &str {
    match name.find('(') {
        Some(at) if at > 0 && !name[..at].ends_with("operator") => &name[..at],
        _ => name,
    }
}

/// What a table shows.
#[derive(Clone, PartialEq, Debug)]
pub struct Selection {
    /// Which metric.
    pub metric: Metric,
    /// Which samples and rows.
    pub filter: Filter,
    /// Whether inlined functions are functions of their own (the physical view otherwise).
    pub inline: bool,
}

/// By what the rows of a table are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum By {
    /// Source lines, of one module each.
    Line,
    /// Functions.
    Function,
    /// Source files, of one module each.
    File,
    /// Modules.
    Module,
    /// Threads under their names.
    Thread,
    /// Processes, each under the name of its first thread.
    Process,
}

/// One row of a table. What does not apply to its kind is absent.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Row {
    /// The module.
    pub module: Option<ModuleId>,
    /// The function; of a line row the one with most exclusive, then inclusive, weight.
    pub function: Option<FunctionId>,
    /// The source file; of a function row where it is declared.
    pub file: Option<FileId>,
    /// The source line; of a function row that of its declaration.
    pub line: Option<NonZeroU32>,
    /// The thread; of a process row its first.
    pub thread: Option<ThreadId>,
    /// Whether the row is of the whole process of its thread.
    pub is_process: bool,
    /// Whether the function's code was always inlined into others.
    pub inlined: bool,
    /// Cost of the place itself.
    pub exclusive: Cost,
    /// Cost with everything it called; absent where the event has no stacks.
    pub inclusive: Option<Cost>,
    /// Statistics over the SPE records of the place; absent where the profile has none.
    pub spe: Option<Box<SpeStats>>,
    /// The four times and the calls of the place; absent where the profile has none.
    pub times: Option<Box<Times>>,
}

/// How much of the weight reached a line, only a symbol, or nothing. Shares of their whole, in 0..=1.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Coverage {
    /// Share whose innermost frame has a source line.
    pub line: f64,
    /// Share with a function but no line.
    pub symbol: f64,
    /// Share with neither.
    pub none: f64,
    /// The same per module, of the module's own weight, heaviest first.
    pub by_module: Vec<ModuleCoverage>,
}

/// The coverage of one module.
#[derive(Clone, PartialEq, Debug)]
pub struct ModuleCoverage {
    /// The module.
    pub module: ModuleId,
    /// Its exclusive weight.
    pub weight: Weight,
    /// Share with a line.
    pub line: f64,
    /// Share with a function only.
    pub symbol: f64,
    /// Share with neither.
    pub none: f64,
    /// Why it is not all lines.
    pub reason: Option<String>,
    pub(crate) remedy: Option<Remedy>,
}

/// The costs of one event by any kind of place. Each kind is computed when first asked for, then kept.
#[derive(Debug)]
pub struct CostTable {
    pub(crate) model: Arc<Model>,
    pub(crate) selection: Selection,
    /// The whole event.
    total: Tally,
    /// What percentages are of.
    whole: Weight,
    whole_samples: u64,
    own: Vec<Tally>,
    pub(crate) sums: Vec<Tally>,
    pub(crate) threads: Vec<Tally>,
    pub(crate) times: OnceLock<Option<Box<TimeTables>>>,
    lines: OnceLock<Vec<Pair>>,
    functions: OnceLock<Vec<Pair>>,
}

impl CostTable {
    /// The table of a selection.
    ///
    /// # Panics
    /// If the selection's event is of another profile.
    pub fn new(model: Arc<Model>, selection: Selection) -> Self {
        Self::make(model, selection, OnceLock::new())
    }

    /// A table whose rows have no times, for those that times are read from.
    pub(crate) fn without_times(model: Arc<Model>, selection: Selection) -> Self {
        Self::make(model, selection, Self::no_times())
    }

    fn make(model: Arc<Model>, selection: Selection, times: OnceLock<Option<Box<TimeTables>>>) -> Self {
        let profile = &model.profile;
        let of_event = |row: &&SampleRow| row.event == selection.metric.event;
        let mut total = Tally::default();
        let mut own = vec![Tally::default(); profile.stacks.len()];
        let mut threads = vec![Tally::default(); profile.threads.len()];
        for row in profile.rows.iter().filter(of_event) {
            total += row.tally;
            if selection.filter.selects_thread(row.thread.map(|id| profile.thread(id))) {
                own[row.stack.0 as usize] += row.tally;
                if let Some(thread) = row.thread {
                    threads[thread.0 as usize] += row.tally;
                }
            }
        }
        let sums = model.tree.subtree_sums(&own);
        let mut table = CostTable {
            whole: total.weight,
            whole_samples: total.samples,
            total,
            own,
            sums,
            threads,
            times,
            lines: OnceLock::new(),
            functions: OnceLock::new(),
            selection,
            model,
        };
        if table.selection.filter.relative {
            (table.whole, table.whole_samples) = table.remaining();
        }
        table
    }

    /// The exclusive weight and samples of all rows that the filter leaves.
    fn remaining(&self) -> (Weight, u64) {
        let rows = self.rows(By::Function);
        let samples = rows.iter().map(|row| row.exclusive.samples).fold(0, u64::saturating_add);
        (rows.iter().map(|row| row.exclusive.weight).sum(), samples)
    }

    /// The model the table is of.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// What the table shows.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The whole event, filtered or not.
    pub fn total(&self) -> Tally {
        self.total
    }

    /// What percentages are a share of.
    pub fn whole(&self) -> Weight {
        self.whole
    }

    /// The number of samples in the whole.
    pub fn whole_samples(&self) -> u64 {
        self.whole_samples
    }

    /// Whether each row's share is of records of its own, not of the whole.
    pub(crate) fn is_rate(&self) -> bool {
        self.selection.metric.statistic == Some(Statistic::Rate)
    }

    /// The number of selected samples whose whole stack this is.
    pub(crate) fn own_samples(&self, node: usize) -> u64 {
        self.own[node].samples
    }

    /// The cost of all samples that the thread filters select.
    pub fn selected(&self) -> Cost {
        let mut sum = Tally::default();
        self.own.iter().for_each(|tally| sum += *tally);
        Cost { measured: self.is_measured(), ..Cost::new(sum, self.total.weight) }
    }

    /// A tally as a cost of this table.
    pub(crate) fn cost(&self, tally: Tally) -> Cost {
        Cost { measured: self.is_measured(), ..Cost::new(tally, self.whole) }
    }

    /// Whether weights were measured and not sampled.
    pub fn is_measured(&self) -> bool {
        self.model.profile.calls.is_some()
    }

    pub(crate) fn selects_thread(&self, thread: Option<ThreadId>) -> bool {
        self.selection.filter.selects_thread(thread.map(|id| self.model.profile.thread(id)))
    }

    /// Whether the event has stacks, so that inclusive cost exists.
    pub fn has_inclusive(&self) -> bool {
        self.model.profile.event(self.selection.metric.event).has_stacks
    }

    /// Whether the event's weight arises in innermost frames, so that exclusive cost exists.
    pub fn has_exclusive(&self) -> bool {
        self.model.profile.event(self.selection.metric.event).exclusive
    }

    /// All rows of a kind that have cost: by exclusive weight, then inclusive, then module, function, file and line.
    pub fn rows(&self, by: By) -> Vec<Row> {
        let mut rows = match by {
            By::Line => self.line_rows(),
            By::Function => self.function_rows(),
            By::File => self.file_rows(),
            By::Module => self.module_rows(),
            By::Thread | By::Process => self.thread_rows(by),
        };
        rows.retain(|row| self.selection.filter.selects_row(&self.model, row));
        rows.sort_by_cached_key(|row| self.order(row));
        rows
    }

    fn order(&self, row: &Row) -> impl Ord + use<> {
        let model = &self.model;
        (
            std::cmp::Reverse(row.exclusive.weight),
            std::cmp::Reverse(row.inclusive.map_or(Weight(0), |c| c.weight)),
            row.module.map(|id| model.profile.module(id).path.clone()),
            row.function.map(|id| model.function(id).name.clone()),
            row.file.map(|id| model.file(id).path.clone()),
            row.line,
            row.thread,
        )
    }

    /// Whether a place has cost to show. Without stacks, what was only inlined into a place is none of its own.
    pub(crate) fn has_cost(&self, pair: &Pair) -> bool {
        let shown = if self.has_inclusive() { pair.inclusive } else { pair.exclusive };
        shown.samples > 0
    }

    fn row(&self, pair: Pair) -> Row {
        Row {
            module: None,
            function: None,
            file: None,
            line: None,
            thread: None,
            is_process: false,
            inlined: false,
            exclusive: self.cost(pair.exclusive),
            inclusive: self.has_inclusive().then(|| self.cost(pair.inclusive)),
            spe: None,
            times: None,
        }
    }

    /// Rows of all places that have cost, told apart by `key`; `describe` says what the place is.
    fn rows_by(
        &self,
        count: usize,
        pairs: &[Pair],
        key: impl Fn(&ModelFrame, ModuleId) -> u32 + Copy,
        calling: Calling,
        mut describe: impl FnMut(usize, &mut Row),
    ) -> Vec<Row> {
        let mut spe = self.spe(count, key);
        let times = self.times(count, key, calling);
        let costed = pairs.iter().enumerate().filter(|(_, pair)| self.has_cost(pair));
        costed
            .map(|(id, pair)| {
                let mut row = self.row(*pair);
                if let Some(stats) = spe.get_mut(id).map(std::mem::take).filter(|stats| stats.records > 0) {
                    row.exclusive = self.statistic(&stats, &row.exclusive).unwrap_or(row.exclusive);
                    row.spe = Some(Box::new(stats));
                }
                row.times = times.get(id).copied().map(Box::new);
                describe(id, &mut row);
                row
            })
            .collect()
    }

    fn line_rows(&self) -> Vec<Row> {
        let functions = self.functions_of_lines();
        let key = |frame: &ModelFrame, _| frame.line.0;
        self.rows_by(self.model.lines.len(), self.lines(), key, Calling::CalledOrCalling, |id, row| {
            row.function = functions.get(&(id as u32)).copied();
            match self.model.lines[id] {
                LineKey::Source(module, file, line) => {
                    (row.module, row.file, row.line) = (Some(module), Some(file), Some(line));
                }
                LineKey::Function(module, function) => {
                    (row.module, row.function) = (Some(module), Some(function));
                }
                LineKey::Module(module) => row.module = Some(module),
            }
            row.inlined = row.function.is_some_and(|f| self.model.function(f).always_inlined);
        })
    }

    /// The function that each line row is named for: most exclusive, then most inclusive weight on that line.
    fn functions_of_lines(&self) -> FxHashMap<u32, FunctionId> {
        let mut weights: FxHashMap<(u32, FunctionId), (Weight, Weight)> = FxHashMap::default();
        for (node, sum) in self.sums.iter().enumerate().filter(|(_, sum)| sum.samples > 0) {
            for (depth, frame) in self.frames(node as u32).iter().enumerate() {
                let Some(function) = frame.function else { continue };
                let entry = weights.entry((frame.line.0, function)).or_default();
                entry.1 += sum.weight;
                if depth == 0 {
                    entry.0 += self.own[node].weight;
                }
            }
        }
        let mut best: FxHashMap<u32, (FunctionId, (Weight, Weight))> = FxHashMap::default();
        for ((line, function), weight) in weights {
            let entry = best.entry(line).or_insert((function, weight));
            // The smaller number settles a tie, so that the order of hashing does not show.
            if (weight, std::cmp::Reverse(function)) > (entry.1, std::cmp::Reverse(entry.0)) {
                *entry = (function, weight);
            }
        }
        best.into_iter().map(|(line, (function, _))| (line, function)).collect()
    }

    fn function_rows(&self) -> Vec<Row> {
        let known = self.model.functions.len();
        let count = known + self.model.profile.modules.len();
        self.rows_by(count, self.functions(), self.function_key(), Calling::Called, |id, row| {
            if id < known {
                let function = &self.model.functions[id];
                row.function = Some(FunctionId(id as u32));
                row.module = Some(function.module);
                (row.file, row.line) = (function.file, function.line);
                row.inlined = function.always_inlined;
            } else {
                row.module = Some(ModuleId((id - known) as u32));
            }
        })
    }

    /// Functions by number; behind the last function one place per module for code without a symbol.
    fn function_key(&self) -> impl Fn(&ModelFrame, ModuleId) -> u32 + Copy + use<> {
        let known = self.model.functions.len() as u32;
        move |frame, module| frame.function.map_or(known + module.0, |f| f.0)
    }

    fn file_rows(&self) -> Vec<Row> {
        let mut ids: FxHashMap<(ModuleId, Option<FileId>), u32> = FxHashMap::default();
        let mut places = Vec::new();
        let of_line: Vec<u32> = self
            .model
            .lines
            .iter()
            .map(|line| {
                let place = match *line {
                    LineKey::Source(module, file, _) => (module, Some(file)),
                    LineKey::Function(module, _) | LineKey::Module(module) => (module, None),
                };
                *ids.entry(place).or_insert_with(|| {
                    places.push(place);
                    places.len() as u32 - 1
                })
            })
            .collect();
        let key = |frame: &ModelFrame, _| of_line[frame.line.0 as usize];
        let pairs = self.accumulate(places.len(), key);
        self.rows_by(places.len(), &pairs, key, Calling::Called, |id, row| {
            (row.module, row.file) = (Some(places[id].0), places[id].1);
        })
    }

    fn module_rows(&self) -> Vec<Row> {
        let (count, key) = (self.model.profile.modules.len(), |_: &ModelFrame, module: ModuleId| module.0);
        let pairs = self.accumulate(count, key);
        self.rows_by(count, &pairs, key, Calling::Called, |id, row| row.module = Some(ModuleId(id as u32)))
    }

    /// Threads with the weight of all their samples; what was called by a thread is its own, so nothing is inclusive.
    /// A row for each thread, or for the threads of each process.
    fn thread_rows(&self, by: By) -> Vec<Row> {
        let parts = self.parts_of_threads(by);
        let times = self.times_of_threads(&parts);
        let mut tallies = vec![Tally::default(); self.threads.len()];
        for (&part, tally) in parts.iter().zip(&self.threads) {
            tallies[part] += *tally;
        }
        let costed = tallies.into_iter().enumerate().filter(|(_, tally)| tally.samples > 0);
        costed
            .map(|(id, tally)| Row {
                thread: Some(ThreadId(id as u32)),
                is_process: by == By::Process,
                inclusive: None,
                times: times.get(id).copied().map(Box::new),
                ..self.row(Pair { exclusive: tally, inclusive: tally })
            })
            .collect()
    }

    /// The thread that each thread is counted with: itself, or the first of its process.
    fn parts_of_threads(&self, by: By) -> Vec<usize> {
        let threads = &self.model.profile.threads;
        let mut first: FxHashMap<i32, usize> = FxHashMap::default();
        for (at, thread) in threads.iter().enumerate() {
            let known = *first.entry(thread.pid).or_insert(at);
            if thread.tid == thread.pid && threads[known].tid != thread.pid {
                first.insert(thread.pid, at);
            }
        }
        let part = |(at, thread): (usize, &Thread)| if by == By::Process { first[&thread.pid] } else { at };
        threads.iter().enumerate().map(part).collect()
    }

    pub(crate) fn lines(&self) -> &[Pair] {
        self.lines.get_or_init(|| self.accumulate(self.model.lines.len(), |frame, _| frame.line.0))
    }

    /// By [`Self::function_key`].
    pub(crate) fn functions(&self) -> &[Pair] {
        let count = self.model.functions.len() + self.model.profile.modules.len();
        self.functions.get_or_init(|| self.accumulate(count, self.function_key()))
    }

    /// Whether the module and symbol filters select a frame. Rows are selected by what they name; an editor's places
    /// by the code they are made of.
    pub(crate) fn selects_frame(&self, frame: &ModelFrame, module: ModuleId) -> bool {
        let row = Row { module: Some(module), function: frame.function, ..Row::default() };
        self.selection.filter.selects_row(&self.model, &row)
    }

    /// The costs of all places of a kind, numbered by `key`, which may answer [`crate::tree::NONE`].
    pub(crate) fn accumulate(&self, count: usize, key: impl Fn(&ModelFrame, ModuleId) -> u32) -> Vec<Pair> {
        let model = &self.model;
        let keys = Keys::build(model.locations(), count, |location| {
            let module = model.module_of[location];
            self.view(model.frames_at(location)).iter().map(|frame| key(frame, module)).collect::<Vec<_>>().into_iter()
        });
        let mut pairs = accumulate(&model.tree, &model.node_location, &self.own, &self.sums, &keys);
        if !self.has_exclusive() {
            pairs.iter_mut().for_each(|pair| pair.exclusive = Tally::default());
        }
        pairs
    }

    /// The frames of a stack node that this table tells apart, innermost first.
    pub(crate) fn frames(&self, node: u32) -> &[ModelFrame] {
        self.view(self.model.frames_of_node(node))
    }

    pub(crate) fn view<'a>(&self, frames: &'a [ModelFrame]) -> &'a [ModelFrame] {
        if self.selection.inline { frames } else { &frames[frames.len() - 1..] }
    }

    /// How much of the event's weight reached a line, and where it did not, why.
    pub fn coverage(&self) -> Coverage {
        let model = &self.model;
        let mut modules = vec![[Weight(0); 3]; model.profile.modules.len()];
        for (node, tally) in self.own.iter().enumerate().filter(|(_, tally)| tally.samples > 0) {
            let location = model.node_location[node].0 as usize;
            let reached = match model.reached(location) {
                Reached::Line => 0,
                Reached::Symbol => 1,
                Reached::Nothing => 2,
            };
            modules[model.module_of[location].0 as usize][reached] += tally.weight;
        }
        let share = |part: Weight, whole: Weight| Percent::of(part, whole).map_or(0.0, |p| p.value() / 100.0);
        let whole: Weight = modules.iter().flatten().copied().sum();
        let sum_of = |kind: usize| modules.iter().map(|m| m[kind]).sum::<Weight>();
        let mut by_module: Vec<ModuleCoverage> = modules
            .iter()
            .enumerate()
            .map(|(id, parts)| {
                let weight: Weight = parts.iter().copied().sum();
                ModuleCoverage {
                    module: ModuleId(id as u32),
                    weight,
                    line: share(parts[0], weight),
                    symbol: share(parts[1], weight),
                    none: share(parts[2], weight),
                    reason: if parts[0] < weight { model.reasons[id].clone() } else { None },
                    remedy: model.remedies[id],
                }
            })
            .filter(|module| module.weight > Weight(0))
            .collect();
        by_module.sort_by_key(|m| std::cmp::Reverse(m.weight));
        Coverage {
            line: share(sum_of(0), whole),
            symbol: share(sum_of(1), whole),
            none: share(sum_of(2), whole),
            by_module,
        }
    }
}
