//! Kernel events: bundles of one CPU each, kept until the end of the file.
//!
//! Who a tid is and what a priority was depends on what came before, on all CPUs, and bundles of different
//! CPUs are in no order. So events are kept small, by CPU, and are brought into one order at the end
//! (`merge.rs`). Then it is known, too, which kernel it was, which numbers of states depend on, and how its
//! clock stands to the others.
//!
//! Nothing is allocated for an event but its place in its CPU's list.

use std::collections::BTreeMap;

use super::clocks::Clock;
use super::compact;
use super::wire::{Fields, Row, Value};
use super::words::{Text, Words};
use crate::read::builder::{MOST_CPUS, Wake};
use crate::{Loss, Losses};

/// A kernel event, not yet understood: numbers and names are the kernel's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    pub(super) time: u64,
    /// On its bundle's clock, by position in [`Ftrace::clocks`].
    pub(super) clock: u8,
    pub(super) in_interrupt: bool,
    pub(super) tid: u32,
    pub(super) what: What,
}

/// What happened. Priorities are narrow, because the kernel's are.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Switch {
        prev: Who,
        next: Who,
        state: u16,
    },
    /// From whoever runs there.
    SwitchTo {
        next: Who,
        state: u16,
    },
    Wake {
        who: Who,
        target: u32,
        how: Wake,
    },
    Migrate {
        who: Who,
        from: u16,
        to: u16,
    },
    Inherit {
        who: Who,
        before: i16,
    },
    Frequency {
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
        child: Who,
        is_thread: Option<bool>,
    },
    Rename {
        tid: u32,
        comm: u32,
    },
    Exit {
        who: Who,
    },
    Interrupt {
        begins: bool,
        soft: bool,
        number: u32,
    },
    FutexCall {
        op: u32,
        address: u64,
    },
    SyscallReturn {
        result: i32,
    },
    Marker(Text),
    /// Events are missing here.
    Gap,
}

/// A task as an event names it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Who {
    pub(super) tid: u32,
    /// By number in [`Words`]; 0: the event does not say.
    pub(super) comm: u32,
    /// [`NO_PRIORITY`]: the event does not say.
    pub(super) priority: i16,
}

/// No kernel has this one.
pub(super) const NO_PRIORITY: i16 = i16::MIN;

/// In [`Raw::tid`]: whoever runs there.
pub(super) const CURRENT: u32 = u32::MAX;

/// Bits of `common_flags`: in a hard interrupt, in a soft one.
pub(super) const IN_INTERRUPT: u64 = 0x08 | 0x10;

/// Clocks are few; a file with more has the rest on the first.
const MOST_CLOCKS: usize = 255;

/// All kernel events so far.
#[derive(Default)]
pub(super) struct Ftrace {
    pub(super) cpus: BTreeMap<u32, Vec<Raw>>,
    pub(super) clocks: Vec<Clock>,
    pub(super) words: Words,
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

