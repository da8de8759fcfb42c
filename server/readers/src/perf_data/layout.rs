//! Where the fields of an event's records lie, worked out once per event from its attribute.

use super::attr::{Attr, read_format, sample_type as bit};
use super::bytes::{Cursor, Order};

/// The fields that precede a sample's first field of variable size, in the kernel's order, one word each.
const FIXED: [u64; 9] =
    [bit::IDENTIFIER, bit::IP, bit::TID, bit::TIME, bit::ADDR, bit::ID, bit::STREAM_ID, bit::CPU, bit::PERIOD];

/// The fields behind every other record where `sample_id_all` is set, last first, one word each.
const TRAILER: [u64; 6] = [bit::IDENTIFIER, bit::CPU, bit::STREAM_ID, bit::ID, bit::TIME, bit::TID];

/// Positions of the fields of one event's records, in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    sample_type: u64,
    read_format: u64,
    default_period: u64,
    ip: Option<u16>,
    tid: Option<u16>,
    time: Option<u16>,
    id: Option<u16>,
    data_address: Option<u16>,
    cpu: Option<u16>,
    period: Option<u16>,
    /// Where a sample's first field of variable size begins.
    variable: u16,
    /// Distances from the end of the other records.
    trailer: Option<TrailerLayout>,
}

/// Distances of the fields behind other records from the records' ends, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TrailerLayout {
    id: Option<u16>,
    tid: Option<u16>,
    time: Option<u16>,
    cpu: Option<u16>,
}

/// The fields behind a record that is no sample, where they were recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Trailer {
    pub tid: Option<i32>,
    /// `None` also in records that perf made up.
    pub time: Option<u64>,
    pub cpu: Option<u32>,
}

/// The fields of a sample that precede its variable part. What was not recorded is zero, processes are −1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub ip: Option<u64>,
    pub pid: i32,
    pub tid: i32,
    pub time: Option<u64>,
    pub cpu: Option<u32>,
    pub period: u64,
}

/// Counters, call chain, and what follows it.
pub(crate) type Readings<'a> = (Vec<Reading>, &'a [u8], &'a [u8]);

/// One counter's value in a sample that holds counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reading {
    pub value: u64,
    pub id: Option<u64>,
}

impl Layout {
    pub fn new(attr: &Attr) -> Layout {
        let position = |field: u64| {
            let before = FIXED.iter().take_while(|&&f| f != field).filter(|&&f| attr.sample_type & f != 0).count();
            (attr.sample_type & field != 0).then_some(8 * before as u16)
        };
        let back = |field: u64| {
            let from_end = TRAILER.iter().take_while(|&&f| f != field).filter(|&&f| attr.sample_type & f != 0).count();
            (attr.sample_type & field != 0).then_some(8 * (from_end as u16 + 1))
        };
        Layout {
            sample_type: attr.sample_type,
            read_format: attr.read_format,
            default_period: attr.sample_period,
            ip: position(bit::IP),
            tid: position(bit::TID),
            time: position(bit::TIME),
            id: position(bit::IDENTIFIER).or(position(bit::ID)),
            data_address: position(bit::ADDR),
            cpu: position(bit::CPU),
            period: position(bit::PERIOD),
            variable: 8 * FIXED.iter().filter(|&&f| attr.sample_type & f != 0).count() as u16,
            trailer: attr.sample_id_all().then(|| TrailerLayout {
                id: back(bit::IDENTIFIER).or(back(bit::ID)),
                tid: back(bit::TID),
                time: back(bit::TIME),
                cpu: back(bit::CPU),
            }),
        }
    }

    /// The id of the event that a sample belongs to, where ids were recorded.
    #[inline]
    pub fn sample_id(&self, body: &[u8], order: Order) -> Option<u64> {
        order.u64_at(body, self.id? as usize)
    }

    /// The event's id behind a record that is no sample.
    pub fn trailer_id(&self, body: &[u8], order: Order) -> Option<u64> {
        from_end(body, self.trailer?.id?, order)
    }

    /// What lies behind a record that is no sample.
    pub fn trailer(&self, body: &[u8], order: Order) -> Trailer {
        let Some(layout) = self.trailer else { return Trailer::default() };
        let half = |back: Option<u16>, offset: usize| {
            let at = body.len().checked_sub(back? as usize)?;
            order.u32_at(body, at + offset)
        };
        Trailer {
            tid: half(layout.tid, 4).map(u32::cast_signed),
            time: layout.time.and_then(|back| from_end(body, back, order)).filter(|&time| is_time(time)),
            cpu: half(layout.cpu, 0),
        }
    }

