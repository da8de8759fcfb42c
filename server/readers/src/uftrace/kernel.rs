//! The members `kernel-cpu<n>.dat`: pages of the kernel's trace buffers, one file per processor, with entries of and returns
//! from functions of the kernel. What their bytes mean says the member `kernel_header`, a copy of what the kernel's
//! `events/header_page` and `events/…/format` said.
//!
//! ```text
//! page    u64 time, long word (bits 0–29 bytes of events, 30 and 31 events were lost before), events
//! event   u32 word (5 bits kind or length in words, 27 bits time since the event before), then the record
//! ```
//!
//! The layout is that of the kernel's `include/linux/ring_buffer.h` and `Documentation/trace/ring-buffer-design`.

use super::switches::{Change, Notice};
use crate::ReadSeek;
use crate::perf_data::bytes::Order;
use std::io;

/// The member that says what the bytes mean.
pub(super) const HEADER_MEMBER: &str = "kernel_header";

/// A page is never larger.
const MOST_PAGE: usize = 1 << 20;

/// Functions of the kernel are never deeper.
const MOST_DEPTH: u64 = 1 << 10;

/// Bits of a page's word.
mod page {
    pub const BYTES: u64 = (1 << 30) - 1;
    pub const STORED: u64 = 1 << 30;
    pub const MISSED: u64 = 1 << 31;
}

/// Kinds of events that are no records.
mod kind {
    pub const LONG: u32 = 0;
    pub const PADDING: u32 = 29;
    pub const TIME_EXTEND: u32 = 30;
    pub const TIME_STAMP: u32 = 31;
}

/// Bits of an event's word that are time.
const TIME_BITS: u32 = 27;

/// Bits of a whole time that an absolute time stamp leaves as they were.
const HIGH_TIME: u64 = 0x1f << 59;

/// Where a number is in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    fn of(self, record: &[u8], order: Order) -> Option<u64> {
        let bytes = record.get(self.offset..)?;
        Some(match self.size {
            1 => u64::from(*bytes.first()?),
            2 => u64::from(order.u16(*bytes.first_chunk()?)),
            4 => u64::from(order.u32(*bytes.first_chunk()?)),
            8 => order.u64(*bytes.first_chunk()?),
            _ => return None,
        })
    }
}

/// How a record of one event is laid out.
#[derive(Clone, Copy, Debug)]
struct Format {
    id: u64,
    kind: Field,
    thread: Field,
    function: Field,
    depth: Field,
}

/// What `kernel_header` says.
#[derive(Debug)]
pub(super) struct Layout {
    order: Order,
    page_size: usize,
    commit: Field,
    data: usize,
    entry: Format,
    exit: Format,
}

impl Layout {
    /// `None` if something that is needed is missing or out of bounds.
    pub fn parse(bytes: &[u8]) -> Option<Layout> {
        let sections = Sections::of(bytes);
        let word = |name: &str| sections.words.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let text = |name: &str| sections.texts.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        let order = if word("ENDIAN")? == "BE" { Order::Big } else { Order::Little };
        let page_size: usize = word("PAGE_SIZE")?.parse().ok()?;
        let head = text("events/header_page")?;
        let (commit, data) = (field(head, "commit")?, field(head, "data")?.offset);
        let format = |name: &str| format(text(&format!("events/ftrace/{name}/format"))?);
        let layout = Layout {
            order,
            page_size,
            commit,
            data,
            entry: format("funcgraph_entry")?,
            exit: format("funcgraph_exit")?,
        };
        (layout.data < page_size && page_size <= MOST_PAGE).then_some(layout)
    }
}

/// The parts of `kernel_header`: `NAME: value` on a line, or `TRACEFS: name: length` and then so many bytes.
#[derive(Default)]
struct Sections<'a> {
    words: Vec<(&'a str, &'a str)>,
    texts: Vec<(&'a str, &'a str)>,
}

impl<'a> Sections<'a> {
    fn of(mut bytes: &'a [u8]) -> Self {
        let mut sections = Sections::default();
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            let Some((name, value)) = str::from_utf8(line).ok().and_then(|line| line.split_once(": ")) else {
                continue;
            };
            if name != "TRACEFS" {
                sections.words.push((name, value.trim()));
                continue;
            }
            let Some((name, length)) = value.split_once(": ") else { continue };
            let Some(length) = length.trim().parse().ok().filter(|length| *length <= bytes.len()) else { continue };
            let (text, rest) = bytes.split_at(length);
            bytes = rest;
            if let Ok(text) = str::from_utf8(text) {
                sections.texts.push((name, text));
            }
        }
        sections
    }
}

fn format(text: &str) -> Option<Format> {
    let id = text.lines().find_map(|line| line.strip_prefix("ID: "))?.trim().parse().ok()?;
    let named = |name| field(text, name);
    Some(Format {
        id,
        kind: named("common_type")?,
        thread: named("common_pid")?,
        function: named("func")?,
        depth: named("depth")?,
    })
}

/// The field of a name, of a line such as `field:unsigned long func; offset:8; size:8; signed:0;`.
fn field(text: &str, name: &str) -> Option<Field> {
    text.lines().find_map(|line| {
        let mut parts = line.trim().split(';').map(str::trim);
        let declared = parts.next()?.strip_prefix("field:")?.rsplit(' ').next()?;
        let number = |part: Option<&str>, key: &str| part?.strip_prefix(key)?.parse().ok();
        let field = Field { offset: number(parts.next(), "offset:")?, size: number(parts.next(), "size:")? };
        (declared.split('[').next() == Some(name)).then_some(field)
    })
}

