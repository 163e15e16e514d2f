//! A file as packets: only the current piece is in memory.

use std::io::{self, ErrorKind, Read};

use super::wire::varint;

/// The number of bytes that are read at once.
pub(super) const PIECE: usize = 256 << 10;

/// The key of a packet: field 1, of bytes.
const PACKET: u64 = 1 << 3 | 2;

/// Packets of a file.
pub(super) struct Source<R> {
    input: R,
    buffer: Vec<u8>,
    /// The part of the buffer that is still to be read: from here to here.
    at: usize,
    end: usize,
    /// The number of bytes in the buffer that the next packet needs, if it is known.
    wanted: usize,
    /// The size of the next piece, and the largest one.
    piece: usize,
    most: usize,
    has_ended: bool,
    /// Why the input cannot be read on, until that is reported.
    failure: Option<io::Error>,
    is_broken: bool,
}

/// The packets that are in the buffer as a whole.
pub(super) struct Here<'s> {
    bytes: &'s [u8],
    at: &'s mut usize,
    wanted: &'s mut usize,
    is_broken: &'s mut bool,
}

impl<'s> Iterator for Here<'s> {
    type Item = &'s [u8];

    /// The next packet; `None` if it is not here, or none begins here.
    fn next(&mut self) -> Option<&'s [u8]> {
        loop {
            match head(&self.bytes[*self.at..]) {
                FieldHead::Field {
                    is_packet,
                    from,
                    to,
                } if to <= self.bytes.len() - *self.at => {
                    let begin = *self.at + from;
                    *self.at += to;
                    if is_packet {
                        return Some(&self.bytes[begin..*self.at]);
                    }
                }
                FieldHead::Field { to, .. } => {
                    *self.wanted = to;
                    return None;
                }
                FieldHead::Short => {
                    *self.wanted = 0;
                    return None;
                }
                FieldHead::Broken => {
                    *self.is_broken = true;
                    return None;
                }
            }
        }
    }
}

impl<R: Read> Source<R> {
    /// Packets of this input, in pieces that become as large as this.
    pub(super) fn new(input: R, most: usize) -> Source<R> {
        Source {
            input,
            buffer: Vec::new(),
            at: 0,
            end: 0,
            wanted: 0,
            piece: PIECE.min(most),
            most,
            has_ended: false,
            failure: None,
            is_broken: false,
        }
    }

    /// The packets of the current piece.
    pub(super) fn here(&mut self) -> Here<'_> {
        Here {
            bytes: &self.buffer[..self.end],
            at: &mut self.at,
            wanted: &mut self.wanted,
            is_broken: &mut self.is_broken,
        }
    }

    /// Moves to the next piece, when all packets of the current one were taken; whether there is one.
    ///
    /// # Errors
    /// Those of the input.
    pub(super) fn more(&mut self) -> io::Result<bool> {
        if let Some(why) = self.failure.take() {
            self.has_ended = true;
            return Err(why);
        }
        if self.is_broken || self.has_ended {
            return Ok(false);
        }
        self.fill();
        Ok(true)
    }

    /// Whether the next bytes are no packet. Known once there is no next.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// The number of bytes at the end that are no whole packet. Reads the input to its end.
    pub(super) fn rest(mut self) -> io::Result<u64> {
        let here = (self.end - self.at) as u64;
        match self.failure {
            Some(why) => Err(why),
            None => Ok(here + io::copy(&mut self.input, &mut io::sink())?),
        }
    }

    /// Reads on, if possible until the buffer has a piece and the wanted number of bytes. The room grows with
    /// the bytes that come, not with the length that a packet promises.
    fn fill(&mut self) {
        self.buffer.copy_within(self.at..self.end, 0);
        self.end -= self.at;
        self.at = 0;
        let wanted = self.wanted.max(self.piece).max(self.end.saturating_add(1));
        self.piece = (2 * self.piece).min(self.most);
        while self.end < wanted && !self.has_ended {
            if self.buffer.len() - self.end < PIECE {
                let room = (self.end + PIECE).max(self.buffer.len().saturating_mul(2).min(wanted));
                self.buffer.resize(room, 0);
            }
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.has_ended = true,
                Ok(count) => self.end += count,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => {
                    // The bytes before it are read first.
                    self.failure = Some(why);
                    return;
                }
            }
        }
    }
}

