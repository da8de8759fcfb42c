//! SPE in perf.data: from its pieces, and what the records around them tell, to statistics.

use super::collect::{Collector, Owner};
use super::container::{Clock, Info, flag};
use super::event::Group;
use super::fields::RecordFields;
use super::history::{Epoch, History, look_up};
use super::options::{AuxSummary, DumpSummary, Item, Sink};
use super::reading::{Consumer, Frame, Queue, Totals, Who};
use super::record::{CONTEXT, Record, SOURCE, TIME};
use super::setup::Setup;
use super::source::Cpu;
use super::table::Rows;
use super::text::PacketDump;
use super::worker::{Feeder, collect};
use crate::ReadOptions;
use crate::perf_data::PerfDataError;
use crate::perf_data::attr::{Attr, sample_type};
use crate::perf_data::trace::{Decoding, Piece, Timeline, Trace, TraceBytes};
use heatline_profile::{
    FileOffset, Monitor, Problems, SpeOrigin, SpeRecording, SpeRow, SpeTable, StackNode, StackTable,
};
use rustc_hash::FxHashMap;

/// The statistics of a recording.
pub(crate) struct Decoded {
    pub table: SpeTable,
    /// The times of the first and last record, on the recording's clock.
    pub span: Option<(u64, u64)>,
}

/// Whether trace data whose kind is not told is of SPE: perf names its unit.
pub(crate) fn is_named(trace: &Trace) -> bool {
    let named = trace.events.iter().any(|(name, _)| name.as_deref().is_some_and(is_spe));
    named
        || trace
            .units
            .iter()
            .any(|(kind, name)| is_spe(name) && trace.events.iter().any(|(_, attr)| attr.kind == *kind))
}

/// Decodes the SPE data of a recording and adds it up.
///
/// # Errors
/// If it cannot be read, if it should be chosen by a time or processor that it does not say, or if somebody asked to
/// stop.
pub(crate) fn decode(decoding: Decoding<'_>) -> Result<Decoded, PerfDataError> {
    let Decoding { trace, options, stacks, bytes, timeline, problems, monitor } = decoding;
    let source = Source::new(trace, problems);
    source.report(problems);
    let history = History::new(timeline.changes());
    let ((totals, owners, printer), collector) = collect(|feeder| {
        let mut adder = Adder::new(options, feeder);
        let totals = source.read(options, &history, bytes, monitor, &mut adder);
        (totals, adder.owners, adder.printer)
    });
    let totals = totals?;
    if totals.without_cpu {
        return Err(PerfDataError::NoCpus);
    }
    if totals.without_time > 0 && !totals.has(TIME) {
        return Err(PerfDataError::NoTimes);
    }
    totals.report(problems);
    let mut recording = source.recording(&totals);
    printer.give(Item::Summary(summary(&recording)));
    let rows = look_up_all(collector, &owners, timeline, stacks);
    let largest = rows.iter().filter_map(|row| row.stats.total_latency.max()).max();
    recording.largest_latency = largest.unwrap_or(0);
    recording.advice = advice(&recording, &totals);
    Ok(Decoded { table: SpeTable { origin: SpeOrigin::Spe, rows, recording }, span: totals.span })
}

/// What the file tells about its SPE data.
pub(crate) struct Source<'a> {
    trace: &'a Trace,
    info: Info,
    clock: Option<Clock>,
    setup: Setup,
    timeless: bool,
}

