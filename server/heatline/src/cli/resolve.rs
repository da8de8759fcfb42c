//! `heatline resolve`: addresses of a binary to frames.

use super::options::Format;
use super::output::{csv_cell, print, warn};
use crate::binaries::{Companions, SearchPaths};
use crate::storage::FileStorage;
use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use heatline_profile::{AddressSpace, ModuleAddress, Silent, Svma};
use heatline_symbols::{Image, ImageKind, Resolution};
use serde::Serialize;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// Options of `heatline resolve`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  heatline resolve ./app 0x1139 0x1200
  nm ./app | cut -d' ' -f1 | heatline resolve ./app - --format json")]
pub struct ResolveArgs {
    /// The binary.
    binary: PathBuf,
    /// Addresses, hexadecimal with or without 0x; "-" reads one per line from standard input.
    #[arg(required = true)]
    addresses: Vec<String>,
    /// What the addresses are: as linked, relative to the image base, or positions in the file. Default: as linked for
    /// ELF, relative for PE.
    #[arg(long, value_enum)]
    address_space: Option<Space>,
    /// Only the function that holds the code, not those inlined into it.
    #[arg(long)]
    no_inline: bool,
    /// Also look for separate debug files here. May be repeated.
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
    /// How to write; JSON is one object per line.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Space {
    Svma,
    Rva,
    FileOffset,
}

/// So many addresses are answered at a time, so that memory does not follow the number of addresses.
const BATCH: usize = 1 << 20;

#[derive(Serialize)]
struct AnswerJson<'a> {
    address: String,
    frames: Vec<FrameJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct FrameJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    linkage_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    inlined: bool,
}

/// Runs the command.
pub fn run(args: ResolveArgs) -> anyhow::Result<()> {
    let name = || args.binary.display().to_string();
    let storage = FileStorage::open(&args.binary).with_context(name)?;
    let search = SearchPaths { debug_dirs: args.debug_dir.clone(), ..SearchPaths::default() };
    let companions = Companions { search: &search, binary: &args.binary };
    let image = Image::open(Arc::new(storage), &companions).with_context(name)?;
    let space = match args.address_space {
        Some(Space::Svma) => AddressSpace::Svma,
        Some(Space::Rva) => AddressSpace::Rva,
        Some(Space::FileOffset) => AddressSpace::FileOffset,
        None if image.kind() == ImageKind::Pe => AddressSpace::Rva,
        None => AddressSpace::Svma,
    };
    let addresses = addresses(&args.addresses)?;
    print(|out| {
        for batch in addresses.chunks(BATCH) {
            answer(out, &args, &image, space, batch)?;
        }
        Ok(())
    })
}

/// The addresses as given, those of standard input in the place of `-`.
fn addresses(texts: &[String]) -> anyhow::Result<Vec<u64>> {
    let mut addresses = Vec::with_capacity(texts.len());
    for text in texts {
        if text != "-" {
            addresses.push(parse(text)?);
            continue;
        }
        for line in io::stdin().lock().lines() {
            let line = line.context("standard input")?;
            if !line.trim().is_empty() {
                addresses.push(parse(line.trim())?);
            }
        }
    }
    Ok(addresses)
}

fn parse(text: &str) -> anyhow::Result<u64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| anyhow!("{text}: expected a hexadecimal address such as 0x1139"))
}

fn answer(
    out: &mut dyn Write,
    args: &ResolveArgs,
    image: &Image,
    space: AddressSpace,
    batch: &[u64],
) -> io::Result<()> {
    let svma = |&address: &u64| image.to_svma(ModuleAddress(address), space).unwrap_or(Svma(u64::MAX));
    let svmas: Vec<Svma> = batch.iter().map(svma).collect();
    let resolution = image.resolve(&svmas, &Silent).map_err(io::Error::other)?;
    warn(&resolution.problems);
    for (i, &address) in batch.iter().enumerate() {
        let answer = json(&resolution, i, address, args.no_inline);
        match args.format {
            Format::Json => {
                serde_json::to_writer(&mut *out, &answer)?;
                writeln!(out)?;
            }
            Format::Table => write_text(out, &answer)?,
            Format::Csv => write_csv(out, &answer)?,
        }
    }
    Ok(())
}

fn json(resolution: &Resolution, i: usize, address: u64, no_inline: bool) -> AnswerJson<'_> {
    let frames = resolution.frames(i);
    let frames = if no_inline { &frames[frames.len().saturating_sub(1)..] } else { frames };
    let frames: Vec<FrameJson<'_>> = frames
        .iter()
        .map(|frame| {
            let function = frame.function.map(|id| resolution.function(id));
            FrameJson {
                function: function.map(|function| function.name.as_str()),
                linkage_name: function.and_then(|function| function.linkage_name.as_deref()),
                file: frame.file.map(|id| resolution.file(id).path.as_str()),
                line: frame.line.map(|line| line.get()),
                column: frame.column.map(|column| column.get()),
                inlined: frame.inlined,
            }
        })
        .collect();
    let reason = resolution.unresolved(i).map(ToString::to_string);
    let reason = reason.or_else(|| frames.is_empty().then(|| "no symbol".to_owned()));
    AnswerJson { address: format!("{address:#x}"), frames, reason }
}

fn place(frame: &FrameJson<'_>) -> String {
    match (frame.file, frame.line, frame.column) {
        (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}"),
        (Some(file), Some(line), None) => format!("{file}:{line}"),
        (Some(file), ..) => file.into(),
        _ => String::new(),
    }
}

fn write_text(out: &mut dyn Write, answer: &AnswerJson<'_>) -> io::Result<()> {
    write!(out, "{}", answer.address)?;
    if answer.frames.is_empty() {
        return writeln!(out, "  ({})", answer.reason.as_deref().unwrap_or("no symbol"));
    }
    for (depth, frame) in answer.frames.iter().enumerate() {
        let indent = if depth > 0 { " ".repeat(answer.address.len()) } else { String::new() };
        let inlined = if frame.inlined { " (inlined)" } else { "" };
        writeln!(out, "{indent}  {}{inlined}  {}", frame.function.unwrap_or("[no symbol]"), place(frame))?;
    }
    Ok(())
}

fn write_csv(out: &mut dyn Write, answer: &AnswerJson<'_>) -> io::Result<()> {
    for frame in &answer.frames {
        let (function, place) = (csv_cell(frame.function.unwrap_or("")), csv_cell(&place(frame)));
        writeln!(out, "{},{function},{place},{}", answer.address, frame.inlined)?;
    }
    if answer.frames.is_empty() {
        writeln!(out, "{},,,", answer.address)?;
    }
    Ok(())
}
