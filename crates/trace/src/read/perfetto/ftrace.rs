//! Kernel events: bundles of one CPU each, kept until the end of the file.
//!
//! Who a tid is and what a priority was depends on what came before, on all CPUs, and bundles of different
//! CPUs are in no order. So events are kept small, by CPU, and are brought into one order at the end
//! (`merge.rs`). Then it is known, too, which kernel it was, which numbers of states depend on, and how its
//! clock stands to the others.
//!
//! Nothing is allocated for an event but its place in its CPU's list.

use std::collections::BTreeMap;

use super::clocks::{self, Clock};
use super::compact;
use super::hot::{self, Event};
use super::lists::List;
use super::parties::{NO_PRIORITY, Parties, PartyNumber};
use super::raw::{What, narrow};
use super::wire::{Fields, Row, Value};
use super::words::Texts;
use crate::read::builder::{MOST_CPUS, Wake};
use crate::{Loss, Losses};

/// Bits of `common_flags`: in a hard interrupt, in a soft one.
pub(super) const IN_INTERRUPT: u64 = 0x08 | 0x10;

/// Clocks are few; a file with more has the rest on the first.
const MOST_CLOCKS: usize = 255;

/// What a bundle says of its clock.
pub(super) struct Stamp {
    pub(super) clock: Clock,
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

/// What a bundle says beside its events.
#[derive(Default)]
struct Parts<'a> {
    stamp: Stamp,
    /// Events before it are missing.
    is_lost: bool,
    /// How many events the recorder could not parse.
    errors: u64,
    compact: Option<&'a [u8]>,
}

impl<'a> Parts<'a> {
    fn learn(&mut self, field: u32, value: Value<'a>) {
        match (field, value) {
            (3, Value::Number(lost)) => self.is_lost = lost != 0,
            (4, Value::Bytes(bytes)) => self.compact = Some(bytes),
            (5, clock) => self.stamp.clock = Clock::of_ftrace(clock.number()),
            (6, there) => self.stamp.there = Some(there.number()),
            (7, boot) => self.stamp.boot = Some(boot.number()),
            // `error`: `broken_abi_trace_pipes` and the like.
            (8, Value::Bytes(_)) => self.errors += 1,
            _ => {}
        }
    }
}

/// All kernel events so far.
#[derive(Default)]
pub(super) struct Ftrace {
    pub(super) cpus: BTreeMap<u32, List>,
    pub(super) clocks: Vec<Clock>,
    pub(super) parties: Parties,
    pub(super) texts: Texts,
    /// Of futexes, in the order of their events.
    pub(super) addresses: Vec<u64>,
    /// The events of the bundle that is being read.
    bundle: Vec<(u64, What)>,
    pub(super) losses: Losses,
    /// By CPU: how many events its buffer had lost when recording began, if that is said, and in the end.
    overruns: BTreeMap<u64, (Option<u64>, u64)>,
    /// The number of the futex call on this machine, where it is known which machine it is.
    futex: Option<u64>,
    /// Until it is known, it is taken for an x86-64.
    has_machine: bool,
}

impl Ftrace {
    /// What `uname -m` says there.
    pub(super) fn machine(&mut self, machine: &[u8]) {
        self.has_machine = true;
        // `asm/unistd.h` of each.
        self.futex = match machine {
            b"x86_64" => Some(202),
            b"aarch64" | b"riscv64" => Some(98),
            b"i686" | b"i386" | b"armv7l" | b"armv8l" | b"arm" => Some(240),
            _ => None,
        };
    }

    /// `FtraceStats`: how many events the kernel's buffers have lost by now, at the beginning of the
    /// recording and again each time that the recorder wrote to the file. `None` if the message is broken.
    pub(super) fn stats(&mut self, message: &[u8]) -> Option<()> {
        const BEGIN: u64 = 1;
        let phase = Row::of(message)?.number(1);
        for (_, cpu) in Fields::of(message).filter(|(field, _)| *field == 2) {
            let row = Row::of(cpu.bytes())?;
            // Overwritten; no room while others were being written; no room.
            let lost = [3, 4, 8].map(|field| row.number(field));
            let lost = lost.into_iter().fold(0, u64::saturating_add);
            let (before, by_now) = self.overruns.entry(row.number(1)).or_default();
            match phase {
                BEGIN => *before = before.or(Some(lost)),
                _ => *by_now = lost.max(*by_now),
            }
        }
        Some(())
    }

