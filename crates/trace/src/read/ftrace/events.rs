//! The events themselves: the text behind an event's name, as the kernel prints it.
//!
//! `trace-cmd report` prints some with its plugins instead; those forms are in `plugin.rs`.

use event::Left;

use super::line::{Line, LineBody, trim_start};
use super::plugin;
use crate::Loss;
use crate::layout::Layout;
use crate::read::builder::{
    At, Builder, FenceKey, FenceStep, Party, Transaction, Trust, Wake, from_bits, from_letters,
};
use crate::read::markers;
use crate::read::numbers::{field, hexadecimal, integer, leading, leading_signed};

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineOutcome {
    /// It is in the recording.
    Read,
    /// It was a marker: if it holds a line's end, the rest is on the next line.
    Marker,
    /// Text that is not read; it may continue on the next line.
    Text,
    /// A kind that is not read.
    Other,
    /// An event of a known kind with missing or impossible fields.
    Bad,
}

/// Puts a line's event into the recording.
#[inline]
pub(super) fn read(builder: &mut Builder, at: &At, line: &Line<'_>) -> LineOutcome {
    match line.what {
        LineBody::Event { name, args } => event(builder, at, name, args),
        LineBody::Call {
            name: b"futex",
            args,
        } => came(futex_call(builder, at, args)),
        LineBody::Return {
            name: b"futex",
            result,
        } => came(futex_return(builder, at, result)),
        _ => LineOutcome::Other,
    }
}

fn came(result: Option<()>) -> LineOutcome {
    match result {
        Some(()) => LineOutcome::Read,
        None => LineOutcome::Bad,
    }
}

fn event(builder: &mut Builder, at: &At, name: &[u8], args: &[u8]) -> LineOutcome {
    came(match name {
        b"sched_switch" => switch(builder, at, args),
        b"sched_waking" => wake(builder, at, args, Wake::Decided),
        b"sched_wakeup" => wake(builder, at, args, Wake::Queued),
        b"sched_wakeup_new" => wake(builder, at, args, Wake::New),
        b"sched_migrate_task" => migrate(builder, at, args),
        b"sched_pi_setprio" => inherit(builder, at, args),
        b"sched_blocked_reason" => blocked(builder, at, args),
        b"binder_transaction" => transaction(builder, at, args),
        b"binder_transaction_received" => received(builder, at, args),
        b"dma_fence_wait_start" => fence(builder, at, args, FenceStep::WaitBegins),
        b"dma_fence_wait_end" => fence(builder, at, args, FenceStep::WaitEnds),
        b"dma_fence_signaled" => fence(builder, at, args, FenceStep::Signalled),
        b"cpu_frequency" => frequency(builder, at, args),
        b"cpu_frequency_limits" => frequency_limit(builder, at, args),
        b"cpu_idle" => idle(builder, at, args),
        b"irq_handler_entry" => interrupt(builder, at, args, true, false, b"irq="),
        b"irq_handler_exit" => interrupt(builder, at, args, false, false, b"irq="),
        b"softirq_entry" => interrupt(builder, at, args, true, true, b"vec="),
        b"softirq_exit" => interrupt(builder, at, args, false, true, b"vec="),
        b"sched_process_fork" => fork(builder, args),
        b"task_newtask" => newtask(builder, at, args),
        b"task_rename" => rename(builder, args),
        b"sched_process_exit" => exit(builder, at, args),
        b"sys_enter_futex" => futex_call(builder, at, args),
        b"sys_exit_futex" => futex_return(builder, at, args),
        b"sched_cpu_hotplug" => hotplug(builder, at, args),
        b"cpuhp_enter" => hotplug_step(builder, at, args),
        b"PERF_RECORD_LOST" => lost(builder, at, args),
        b"tracing_mark_write" | b"0" => {
            markers::read(builder, at, args);
            return LineOutcome::Marker;
        }
        b"print" | b"bprint" | b"bputs" => return printed(builder, at, name, args),
        _ => match args.strip_prefix(b"vector=") {
            Some(_) if name.ends_with(b"_entry") => {
                interrupt(builder, at, args, true, false, b"vector=")
            }
            Some(_) if name.ends_with(b"_exit") => {
                interrupt(builder, at, args, false, false, b"vector=")
            }
            _ if name.starts_with(b"tracing_mark_write") => {
                markers::read(builder, at, args);
                return LineOutcome::Marker;
            }
            _ => return LineOutcome::Other,
        },
    })
}

