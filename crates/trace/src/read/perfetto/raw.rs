//! Kernel events as they wait for the end of the file: not yet interpreted, and small.

use super::parties::PartyNumber;
use super::words::TextId;
use crate::read::builder::Wake;

/// An event. Priorities and numbers of CPUs are narrow, because the kernel's are. `on` is the running thread,
/// where that matters: a tid, or [`CURRENT`].
///
/// It has 12 bytes, so that an event has 16 with its time (`lists.rs`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum KernelFact {
    Switch {
        prev: PartyNumber,
        next: PartyNumber,
        state: u16,
    },
    /// A switch from the running thread.
    SwitchTo {
        next: PartyNumber,
        state: u16,
    },
    Wake {
        who: PartyNumber,
        /// 0, too, if it was in an interrupt.
        on: u32,
        target: u16,
        how: Wake,
    },
    Migrate {
        who: PartyNumber,
        from: u16,
        to: u16,
    },
    Inherit {
        who: PartyNumber,
        on: u32,
        before: i16,
    },
    Frequency {
        cpu: u32,
        khz: u32,
    },
    FrequencyLimit {
        cpu: u32,
        khz: u32,
    },
    Idle {
        cpu: u32,
        state: u32,
    },
    Online {
        cpu: u32,
        is_online: bool,
    },
    Blocked {
        tid: u32,
        io: bool,
    },
    Fork {
        child: PartyNumber,
        on: u32,
        is_thread: Option<bool>,
    },
    Rename {
        tid: u32,
        comm: TextId,
    },
    Exit {
        who: PartyNumber,
    },
    Interrupt {
        begins: bool,
        soft: bool,
        number: u32,
    },
    FutexCall {
        on: u32,
        /// By number in the list of addresses.
        address: u32,
        /// The low bits, which tell the operation.
        op: u8,
    },
    FutexReturn {
        on: u32,
        result: i32,
    },
    Transaction {
        on: u32,
        /// By number in the list of transactions.
        number: u32,
    },
    Fence {
        on: u32,
        /// By number in the list of fences.
        number: u32,
    },
    Throttle {
        tid: u32,
        begins: bool,
    },
    Marker {
        on: u32,
        text: TextId,
    },
    /// Events are missing here.
    Gap,
}

/// In place of a tid: the running thread.
pub(super) const CURRENT: u32 = u32::MAX;

/// A CPU's number; an impossible one stays impossible.
pub(super) fn narrow(cpu: u64) -> u16 {
    u16::try_from(cpu).unwrap_or(u16::MAX)
}