    /// Reads a bundle. `clock`: the one its times are on.
    pub(super) fn bundle(&mut self, message: &[u8], clock: Clock) {
        let Some(cpu) = self.cpu_of(message) else {
            return;
        };
        let clock = self.clock(clock);
        let mut list = self.cpus.remove(&cpu).unwrap_or_default();
        let begin = list.len();
        let mut fields = Fields::of(message);
        let mut is_lost = false;
        let mut compact = None;
        for (field, value) in &mut fields {
            match (field, value) {
                (2, Value::Bytes(event)) => {
                    if let Some(raw) = self.event(event, clock) {
                        list.push(raw);
                    }
                }
                (3, Value::Number(lost)) => is_lost = lost != 0,
                (4, Value::Bytes(bytes)) => compact = Some(bytes),
                // `error` of events that the recorder could not parse, `broken_abi_trace_pipes` and the like.
                (8, Value::Bytes(_)) => self.losses.add(Loss::KernelEvents, 1),
                _ => {}
            }
        }
        if fields.is_broken() {
            self.losses.add(Loss::Malformed, 1);
        }
        if let Some(bytes) = compact {
            compact::read(bytes, clock, &mut self.words, &mut self.losses, &mut list);
        }
        if is_lost {
            let time = list.get(begin).or(list.last()).map_or(0, |raw| raw.time);
            let gap = Raw {
                time,
                clock,
                in_interrupt: false,
                tid: 0,
                what: What::Gap,
            };
            list.insert(begin, gap);
        }
        self.cpus.insert(cpu, list);
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

    /// Reads an event; none if it is of a kind that is not read, or broken. Both are counted.
    #[inline]
    fn event(&mut self, message: &[u8], clock: u8) -> Option<Raw> {
        let (mut time, mut tid, mut flags, mut kind) = (None, 0, 0, None);
        let mut fields = Fields::of(message);
        for (field, value) in &mut fields {
            match (field, value) {
                (1, Value::Number(number)) => time = Some(number),
                (2, Value::Number(number)) => tid = number as u32,
                (5, Value::Number(number)) => flags = number,
                (field, Value::Bytes(body)) => kind = Some((field, body)),
                _ => {}
            }
        }
        let (false, Some((kind, body))) = (fields.is_broken(), kind) else {
            let loss = match fields.is_broken() {
                true => Loss::Malformed,
                false => Loss::OtherEvents,
            };
            self.losses.add(loss, 1);
            return None;
        };
        let what = match self.what(kind, body, tid) {
            Ok(what) => what,
            Err(loss) => {
                if let Some(loss) = loss {
                    self.losses.add(loss, 1);
                }
                return None;
            }
        };
        let Some(time) = time else {
            self.losses.add(Loss::BadFields, 1);
            return None;
        };
        Some(Raw {
            time,
            clock,
            in_interrupt: flags & IN_INTERRUPT != 0,
            tid,
            what,
        })
    }

    /// What happened, by the number of the event's kind; or what to count. Of kinds that say nothing more
    /// that is of use, nothing is counted.
    #[inline]
    fn what(&mut self, kind: u32, body: &[u8], on: u32) -> Result<What, Option<Loss>> {
        // The kinds by how often they come.
        if !matches!(kind, 3 | 4 | 11 | 13 | 17..=20 | 24 | 25 | 36 | 37 | 114 | 235 | 236 | 238..=240
            | 329 | 330 | 353 | 491)
        {
            return Err(Some(Loss::OtherEvents));
        }
        let Some(row) = Row::of(body) else {
            return Err(Some(Loss::Malformed));
        };
        let wake = |words: &mut Words, how| What::Wake {
            who: named(&row, 2, 1, 3, words),
            target: row.number(5) as u32,
            how,
        };
        let words = &mut self.words;
        Ok(match kind {
            4 => What::Switch {
                prev: named(&row, 2, 1, 3, words),
                next: named(&row, 6, 5, 7, words),
                state: row.number(4) as u16,
            },
            20 => wake(words, Wake::Decided),
            17 => wake(words, Wake::Queued),
            114 => wake(words, Wake::New),
            491 => What::Migrate {
                who: named(&row, 2, 1, 3, words),
                from: narrow(row.number(4)),
                to: narrow(row.number(5)),
            },
            353 => What::Inherit {
                who: named(&row, 4, 1, 2, words),
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
            3 => What::Marker(words.text(row.bytes(2))),
            235 | 236 | 238 | 239 => of_life(kind, &row, words),
            240 => return Err(None),
            329 | 330 => return self.syscall(kind == 329, body, &row, on),
            _ => return Err(Some(Loss::OtherEvents)),
        })
    }

    /// System calls: those that are about futexes.
    fn syscall(
        &self,
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
            return Ok(What::SyscallReturn { result });
        }
        let mut arguments = Fields::of(body).filter(|(field, _)| *field == 2);
        let mut argument = || arguments.next().map_or(0, |(_, value)| value.number());
        let (address, op) = (argument(), argument() as u32);
        Ok(What::FutexCall { op, address })
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

/// How a task begins, by one of two events, what it is called from now on, or else that it ends.
fn of_life(kind: u32, row: &Row<'_>, words: &mut Words) -> What {
    match kind {
        235 => What::Fork {
            child: named(row, 1, 2, 15, words),
            // CLONE_THREAD
            is_thread: Some(row.number(3) & 0x1_0000 != 0),
        },
        239 => What::Fork {
            child: named(row, 4, 3, 15, words),
            is_thread: None,
        },
        236 => What::Rename {
            tid: row.number(1) as u32,
            comm: words.comm(row.bytes(3), row.number(1) as u32),
        },
        _ => What::Exit {
            who: named(row, 2, 1, 15, words),
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

/// A CPU's number; one that cannot be stays one that cannot be.
fn narrow(cpu: u64) -> u16 {
    u16::try_from(cpu).unwrap_or(u16::MAX)
}

/// A task, from the fields that name it.
#[inline]
fn named(row: &Row<'_>, tid: usize, comm: usize, priority: usize, words: &mut Words) -> Who {
    let number = row.number(tid) as u32;
    Who {
        tid: number,
        comm: words.comm(row.bytes(comm), number),
        priority: match row.has(priority) {
            true => row.signed(priority) as i16,
            false => NO_PRIORITY,
        },
    }
}
