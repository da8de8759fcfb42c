//! `perf_event_attr`: how one event was recorded, and so how its samples are laid out.

use super::bytes::{Cursor, Order};
use super::names;
use heatline_profile::{Event, Sampling, Unit};

/// Bits of `sample_type`.
pub(crate) mod sample_type {
    pub const IP: u64 = 1 << 0;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const WEIGHT: u64 = 1 << 14;
    pub const DATA_SRC: u64 = 1 << 15;
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const TRANSACTION: u64 = 1 << 17;
    pub const REGS_INTR: u64 = 1 << 18;
    pub const PHYS_ADDR: u64 = 1 << 19;
    pub const AUX: u64 = 1 << 20;
    pub const CGROUP: u64 = 1 << 21;
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
}

/// Bits of `read_format`.
pub(crate) mod read_format {
    pub const TOTAL_TIME_ENABLED: u64 = 1 << 0;
    pub const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    pub const ID: u64 = 1 << 2;
    pub const GROUP: u64 = 1 << 3;
    pub const LOST: u64 = 1 << 4;
}

/// The values of `type`.
pub(crate) mod event_type {
    pub const HARDWARE: u32 = 0;
    pub const SOFTWARE: u32 = 1;
    pub const TRACEPOINT: u32 = 2;
    pub const HW_CACHE: u32 = 3;
    pub const RAW: u32 = 4;
    pub const BREAKPOINT: u32 = 5;
}

mod flag {
    pub const INHERIT: u32 = 1;
    pub const EXCLUDE_USER: u32 = 4;
    pub const EXCLUDE_KERNEL: u32 = 5;
    pub const EXCLUDE_HV: u32 = 6;
    pub const FREQ: u32 = 10;
    pub const PRECISE_IP: u32 = 15;
    pub const SAMPLE_ID_ALL: u32 = 18;
    pub const EXCLUDE_HOST: u32 = 19;
    pub const EXCLUDE_GUEST: u32 = 20;
    pub const EXCLUDE_CALLCHAIN_USER: u32 = 22;
}

/// The size of the first published `perf_event_attr`; none is smaller.
pub(crate) const SMALLEST: usize = 64;

/// The part of a `perf_event_attr` that reading needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Attr {
    pub kind: u32,
    pub config: u64,
    /// Period, or frequency where [`Attr::is_frequency`].
    pub sample_period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub breakpoint_kind: u32,
    pub config1: u64,
    pub config2: u64,
    pub branch_sample_type: u64,
    pub user_registers: u64,
    pub interrupt_registers: u64,
    /// Whether chains have fewer frames than the system allows.
    pub limits_frames: bool,
    pub config3: u64,
    pub config4: u64,
    flags: u64,
}

impl Attr {
    /// Reads an attribute of any size that was published; missing fields at its end are zero.
    pub fn parse(bytes: &[u8], order: Order) -> Option<Attr> {
        let mut cursor = Cursor::new(bytes, order);
        let kind = cursor.u32()?;
        let _size = cursor.u32()?;
        let config = cursor.u64()?;
        let sample_period = cursor.u64()?;
        let sample_type = cursor.u64()?;
        let read_format = cursor.u64()?;
        let flags = parse_flags(cursor.take(8)?.first_chunk()?, order);
        let _wakeup = cursor.u32()?;
        let breakpoint_kind = cursor.u32()?;
        let config1 = cursor.u64()?;
        let later = |at: usize| order.u64_at(bytes, at).unwrap_or(0);
        Some(Attr {
            kind,
            config,
            sample_period,
            sample_type,
            read_format,
            breakpoint_kind,
            config1,
            config2: later(64),
            branch_sample_type: later(72),
            user_registers: later(80),
            interrupt_registers: later(96),
            limits_frames: order.u32_at(bytes, 108).is_some_and(|most| most != 0),
            config3: later(128),
            config4: later(136),
            flags,
        })
    }

    fn has(&self, bit: u32) -> bool {
        self.flags >> bit & 1 == 1
    }

