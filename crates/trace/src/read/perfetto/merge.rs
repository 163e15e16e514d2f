//! All kernel events into one order, and what they say to the builder.
//!
//! Each CPU's list is nearly always in order, so the lists are merged; one that is not is sorted first. At
//! equal times lower CPUs come first.

use event::{Nanos, Task};

use super::lists::{List, Sorted};
use super::parties::{NO_PRIORITY, Parties, PartyNumber};
use super::raw::{CURRENT, What};
use super::words::Texts;
use crate::read::builder::{At, Builder, Layout, Trust, from_bits};
use crate::read::markers;

/// Events of all CPUs, in the order of their times.
///
/// A tournament: CPUs are in pairs, the earlier one of each pair plays against the winner of the pair
/// beside, and so on. When the winner goes on, only those it played against are asked again.
pub(super) struct Merged {
    players: Vec<(u32, Sorted)>,
    /// By player: when its next event is; the end of time if there is none.
    times: Vec<u64>,
    /// The winner of each match, the final one at 1; players come behind the matches of the first round.
    winners: Vec<u32>,
}

impl Merged {
    pub(super) fn new(lists: impl IntoIterator<Item = (u32, List)>) -> Merged {
        let lists = lists.into_iter();
        let players: Vec<_> = lists.map(|(cpu, list)| (cpu, list.into_sorted())).collect();
        let leaves = players.len().next_power_of_two();
        let times = players.iter().map(|(_, player)| player.time());
        let mut times: Vec<u64> = times.map(|time| time.unwrap_or(u64::MAX)).collect();
        times.resize(leaves, u64::MAX);
        let mut merged = Merged {
            players,
            times,
            winners: vec![0; 2 * leaves],
        };
        for at in 0..leaves {
            merged.winners[leaves + at] = at as u32;
        }
        for of in (1..leaves).rev() {
            merged.winners[of] = merged.play(of);
        }
        merged
    }

    #[inline]
    fn play(&self, of: usize) -> u32 {
        let (left, right) = (self.winners[2 * of], self.winners[2 * of + 1]);
        match self.times[left as usize] <= self.times[right as usize] {
            true => left,
            false => right,
        }
    }

    /// Where time ends, it does not say who has an event.
    #[cold]
    fn last(&mut self) -> Option<(u32, u64, What)> {
        let mut players = self.players.iter_mut();
        players.find_map(|(cpu, player)| player.next().map(|(time, what)| (*cpu, time, what)))
    }
}

impl Iterator for Merged {
    type Item = (u32, u64, What);

    #[inline]
    fn next(&mut self) -> Option<(u32, u64, What)> {
        let winner = self.winners[1] as usize;
        if self.times[winner] == u64::MAX {
            return self.last();
        }
        let (cpu, player) = self.players.get_mut(winner)?;
        let cpu = *cpu;
        let (time, what) = player.next()?;
        self.times[winner] = player.time().unwrap_or(u64::MAX);
        let mut of = (self.times.len() + winner) / 2;
        while of > 0 {
            self.winners[of] = self.play(of);
            of /= 2;
        }
        Some((cpu, time, what))
    }
}

/// What is known while events are told to the builder.
pub(super) struct Teller<'a> {
    parties: &'a Parties,
    texts: &'a Texts,
    addresses: &'a [u64],
    layout: Layout,
    /// By CPU: who runs there.
    current: Vec<Option<PartyNumber>>,
    /// By party: the task that it was the last time.
    met: Vec<Option<Task>>,
}

impl<'a> Teller<'a> {
    pub(super) fn new(
        parties: &'a Parties,
        texts: &'a Texts,
        addresses: &'a [u64],
        layout: Layout,
    ) -> Teller<'a> {
        Teller {
            parties,
            texts,
            addresses,
            layout,
            current: Vec::new(),
            met: vec![None; parties.len()],
        }
    }

    /// Tells one event.
    #[inline]
    pub(super) fn tell(&mut self, builder: &mut Builder, cpu: u32, time: u64, what: What) {
        let at = At {
            time: Nanos(time),
            cpu,
            tid: 0,
            in_interrupt: false,
        };
        match what {
            What::Switch { prev, next, state } => {
                *self.current(cpu) = Some(next);
                self.switch(builder, &at, prev, state, next);
            }
            What::SwitchTo { next, state } => {
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
            What::Wake {
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

    /// Events that are not most of them.
    fn tell_rare(&mut self, builder: &mut Builder, at: At, what: What) {
        match what {
            What::Switch { .. } | What::SwitchTo { .. } | What::Wake { .. } => {}
            What::Migrate { who, from, to } => {
                builder.migrate(&at, &self.parties.party(who), from.into(), to.into());
            }
            What::Inherit { who, on, before } => {
                let party = self.parties.party(who);
                let now = party.priority.unwrap_or(NO_PRIORITY);
                builder.inherit(&self.at(at, on), &party, before, now);
            }
            What::Frequency { cpu, khz } => builder.frequency(&at, cpu, khz),
            What::Idle { cpu, state } => builder.idle(&at, cpu, state),
            What::Online { cpu, is_online } => builder.online(&at, cpu, is_online),
            What::Blocked { tid, io } => builder.blocked(&at, tid, io),
            What::Fork {
                child,
                on,
                is_thread,
            } => {
                let parent = self.at(at, on).tid;
                builder.fork(parent, &self.parties.party(child), is_thread);
            }
            What::Rename { tid, comm } => {
                builder.thread_name(tid, self.texts.get(comm), Trust::Event);
            }
            What::Exit { who } => builder.exit(&at, &self.parties.party(who)),
            What::Interrupt {
                begins,
                soft,
                number,
            } => builder.interrupt(&at, begins, soft, number),
            What::FutexCall { on, address, op } => {
                let address = self.addresses[address as usize];
                builder.futex_call(&self.at(at, on), address, op.into());
            }
            What::FutexReturn { on, result } => builder.futex_return(&self.at(at, on), result),
            What::Marker { on, text } => {
                markers::read(builder, &self.at(at, on), self.texts.get(text));
            }
            What::Gap => {
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

    /// The same with who ran there.
    #[inline]
    fn at(&mut self, at: At, on: u32) -> At {
        let parties = self.parties;
        let tid = match on {
            // If nobody knows who ran, it was nobody.
            CURRENT => self.current(at.cpu).map_or(0, |who| parties.tid(who)),
            tid => tid,
        };
        At { tid, ..at }
    }

    #[inline]
    fn switch(
        &mut self,
        builder: &mut Builder,
        at: &At,
        prev: PartyNumber,
        state: u16,
        next: PartyNumber,
    ) {
        let state = from_bits(state.into(), self.layout);
        let prev = self.meet(builder, at, prev);
        let next = self.meet(builder, at, next);
        builder.switched(at, prev, state, next);
    }

    #[inline]
    fn meet(&mut self, builder: &mut Builder, at: &At, who: PartyNumber) -> Option<Task> {
        let parties = self.parties;
        match parties.tid(who) {
            0 => None,
            _ => {
                let met = &mut self.met[who.index()];
                builder.meet_again(at, who.0, met, || parties.party(who))
            }
        }
    }
}
