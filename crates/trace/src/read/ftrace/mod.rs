//! Traces as text: the kernel's own, `trace-cmd report`'s and perf's are lines of one shape (`line.rs`).

mod events;
mod line;
mod plugin;
#[cfg(test)]
mod tests;

use std::io::BufRead;

use super::builder::{At, Builder, Trust};
use super::error::ReadError;
use super::input::{Input, Lines};
use super::numbers::leading;
use crate::Loss;
use crate::read::Format;
use events::LineOutcome;

/// Whether a line can be part of a trace.
pub(super) fn is_known(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line::parse(line).is_some()
        || line.starts_with(b"# tracer:")
        || about(line).is_some_and(|about| about != About::Nothing)
}

/// No tracer writes a longer comment.
const LONGEST_COMMENT: usize = 4 << 10;

/// Reads a file of lines to its end.
pub(super) fn read(input: &mut Input<'_>, builder: &mut Builder) -> Result<(), ReadError> {
    let mut text = TextReader::default();
    let (mut is_inside_long, mut is_first) = (false, true);
    loop {
        let taken = match input.next_lines()? {
            Lines::Whole(lines) => {
                let mut rest = lines;
                if std::mem::take(&mut is_inside_long) {
                    let end = memchr::memchr(b'\n', lines).map_or(lines.len(), |end| end + 1);
                    rest = &lines[end..];
                }
                text.lines(builder, rest);
                lines.len()
            }
            Lines::Part(part) => {
                if is_first {
                    has_ends(part)?;
                }
                builder.lose(Loss::Malformed, u64::from(!is_inside_long));
                is_inside_long = true;
                part.len()
            }
            Lines::Last(line) => {
                if is_first {
                    has_ends(line)?;
                }
                // A program that writes a trace ends its lines: a number at the end may have lost its last
                // digits.
                builder.lose(Loss::Truncated, line.len() as u64);
                line.len()
            }
            Lines::End => break,
        };
        input.consume(taken);
        is_first = false;
    }
    builder.set_format(text.format().word());
    Ok(())
}

/// Refuses a trace without a single end of a line behind its first comment: nothing in it could be read.
fn has_ends(line: &[u8]) -> Result<(), ReadError> {
    if line.starts_with(b"#") && line.len() > LONGEST_COMMENT {
        return Err(ReadError::new(
            "begins as a trace does, and its first line does not end",
            "the ends of its lines are lost: fetch it again, as it was",
        ));
    }
    Ok(())
}

/// Reads a text that is known to be whole, such as a string in another format.
pub(crate) fn read_text(builder: &mut Builder, text: &[u8]) {
    TextReader::default().lines(builder, text);
}

/// The state of reading a text.
#[derive(Debug, Default)]
pub(super) struct TextReader {
    before: Before,
    is_perf: bool,
    is_trace_cmd: bool,
}

/// The kind of the line before, for lines without a beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    #[default]
    Else,
    Marker,
    Text,
}

