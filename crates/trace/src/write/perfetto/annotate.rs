//! Findings on top of the trace that they were found in.
//!
//! A file is a list of packets, so packets behind its end are part of it, and the others stay as they were,
//! byte for byte. The new ones belong to sequences that the file does not have yet. Threads are introduced
//! once more, under the numbers that the kernel gave them; by these viewers know that they are the same ones.

use std::io::{self, BufRead, BufReader, Read, Write};

use super::packets::{BOOTTIME, MONOTONIC, Packets};
use super::tracks::WrittenTracks;
use super::{Written, lanes};
use crate::{Annotation, Clock, Recording};

/// No recorder has this many sequences.
const FIRST: u32 = 1 << 24;

/// Copies a Perfetto trace and puts findings behind it, on tracks below the threads that they are about.
///
/// `recording` is the one that [`read`](crate::read::read) made of the file. A file that is packed with gzip
/// is unpacked; a packet that is cut off at the end is left out. For files of other formats, write the
/// recording with its annotations instead.
///
/// # Errors
/// Those of the input, whose kind is `InvalidData` if it is no Perfetto trace, and those of the writer.
///
/// ```
/// use event::{Nanos, Task};
/// use paceline_trace::{Annotation, Recording, Thread};
///
/// let run = Recording {
///     threads: vec![Thread { tid: Some(41), ..Thread::new(Task(0), "render", None) }],
///     ..Recording::default()
/// };
/// let mut file = Vec::new();
/// paceline_trace::write::perfetto(&run, &mut file)?;
///
/// let recording = paceline_trace::read::read(&file[..], "run.pftrace").expect("a trace");
/// let on = recording.threads.iter().find(|thread| thread.tid == Some(41)).map(|thread| thread.task);
/// let (track, name) = ("waits".to_owned(), "waits for a lock".to_owned());
/// let found = [Annotation { on, track, name, begin: Nanos(5), end: Nanos(9) }];
/// let mut annotated = Vec::new();
/// paceline_trace::write::annotate(&file[..], &recording, &found, &mut annotated)?;
/// assert!(annotated.starts_with(&file));
/// let again = paceline_trace::read::read(&annotated[..], "annotated.pftrace").expect("a trace");
/// assert_eq!(again.annotations, found);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn annotate(
    original: impl Read,
    recording: &Recording,
    findings: &[Annotation],
    mut out: impl Write,
) -> io::Result<Written> {
    let mut original = BufReader::new(original);
    let is_packed = original.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    let (bytes, last) = if is_packed {
        copy(flate2::bufread::MultiGzDecoder::new(original), &mut out)?
    } else {
        copy(original, &mut out)?
    };
    let clock = match &recording.origin.clock {
        Clock::Monotonic => MONOTONIC,
        _ => BOOTTIME,
    };
    // Packets may be packed, so that their sequences are not seen; recorders count from 1.
    let first = last.saturating_add(1).max(FIRST);
    let mut packets = Packets::append(&mut out, first, Some(clock));
    let mut tracks = WrittenTracks::reintroduce(recording, findings, first, &mut packets)?;
    lanes::write(findings.iter(), false, &mut tracks, &mut packets)?;
    let mut written = packets.finish()?;
    written.bytes += bytes;
    Ok(written)
}

/// Copies the file up to the end of its last whole packet. Returns its length and the highest number of a
/// sequence in it.
fn copy(mut original: impl Read, out: &mut dyn Write) -> io::Result<(u64, u32)> {
    let mut last = 0;
    let mut copied = 0;
    let mut buffer = Vec::new();
    let mut at = 0;
    loop {
        match crate::read::perfetto::first_packet(&buffer[at..]) {
            Some((length, sequence)) => {
                last = last.max(sequence);
                at += length;
                continue;
            }
            None => {
                out.write_all(&buffer[..at])?;
                copied += at as u64;
                buffer.drain(..at);
                at = 0;
            }
        }
        let before = buffer.len();
        let wanted = before.max(1 << 18) as u64;
        original.by_ref().take(wanted).read_to_end(&mut buffer)?;
        if buffer.len() == before {
            break;
        }
    }
    if copied == 0 && !buffer.is_empty() {
        let what = "the original is not a Perfetto trace; convert it first";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok((copied, last))
}
