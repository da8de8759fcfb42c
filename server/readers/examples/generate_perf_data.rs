//! Writes a large perf.data file for benchmarks: `generate_perf_data OUT [SAMPLES] [BINARY…]`.
//!
//! Without binaries the samples lie in two files that do not exist; with them, in their text.

#![allow(clippy::disallowed_methods)] // It reads binaries to find their text.

#[path = "../benches/generate/mod.rs"]
mod generate;

use std::path::Path;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, rest @ ..] = arguments.as_slice() else {
        return Err(std::io::Error::other("usage: generate_perf_data OUT [SAMPLES] [BINARY…]"));
    };
    let mut plan = generate::Plan::default();
    if let Some(samples) = rest.first() {
        plan.samples = samples.parse().map_err(std::io::Error::other)?;
    }
    let texts: Vec<_> =
        rest.iter().skip(1).map(|binary| generate::text_of(Path::new(binary))).collect::<Result<_, _>>()?;
    if !texts.is_empty() {
        plan.texts = texts;
    }
    generate::write(Path::new(out), &plan)
}
