//! Records that change what addresses and threads mean: mappings, names, births and ends of tasks.

use super::bytes::{Cursor, Order, text};
use heatline_profile::BuildId;

/// Types of records, from the kernel and, from 64 on, from perf itself.
pub(crate) mod record_type {
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const THROTTLE: u32 = 5;
    pub const UNTHROTTLE: u32 = 6;
    pub const FORK: u32 = 7;
    pub const READ: u32 = 8;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const AUX: u32 = 11;
    pub const ITRACE_START: u32 = 12;
    pub const LOST_SAMPLES: u32 = 13;
    pub const SWITCH: u32 = 14;
    pub const SWITCH_CPU_WIDE: u32 = 15;
    pub const KSYMBOL: u32 = 17;
    pub const CALLCHAIN_DEFERRED: u32 = 22;
    /// From here on records are perf's own.
    pub const USER: u32 = 64;
    pub const HEADER_ATTR: u32 = 64;
    pub const TRACING_DATA: u32 = 66;
    pub const BUILD_ID: u32 = 67;
    pub const FINISHED_ROUND: u32 = 68;
    pub const ID_INDEX: u32 = 69;
    pub const AUXTRACE_INFO: u32 = 70;
    pub const AUXTRACE: u32 = 71;
    pub const EVENT_UPDATE: u32 = 78;
    pub const TIME_CONV: u32 = 79;
    pub const HEADER_FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
}

/// Bits of a record header's `misc`.
pub(crate) mod misc {
    /// The bits that hold the processor mode.
    pub const MODE: u16 = 7;
    /// In a FORK that perf made up for a process that ran already: its mappings follow.
    pub const FORK_EXEC: u16 = 1 << 13;
    /// In a switch record: the thread leaves.
    pub const SWITCH_OUT: u16 = 1 << 13;
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
    pub const BUILD_ID_SIZE: u16 = 1 << 15;
}

/// In what the processor was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Unknown,
    Kernel,
    User,
    Hypervisor,
    GuestKernel,
    GuestUser,
}

impl Mode {
    pub fn of_misc(misc: u16) -> Mode {
        match misc & misc::MODE {
            1 => Mode::Kernel,
            2 => Mode::User,
            3 => Mode::Hypervisor,
            4 => Mode::GuestKernel,
            5 => Mode::GuestUser,
            _ => Mode::Unknown,
        }
    }
}

/// What tells apart two files at one path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FileIdentity {
    /// The record does not say.
    None,
    /// The file's place on its file system. perf does not know the generation of what was mapped before it started.
    Inode { device: (u32, u32), inode: u64, generation: u64 },
    /// The build id.
    BuildId(BuildId),
}

/// A new mapping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NewMapping {
    pub mode: Mode,
    pub pid: i32,
    pub start: u64,
    pub length: u64,
    pub file_offset: u64,
    pub path: String,
    pub file: FileIdentity,
}

/// A change of the world.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Map(Box<NewMapping>),
    Comm {
        pid: i32,
        tid: i32,
        comm: String,
    },
    Fork {
        pid: i32,
        tid: i32,
        parent_pid: i32,
        parent_tid: i32,
        with_mappings: bool,
    },
    Exit {
        pid: i32,
        tid: i32,
    },
    /// From now on a processor runs another thread. Only kept where trace data needs it.
    Switch {
        cpu: u32,
        tid: i32,
    },
    /// A thread leaves a processor or comes back to one. Tells when it was off the processors.
    Thread {
        tid: i32,
        out: bool,
    },
    KernelSymbol {
        start: u64,
        length: u64,
        name: String,
        gone: bool,
    },
}

impl Change {
    /// The change that a record makes; `None` if it is too short. Other types of records make none.
    pub fn parse(kind: u32, misc: u16, body: &[u8], order: Order) -> Option<Change> {
        let mut cursor = Cursor::new(body, order);
        match kind {
            record_type::MMAP => mmap(&mut cursor, misc),
            record_type::MMAP2 => mmap2(&mut cursor, misc),
            record_type::COMM => {
                Some(Change::Comm { pid: cursor.i32()?, tid: cursor.i32()?, comm: text(cursor.rest()) })
            }
            record_type::FORK => {
                let (pid, parent_pid) = (cursor.i32()?, cursor.i32()?);
                let (tid, parent_tid) = (cursor.i32()?, cursor.i32()?);
                Some(Change::Fork { pid, tid, parent_pid, parent_tid, with_mappings: misc & misc::FORK_EXEC == 0 })
            }
            record_type::EXIT => {
                let (pid, _parent_pid) = (cursor.i32()?, cursor.i32()?);
                Some(Change::Exit { pid, tid: cursor.i32()? })
            }
            record_type::KSYMBOL => ksymbol(&mut cursor),
            _ => None,
        }
    }
}

fn mmap(cursor: &mut Cursor<'_>, misc: u16) -> Option<Change> {
    let (pid, _tid) = (cursor.i32()?, cursor.i32()?);
    let (start, length, file_offset) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    let path = text(cursor.rest());
    let mode = mapping_mode(misc, pid);
    Some(Change::Map(Box::new(NewMapping { mode, pid, start, length, file_offset, path, file: FileIdentity::None })))
}

fn mmap2(cursor: &mut Cursor<'_>, misc: u16) -> Option<Change> {
    let (pid, _tid) = (cursor.i32()?, cursor.i32()?);
    let (start, length, file_offset) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    let file = file_identity(cursor, misc)?;
    let (_protection, _flags) = (cursor.u32()?, cursor.u32()?);
    let path = text(cursor.rest());
    let mode = mapping_mode(misc, pid);
    Some(Change::Map(Box::new(NewMapping { mode, pid, start, length, file_offset, path, file })))
}

fn file_identity(cursor: &mut Cursor<'_>, misc: u16) -> Option<FileIdentity> {
    if misc & misc::MMAP_BUILD_ID == 0 {
        let device = (cursor.u32()?, cursor.u32()?);
        let (inode, generation) = (cursor.u64()?, cursor.u64()?);
        return Some(if inode == 0 { FileIdentity::None } else { FileIdentity::Inode { device, inode, generation } });
    }
    let size = cursor.u8()?;
    cursor.take(3)?;
    Some(build_id(cursor.take(20)?, size).map_or(FileIdentity::None, FileIdentity::BuildId))
}

/// The build id in a field of 20 bytes of which `size` are used. All zeros is none.
pub(crate) fn build_id(field: &[u8], size: u8) -> Option<BuildId> {
    let bytes = field.get(..size as usize).unwrap_or(field);
    bytes.iter().any(|&b| b != 0).then(|| BuildId(bytes.to_vec()))
}

/// The kernel's mappings belong to no process. Not all recorders set the mode of a mapping.
fn mapping_mode(misc: u16, pid: i32) -> Mode {
    match Mode::of_misc(misc) {
        Mode::Unknown if pid == -1 => Mode::Kernel,
        Mode::Unknown => Mode::User,
        mode => mode,
    }
}

fn ksymbol(cursor: &mut Cursor<'_>) -> Option<Change> {
    let (start, length) = (cursor.u64()?, cursor.u32()?);
    let (_kind, flags) = (cursor.u16()?, cursor.u16()?);
    Some(Change::KernelSymbol { start, length: length.into(), name: text(cursor.rest()), gone: flags & 1 != 0 })
}
