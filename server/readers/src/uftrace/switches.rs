//! The members `perf-cpu<n>.dat`: records of the kernel's perf events, of which those count that say when a thread was
//! switched out and in, and what it is called; with them the members `kernel-cpu<n>.dat`.
//!
//! There is one file per processor, each in order of time. They are merged and handed out in windows of bounded size, so
//! that memory does not follow the length of the recording.

use super::kernel::{Counts, Layout, Pages};
use crate::perf_data::bytes::{Order, text};
use crate::{Folder, ReadSeek};
use rustc_hash::FxHashMap;
use std::io::{self, BufReader, Read};

/// Notices in memory at once.
pub(super) const MOST_IN_WINDOW: usize = 1 << 17;

/// Processors of which files are read; each needs a buffer.
const MOST_PROCESSORS: usize = 1024;

/// Bytes of each file read at once.
const BLOCK: usize = 16 << 10;

/// Names of threads that are kept.
const MOST_NAMES: usize = 1 << 16;

/// What names of files of perf events begin with.
const EVENTS: &str = "perf-cpu";

/// What names of files of the kernel's functions begin with.
pub(super) const FUNCTIONS: &str = "kernel-cpu";

mod kind {
    pub const COMM: u32 = 3;
    pub const SWITCH: u32 = 14;
}

const SWITCHED_OUT: u16 = 1 << 13;
const BY_EXEC: u16 = 1 << 13;

/// What happened to a thread that it did not write down itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// It left its processor.
    Out,
    /// It took a processor.
    In,
    /// It entered a function of the kernel, over so many others of the kernel.
    Enter { function: u64, depth: usize },
    /// It returned from one.
    Leave { function: u64, depth: usize },
}

/// When it happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Notice {
    pub time: u64,
    pub what: Change,
}

/// What happened to all threads up to a time.
#[derive(Debug, Default)]
pub(super) struct Window {
    of: FxHashMap<i32, Vec<Notice>>,
    /// What is later is in later windows; `None` for the last window.
    pub until: Option<u64>,
}

impl Window {
    /// What happened to a thread, in order of time.
    pub fn of(&self, tid: i32) -> &[Notice] {
        self.of.get(&tid).map_or(&[], Vec::as_slice)
    }
}

/// One processor's file of one kind.
struct Processor<'a> {
    input: Source<'a>,
    next: Option<(i32, Notice)>,
}

enum Source<'a> {
    /// Perf events.
    Events(BufReader<Box<dyn ReadSeek + 'a>>),
    /// Functions of the kernel.
    Functions(Pages<'a>),
}

/// All processors' files.
pub(super) struct Switches<'a> {
    processors: Vec<Processor<'a>>,
    order: Order,
    /// How records of the kernel's functions are laid out.
    layout: Option<Layout>,
    /// Names that threads gave themselves, and when.
    pub names: Vec<(i32, u64, String)>,
    /// Whether there are files of perf events.
    pub is_present: bool,
    /// Whether any switch was seen at all.
    pub any: bool,
    /// Files of perf events that end in the middle of a record, or cannot be read.
    pub damaged: u64,
    /// Files of the kernel's functions that are cut, damaged, or cannot be read.
    pub damaged_functions: u64,
    /// Files that were left out.
    pub dropped: usize,
}

impl<'a> Switches<'a> {
    /// Opens the files of perf events among `names`, and those of the kernel's functions if their layout is known.
    pub fn open(folder: &'a dyn Folder, names: &[String], order: Order, layout: Option<Layout>) -> Self {
        let mut switches = Switches {
            processors: Vec::new(),
            order,
            layout,
            names: Vec::new(),
            is_present: false,
            any: false,
            damaged: 0,
            damaged_functions: 0,
            dropped: 0,
        };
        switches.open_files(folder, names, EVENTS);
        switches.is_present = !switches.processors.is_empty();
        if switches.layout.is_some() {
            switches.open_files(folder, names, FUNCTIONS);
        }
        for at in 0..switches.processors.len() {
            switches.advance(at);
        }
        switches
    }

    fn open_files(&mut self, folder: &'a dyn Folder, names: &[String], beginning: &str) {
        let files: Vec<&String> = names.iter().filter(|name| is_of_processor(name, beginning)).collect();
        self.dropped += files.len().saturating_sub(MOST_PROCESSORS);
        for name in files.into_iter().take(MOST_PROCESSORS) {
            let Ok(file) = folder.open(name) else {
                *self.damaged_of(beginning) += 1;
                continue;
            };
            let input = match beginning {
                EVENTS => Source::Events(BufReader::with_capacity(BLOCK, file)),
                _ => Source::Functions(Pages::new(file)),
            };
            self.processors.push(Processor { input, next: None });
        }
    }

