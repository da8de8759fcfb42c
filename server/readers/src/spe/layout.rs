//! Layouts: processors write the packets of most records in few different orders, so a record whose headers stand where
//! those of an earlier one stood is taken apart at once instead of packet by packet.

use super::packet::{self, Packet, Parsed};
use super::record::{CONTEXT, EVENTS, SOURCE};
use super::record::{OPERATION, PC, Record, TIME, TOTAL};

/// Longest record that has a layout.
pub(super) const LONGEST: usize = 64;
/// Bytes that must be at hand behind the beginning of a record to take it apart at once.
pub(super) const WINDOW: usize = LONGEST + 8;
/// How many layouts are known at a time.
const MOST: usize = 8;
/// What learning costs of the credit that records of known layouts earn, so that a stream of ever new layouts is not
/// read twice.
const LEARNING: u32 = 4;
const MOST_CREDIT: u32 = 64;

/// Entries of [`Layouts::likely`], a power of two.
const SLOTS: usize = 64;
/// The words of a record that tell its layout: the first packet is mostly as long as one.
const TELLING: [usize; 2] = [1, 2];

/// The layouts that were met last.
#[derive(Clone, Debug)]
pub(super) struct Layouts {
    known: Vec<Layout>,
    /// The layout that a record probably has, by the headers in its telling words.
    likely: [u8; SLOTS],
    /// The bytes of the telling words that are headers in all layouts.
    headers: [u64; TELLING.len()],
    next_victim: usize,
    credit: u32,
}

impl Default for Layouts {
    fn default() -> Self {
        let headers = [0; TELLING.len()];
        Layouts { known: Vec::new(), likely: [0; SLOTS], headers, next_victim: 0, credit: MOST_CREDIT }
    }
}

impl Layouts {
    /// Takes the record at the beginning of `window` into `record` and gives its size, if its layout is known.
    #[inline(always)]
    pub(super) fn take(&mut self, window: &[u8; WINDOW], record: &mut Record) -> Option<usize> {
        let words = words(window);
        let slot = self.slot(&words);
        let mut index = self.likely[slot];
        if !self.known.get(usize::from(index)).is_some_and(|layout| layout.fits(&words)) {
            index = self.search(&words)?;
            self.likely[slot] = index;
        }
        self.credit = (self.credit + 1).min(MOST_CREDIT);
        let layout = self.known.get(usize::from(index))?;
        layout.fill(window, record);
        Some(usize::from(layout.size))
    }

    #[inline(always)]
    fn slot(&self, words: &[u64; LONGEST / 8]) -> usize {
        let [first, second] = TELLING;
        let headers = words[first] & self.headers[0] ^ (words[second] & self.headers[1]).rotate_left(29);
        (headers.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.trailing_zeros())) as usize % SLOTS
    }

    #[cold]
    fn search(&self, words: &[u64; LONGEST / 8]) -> Option<u8> {
        (0u8..).zip(&self.known).find(|(_, layout)| layout.fits(words)).map(|(index, _)| index)
    }

    /// Foresees the layouts by what tells them apart.
    fn foresee(&mut self) {
        self.headers = TELLING.map(|word| self.known.iter().fold(u64::MAX, |all, layout| all & layout.mask[word]));
        for index in 0..self.known.len() {
            let slot = self.known.get(index).map(|layout| self.slot(&layout.pattern));
            if let Some(likely) = slot.and_then(|slot| self.likely.get_mut(slot)) {
                *likely = index as u8;
            }
        }
    }

    /// Remembers the layout of a whole record.
    #[cold]
    pub(super) fn learn(&mut self, bytes: &[u8]) {
        if bytes.len() > LONGEST || self.credit < LEARNING {
            return;
        }
        self.credit -= LEARNING;
        let Some(layout) = Layout::of(bytes) else {
            return;
        };
        if self.known.len() < MOST {
            self.known.push(layout);
        } else {
            self.known[self.next_victim] = layout;
            self.next_victim = (self.next_victim + 1) % MOST;
        }
        self.foresee();
    }
}

/// Where the packets of a record stand.
#[derive(Clone, Debug)]
struct Layout {
    mask: [u64; LONGEST / 8],
    pattern: [u64; LONGEST / 8],
    size: u8,
    present: u32,
    /// Positions of payloads; 0 for fields that are absent.
    addresses: [u8; 5],
    counters: [u8; 3],
    time: u8,
    events: u8,
    source: u8,
    context: u8,
    operation: u8,
    events_size: u8,
    source_mask: u64,
    events_mask: u64,
    context_index: u8,
    class: u8,
}

