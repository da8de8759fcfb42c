//! What was resolved, in the form of a recording that brings its frames along: frozen and exported profiles hold it.

use crate::addresses::Addresses;
use crate::model::{FileId, LineKey, Model};
use heatline_profile::{
    ModuleId, RecordedFile, RecordedFileId, RecordedFrame, RecordedFunction, RecordedFunctionId, Symbolization,
};

impl Model {
    /// All that is known of the source of the profile's code. Files and functions have their numbers of this model; a
    /// profile with it shows the same costs without binaries. Only texts that the profile or debug information brought are
    /// in it.
    pub fn symbolization(&self) -> Symbolization {
        let file = |id: FileId| RecordedFileId(id.0);
        let mut all = Symbolization::default();
        all.files.extend(self.files.iter().map(|file| RecordedFile {
            path: file.path.clone(),
            checksum: file.checksum,
            text: file.text.clone(),
        }));
        all.functions.extend(self.functions.iter().map(|function| RecordedFunction {
            name: function.name.clone(),
            linkage_name: function.linkage_name.clone(),
            file: function.file.map(file),
            line: function.line,
        }));
        let mut chains = Vec::with_capacity(self.locations());
        for location in 0..self.locations() {
            let frames = self.frames_at(location).iter().filter_map(|frame| {
                let (file, line) = match self.line(frame.line) {
                    LineKey::Source(_, file, line) => (Some(RecordedFileId(file.0)), Some(line)),
                    LineKey::Function(..) => (None, None),
                    LineKey::Module(_) if frame.function.is_none() => return None,
                    LineKey::Module(_) => (None, None),
                };
                let function = frame.function.map(|id| RecordedFunctionId(id.0));
                Some(RecordedFrame { function, file, line, inlined: frame.inlined })
            });
            chains.push(all.module_mut(self.module_of[location]).add_chain(frames));
        }
        let addresses = Addresses::of(&self.profile);
        let mut location = self.location_of_address.iter();
        for id in (0..self.profile.modules.len() as u32).map(ModuleId) {
            for (&address, location) in addresses.of_module(id).iter().zip(location.by_ref()) {
                all.module_mut(id).add_address(address, chains[location.0 as usize]);
            }
        }
        for (id, reason) in (0..).map(ModuleId).zip(&self.reasons) {
            let module = all.module_mut(id);
            module.reason.clone_from(reason);
            module.sort();
        }
        all
    }

    /// The files that have lines with cost, ascending.
    pub fn costed_files(&self) -> Vec<FileId> {
        let of_line = |line: &LineKey| match *line {
            LineKey::Source(_, file, _) => Some(file),
            _ => None,
        };
        let mut files: Vec<FileId> = self.lines.iter().filter_map(of_line).collect();
        files.sort_unstable();
        files.dedup();
        files
    }
}
