//! Takes files out of gzip and zlib.
//!
//! The size that a small file can unpack to is bounded: after the first 16 MiB at most 256 times what was
//! read. Traces as text shrink to a tenth or a twentieth; data that shrink more were made to fill a disk, and
//! are refused. Packed data that stops early is read as far as it goes, and that is counted.

use std::io::{self, BufRead, Read};
use std::rc::Rc;

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};

use super::error::ReadError;
use super::input::{Damage, Input};

/// The number of bytes that may come out of any file, however small.
const FREE: u64 = 16 << 20;

/// Beyond that, bytes out for each byte in.
const MOST_RATIO: u64 = 256;

/// How bytes are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Zlib,
}

/// The bytes inside.
pub(super) fn unpack(input: Input<'_>, packing: Packing) -> Input<'_> {
    let damage = input.damage();
    let decoder = match packing {
        Packing::Gzip => Decompressor::Gzip(MultiGzDecoder::new(input)),
        Packing::Zlib => Decompressor::Zlib(ZlibDecoder::new(input)),
    };
    let unpacked = Unpacked {
        decoder,
        out: 0,
        damage: Rc::clone(&damage),
    };
    Input::new(Box::new(unpacked), damage)
}

enum Decompressor<'a> {
    Gzip(MultiGzDecoder<Input<'a>>),
    Zlib(ZlibDecoder<Input<'a>>),
}

struct Unpacked<'a> {
    decoder: Decompressor<'a>,
    out: u64,
    damage: Rc<Damage>,
}

impl Unpacked<'_> {
    /// Zlib's end is told by itself: the bytes behind it are something else.
    fn look_behind(&mut self) -> io::Result<()> {
        let Decompressor::Zlib(decoder) = &mut self.decoder else {
            return Ok(());
        };
        let mut rest = 0;
        loop {
            let piece = decoder.get_mut().fill_buf()?;
            if piece.is_empty() {
                break;
            }
            rest += piece
                .iter()
                .filter(|byte| !byte.is_ascii_whitespace())
                .count() as u64;
            let count = piece.len();
            decoder.get_mut().consume(count);
        }
        self.damage.behind.set(self.damage.behind.get() + rest);
        Ok(())
    }
}

impl Read for Unpacked<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (result, taken) = match &mut self.decoder {
            Decompressor::Gzip(decoder) => (decoder.read(into), decoder.get_ref().taken()),
            Decompressor::Zlib(decoder) => (decoder.read(into), decoder.get_ref().taken()),
        };
        match result {
            Ok(0) if !into.is_empty() => {
                self.look_behind()?;
                Ok(0)
            }
            Ok(count) => {
                self.out += count as u64;
                if self.out > FREE + taken.saturating_mul(MOST_RATIO) {
                    let what = format!(
                        "unpacks to more than {MOST_RATIO} times its size, as no trace does"
                    );
                    return Err(ReadError::new(what, "unpack it yourself if it is one").into());
                }
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.damage.is_cut.set(true);
                Ok(0)
            }
            Err(error) if error.get_ref().is_some_and(|inner| inner.is::<ReadError>()) => {
                Err(error)
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
                ) =>
            {
                let what = format!("packed data is damaged ({error})");
                Err(ReadError::new(what, "fetch the file again")
                    .at_byte(taken)
                    .into())
            }
            Err(error) => Err(error),
        }
    }
}
