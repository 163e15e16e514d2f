//! The forms of scheduler events that `trace-cmd report` prints with its plugins:
//!
//! ```text
//! sched_switch: COMM:PID [PRIO] STATE ==> COMM:PID [PRIO]
//! sched_wakeup: COMM:PID [PRIO] [success=1] CPU:003
//! sys_enter_futex: op=FUTEX_WAKE|FUTEX_PRIVATE_FLAG uaddr=0x7f07 val=1
//! ```
//!
//! A name may hold anything, so everything is read from the right.

use super::events::{priority, state, tid};
use super::line::{trim_end, trim_start};
use crate::read::builder::{At, Builder, Party, Wake};
use crate::read::numbers::{field, integer};

pub(super) fn switch(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    const ARROW: &[u8] = b" ==> ";
    let arrow = memchr::memmem::find(args, ARROW)?;
    let (next, _) = party(&args[arrow + ARROW.len()..])?;
    let (prev, letters) = party(&args[..arrow])?;
    builder.switch(at, &prev, state(letters)?, &next);
    Some(())
}

pub(super) fn wake(builder: &mut Builder, at: &At, args: &[u8], how: Wake) -> Option<()> {
    const CPU: &[u8] = b" CPU:";
    let cpu = memchr::memmem::rfind(args, CPU)?;
    let target = u32::try_from(integer(trim_end(&args[cpu + CPU.len()..]))?).ok()?;
    let (who, rest) = party(&args[..cpu])?;
    if field(rest, b"success=") != Some(b"0") {
        builder.wake(at, &who, target, how);
    }
    Some(())
}

pub(super) fn futex_call(builder: &mut Builder, at: &At, args: &[u8]) -> Option<()> {
    // As `include/uapi/linux/futex.h` numbers them.
    const NAMES: [&[u8]; 14] = [
        b"WAIT",
        b"WAKE",
        b"FD",
        b"REQUEUE",
        b"CMP_REQUEUE",
        b"WAKE_OP",
        b"LOCK_PI",
        b"UNLOCK_PI",
        b"TRYLOCK_PI",
        b"WAIT_BITSET",
        b"WAKE_BITSET",
        b"WAIT_REQUEUE_PI",
        b"CMP_REQUEUE_PI",
        b"LOCK_PI2",
    ];
    let name = field(args, b"op=FUTEX_")?
        .split(|byte| *byte == b'|')
        .next()?;
    let op = NAMES.iter().position(|known| *known == name)?;
    builder.futex_call(
        at,
        integer(field(args, b"uaddr=")?)?,
        u32::try_from(op).ok()?,
    );
    Some(())
}

/// `COMM:PID [PRIO]`, and the rest.
fn party(text: &[u8]) -> Option<(Party<'_>, &[u8])> {
    let close = memchr::memrchr(b']', text)?;
    let open = memchr::memrchr(b'[', &text[..close])?;
    let (priority, rest) = priority(&text[open + 1..close])?;
    let front = trim_end(&text[..open]);
    let colon = memchr::memrchr(b':', front)?;
    let (tid, after) = tid(&front[colon + 1..])?;
    (rest.is_empty() && after.is_empty()).then(|| {
        let who = Party {
            tid,
            comm: &front[..colon],
            priority: Some(priority),
        };
        (who, trim_start(&text[close + 1..]))
    })
}
