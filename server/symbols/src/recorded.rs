//! Frames that a recording brought along, in the form of a look-up.

use crate::demangle::demangle;
use crate::resolution::{Chain, FileId, Frame, Function, FunctionId, Reason, Resolution, SourceFile};
use heatline_profile::{ModuleAddress, ModuleFrames, ModuleId, RecordedFileId, RecordedFrame, Symbolization};
use std::sync::Arc;

/// What a recording says of some addresses of one module.
#[derive(Debug)]
pub struct Recorded {
    /// One answer for each address; no frames and no reason where the recording is silent.
    pub resolution: Resolution,
    /// The positions of the addresses on which it is silent.
    pub silent: Vec<usize>,
}

impl Recorded {
    /// Looks up `wanted`, which ascend. `None` if the recording says nothing of any address of the module.
    pub fn look_up(symbolization: &Symbolization, module: ModuleId, wanted: &[ModuleAddress]) -> Option<Recorded> {
        let recorded = symbolization.module(module).filter(|module| module.chain_count() > 0)?;
        let mut resolution = Resolution::default();
        let parts = Parts::used(symbolization, recorded);
        resolution.files = parts.files(symbolization);
        resolution.functions = parts.functions(symbolization);
        resolution.reasons = recorded.reason.iter().cloned().map(Reason::Recorded).collect();
        for number in 0..recorded.chain_count() as u32 {
            let start = resolution.frames.len() as u32;
            let frames = recorded.chain(number);
            resolution.frames.extend(frames.iter().map(|frame| parts.frame(frame)));
            let without_line = frames.first().is_none_or(|frame| frame.line.is_none());
            let reason = u32::from(without_line && recorded.reason.is_some());
            resolution.chains.push(Chain { start, end: resolution.frames.len() as u32, reason });
        }
        let nothing = resolution.chains.len() as u32;
        let mut silent = Vec::new();
        let mut known = recorded.addresses().iter().peekable();
        for (position, address) in wanted.iter().enumerate() {
            while known.next_if(|(known, _)| known < address).is_some() {}
            let chain = known.peek().filter(|(known, _)| known == address).map(|&&(_, chain)| chain);
            resolution.of_address.push(chain.unwrap_or(nothing));
            if chain.is_none() {
                silent.push(position);
            }
        }
        if !silent.is_empty() {
            let end = resolution.frames.len() as u32;
            resolution.chains.push(Chain { start: end, end, reason: 0 });
        }
        Some(Recorded { resolution, silent })
    }

    /// The answers, completed by those of a look-up of the silent addresses alone.
    pub fn complete(self, rest: Resolution) -> Resolution {
        let mut all = self.resolution;
        let (files, functions) = (all.files.len(), all.functions.len());
        let file = |id: Option<FileId>| id.and_then(|id| FileId::new(id.index() + files));
        let (first_frame, first_chain) = (all.frames.len() as u32, all.chains.len() as u32);
        let first_reason = all.reasons.len() as u32;
        all.functions.extend(rest.functions.into_iter().map(|f| Function { file: file(f.file), ..f }));
        all.files.extend(rest.files);
        all.frames.extend(rest.frames.iter().map(|frame| Frame {
            function: frame.function.and_then(|id| FunctionId::new(id.index() + functions)),
            file: file(frame.file),
            ..*frame
        }));
        all.chains.extend(rest.chains.iter().map(|chain| Chain {
            start: chain.start + first_frame,
            end: chain.end + first_frame,
            reason: if chain.reason == 0 { 0 } else { chain.reason + first_reason },
        }));
        all.reasons.extend(rest.reasons);
        all.problems.append(&rest.problems);
        for (&position, chain) in self.silent.iter().zip(&rest.of_address) {
            if let Some(slot) = all.of_address.get_mut(position) {
                *slot = chain + first_chain;
            }
        }
        all
    }

    /// The answers, where nothing more can be found out of the silent addresses, and why.
    pub fn without_rest(self, reason: String) -> Resolution {
        let mut all = self.resolution;
        if !self.silent.is_empty()
            && let Some(nothing) = all.chains.last_mut()
        {
            all.reasons.push(Reason::Recorded(reason));
            nothing.reason = all.reasons.len() as u32;
        }
        all
    }
}

/// The files and functions that frames of one module name.
struct Parts {
    files: Used,
    functions: Used,
}

/// The items of a list that are used, and which of those each is.
struct Used {
    items: Vec<u32>,
    /// Per item of the list.
    place: Vec<Option<u32>>,
}

impl Used {
    /// `used` may name an item often, and items that are not there.
    fn new(length: usize, used: impl Iterator<Item = u32>) -> Used {
        let mut place = vec![None; length];
        used.for_each(|item| place.get_mut(item as usize).into_iter().for_each(|place| *place = Some(0)));
        let mut items = Vec::new();
        for (item, place) in (0..).zip(&mut place).filter(|(_, place)| place.is_some()) {
            *place = Some(items.len() as u32);
            items.push(item);
        }
        Used { items, place }
    }

    fn place(&self, item: u32) -> Option<usize> {
        self.place.get(item as usize)?.map(|place| place as usize)
    }
}

