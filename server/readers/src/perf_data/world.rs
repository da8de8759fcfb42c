//! What addresses and threads mean at one moment: processes with their mappings, tasks with their names, the kernel.

use super::mappings::{Mapping, Mappings};
use super::modules::Modules;
use super::state::{Change, Mode, NewMapping};
use heatline_profile::{CodeAddress, ModuleAddress, ModuleId, Thread, ThreadId};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::sync::Arc;

/// From here on an "address" in a chain is a marker that says what mode the following ones are of.
pub(crate) const FIRST_MARKER: u64 = -4095i64 as u64;

/// The markers.
pub(crate) mod marker {
    pub const HYPERVISOR: u64 = -32i64 as u64;
    pub const KERNEL: u64 = -128i64 as u64;
    pub const USER: u64 = -512i64 as u64;
    /// The user part comes later, in a record with the cookie that follows.
    pub const USER_DEFERRED: u64 = -640i64 as u64;
    /// Ours, where the kernel has none: the addresses that follow are those of calls, not behind them.
    pub const CALLS: u64 = -4000i64 as u64;
    pub const GUEST: u64 = -2048i64 as u64;
    pub const GUEST_KERNEL: u64 = -2176i64 as u64;
    pub const GUEST_USER: u64 = -2560i64 as u64;
}

/// Entries of mapping tables that forks may copy in all, so that a damaged file cannot multiply them without end.
const MOST_COPIED_MAPPINGS: usize = 1 << 20;

/// A frame as recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawFrame {
    pub mode: Mode,
    /// Whether the address is that of an instruction, not one to return to.
    pub exact: bool,
    pub address: u64,
}

/// The state that records change.
#[derive(Default)]
pub(crate) struct World {
    pub modules: Modules,
    pub threads: Vec<Thread>,
    /// Markers in chains that mean nothing to us.
    pub unknown_markers: u64,
    /// Whether the kernel hid its addresses from the recorder, so that it could not say where the kernel lies.
    pub kernel_hidden: bool,
    /// Processes whose inherited mappings were dropped because of [`MOST_COPIED_MAPPINGS`].
    pub dropped_mappings: u64,
    thread_ids: HashMap<Thread, ThreadId>,
    tasks: Vec<Task>,
    task_ids: FxHashMap<(i32, i32), u32>,
    /// The process that a thread was last seen in.
    pids: FxHashMap<i32, i32>,
    /// The thread on each processor.
    running: FxHashMap<u32, i32>,
    processes: Vec<Process>,
    process_ids: FxHashMap<i32, u32>,
    kernel: Mappings,
    kernel_text: Option<Mapping>,
    guest_kernel: Mappings,
    copied_mappings: usize,
    /// Counts changes; 0 is before the first.
    now: u32,
    last_change: u32,
    kernel_changed: u32,
}

struct Process {
    mappings: Arc<Mappings>,
    /// When something last changed that could give one of its chains another meaning.
    changed: u32,
    /// Whether an address of it was looked up in vain, so that a new mapping matters even where there was none.
    missed: bool,
    /// When its mappings last changed at all.
    version: u32,
}

struct Task {
    process: u32,
    tid: i32,
    pid: i32,
    comm: Arc<str>,
    thread: Option<ThreadId>,
}

impl World {
    pub fn new() -> World {
        World { now: 1, last_change: 1, ..World::default() }
    }

    /// The moment, to be compared by [`World::is_current`].
    pub fn now(&self) -> u32 {
        self.now
    }

    /// The last moment at which anything changed that could matter to anybody; never 0.
    #[inline]
    pub fn last_change(&self) -> u32 {
        self.last_change
    }

    /// Whether what was looked up for a task at `seen` is still right.
    pub fn is_current(&self, seen: u32, task: u32) -> bool {
        let process = self.tasks.get(task as usize).and_then(|task| self.processes.get(task.process as usize));
        process.is_some_and(|process| process.changed <= seen) && self.kernel_changed <= seen
    }

