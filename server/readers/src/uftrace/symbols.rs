//! The members `<image>.sym` and `<image>.dbg`: names of functions and where they are declared, for images that are not at
//! hand any more.
//!
//! Names: `0000000000001226 T doit` on a line each, ascending; later versions write `0000000000001226 0000002a T doit`.
//! Places: `F: 1226 doit` and behind it `L: 12 src/doit.c`.
//! Addresses count from the start of the image. Where two images have one name, the members of one of them are called
//! `<image>-<four digits>`; the first lines say which image is meant.

use crate::Folder;
use heatline_profile::{
    Module, ModuleAddress, ModuleId, ModuleKind, Profile, RecordedFile, RecordedFileId, RecordedFrame,
    RecordedFunction, RecordedFunctionId, Symbolization,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::io::Read;
use std::num::NonZeroU32;
use std::sync::Arc;

/// Bytes of such a file that are read at most.
const MOST_BYTES: u64 = 8 << 20;

/// Gives the profile the names and places that the recording holds.
pub(super) fn add_names(profile: &mut Profile, folder: &dyn Folder, names: &[String]) {
    let mut symbolization = Symbolization::default();
    let mut files = FxHashMap::default();
    let images = (0..).map(ModuleId).zip(&profile.modules).filter(|(_, module)| module.kind == ModuleKind::Binary);
    for (id, module) in images {
        let Some(symbols) = read_of(module, ".sym", folder, names) else { continue };
        let places = read_of(module, ".dbg", folder, names).unwrap_or_default();
        let (symbols, places) = (parse_symbols(&symbols), parse_places(&places));
        let nodes = profile.stacks.nodes().iter().filter(|node| node.module == id);
        let addresses: BTreeSet<ModuleAddress> = nodes.map(|node| node.address.lookup()).collect();
        for address in addresses {
            let after = symbols.partition_point(|(start, _)| *start <= address.0);
            let Some((start, name)) = after.checked_sub(1).and_then(|at| symbols.get(at)) else { continue };
            let place = places.get(start).map(|(path, line)| (file(path, &mut symbolization, &mut files), *line));
            let (file, line) = place.map_or((None, None), |(file, line)| (Some(file), Some(line)));
            let function = RecordedFunctionId(symbolization.functions.len() as u32);
            symbolization.functions.push(RecordedFunction { name: (*name).into(), linkage_name: None, file, line });
            let frame = RecordedFrame { function: Some(function), file, line, inlined: false };
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

/// The content of the member of a kind that belongs to an image.
fn read_of(module: &Module, kind: &str, folder: &dyn Folder, names: &[String]) -> Option<String> {
    let base = module.base_name();
    let is_candidate = |name: &&String| {
        let rest = name.strip_prefix(base).and_then(|rest| rest.strip_suffix(kind));
        rest.is_some_and(|rest| rest.is_empty() || (rest.len() == 5 && rest.starts_with('-')))
    };
    names.iter().filter(is_candidate).find_map(|name| {
        let mut bytes = Vec::new();
        folder.open(name).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes)).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        is_of(module, &text).then_some(text)
    })
}

/// Whether the first lines of a member speak of an image, as far as they say.
fn is_of(module: &Module, text: &str) -> bool {
    let said = |key: &str| {
        let head = text.lines().take_while(|line| line.starts_with('#'));
        head.filter_map(|line| line.strip_prefix(key)).map(str::trim).next().filter(|said| !said.is_empty())
    };
    let is_path = said("# path name: ").is_none_or(|path| path == module.path);
    let known = module.identity.as_ref().map(ToString::to_string);
    let is_identity = said("# build-id: ").zip(known).is_none_or(|(said, known)| said == known);
    is_path && is_identity
}

fn parse_symbols(text: &str) -> Vec<(u64, &str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut symbols: Vec<(u64, &str)> = lines.filter_map(parse_symbol).collect();
    symbols.sort_by_key(|(start, _)| *start);
    symbols
}

fn parse_symbol(line: &str) -> Option<(u64, &str)> {
    let (start, rest) = line.split_once(' ')?;
    let (kind, name) = rest.split_once(' ')?;
    // Of later versions a size stands before the kind, which is one letter.
    let name = if kind.len() == 1 { name } else { name.split_once(' ')?.1 };
    Some((u64::from_str_radix(start, 16).ok()?, name.trim()))
}

/// The path and line of each function, by its start.
fn parse_places(text: &str) -> FxHashMap<u64, (&str, NonZeroU32)> {
    let mut places = FxHashMap::default();
    let mut start = None;
    for (kind, rest) in text.lines().filter_map(|line| line.split_once(": ")) {
        match kind {
            "F" => start = rest.split(' ').next().and_then(|start| u64::from_str_radix(start, 16).ok()),
            "L" => {
                let Some((line, path)) = rest.split_once(' ') else { continue };
                if let (Some(start), Ok(line), false) = (start, line.parse(), path.is_empty()) {
                    places.insert(start, (path, line));
                }
            }
            _ => {}
        }
    }
    places
}

/// The number of a source file.
fn file(path: &str, said: &mut Symbolization, known: &mut FxHashMap<String, RecordedFileId>) -> RecordedFileId {
    if let Some(&id) = known.get(path) {
        return id;
    }
    let id = RecordedFileId(said.files.len() as u32);
    said.files.push(RecordedFile { path: path.to_owned(), checksum: None, text: None });
    known.insert(path.to_owned(), id);
    id
}
