//! Reads what other programs recorded.
//!
//! [`read`] takes any file: what it is, its bytes say. The file is read in pieces; only what has to be whole
//! (HTML, JSON) is kept whole. Whatever the bytes are, reading ends with a [`Recording`] or with a
//! [`ReadError`] of one line, and what could not be read of a file that is read is counted in
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

/// A packed file in a packed file is as deep as it gets.
const MOST_LAYERS: usize = 4;

/// Reads a trace of any format, packed or not; `name` is what errors call it.
///
/// # Errors
/// If it cannot be read at all, is none of the formats, or is one that only the program that made it can
/// read: then the error names the command that makes text of it.
///
/// ```
/// let text = "\
/// swapper-0   [001] d..2.  1.000000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
///     prev_state=R ==> next_comm=render next_pid=42 next_prio=110
/// render-42   [001] .....  1.000500: tracing_mark_write: B|42|frame
/// ";
/// let recording = trace::read::read(text.as_bytes(), "trace.txt").unwrap();
/// assert_eq!(recording.threads[0].name, "render");
/// assert_eq!((recording.kernel.len(), recording.marks.len()), (1, 1));
/// assert_eq!(recording.origin.format, "ftrace");
/// assert!(recording.losses.is_empty());
/// ```
pub fn read<'a>(source: impl Read + 'a, name: &str) -> Result<Recording, ReadError> {
    read_on(source, name, &Serial)
}

/// As [`read`], with an executor for what can be done at the same time: large files of Perfetto's are
/// decoded in parts. The recording is the same.
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
                    "stops before anything comes out of it",
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
        format!("is no trace that is known here: it begins with {start:?}"),
        "what is read: ftrace and systrace, Perfetto, Chrome's JSON, the output of `trace-cmd report` and \
         `perf sched script`, each packed with gzip or not",
    )
}

/// The command that makes something readable of it.
fn refuse(format: Refused, name: &str, is_packed: bool) -> ReadError {
    let plain = match is_packed {
        true => name.strip_suffix(".gz").unwrap_or(name),
        false => name,
    };
    let unpacked = if is_packed && plain == name {
        format!("{name}.plain")
    } else {
        plain.to_owned()
    };
    let (file, text) = (quoted(&unpacked), quoted(&format!("{unpacked}.txt")));
    let first = match is_packed {
        true => format!("gzip -dc < {} > {file} && ", quoted(name)),
        false => String::new(),
    };
    match format {
        Refused::TraceDat => ReadError::new(
            "is trace-cmd's own binary file",
            format!("make text of it: {first}trace-cmd report -N -t -i {file} > {text}"),
        ),
        Refused::PerfData => ReadError::new(
            "is perf's own binary file",
            format!("make text of it: {first}perf script --ns -i {file} > {text}"),
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
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
