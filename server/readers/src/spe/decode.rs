//! From the bytes of an SPE stream to records, piece by piece.

use super::layout::{Layouts, WINDOW};
use super::packet::{self, KINDS, Kind, LONGEST, Packet, Parsed};
use super::record::Record;

/// What was decoded and what was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DecodeCounts {
    /// Bytes read, padding included.
    pub bytes: u64,
    /// Records given out.
    pub records: u64,
    /// Records that were not given out: touched by bad bytes, without an end, or without the address of the operation.
    pub dropped_records: u64,
    /// Bytes that begin no packet, each counted once.
    pub bad_bytes: u64,
    /// Offset in the AUX stream of the first of them.
    pub first_bad: Option<u64>,
    /// Packets whose meaning is not known, which were passed over.
    pub ignored_packets: u64,
}

impl DecodeCounts {
    /// Adds those of another stream.
    pub fn add(&mut self, other: &DecodeCounts) {
        self.bytes += other.bytes;
        self.records += other.records;
        self.dropped_records += other.dropped_records;
        self.bad_bytes += other.bad_bytes;
        self.first_bad = self.first_bad.or(other.first_bad);
        self.ignored_packets += other.ignored_packets;
    }
}

/// Decodes the stream of one processor or thread, given in pieces.
///
/// Pieces that follow each other in the AUX stream are one stream, wherever they were cut; before a piece that does not,
/// an unfinished record is dropped. After bytes that are no packet nothing is believed up to the next end of a record.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    record: Record,
    skipping: bool,
    layouts: Layouts,
    carry: [u8; LONGEST],
    carried: usize,
    next_offset: u64,
    counts: DecodeCounts,
}

impl Decoder {
    /// A decoder at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was decoded so far.
    pub fn counts(&self) -> &DecodeCounts {
        &self.counts
    }

    /// Decodes `piece`, which lies at `offset` of the AUX stream, and gives each finished record to `sink`.
    pub fn push(&mut self, offset: u64, piece: &[u8], mut sink: impl FnMut(&Record)) {
        if piece.is_empty() {
            return;
        }
        if offset != self.next_offset || self.counts.bytes == 0 {
            self.finish();
            self.record.restart(offset);
        }
        self.counts.bytes += piece.len() as u64;
        self.next_offset = offset.wrapping_add(piece.len() as u64);
        let taken = self.join(offset, piece, &mut sink);
        let rest = piece.get(taken..).unwrap_or_default();
        let rest_offset = offset.wrapping_add(taken as u64);
        let read = self.run(rest, rest_offset, &mut sink);
        if self.carried == 0 {
            let cut = rest.get(read..).unwrap_or_default();
            self.carry[..cut.len()].copy_from_slice(cut);
            self.carried = cut.len();
        }
    }

    /// Ends the stream: a record that is not finished, and a packet that is cut, can only be counted.
    pub fn finish(&mut self) {
        let carry = self.carry;
        let mut rest = carry.get(..self.carried).unwrap_or_default();
        self.carried = 0;
        while !rest.is_empty() {
            let offset = self.next_offset.wrapping_sub(rest.len() as u64);
            let size = match packet::parse(rest, offset) {
                // No record can be finished here: its packets would not have been carried.
                Parsed::Packet(packet, size) => self.feed(packet, offset, size, &mut |_| {}),
                Parsed::Bad | Parsed::Cut => self.bad(offset),
            };
            rest = rest.get(size..).unwrap_or_default();
        }
        if self.skipping || self.record.present != 0 {
            self.counts.dropped_records += 1;
        }
        self.skipping = false;
        self.record.restart(self.next_offset);
    }

    /// Reads the packets that begin in the carried bytes. Gives back how much of `piece` they reach into.
    fn join(&mut self, offset: u64, piece: &[u8], sink: &mut impl FnMut(&Record)) -> usize {
        if self.carried == 0 {
            return 0;
        }
        let mut joint = [0; 2 * LONGEST];
        let carried = self.carried;
        let added = piece.len().min(LONGEST);
        joint[..carried].copy_from_slice(&self.carry[..carried]);
        joint[carried..carried + added].copy_from_slice(&piece[..added]);
        let joint = &joint[..carried + added];
        let mut at = 0;
        while at < carried {
            let position = offset.wrapping_sub(carried as u64).wrapping_add(at as u64);
            at += match packet::parse(&joint[at..], position) {
                Parsed::Packet(packet, size) => self.feed(packet, position, size, sink),
                Parsed::Bad => self.bad(position),
                Parsed::Cut => {
                    // All of the piece is in the joint, or the packet could not be cut.
                    let left = joint.len() - at;
                    self.carry[..left].copy_from_slice(&joint[at..]);
                    self.carried = left;
                    return piece.len();
                }
            };
        }
        self.carried = 0;
        at - carried
    }

    /// Reads packets until the bytes end or end inside a packet. Gives back how many bytes were read.
    fn run(&mut self, data: &[u8], offset: u64, sink: &mut impl FnMut(&Record)) -> usize {
        let mut at = 0;
        let mut between = self.record.present == 0 && !self.skipping;
        loop {
            if between {
                at = self.run_by_layout(data, at, offset, sink);
            }
            match self.run_by_packet(data, at, offset, sink) {
                (next, true) => at = next,
                (next, false) => return self.run_to_end(data, next, offset, sink),
            }
            between = true;
        }
    }

