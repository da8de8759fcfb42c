//! Protocol buffers, as far as `profile.proto` needs them: fields of numbers and of bytes.

/// A value of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value<'a> {
    /// Of wire type 0; the other types of numbers are not used by the format.
    Number(u64),
    /// Of wire type 2: a text, a message or packed numbers.
    Bytes(&'a [u8]),
    /// Of another wire type: passed over.
    Other,
}

/// The bytes are no message, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Malformed {
    /// Position in the message.
    pub at: usize,
}

/// The fields of a message, in the order they come.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        Fields { bytes, at: 0 }
    }

    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let key = self.number()?;
        let field = u32::try_from(key >> 3).ok().filter(|&field| field > 0)?;
        let value = match key & 7 {
            0 => Value::Number(self.number()?),
            1 => self.take(8).map(|_| Value::Other)?,
            2 => {
                let length = usize::try_from(self.number()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Other)?,
            _ => return None,
        };
        Some((field, value))
    }

    fn number(&mut self) -> Option<u64> {
        let (value, length) = varint(self.bytes.get(self.at..)?)?;
        self.at += length;
        Some(value)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let start = self.at;
        let field = self.field().ok_or(Malformed { at: start });
        if field.is_err() {
            self.at = self.bytes.len();
        }
        Some(field)
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        let group = u64::from(byte & 0x7f);
        if at == 9 && group > 1 {
            return None;
        }
        value |= group << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

/// The numbers of a repeated field, packed or one by one.
pub(super) fn numbers(value: Value<'_>, mut add: impl FnMut(u64)) -> Result<(), Malformed> {
    match value {
        Value::Number(number) => add(number),
        Value::Bytes(bytes) => {
            let mut at = 0;
            while at < bytes.len() {
                let (number, length) = varint(&bytes[at..]).ok_or(Malformed { at })?;
                add(number);
                at += length;
            }
        }
        Value::Other => {}
    }
    Ok(())
}

/// Writes a message.
#[derive(Debug, Default)]
pub(super) struct Message(pub Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A number; 0 is what a missing field means.
    pub fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.varint(u64::from(field) << 3);
            self.varint(value);
        }
    }

    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub fn message(&mut self, field: u32, message: &Message) {
        self.bytes(field, &message.0);
    }

    pub fn packed(&mut self, field: u32, numbers: impl IntoIterator<Item = u64>) {
        let mut packed = Message::default();
        numbers.into_iter().for_each(|number| packed.varint(number));
        self.message(field, &packed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the encoding's own documentation: `a = 150`, `b = "testing"`, packed 3, 270 and 86942.
    #[test]
    fn documented_examples_are_read_and_written() {
        let bytes = [&[0x08, 0x96, 0x01][..], &[0x12, 7], b"testing", &[0x32, 6, 3, 0x8e, 2, 0x9e, 0xa7, 5]].concat();
        let fields: Vec<_> = Fields::of(&bytes).map(Result::unwrap).collect();
        assert_eq!(fields[0], (1, Value::Number(150)));
        assert_eq!(fields[1], (2, Value::Bytes(b"testing")));
        let mut found = Vec::new();
        numbers(fields[2].1, |number| found.push(number)).unwrap();
        assert_eq!(found, [3, 270, 86942]);
        let mut message = Message::default();
        message.number(1, 150);
        message.bytes(2, b"testing");
        message.packed(6, found);
        assert_eq!(message.0, bytes);
    }

    #[test]
    fn what_ends_early_or_has_no_field_is_malformed() {
        for bytes in [
            &[0x08][..],
            &[0x12, 7, b't'],
            &[0x00, 1],
            &[0x0b],
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        ] {
            assert_eq!(Fields::of(bytes).collect::<Vec<_>>(), [Err(Malformed { at: 0 })], "{bytes:?}");
        }
        let huge = [0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert!(Fields::of(&huge).next().unwrap().is_err());
    }
}
