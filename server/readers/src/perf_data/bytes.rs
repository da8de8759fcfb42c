//! Reading numbers of either byte order out of byte slices, never past their end.

/// The byte order of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }

    #[inline]
    pub fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Order::Little => u64::from_le_bytes(bytes),
            Order::Big => u64::from_be_bytes(bytes),
        }
    }

    /// The bytes of a word.
    pub fn bytes(self, word: u64) -> [u8; 8] {
        match self {
            Order::Little => word.to_le_bytes(),
            Order::Big => word.to_be_bytes(),
        }
    }

    /// The word at a byte position.
    #[inline]
    pub fn u64_at(self, bytes: &[u8], position: usize) -> Option<u64> {
        Some(self.u64(*bytes.get(position..)?.first_chunk()?))
    }

    /// The half word at a byte position.
    #[inline]
    pub fn u32_at(self, bytes: &[u8], position: usize) -> Option<u32> {
        Some(self.u32(*bytes.get(position..)?.first_chunk()?))
    }
}

/// A position in a byte slice that moves on with each read; `None` past the end.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    order: Order,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], order: Order) -> Self {
        Cursor { rest: bytes, order }
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*head)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(|b| self.order.u16(b))
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(|b| self.order.u32(b))
    }

    pub fn i32(&mut self) -> Option<i32> {
        self.u32().map(u32::cast_signed)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(|b| self.order.u64(b))
    }

    /// The next `length` bytes.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(head)
    }

    /// All that is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// A text that a length in bytes precedes and zeros pad, as perf's header sections have it.
    pub fn counted_text(&mut self) -> Option<String> {
        let length = self.u32()?;
        self.take(usize::try_from(length).ok()?).map(text)
    }
}

/// The text up to the first zero, or to the end. What is not UTF-8 is replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_and_no_reading_past_the_end() {
        let bytes = [1, 0, 0, 0, 0, 0, 0, 2, 9];
        assert_eq!(Order::Little.u64_at(&bytes, 0), Some(0x0200_0000_0000_0001));
        assert_eq!(Order::Big.u64_at(&bytes, 0), Some(0x0100_0000_0000_0002));
        assert_eq!(Order::Little.u64_at(&bytes, 2), None);
        assert_eq!(Order::Little.u64_at(&bytes, usize::MAX), None);
        let mut cursor = Cursor::new(&bytes, Order::Big);
        assert_eq!((cursor.u64(), cursor.u16(), cursor.u8()), (Some(0x0100_0000_0000_0002), None, Some(9)));
    }

    #[test]
    fn texts_end_at_the_first_zero() {
        assert_eq!(text(b"ab\0c"), "ab");
        assert_eq!(text(b"ab"), "ab");
        let mut cursor = Cursor::new(b"\x04\0\0\0ab\0\0rest", Order::Little);
        assert_eq!(cursor.counted_text().as_deref(), Some("ab"));
        assert_eq!(cursor.rest(), b"rest");
    }
}
