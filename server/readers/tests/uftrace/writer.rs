//! Data directories in memory, written by hand.

use heatline_readers::{Folder, ReadSeek};
use std::collections::BTreeMap;
use std::io::{self, Cursor};

/// Where the program is mapped.
pub const BASE: u64 = 0x5500_0000_0000;

/// A directory: contents by name.
#[derive(Clone, Debug, Default)]
pub struct Members(pub BTreeMap<String, Vec<u8>>);

impl Folder for Members {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn ReadSeek + '_>> {
        let bytes = self.0.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Cursor::new(bytes.as_slice())))
    }
}

/// A recording with scheduling, of one program `/bin/app` with process 10.
pub fn recording(threads: &[(i32, Records)]) -> Members {
    let mut members = Members::default();
    let mut tasks = String::from("SESS timestamp=0.000000001 pid=10 sid=aa exename=\"/bin/app\"\n");
    for (tid, records) in threads {
        tasks += &format!("TASK timestamp=0.000000002 tid={tid} pid=10\n");
        members.0.insert(format!("{tid}.dat"), records.bytes.clone());
    }
    members.0.insert("task.txt".into(), tasks.into_bytes());
    members.0.insert("sid-aa.map".into(), map("/bin/app", BASE));
    let tids: Vec<String> = threads.iter().map(|(tid, _)| tid.to_string()).collect();
    members.0.insert("info".into(), info(&tids.join(",")));
    members.0.insert("perf-cpu0.dat".into(), Vec::new());
    members
}

pub fn map(path: &str, base: u64) -> Vec<u8> {
    let end = base + 0x10_0000;
    format!("{base:x}-{end:x} r-xp 00000000 00:00 0                          {path} build-id:00ff\n").into_bytes()
}

/// Version 4, little endian, 64 bits, with tasks, relative symbols and perf events.
fn info(tids: &str) -> Vec<u8> {
    let mut bytes = b"Ftrace!\0".to_vec();
    bytes.extend(4u32.to_le_bytes());
    bytes.extend(40u16.to_le_bytes());
    bytes.extend([1, 2]);
    bytes.extend(0x162u64.to_le_bytes());
    bytes.extend(0u64.to_le_bytes());
    bytes.extend(1024u16.to_le_bytes());
    bytes.resize(40, 0);
    let text = format!(
        "exename:/bin/app\ncmdline:uftrace record app\nosinfo:kernel=Linux 6.1.0\ntaskinfo:tids={tids}\nuftrace_version:v0.13 ( x86_64 )\n"
    );
    bytes.extend(text.into_bytes());
    bytes
}

/// Records of one thread.
#[derive(Clone, Debug, Default)]
pub struct Records {
    pub bytes: Vec<u8>,
    depth: u64,
}

impl Records {
    pub fn new() -> Self {
        Records::default()
    }

    /// A thread whose outermost recorded function is not the outermost.
    pub fn at_depth(depth: u64) -> Self {
        Records { depth, ..Records::default() }
    }

    pub fn raw(mut self, time: u64, kind: u64, more: u64, depth: u64, address: u64) -> Self {
        self.bytes.extend(time.to_le_bytes());
        self.bytes.extend((kind | more << 2 | 5 << 3 | depth << 6 | address << 16).to_le_bytes());
        self
    }

    /// A function is entered.
    pub fn enter(self, time: u64, function: u64) -> Self {
        let depth = self.depth;
        let mut records = self.raw(time, 0, 0, depth, BASE + function);
        records.depth += 1;
        records
    }

    /// It returns.
    pub fn leave(self, time: u64, function: u64) -> Self {
        let depth = self.depth - 1;
        let mut records = self.raw(time, 1, 0, depth, BASE + function);
        records.depth -= 1;
        records
    }

    /// The next record is at this depth.
    pub fn jump(mut self, depth: u64) -> Self {
        self.depth = depth;
        self
    }

    /// Makes the last record one with more behind it, which is this.
    pub fn with(mut self, payload: &[u8]) -> Self {
        let at = self.bytes.len() - 8;
        self.bytes[at] |= 4;
        self.bytes.extend(payload);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self
    }

    pub fn lost(self, count: u64) -> Self {
        self.raw(0, 2, 0, 0, count)
    }
}

