//! Merges all kernel events into one order, and tells them to the builder.
//!
//! Each CPU's list is nearly always in order, so the lists are merged; a list that is not is sorted first. At
//! equal times lower CPUs come first.

use event::{Left, Nanos, Task};

use super::ftrace::BundleDecoder;
use super::lists::{List, Sorted};
use super::parties::{NO_PRIORITY, Parties, PartyNumber};
use super::raw::{CURRENT, KernelFact};
use super::words::TextId;
use crate::layout::Layout;
use crate::read::builder::{self, At, Builder, MOST_CPUS, Trust, from_bits};
use crate::read::markers::{self, Known};

/// Events of all CPUs, in the order of their times.
///
/// A tournament: CPUs play in pairs, winners against winners, and each loser stays where it lost. When the
/// winner moves to its next event, it plays again only against the losers that it met on its way, and they
/// are still there.
pub(super) struct Merged {
    players: Vec<(u32, Sorted)>,
    /// The losers of the matches, from 1 on, the final one's first; players come behind those of the first
    /// round. At 0 is the winner.
    places: Vec<u64>,
    /// The base of the times.
    base: u64,
}

/// Bits of a player's number: there are no more than [`MOST_CPUS`].
const BITS: u32 = MOST_CPUS.ilog2();

/// Times of 13 days and more after the base are not told apart: the base comes nearer first.
const FAR: u64 = (1 << (u64::BITS - BITS)) - 2;

/// The place of a player without events.
const OUT: u64 = u64::MAX;

/// A player by the time of its next event, then by its number: the lesser place has the earlier event.
#[inline]
fn place(player: usize, events: &Sorted, base: u64) -> u64 {
    match events.time() {
        Some(time) => time.saturating_sub(base).min(FAR) << BITS | player as u64,
        None => OUT,
    }
}

impl Merged {
    pub(super) fn new(lists: impl IntoIterator<Item = (u32, List)>) -> Merged {
        let lists = lists.into_iter();
        let players: Vec<_> = lists.map(|(cpu, list)| (cpu, list.into_sorted())).collect();
        let leaves = players.len().next_power_of_two();
        let mut merged = Merged {
            players,
            places: vec![OUT; leaves],
            base: 0,
        };
        merged.begin();
        merged
    }

    /// Lets all play, from the earliest time on.
    #[cold]
    fn begin(&mut self) {
        let times = self.players.iter().filter_map(|(_, events)| events.time());
        self.base = times.min().unwrap_or(0);
        let leaves = self.places.len();
        let mut winners = vec![OUT; leaves];
        for (player, (_, events)) in self.players.iter().enumerate() {
            winners.push(place(player, events, self.base));
        }
        winners.resize(2 * leaves, OUT);
        for of in (1..leaves).rev() {
            let (left, right) = (winners[2 * of], winners[2 * of + 1]);
            winners[of] = left.min(right);
            self.places[of] = left.max(right);
        }
        self.places[0] = winners[1];
    }
}

impl Iterator for Merged {
    type Item = (u32, u64, KernelFact);

    #[inline]
    fn next(&mut self) -> Option<(u32, u64, KernelFact)> {
        if self.places[0] >= FAR << BITS {
            self.begin();
            if self.places[0] == OUT {
                return None;
            }
        }
        let winner = (self.places[0] & ((1 << BITS) - 1)) as usize;
        let (cpu, events) = self.players.get_mut(winner)?;
        let cpu = *cpu;
        let (time, what) = events.next()?;
        let mut challenger = place(winner, events, self.base);
        let mut of = (self.places.len() + winner) / 2;
        while of > 0 {
            let other = &mut self.places[of];
            let (less, more) = (challenger.min(*other), challenger.max(*other));
            *other = more;
            challenger = less;
            of /= 2;
        }
        self.places[0] = challenger;
        Some((cpu, time, what))
    }
}

/// A text that was read, so that it need not be parsed again.
type Read = (TextId, Known);

/// The number of texts that are remembered: a power of two.
const MARKERS: usize = 2048;

/// More than the bits of all states that a switch can be from.
const STATES: usize = 512;

/// A party, and the task that it was the last time.
#[derive(Clone, Copy)]
struct Met {
    tid: u32,
    /// Its number among those of all decoders.
    number: u32,
    /// [`NO_TASK`]: it was not met yet.
    task: Task,
}

