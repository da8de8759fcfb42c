//! A record under the names that `dump --format json` has for its parts.

use super::event::event_names;
use super::operation::operation;
use super::record::Record;
use super::source::{Cpu, data_source};
use heatline_profile::Avma;

/// A record in names and plain values, ready to print. What the record does not tell is absent.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct RecordFields {
    /// Offset of its first packet in the AUX stream.
    pub offset: u64,
    /// The processor that recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// The thread, 0 when idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<i32>,
    /// When, on the clock of the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<u64>,
    /// Address of the operation.
    pub pc: String,
    /// Exception level it ran at.
    pub el: u8,
    /// `load`, `store`, `branch` or `other`.
    pub operation: &'static str,
    /// The subclass.
    pub class: Vec<&'static str>,
    /// Effective vector length or tile size in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vector_length: Option<u32>,
    /// What happened to it.
    pub events: Vec<String>,
    /// Cycles from dispatch to completion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_latency: Option<u16>,
    /// Cycles from dispatch to issue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue_latency: Option<u16>,
    /// Cycles of address translation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation_latency: Option<u16>,
    /// Counters without a known meaning: index and value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<(u8, u16)>,
    /// Virtual address of the data, without its tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub va: Option<String>,
    /// Physical address of the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pa: Option<String>,
    /// Target of the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Target of the last branch taken before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_target: Option<String>,
    /// Where the data came from, in the processor's own numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<u64>,
    /// `L1`, `LFB`, `L2`, `L3` or `RAM`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<&'static str>,
    /// Whether the data was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit: Option<bool>,
    /// `none`, `hit`, `hitm` or `peer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snoop: Option<&'static str>,
    /// Whether another socket was accessed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<bool>,
}

impl RecordFields {
    /// The parts that the record itself holds; who recorded it and when is the container's knowledge: set
    /// [`Self::cpu`], [`Self::tid`] (here the record's own context) and [`Self::time_ns`] afterwards.
    pub fn new(record: &Record, cpu: &Cpu) -> Self {
        let operation = record.operation().map(operation);
        let source = data_source(record, cpu);
        let hex = |address: u64| Avma(address).to_string();
        RecordFields {
            offset: record.offset(),
            cpu: None,
            tid: record.context().map(|context| context as i32),
            time_ns: None,
            pc: hex(record.pc()),
            el: record.exception_level(),
            operation: operation.map_or("other", |operation| operation.name()),
            class: operation.map_or_else(Vec::new, |operation| operation.classes()),
            vector_length: operation.and_then(|operation| operation.vector_length()),
            events: event_names(record.events(), cpu),
            total_latency: record.total_latency(),
            issue_latency: record.issue_latency(),
            translation_latency: record.translation_latency(),
            counters: record.other_counters().to_vec(),
            va: record.data_address().map(hex),
            pa: record.physical_address().map(hex),
            target: record.target().map(hex),
            previous_target: record.previous_target().map(hex),
            source: record.data_source(),
            level: source.level.map(|level| level.name()),
            hit: source.hit,
            snoop: source.snoop.map(|snoop| snoop.name()),
            remote: source.remote,
        }
    }
}
