//! Switches, wake-ups and markers: most of a file is these, so each is read for itself, without a [`Row`].
//!
//! [`Row`]: super::wire::Row

use super::parties::{NO_PRIORITY, Parties, PartyNumber};
use super::raw::{What, narrow};
use super::wire::{Fields, Value};
use super::words::Texts;
use crate::read::builder::Wake;

/// A task as the fields so far name it.
struct Named<'a> {
    tid: u32,
    comm: &'a [u8],
    priority: i16,
}

impl<'a> Named<'a> {
    const NOT_YET: Named<'static> = Named {
        tid: 0,
        comm: &[],
        priority: NO_PRIORITY,
    };

    #[inline(always)]
    fn comm(&mut self, value: Value<'a>) {
        if let Value::Bytes(comm) = value {
            self.comm = comm;
        }
    }

    #[inline(always)]
    fn tid(&mut self, value: Value<'a>) {
        if let Value::Number(tid) = value {
            self.tid = tid as u32;
        }
    }

    #[inline(always)]
    fn priority(&mut self, value: Value<'a>) {
        self.priority = value.number() as i16;
    }

    #[inline(always)]
    fn number(&self, parties: &mut Parties) -> PartyNumber {
        parties.number(self.tid, self.comm, self.priority)
    }
}

/// `sched_switch`; `None` if the message is broken.
#[inline]
pub(super) fn switch(body: &[u8], parties: &mut Parties) -> Option<What> {
    let (mut prev, mut next, mut state) = (Named::NOT_YET, Named::NOT_YET, 0);
    let mut fields = Fields::of(body);
    for (field, value) in &mut fields {
        match field {
            1 => prev.comm(value),
            2 => prev.tid(value),
            3 => prev.priority(value),
            4 => state = value.number() as u16,
            5 => next.comm(value),
            6 => next.tid(value),
            7 => next.priority(value),
            _ => {}
        }
    }
    (!fields.is_broken()).then(|| What::Switch {
        prev: prev.number(parties),
        next: next.number(parties),
        state,
    })
}

/// `sched_waking` and the like, by whoever ran there; `None` if the message is broken.
#[inline]
pub(super) fn wake(body: &[u8], on: u32, how: Wake, parties: &mut Parties) -> Option<What> {
    let (mut who, mut target) = (Named::NOT_YET, 0);
    let mut fields = Fields::of(body);
    for (field, value) in &mut fields {
        match field {
            1 => who.comm(value),
            2 => who.tid(value),
            3 => who.priority(value),
            5 => target = value.number() as u32,
            _ => {}
        }
    }
    (!fields.is_broken()).then(|| What::Wake {
        who: who.number(parties),
        on,
        target: narrow(target.into()),
        how,
    })
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