    fn damaged_of(&mut self, beginning: &str) -> &mut u64 {
        if beginning == EVENTS { &mut self.damaged } else { &mut self.damaged_functions }
    }

    /// What was lost, left out and found damaged in files of the kernel's functions.
    pub fn function_counts(&self) -> Counts {
        let pages = self.processors.iter().filter_map(|processor| match &processor.input {
            Source::Functions(pages) => Some(pages.counts),
            Source::Events(_) => None,
        });
        pages.fold(Counts { damaged: self.damaged_functions, ..Counts::default() }, |sum, one| Counts {
            lost: sum.lost.saturating_add(one.lost),
            others: sum.others + one.others,
            damaged: sum.damaged + one.damaged,
        })
    }

    /// What happens next.
    pub fn window(&mut self) -> Window {
        let mut window = Window::default();
        for _ in 0..MOST_IN_WINDOW {
            let earliest = self.processors.iter().enumerate().filter_map(|(at, cpu)| Some((cpu.next?, at)));
            let Some(((tid, moment), at)) = earliest.min_by_key(|((_, moment), _)| moment.time) else {
                window.until = None;
                break;
            };
            window.of.entry(tid).or_default().push(moment);
            window.until = Some(moment.time);
            self.advance(at);
        }
        for moments in window.of.values_mut() {
            moments.sort_by_key(|moment| moment.time);
        }
        window
    }

    /// Reads on to what a processor's file has next.
    fn advance(&mut self, at: usize) {
        let Some(processor) = self.processors.get_mut(at) else { return };
        processor.next = match (&mut processor.input, &self.layout) {
            (Source::Events(input), _) => loop {
                match read_record(input, self.order) {
                    Ok(Some(Found::Notice(tid, moment))) => {
                        self.any = true;
                        break Some((tid, moment));
                    }
                    Ok(Some(Found::Name(tid, time, name))) => {
                        if self.names.len() < MOST_NAMES {
                            self.names.push((tid, time, name));
                        }
                    }
                    Ok(Some(Found::Other)) => {}
                    Ok(None) => break None,
                    Err(_) => {
                        self.damaged += 1;
                        break None;
                    }
                }
            },
            (Source::Functions(pages), Some(layout)) => pages.read(layout).unwrap_or_else(|_| {
                self.damaged_functions += 1;
                None
            }),
            (Source::Functions(_), None) => None,
        };
    }
}

/// Whether a member is a processor's file of a kind.
pub(super) fn is_of_processor(name: &str, beginning: &str) -> bool {
    let number = name.strip_prefix(beginning).and_then(|rest| rest.strip_suffix(".dat"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

enum Found {
    Notice(i32, Notice),
    Name(i32, u64, String),
    Other,
}

/// The next record; `None` at the end, an error in the middle of one.
fn read_record(input: &mut impl Read, order: Order) -> io::Result<Option<Found>> {
    let mut header = [0; 8];
    let read = read_up_to(input, &mut header)?;
    if read == 0 {
        return Ok(None);
    }
    let (kind, misc, size) = (
        order.u32([header[0], header[1], header[2], header[3]]),
        order.u16([header[4], header[5]]),
        usize::from(order.u16([header[6], header[7]])),
    );
    if read < header.len() || size < header.len() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; size - header.len()];
    input.read_exact(&mut body)?;
    Ok(Some(parse(kind, misc, &body, order).unwrap_or(Found::Other)))
}

fn parse(kind: u32, misc: u16, body: &[u8], order: Order) -> Option<Found> {
    // Process, thread and time end each record.
    let trailer = body.get(body.len().checked_sub(16)?..)?;
    let time = order.u64_at(trailer, 8)?;
    match kind {
        kind::SWITCH => {
            let tid = order.u32_at(trailer, 4)?.cast_signed();
            let what = if misc & SWITCHED_OUT != 0 { Change::Out } else { Change::In };
            Some(Found::Notice(tid, Notice { time, what }))
        }
        kind::COMM if misc & BY_EXEC == 0 => {
            let tid = order.u32_at(body, 4)?.cast_signed();
            Some(Found::Name(tid, time, text(body.get(8..body.len() - 16)?)))
        }
        _ => None,
    }
}

pub(super) fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
        match input.read(room) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
