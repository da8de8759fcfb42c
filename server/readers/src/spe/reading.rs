//! Reading the SPE data of one processor or thread after the other: who each record belongs to, and when it was taken.

use super::container::Clock;
use super::decode::{DecodeCounts, Decoder};
use super::history::{Epoch, History};
use super::record::Record;
use super::source::Cpu;
use crate::ReadOptions;
use crate::perf_data::PerfDataError;
use crate::perf_data::trace::{Piece, Place, TraceBytes};
use heatline_profile::{Cancelled, FileOffset, Problems};

/// Bytes read before somebody may stop the work.
const PART: u64 = 8 << 20;

/// Takes what is read.
pub(crate) trait Consumer {
    /// The data of another processor or thread begins.
    fn queue(&mut self, first: &Piece, model: &Cpu);
    /// Bytes of its stream, before the records that end in them.
    fn piece(&mut self, offset: u64, bytes: &[u8]);
    /// The data of the processor or thread has ended.
    fn end(&mut self);
    /// A record.
    fn record(&mut self, record: &Record, who: &Who);
}

/// Who a record belongs to, and when it was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Who {
    pub epoch: Epoch,
    pub cpu: Option<u32>,
    pub tid: Option<i32>,
    /// On the recording's clock; in counts of the timer where it is not known.
    pub time: Option<u64>,
}

/// What was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Totals {
    pub counts: DecodeCounts,
    /// Which fields any record had: the bits of [`Record`].
    pub fields: u32,
    /// Which classes of operations there were: bit N for class N.
    pub classes: u32,
    /// Which exception levels there were: bit N for level N.
    pub levels: u32,
    /// Records whose thread was found by who ran on the processor.
    pub by_switches: u64,
    /// Records whose thread is not known.
    pub nameless: u64,
    /// The times of the first and last record, on the recording's clock.
    pub span: Option<(u64, u64)>,
    /// Whether data was left out because it does not say its processor.
    pub without_cpu: bool,
    /// Records that were left out because they do not say their time.
    pub without_time: u64,
    /// Bytes that the file does not hold.
    pub missing_bytes: u64,
    /// Where in the file the first byte lies that is no packet.
    first_bad: Option<u64>,
}

/// The data of one processor or thread.
pub(crate) struct Queue {
    pub first: Piece,
    pub pieces: Vec<Piece>,
    pub model: Cpu,
    /// Ranges of its stream whose last record is torn, in order.
    pub partial: Vec<(u64, u64)>,
}

/// What is the same for all queues.
pub(crate) struct Frame<'a> {
    pub history: &'a History,
    pub clock: Option<Clock>,
    /// Records cannot be ordered with others.
    pub timeless: bool,
    pub options: &'a ReadOptions,
}

impl Frame<'_> {
    /// Reads a queue.
    pub fn read(
        &self,
        queue: &Queue,
        bytes: &mut dyn TraceBytes,
        totals: &mut Totals,
        consumer: &mut impl Consumer,
        progress: &mut dyn FnMut(u64) -> Result<(), Cancelled>,
    ) -> Result<(), PerfDataError> {
        let cpu = queue.first.cpu;
        if self.options.cpus.as_ref().is_some_and(|cpus| !cpu.is_some_and(|cpu| cpus.contains(&cpu))) {
            totals.without_cpu |= cpu.is_none();
            return Ok(());
        }
        consumer.queue(&queue.first, &queue.model);
        let mut ending = Ending { ranges: &queue.partial, held: None, dropped: 0 };
        let mut decoder = Decoder::new();
        let before = totals.counts.bytes;
        let mut sorter = Sorter { frame: self, queue: queue.first, known: None, latest: None, totals, consumer };
        for piece in &queue.pieces {
            for part in parts(*piece) {
                let mut offset = part.stream_offset;
                let bad = decoder.counts().bad_bytes;
                bytes.read(&part, &mut |bytes| {
                    sorter.consumer.piece(offset, bytes);
                    ending.feed(&mut decoder, offset, bytes, &mut |record| sorter.record(record));
                    offset = offset.wrapping_add(bytes.len() as u64);
                })?;
                if decoder.counts().bad_bytes > bad {
                    sorter.totals.first_bad.get_or_insert(piece.record);
                }
                let missing = part.size.saturating_sub(offset.wrapping_sub(part.stream_offset));
                sorter.totals.missing_bytes = sorter.totals.missing_bytes.saturating_add(missing);
                progress(before + decoder.counts().bytes)?;
                if missing > 0 {
                    break;
                }
            }
        }
        ending.finish(&mut decoder, &mut |record| sorter.record(record));
        sorter.consumer.end();
        totals.counts.add(decoder.counts());
        totals.counts.dropped_records += ending.dropped;
        totals.counts.records -= ending.dropped;
        Ok(())
    }
}

