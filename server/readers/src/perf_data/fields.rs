//! The fields of a sample behind its call chain, in the kernel's order.

use super::attr::{Attr, sample_type as bit};
use super::bytes::{Cursor, Order};

/// Bits of `branch_sample_type` that change how branches are laid out.
mod branch {
    pub const HARDWARE_INDEX: u64 = 1 << 17;
    pub const COUNTERS: u64 = 1 << 19;
}

/// Registers of a sample: which, and their values in the order of the bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Registers<'a> {
    /// 1 for a process of 32 bits, 2 for one of 64.
    pub abi: u64,
    pub mask: u64,
    pub values: &'a [u8],
}

/// A part of the user stack, from the stack pointer on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UserStack<'a> {
    /// What there was to copy, without padding.
    pub bytes: &'a [u8],
}

/// Branches that led to the sample, the last one first: 24 bytes each for from, to and flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Branches<'a> {
    pub entries: &'a [u8],
    /// One word per branch, where recorded.
    pub counters: &'a [u8],
}

/// The fields that a sample may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fields<'a> {
    pub raw: Option<&'a [u8]>,
    pub branches: Option<Branches<'a>>,
    pub user_registers: Option<Registers<'a>>,
    pub user_stack: Option<UserStack<'a>>,
    /// As one number, or with WEIGHT_STRUCT as one of 32 and two of 16 bits.
    pub weight: Option<u64>,
    pub data_source: Option<u64>,
    pub transaction: Option<u64>,
    pub interrupt_registers: Option<Registers<'a>>,
    pub physical_address: Option<u64>,
    pub cgroup: Option<u64>,
    pub data_page_size: Option<u64>,
    pub code_page_size: Option<u64>,
    pub aux: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    /// Reads the fields from the bytes behind the chain; `None` if there are too few.
    pub fn parse(attr: &Attr, bytes: &'a [u8], order: Order) -> Option<Fields<'a>> {
        let mut cursor = Cursor::new(bytes, order);
        let has = |bit: u64| attr.sample_type & bit != 0;
        let mut fields = Fields::default();
        if has(bit::RAW) {
            let size = usize::try_from(cursor.u32()?).ok()?;
            fields.raw = Some(cursor.take(size)?);
        }
        if has(bit::BRANCH_STACK) {
            fields.branches = Some(branches(attr, &mut cursor)?);
        }
        if has(bit::REGS_USER) {
            fields.user_registers = registers(attr.user_registers, &mut cursor)?;
        }
        if has(bit::STACK_USER) {
            fields.user_stack = user_stack(&mut cursor)?;
        }
        let mut word = |bit: u64| if has(bit) { cursor.u64().map(Some) } else { Some(None) };
        fields.weight = word(bit::WEIGHT | bit::WEIGHT_STRUCT)?;
        fields.data_source = word(bit::DATA_SRC)?;
        fields.transaction = word(bit::TRANSACTION)?;
        if has(bit::REGS_INTR) {
            fields.interrupt_registers = registers(attr.interrupt_registers, &mut cursor)?;
        }
        let mut word = |bit: u64| if has(bit) { cursor.u64().map(Some) } else { Some(None) };
        fields.physical_address = word(bit::PHYS_ADDR)?;
        fields.cgroup = word(bit::CGROUP)?;
        fields.data_page_size = word(bit::DATA_PAGE_SIZE)?;
        fields.code_page_size = word(bit::CODE_PAGE_SIZE)?;
        if has(bit::AUX) {
            let size = usize::try_from(cursor.u64()?).ok()?;
            fields.aux = Some(cursor.take(size)?);
        }
        Some(fields)
    }
}

fn branches<'a>(attr: &Attr, cursor: &mut Cursor<'a>) -> Option<Branches<'a>> {
    let count = usize::try_from(cursor.u64()?).ok()?;
    if attr.branch_sample_type & branch::HARDWARE_INDEX != 0 {
        cursor.u64()?;
    }
    let entries = cursor.take(count.checked_mul(24)?)?;
    let counters = match attr.branch_sample_type & branch::COUNTERS {
        0 => &[],
        _ => cursor.take(count.checked_mul(8)?)?,
    };
    Some(Branches { entries, counters })
}

/// `Some(None)` for a thread without user registers, as those of the kernel are.
fn registers<'a>(mask: u64, cursor: &mut Cursor<'a>) -> Option<Option<Registers<'a>>> {
    let abi = cursor.u64()?;
    if abi == 0 {
        return Some(None);
    }
    let values = cursor.take(mask.count_ones() as usize * 8)?;
    Some(Some(Registers { abi, mask, values }))
}

fn user_stack<'a>(cursor: &mut Cursor<'a>) -> Option<Option<UserStack<'a>>> {
    let size = usize::try_from(cursor.u64()?).ok()?;
    if size == 0 {
        return Some(None);
    }
    let bytes = cursor.take(size)?;
    let used = usize::try_from(cursor.u64()?).ok()?;
    Some(Some(UserStack { bytes: bytes.get(..used).unwrap_or(bytes) }))
}
