//! What the commands that read a profile share: loading it and choosing a metric.

use super::options::ProfileArgs;
use super::output;
use super::progress::Bar;
use super::selected::{Selected, warn_of_nothing};
use crate::load::{Loaded, load};
use anyhow::{Context, anyhow, bail};
use heatline_annotate::{Annotations, CostTable, Metric, Selection};
use heatline_profile::{Profile, ProfileKind};
use std::path::Path;
use std::sync::Arc;

/// A loaded profile and the table that the options ask for.
pub struct Session {
    /// The profile.
    pub loaded: Arc<Loaded>,
    /// The costs of the chosen metric.
    pub table: Arc<CostTable>,
    /// The filters that were asked for.
    pub selected: Selected,
    /// Of folders that were named: which of their profiles was taken.
    pub choices: Vec<String>,
}

impl Session {
    /// Loads, and says on standard error what was damaged, but for problems of the kind `told_elsewhere`.
    pub fn open(args: &ProfileArgs, told_elsewhere: Option<&str>) -> anyhow::Result<Self> {
        let bar = Bar::new();
        let settings = args.settings();
        let loaded = load(&args.load_options(&settings)?, &bar);
        bar.finish();
        let loaded = Arc::new(loaded?);
        output::warn_but(&loaded.problems, told_elsewhere);
        let profile = loaded.model.profile();
        refuse_impossible_filters(args, profile)?;
        let wished = settings.metric.as_deref().and_then(|name| Metric::find(profile, name));
        let metric = match (args.reading.metric.as_ref().or(args.event_name()), wished) {
            (Some(name), _) => find_metric(profile, name)?,
            (None, Some(metric)) => metric,
            (None, None) => Metric::sum(profile.default_event().with_context(|| no_events(&loaded.path))?),
        };
        let selection = Selection { metric, filter: args.filter(), inline: settings.inline && !args.reading.no_inline };
        let table = Arc::new(CostTable::new(loaded.model.clone(), selection));
        warn_of_nothing(args, &loaded, &table);
        Ok(Session { loaded, table, selected: Selected::of(&args.reading), choices: args.choices() })
    }

    /// The annotations of the table.
    pub fn annotations(&self) -> Annotations {
        Annotations::new(self.table.clone(), None, self.loaded.sources.options())
    }
}

/// What is said of a profile without events, and what to do.
pub fn no_events(path: &Path) -> String {
    format!("{}: the profile holds no events; record again, as with 'perf record -g'", path.display())
}

fn find_metric(profile: &Profile, name: &str) -> anyhow::Result<Metric> {
    Metric::find(profile, name).ok_or_else(|| {
        let known: Vec<String> = Metric::all(profile).iter().map(|metric| metric.id(profile)).collect();
        anyhow!("no metric {name}; this profile has: {}", known.join(", "))
    })
}

/// Refuses filters by what the profile does not record.
///
/// # Errors
/// If there are such.
pub fn refuse_impossible_filters(args: &ProfileArgs, profile: &Profile) -> anyhow::Result<()> {
    let by_thread = !args.reading.comm.is_empty() || !args.reading.pid.is_empty() || !args.reading.tid.is_empty();
    let kind = profile.kind.name();
    let may_lack_threads = matches!(profile.kind, ProfileKind::Spt | ProfileKind::Pprof | ProfileKind::Heatline);
    if by_thread && may_lack_threads && profile.threads.is_empty() {
        bail!("--comm, --pid and --tid: this {kind} profile does not record threads");
    }
    if args.reading.cpu.is_some() || args.reading.time.is_some() {
        match profile.kind {
            ProfileKind::Spt | ProfileKind::Pprof => {
                bail!("--cpu and --time: {kind} profiles record neither processors nor times");
            }
            ProfileKind::Heatline => {
                bail!("--cpu and --time: the samples of a frozen profile are added up; freeze the recording with them");
            }
            _ => {}
        }
    }
    if profile.kind == ProfileKind::Heatline && args.filters_spe_records() {
        bail!("--event: the records of a frozen profile are added up; freeze the recording with this filter");
    }
    Ok(())
}
