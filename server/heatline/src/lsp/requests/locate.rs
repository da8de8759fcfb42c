//! Where lines and functions of the profile are now, as the protocol says it.

use crate::lsp::server::{at, position};
use crate::lsp::shown::Shown;
use crate::lsp::state::State;
use crate::lsp::text::{Encoding, Place};
use crate::lsp::uri;
use heatline_annotate::FileId;
use heatline_annotate::placement::{LineMap, Placement};
use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use tower_lsp::ls_types::{Location, Range, Uri};

/// Where a line is now.
#[derive(Clone, Debug)]
pub struct Located {
    /// The line, from its first character that is no blank to its end, if its file exists and it was not removed.
    pub location: Option<Location>,
    /// How sure that is.
    pub placement: Placement,
}

/// What the open documents say of the files of a profile; a snapshot.
pub struct Locator {
    shown: Arc<Shown>,
    open: HashMap<FileId, Open>,
    /// The addresses of files that are not open; `None` of those that are not there any more.
    closed: RefCell<HashMap<FileId, Option<Uri>>>,
}

struct Open {
    uri: String,
    map: LineMap,
    /// By line: first character that is no blank, and the end.
    lines: Vec<(u32, u32)>,
}

impl Locator {
    /// Takes what is needed of the documents; `None` while nothing is shown.
    pub fn take(state: &State) -> Option<Self> {
        let shown = state.shown.clone()?;
        let mut open = HashMap::new();
        for document in state.documents.values() {
            let Some((file, map)) = &document.profiled else { continue };
            let lines = (0..document.text.line_count()).map(|line| extent(document.text.line(line), state.encoding));
            open.insert(*file, Open { uri: document.uri.clone(), map: map.clone(), lines: lines.collect() });
        }
        Some(Locator { shown, open, closed: RefCell::default() })
    }

    /// What is shown.
    pub fn shown(&self) -> &Arc<Shown> {
        &self.shown
    }

    /// Where a line of a file is.
    pub fn line(&self, file: FileId, line: NonZeroU32) -> Located {
        let file = self.shown.representative(file);
        match self.open.get(&file) {
            Some(open) => open.line(line),
            None => Located { location: self.on_disk(file, line), placement: Placement::Unverified },
        }
    }

    fn on_disk(&self, file: FileId, line: NonZeroU32) -> Option<Location> {
        let mut closed = self.closed.borrow_mut();
        let path = || self.shown.kept.loaded.sources.path(file).filter(|path| path.is_file());
        let uri = closed.entry(file).or_insert_with(|| path().and_then(uri::from_path)).clone()?;
        Some(Location { uri, range: at(Place { line: line.get() - 1, character: 0 }) })
    }
}

impl Open {
    fn line(&self, line: NonZeroU32) -> Located {
        let Some((now, placement)) = self.map.find(line) else {
            return Located { location: None, placement: Placement::Gone };
        };
        let (start, end) = self.lines.get(now as usize).copied().unwrap_or_default();
        let place = |character| position(Place { line: now, character });
        let uri = self.uri.parse::<Uri>().ok().filter(|_| placement != Placement::Gone);
        Located { location: uri.map(|uri| Location { uri, range: Range::new(place(start), place(end)) }), placement }
    }
}

fn extent(line: &str, encoding: Encoding) -> (u32, u32) {
    let end = encoding.length(line);
    let blank = line.len() - line.trim_start().len();
    (encoding.length(&line[..blank]).min(end), end)
}
