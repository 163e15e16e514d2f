//! Switches, wake-ups and markers: they are most of a file, so each kind has a reader of its own.
//!
//! The result does not depend on the order of a message's fields. In the order in which Perfetto writes them
//! they are read faster: from words of eight bytes, which may reach into the bytes behind the event. If the
//! last field ends where the event ends, all of them are inside of it.

use super::parties::{NO_PRIORITY, PackedParty, Parties, PartyNumber};
use super::raw::{KernelFact, narrow};
use super::wire::{Fields, Value, first_varint, short_varint, word};
use super::words::Texts;
use crate::Loss;
use crate::read::builder::Wake;

/// A message, as a part of the bytes around it.
#[derive(Clone, Copy)]
pub(super) struct Body<'a> {
    pub(super) all: &'a [u8],
    pub(super) from: usize,
    pub(super) to: usize,
}

impl<'a> Body<'a> {
    pub(super) fn of(all: &'a [u8]) -> Body<'a> {
        let (from, to) = (0, all.len());
        Body { all, from, to }
    }

    #[inline]
    pub(super) fn bytes(self) -> &'a [u8] {
        &self.all[self.from..self.to]
    }
}

/// An event with its body still as bytes.
pub(super) struct PackedEvent<'a> {
    pub(super) time: u64,
    /// The running thread.
    pub(super) tid: u32,
    pub(super) flags: u64,
    pub(super) kind: u32,
    /// The message of its kind.
    pub(super) body: Body<'a>,
}

impl<'a> PackedEvent<'a> {
    /// The next event of a bundle, as its field 2; `None` if it does not have the usual form.
    #[inline(always)]
    pub(super) fn in_bundle(all: &'a [u8], at: usize) -> Option<PackedEvent<'a>> {
        let begin = u128::from_le_bytes(*all.get(at..)?.first_chunk()?);
        // Its key, a length of one byte, and the key of its time.
        if begin as u32 & 0x00ff_80ff != 0x0008_0012 {
            return None;
        }
        let to = at + 2 + (begin as usize >> 8 & 0x7f);
        let (time, length) = first_varint((begin >> 24) as u64)?;
        let mut at = at + 3 + length;
        let tid = word(all, at)?;
        if tid as u8 != 2 << 3 {
            return None;
        }
        let (tid, length) = short_varint(tid >> 8)?;
        at += 1 + length;
        let mut kind = word(all, at)?;
        let mut flags = 0;
        if kind as u8 == 5 << 3 {
            let (value, length) = short_varint(kind >> 8)?;
            flags = value.into();
            at += 1 + length;
            kind = word(all, at)?;
        }
        let (key, length) = short_varint(kind)?;
        let (size, more) = short_varint(kind >> (8 * length))?;
        let from = at + length + more;
        let kind = key >> 3;
        if key & 7 != 2 || from + size as usize != to || to > all.len() {
            return None;
        }
        Some(PackedEvent {
            time,
            tid,
            flags,
            kind,
            body: Body { all, from, to },
        })
    }

    /// An event by itself, and whether it says when it was.
    ///
    /// # Errors
    /// The loss to count, if it is broken, or has no body.
    pub(super) fn of(message: &'a [u8]) -> Result<(PackedEvent<'a>, bool), Loss> {
        let (mut time, mut tid, mut flags, mut body) = (None, 0, 0, None);
        let mut fields = Fields::of(message);
        for (field, value) in &mut fields {
            match (field, value) {
                (1, Value::Number(number)) => time = Some(number),
                (2, Value::Number(number)) => tid = number as u32,
                (5, Value::Number(number)) => flags = number,
                (field, Value::Bytes(bytes)) => body = Some((field, Body::of(bytes))),
                _ => {}
            }
        }
        if fields.is_broken() {
            return Err(Loss::Malformed);
        }
        let (kind, body) = body.ok_or(Loss::OtherEvents)?;
        let event = PackedEvent {
            time: time.unwrap_or(0),
            tid,
            flags,
            kind,
            body,
        };
        Ok((event, time.is_some()))
    }
}

/// A task, from the field with this number and the next two, and where they end; `None` if they do not have
/// the usual form.
#[inline(always)]
fn party(all: &[u8], at: usize, first: u8) -> Option<(PackedParty, usize)> {
    let [key, length, comm @ ..] = all.get(at..)?.first_chunk::<18>()?;
    let own = PackedParty::NAMES.get(usize::from(*length))?;
    let comm = u128::from_le_bytes(*comm) & own;
    let at = at + 2 + usize::from(*length);
    let tid = word(all, at)?;
    let (number, used) = short_varint(tid >> 8)?;
    let at = at + 1 + used;
    let priority = tid >> (8 + 8 * used);
    let keys = [*key, tid as u8, priority as u8];
    if keys != [first << 3 | 2, (first + 1) << 3, (first + 2) << 3] {
        return None;
    }
    // At least three bytes are left of the word that its tid was in.
    let (priority, used) = short_varint(priority >> 8)?;
    let party = PackedParty::new(number, comm, *length, priority as i16);
    Some((party, at + 1 + used))
}

/// A task, by the fields so far.
struct NamedTask<'a> {
    tid: u32,
    comm: &'a [u8],
    priority: Option<i16>,
}