/// What was found wrong or left out.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counts {
    /// Events that the kernel could not write.
    pub lost: u64,
    /// Events that are none of functions.
    pub others: u64,
    /// Pages that do not hold what they say.
    pub damaged: u64,
}

/// The file of one processor.
pub(super) struct Pages<'a> {
    input: Box<dyn ReadSeek + 'a>,
    page: Vec<u8>,
    /// Where the next event is in the page, and where events end.
    next: usize,
    end: usize,
    time: u64,
    pub counts: Counts,
}

impl<'a> Pages<'a> {
    pub fn new(input: Box<dyn ReadSeek + 'a>) -> Self {
        Pages { input, page: Vec::new(), next: 0, end: 0, time: 0, counts: Counts::default() }
    }

    /// The next moment at which a thread entered or left a function of the kernel; `None` at the end, an error where the
    /// file ends inside of a page.
    pub fn read(&mut self, layout: &Layout) -> io::Result<Option<(i32, Notice)>> {
        loop {
            while self.next < self.end {
                let Some(record) = self.event(layout.order) else {
                    self.counts.damaged += 1;
                    self.next = self.end;
                    break;
                };
                let Some(record) = record else { continue };
                let record = self.page.get(record).unwrap_or_default();
                match change(record, layout) {
                    Some((thread, what)) => return Ok(Some((thread, Notice { time: self.time, what }))),
                    None => self.counts.others += 1,
                }
            }
            if !self.turn(layout)? {
                return Ok(None);
            }
        }
    }

    /// Reads the next page; `false` at the end of the file.
    fn turn(&mut self, layout: &Layout) -> io::Result<bool> {
        self.page.resize(layout.page_size, 0);
        let read = super::switches::read_up_to(&mut self.input, &mut self.page)?;
        (self.next, self.end) = (0, 0);
        if read == 0 {
            return Ok(false);
        }
        self.page.truncate(read);
        let time = layout.order.u64_at(&self.page, 0);
        let commit = layout.commit.of(&self.page, layout.order);
        let (Some(time), Some(commit)) = (time, commit) else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        let stop = layout.data.saturating_add((commit & page::BYTES) as usize);
        if commit & page::MISSED != 0 {
            let stored = (commit & page::STORED != 0).then(|| layout.order.u64_at(&self.page, stop)).flatten();
            self.counts.lost = self.counts.lost.saturating_add(stored.unwrap_or(1));
        }
        (self.time, self.next, self.end) = (time, layout.data, stop.min(read));
        self.counts.damaged += u64::from(stop > read);
        Ok(true)
    }

    /// Goes on to the next event; where its record is, if it has one. `None` if there is no event here.
    fn event(&mut self, order: Order) -> Option<Option<std::ops::Range<usize>>> {
        let word = self.word(order)?;
        let (kind, since) = match order {
            Order::Little => (word & 0x1f, word >> 5),
            Order::Big => (word >> TIME_BITS, word & ((1 << TIME_BITS) - 1)),
        };
        let since = u64::from(since);
        let length = match kind {
            kind::TIME_EXTEND => {
                self.time = self.time.wrapping_add((u64::from(self.word(order)?) << TIME_BITS) | since);
                return Some(None);
            }
            kind::TIME_STAMP => {
                let low = (u64::from(self.word(order)?) << TIME_BITS) | since;
                self.time = (self.time & HIGH_TIME) | low;
                return Some(None);
            }
            kind::PADDING if since == 0 => {
                self.next = self.end;
                return Some(None);
            }
            kind::PADDING => {
                // Something that was taken back; its length counts from its own length on.
                self.time = self.time.wrapping_add(since);
                let length = self.word(order)?;
                self.next = self.next.checked_add((length as usize).checked_sub(4)?)?;
                return Some(None);
            }
            kind::LONG => (self.word(order)?.checked_sub(4)? as usize).next_multiple_of(4),
            words => words as usize * 4,
        };
        self.time = self.time.wrapping_add(since);
        let record = self.next..self.next.checked_add(length).filter(|end| *end <= self.end)?;
        self.next = record.end;
        Some(Some(record))
    }

    fn word(&mut self, order: Order) -> Option<u32> {
        let word = order.u32_at(self.page.get(..self.end)?, self.next)?;
        self.next += 4;
        Some(word)
    }
}

/// What a record says of a thread, if it is of a function.
fn change(record: &[u8], layout: &Layout) -> Option<(i32, Change)> {
    let order = layout.order;
    let kind = layout.entry.kind.of(record, order)?;
    let format = [layout.entry, layout.exit].into_iter().find(|format| format.id == kind)?;
    let thread = i32::try_from(format.thread.of(record, order)?).ok()?;
    let function = format.function.of(record, order)?;
    let depth = format.depth.of(record, order).filter(|depth| *depth < MOST_DEPTH)? as usize;
    let what =
        if kind == layout.entry.id { Change::Enter { function, depth } } else { Change::Leave { function, depth } };
    Some((thread, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str =
        "PAGE_SIZE: 4096\nLONG_SIZE: 8\nENDIAN: LE\nTRACEFS: events/header_page: 24\n\tfield: u64 timestamp; \n\n";

    #[test]
    fn a_header_that_lacks_something_is_none() {
        assert!(Layout::parse(HEADER.as_bytes()).is_none());
        assert!(Layout::parse(b"").is_none());
        let text = "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield:char data[9];\toffset:16;\tsize:1;\tsigned:0;";
        assert_eq!(field(text, "commit"), Some(Field { offset: 8, size: 8 }));
        assert_eq!((field(text, "data").map(|data| data.offset), field(text, "ata")), (Some(16), None));
    }
}
