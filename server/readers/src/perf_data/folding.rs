//! From chains in order to rows: where a sample's cost goes.

use super::accesses::{Access, Accesses, MemorySource};
use super::branches::metric;
use super::bytes::Order;
use super::chains::{Chain, ChainId, Chains, Outcome, fingerprint};
use super::off_cpu::OffCpu;
use super::queue::Sink;
use super::state::{Change, Mode};
use super::unwind::{Dump, Unwinding};
use super::world::{RawFrame, World, marker};
use heatline_profile::{
    BranchArc, CodeAddress, CodePlace, EventId, ModuleAddress, SampleFold, SpeTable, StackId, StackNode, StackTable,
    Tally, ThreadId, Weight,
};
use rustc_hash::FxHashMap;

/// In a chain's number: it is that of a stack to be walked.
pub(crate) const DUMP: u32 = 1 << 31;

/// Bytes of stacks that wait to be walked at most.
const MOST_DUMPED: usize = 16 << 20;

/// In the row of an outcome: it is the place of an arc in [`Places::arcs`].
const ARC: u32 = 1 << 31;

/// In the row of an outcome: it is a number of [`Places::accesses`].
const ACCESS: u32 = 1 << 30;

/// What is counted besides rows.
#[derive(Default)]
struct Places {
    arcs: Vec<Arc>,
    accesses: Accesses,
}

/// A branch that was met, with the row of its origin.
struct Arc {
    from: CodePlace,
    to: CodePlace,
    row: u32,
    taken: u64,
}

/// The rows so far, and what is needed to add to them.
pub(crate) struct Folding {
    pub chains: Chains,
    pub world: World,
    pub stacks: StackTable,
    pub fold: SampleFold,
    /// All changes so far, kept where trace data needs them again.
    pub history: Option<Vec<(u64, Change)>>,
    /// Walks stacks, where binaries are at hand.
    pub unwinding: Option<Unwinding>,
    /// Follows threads off the processors, where the recording tells of that.
    pub off_cpu: Option<Box<OffCpu>>,
    places: Places,
    arc_ids: FxHashMap<(CodePlace, CodePlace, u32), u32>,
    order: Order,
    /// Stacks that wait to be walked, by their numbers in chains with [`DUMP`].
    dumps: Vec<Option<Box<Dump>>>,
    free_dumps: Vec<u32>,
    /// Bytes of them.
    dumped: usize,
    words: Vec<u64>,
    frames: Vec<RawFrame>,
    /// Of the frames, outermost first.
    hashes: Vec<u64>,
    known: KnownStacks,
}

impl Folding {
    pub fn new() -> Folding {
        Folding {
            chains: Chains::default(),
            world: World::new(),
            stacks: StackTable::new(),
            fold: SampleFold::new(),
            history: Some(Vec::new()),
            unwinding: None,
            off_cpu: None,
            places: Places::default(),
            arc_ids: FxHashMap::default(),
            order: Order::Little,
            dumps: Vec::new(),
            free_dumps: Vec::new(),
            dumped: 0,
            words: Vec::new(),
            frames: Vec::new(),
            hashes: Vec::new(),
            known: KnownStacks::default(),
        }
    }

    /// Moves what was counted for all chains to their rows.
    pub fn settle(&mut self) {
        for outcome in self.chains.outcomes() {
            settle(outcome, &mut self.fold, &mut self.places);
        }
    }

    /// Notes where a thread is, for the time that it is off the processors next.
    #[inline(never)]
    fn remember(&mut self, id: ChainId) {
        let Some(chain) = self.chains.get(id).filter(|chain| id.0 & DUMP == 0 && chain.key.event < metric::FIRST)
        else {
            return;
        };
        let tid = chain.key.tid;
        let row = self.chains.outcome(id).and_then(|outcome| self.fold.row(outcome.row as usize));
        if let (Some(off_cpu), Some(row)) = (&mut self.off_cpu, row) {
            off_cpu.sampled(tid, row.stack, row.thread);
        }
    }

    /// A stack of which nothing is known, and the thread it belongs to.
    pub fn unknown_stack(&mut self, tid: i32) -> (StackId, Option<ThreadId>) {
        let task = self.world.task(self.world.pid_of(tid), tid);
        self.frames.clear();
        (self.intern(task), self.world.thread(task))
    }

    /// Keeps a stack until it is its turn to be walked.
    pub fn keep(&mut self, dump: Dump, order: Order) -> ChainId {
        self.order = order;
        self.dumped += dump.bytes();
        let dump = Some(Box::new(dump));
        let number = match self.free_dumps.pop() {
            Some(number) => {
                self.dumps.iter_mut().skip(number as usize).take(1).for_each(|place| *place = None);
                number
            }
            None => {
                self.dumps.push(None);
                self.dumps.len() as u32 - 1
            }
        };
        if let Some(place) = self.dumps.get_mut(number as usize) {
            *place = dump;
        }
        ChainId(number | DUMP)
    }

