//! Recorded call chains, each kept once, as they lie in the file.
//!
//! A sample is recognised by a fingerprint of all that decides where its cost goes: event, thread, mode, address and
//! chain. So a sample costs one look-up, and the frames are looked up only for the first of its kind, and again when
//! the mappings of its process have changed since.

use super::bytes::Order;
use heatline_profile::{Tally, Weight};

/// Words of chains kept before the cache is thinned out.
const MOST_WORDS: usize = 1 << 22;

/// Chains kept before the cache is thinned out.
const MOST_CHAINS: usize = 1 << 19;

/// Number of a chain in [`Chains`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChainId(pub u32);

/// What decides where the cost of a sample goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    pub event: u32,
    pub pid: i32,
    pub tid: i32,
    /// The processor mode of the record's header.
    pub mode: u8,
    /// The sampled address; `None` where it was not recorded.
    pub ip: Option<u64>,
}

/// What a chain came to when it was last looked up, and what was counted since. Touched by every sample, so small.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Outcome {
    /// The state of the world it was looked up in, 0 before the first time.
    pub seen: u32,
    /// The task it belongs to, once looked up.
    pub task: u32,
    /// The row of the fold it came to.
    pub row: u32,
    samples: u32,
    weight: u64,
    squares: f64,
}

impl Outcome {
    /// Counts one sample; `false` if it must be settled first.
    #[inline]
    pub fn count(&mut self, weight: u64) -> bool {
        let (Some(samples), Some(sum)) = (self.samples.checked_add(1), self.weight.checked_add(weight)) else {
            return false;
        };
        (self.samples, self.weight) = (samples, sum);
        self.squares += weight as f64 * weight as f64;
        true
    }

    /// What was counted since this was last asked.
    pub fn settle(&mut self) -> Tally {
        let tally = Tally { samples: self.samples.into(), weight: Weight(self.weight), squares: self.squares };
        (self.samples, self.weight, self.squares) = (0, 0, 0.0);
        tally
    }
}

/// One chain as recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    print: u128,
    pub key: Key,
    start: u32,
    length: u32,
}

/// The set of chains.
#[derive(Default)]
pub(crate) struct Chains {
    /// In the low half of the low half the number plus one, 0 for a free place; above it the fingerprint's upper bits.
    /// A power of two of them, at least half of them free.
    slots: Vec<u128>,
    outcomes: Vec<Outcome>,
    chains: Vec<Chain>,
    words: Vec<u64>,
}

/// The bits of a slot that hold the number.
const NUMBER: u128 = u32::MAX as u128;

