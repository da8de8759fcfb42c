//! Who ran and what its addresses meant, at any time of a recording.
//!
//! SPE data comes in few large buffers, long after the records around it. So changes of the world are kept, and the
//! records of SPE are added up per *epoch*: the time between two changes that could give an address of the process
//! another meaning. Each epoch is looked up once, in the world as it was at its end.

use crate::perf_data::state::{Change, Mode};
use crate::perf_data::trace::Timeline;
use crate::perf_data::world::World;
use heatline_profile::{CodeAddress, ModuleId, ThreadId};
use rustc_hash::FxHashMap;

/// An epoch of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Epoch {
    /// So many changes come before its end.
    end: u32,
    pid: i32,
    tid: i32,
}

/// Changes of the world in the order of their times.
#[derive(Default)]
pub(crate) struct History {
    times: Vec<u64>,
    /// Who came to run on each processor, and when.
    switches: FxHashMap<u32, Vec<(u64, i32)>>,
    /// Processes of each thread's number, since when.
    pids: FxHashMap<i32, Vec<(u64, i32)>>,
    /// Where the epochs of each process end: numbers of changes.
    breaks: FxHashMap<i32, Vec<u32>>,
    kernel_breaks: Vec<u32>,
}

impl History {
    /// The history of changes in the order of their times.
    pub fn new(changes: &[(u64, Change)]) -> History {
        let mut history = History::default();
        let mut world = World::new();
        let mut now = 0;
        for (number, (time, change)) in (0..).zip(changes) {
            // What has no time of its own holds from when it stands in the file.
            now = now.max(*time);
            history.times.push(now);
            history.note(&mut world, number, now, change);
        }
        history
    }

    fn note(&mut self, world: &mut World, number: u32, time: u64, change: &Change) {
        let before = world.last_change();
        world.apply(change.clone());
        let matters = world.last_change() != before;
        match change {
            Change::Comm { pid, tid, .. } | Change::Fork { pid, tid, .. } => {
                let pids = self.pids.entry(*tid).or_default();
                if pids.last().is_none_or(|last| last.1 != *pid) {
                    pids.push((time, *pid));
                }
                if matters {
                    self.breaks.entry(*pid).or_default().push(number);
                }
            }
            Change::Map(mapping) => match mapping.mode {
                Mode::Kernel | Mode::GuestKernel | Mode::GuestUser => self.kernel_breaks.push(number),
                _ => {
                    let breaks = self.breaks.entry(mapping.pid).or_default();
                    if matters {
                        breaks.push(number);
                    }
                }
            },
            Change::KernelSymbol { .. } => self.kernel_breaks.push(number),
            Change::Switch { cpu, tid } => self.switches.entry(*cpu).or_default().push((time, *tid)),
            Change::Thread { .. } => {}
            Change::Exit { .. } => {}
        }
    }

    /// The process of a thread at a time; −1 if none is known.
    fn pid(&self, tid: i32, time: u64) -> i32 {
        if tid == 0 {
            return 0;
        }
        match self.pids.get(&tid).map(Vec::as_slice) {
            Some(pids @ [first, ..]) => {
                let after = pids.partition_point(|&(since, _)| since <= time);
                after.checked_sub(1).and_then(|at| pids.get(at)).unwrap_or(first).1
            }
            // A main thread that never got a name has the number of its process.
            _ if self.breaks.contains_key(&tid) => tid,
            _ => -1,
        }
    }

    /// Who ran on a processor at a time.
    pub fn running(&self, cpu: u32, time: u64) -> Option<i32> {
        match self.switches.get(&cpu)?.as_slice() {
            // Who it was when the trace began, and ever after.
            [(_, only)] => Some(*only),
            switches => {
                let after = switches.partition_point(|&(since, _)| since <= time);
                Some(switches.get(after.checked_sub(1)?)?.1)
            }
        }
    }