/// No builder gives out this number: more tasks than that would be more bytes than any machine has.
const NO_TASK: Task = Task(u32::MAX);

/// The meanings of one decoder's numbers.
struct Meaning<'a> {
    decoder: &'a BundleDecoder,
    /// By party.
    met: Vec<Met>,
    /// By the last bits of the numbers of texts.
    markers: Vec<Option<Read>>,
}

/// The state while events are told to the builder.
pub(super) struct Teller<'a> {
    layout: Layout,
    /// By number: the frequent states.
    states: [Left; STATES],
    /// By CPU: the running thread, by the number that its decoder has for it.
    current: Vec<Option<PartyNumber>>,
    /// By decoder: the decoder of a CPU is that of its number, modulo the number of decoders, a power of two.
    meanings: Vec<Meaning<'a>>,
}

impl<'a> Teller<'a> {
    pub(super) fn new(decoders: &'a [BundleDecoder], layout: Layout) -> Teller<'a> {
        let mut all = Parties::default();
        let is_alone = decoders.len() == 1;
        let mut met = |(number, party): (u32, builder::Party<'_>)| Met {
            tid: party.tid,
            number: if is_alone {
                number
            } else {
                all.number(party.tid, party.comm, party.priority.unwrap_or(NO_PRIORITY))
                    .0
            },
            task: NO_TASK,
        };
        let meaning = |decoder: &'a BundleDecoder| Meaning {
            decoder,
            met: (0..).zip(decoder.parties.all()).map(&mut met).collect(),
            markers: vec![None; MARKERS],
        };
        Teller {
            layout,
            states: std::array::from_fn(|bits| from_bits(bits as u64, layout)),
            current: Vec::new(),
            meanings: decoders.iter().map(meaning).collect(),
        }
    }