/// `FUNCTION: text` or `0xADDRESS: text`. Texts of the kernel's own code (`bprint`) are read only if they are
/// markers of measuring scripts.
fn printed(builder: &mut Builder, at: &At, name: &[u8], args: &[u8]) -> LineOutcome {
    let word = args
        .iter()
        .position(|byte| matches!(byte, b' ' | b'\t'))
        .unwrap_or(args.len());
    let text = match args[..word].strip_suffix(b":") {
        Some(
            b"cpu_frequency" | b"cpu_frequency_devlib" | b"cpu_idle" | b"trace_event_clock_sync",
        ) => args,
        Some(_) => trim_start(&args[word..]),
        None => args,
    };
    if name == b"print" {
        markers::read(builder, at, text);
        return LineOutcome::Marker;
    }
    LineOutcome::Text
}

/// The text before and after a key, which begins with a blank.
#[inline]
pub(super) fn split<'a>(text: &'a [u8], key: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let mut from = 0;
    loop {
        let blank = from + memchr::memchr(b' ', &text[from..])?;
        if let Some(rest) = text[blank..].strip_prefix(key) {
            return Some((&text[..blank], rest));
        }
        from = blank + 1;
    }
}

/// The text before and after the last occurrence of a key, which begins with a blank.
fn split_last<'a>(text: &'a [u8], key: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let mut end = text.len();
    loop {
        let blank = memchr::memrchr(b' ', &text[..end])?;
        if let Some(rest) = text[blank..].strip_prefix(key) {
            return Some((&text[..blank], rest));
        }
        end = blank;
    }
}

pub(super) fn tid(text: &[u8]) -> Option<(u32, &[u8])> {
    let (tid, rest) = leading(text)?;
    Some((u32::try_from(tid).ok()?, rest))
}

pub(super) fn priority(text: &[u8]) -> Option<(i16, &[u8])> {
    let (priority, rest) = leading_signed(text)?;
    Some((i16::try_from(priority).ok()?, rest))
}

fn number(text: &[u8], key: &[u8]) -> Option<u32> {
    let (number, _) = leading(field(text, key)?)?;
    u32::try_from(number).ok()
}

fn switch(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    let Some(rest) = args.strip_prefix(b"prev_comm=") else {
        return plugin::switch(builder, at, args);
    };
    let (prev_comm, rest) = split(rest, b" prev_pid=")?;
    let (prev_tid, rest) = tid(rest)?;
    let (prev_priority, rest) = priority(rest.strip_prefix(b" prev_prio=")?)?;
    let rest = rest.strip_prefix(b" prev_state=")?;
    let (letters, rest) = rest.split_at(memchr::memchr(b' ', rest)?);
    let rest = rest.strip_prefix(b" ==>").unwrap_or(rest);
    let rest = rest.strip_prefix(b" next_comm=")?;
    let (next_comm, rest) = split(rest, b" next_pid=")?;
    let (next_tid, rest) = tid(rest)?;
    let (next_priority, _) = priority(rest.strip_prefix(b" next_prio=")?)?;
    let prev = Party {
        tid: prev_tid,
        comm: prev_comm,
        priority: Some(prev_priority),
    };
    let next = Party {
        tid: next_tid,
        comm: next_comm,
        priority: Some(next_priority),
    };
    builder.switch(at, &prev, state(letters)?, &next);
    Some(())
}

/// Letters, or the kernel's bits as a number.
pub(super) fn state(text: &[u8]) -> Option<Left> {
    if text.first()?.is_ascii_digit() {
        Some(from_bits(integer(text)?, Layout::Unknown))
    } else {
        from_letters(text)
    }
}

