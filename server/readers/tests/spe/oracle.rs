//! The same recordings read by perf.
