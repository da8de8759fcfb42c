//! Recorded call chains, each kept once, as they lie in the file.
//!
//! A sample is recognised by a fingerprint of all that decides where its cost goes: event, thread, mode, address and
//! chain. So a sample costs one look-up, and the frames are looked up only for the first of its kind, and again when
//! the mappings of its process have changed since.

use super::bytes::Order;

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

/// One chain with what it came to when it was last looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    print: u128,
    pub key: Key,
    start: u32,
    length: u32,
    /// The state of the world it was looked up in, 0 before the first time.
    pub seen: u32,
    /// The task it belongs to, once looked up.
    pub task: u32,
    /// Whether kernel code is in it.
    pub kernel: bool,
    /// The row of the fold it came to.
    pub row: u32,
}

/// The set of chains.
#[derive(Default)]
pub(crate) struct Chains {
    /// Tag and number plus one, 0 for a free place; a power of two of them.
    slots: Vec<(u32, u32)>,
    chains: Vec<Chain>,
    words: Vec<u64>,
}

impl Chains {
    /// Whether chains should be dropped by [`Chains::retain`] before more are added.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.words.len() > MOST_WORDS || self.chains.len() > MOST_CHAINS
    }

    pub fn get(&self, id: ChainId) -> Option<&Chain> {
        self.chains.get(id.0 as usize)
    }

    pub fn get_mut(&mut self, id: ChainId) -> Option<&mut Chain> {
        self.chains.get_mut(id.0 as usize)
    }

    /// The recorded words of a chain, markers included, innermost first.
    pub fn words(&self, chain: &Chain) -> &[u64] {
        let start = chain.start as usize;
        self.words.get(start..start + chain.length as usize).unwrap_or(&[])
    }

    /// The number of this chain, whose words are `bytes` in the file's order.
    #[inline]
    pub fn intern(&mut self, key: Key, bytes: &[u8], order: Order) -> ChainId {
        let print = fingerprint(key, bytes);
        if self.chains.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let (slot, found) = self.find(print);
        match found {
            Some(id) => id,
            None => self.insert(slot, print, key, bytes, order),
        }
    }

    #[inline]
    fn find(&self, print: u128) -> (usize, Option<ChainId>) {
        let mask = self.slots.len() - 1;
        let tag = (print >> 96) as u32;
        let mut slot = print as usize & mask;
        loop {
            let (its_tag, number) = self.slots[slot];
            if number == 0 {
                return (slot, None);
            }
            if its_tag == tag && self.chains[number as usize - 1].print == print {
                return (slot, Some(ChainId(number - 1)));
            }
            slot = (slot + 1) & mask;
        }
    }

    #[cold]
    fn insert(&mut self, slot: usize, print: u128, key: Key, bytes: &[u8], order: Order) -> ChainId {
        let start = self.words.len() as u32;
        self.words.extend(bytes.as_chunks::<8>().0.iter().map(|&word| order.u64(word)));
        let length = self.words.len() as u32 - start;
        self.chains.push(Chain { print, key, start, length, seen: 0, task: 0, kernel: false, row: 0 });
        let number = self.chains.len() as u32;
        self.slots[slot] = ((print >> 96) as u32, number);
        ChainId(number - 1)
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(1 << 10);
        self.slots.clear();
        self.slots.resize(size, (0, 0));
        for number in 0..self.chains.len() {
            let print = self.chains[number].print;
            let slot = self.find_free(print);
            self.slots[slot] = ((print >> 96) as u32, number as u32 + 1);
        }
    }

    fn find_free(&self, print: u128) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = print as usize & mask;
        while self.slots[slot].1 != 0 {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Drops all chains but those in `kept`, and renumbers these in place.
    pub fn retain<'a>(&mut self, kept: impl Iterator<Item = &'a mut ChainId>) {
        let mut new = Chains::default();
        let mut moved = vec![0; self.chains.len()];
        for id in kept {
            let Some(&chain) = self.chains.get(id.0 as usize) else { continue };
            let place: &mut u32 = &mut moved[id.0 as usize];
            if *place == 0 {
                let start = new.words.len() as u32;
                new.words.extend_from_slice(self.words(&chain));
                new.chains.push(Chain { start, ..chain });
                *place = new.chains.len() as u32;
            }
            *id = ChainId(*place - 1);
        }
        new.slots.resize((new.chains.len() * 4).next_power_of_two().max(1 << 10), (0, 0));
        for number in 0..new.chains.len() {
            let print = new.chains[number].print;
            let slot = new.find_free(print);
            new.slots[slot] = ((print >> 96) as u32, number as u32 + 1);
        }
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

/// Two independent halves, each folded over all words two by two.
#[inline]
fn fingerprint(key: Key, bytes: &[u8]) -> u128 {
    let who = (key.pid as u32 as u64) << 32 | key.tid as u32 as u64;
    let what = (key.event as u64) << 16 | (key.mode as u64) << 8 | key.ip.is_some() as u64;
    let ip = key.ip.unwrap_or(0);
    let length = bytes.len() as u64;
    // The address is folded in by itself: it is in the chain too, and must not cancel out.
    let mut a = fold(fold(who ^ SEED[0], what ^ SEED[1] ^ length << 40) ^ ip, SEED[2]);
    let mut b = fold(fold(what ^ SEED[2] ^ length << 40, who ^ SEED[3]), ip ^ SEED[0]);
    let (pairs, rest) = bytes.as_chunks::<16>();
    for pair in pairs {
        let (x, y) = halves(pair);
        a = fold(a ^ x, y ^ SEED[4]);
        b = fold(b ^ y, x ^ SEED[5]);
    }
    let last = rest.first_chunk::<8>().map_or(0, |&word| u64::from_le_bytes(word));
    a = fold(a ^ last, SEED[5]);
    b = fold(b ^ last, SEED[4]);
    (a as u128) << 64 | b as u128
}

#[inline]
fn halves(pair: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*pair);
    (both as u64, (both >> 64) as u64)
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

    #[test]
    fn equal_chains_share_a_number_and_any_difference_separates() {
        let mut chains = Chains::default();
        let bytes: Vec<u8> = [5u64, 6, 7].iter().flat_map(|w| w.to_le_bytes()).collect();
        let first = chains.intern(key(5), &bytes, Order::Little);
        assert_eq!(chains.intern(key(5), &bytes, Order::Little), first);
        assert_eq!(chains.words(chains.get(first).unwrap()), [5, 6, 7]);
        let others = [
            chains.intern(key(6), &bytes, Order::Little),
            chains.intern(key(5), &bytes[..16], Order::Little),
            chains.intern(Key { tid: 2, ..key(5) }, &bytes, Order::Little),
            chains.intern(Key { event: 1, ..key(5) }, &bytes, Order::Little),
            chains.intern(Key { mode: 1, ..key(5) }, &bytes, Order::Little),
            chains.intern(Key { ip: None, ..key(0) }, &bytes, Order::Little),
            chains.intern(key(0), &bytes, Order::Little),
        ];
        for (i, id) in others.iter().enumerate() {
            assert_eq!(id.0 as usize, i + 1);
        }
    }

    #[test]
    fn thinning_out_keeps_what_is_pending() {
        let mut chains = Chains::default();
        let mut ids: Vec<_> = (0..5000).map(|i| chains.intern(key(i), &i.to_le_bytes(), Order::Little)).collect();
        let mut kept = ids.split_off(4990);
        kept.push(kept[0]);
        chains.retain(kept.iter_mut());
        assert_eq!(kept[0], kept[10]);
        for (id, ip) in kept.iter().zip(4990..5000) {
            assert_eq!(chains.words(chains.get(*id).unwrap()), [ip]);
            assert_eq!(chains.intern(key(ip), &ip.to_le_bytes(), Order::Little), *id);
        }
        assert_eq!(chains.intern(key(1), &1u64.to_le_bytes(), Order::Little), ChainId(10));
    }
}
