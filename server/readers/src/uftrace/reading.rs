//! All threads of a recording, one after the other within windows of time.

use super::UftraceError;
use super::ahead;
use super::info::Info;
use super::names::Names;
use super::records::{Kind, Records};
use super::report;
use super::spaces::Space;
use super::switches::{Notice, Switches, Window};
use super::tasks::Tasks;
use super::tree::{CallTree, Cells, Measured, NodeId};
use super::walk::{Counts, Stop, Thread, Walk};
use crate::perf_data::bytes::Order;
use crate::{Folder, ReadOptions, TimeFilter};
use heatline_profile::{Monitor, Problems};
use rustc_hash::FxHashMap;
use std::io::{Read, Seek, SeekFrom};

/// Threads that are read at most.
const MOST_THREADS: usize = 1 << 18;

/// From so many bytes on a thread of its own reads the file.
const WORTH_A_THREAD: u64 = 4 << 20;

/// What is read of a thread at once.
struct Slice<'s, 'w> {
    switches: &'s mut &'w [Notice],
    until: u64,
    given_names: &'s [(i32, u64, String)],
    monitor: &'s dyn Monitor,
}

/// A recording while it is read.
pub(super) struct Reading<'a> {
    tasks: &'a Tasks,
    pub spaces: &'a [Space],
    order: Order,
    threads: Vec<Thread>,
    pub tree: CallTree,
    pub measured: Measured,
    pub names: Names,
    pub counts: Counts,
    /// The first and last moment that counts.
    pub extent: Option<(u64, u64)>,
    cells: Cells,
    forks: FxHashMap<i32, Vec<(u64, NodeId)>>,
    range: Option<(u64, u64)>,
    buffer: Vec<u8>,
    done: u64,
    total: u64,
}

impl<'a> Reading<'a> {
    pub fn new(options: &ReadOptions, tasks: &'a Tasks, spaces: &'a [Space], order: Order) -> Self {
        Reading {
            tasks,
            spaces,
            order,
            threads: Vec::new(),
            tree: CallTree::default(),
            measured: Measured::default(),
            names: Names::default(),
            counts: Counts::default(),
            extent: None,
            cells: Cells::default(),
            forks: FxHashMap::default(),
            range: options.time.as_ref().map(TimeFilter::hull),
            buffer: Vec::new(),
            done: 0,
            total: 0,
        }
    }

    /// Finds the files of the threads, and where forked processes go on.
    pub fn open_threads(
        &mut self,
        folder: &dyn Folder,
        names: &[String],
        info: &Info,
        problems: &mut Problems,
    ) -> Result<(), UftraceError> {
        let number = |name: &String| name.strip_suffix(".dat")?.parse::<i32>().ok();
        let mut tids: Vec<i32> = names.iter().filter_map(number).collect();
        tids.sort_unstable();
        let announced = info.tids.iter().chain(self.tasks.tasks.keys());
        let mut missing: Vec<i32> = announced.filter(|tid| tids.binary_search(tid).is_err()).copied().collect();
        missing.sort_unstable();
        missing.dedup();
        report::missing_threads(&missing, problems);
        report::too_many(tids.len(), MOST_THREADS, problems);
        tids.truncate(MOST_THREADS);
        let mut watched = Vec::new();
        for tid in tids {
            let mut thread = Thread::new(tid, self.tasks.parent(tid));
            match self.open(folder, &mut thread, &mut watched) {
                Ok(()) => self.threads.push(thread),
                Err(error) => report::missing(&format!("{tid}.dat"), &error, problems),
            }
        }
        if self.threads.is_empty() {
            return Err(UftraceError::NoRecords);
        }
        watched.sort_unstable();
        watched.dedup();
        self.tree = CallTree::watching(watched);
        // Parents come before their children, which start from the stacks they inherit.
        let tasks = &self.tasks.tasks;
        self.threads.sort_by_key(|thread| (tasks.get(&thread.tid).map_or(0, |task| task.start), thread.tid));
        Ok(())
    }

