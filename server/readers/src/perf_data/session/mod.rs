//! One recording being read: takes records in the order of the file and makes the profile.

mod records;
mod report;
mod samples;

use super::attr::{Attr, sample_type as bit};
use super::blocks::{Prints, Progress, Record, Visit, payload_size};
use super::branches::{self, metric};
use super::bytes::Order;
use super::compressed::Inflater;
use super::deferred::Deferred;
use super::describe::{self, Known, RecordFields};
use super::features::Features;
use super::folding::Folding;
use super::header::EventHeader;
use super::layout::Layout;
use super::off_cpu;
use super::queue::Queue;
use super::scanner::Scanner;
use super::state::record_type as kind;
use super::trace::{self, Decoding, FileBytes, PieceBytes, Timeline, Trace};
use super::world::World;
use super::{PerfDataError, limit};
use crate::ReadOptions;
use crate::spe::Decoded;
use heatline_profile::{Event, EventId, Monitor, Problems, Profile, ProfileKind};
use report::Counts;
use rustc_hash::{FxHashMap, FxHashSet};
use samples::Batch;

/// One event of the recording.
struct EventInfo {
    attr: Attr,
    name: Option<String>,
    /// Whether its values came in samples that carry chains, be they those of the leader of its group.
    has_stacks: bool,
    /// Whether its samples are taken when a thread is about to leave its processor.
    is_switch: bool,
}

impl EventInfo {
    fn event(&self) -> Event {
        let event = self.attr.event(self.name.as_deref());
        Event { has_stacks: event.has_stacks || self.has_stacks, ..event }
    }
}

/// Whether there are chains, and all of them are what frame pointers lead to.
fn follow_frame_pointers(events: &[EventInfo]) -> bool {
    let mut with_chains = events.iter().filter(|event| event.event().has_stacks).peekable();
    with_chains.peek().is_some() && with_chains.all(|event| event.attr.follows_frame_pointers())
}

/// A recording being read.
pub(crate) struct Session<'a> {
    order: Order,
    options: &'a ReadOptions,
    pub features: Features,
    pub problems: Problems,
    events: Vec<EventInfo>,
    layouts: Vec<Layout>,
    /// Of so many events the scanner knows how their samples look.
    scanned_events: usize,
    event_ids: FxHashMap<u64, u32>,
    /// The id met last and its event: mostly the next one's too.
    last_id: Option<(u64, u32)>,
    /// The last values of counters, by id and, where threads inherit them, by thread.
    counters: FxHashMap<(u64, i32), u64>,
    deferred: Deferred,
    /// The decompressor; away while its records are read.
    inflater: Option<Box<Inflater>>,
    /// Whether round markers mean what they say; in directories each file has its own.
    in_rounds: bool,
    queue: Queue,
    folding: Folding,
    span: Option<(u64, u64)>,
    latest: u64,
    trace: Trace,
    /// Whether the records come as `perf record -o -` writes them, without header sections.
    pub piped: bool,
    /// The file of the input that is being read; `None` if it cannot be read again.
    member: Option<usize>,
    counts: Counts,
    /// Whether an event's samples tell of switches.
    has_switch_samples: bool,
    /// Threads that a sample said to leave and none to be back yet, in the order of the file.
    away: FxHashSet<i32>,
}

impl<'a> Session<'a> {
    pub fn new(order: Order, options: &'a ReadOptions) -> Self {
        Session {
            order,
            options,
            features: Features { sink: options.records.clone(), ..Features::default() },
            problems: Problems::new(),
            events: Vec::new(),
            layouts: Vec::new(),
            scanned_events: 0,
            event_ids: FxHashMap::default(),
            last_id: None,
            counters: FxHashMap::default(),
            deferred: Deferred::default(),
            inflater: Some(Box::default()),
            in_rounds: true,
            queue: Queue::default(),
            folding: Folding::new(),
            span: None,
            latest: 0,
            trace: Trace::default(),
            piped: false,
            member: Some(0),
            counts: Counts::default(),
            has_switch_samples: false,
            away: FxHashSet::default(),
        }
    }

    /// A session whose byte order comes with [`Self::begin`].
    pub fn empty(options: &'a ReadOptions) -> Self {
        Session::new(Order::Little, options)
    }

    pub fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    /// Takes over the events of a file's header.
    pub fn begin(&mut self, order: Order, events: Vec<EventHeader>) {
        self.order = order;
        for event in events {
            self.add_event(event.attr, event.ids);
        }
    }

    /// The records that follow are of another file of the input, or, with `None`, of one that cannot be read again.
    pub fn set_member(&mut self, member: Option<usize>) {
        self.member = member;
    }

    /// Round markers mean nothing from now on; [`Self::complete_to`] says what is complete.
    pub fn leave_rounds(&mut self) {
        self.in_rounds = false;
    }

    /// All records up to `time` have come.
    pub fn complete_to(&mut self, time: u64) {
        self.queue.complete_to(time, &mut self.folding);
    }

