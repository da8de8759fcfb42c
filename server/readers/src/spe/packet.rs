//! Packets: how the bytes of an SPE stream are framed.
//!
//! A packet is a header byte, for some an extension byte, and a little-endian payload of 1, 2, 4 or 8 bytes whose size
//! stands in bits 5:4 of the header that names the kind.

use std::ops::Range;

/// The longest packet: an alignment to 16 bytes. Any packet fits into this many bytes.
pub const LONGEST: usize = 16;

/// One packet as framed; what its number means is told by [`super::Record`] and [`super::packet_text`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packet {
    /// A zero byte, or an alignment packet: nothing.
    Padding,
    /// The end of a record without a time.
    End,
    /// The end of a record with the count of the generic timer.
    Timestamp(u64),
    /// Event bits; bits above the payload are unknown, not clear.
    Events(Events),
    /// Where the data came from, in the processor's own numbers.
    DataSource {
        /// The number.
        value: u64,
        /// Size of the payload in bytes.
        size: u8,
    },
    /// The content of `CONTEXTIDR_EL1` (index 0) or `_EL2` (index 1).
    Context {
        /// Bits 1:0 of the header.
        index: u8,
        /// The register's value.
        value: u32,
    },
    /// What kind of operation was sampled.
    Operation {
        /// Bits 1:0 of the header: 0 other, 1 load, store or atomic, 2 branch, 3 reserved.
        class: u8,
        /// The subclass.
        payload: u8,
    },
    /// An address with its flags in the top byte.
    Address {
        /// Which address, 0..=31.
        index: u8,
        /// As recorded.
        payload: u64,
    },
    /// A count of cycles.
    Counter {
        /// Which counter, 0..=31.
        index: u8,
        /// Cycles, saturating.
        value: u16,
    },
}

/// The event bits of a record together with how many of them the packet could hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Events {
    /// Bit N is event N.
    pub bits: u64,
    /// Size of the payload in bytes: 1, 2, 4 or 8; 0 where there is no events packet.
    pub size: u8,
}

impl Events {
    /// Whether event `bit` happened; `None` where the packet was too short to say.
    pub fn get(self, bit: u32) -> Option<bool> {
        (bit < u32::from(self.size) * 8).then(|| self.has(bit))
    }

    /// Whether event `bit` is known to have happened.
    pub fn has(self, bit: u32) -> bool {
        self.bits >> bit & 1 == 1
    }
}

/// What a header byte announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Padding,
    End,
    Timestamp,
    Events,
    DataSource,
    Context,
    Operation,
    Extended,
    Address,
    Counter,
    Bad,
}

/// The kind of every header byte.
pub(super) const KINDS: [Kind; 256] = {
    let mut kinds = [Kind::Bad; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = kind_of(byte as u8);
        byte += 1;
    }
    kinds
};

const fn kind_of(header: u8) -> Kind {
    match header {
        0x00 => Kind::Padding,
        0x01 => Kind::End,
        0x71 => Kind::Timestamp,
        _ if header & 0xcf == 0x42 => Kind::Events,
        _ if header & 0xcf == 0x43 => Kind::DataSource,
        _ if header & 0xfc == 0x64 => Kind::Context,
        _ if header & 0xfc == 0x48 => Kind::Operation,
        _ if header & 0xfc == 0x20 => Kind::Extended,
        _ => wide_kind_of(header),
    }
}

/// The kinds that may also follow an extension byte.
pub(super) const fn wide_kind_of(header: u8) -> Kind {
    match header {
        _ if header & 0xf8 == 0xb0 => Kind::Address,
        _ if header & 0xf8 == 0x98 => Kind::Counter,
        _ => Kind::Bad,
    }
}

/// The size of the payload that a header announces in its bits 5:4.
pub(super) const fn payload_size(header: u8) -> usize {
    1 << (header >> 4 & 3)
}

/// How far an alignment packet at `offset` reaches: to the next multiple of its alignment in the AUX stream.
pub(super) const fn alignment_size(header: u8, offset: u64) -> usize {
    let alignment = 1u64 << ((header & 0x0f) + 1);
    (alignment - (offset & (alignment - 1))) as usize
}

/// What stands at the beginning of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parsed {
    /// A packet of this many bytes.
    Packet(Packet, usize),
    /// No header of a packet; reading goes on at the next byte.
    Bad,
    /// The bytes end inside a packet.
    Cut,
}

