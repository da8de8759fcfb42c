//! Packets in the words of `perf report -D`.

use super::event::{EVENT_WORDS, bit};
use super::operation::{self, Memory, Operation, Other, Role};
use super::packet::{self, Events, LONGEST, Packet, Parsed};
use super::record::OperationType;
use super::source::Cpu;
use std::fmt::Write;

/// Most padding bytes that are shown as one packet.
const LONGEST_PADDING: usize = 16;

/// A packet of a dump: its place, bytes and meaning.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct PacketLine {
    /// Offset in the AUX stream.
    pub offset: u64,
    /// The packet's bytes; up to sixteen zero bytes of padding are shown together. As text in hex.
    #[serde(serialize_with = "hex")]
    pub bytes: Vec<u8>,
    /// In perf's words.
    pub text: String,
}

/// Splits the stream of one processor or thread into packets for a dump, piece by piece.
///
/// Pieces that follow each other in the AUX stream are one stream; before another one, a packet that is cut is bad.
#[derive(Clone, Debug, Default)]
pub struct PacketDump {
    cpu: Cpu,
    rest: Vec<u8>,
    next_offset: u64,
}

impl PacketDump {
    /// A dump of what `cpu` recorded.
    pub fn new(cpu: Cpu) -> Self {
        PacketDump { cpu, rest: Vec::new(), next_offset: 0 }
    }

    /// Gives the packets of `piece`, which lies at `offset` of the AUX stream, to `sink`.
    pub fn push(&mut self, offset: u64, piece: &[u8], sink: &mut dyn FnMut(PacketLine)) {
        if offset != self.next_offset {
            self.finish(sink);
        }
        self.next_offset = offset.wrapping_add(piece.len() as u64);
        self.rest.extend_from_slice(piece);
        self.drain(false, sink);
    }

    /// Gives what is left to `sink`.
    pub fn finish(&mut self, sink: &mut dyn FnMut(PacketLine)) {
        self.drain(true, sink);
    }

    fn drain(&mut self, last: bool, sink: &mut dyn FnMut(PacketLine)) {
        let all = std::mem::take(&mut self.rest);
        let mut rest = all.as_slice();
        // Padding that touches the end may go on in the next piece.
        while rest.len() >= LONGEST_PADDING || !rest.is_empty() && (last || rest.iter().any(|&byte| byte != 0)) {
            let offset = self.next_offset.wrapping_sub(rest.len() as u64);
            let (size, text) = match packet::parse(rest, offset) {
                Parsed::Packet(Packet::Padding, size) => (padding(rest, size), "PAD".into()),
                Parsed::Packet(packet, size) => (size, packet_text(packet, &self.cpu)),
                Parsed::Cut if !last && rest.len() < LONGEST => break,
                Parsed::Bad | Parsed::Cut => (1, "Bad packet!".into()),
            };
            let (bytes, after) = rest.split_at(size.min(rest.len()));
            sink(PacketLine { offset, bytes: bytes.to_vec(), text });
            rest = after;
        }
        self.rest = rest.to_vec();
    }
}

fn hex<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// How much padding is shown as one packet that begins with `size` bytes of it.
fn padding(bytes: &[u8], size: usize) -> usize {
    let zeros = bytes.iter().skip(size).take_while(|&&byte| byte == 0).count();
    (size + zeros).min(LONGEST_PADDING.max(size))
}

/// What `perf report -D` prints behind the bytes of a packet. Where perf 6.1 knows less than later versions (memory
/// tags, copies, guarded stacks, calls and returns, SME, later events) these are told as later versions do.
pub fn packet_text(packet: Packet, cpu: &Cpu) -> String {
    match packet {
        Packet::Padding => "PAD".into(),
        Packet::End => "END".into(),
        Packet::Timestamp(count) => format!("TS {count}"),
        Packet::Events(events) => events_text(events, cpu),
        Packet::DataSource { value, .. } => format!("DATA-SOURCE {value}"),
        Packet::Context { index, value } => format!("CONTEXT {value:#x} el{}", index + 1),
        Packet::Operation { class, payload } => operation_text(OperationType { class, payload }),
        Packet::Address { index, payload } => address_text(index, payload),
        Packet::Counter { index: 0, value } => format!("LAT {value} TOT"),
        Packet::Counter { index: 1, value } => format!("LAT {value} ISSUE"),
        Packet::Counter { index: 2, value } => format!("LAT {value} XLAT"),
        Packet::Counter { value, .. } => format!("LAT {value} "),
    }
}

