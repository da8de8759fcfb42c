//! Samples on their way to the queue.

use super::Session;
use crate::perf_data::accesses::Access;
use crate::perf_data::attr::sample_type;
use crate::perf_data::blocks::Record;
use crate::perf_data::branches::{branches, metric};
use crate::perf_data::bytes::{Cursor, Order};
use crate::perf_data::chains::{ChainId, ChainPrint, Chains, Fingerprint, Key, fingerprint};
use crate::perf_data::deferred::Held;
use crate::perf_data::fields::Fields;
use crate::perf_data::layout::{Head, Layout, Reading};
use crate::perf_data::off_cpu;
use crate::perf_data::queue::Sink;
use crate::perf_data::state::misc;
use crate::perf_data::unwind::{Dump, Machine, Unwinding};
use crate::perf_data::world::{FIRST_MARKER, marker};

/// How many samples' chains are looked up together.
const BATCH: usize = 64;

/// Samples whose chains are looked up together.
#[derive(Default)]
pub(super) struct Batch<'b>(Vec<Batched<'b>>);

/// A sample on its way to the queue.
struct Batched<'b> {
    print: Fingerprint,
    key: Key,
    chain: &'b [u8],
    time: Option<u64>,
    weight: u64,
}

impl Session<'_> {
    #[inline]
    pub(super) fn sample<'b>(&mut self, record: Record<'b>, print: Option<ChainPrint>, batch: &mut Batch<'b>) {
        let id = self.layouts.first().and_then(|layout| layout.sample_id(record.body, self.order));
        let Some(event) = self.event_of_id(id) else {
            self.counts.unknown_ids += 1;
            return;
        };
        if self.take_sample(event, record, print, batch).is_none() {
            self.count_short(record.offset);
        }
    }

    /// `None` if the record is too short.
    #[inline]
    fn take_sample<'b>(
        &mut self,
        event: u32,
        record: Record<'b>,
        print: Option<ChainPrint>,
        batch: &mut Batch<'b>,
    ) -> Option<()> {
        let layout = self.layouts.get(event as usize)?;
        let head = layout.head(record.body, self.order)?;
        if layout.has_readings() {
            let (readings, chain, _) = layout.readings(record.body, self.order)?;
            self.take_readings(event, &head, record.misc, &readings, chain, batch);
            return Some(());
        }
        let (chain, rest) = layout.chain(record.body, self.order)?;
        let (has_stack_dump, has_branches) = (layout.has_stack_dump(), layout.has_branches());
        let has_accesses = layout.has_accesses();
        if self.passes(&head) {
            if has_accesses {
                self.take_access(event, &head, record.misc, rest)?;
            }
            if has_branches && let Some(chain) = self.take_branches(event, &head, chain, rest, batch)? {
                self.drain(batch);
                self.push_bytes(event, &head, record.misc, &chain);
                return Some(());
            }
            if has_stack_dump && !(self.options.without_callers && head.ip.is_some()) {
                return self.keep_dump(event, &head, record.misc, chain, rest);
            }
            let print = print.filter(|_| (event as usize) < self.scanned_events);
            self.push(batch, event, &head, record.misc, head.period, (chain, print));
            if self.has_switch_samples {
                self.take_switch(event, &head, rest, batch);
            }
        }
        Some(())
    }

    /// What a sample tells of threads that leave processors and come back: one of the scheduler's tracepoint both, any
    /// other that its thread is back.
    fn take_switch<'b>(&mut self, event: u32, head: &Head, rest: &'b [u8], batch: &mut Batch<'b>) {
        let Some(time) = head.time else { return };
        let Some(info) = self.events.get(event as usize) else { return };
        if !info.is_switch {
            if self.away.remove(&head.tid) {
                self.push_switch(time, head.tid, false);
            }
            return;
        }
        let raw = Fields::parse(&info.attr, rest, self.order).and_then(|fields| fields.raw);
        let next = raw.and_then(|raw| off_cpu::next_thread(raw, self.order));
        // The sample first: its stack is the one that is left.
        self.drain(batch);
        self.away.insert(head.tid);
        self.push_switch(time, head.tid, true);
        if let Some(next) = next {
            self.away.remove(&next);
            self.push_switch(time, next, false);
        }
    }

    /// Counts what a sample tells of the data it accessed.
    fn take_access(&mut self, event: u32, head: &Head, misc: u16, rest: &[u8]) -> Option<()> {
        let order = self.order;
        let attr = &self.events.get(event as usize)?.attr;
        let fields = Fields::parse(attr, rest, order)?;
        let is_struct = attr.sample_type & sample_type::WEIGHT_STRUCT != 0;
        if let (Some(access), Some(ip)) = (Access::new(fields.data_source, fields.weight, is_struct), head.ip) {
            let mode = (misc & misc::MODE) as u8;
            let key = Key { event: metric::ACCESS, pid: head.pid, tid: head.tid, mode, ip: None };
            let words = [ip, access.source.0, access.latency.into()].map(|word| order.bytes(word));
            let chain = words.as_flattened();
            self.look_up(Batched { print: fingerprint(&key, chain), key, chain, time: head.time, weight: 1 });
        }
        Some(())
    }

    /// Counts the branches of a sample; or, if they are its call stack, gives the chain that they complete.
    fn take_branches<'b>(
        &mut self,
        event: u32,
        head: &Head,
        chain: &'b [u8],
        rest: &'b [u8],
        batch: &mut Batch<'b>,
    ) -> Option<Option<Vec<u8>>> {
        let order = self.order;
        let attr = &self.events.get(event as usize)?.attr;
        let Some(recorded) = Fields::parse(attr, rest, order)?.branches else { return Some(None) };
        if attr.has_call_stack_branches() {
            return Some(Some(chain_of_branches(chain, recorded.entries, order)));
        }
        for (branch, entry) in branches(recorded.entries, order).zip(recorded.entries.as_chunks::<24>().0) {
            let ends = entry.get(..16)?;
            let counts = [
                (metric::TAKEN, 1),
                (metric::MISPREDICTED, branch.mispredicted.into()),
                (metric::CYCLES, branch.cycles),
            ];
            for (metric, weight) in counts.into_iter().filter(|&(_, weight)| weight > 0) {
                let key = Key { event: metric, pid: head.pid, tid: head.tid, mode: 0, ip: None };
                if batch.0.len() >= BATCH {
                    self.drain(batch);
                }
                batch.0.push(Batched { print: fingerprint(&key, ends), key, chain: ends, time: head.time, weight });
            }
        }
        Some(None)
    }

    /// A sample whose chain was put together.
    fn push_bytes(&mut self, event: u32, head: &Head, misc: u16, chain: &[u8]) {
        let key = Key { event, pid: head.pid, tid: head.tid, mode: (misc & misc::MODE) as u8, ip: head.ip };
        let print = fingerprint(&key, chain);
        self.look_up(Batched { print, key, chain, time: head.time, weight: head.period });
    }

    /// A sample with registers and stack waits until the mappings of its time are known.
    fn keep_dump(&mut self, event: u32, head: &Head, misc: u16, chain: &[u8], rest: &[u8]) -> Option<()> {
        let order = self.order;
        let attr = &self.events.get(event as usize)?.attr;
        let fields = Fields::parse(attr, rest, order)?;
        let key = Key { event, pid: head.pid, tid: head.tid, mode: (misc & misc::MODE) as u8, ip: head.ip };
        let machine = Machine::guess(self.features.recording.arch.as_deref(), attr.user_registers);
        let chain_words = || chain.as_chunks::<8>().0.iter().map(|&word| order.u64(word)).collect();
        let dump = match (fields.user_registers, fields.user_stack, machine) {
            (Some(registers), Some(stack), Some(machine)) if registers.abi == 2 => Dump {
                key,
                chain: chain_words(),
                machine,
                registers: registers.values.as_chunks::<8>().0.iter().map(|&value| order.u64(value)).collect(),
                mask: registers.mask,
                stack: stack.bytes.to_vec(),
            },
            _ => {
                self.counts.not_walked += u64::from(fields.user_registers.is_some());
                let item =
                    Batched { print: fingerprint(&key, chain), key, chain, time: head.time, weight: head.period };
                self.look_up(item);
                return Some(());
            }
        };
        self.begin_unwinding();
        let chain = self.folding.keep(dump, order);
        self.enqueue(chain, head.time, head.period);
        Some(())
    }

    fn begin_unwinding(&mut self) {
        match &self.options.binaries {
            Some(binaries) if self.folding.unwinding.is_none() => {
                let build_ids = self.features.build_ids.clone();
                self.folding.unwinding = Some(Unwinding::new(binaries.clone(), self.order, build_ids));
            }
            Some(_) => {}
            None => self.counts.not_walked += 1,
        }
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
                self.push(batch, event, head, misc, weight, (chain, None));
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
        if let Some(times) = &self.options.time {
            self.counts.without_time += u64::from(head.time.is_none());
            if head.time.is_none_or(|time| !times.contains(time)) {
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
    fn push<'b>(
        &mut self,
        batch: &mut Batch<'b>,
        event: u32,
        head: &Head,
        misc: u16,
        weight: u64,
        (chain, print): (&'b [u8], Option<ChainPrint>),
    ) {
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
        let chain = if self.options.without_callers { self.innermost(chain) } else { chain };
        let print = print.unwrap_or_else(|| ChainPrint::of(chain)).with(&key);
        batch.0.push(Batched { print, key, chain, time: head.time, weight });
    }

    /// The chain up to its innermost address, with the markers before it.
    fn innermost<'b>(&self, chain: &'b [u8]) -> &'b [u8] {
        let words = chain.as_chunks::<8>().0;
        let first = words.iter().position(|word| self.order.u64(*word) < FIRST_MARKER);
        words.get(..first.map_or(0, |first| first + 1)).unwrap_or_default().as_flattened()
    }

    /// The front and the cookie of a chain whose user part comes later.
    #[inline]
    fn split_deferred<'b>(&self, chain: &'b [u8]) -> Option<(&'b [u8], u64)> {
        let (front, [marker, cookie]) = chain.as_chunks::<8>().0.split_last_chunk::<2>()?;
        (self.order.u64(*marker) == marker::USER_DEFERRED).then(|| (front.as_flattened(), self.order.u64(*cookie)))
    }

    /// Looks the chains of a batch up. Doing so side by side hides how long memory takes to answer.
    pub(super) fn drain(&mut self, batch: &mut Batch<'_>) {
        // A trace is announced before the first sample.
        if !batch.0.is_empty() && !self.trace.is_present() {
            self.folding.history = None;
        }
        if self.folding.chains.is_full() {
            self.folding.settle();
            self.folding.chains.retain(self.queue.chains());
        }
        let mut peeked = [0; BATCH];
        for (place, item) in peeked.iter_mut().zip(&batch.0) {
            *place = self.folding.chains.peek(item.print);
        }
        for (item, peeked) in batch.0.drain(..).zip(peeked) {
            match Chains::known(item.print, peeked) {
                Some(chain) => self.enqueue(chain, item.time, item.weight),
                None => self.look_up(item),
            }
        }
    }

    #[inline]
    fn look_up(&mut self, item: Batched<'_>) {
        let chain = self.folding.chains.intern(item.print, &item.key, item.chain, self.order);
        self.enqueue(chain, item.time, item.weight);
    }

    #[inline]
    fn enqueue(&mut self, chain: ChainId, time: Option<u64>, weight: u64) {
        match time {
            Some(time) => self.queue.push_sample(time, chain, weight, &mut self.folding),
            None => self.folding.sample(chain, weight),
        }
    }

    /// The user part of chains that were recorded without.
    pub(super) fn deferred_chain(&mut self, record: Record<'_>) {
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

    pub(super) fn give_up_deferred(&mut self, all: bool) {
        for held in self.deferred.give_up(all) {
            self.counts.unfinished_chains += 1;
            self.push_held(&held);
        }
    }
}

/// The chain of a sample whose call stack the processor kept as branches: the recorded kernel part, the interrupted
/// instruction, and the calls that lead there, which the branches left from.
fn chain_of_branches(chain: &[u8], entries: &[u8], order: Order) -> Vec<u8> {
    let words: Vec<u64> = chain.as_chunks::<8>().0.iter().map(|&word| order.u64(word)).collect();
    let user = words.iter().position(|&word| word == marker::USER);
    let kept = user.map_or(words.len(), |at| (at + 2).min(words.len()));
    let mut whole: Vec<u64> = words.into_iter().take(kept).collect();
    if user.is_none() {
        whole.push(marker::USER);
    }
    whole.push(marker::CALLS);
    whole.extend(branches(entries, order).map(|branch| branch.from).filter(|&from| from < FIRST_MARKER));
    whole.into_iter().flat_map(|word| order.bytes(word)).collect()
}