/// A piece in parts that are read at once.
fn parts(piece: Piece) -> impl Iterator<Item = Piece> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let size = piece.size.checked_sub(at).filter(|&left| left > 0)?.min(PART);
        let place = match piece.place {
            Place::File { member, position } => Place::File { member, position: position.saturating_add(at) },
            Place::Spool { position } => Place::Spool { position: position.saturating_add(at as usize) },
            Place::Lost => Place::Lost,
        };
        let part = Piece { stream_offset: piece.stream_offset.wrapping_add(at), size, place, ..piece };
        at += size;
        Some(part)
    })
}

/// Finds out whose each record is.
struct Sorter<'a, 'b, C> {
    frame: &'a Frame<'a>,
    queue: Piece,
    /// The thread met last with its epoch and from when to before when that is right.
    known: Option<(i32, Epoch, u64, u64)>,
    /// The time of the last record that had one.
    latest: Option<u64>,
    totals: &'b mut Totals,
    consumer: &'b mut C,
}

impl<C: Consumer> Sorter<'_, '_, C> {
    #[inline]
    fn record(&mut self, record: &Record) {
        let time = record.time().map(|count| self.frame.clock.map_or(count, |clock| clock.time(count)));
        self.totals.fields |= record.present;
        self.totals.classes |= record.operation().map_or(0, |operation| 1 << operation.class);
        self.totals.levels |= 1 << record.exception_level();
        if let Some(times) = &self.frame.options.time
            && time.is_none_or(|time| !times.contains(time))
        {
            self.totals.without_time += u64::from(time.is_none());
            return;
        }
        self.latest = time.or(self.latest);
        if let Some(time) = time.filter(|_| self.frame.clock.is_some()) {
            let (first, last) = self.totals.span.unwrap_or((time, time));
            self.totals.span = Some((first.min(time), last.max(time)));
        }
        let ordered = self.frame.clock.is_some() && !self.frame.timeless;
        let when = if ordered { self.latest.unwrap_or(u64::MAX) } else { u64::MAX };
        let tid = match record.context() {
            Some(context) => Some(context.cast_signed()),
            None => self.thread_of_queue(when),
        };
        // A record that does not name its thread among others that do is looked up with the one before, as for perf.
        let likely = tid.or(self.known.map(|known| known.0)).unwrap_or(-1);
        self.totals.nameless += u64::from(likely == -1);
        let epoch = self.epoch(likely, when);
        self.consumer.record(record, &Who { epoch, cpu: self.queue.cpu, tid, time });
    }

    /// The thread of a record that does not name it.
    fn thread_of_queue(&mut self, when: u64) -> Option<i32> {
        if let Some(cpu) = self.queue.cpu
            && let Some(tid) = self.frame.history.running(cpu, when)
        {
            self.totals.by_switches += 1;
            return Some(tid);
        }
        Some(self.queue.tid).filter(|&tid| tid != -1)
    }