#[inline(always)]
fn words(window: &[u8; WINDOW]) -> [u64; LONGEST / 8] {
    std::array::from_fn(|i| load(window, (i * 8) as u8))
}

/// The eight bytes at a position below [`LONGEST`].
#[inline(always)]
fn load(window: &[u8; WINDOW], position: u8) -> u64 {
    let at = usize::from(position) % LONGEST;
    window[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl Layout {
    /// The layout of a record, if it has only fields with a known meaning.
    fn of(bytes: &[u8]) -> Option<Layout> {
        let mut layout = Layout {
            mask: [0; LONGEST / 8],
            pattern: [0; LONGEST / 8],
            size: bytes.len() as u8,
            present: 0,
            addresses: [0; 5],
            counters: [0; 3],
            time: 0,
            events: 0,
            source: 0,
            context: 0,
            operation: 0,
            events_size: 0,
            source_mask: 0,
            events_mask: 0,
            context_index: 0,
            class: 0,
        };
        let mut at = 0;
        while at < bytes.len() {
            let header = *bytes.get(at)?;
            // An extended header is two bytes; alignments depend on the offset and are left to the slow path.
            let extended = header & 0xfc == 0x20;
            if extended && bytes.get(at + 1) == Some(&0) {
                return None;
            }
            let Parsed::Packet(packet, size) = packet::parse(bytes.get(at..)?, 0) else {
                return None;
            };
            layout.fix(bytes, at);
            if extended {
                layout.fix(bytes, at + 1);
            }
            layout.place(packet, (at + 1 + usize::from(extended)) as u8)?;
            at += size;
        }
        (layout.present & PC != 0).then_some(layout)
    }

    /// The byte at `at` is part of the layout.
    fn fix(&mut self, bytes: &[u8], at: usize) {
        if let (Some(mask), Some(pattern), Some(&byte)) =
            (self.mask.get_mut(at / 8), self.pattern.get_mut(at / 8), bytes.get(at))
        {
            let shift = at % 8 * 8;
            *mask |= 0xff << shift;
            *pattern |= u64::from(byte) << shift;
        }
    }

    fn place(&mut self, packet: Packet, payload: u8) -> Option<()> {
        match packet {
            Packet::Padding | Packet::End => {}
            Packet::Timestamp(_) => {
                self.time = payload;
                self.present |= TIME;
            }
            Packet::Events(events) => {
                self.events = payload;
                self.events_size = events.size;
                self.events_mask = u64::MAX >> (64 - 8 * u32::from(events.size));
                self.present |= EVENTS;
            }
            Packet::DataSource { size, .. } => {
                self.source = payload;
                self.source_mask = u64::MAX >> (64 - 8 * u32::from(size));
                self.present |= SOURCE;
            }
            Packet::Context { index, .. } => {
                self.context = payload;
                self.context_index = index;
                self.present |= CONTEXT;
            }
            Packet::Operation { class, .. } => {
                self.operation = payload;
                self.class = class;
                self.present |= OPERATION;
            }
            Packet::Address { index, .. } => {
                *self.addresses.get_mut(usize::from(index))? = payload;
                self.present |= PC << index;
            }
            Packet::Counter { index, .. } => {
                *self.counters.get_mut(usize::from(index))? = payload;
                self.present |= TOTAL << index;
            }
        }
        Some(())
    }

    #[inline(always)]
    fn fits(&self, words: &[u64; LONGEST / 8]) -> bool {
        let mut differences = 0;
        for ((word, mask), pattern) in words.iter().zip(&self.mask).zip(&self.pattern) {
            differences |= word & mask ^ pattern;
        }
        differences == 0
    }

    /// Fields that are absent are filled with rubbish, which nothing reads.
    #[inline(always)]
    fn fill(&self, window: &[u8; WINDOW], record: &mut Record) {
        for (address, &position) in record.addresses.iter_mut().zip(&self.addresses) {
            *address = load(window, position);
        }
        let [total, issue, translation] = self.counters.map(|position| load(window, position) & 0xffff);
        record.counters = total | issue << 16 | translation << 32;
        record.time = load(window, self.time);
        record.events = load(window, self.events) & self.events_mask;
        record.events_size = self.events_size;
        record.source = load(window, self.source) & self.source_mask;
        record.context = load(window, self.context) as u32;
        record.context_index = self.context_index;
        record.payload = load(window, self.operation) as u8;
        record.class = self.class;
        record.present = self.present;
    }
}
