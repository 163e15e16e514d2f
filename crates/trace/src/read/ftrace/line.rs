//! One line of a trace as text: thread, CPU, time, event.
//!
//! ```text
//! comm-tid  (tgid) [cpu] flags secs.frac: event: args           the kernel, trace-cmd
//! comm tid[/..]    [cpu]       secs.frac: group:event: args     perf script
//! comm-tid           cpu flags secs.frac: event: args           trace-cmd report -l, latency-format
//! ```
//!
//! The columns are taken from the line: headers lie, or are not there. A name may hold anything, so the line
//! is read from its first `[cpu]` that has a time behind it and a number in front of it.

use event::Nanos;

use crate::read::numbers::{leading, leading_seconds};

/// A line, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'l> {
    /// The name in front; the tracer's cache of names may be stale.
    pub(super) comm: &'l [u8],
    pub(super) tid: u32,
    /// The process, where there is such a column and it is known.
    pub(super) tgid: Option<u32>,
    pub(super) cpu: u32,
    pub(super) in_interrupt: bool,
    /// Whether there is a column that says so.
    pub(super) has_flags: bool,
    pub(super) time: Nanos,
    pub(super) what: LineBody<'l>,
    /// Whether it is as perf writes it.
    pub(super) is_perf: bool,
}

impl Line<'_> {
    /// Whether a thread is woken.
    #[inline]
    pub(super) fn is_wake_up(&self) -> bool {
        matches!(self.what, LineBody::Event { name, .. } if name.starts_with(b"sched_wak"))
    }
}

/// The part behind the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineBody<'l> {
    Event {
        name: &'l [u8],
        args: &'l [u8],
    },
    /// `sys_NAME(args)`: the kernel prints system calls without the event's name.
    Call {
        name: &'l [u8],
        args: &'l [u8],
    },
    /// `sys_NAME -> result`.
    Return {
        name: &'l [u8],
        result: &'l [u8],
    },
    /// Text without an event's name, such as a function tracer's.
    Other,
}

/// None: it is no event.
#[inline]
pub(super) fn parse(line: &[u8]) -> Option<Line<'_>> {
    let mut from = 0;
    loop {
        let Some(bracket) = memchr::memchr(b'[', line.get(from..)?) else {
            return parse_latency(line);
        };
        let bracket = from + bracket;
        if let Some(found) = parse_at(line, bracket) {
            return Some(found);
        }
        from = bracket + 1;
    }
}

/// The line, if the CPU's bracket is this one.
fn parse_at(line: &[u8], bracket: usize) -> Option<Line<'_>> {
    let (cpu, after) = leading(&line[bracket + 1..])?;
    let after = after.strip_prefix(b"]")?;
    let (flags, after) = flags(skip_blanks(after)?)?;
    let (time, after) = leading_seconds(after)?;
    let after = after.strip_prefix(b":")?;
    let who = who(&line[..bracket])?;
    Some(Line {
        comm: who.comm,
        tid: who.tid,
        tgid: who.tgid,
        cpu: u32::try_from(cpu).ok()?,
        in_interrupt: is_interrupt(flags),
        has_flags: !flags.is_empty(),
        time,
        what: what(after, who.is_perf),
        is_perf: who.is_perf,
    })
}

/// Whether flags say that it was in an interrupt. The third one is the context. Some realtime kernels print
/// one more in front of it.
fn is_interrupt(flags: &[u8]) -> bool {
    let mut context = flags.iter().skip(2).take(2);
    context.any(|flag| b"hHszZ".contains(flag))
}

