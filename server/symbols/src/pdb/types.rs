//! How large types are when they are written out. What writes them recurses into them, and a damaged file can nest them
//! without end, or so that they double at each step.

use super::bytes::Bytes;
use super::names::NameKey;

/// Types nested deeper than this are not written out; it bounds the stack.
const DEEPEST: u8 = 48;
/// Nor are those that consist of more types than this, a type as often as it occurs.
const MOST_TYPES: u16 = 1 << 12;
/// Marks a number as one of another module.
const CROSS_MODULE: u32 = 1 << 31;

const LF_MODIFIER: u16 = 0x1001;
const LF_POINTER: u16 = 0x1002;
const LF_PROCEDURE: u16 = 0x1008;
const LF_MFUNCTION: u16 = 0x1009;
const LF_ARGLIST: u16 = 0x1201;
const LF_BITFIELD: u16 = 0x1205;
const LF_ARRAY: u16 = 0x1503;
const LF_FUNC_ID: u16 = 0x1601;
const LF_MFUNC_ID: u16 = 0x1602;
const LF_SUBSTR_LIST: u16 = 0x1604;

/// How deep something is nested and of how many types it consists. Saturates.
#[derive(Clone, Copy, Default)]
struct Extent {
    depth: u8,
    types: u16,
}

impl Extent {
    const TOO_MUCH: Extent = Extent { depth: u8::MAX, types: u16::MAX };

    fn fits(self) -> bool {
        self.depth <= DEEPEST && self.types <= MOST_TYPES
    }

    /// Of something that holds both.
    fn and(self, other: Extent) -> Extent {
        Extent { depth: self.depth.max(other.depth), types: self.types.saturating_add(other.types) }
    }

    fn nested(self) -> Extent {
        Extent { depth: self.depth.saturating_add(1), types: self.types.saturating_add(1) }
    }
}

/// The extents of all types, and of all functions and scopes that are not types.
pub(super) struct Extents {
    types: Table,
    ids: Table,
    all_fit: bool,
}

/// The extents of one stream, by number from `first` on.
#[derive(Default)]
struct Table {
    first: u32,
    extents: Vec<Extent>,
}

impl Table {
    /// Of a number below `first`, which is a basic type, and of one that there is not: nothing.
    fn get(&self, index: u32) -> Extent {
        let at = index.checked_sub(self.first).and_then(|at| self.extents.get(at as usize));
        at.copied().unwrap_or_default()
    }

    /// Of what a record refers to. A record may refer to earlier ones only, or there would be no end.
    fn earlier(&self, index: u32) -> Extent {
        let own = self.first.saturating_add(self.extents.len() as u32);
        if index >= own { Extent::TOO_MUCH } else { self.get(index) }
    }
}

impl Extents {
    /// From the streams of types and of ids, as far as they are whole.
    pub fn read(types: &[u8], ids: &[u8]) -> Extents {
        let mut table = Table::default();
        each(types, &mut table, |table, kind, data| of_type(table, kind, data).unwrap_or_default());
        let types = table;
        let mut table = Table::default();
        each(ids, &mut table, |table, kind, data| of_id(table, &types, kind, data).unwrap_or_default());
        let all_fit = types.extents.iter().chain(&table.extents).all(|extent| extent.fits());
        Extents { types, ids: table, all_fit }
    }

    /// Whether the name may be written out.
    pub fn allow(&self, key: &NameKey) -> bool {
        let (index, table) = match key {
            NameKey::Procedure { type_index, .. } => (*type_index, &self.types),
            NameKey::Inlinee { id, .. } => (*id, &self.ids),
        };
        // What another module has under a number is not known here.
        if index & CROSS_MODULE == 0 { table.get(index).fits() } else { self.all_fit }
    }
}

