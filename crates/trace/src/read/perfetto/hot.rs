//! Switches, wake-ups and markers: most of a file is these, so each is read for itself.
//!
//! Whatever the order of a message's fields, what is read is the same; in the usual order it is read faster.

use super::parties::{NO_PRIORITY, Parties, PartyNumber};
use super::raw::{What, narrow};
use super::wire::{Expected, Fields, Value};
use super::words::Texts;
use crate::read::builder::Wake;

/// An event, what happened still as bytes.
pub(super) struct Event<'a> {
    pub(super) time: Option<u64>,
    pub(super) tid: u32,
    pub(super) flags: u64,
    /// The kind, and what is said of it.
    pub(super) kind: Option<(u32, &'a [u8])>,
}

impl<'a> Event<'a> {
    /// `None` if the message is broken.
    #[inline(always)]
    pub(super) fn of(message: &'a [u8]) -> Option<Event<'a>> {
        Event::as_usual(message).or_else(|| Event::in_any_order(message))
    }

    #[inline(always)]
    fn as_usual(message: &'a [u8]) -> Option<Event<'a>> {
        let mut fields = Expected::of(message);
        let time = fields.number(1)?;
        let tid = fields.number(2)? as u32;
        let flags = match fields.is_number(5) {
            true => fields.number(5)?,
            false => 0,
        };
        Some(Event {
            time: Some(time),
            tid,
            flags,
            kind: Some(fields.last_bytes()?),
        })
    }

    fn in_any_order(message: &'a [u8]) -> Option<Event<'a>> {
        let mut event = Event {
            time: None,
            tid: 0,
            flags: 0,
            kind: None,
        };
        let mut fields = Fields::of(message);
        for (field, value) in &mut fields {
            match (field, value) {
                (1, Value::Number(number)) => event.time = Some(number),
                (2, Value::Number(number)) => event.tid = number as u32,
                (5, Value::Number(number)) => event.flags = number,
                (field, Value::Bytes(body)) => event.kind = Some((field, body)),
                _ => {}
            }
        }
        (!fields.is_broken()).then_some(event)
    }
}

/// A task as the fields so far name it.
struct Named<'a> {
    tid: u32,
    comm: &'a [u8],
    priority: Option<i16>,
}

impl<'a> Named<'a> {
    const NOT_YET: Named<'static> = Named {
        tid: 0,
        comm: &[],
        priority: None,
    };

    /// From the fields with this number and the next two.
    #[inline(always)]
    fn as_usual(fields: &mut Expected<'a>, first: u8) -> Option<Named<'a>> {
        Some(Named {
            comm: fields.bytes(first)?,
            tid: fields.number(first + 1)? as u32,
            priority: Some(fields.number(first + 2)? as i16),
        })
    }

    fn comm(&mut self, value: Value<'a>) {
        if let Value::Bytes(comm) = value {
            self.comm = comm;
        }
    }

    fn tid(&mut self, value: Value<'a>) {
        if let Value::Number(tid) = value {
            self.tid = tid as u32;
        }
    }

    fn priority(&mut self, value: Value<'a>) {
        match value {
            Value::Number(priority) => self.priority = Some(priority as i16),
            // It is there, and no number.
            Value::Bytes(_) => self.priority = self.priority.or(Some(0)),
        }
    }

    #[inline(always)]
    fn number(&self, parties: &mut Parties) -> PartyNumber {
        let priority = self.priority.unwrap_or(NO_PRIORITY);
        parties.number(self.tid, self.comm, priority)
    }
}

/// `sched_switch`; `None` if the message is broken.
#[inline(always)]
pub(super) fn switch(body: &[u8], parties: &mut Parties) -> Option<What> {
    let as_usual = || {
        let mut fields = Expected::of(body);
        let prev = Named::as_usual(&mut fields, 1)?;
        let state = fields.number(4)? as u16;
        let next = Named::as_usual(&mut fields, 5)?;
        fields.end().map(|()| (prev, state, next))
    };
    let (prev, state, next) = as_usual().or_else(|| switch_in_any_order(body))?;
    Some(What::Switch {
        prev: prev.number(parties),
        next: next.number(parties),
        state,
    })
}

fn switch_in_any_order(body: &[u8]) -> Option<(Named<'_>, u16, Named<'_>)> {
    let (mut prev, mut next, mut state) = (Named::NOT_YET, Named::NOT_YET, 0);
    let mut fields = Fields::of(body);
    for (field, value) in &mut fields {
        match (field, value) {
            (1, _) => prev.comm(value),
            (2, _) => prev.tid(value),
            (3, _) => prev.priority(value),
            (4, Value::Number(number)) => state = number as u16,
            (5, _) => next.comm(value),
            (6, _) => next.tid(value),
            (7, _) => next.priority(value),
            _ => {}
        }
    }
    (!fields.is_broken()).then_some((prev, state, next))
}

/// `sched_waking` and the like, by whoever ran there; `None` if the message is broken.
#[inline(always)]
pub(super) fn wake(body: &[u8], on: u32, how: Wake, parties: &mut Parties) -> Option<What> {
    let as_usual = || {
        let mut fields = Expected::of(body);
        let who = Named::as_usual(&mut fields, 1)?;
        // Whether it succeeded, which newer kernels do not say.
        if fields.is_number(4) {
            fields.number(4)?;
        }
        let target = fields.number(5)? as u32;
        fields.end().map(|()| (who, target))
    };
    let (who, target) = as_usual().or_else(|| wake_in_any_order(body))?;
    Some(What::Wake {
        who: who.number(parties),
        on,
        target: narrow(target.into()),
        how,
    })
}

fn wake_in_any_order(body: &[u8]) -> Option<(Named<'_>, u32)> {
    let (mut who, mut target) = (Named::NOT_YET, 0);
    let mut fields = Fields::of(body);
    for (field, value) in &mut fields {
        match (field, value) {
            (1, _) => who.comm(value),
            (2, _) => who.tid(value),
            (3, _) => who.priority(value),
            (5, Value::Number(number)) => target = number as u32,
            _ => {}
        }
    }
    (!fields.is_broken()).then_some((who, target))
}

/// `print`; `None` if the message is broken.
#[inline]
pub(super) fn marker(body: &[u8], on: u32, texts: &mut Texts) -> Option<What> {
    let mut text = &[][..];
    let mut fields = Fields::of(body);
    for (field, value) in &mut fields {
        if let (2, Value::Bytes(bytes)) = (field, value) {
            text = bytes;
        }
    }
    (!fields.is_broken()).then(|| What::Marker {
        on,
        text: texts.keep(text),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::wire_test::{message, number};
    use super::*;

    type Said = (u32, Vec<u8>, Option<i16>);

    fn said(parties: &Parties, number: PartyNumber) -> Said {
        let party = parties.party(number);
        (party.tid, party.comm.to_vec(), party.priority)
    }

    proptest! {
        /// Goal: the order of its fields changes nothing about an event, nor do fields that are not known,
        /// nor that one is missing. Method: the fields of a switch and of a wake-up, some of them, in the
        /// usual order and in any other one; broken anywhere, both say nothing or both say the same.
        #[test]
        fn the_order_of_fields_does_not_matter(
            order in Just((0..9usize).collect::<Vec<_>>()).prop_shuffle(),
            there in proptest::collection::vec(prop::bool::weighted(0.9), 9),
            tids in any::<[u32; 2]>(),
            comm in proptest::collection::vec(any::<u8>(), 0..20),
            priority in any::<i16>(),
        ) {
            let signed = i64::from(priority) as u64;
            let fields = [
                message(1, &comm),
                number(2, tids[0].into()),
                number(3, signed),
                number(4, 1),
                message(5, b"next"),
                number(6, tids[1].into()),
                number(7, 98),
                number(8, 300),
                message(9, b"unknown"),
            ];
            let joined = |order: &[usize]| {
                let there = order.iter().filter(|at| there[**at]);
                there.flat_map(|at| fields[*at].clone()).collect::<Vec<u8>>()
            };
            let mut usual: Vec<usize> = (0..7).collect();
            let mut parties = Parties::default();
            for order in [&mut usual, &mut order.clone()] {
                let body = joined(order);
                let What::Switch { prev, next, state } = switch(&body, &mut parties).unwrap() else {
                    panic!("a switch was read as something else");
                };
                let field = |at: usize| there[at];
                let expected = (
                    if field(1) { tids[0] } else { 0 },
                    if field(0) { comm.clone() } else { Vec::new() },
                    field(2).then_some(priority).filter(|known| *known != NO_PRIORITY),
                );
                prop_assert_eq!(said(&parties, prev), expected.clone());
                prop_assert_eq!(said(&parties, next).0, if field(5) { tids[1] } else { 0 });
                prop_assert_eq!(state, u16::from(field(3)));
                let woken = wake(&body, 7, Wake::New, &mut parties);
                let Some(What::Wake { who, on: 7, target, how: Wake::New }) = woken else {
                    panic!("a wake-up was read as something else");
                };
                prop_assert_eq!(said(&parties, who), expected);
                // The field of that number is text here.
                prop_assert_eq!(target, 0);
                for cut in 0..body.len() {
                    let is_whole = {
                        let mut fields = Fields::of(&body[..cut]);
                        fields.by_ref().for_each(drop);
                        !fields.is_broken()
                    };
                    prop_assert_eq!(switch(&body[..cut], &mut parties).is_some(), is_whole);
                }
            }
        }
    }

    /// Goal: of a field that comes twice, the number counts and text in its place does not. Method: a switch
    /// and a wake-up with text behind state, priority and target.
    #[test]
    fn text_in_place_of_a_number_changes_nothing() {
        let numbers = [number(2, 5), number(3, 98), number(4, 1), number(5, 6)];
        let texts = [message(3, b"x"), message(4, b"x"), message(5, b"x")];
        let body = [numbers.concat(), texts.concat()].concat();
        let mut parties = Parties::default();
        let Some(What::Switch { prev, state, .. }) = switch(&body, &mut parties) else {
            panic!("a switch was read as something else");
        };
        assert_eq!((parties.party(prev).priority, state), (Some(98), 1));
        let Some(What::Wake { who, target, .. }) = wake(&body, 7, Wake::New, &mut parties) else {
            panic!("a wake-up was read as something else");
        };
        assert_eq!((parties.party(who).priority, target), (Some(98), 6));
    }
}