/// A line without brackets, where the flags follow the CPU: `comm-12  2dNs4.  1.000002: event: args`. The
/// kernel's own latency format counts microseconds since its beginning: `comm-12  2dNs4.  17us+: …`.
#[cold]
fn parse_latency(line: &[u8]) -> Option<Line<'_>> {
    for colon in memchr::memchr_iter(b':', line) {
        let front = trim_end(&line[..colon]);
        let Some(blank) = memchr::memrchr2(b' ', b'\t', front) else {
            continue;
        };
        let Some(time) = latency_time(&front[blank + 1..]) else {
            continue;
        };
        let front = trim_end(&front[..blank]);
        let blank = memchr::memrchr2(b' ', b'\t', front)?;
        let (cpu, flags) = leading(&front[blank + 1..])?;
        let is_flags = (3..=8).contains(&flags.len())
            && b"dDbX.".contains(&flags[0])
            && flags
                .iter()
                .all(|flag| flag.is_ascii_alphanumeric() || matches!(flag, b'.' | b'#'));
        let who = who(&front[..blank]).filter(|who| is_flags && !who.is_perf)?;
        return Some(Line {
            comm: who.comm,
            tid: who.tid,
            tgid: who.tgid,
            cpu: u32::try_from(cpu).ok()?,
            in_interrupt: is_interrupt(flags),
            has_flags: true,
            time,
            what: what(&line[colon + 1..], false),
            is_perf: false,
        });
    }
    None
}

/// `1.000002`, or `17us` with a sign behind it.
fn latency_time(text: &[u8]) -> Option<Nanos> {
    if let Some((time, b"")) = leading_seconds(text) {
        return memchr::memchr(b'.', text).map(|_| time);
    }
    let (micros, rest) = leading(text)?;
    matches!(rest.strip_prefix(b"us")?, b"" | [_]).then(|| Nanos::from_micros(micros))
}

/// The flags, if there are any, and the text from the time on.
fn flags(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.first()?.is_ascii_digit() {
        return Some((b"", text));
    }
    let length = text.iter().position(|byte| matches!(byte, b' ' | b'\t'))?;
    let (flags, rest) = text.split_at(length);
    let is_flags = length <= 8
        && flags
            .iter()
            .all(|f| f.is_ascii_alphanumeric() || matches!(f, b'.' | b'#'));
    is_flags.then_some((flags, skip_blanks(rest)?))
}

/// At least one blank.
fn skip_blanks(text: &[u8]) -> Option<&[u8]> {
    let rest = trim_start(text);
    (rest.len() < text.len()).then_some(rest)
}

pub(super) fn trim_start(text: &[u8]) -> &[u8] {
    let blanks = text
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    &text[blanks..]
}

pub(super) fn trim_end(text: &[u8]) -> &[u8] {
    let blanks = text
        .iter()
        .rev()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    &text[..text.len() - blanks]
}

struct LineTask<'l> {
    comm: &'l [u8],
    tid: u32,
    tgid: Option<u32>,
    is_perf: bool,
}

/// The part in front of the CPU.
fn who(text: &[u8]) -> Option<LineTask<'_>> {
    let text = trim_end(text);
    let (text, mut tgid) = match text {
        [front @ .., b')'] => {
            let bracket = memchr::memrchr(b'(', front)?;
            let inner = trim_start(&front[bracket + 1..]);
            let tgid = match leading(inner) {
                Some((tgid, b"")) => Some(u32::try_from(tgid).ok()?),
                _ if inner.iter().all(|byte| *byte == b'-') => None,
                _ => return None,
            };
            (trim_end(&front[..bracket]), tgid)
        }
        text => (text, None),
    };
    let (front, tid) = last_number(text)?;
    let (comm, tid, is_perf) = match front {
        // perf writes -1 for a task that has just ended: there is no task then.
        [comm @ .., b' ' | b'\t', b'-'] if tid == 1 => (comm, 0, true),
        [comm @ .., b'-'] => (comm, tid, false),
        [comm @ .., b' ' | b'\t'] => (comm, tid, true),
        [front @ .., b'/'] => {
            let (front, pid) = last_number(front)?;
            let comm = front.strip_suffix(b" ")?;
            tgid = Some(pid);
            (comm, tid, true)
        }
        _ => return None,
    };
    let comm = trim_start(comm);
    Some(LineTask {
        comm: if is_perf { trim_end(comm) } else { comm },
        tid,
        tgid,
        is_perf,
    })
}

