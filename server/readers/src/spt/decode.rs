//! The decoder: walks over a file once and tells a [`Visitor`] what it meets.
//!
//! A damaged file is read as far as it can be: whatever is skipped is told as [`Damage`].

use super::chain;
use super::damage::{Damage, DamageKind};
use super::format::{
    LONGEST_RECORD, LengthReading, OP_BINARY_ID, OP_REPEAT, Op, REPEAT_SIZE, SEGMENT_HEADER, u16_at, u32_at,
};
use super::preamble::{self, Preamble};
use super::window::{Window, at_most};
use super::{Options, SptError};
use crate::ReadSeek;
use heatline_profile::Monitor;
use std::ops::ControlFlow;

/// The start of a segment: the records that follow are of one program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Where its first byte lies in the file.
    pub offset: u64,
    /// Its number, from 0.
    pub number: u64,
    /// The program, a position in the program-id table; not checked against it.
    pub program: u16,
}

/// A record that carries hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// Where its opcode lies in the file.
    pub offset: u64,
    /// What it holds.
    pub op: Op,
    /// How often each of its elements was hit.
    pub hits: u64,
    /// The bytes of its elements.
    payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// The elements of a record of samples or of a stack: addresses from the image base.
    pub fn rvas(&self) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + Clone + use<'a> {
        self.payload.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// The elements of a record of branches, each as (from, to).
    pub fn arcs(&self) -> impl ExactSizeIterator<Item = (u32, u32)> + use<'a> {
        self.payload.as_chunks::<8>().0.iter().map(|pair| {
            let pair = u64::from_le_bytes(*pair);
            ((pair >> 32) as u32, pair as u32)
        })
    }

    /// How many hits it adds to its operation's total: per instruction of samples, per branch, and per pair of
    /// neighbouring frames of stacks. Saturates.
    pub fn total(&self) -> u64 {
        let elements = (self.payload.len() / self.op.element()) as u64;
        let counted = if self.op == Op::EtwCallstack { elements.saturating_sub(1) } else { elements };
        counted.saturating_mul(self.hits)
    }
}

/// Told what a file holds, in the order of the file. [`ControlFlow::Break`] ends the decoding early.
pub trait Visitor {
    /// Header and tables, first and once.
    fn preamble(&mut self, _preamble: &Preamble) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// The records from here on are of another segment.
    fn segment(&mut self, _segment: &Segment) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// A record with hits.
    fn record(&mut self, record: &Record<'_>) -> ControlFlow<()>;

    /// Something that is wrong, before what comes after it.
    fn damage(&mut self, _damage: &Damage) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// What is known of a file once all of it has been read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// How the lengths of its segments were read.
    pub reading: LengthReading,
    /// Whether no reading fits the file and this one was assumed.
    pub assumed: bool,
    /// How many segments were met.
    pub segments: u64,
    /// Whether the file ends inside a segment.
    pub truncated: bool,
}

/// Bytes read at once.
const STEP: usize = 256 << 10;
/// About so often a whole file asks its monitor whether to go on.
const REPORTS: u64 = 256;

/// Walks over the whole file.
///
/// # Errors
/// [`SptError`] if nothing of the file can be used, if it cannot be read, or if `monitor` stopped the work.
pub fn decode<V: Visitor>(
    file: &mut dyn ReadSeek,
    options: &Options,
    monitor: &dyn Monitor,
    visitor: &mut V,
) -> Result<Summary, SptError> {
    let mut window = Window::new(file, STEP)?;
    let Some(preamble) = open(&mut window, options, visitor)? else { return Ok(Summary::default()) };
    let start = preamble.header.data_start();
    let chosen = chain::choose(&mut window, start)?;
    window.set_step(STEP);
    let mut decoder = Decoder {
        window,
        monitor,
        visitor,
        programs: preamble.programs.len() as u64,
        reported: 0,
        ids: Ids::default(),
        repeat: None,
        summary: Summary { reading: chosen.reading, assumed: chosen.assumed, ..Summary::default() },
    };
    match decoder.stream(start) {
        Ok(()) | Err(Halt::Stopped) => Ok(decoder.summary),
        Err(Halt::Failed(error)) => Err(error),
    }
}

/// Reads header and tables alone.
///
/// # Errors
/// [`SptError`] if nothing of the file can be used, or if it cannot be read.
pub fn decode_preamble<V: Visitor>(
    file: &mut dyn ReadSeek,
    options: &Options,
    visitor: &mut V,
) -> Result<(), SptError> {
    open(&mut Window::new(file, STEP)?, options, visitor)?;
    Ok(())
}

/// Reads header and tables, or `None` if the visitor wants no more.
fn open<V: Visitor>(window: &mut Window<'_>, options: &Options, visitor: &mut V) -> Result<Option<Preamble>, SptError> {
    let mut damages = Vec::new();
    let preamble = preamble::read(window, options.any_version, &mut damages)?;
    let told = damages.iter().try_for_each(|damage| visitor.damage(damage));
    let told = told.is_continue() && visitor.preamble(&preamble).is_continue();
    Ok(told.then_some(preamble))
}

struct Decoder<'a, 'v, V> {
    window: Window<'a>,
    monitor: &'a dyn Monitor,
    visitor: &'v mut V,
    programs: u64,
    reported: u64,
    ids: Ids,
    /// What a REPEAT says of the next record.
    repeat: Option<u64>,
    summary: Summary,
}

/// Which program ids a file uses, as far as the question goes whether they are counted from 1.
#[derive(Default)]
struct Ids {
    zero: bool,
    highest: u16,
}

/// Why the walk ends early.
enum Halt {
    /// The visitor wants no more.
    Stopped,
    Failed(SptError),
}

impl<E: Into<SptError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Halt::Failed(error.into())
    }
}

