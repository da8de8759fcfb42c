//! `resolve BINARY < ADDRESSES`: one JSON line per address, as the command `heatline resolve` prints it.
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "an example is a program, not the library")]

use heatline_profile::{Silent, Svma};
use heatline_symbols::{Image, Nowhere, Resolution, Storage};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which binary?")?;
    let file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    let image = Image::open(Arc::new(File(file, length)), &Nowhere)?;
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let parse = |line: &str| u64::from_str_radix(line.trim().trim_start_matches("0x"), 16).map(Svma);
    let addresses = text.lines().map(parse).collect::<Result<Vec<_>, _>>()?;
    let start = std::time::Instant::now();
    let resolution = image.resolve(&addresses, &Silent)?;
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
    let chains: Vec<String> = (0..resolution.chain_count()).map(|chain| chain_text(&resolution, chain)).collect();
    let mut out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    for (i, address) in addresses.iter().enumerate() {
        write!(out, "{{\"address\":\"{address}\",\"frames\":")?;
        out.write_all(chains[resolution.chain(i)].as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

fn chain_text(resolution: &Resolution, chain: usize) -> String {
    let mut out = String::from("[");
    for (i, frame) in resolution.chain_frames(chain).iter().enumerate() {
        out.push_str(if i > 0 { ",{" } else { "{" });
        if let Some(function) = frame.function.map(|id| resolution.function(id)) {
            quoted(&mut out, "function", &function.name);
            out.push(',');
            if let Some(name) = &function.linkage_name {
                quoted(&mut out, "linkage_name", name);
                out.push(',');
            }
        }
        if let Some(file) = frame.file {
            quoted(&mut out, "file", &resolution.file(file).path);
            out.push(',');
        }
        if let Some(line) = frame.line {
            let _ = write!(out, "\"line\":{line},");
        }
        if let Some(column) = frame.column {
            let _ = write!(out, "\"column\":{column},");
        }
        let _ = write!(out, "\"inlined\":{}}}", frame.inlined);
    }
    out.push(']');
    if let Some(reason) = resolution.chain_reason(chain) {
        let _ = write!(out, ",\"reason\":\"{reason}\"");
    }
    out.push_str("}\n");
    out
}

fn quoted(out: &mut String, key: &str, value: &str) {
    let _ = write!(out, "\"{key}\":\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => _ = write!(out, "\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
}
