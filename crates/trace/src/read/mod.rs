//! Readers of the recordings of other programs.
//!
//! [`read`] takes any file; its bytes tell the format. The file is read in pieces; only formats that need it
//! (HTML, JSON) are kept whole. Whatever the bytes are, reading ends with a [`Recording`] or with a
//! [`ReadError`] of one line, and the unreadable parts of a file that is read are counted in
//! [`Recording::losses`](crate::Recording::losses).

pub(crate) mod builder;
mod chrome;
mod detect;
mod error;
mod format;
pub(crate) mod ftrace;
mod html;
mod input;
pub(crate) mod markers;
mod mix;
mod numbers;
pub(crate) mod perfetto;
mod unpack;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

use std::io::{BufRead, Read};
use std::rc::Rc;

use crate::{Executor, Loss, Recording, Serial};
use builder::Builder;
use detect::{Kind, LOOK, Refused};
pub use error::ReadError;
pub use format::Format;
pub(crate) use input::Input;

/// The largest number of packings around each other.
const MOST_LAYERS: usize = 4;

/// Reads a trace of any format, packed or not; `name` is its name in errors.
///
/// # Errors
/// If it cannot be read at all, or has none of the formats. If only the program that made it can read its
/// format, the error names the command that converts it to text.
///
/// ```
/// let text = "\
/// swapper-0   [001] d..2.  1.000000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
///     prev_state=R ==> next_comm=render next_pid=42 next_prio=110
/// render-42   [001] .....  1.000500: tracing_mark_write: B|42|frame
/// ";
/// let recording = paceline_trace::read::read(text.as_bytes(), "trace.txt").unwrap();
/// assert_eq!(recording.threads[0].name, "render");
/// assert_eq!((recording.kernel.len(), recording.marks.len()), (1, 1));
/// assert_eq!(recording.origin.format, "ftrace");
/// assert!(recording.losses.is_empty());
/// ```
pub fn read<'a>(source: impl Read + 'a, name: &str) -> Result<Recording, ReadError> {
    read_on(source, name, &Serial)
}

/// As [`read`], with an executor for parallel work: large files of Perfetto's are decoded in parts. The
/// recording is the same.
///
/// # Errors
/// Those of [`read`].
pub fn read_on<'a>(
    source: impl Read + 'a,
    name: &str,
    executor: &dyn Executor,
) -> Result<Recording, ReadError> {
    let input = Input::new(Box::new(source), Rc::default());
    read_input(input, name, executor).map_err(|error| error.of(name))
}

fn read_input(
    mut input: Input<'_>,
    name: &str,
    executor: &dyn Executor,
) -> Result<Recording, ReadError> {
    let mut layers = 0;
    let mut builder = Builder::new("");
    let damage = input.damage();
    loop {
        let first = input.peek(LOOK)?;
        match detect::detect(first) {
            Kind::Packed(packing) if layers < MOST_LAYERS => {
                layers += 1;
                input = unpack::unpack(input, packing);
            }
            Kind::After(count) => input.consume(count),
            Kind::Text => {
                ftrace::read(&mut input, &mut builder)?;
                break;
            }
            Kind::Html => {
                html::read(&mut input, &mut builder)?;
                break;
            }
            Kind::Perfetto => {
                perfetto::read(&mut input, &mut builder, executor)?;
                break;
            }
            Kind::Json => {
                chrome::read(&mut input, &mut builder)?;
                break;
            }
            Kind::Refused(format) => return Err(refuse(format, name, layers > 0)),
            Kind::Packed(_) => {
                return Err(ReadError::new("is packed too often", "unpack it first"));
            }
            Kind::Empty if damage.is_cut.get() => {
                return Err(ReadError::new(
                    "ends before any data can be unpacked",
                    "fetch it again",
                ));
            }
            Kind::Empty => return Err(ReadError::new("is empty", "record something")),
            Kind::Unknown => return Err(unknown(first)),
        }
    }
    builder.lose(Loss::Truncated, u64::from(damage.is_cut.get()));
    builder.lose(Loss::Malformed, u64::from(damage.behind.get() > 0));
    Ok(builder.finish())
}

fn unknown(first: &[u8]) -> ReadError {
    let start = String::from_utf8_lossy(&first[..first.len().min(24)]);
    ReadError::new(
        format!("is no trace in a known format: it begins with {start:?}"),
        "known formats: ftrace and systrace, Perfetto, Chrome's JSON, the output of `trace-cmd report` and \
         `perf sched script`, each packed with gzip or not",
    )
}

/// The error for a known format that is not read, with the command that converts it.
fn refuse(format: Refused, name: &str, is_packed: bool) -> ReadError {
    let plain = if is_packed {
        name.strip_suffix(".gz").unwrap_or(name)
    } else {
        name
    };
    let unpacked = if is_packed && plain == name {
        format!("{name}.plain")
    } else {
        plain.to_owned()
    };
    let (file, text) = (quoted(&unpacked), quoted(&format!("{unpacked}.txt")));
    let first = if is_packed {
        format!("gzip -dc < {} > {file} && ", quoted(name))
    } else {
        String::new()
    };
    match format {
        Refused::TraceDat => ReadError::new(
            "is trace-cmd's own binary file",
            format!("convert it to text: {first}trace-cmd report -l -N -t -i {file} > {text}"),
        ),
        Refused::PerfData => ReadError::new(
            "is perf's own binary file",
            format!("convert it to text: {first}perf script --ns -i {file} > {text}"),
        ),
        Refused::Zip => ReadError::new("is a zip archive", "unpack it and give the trace in it"),
        Refused::Zstd => ReadError::new("is packed with zstd", "unpack it first: zstd -d"),
        Refused::Xz => ReadError::new("is packed with xz", "unpack it first: xz -d"),
        Refused::Bzip2 => ReadError::new("is packed with bzip2", "unpack it first: bzip2 -d"),
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+,:@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
