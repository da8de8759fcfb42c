//! Records: all packets about one sampled operation.

use super::packet::{Events, Packet};

/// More counters without a known meaning than this are not kept in a record; they are counted as ignored.
pub const MOST_OTHER_COUNTERS: usize = 4;

/// The first of five: addresses 0 to 4.
pub(super) const PC: u32 = 1;
/// The first of three: counters 0 to 2.
pub(super) const TOTAL: u32 = 1 << 5;
pub(super) const TIME: u32 = 1 << 8;
pub(super) const EVENTS: u32 = 1 << 9;
pub(super) const OPERATION: u32 = 1 << 10;
pub(super) const SOURCE: u32 = 1 << 11;
pub(super) const CONTEXT: u32 = 1 << 12;
/// A packet that leaves nothing in the record.
const IGNORED: u32 = 1 << 13;

/// What is known of one sampled operation. Fields that had no packet are absent; of repeated packets the last counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    pub(super) offset: u64,
    pub(super) present: u32,
    pub(super) addresses: [u64; 5],
    pub(super) time: u64,
    pub(super) events: u64,
    pub(super) source: u64,
    pub(super) context: u32,
    /// Total, issue and translation latency, sixteen bits each from the lowest.
    pub(super) counters: u64,
    pub(super) events_size: u8,
    pub(super) class: u8,
    pub(super) payload: u8,
    pub(super) context_index: u8,
    others: [(u8, u16); MOST_OTHER_COUNTERS],
    others_len: u8,
    pub(super) ignored: u32,
}

/// The type of the sampled operation as recorded; [`super::operation`] reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct OperationType {
    /// 0 other, 1 load, store or atomic, 2 branch or exception return, 3 reserved.
    pub class: u8,
    /// The subclass.
    pub payload: u8,
}

impl Record {
    /// Offset in the AUX stream of its first packet.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Address of the sampled operation, as it was in the process or the kernel. Records without one are not given out.
    pub fn pc(&self) -> u64 {
        instruction_address(self.addresses[0])
    }

    /// Exception level the operation ran at: 0 user, 1 kernel or guest, 2 kernel or hypervisor, 3 firmware.
    pub fn exception_level(&self) -> u8 {
        (self.addresses[0] >> 61 & 3) as u8
    }

    /// Where the branch went, or would have gone.
    pub fn target(&self) -> Option<u64> {
        self.address(1).map(instruction_address)
    }

    /// Target of the last branch that was taken before this operation.
    pub fn previous_target(&self) -> Option<u64> {
        self.address(4).map(instruction_address)
    }

    /// Virtual address of the data, without its tag.
    pub fn data_address(&self) -> Option<u64> {
        self.address(2).map(data_address)
    }

    /// Physical address of the data.
    pub fn physical_address(&self) -> Option<u64> {
        self.address(3).map(|payload| payload & ADDRESS)
    }

    /// The payload of address `index` (0 PC, 1 target, 2 data, 3 physical, 4 previous target), flags and all.
    pub fn address(&self, index: usize) -> Option<u64> {
        self.has(PC << index).then(|| self.addresses.get(index).copied()).flatten()
    }

    /// Count of the generic timer when the operation was sampled.
    pub fn time(&self) -> Option<u64> {
        self.has(TIME).then_some(self.time)
    }

    /// The event bits; of size 0 where there was no events packet.
    pub fn events(&self) -> Events {
        if self.has(EVENTS) { Events { bits: self.events, size: self.events_size } } else { Events::default() }
    }

    /// What kind of operation it was.
    pub fn operation(&self) -> Option<OperationType> {
        self.has(OPERATION).then_some(OperationType { class: self.class, payload: self.payload })
    }

    /// Where the data came from, in the processor's own numbers.
    pub fn data_source(&self) -> Option<u64> {
        self.has(SOURCE).then_some(self.source)
    }

    /// What Linux keeps in the context register: the id of the thread, 0 when idle.
    pub fn context(&self) -> Option<u32> {
        self.has(CONTEXT).then_some(self.context)
    }

    /// Which register [`Self::context`] is: 0 for EL1, 1 for EL2.
    pub fn context_index(&self) -> Option<u8> {
        self.has(CONTEXT).then_some(self.context_index)
    }

    /// Cycles from dispatch to completion.
    pub fn total_latency(&self) -> Option<u16> {
        self.counter(0)
    }

    /// Cycles from dispatch to issue for execution.
    pub fn issue_latency(&self) -> Option<u16> {
        self.counter(1)
    }

    /// Cycles of address translation.
    pub fn translation_latency(&self) -> Option<u16> {
        self.counter(2)
    }

    /// What is left of the total latency after issue; `None` also where the counters contradict each other.
    pub fn execution_latency(&self) -> Option<u16> {
        self.total_latency()?.checked_sub(self.issue_latency()?)
    }

    /// Counters without a known meaning, by their index.
    pub fn other_counters(&self) -> &[(u8, u16)] {
        self.others.get(..usize::from(self.others_len)).unwrap_or_default()
    }

    fn counter(&self, index: u32) -> Option<u16> {
        self.has(TOTAL << index).then_some((self.counters >> (16 * index)) as u16)
    }

    /// Total, issue and translation latency, sixteen bits each from the lowest; 0 where absent.
    #[inline(always)]
    pub(super) fn counters_or_zero(&self) -> u64 {
        const MASKS: [u64; 8] = {
            let mut masks = [0; 8];
            let mut present = 0;
            while present < 8 {
                let mut counter = 0;
                while counter < 3 {
                    masks[present] |= if present >> counter & 1 == 1 { 0xffff << (16 * counter) } else { 0 };
                    counter += 1;
                }
                present += 1;
            }
            masks
        };
        self.counters & MASKS[(self.present / TOTAL) as usize & 7]
    }

