//! A resolution taken apart again, where addresses of several recordings were looked up together.

use crate::resolution::{Chain, FileId, Frame, Function, FunctionId, Resolution, SourceFile};

impl Resolution {
    /// The resolutions of the first `lengths[0]` input addresses, of the `lengths[1]` behind them, and so on. Each has
    /// the files, functions and chains that it uses, and all problems.
    ///
    /// # Panics
    /// If there are more input addresses in the parts than in the whole.
    pub fn into_parts(self, lengths: &[usize]) -> Vec<Resolution> {
        if let [length] = lengths
            && *length == self.len()
        {
            return vec![self];
        }
        let mut first = 0;
        let part = |&length: &usize| {
            let addresses = &self.of_address[first..first + length];
            first += length;
            Part::of(&self).take(addresses)
        };
        lengths.iter().map(part).collect()
    }
}

/// A part in the making, with the new number plus one of everything that was taken over.
struct Part<'a> {
    whole: &'a Resolution,
    part: Resolution,
    chains: Vec<u32>,
    functions: Vec<Option<FunctionId>>,
    files: Vec<Option<FileId>>,
}

impl<'a> Part<'a> {
    fn of(whole: &'a Resolution) -> Self {
        let (problems, reasons) = (whole.problems.clone(), whole.reasons.clone());
        Part {
            whole,
            part: Resolution { problems, reasons, ..Resolution::default() },
            chains: vec![0; whole.chains.len()],
            functions: vec![None; whole.functions.len()],
            files: vec![None; whole.files.len()],
        }
    }

    fn take(mut self, addresses: &[u32]) -> Resolution {
        let of_address = addresses.iter().map(|&chain| self.chain(chain)).collect();
        Resolution { of_address, ..self.part }
    }

    fn chain(&mut self, old: u32) -> u32 {
        let known = self.chains[old as usize];
        if known > 0 {
            return known - 1;
        }
        let Chain { start, end, reason } = self.whole.chains[old as usize];
        let first = self.part.frames.len() as u32;
        for frame in &self.whole.frames[start as usize..end as usize] {
            let (function, file) = (self.function(frame.function), self.file(frame.file));
            self.part.frames.push(Frame { function, file, ..*frame });
        }
        let chain = Chain { start: first, end: self.part.frames.len() as u32, reason };
        self.part.chains.push(chain);
        self.chains[old as usize] = self.part.chains.len() as u32;
        self.part.chains.len() as u32 - 1
    }

    fn function(&mut self, old: Option<FunctionId>) -> Option<FunctionId> {
        let old = old?;
        if self.functions[old.index()].is_none() {
            let function: &Function = self.whole.function(old);
            let function = Function { file: self.file(function.file), ..function.clone() };
            self.functions[old.index()] = FunctionId::new(self.part.functions.len());
            self.part.functions.push(function);
        }
        self.functions[old.index()]
    }

    fn file(&mut self, old: Option<FileId>) -> Option<FileId> {
        let old = old?;
        if self.files[old.index()].is_none() {
            let file: &SourceFile = self.whole.file(old);
            self.files[old.index()] = FileId::new(self.part.files.len());
            self.part.files.push(file.clone());
        }
        self.files[old.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    fn resolution(names: &[&str], of_address: &[Vec<usize>]) -> Resolution {
        let file = |name: &&str| SourceFile { path: format!("{name}.c"), checksum: None, text: None };
        let function = |(number, name): (usize, &&str)| Function {
            name: (*name).into(),
            linkage_name: None,
            file: FileId::new(number),
            line: NonZeroU32::new(7),
            from_symbol_table: false,
        };
        let frame = |&number: &usize| Frame {
            function: FunctionId::new(number),
            file: FileId::new(number),
            line: NonZeroU32::new(9),
            column: None,
            inlined: false,
        };
        let frames: Vec<Vec<Frame>> = of_address.iter().map(|chain| chain.iter().map(frame).collect()).collect();
        let functions = names.iter().enumerate().map(function).collect();
        Resolution::from_frames(names.iter().map(file).collect(), functions, &frames)
    }

    #[test]
    fn a_part_holds_what_its_addresses_use() {
        let whole = resolution(&["f", "g", "h"], &[vec![2], vec![1, 2], vec![2], vec![0], vec![]]);
        let parts = whole.into_parts(&[2, 1, 2]);
        let expected = [
            resolution(&["h", "g"], &[vec![0], vec![1, 0]]),
            resolution(&["h"], &[vec![0]]),
            resolution(&["f"], &[vec![0], vec![]]),
        ];
        for (part, expected) in parts.iter().zip(&expected) {
            assert_eq!((&part.files, &part.functions), (&expected.files, &expected.functions));
            let frames = |resolution: &Resolution| {
                (0..resolution.len()).map(|i| resolution.frames(i).to_vec()).collect::<Vec<_>>()
            };
            assert_eq!(frames(part), frames(expected));
        }
    }
}
