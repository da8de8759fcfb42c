//! The lines that instrumented functions are called from: what the recording does not say, the binaries often do.

use crate::binaries::SearchPaths;
use heatline_profile::{CallStats, ModuleAddress, ModuleFrames, ModuleId, Problems, Profile, Silent, Svma};
use heatline_readers::uftrace::{CallEdge, Placing, call_edges, calls_over, place_calls};
use heatline_symbols::{FunctionRange, Image};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The kind of problem that calls may be from several lines.
pub const AMBIGUOUS_LINES: &str = "ambiguous-call-lines";

/// Calls of one function from another that has several lines with such calls: nobody knows which of them made which.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedCalls {
    /// The function that calls.
    pub caller: String,
    /// The function that is called.
    pub callee: String,
    /// The lines that may have made the calls: paths as debug information has them, each line once.
    pub lines: Vec<(String, NonZeroU32)>,
    /// The calls from all of these lines together.
    pub stats: CallStats,
}

/// Puts the calls of a profile on the lines that make them, as far as the code of the binaries tells. Returns those that
/// may be from several lines.
pub fn place(profile: &mut Profile, search: &SearchPaths, problems: &mut Problems) -> Vec<SharedCalls> {
    let mut placing = Placing::default();
    let mut ambiguous = FxHashMap::default();
    let edges = call_edges(profile);
    for (id, module) in (0..).map(ModuleId).zip(&profile.modules) {
        let mut addresses: Vec<ModuleAddress> = profile
            .stacks
            .nodes()
            .iter()
            .filter(|node| node.module == id)
            .map(|node| node.address.recorded())
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        let Some(image) = (!addresses.is_empty()).then(|| search.find(module).image.ok()).flatten() else { continue };
        let Some(base) = image.to_svma(ModuleAddress(0), module.space) else { continue };
        // What the recorder wrote down is for images that are not at hand.
        if let Some(said) = &mut profile.symbolization {
            *Arc::make_mut(said).module_mut(id) = ModuleFrames::default();
        }
        let edges = edges.iter().filter(|edge| edge.module == id);
        let mut code = Code { image, base, functions: FxHashMap::default() };
        code.find_functions(&addresses);
        for address in &addresses {
            let entry = code.functions.get(address).and_then(|range| code.in_module(range.start));
            if let Some(entry) = entry.filter(|entry| entry != address) {
                placing.entries.insert((id, *address), entry);
            }
        }
        code.find_calls(edges, &mut placing, &mut ambiguous);
    }
    let stats = calls_over(profile, &ambiguous.keys().copied().collect());
    let calls = stats.values().map(|stats| stats.calls).fold(0, u64::saturating_add);
    if calls > 0 {
        let message = "uftrace does not record which line makes a call: where a function calls another on several lines, \
                       the inclusive time of those calls is on none of them, but on its own first line";
        problems.add(AMBIGUOUS_LINES, calls, None, message);
    }
    place_calls(profile, &placing);
    let mut shared: Vec<SharedCalls> = ambiguous
        .into_iter()
        .filter_map(|(edge, mut shared)| {
            if edge.called_module != edge.module {
                shared.callee = profile.module(edge.called_module).base_name().to_owned();
            }
            Some(SharedCalls { stats: *stats.get(&edge)?, ..shared })
        })
        .filter(|shared| shared.stats.calls > 0)
        .collect();
    shared.sort_by(|a, b| (&a.caller, &a.callee, &a.lines).cmp(&(&b.caller, &b.callee, &b.lines)));
    shared
}

/// The code of one module.
struct Code {
    image: Image,
    /// The link-time address of the module's address 0.
    base: Svma,
    functions: FxHashMap<ModuleAddress, FunctionRange>,
}

impl Code {
    fn in_module(&self, address: Svma) -> Option<ModuleAddress> {
        address.0.checked_sub(self.base.0).map(ModuleAddress)
    }

    fn find_functions(&mut self, addresses: &[ModuleAddress]) {
        let svmas: Vec<Svma> = addresses.iter().map(|address| Svma(self.base.0.saturating_add(address.0))).collect();
        let ranges = self.image.function_ranges(&svmas);
        self.functions = addresses.iter().zip(ranges).filter_map(|(&address, range)| Some((address, range?))).collect();
    }