    pub fn is_frequency(&self) -> bool {
        self.has(flag::FREQ)
    }

    pub fn inherits(&self) -> bool {
        self.has(flag::INHERIT)
    }

    pub fn sample_id_all(&self) -> bool {
        self.has(flag::SAMPLE_ID_ALL)
    }

    /// Whether recorded branches are the call stack that the processor kept (`--call-graph lbr`).
    pub fn has_call_stack_branches(&self) -> bool {
        const CALL_STACK: u64 = 1 << 11;
        self.branch_sample_type & CALL_STACK != 0
    }

    /// Whether samples carry chains that the kernel followed by frame pointers alone, however deep.
    pub fn follows_frame_pointers(&self) -> bool {
        use sample_type::{BRANCH_STACK, CALLCHAIN, STACK_USER};
        self.sample_type & (CALLCHAIN | BRANCH_STACK | STACK_USER) == CALLCHAIN
            && !self.has(flag::EXCLUDE_CALLCHAIN_USER)
            && !self.limits_frames
    }

    /// Whether samples tell of the data they accessed.
    pub fn has_accesses(&self) -> bool {
        use sample_type::{DATA_SRC, WEIGHT, WEIGHT_STRUCT};
        self.sample_type & (WEIGHT | WEIGHT_STRUCT | DATA_SRC) != 0
    }

    pub fn precise(&self) -> u64 {
        self.flags >> flag::PRECISE_IP & 3
    }

    /// The modifiers that perf writes behind the name, without the colon: `u`, `k`, `ppp`, …
    pub fn modifiers(&self) -> String {
        let mut text = String::new();
        let mut guest_by_default = false;
        if self.has(flag::EXCLUDE_KERNEL) || self.has(flag::EXCLUDE_USER) || self.has(flag::EXCLUDE_HV) {
            let spaces = [(flag::EXCLUDE_KERNEL, 'k'), (flag::EXCLUDE_USER, 'u'), (flag::EXCLUDE_HV, 'h')];
            text.extend(spaces.iter().filter(|(bit, _)| !self.has(*bit)).map(|(_, letter)| letter));
            guest_by_default = true;
        }
        if self.precise() > 0 {
            text.extend((0..self.precise()).map(|_| 'p'));
            guest_by_default = true;
        }
        if self.has(flag::EXCLUDE_HOST) || self.has(flag::EXCLUDE_GUEST) == guest_by_default {
            let machines = [(flag::EXCLUDE_HOST, 'H'), (flag::EXCLUDE_GUEST, 'G')];
            text.extend(machines.iter().filter(|(bit, _)| !self.has(*bit)).map(|(_, letter)| letter));
        }
        text
    }

    /// The event as the profile has it, under its recorded name or, without one, as perf would name it.
    pub fn event(&self, name: Option<&str>) -> Event {
        let sampling = match self.sample_period {
            0 => None,
            n if self.is_frequency() => Some(Sampling::Frequency(n)),
            n => Some(Sampling::Period(n)),
        };
        let name = name.map_or_else(|| names::of(self), str::to_owned);
        Event {
            sampling,
            precise: self.precise() > 0,
            has_stacks: self.sample_type & sample_type::CALLCHAIN != 0,
            ..Event::new(name, self.unit())
        }
    }

    fn unit(&self) -> Unit {
        match (self.kind, self.config & 0xffff_ffff) {
            (event_type::SOFTWARE, 0 | 1) => Unit::Nanoseconds,
            (event_type::HARDWARE, 0 | 9) => Unit::Cycles,
            (event_type::HARDWARE, 1) => Unit::Instructions,
            _ => Unit::Events,
        }
    }
}

/// The bit field, whose bits machines of big byte order allocate from the other end of each byte.
fn parse_flags(bytes: &[u8; 8], order: Order) -> u64 {
    match order {
        Order::Little => u64::from_le_bytes(*bytes),
        Order::Big => u64::from_le_bytes(bytes.map(u8::reverse_bits)),
    }
}