impl Parts {
    fn used(symbolization: &Symbolization, module: &ModuleFrames) -> Parts {
        let frames = || (0..module.chain_count() as u32).flat_map(|number| module.chain(number));
        let functions = frames().filter_map(|frame| Some(frame.function?.0));
        let functions = Used::new(symbolization.functions.len(), functions);
        let declared = functions.items.iter().filter_map(|id| symbolization.functions[*id as usize].file);
        let files = frames().filter_map(|frame| frame.file).chain(declared).map(|id| id.0);
        Parts { files: Used::new(symbolization.files.len(), files), functions }
    }

    fn file(&self, id: Option<RecordedFileId>) -> Option<FileId> {
        FileId::new(self.files.place(id?.0)?)
    }

    fn frame(&self, frame: &RecordedFrame) -> Frame {
        let function = frame.function.and_then(|id| FunctionId::new(self.functions.place(id.0)?));
        Frame { function, file: self.file(frame.file), line: frame.line, column: None, inlined: frame.inlined }
    }

    fn files(&self, of: &Symbolization) -> Vec<SourceFile> {
        let files = self.files.items.iter().map(|id| &of.files[*id as usize]);
        files
            .map(|file| SourceFile { path: file.path.clone(), checksum: file.checksum, text: file.text.clone() })
            .collect()
    }

    fn functions(&self, of: &Symbolization) -> Vec<Function> {
        let functions = self.functions.items.iter().map(|id| &of.functions[*id as usize]);
        let function = |function: &heatline_profile::RecordedFunction| {
            let (name, linkage_name) = match &function.linkage_name {
                None if is_mangled(&function.name) => for_people(&function.name),
                linkage_name => (function.name.clone(), linkage_name.clone()),
            };
            Function {
                name,
                linkage_name,
                file: self.file(function.file),
                line: function.line,
                from_symbol_table: function.file.is_none(),
            }
        };
        functions.map(function).collect()
    }
}

/// Some recorders leave names as the linker has them.
fn is_mangled(name: &str) -> bool {
    ["_Z", "_R", "__Z", "?"].iter().any(|prefix| name.starts_with(prefix))
}

fn for_people(name: &Arc<str>) -> (Arc<str>, Option<Arc<str>>) {
    let demangled = demangle(name);
    match *demangled == **name {
        true => (name.clone(), None),
        false => (demangled.into(), Some(name.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heatline_profile::{RecordedFile, RecordedFunction, RecordedFunctionId};
    use std::num::NonZeroU32;

    fn recording() -> Symbolization {
        let mut all = Symbolization::default();
        for path in ["unused.c", "a.c"] {
            all.files.push(RecordedFile { path: path.into(), checksum: None, text: None });
        }
        for name in ["_Z5inneri", "outer"] {
            let file = Some(RecordedFileId(1));
            all.functions.push(RecordedFunction { name: name.into(), linkage_name: None, file, line: None });
        }
        let module = all.module_mut(ModuleId(0));
        let frame = |function, inlined| RecordedFrame {
            function: Some(RecordedFunctionId(function)),
            file: Some(RecordedFileId(1)),
            line: NonZeroU32::new(function + 10),
            inlined,
        };
        let chain = module.add_chain([frame(0, true), frame(1, false)]);
        module.add_address(ModuleAddress(0x20), chain);
        module.sort();
        all
    }

    fn names(resolution: &Resolution, address: usize) -> Vec<&str> {
        let function = |frame: &Frame| frame.function.map(|id| &*resolution.function(id).name);
        resolution.frames(address).iter().filter_map(function).collect()
    }

    #[test]
    fn recorded_addresses_have_their_frames_and_the_others_those_of_the_binary() {
        let wanted = [0x10, 0x20, 0x30].map(ModuleAddress);
        let recorded = Recorded::look_up(&recording(), ModuleId(0), &wanted).unwrap();
        assert_eq!(recorded.silent, [0, 2]);
        assert_eq!(recorded.resolution.files.len(), 1);
        let function =
            Function { name: "main".into(), linkage_name: None, file: None, line: None, from_symbol_table: true };
        let frame = Frame { function: FunctionId::new(0), file: None, line: None, column: None, inlined: false };
        let rest = Resolution::from_frames(Vec::new(), vec![function], &[Vec::new(), vec![frame]]);
        let all = recorded.complete(rest);
        assert_eq!([0, 1, 2].map(|at| names(&all, at)), [vec![], vec!["inner(int)", "outer"], vec!["main"]]);
    }

    #[test]
    fn addresses_that_nothing_is_known_of_have_the_reason() {
        let wanted = [0x10, 0x20].map(ModuleAddress);
        let recorded = Recorded::look_up(&recording(), ModuleId(0), &wanted).unwrap();
        let all = recorded.without_rest("binary not found".into());
        assert_eq!(all.unresolved(0).map(ToString::to_string).as_deref(), Some("binary not found"));
        assert_eq!((all.unresolved(1), names(&all, 1).len()), (None, 2));
        assert!(Recorded::look_up(&recording(), ModuleId(1), &wanted).is_none());
    }
}
