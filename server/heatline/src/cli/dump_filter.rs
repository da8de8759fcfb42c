//! Which lines of a dump are wanted: those of records that pass `--time`, `--cpu`, `--pid`, `--tid` and `--comm`.
//!
//! A record passes a filter if it says that it does: one that does not tell its processor, say, is left out by `--cpu`.

use heatline_readers::TimeFilter;
use serde_json::Value;
use std::collections::HashMap;

/// What is wanted; what is empty or absent wants everything.
#[derive(Clone, Debug, Default)]
pub struct DumpFilter {
    /// Of which times.
    pub time: Option<TimeFilter>,
    /// Processors.
    pub cpus: Option<Vec<u32>>,
    /// Processes.
    pub pids: Vec<i64>,
    /// Threads.
    pub tids: Vec<i64>,
    /// Names of threads.
    pub comms: Vec<String>,
    /// The name of each thread so far, by its number.
    pub names: HashMap<i64, String>,
}

impl DumpFilter {
    /// Whether everything is wanted.
    pub fn is_empty(&self) -> bool {
        self.time.is_none()
            && self.cpus.is_none()
            && self.pids.is_empty()
            && self.tids.is_empty()
            && self.comms.is_empty()
    }

    /// Whether a record is wanted: the fields of one of perf.data, or of Arm SPE. Records come in the order of the file,
    /// whose names of threads are remembered.
    pub fn passes(&mut self, record: &Value) -> bool {
        let number = |name: &str| record.get(name).and_then(Value::as_i64);
        let (pid, tid) = (number("pid"), number("tid"));
        self.remember(record, tid);
        let time = number("time").or(number("time_ns")).map(i64::cast_unsigned);
        let in_time = |times: &TimeFilter| time.is_some_and(|time| times.contains(time));
        let on_cpu =
            |cpus: &Vec<u32>| number("cpu").is_some_and(|cpu| cpus.iter().any(|known| i64::from(*known) == cpu));
        let is_one =
            |wanted: &[i64], found: Option<i64>| wanted.is_empty() || found.is_some_and(|it| wanted.contains(&it));
        self.time.as_ref().is_none_or(in_time)
            && self.cpus.as_ref().is_none_or(on_cpu)
            && is_one(&self.pids, pid)
            && is_one(&self.tids, tid)
            && (self.comms.is_empty()
                || tid.and_then(|tid| self.names.get(&tid)).is_some_and(|it| self.comms.contains(it)))
    }

    fn remember(&mut self, record: &Value, tid: Option<i64>) {
        let Some(tid) = tid.filter(|_| !self.comms.is_empty()) else { return };
        match record.get("type").and_then(Value::as_str) {
            Some("COMM") => {
                let name = record.get("comm").and_then(Value::as_str).unwrap_or_default();
                self.names.insert(tid, name.to_owned());
            }
            Some("FORK") => {
                let parent = record.get("parent_tid").and_then(Value::as_i64);
                if let Some(name) = parent.and_then(|parent| self.names.get(&parent)).cloned() {
                    self.names.insert(tid, name);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(filter: DumpFilter, expected: &[u64]) {
        let records = [
            json!({"type": "COMM", "pid": 7, "tid": 7, "comm": "app", "n": 0}),
            json!({"type": "FORK", "pid": 7, "tid": 8, "parent_pid": 7, "parent_tid": 7, "time": 5, "cpu": 0, "n": 1}),
            json!({"type": "SAMPLE", "pid": 7, "tid": 8, "time": 10, "cpu": 1, "n": 2}),
            json!({"type": "COMM", "pid": 7, "tid": 8, "comm": "worker", "time": 11, "cpu": 1, "n": 3}),
            json!({"type": "SAMPLE", "pid": 7, "tid": 8, "time": 12, "cpu": 1, "n": 4}),
            json!({"tid": 7, "time_ns": 13, "cpu": 0, "n": 5}),
            json!({"type": "FINISHED_ROUND", "n": 6}),
        ];
        let mut filter = filter;
        let wanted: Vec<u64> =
            records.iter().filter(|record| filter.passes(record)).map(|record| record["n"].as_u64().unwrap()).collect();
        assert_eq!(wanted, expected);
    }

    #[test]
    fn records_pass_that_say_they_do() {
        check(DumpFilter { time: Some((10, 12).into()), ..DumpFilter::default() }, &[2, 3, 4]);
        check(DumpFilter { cpus: Some(vec![0]), ..DumpFilter::default() }, &[1, 5]);
        check(DumpFilter { tids: vec![8], ..DumpFilter::default() }, &[1, 2, 3, 4]);
        check(DumpFilter { pids: vec![7], ..DumpFilter::default() }, &[0, 1, 2, 3, 4]);
        check(DumpFilter { comms: vec!["app".into()], ..DumpFilter::default() }, &[0, 1, 2, 5]);
        check(DumpFilter { comms: vec!["worker".into()], ..DumpFilter::default() }, &[3, 4]);
        check(DumpFilter::default(), &[0, 1, 2, 3, 4, 5, 6]);
    }
}