    fn has(&self, bit: u32) -> bool {
        self.present & bit != 0
    }

    pub(super) fn has_pc(&self) -> bool {
        self.has(PC)
    }

    /// Forgets everything: the next packet begins a record at `offset`.
    pub(super) fn restart(&mut self, offset: u64) {
        self.offset = offset;
        self.present = 0;
        self.others_len = 0;
        self.ignored = 0;
    }

    /// Takes in a packet; terminators are the decoder's business, except that a timestamp is also a field.
    pub(super) fn take(&mut self, packet: Packet) {
        match packet {
            Packet::Padding | Packet::End => {}
            Packet::Timestamp(count) => self.set_time(count),
            Packet::Events(events) => self.set_events(events.bits, events.size),
            Packet::DataSource { value: source, .. } => self.set_source(source),
            Packet::Context { index, value } => self.set_context(index, value),
            Packet::Operation { class, payload } => self.set_operation(class, payload),
            Packet::Address { index, payload } => self.set_address(index, payload),
            Packet::Counter { index, value } => self.set_counter(index, value),
        }
    }

    #[inline(always)]
    pub(super) fn set_time(&mut self, count: u64) {
        self.time = count;
        self.present |= TIME;
    }

    #[inline(always)]
    pub(super) fn set_events(&mut self, bits: u64, size: u8) {
        self.events = bits;
        self.events_size = size;
        self.present |= EVENTS;
    }

    #[inline(always)]
    pub(super) fn set_source(&mut self, source: u64) {
        self.source = source;
        self.present |= SOURCE;
    }

    #[inline(always)]
    pub(super) fn set_context(&mut self, index: u8, value: u32) {
        self.context = value;
        self.context_index = index;
        self.present |= CONTEXT;
    }

    #[inline(always)]
    pub(super) fn set_operation(&mut self, class: u8, payload: u8) {
        self.class = class;
        self.payload = payload;
        self.present |= OPERATION;
    }

    #[inline(always)]
    pub(super) fn set_address(&mut self, index: u8, payload: u64) {
        match self.addresses.get_mut(usize::from(index)) {
            Some(address) => {
                *address = payload;
                self.present |= PC << index;
            }
            None => self.ignore(),
        }
    }

    #[inline(always)]
    pub(super) fn set_counter(&mut self, index: u8, value: u16) {
        if index < 3 {
            let shift = 16 * u32::from(index);
            self.counters = self.counters & !(0xffff << shift) | u64::from(value) << shift;
            self.present |= TOTAL << index;
        } else {
            self.set_other_counter(index, value);
        }
    }

    #[cold]
    fn set_other_counter(&mut self, index: u8, value: u16) {
        self.present |= IGNORED;
        let used = usize::from(self.others_len);
        if let Some(known) = self.others.iter_mut().take(used).find(|counter| counter.0 == index) {
            known.1 = value;
        } else if let Some(free) = self.others.get_mut(used) {
            *free = (index, value);
            self.others_len += 1;
        } else {
            self.ignore();
        }
    }

    #[cold]
    fn ignore(&mut self) {
        self.present |= IGNORED;
        self.ignored += 1;
    }
}

const ADDRESS: u64 = (1 << 56) - 1;
const TOP_BYTE: u64 = !ADDRESS;

/// The virtual address of code: the top byte holds flags instead of the sign, which follows from them for a kernel.
pub(super) fn instruction_address(payload: u64) -> u64 {
    let non_secure = payload >> 63 == 1;
    let kernel = non_secure && matches!(payload >> 61 & 3, 1 | 2);
    if kernel { payload | TOP_BYTE } else { payload & ADDRESS }
}

/// The virtual address of data: the top byte holds a tag instead of the sign.
pub(super) fn data_address(payload: u64) -> u64 {
    let kernel = payload >> 52 & 0xf == 0xf;
    if kernel { payload | TOP_BYTE } else { payload & ADDRESS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_their_top_byte_back() {
        for (payload, address) in [
            (0xa0ff_8000_1012_3456, 0xffff_8000_1012_3456),
            (0xc0ff_8000_1012_3456, 0xffff_8000_1012_3456),
            (0xe0ff_8000_1012_3456, 0x00ff_8000_1012_3456),
            (0x20ff_8000_1012_3456, 0x00ff_8000_1012_3456),
            (0x8000_0000_0040_06d4, 0x40_06d4),
        ] {
            assert_eq!(instruction_address(payload), address, "{payload:#x}");
        }
        assert_eq!(data_address(0xb4f0_0000_0000_1000), 0xfff0_0000_0000_1000);
        assert_eq!(data_address(0x00e0_0000_0000_0000), 0x00e0_0000_0000_0000);
        assert_eq!(data_address(0xf000_0000_f7ff_1280), 0xf7ff_1280);
    }

    #[test]
    fn the_last_of_repeated_fields_counts_and_unknown_counters_are_kept_raw() {
        let mut record = Record::default();
        record.take(Packet::Counter { index: 0, value: 3 });
        record.take(Packet::Counter { index: 0, value: 9 });
        record.take(Packet::Context { index: 0, value: 77 });
        record.take(Packet::Context { index: 1, value: 99 });
        for index in [5, 6, 5, 7, 8, 9] {
            record.take(Packet::Counter { index, value: u16::from(index) * 10 });
        }
        assert_eq!((record.total_latency(), record.issue_latency()), (Some(9), None));
        assert_eq!((record.context(), record.context_index()), (Some(99), Some(1)));
        assert_eq!(record.other_counters(), [(5, 50), (6, 60), (7, 70), (8, 80)]);
        assert_eq!(record.ignored, 1);
    }
}