impl<'a> Source<'a> {
    pub fn new(trace: &'a Trace, problems: &mut Problems) -> Source<'a> {
        let info = Info::parse(&trace.info).unwrap_or_else(|| {
            let message = "the record that describes the SPE data is damaged or missing; processors may not be known";
            problems.add("damaged-record", 1, None, message);
            Info::default()
        });
        let by_type =
            |kind: u32| info.pmu_types.contains(&kind) || trace.units.iter().any(|u| u.0 == kind && is_spe(&u.1));
        let event = trace.events.iter().find(|(name, attr)| by_type(attr.kind) || name.as_deref().is_some_and(is_spe));
        let setup = event.map(|(_, attr)| setup_of(attr)).unwrap_or_default();
        let others = || trace.events.iter().filter(|(_, attr)| event.is_none_or(|event| event.1 != *attr));
        let has_time = |attr: &Attr| attr.sample_type & sample_type::TIME != 0;
        let timeless = match others().next() {
            Some(_) => !others().any(|(_, attr)| has_time(attr)),
            None => event.is_none_or(|(_, attr)| !has_time(attr)),
        };
        let clock = trace.conversion.as_ref().and_then(Clock::new);
        Source { trace, info, clock, setup, timeless }
    }

    /// Gives all data to `consumer`.
    ///
    /// # Errors
    /// As [`decode`].
    pub fn read(
        &self,
        options: &ReadOptions,
        history: &History,
        bytes: &mut dyn TraceBytes,
        monitor: &dyn Monitor,
        consumer: &mut impl Consumer,
    ) -> Result<Totals, PerfDataError> {
        let frame = Frame { history, clock: self.clock, timeless: self.timeless, options };
        let mut totals = Totals::default();
        let of = self.trace.pieces.iter().map(|piece| piece.size).fold(0, u64::saturating_add);
        for queue in self.queues() {
            frame.read(&queue, bytes, &mut totals, consumer, &mut |done| monitor.progress(done.min(of), of))?;
        }
        Ok(totals)
    }

    /// The pieces by the processor or thread that they are of, in the order of the file.
    fn queues(&self) -> Vec<Queue> {
        let mut queues: Vec<Queue> = Vec::new();
        let mut numbers = FxHashMap::default();
        for piece in &self.trace.pieces {
            let number = *numbers.entry((piece.queue, piece.cpu, piece.tid)).or_insert(queues.len());
            match queues.get_mut(number) {
                Some(queue) => queue.pieces.push(*piece),
                None => {
                    let model = self.info.cpu(piece.cpu, self.trace.cpu_id.as_deref());
                    queues.push(Queue { first: *piece, pieces: vec![*piece], model, partial: Vec::new() });
                }
            }
        }
        let queues_alone = queues.len() == 1;
        let torn = self.trace.ranges.iter().filter(|range| range.flags & flag::PARTIAL != 0);
        let torn: FxHashMap<_, Vec<_>> = torn.fold(FxHashMap::default(), |mut all, range| {
            let ends = (range.stream_offset, range.stream_offset.saturating_add(range.size));
            // Recordings per thread tell ranges apart by thread; one queue alone has them all.
            let whose = if queues_alone { (None, 0) } else { (range.cpu, range.tid) };
            for whose in [(whose.0, 0), (None, whose.1)] {
                all.entry(whose).or_default().push(ends);
            }
            all
        });
        for queue in &mut queues {
            let whose = match (queues_alone, queue.first.cpu) {
                (true, _) => (None, 0),
                (false, Some(cpu)) => (Some(cpu), 0),
                (false, None) => (None, queue.first.tid),
            };
            queue.partial = torn.get(&whose).cloned().unwrap_or_default();
            queue.partial.sort_unstable();
            queue.partial.dedup();
        }
        queues
    }

    fn flagged(&self, flag: u64) -> u64 {
        self.trace.ranges.iter().filter(|range| range.flags & flag != 0).count() as u64
    }

    pub fn recording(&self, totals: &Totals) -> SpeRecording {
        let first = self.trace.pieces.first().and_then(|piece| piece.cpu);
        let cpu = self.info.cpu(first, self.trace.cpu_id.as_deref());
        SpeRecording {
            settings: self.setup.words(&cpu),
            filtered: self.setup.is_filtered(),
            interval: self.setup.interval,
            buffers: self.trace.ranges.len() as u64,
            truncated: self.flagged(flag::TRUNCATED),
            partial: self.flagged(flag::PARTIAL),
            collision: self.flagged(flag::COLLISION),
            bytes: totals.counts.bytes,
            records: totals.counts.records,
            dropped_records: totals.counts.dropped_records,
            bad_bytes: totals.counts.bad_bytes,
            ..SpeRecording::default()
        }
    }

    /// What the recorder lost.
    pub fn report(&self, problems: &mut Problems) {
        let of = self.trace.ranges.len();
        let mut add = |kind, flag: u64, message: &dyn Fn(u64) -> String| {
            let count = self.flagged(flag);
            let first = self.trace.ranges.iter().find(|range| range.flags & flag != 0);
            if count > 0 {
                problems.add(kind, count, first.map(|range| FileOffset(range.record)), message(count));
            }
        };
        add("spe-truncated", flag::TRUNCATED, &|count| {
            format!(
                "SPE data was lost {count} times out of {of}; enlarge the AUX buffer (-m ,SIZE) or raise the interval (-c)"
            )
        });
        add("spe-partial", flag::PARTIAL, &|count| {
            format!("SPE data had gaps {count} times out of {of}; the record before each gap was dropped")
        });
        add("spe-collision", flag::COLLISION, &|count| {
            format!("SPE samples collided in {count} of {of} buffers and some fell out; raise the interval (-c)")
        });
        if self.clock.is_none() && !self.trace.pieces.is_empty() {
            problems.add(
                "spe-no-clock",
                1,
                None,
                "the file does not say how the times of SPE relate to those of other records; its addresses are looked \
                 up in the mappings at the end",
            );
        }
    }
}

fn is_spe(name: &str) -> bool {
    name.starts_with("arm_spe")
}

fn setup_of(attr: &Attr) -> Setup {
    Setup {
        config: attr.config,
        events: attr.config1,
        latency: attr.config2,
        not_events: attr.config3,
        not_sources: attr.config4,
        interval: Some(attr.sample_period).filter(|&period| period > 0 && !attr.is_frequency()),
    }
}

/// The part of a recording that a dump ends with.
pub(super) fn summary(recording: &SpeRecording) -> DumpSummary {
    let SpeRecording { records, dropped_records, bad_bytes, truncated, partial, collision, .. } = *recording;
    DumpSummary { records, dropped_records, bad_bytes, aux: AuxSummary { truncated, partial, collision } }
}

/// Chooses records by group.
pub(super) struct Adding<'a>(&'a [Group]);