    #[inline]
    fn epoch(&mut self, tid: i32, when: u64) -> Epoch {
        if let Some((known, epoch, from, until)) = self.known
            && known == tid
            && when >= from
            && (when < until || until == u64::MAX)
        {
            return epoch;
        }
        let (epoch, from, until) = self.frame.history.epoch(tid, when);
        self.known = Some((tid, epoch, from, until));
        epoch
    }
}

/// Drops the last record of ranges whose last record is torn.
struct Ending<'a> {
    ranges: &'a [(u64, u64)],
    held: Option<Record>,
    dropped: u64,
}

impl Ending<'_> {
    fn feed(&mut self, decoder: &mut Decoder, mut offset: u64, mut bytes: &[u8], sink: &mut impl FnMut(&Record)) {
        while !bytes.is_empty() {
            while let [(_, end), rest @ ..] = self.ranges
                && *end <= offset
            {
                self.end_range(decoder, sink);
                self.ranges = rest;
            }
            let Some(&(start, end)) = self.ranges.first() else {
                return decoder.push(offset, bytes, sink);
            };
            let inside = offset >= start;
            let next = if inside { end } else { start };
            let size = usize::try_from(next - offset).unwrap_or(usize::MAX).min(bytes.len());
            let (now, later) = bytes.split_at(size);
            if inside {
                let held = &mut self.held;
                decoder.push(offset, now, |record| {
                    if let Some(last) = held.replace(*record) {
                        sink(&last);
                    }
                });
            } else {
                decoder.push(offset, now, &mut *sink);
            }
            offset = offset.saturating_add(size as u64);
            bytes = later;
        }
    }

    /// A range is over: what is unfinished is the torn record, else the last finished one is.
    fn end_range(&mut self, decoder: &mut Decoder, sink: &mut impl FnMut(&Record)) {
        let before = decoder.counts().dropped_records;
        decoder.finish();
        if let Some(last) = self.held.take() {
            if decoder.counts().dropped_records > before {
                sink(&last);
            } else {
                self.dropped += 1;
            }
        }
    }

    fn finish(&mut self, decoder: &mut Decoder, sink: &mut impl FnMut(&Record)) {
        self.end_range(decoder, sink);
    }
}

impl Totals {
    /// Whether any record had a field.
    pub fn has(&self, field: u32) -> bool {
        self.fields & field != 0
    }

    /// What was wrong with the data.
    pub fn report(&self, problems: &mut Problems) {
        report_counts(&self.counts, self.first_bad, problems);
        let mut add = |kind, count: u64, offset: Option<u64>, message: &str| {
            if count > 0 {
                problems.add(kind, count, offset.map(FileOffset), message);
            }
        };
        add("truncated", self.missing_bytes, None, "bytes of SPE data are missing at the end of the file");
        add(
            "spe-inexact-threads",
            self.by_switches,
            None,
            "SPE records do not name their threads; they were given to the thread that ran on the processor, which may \
             be wrong near a switch; record as root on a kernel with CONFIG_PID_IN_CONTEXTIDR",
        );
        add(
            "spe-no-thread",
            self.nameless,
            None,
            "SPE records do not name their threads, nor does the file tell who ran, so their addresses are not \
             resolved; record as root, or per thread",
        );
    }
}

/// What could not be decoded. `first_bad` is the record of the file whose data has the first bad byte.
pub(crate) fn report_counts(counts: &DecodeCounts, first_bad: Option<u64>, problems: &mut Problems) {
    if counts.bad_bytes > 0 {
        let message = "bytes of SPE data are no packets; what follows was skipped up to the end of the next record";
        problems.add("spe-bad-bytes", counts.bad_bytes, first_bad.or(counts.first_bad).map(FileOffset), message);
    }
    if counts.dropped_records > 0 {
        let message =
            "SPE records are torn, or touched by bytes that are no packets, or have no address, and were dropped";
        problems.add("spe-dropped-records", counts.dropped_records, None, message);
    }
}
