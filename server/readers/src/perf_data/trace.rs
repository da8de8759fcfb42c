//! Hardware trace data that lies between the records, and what a decoder of it needs from them.
//!
//! Trace data is not decoded while the records are read: its place is noted, and afterwards a decoder reads it piece by
//! piece through [`TraceBytes`], while a [`Timeline`] plays the changes of the world again, so that each address means
//! what it meant when it was traced.

use super::PerfDataError;
use super::attr::Attr;
use super::bytes::{Cursor, Order};
use super::state::{Change, Mode};
use super::world::{RawFrame, World};
use crate::ReadOptions;
use crate::spe::{self, Decoded};
use heatline_profile::{CodeAddress, Module, ModuleId, Monitor, Problems, StackTable, Thread, ThreadId};
use std::io;

/// Bytes of trace data kept in memory when the input cannot be read again.
pub(crate) const MOST_SPOOLED: usize = 256 << 20;

/// Kinds of trace data, as AUXTRACE_INFO numbers them.
pub(crate) mod trace_kind {
    pub const ARM_SPE: u32 = 4;
}

/// How times of the trace hardware relate to those of the records (TIME_CONV).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TimeConversion {
    pub shift: u64,
    pub multiplier: u64,
    pub zero: u64,
    pub cycles: u64,
    pub mask: u64,
    /// Whether `zero` may be used.
    pub has_zero: bool,
    /// Whether the counter is short and wraps, so that `cycles` and `mask` are needed.
    pub is_short: bool,
}

impl TimeConversion {
    fn parse(body: &[u8], order: Order) -> Option<TimeConversion> {
        let mut cursor = Cursor::new(body, order);
        let (shift, multiplier, zero) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        let first = TimeConversion { shift, multiplier, zero, has_zero: true, ..TimeConversion::default() };
        let longer = (|| {
            let (cycles, mask) = (cursor.u64()?, cursor.u64()?);
            let (has_zero, is_short) = (cursor.u8()? != 0, cursor.u8()? != 0);
            Some(TimeConversion { cycles, mask, has_zero, is_short, ..first })
        })();
        Some(longer.unwrap_or(first))
    }
}

/// One AUX record: a range of a queue's trace stream that the hardware wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AuxRange {
    /// Position of the record in the input.
    pub record: u64,
    pub cpu: Option<u32>,
    pub tid: i32,
    pub time: Option<u64>,
    /// Start of the range in the trace stream, as in [`Piece::stream_offset`].
    pub stream_offset: u64,
    pub size: u64,
    /// 1 truncated, 2 overwritten, 4 partial, 8 collision.
    pub flags: u64,
}

/// Where the bytes of a piece are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In a file of the input (0, or in a directory one of its members), from this position on.
    File { member: usize, position: u64 },
    /// In memory, from this position on.
    Spool { position: usize },
    /// Nowhere: the input could not be read again and memory was used up.
    Lost,
}

/// One AUXTRACE record: a piece of a queue's trace stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Position of the record in the input.
    pub record: u64,
    pub queue: u32,
    /// The processor it was written on; `None` in recordings per thread.
    pub cpu: Option<u32>,
    pub tid: i32,
    /// Position of its first byte in the queue's trace stream.
    pub stream_offset: u64,
    pub size: u64,
    pub place: Place,
}

/// Reads the bytes of pieces.
pub(crate) trait TraceBytes {
    /// Hands the bytes of a piece to `take`, front to back, in parts of any size; fewer if the file was cut.
    ///
    /// # Errors
    /// If they cannot be had, or `take` fails.
    fn read(&mut self, piece: &Piece, take: &mut dyn FnMut(&[u8])) -> io::Result<()>;
}