/// The packet at the beginning of `bytes`, which lie at `offset` of the AUX stream (it decides how far an alignment
/// reaches). `bytes` must not be empty; empty bytes are [`Parsed::Cut`].
pub fn parse(bytes: &[u8], offset: u64) -> Parsed {
    let Some(&header) = bytes.first() else {
        return Parsed::Cut;
    };
    match KINDS[header as usize] {
        Kind::Padding => Parsed::Packet(Packet::Padding, 1),
        Kind::End => Parsed::Packet(Packet::End, 1),
        Kind::Bad => Parsed::Bad,
        Kind::Extended => parse_extended(bytes, header, offset),
        kind => with_payload(bytes, 0, header, kind, header & 7),
    }
}

fn parse_extended(bytes: &[u8], header: u8, offset: u64) -> Parsed {
    let Some(&second) = bytes.get(1) else {
        return Parsed::Cut;
    };
    if second == 0 {
        let size = alignment_size(header, offset);
        return if bytes.len() < size { Parsed::Cut } else { Parsed::Packet(Packet::Padding, size) };
    }
    match wide_kind_of(second) {
        Kind::Bad => Parsed::Bad,
        kind => with_payload(bytes, 1, second, kind, (header & 3) << 3 | second & 7),
    }
}

fn with_payload(bytes: &[u8], at: usize, header: u8, kind: Kind, index: u8) -> Parsed {
    let payload_at: Range<usize> = at + 1..at + 1 + payload_size(header);
    let size = payload_at.end;
    let Some(raw) = bytes.get(payload_at) else {
        return Parsed::Cut;
    };
    let payload = raw.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    let packet = match kind {
        Kind::Timestamp => Packet::Timestamp(payload),
        Kind::Events => Packet::Events(Events { bits: payload, size: raw.len() as u8 }),
        Kind::DataSource => Packet::DataSource { value: payload, size: raw.len() as u8 },
        Kind::Context => Packet::Context { index: index & 3, value: payload as u32 },
        Kind::Operation => Packet::Operation { class: index & 3, payload: payload as u8 },
        Kind::Address => Packet::Address { index, payload },
        Kind::Counter => Packet::Counter { index, value: payload as u16 },
        Kind::Padding | Kind::End | Kind::Extended | Kind::Bad => return Parsed::Bad,
    };
    Parsed::Packet(packet, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], packet: Packet) {
        assert_eq!(parse(bytes, 0), Parsed::Packet(packet, bytes.len()));
    }

    #[test]
    fn short_and_extended_headers_name_the_same_packets() {
        let pc = Packet::Address { index: 0, payload: 0x8000_0000_0040_06d4 };
        check(&[0xb0, 0xd4, 6, 0x40, 0, 0, 0, 0, 0x80], pc);
        check(&[0x20, 0xb0, 0xd4, 6, 0x40, 0, 0, 0, 0, 0x80], pc);
        check(&[0x21, 0xb4, 0x22, 0x11, 0, 0, 0, 0, 0, 0], Packet::Address { index: 12, payload: 0x1122 });
        check(&[0x20, 0x98, 0x4d, 0], Packet::Counter { index: 0, value: 77 });
        check(&[0x9b, 5, 0], Packet::Counter { index: 3, value: 5 });
        check(&[0x66, 1, 0, 0, 0], Packet::Context { index: 2, value: 1 });
        check(&[0x43, 8], Packet::DataSource { value: 8, size: 1 });
    }

    #[test]
    fn what_is_no_header_is_bad_and_what_ends_early_is_cut() {
        assert_eq!(parse(&[0xff], 0), Parsed::Bad);
        assert_eq!(parse(&[0x70], 0), Parsed::Bad);
        assert_eq!(parse(&[0x20, 0x71, 0, 0, 0, 0, 0, 0, 0, 0], 0), Parsed::Bad);
        assert_eq!(parse(&[0xb0, 0x01], 0), Parsed::Cut);
        assert_eq!(parse(&[0x23], 0), Parsed::Cut);
        assert_eq!(parse(&[], 0), Parsed::Cut);
    }

    #[test]
    fn alignment_reaches_to_the_next_multiple_in_the_stream() {
        let bytes = [&[0x23, 0][..], &[0xff; 14]].concat();
        assert_eq!(parse(&bytes, 32), Parsed::Packet(Packet::Padding, 16));
        assert_eq!(parse(&bytes, 35), Parsed::Packet(Packet::Padding, 13));
        assert_eq!(parse(&bytes, 46), Parsed::Packet(Packet::Padding, 2));
        assert_eq!(parse(&[0x20, 0], 0), Parsed::Packet(Packet::Padding, 2));
        assert_eq!(parse(&bytes[..15], 32), Parsed::Cut);
    }

    #[test]
    fn events_above_the_payload_are_unknown() {
        let Parsed::Packet(Packet::Events(events), 2) = parse(&[0x42, 0x82], 0) else { panic!("an events packet") };
        assert_eq!((events.get(1), events.get(2), events.get(8)), (Some(true), Some(false), None));
    }
}