impl Chains {
    /// Whether chains should be dropped by [`Chains::retain`] before more are added.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.words.len() > MOST_WORDS || self.chains.len() > MOST_CHAINS
    }

    pub fn get(&self, id: ChainId) -> Option<&Chain> {
        self.chains.get(id.0 as usize)
    }

    #[inline]
    pub fn outcome(&mut self, id: ChainId) -> Option<&mut Outcome> {
        self.outcomes.get_mut(id.0 as usize)
    }

    /// All outcomes, to be settled.
    pub fn outcomes(&mut self) -> impl Iterator<Item = &mut Outcome> {
        self.outcomes.iter_mut()
    }

    /// The recorded words of a chain, markers included, innermost first.
    pub fn words(&self, chain: &Chain) -> &[u64] {
        let start = chain.start as usize;
        self.words.get(start..start + chain.length as usize).unwrap_or(&[])
    }

    /// What a chain with this fingerprint is compared with first, for [`Self::known`]. Asked for many chains in a row,
    /// memory answers for all of them at once.
    #[inline]
    pub fn peek(&self, print: Fingerprint) -> u128 {
        let mask = self.slots.len().wrapping_sub(1);
        self.slots.get(print.0 as usize & mask).copied().unwrap_or(0)
    }

    /// The number of the chain with this fingerprint, if what [`Self::peek`] gave is it.
    #[inline]
    pub fn known(print: Fingerprint, peeked: u128) -> Option<ChainId> {
        let same = (peeked ^ print.0) & !NUMBER == 0 && peeked & NUMBER != 0;
        same.then_some(ChainId(((peeked & NUMBER) as u32).wrapping_sub(1)))
    }

    /// The number of this chain, whose words are `bytes` in the file's order.
    #[inline]
    pub fn intern(&mut self, print: Fingerprint, key: &Key, bytes: &[u8], order: Order) -> ChainId {
        let print = print.0;
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = print as usize & mask;
        while let Some(&value) = self.slots.get(slot) {
            if (value ^ print) & !NUMBER == 0 && value & NUMBER != 0 {
                return ChainId((value & NUMBER) as u32 - 1);
            }
            if value & NUMBER == 0 {
                break;
            }
            slot = (slot + 1) & mask;
        }
        self.insert(print, key, bytes, order)
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, print: u128, key: &Key, bytes: &[u8], order: Order) -> ChainId {
        let start = self.words.len() as u32;
        self.words.extend(bytes.as_chunks::<8>().0.iter().map(|&word| order.u64(word)));
        let length = self.words.len() as u32 - start;
        self.chains.push(Chain { print, key: *key, start, length });
        self.outcomes.push(Outcome::default());
        if self.chains.len() * 2 > self.slots.len() {
            self.index();
        } else {
            self.place(print, self.chains.len() as u32);
        }
        ChainId(self.chains.len() as u32 - 1)
    }

    /// Makes the slots anew, twice as many as needed.
    fn index(&mut self) {
        self.slots = vec![0; (self.chains.len() * 4).next_power_of_two().max(1 << 10)];
        for number in 0..self.chains.len() {
            self.place(self.chains[number].print, number as u32 + 1);
        }
    }

    fn place(&mut self, print: u128, number: u32) {
        let mask = self.slots.len() - 1;
        let mut slot = print as usize & mask;
        while self.slots[slot] & NUMBER != 0 {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = print & !NUMBER | number as u128;
    }

    /// Drops all chains but those in `kept`, and renumbers these in place. Outcomes must be settled.
    pub fn retain<'a>(&mut self, kept: impl Iterator<Item = &'a mut ChainId>) {
        let mut new = Chains::default();
        let mut moved = vec![0; self.chains.len()];
        for id in kept {
            let (Some(&chain), Some(place)) = (self.chains.get(id.0 as usize), moved.get_mut(id.0 as usize)) else {
                continue;
            };
            if *place == 0 {
                let start = new.words.len() as u32;
                new.words.extend_from_slice(self.words(&chain));
                new.chains.push(Chain { start, ..chain });
                new.outcomes.push(self.outcomes[id.0 as usize]);
                *place = new.chains.len() as u32;
            }
            *id = ChainId(*place - 1);
        }
        new.index();
        *self = new;
    }
}

// Digits of π and e: odd constants without structure.
const SEED: [u64; 6] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7345,
    0xa409_3822_299f_31d1,
    0xb7e1_5162_8aed_2a6b,
    0xbf71_5880_9cf4_f3c7,
    0x62e7_160f_38b4_da57,
];

/// What the words of a chain are recognised by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChainPrint {
    high: u64,
    low: u64,
}

impl ChainPrint {
    /// Two independent halves, each folded over all words, in two strands that run side by side.
    #[inline]
    pub fn of(bytes: &[u8]) -> ChainPrint {
        let length = (bytes.len() as u64) << 40;
        let (mut a, mut b) = (length ^ SEED[0], length ^ SEED[1]);
        let (mut c, mut d) = (SEED[2], SEED[3]);
        let (quads, rest) = bytes.as_chunks::<32>();
        for quad in quads {
            let [x, y, z, w] = four(quad);
            (a, b) = (fold(a ^ x, y ^ SEED[4]), fold(b ^ y, x ^ SEED[5]));
            (c, d) = (fold(c ^ z, w ^ SEED[5]), fold(d ^ w, z ^ SEED[4]));
        }
        let rest = rest.as_chunks::<8>().0;
        let word = |at: usize| rest.get(at).map_or(0, |&word| u64::from_le_bytes(word));
        let [x, y, z, w] = [word(0), word(1), word(2), 0];
        (a, b) = (fold(a ^ x, y ^ SEED[4]), fold(b ^ y, x ^ SEED[5]));
        (c, d) = (fold(c ^ z, w ^ SEED[5]), fold(d ^ w, z ^ SEED[4]));
        ChainPrint { high: fold(a ^ SEED[0], c ^ SEED[1]), low: fold(b ^ SEED[2], d ^ SEED[3]) }
    }

