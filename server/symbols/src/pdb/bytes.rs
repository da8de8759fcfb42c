//! Little-endian numbers out of bytes that may end too early.

/// Takes from the front; `None` where too little is left.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn u8(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub fn u16(&mut self) -> Option<u16> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_le_bytes(*bytes))
    }

    pub fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    /// Text up to a NUL, or to the end.
    pub fn text(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let (text, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest.get(1..).unwrap_or_default();
        text
    }

    /// A number of one, two or four bytes, as binary annotations have it.
    pub fn compressed(&mut self) -> Option<u32> {
        let first = u32::from(self.u8()?);
        if first & 0x80 == 0 {
            return Some(first);
        }
        let second = u32::from(self.u8()?);
        if first & 0xc0 == 0x80 {
            return Some((first & 0x3f) << 8 | second);
        }
        if first & 0xe0 != 0xc0 {
            return None;
        }
        Some((first & 0x1f) << 24 | second << 16 | u32::from(self.u8()?) << 8 | u32::from(self.u8()?))
    }
}

/// The signed number that an annotation's operand stands for: its lowest bit is the sign.
pub(super) fn signed(operand: u32) -> i32 {
    let size = (operand >> 1) as i32;
    if operand & 1 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_numbers_take_one_two_or_four_bytes() {
        for (bytes, number) in [
            (&[0x7f_u8][..], Some(0x7f)),
            (&[0x80, 0x80], Some(0x80)),
            (&[0xbf, 0xff], Some(0x3fff)),
            (&[0xc0, 0x00, 0x40, 0x00], Some(0x4000)),
            (&[0xdf, 0xff, 0xff, 0xff], Some(0x1fff_ffff)),
            (&[0xe0, 0, 0, 0], None),
            (&[0x80], None),
            (&[], None),
        ] {
            assert_eq!(Bytes(bytes).compressed(), number, "{bytes:x?}");
        }
        assert_eq!([signed(6), signed(7), signed(0)], [3, -3, 0]);
    }
}
