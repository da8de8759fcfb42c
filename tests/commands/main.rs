//! The commands of the real binary: costs against `perf report`, options, formats, exit status.

mod against_perf;
mod example;
mod lab;
mod perf;
mod usage;