impl<'a> Adding<'a> {
    pub fn new(groups: &'a [Group]) -> Self {
        Adding(groups)
    }

    #[inline]
    pub fn wants(&self, record: &Record) -> bool {
        self.0.is_empty() || self.0.iter().any(|group| group.holds(record))
    }
}

/// Tells a sink of everything.
#[derive(Default)]
pub(super) struct Printer {
    sink: Option<Sink>,
    packets: Option<PacketDump>,
    model: Cpu,
    cpu: Option<u32>,
}

impl Printer {
    pub fn new(sink: Option<Sink>) -> Self {
        Printer { sink, ..Printer::default() }
    }

    pub fn begin(&mut self, model: &Cpu, cpu: Option<u32>) {
        (self.model, self.cpu) = (*model, cpu);
        let wanted = self.sink.as_ref().is_some_and(Sink::wants_packets);
        self.packets = wanted.then(|| PacketDump::new(*model));
    }

    pub fn piece(&mut self, offset: u64, bytes: &[u8]) {
        if let (Some(packets), Some(sink)) = (&mut self.packets, &self.sink) {
            packets.push(offset, bytes, &mut |line| sink.give(Item::Packet(line)));
        }
    }

    pub fn end(&mut self) {
        if let (Some(packets), Some(sink)) = (&mut self.packets, &self.sink) {
            packets.finish(&mut |line| sink.give(Item::Packet(line)));
        }
    }

    #[inline]
    pub fn record(&self, record: &Record, tid: Option<i32>, time: Option<u64>) {
        if let Some(sink) = &self.sink {
            let fields = RecordFields::new(record, &self.model);
            sink.give(Item::Record(Box::new(RecordFields { cpu: self.cpu, tid, time_ns: time, ..fields })));
        }
    }

    pub fn give(&self, item: Item) {
        if let Some(sink) = &self.sink {
            sink.give(item);
        }
    }
}

/// Adds records up by epoch.
struct Adder<'a> {
    feeder: Feeder,
    adding: Adding<'a>,
    printer: Printer,
    owners: Vec<(Epoch, u8)>,
    owner_ids: FxHashMap<(Epoch, u8), u32>,
    last: Option<((Epoch, u8), Owner)>,
}