fn events_text(events: Events, cpu: &Cpu) -> String {
    let mut text = String::from("EV");
    let mut unnamed = Vec::new();
    for number in (0..64).filter(|&number| events.has(number)) {
        match EVENT_WORDS.get(number as usize) {
            Some((_, word)) if !word.is_empty() => {
                text.push(' ');
                text.push_str(word);
            }
            _ => unnamed.push(number),
        }
    }
    if cpu.has_late_prefetch() && events.has(bit::LATE_PREFETCH) {
        unnamed.retain(|&number| number != bit::LATE_PREFETCH);
        text.push_str(" LATE-PREFETCH");
    }
    for (i, number) in unnamed.iter().enumerate() {
        let _ = write!(text, "{}{number}", if i == 0 { " IMPDEF:" } else { "," });
    }
    text
}

fn address_text(index: u8, payload: u64) -> String {
    let address = payload & ((1 << 56) - 1);
    let non_secure = payload >> 63;
    let level = payload >> 61 & 3;
    match index {
        0 => format!("PC {address:#x} el{level} ns={non_secure}"),
        1 => format!("TGT {address:#x} el{level} ns={non_secure}"),
        2 => format!("VA {payload:#x}"),
        3 => {
            let (checked, tag) = (payload >> 62 & 1, payload >> 56 & 0xf);
            format!("PA {address:#x} ns={non_secure} ch={checked} pat={tag:x}")
        }
        4 => format!("PBT {address:#x} el{level} ns={non_secure}"),
        _ => format!("ADDR {payload:#x} ({index})"),
    }
}

fn operation_text(packet: OperationType) -> String {
    match operation::operation(packet) {
        Operation::Memory { store, subclass } => {
            format!("{}{}", if store { "ST" } else { "LD" }, memory_text(subclass))
        }
        Operation::Branch { conditional, indirect, guarded, role } => {
            let role = match role {
                Role::Untold => "",
                Role::Call => " CR-BL",
                Role::Return => " CR-RET",
                Role::Neither => " CR-NON-BL-RET",
            };
            let flags = [(conditional, " COND"), (indirect, " IND"), (guarded, " GCS")];
            format!("B{}{role}", flagged(&flags))
        }
        Operation::Other(other) => other_text(other, packet.payload),
        Operation::Reserved => format!("OP-TYPE {:#x} ({})", packet.payload, packet.class),
    }
}

fn memory_text(subclass: Memory) -> String {
    match subclass {
        Memory::General => " GP-REG".into(),
        Memory::Simd => " SIMD-FP".into(),
        Memory::Unspecified => " UNSPEC-REG".into(),
        Memory::Tag => " MTE-TAG".into(),
        Memory::SystemRegister => " NV-SYSREG".into(),
        Memory::Copy => " MEMCPY".into(),
        Memory::Set => " MEMSET".into(),
        Memory::Extended { atomic, exclusive, ordered } => {
            flagged(&[(atomic, " AT"), (exclusive, " EXCL"), (ordered, " AR")])
        }
        Memory::Vector { length, predicated, scattered } => {
            format!(" EVLEN {length}{}", flagged(&[(predicated, " PRED"), (scattered, " SG")]))
        }
        Memory::ControlStack { common } => format!(" GCS{}", flagged(&[(common, " COMM")])),
        Memory::Reserved => String::new(),
    }
}

fn other_text(other: Other, payload: u8) -> String {
    match other {
        Other::General { select, float, simd } => {
            let what = if select { "COND-SELECT" } else { "INSN-OTHER" };
            format!("OTHER{} {what}", flagged(&[(simd, " ASE"), (float, " FP")]))
        }
        Other::Sve { length, float, predicated } => {
            format!("SVE-OTHER EVLEN {length}{}", flagged(&[(float, " FP"), (predicated, " PRED")]))
        }
        Other::Sme { size, float } => format!("SME-OTHER ETS {size}{}", flagged(&[(float, " FP")])),
        Other::Reserved => format!("OTHER {payload:#x}"),
    }
}