/// The length of the field that a file begins with, and its value if it is a packet; `None` if it is not
/// whole, or no field.
pub(super) fn first(bytes: &[u8]) -> Option<(usize, Option<&[u8]>)> {
    match head(bytes) {
        FieldHead::Field {
            is_packet,
            from,
            to,
        } if to <= bytes.len() => Some((to, is_packet.then_some(&bytes[from..to]))),
        _ => None,
    }
}

/// The head of a file's next field.
enum FieldHead {
    /// A field whose value is at these places, from here.
    Field {
        is_packet: bool,
        from: usize,
        to: usize,
    },
    /// Too few bytes to tell.
    Short,
    /// No field.
    Broken,
}

fn head(bytes: &[u8]) -> FieldHead {
    let mut rest = bytes;
    let unclear = |rest: &[u8]| {
        if rest.len() < 10 {
            FieldHead::Short
        } else {
            FieldHead::Broken
        }
    };
    let Some(key) = varint(&mut rest) else {
        return unclear(bytes);
    };
    let value = rest;
    let behind = |rest: &[u8]| bytes.len() - rest.len();
    let (from, length) = match key & 7 {
        0 => match varint(&mut rest) {
            Some(_) => (behind(rest), 0),
            None => return unclear(value),
        },
        1 => (behind(rest), 8),
        2 => match varint(&mut rest) {
            Some(length) => (behind(rest), usize::try_from(length).unwrap_or(usize::MAX)),
            None => return unclear(value),
        },
        5 => (behind(rest), 4),
        _ => return FieldHead::Broken,
    };
    FieldHead::Field {
        is_packet: key == PACKET,
        from,
        to: from.saturating_add(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input that gives a byte at a time.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let count = room.len().min(self.0.len()).min(1);
            room[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn packets(bytes: &[u8]) -> (Vec<Vec<u8>>, bool, u64) {
        let mut source = Source::new(Drops(bytes), 2);
        let mut all = Vec::new();
        while source.more().unwrap() {
            all.extend(source.here().map(<[u8]>::to_vec));
        }
        (all, source.is_broken(), source.rest().unwrap())
    }

    /// Goal: packets come whole however the input arrives, other fields are skipped, and a cut-off part is
    /// counted. Method: every prefix of a file with two packets and a number between them.
    #[test]
    fn packets_come_whole_or_are_counted() {
        let file = [0x0a, 2, 7, 8, 0x10, 0xff, 0x01, 0x0a, 1, 9];
        for length in 0..=file.len() {
            let (all, is_broken, rest) = packets(&file[..length]);
            let (expected, whole): (&[&[u8]], usize) = match length {
                0..4 => (&[], 0),
                4..7 => (&[&[7, 8]], 4),
                7..10 => (&[&[7, 8]], 7),
                _ => (&[&[7, 8], &[9]], 10),
            };
            assert_eq!(all, expected, "{length}");
            assert!(!is_broken);
            assert_eq!(rest, (length - whole) as u64);
        }
    }

    /// Goal: a length that lies takes no room, and bytes that are no field end the file. Method: a packet of
    /// 2^63 bytes, and a group.
    #[test]
    fn lies_are_not_believed() {
        let lie = [
            0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 2,
        ];
        let (all, is_broken, rest) = packets(&lie);
        assert_eq!((all.len(), is_broken, rest), (0, false, 12));
        let (all, is_broken, rest) = packets(&[0x0a, 1, 5, 0x0b, 3, 4]);
        assert_eq!((all.len(), is_broken, rest), (1, true, 3));
    }
}