    /// The epoch of a thread at a time, and from when to before when no other answer would be given.
    pub fn epoch(&self, tid: i32, time: u64) -> (Epoch, u64, u64) {
        let pid = self.pid(tid, time);
        let (mut from, mut until, mut end) = (0, u64::MAX, self.times.len() as u32);
        let own = self.breaks.get(&pid).map_or(&[][..], Vec::as_slice);
        for breaks in [own, self.kernel_breaks.as_slice()] {
            let after = breaks.partition_point(|&number| self.time_of(number) <= time);
            if let Some(&number) = after.checked_sub(1).and_then(|at| breaks.get(at)) {
                from = from.max(self.time_of(number));
            }
            if let Some(&number) = breaks.get(after) {
                until = until.min(self.time_of(number));
                end = end.min(number);
            }
        }
        let pids = self.pids.get(&tid).map_or(&[][..], Vec::as_slice);
        let after = pids.partition_point(|&(since, _)| since <= time);
        if let Some(&(since, _)) = after.checked_sub(1).and_then(|at| pids.get(at)) {
            from = from.max(since);
        }
        if let Some(&(since, _)) = pids.get(after) {
            until = until.min(since);
        }
        (Epoch { end, pid, tid }, from, until)
    }

    fn time_of(&self, change: u32) -> u64 {
        self.times.get(change as usize).copied().unwrap_or(u64::MAX)
    }
}

/// Looks addresses up in the world as it was at the end of their epochs: `sorted`, which come by [`Epoch::order`].
pub(crate) fn look_up<T>(
    timeline: &mut Timeline,
    sorted: impl Iterator<Item = (Epoch, u64, u8, T)>,
    mut found: impl FnMut(Option<ThreadId>, ModuleId, CodeAddress, T),
) {
    timeline.rewind();
    for (epoch, address, level, item) in sorted {
        timeline.apply_first(epoch.end as usize);
        let context = timeline.context_in(epoch.pid, epoch.tid);
        let mode = match level {
            0 => Mode::User,
            1 | 2 if address >> 56 == 0xff => Mode::Kernel,
            _ => Mode::Hypervisor,
        };
        let (module, address) = timeline.locate(context, mode, address);
        found(timeline.thread(context), module, address, item);
    }
}

impl Epoch {
    /// Epochs in this order need the world to go forward only.
    pub fn order(&self) -> (u32, i32, i32) {
        (self.end, self.pid, self.tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_data::state::{FileIdentity, NewMapping};

    fn map(pid: i32, start: u64, path: &str) -> Change {
        Change::Map(Box::new(NewMapping {
            mode: Mode::User,
            pid,
            start,
            length: 0x1000,
            file_offset: 0,
            path: path.into(),
            file: FileIdentity::None,
        }))
    }

    fn comm(pid: i32, tid: i32, comm: &str) -> Change {
        Change::Comm { pid, tid, comm: comm.into() }
    }

    #[test]
    fn an_epoch_ends_where_an_address_gets_another_meaning() {
        let all = [
            (10, comm(7, 7, "a")),
            (11, map(7, 0x1000, "/a")),
            (20, map(7, 0x9000, "/b")),
            (30, map(7, 0x1000, "/c")),
            (40, comm(7, 8, "t")),
        ];
        let history = History::new(&all);
        let (first, from, until) = history.epoch(7, 15);
        assert_eq!((from, until), (10, 30));
        assert_eq!(history.epoch(7, 25).0, first);
        assert_ne!(history.epoch(7, 30).0, first);
        assert_eq!(history.epoch(8, 15).0.pid, 7);
        assert_eq!(history.epoch(99, 15).0.pid, -1);
        assert_eq!(history.epoch(0, 15).0.pid, 0);
        let later = history.epoch(7, 35).0;
        let asked = [(first, 0x1010, 0, 'x'), (first, 0x9010, 0, 'y'), (later, 0x1010, 0, 'z')];
        let mut timeline = Timeline::new(World::new(), all.to_vec());
        let mut found = Vec::new();
        look_up(&mut timeline, asked.into_iter(), |_, module, address, item| found.push((module, address, item)));
        let path = |module: ModuleId| timeline.modules()[module.0 as usize].path.as_str();
        let paths: Vec<_> = found.iter().map(|f| (path(f.0), f.1.recorded().0, f.2)).collect();
        assert_eq!(paths, [("/a", 0x10, 'x'), ("/b", 0x10, 'y'), ("/c", 0x10, 'z')]);
    }

    #[test]
    fn switches_tell_who_ran() {
        let switch = |cpu, tid| Change::Switch { cpu, tid };
        let history = History::new(&[(50, switch(2, 7)), (60, switch(3, 9)), (100, switch(2, 8))]);
        assert_eq!(history.running(2, 49), None);
        assert_eq!(history.running(2, 99), Some(7));
        assert_eq!(history.running(2, 100), Some(8));
        assert_eq!(history.running(3, 0), Some(9));
        assert_eq!(history.running(1, 100), None);
    }
}