fn flagged(flags: &[(bool, &str)]) -> String {
    flags.iter().filter(|(given, _)| *given).map(|(_, word)| *word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(pieces: &[&[u8]]) -> Vec<(u64, usize, String)> {
        let mut lines = Vec::new();
        let mut sink = |line: PacketLine| lines.push((line.offset, line.bytes.len(), line.text));
        let mut dump = PacketDump::new(Cpu::default());
        let mut offset = 0;
        for piece in pieces {
            dump.push(offset, piece, &mut sink);
            offset += piece.len() as u64;
        }
        dump.finish(&mut sink);
        lines
    }

    #[track_caller]
    fn check(bytes: &[u8], text: &str) {
        assert_eq!(dump(&[bytes]), [(0, bytes.len(), text.to_string())]);
    }

    #[test]
    fn odd_packets_read_as_perf_reads_them_or_as_they_are_meant_today() {
        check(&[0; 5], "PAD");
        check(&[0xff], "Bad packet!");
        check(&[0x20, 0xb0, 0xd4, 6, 0x40, 0, 0, 0, 0, 0x80], "PC 0x4006d4 el0 ns=1");
        check(&[0x21, 0xb4, 0x22, 0x11, 0, 0, 0, 0, 0, 0], "ADDR 0x1122 (12)");
        check(&[0x20, 0x98, 0x4d, 0], "LAT 77 TOT");
        check(&[0x9b, 5, 0], "LAT 5 ");
        check(&[0xb4, 0xf0, 6, 0x40, 0, 0, 0, 0, 0x80], "PBT 0x4006f0 el0 ns=1");
        check(&[0x62, 2, 0, 6, 0], "EV RETIRED SVE-PARTIAL-PRED SVE-EMPTY-PRED");
        check(&[0x52, 2, 0x80], "EV RETIRED IMPDEF:15");
        check(&[0x48, 0x58], "SVE-OTHER EVLEN 1024");
        check(&[0x48, 0x8e], "SME-OTHER ETS 256 FP");
        check(&[0x49, 0xdd], "ST EVLEN 1024 PRED SG");
        check(&[0x49, 0x20], "LD MEMCPY");
        check(&[0x49, 0x25], "ST MEMSET");
        check(&[0x49, 0x44], "LD GCS COMM");
        check(&[0x49, 0x30], "LD NV-SYSREG");
        check(&[0x49, 0x1f], "ST AT EXCL AR");
        check(&[0x49, 0x1a], "LD EXCL AR");
        check(&[0x4a, 0x0a], "B IND CR-BL");
        check(&[0x4a, 0x12], "B IND CR-RET");
        check(&[0x4a, 0x03], "B COND IND");
        check(&[0x66, 1, 0, 0, 0], "CONTEXT 0x1 el3");
        check(&[0x70], "Bad packet!");
        let end = dump(&[&[0xb0, 1]]);
        assert_eq!(end, [(0, 1, "Bad packet!".into()), (1, 1, "END".to_string())]);
    }

    #[test]
    fn a_cut_between_pieces_changes_nothing() {
        let bytes = [&[0xb3, 0x38, 0x12, 0x2a, 0x81, 0, 0, 0, 0x80, 0x43, 8][..], &[0; 40], &[0x71; 9]].concat();
        let whole = dump(&[&bytes]);
        let texts: Vec<_> = whole.iter().map(|(_, size, text)| (*size, text.as_str())).collect();
        let padding = [(16, "PAD"), (16, "PAD"), (8, "PAD")];
        let head = [(9, "PA 0x812a1238 ns=1 ch=0 pat=0"), (2, "DATA-SOURCE 8")];
        assert_eq!(texts, [&head[..], &padding, &[(9, "TS 8174439530702664049")]].concat());
        for cut in 0..bytes.len() {
            assert_eq!(dump(&[&bytes[..cut], &bytes[cut..]]), whole, "cut at {cut}");
        }
    }
}
