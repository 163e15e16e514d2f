//! Pages with a trace in them, as systrace writes them.
//!
//! The trace is in `<script class="trace-data">`, as text; the first such block is ftrace's, later ones are
//! lists of processes (`PROCESS DUMP`) and of groups. The oldest pages have one JavaScript string instead.
//! A page is kept whole while it is read.

use std::io::Read;

use super::builder::{Builder, Trust};
use super::error::ReadError;
use super::ftrace::TextReader;
use super::input::Input;
use super::numbers::integer;
use crate::Loss;
use crate::read::Format;

pub(super) fn read(input: &mut Input<'_>, builder: &mut Builder) -> Result<(), ReadError> {
    let mut page = Vec::new();
    input.read_to_end(&mut page)?;
    builder.set_format(Format::Systrace.word());
    let mut found = 0;
    // A script's text ends at its end tag, whatever is in it: the viewer's own code has the tag of a block in
    // a string. If that hides all blocks, the page is damaged before them, and each tag may be one.
    for skips_scripts in [true, false] {
        let mut rest = &page[..];
        while let Some(block) = next_block(&mut rest, skips_scripts) {
            found += 1;
            match block {
                Block::Whole(text) => read_block(builder, text),
                Block::Cut(text) => read_cut(builder, text),
            }
        }
        if found > 0 {
            break;
        }
    }
    if found == 0 {
        let (text, is_whole) = script_string(&page).ok_or_else(|| {
            ReadError::new(
                "is a page without a trace in it",
                "give one that systrace or atrace wrote",
            )
        })?;
        if is_whole {
            read_block(builder, &text);
        } else {
            read_cut(builder, &text);
        }
    }
    Ok(())
}

/// The whole lines of a block without an end. The loss is known even if the block stops between two lines.
fn read_cut(builder: &mut Builder, text: &[u8]) {
    let end = memchr::memrchr(b'\n', text).map_or(0, |end| end + 1);
    read_block(builder, &text[..end]);
    builder.lose(Loss::Truncated, (text.len() - end).max(1) as u64);
}

enum Block<'p> {
    Whole(&'p [u8]),
    /// The page ends inside of it.
    Cut(&'p [u8]),
}

/// The next block of data. `skips_scripts`: other scripts are passed over as a whole.
fn next_block<'p>(rest: &mut &'p [u8], skips_scripts: bool) -> Option<Block<'p>> {
    loop {
        let tag = memchr::memmem::find(rest, b"<script")?;
        let Some(close) = memchr::memchr(b'>', &rest[tag..]) else {
            *rest = b"";
            return None;
        };
        let attributes = &rest[tag..tag + close];
        *rest = &rest[tag + close + 1..];
        if memchr::memmem::find(attributes, b"trace-data").is_none() {
            if skips_scripts {
                let end = memchr::memmem::find(rest, b"</script");
                *rest = end.map_or(&b""[..], |end| &rest[end..]);
            }
            continue;
        }
        let page = *rest;
        return Some(match memchr::memmem::find(page, b"</script>") {
            Some(end) => {
                *rest = &page[end..];
                Block::Whole(&page[..end])
            }
            None => {
                *rest = b"";
                Block::Cut(page)
            }
        });
    }
}

/// One block; its first words tell the kind.
fn read_block(builder: &mut Builder, block: &[u8]) {
    let start = block.trim_ascii_start();
    if start.starts_with(b"PROCESS DUMP") || start.starts_with(b"USER ") {
        processes(builder, block);
    } else if start.starts_with(b"CGROUP DUMP")
        || start.starts_with(b"{")
        || start.starts_with(b"[")
    {
        builder.lose(Loss::Unsupported, 1);
    } else {
        TextReader::default().lines(builder, block);
    }
}

/// Lists of processes and threads, as `ps` prints them; the line with `USER` has the titles of the columns.
fn processes(builder: &mut Builder, text: &[u8]) {
    let mut columns = Columns::default();
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if line.starts_with(b"USER ") {
            columns = Columns::of(line);
        } else if !line.is_empty()
            && line != b"PROCESS DUMP"
            && columns.read(builder, line).is_none()
        {
            builder.lose(Loss::Malformed, 1);
        }
    }
}

