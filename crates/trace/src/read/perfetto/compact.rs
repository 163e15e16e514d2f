//! Switches and wake-ups of one CPU as lists of numbers: Perfetto's default form.
//!
//! Each field of the events is a list of its own; names are by number in a table of the message. A switch
//! does not have the thread that ran before: that is the one of the switch before it. A wake-up's waker is
//! the running thread. Both are looked up when the events of a CPU are in order (`merge.rs`).

use super::ftrace::IN_INTERRUPT;
use super::parties::{Parties, PartyNumber};
use super::raw::{CURRENT, KernelFact, narrow};
use super::wire::{Fields, Packed, Value};
use crate::read::builder::Wake;
use crate::{Loss, Losses};

/// The lists, as they are in the message.
#[derive(Default)]
struct CompactLists<'a> {
    /// By field number.
    packed: [&'a [u8]; 13],
    names: Vec<&'a [u8]>,
}

impl<'a> CompactLists<'a> {
    fn of(message: &'a [u8]) -> Option<CompactLists<'a>> {
        let mut lists = CompactLists::default();
        let mut fields = Fields::of(message);
        for (field, value) in &mut fields {
            let Value::Bytes(bytes) = value else { continue };
            match field {
                5 => lists.names.push(bytes),
                1..=12 => lists.packed[field as usize] = bytes,
                _ => {}
            }
        }
        (!fields.is_broken()).then_some(lists)
    }

    fn list(&self, field: usize) -> Packed<'a> {
        Packed(self.packed[field])
    }

    fn name(&self, index: u64) -> &'a [u8] {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.names.get(index))
            .map_or(&[], |name| name)
    }
}

/// Reads a message and appends its events to the others, in the order of their times.
pub(super) fn read(
    message: &[u8],
    parties: &mut Parties,
    losses: &mut Losses,
    list: &mut Vec<(u64, KernelFact)>,
) {
    let Some(lists) = CompactLists::of(message) else {
        return losses.add(Loss::Malformed, 1);
    };
    let begin = list.len();
    let [mut states, mut nexts, mut priorities, mut comms] =
        [2, 3, 4, 6].map(|field| lists.list(field));
    for time in times(lists.list(1)) {
        let (Some(state), Some(tid), Some(priority), Some(comm)) =
            (states.next(), nexts.next(), priorities.next(), comms.next())
        else {
            // The lists have different lengths.
            losses.add(Loss::BadFields, 1);
            continue;
        };
        let next = who(tid, comm, priority, &lists, parties);
        let state = state as u16;
        list.push((time, KernelFact::SwitchTo { next, state }));
    }
    let [mut tids, mut targets, mut priorities, mut comms] =
        [8, 9, 10, 11].map(|field| lists.list(field));
    let mut flags = lists.list(12);
    for time in times(lists.list(7)) {
        let (Some(tid), Some(target), Some(priority), Some(comm)) =
            (tids.next(), targets.next(), priorities.next(), comms.next())
        else {
            losses.add(Loss::BadFields, 1);
            continue;
        };
        // Older recorders have no flags.
        let in_interrupt = flags.next().is_some_and(|flags| flags & IN_INTERRUPT != 0);
        let what = KernelFact::Wake {
            who: who(tid, comm, priority, &lists, parties),
            on: if in_interrupt { 0 } else { CURRENT },
            target: narrow(u64::from(target as u32)),
            how: Wake::Decided,
        };
        list.push((time, what));
    }
    list[begin..].sort_by_key(|(time, _)| *time);
}

/// Times from differences.
fn times(differences: Packed<'_>) -> impl Iterator<Item = u64> {
    differences.scan(0u64, |time, step| {
        *time = time.wrapping_add(step);
        Some(*time)
    })
}

fn who(
    tid: u64,
    comm: u64,
    priority: u64,
    lists: &CompactLists<'_>,
    parties: &mut Parties,
) -> PartyNumber {
    parties.number(tid as u32, lists.name(comm), priority as i16)
}
