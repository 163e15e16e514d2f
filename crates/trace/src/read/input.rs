//! Bytes of a file, in pieces: looked at before they are taken, line by line if they are text.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

/// The number of bytes that are read at a time.
const PIECE: usize = 256 << 10;

/// Longer lines are skipped. The kernel's own are shorter than a page.
const LONGEST_LINE: usize = 1 << 20;

/// A file's bytes, unpacked.
pub(crate) struct Input<'a> {
    source: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    /// The part of the buffer that is not taken.
    start: usize,
    end: usize,
    taken: u64,
    has_ended: bool,
    /// The damage that unpacking found, shared with all layers below.
    damage: Rc<Damage>,
}

/// Damage of packed data that could be read in part.
#[derive(Debug, Default)]
pub(super) struct Damage {
    /// It stops in the middle.
    pub(super) is_cut: Cell<bool>,
    /// Bytes behind its end.
    pub(super) behind: Cell<u64>,
}

/// The next lines.
pub(crate) enum Lines<'i> {
    /// Whole lines, with their ends.
    Whole(&'i [u8]),
    /// A line that is too long: a part of it. The rest comes next.
    Part(&'i [u8]),
    /// The last line, which has no end.
    Last(&'i [u8]),
    /// Nothing more.
    End,
}

impl<'a> Input<'a> {
    pub(super) fn new(source: Box<dyn Read + 'a>, damage: Rc<Damage>) -> Input<'a> {
        Input {
            source,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            taken: 0,
            has_ended: false,
            damage,
        }
    }

    /// The number of bytes that were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// The damage that unpacking found.
    pub(super) fn damage(&self) -> Rc<Damage> {
        Rc::clone(&self.damage)
    }

    /// Up to `count` bytes, or all there are, without taking them.
    pub(crate) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.end - self.start < count && !self.has_ended {
            self.fill(count)?;
        }
        let have = count.min(self.end - self.start);
        Ok(&self.buffer[self.start..self.start + have])
    }

    /// The next lines, without taking them; they are taken by `consume`.
    pub(crate) fn next_lines(&mut self) -> io::Result<Lines<'_>> {
        let mut seen = self.start;
        let line_end = loop {
            if let Some(last) = memchr::memrchr(b'\n', &self.buffer[seen..self.end]) {
                break Some(seen + last + 1);
            }
            let have = self.end - self.start;
            if self.has_ended || have >= LONGEST_LINE {
                break None;
            }
            self.fill(have + 1)?;
            seen = self.start + have;
        };
        let have = &self.buffer[self.start..line_end.unwrap_or(self.end)];
        Ok(match line_end {
            Some(_) => Lines::Whole(have),
            None if !self.has_ended => Lines::Part(have),
            None if have.is_empty() => Lines::End,
            None => Lines::Last(have),
        })
    }

    /// One read, into a buffer with room for `count` bytes from its start.
    fn fill(&mut self, count: usize) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let wanted = count.max(self.end + 1).next_multiple_of(PIECE);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.has_ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

impl Read for Input<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end && !self.has_ended && into.len() >= PIECE {
            // No bytes are kept in front of these, and there is room: no need to copy.
            let count = self.source.read(into)?;
            self.has_ended = count == 0;
            self.taken += count as u64;
            return Ok(count);
        }
        let have = self.fill_buf()?;
        let count = have.len().min(into.len());
        into[..count].copy_from_slice(&have[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end && !self.has_ended {
            self.fill(1)?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.taken += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = into.len().min(1);
            self.0.read(&mut into[..count])
        }
    }

    fn input(bytes: &[u8]) -> Input<'_> {
        Input::new(Box::new(Trickle(bytes)), Rc::default())
    }

    /// Goal: lines come whole and in order, whatever the pieces are, and the one without an end is told
    /// apart. Method: a source of single bytes.
    #[test]
    fn lines_come_whole() {
        let mut input = input(b"one\n\ntwo");
        let mut all = Vec::new();
        let last = loop {
            let (count, is_last) = match input.next_lines().unwrap() {
                Lines::Whole(lines) => {
                    assert!(lines.ends_with(b"\n"));
                    all.extend_from_slice(lines);
                    (lines.len(), false)
                }
                Lines::Last(line) => (line.len(), true),
                Lines::Part(_) | Lines::End => panic!("no line is that long"),
            };
            if is_last {
                break input.fill_buf().unwrap().to_vec();
            }
            input.consume(count);
        };
        assert_eq!(
            (all.as_slice(), last.as_slice()),
            (&b"one\n\n"[..], &b"two"[..])
        );
        assert_eq!(input.taken(), 5);
    }

    /// Goal: a line without end does not fill the memory. Method: three times the longest line.
    #[test]
    fn long_lines_come_in_parts() {
        let long = vec![b'x'; 3 * LONGEST_LINE];
        let mut input = Input::new(Box::new(&long[..]), Rc::default());
        let mut parts = 0;
        while let Lines::Part(part) = input.next_lines().unwrap() {
            let count = part.len();
            assert!(count <= LONGEST_LINE + PIECE);
            parts += count;
            input.consume(count);
        }
        assert!(input.buffer.len() <= LONGEST_LINE + 2 * PIECE);
        let rest = input.fill_buf().unwrap().len();
        assert_eq!(parts + rest, long.len());
    }

    /// Goal: all bytes come, once and in order, however many are asked for at once. Method: a look, then more
    /// than is kept here and less in turn.
    #[test]
    fn large_pieces_come_whole() {
        let long: Vec<u8> = (0..5 * PIECE).map(|at| (at / 7) as u8).collect();
        let mut input = Input::new(Box::new(&long[..]), Rc::default());
        assert_eq!(input.peek(9).unwrap(), &long[..9]);
        let (mut all, mut room) = (Vec::new(), vec![0; 2 * PIECE]);
        for size in [10, 2 * PIECE, PIECE - 1].into_iter().cycle() {
            match input.read(&mut room[..size]).unwrap() {
                0 => break,
                count => all.extend_from_slice(&room[..count]),
            }
        }
        assert!(all == long);
        assert_eq!(input.taken(), long.len() as u64);
        assert_eq!(input.read(&mut room).unwrap(), 0);
    }

    /// Goal: looking does not take. Method: a look beyond the end, then everything.
    #[test]
    fn peeking_takes_nothing() {
        let mut input = input(b"abc");
        assert_eq!(input.peek(2).unwrap(), b"ab");
        assert_eq!(input.peek(9).unwrap(), b"abc");
        let mut all = Vec::new();
        input.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"abc");
    }
}
