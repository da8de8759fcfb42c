//! Which of the three readings of a segment's length is the file's: walks from header to header once for each.

use super::format::{LengthReading, OP_BINARY_ID, SEGMENT_HEADER, u32_at};
use super::window::Window;
use std::io;

/// How the length of segments is read in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chosen {
    /// The reading.
    pub(crate) reading: LengthReading,
    /// Whether no reading fits the file and this one merely comes nearest.
    pub(crate) assumed: bool,
}

/// Headers that are near one another are read in steps that grow from the first to the second number of bytes.
const STEPS: (usize, usize) = (512, 1 << 16);

/// Chooses the reading whose walk from `data_start` ends exactly at the end of the file, else one that ends where only
/// zeros are left, else the one that meets the most headers; R1 before R2 before R3 in each case.
pub(crate) fn choose(window: &mut Window<'_>, data_start: u64) -> io::Result<Chosen> {
    let mut walks = Vec::with_capacity(LengthReading::ALL.len());
    for reading in LengthReading::ALL {
        let walk = walk(window, data_start, reading)?;
        if walk.stop == window.len() {
            return Ok(Chosen { reading, assumed: false });
        }
        walks.push((reading, walk));
    }
    for (reading, walk) in &walks {
        if walk.stop < window.len() && window.all_zero(walk.stop, window.len())? {
            return Ok(Chosen { reading: *reading, assumed: false });
        }
    }
    let mut best = (LengthReading::R1, 0);
    for (reading, walk) in walks {
        if walk.headers > best.1 {
            best = (reading, walk.headers);
        }
    }
    Ok(Chosen { reading: best.0, assumed: true })
}

struct Walk {
    /// How many headers it met.
    headers: u64,
    /// Where it expected a header and found none; past the end of the file if a segment reaches there.
    stop: u64,
}

fn walk(window: &mut Window<'_>, data_start: u64, reading: LengthReading) -> io::Result<Walk> {
    let mut walk = Walk { headers: 0, stop: data_start };
    let mut step = STEPS.0;
    while walk.stop < window.len() {
        window.set_step(step);
        let bytes = window.at(walk.stop, SEGMENT_HEADER as usize)?;
        let Some(header) = bytes.first_chunk::<{ SEGMENT_HEADER as usize }>().filter(|b| b[0] == OP_BINARY_ID) else {
            break;
        };
        let in_sight = bytes.len() as u64;
        let Some(end) = reading.end(walk.stop, u32_at(header, 4)) else { break };
        let near = end - walk.stop <= in_sight.max(STEPS.0 as u64);
        step = if near { (step * 2).min(STEPS.1) } else { STEPS.0 };
        walk.headers += 1;
        walk.stop = end;
    }
    Ok(walk)
}
