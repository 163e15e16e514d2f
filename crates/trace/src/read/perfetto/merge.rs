//! All kernel events into one order, and what they say to the builder.
//!
//! Each CPU's list is nearly always in order, so the lists are merged; one that is not is sorted first. At
//! equal times lower CPUs come first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;
use std::vec;

use event::Nanos;

use super::ftrace::{CURRENT, NO_PRIORITY, Raw, What, Who};
use super::words::Words;
use crate::read::builder::{At, Builder, Layout, Party, from_bits};
use crate::read::markers;

/// Events of all CPUs, in the order of their times.
pub(super) struct Merged {
    lists: Vec<(u32, Peekable<vec::IntoIter<Raw>>)>,
    /// The next time of each list, and the list.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Merged {
    pub(super) fn new(lists: impl IntoIterator<Item = (u32, Vec<Raw>)>) -> Merged {
        let sorted = |(cpu, mut list): (u32, Vec<Raw>)| {
            if !list.is_sorted_by_key(|raw| raw.time) {
                list.sort_by_key(|raw| raw.time);
            }
            (cpu, list.into_iter().peekable())
        };
        let mut lists: Vec<_> = lists.into_iter().map(sorted).collect();
        let heads = lists.iter_mut().enumerate();
        let heads = heads
            .filter_map(|(at, (_, list))| Some(Reverse((list.peek()?.time, at))))
            .collect();
        Merged { lists, heads }
    }
}

impl Iterator for Merged {
    type Item = (u32, Raw);

    #[inline]
    fn next(&mut self) -> Option<(u32, Raw)> {
        let mut head = self.heads.peek_mut()?;
        let at = head.0.1;
        let (cpu, list) = &mut self.lists[at];
        let raw = list.next();
        match list.peek() {
            // The heap is put in order when `head` goes.
            Some(next) => head.0.0 = next.time,
            None => drop(std::collections::binary_heap::PeekMut::pop(head)),
        }
        raw.map(|raw| (*cpu, raw))
    }
}

/// What is known while events are told to the builder.
pub(super) struct Teller<'a> {
    pub(super) words: &'a Words,
    pub(super) layout: Layout,
    /// By CPU: who runs there.
    pub(super) current: Vec<Option<Who>>,
}

impl Teller<'_> {
    /// Tells one event.
    #[inline]
    pub(super) fn tell(&mut self, builder: &mut Builder, cpu: u32, raw: &Raw) {
        let current = self.current(cpu);
        let (tid, in_interrupt) = match (raw.tid, current) {
            (CURRENT, Some(who)) => (who.tid, raw.in_interrupt),
            // Nobody knows who ran.
            (CURRENT, None) => (0, true),
            (tid, _) => (tid, raw.in_interrupt),
        };
        let at = At {
            time: Nanos(raw.time),
            cpu,
            tid,
            in_interrupt,
        };
        match raw.what {
            What::Switch { prev, next, state } => {
                self.current[cpu as usize] = Some(next);
                let state = from_bits(state.into(), self.layout);
                builder.switch(&at, &self.party(prev), state, &self.party(next));
            }
            What::SwitchTo { next, state } => {
                if current.is_none() {
                    builder.gap(cpu, 0);
                }
                self.current[cpu as usize] = Some(next);
                let prev = current.unwrap_or_default();
                let state = from_bits(state.into(), self.layout);
                builder.switch(&at, &self.party(prev), state, &self.party(next));
            }
            What::Wake { who, target, how } => builder.wake(&at, &self.party(who), target, how),
            What::Migrate { who, from, to } => {
                builder.migrate(&at, &self.party(who), from.into(), to.into());
            }
            What::Inherit { who, before } => {
                let party = self.party(who);
                builder.inherit(&at, &party, before, who.priority);
            }
            What::Frequency { cpu, khz } => builder.frequency(&at, cpu, khz),
            What::Idle { cpu, state } => builder.idle(&at, cpu, state),
            What::Online { cpu, is_online } => builder.online(&at, cpu, is_online),
            What::Blocked { tid, io } => builder.blocked(&at, tid, io),
            What::Fork { child, is_thread } => builder.fork(tid, &self.party(child), is_thread),
            What::Rename { tid, comm } => {
                builder.thread_name(
                    tid,
                    self.words.name(comm),
                    crate::read::builder::Trust::Event,
                );
            }
            What::Exit { who } => builder.exit(&at, &self.party(who)),
            What::Interrupt {
                begins,
                soft,
                number,
            } => builder.interrupt(&at, begins, soft, number),
            What::FutexCall { op, address } => builder.futex_call(&at, address, op),
            What::SyscallReturn { result } => builder.futex_return(&at, result),
            What::Marker(text) => markers::read(builder, &at, self.words.text_of(text)),
            What::Gap => {
                self.current[cpu as usize] = None;
                builder.gap(cpu, 0);
            }
        }
    }

    fn current(&mut self, cpu: u32) -> Option<Who> {
        let cpu = cpu as usize;
        if self.current.len() <= cpu {
            self.current.resize(cpu + 1, None);
        }
        self.current[cpu]
    }

    fn party(&self, who: Who) -> Party<'_> {
        Party {
            tid: who.tid,
            comm: self.words.name(who.comm),
            priority: (who.priority != NO_PRIORITY).then_some(who.priority),
        }
    }
}
