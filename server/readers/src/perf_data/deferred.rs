//! Call chains whose user part comes later, in a record of its own.
//!
//! The kernel may put off walking the user stack until the thread returns to user mode. The sample's chain then ends
//! with a marker and a cookie, and a later record with the same cookie brings the rest. Both may come in either order,
//! as they may lie in the buffers of different processors; several samples may share one rest.

use super::chains::Key;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Bytes of samples and rests kept while the other half is missing.
const MOST_BYTES: usize = 8 << 20;

/// A sample whose chain is not whole.
pub(crate) struct Held {
    pub key: Key,
    pub time: Option<u64>,
    pub weight: u64,
    /// The chain so far, without marker and cookie.
    pub chain: Vec<u8>,
    cookie: u64,
}

/// Samples and rests that wait for each other.
#[derive(Default)]
pub(crate) struct Deferred {
    samples: FxHashMap<u64, Vec<Held>>,
    rests: FxHashMap<u64, Vec<u8>>,
    order: VecDeque<u64>,
    bytes: usize,
}

impl Deferred {
    /// Completes a sample at once if its rest has come before, or else keeps it.
    pub fn sample(&mut self, key: Key, time: Option<u64>, weight: u64, chain: &[u8], cookie: u64) -> Option<Held> {
        let mut held = Held { key, time, weight, chain: chain.to_vec(), cookie };
        if let Some(rest) = self.rests.get(&cookie) {
            held.chain.extend_from_slice(rest);
            return Some(held);
        }
        self.bytes += held.chain.len() + size_of::<Held>();
        self.samples.entry(cookie).or_default().push(held);
        None
    }

    /// Takes a rest, and gives the samples that it completes.
    pub fn rest(&mut self, cookie: u64, rest: &[u8]) -> Vec<Held> {
        let mut complete = self.samples.remove(&cookie).unwrap_or_default();
        for held in &mut complete {
            self.bytes = self.bytes.saturating_sub(held.chain.len() + size_of::<Held>());
            held.chain.extend_from_slice(rest);
        }
        self.bytes += rest.len() + 16;
        if let Some(old) = self.rests.insert(cookie, rest.to_vec()) {
            self.bytes = self.bytes.saturating_sub(old.len() + 16);
        } else {
            self.order.push_back(cookie);
        }
        while self.bytes > MOST_BYTES / 2
            && let Some(oldest) = self.order.pop_front()
        {
            let gone = self.rests.remove(&oldest).map_or(0, |rest| rest.len() + 16);
            self.bytes = self.bytes.saturating_sub(gone);
        }
        complete
    }

    /// Samples whose rest never came, if there are too many or if `all`.
    pub fn give_up(&mut self, all: bool) -> Vec<Held> {
        if !all && self.bytes <= MOST_BYTES {
            return Vec::new();
        }
        self.bytes = 0;
        self.rests.clear();
        self.order.clear();
        let mut held: Vec<Held> = self.samples.drain().flat_map(|(_, held)| held).collect();
        held.sort_unstable_by_key(|held| (held.time, held.cookie));
        held
    }
}
