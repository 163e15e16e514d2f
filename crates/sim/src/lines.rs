//! Cache lines: the CPUs that have a copy of each, and the costs of accesses.
//!
//! A line is owned by the CPU that wrote it last and may be shared by readers. A load that misses fetches a
//! copy from the owner. A store, a read-modify-write and a *failed* compare-exchange alike take the line away
//! from all other CPUs. Transfers of one line queue: a request that comes while the line travels waits until
//! it has arrived, in the order of requests. That, and not the transfer alone, is what makes a contended
//! counter collapse: every retry is one more transfer that others wait for. A transfer that had to wait takes
//! less time than a new one, because its request has travelled meanwhile. The machine says how much less
//! ([`LineCosts::queued_percent`]). Copies for readers do not queue behind each other.
//!
//! Lines are *assigned*, never derived from addresses, which differ from run to run: a loose atomic gets its
//! own, and the words that are made inside [`platform::Memory::on_own_lines`] share lines of 64 bytes, in the
//! order of construction.
//!
//! Left out: stores wait for their line (a store buffer would hide that), capacity and associativity (nothing
//! is ever evicted), prefetching.

use event::{Cpu, Nanos};

use crate::machine::{LineCosts, Machine};

/// A kind of access to a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A read-modify-write, whether it succeeds or not.
    Modify,
}

/// One line.
#[derive(Clone, Debug, Default)]
struct Line {
    /// The CPU that wrote it last.
    owner: Option<Cpu>,
    /// Whether only the owner has it.
    exclusive: bool,
    /// When the last transfer ends.
    free_at: Nanos,
    /// The CPUs besides the owner that have a copy, a bit for each.
    sharers: Vec<u64>,
}

/// All lines of a run.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: Vec<Line>,
    /// The time of a transfer, by `from * cpus + to`.
    transfers: Vec<Nanos>,
    cpus: usize,
    hit: Nanos,
    rmw: Nanos,
    queued_percent: u64,
    /// Whether no access costs anything: then there is no need to look.
    free: bool,
    /// How often a line travelled, or was taken from others that had a copy.
    pub(crate) moved: u64,
}

impl Lines {
    pub(crate) fn new(machine: &Machine) -> Lines {
        let cpus = machine.cpus.len();
        let all = || (0..cpus as u32).map(Cpu);
        let pairs = all().flat_map(|from| all().map(move |to| (from, to)));
        let costs = machine.lines;
        Lines {
            // Number 0 means no line.
            lines: vec![Line::default()],
            transfers: pairs.map(|(from, to)| machine.transfer(from, to)).collect(),
            cpus,
            hit: costs.hit,
            rmw: costs.rmw,
            queued_percent: match costs.queued_percent {
                0 => 100,
                percent => u64::from(percent),
            },
            free: costs == LineCosts::default(),
            moved: 0,
        }
    }

    /// A new line; its number.
    pub(crate) fn open(&mut self) -> u32 {
        self.lines.push(Line::default());
        self.lines.len() as u32 - 1
    }

    /// The time at which an access that `cpu` begins now ends.
    #[inline]
    pub(crate) fn access(&mut self, line: u32, cpu: Cpu, access: Access, now: Nanos) -> Nanos {
        if self.free {
            return now;
        }
        let here = match access {
            Access::Modify => self.rmw,
            _ => self.hit,
        };
        let state = &mut self.lines[line as usize];
        let owns = state.owner == Some(cpu);
        if owns && (state.exclusive || access == Access::Read) {
            return now + here;
        }
        if access == Access::Read && has(&state.sharers, cpu) {
            return now + here;
        }
        self.fetch(line, cpu, access, now, here)
    }

    /// The line is not in the CPU's cache, or also in others.
    fn fetch(&mut self, line: u32, cpu: Cpu, access: Access, now: Nanos, here: Nanos) -> Nanos {
        let (cpus, transfers) = (self.cpus, &self.transfers);
        let state = &mut self.lines[line as usize];
        let from = |other: Cpu| transfers[other.index() * cpus + cpu.index()];
        let Some(owner) = state.owner else {
            // No CPU has touched it yet: it comes from memory, which takes as long as a neighbour's cache at
            // most.
            state.owner = Some(cpu);
            state.exclusive = true;
            return now + here;
        };
        self.moved += 1;
        let begin = now.max(state.free_at);
        let took = match access {
            Access::Read => from(owner),
            // Each CPU that has a copy gives it up; the farthest answers last.
            Access::Write | Access::Modify => {
                let others = members(&state.sharers).filter(|&other| other != cpu);
                let others = others.chain((owner != cpu).then_some(owner));
                others.map(from).max().unwrap_or(here)
            }
        };
        let took = if begin > now {
            Nanos(took.0 * self.queued_percent / 100)
        } else {
            took
        };
        let end = begin + took.max(here);
        match access {
            Access::Read => {
                state.exclusive = false;
                set(&mut state.sharers, cpu);
                return end;
            }
            Access::Write | Access::Modify => {
                state.owner = Some(cpu);
                state.exclusive = true;
                state.sharers.clear();
            }
        }
        state.free_at = end;
        end
    }
}

fn has(set: &[u64], cpu: Cpu) -> bool {
    let word = set.get(cpu.index() / 64);
    word.is_some_and(|word| word & (1 << (cpu.index() % 64)) != 0)
}

fn set(set: &mut Vec<u64>, cpu: Cpu) {
    let word = cpu.index() / 64;
    if set.len() <= word {
        set.resize(word + 1, 0);
    }
    set[word] |= 1 << (cpu.index() % 64);
}

fn members(set: &[u64]) -> impl Iterator<Item = Cpu> + '_ {
    set.iter().enumerate().flat_map(|(word, &bits)| {
        let next = move |bits: &u64| Some(bits & bits.wrapping_sub(1)).filter(|bits| *bits != 0);
        let first = Some(bits).filter(|bits| *bits != 0);
        std::iter::successors(first, next)
            .map(move |bits| Cpu(word as u32 * 64 + bits.trailing_zeros()))
    })
}