    fn open(&mut self, folder: &dyn Folder, thread: &mut Thread, watched: &mut Vec<u64>) -> std::io::Result<()> {
        let mut file = folder.open(&member(thread.tid))?;
        self.total = self.total.saturating_add(file.seek(SeekFrom::End(0))?);
        if thread.parent.is_some() {
            let buffer = std::mem::take(&mut self.buffer);
            file.rewind()?;
            let mut records = Records::new(Box::new(file), self.order, 0, buffer);
            let first = records.peek()?.filter(|record| record.is_marked() && record.kind() == Kind::Exit);
            watched.extend(first.map(|record| record.address()));
            self.buffer = records.into_buffer();
        }
        Ok(())
    }

    /// Reads everything.
    pub fn read(
        &mut self,
        folder: &dyn Folder,
        switches: &mut Switches<'_>,
        monitor: &dyn Monitor,
    ) -> Result<(), UftraceError> {
        let mut threads = std::mem::take(&mut self.threads);
        let mut first = true;
        loop {
            let window = switches.window();
            let last = window.until.is_none();
            for thread in &mut threads {
                self.read_thread(folder, thread, &window, &switches.names, monitor)?;
                if last {
                    self.walk().finish(thread);
                }
                self.measured.add(thread.number, &mut self.cells, !first);
            }
            first = false;
            if last {
                return Ok(());
            }
        }
    }

    fn walk(&mut self) -> Walk<'_> {
        Walk {
            tree: &mut self.tree,
            cells: &mut self.cells,
            counts: &mut self.counts,
            forks: &mut self.forks,
            range: self.range,
            extent: &mut self.extent,
        }
    }

    fn read_thread(
        &mut self,
        folder: &dyn Folder,
        thread: &mut Thread,
        window: &Window,
        given_names: &[(i32, u64, String)],
        monitor: &dyn Monitor,
    ) -> Result<(), UftraceError> {
        let mut switches = window.of(thread.tid);
        let until = window.until.unwrap_or(u64::MAX);
        if !thread.finished {
            let mut file = folder.open(&member(thread.tid))?;
            let left = file.seek(SeekFrom::End(0))?.saturating_sub(thread.position);
            file.seek(SeekFrom::Start(thread.position))?;
            let slice = Slice { switches: &mut switches, until, given_names, monitor };
            if left < WORTH_A_THREAD {
                self.read_records(Box::new(file), thread, slice)?;
            } else {
                std::thread::scope(|scope| {
                    let (feeder, blocks) = ahead::queue();
                    let reading = scope.spawn(|| self.read_records(Box::new(blocks), thread, slice));
                    feeder.feed(&mut *file);
                    reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })?;
            }
        }
        self.walk().switch_until(thread, &mut switches, until);
        Ok(())
    }

    fn read_records(
        &mut self,
        input: Box<dyn Read + '_>,
        thread: &mut Thread,
        slice: Slice<'_, '_>,
    ) -> Result<(), UftraceError> {
        let mut records = Records::new(input, self.order, thread.position, std::mem::take(&mut self.buffer));
        let pid = self.tasks.pid(thread.tid);
        loop {
            let before = records.position();
            let space = thread.session.and_then(|session| self.spaces.get(session)).or(self.only_space());
            let stop = self.walk().run(thread, &mut records, slice.switches, slice.until, pid, space)?;
            self.done = self.done.saturating_add(records.position().saturating_sub(before));
            slice.monitor.progress(self.done.min(self.total), self.total)?;
            match stop {
                Stop::Pause => {}
                Stop::Session(time) => self.enter_session(thread, time, slice.given_names),
                Stop::Window => break,
                Stop::End => {
                    thread.finished = true;
                    break;
                }
            }
        }
        thread.position = records.position();
        self.buffer = records.into_buffer();
        Ok(())
    }

    /// What was mapped, where nothing says which session a thread belongs to.
    fn only_space(&self) -> Option<&'a Space> {
        self.spaces.first().filter(|_| self.spaces.len() == 1)
    }

    fn enter_session(&mut self, thread: &mut Thread, time: u64, given_names: &[(i32, u64, String)]) {
        let (session, ends) = self.tasks.session_at(thread.tid, time);
        self.walk().enter_session(thread, session, ends);
        if !self.cells.is_empty() {
            self.measured.add(thread.number, &mut self.cells, true);
        }
        thread.number = self.names.number(thread.tid, session, self.tasks, given_names);
    }
}

fn member(tid: i32) -> String {
    format!("{tid}.dat")
}