fn go_on(flow: ControlFlow<()>) -> Result<(), Halt> {
    if flow.is_break() { Err(Halt::Stopped) } else { Ok(()) }
}

impl<V: Visitor> Decoder<'_, '_, V> {
    fn stream(&mut self, start: u64) -> Result<(), Halt> {
        let (reading, assumed) = (self.summary.reading, self.summary.assumed);
        let Some(first) = self.window.at(start, 1)?.first().copied() else { return Ok(()) };
        if first != OP_BINARY_ID {
            return self.tell(DamageKind::NoSegment(first), start);
        }
        if assumed {
            self.tell(DamageKind::ReadingAssumed(reading), start)?;
        } else if reading != LengthReading::R1 {
            self.tell(DamageKind::Reading(reading), start)?;
        }
        let mut at = start;
        while let Some(end) = self.segment_at(at)? {
            at = end;
        }
        if self.ids.count_from_one(self.programs) {
            self.tell(DamageKind::CountedFromOne, start)?;
        }
        Ok(())
    }

    /// Reads the segment that starts at `at` and those that start inside it; returns where they end. `None` where no
    /// segment starts, which is told unless the file ends there.
    fn segment_at(&mut self, at: u64) -> Result<Option<u64>, Halt> {
        self.report(at)?;
        let header = self.window.at(at, SEGMENT_HEADER as usize)?;
        let Some(header) = header.first_chunk::<{ SEGMENT_HEADER as usize }>().filter(|b| b[0] == OP_BINARY_ID) else {
            self.trailing(at)?;
            return Ok(None);
        };
        let (program, length) = (u16_at(header, 2), u32_at(header, 4));
        let Some(end) = self.summary.reading.end(at, length) else {
            self.tell(DamageKind::SegmentTooShort(length), at)?;
            return Ok(None);
        };
        let mut bounds = self.enter(at, program, end)?;
        while bounds.at < bounds.end {
            self.run(&mut bounds)?;
        }
        self.drop_repeat(bounds.end)?;
        Ok(Some(bounds.end))
    }

