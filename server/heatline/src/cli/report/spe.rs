//! SPE statistics in JSON.

use heatline_profile::{Distribution, Ratio, SpeOperation, SpeSnoop, SpeSource, SpeStats};
use serde::Serialize;
use std::collections::BTreeMap;

/// The statistics of a row; what no record tells is absent.
#[derive(Serialize)]
pub struct SpeJson {
    records: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_latency: Option<LatencyJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issue_latency: Option<LatencyJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    translation_latency: Option<LatencyJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_latency: Option<LatencyJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    l1d_miss: Option<RatioJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    l2d_miss: Option<RatioJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    llc_miss: Option<RatioJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tlb_miss: Option<RatioJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mispredicted: Option<RatioJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_taken: Option<RatioJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    misaligned: Option<RatioJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<RatioJson>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    sources: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    snoops: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    operations: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct LatencyJson {
    sum: u64,
    mean: f64,
    p50: u16,
    p95: u16,
}

#[derive(Serialize)]
struct RatioJson {
    count: u64,
    of: u64,
}

impl From<&SpeStats> for SpeJson {
    fn from(stats: &SpeStats) -> Self {
        let used = |parts: &mut dyn Iterator<Item = (&'static str, u64)>| parts.filter(|(_, part)| *part > 0).collect();
        SpeJson {
            records: stats.records,
            total_latency: latency(&stats.total_latency),
            issue_latency: latency(&stats.issue_latency),
            translation_latency: latency(&stats.translation_latency),
            execution_latency: latency(&stats.execution_latency),
            l1d_miss: ratio(stats.l1d_miss),
            l2d_miss: ratio(stats.l2d_miss),
            llc_miss: ratio(stats.llc_miss),
            tlb_miss: ratio(stats.tlb_miss),
            mispredicted: ratio(stats.mispredicted),
            not_taken: ratio(stats.not_taken),
            misaligned: ratio(stats.misaligned),
            remote: ratio(stats.remote),
            sources: used(&mut SpeSource::ALL.iter().map(|&source| (source.name(), stats.source(source)))),
            snoops: used(&mut SpeSnoop::ALL.iter().map(|&snoop| (snoop.name(), stats.snoop(snoop)))),
            operations: used(&mut SpeOperation::ALL.iter().map(|&kind| (kind.name(), stats.operation(kind)))),
        }
    }
}

fn latency(of: &Distribution) -> Option<LatencyJson> {
    Some(LatencyJson { sum: of.sum(), mean: of.mean()?, p50: of.percentile(50)?, p95: of.percentile(95)? })
}

fn ratio(of: Ratio) -> Option<RatioJson> {
    (of.of > 0).then_some(RatioJson { count: of.count, of: of.of })
}