impl<'a> Adder<'a> {
    fn new(options: &'a ReadOptions, feeder: Feeder) -> Adder<'a> {
        Adder {
            feeder,
            adding: Adding::new(&options.spe.groups),
            printer: Printer::new(options.spe.sink.clone()),
            owners: Vec::new(),
            owner_ids: FxHashMap::default(),
            last: None,
        }
    }

    #[inline]
    fn owner(&mut self, key: (Epoch, u8)) -> Owner {
        match self.last {
            Some((last, owner)) if last == key => owner,
            _ => self.other_owner(key),
        }
    }

    fn other_owner(&mut self, key: (Epoch, u8)) -> Owner {
        let next = self.owners.len() as u32;
        let number = *self.owner_ids.entry(key).or_insert(next);
        if number == next {
            self.owners.push(key);
        }
        self.last = Some((key, Owner(number)));
        Owner(number)
    }
}

impl Consumer for Adder<'_> {
    fn queue(&mut self, first: &Piece, model: &Cpu) {
        self.feeder.set_cpu(*model);
        self.printer.begin(model, first.cpu);
    }

    fn piece(&mut self, offset: u64, bytes: &[u8]) {
        self.printer.piece(offset, bytes);
    }

    fn end(&mut self) {
        self.printer.end();
    }

    #[inline]
    fn record(&mut self, record: &Record, who: &Who) {
        if self.adding.wants(record) {
            self.printer.record(record, who.tid, who.time);
            let owner = self.owner((who.epoch, record.exception_level()));
            self.feeder.add(owner, record);
        }
    }
}

/// Looks the addresses of all owners up.
fn look_up_all(
    collector: Collector,
    owners: &[(Epoch, u8)],
    timeline: &mut Timeline,
    stacks: &mut StackTable,
) -> Vec<SpeRow> {
    let epoch_of = |owner: Owner| owners.get(owner.0 as usize).copied();
    let mut order: Vec<_> = (0..owners.len() as u32).map(Owner).collect();
    order.sort_by_key(|&owner| epoch_of(owner).map(|(epoch, level)| (epoch.order(), level)));
    let mut ranks = vec![0; owners.len()];
    for (owner, rank) in order.into_iter().zip(0..) {
        if let Some(known) = ranks.get_mut(owner.0 as usize) {
            *known = rank;
        }
    }
    let places = collector.finish_ordered(|owner| ranks.get(owner.0 as usize).copied().unwrap_or(0));
    let sorted =
        places.filter_map(|place| epoch_of(place.owner).map(|(epoch, level)| (epoch, place.pc, level, place.stats)));
    let mut rows = Rows::default();
    look_up(timeline, sorted, |thread, module, address, stats| {
        let stack = stacks.intern(StackNode { parent: None, module, address });
        rows.add(stack, thread, stats);
    });
    rows.into_rows()
}

/// What to do better next time, where the records show a cause.
fn advice(recording: &SpeRecording, totals: &Totals) -> Vec<String> {
    let any = totals.counts.records > 0;
    let filtered = recording.filtered;
    let memory = totals.classes & 2 != 0;
    let all = [
        (recording.collision > 0, "samples collided: raise the interval (-c)"),
        (
            recording.truncated > 0 || recording.partial > 0,
            "data was lost: enlarge the AUX buffer (-m ,SIZE) or raise the interval (-c)",
        ),
        (
            any && !totals.has(CONTEXT),
            "records do not name their threads: record as root on a kernel with CONFIG_PID_IN_CONTEXTIDR",
        ),
        (any && !totals.has(TIME), "records have no times: record with ts_enable=1"),
        (
            any && totals.levels & !1 == 0,
            "no kernel addresses: record as root and without the modifier u to see the kernel",
        ),
        (
            memory && !totals.has(SOURCE),
            "no data sources: the processor does not tell them, so levels follow from the events",
        ),
        (any && !memory && filtered, "no loads or stores: a filter kept them out, so nothing is known of caches"),
        (
            any && totals.classes & 4 == 0 && filtered,
            "no branches: a filter kept them out, so nothing is known of mispredictions",
        ),
    ];
    all.into_iter().filter(|(given, _)| *given).map(|(_, text)| text.to_owned()).collect()
}
