//! Numbers for addresses and their owners: a hash table of the plainest kind, small enough for a processor's caches.

use super::collect::Owner;

/// Finds the number of an address and owner. The keys themselves are the caller's; here are only hashes of them.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// A hash and a number plus one, or 0 in a free slot; a power of two of them.
    slots: Vec<(u32, u32)>,
    used: usize,
}

impl Default for Index {
    fn default() -> Self {
        Index { slots: vec![(0, 0); 1024], used: 0 }
    }
}

impl Index {
    #[inline(always)]
    fn hash(pc: u64, owner: Owner) -> u32 {
        ((pc ^ u64::from(owner.0) << 44).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }

    /// The upper bits of the hash, which are mixed best.
    #[inline(always)]
    fn slot(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.slots.len() as u64) >> 32) as usize
    }

    /// The number that an address most likely has; any number if it is new.
    #[inline(always)]
    pub(super) fn guess(&self, pc: u64, owner: Owner) -> u32 {
        let hash = Self::hash(pc, owner);
        let first = self.slot(hash);
        let second = (first + 1) & (self.slots.len() - 1);
        let at = |slot: usize| self.slots.get(slot).copied().unwrap_or_default();
        let (a, b) = (at(first), at(second));
        (if a.0 == hash { a.1 } else { b.1 }).wrapping_sub(1)
    }

    /// The number of an address, the next free one if it is new. `is_it` tells whether a number is that of the address.
    pub(super) fn find_or_add(&mut self, pc: u64, owner: Owner, is_it: impl Fn(u32) -> bool) -> u32 {
        let hash = Self::hash(pc, owner);
        let mut slot = self.slot(hash);
        loop {
            match self.slots.get_mut(slot) {
                Some(&mut (known, number)) if number > 0 => {
                    if known == hash && is_it(number - 1) {
                        return number - 1;
                    }
                    slot = (slot + 1) & (self.slots.len() - 1);
                }
                Some(free) => {
                    let number = self.used as u32;
                    *free = (hash, number + 1);
                    self.used += 1;
                    if self.used * 2 > self.slots.len() {
                        self.grow();
                    }
                    return number;
                }
                None => slot = 0,
            }
        }
    }

    fn grow(&mut self) {
        let larger = vec![(0, 0); self.slots.len() * 2];
        let all = std::mem::replace(&mut self.slots, larger);
        for entry in all.into_iter().filter(|entry| entry.1 > 0) {
            let mut slot = self.slot(entry.0);
            while self.slots.get(slot).is_some_and(|slot| slot.1 > 0) {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            if let Some(free) = self.slots.get_mut(slot) {
                *free = entry;
            }
        }
    }
}
