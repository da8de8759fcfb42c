//! Numbers and texts as the tables of a frozen profile hold them.
//!
//! A number is written in groups of seven bits, lowest first, each but the last with the top bit set. A signed number
//! is written as `2n` or `-2n-1`. A text is its length in bytes and UTF-8; an optional value is 0, or 1 and the value.

use std::sync::Arc;

/// What the tables become may take so much memory: a byte of them can stand for an item that is much larger.
const MOST_MEMORY: u64 = 512 << 20;

/// Longer texts (paths, names, messages) than this are damage.
const LONGEST_TEXT: usize = 1 << 20;

/// Writes values.
#[derive(Debug, Default)]
pub(super) struct Encoder(pub Vec<u8>);

impl Encoder {
    pub fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub fn signed(&mut self, value: i64) {
        self.number(((value << 1) ^ (value >> 63)) as u64);
    }

    /// Exact, unlike a printed number.
    pub fn float(&mut self, value: f64) {
        self.0.extend_from_slice(&value.to_bits().to_le_bytes());
    }

    pub fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.number(u64::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    pub fn list<T>(&mut self, list: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.count(list.len());
        list.iter().for_each(|item| write(self, item));
    }
}

/// What is wrong with the tables, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Damage {
    /// Position in the tables.
    pub at: usize,
    /// What was expected there.
    pub expected: &'static str,
}

pub(super) type Decoded<T> = Result<T, Damage>;

/// Reads values. Never allocates more than [`MOST_MEMORY`], nor before the bytes are there that can fill it.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    memory_left: u64,
}

impl<'a> Decoder<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Decoder { bytes, at: 0, memory_left: MOST_MEMORY }
    }

    pub fn damage<T>(&self, expected: &'static str) -> Decoded<T> {
        Err(Damage { at: self.at, expected })
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub fn number(&mut self) -> Decoded<u64> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let Some(&byte) = self.bytes.get(self.at) else { return self.damage("a number") };
            let group = u64::from(byte & 0x7f);
            if shift > 63 || (shift == 63 && group > 1) {
                return self.damage("a number of 64 bits");
            }
            value |= group << shift;
            self.at += 1;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    pub fn signed(&mut self) -> Decoded<i64> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A number that fits a narrower type.
    pub fn narrow<T: TryFrom<u64>>(&mut self, expected: &'static str) -> Decoded<T> {
        T::try_from(self.number()?).or_else(|_| self.damage(expected))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize, expected: &'static str) -> Decoded<u32> {
        let value: u32 = self.narrow(expected)?;
        if (value as usize) < end { Ok(value) } else { self.damage(expected) }
    }

    pub fn float(&mut self) -> Decoded<f64> {
        let bytes = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>());
        let Some(bytes) = bytes else { return self.damage("a number of eight bytes") };
        self.at += 8;
        Ok(f64::from_bits(u64::from_le_bytes(*bytes)))
    }

    pub fn flag(&mut self) -> Decoded<bool> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.damage("0 or 1"),
        }
    }

    /// How many items follow, each of at least one byte.
    pub fn count(&mut self) -> Decoded<usize> {
        let count: usize = self.narrow("a count")?;
        if count > self.bytes.len() - self.at {
            return self.damage("a count of what follows");
        }
        Ok(count)
    }

    /// How many items follow that become a list of `T`, for which there is memory.
    pub fn count_of<T>(&mut self) -> Decoded<usize> {
        let count = self.count()?;
        self.take_memory((count as u64).saturating_mul(size_of::<T>() as u64))?;
        Ok(count)
    }

    fn take_memory(&mut self, bytes: u64) -> Decoded<()> {
        match self.memory_left.checked_sub(bytes) {
            Some(left) => {
                self.memory_left = left;
                Ok(())
            }
            None => self.damage("tables that take at most 512 MiB of memory"),
        }
    }

    pub fn bytes(&mut self, longest: usize) -> Decoded<&'a [u8]> {
        let count = self.count()?;
        if count > longest {
            return self.damage("a shorter text");
        }
        let bytes = self.bytes.get(self.at..self.at + count);
        self.at += count;
        bytes.map_or_else(|| self.damage("bytes"), Ok)
    }

    pub fn text(&mut self) -> Decoded<String> {
        let bytes = self.bytes(LONGEST_TEXT)?;
        self.take_memory(bytes.len() as u64)?;
        String::from_utf8(bytes.to_vec()).or_else(|_| self.damage("UTF-8"))
    }

    /// A text that many may hold.
    pub fn shared_text(&mut self) -> Decoded<Arc<str>> {
        let bytes = self.bytes(LONGEST_TEXT)?;
        self.take_memory(bytes.len() as u64)?;
        std::str::from_utf8(bytes).map(Arc::from).or_else(|_| self.damage("UTF-8"))
    }

    pub fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Decoded<T>) -> Decoded<Option<T>> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Decoded<T>) -> Decoded<Vec<T>> {
        let count = self.count_of::<T>()?;
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(read(self)?);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_sizes_come_back() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let signed = [0, -1, 1, i64::MIN, i64::MAX];
        let mut out = Encoder::default();
        numbers.iter().for_each(|&n| out.number(n));
        signed.iter().for_each(|&n| out.signed(n));
        let mut input = Decoder::new(&out.0);
        assert_eq!(numbers.map(|_| input.number().unwrap()), numbers);
        assert_eq!(signed.map(|_| input.signed().unwrap()), signed);
        assert!(input.is_at_end());
    }

    #[test]
    fn items_that_take_more_memory_than_there_may_be_are_refused() {
        let mut out = Encoder::default();
        let count = MOST_MEMORY as usize / size_of::<[u8; 4096]>() + 1;
        out.count(count);
        out.0.resize(out.0.len() + count, 0);
        let error = Decoder::new(&out.0).count_of::<[u8; 4096]>().unwrap_err();
        assert_eq!(error.expected, "tables that take at most 512 MiB of memory");
        assert_eq!(Decoder::new(&out.0).count_of::<u8>(), Ok(count));
    }

    #[test]
    fn no_more_than_64_bits_and_no_more_items_than_bytes() {
        let too_long = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert!(Decoder::new(&too_long).number().is_err());
        assert!(Decoder::new(&[0xff; 10]).number().is_err());
        assert_eq!(Decoder::new(&[100, 0, 0]).count(), Err(Damage { at: 1, expected: "a count of what follows" }));
        assert!(Decoder::new(&[2, 0xc3, 0x28]).text().is_err());
    }
}
