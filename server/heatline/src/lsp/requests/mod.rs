//! One file per request: take what is needed of the state, look it up, encode it.

pub mod adjacent_hotspot;
pub mod call_hierarchy;
pub mod candidates;
pub mod code_lens;
pub mod cost;
pub mod deltas;
pub mod execute_command;
pub mod freeze;
pub mod heat;
pub mod hotspots;
pub mod hover;
pub mod initialize;
pub mod inlay_hint;
pub mod line_calls;
pub mod locate;
pub mod prepare_call_hierarchy;