/// The columns of a list; the name is the last one and may hold blanks.
#[derive(Debug, Default)]
struct Columns {
    pid: Option<usize>,
    tid: Option<usize>,
    name: Option<usize>,
}

impl Columns {
    fn of(header: &[u8]) -> Columns {
        let find = |names: &[&[u8]]| words(header).position(|(_, word)| names.contains(&word));
        Columns {
            pid: find(&[b"PID"]),
            tid: find(&[b"TID"]),
            name: find(&[b"NAME", b"CMD"]),
        }
    }

    fn read(&self, builder: &mut Builder, line: &[u8]) -> Option<()> {
        let number = |column: usize| {
            let (_, word) = words(line).nth(column)?;
            u32::try_from(integer(word)?).ok()
        };
        let pid = number(self.pid?)?;
        let (start, _) = words(line).nth(self.name?)?;
        let name = match &line[start..] {
            // In lists of old systems the state stands in front of the name, without a title.
            [state, b' ', rest @ ..] if self.tid.is_none() && state.is_ascii_uppercase() => rest,
            name => name,
        };
        match self.tid {
            Some(tid) => {
                let tid = number(tid)?;
                builder.belongs(tid, pid, Trust::List);
                builder.thread_name(tid, name, Trust::List);
            }
            None => {
                builder.belongs(pid, pid, Trust::List);
                builder.process_name(pid, name, Trust::List);
            }
        }
        Some(())
    }
}

/// The words of a line and where each begins.
fn words(line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from
            + line[from..]
                .iter()
                .position(|byte| !byte.is_ascii_whitespace())?;
        let word = &line[start..];
        let length = word
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(word.len());
        from = start + length;
        Some((start, &word[..length]))
    })
}

/// The string in `var linuxPerfData = "…"`, its escapes undone, and whether its end is there.
fn script_string(page: &[u8]) -> Option<(Vec<u8>, bool)> {
    const NAME: &[u8] = b"linuxPerfData";
    let after = &page[memchr::memmem::find(page, NAME)? + NAME.len()..];
    let after = after
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let (quote, mut rest) = after.split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let mut text = Vec::with_capacity(rest.len());
    loop {
        let Some(next) = rest.iter().position(|byte| byte == quote || *byte == b'\\') else {
            text.extend_from_slice(rest);
            return Some((text, false));
        };
        text.extend_from_slice(&rest[..next]);
        if rest[next] == *quote {
            return Some((text, true));
        }
        let (escaped, after) = match rest.get(next + 1..) {
            None | Some([]) => return Some((text, false)),
            // A line's end that is not meant.
            Some([b'\r', b'\n', after @ ..] | [b'\n', after @ ..]) => (None, after),
            Some([b'u', after @ ..]) => code(after, 4),
            Some([b'x', after @ ..]) => code(after, 2),
            Some([letter, after @ ..]) => {
                let meant = match letter {
                    b'n' => '\n',
                    b't' => '\t',
                    b'r' => '\r',
                    b'0' => '\0',
                    // Bytes beyond ASCII are never escaped: they stand for themselves.
                    other => {
                        text.push(*other);
                        rest = after;
                        continue;
                    }
                };
                (Some(meant), after)
            }
        };
        if let Some(escaped) = escaped {
            text.extend_from_slice(escaped.encode_utf8(&mut [0; 4]).as_bytes());
        }
        rest = after;
    }
}

/// The character of this many hexadecimal digits; digits that are none stay as they are.
fn code(text: &[u8], digits: usize) -> (Option<char>, &[u8]) {
    let number = text
        .get(..digits)
        .and_then(|digits| std::str::from_utf8(digits).ok());
    let number = number.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    match number.and_then(char::from_u32) {
        Some(meant) => (Some(meant), &text[digits..]),
        None => (None, text),
    }
}
