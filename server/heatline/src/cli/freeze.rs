//! `heatline freeze`: one file that opens anywhere, after any rebuild.

use super::options::ProfileArgs;
use super::output;
use super::progress::Bar;
use crate::load::{Loaded, load};
use crate::{freeze, out_file};
use clap::Args;
use heatline_annotate::text::counted;
use heatline_annotate::{CostTable, Filter, Metric, Selection, gaps};
use heatline_profile::ProfileKind;
use std::path::PathBuf;

/// Options of `heatline freeze`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  heatline freeze perf.data -o before.heatline      keep a profile, its costs resolved and its sources
  heatline report before.heatline                   the same costs, on any machine, after any rebuild
  heatline diff before.heatline perf.data           what has changed since

The file is a zip archive: heatline.json says what is in it, profile.pb.gz opens in pprof.")]
pub struct FreezeArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The file to write ("-": standard output).
    #[arg(short, long, value_name = "FILE.heatline")]
    output: PathBuf,
    /// Replace the file even if it is something else than a frozen profile.
    #[arg(long)]
    force: bool,
}

/// Options of reading that choose what is shown, where nothing is.
pub const MEANINGLESS: &[&str] =
    &["metric", "comm", "dso", "symbol", "pid", "tid", "percentage", "no_inline", "limit", "coverage", "format"];

/// Runs the command.
pub fn run(args: FreezeArgs) -> anyhow::Result<()> {
    args.profile.refuse_views("freeze keeps all samples and metrics; choose them when the file is shown")?;
    out_file::refuse_input(&args.output, &args.profile.inputs()?)?;
    args.profile.choices().iter().for_each(|choice| output::say(format_args!("{choice}")));
    let bar = Bar::new();
    let loaded = load(&args.profile.load_options(&args.profile.settings())?, &bar);
    bar.finish();
    let loaded = loaded?;
    output::warn(&loaded.problems);
    let frozen = freeze::freeze(&loaded)?;
    let is_frozen = |head: &[u8]| heatline_readers::recognise(head) == Some(ProfileKind::Heatline);
    let texts = counted(frozen.texts as u64, "source text");
    let what = format!("{} and {texts}", output::samples_of(loaded.model.profile(), None));
    output::write_file(&args.output, &frozen.bytes, |head| args.force || is_frozen(head), &what)?;
    output::warn(&frozen.left_out);
    warn_of_gaps(&loaded);
    Ok(())
}

/// What will never have lines in the frozen file, though it could now.
fn warn_of_gaps(loaded: &Loaded) {
    let Some(event) = loaded.model.profile().default_event() else { return };
    let selection = Selection { metric: Metric::sum(event), filter: Filter::default(), inline: true };
    let coverage = CostTable::new(loaded.model.clone(), selection).coverage();
    for gap in gaps(&loaded.model, &coverage, "") {
        output::say(format_args!("warning: {gap}"));
    }
}