/// Reads the files of the input again, after their records have been read.
pub(crate) trait FileBytes {
    /// Reads from a position of a member on, as much as there is up to the length of `buffer`.
    fn read_at(&mut self, member: usize, position: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// The bytes of pieces in files and in memory.
pub(super) struct PieceBytes<'a> {
    pub spool: &'a [u8],
    pub files: &'a mut dyn FileBytes,
}

impl TraceBytes for PieceBytes<'_> {
    fn read(&mut self, piece: &Piece, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        match piece.place {
            Place::Lost => {}
            Place::Spool { position } => {
                let rest = self.spool.get(position..).unwrap_or(&[]);
                take(rest.get(..usize::try_from(piece.size).unwrap_or(usize::MAX).min(rest.len())).unwrap_or(&[]));
            }
            Place::File { member, position } => {
                let mut buffer = vec![0; 256 << 10];
                let (mut at, mut left) = (position, piece.size);
                while left > 0 {
                    let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
                    let Some(part) = buffer.get_mut(..most) else { break };
                    let count = self.files.read_at(member, at, part)?.min(most);
                    if count == 0 {
                        break;
                    }
                    take(part.get(..count).unwrap_or(&[]));
                    at = at.saturating_add(count as u64);
                    left -= count as u64;
                }
            }
        }
        Ok(())
    }
}

/// All that the records said of the trace.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// The kind of trace data, one of [`trace_kind`].
    pub kind: u32,
    /// The words of AUXTRACE_INFO behind the kind.
    pub info: Vec<u64>,
    pub conversion: Option<TimeConversion>,
    pub pieces: Vec<Piece>,
    pub ranges: Vec<AuxRange>,
    /// The events of the recording with their names, in the order of [`heatline_profile::EventId`].
    pub events: Vec<(Option<String>, Attr)>,
    /// The processor's identification as the header has it.
    pub cpu_id: Option<String>,
    /// What the recorder calls the performance units, by the type of their events.
    pub units: Vec<(u32, String)>,
    pub(super) spool: Vec<u8>,
    /// What to do with the payload that follows next.
    spooling: bool,
    has_info: bool,
}

impl Trace {
    /// Whether there is a trace at all.
    pub fn is_present(&self) -> bool {
        self.has_info || !self.pieces.is_empty()
    }

    pub(super) fn take_info(&mut self, body: &[u8], order: Order) -> Option<()> {
        let mut cursor = Cursor::new(body, order);
        (self.kind, self.has_info) = (cursor.u32()?, true);
        let _reserved = cursor.u32()?;
        self.info = cursor.rest().as_chunks::<8>().0.iter().map(|&word| order.u64(word)).collect();
        Some(())
    }

    pub(super) fn take_conversion(&mut self, body: &[u8], order: Order) -> Option<()> {
        self.conversion = Some(TimeConversion::parse(body, order)?);
        Some(())
    }

    /// Notes a piece; its payload follows at once, in a file at `position`.
    pub(super) fn take_piece(&mut self, record: u64, body: &[u8], order: Order, place: Place) -> Option<()> {
        let mut cursor = Cursor::new(body, order);
        let (size, stream_offset, _reference) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        let (queue, tid, cpu) = (cursor.u32()?, cursor.i32()?, cursor.u32()?);
        let cpu = (cpu != u32::MAX).then_some(cpu);
        self.spooling = matches!(place, Place::Spool { .. });
        self.pieces.push(Piece { record, queue, cpu, tid, stream_offset, size, place });
        Some(())
    }

    /// Keeps a part of the payload of the last piece, as far as the limit allows.
    pub(super) fn spool(&mut self, bytes: &[u8], problems: &mut Problems) {
        if !self.spooling {
            return;
        }
        if self.spool.len().saturating_add(bytes.len()) > MOST_SPOOLED {
            self.spooling = false;
            if let Some(piece) = self.pieces.last_mut() {
                piece.place = Place::Lost;
            }
            let message = "the pipe holds more trace data than is kept in memory; store it in a file first";
            problems.add("trace-too-large", 1, None, message);
            return;
        }
        self.spool.extend_from_slice(bytes);
    }
}

/// What a decoder works with.
pub(crate) struct Decoding<'a> {
    pub trace: &'a Trace,
    pub options: &'a ReadOptions,
    /// The profile's stacks; a place is a stack of one frame.
    pub stacks: &'a mut StackTable,
    pub bytes: &'a mut dyn TraceBytes,
    pub timeline: &'a mut Timeline,
    pub problems: &'a mut Problems,
    pub monitor: &'a dyn Monitor,
}