    /// Reads whole records of known layouts and the padding between them.
    #[inline(always)]
    fn run_by_layout(&mut self, data: &[u8], mut at: usize, offset: u64, sink: &mut impl FnMut(&Record)) -> usize {
        let mut record = self.record;
        while let Some(window) = data.get(at..).and_then(|rest| rest.first_chunk::<WINDOW>()) {
            let [a, b, c, d, e, f, g, h, ..] = *window;
            let first = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            if first as u8 == 0 {
                at += first.trailing_zeros() as usize / 8;
                record.offset = offset.wrapping_add(at as u64);
                continue;
            }
            let Some(size) = self.layouts.take(window, &mut record) else {
                break;
            };
            at += size;
            self.counts.records += 1;
            sink(&record);
            record.restart(offset.wrapping_add(at as u64));
        }
        self.record = record;
        at
    }

    /// Reads packets up to the end of a record. Gives back how far, and whether a record ended; if not, the bytes
    /// came to their end.
    fn run_by_packet(
        &mut self,
        data: &[u8],
        mut at: usize,
        offset: u64,
        sink: &mut impl FnMut(&Record),
    ) -> (usize, bool) {
        let mut record = self.record;
        while let Some(window) = data.get(at..).and_then(|rest| rest.first_chunk::<9>()) {
            let [header, payload @ ..] = *window;
            let payload = u64::from_le_bytes(payload);
            let size = packet::payload_size(header);
            let value = payload & PAYLOAD_MASKS[size & 15];
            match KINDS[header as usize] {
                Kind::Address => record.set_address(header & 7, payload),
                Kind::Counter => record.set_counter(header & 7, payload as u16),
                Kind::Events => record.set_events(value, size as u8),
                Kind::Operation => record.set_operation(header & 3, payload as u8),
                Kind::Context => record.set_context(header & 3, payload as u32),
                Kind::DataSource => record.set_source(value),
                Kind::Timestamp | Kind::End => {
                    if header != 1 {
                        record.set_time(payload);
                        at += 8;
                    }
                    at += 1;
                    self.record = record;
                    self.end_record(data.get(..at), offset, sink);
                    return (at, true);
                }
                Kind::Padding => {
                    at += if payload == 0 { 9 } else { 1 };
                    if record.present == 0 {
                        record.offset = offset.wrapping_add(at as u64);
                    }
                    continue;
                }
                Kind::Extended | Kind::Bad => {
                    self.record = record;
                    let position = offset.wrapping_add(at as u64);
                    match packet::parse(&data[at..], position) {
                        Parsed::Packet(packet, size) => at += self.feed(packet, position, size, sink),
                        Parsed::Bad => at += self.bad(position),
                        Parsed::Cut => return (at, false),
                    }
                    record = self.record;
                    continue;
                }
            }
            at += 1 + size;
        }
        self.record = record;
        (at, false)
    }

    /// The last few bytes, where a whole window no longer fits.
    fn run_to_end(&mut self, data: &[u8], mut at: usize, offset: u64, sink: &mut impl FnMut(&Record)) -> usize {
        while let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty()) {
            let position = offset.wrapping_add(at as u64);
            at += match packet::parse(rest, position) {
                Parsed::Packet(packet, size) => self.feed(packet, position, size, sink),
                Parsed::Bad => self.bad(position),
                Parsed::Cut => break,
            };
        }
        at
    }

    /// Takes in one packet of `size` bytes and gives the size back.
    fn feed(&mut self, packet: Packet, position: u64, size: usize, sink: &mut impl FnMut(&Record)) -> usize {
        self.record.take(packet);
        let next = position.wrapping_add(size as u64);
        if matches!(packet, Packet::Timestamp(_) | Packet::End) {
            self.end_record(None, next, sink);
        } else if self.record.present == 0 {
            self.record.offset = next;
        }
        size
    }

    /// Ends the record behind `data`, which begins at `offset`, and learns its layout if all of it is there.
    fn end_record(&mut self, data: Option<&[u8]>, offset: u64, sink: &mut impl FnMut(&Record)) {
        let data = data.unwrap_or_default();
        if self.record.has_pc() && !self.skipping {
            self.counts.records += 1;
            self.counts.ignored_packets += u64::from(self.record.ignored);
            let start = usize::try_from(self.record.offset.wrapping_sub(offset)).unwrap_or(usize::MAX);
            if let Some(bytes) = data.get(start..).filter(|bytes| !bytes.is_empty()) {
                self.layouts.learn(bytes);
            }
            sink(&self.record);
        } else {
            self.drop_record();
        }
        self.record.restart(offset.wrapping_add(data.len() as u64));
    }

    #[cold]
    fn drop_record(&mut self) {
        self.counts.dropped_records += 1;
        self.skipping = false;
    }

    /// Counts a byte that begins no packet; it is one byte long.
    #[cold]
    fn bad(&mut self, position: u64) -> usize {
        self.counts.bad_bytes += 1;
        self.counts.first_bad.get_or_insert(position);
        self.skipping = true;
        self.record.restart(position.wrapping_add(1));
        1
    }
}

/// The mask of a payload, by its size.
const PAYLOAD_MASKS: [u64; 16] = {
    let mut masks = [u64::MAX; 16];
    let mut size = 0;
    while size < 8 {
        masks[size] = (1 << (8 * size)) - 1;
        size += 1;
    }
    masks
};