    /// Walks a stack that was kept; what comes out is a chain like any other.
    fn walk(&mut self, id: ChainId, weight: u64) -> Option<()> {
        let number = id.0 & !DUMP;
        let dump = self.dumps.get_mut(number as usize)?.take()?;
        self.free_dumps.push(number);
        self.dumped = self.dumped.saturating_sub(dump.bytes());
        let task = self.world.task(dump.key.pid, dump.key.tid);
        self.words.clear();
        match &mut self.unwinding {
            Some(unwinding) => unwinding.walk(&dump, task, &self.world, &mut self.words),
            None => self.words.extend(dump.ip()),
        }
        let order = self.order;
        let words = dump.chain.iter().chain(&[marker::USER]).chain(&self.words);
        let bytes: Vec<u8> = words.flat_map(|&word| order.bytes(word)).collect();
        let chain = self.chains.intern(fingerprint(&dump.key, &bytes), &dump.key, &bytes, order);
        self.sample(chain, weight);
        Some(())
    }

    /// Looks a chain up in the present world, if it has changed for it, and counts the sample.
    #[cold]
    #[inline(never)]
    fn look_up(&mut self, id: ChainId, weight: u64) -> Option<()> {
        if id.0 & DUMP != 0 {
            return self.walk(id, weight);
        }
        let now = self.world.now();
        let outcome = self.chains.outcome(id)?;
        if outcome.seen == 0 || !self.world.is_current(outcome.seen, outcome.task) {
            settle(outcome, &mut self.fold, &mut self.places);
            let (task, row) = self.find_row(id)?;
            let outcome = self.chains.outcome(id)?;
            (outcome.task, outcome.row) = (task, row);
        }
        let outcome = self.chains.outcome(id)?;
        outcome.seen = now;
        if !outcome.count(weight) {
            settle(outcome, &mut self.fold, &mut self.places);
            outcome.count(weight);
        }
        Some(())
    }

    /// The task and the row of a chain in the present world.
    fn find_row(&mut self, id: ChainId) -> Option<(u32, u32)> {
        let chain = *self.chains.get(id)?;
        let task = self.world.task(chain.key.pid, chain.key.tid);
        if chain.key.event == metric::ACCESS {
            return Some((task, self.find_access(task, chain)?));
        }
        if chain.key.event >= metric::FIRST {
            return Some((task, self.find_branch_row(task, chain)?));
        }
        let mode = Mode::of_misc(chain.key.mode.into());
        self.world.frames(mode, chain.key.ip, self.chains.words(&chain), &mut self.frames);
        let stack = self.intern(task);
        let thread = self.world.thread(task);
        let row = self.fold.add(stack, EventId(chain.key.event), thread, Tally::default());
        Some((task, u32::try_from(row).ok()?))
    }

    /// The row of a branch: of its origin, or, for taken branches, of the arc.
    fn find_branch_row(&mut self, task: u32, chain: Chain) -> Option<u32> {
        let [from, to] = *self.chains.words(&chain).first_chunk()?;
        let at = |address| RawFrame { mode: Mode::Unknown, exact: true, address };
        self.frames.clear();
        self.frames.push(at(from));
        let stack = self.intern(task);
        let thread = self.world.thread(task);
        let row = u32::try_from(self.fold.add(stack, EventId(chain.key.event), thread, Tally::default())).ok()?;
        if chain.key.event != metric::TAKEN {
            return Some(row);
        }
        let mut place = |address| {
            let (module, code) = self.world.resolve(task, at(address));
            CodePlace { module, address: code.recorded() }
        };
        let (from, to) = (place(from), place(to));
        let next = self.places.arcs.len() as u32;
        let arc = *self.arc_ids.entry((from, to, row)).or_insert(next);
        if arc == next {
            self.places.arcs.push(Arc { from, to, row, taken: 0 });
        }
        Some(arc | ARC)
    }

    /// The number of an access with the mark [`ACCESS`].
    fn find_access(&mut self, task: u32, chain: Chain) -> Option<u32> {
        let [ip, source, latency] = *self.chains.words(&chain).first_chunk()?;
        self.frames.clear();
        self.frames.push(RawFrame { mode: Mode::of_misc(chain.key.mode.into()), exact: true, address: ip });
        let stack = self.intern(task);
        let thread = self.world.thread(task);
        let access = Access { source: MemorySource(source), latency: u16::try_from(latency).ok()? };
        Some(self.places.accesses.cell(stack, thread, access) | ACCESS)
    }

    /// The statistics of all accesses; `None` if there were none.
    pub fn take_accesses(&mut self, settings: Vec<String>) -> Option<SpeTable> {
        std::mem::take(&mut self.places.accesses).into_table(settings)
    }