    /// The latest time of a record since this was last asked; 0 if none had a time.
    pub fn take_latest(&mut self) -> u64 {
        std::mem::take(&mut self.latest)
    }

    /// Adds an event with the ids of its counters.
    pub fn add_event(&mut self, attr: Attr, ids: impl IntoIterator<Item = u64>) {
        if self.events.len() >= limit::EVENTS {
            self.problems.add("too-many-events", 1, None, format!("more than {} events are ignored", limit::EVENTS));
            return;
        }
        let number = self.events.len() as u32;
        self.event_ids.extend(ids.into_iter().map(|id| (id, number)));
        self.layouts.push(Layout::new(&attr));
        self.events.push(EventInfo { attr, name: None, has_stacks: false, is_switch: false });
        self.find_switch_events();
        self.last_id = None;
    }

    /// Finds the scheduler's tracepoint among the events, by the names that are known so far.
    fn find_switch_events(&mut self) {
        for (place, event) in self.events.iter_mut().enumerate() {
            let described = self.features.events.get(place).map(|described| described.name.as_str());
            let name = event.name.as_deref().or(described);
            event.is_switch |= name.is_some_and(|name| name == off_cpu::TRACEPOINT);
            self.has_switch_samples |= event.is_switch;
        }
    }

    /// The event that an id belongs to. With one event, or without ids, it is the first, as for perf.
    #[inline]
    fn event_of_id(&mut self, id: Option<u64>) -> Option<u32> {
        if let Some((last, event)) = self.last_id
            && id == Some(last)
        {
            return Some(event);
        }
        if self.events.len() <= 1 {
            return (self.events.len() == 1).then_some(0);
        }
        let id = id.filter(|&id| id != 0);
        let Some(id) = id else { return Some(0) };
        let event = *self.event_ids.get(&id)?;
        self.last_id = Some((id, event));
        Some(event)
    }

    /// Makes the profile of all that was read. `bytes` gives the trace data, if there is any.
    pub fn finish(mut self, bytes: &mut dyn FileBytes, monitor: &dyn Monitor) -> Result<Profile, PerfDataError> {
        self.give_up_deferred(true);
        if let Some(left) = self.inflater.as_ref().map(|inflater| inflater.left()).filter(|&left| left > 0) {
            let message = format!("the compressed records end with {left} bytes of a record whose rest is missing");
            self.problems.add("truncated", 1, None, message);
        }
        self.queue.finish(&mut self.folding);
        self.folding.settle();
        if self.counts.without_cpu > 0 {
            return Err(PerfDataError::NoCpus);
        }
        if self.counts.without_time > 0 {
            return Err(PerfDataError::NoTimes);
        }
        self.name_events();
        let spe = if self.trace.is_present() { self.decode_trace(bytes, monitor)? } else { None };
        self.note_counts();
        self.note_missing_binaries();
        self.note_shallow_copies();
        let mut profile = Profile::new(ProfileKind::PerfData);
        profile.events = self.events.iter().map(EventInfo::event).collect();
        let first_metric = profile.events.len() as u32;
        profile.arcs = self.folding.take_arcs(EventId(first_metric + metric::TAKEN - metric::FIRST));
        let accesses = self.folding.take_accesses(self.access_settings());
        let mut off_cpu = self.folding.off_cpu.take();
        let latest = self.span.map_or(0, |(_, last)| last);
        let unknown = off_cpu.as_mut().map(|off_cpu| off_cpu.take_unknown(latest)).unwrap_or_default();
        let unknown: Vec<_> = unknown
            .into_iter()
            .map(|(tid, tally)| {
                let (stack, thread) = self.folding.unknown_stack(tid);
                (stack, thread, tally)
            })
            .collect();
        let Folding { world, mut stacks, fold, .. } = self.folding;
        stacks.seal();
        profile.stacks = stacks;
        profile.rows = fold.into_rows();
        if profile.rows.iter().any(|row| row.event.0 >= metric::FIRST) {
            profile.events.extend((0..metric::COUNT as u32).map(|metric| branches::event(metric::FIRST + metric)));
            for row in profile.rows.iter_mut().filter(|row| row.event.0 >= metric::FIRST) {
                row.event.0 = row.event.0 - metric::FIRST + first_metric;
            }
        }
        if let Some((first, last)) = spe.as_ref().and_then(|spe| spe.span) {
            let (earliest, latest) = self.span.unwrap_or((first, last));
            self.span = Some((earliest.min(first), latest.max(last)));
        }
        if let Some(off_cpu) = off_cpu {
            off_cpu.add_to(&mut profile, unknown, self.has_switch_samples);
        }
        profile.spe = spe.map(|spe| spe.table).or(accesses);
        profile.threads = world.threads;
        profile.modules = world.modules.finish(&self.features.build_ids, &mut self.problems);
        let has_ids = profile.modules.iter().any(|module| module.identity.is_some());
        if !self.piped || has_ids {
            report::note_missing_build_ids(&profile, &self.features.build_ids, &mut self.problems);
        }
        profile.recording = self.features.into_recording();
        profile.recording.span = profile.recording.span.or(self.span);
        profile.recording.by_frame_pointers = follow_frame_pointers(&self.events);
        profile.recording.duration_ns = self.span.map(|(first, last)| last - first);
        profile.problems = self.problems;
        crate::spe::add_events(&mut profile);
        Ok(profile)
    }

