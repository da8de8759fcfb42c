//! `resolve BINARY < ADDRESSES`: one JSON line per address, as the command `heatline resolve` prints it.
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "an example is a program, not the library")]

use heatline_profile::{Silent, Svma};
use heatline_symbols::{DebugFile, Function, Image, Locate, Resolution, Storage};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

struct File(std::fs::File, u64);

impl Storage for File {
    fn len(&self) -> u64 {
        self.1
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }
}

fn open(path: &Path) -> std::io::Result<Arc<dyn Storage>> {
    let file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    Ok(Arc::new(File(file, length)))
}

/// Looks in the binary's own folder only.
struct Beside<'a>(&'a Path);

impl Locate for Beside<'_> {
    fn locate(&self, wanted: &DebugFile<'_>) -> Option<Arc<dyn Storage>> {
        let folder = self.0.parent()?;
        let path = match wanted {
            DebugFile::DebugLink { name, .. } => folder.join(name),
            DebugFile::Supplementary { path, .. } => folder.join(path),
            DebugFile::Dwo { folder: compiled_in, name, .. } => Path::new(compiled_in.unwrap_or_default()).join(name),
            DebugFile::Package => PathBuf::from(format!("{}.dwp", self.0.display())),
            _ => return None,
        };
        open(&path).ok()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = PathBuf::from(std::env::args().nth(1).ok_or("which binary?")?);
    let image = Image::open(open(&path)?, &Beside(&path))?;
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let parse = |line: &str| u64::from_str_radix(line.trim().trim_start_matches("0x"), 16).map(Svma);
    let addresses = text.lines().map(parse).collect::<Result<Vec<_>, _>>()?;
    let start = std::time::Instant::now();
    let resolution = image.resolve_with(&addresses, &Beside(&path), &Silent)?;
    eprintln!(
        "{:?}, {} chains, {} frames, {} functions",
        start.elapsed(),
        resolution.chain_count(),
        (0..resolution.chain_count()).map(|c| resolution.chain_frames(c).len()).sum::<usize>(),
        resolution.functions.len()
    );
    for problem in resolution.problems.iter() {
        eprintln!("{problem:?}");
    }
    if std::env::args().nth(2).is_none() {
        print(&addresses, &resolution, &mut std::io::stdout().lock())?;
    }
    Ok(())
}

/// Names and paths are made ready once; the frames of many addresses are the same few of them again and again.
fn print(addresses: &[Svma], resolution: &Resolution, out: &mut impl Write) -> std::io::Result<()> {
    let functions: Vec<String> = resolution.functions.iter().map(function_text).collect();
    let files: Vec<String> = resolution.files.iter().map(|file| quoted("file", &file.path)).collect();
    let mut buffer = Vec::with_capacity(1 << 17);
    for (i, address) in addresses.iter().enumerate() {
        let _ = write!(buffer, "{{\"address\":\"{address}\",\"frames\":[");
        for (depth, frame) in resolution.frames(i).iter().enumerate() {
            buffer.extend_from_slice(if depth > 0 { b",{" } else { b"{" });
            if let Some(function) = frame.function {
                buffer.extend_from_slice(functions[function.index()].as_bytes());
            }
            if let Some(file) = frame.file {
                buffer.extend_from_slice(files[file.index()].as_bytes());
            }
            if let Some(line) = frame.line {
                let _ = write!(buffer, "\"line\":{line},");
            }
            if let Some(column) = frame.column {
                let _ = write!(buffer, "\"column\":{column},");
            }
            buffer.extend_from_slice(if frame.inlined { b"\"inlined\":true}" } else { b"\"inlined\":false}" });
        }
        buffer.push(b']');
        if let Some(reason) = resolution.unresolved(i) {
            let _ = write!(buffer, ",\"reason\":\"{reason}\"");
        }
        buffer.extend_from_slice(b"}\n");
        if buffer.len() > 1 << 16 {
            out.write_all(&buffer)?;
            buffer.clear();
        }
    }
    out.write_all(&buffer)
}

fn function_text(function: &Function) -> String {
    let mut text = quoted("function", &function.name);
    if let Some(name) = &function.linkage_name {
        text += &quoted("linkage_name", name);
    }
    text
}

/// `"key":"value",`
fn quoted(key: &str, value: &str) -> String {
    let mut out = format!("\"{key}\":\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out += &format!("\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out += "\",";
    out
}