    /// The meanings of the numbers in a CPU's events.
    #[inline(always)]
    fn of(&mut self, cpu: u32) -> &mut Meaning<'a> {
        let of = cpu as usize & (self.meanings.len() - 1);
        &mut self.meanings[of]
    }

    #[inline(always)]
    fn party(&self, cpu: u32, who: PartyNumber) -> builder::Party<'a> {
        let of = cpu as usize & (self.meanings.len() - 1);
        self.meanings[of].decoder.parties.party(who)
    }

    /// Tells one event.
    #[inline]
    pub(super) fn tell(&mut self, builder: &mut Builder, cpu: u32, time: u64, what: KernelFact) {
        let at = At {
            time: Nanos(time),
            cpu,
            tid: 0,
            in_interrupt: false,
        };
        match what {
            KernelFact::Switch { prev, next, state } => {
                *self.current(cpu) = Some(next);
                self.switch(builder, &at, prev, state, next);
            }
            KernelFact::SwitchTo { next, state } => {
                let prev = self.current(cpu).replace(next);
                if prev.is_none() {
                    builder.gap(cpu, 0);
                }
                self.switch(
                    builder,
                    &at,
                    prev.unwrap_or(PartyNumber::NOBODY),
                    state,
                    next,
                );
            }
            KernelFact::Wake {
                who,
                on,
                target,
                how,
            } => {
                let at = self.at(at, on);
                let who = self.meet(builder, &at, who);
                builder.woken(&at, who, target.into(), how);
            }
            _ => self.tell_rare(builder, at, what),
        }
    }

    fn tell_fence(&mut self, builder: &mut Builder, at: At, on: u32, number: u32) {
        let at = self.at(at, on);
        let decoder = self.of(at.cpu).decoder;
        let fence = decoder.fences[number as usize];
        let names = fence.names.map(|name| decoder.texts.get(name));
        builder.fence(&at, fence.key, fence.step, names);
    }

    /// Rare events.
    #[inline(never)]
    fn tell_rare(&mut self, builder: &mut Builder, at: At, what: KernelFact) {
        match what {
            KernelFact::Switch { .. } | KernelFact::SwitchTo { .. } | KernelFact::Wake { .. } => {}
            KernelFact::Migrate { who, from, to } => {
                builder.migrate(&at, &self.party(at.cpu, who), from.into(), to.into());
            }
            KernelFact::Inherit { who, on, before } => {
                let party = self.party(at.cpu, who);
                let now = party.priority.unwrap_or(NO_PRIORITY);
                builder.inherit(&self.at(at, on), &party, before, now);
            }
            KernelFact::Frequency { cpu, khz } => builder.frequency(&at, cpu, khz),
            KernelFact::FrequencyLimit { cpu, khz } => builder.frequency_limit(&at, cpu, khz),
            KernelFact::Idle { cpu, state } => builder.idle(&at, cpu, state),
            KernelFact::Online { cpu, is_online } => builder.online(&at, cpu, is_online),
            KernelFact::Blocked { tid, io } => builder.blocked(&at, tid, io, b""),
            KernelFact::Throttle { tid, begins } => builder.throttle(&at, tid, begins),
            KernelFact::Fork {
                child,
                on,
                is_thread,
            } => {
                let parent = self.at(at, on).tid;
                builder.fork(parent, &self.party(at.cpu, child), is_thread);
            }
            KernelFact::Rename { tid, comm } => {
                let decoder = self.of(at.cpu).decoder;
                builder.thread_name(tid, decoder.texts.get(comm), Trust::Event);
            }
            KernelFact::Exit { who } => builder.exit(&at, &self.party(at.cpu, who)),
            KernelFact::Interrupt {
                begins,
                soft,
                number,
            } => builder.interrupt(&at, begins, soft, number),
            KernelFact::FutexCall { on, address, op } => {
                let address = self.of(at.cpu).decoder.addresses[address as usize];
                builder.futex_call(&self.at(at, on), address, op.into());
            }
            KernelFact::FutexReturn { on, result } => {
                builder.futex_return(&self.at(at, on), result);
            }
            KernelFact::Transaction { on, number } => {
                let transaction = self.of(at.cpu).decoder.transactions[number as usize];
                builder.transaction(&self.at(at, on), transaction);
            }
            KernelFact::Fence { on, number } => self.tell_fence(builder, at, on, number),
            KernelFact::Marker { on, text } => {
                let at = self.at(at, on);
                let Meaning {
                    decoder, markers, ..
                } = self.of(at.cpu);
                let place = &mut markers[text.index() % MARKERS];
                match place {
                    Some((known, marker)) if *known == text => {
                        markers::again(builder, &at, *marker);
                    }
                    _ => {
                        let read = markers::read(builder, &at, decoder.texts.get(text));
                        *place = read.map(|marker| (text, marker));
                    }
                }
            }
            KernelFact::Gap => {
                *self.current(at.cpu) = None;
                builder.gap(at.cpu, 0);
            }
        }
    }

    fn current(&mut self, cpu: u32) -> &mut Option<PartyNumber> {
        let cpu = cpu as usize;
        if self.current.len() <= cpu {
            self.current.resize(cpu + 1, None);
        }
        &mut self.current[cpu]
    }

    /// The same with the running thread.
    #[inline]
    fn at(&mut self, at: At, on: u32) -> At {
        let tid = match on {
            // If the running thread is not known, it is the idle task.
            CURRENT => match *self.current(at.cpu) {
                Some(who) => self.of(at.cpu).met[who.index()].tid,
                None => 0,
            },
            tid => tid,
        };
        At { tid, ..at }
    }

    #[inline(always)]
    fn switch(
        &mut self,
        builder: &mut Builder,
        at: &At,
        prev: PartyNumber,
        state: u16,
        next: PartyNumber,
    ) {
        let known = self.states.get(usize::from(state)).copied();
        let state = known.unwrap_or_else(|| from_bits(state.into(), self.layout));
        let prev = self.meet(builder, at, prev);
        let next = self.meet(builder, at, next);
        builder.switched(at, prev, state, next);
    }

    #[inline(always)]
    fn meet(&mut self, builder: &mut Builder, at: &At, who: PartyNumber) -> Option<Task> {
        let Met { tid, number, task } = self.of(at.cpu).met[who.index()];
        match tid {
            0 => None,
            _ if builder.is_settled(task, number) => Some(task),
            _ => self.meet_anew(builder, at, who),
        }
    }

    #[inline(never)]
    fn meet_anew(&mut self, builder: &mut Builder, at: &At, who: PartyNumber) -> Option<Task> {
        let party = self.party(at.cpu, who);
        let met = &mut self.of(at.cpu).met[who.index()];
        let task = builder.meet_as(at, &party, met.number)?;
        met.task = task;
        Some(task)
    }
}