    /// The fingerprint of a sample with this chain.
    #[inline]
    pub fn with(self, key: &Key) -> Fingerprint {
        let who = (key.pid as u32 as u64) << 32 | key.tid as u32 as u64;
        let what = (key.event as u64) << 16 | (key.mode as u64) << 8 | key.ip.is_some() as u64;
        let ip = key.ip.unwrap_or(0);
        let (a, b) = (fold(who ^ SEED[0], what ^ SEED[1]), fold(what ^ SEED[2], who ^ SEED[3]));
        let (c, d) = (fold(ip ^ SEED[1], SEED[2]), fold(ip ^ SEED[3], SEED[0]));
        let (high, low) = (fold(self.high ^ a, c ^ SEED[4]), fold(self.low ^ b, d ^ SEED[5]));
        Fingerprint((high as u128) << 64 | low as u128)
    }
}

/// What a sample is recognised by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fingerprint(u128);

/// The fingerprint of a sample whose chain has these words.
#[inline]
pub(crate) fn fingerprint(key: &Key, bytes: &[u8]) -> Fingerprint {
    ChainPrint::of(bytes).with(key)
}

#[inline]
fn four(bytes: &[u8; 32]) -> [u64; 4] {
    let word = |at: usize| bytes[at..].first_chunk().map_or(0, |&word| u64::from_le_bytes(word));
    [word(0), word(8), word(16), word(24)]
}

#[inline]
fn fold(x: u64, y: u64) -> u64 {
    let product = x as u128 * y as u128;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(ip: u64) -> Key {
        Key { event: 0, pid: 1, tid: 1, mode: 2, ip: Some(ip) }
    }

    fn intern(chains: &mut Chains, key: Key, bytes: &[u8]) -> ChainId {
        chains.intern(fingerprint(&key, bytes), &key, bytes, Order::Little)
    }

    #[test]
    fn equal_chains_share_a_number_and_any_difference_separates() {
        let mut chains = Chains::default();
        let bytes: Vec<u8> = [5u64, 6, 7].iter().flat_map(|w| w.to_le_bytes()).collect();
        let first = intern(&mut chains, key(5), &bytes);
        assert_eq!(intern(&mut chains, key(5), &bytes), first);
        assert_eq!(chains.words(chains.get(first).unwrap()), [5, 6, 7]);
        let others = [
            intern(&mut chains, key(6), &bytes),
            intern(&mut chains, key(5), &bytes[..16]),
            intern(&mut chains, Key { tid: 2, ..key(5) }, &bytes),
            intern(&mut chains, Key { event: 1, ..key(5) }, &bytes),
            intern(&mut chains, Key { mode: 1, ..key(5) }, &bytes),
            intern(&mut chains, Key { ip: None, ..key(0) }, &bytes),
            intern(&mut chains, key(0), &bytes),
        ];
        for (i, id) in others.iter().enumerate() {
            assert_eq!(id.0 as usize, i + 1);
        }
    }

    #[test]
    fn thinning_out_keeps_what_is_pending() {
        let mut chains = Chains::default();
        let mut ids: Vec<_> = (0..5000).map(|i| intern(&mut chains, key(i), &i.to_le_bytes())).collect();
        let mut kept = ids.split_off(4990);
        kept.push(kept[0]);
        chains.retain(kept.iter_mut());
        assert_eq!(kept[0], kept[10]);
        for (id, ip) in kept.iter().zip(4990..5000) {
            assert_eq!(chains.words(chains.get(*id).unwrap()), [ip]);
            assert_eq!(intern(&mut chains, key(ip), &ip.to_le_bytes()), *id);
        }
        assert_eq!(intern(&mut chains, key(1), &1u64.to_le_bytes()), ChainId(10));
    }
}