    /// The instruction of each call that is made from one line only.
    fn find_calls<'a>(
        &self,
        edges: impl Iterator<Item = &'a CallEdge> + Clone,
        placing: &mut Placing,
        ambiguous: &mut FxHashMap<CallEdge, SharedCalls>,
    ) {
        let function = |address: &ModuleAddress| self.functions.get(address).copied();
        // Where functions of other images begin says no call here; they are called by pointer, or by way of a stub.
        let entry = |edge: &CallEdge| {
            let range = function(&edge.callee).filter(|_| edge.called_module == edge.module)?;
            Some(range.start)
        };
        let targets: BTreeSet<Svma> = edges.clone().filter_map(entry).collect();
        let mut calls: FxHashMap<FunctionRange, FxHashMap<Svma, Vec<Svma>>> = FxHashMap::default();
        let mut by_pointer: FxHashMap<FunctionRange, Vec<(Svma, Svma)>> = FxHashMap::default();
        let mut several: Vec<(CallEdge, Vec<Svma>)> = Vec::new();
        for edge in edges {
            let Some(caller) = function(&edge.caller) else { continue };
            let callee = entry(edge);
            if callee.is_none() && edge.called_module == edge.module {
                continue;
            }
            let from = calls.entry(caller).or_insert_with(|| {
                let mut by_target: FxHashMap<Svma, Vec<Svma>> = FxHashMap::default();
                for (site, target) in self.image.calls_in(caller, &targets) {
                    by_target.entry(target).or_default().push(site);
                }
                by_target
            });
            match callee.and_then(|callee| from.get(&callee)).map(Vec::as_slice) {
                Some(&[site]) => self.put(*edge, site, placing),
                Some(sites) => several.push((*edge, sites.to_vec())),
                // Nothing calls it by its address, so something does by a pointer to it.
                None => {
                    let all = by_pointer.entry(caller).or_insert_with(|| self.image.indirect_calls_in(caller));
                    several.push((*edge, self.without_recorder(edge, all)));
                }
            }
        }
        several.retain(|(_, sites)| !sites.is_empty());
        // Of each edge the lines of its calls, and behind them the function that is called.
        let called = |edge| entry(edge).unwrap_or(Svma(u64::MAX));
        let all: Vec<Svma> =
            several.iter().flat_map(|(edge, sites)| sites.iter().copied().chain([called(edge)])).collect();
        let Ok(lines) = self.image.resolve(&all, &Silent) else { return };
        let frame = |number: usize| lines.frames(number).first();
        let name = |number: usize| {
            let function = frame(number).and_then(|frame| lines.functions.get(frame.function?.index()));
            let name = function.map_or("[unknown]", |function| &*function.name);
            name.strip_suffix("@plt").unwrap_or(name).to_owned()
        };
        let place = |number: usize| {
            let frame = frame(number)?;
            Some((lines.files.get(frame.file?.index())?.path.clone(), frame.line?))
        };
        let mut at = 0;
        for (edge, sites) in several {
            let (first, end) = (at, at + sites.len());
            at = end + 1;
            let mut places: Vec<_> = (first..end).filter_map(place).collect();
            let is_known = places.len() == sites.len();
            places.sort_unstable();
            places.dedup();
            match sites.first() {
                Some(&site) if is_known && places.len() == 1 => self.put(edge, site, placing),
                _ => {
                    let (caller, callee) = (name(first), name(end));
                    let stats = CallStats::default();
                    ambiguous.insert(edge, SharedCalls { caller, callee, lines: places, stats });
                }
            }
        }
    }

    /// The calls by pointer in a function, but for that of the recorder, behind which it saw the function.
    fn without_recorder(&self, edge: &CallEdge, calls: &[(Svma, Svma)]) -> Vec<Svma> {
        let recorder = Svma(self.base.0.saturating_add(edge.caller.0));
        calls.iter().filter(|(_, end)| *end != recorder).map(|&(site, _)| site).collect()
    }

    fn put(&self, edge: CallEdge, site: Svma, placing: &mut Placing) {
        if let Some(site) = self.in_module(site) {
            placing.sites.insert(edge, site);
        }
    }
}
