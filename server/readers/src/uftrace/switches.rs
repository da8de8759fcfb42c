//! The members `perf-cpu<n>.dat`: records of the kernel's perf events, of which those count that say when a thread was
//! switched out and in, and what it is called.
//!
//! There is one file per processor, each in order of time. They are merged and handed out in windows of bounded size, so
//! that memory does not follow the length of the recording.

use crate::perf_data::bytes::{Order, text};
use crate::{Folder, ReadSeek};
use rustc_hash::FxHashMap;
use std::io::{self, BufReader, Read};

/// Switches in memory at once.
pub(super) const MOST_IN_WINDOW: usize = 1 << 18;

/// Processors of which files are read; each needs a buffer.
const MOST_PROCESSORS: usize = 1024;

/// Bytes of each file read at once.
const BLOCK: usize = 16 << 10;

/// Names of threads that are kept.
const MOST_NAMES: usize = 1 << 16;

mod kind {
    pub const COMM: u32 = 3;
    pub const SWITCH: u32 = 14;
}

const SWITCHED_OUT: u16 = 1 << 13;
const BY_EXEC: u16 = 1 << 13;

/// A thread left or took a processor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Switch {
    pub time: u64,
    pub out: bool,
}

/// The switches of all threads up to a time.
#[derive(Debug, Default)]
pub(super) struct Window {
    of: FxHashMap<i32, Vec<Switch>>,
    /// Later switches are in later windows; `None` for the last window.
    pub until: Option<u64>,
}

impl Window {
    /// The switches of a thread, in order of time.
    pub fn of(&self, tid: i32) -> &[Switch] {
        self.of.get(&tid).map_or(&[], Vec::as_slice)
    }
}

/// One processor's file.
struct Processor<'a> {
    input: BufReader<Box<dyn ReadSeek + 'a>>,
    next: Option<(i32, Switch)>,
}

/// All processors' files.
pub(super) struct Switches<'a> {
    processors: Vec<Processor<'a>>,
    order: Order,
    /// Names that threads gave themselves, and when.
    pub names: Vec<(i32, u64, String)>,
    /// Whether any switch was seen at all.
    pub any: bool,
    /// Files that end in the middle of a record, or cannot be read.
    pub damaged: u64,
    /// Files that were left out.
    pub dropped: usize,
}

impl<'a> Switches<'a> {
    /// Opens the files among `names`.
    pub fn open(folder: &'a dyn Folder, names: &[String], order: Order) -> Self {
        let number = |name: &String| name.strip_prefix("perf-cpu")?.strip_suffix(".dat")?.parse::<u32>().ok();
        let files: Vec<&String> = names.iter().filter(|name| number(name).is_some()).collect();
        let mut switches = Switches {
            processors: Vec::new(),
            order,
            names: Vec::new(),
            any: false,
            damaged: 0,
            dropped: files.len().saturating_sub(MOST_PROCESSORS),
        };
        for name in files.into_iter().take(MOST_PROCESSORS) {
            match folder.open(name) {
                Ok(file) => {
                    switches.processors.push(Processor { input: BufReader::with_capacity(BLOCK, file), next: None });
                }
                Err(_) => switches.damaged += 1,
            }
        }
        for at in 0..switches.processors.len() {
            switches.advance(at);
        }
        switches
    }

    /// Whether there are such files.
    pub fn is_present(&self) -> bool {
        !self.processors.is_empty()
    }

    /// The next switches.
    pub fn window(&mut self) -> Window {
        let mut window = Window::default();
        for _ in 0..MOST_IN_WINDOW {
            let earliest = self.processors.iter().enumerate().filter_map(|(at, cpu)| Some((cpu.next?, at)));
            let Some(((tid, switch), at)) = earliest.min_by_key(|((_, switch), _)| switch.time) else {
                window.until = None;
                break;
            };
            window.of.entry(tid).or_default().push(switch);
            window.until = Some(switch.time);
            self.advance(at);
        }
        for switches in window.of.values_mut() {
            switches.sort_by_key(|switch| switch.time);
        }
        window
    }

    /// Reads on to the next switch of a processor.
    fn advance(&mut self, at: usize) {
        self.any |= self.processors.get(at).is_some_and(|cpu| cpu.next.is_some());
        let Some(processor) = self.processors.get_mut(at) else { return };
        processor.next = loop {
            match read_record(&mut processor.input, self.order) {
                Ok(Some(Found::Switch(tid, switch))) => break Some((tid, switch)),
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
        };
        self.any |= processor.next.is_some();
    }
}

enum Found {
    Switch(i32, Switch),
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
            Some(Found::Switch(tid, Switch { time, out: misc & SWITCHED_OUT != 0 }))
        }
        kind::COMM if misc & BY_EXEC == 0 => {
            let tid = order.u32_at(body, 4)?.cast_signed();
            Some(Found::Name(tid, time, text(body.get(8..body.len() - 16)?)))
        }
        _ => None,
    }
}

fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
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
