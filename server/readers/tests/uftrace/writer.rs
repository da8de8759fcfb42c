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
