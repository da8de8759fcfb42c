//! `heatline export`: a profile in another format.

mod firefox;
mod frames;
mod speedscope;

use super::options::{ProfileArgs, ReadingArgs};
use super::output;
use super::progress::Bar;
use crate::load::load;
use crate::out_file;
use clap::{Args, ValueEnum};
use frames::Frames;
use heatline_profile::{Problems, ProfileKind};
use heatline_readers::{pprof, spt};
use std::path::PathBuf;
use std::sync::Arc;

/// Options of `heatline export`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  heatline export perf.data --to pprof -o cpu.pb.gz              for go tool pprof, Parca, Pyroscope
  heatline export perf.data --to speedscope -o app.speedscope.json
  heatline export perf.data --to firefox -o app.json             for profiler.firefox.com
  heatline export app.spt more.spt --to spt -o sum.spt           for MSVC

--comm, --pid and --tid choose threads, --no-inline leaves inlined calls out.")]
pub struct ExportArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The format to write.
    #[arg(long, value_enum)]
    to: Target,
    /// The file to write ("-": standard output).
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the file even if it is no earlier export in this format. A profile that is read is never replaced.
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Target {
    /// pprof: all events, stacks with lines and inlined calls, threads as labels.
    Pprof,
    /// speedscope: one profile per event; no lines.
    Speedscope,
    /// The Firefox Profiler: one event (--metric chooses), a track per thread.
    Firefox,
    /// A sample profile trace of MSVC: one segment per module that has relative addresses.
    Spt,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Target::Pprof => "pprof",
            Target::Speedscope => "speedscope",
            Target::Firefox => "profiler.firefox.com",
            Target::Spt => "MSVC",
        }
    }

    /// Whether a file that begins like this is in this format, and may be replaced by the next export.
    fn is_of(self, head: &[u8]) -> bool {
        match self {
            Target::Pprof => heatline_readers::recognise(head) == Some(ProfileKind::Pprof),
            Target::Spt => heatline_readers::recognise(head) == Some(ProfileKind::Spt),
            Target::Speedscope => speedscope::is_begun_by(head),
            Target::Firefox => firefox::is_begun_by(head),
        }
    }
}

/// Options of reading that choose what is shown, where nothing is.
pub const MEANINGLESS: &[&str] = &["dso", "symbol", "percentage", "limit", "coverage", "format"];

/// Runs the command.
pub fn run(args: ExportArgs) -> anyhow::Result<()> {
    refuse(&args)?;
    out_file::refuse_input(&args.output, &args.profile.inputs()?)?;
    args.profile.choices().iter().for_each(|choice| output::say(format_args!("{choice}")));
    let bar = Bar::new();
    let loaded = load(&args.profile.load_options(&args.profile.settings())?, &bar);
    bar.finish();
    let loaded = loaded?;
    output::warn(&loaded.problems);
    let mut shown = Arc::clone(loaded.model.profile());
    let mut event = None;
    let (bytes, left_out) = if args.to == Target::Spt {
        let mut bytes = Vec::new();
        let left_out = spt::write_profile(loaded.model.profile(), &mut bytes)?;
        (bytes, left_out)
    } else {
        let frames = Frames::of(&loaded.model, &args.profile)?;
        shown = Arc::clone(&frames.profile);
        match args.to {
            Target::Pprof => (pprof::write(&frames.profile, &frames.symbolization)?, pprof::left_out(&frames.profile)),
            Target::Speedscope => speedscope::write(&frames, &loaded.path)?,
            Target::Firefox => {
                let chosen = frames::event(&frames, &args.profile, &loaded.path)?;
                event = Some(chosen);
                (firefox::write(&frames, chosen, &loaded.path)?, Problems::new())
            }
            Target::Spt => (Vec::new(), Problems::new()),
        }
    };
    let what = format!("{} for {}", output::samples_of(&shown, event), args.to.name());
    output::write_file(&args.output, &bytes, |head| args.force || args.to.is_of(head), &what)?;
    output::warn(&left_out);
    Ok(())
}

/// Options that would change nothing are wrong usage.
fn refuse(args: &ExportArgs) -> anyhow::Result<()> {
    let given = args.profile.reading.clone();
    let threads_chosen =
        ReadingArgs { comm: Vec::new(), pid: Vec::new(), tid: Vec::new(), no_inline: false, ..given.clone() };
    let reading = match args.to {
        Target::Spt => given,
        Target::Firefox => ReadingArgs { metric: None, event: None, ..threads_chosen },
        Target::Pprof | Target::Speedscope => threads_chosen,
    };
    let rest = ProfileArgs { reading, ..args.profile.clone() };
    rest.refuse_views("an export holds all that its format can; choose what is shown in its viewer")
}