/// The digits that a text ends with, as a number, and the text in front of them.
fn last_number(text: &[u8]) -> Option<(&[u8], u32)> {
    let digits = text
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (front, digits) = text.split_at(text.len() - digits);
    let (number, _) = leading(digits)?;
    Some((front, u32::try_from(number).ok()?))
}

/// The event behind the time.
fn what(text: &[u8], is_perf: bool) -> LineBody<'_> {
    let mut text = trim_start(text);
    if is_perf
        && let Some((_, rest)) = leading(text)
        && let Some(rest) = skip_blanks(rest)
    {
        // The period of a counter.
        text = rest;
    }
    let end = text
        .iter()
        .position(|byte| matches!(byte, b' ' | b'\t' | b'('));
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    if let Some(name) = word.strip_suffix(b":") {
        let group = if is_perf {
            memchr::memrchr(b':', name)
        } else {
            None
        };
        let name = &name[group.map_or(0, |colon| colon + 1)..];
        return LineBody::Event {
            name,
            args: trim_start(rest),
        };
    }
    let Some(name) = word.strip_prefix(b"sys_") else {
        return match word {
            b"PERF_RECORD_LOST" => LineBody::Event {
                name: word,
                args: trim_start(rest),
            },
            _ => LineBody::Other,
        };
    };
    if let Some(args) = rest.strip_prefix(b"(") {
        return LineBody::Call { name, args };
    }
    match rest.strip_prefix(b" -> ") {
        Some(result) => LineBody::Return { name, result },
        None => LineBody::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Line<'_>> {
        parse(line.as_bytes())
    }

    const SWITCH: &str = "1.000002: sched_switch: x";

    /// Goal: every header variant gives the same columns. Method: one line of each, as kernels of that age,
    /// trace-cmd and perf write it.
    #[test]
    fn every_variant() {
        for (front, tgid, in_interrupt, is_perf) in [
            ("            comm-12    [001] ", None, false, false),
            ("comm-12 [001] ", None, false, false),
            ("            comm-12    [001] d.h2 ", None, true, false),
            ("            comm-12    [001] dNs3. ", None, true, false),
            ("            comm-12    [001] d..3  ", None, false, false),
            ("            comm-12    [001] d...3.. ", None, false, false),
            (
                "            comm-12    (   12) [001] ...1 ",
                Some(12),
                false,
                false,
            ),
            (
                "            comm-12    (-----) [001] ...1 ",
                None,
                false,
                false,
            ),
            (
                "            comm-12    (-------) [001] ..... ",
                None,
                false,
                false,
            ),
            ("comm-12    ( 4321) [001] .N.2. ", Some(4321), false, false),
            ("            comm    12 [001]  ", None, false, true),
            ("            comm 4321/12 [001]  ", Some(4321), false, true),
        ] {
            let line = format!("{front}{SWITCH}");
            let line = read(&line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(line.comm, b"comm", "{front}");
            assert_eq!((line.tid, line.tgid, line.cpu), (12, tgid, 1), "{front}");
            assert_eq!(
                (line.in_interrupt, line.is_perf),
                (in_interrupt, is_perf),
                "{front}"
            );
            assert_eq!(line.time, Nanos(1_000_002_000));
            let what = LineBody::Event {
                name: b"sched_switch",
                args: b"x",
            };
            assert_eq!(line.what, what, "{front}");
        }
    }

    /// Goal: lines of the latency format are read, with their flags. Method: lines of trace-cmd and of the
    /// kernel, one with a bracket and one with a colon in front of the time.
    #[test]
    fn latency_lines() {
        for (line, comm, time, in_interrupt) in [
            (
                "Thread-1-4805    2dNs4.   165.520181: sched_wakeup: sh:7 [120] CPU:000",
                "Thread-1",
                165_520_181_000,
                true,
            ),
            (
                "kworker/-4805  2d..4.   1.5: sched_wakeup: x",
                "kworker/",
                1_500_000_000,
                false,
            ),
            (
                "a: b-4805  2d.h3   17us+: sched_wakeup: x",
                "a: b",
                17_000,
                true,
            ),
            (
                "  <idle>-4805  2.N.3   17us : sched_wakeup: x",
                "<idle>",
                17_000,
                false,
            ),
        ] {
            let read = read(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(
                (read.comm, read.tid, read.cpu),
                (comm.as_bytes(), 4805, 2),
                "{line}"
            );
            assert_eq!(
                (read.time, read.in_interrupt, read.has_flags),
                (Nanos(time), in_interrupt, true),
                "{line}"
            );
            let is_wake = |what| {
                matches!(
                    what,
                    LineBody::Event {
                        name: b"sched_wakeup",
                        ..
                    }
                )
            };
            assert!(is_wake(read.what), "{line}");
        }
        for line in [
            "a-1 2 1.5: x: y",
            "a-1 2dNs4. 1: x: y",
            "2d..3 1.5: x: y",
            "a 1 2d..3 1.5: x: y",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    /// Goal: names may hold whatever a line is made of. Method: names with blanks, dashes, brackets, colons.
    #[test]
    fn odd_names() {
        for name in [
            "Web Content",
            "kworker/0:1H",
            "a-12",
            "x [003] 1.0: y",
            "(sd-pam)",
            "<idle>",
            "a (b)",
            "-",
        ] {
            for front in ["", "   "] {
                let line = format!("{front}{name}-77    [002] d..2. {SWITCH}");
                let line = read(&line).unwrap_or_else(|| panic!("{line}"));
                assert_eq!(line.comm, name.as_bytes());
                assert_eq!((line.tid, line.cpu), (77, 2));
            }
        }
        let line = read("  Web Content    77 [002]  1.5: sched:sched_switch: x").unwrap();
        assert_eq!(
            (line.comm, line.tid, line.is_perf),
            (&b"Web Content"[..], 77, true)
        );
    }

    /// Goal: the kernel's forms of an event are told apart. Method: one of each.
    #[test]
    fn what_happened() {
        let what = |text: &str| format!("c-1 [000] .... 1.0: {text}");
        let event = |name, args| LineBody::Event { name, args };
        for (text, wanted) in [
            ("0: B|1|x", event(&b"0"[..], &b"B|1|x"[..])),
            (
                "sched_wakeup:         sh:1 [120] CPU:000",
                event(b"sched_wakeup", b"sh:1 [120] CPU:000"),
            ),
            ("print:", event(b"print", b"")),
            ("do_fork <-sys_clone", LineBody::Other),
            (
                "sys_futex(uaddr: 7f, op: 81)",
                LineBody::Call {
                    name: b"futex",
                    args: b"uaddr: 7f, op: 81)",
                },
            ),
            (
                "sys_futex -> 0x0",
                LineBody::Return {
                    name: b"futex",
                    result: b"0x0",
                },
            ),
        ] {
            assert_eq!(read(&what(text)).unwrap().what, wanted, "{text}");
        }
        let line = read("             :-1    -1 [001]  1.5: sched:sched_switch: x").unwrap();
        assert_eq!((line.tid, line.what), (0, event(b"sched_switch", b"x")));
        let line = "perf 12 [000] 1.5:      1 sched:sched_waking: comm=a";
        let wanted = event(b"sched_waking", b"comm=a");
        assert_eq!(read(line).unwrap().what, wanted);
    }

    /// Goal: other lines are not taken for events. Method: headers, stacks, cut lines, impossible numbers.
    #[test]
    fn no_events() {
        for line in [
            "",
            "# tracer: nop",
            "CPU:3 [LOST 123 EVENTS]",
            "cpus=6",
            "c-1 [000]",
            "c-1 [000] 1.0",
            "[000] 1.0: x:",
            "c-1 [000] 1: x: y",
            "c-99999999999 [000] 1.0: x: y",
            "\tffffffff81 do_x ([kernel.kallsyms])",
            "c-1 [000] 99999999999999999999.0: x: y",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