    /// Tells of a new segment and clips it to the file.
    fn enter(&mut self, at: u64, program: u16, end: u64) -> Result<Bounds, Halt> {
        let number = self.summary.segments;
        self.summary.segments += 1;
        self.ids.add(program);
        go_on(self.visitor.segment(&Segment { offset: at, number, program }))?;
        if u64::from(program) >= self.programs {
            self.tell(DamageKind::UnknownProgram(program), at)?;
        }
        let len = self.window.len();
        if end > len {
            self.summary.truncated = true;
            self.tell(DamageKind::SegmentCut(end - len), at)?;
        }
        Ok(Bounds { at: at + SEGMENT_HEADER, end: end.min(len) })
    }

    /// Reads the records of a segment that are at hand, at least one. Moves on in `bounds`.
    fn run(&mut self, bounds: &mut Bounds) -> Result<(), Halt> {
        self.report(bounds.at)?;
        let left = bounds.end - bounds.at;
        let bytes = self.window.at(bounds.at, at_most(left, LONGEST_RECORD))?;
        let bytes = bytes.get(..at_most(left, bytes.len())).unwrap_or(bytes);
        let last = bytes.len() as u64 == left || bytes.len() < LONGEST_RECORD;
        let (read, step) = records(bytes, bounds.at, &mut self.repeat, self.visitor);
        bounds.at += read as u64;
        match step {
            Step::More if last => self.cut(bounds),
            Step::More => Ok(()),
            Step::Stopped => Err(Halt::Stopped),
            Step::Segment => self.segment_inside(bounds),
            Step::Unknown(opcode) => self.unknown(opcode, bounds),
            Step::RepeatReplaced => {
                self.tell(DamageKind::RepeatReplaced, bounds.at)?;
                bounds.at += REPEAT_SIZE as u64;
                Ok(())
            }
        }
    }

    /// What is left of the segment, if anything is, is less than its record needs.
    fn cut(&mut self, bounds: &mut Bounds) -> Result<(), Halt> {
        let (at, dropped) = (bounds.at, bounds.end - bounds.at);
        if dropped == 0 {
            return Ok(());
        }
        let Some(opcode) = self.window.at(at, 1)?.first().copied() else {
            // The file has become shorter while it was read.
            bounds.at = bounds.end;
            self.summary.truncated = true;
            return self.tell(DamageKind::SegmentCut(dropped), at);
        };
        if Op::from_opcode(opcode).is_some() {
            // The dropped record has used up a repeat before it.
            self.repeat = None;
        } else if opcode != OP_REPEAT && opcode != OP_BINARY_ID {
            return self.unknown(opcode, bounds);
        }
        bounds.at = bounds.end;
        self.summary.truncated |= bounds.end == self.window.len();
        self.tell(DamageKind::RecordCut { opcode, dropped }, at)
    }

    /// A segment starts before the current one has ended.
    fn segment_inside(&mut self, bounds: &mut Bounds) -> Result<(), Halt> {
        let at = bounds.at;
        self.drop_repeat(at)?;
        let header = self.window.at(at, SEGMENT_HEADER as usize)?;
        let (program, length) = (u16_at(header, 2), u32_at(header, 4));
        let Some(end) = self.summary.reading.end(at, length) else {
            bounds.at = bounds.end;
            return self.tell(DamageKind::SegmentTooShort(length), at);
        };
        self.tell(DamageKind::SegmentInside, at)?;
        *bounds = self.enter(at, program, end)?;
        Ok(())
    }

    /// Skips to the end of the segment. Zeros up to there are padding.
    fn unknown(&mut self, opcode: u8, bounds: &mut Bounds) -> Result<(), Halt> {
        let (at, end) = (bounds.at, bounds.end);
        bounds.at = end;
        if opcode == 0 && self.window.all_zero(at, end)? {
            return Ok(());
        }
        self.repeat = None;
        self.tell(DamageKind::UnknownOpcode { opcode, skipped: end - at }, at)
    }