/// The known fields of a message that came, by number, as their own type and as another.
#[derive(Default)]
struct FieldTypes {
    right: u32,
    wrong: u32,
}

impl FieldTypes {
    /// `texts`: the numbers of the fields that are texts, as bits.
    fn add(&mut self, field: u32, value: Value<'_>, texts: u32) {
        let is_text = texts & 1 << field != 0;
        if matches!(value, Value::Bytes(_)) == is_text {
            self.right |= 1 << field;
        } else {
            self.wrong |= 1 << field;
        }
    }

    /// Whether a field came only as another type: its value is not known, and it is not missing either.
    fn is_bad(&self) -> bool {
        self.wrong & !self.right != 0
    }
}

impl<'a> NamedTask<'a> {
    const NOT_YET: NamedTask<'static> = NamedTask {
        tid: 0,
        comm: &[],
        priority: None,
    };

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
            // The field is there, and is no number.
            Value::Bytes(_) => self.priority = self.priority.or(Some(0)),
        }
    }

    fn number(&self, parties: &mut Parties) -> PartyNumber {
        let priority = self.priority.unwrap_or(NO_PRIORITY);
        parties.number(self.tid, self.comm, priority)
    }
}

/// `sched_switch`; `None` if the message is broken. `running`: the thread that the switch before this one was
/// to.
#[inline(always)]
pub(super) fn switch(
    body: Body<'_>,
    running: &mut PartyNumber,
    parties: &mut Parties,
) -> Option<KernelFact> {
    let Some((prev, state, next)) = switch_as_usual(body) else {
        return switch_in_any_order(body.bytes(), parties);
    };
    let prev = if parties.is(*running, prev) {
        *running
    } else {
        parties.known(prev)
    };
    let next = parties.known(next);
    *running = next;
    Some(KernelFact::Switch { prev, next, state })
}

#[inline(always)]
fn switch_as_usual(body: Body<'_>) -> Option<(PackedParty, u16, PackedParty)> {
    let (prev, at) = party(body.all, body.from, 1)?;
    let state = word(body.all, at)?;
    if state as u8 != 4 << 3 {
        return None;
    }
    let (state, length) = short_varint(state >> 8)?;
    let (next, at) = party(body.all, at + 1 + length, 5)?;
    (at == body.to).then_some((prev, state as u16, next))
}

