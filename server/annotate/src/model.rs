//! A profile with its addresses resolved: the one source of all views.

use crate::addresses::Addresses;
use crate::arcs::ArcCall;
use crate::gaps::Remedy;
use crate::path::normalize;
use crate::tree::{NONE, Tree};
use heatline_profile::{ModuleId, Profile};
use heatline_symbols::{Checksum, Reason, Resolution, SourceFile};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// Number of a [`ModelFile`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(pub u32);

/// Number of a [`ModelFunction`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FunctionId(pub u32);

/// Number of a [`LineKey`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct LineId(pub(crate) u32);

/// Number of a location: a chain of frames in a module. Addresses with the same frames share one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct LocationId(pub(crate) u32);

/// A source file that code of the profile came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelFile {
    /// The path as recorded, with the compilation folder in front and `.` and `..` resolved.
    pub path: String,
    /// The checksum of its content at build time, where the debug information holds one.
    pub checksum: Option<Checksum>,
    /// Its content at build time, where the debug information or the profile holds it.
    pub text: Option<Arc<str>>,
}

/// A function that code of the profile belongs to.
///
/// Two functions are the same if module, linkage name (else name) and declaring file are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelFunction {
    /// The module that holds its code.
    pub module: ModuleId,
    /// The name for people, demangled.
    pub name: Arc<str>,
    /// The name the linker knows, where it differs.
    pub linkage_name: Option<Arc<str>>,
    /// Where it is declared, where debug information says so.
    pub file: Option<FileId>,
    /// The line of its declaration.
    pub line: Option<NonZeroU32>,
    /// Whether every frame of it in this profile was inlined into another function.
    pub always_inlined: bool,
}

/// A row of line costs: a source line of a module, or what stands for code that has no line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum LineKey {
    /// A source line.
    Source(ModuleId, FileId, NonZeroU32),
    /// Code of a function without a line.
    Function(ModuleId, FunctionId),
    /// Code of a module without a symbol.
    Module(ModuleId),
}

/// One activation at a location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModelFrame {
    pub(crate) function: Option<FunctionId>,
    pub(crate) line: LineId,
    pub(crate) inlined: bool,
}

/// What the look-up of one module gave.
#[derive(Debug)]
pub enum ModuleSymbols {
    /// One answer for each of [`Addresses::of_module`], in that order, by number of the resolution's input address.
    Resolved(Resolution),
    /// Nothing could be looked up, and why: no binary, another build, not a file.
    Unavailable(String),
}

/// How far the address of a location could be resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reached {
    Line,
    Symbol,
    Nothing,
}

/// A loaded profile with resolved addresses. Immutable; share it in an [`Arc`].
#[derive(Debug)]
pub struct Model {
    pub(crate) profile: Arc<Profile>,
    pub(crate) files: Vec<ModelFile>,
    pub(crate) functions: Vec<ModelFunction>,
    pub(crate) lines: Vec<LineKey>,
    pub(crate) module_of: Vec<ModuleId>,
    pub(crate) node_location: Vec<LocationId>,
    pub(crate) tree: Tree,
    /// The calls among recorded branches.
    pub(crate) arc_calls: Vec<ArcCall>,
    /// Why the addresses of a module were not resolved, the module as a whole or its first such address.
    pub(crate) reasons: Vec<Option<String>>,
    /// What helps against them, if anything does.
    pub(crate) remedies: Vec<Option<Remedy>>,
    /// The locations of [`Addresses`], modules in the order of their numbers.
    pub(crate) location_of_address: Vec<LocationId>,
    frame_starts: Vec<u32>,
    frames: Vec<ModelFrame>,
}

impl Model {
    /// Joins a profile with what its addresses resolved to; `symbols` has one entry per module.
    ///
    /// # Panics
    /// If `addresses` or `symbols` are of another profile.
    pub fn build(profile: Arc<Profile>, addresses: Addresses, symbols: Vec<ModuleSymbols>) -> Self {
        assert_eq!(symbols.len(), profile.modules.len(), "one answer per module");
        let mut builder = Builder::default();
        for (module, symbols) in (0..).map(ModuleId).zip(&symbols) {
            builder.add_module(module, addresses.of_module(module).len(), symbols);
        }
        builder.frame_starts.push(builder.frames.len() as u32);
        builder.mark_always_inlined();
        let of_address = &builder.location_of_address;
        let node_location = addresses.of_nodes().iter().map(|&address| of_address[address as usize]).collect();
        let mut model = Model {
            tree: Tree::of(&profile.stacks),
            arc_calls: Vec::new(),
            node_location,
            profile,
            files: builder.files,
            functions: builder.functions,
            lines: builder.lines,
            module_of: builder.module_of,
            reasons: builder.reasons,
            remedies: builder.remedies,
            location_of_address: builder.location_of_address,
            frame_starts: builder.frame_starts,
            frames: builder.frames,
        };
        model.arc_calls = model.find_arc_calls(&addresses, &model.location_of_address);
        model
    }

