//! SPT files: the worked examples of the format, damage, the writer against the reader, hostile input.

mod damage;
mod dump;
mod examples;
mod hostile;
mod round_trip;
mod stacks;

use heatline_profile::{Monitor, Profile, Silent};
use heatline_readers::spt::{self, Damage, Op, Options, Preamble, Record, SptError, Summary, Visitor};
use heatline_readers::{Input, ReadOptions};
use std::io::Cursor;
use std::ops::ControlFlow;

/// The bytes that a hex dump with blanks shows.
#[track_caller]
fn bytes(hex: &str) -> Vec<u8> {
    let byte = |text: &str| u8::from_str_radix(text, 16).unwrap_or_else(|_| panic!("{text:?} is no byte"));
    hex.split_whitespace().map(byte).collect()
}

/// Header and tables that the examples share: one program, `m.exe`; the data start at 0x60.
const PREFIX: &str = "
    3a 54 50 53 01 00 00 00 00 00 00 00 00 00 00 00
    20 00 00 00 30 00 00 00 06 00 10 00 01 00 02 00
    6d 2e 65 78 65 00 00 00 00 00 00 00 00 00 00 00
    a6 fd 10 ad d8 a0 64 b6 4c 4c 44 20 50 44 42 2e
    01 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00";

/// A file of the shared prefix and these data.
#[track_caller]
fn with_prefix(data: &str) -> Vec<u8> {
    [bytes(PREFIX), bytes(data)].concat()
}

fn read_bytes(file: &[u8]) -> Result<Profile, SptError> {
    spt::read(Input::File(&mut Cursor::new(file)), &ReadOptions::default(), &Silent)
}

/// Everything a file holds, as lines.
#[derive(Default)]
struct Listing {
    preamble: Option<Preamble>,
    program: u16,
    records: Vec<String>,
    damages: Vec<String>,
}

impl Visitor for Listing {
    fn preamble(&mut self, preamble: &Preamble) -> ControlFlow<()> {
        self.preamble = Some(preamble.clone());
        ControlFlow::Continue(())
    }

    fn segment(&mut self, segment: &spt::Segment) -> ControlFlow<()> {
        self.program = segment.program;
        ControlFlow::Continue(())
    }

    fn record(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        let mut line = format!("#{} {} x{}", self.program, record.op.name(), record.hits);
        if record.op == Op::Lbr {
            record.arcs().for_each(|(from, to)| line += &format!(" {from:#x}->{to:#x}"));
        } else {
            record.rvas().for_each(|rva| line += &format!(" {rva:#x}"));
        }
        self.records.push(line);
        ControlFlow::Continue(())
    }

    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        self.damages.push(damage.to_string());
        ControlFlow::Continue(())
    }
}

fn list_with(file: &[u8], options: &Options, monitor: &dyn Monitor) -> Result<(Listing, Summary), SptError> {
    let mut listing = Listing::default();
    let summary = spt::decode(&mut Cursor::new(file), options, monitor, &mut listing)?;
    Ok((listing, summary))
}

#[track_caller]
fn list(file: &[u8]) -> (Listing, Summary) {
    list_with(file, &Options::default(), &Silent).expect("a readable file")
}

/// The rows, arcs and totals of a profile, as lines.
fn costs(profile: &Profile) -> String {
    let mut text = String::new();
    for row in &profile.rows {
        let event = profile.event(row.event);
        let frames: Vec<String> = profile.stacks.frames(row.stack).map(|f| f.address.recorded().to_string()).collect();
        let module = profile.module(profile.stacks.node(row.stack).module);
        text += &format!("{} {} {} x{}\n", module.path, event.name, frames.join("<"), row.tally.weight.0);
    }
    for arc in &profile.arcs {
        let module = profile.module(arc.from.module);
        text += &format!("{} arc {}->{} x{}\n", module.path, arc.from.address, arc.to.address, arc.taken.0);
    }
    text
}

fn problems(profile: &Profile) -> String {
    let line = |p: &heatline_profile::Problem| format!("{} x{}: {}\n", p.kind, p.count, p.message);
    profile.problems.iter().map(line).collect()
}