    pub fn apply(&mut self, change: Change) {
        self.now = self.now.saturating_add(1);
        match change {
            Change::Map(mapping) => self.map(*mapping),
            // A new program's mappings follow and replace those in their way. The others stay, as for perf: the new name
            // comes before the kernel has left the old program, and user frames from there are of the old one.
            Change::Comm { pid, tid, comm } => self.rename(pid, tid, &comm),
            Change::Fork { pid, tid, parent_pid, parent_tid, with_mappings } => {
                self.fork((pid, tid), (parent_pid, parent_tid), with_mappings);
            }
            // Samples of an ended task may still come; what it was is forgotten when its number is used again.
            Change::Exit { .. } | Change::Thread { .. } => {}
            Change::Switch { cpu, tid } => {
                self.running.insert(cpu, tid);
            }
            Change::KernelSymbol { start, length, name, gone } => self.kernel_symbol(start, length, name, gone),
        }
    }

    /// The number of a task, which is made up if no record told of it.
    pub fn task(&mut self, pid: i32, tid: i32) -> u32 {
        if let Some(&task) = self.task_ids.get(&(pid, tid)) {
            return task;
        }
        let process = self.process(pid);
        let number = self.tasks.len() as u32;
        let comm = Arc::from(if tid == 0 { "swapper" } else { "" });
        self.tasks.push(Task { process, tid, pid, comm, thread: None });
        self.pids.insert(tid, pid);
        self.task_ids.insert((pid, tid), number);
        number
    }

    /// The process that a thread was last seen in; its own number where that is unknown.
    pub fn pid_of(&self, tid: i32) -> i32 {
        self.pids.get(&tid).copied().unwrap_or(tid)
    }

    /// The thread that was last switched to on a processor.
    #[allow(dead_code)] // For decoders of trace data.
    pub fn running_on(&self, cpu: u32) -> Option<i32> {
        self.running.get(&cpu).copied()
    }

    /// Forgets everything but the modules and the threads.
    pub fn forget(&mut self) {
        let old = std::mem::replace(self, World::new());
        self.modules = old.modules;
        self.threads = old.threads;
        self.thread_ids = old.thread_ids;
        self.unknown_markers = old.unknown_markers;
        self.dropped_mappings = old.dropped_mappings;
    }

    /// The thread, under its present name, that a task is.
    pub fn thread(&mut self, task: u32) -> Option<ThreadId> {
        let task = self.tasks.get_mut(task as usize)?;
        if task.thread.is_none() {
            let thread = Thread { pid: task.pid, tid: task.tid, comm: task.comm.to_string() };
            let id = *self.thread_ids.entry(thread).or_insert_with_key(|thread| {
                self.threads.push(thread.clone());
                ThreadId(self.threads.len() as u32 - 1)
            });
            task.thread = Some(id);
        }
        task.thread
    }

    /// The frames of a recorded chain, innermost first, not looked up yet.
    ///
    /// The sampled address comes first; a chain normally begins with it. Where it does not (the chain was taken
    /// elsewhere than the sample, or leaves out the kernel), perf counts both, and so do we.
    pub fn frames(&mut self, mode: Mode, ip: Option<u64>, words: &[u64], out: &mut Vec<RawFrame>) {
        out.clear();
        let first = words.iter().find(|&&word| word < FIRST_MARKER);
        if let Some(address) = ip.filter(|ip| first != Some(ip)) {
            out.push(RawFrame { mode, exact: true, address });
        }
        let mut mode = Mode::User;
        // The innermost address is where execution was interrupted. All others are returned to: also the first of user
        // code below kernel frames, which lies behind its system call. (Below the handler of an exception it is exact,
        // but a chain does not tell the two apart, and system calls are the common case.)
        let mut exact = true;
        let mut calls = false;
        for &address in words {
            if address == marker::CALLS {
                (exact, calls) = (true, true);
                continue;
            }
            if address >= FIRST_MARKER {
                mode = self.mode_of_marker(address).unwrap_or(mode);
                continue;
            }
            out.push(RawFrame { mode, exact, address });
            exact = calls;
        }
    }

    /// What the meaning of a task's frames depends on, apart from the frames: equal as long as it does not change.
    pub fn context(&self, task: u32) -> [u32; 3] {
        let process = self.tasks.get(task as usize).map_or(0, |task| task.process);
        let changed = self.processes.get(process as usize).map_or(0, |process| process.changed);
        [process, changed, self.kernel_changed]
    }

    /// The mappings of a task's process.
    pub fn mappings(&self, task: u32) -> impl Iterator<Item = &Mapping> {
        self.process_of(task).into_iter().flat_map(|process| process.mappings.iter())
    }

