//! Progress out of long work, and the wish to stop into it.

/// Told how far long work is; asked now and then whether to stop.
pub trait Monitor: Send + Sync {
    /// `done` of `of` units (bytes, addresses) of the current phase are finished; `of` is 0 where it is unknown.
    /// Called some hundred times per phase, not per record.
    ///
    /// # Errors
    /// [`Cancelled`] when the work should end now.
    fn progress(&self, done: u64, of: u64) -> Result<(), Cancelled>;
}

/// The person, or the program, asked to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cancelled;

impl std::fmt::Display for Cancelled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cancelled")
    }
}

impl std::error::Error for Cancelled {}

/// A monitor that shows nothing and never stops the work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Monitor for Silent {
    fn progress(&self, _done: u64, _of: u64) -> Result<(), Cancelled> {
        Ok(())
    }
}
