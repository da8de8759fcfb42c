//! The part of the tables that says what the addresses were resolved to; texts of sources are members of their own.

use super::codec::{Decoded, Decoder, Encoder};
use heatline_profile::{
    Checksum, ModuleAddress, ModuleFrames, ModuleId, RecordedFile, RecordedFileId, RecordedFrame, RecordedFunction,
    RecordedFunctionId, Symbolization,
};
use std::num::NonZeroU32;
use std::ops::Range;

pub(super) fn encode_symbols(out: &mut Encoder, all: &Symbolization) {
    out.list(&all.files, |out, file| {
        out.text(&file.path);
        encode_checksum(out, file.checksum);
    });
    out.list(&all.functions, |out, function| {
        out.text(&function.name);
        out.optional(function.linkage_name.as_ref(), |out, name| out.text(name));
        out.number(from_1(function.file.map(|id| id.0)));
        out.number(line(function.line));
    });
    out.list(&all.modules, encode_module);
}

pub(super) fn decode_symbols(input: &mut Decoder<'_>, modules: usize) -> Decoded<Symbolization> {
    let files =
        input.list(|input| Ok(RecordedFile { path: input.text()?, checksum: decode_checksum(input)?, text: None }))?;
    let functions = input.list(|input| {
        Ok(RecordedFunction {
            name: input.shared_text()?,
            linkage_name: input.optional(Decoder::shared_text)?,
            file: id(input, files.len(), "the number of a file")?.map(RecordedFileId),
            line: NonZeroU32::new(input.narrow("a line")?),
        })
    })?;
    let mut all = Symbolization { files, functions, modules: Vec::new() };
    let count = input.count_of::<ModuleFrames>()?;
    if count > modules {
        return input.damage("no more modules than the profile has");
    }
    for module in (0..count as u32).map(ModuleId) {
        let frames = decode_module(input, &all)?;
        *all.module_mut(module) = frames;
    }
    Ok(all)
}

fn encode_checksum(out: &mut Encoder, checksum: Option<Checksum>) {
    match checksum {
        Some(Checksum::Md5(sum)) => out.bytes(&sum),
        Some(Checksum::Sha1(sum)) => out.bytes(&sum),
        Some(Checksum::Sha256(sum)) => out.bytes(&sum),
        // Other kinds cannot be told apart by their length, so they are left out.
        Some(_) | None => out.bytes(&[]),
    }
}

fn decode_checksum(input: &mut Decoder<'_>) -> Decoded<Option<Checksum>> {
    let bytes = input.bytes(32)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let md5 = bytes.try_into().ok().map(Checksum::Md5);
    let sha1 = || bytes.try_into().ok().map(Checksum::Sha1);
    let sha256 = || bytes.try_into().ok().map(Checksum::Sha256);
    md5.or_else(sha1).or_else(sha256).map_or_else(|| input.damage("a checksum"), |sum| Ok(Some(sum)))
}

/// Frames are written as function, file and line, each counted from 1, 0 for none; the lowest bit of the function's
/// number tells whether it was inlined. Addresses are written as distances.
fn encode_module(out: &mut Encoder, module: &ModuleFrames) {
    out.optional(module.reason.as_ref(), |out, reason| out.text(reason));
    out.count(module.chain_count());
    for number in 0..module.chain_count() as u32 {
        out.list(module.chain(number), |out, frame| {
            out.number(from_1(frame.function.map(|id| id.0)) * 2 + u64::from(frame.inlined));
            out.number(from_1(frame.file.map(|id| id.0)));
            out.number(line(frame.line));
        });
    }
    out.count(module.addresses().len());
    let (mut last_address, mut last_chain) = (0, 0);
    for &(address, chain) in module.addresses() {
        out.number(address.0 - last_address);
        out.signed(i64::from(chain) - last_chain);
        (last_address, last_chain) = (address.0, i64::from(chain));
    }
}

fn decode_module(input: &mut Decoder<'_>, all: &Symbolization) -> Decoded<ModuleFrames> {
    let mut module = ModuleFrames::default();
    module.reason = input.optional(Decoder::text)?;
    let mut frames = Vec::new();
    for _ in 0..input.count_of::<Range<u32>>()? {
        frames.clear();
        for _ in 0..input.count_of::<RecordedFrame>()? {
            let function = input.number()?;
            let inlined = function % 2 == 1;
            if function / 2 > all.functions.len() as u64 {
                return input.damage("the number of a function");
            }
            let function = (function / 2).checked_sub(1).map(|id| RecordedFunctionId(id as u32));
            let file = id(input, all.files.len(), "the number of a file")?.map(RecordedFileId);
            frames.push(RecordedFrame { function, file, line: NonZeroU32::new(input.narrow("a line")?), inlined });
        }
        module.add_chain(frames.iter().copied());
    }
    let (mut address, mut chain) = (0u64, 0i64);
    for at in 0..input.count_of::<(ModuleAddress, u32)>()? {
        let step = input.number()?;
        let next = address.checked_add(step).filter(|_| at == 0 || step > 0);
        let Some(next) = next else { return input.damage("ascending addresses") };
        address = next;
        chain = chain.wrapping_add(input.signed()?);
        let Some(known) = u32::try_from(chain).ok().filter(|&chain| (chain as usize) < module.chain_count()) else {
            return input.damage("the number of a chain");
        };
        module.add_address(ModuleAddress(address), known);
    }
    Ok(module)
}

fn from_1(id: Option<u32>) -> u64 {
    id.map_or(0, |id| u64::from(id) + 1)
}

fn line(line: Option<NonZeroU32>) -> u64 {
    line.map_or(0, |line| line.get().into())
}

fn id(input: &mut Decoder<'_>, count: usize, expected: &'static str) -> Decoded<Option<u32>> {
    Ok(input.below(count + 1, expected)?.checked_sub(1))
}