    /// What follows the last segment: zeros are padding.
    fn trailing(&mut self, at: u64) -> Result<(), Halt> {
        let len = self.window.len();
        let left = len.saturating_sub(at);
        if self.window.all_zero(at, len)? {
            return Ok(());
        }
        if self.window.at(at, 1)?.first() == Some(&OP_BINARY_ID) {
            // The file ends inside the record that starts a segment.
            self.summary.truncated = true;
            return self.tell(DamageKind::SegmentStartCut(left), at);
        }
        self.tell(DamageKind::Trailing(left), at)
    }

    /// A repeat that no record has used by now, at `at`, is lost.
    fn drop_repeat(&mut self, at: u64) -> Result<(), Halt> {
        match self.repeat.take() {
            Some(_) => self.tell(DamageKind::RepeatAlone, at),
            None => Ok(()),
        }
    }

    fn tell(&mut self, kind: DamageKind, offset: u64) -> Result<(), Halt> {
        let segment = self.summary.segments.checked_sub(1);
        go_on(self.visitor.damage(&Damage { kind, offset, segment }))
    }

    /// Tells the monitor from time to time how far the work is.
    fn report(&mut self, at: u64) -> Result<(), Halt> {
        let len = self.window.len();
        if at.saturating_sub(self.reported) > (len / REPORTS).max(STEP as u64) {
            self.reported = at;
            self.monitor.progress(at, len)?;
        }
        Ok(())
    }
}

impl Ids {
    fn add(&mut self, program: u16) {
        self.zero |= program == 0;
        self.highest = self.highest.max(program);
    }

    /// Whether all ids lie in 1..=`programs` and one of them is not in the table when counted from 0.
    fn count_from_one(&self, programs: u64) -> bool {
        !self.zero && programs > 0 && u64::from(self.highest) == programs
    }
}

/// The part of a segment that is still to be read.
struct Bounds {
    at: u64,
    end: u64,
}

/// Why [`records`] stopped before the next record.
enum Step {
    /// It is not there as a whole.
    More,
    /// It starts another segment.
    Segment,
    /// Its opcode is not known.
    Unknown(u8),
    /// It repeats the next one, as the record before it does; it has been taken already.
    RepeatReplaced,
    /// The visitor wants no more.
    Stopped,
}

/// The operation of each opcode.
static OPS: [Option<Op>; 256] = {
    let mut ops = [None; 256];
    let mut at = 0;
    while at < Op::ALL.len() {
        ops[Op::ALL[at].opcode() as usize] = Some(Op::ALL[at]);
        at += 1;
    }
    ops
};

/// Hands on the records that `bytes`, which lie at `offset` in the file, hold. Returns how many bytes were read.
fn records<V: Visitor>(bytes: &[u8], offset: u64, repeat: &mut Option<u64>, visitor: &mut V) -> (usize, Step) {
    let mut rest = bytes;
    let step = loop {
        let [opcode, count, tail @ ..] = rest else { break Step::More };
        let here = bytes.len() - rest.len();
        if let Some(op) = OPS[usize::from(*opcode)] {
            let Some((payload, tail)) = tail.split_at_checked(usize::from(*count) * op.element()) else {
                break Step::More;
            };
            let hits = repeat.take().map_or(1, |repeat| repeat.saturating_add(1));
            if visitor.record(&Record { offset: offset + here as u64, op, hits, payload }).is_break() {
                break Step::Stopped;
            }
            rest = tail;
            continue;
        }
        match *opcode {
            OP_REPEAT => {
                let Some((number, tail)) = tail.split_first_chunk() else { break Step::More };
                if repeat.replace(u64::from_le_bytes(*number)).is_some() {
                    break Step::RepeatReplaced;
                }
                rest = tail;
            }
            OP_BINARY_ID if rest.len() >= SEGMENT_HEADER as usize => break Step::Segment,
            OP_BINARY_ID => break Step::More,
            unknown => break Step::Unknown(unknown),
        }
    };
    (bytes.len() - rest.len(), step)
}