/// Adds the extent of each record of a stream to `table`.
fn each(stream: &[u8], table: &mut Table, extent: impl Fn(&Table, u16, Bytes<'_>) -> Extent) -> Option<()> {
    let mut header = Bytes(stream);
    let (_version, size, first) = (header.u32()?, header.u32()?, header.u32()?);
    table.first = first;
    let mut rest = Bytes(stream.get(size as usize..)?);
    while !rest.0.is_empty() {
        let size = rest.u16()?;
        let mut record = Bytes(rest.take(usize::from(size))?);
        let kind = record.u16()?;
        let extent = extent(table, kind, record).nested();
        table.extents.push(extent);
    }
    Some(())
}

/// What a type refers to and the formatter writes.
fn of_type(table: &Table, kind: u16, mut data: Bytes<'_>) -> Option<Extent> {
    let of = |data: &mut Bytes<'_>| data.u32().map(|index| table.earlier(index));
    Some(match kind {
        LF_MODIFIER | LF_BITFIELD => of(&mut data)?,
        LF_POINTER => {
            let (underlying, attributes) = (of(&mut data)?, data.u32()?);
            // A pointer to a member names the class, too.
            let to_member = matches!(attributes >> 5 & 7, 2 | 3);
            if to_member { underlying.and(of(&mut data)?) } else { underlying }
        }
        LF_ARRAY => of(&mut data)?.and(of(&mut data)?),
        LF_PROCEDURE => {
            let returned = of(&mut data)?;
            // Calling convention, attributes, number of parameters.
            data.take(4)?;
            returned.and(of(&mut data)?)
        }
        LF_MFUNCTION => {
            let types = of(&mut data)?.and(of(&mut data)?).and(of(&mut data)?);
            data.take(4)?;
            types.and(of(&mut data)?)
        }
        LF_ARGLIST => {
            let count = data.u32()?;
            let mut sum = Extent::default();
            for _ in 0..count {
                sum = sum.and(of(&mut data)?);
            }
            sum
        }
        _ => Extent::default(),
    })
}

/// What a function or scope refers to and the formatter writes.
fn of_id(table: &Table, types: &Table, kind: u16, mut data: Bytes<'_>) -> Option<Extent> {
    Some(match kind {
        LF_FUNC_ID => {
            let (scope, of) = (data.u32()?, data.u32()?);
            table.earlier(scope).and(types.get(of))
        }
        LF_MFUNC_ID => types.get(data.u32()?).and(types.get(data.u32()?)),
        LF_SUBSTR_LIST => {
            let count = data.u32()?;
            let mut sum = Extent::default();
            for _ in 0..count {
                sum = sum.and(table.earlier(data.u32()?));
            }
            sum
        }
        _ => Extent::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of these records, numbered from 0x1000.
    fn stream(records: &[(u16, Vec<u32>)]) -> Vec<u8> {
        let mut stream: Vec<u8> = [20_040_203_u32, 12, 0x1000].iter().flat_map(|word| word.to_le_bytes()).collect();
        for (kind, words) in records {
            stream.extend((2 + 4 * words.len() as u16).to_le_bytes());
            stream.extend(kind.to_le_bytes());
            stream.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        stream
    }

    fn procedure(type_index: u32) -> NameKey {
        NameKey::Procedure { module: 0, name: String::new(), type_index }
    }

    #[test]
    fn plain_functions_are_written_out() {
        let types = stream(&[(LF_ARGLIST, vec![1, 0x74]), (LF_PROCEDURE, vec![0x74, 0, 0x1000])]);
        let extents = Extents::read(&types, &[]);
        assert!(extents.allow(&procedure(0x1001)) && extents.allow(&procedure(0x74)));
        assert!(extents.allow(&procedure(CROSS_MODULE | 5)));
    }

    #[test]
    fn endless_chains_are_not() {
        let pointers: Vec<_> = (0..100).map(|i| (LF_POINTER, vec![0x0fff + i, 0])).collect();
        let extents = Extents::read(&stream(&pointers), &[]);
        assert!(extents.allow(&procedure(0x1000 + 40)));
        assert!(!extents.allow(&procedure(0x1000 + 60)));
        assert!(!extents.allow(&procedure(CROSS_MODULE | 5)), "nobody knows where that leads");
        let itself = stream(&[(LF_MODIFIER, vec![0x1000])]);
        assert!(!Extents::read(&itself, &[]).allow(&procedure(0x1000)));
        let scopes: Vec<_> = (0..100).map(|i| (LF_FUNC_ID, vec![0x0fff + i, 0])).collect();
        let extents = Extents::read(&[], &stream(&scopes));
        assert!(!extents.allow(&NameKey::Inlinee { module: 0, id: 0x1000 + 60 }));
    }

    #[test]
    fn doubling_types_are_not() {
        let lists: Vec<_> = (0..20).map(|i| (LF_ARGLIST, vec![2, 0x0fff + i, 0x0fff + i])).collect();
        let extents = Extents::read(&stream(&lists), &[]);
        assert!(extents.allow(&procedure(0x1005)));
        assert!(!extents.allow(&procedure(0x1013)));
    }

    #[test]
    fn what_is_cut_is_read_as_far_as_it_is_there() {
        let types = stream(&[(LF_ARGLIST, vec![1, 0x74]), (LF_PROCEDURE, vec![0x74, 0, 0x1000])]);
        for len in 0..types.len() {
            Extents::read(&types[..len], &types[..len]);
        }
    }
}