    /// The profile as it was read.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// All source files that code of the profile came from.
    pub fn files(&self) -> &[ModelFile] {
        &self.files
    }

    /// The file with this number.
    ///
    /// # Panics
    /// If the number is of another model.
    pub fn file(&self, id: FileId) -> &ModelFile {
        &self.files[id.0 as usize]
    }

    /// All functions that code of the profile belongs to.
    pub fn functions(&self) -> &[ModelFunction] {
        &self.functions
    }

    /// The function with this number.
    ///
    /// # Panics
    /// If the number is of another model.
    pub fn function(&self, id: FunctionId) -> &ModelFunction {
        &self.functions[id.0 as usize]
    }

    /// The source lines that code of the profile is on, and where its functions are declared: module, file, line. In no
    /// particular order; a line may come more than once.
    pub fn source_lines(&self) -> impl Iterator<Item = (ModuleId, FileId, NonZeroU32)> + '_ {
        let of_code = self.lines.iter().filter_map(|line| match *line {
            LineKey::Source(module, file, line) => Some((module, file, line)),
            LineKey::Function(..) | LineKey::Module(_) => None,
        });
        of_code.chain(self.declarations())
    }

    /// The lines of [`Self::source_lines`] on which functions are declared.
    fn declarations(&self) -> impl Iterator<Item = (ModuleId, FileId, NonZeroU32)> + '_ {
        self.functions.iter().filter_map(|function| Some((function.module, function.file?, function.line?)))
    }

    /// The frames at a location, innermost first; one nameless frame where nothing is known.
    pub(crate) fn frames_at(&self, location: usize) -> &[ModelFrame] {
        &self.frames[self.frame_starts[location] as usize..self.frame_starts[location + 1] as usize]
    }

    pub(crate) fn frames_of_node(&self, node: u32) -> &[ModelFrame] {
        self.frames_at(self.node_location[node as usize].0 as usize)
    }

    pub(crate) fn line(&self, id: LineId) -> LineKey {
        self.lines[id.0 as usize]
    }

    pub(crate) fn locations(&self) -> usize {
        self.module_of.len()
    }

    /// How far the innermost frame of a location was resolved.
    pub(crate) fn reached(&self, location: usize) -> Reached {
        let innermost = &self.frames_at(location)[0];
        match (self.line(innermost.line), innermost.function) {
            (LineKey::Source(..), _) => Reached::Line,
            (_, Some(_)) => Reached::Symbol,
            _ => Reached::Nothing,
        }
    }
}

/// Of two reasons the one that tells more: stray addresses outside the code, and code without lines, are in every module.
fn telling<'a>(first: Option<&'a Reason>, second: Option<&'a Reason>) -> Option<&'a Reason> {
    let rank = |reason: Option<&Reason>| match reason {
        None => 0,
        Some(Reason::OutsideSections) => 1,
        Some(Reason::NoLine) => 2,
        Some(_) => 3,
    };
    if rank(second) > rank(first) { second } else { first }
}

#[derive(Default)]
struct Builder {
    files: Vec<ModelFile>,
    file_ids: HashMap<String, FileId>,
    functions: Vec<ModelFunction>,
    lines: Vec<LineKey>,
    line_ids: FxHashMap<LineKey, LineId>,
    location_of_address: Vec<LocationId>,
    module_of: Vec<ModuleId>,
    reasons: Vec<Option<String>>,
    remedies: Vec<Option<Remedy>>,
    frame_starts: Vec<u32>,
    frames: Vec<ModelFrame>,
}