    /// The number of a task's process, and what changes whenever its mappings do.
    pub fn mappings_version(&self, task: u32) -> (u32, u32) {
        let number = self.tasks.get(task as usize).map_or(0, |task| task.process);
        (number, self.process_of(task).map_or(0, |process| process.version))
    }

    fn process_of(&self, task: u32) -> Option<&Process> {
        self.processes.get(self.tasks.get(task as usize)?.process as usize)
    }

    /// Looks a frame of a task up in the present mappings.
    pub fn resolve(&mut self, task: u32, frame: RawFrame) -> (ModuleId, CodeAddress) {
        let process = self.tasks.get(task as usize).map_or(0, |task| task.process);
        let (module, address) = self.locate(process, frame.mode, frame.address);
        (module, if frame.exact { CodeAddress::Ip(address) } else { CodeAddress::ReturnAddress(address) })
    }

    fn process_change(&mut self, process: u32) {
        self.last_change = self.now;
        if let Some(process) = self.processes.get_mut(process as usize) {
            process.changed = self.now;
        }
    }

    fn kernel_change(&mut self) {
        self.last_change = self.now;
        self.kernel_changed = self.now;
    }

    fn mode_of_marker(&mut self, word: u64) -> Option<Mode> {
        match word {
            marker::HYPERVISOR => Some(Mode::Hypervisor),
            marker::KERNEL => Some(Mode::Kernel),
            marker::USER => Some(Mode::User),
            marker::GUEST | marker::GUEST_KERNEL => Some(Mode::GuestKernel),
            marker::GUEST_USER => Some(Mode::GuestUser),
            _ => {
                self.unknown_markers += 1;
                None
            }
        }
    }

    fn locate(&mut self, process: u32, mode: Mode, address: u64) -> (ModuleId, ModuleAddress) {
        let as_it_is = |module| (module, ModuleAddress(address));
        match mode {
            Mode::User => self.resolve_user(process, address),
            Mode::Unknown if address >> 63 == 0 => self.resolve_user(process, address),
            Mode::Kernel | Mode::Unknown => as_it_is(self.resolve_kernel(address)),
            Mode::Hypervisor => as_it_is(self.modules.hypervisor()),
            Mode::GuestKernel => {
                let mapping = self.guest_kernel.find(address).map(|mapping| mapping.module);
                as_it_is(mapping.unwrap_or_else(|| self.modules.guest("[guest.kernel.kallsyms]")))
            }
            Mode::GuestUser => as_it_is(self.modules.guest("[guest]")),
        }
    }

    fn resolve_user(&mut self, process: u32, address: u64) -> (ModuleId, ModuleAddress) {
        let process = self.processes.get_mut(process as usize);
        if let Some(mapping) = process.as_ref().and_then(|process| process.mappings.find(address)) {
            return (mapping.module, mapping.address(address));
        }
        if let Some(process) = process {
            process.missed = true;
        }
        (self.modules.unmapped(), ModuleAddress(address))
    }

    fn resolve_kernel(&mut self, address: u64) -> ModuleId {
        let text = self.kernel_text.filter(|text| text.contains(address));
        match self.kernel.find(address).or(text) {
            Some(mapping) => mapping.module,
            // Where addresses were hidden from the recorder, it could not tell where the kernel lies.
            None if self.kernel_text.is_none_or(|text| text.start == 0) => self.modules.kernel("[kernel.kallsyms]"),
            None => self.modules.unmapped(),
        }
    }

    fn process(&mut self, pid: i32) -> u32 {
        let next = self.processes.len() as u32;
        let number = *self.process_ids.entry(pid).or_insert(next);
        if number == next {
            self.processes.push(Process {
                mappings: Arc::default(),
                changed: self.now,
                missed: false,
                version: self.now,
            });
        }
        number
    }

    fn map(&mut self, new: NewMapping) {
        let Some(end) = new.start.checked_add(new.length).filter(|&end| end > new.start) else { return };
        match new.mode {
            Mode::Kernel => self.map_kernel(&new, end),
            Mode::GuestKernel | Mode::GuestUser => {
                let module = self.modules.guest(kernel_name(&new.path));
                self.guest_kernel.insert(Mapping { start: new.start, end, file_offset: None, module });
                self.kernel_change();
            }
            Mode::User | Mode::Hypervisor | Mode::Unknown => self.map_user(&new, end),
        }
    }

