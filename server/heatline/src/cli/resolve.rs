//! `heatline resolve`: addresses of a binary to frames.

use super::options::Format;
use super::output::{NO_SYMBOL, csv_cell, print, printable, say, warn};
use crate::binaries::{Companions, SearchPaths};
use crate::load::is_profile;
use crate::storage::FileStorage;
use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use heatline_profile::{AddressSpace, ModuleAddress, Silent, Svma};
use heatline_symbols::{Frame, Function, Image, ImageKind, Resolution, SourceFile};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
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

/// Runs the command.
pub fn run(args: ResolveArgs) -> anyhow::Result<()> {
    let name = || args.binary.display().to_string();
    if is_profile(&args.binary) {
        bail!("{0}: expected a binary, found a profile; 'heatline report {0}' shows it", name());
    }
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
    let addresses = addresses(&args.addresses, &args.binary)?;
    print(|out| {
        for batch in addresses.chunks(BATCH) {
            answer(out, &args, &image, &companions, space, batch)?;
        }
        Ok(())
    })
}

/// The addresses as given, those of standard input in the place of `-`.
fn addresses(texts: &[String], binary: &Path) -> anyhow::Result<Vec<u64>> {
    let mut addresses = Vec::with_capacity(texts.len());
    for text in texts {
        if text != "-" {
            addresses.push(parse(text, binary)?);
            continue;
        }
        for line in io::stdin().lock().lines() {
            let line = line.context("standard input")?;
            if !line.trim().is_empty() {
                addresses.push(parse(line.trim(), binary)?);
            }
        }
    }
    Ok(addresses)
}

fn parse(text: &str, binary: &Path) -> anyhow::Result<u64> {
    if text.bytes().all(|byte| byte.is_ascii_alphabetic()) && u64::from_str_radix(text, 16).is_ok() {
        say(format_args!(
            "{text}: taken as the address 0x{text}; 'nm -C {} | grep {text}' looks for a name",
            binary.display()
        ));
    }
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| {
        let binary = binary.display();
        anyhow!(
            "{text}: expected a hexadecimal address such as 0x1139; 'nm -C {binary} | grep {text}' tells the address of a function"
        )
    })
}

fn answer(
    out: &mut dyn Write,
    args: &ResolveArgs,
    image: &Image,
    companions: &Companions<'_>,
    space: AddressSpace,
    batch: &[u64],
) -> io::Result<()> {
    let svma = |&address: &u64| image.to_svma(ModuleAddress(address), space).unwrap_or(Svma(u64::MAX));
    let svmas: Vec<Svma> = batch.iter().map(svma).collect();
    let resolution = image.resolve_with(&svmas, companions, &Silent).map_err(io::Error::other)?;
    warn(&resolution.problems);
    let writer = AnswerWriter::new(&resolution, args)?;
    let mut text = Vec::with_capacity(2 * FLUSH);
    for (i, &address) in batch.iter().enumerate() {
        writer.write(&mut text, i, address)?;
        if text.len() > FLUSH {
            out.write_all(&text)?;
            text.clear();
        }
    }
    out.write_all(&text)
}

/// So many bytes of answers are collected before they are handed on.
const FLUSH: usize = 1 << 16;

/// Writes answers. Functions and files are made ready once, since the frames of a million addresses are the same few
/// of them again and again.
struct AnswerWriter<'a> {
    resolution: &'a Resolution,
    format: Format,
    no_inline: bool,
    functions: Vec<String>,
    files: Vec<String>,
}

impl<'a> AnswerWriter<'a> {
    fn new(resolution: &'a Resolution, args: &ResolveArgs) -> io::Result<Self> {
        let function = |function: &Function| {
            Ok(match args.format {
                Format::Json => {
                    let mut text = json_member("function", &function.name)?;
                    if let Some(name) = &function.linkage_name {
                        text += &json_member("linkage_name", name)?;
                    }
                    text
                }
                Format::Table => printable(&function.name).into_owned(),
                Format::Csv => csv_cell(&printable(&function.name)),
            })
        };
        let file = |file: &SourceFile| match args.format {
            Format::Json => json_member("file", &file.path),
            Format::Table | Format::Csv => Ok(printable(&file.path).into_owned()),
        };
        let functions = resolution.functions.iter().map(function).collect::<io::Result<_>>()?;
        let files = resolution.files.iter().map(file).collect::<io::Result<_>>()?;
        Ok(AnswerWriter { resolution, format: args.format, no_inline: args.no_inline, functions, files })
    }