    /// The arcs of all threads, each once, for the event that they belong to.
    pub fn take_arcs(&mut self, event: EventId) -> Vec<BranchArc> {
        let mut sums: FxHashMap<(CodePlace, CodePlace), usize> = FxHashMap::default();
        let mut all: Vec<BranchArc> = Vec::new();
        for arc in self.places.arcs.drain(..) {
            let at = *sums.entry((arc.from, arc.to)).or_insert(all.len());
            if at == all.len() {
                all.push(BranchArc { event, from: arc.from, to: arc.to, taken: Weight(0) });
            }
            if let Some(sum) = all.get_mut(at) {
                sum.taken += Weight(arc.taken);
            }
        }
        all
    }

    /// The stack of the frames at hand, looked up in the present world of a task.
    fn intern(&mut self, task: u32) -> StackId {
        let [process, changed, kernel_changed] = self.world.context(task);
        let mut hash = u64::from(process) << 32 ^ u64::from(changed) ^ u64::from(kernel_changed).rotate_left(48);
        hash = hash.wrapping_mul(0x2545_f491_4f6c_dd1d);
        self.hashes.clear();
        self.hashes.extend(self.frames.iter().rev().map(|&frame| {
            hash = chain_hash(hash, frame);
            hash
        }));
        let known = |at: usize| Some((at + 1, self.known.get(*self.hashes.get(at)?)?));
        let (from, mut parent) = match (0..self.hashes.len()).rev().find_map(known) {
            Some((from, stack)) => (from, Some(stack)),
            None => (0, None),
        };
        for (&frame, &hash) in self.frames.iter().rev().zip(&self.hashes).skip(from) {
            let (module, address) = self.world.resolve(task, frame);
            let stack = self.stacks.intern(StackNode { parent, module, address });
            self.known.insert(hash, stack);
            parent = Some(stack);
        }
        parent.unwrap_or_else(|| {
            let module = self.world.modules.unmapped();
            self.stacks.intern(StackNode { parent, module, address: CodeAddress::Ip(ModuleAddress(0)) })
        })
    }
}

/// Stacks whose frames were looked up already, by a hash of the outer frames and all that their meaning depends on. New
/// stacks mostly differ from older ones in a few inner frames only. A later stack takes the place of an earlier one;
/// what is not here is looked up frame by frame.
#[derive(Default)]
struct KnownStacks(Vec<(u64, StackId)>);

impl KnownStacks {
    /// Places for stacks, a power of two.
    const PLACES: usize = 1 << 16;

    /// The place of a hash, which is never that of an empty place.
    fn place(hash: u64) -> (usize, u64) {
        (hash as usize & (Self::PLACES - 1), hash | 1 << 63)
    }

    fn get(&self, hash: u64) -> Option<StackId> {
        let (place, hash) = Self::place(hash);
        self.0.get(place).filter(|known| known.0 == hash).map(|known| known.1)
    }

    fn insert(&mut self, hash: u64, stack: StackId) {
        if self.0.is_empty() {
            self.0.resize(Self::PLACES, (0, stack));
        }
        let (place, hash) = Self::place(hash);
        if let Some(known) = self.0.get_mut(place) {
            *known = (hash, stack);
        }
    }
}

/// The hash of a stack out of that of its caller.
fn chain_hash(caller: u64, frame: RawFrame) -> u64 {
    let what = (frame.mode as u64) << 1 | u64::from(frame.exact);
    let product = u128::from(caller ^ frame.address) * u128::from(0x9e37_79b9_7f4a_7c15 ^ what << 7);
    (product as u64) ^ (product >> 64) as u64
}

/// Moves what was counted for a chain to its row.
fn settle(outcome: &mut Outcome, fold: &mut SampleFold, places: &mut Places) {
    let tally = outcome.settle();
    if tally.samples == 0 {
        return;
    }
    let mut row = outcome.row;
    if row & ARC != 0 {
        let Some(arc) = places.arcs.get_mut((row & !ARC) as usize) else { return };
        arc.taken = arc.taken.saturating_add(tally.samples);
        row = arc.row;
    } else if row & ACCESS != 0 {
        return places.accesses.count(row & !ACCESS, tally.samples);
    }
    fold.add_to(row as usize, tally);
}

impl Sink for Folding {
    fn weighs(&self) -> bool {
        self.dumped > MOST_DUMPED
    }

    #[inline]
    fn sample(&mut self, id: ChainId, weight: u64) {
        let last_change = self.world.last_change();
        if let Some(outcome) = self.chains.outcome(id)
            && outcome.seen >= last_change
            && outcome.count(weight)
        {
            if self.off_cpu.is_some() {
                self.remember(id);
            }
            return;
        }
        self.look_up(id, weight);
        if self.off_cpu.is_some() {
            self.remember(id);
        }
    }

    fn change(&mut self, time: u64, change: Change) {
        if let Some(off_cpu) = &mut self.off_cpu {
            match change {
                Change::Thread { tid, out } => return off_cpu.switched(time, tid, out),
                Change::Exit { tid, .. } => off_cpu.ended(tid),
                Change::Fork { tid, .. } => off_cpu.began(tid),
                _ => {}
            }
        }
        if let Some(history) = &mut self.history {
            history.push((time, change.clone()));
        }
        self.world.apply(change);
    }
}
