//! Protobuf's wire format, as far as reading needs it: fields one after another, nothing copied.
//!
//! A message is a list of (number, value); the meaning of a number is known to the caller. Unknown numbers
//! are skipped, which is how the format grows. (protobuf.dev, "Encoding".)

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// A varint, or a fixed 64-bit or 32-bit number.
    Number(u64),
    /// Text, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The number; of bytes, 0, as of a missing field.
    pub(super) fn number(self) -> u64 {
        match self {
            Value::Number(number) => number,
            Value::Bytes(_) => 0,
        }
    }

    /// The bytes; of a number, none.
    pub(super) fn bytes(self) -> &'a [u8] {
        match self {
            Value::Number(_) => &[],
            Value::Bytes(bytes) => bytes,
        }
    }
}

/// The fields of a message.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    is_broken: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Fields<'a> {
        Fields {
            rest: message,
            is_broken: false,
        }
    }

    /// The number of bytes still to be read.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Whether the message ended before its end, or holds bytes that are no field. Known once there is no
    /// next.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    #[inline(always)]
    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let key = varint(&mut self.rest)?;
        let number = u32::try_from(key >> 3).ok()?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut self.rest)?),
            1 => Value::Number(u64::from_le_bytes(*chunk(&mut self.rest)?)),
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                let (bytes, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                Value::Bytes(bytes)
            }
            5 => Value::Number(u32::from_le_bytes(*chunk(&mut self.rest)?).into()),
            _ => return None,
        };
        Some((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Value<'a>);

    #[inline(always)]
    fn next(&mut self) -> Option<(u32, Value<'a>)> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.rest = &[];
            self.is_broken = true;
        }
        field
    }
}

fn chunk<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (chunk, more) = rest.split_first_chunk()?;
    *rest = more;
    Some(chunk)
}

/// Takes a varint off the front: seven bits in each byte, the lowest first, at most ten bytes. `None` if it
/// is not whole.
#[inline(always)]
pub(super) fn varint(rest: &mut &[u8]) -> Option<u64> {
    let (&first, more) = rest.split_first()?;
    if first < 0x80 {
        *rest = more;
        return Some(first.into());
    }
    // Tids, mostly.
    if let Some((&second, more)) = more.split_first()
        && second < 0x80
    {
        *rest = more;
        return Some(u64::from(first & 0x7f) | u64::from(second) << 7);
    }
    let (value, length) = long_varint(rest);
    *rest = rest.get(length..).filter(|_| length > 0)?;
    Some(value)
}

/// The value and the length of a varint of more than two bytes; a length of 0 if it is not whole.
#[inline(never)]
fn long_varint(bytes: &[u8]) -> (u64, usize) {
    if let Some(found) = word(bytes, 0).and_then(first_varint) {
        return found;
    }
    let mut value = 0;
    for (at, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return (value, at + 1);
        }
    }
    (0, 0)
}

/// The low seven bits of each byte, one after another: bytes to pairs, pairs to fours, fours to eight.
#[inline]
fn squeeze(word: u64) -> u64 {
    let word = word & 0x7f7f_7f7f_7f7f_7f7f;
    let word = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let word = word & 0x0000_3fff_0000_3fff | (word & 0x3fff_0000_3fff_0000) >> 2;
    word & 0x0fff_ffff | (word & 0x0fff_ffff_0000_0000) >> 4
}

/// The eight bytes from a place on, the first one lowest; `None` if there are less.
///
/// Fast readers know the usual form of a message and read it from such words, without a check at each byte.
/// Bytes in another form, or too near to the end for a word, are read as [`Fields`].
#[inline(always)]
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*word))
}

/// The varint of up to eight bytes that a word begins with, and how many bytes it has.
#[inline(always)]
pub(super) fn first_varint(word: u64) -> Option<(u64, usize)> {
    let ends = !word & 0x8080_8080_8080_8080;
    if ends == 0 {
        return None;
    }
    let last = ends.trailing_zeros();
    let own = word & (u64::MAX >> (63 - last));
    Some((squeeze(own), last as usize / 8 + 1))
}

/// The varint of up to three bytes that a word begins with, and how many bytes it has; tids are of this kind.
/// Checking each length by itself is faster than one way for all.
#[inline(always)]
pub(super) fn short_varint(word: u64) -> Option<(u32, usize)> {
    let word = word as u32;
    if word & 0x80 == 0 {
        return Some((word & 0x7f, 1));
    }
    let low = word & 0x7f | (word & 0x7f00) >> 1;
    if word & 0x8000 == 0 {
        return Some((low, 2));
    }
    (word & 0x80_0000 == 0).then_some((low | (word & 0x7f_0000) >> 2, 3))
}