/// Hands trace data to the decoder of its kind.
pub(super) fn decode(decoding: Decoding<'_>) -> Result<Option<Decoded>, PerfDataError> {
    let pieces = decoding.trace.pieces.len() as u64;
    let message = match decoding.trace.kind {
        trace_kind::ARM_SPE => return spe::decode(decoding).map(Some),
        0 if spe::is_named(decoding.trace) => return spe::decode(decoding).map(Some),
        1 => "Intel PT data is not decoded; use `perf script --itrace` to make samples of it",
        2 => "Intel BTS data is not decoded; use `perf script --itrace` to make samples of it",
        3 => "CoreSight data is not decoded; use `perf script --itrace` to make samples of it",
        _ => "trace data of an unknown kind is not decoded",
    };
    if pieces > 0 {
        decoding.problems.add("trace-not-decoded", pieces, None, message);
    }
    Ok(None)
}

/// Plays the changes of a recording again, from the first to the last.
pub(crate) struct Timeline {
    world: World,
    /// In the order of time; the first ones have none.
    changes: Vec<(u64, Change)>,
    next: usize,
}

/// Who executes, in what address space and under what name: as long as it stays the same, equal addresses mean the
/// same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Context {
    task: u32,
    moment: [u32; 3],
}

impl Timeline {
    pub fn new(world: World, changes: Vec<(u64, Change)>) -> Timeline {
        Timeline { world, changes, next: 0 }
    }

    /// Goes back to the start, keeping the modules and threads met so far.
    pub fn rewind(&mut self) {
        self.world.forget();
        self.next = 0;
    }

    /// Applies all changes up to and including `time`; going back needs [`Self::rewind`].
    pub fn advance(&mut self, time: u64) {
        while let Some((at, change)) = self.changes.get(self.next)
            && *at <= time
        {
            self.world.apply(change.clone());
            self.next += 1;
        }
    }

    /// Applies changes until so many have been applied; going back needs [`Self::rewind`].
    pub fn apply_first(&mut self, count: usize) {
        while self.next < count
            && let Some((_, change)) = self.changes.get(self.next)
        {
            self.world.apply(change.clone());
            self.next += 1;
        }
    }

    /// All changes in the order of their times.
    pub fn changes(&self) -> &[(u64, Change)] {
        &self.changes
    }

    /// When the next change comes; until then contexts stay what they are.
    pub fn next_change(&self) -> Option<u64> {
        self.changes.get(self.next).map(|(time, _)| *time)
    }

    /// The context of a thread at present. Its process is that of the last record that named the thread.
    pub fn context(&mut self, tid: i32) -> Context {
        let pid = self.world.pid_of(tid);
        let task = self.world.task(pid, tid);
        Context { task, moment: self.world.context(task) }
    }

    /// The context of a thread of a process at present.
    pub fn context_in(&mut self, pid: i32, tid: i32) -> Context {
        let task = self.world.task(pid, tid);
        Context { task, moment: self.world.context(task) }
    }

    /// The thread that ran on a processor at present, as switch records say.
    pub fn running_on(&self, cpu: u32) -> Option<i32> {
        self.world.running_on(cpu)
    }

    /// The thread of a context, under its present name.
    pub fn thread(&mut self, context: Context) -> Option<ThreadId> {
        self.world.thread(context.task)
    }

    /// Where an executed instruction lies at present.
    pub fn locate(&mut self, context: Context, mode: Mode, address: u64) -> (ModuleId, CodeAddress) {
        self.world.resolve(context.task, RawFrame { mode, exact: true, address })
    }

    /// The threads met.
    pub fn threads(&self) -> &[Thread] {
        &self.world.threads
    }

    /// The modules met.
    pub fn modules(&self) -> &[Module] {
        self.world.modules.all()
    }

    pub(super) fn into_world(self) -> World {
        self.world
    }
}
