//! A progress bar on standard error, on a terminal only.

use crate::load::{LoadMonitor, Phase};
use heatline_profile::Cancelled;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Shows how far loading is, once it takes longer than a moment.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    started: Instant,
    on_terminal: bool,
}

/// Work that ends sooner shows nothing.
const MOMENT: Duration = Duration::from_millis(300);

impl Bar {
    /// A bar, hidden unless standard error is a terminal.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg:10} [{bar:30}] {percent:>3} %") {
            bar.set_style(style.progress_chars("=> "));
        }
        Bar { bar, started: Instant::now(), on_terminal: std::io::stderr().is_terminal() }
    }

    /// Takes it away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl LoadMonitor for Bar {
    fn progress(&self, phase: Phase, done: u64, of: u64) -> Result<(), Cancelled> {
        if self.on_terminal && self.started.elapsed() > MOMENT {
            if self.bar.is_hidden() {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            self.bar.set_message(match phase {
                Phase::Reading => "reading",
                Phase::Resolving => "resolving",
                Phase::Sources => "sources",
            });
            self.bar.set_length(of.max(1));
            self.bar.set_position(done);
        }
        Ok(())
    }
}
