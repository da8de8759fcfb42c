//! The commands of the real binary: costs against `perf report`, options, formats, exit status.
#![allow(clippy::disallowed_methods, reason = "tests record, read and run real programs")]

mod advice;
mod against_perf;
mod diff;
mod example;
mod export;
mod filters;
mod frozen;
mod history;
mod hostile;
mod lab;
mod not_a_profile;
mod off_cpu;
mod perf;
mod protoc;
mod spt;
mod uftrace;
mod uftrace_ways;
mod usage;
#[path = "../../server/readers/tests/perf_data/writer.rs"]
#[allow(dead_code)] // Writes more than is needed here.
mod writer;
mod written;
