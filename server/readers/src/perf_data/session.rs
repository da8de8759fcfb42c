//! One recording being read: takes records in the order of the file and makes the profile.

use super::attr::Attr;
use super::blocks::{End, Progress, Record, Visit, payload_size};
use super::bytes::{Cursor, Order};
use super::chains::{Fingerprint, Key, fingerprint};
use super::compressed::Inflater;
use super::deferred::{Deferred, Held};
use super::features::{Features, build_id_body};
use super::folding::Folding;
use super::header::Header;
use super::layout::{Head, Layout, Reading};
use super::queue::{Queue, Sink};
use super::state::{Change, misc, record_type as kind};
use super::world::marker;
use super::{PerfDataError, limit};
use crate::ReadOptions;
use heatline_profile::{Event, FileOffset, Problems, Profile, ProfileKind};
use rustc_hash::FxHashMap;

/// One event of the recording.
struct EventInfo {
    attr: Attr,
    name: Option<String>,
    /// Whether its values came in samples that carry chains, be they those of the leader of its group.
    has_stacks: bool,
}

impl EventInfo {
    fn event(&self) -> Event {
        let event = self.attr.event(self.name.as_deref());
        Event { has_stacks: event.has_stacks || self.has_stacks, ..event }
    }
}

/// A recording being read.
pub(crate) struct Session<'a> {
    order: Order,
    options: &'a ReadOptions,
    pub features: Features,
    pub problems: Problems,
    events: Vec<EventInfo>,
    layouts: Vec<Layout>,
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
    counts: Counts,
}

/// How many samples' chains are looked up together.
const BATCH: usize = 64;

/// Samples whose chains are looked up together.
#[derive(Default)]
struct Batch<'b>(Vec<Batched<'b>>);

/// A sample on its way to the queue.
struct Batched<'b> {
    print: Fingerprint,
    key: Key,
    chain: &'b [u8],
    time: Option<u64>,
    weight: u64,
}

/// Problems that are counted without a text each.
#[derive(Default)]
struct Counts {
    unknown_ids: u64,
    short: Option<(u64, u64)>,
    lost: u64,
    lost_samples: u64,
    throttled: u64,
    unfinished_chains: u64,
    without_cpu: u64,
    without_time: u64,
}

impl<'a> Session<'a> {
    pub fn new(order: Order, options: &'a ReadOptions) -> Self {
        Session {
            order,
            options,
            features: Features::default(),
            problems: Problems::new(),
            events: Vec::new(),
            layouts: Vec::new(),
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
            counts: Counts::default(),
        }
    }

    /// A session whose byte order comes with [`Self::begin`].
    pub fn empty(options: &'a ReadOptions) -> Self {
        Session::new(Order::Little, options)
    }

    pub fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    /// Takes over what a file's header says.
    pub fn begin(&mut self, order: Order, header: Header) {
        self.order = order;
        self.features = header.features;
        for event in header.events {
            self.add_event(event.attr, event.ids);
        }
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
        self.events.push(EventInfo { attr, name: None, has_stacks: false });
        self.last_id = None;
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

    #[inline]
    fn sample<'b>(&mut self, record: Record<'b>, batch: &mut Batch<'b>) {
        let id = self.layouts.first().and_then(|layout| layout.sample_id(record.body, self.order));
        let Some(event) = self.event_of_id(id) else {
            self.counts.unknown_ids += 1;
            return;
        };
        if self.take_sample(event, record, batch).is_none() {
            self.count_short(record.offset);
        }
    }