/// `comm=C pid=N prio=N` and the rest.
fn party(args: &[u8]) -> Option<(Party<'_>, &[u8])> {
    let (comm, rest) = split_last(args.strip_prefix(b"comm=")?, b" pid=")?;
    let (tid, rest) = tid(rest)?;
    let mut who = Party {
        tid,
        comm,
        priority: None,
    };
    let Some(rest) = rest.strip_prefix(b" prio=") else {
        return Some((who, rest));
    };
    let (priority, rest) = priority(rest)?;
    who.priority = Some(priority);
    Some((who, rest))
}

fn wake(builder: &mut Builder, at: &At, args: &[u8], how: Wake) -> Option<()> {
    if !args.starts_with(b"comm=") {
        return plugin::wake(builder, at, args, how);
    }
    let (who, rest) = party(args)?;
    who.priority?;
    let (_, target) = split(rest, b" target_cpu=")?;
    let (target, _) = leading(target)?;
    // Old kernels wrote a wake-up of a task that ran already as success=0.
    if field(rest, b"success=") != Some(b"0") {
        builder.wake(at, &who, u32::try_from(target).ok()?, how);
    }
    Some(())
}

fn migrate(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    let (who, rest) = party(args)?;
    let (from, to) = (number(rest, b"orig_cpu=")?, number(rest, b"dest_cpu=")?);
    builder.migrate(at, &who, from, to);
    Some(())
}

fn inherit(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    let (who, rest) = party(args)?;
    let (before, _) = priority(field(rest, b"oldprio=")?)?;
    let (now, _) = priority(field(rest, b"newprio=")?)?;
    builder.inherit(at, &who, before, now);
    Some(())
}

fn blocked(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    let io = number(args, b"iowait=").or_else(|| number(args, b"io_wait="))?;
    // `caller=msm_rpm_wait_for_ack+0x14/0x80`, or an address.
    let caller = field(args, b"caller=").unwrap_or_default();
    let end = memchr::memchr(b'+', caller).unwrap_or(caller.len());
    let is_name = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    let name = Some(&caller[..end]).filter(|name| name.first().is_some_and(is_name));
    let is_address = |name: &&[u8]| name.len() >= 8 && name.iter().all(u8::is_ascii_hexdigit);
    let name = name.filter(|name| !is_address(name));
    builder.blocked(
        at,
        number(args, b"pid=")?,
        io != 0,
        name.unwrap_or_default(),
    );
    Some(())
}

/// `transaction=7 dest_node=1 dest_proc=5 dest_thread=0 reply=0 flags=0x10 code=0x1`.
fn transaction(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    let transaction = Transaction::of(
        number(args, b"transaction=")?,
        number(args, b"dest_proc=")?,
        number(args, b"reply=")? != 0,
        number(args, b"flags=")?.into(),
    );
    if let Some(transaction) = transaction {
        builder.transaction(at, transaction);
    }
    Some(())
}

fn received(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    let number = number(args, b"transaction=")?;
    builder.transaction(at, Transaction::Received { number });
    Some(())
}

/// `driver=v3d timeline=v3d-render context=7 seqno=41`. Names of timelines may have blanks in them.
fn fence(builder: &mut Builder, at: &At, args: &[u8], step: FenceStep) -> Option<()> {
    let (driver, rest) = split(args.strip_prefix(b"driver=")?, b" timeline=")?;
    let (timeline, _) = split_last(rest, b" context=")?;
    let key = FenceKey {
        context: number(args, b"context=")?,
        seqno: number(args, b"seqno=")?,
    };
    builder.fence(at, key, step, [driver, timeline]);
    Some(())
}

fn frequency(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    builder.frequency(at, number(args, b"cpu_id=")?, number(args, b"state=")?);
    Some(())
}

/// `min=300000 max=1056000 cpu_id=4`; some kernels write `min_freq=` and `max_freq=`.
fn frequency_limit(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    let most = number(args, b"max=").or_else(|| number(args, b"max_freq="))?;
    builder.frequency_limit(at, number(args, b"cpu_id=")?, most);
    Some(())
}

fn idle(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    // -1 is printed without a sign, by some as 64 bits of it.
    let state = match field(args, b"state=")? {
        b"-1" => u32::MAX,
        state => integer(state)? as u32,
    };
    builder.idle(at, number(args, b"cpu_id=")?, state);
    Some(())
}

