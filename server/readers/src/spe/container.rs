//! What of a perf.data file is about SPE: where its data lies, how its clock runs, what was lost and who ran.

use super::source::Cpu;
use crate::perf_data::trace::TimeConversion;

/// Begins the block of a processor in `AUXTRACE_INFO` from its second version on.
const CPU_MAGIC: u64 = 0x1010_1010_1010_1010;
/// Processors that one recording describes.
const MOST_CPUS: u64 = 1 << 16;

/// What `AUXTRACE_INFO` says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Info {
    /// Types of the performance monitoring units that recorded: those of the SPE events' attributes.
    pub pmu_types: Vec<u32>,
    /// The processors, from the second version on.
    pub cpus: Vec<CpuInfo>,
}

/// One processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CpuInfo {
    pub cpu: u32,
    pub midr: u64,
    /// Events that the processor can filter on; only later recorders tell.
    pub event_filter: Option<u64>,
}

impl Info {
    /// Reads the words behind the kind; `None` if they are too few or contradict themselves.
    pub fn parse(words: &[u64]) -> Option<Info> {
        match words {
            // The first version has two words and no number of its own.
            [pmu, _per_cpu] => Some(Info { pmu_types: vec![*pmu as u32], cpus: Vec::new() }),
            [_version, header, pmu, cpus, ..] => Self::parse_cpus(words, *header, *pmu, *cpus),
            _ => None,
        }
    }

    fn parse_cpus(words: &[u64], header: u64, pmu: u64, cpus: u64) -> Option<Info> {
        let blocks = words.get(usize::try_from(header).ok()?..)?;
        let mut info = Info { pmu_types: vec![pmu as u32], cpus: Vec::new() };
        if cpus == 0 {
            return Some(info);
        }
        let size = blocks.len().checked_div(usize::try_from(cpus.min(MOST_CPUS)).ok()?)?;
        for block in blocks.chunks_exact(size.max(3)) {
            let &[magic, cpu, parameters, ref values @ ..] = block else { break };
            if magic != CPU_MAGIC {
                return None;
            }
            let values = values.get(..usize::try_from(parameters).unwrap_or(usize::MAX)).unwrap_or(values);
            let value = |index: usize| values.get(index).copied();
            info.cpus.push(CpuInfo { cpu: cpu as u32, midr: value(0).unwrap_or(0), event_filter: value(3) });
            let pmu = value(1).map_or(0, |pmu| pmu as u32);
            if pmu > 0 && !info.pmu_types.contains(&pmu) {
                info.pmu_types.push(pmu);
            }
        }
        Some(info)
    }

    /// The processor that recorded a queue; `None` for one that follows a thread, which is known only if all are alike.
    pub fn cpu(&self, cpu: Option<u32>, cpu_id: Option<&str>) -> Cpu {
        let alike = |first: &CpuInfo| self.cpus.iter().all(|other| other.midr == first.midr);
        let found = match cpu {
            Some(cpu) => self.cpus.iter().find(|known| known.cpu == cpu),
            None => self.cpus.first().filter(|first| alike(first)),
        };
        match found {
            Some(found) => Cpu::new(Some(found.midr), found.event_filter),
            None if self.cpus.is_empty() => Cpu::new(cpu_id.and_then(leading_hex), None),
            None => Cpu::default(),
        }
    }
}

/// The hex number that `0x00000000410fd0c0,…` begins with.
fn leading_hex(text: &str) -> Option<u64> {
    let digits = text.trim_start().strip_prefix("0x")?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    u64::from_str_radix(digits.get(..end)?, 16).ok()
}

/// How counts of the generic timer become times of the recording's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Clock {
    shift: u64,
    mult: u64,
    zero: u64,
    /// For counters that are narrower than 64 bits: the count at some moment, and which bits of a later one are real.
    short: Option<(u64, u64)>,
}

impl Clock {
    /// The clock of a `TIME_CONV` record; `None` if it says nothing that can be computed with.
    pub fn new(conversion: &TimeConversion) -> Option<Clock> {
        let TimeConversion { shift, multiplier: mult, zero, cycles, mask, is_short, .. } = *conversion;
        (mult > 0 && shift < 64).then_some(Clock { shift, mult, zero, short: is_short.then_some((cycles, mask)) })
    }

    /// The time in nanoseconds.
    pub fn time(&self, count: u64) -> u64 {
        let count = match self.short {
            Some((cycles, mask)) => cycles.wrapping_add(count.wrapping_sub(cycles) & mask),
            None => count,
        };
        let whole = (count >> self.shift).wrapping_mul(self.mult);
        let part = (count & ((1 << self.shift) - 1)).wrapping_mul(self.mult) >> self.shift;
        self.zero.wrapping_add(whole).wrapping_add(part)
    }
}

/// Flags of ranges of an AUX stream.
pub(crate) mod flag {
    /// Data was lost behind it.
    pub const TRUNCATED: u64 = 1;
    /// Its last record is torn.
    pub const PARTIAL: u64 = 4;
    /// Samples fell out because the one before was still under way.
    pub const COLLISION: u64 = 8;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(shift: u64, multiplier: u64, zero: u64) -> TimeConversion {
        TimeConversion { shift, multiplier, zero, ..TimeConversion::default() }
    }

    #[test]
    fn counts_become_times() {
        let time = |conversion: TimeConversion, count| Clock::new(&conversion).expect("a clock").time(count);
        assert_eq!(time(clock(20, 41_943_040, 1000), 5000), 201_000);
        assert_eq!(time(clock(21, 83_886_080, 0), 39_395_093_558), 1_575_803_742_320);
        let (cycles, mask) = (0x00ff_ffff_ffff_fffd, (1 << 56) - 1);
        let short = TimeConversion { cycles, mask, is_short: true, ..clock(20, 41_943_040, 1000) };
        assert_eq!(time(short, 5), 2_882_303_761_517_118_640);
        assert_eq!(Clock::new(&clock(20, 0, 0)), None);
    }

    #[test]
    fn both_versions_of_the_information_are_read() {
        let first = Info::parse(&[8, 1]).expect("whole");
        assert_eq!(first.pmu_types, [8]);
        assert_eq!(first.cpu(Some(2), Some("0x00000000410fd0c0,x")).midr(), Some(0x410f_d0c0));
        assert_eq!(first.cpu(None, None).midr(), None);
        let block = |cpu, midr| [CPU_MAGIC, cpu, 4, midr, 9, 1024, 1 << 23];
        let all = [&[2, 4, 8, 2][..], &block(0, 0x410f_d490), &block(3, 0x410f_d4f0)].concat();
        let second = Info::parse(&all).expect("whole");
        assert_eq!(second.pmu_types, [8, 9]);
        assert_eq!(second.cpu(Some(3), None).midr(), Some(0x410f_d4f0));
        assert_eq!(second.cpu(Some(1), Some("0x410fd0c0")), Cpu::default());
        assert_eq!(second.cpu(None, None), Cpu::default());
        assert_eq!(second.cpu(Some(0), None), Cpu::new(Some(0x410f_d490), Some(1 << 23)));
        assert_eq!(Info::parse(&[8]), None);
        assert_eq!(Info::parse(&[2, 4, 8, 1, 7, 0, 3, 1, 1, 1]), None);
    }
}
