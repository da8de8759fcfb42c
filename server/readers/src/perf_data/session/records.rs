//! Records that are no samples.

use super::Session;
use crate::perf_data::PerfDataError;
use crate::perf_data::attr::Attr;
use crate::perf_data::blocks::{End, Prints, Record, Visit};
use crate::perf_data::bytes::{Cursor, text};
use crate::perf_data::compressed::Inflater;
use crate::perf_data::features::build_id_body;
use crate::perf_data::layout::Trailer;
use crate::perf_data::off_cpu::OffCpu;
use crate::perf_data::queue::Sink;
use crate::perf_data::state::{Change, misc, record_type as kind};
use crate::perf_data::trace::{AuxRange, Place};
use heatline_profile::FileOffset;

impl Session<'_> {
    /// A record that is no sample.
    pub(super) fn record(&mut self, record: Record<'_>) -> Result<(), PerfDataError> {
        match record.kind {
            kind::MMAP | kind::MMAP2 | kind::COMM | kind::FORK | kind::EXIT | kind::KSYMBOL => self.change(record),
            kind::FINISHED_ROUND if self.in_rounds => self.queue.round(&mut self.folding),
            kind::SWITCH | kind::SWITCH_CPU_WIDE | kind::ITRACE_START if self.trace.is_present() => self.switch(record),
            kind::SWITCH | kind::SWITCH_CPU_WIDE => self.thread_switch(record),
            kind::AUX => self.aux(record),
            kind::CALLCHAIN_DEFERRED => self.deferred_chain(record),
            kind::COMPRESSED | kind::COMPRESSED2 => return self.compressed(record),
            _ => self.other(record),
        }
        Ok(())
    }

    /// Records inside a compressed one.
    fn compressed(&mut self, record: Record<'_>) -> Result<(), PerfDataError> {
        let data = match record.kind {
            kind::COMPRESSED => Some(record.body),
            _ => self
                .order
                .u64_at(record.body, 0)
                .and_then(|size| record.body.get(8..)?.get(..usize::try_from(size).ok()?)),
        };
        // Taken out while its records are read, so that no compressed record can hold another.
        let Some(mut inflater) = self.inflater.take().filter(|inflater| !inflater.is_broken()) else {
            self.count_short(record.offset);
            return Ok(());
        };
        let mut input = data.unwrap_or(&[]);
        loop {
            let Some(bytes) = inflater.fill(&mut input) else {
                let message =
                    "compressed records are damaged; what comes before is shown, record or copy the file anew";
                self.problems.add("damaged-compression", 1, Some(FileOffset(record.offset)), message);
                inflater.break_off();
                break;
            };
            let progress = self.block(bytes, record.offset, &mut Prints::default())?;
            if let Some(size) = progress.bad_size {
                self.ended(End::BadSize { offset: record.offset, size }, false);
                inflater.break_off();
                break;
            }
            let full = inflater.is_full();
            inflater.consume(progress.used);
            if input.is_empty() && !full {
                break;
            }
        }
        self.inflater = Some(inflater);
        Ok(())
    }

    /// Puts another decompressor in place of the present one, for the records of another file.
    pub fn swap_inflater(&mut self, other: &mut Option<Box<Inflater>>) {
        std::mem::swap(&mut self.inflater, other);
    }

    fn change(&mut self, record: Record<'_>) {
        let Some(change) = Change::parse(record.kind, record.misc, record.body, self.order) else {
            self.count_short(record.offset);
            return;
        };
        self.put(change, record.body);
    }

    /// Gives a change its turn, by the time behind its record.
    fn put(&mut self, change: Change, body: &[u8]) {
        match self.trailer(body).time {
            Some(time) => {
                self.latest = self.latest.max(time);
                self.queue.push_change(time, change, &mut self.folding);
            }
            None => self.folding.change(0, change),
        }
    }

    /// Who runs on a processor, where trace data does not say it itself.
    fn switch(&mut self, record: Record<'_>) {
        let trailer = self.trailer(record.body);
        let out = record.misc & misc::SWITCH_OUT != 0;
        let tid = match record.kind {
            kind::SWITCH_CPU_WIDE if out => self.order.u32_at(record.body, 4).map(u32::cast_signed),
            kind::ITRACE_START => self.order.u32_at(record.body, 4).map(u32::cast_signed),
            _ if out => None,
            _ => trailer.tid,
        };
        if let (Some(cpu), Some(tid)) = (trailer.cpu, tid) {
            self.put(Change::Switch { cpu, tid }, record.body);
        }
    }

    /// A thread leaves a processor, or comes back to one.
    fn thread_switch(&mut self, record: Record<'_>) {
        let trailer = self.trailer(record.body);
        let (Some(tid), Some(time)) = (trailer.tid, trailer.time) else { return };
        self.push_switch(time, tid, record.misc & misc::SWITCH_OUT != 0);
    }

    /// Gives a switch its turn. With chosen processors nothing can be said of the time off them.
    pub(super) fn push_switch(&mut self, time: u64, tid: i32, out: bool) {
        if self.options.cpus.is_some() {
            return;
        }
        self.folding.off_cpu.get_or_insert_with(|| Box::new(OffCpu::new(self.options.time.clone())));
        self.latest = self.latest.max(time);
        self.queue.push_change(time, Change::Thread { tid, out }, &mut self.folding);
    }

    /// A range of trace data that the hardware wrote, and what was lost of it.
    fn aux(&mut self, record: Record<'_>) {
        let trailer = self.trailer(record.body);
        let word = |at| self.order.u64_at(record.body, at);
        match (word(0), word(8), word(16)) {
            (Some(stream_offset), Some(size), Some(flags)) => self.trace.ranges.push(AuxRange {
                record: record.offset,
                cpu: trailer.cpu,
                tid: trailer.tid.unwrap_or(-1),
                time: trailer.time,
                stream_offset,
                size,
                flags,
            }),
            _ => self.count_short(record.offset),
        }
    }

    /// A piece of trace data, which follows the record.
    fn auxtrace(&mut self, record: Record<'_>) -> Option<()> {
        let place = match self.member {
            Some(member) => {
                Place::File { member, position: record.offset.saturating_add(record.body.len() as u64 + 8) }
            }
            None => Place::Spool { position: self.trace.spool.len() },
        };
        self.trace.take_piece(record.offset, record.body, self.order, place)
    }

    /// What lies behind a record that is no sample.
    fn trailer(&mut self, body: &[u8]) -> Trailer {
        let id = self.layouts.first().and_then(|layout| layout.trailer_id(body, self.order));
        let event = self.event_of_id(id).unwrap_or(0);
        self.layouts.get(event as usize).map(|layout| layout.trailer(body, self.order)).unwrap_or_default()
    }

    /// Records that tell of losses, and those that a stream has instead of a header.
    fn other(&mut self, record: Record<'_>) {
        let body = record.body;
        let parsed = match record.kind {
            kind::LOST => {
                self.order.u64_at(body, 8).map(|lost| self.counts.lost = self.counts.lost.saturating_add(lost))
            }
            kind::LOST_SAMPLES => self
                .order
                .u64_at(body, 0)
                .map(|lost| self.counts.lost_samples = self.counts.lost_samples.saturating_add(lost)),
            kind::THROTTLE => {
                self.counts.throttled += 1;
                Some(())
            }
            kind::AUXTRACE_INFO => self.trace.take_info(body, self.order),
            kind::TIME_CONV => self.trace.take_conversion(body, self.order),
            kind::AUXTRACE => self.auxtrace(record),
            kind::HEADER_ATTR => self.header_attr(body),
            kind::HEADER_FEATURE => self.header_feature(record.offset, body),
            kind::EVENT_UPDATE => self.event_update(body),
            kind::BUILD_ID => {
                self.features.build_ids.extend(build_id_body(body, record.misc));
                Some(())
            }
            known if is_harmless(known) => Some(()),
            unknown => {
                let message =
                    format!("records of type {unknown} are unknown and were skipped; a later Heatline may know them");
                self.problems.add("unknown-record", 1, Some(FileOffset(record.offset)), message);
                Some(())
            }
        };
        if parsed.is_none() {
            self.count_short(record.offset);
        }
    }

    fn header_attr(&mut self, body: &[u8]) -> Option<()> {
        let size = usize::try_from(self.order.u32_at(body, 4)?).ok()?;
        let (attr, ids) = body.split_at_checked(size)?;
        let attr = Attr::parse(attr, self.order)?;
        let order = self.order;
        self.add_event(attr, ids.as_chunks::<8>().0.iter().map(|&id| order.u64(id)));
        Some(())
    }

    fn header_feature(&mut self, offset: u64, body: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(body, self.order);
        let number = u32::try_from(cursor.u64()?).ok()?;
        self.features.tell(number, offset, cursor.rest(), self.order);
        self.features.section(number, cursor.rest(), self.order)
    }

    fn event_update(&mut self, body: &[u8]) -> Option<()> {
        /// The kind of update that brings the name.
        const NAME: u64 = 2;
        let mut cursor = Cursor::new(body, self.order);
        let (update, id) = (cursor.u64()?, cursor.u64()?);
        if update == NAME {
            let event = self.event_of_id(Some(id))?;
            self.events.get_mut(event as usize)?.name = Some(text(cursor.rest()));
            self.find_switch_events();
        }
        Some(())
    }
}

/// Whether a record can be left out without anybody missing it.
fn is_harmless(record_kind: u32) -> bool {
    match record_kind {
        kind::UNTHROTTLE | kind::READ => true,
        // AUX to CALLCHAIN_DEFERRED.
        11..=22 => true,
        kind::USER..=84 => true,
        _ => false,
    }
}