fn interrupt(
    builder: &mut Builder,
    at: &At,
    args: &[u8],
    begins: bool,
    soft: bool,
    key: &[u8],
) -> Option<()> {
    builder.interrupt(at, begins, soft, number(args, key)?);
    Some(())
}

fn fork(builder: &mut Builder, args: &[u8]) -> Option<()> {
    let (parents, rest) = split_last(args, b" child_comm=")?;
    let (parent, _) = party(parents)?;
    let (comm, rest) = split_last(rest, b" child_pid=")?;
    let (tid, _) = tid(rest)?;
    let child = Party {
        tid,
        comm,
        priority: None,
    };
    builder.thread_name(parent.tid, parent.comm, Trust::Event);
    builder.fork(parent.tid, &child, None);
    Some(())
}

fn newtask(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    /// `CLONE_THREAD` of `include/uapi/linux/sched.h`.
    const THREAD: u64 = 0x1_0000;
    let (tid, rest) = tid(args.strip_prefix(b"pid=")?)?;
    let (comm, rest) = split(rest.strip_prefix(b" comm=")?, b" clone_flags=")?;
    let (flags, _) = hexadecimal(rest.strip_prefix(b"0x").unwrap_or(rest))?;
    let child = Party {
        tid,
        comm,
        priority: None,
    };
    builder.fork(at.tid, &child, Some(flags & THREAD != 0));
    Some(())
}

fn rename(builder: &mut Builder, args: &[u8]) -> Option<()> {
    let (tid, rest) = tid(args.strip_prefix(b"pid=")?)?;
    let (_, rest) = split(rest, b" newcomm=")?;
    let (name, _) = split_last(rest, b" oom_score_adj=").unwrap_or((rest, b""));
    builder.thread_name(tid, name, Trust::Event);
    Some(())
}

fn exit(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    let (who, _) = party(args)?;
    builder.exit(at, &who);
    Some(())
}

/// `uaddr: 0x7f07, op: 0x81, …`: all hexadecimal, with `0x` or, in old kernels, without.
fn futex_call(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    if args.starts_with(b"op=") {
        return plugin::futex_call(builder, at, args);
    }
    let value = |key: &[u8]| {
        let position = memchr::memmem::find(args, key)?;
        let text = trim_start(&args[position + key.len()..]);
        let (number, rest) = hexadecimal(text.strip_prefix(b"0x").unwrap_or(text))?;
        matches!(rest.first(), None | Some(b',' | b')' | b' ')).then_some(number)
    };
    let op = u32::try_from(value(b" op:")?).ok()?;
    builder.futex_call(at, value(b"uaddr:")?, op);
    Some(())
}

fn futex_return(builder: &mut Builder, at: &At, result: &[u8]) -> Option<()> {
    let result = match result.strip_prefix(b"-") {
        Some(number) => -(leading(number)?.0 as i64),
        None => leading(result)?.0 as i64,
    };
    builder.futex_return(at, i32::try_from(result).ok()?);
    Some(())
}

/// perf's own words: `lost 57`.
fn lost(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    let (events, _) = leading(args.strip_prefix(b"lost ")?)?;
    builder.gap(at.cpu, events);
    Some(())
}

/// Qualcomm's kernels: `cpu 1 offline error=0`.
fn hotplug(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    let (cpu, rest) = tid(args.strip_prefix(b"cpu ")?)?;
    let is_online = match trim_start(rest) {
        rest if rest.starts_with(b"offline") => false,
        rest if rest.starts_with(b"online") => true,
        _ => return None,
    };
    match field(rest, b"error=") {
        None | Some(b"0") => builder.online(at, cpu, is_online),
        Some(_) => builder.lose(Loss::OtherEvents, 1),
    }
    Some(())
}

/// `cpu: 0001 target: 140 step:   1 (function)`: one of many steps up or, towards 0, down. The first step in
/// each direction counts: from then on the scheduler must not, or soon will, count on the CPU.
fn hotplug_step(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    let value = |key: &[u8]| {
        let position = memchr::memmem::find(args, key)?;
        let (number, _) = leading(trim_start(&args[position + key.len()..]))?;
        u32::try_from(number).ok()
    };
    builder.hotplug_towards(at, value(b"cpu:")?, value(b"target:")? != 0);
    Some(())
}
