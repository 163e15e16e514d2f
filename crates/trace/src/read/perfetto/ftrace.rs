//! Kernel events: bundles of one CPU each, decoded and kept until the end of the file.
//!
//! The meaning of a tid and the previous priority of a task depend on the events before, on all CPUs, and
//! bundles of different CPUs are in no order. So events are kept in a small form, by CPU, and are put in one
//! order at the end (`merge.rs`). Then the kernel is known, too, on which numbers of states depend, and the
//! offset of its clock to the others. Until then no CPU's events depend on another's, so there may be several
//! decoders (`bundles.rs`).
//!
//! Nothing is allocated for an event but its place in its CPU's list.

use std::collections::BTreeMap;

use super::clocks::{self, ClockId};
use super::compact;
use super::hot::{self, PackedEvent};
use super::lists::{List, Spare};
use super::parties::{NO_PRIORITY, Parties, PartyNumber};
use super::raw::{KernelFact, narrow};
use super::wire::{Fields, Row, Value};
use super::words::{TextId, Texts};
use crate::read::builder::{FenceKey, FenceStep, Transaction, Wake};
use crate::{Loss, Losses, throttle};

/// Bits of `common_flags`: in a hard interrupt, in a soft one.
pub(super) const IN_INTERRUPT: u64 = 0x08 | 0x10;

/// A bundle's information about its clock.
pub(super) struct Stamp {
    pub(super) clock: ClockId,
    /// A time of it, and the boot clock's at the same moment.
    pub(super) there: Option<u64>,
    pub(super) boot: Option<u64>,
}

impl Default for Stamp {
    fn default() -> Stamp {
        Stamp {
            clock: clocks::BOOT,
            there: None,
            boot: None,
        }
    }
}

/// The fields of a bundle beside its events.
#[derive(Default)]
struct Parts<'a> {
    stamp: Stamp,
    /// Events before it are missing.
    is_lost: bool,
    /// The number of events that the recorder could not parse.
    errors: u64,
    compact: Option<&'a [u8]>,
}

impl<'a> Parts<'a> {
    fn learn(&mut self, field: u32, value: Value<'a>) {
        match (field, value) {
            (3, Value::Number(lost)) => self.is_lost = lost != 0,
            (4, Value::Bytes(bytes)) => self.compact = Some(bytes),
            (5, clock) => self.stamp.clock = ClockId::of_ftrace(clock.number()),
            (6, there) => self.stamp.there = Some(there.number()),
            (7, boot) => self.stamp.boot = Some(boot.number()),
            // `error`: `broken_abi_trace_pipes` and the like.
            (8, Value::Bytes(_)) => self.errors += 1,
            _ => {}
        }
    }
}

/// A bundle that waits to be decoded.
#[derive(Clone, Copy)]
pub(super) struct Bundle<'a> {
    /// The number of bundles before it in the file.
    pub(super) number: u64,
    /// The CPU of its events; none: no CPU has this number.
    pub(super) cpu: Option<u32>,
    pub(super) message: &'a [u8],
}

/// A step of a fence, with the names of its driver and its timeline.
#[derive(Clone, Copy)]
pub(super) struct FenceFact {
    pub(super) key: FenceKey,
    pub(super) step: FenceStep,
    pub(super) names: [TextId; 2],
}

/// Kernel events of some CPUs so far.
#[derive(Default)]
pub(super) struct BundleDecoder {
    pub(super) cpus: BTreeMap<u32, List>,
    /// Clocks, each with the number of the first bundle on it.
    pub(super) clocks: Vec<(ClockId, u64)>,
    pub(super) parties: Parties,
    pub(super) texts: Texts,
    /// Of futexes, in the order of their events.
    pub(super) addresses: Vec<u64>,
    /// Of binder, likewise.
    pub(super) transactions: Vec<Transaction>,
    /// Of fences, likewise.
    pub(super) fences: Vec<FenceFact>,
    /// The bundles' information about their clocks that is not taken yet, each with its bundle's number.
    pub(super) stamps: Vec<(u64, Stamp)>,
    pub(super) losses: Losses,
    /// The number of the futex call on this machine.
    pub(super) futex: Option<u64>,
    pub(super) spare: Spare,
    /// The events of the bundle that is being read.
    bundle: Vec<(u64, KernelFact)>,
}