    /// The fields of fixed size of a sample, or `None` if the record is too short for them.
    #[inline]
    pub fn head(&self, body: &[u8], order: Order) -> Option<Head> {
        let fixed = body.get(..self.variable as usize)?;
        let word = |position: Option<u16>| position.and_then(|at| order.u64_at(fixed, at as usize));
        let half = |position: Option<u16>, offset| position.and_then(|at| order.u32_at(fixed, at as usize + offset));
        Some(Head {
            ip: word(self.ip),
            pid: half(self.tid, 0).map_or(-1, u32::cast_signed),
            tid: half(self.tid, 4).map_or(-1, u32::cast_signed),
            time: word(self.time).filter(|&time| is_time(time)),
            cpu: half(self.cpu, 0),
            period: word(self.period).unwrap_or(self.default_period),
        })
    }

    /// Whether the chains of both lie at the same place of their samples.
    pub fn has_chains_where(&self, other: &Layout) -> bool {
        (self.sample_type, self.read_format) == (other.sample_type, other.read_format)
    }

    pub fn has_chains(&self) -> bool {
        self.sample_type & bit::CALLCHAIN != 0
    }

    /// Whether registers and stack were recorded so that the stack can be walked later.
    #[inline]
    pub fn has_stack_dump(&self) -> bool {
        self.sample_type & bit::REGS_USER != 0 && self.sample_type & bit::STACK_USER != 0
    }

    #[inline]
    pub fn has_branches(&self) -> bool {
        self.sample_type & bit::BRANCH_STACK != 0
    }

    /// The address of the data that a sample accessed, where it was recorded.
    pub fn data_address(&self, body: &[u8], order: Order) -> Option<u64> {
        order.u64_at(body, self.data_address? as usize)
    }

    /// Whether samples tell of the data they accessed.
    #[inline]
    pub fn has_accesses(&self) -> bool {
        self.sample_type & (bit::WEIGHT | bit::WEIGHT_STRUCT | bit::DATA_SRC) != 0
    }

    #[inline]
    pub fn has_readings(&self) -> bool {
        self.sample_type & bit::READ != 0
    }

    /// The counters of a sample that holds them, the bytes of its call chain and what follows; `None` if the record is too short.
    pub fn readings<'a>(&self, body: &'a [u8], order: Order) -> Option<Readings<'a>> {
        let mut cursor = Cursor::new(body.get(self.variable as usize..)?, order);
        let readings = self.parse_readings(&mut cursor)?;
        let chain = self.parse_chain(&mut cursor)?;
        Some((readings, chain, cursor.rest()))
    }

    /// The bytes of the call chain, empty where there is none, and what follows it; `None` if the record is too short.
    #[inline]
    pub fn chain<'a>(&self, body: &'a [u8], order: Order) -> Option<(&'a [u8], &'a [u8])> {
        let mut cursor = Cursor::new(body.get(self.variable as usize..)?, order);
        let chain = self.parse_chain(&mut cursor)?;
        Some((chain, cursor.rest()))
    }

    fn parse_readings(&self, cursor: &mut Cursor<'_>) -> Option<Vec<Reading>> {
        let has = |bit| self.read_format & bit != 0;
        let times =
            has(read_format::TOTAL_TIME_ENABLED) as usize * 8 + has(read_format::TOTAL_TIME_RUNNING) as usize * 8;
        let one = |cursor: &mut Cursor<'_>, times: usize| {
            let value = cursor.u64()?;
            cursor.take(times)?;
            let id = if has(read_format::ID) { Some(cursor.u64()?) } else { None };
            if has(read_format::LOST) {
                cursor.u64()?;
            }
            Some(Reading { value, id })
        };
        if !has(read_format::GROUP) {
            return Some(vec![one(cursor, times)?]);
        }
        let count = cursor.u64()?;
        cursor.take(times)?;
        if count > cursor.rest().len() as u64 / 8 {
            return None;
        }
        (0..count).map(|_| one(cursor, 0)).collect()
    }

    #[inline]
    fn parse_chain<'a>(&self, cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
        if self.sample_type & bit::CALLCHAIN == 0 {
            return Some(&[]);
        }
        let count = usize::try_from(cursor.u64()?).ok()?;
        cursor.take(count.checked_mul(8)?)
    }
}

/// perf takes both ends of the range for "no time".
fn is_time(time: u64) -> bool {
    time != 0 && time != u64::MAX
}

fn from_end(body: &[u8], back: u16, order: Order) -> Option<u64> {
    order.u64_at(body, body.len().checked_sub(back as usize)?)
}
