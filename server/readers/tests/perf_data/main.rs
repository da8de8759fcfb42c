//! The perf.data reader against perf itself, on recordings that the tests make, and against damage.

// The tests record programs of their own, so they compile, start perf and open files.
#![allow(clippy::disallowed_methods)]

mod against_perf;
mod damage;
mod dwarf;
mod features;
mod handmade;
mod memory;
mod off_cpu;
mod oracle;
mod recording;
mod second_reader;
mod streams;
mod writer;