    /// `None` if the record is too short.
    #[inline]
    fn take_sample<'b>(&mut self, event: u32, record: Record<'b>, batch: &mut Batch<'b>) -> Option<()> {
        let layout = self.layouts.get(event as usize)?;
        let head = layout.head(record.body, self.order)?;
        if layout.has_readings() {
            let (readings, chain) = layout.readings(record.body, self.order)?;
            self.take_readings(event, &head, record.misc, &readings, chain, batch);
            return Some(());
        }
        let chain = layout.chain(record.body, self.order)?;
        if self.passes(&head) {
            self.push(batch, event, &head, record.misc, head.period, chain);
        }
        Some(())
    }

    /// Each counter of the sample is a sample of its own, weighing what it counted since it was read last.
    fn take_readings<'b>(
        &mut self,
        event: u32,
        head: &Head,
        misc: u16,
        readings: &[Reading],
        chain: &'b [u8],
        batch: &mut Batch<'b>,
    ) {
        let stacks = self.layouts.get(event as usize).is_some_and(Layout::has_chains);
        let inherits = self.events.get(event as usize).is_some_and(|event| event.attr.inherits());
        let passes = self.passes(head);
        for reading in readings {
            let Some(&event) = reading.id.and_then(|id| self.event_ids.get(&id)) else {
                self.counts.unknown_ids += 1;
                continue;
            };
            let key = (reading.id.unwrap_or(0), if inherits { head.tid } else { 0 });
            let before = self.counters.insert(key, reading.value).unwrap_or(0);
            let weight = reading.value.wrapping_sub(before);
            if weight > 0 && passes {
                if let Some(event) = self.events.get_mut(event as usize) {
                    event.has_stacks |= stacks;
                }
                self.push(batch, event, head, misc, weight, chain);
            }
        }
    }

    #[inline]
    fn passes(&mut self, head: &Head) -> bool {
        if let Some(time) = head.time {
            let (first, last) = self.span.unwrap_or((time, time));
            self.span = Some((first.min(time), last.max(time)));
            self.latest = self.latest.max(time);
        }
        self.passes_filters(head)
    }

    #[inline]
    fn passes_filters(&mut self, head: &Head) -> bool {
        if let Some((first, last)) = self.options.time {
            self.counts.without_time += u64::from(head.time.is_none());
            if head.time.is_none_or(|time| time < first || time > last) {
                return false;
            }
        }
        if let Some(cpus) = &self.options.cpus {
            self.counts.without_cpu += u64::from(head.cpu.is_none());
            return head.cpu.is_some_and(|cpu| cpus.contains(&cpu));
        }
        true
    }

    #[inline]
    fn push<'b>(&mut self, batch: &mut Batch<'b>, event: u32, head: &Head, misc: u16, weight: u64, chain: &'b [u8]) {
        let mode = (misc & misc::MODE) as u8;
        let key = Key { event, pid: head.pid, tid: head.tid, mode, ip: head.ip };
        if let Some((front, cookie)) = self.split_deferred(chain) {
            if let Some(held) = self.deferred.sample(key, head.time, weight, front, cookie) {
                self.push_held(&held);
            }
            self.give_up_deferred(false);
            return;
        }
        if batch.0.len() >= BATCH {
            self.drain(batch);
        }
        batch.0.push(Batched { print: fingerprint(&key, chain), key, chain, time: head.time, weight });
    }

    /// The front and the cookie of a chain whose user part comes later.
    #[inline]
    fn split_deferred<'b>(&self, chain: &'b [u8]) -> Option<(&'b [u8], u64)> {
        let (front, [marker, cookie]) = chain.as_chunks::<8>().0.split_last_chunk::<2>()?;
        (self.order.u64(*marker) == marker::USER_DEFERRED).then(|| (front.as_flattened(), self.order.u64(*cookie)))
    }

    /// Looks the chains of a batch up. Doing so side by side hides how long memory takes to answer.
    fn drain(&mut self, batch: &mut Batch<'_>) {
        if self.folding.chains.is_full() {
            self.folding.settle();
            self.folding.chains.retain(self.queue.chains());
        }
        for item in batch.0.drain(..) {
            self.look_up(item);
        }
    }

    #[inline]
    fn look_up(&mut self, item: Batched<'_>) {
        let chain = self.folding.chains.intern(item.print, &item.key, item.chain, self.order);
        match item.time {
            Some(time) => self.queue.push_sample(time, chain, item.weight, &mut self.folding),
            None => self.folding.sample(chain, item.weight),
        }
    }

    /// A record that is no sample.
    fn record(&mut self, record: Record<'_>) -> Result<(), PerfDataError> {
        match record.kind {
            kind::MMAP | kind::MMAP2 | kind::COMM | kind::FORK | kind::EXIT | kind::KSYMBOL => self.change(record),
            kind::FINISHED_ROUND if self.in_rounds => self.queue.round(&mut self.folding),
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
            let progress = self.block(bytes, record.offset)?;
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

    /// The user part of chains that were recorded without.
    fn deferred_chain(&mut self, record: Record<'_>) {
        let mut cursor = Cursor::new(record.body, self.order);
        let parsed = (|| {
            let (cookie, count) = (cursor.u64()?, usize::try_from(cursor.u64()?).ok()?);
            Some((cookie, cursor.take(count.checked_mul(8)?)?))
        })();
        match parsed {
            Some((cookie, rest)) => {
                for held in self.deferred.rest(cookie, rest) {
                    self.push_held(&held);
                }
            }
            None => self.count_short(record.offset),
        }
    }

    fn push_held(&mut self, held: &Held) {
        let print = fingerprint(&held.key, &held.chain);
        let item = Batched { print, key: held.key, chain: &held.chain, time: held.time, weight: held.weight };
        self.look_up(item);
    }

    fn give_up_deferred(&mut self, all: bool) {
        for held in self.deferred.give_up(all) {
            self.counts.unfinished_chains += 1;
            self.push_held(&held);
        }
    }

    fn change(&mut self, record: Record<'_>) {
        let Some(change) = Change::parse(record.kind, record.misc, record.body, self.order) else {
            self.count_short(record.offset);
            return;
        };
        match self.trailer_time(record.body) {
            Some(time) => {
                self.latest = self.latest.max(time);
                self.queue.push_change(time, change, &mut self.folding);
            }
            None => self.folding.change(change),
        }
    }

    fn trailer_time(&mut self, body: &[u8]) -> Option<u64> {
        let id = self.layouts.first()?.trailer_id(body, self.order);
        let event = self.event_of_id(id).unwrap_or(0);
        self.layouts.get(event as usize)?.trailer_time(body, self.order)
    }

    fn count_short(&mut self, offset: u64) {
        let (count, first) = self.counts.short.unwrap_or((0, offset));
        self.counts.short = Some((count + 1, first));
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
            kind::HEADER_ATTR => self.header_attr(body),
            kind::HEADER_FEATURE => self.header_feature(body),
            kind::EVENT_UPDATE => self.event_update(body),
            kind::BUILD_ID => {
                self.features.build_ids.extend(build_id_body(body, record.misc));
                Some(())
            }
            known if is_harmless(known) => Some(()),
            unknown => {
                let message = format!("records of type {unknown} are unknown and were skipped");
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

    fn header_feature(&mut self, body: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(body, self.order);
        let number = u32::try_from(cursor.u64()?).ok()?;
        self.features.section(number, cursor.rest(), self.order)
    }

    fn event_update(&mut self, body: &[u8]) -> Option<()> {
        /// The kind of update that brings the name.
        const NAME: u64 = 2;
        let mut cursor = Cursor::new(body, self.order);
        let (update, id) = (cursor.u64()?, cursor.u64()?);
        if update == NAME {
            let event = self.event_of_id(Some(id))?;
            self.events.get_mut(event as usize)?.name = Some(super::bytes::text(cursor.rest()));
        }
        Some(())
    }

    /// Notes how the records ended.
    pub fn ended(&mut self, end: End, unclosed: bool) {
        match end {
            End::Complete if unclosed => self.problems.add(
                "unclosed",
                1,
                None,
                "the recorder did not finish the file, so it lacks names of events and identities of binaries; \
                 end perf record with Ctrl-C and wait for it",
            ),
            End::Complete => {}
            End::Cut { offset } => self.problems.add(
                "truncated",
                1,
                Some(FileOffset(offset)),
                "the file ends in the middle of its records; what comes before is shown, record or copy it anew for \
                 the rest",
            ),
            End::BadSize { offset, size } => self.problems.add(
                "damaged-record",
                1,
                Some(FileOffset(offset)),
                format!(
                    "expected a record of at least 8 bytes, found size {size}; what comes before is shown, record or \
                     copy the file anew for the rest"
                ),
            ),
        }
    }

    /// Makes the profile of all that was read.
    pub fn finish(mut self) -> Result<Profile, PerfDataError> {
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
        self.note_counts();
        self.name_events();
        let mut profile = Profile::new(ProfileKind::PerfData);
        profile.events = self.events.iter().map(EventInfo::event).collect();
        let Folding { world, mut stacks, fold, .. } = self.folding;
        stacks.seal();
        profile.stacks = stacks;
        profile.rows = fold.into_rows();
        profile.threads = world.threads;
        profile.modules = world.modules.finish(&self.features.build_ids, &mut self.problems);
        profile.recording = self.features.into_recording();
        profile.recording.duration_ns = self.span.map(|(first, last)| last - first);
        profile.problems = self.problems;
        Ok(profile)
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

    fn note_counts(&mut self) {
        let world = &self.folding.world;
        let (short, first_short) = self.counts.short.map_or((0, None), |(count, at)| (count, Some(FileOffset(at))));
        let notes: [(&str, u64, Option<FileOffset>, &str); 9] = [
            (
                "unfinished-chains",
                self.counts.unfinished_chains,
                None,
                "samples were recorded without the user part of their stacks, and it never came; they show the kernel only",
            ),
            (
                "lost-samples",
                self.counts.lost.saturating_add(self.counts.lost_samples),
                None,
                "the recorder could not keep up and lost records; record with larger buffers (-m) or less often (-F)",
            ),
            (
                "throttled",
                self.counts.throttled,
                None,
                "the kernel held back an event that came too often; record less often (-F) or with a larger period (-c)",
            ),
            ("damaged-record", short, first_short, "records are shorter than what they must hold and were skipped"),
            (
                "unknown-event",
                self.counts.unknown_ids,
                None,
                "samples belong to no event that the header names and were skipped",
            ),
            (
                "out-of-order",
                self.queue.late,
                None,
                "changes of mappings or names came later in the file than samples they apply to; some addresses may be \
                 given to the wrong binary",
            ),
            ("unknown-context", world.unknown_markers, None, "markers in call chains are unknown and were skipped"),
            (
                "too-many-mappings",
                world.dropped_mappings,
                None,
                "so many processes inherited mappings that some were dropped; their addresses are not resolved",
            ),
            ("no-events", u64::from(self.events.is_empty()), None, "the file describes no event; record anew"),
        ];
        for (kind, count, offset, message) in notes {
            if count > 0 {
                self.problems.add(kind, count, offset, message);
            }
        }
    }
}

impl Visit for Session<'_> {
    fn block(&mut self, bytes: &[u8], offset: u64) -> Result<Progress, PerfDataError> {
        let mut batch = Batch::default();
        let mut progress = Progress::default();
        while progress.payload == 0 {
            let rest = bytes.get(progress.used..).unwrap_or(&[]);
            match Record::split(rest, offset + progress.used as u64, self.order) {
                Ok(Some((record, size))) => {
                    if record.kind == kind::SAMPLE {
                        self.sample(record, &mut batch);
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