    fn map_kernel(&mut self, new: &NewMapping, end: u64) {
        self.kernel_change();
        let name = kernel_name(&new.path);
        if name.starts_with("[kernel.kallsyms") || name.starts_with("[kernel.vmlinux") {
            let module = self.modules.kernel(name);
            self.kernel_hidden |= new.start == 0;
            self.kernel_text = Some(Mapping { start: new.start, end, file_offset: None, module });
        } else {
            let module = self.modules.kernel_module(name);
            self.kernel.insert(Mapping { start: new.start, end, file_offset: None, module });
        }
    }

    fn kernel_symbol(&mut self, start: u64, length: u64, name: String, gone: bool) {
        let Some(end) = start.checked_add(length).filter(|&end| end > start) else { return };
        self.kernel_change();
        if gone {
            self.kernel.remove(start, end);
        } else {
            let module = self.modules.kernel_module(&name);
            self.kernel.insert(Mapping { start, end, file_offset: None, module });
        }
    }

    fn map_user(&mut self, new: &NewMapping, end: u64) {
        let number = self.process(new.pid);
        let (module, in_file) = self.modules.user(&new.path, &new.file);
        let file_offset = in_file.then_some(new.file_offset);
        let mapping = Mapping { start: new.start, end, file_offset, module };
        let Some(mappings) = self.own_mappings(number) else { return };
        if mappings.holds(&mapping) {
            return;
        }
        let replaced = mappings.insert(mapping);
        if let Some(process) = self.processes.get_mut(number as usize) {
            process.version = self.now;
        }
        if let Some(process) = self.processes.get_mut(number as usize)
            && (replaced || process.missed)
        {
            process.missed = false;
            self.process_change(number);
        }
    }

    /// The mappings of a process for change, copied first if another process still has them too.
    fn own_mappings(&mut self, process: u32) -> Option<&mut Mappings> {
        let process = self.processes.get_mut(process as usize)?;
        if Arc::get_mut(&mut process.mappings).is_none() {
            self.copied_mappings = self.copied_mappings.saturating_add(process.mappings.len());
            if self.copied_mappings > MOST_COPIED_MAPPINGS {
                self.dropped_mappings += 1;
                process.mappings = Arc::default();
            }
        }
        Some(Arc::make_mut(&mut process.mappings))
    }

    fn rename(&mut self, pid: i32, tid: i32, comm: &str) {
        let number = self.task(pid, tid);
        let Some(task) = self.tasks.get_mut(number as usize) else { return };
        if *task.comm != *comm {
            task.comm = Arc::from(comm);
            task.thread = None;
            let process = task.process;
            self.process_change(process);
        }
    }

    fn fork(&mut self, child: (i32, i32), parent: (i32, i32), with_mappings: bool) {
        let parent_task = self.task(parent.0, parent.1);
        let comm = self.tasks.get(parent_task as usize).map(|task| task.comm.clone());
        let child_task = self.task(child.0, child.1);
        if let (Some(task), Some(comm)) = (self.tasks.get_mut(child_task as usize), comm)
            && task.comm != comm
        {
            task.comm = comm;
            task.thread = None;
            let process = task.process;
            self.process_change(process);
        }
        if child.0 != parent.0 {
            self.inherit_mappings(child.0, parent.0, with_mappings);
        }
    }

    fn inherit_mappings(&mut self, child: i32, parent: i32, with_mappings: bool) {
        let (child, parent) = (self.process(child), self.process(parent));
        let inherited = self.processes.get(parent as usize).filter(|_| with_mappings);
        let mappings = inherited.map(|process| process.mappings.clone()).unwrap_or_default();
        if let Some(process) = self.processes.get_mut(child as usize) {
            *process = Process { mappings, changed: self.now, missed: false, version: self.now };
            self.last_change = self.now;
        }
    }
}

/// perf appends the name of a reference symbol to the kernel's: `[kernel.kallsyms]_text`.
fn kernel_name(path: &str) -> &str {
    match path.find(']') {
        Some(end) if path.starts_with('[') => &path[..=end],
        _ => path,
    }
}