#[inline(never)]
fn switch_in_any_order(body: &[u8], parties: &mut Parties) -> Option<KernelFact> {
    let (mut prev, mut next, mut state) = (NamedTask::NOT_YET, NamedTask::NOT_YET, 0);
    let (mut fields, mut types) = (Fields::of(body), FieldTypes::default());
    for (field, value) in &mut fields {
        if (1..=7).contains(&field) {
            types.add(field, value, 1 << 1 | 1 << 5);
        }
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
    (!fields.is_broken() && !types.is_bad()).then(|| KernelFact::Switch {
        prev: prev.number(parties),
        next: next.number(parties),
        state,
    })
}

/// `sched_waking` and the like, with the running thread as the waker; `None` if the message is broken.
#[inline(always)]
pub(super) fn wake(
    body: Body<'_>,
    on: u32,
    how: Wake,
    parties: &mut Parties,
) -> Option<KernelFact> {
    let (who, target) = match wake_as_usual(body) {
        Some((who, target)) => (parties.known(who), target),
        None => wake_in_any_order(body.bytes(), parties)?,
    };
    Some(KernelFact::Wake {
        who,
        on,
        target: narrow(target.into()),
        how,
    })
}

#[inline(always)]
fn wake_as_usual(body: Body<'_>) -> Option<(PackedParty, u32)> {
    let (who, mut at) = party(body.all, body.from, 1)?;
    let mut target = word(body.all, at)?;
    // Whether it succeeded, which newer kernels leave out.
    if target as u8 == 4 << 3 {
        let (_, length) = short_varint(target >> 8)?;
        at += 1 + length;
        target = word(body.all, at)?;
    }
    if target as u8 != 5 << 3 {
        return None;
    }
    let (cpu, length) = short_varint(target >> 8)?;
    (at + 1 + length == body.to).then_some((who, cpu))
}

#[inline(never)]
fn wake_in_any_order(body: &[u8], parties: &mut Parties) -> Option<(PartyNumber, u32)> {
    let (mut who, mut target) = (NamedTask::NOT_YET, 0);
    let (mut fields, mut types) = (Fields::of(body), FieldTypes::default());
    for (field, value) in &mut fields {
        if matches!(field, 1..=3 | 5) {
            types.add(field, value, 1 << 1);
        }
        match (field, value) {
            (1, _) => who.comm(value),
            (2, _) => who.tid(value),
            (3, _) => who.priority(value),
            (5, Value::Number(number)) => target = number as u32,
            _ => {}
        }
    }
    (!fields.is_broken() && !types.is_bad()).then(|| (who.number(parties), target))
}

/// `print`; `None` if the message is broken.
#[inline(always)]
pub(super) fn marker(body: Body<'_>, on: u32, texts: &mut Texts) -> Option<KernelFact> {
    let text = match body.bytes() {
        // Nothing but the text.
        [0x12, length @ ..0x80, text @ ..] if text.len() == usize::from(*length) => text,
        body => marker_in_any_order(body)?,
    };
    let text = texts.keep(text);
    Some(KernelFact::Marker { on, text })
}

#[inline(never)]
fn marker_in_any_order(body: &[u8]) -> Option<&[u8]> {
    let mut text = &[][..];
    let mut fields = Fields::of(body);
    for (field, value) in &mut fields {
        if let (2, Value::Bytes(bytes)) = (field, value) {
            text = bytes;
        }
    }
    (!fields.is_broken()).then_some(text)
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

    /// The result of reading a message, whatever is before and behind it.
    fn anywhere(
        body: &[u8],
        mut read: impl FnMut(Body<'_>) -> Option<KernelFact>,
    ) -> Option<KernelFact> {
        let alone = read(Body::of(body));
        for around in [[0; 32], [0xff; 32], [0x28; 32]] {
            let all = [&around[..], body, &around].concat();
            let (from, to) = (around.len(), around.len() + body.len());
            assert_eq!(
                read(Body {
                    all: &all,
                    from,
                    to
                }),
                alone
            );
        }
        alone
    }

    fn switched(body: &[u8], parties: &mut Parties) -> Option<KernelFact> {
        let mut running = PartyNumber::NOBODY;
        anywhere(body, |body| switch(body, &mut running, parties))
    }

    fn woken(body: &[u8], parties: &mut Parties) -> Option<KernelFact> {
        anywhere(body, |body| wake(body, 7, Wake::New, parties))
    }

    /// Goal: a field of another type than it should have is no missing field: the event is broken, and no
    /// thread is taken to be the idle one. Method: each known field of a switch and of a wake-up, as another
    /// type.
    #[test]
    fn fields_of_another_type_are_broken() {
        let whole = [
            message(1, b"prev"),
            number(2, 5),
            number(3, 120),
            number(4, 1),
            message(5, b"next"),
            number(6, 9),
            number(7, 98),
        ];
        let mut parties = Parties::default();
        assert!(switched(&whole.concat(), &mut parties).is_some());
        for (at, wrong) in [
            (0, number(1, 3)),
            (1, message(2, b"x")),
            (3, message(4, b"x")),
            (4, number(5, 3)),
            (5, message(6, b"x")),
        ] {
            let mut fields = whole.clone();
            fields[at] = wrong;
            assert_eq!(
                switched(&fields.concat(), &mut parties),
                None,
                "field {}",
                at + 1
            );
        }
        for body in [
            [
                message(1, b"x"),
                message(2, b"x"),
                number(3, 120),
                number(5, 0),
            ]
            .concat(),
            [
                message(1, b"x"),
                number(2, 5),
                number(3, 120),
                message(5, b"x"),
            ]
            .concat(),
        ] {
            assert_eq!(woken(&body, &mut parties), None);
        }
    }

    proptest! {
        /// Goal: the order of its fields changes nothing about an event, nor do unknown fields or a missing
        /// one. Method: the fields of a switch and of a wake-up, some of them, in the usual order and in any
        /// other one; broken anywhere, both forms give nothing or both give the same.
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
                let KernelFact::Switch { prev, next, state } = switched(&body, &mut parties).unwrap() else {
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
                let woken = woken(&body, &mut parties);
                // The field of that number is text here.
                prop_assert_eq!(woken.is_some(), !field(4));
                if field(4) {
                    continue;
                }
                let Some(KernelFact::Wake { who, on: 7, target, how: Wake::New }) = woken else {
                    panic!("a wake-up was read as something else");
                };
                prop_assert_eq!(said(&parties, who), expected);
                prop_assert_eq!(target, 0);
                for cut in 0..body.len() {
                    let is_whole = {
                        let mut fields = Fields::of(&body[..cut]);
                        fields.by_ref().for_each(drop);
                        !fields.is_broken()
                    };
                    prop_assert_eq!(switched(&body[..cut], &mut parties).is_some(), is_whole);
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
        let Some(KernelFact::Switch { prev, state, .. }) = switched(&body, &mut parties) else {
            panic!("a switch was read as something else");
        };
        assert_eq!((parties.party(prev).priority, state), (Some(98), 1));
        let Some(KernelFact::Wake { who, target, .. }) = woken(&body, &mut parties) else {
            panic!("a wake-up was read as something else");
        };
        assert_eq!((parties.party(who).priority, target), (Some(98), 6));
    }
}
