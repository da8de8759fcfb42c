//! Feature sections that describe the machine: processors, memory, caches, performance units.
//!
//! Follows `Documentation/perf.data-file-format.txt` of perf, and for what it leaves out, what perf writes.

use super::bytes::{Cursor, Order};
use super::describe::FieldValue;
use super::features::{Described, build_ids_of, described_events, feature};

/// Texts and numbers of one list; a section that holds more is cut there.
pub(super) const MOST_ITEMS: usize = 4096;

type List = Vec<(&'static str, FieldValue)>;

/// The fields of a section of the machine; `None` where it is damaged, of which the readable front is kept. `cpus` is
/// how many processors the machine may have, which tells where one list ends.
pub(super) fn values(number: u32, bytes: &[u8], order: Order, cpus: Option<u32>, out: &mut List) -> Option<()> {
    use FieldValue::{Number, Texts};
    let cursor = &mut Cursor::new(bytes, order);
    match number {
        feature::BUILD_ID => {
            let all = build_ids_of(bytes, order).into_iter().take(MOST_ITEMS);
            out.push(("build_ids", Texts(all.map(|(path, id)| format!("{id} {path}")).collect())));
        }
        feature::EVENT_DESCRIPTION => {
            let events = described_events(cursor, order).into_iter().take(MOST_ITEMS);
            let describe = |event: Described| {
                let ids: Vec<String> = event.ids.iter().map(u64::to_string).collect();
                format!("{}: ids {}", event.name, ids.join(" "))
            };
            out.push(("events", Texts(events.map(describe).collect())));
        }
        feature::CPU_TOPOLOGY => cpu_topology(cursor, cpus, out)?,
        feature::NUMA_TOPOLOGY => {
            let node = |cursor: &mut Cursor<'_>| {
                let (number, total, free) = (cursor.u32()?, cursor.u64()?, cursor.u64()?);
                Some(format!("node {number}: {total} KiB, {free} free, processors {}", cursor.counted_text()?))
            };
            out.push(("nodes", list(cursor, node)?));
        }
        feature::PMU_MAPPINGS => {
            let unit = |cursor: &mut Cursor<'_>| {
                let kind = cursor.u32()?;
                Some(format!("{} = {kind}", cursor.counted_text()?))
            };
            out.push(("units", list(cursor, unit)?));
        }
        feature::GROUP_DESCRIPTION => {
            let group = |cursor: &mut Cursor<'_>| {
                let name = cursor.counted_text()?;
                let (leader, members) = (cursor.u32()?, cursor.u32()?);
                Some(format!("{name}: leader {leader}, {members} members"))
            };
            out.push(("groups", list(cursor, group)?));
        }
        feature::CACHE => {
            let _version = cursor.u32()?;
            out.push(("caches", list(cursor, cache)?));
        }
        feature::MEMORY_TOPOLOGY => memory_topology(cursor, out)?,
        feature::COMPRESSED => {
            for name in ["version", "type", "level", "ratio", "buffer"] {
                out.push((name, Number(cursor.u32()?.into())));
            }
        }
        feature::DIRECTORY => out.push(("version", Number(cursor.u64()?))),
        feature::CPU_CAPABILITIES => out.push(("capabilities", list(cursor, pair)?)),
        feature::UNIT_CAPABILITIES => {
            let unit = |cursor: &mut Cursor<'_>| {
                let Texts(pairs) = list(cursor, pair)? else { return None };
                Some(format!("{}: {}", cursor.counted_text()?, pairs.join(" ")))
            };
            out.push(("units", list(cursor, unit)?));
        }
        feature::HYBRID => {
            let unit =
                |cursor: &mut Cursor<'_>| Some(format!("{}: {}", cursor.counted_text()?, cursor.counted_text()?));
            out.push(("units", list(cursor, unit)?));
        }
        _ => return None,
    }
    Some(())
}

