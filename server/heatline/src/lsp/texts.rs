//! The words of a file's lines, made once: an editor asks for the same ones with every keystroke.

use heatline_annotate::placement::Placement;
use heatline_annotate::text::{hint, hint_delta, hint_mark, placement_sentence, tooltip};
use heatline_annotate::{Annotations, FileView};
use serde::{Serialize, Serializer};
use std::fmt;

/// The words of one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineText {
    /// The costs with the inclusive one, and without.
    hints: [Option<String>; 2],
    /// The difference to the baseline.
    delta: Option<String>,
    /// The tooltip but for its last sentence, which tells the placement.
    tooltip: String,
}

impl LineText {
    /// The words of all lines of a file, in their order.
    pub fn of_file(annotations: &Annotations, view: &FileView) -> Vec<LineText> {
        let ending = placement_sentence(Placement::Exact);
        let of_line = |line| {
            let text = tooltip(annotations, line, Placement::Exact);
            let text = text.strip_suffix(ending).unwrap_or(&text).to_owned();
            LineText { hints: [hint(line, true), hint(line, false)], delta: hint_delta(line), tooltip: text }
        };
        view.lines.iter().map(of_line).collect()
    }

    /// The hint of the line in its place, if it has one.
    pub fn hint(&self, with_inclusive: bool, placement: Placement) -> Option<Label<'_>> {
        let text = self.hints[usize::from(!with_inclusive)].as_deref()?;
        Some(Label { text, delta: self.delta.as_deref(), mark: hint_mark(placement) })
    }

    /// The difference that the hint ends with.
    pub fn delta(&self) -> Option<&str> {
        self.delta.as_deref()
    }

    /// The tooltip of the line in its place.
    pub fn tooltip(&self, placement: Placement) -> Tooltip<'_> {
        Tooltip { text: &self.tooltip, placement }
    }
}

/// A hint, written without being put together first.
#[derive(Clone, Copy, Default, Debug)]
pub struct Label<'a> {
    text: &'a str,
    delta: Option<&'a str>,
    mark: &'static str,
}

impl<'a> Label<'a> {
    /// A hint of these words alone.
    pub fn of(text: &'a str, placement: Placement) -> Self {
        Label { text, delta: None, mark: hint_mark(placement) }
    }

    /// The same for a client that paints the difference itself.
    pub fn without_delta(self) -> Self {
        Label { delta: None, ..self }
    }
}

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mark)?;
        f.write_str(self.text)?;
        self.delta.map_or(Ok(()), |delta| write!(f, " · {delta}"))
    }
}

impl Serialize for Label<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A tooltip, written without being put together first.
#[derive(Clone, Copy, Debug)]
pub struct Tooltip<'a> {
    text: &'a str,
    placement: Placement,
}

impl<'a> Tooltip<'a> {
    /// A tooltip of these words and the placement.
    pub fn of(text: &'a str, placement: Placement) -> Self {
        Tooltip { text, placement }
    }
}

impl fmt::Display for Tooltip<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)?;
        f.write_str(placement_sentence(self.placement))
    }
}

impl Serialize for Tooltip<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
