//! Where lines and functions of the profile are now, as the protocol says it.

use crate::base_text::Bases;
use crate::lsp::followed::Followed;
use crate::lsp::server::{at, position};
use crate::lsp::shown::Shown;
use crate::lsp::state::State;
use crate::lsp::text::{Encoding, Place};
use crate::lsp::uri;
use heatline_annotate::FileId;
use heatline_annotate::placement::Placement;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
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
    bases: Option<Arc<Bases>>,
    /// The addresses of files that are not open; `None` of those that are not there any more.
    closed: RefCell<HashMap<FileId, Option<Uri>>>,
}

struct Open {
    uri: String,
    followed: Followed,
    /// By line: first character that is no blank, and the end.
    lines: Vec<(u32, u32)>,
}

impl Locator {
    /// Takes what is needed of the documents; `None` while nothing is shown.
    pub fn take(state: &State) -> Option<Self> {
        let shown = state.shown.clone()?;
        let mut open = HashMap::new();
        for document in state.documents.values() {
            let Some(followed) = &document.profiled else { continue };
            let lines = (0..document.text.line_count()).map(|line| extent(document.text.line(line), state.encoding));
            open.insert(
                followed.file,
                Open { uri: document.uri.clone(), followed: followed.clone(), lines: lines.collect() },
            );
        }
        Some(Locator { shown, open, bases: state.bases.clone(), closed: RefCell::default() })
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
            None => self.on_disk(file, line),
        }
    }

    fn on_disk(&self, file: FileId, line: NonZeroU32) -> Located {
        let found = self.bases.as_ref().and_then(|bases| bases.line(file, line));
        let (now, placement) = found.unwrap_or((line.get() - 1, Placement::Unverified));
        let mut closed = self.closed.borrow_mut();
        let path = || match &self.bases {
            Some(bases) => bases.path(file),
            None => self.shown.kept.loaded.sources.path(file),
        };
        let roots = self.shown.kept.loaded.sources.roots();
        let uri = || path().filter(|path| path.is_file()).and_then(|path| uri::from_path(&as_spelled(path, roots)));
        let uri = closed.entry(file).or_insert_with(uri).clone().filter(|_| placement != Placement::Gone);
        let range = at(Place { line: now, character: 0 });
        Located { location: uri.map(|uri| Location { uri, range }), placement }
    }
}

/// A path below a root as the client spells that root: what was renamed is known with links resolved.
fn as_spelled<'a>(path: &'a Path, roots: &[PathBuf]) -> Cow<'a, Path> {
    if roots.iter().any(|root| path.starts_with(root)) {
        return path.into();
    }
    let below = |root: &PathBuf| Some(root.join(path.strip_prefix(root.canonicalize().ok()?).ok()?));
    roots.iter().find_map(below).map_or(path.into(), Cow::Owned)
}

impl Open {
    fn line(&self, line: NonZeroU32) -> Located {
        let Some((now, placement)) = self.followed.find(line).filter(|_| self.followed.is_sure()) else {
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