/// A count and so many items.
fn list(cursor: &mut Cursor<'_>, item: impl Fn(&mut Cursor<'_>) -> Option<String>) -> Option<FieldValue> {
    let count = usize::try_from(cursor.u32()?).ok()?.min(MOST_ITEMS);
    (0..count).map(|_| item(cursor)).collect::<Option<Vec<_>>>().map(FieldValue::Texts)
}

fn pair(cursor: &mut Cursor<'_>) -> Option<String> {
    Some(format!("{}={}", cursor.counted_text()?, cursor.counted_text()?))
}

fn cache(cursor: &mut Cursor<'_>) -> Option<String> {
    let (level, line, sets, ways) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
    let (kind, size, processors) = (cursor.counted_text()?, cursor.counted_text()?, cursor.counted_text()?);
    Some(format!("L{level} {kind} {size} [{processors}], lines of {line}, {sets} sets, {ways} ways"))
}

/// Which processors share a package and a core, then where each is, then, of newer recorders, the same of dies.
fn cpu_topology(cursor: &mut Cursor<'_>, cpus: Option<u32>, out: &mut List) -> Option<()> {
    out.push(("packages", list(cursor, |cursor| cursor.counted_text())?));
    out.push(("cores", list(cursor, |cursor| cursor.counted_text())?));
    let cpus = usize::try_from(cpus?).ok()?.min(MOST_ITEMS);
    let place = |cursor: &mut Cursor<'_>| Some((cursor.u32()?, cursor.u32()?));
    let places = (0..cpus).map(|_| place(cursor)).collect::<Option<Vec<_>>>()?;
    let dies = list(cursor, |cursor| cursor.counted_text());
    let die_of: Option<Vec<u32>> = dies.as_ref().and_then(|_| (0..cpus).map(|_| cursor.u32()).collect());
    out.extend(dies.map(|dies| ("dies", dies)));
    let describe = |(number, (core, package)): (usize, (u32, u32))| {
        let die = die_of.as_ref().and_then(|all| all.get(number)).map_or_else(String::new, |die| format!(" die {die}"));
        format!("{number}: core {core}{die} package {package}")
    };
    let texts = places.into_iter().enumerate().map(describe).collect();
    out.push(("processors", FieldValue::Texts(texts)));
    Some(())
}

/// Which blocks of memory belong to which node.
fn memory_topology(cursor: &mut Cursor<'_>, out: &mut List) -> Option<()> {
    let (_version, block, count) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    out.push(("block_size", FieldValue::Number(block)));
    let node = |cursor: &mut Cursor<'_>| {
        let (number, _size) = (cursor.u64()?, cursor.u64()?);
        let bits = usize::try_from(cursor.u64()?).ok()?;
        let words = (0..bits.div_ceil(64)).map(|_| cursor.u64()).collect::<Option<Vec<u64>>>()?;
        let total: u32 = words.iter().map(|word| word.count_ones()).sum();
        let size = u64::from(total).saturating_mul(block) >> 30;
        Some(format!("node {number}: {size} GiB, blocks {}", ranges(&words)))
    };
    let count = usize::try_from(count).ok()?.min(MOST_ITEMS);
    let nodes = (0..count).map(|_| node(cursor)).collect::<Option<Vec<_>>>()?;
    out.push(("nodes", FieldValue::Texts(nodes)));
    Some(())
}

/// The set bits, as `0-23,32-199`.
fn ranges(words: &[u64]) -> String {
    let is_set = |bit: usize| words.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1);
    let mut parts: Vec<String> = Vec::new();
    let mut start = None;
    for bit in 0..=words.len() * 64 {
        match (start, is_set(bit)) {
            (None, true) => start = Some(bit),
            (Some(first), false) => {
                parts.push(if first + 1 == bit { first.to_string() } else { format!("{first}-{}", bit - 1) });
                start = None;
            }
            _ => {}
        }
    }
    parts.join(",")
}
