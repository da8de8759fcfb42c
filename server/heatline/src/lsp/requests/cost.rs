//! Costs as JSON.

use heatline_annotate::{Cost, Delta};
use serde::Serialize;

/// A cost: `{"weight":120,"percent":12.0,"samples":12}`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CostJson {
    weight: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<f64>,
    samples: u64,
}

impl From<&Cost> for CostJson {
    fn from(cost: &Cost) -> Self {
        CostJson {
            weight: cost.weight.0,
            percent: cost.percent.map(heatline_profile::Percent::value),
            samples: cost.samples,
        }
    }
}

/// A difference: `{"pp":-1.2,"low":-2.0,"high":-0.4,"significant":true}`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DeltaJson {
    pp: f64,
    low: f64,
    high: f64,
    significant: bool,
}

impl From<&Delta> for DeltaJson {
    fn from(delta: &Delta) -> Self {
        DeltaJson { pp: delta.points, low: delta.low, high: delta.high, significant: delta.significant }
    }
}
