//! The members `<image>.sym`: names of functions, for images that are not at hand any more.
//!
//! `0000000000001226 T doit` on a line each, ascending; addresses count from the start of the image.

use crate::Folder;
use heatline_profile::{
    ModuleAddress, ModuleId, ModuleKind, Profile, RecordedFrame, RecordedFunction, RecordedFunctionId, Symbolization,
};
use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;

/// Bytes of such a file that are read at most.
const MOST_BYTES: u64 = 8 << 20;

/// Gives the profile the names that the recording holds.
pub(super) fn add_names(profile: &mut Profile, folder: &dyn Folder, names: &[String]) {
    let mut symbolization = Symbolization::default();
    let images = (0..).map(ModuleId).zip(&profile.modules).filter(|(_, module)| module.kind == ModuleKind::Binary);
    for (id, module) in images {
        let member = format!("{}.sym", module.base_name());
        if !names.contains(&member) {
            continue;
        }
        let mut bytes = Vec::new();
        if folder.open(&member).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes)).is_err() {
            continue;
        }
        let nodes = profile.stacks.nodes().iter().filter(|node| node.module == id);
        let addresses: BTreeSet<ModuleAddress> = nodes.map(|node| node.address.lookup()).collect();
        let text = String::from_utf8_lossy(&bytes);
        let symbols = parse(&text);
        for address in addresses {
            let after = symbols.partition_point(|(start, _)| *start <= address.0);
            let Some((_, name)) = after.checked_sub(1).and_then(|at| symbols.get(at)) else { continue };
            let function = RecordedFunctionId(symbolization.functions.len() as u32);
            let (linkage_name, file, line) = (None, None, None);
            symbolization.functions.push(RecordedFunction { name: (*name).to_owned(), linkage_name, file, line });
            let frame = RecordedFrame { function: Some(function), file: None, line: None, inlined: false };
            let frames = symbolization.module_mut(id);
            let chain = frames.add_chain([frame]);
            frames.add_address(address, chain);
            frames.sort();
        }
    }
    if !symbolization.functions.is_empty() {
        profile.symbolization = Some(Arc::new(symbolization));
    }
}

fn parse(text: &str) -> Vec<(u64, &str)> {
    let line = |line| {
        let mut words = str::splitn(line, 3, ' ');
        let (start, _, name) = (words.next()?, words.next()?, words.next()?);
        Some((u64::from_str_radix(start, 16).ok()?, name.trim()))
    };
    let mut symbols: Vec<(u64, &str)> = text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect();
    symbols.sort_by_key(|(start, _)| *start);
    symbols
}