impl Builder {
    fn add_module(&mut self, module: ModuleId, addresses: usize, symbols: &ModuleSymbols) {
        match symbols {
            ModuleSymbols::Unavailable(reason) => {
                self.reasons.push(Some(reason.clone()));
                let is_other = reason.contains("differs");
                self.remedies.push(Some(if is_other { Remedy::RecordedBuild } else { Remedy::AsSaid }));
                let location = self.start_location(module);
                self.add_nameless_frame(module);
                self.location_of_address.extend(std::iter::repeat_n(location, addresses));
            }
            ModuleSymbols::Resolved(resolution) => {
                assert_eq!(resolution.len(), addresses, "one answer per address");
                self.add_resolution(module, resolution);
            }
        }
    }

    fn start_location(&mut self, module: ModuleId) -> LocationId {
        self.module_of.push(module);
        self.frame_starts.push(self.frames.len() as u32);
        LocationId(self.module_of.len() as u32 - 1)
    }

    fn add_nameless_frame(&mut self, module: ModuleId) {
        let line = self.line(LineKey::Module(module));
        self.frames.push(ModelFrame { function: None, line, inlined: false });
    }

    fn add_resolution(&mut self, module: ModuleId, resolution: &Resolution) {
        let files: Vec<FileId> = resolution.files.iter().map(|f| self.file(f)).collect();
        let functions = self.add_functions(module, resolution, &files);
        let first = self.module_of.len() as u32;
        let mut reason = None;
        for chain in 0..resolution.chain_count() {
            self.start_location(module);
            let frames = resolution.chain_frames(chain);
            for frame in frames {
                let function = frame.function.map(|f| functions[f.index()]);
                let key = match (frame.file, frame.line, function) {
                    (Some(file), Some(line), _) => LineKey::Source(module, files[file.index()], line),
                    (_, _, Some(function)) => LineKey::Function(module, function),
                    _ => LineKey::Module(module),
                };
                let line = self.line(key);
                self.frames.push(ModelFrame { function, line, inlined: frame.inlined });
            }
            if frames.is_empty() {
                self.add_nameless_frame(module);
            }
            reason = telling(reason, resolution.chain_reason(chain));
        }
        self.reasons.push(reason.map(ToString::to_string));
        self.remedies.push(reason.and_then(Remedy::against));
        let chains = (0..resolution.len()).map(|address| LocationId(first + resolution.chain(address) as u32));
        self.location_of_address.extend(chains);
    }

    fn mark_always_inlined(&mut self) {
        let mut always = vec![true; self.functions.len()];
        for function in self.frames.iter().filter(|frame| !frame.inlined).filter_map(|frame| frame.function) {
            always[function.0 as usize] = false;
        }
        for (function, always) in self.functions.iter_mut().zip(always) {
            function.always_inlined = always;
        }
    }

    fn add_functions(&mut self, module: ModuleId, resolution: &Resolution, files: &[FileId]) -> Vec<FunctionId> {
        let mut known: HashMap<(&str, Option<FileId>), FunctionId> = HashMap::with_capacity(resolution.functions.len());
        let mut ids = Vec::with_capacity(resolution.functions.len());
        for function in &resolution.functions {
            let file = function.file.map(|f| files[f.index()]);
            let name = function.linkage_name.as_deref().unwrap_or(&function.name);
            let id = *known.entry((name, file)).or_insert_with(|| {
                self.functions.push(ModelFunction {
                    module,
                    name: function.name.clone(),
                    linkage_name: function.linkage_name.clone(),
                    file,
                    line: function.line,
                    always_inlined: false,
                });
                FunctionId(self.functions.len() as u32 - 1)
            });
            ids.push(id);
        }
        ids
    }

    fn file(&mut self, found: &SourceFile) -> FileId {
        let path = normalize(&found.path);
        let checksum = found.checksum.as_ref();
        if let Some(&id) = self.file_ids.get(&path) {
            // Two different contents under one path: neither can be told to be the right one.
            let file = &mut self.files[id.0 as usize];
            if file.checksum.is_none() || file.checksum.as_ref() == checksum {
                file.checksum = file.checksum.take().or_else(|| checksum.cloned());
                file.text = file.text.take().or_else(|| found.text.clone());
            }
            return id;
        }
        let id = FileId(self.files.len() as u32);
        self.file_ids.insert(path.clone(), id);
        self.files.push(ModelFile { path, checksum: checksum.cloned(), text: found.text.clone() });
        id
    }

    fn line(&mut self, key: LineKey) -> LineId {
        let next = LineId(self.lines.len() as u32);
        let id = *self.line_ids.entry(key).or_insert(next);
        if id == next {
            assert!(next.0 != NONE, "fewer than 2^32 lines");
            self.lines.push(key);
        }
        id
    }
}
