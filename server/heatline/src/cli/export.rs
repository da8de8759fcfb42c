//! `heatline export`: a profile in another format.

use super::options::ProfileArgs;
use super::output;
use super::progress::Bar;
use crate::load::load;
use anyhow::Context;
use clap::{Args, ValueEnum};
use heatline_readers::spt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Options of `heatline export`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  heatline export app.spt more.spt --to spt -o sum.spt")]
pub struct ExportArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The format to write.
    #[arg(long, value_enum)]
    to: Target,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Target {
    /// A sample profile trace of MSVC: one segment per module that has relative addresses.
    Spt,
}

/// Runs the command.
pub fn run(args: ExportArgs) -> anyhow::Result<()> {
    let bar = Bar::new();
    let loaded = load(&args.profile.load_options(&args.profile.settings())?, &bar);
    bar.finish();
    let loaded = loaded?;
    output::warn(&loaded.problems);
    let name = || args.output.display().to_string();
    let mut out = BufWriter::new(File::create(&args.output).with_context(name)?);
    let written = match args.to {
        Target::Spt => spt::write_profile(loaded.model.profile(), &mut out).map_err(anyhow::Error::from),
    };
    let finished = written.and_then(|problems| out.flush().map(|()| problems).map_err(anyhow::Error::from));
    if finished.is_err() {
        // Half a file is worse than none; that it cannot be removed is no news besides the error.
        let _ = std::fs::remove_file(&args.output);
    }
    output::warn(&finished.with_context(name)?);
    Ok(())
}