    fn write(&self, out: &mut Vec<u8>, i: usize, address: u64) -> io::Result<()> {
        let frames = self.resolution.frames(i);
        let frames = if self.no_inline { &frames[frames.len().saturating_sub(1)..] } else { frames };
        match self.format {
            Format::Json => self.write_json(out, i, address, frames),
            Format::Table => self.write_text(out, i, address, frames),
            Format::Csv => self.write_csv(out, address, frames),
        }
    }

    fn function(&self, frame: &Frame) -> Option<&str> {
        Some(self.functions.get(frame.function?.index())?)
    }

    fn file(&self, frame: &Frame) -> Option<&str> {
        Some(self.files.get(frame.file?.index())?)
    }

    fn reason(&self, i: usize, frames: &[Frame]) -> Option<String> {
        let reason = self.resolution.unresolved(i).map(ToString::to_string);
        reason.or_else(|| frames.is_empty().then(|| "no symbol".to_owned()))
    }

    fn write_json(&self, out: &mut Vec<u8>, i: usize, address: u64, frames: &[Frame]) -> io::Result<()> {
        write!(out, "{{\"address\":\"{address:#x}\",\"frames\":[")?;
        for (depth, frame) in frames.iter().enumerate() {
            out.extend_from_slice(if depth > 0 { b",{" } else { b"{" });
            out.extend_from_slice(self.function(frame).unwrap_or("").as_bytes());
            out.extend_from_slice(self.file(frame).unwrap_or("").as_bytes());
            for (key, number) in [("\"line\":", frame.line), ("\"column\":", frame.column)] {
                if let Some(number) = number {
                    out.extend_from_slice(key.as_bytes());
                    push_number(out, number.get());
                    out.push(b',');
                }
            }
            out.extend_from_slice(if frame.inlined { b"\"inlined\":true}" } else { b"\"inlined\":false}" });
        }
        out.push(b']');
        if let Some(reason) = self.reason(i, frames) {
            write!(out, ",\"reason\":{}", serde_json::to_string(&reason)?)?;
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }

    fn write_text(&self, out: &mut Vec<u8>, i: usize, address: u64, frames: &[Frame]) -> io::Result<()> {
        let start = out.len();
        write!(out, "{address:#x}")?;
        let indent = out.len() - start;
        if frames.is_empty() {
            return writeln!(out, "  ({})", printable(&self.reason(i, frames).unwrap_or_default()));
        }
        for (depth, frame) in frames.iter().enumerate() {
            if depth > 0 {
                out.resize(out.len() + indent, b' ');
            }
            out.extend_from_slice(b"  ");
            out.extend_from_slice(self.function(frame).unwrap_or(NO_SYMBOL).as_bytes());
            out.extend_from_slice(if frame.inlined { b" (inlined)  " } else { b"  " });
            self.write_place(out, frame);
            out.push(b'\n');
        }
        Ok(())
    }

    fn write_csv(&self, out: &mut Vec<u8>, address: u64, frames: &[Frame]) -> io::Result<()> {
        for frame in frames {
            let mut place = Vec::new();
            self.write_place(&mut place, frame);
            let place = csv_cell(&String::from_utf8_lossy(&place));
            writeln!(out, "{address:#x},{},{place},{}", self.function(frame).unwrap_or(""), frame.inlined)?;
        }
        if frames.is_empty() {
            writeln!(out, "{address:#x},,,")?;
        }
        Ok(())
    }

    /// `file:line:column`, as much of it as is known.
    fn write_place(&self, out: &mut Vec<u8>, frame: &Frame) {
        let Some(file) = self.file(frame) else { return };
        out.extend_from_slice(file.as_bytes());
        let column = frame.column.filter(|_| frame.line.is_some());
        for number in [frame.line, column].into_iter().flatten() {
            out.push(b':');
            push_number(out, number.get());
        }
    }
}

/// `"key":"value",`
fn json_member(key: &str, value: &str) -> io::Result<String> {
    Ok(format!("\"{key}\":{},", serde_json::to_string(value)?))
}

/// In decimal; faster than formatting, which would be half of the time.
fn push_number(out: &mut Vec<u8>, mut number: u32) {
    let mut digits = [0; 10];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_formatting_writes_them() {
        for number in [0, 1, 9, 10, 99, 100, 12_345, u32::MAX] {
            let mut out = Vec::new();
            push_number(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}
