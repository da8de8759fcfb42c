//! Writes a program for aarch64 and a forged Arm SPE recording of it into a folder: `forge_spe FOLDER [RECORDS]`.
#![allow(clippy::disallowed_methods)] // Its job is to write files.

#[path = "../../../fixtures/spe/forge.rs"]
mod forge;

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the folder to write to"));
    let records = arguments.next().map_or(1000, |records| records.parse().expect("how many records"));
    std::fs::create_dir_all(&folder)?;
    let folder = std::path::absolute(folder)?;
    let program = forge::Program::build(&folder);
    std::fs::write(folder.join("perf.data"), program.recording(records).file())
}