    /// The events that sampled memory accesses, and which of their fields they recorded.
    fn access_settings(&self) -> Vec<String> {
        let fields = [
            (bit::DATA_SRC, "data source"),
            (bit::WEIGHT | bit::WEIGHT_STRUCT, "latency"),
            (bit::ADDR, "data address"),
            (bit::PHYS_ADDR, "physical address"),
        ];
        let describe = |event: &EventInfo| {
            let has = |&&(mask, _): &&(u64, &str)| event.attr.sample_type & mask != 0;
            let recorded: Vec<&str> = fields.iter().filter(has).map(|field| field.1).collect();
            format!("{} with {}", event.event().name, recorded.join(", "))
        };
        self.events.iter().filter(|event| event.attr.has_accesses()).map(describe).collect()
    }

    fn decode_trace(
        &mut self,
        files: &mut dyn FileBytes,
        monitor: &dyn Monitor,
    ) -> Result<Option<Decoded>, PerfDataError> {
        let mut trace = std::mem::take(&mut self.trace);
        trace.events = self.events.iter().map(|event| (event.name.clone(), event.attr.clone())).collect();
        trace.cpu_id = self.features.cpu_id.clone();
        trace.units = std::mem::take(&mut self.features.units);
        let spool = std::mem::take(&mut trace.spool);
        let changes = self.folding.history.take().unwrap_or_default();
        let mut timeline = Timeline::new(std::mem::replace(&mut self.folding.world, World::new()), changes);
        timeline.rewind();
        let table = trace::decode(Decoding {
            trace: &trace,
            options: self.options,
            stacks: &mut self.folding.stacks,
            bytes: &mut PieceBytes { spool: &spool, files },
            timeline: &mut timeline,
            problems: &mut self.problems,
            monitor,
        })?;
        self.folding.world = timeline.into_world();
        Ok(table)
    }

    fn describe(&self, record: &Record<'_>) -> RecordFields {
        let first = self.layouts.first();
        let id = first.and_then(|layout| match record.kind {
            kind::SAMPLE => layout.sample_id(record.body, self.order),
            _ => layout.trailer_id(record.body, self.order),
        });
        let by_id = id.and_then(|id| self.event_ids.get(&id)).map_or(0, |&event| event as usize);
        let event = self.events.get(by_id);
        let described = self.features.events.get(by_id).map(|described| described.name.clone());
        let name = event.and_then(|event| event.name.clone()).or(described);
        describe::describe(
            record,
            &Known {
                attr: event.map(|event| &event.attr),
                layout: self.layouts.get(by_id),
                name: name.or_else(|| event.map(|event| event.event().name)),
                order: self.order,
            },
        )
    }

    /// Names from the event-description section go to the events with the same ids, or else the same place.
    fn name_events(&mut self) {
        for (place, described) in self.features.events.iter().enumerate() {
            let by_id = described.ids.first().and_then(|id| self.event_ids.get(id)).map(|&event| event as usize);
            if let Some(event) = self.events.get_mut(by_id.unwrap_or(place)) {
                event.name = Some(described.name.clone());
            }
        }
    }
}

impl Visit for Session<'_> {
    fn payload(&mut self, bytes: &[u8]) {
        self.trace.spool(bytes, &mut self.problems);
    }

    fn scanner(&mut self) -> Option<Scanner> {
        self.scanned_events = self.layouts.len();
        if self.options.without_callers {
            // Chains of one address are not worth another thread.
            return None;
        }
        let layout = self.layouts.first()?;
        let same = self.layouts.iter().all(|other| other.has_chains_where(layout));
        let plain = layout.has_chains() && !layout.has_readings() && !layout.has_stack_dump();
        (same && plain).then(|| Scanner::new(layout.clone(), self.order))
    }

    fn block(&mut self, bytes: &[u8], offset: u64, prints: &mut Prints<'_>) -> Result<Progress, PerfDataError> {
        let mut batch = Batch::default();
        let mut progress = Progress::default();
        while progress.payload == 0 {
            let rest = bytes.get(progress.used..).unwrap_or(&[]);
            match Record::split(rest, offset + progress.used as u64, self.order) {
                Ok(Some((record, size))) => {
                    if let Some(sink) = &self.options.records {
                        sink.take(&self.describe(&record));
                    }
                    if record.kind == kind::SAMPLE {
                        self.sample(record, prints.next().copied(), &mut batch);
                    } else {
                        self.drain(&mut batch);
                        self.record(record)?;
                        progress.payload = payload_size(&record, self.order);
                    }
                    progress.used += size;
                }
                Ok(None) => break,
                Err(size) => {
                    progress.bad_size = Some(size);
                    break;
                }
            }
        }
        self.drain(&mut batch);
        Ok(progress)
    }
}