impl BundleDecoder {
    pub(super) fn new(futex: Option<u64>) -> BundleDecoder {
        BundleDecoder {
            futex,
            ..BundleDecoder::default()
        }
    }

    /// Decodes bundles, in the order of the file.
    pub(super) fn decode(&mut self, bundles: &[Bundle<'_>]) {
        for bundle in bundles {
            let stamp = self.bundle(bundle);
            if stamp.there.is_some() && stamp.boot.is_some() {
                self.stamps.push((bundle.number, stamp));
            }
        }
    }

    fn bundle(&mut self, bundle: &Bundle<'_>) -> Stamp {
        let message = bundle.message;
        let mut parts = Parts::default();
        let Some(cpu) = bundle.cpu else {
            for (field, value) in Fields::of(message) {
                parts.learn(field, value);
            }
            return parts.stamp;
        };
        let mut events = std::mem::take(&mut self.bundle);
        events.clear();
        let mut running = PartyNumber::NOBODY;
        let mut at = 0;
        while at < message.len() {
            if let Some(event) = PackedEvent::in_bundle(message, at) {
                self.event(&event, &mut running, &mut events);
                at = event.body.to;
                continue;
            }
            let mut fields = Fields::of(&message[at..]);
            match fields.next() {
                Some((2, Value::Bytes(event))) => self.any_event(event, &mut running, &mut events),
                Some((field, value)) => parts.learn(field, value),
                None => self.losses.add(Loss::Malformed, 1),
            }
            at = message.len() - fields.left();
        }
        self.losses.add(Loss::KernelEvents, parts.errors);
        if let Some(bytes) = parts.compact {
            compact::read(bytes, &mut self.parties, &mut self.losses, &mut events);
        }
        let clock = self.clock(parts.stamp.clock, bundle.number);
        self.keep(cpu, clock, &events, parts.is_lost);
        self.bundle = events;
        parts.stamp
    }

    /// Appends a bundle's events to the others of its CPU. `is_lost`: some before it are missing.
    fn keep(&mut self, cpu: u32, clock: u8, events: &[(u64, KernelFact)], is_lost: bool) {
        let list = self.cpus.entry(cpu).or_default();
        if is_lost {
            let first = events.first().map(|(time, _)| *time);
            let time = first.or(list.latest()).unwrap_or(0);
            list.push(time, clock, KernelFact::Gap, &mut self.spare);
        }
        list.extend(clock, events, &mut self.spare);
    }

    fn clock(&mut self, clock: ClockId, bundle: u64) -> u8 {
        let known = self.clocks.iter().position(|(known, _)| *known == clock);
        let at = known.unwrap_or_else(|| {
            self.clocks.push((clock, bundle));
            self.clocks.len() - 1
        });
        // Bundles can name a handful of clocks.
        at as u8
    }

    /// Reads an event, unless its kind is not read, or it is broken. Both are counted.
    #[inline(always)]
    fn event(
        &mut self,
        event: &PackedEvent<'_>,
        running: &mut PartyNumber,
        events: &mut Vec<(u64, KernelFact)>,
    ) {
        let (body, on) = (event.body, event.tid);
        let by = if event.flags & IN_INTERRUPT != 0 {
            0
        } else {
            on
        };
        let what = match event.kind {
            4 => hot::switch(body, running, &mut self.parties),
            20 => hot::wake(body, by, Wake::Decided, &mut self.parties),
            3 => hot::marker(body, on, &mut self.texts),
            _ => return self.rare_event(event, by, events),
        };
        match what {
            Some(what) => events.push((event.time, what)),
            None => self.losses.add(Loss::Malformed, 1),
        }
    }

    /// The same for an event with its fields in any order.
    #[inline(never)]
    fn any_event(
        &mut self,
        event: &[u8],
        running: &mut PartyNumber,
        events: &mut Vec<(u64, KernelFact)>,
    ) {
        let before = events.len();
        match PackedEvent::of(event) {
            Ok((event, has_time)) => {
                self.event(&event, running, events);
                if !has_time && events.len() > before {
                    events.truncate(before);
                    self.losses.add(Loss::BadFields, 1);
                }
            }
            Err(loss) => self.losses.add(loss, 1),
        }
    }

    /// The same for rare kinds.
    #[inline(never)]
    fn rare_event(
        &mut self,
        event: &PackedEvent<'_>,
        by: u32,
        events: &mut Vec<(u64, KernelFact)>,
    ) {
        let mut wake = |how| {
            let what = hot::wake(event.body, by, how, &mut self.parties);
            what.ok_or(Some(Loss::Malformed))
        };
        let what = match event.kind {
            17 => wake(Wake::Queued),
            114 => wake(Wake::New),
            416..=418 => self.fence(event.kind, event.body.bytes(), by),
            kind => self.rare(kind, event.body.bytes(), event.tid),
        };
        match what {
            Ok(what) => events.push((event.time, what)),
            Err(Some(loss)) => self.losses.add(loss, 1),
            Err(None) => {}
        }
    }

    /// The event, by the number of its kind; or the loss to count. Kinds without useful information are not
    /// counted. `on`: the running thread.
    fn rare(&mut self, kind: u32, body: &[u8], on: u32) -> Result<KernelFact, Option<Loss>> {
        if !matches!(
            kind,
            11 | 12 | 13 | 18 | 19 | 24 | 25 | 36 | 37 | 50 | 51 | 235 | 236 | 238
                ..=240 | 327 | 329 | 330 | 353 | 491
        ) {
            return Err(Some(Loss::OtherEvents));
        }
        let Some(row) = Row::of(body) else {
            return Err(Some(Loss::Malformed));
        };
        let parties = &mut self.parties;
        Ok(match kind {
            491 => KernelFact::Migrate {
                who: named(&row, 2, 1, 3, parties),
                from: narrow(row.number(4)),
                to: narrow(row.number(5)),
            },
            353 => KernelFact::Inherit {
                who: named(&row, 4, 1, 2, parties),
                on,
                before: row.signed(3) as i16,
            },
            // An error of it: the CPU stays as it is.
            19 if row.number(2) != 0 => return Err(None),
            11..=13 | 19 => of_cpu(kind, &row),
            18 => KernelFact::Blocked {
                tid: row.number(1) as u32,
                io: row.number(3) != 0,
            },
            50 | 51 => return self.transaction(kind == 50, &row, on),
            36 | 37 => interrupt(kind == 36, false, &row),
            24 | 25 => interrupt(kind == 24, true, &row),
            235 | 236 | 238 | 239 => self.of_life(kind, &row, on),
            240 => return Err(None),
            327 => return generic(body).ok_or(Some(Loss::OtherEvents)),
            329 | 330 => return self.syscall(kind == 329, body, &row, on),
            _ => return Err(Some(Loss::OtherEvents)),
        })
    }

    /// The events of a task's life: it begins, by one of two events, changes its name, or ends.
    fn of_life(&mut self, kind: u32, row: &Row<'_>, on: u32) -> KernelFact {
        let parties = &mut self.parties;
        match kind {
            235 => KernelFact::Fork {
                child: named(row, 1, 2, 15, parties),
                on,
                // CLONE_THREAD
                is_thread: Some(row.number(3) & 0x1_0000 != 0),
            },
            239 => KernelFact::Fork {
                child: named(row, 4, 3, 15, parties),
                on,
                is_thread: None,
            },
            236 => KernelFact::Rename {
                tid: row.number(1) as u32,
                comm: self.texts.keep(row.bytes(3)),
            },
            _ => KernelFact::Exit {
                who: named(row, 2, 1, 15, parties),
            },
        }
    }

    /// Transactions of binder, if somebody waits for an answer.
    fn transaction(
        &mut self,
        is_sent: bool,
        row: &Row<'_>,
        on: u32,
    ) -> Result<KernelFact, Option<Loss>> {
        let [number, process] = [1, 3].map(|field| row.number(field) as u32);
        let transaction = if is_sent {
            let (is_reply, flags) = (row.number(5) != 0, row.number(7));
            Transaction::of(number, process, is_reply, flags).ok_or(None)?
        } else {
            Transaction::Received { number }
        };
        let number = self.transactions.len() as u32;
        self.transactions.push(transaction);
        Ok(KernelFact::Transaction { on, number })
    }

    /// Fences: a signal, or the beginning or end of a wait. `by`: the running thread, outside of interrupts.
    fn fence(&mut self, kind: u32, body: &[u8], by: u32) -> Result<KernelFact, Option<Loss>> {
        let Some(row) = Row::of(body) else {
            return Err(Some(Loss::Malformed));
        };
        let [context, seqno] = [1, 3].map(|field| row.number(field) as u32);
        let number = self.fences.len() as u32;
        self.fences.push(FenceFact {
            key: FenceKey { context, seqno },
            step: match kind {
                416 => FenceStep::Signalled,
                417 => FenceStep::WaitBegins,
                _ => FenceStep::WaitEnds,
            },
            names: [2, 4].map(|field| self.texts.keep(row.bytes(field))),
        });
        Ok(KernelFact::Fence { on: by, number })
    }

    /// System calls: those of futexes.
    fn syscall(
        &mut self,
        begins: bool,
        body: &[u8],
        row: &Row<'_>,
        on: u32,
    ) -> Result<KernelFact, Option<Loss>> {
        if on == 0 || Some(row.number(1)) != self.futex {
            return Err(Some(Loss::OtherEvents));
        }
        if !begins {
            let result = row.signed(2);
            return Ok(KernelFact::FutexReturn { on, result });
        }
        let mut arguments = Fields::of(body).filter(|(field, _)| *field == 2);
        let mut argument = || arguments.next().map_or(0, |(_, value)| value.number());
        let (address, op) = (argument(), argument() as u8);
        // More of them than numbers would be more bytes than any machine has.
        let number = self.addresses.len() as u32;
        self.addresses.push(address);
        Ok(KernelFact::FutexCall {
            on,
            address: number,
            op,
        })
    }
}

/// The events of a CPU: its frequency, its sleep state, or else that it goes online or offline.
fn of_cpu(kind: u32, row: &Row<'_>) -> KernelFact {
    match kind {
        11 => KernelFact::Frequency {
            khz: row.number(1) as u32,
            cpu: row.number(2) as u32,
        },
        12 => KernelFact::FrequencyLimit {
            khz: row.number(2) as u32,
            cpu: row.number(3) as u32,
        },
        13 => KernelFact::Idle {
            state: row.number(1) as u32,
            cpu: row.number(2) as u32,
        },
        _ => KernelFact::Online {
            cpu: row.number(1) as u32,
            is_online: row.number(3) != 0,
        },
    }
}

/// An event of a kind without a message in Perfetto's format. Those of simulated kernels are read: see
/// `throttle.rs` of the crate.
fn generic(body: &[u8]) -> Option<KernelFact> {
    let (mut is_ours, mut tid, mut begins) = (false, None, None);
    for (field, value) in Fields::of(body) {
        match field {
            1 => is_ours = value.bytes() == throttle::EVENT.as_bytes(),
            2 => {
                let row = Row::of(value.bytes())?;
                let name = row.bytes(1);
                if name == throttle::TID.as_bytes() {
                    tid = u32::try_from(row.number(5)).ok();
                } else if name == throttle::BEGINS.as_bytes() {
                    begins = Some(row.number(5) != 0);
                }
            }
            _ => {}
        }
    }
    let (tid, begins) = (tid.filter(|_| is_ours)?, begins?);
    Some(KernelFact::Throttle { tid, begins })
}

fn interrupt(begins: bool, soft: bool, row: &Row<'_>) -> KernelFact {
    KernelFact::Interrupt {
        begins,
        soft,
        number: row.number(1) as u32,
    }
}

/// A task, from the fields that name it.
#[inline]
fn named(
    row: &Row<'_>,
    tid: usize,
    comm: usize,
    priority: usize,
    parties: &mut Parties,
) -> PartyNumber {
    let priority = if row.has(priority) {
        row.signed(priority) as i16
    } else {
        NO_PRIORITY
    };
    parties.number(row.number(tid) as u32, row.bytes(comm), priority)
}