impl TextReader {
    /// Some whole lines.
    pub(super) fn lines(&mut self, builder: &mut Builder, text: &[u8]) {
        let mut rest = text;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            self.line(builder, line.strip_suffix(b"\r").unwrap_or(line));
        }
    }

    /// The format, as far as the lines tell.
    pub(super) fn format(&self) -> Format {
        match (self.is_perf, self.is_trace_cmd) {
            (true, _) => Format::PerfScript,
            (false, true) => Format::TraceCmd,
            (false, false) => Format::Ftrace,
        }
    }

    /// One line, without its end.
    #[inline]
    pub(super) fn line(&mut self, builder: &mut Builder, text: &[u8]) {
        let Some(line) = line::parse(text) else {
            return self.other_line(builder, text);
        };
        self.is_perf |= line.is_perf;
        let at = At {
            time: line.time,
            cpu: line.cpu,
            tid: line.tid,
            in_interrupt: line.in_interrupt,
        };
        builder.thread_name(line.tid, line.comm, Trust::Hint);
        if let Some(tgid) = line.tgid {
            builder.belongs(line.tid, tgid, Trust::Event);
        }
        if !line.has_flags && line.is_wake_up() {
            builder.set_unmarked(true);
        }
        let came = events::read(builder, &at, &line);
        self.before = match came {
            LineOutcome::Marker => Before::Marker,
            LineOutcome::Text => Before::Text,
            _ => Before::Else,
        };
        match came {
            LineOutcome::Read | LineOutcome::Marker => {}
            LineOutcome::Text | LineOutcome::Other => builder.lose(Loss::OtherEvents, 1),
            LineOutcome::Bad => builder.lose(Loss::BadFields, 1),
        }
    }

    /// A line that is no event.
    #[cold]
    fn other_line(&mut self, builder: &mut Builder, text: &[u8]) {
        if text.trim_ascii().is_empty() {
            return;
        }
        match about(text) {
            Some(About::Written { kept, written }) => {
                builder.lose(Loss::KernelEvents, written.saturating_sub(kept));
                builder.cpus(processors(text));
            }
            Some(About::Gap { cpu, events }) => builder.gap(cpu, events),
            Some(About::Cpus(count)) => {
                self.is_trace_cmd = true;
                builder.cpus(count);
            }
            Some(About::TraceCmd) => self.is_trace_cmd = true,
            Some(About::Nothing) => {}
            None => match self.before {
                Before::Marker => builder.lose(Loss::Unsupported, 1),
                // It was counted with its first line.
                Before::Text => {}
                Before::Else if self.is_perf && is_call(text) => builder.lose(Loss::Unsupported, 1),
                Before::Else => builder.lose(Loss::Malformed, 1),
            },
        }
    }
}

/// Lines about the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// How many events of how many are kept.
    Written { kept: u64, written: u64 },
    /// Events of a CPU are missing here; 0: an unknown number.
    Gap { cpu: u32, events: u64 },
    /// How many CPUs there are.
    Cpus(u32),
    /// A line that only trace-cmd writes.
    TraceCmd,
    /// A comment.
    Nothing,
}

fn about(text: &[u8]) -> Option<About> {
    if let Some(rest) = text.strip_prefix(b"#") {
        return Some(comment(rest));
    }
    if let Some(rest) = text.strip_prefix(b"cpus=") {
        let (count, _) = leading(rest)?;
        return Some(About::Cpus(u32::try_from(count).ok()?));
    }
    if text.starts_with(b"version = ") {
        return Some(About::TraceCmd);
    }
    if let Some(rest) = text.strip_prefix(b"CPU:") {
        let (cpu, rest) = leading(rest)?;
        let cpu = u32::try_from(cpu).ok()?;
        let rest = rest.strip_prefix(b" [")?;
        let count = rest.strip_prefix(b"LOST ").unwrap_or(rest);
        let (events, rest) = leading(count).unwrap_or((0, count));
        let is_gap = rest.trim_ascii_start().starts_with(b"EVENTS");
        return is_gap.then_some(About::Gap { cpu, events });
    }
    let (_, rest) = leading(text.strip_prefix(b"CPU ")?)?;
    rest.starts_with(b" is empty").then_some(About::TraceCmd)
}

/// A comment of the kernel's, without its `#`.
fn comment(text: &[u8]) -> About {
    if let Some(rest) = text.strip_prefix(b"#### CPU ")
        && let Some((cpu, b" buffer started ####")) = leading(rest)
        && let Ok(cpu) = u32::try_from(cpu)
    {
        // This is written only if the buffer ran over: the events before are overwritten.
        return About::Gap { cpu, events: 0 };
    }
    let counts = memchr::memmem::find(text, b"entries-written:").and_then(|position| {
        let text = text[position + b"entries-written:".len()..].trim_ascii_start();
        let (kept, rest) = leading(text)?;
        let (written, _) = leading(rest.strip_prefix(b"/")?)?;
        Some(About::Written { kept, written })
    });
    counts.unwrap_or(About::Nothing)
}

/// The number behind `#P:`; 0: there is none.
fn processors(text: &[u8]) -> u32 {
    let count =
        memchr::memmem::find(text, b"#P:").and_then(|position| leading(&text[position + 3..]));
    count
        .and_then(|(count, _)| u32::try_from(count).ok())
        .unwrap_or(0)
}

/// A line of a call chain: an address, indented.
fn is_call(text: &[u8]) -> bool {
    let word = text.trim_ascii_start();
    word.len() < text.len() && word.first().is_some_and(u8::is_ascii_hexdigit)
}