    /// How many events the kernel's buffers lost during the recording, as far as it is said.
    pub(super) fn overrun(&self) -> u64 {
        let lost = self.overruns.values();
        let lost = lost.map(|(before, by_now)| by_now.saturating_sub(before.unwrap_or(0)));
        lost.fold(0, u64::saturating_add)
    }

    /// Reads a bundle.
    pub(super) fn bundle(&mut self, message: &[u8]) -> Stamp {
        let mut parts = Parts::default();
        let Some(cpu) = self.cpu_of(message) else {
            Fields::of(message).for_each(|(field, value)| parts.learn(field, value));
            return parts.stamp;
        };
        let mut events = std::mem::take(&mut self.bundle);
        events.clear();
        let mut running = PartyNumber::NOBODY;
        let mut at = 0;
        while at < message.len() {
            if let Some(event) = Event::in_bundle(message, at) {
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
        self.keep(cpu, parts.stamp.clock, &events, parts.is_lost);
        self.bundle = events;
        parts.stamp
    }

    /// Puts a bundle's events behind the others of its CPU. `is_lost`: some before it are missing.
    fn keep(&mut self, cpu: u32, clock: Clock, events: &[(u64, What)], is_lost: bool) {
        let clock = self.clock(clock);
        let list = self.cpus.entry(cpu).or_default();
        if is_lost {
            let first = events.first().map(|(time, _)| *time);
            list.push(first.or(list.latest()).unwrap_or(0), clock, What::Gap);
        }
        list.extend(clock, events);
    }

    /// The CPU of a bundle, if there can be one with this number.
    fn cpu_of(&mut self, message: &[u8]) -> Option<u32> {
        let mut fields = Fields::of(message);
        let cpu = fields.find(|(field, _)| *field == 1);
        let cpu = u32::try_from(cpu.map_or(0, |(_, cpu)| cpu.number())).unwrap_or(u32::MAX);
        if cpu < MOST_CPUS {
            return Some(cpu);
        }
        let events = Fields::of(message).filter(|(field, _)| *field == 2).count();
        self.losses.add(Loss::BadFields, events.max(1) as u64);
        None
    }

    fn clock(&mut self, clock: Clock) -> u8 {
        let known = self.clocks.iter().position(|known| *known == clock);
        let at = known.unwrap_or_else(|| {
            if self.clocks.len() < MOST_CLOCKS {
                self.clocks.push(clock);
                self.clocks.len() - 1
            } else {
                0
            }
        });
        at as u8
    }

    /// Reads an event, unless it is of a kind that is not read, or broken. Both are counted.
    #[inline(always)]
    fn event(
        &mut self,
        event: &Event<'_>,
        running: &mut PartyNumber,
        events: &mut Vec<(u64, What)>,
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

    /// The same of an event in whatever order its fields are.
    #[inline(never)]
    fn any_event(
        &mut self,
        event: &[u8],
        running: &mut PartyNumber,
        events: &mut Vec<(u64, What)>,
    ) {
        let before = events.len();
        match Event::of(event) {
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

    /// The same of kinds that are not most of a file.
    #[inline(never)]
    fn rare_event(&mut self, event: &Event<'_>, by: u32, events: &mut Vec<(u64, What)>) {
        let mut wake = |how| {
            let what = hot::wake(event.body, by, how, &mut self.parties);
            what.ok_or(Some(Loss::Malformed))
        };
        let what = match event.kind {
            17 => wake(Wake::Queued),
            114 => wake(Wake::New),
            kind => self.rare(kind, event.body.bytes(), event.tid),
        };
        match what {
            Ok(what) => events.push((event.time, what)),
            Err(Some(loss)) => self.losses.add(loss, 1),
            Err(None) => {}
        }
    }

    /// What happened, by the number of the event's kind; or what to count. Of kinds that say nothing more
    /// that is of use, nothing is counted. `on`: who ran there.
    fn rare(&mut self, kind: u32, body: &[u8], on: u32) -> Result<What, Option<Loss>> {
        if !matches!(
            kind,
            11 | 13 | 18 | 19 | 24 | 25 | 36 | 37 | 235 | 236 | 238..=240 | 329 | 330 | 353 | 491
        ) {
            return Err(Some(Loss::OtherEvents));
        }
        let Some(row) = Row::of(body) else {
            return Err(Some(Loss::Malformed));
        };
        let parties = &mut self.parties;
        Ok(match kind {
            491 => What::Migrate {
                who: named(&row, 2, 1, 3, parties),
                from: narrow(row.number(4)),
                to: narrow(row.number(5)),
            },
            353 => What::Inherit {
                who: named(&row, 4, 1, 2, parties),
                on,
                before: row.signed(3) as i16,
            },
            // An error of it: the CPU stays as it is.
            19 if row.number(2) != 0 => return Err(None),
            11 | 13 | 19 => of_cpu(kind, &row),
            18 => What::Blocked {
                tid: row.number(1) as u32,
                io: row.number(3) != 0,
            },
            36 | 37 => interrupt(kind == 36, false, &row),
            24 | 25 => interrupt(kind == 24, true, &row),
            235 | 236 | 238 | 239 => self.of_life(kind, &row, on),
            240 => return Err(None),
            329 | 330 => return self.syscall(kind == 329, body, &row, on),
            _ => return Err(Some(Loss::OtherEvents)),
        })
    }

    /// How a task begins, by one of two events, what it is called from now on, or else that it ends.
    fn of_life(&mut self, kind: u32, row: &Row<'_>, on: u32) -> What {
        let parties = &mut self.parties;
        match kind {
            235 => What::Fork {
                child: named(row, 1, 2, 15, parties),
                on,
                // CLONE_THREAD
                is_thread: Some(row.number(3) & 0x1_0000 != 0),
            },
            239 => What::Fork {
                child: named(row, 4, 3, 15, parties),
                on,
                is_thread: None,
            },
            236 => What::Rename {
                tid: row.number(1) as u32,
                comm: self.texts.keep(row.bytes(3)),
            },
            _ => What::Exit {
                who: named(row, 2, 1, 15, parties),
            },
        }
    }

    /// System calls: those that are about futexes.
    fn syscall(
        &mut self,
        begins: bool,
        body: &[u8],
        row: &Row<'_>,
        on: u32,
    ) -> Result<What, Option<Loss>> {
        let futex = match self.has_machine {
            true => self.futex,
            false => Some(202),
        };
        if on == 0 || Some(row.number(1)) != futex {
            return Err(Some(Loss::OtherEvents));
        }
        if !begins {
            let result = row.signed(2);
            return Ok(What::FutexReturn { on, result });
        }
        let mut arguments = Fields::of(body).filter(|(field, _)| *field == 2);
        let mut argument = || arguments.next().map_or(0, |(_, value)| value.number());
        let (address, op) = (argument(), argument() as u8);
        // More of them than numbers would be more bytes than any machine has.
        let number = self.addresses.len() as u32;
        self.addresses.push(address);
        Ok(What::FutexCall {
            on,
            address: number,
            op,
        })
    }
}

/// What a CPU does: its frequency, its sleep state, or else that it comes or goes.
fn of_cpu(kind: u32, row: &Row<'_>) -> What {
    match kind {
        11 => What::Frequency {
            khz: row.number(1) as u32,
            cpu: row.number(2) as u32,
        },
        13 => What::Idle {
            state: row.number(1) as u32,
            cpu: row.number(2) as u32,
        },
        _ => What::Online {
            cpu: row.number(1) as u32,
            is_online: row.number(3) != 0,
        },
    }
}

fn interrupt(begins: bool, soft: bool, row: &Row<'_>) -> What {
    What::Interrupt {
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
    let priority = match row.has(priority) {
        true => row.signed(priority) as i16,
        false => NO_PRIORITY,
    };
    parties.number(row.number(tid) as u32, row.bytes(comm), priority)
}
