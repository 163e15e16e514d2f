//! The format of a file, by its first bytes, never by its name.

use super::ftrace;
use super::unpack::Packing;

/// The number of bytes that are looked at.
pub(super) const LOOK: usize = 64 << 10;

/// The format that the first bytes show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Packed(Packing),
    /// This many bytes stand in front of the trace.
    After(usize),
    Text,
    Html,
    Json,
    Perfetto,
    /// Known, and not read here.
    Refused(Refused),
    Empty,
    Unknown,
}

/// Formats that are known and not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    TraceDat,
    PerfData,
    Zip,
    Zstd,
    Xz,
    Bzip2,
}

/// The format of a file with this beginning. `first` holds [`LOOK`] bytes, or all there are.
pub(super) fn detect(first: &[u8]) -> Kind {
    const MAGIC: &[(&[u8], Kind)] = &[
        (b"\x1f\x8b\x08", Kind::Packed(Packing::Gzip)),
        (b"\x17\x08\x44tracing", Kind::Refused(Refused::TraceDat)),
        (b"PERFILE2", Kind::Refused(Refused::PerfData)),
        (b"2ELIFREP", Kind::Refused(Refused::PerfData)),
        (b"PK\x03\x04", Kind::Refused(Refused::Zip)),
        (b"\x28\xb5\x2f\xfd", Kind::Refused(Refused::Zstd)),
        (b"\xfd7zXZ\0", Kind::Refused(Refused::Xz)),
        (b"BZh", Kind::Refused(Refused::Bzip2)),
    ];
    if let Some((_, kind)) = MAGIC.iter().find(|(magic, _)| first.starts_with(magic)) {
        return *kind;
    }
    if let [0x78, flags, ..] = first
        && (0x7800 + u16::from(*flags)).is_multiple_of(31)
        && flags & 0x20 == 0
    {
        return Kind::Packed(Packing::Zlib);
    }
    if let Some(length) = atrace_greeting(first) {
        return Kind::After(length);
    }
    let text = first
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(first)
        .trim_ascii_start();
    match text {
        [] if !first.is_empty() => return Kind::Unknown,
        [] => return Kind::Empty,
        [b'<', ..] if begins_html(text) => return Kind::Html,
        [b'{', ..] => return Kind::Json,
        [b'[', rest @ ..]
            if matches!(rest.trim_ascii_start().first(), None | Some(b'{' | b']')) =>
        {
            return Kind::Json;
        }
        _ => {}
    }
    let mut lines = first.split(|byte| *byte == b'\n');
    if lines.any(|line| !line.iter().any(is_control) && ftrace::is_known(line)) {
        Kind::Text
    } else if is_perfetto(first) {
        Kind::Perfetto
    } else {
        Kind::Unknown
    }
}

/// The length of the text that `atrace` writes before the trace, which ends with `TRACE:` on a line of its
/// own.
fn atrace_greeting(first: &[u8]) -> Option<usize> {
    const WORD: &[u8] = b"TRACE:";
    let mut from = 0;
    for line in first.split_inclusive(|byte| *byte == b'\n').take(16) {
        from += line.len();
        if line.trim_ascii_end() == WORD && line.ends_with(b"\n") {
            return Some(from);
        }
        if line.iter().any(is_control) || line.starts_with(b"#") {
            return None;
        }
    }
    None
}

fn begins_html(text: &[u8]) -> bool {
    let begins = |word: &[u8]| {
        let start = text.get(..word.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    begins(b"<!DOCTYPE html") || begins(b"<html") || begins(b"<!--")
}

fn is_control(byte: &u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | b'\x1b')
}

/// Whether these are packets: field 1, a length, and again, up to the end of the bytes.
fn is_perfetto(mut rest: &[u8]) -> bool {
    let mut packets = 0;
    while let [0x0a, after @ ..] = rest {
        let Some((length, used)) = varint(after) else {
            break;
        };
        packets += 1;
        let skipped = usize::try_from(length)
            .ok()
            .and_then(|length| used.checked_add(length));
        match skipped.and_then(|skipped| after.get(skipped..)) {
            Some(next) => rest = next,
            // It continues behind the bytes that are looked at: its first field must be one.
            None => {
                return after
                    .get(used)
                    .is_none_or(|tag| tag >> 3 != 0 && tag & 7 <= 5);
            }
        }
    }
    packets > 0 && rest.is_empty()
}

fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (position, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            return Some((value, position + 1));
        }
    }
    None
}
