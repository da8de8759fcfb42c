//! `heatline diff`: its own numbers, and with `--perf` those of `perf diff`.

mod kinds;
mod numbers;
mod printed;
mod programs;
mod recorded;
mod remarks;
mod review;
