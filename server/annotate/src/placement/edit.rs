//! What one change of a text does to its lines.

use super::Place;

/// A change of a text, in lines counted from 0 and in what is left of the first and last line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineEdit {
    /// The first line the change touches.
    pub start_line: u32,
    /// The last line it touches.
    pub end_line: u32,
    /// Whether anything but white space of the first line stands before the change.
    pub keeps_head: bool,
    /// Whether anything but white space of the last line stands behind the change.
    pub keeps_tail: bool,
    /// The number of line ends in the text that was put in.
    pub inserted_breaks: u32,
    /// Whether anything but white space was put in before its first line end, or in all if it has none.
    pub touches_head: bool,
    /// Whether anything but white space was put in behind its last line end, or in all if it has none.
    pub touches_tail: bool,
    /// Whether anything but white space was taken out of the first line.
    pub cuts_head: bool,
    /// Whether anything but white space was taken out of the last line.
    pub cuts_tail: bool,
    /// Whether nothing was put in and nothing taken out.
    pub is_empty: bool,
}

impl LineEdit {
    /// Moves a line as the change moves it.
    pub(super) fn follow(&self, place: &mut Place) {
        if place.now > self.end_line {
            place.now = place.now - (self.end_line - self.start_line) + self.inserted_breaks;
        } else if place.now >= self.start_line {
            move_touched(place, self);
        }
    }
}

/// A line that the change touches: it goes with its head or its tail, whichever is left of it.
fn move_touched(place: &mut Place, edit: &LineEdit) {
    let end = edit.start_line + edit.inserted_breaks;
    let (is_first, is_last) = (place.now == edit.start_line, place.now == edit.end_line);
    let has_head = is_first && edit.keeps_head;
    let has_tail = is_last && edit.keeps_tail;
    let one_line = is_first && is_last;
    place.now = match (has_head, has_tail) {
        (false, true) => end,
        _ => edit.start_line,
    };
    if !has_head && !has_tail {
        // Nothing of it is left. A line that was replaced within itself is a changed line, not a removed one.
        let replaced = one_line && (edit.touches_head || edit.touches_tail);
        place.changed |= replaced;
        place.gone |= !replaced && (edit.cuts_head || edit.cuts_tail || !one_line);
        return;
    }
    let split = one_line && has_head && has_tail && edit.inserted_breaks > 0;
    let joined = !one_line && edit.inserted_breaks == 0 && edit.keeps_head && edit.keeps_tail;
    let head_touched = has_head && (edit.touches_head || edit.cuts_head);
    let tail_touched = has_tail && (edit.touches_tail || edit.cuts_tail);
    // White space counts inside of a line, not at its edges.
    let inside = one_line && has_head && has_tail && !edit.is_empty;
    place.changed |= split || joined || inside || head_touched || tail_touched;
}