/// Numbers that are packed one after another in a field.
pub(super) struct Packed<'a>(pub(super) &'a [u8]);

impl Iterator for Packed<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        varint(&mut self.0)
    }
}

/// The low fields of a message by their numbers: missing ones are 0, or empty.
pub(super) struct Row<'a> {
    numbers: [u64; Row::WIDTH],
    bytes: [&'a [u8]; Row::WIDTH],
    is_there: u16,
}

impl<'a> Row<'a> {
    const WIDTH: usize = 16;

    /// `None` if the message is broken.
    #[inline]
    pub(super) fn of(message: &'a [u8]) -> Option<Row<'a>> {
        let mut row = Row {
            numbers: [0; Row::WIDTH],
            bytes: [&[]; Row::WIDTH],
            is_there: 0,
        };
        let mut fields = Fields::of(message);
        for (number, value) in &mut fields {
            let at = number as usize;
            if at < Row::WIDTH {
                row.is_there |= 1 << at;
                match value {
                    Value::Number(number) => row.numbers[at] = number,
                    Value::Bytes(bytes) => row.bytes[at] = bytes,
                }
            }
        }
        (!fields.is_broken()).then_some(row)
    }

    pub(super) fn has(&self, field: usize) -> bool {
        self.is_there & (1 << field) != 0
    }

    pub(super) fn number(&self, field: usize) -> u64 {
        self.numbers[field]
    }

    /// A number that is signed in the format. Negative ones take ten bytes, so the low half is enough.
    pub(super) fn signed(&self, field: usize) -> i32 {
        self.numbers[field] as i32
    }

    pub(super) fn bytes(&self, field: usize) -> &'a [u8] {
        self.bytes[field]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every kind of field is read, and unknown kinds end the message as broken. Method: bytes by hand,
    /// after the format's own example (field 1 = 150).
    #[test]
    fn fields_of_every_kind_are_read() {
        let bytes = [
            &[0x08, 0x96, 0x01][..],
            &[0x12, 2, b'h', b'i'],
            &[0x19, 1, 0, 0, 0, 0, 0, 0, 0x80],
            &[0x25, 2, 0, 0, 0x80],
        ]
        .concat();
        let mut fields = Fields::of(&bytes);
        let all: Vec<_> = fields.by_ref().collect();
        let expected = [
            (1, Value::Number(150)),
            (2, Value::Bytes(b"hi")),
            (3, Value::Number(1 | 1 << 63)),
            (4, Value::Number(2 | 1 << 31)),
        ];
        assert_eq!(all, expected);
        assert!(!fields.is_broken());
        // A group, which is no longer in use.
        let mut fields = Fields::of(&[0x08, 1, 0x0b, 0x08, 2]);
        assert_eq!(fields.by_ref().count(), 1);
        assert!(fields.is_broken());
    }

    /// Goal: a message cut off anywhere inside of a field is broken, and between fields it is whole. Method:
    /// every prefix of one with known boundaries.
    #[test]
    fn cut_off_messages_are_broken() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x18, 5];
        for length in 0..=bytes.len() {
            let mut fields = Fields::of(&bytes[..length]);
            let count = fields.by_ref().count();
            let whole = [0, 3, 7, 9].iter().position(|end| *end == length);
            assert_eq!(fields.is_broken(), whole.is_none(), "{length}");
            assert!(whole.is_none_or(|whole| whole == count));
        }
    }

    /// Goal: numbers of ten bytes are read, longer ones are none. Method: −1 and eleven bytes.
    #[test]
    fn a_varint_has_at_most_ten_bytes() {
        let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(varint(&mut &minus_one[..]), Some(u64::MAX));
        assert_eq!(varint(&mut &[0xff; 12][..]), None);
        assert_eq!(varint(&mut &[0xff; 5][..]), None);
    }

    /// Goal: a varint of any length is read, whatever follows it and however little. Method: numbers with
    /// every number of bits, read by a plain loop, too; behind them nothing, or more of either kind of byte.
    #[test]
    fn varints_of_every_length() {
        for bits in 0..=64 {
            let value = u64::MAX.checked_shr(64 - bits).unwrap_or(0) & 0xd3b5_97a6_e1f0_8c4b;
            let value = value | 1u64.checked_shl(bits.wrapping_sub(1)).unwrap_or(0);
            let plain = super::super::wire_test::varint(value);
            for more in [&[][..], &[0], &[0xff], &[0; 12], &[0xff; 12]] {
                let bytes = [&plain[..], more].concat();
                let mut rest = &bytes[..];
                assert_eq!(varint(&mut rest), Some(value), "{bits} bits, {more:?}");
                assert_eq!(rest, more);
            }
        }
    }
}
