//! Numbers in text, as bytes: no strings are made for them.

use event::Nanos;

/// The whole text as a number, decimal or, after `0x`, hexadecimal.
pub(super) fn integer(text: &[u8]) -> Option<u64> {
    match leading(text)? {
        (number, []) => Some(number),
        _ => None,
    }
}

/// The number that a text begins with, decimal or after `0x`, and the rest.
#[inline]
pub(super) fn leading(text: &[u8]) -> Option<(u64, &[u8])> {
    if let [b'0', b'x' | b'X', digits @ ..] = text {
        return hexadecimal(digits);
    }
    let mut number = 0_u64;
    let mut length = 0;
    while let Some(digit @ b'0'..=b'9') = text.get(length) {
        number = number
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
        length += 1;
    }
    (length > 0).then(|| (number, &text[length..]))
}

/// The hexadecimal number that a text begins with, without `0x`, and the rest.
pub(super) fn hexadecimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    let mut length = 0;
    while let Some(digit) = text
        .get(length)
        .and_then(|byte| char::from(*byte).to_digit(16))
    {
        if number >> 60 != 0 {
            return None;
        }
        number = number << 4 | u64::from(digit);
        length += 1;
    }
    (length > 0).then(|| (number, &text[length..]))
}

/// The whole text as a number that may be negative.
pub(super) fn signed(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let number = integer(digits)?;
    if is_negative {
        0_i64.checked_sub_unsigned(number)
    } else {
        i64::try_from(number).ok()
    }
}

/// The number that a text begins with, which may be negative, and the rest.
#[inline]
pub(super) fn leading_signed(text: &[u8]) -> Option<(i64, &[u8])> {
    match text {
        [b'-', digits @ ..] => {
            let (number, rest) = leading(digits)?;
            Some((0_i64.checked_sub_unsigned(number)?, rest))
        }
        digits => {
            let (number, rest) = leading(digits)?;
            Some((i64::try_from(number).ok()?, rest))
        }
    }
}

/// The whole text as seconds with a fraction, in nanoseconds; digits beyond them are cut off.
pub(super) fn seconds(text: &[u8]) -> Option<Nanos> {
    match leading_seconds(text)? {
        (time, []) => Some(time),
        _ => None,
    }
}

/// The seconds with a fraction that a text begins with, as nanoseconds, and the rest.
#[inline]
pub(super) fn leading_seconds(text: &[u8]) -> Option<(Nanos, &[u8])> {
    let mut whole = 0_u64;
    let mut length = 0;
    while let Some(digit @ b'0'..=b'9') = text.get(length) {
        whole = whole
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
        length += 1;
    }
    if length == 0 || text.get(length) != Some(&b'.') {
        return None;
    }
    length += 1;
    let point = length;
    let (mut fraction, mut unit) = (0_u64, 100_000_000_u64);
    while let Some(digit @ b'0'..=b'9') = text.get(length) {
        fraction += u64::from(digit - b'0') * unit;
        unit /= 10;
        length += 1;
    }
    let time = whole.checked_mul(1_000_000_000)?.checked_add(fraction)?;
    (length > point).then(|| (Nanos(time), &text[length..]))
}

/// The text after `key` until the next space, where `key` begins a word.
pub(super) fn field<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    text.split(|byte| matches!(byte, b' ' | b'\t'))
        .find_map(|word| word.strip_prefix(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: numbers are read exactly or not at all. Method: the largest, one more, signs, rests, nothing.
    #[test]
    fn numbers() {
        assert_eq!(integer(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(integer(b"18446744073709551616"), None);
        assert_eq!(integer(b"0x7f"), Some(127));
        assert_eq!(integer(b"0x"), None);
        assert_eq!(integer(b"0xffffffffffffffff"), Some(u64::MAX));
        assert_eq!(integer(b"0x1ffffffffffffffff"), None);
        assert_eq!(integer(b""), None);
        assert_eq!(integer(b"12x"), None);
        assert_eq!(leading(b"12x"), Some((12, &b"x"[..])));
        assert_eq!(signed(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(signed(b"9223372036854775808"), None);
        assert_eq!(signed(b"-"), None);
        assert_eq!(leading_signed(b"-1 x"), Some((-1, &b" x"[..])));
    }

    /// Goal: times are exact in nanoseconds. Method: six, nine, one and too many digits; the largest; texts
    /// that are no time.
    #[test]
    fn times() {
        assert_eq!(seconds(b"50260.647576"), Some(Nanos(50_260_647_576_000)));
        assert_eq!(seconds(b"1.000000001"), Some(Nanos(1_000_000_001)));
        assert_eq!(seconds(b"0.0"), Some(Nanos(0)));
        assert_eq!(seconds(b"3.5"), Some(Nanos(3_500_000_000)));
        assert_eq!(seconds(b"3.1234567899"), Some(Nanos(3_123_456_789)));
        assert_eq!(seconds(b"18446744073.709551615"), Some(Nanos(u64::MAX)));
        assert_eq!(seconds(b"18446744073.709551616"), None);
        for text in ["", "5", "5.", ".5", "-1.0", "1.0s"] {
            assert_eq!(seconds(text.as_bytes()), None, "{text}");
        }
    }

    /// Goal: a field is found where it begins a word and nowhere else. Method: a key that ends another one.
    #[test]
    fn fields() {
        let text = b"child_pid=2 pid=1 state=";
        assert_eq!(field(text, b"pid="), Some(&b"1"[..]));
        assert_eq!(field(text, b"state="), Some(&b""[..]));
        assert_eq!(field(text, b"prio="), None);
    }
}