/// Switches of threads on one processor: time, thread, whether it leaves.
pub fn switches(all: &[(u64, i32, bool)]) -> Vec<u8> {
    let record = |&(time, tid, out): &(u64, i32, bool)| {
        let mut bytes = 14u32.to_le_bytes().to_vec();
        bytes.extend(if out { 1u16 << 13 } else { 0 }.to_le_bytes());
        bytes.extend(24u16.to_le_bytes());
        bytes.extend(10i32.to_le_bytes());
        bytes.extend(tid.to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes
    };
    all.iter().flat_map(record).collect()
}

/// Moments of functions of the kernel on one processor: time, thread, whether it is entered, function, depth.
pub type KernelMoment = (u64, i32, bool, u64, i32);

/// Bytes of a page of the kernel's trace buffers.
const PAGE: usize = 4096;

/// What `kernel_header` says of pages as [`kernel_pages`] makes them.
pub fn kernel_header() -> Vec<u8> {
    let fields = |all: &[(&str, usize, usize)]| -> String {
        let line = |(name, at, size): &(&str, usize, usize)| {
            format!("\tfield:{name};\toffset:{at};\tsize:{size};\tsigned:0;\n")
        };
        all.iter().map(line).collect()
    };
    let common = [
        ("unsigned short common_type", 0, 2),
        ("unsigned char common_flags", 2, 1),
        ("unsigned char common_preempt_count", 3, 1),
        ("int common_pid", 4, 4),
    ];
    let event = |name: &str, id: u64, own: &[(&str, usize, usize)]| {
        format!("name: {name}\nID: {id}\nformat:\n{}\n{}\nprint fmt: \"\"\n", fields(&common), fields(own))
    };
    let page =
        fields(&[("u64 timestamp", 0, 8), ("local_t commit", 8, 8), ("int overwrite", 8, 1), ("char data", 16, 4080)]);
    let entry = event("funcgraph_entry", 11, &[("unsigned long func", 8, 8), ("int depth", 16, 4)]);
    let exit = event(
        "funcgraph_exit",
        10,
        &[("unsigned long func", 8, 8), ("unsigned long long calltime", 16, 8), ("int depth", 32, 4)],
    );
    let other = event("sched_wakeup", 300, &[("pid_t pid", 8, 4)]);
    let mut header = String::from("PAGE_SIZE: 4096\nLONG_SIZE: 8\nENDIAN: LE\n");
    for (name, text) in [
        ("events/header_page", &page),
        ("events/ftrace/funcgraph_entry/format", &entry),
        ("events/ftrace/funcgraph_exit/format", &exit),
        ("events/sched/sched_wakeup/format", &other),
    ] {
        header += &format!("TRACEFS: {name}: {}\n{text}", text.len());
    }
    header.into_bytes()
}

fn kernel_record(&(_, tid, enters, function, depth): &KernelMoment) -> Vec<u8> {
    let mut record = if enters { 11u32 } else { 10 }.to_le_bytes().to_vec();
    record.extend(tid.to_le_bytes());
    record.extend(function.to_le_bytes());
    record.resize(if enters { 16 } else { 32 }, 0);
    record.extend(depth.to_le_bytes());
    record
}

/// An event as the kernel's buffers hold it, so much later than the one before.
pub fn kernel_event(since: u64, record: &[u8]) -> Vec<u8> {
    let mut event = Vec::new();
    if since >> 27 > 0 {
        event.extend((30 | (since as u32 & 0x7ff_ffff) << 5).to_le_bytes());
        event.extend(((since >> 27) as u32).to_le_bytes());
    }
    let since = if since >> 27 > 0 { 0 } else { since as u32 };
    event.extend(((record.len() as u32 / 4) | (since << 5)).to_le_bytes());
    event.extend(record);
    event
}

/// Pages of events: the whole time of the first, the words that each page has beside its length, the events.
pub fn kernel_page(time: u64, flags: u64, events: &[u8]) -> Vec<u8> {
    let mut page = time.to_le_bytes().to_vec();
    page.extend((events.len() as u64 | flags).to_le_bytes());
    page.extend(events);
    page.resize(PAGE, 0);
    page
}

/// The pages of one processor.
pub fn kernel_pages(moments: &[KernelMoment]) -> Vec<u8> {
    let (mut pages, mut events) = (Vec::new(), Vec::new());
    let (mut start, mut last) = (0, 0);
    for moment in moments {
        let record = kernel_record(moment);
        if events.is_empty() || events.len() + record.len() + 12 > PAGE - 16 {
            if !events.is_empty() {
                pages.extend(kernel_page(start, 0, &events));
            }
            events.clear();
            (start, last) = (moment.0, moment.0);
        }
        events.extend(kernel_event(moment.0 - last, &record));
        last = moment.0;
    }
    pages.extend(kernel_page(start, 0, &events));
    pages
}
