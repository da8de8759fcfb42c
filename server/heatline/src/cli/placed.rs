//! Where lines are today, for the commands that show them.

use super::output::say;
use super::session::Session;
use crate::base_text::{BaseText, Bases};
use heatline_annotate::FileId;
use heatline_annotate::placement::Placement;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The places of a session's lines.
pub struct Placed {
    bases: Bases,
}

impl Placed {
    /// Finds the texts that the profile was built from and compares them with the files here.
    pub fn of(session: &Session) -> Self {
        let never = AtomicBool::new(false);
        let bases = Bases::at_hand(Arc::clone(&session.loaded), &never).after_search(&never);
        bases.texts.unread().for_each(|why| say(format_args!("warning: {why}")));
        Placed { bases }
    }

    /// Where a line is and how sure that is. Without a file here, what is shown is the text that was profiled, if it is
    /// known.
    pub fn line(&self, file: FileId, line: NonZeroU32) -> (u32, Placement) {
        let is_known = self.base(file).is_some_and(BaseText::is_verified) && self.bases.path(file).is_none();
        let otherwise = if is_known { Placement::Exact } else { Placement::Unverified };
        self.bases.line(file, line).unwrap_or((line.get() - 1, otherwise))
    }

    /// Whether lines are placed in a file at all, and if not, the share of it that is left.
    pub fn too_different(&self, file: FileId) -> Option<f64> {
        self.bases.confidence(file).filter(|_| !self.bases.is_sure(file))
    }

    /// The text that a file was built from.
    pub fn base(&self, file: FileId) -> Option<&BaseText> {
        self.bases.texts.get(file)
    }

    /// All that is known.
    pub fn bases(&self) -> &Bases {
        &self.bases
    }
}
