//! One load: from a wish to what is shown, on a thread that may take its time.

use super::progress::{Meter, Report};
use super::shown::{Kept, Shown};
use super::stamp::Stamp;
use crate::base_text::Bases;
use crate::binaries::SearchPaths;
use crate::load::{LoadOptions, load};
use crate::rust_source;
use crate::settings::Settings;
use crate::sources::SourcePaths;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// How long a file must have stayed as it is to be taken for finished.
const QUIET: Duration = Duration::from_millis(150);

/// A file that never stays as it is is read after that time nevertheless.
const IMPATIENCE: Duration = Duration::from_secs(10);

/// What is to be shown.
#[derive(Clone, PartialEq, Debug)]
pub struct Wish {
    /// The profile.
    pub profile: PathBuf,
    /// The profile to compare with.
    pub baseline: Option<PathBuf>,
    /// The metric, if it is not to be the first.
    pub metric: Option<String>,
    /// The settings in force.
    pub settings: Arc<Settings>,
    /// The workspace folders.
    pub roots: Vec<PathBuf>,
}

impl Wish {
    /// Whether what was read for another wish serves this one.
    pub fn reads_as(&self, other: &Wish) -> bool {
        self.profile == other.profile
            && self.baseline == other.baseline
            && self.roots == other.roots
            && self.settings.search == other.settings.search
            && self.settings.source_map == other.settings.source_map
    }

    /// Whether what is shown for another wish is what this one wants.
    pub fn shows_as(&self, other: &Wish) -> bool {
        self.reads_as(other)
            && self.metric == other.metric
            && self.settings.inline == other.settings.inline
            && self.settings.diff_threshold == other.settings.diff_threshold
            && self.settings.heat.scope == other.settings.heat.scope
    }
}

/// What is needed to fulfil a wish.
pub struct Job {
    /// The wish.
    pub wish: Wish,
    /// What may be used instead of reading the profile.
    pub profile: Option<Kept>,
    /// What may be used instead of reading the baseline.
    pub baseline: Option<Kept>,
    /// Set when the job should end.
    pub cancelled: Arc<AtomicBool>,
    /// Where progress is told.
    pub reports: watch::Sender<Report>,
}

impl Job {
    /// Whether anything is read, which takes time.
    pub fn reads(&self) -> bool {
        self.profile.is_none() || (self.wish.baseline.is_some() && self.baseline.is_none())
    }

    /// Does it.
    ///
    /// # Errors
    /// If the profile cannot be used, or the job was cancelled.
    pub fn run(self) -> anyhow::Result<Shown> {
        let end = if self.wish.baseline.is_some() { 60 } else { 100 };
        let profile = match &self.profile {
            Some(kept) => kept.clone(),
            None => self.load(&self.wish.profile, (0, end))?,
        };
        let Some(baseline) = &self.wish.baseline else { return self.without_baseline(profile) };
        let is_itself = *baseline == self.wish.profile;
        let mut remark = is_itself.then(|| {
            "the baseline is the profile that is shown; freeze it, and take what that makes for the baseline".to_owned()
        });
        let profile = if profile.bases.is_some() { profile } else { self.with_bases(profile) };
        let baseline = match self.baseline.clone().map_or_else(|| self.load(baseline, (end, 100)), Ok) {
            Ok(kept) if kept.bases.is_some() => Some(kept),
            Ok(kept) => Some(self.with_bases(kept)),
            Err(error) if self.cancelled.load(Ordering::Relaxed) => return Err(error),
            Err(error) => {
                remark = Some(format!("the baseline cannot be used: {error:#}"));
                None
            }
        };
        let mut shown = self.build(profile, baseline)?;
        shown.remarks.extend(remark);
        Ok(shown)
    }

    fn build(&self, profile: Kept, baseline: Option<Kept>) -> anyhow::Result<Shown> {
        Shown::build(profile, baseline, self.wish.metric.as_deref(), &self.wish.settings)
    }

    /// Costs that are compared with nothing need no texts, so that these are read in the meantime.
    fn without_baseline(&self, profile: Kept) -> anyhow::Result<Shown> {
        if profile.bases.is_some() {
            return self.build(profile, None);
        }
        let (with_bases, shown) =
            rayon::join(|| self.with_bases(profile.clone()), || self.build(profile.clone(), None));
        let mut shown = shown?;
        shown.kept = with_bases;
        Ok(shown)
    }

    fn with_bases(&self, kept: Kept) -> Kept {
        let bases = Bases::at_hand(kept.loaded.clone(), &self.cancelled);
        Kept { bases: Some(Arc::new(bases)), ..kept }
    }

    fn load(&self, path: &Path, part: (u32, u32)) -> anyhow::Result<Kept> {
        let settings = &self.wish.settings;
        let search = &settings.search;
        let options = LoadOptions {
            paths: vec![path.to_owned()],
            search: SearchPaths {
                symfs: search.symfs.clone(),
                debug_dirs: search.debug_dirs.clone(),
                symbol_path: search.symbol_path.clone(),
                home: std::env::home_dir(),
                ..SearchPaths::default()
            },
            sources: SourcePaths {
                map: settings.source_map.clone(),
                roots: self.wish.roots.clone(),
                beside: Vec::new(),
                toolchains: rust_source::toolchains(),
            },
            ..LoadOptions::default()
        };
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(heatline_profile::Cancelled.into());
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let meter = Meter::new(self.reports.clone(), self.cancelled.clone(), part, name);
        let stamp = Stamp::of(path);
        let loaded = load(&options, &meter)?;
        Ok(Kept { path: path.to_owned(), stamp, loaded: Arc::new(loaded), bases: None })
    }
}

/// Waits until a file is not being written any more, or until that is no longer wanted.
pub async fn settle(path: &Path, cancelled: &AtomicBool) {
    let _ = tokio::time::timeout(IMPATIENCE, async {
        while !cancelled.load(Ordering::Relaxed) {
            let before = Stamp::of(path);
            tokio::time::sleep(QUIET).await;
            if Stamp::of(path) == before && before.exists() {
                return;
            }
        }
    })
    .await;
}
