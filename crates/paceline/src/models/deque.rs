//! Goal: the deque hands out every ticket at least once and nothing else, whatever owner and thieves do at
//! the same time.
//! Method: the owner follows a script of puts and takes while one or two thieves steal. Then the owner
//! takes the rest. Tickets are written into a zeroed ring, so a thief that reads a slot too early gets
//! ticket zero.
//! Bounds: rings of two and four, which the scripts go around; one thief with three preemptions, or two
//! with two; each thief steals once.
//! Planted bugs: a put leaves the tag as it is, so that a thief that slept through a take and a put gets
//! the old ticket again and the new one is lost; D1 is missing at either end. D2 is there against load
//! buffering, which the checker does not show. It is not checked that each load of the owner is Acquire.

use std::sync::Arc;

use platform::{Memory, Ordering};

use super::{Notes, Part, Spoil, Spoiled, check, must_find, spoiled, together};
use crate::queues::Deque;
use crate::store::Ticket;

const SYMPTOM: &str = "tickets handed out";

/// The one action of a thief.
#[derive(Clone, Copy)]
enum Theft {
    One,
    Half,
}

/// An owner follows a script (`p`: put the next ticket, `t`: take the newest, `o`: take the oldest, `s`:
/// spill) while thieves steal.
struct Heist<M: Memory> {
    deque: Deque<M>,
    put: Notes<u64>,
    out: Notes<u64>,
}

impl<M: Memory> Heist<M> {
    fn new(ring: usize) -> Arc<Self> {
        Arc::new(Heist {
            deque: Deque::new(ring),
            put: Notes::new(),
            out: Notes::new(),
        })
    }

    fn owner(self: &Arc<Self>, script: &'static str) -> Part {
        let heist = self.clone();
        Box::new(move || {
            let (deque, out) = (&heist.deque, |ticket: Ticket| heist.out.add(ticket.0));
            for (number, step) in (1..).zip(script.chars()) {
                match step {
                    'p' if deque.put(Ticket(number)) => heist.put.add(number),
                    'p' => {}
                    't' => deque.take_newest().into_iter().for_each(out),
                    'o' => deque.take_oldest().into_iter().for_each(out),
                    _ => deque.spill().into_iter().for_each(out),
                }
            }
        })
    }

    fn thief(self: &Arc<Self>, theft: Theft) -> Part {
        let heist = self.clone();
        Box::new(move || match theft {
            Theft::One => heist
                .deque
                .steal_one()
                .into_iter()
                .for_each(|t| heist.out.add(t.0)),
            Theft::Half => {
                heist.deque.steal_half(4, |ticket| heist.out.add(ticket.0));
            }
        })
    }

    /// The owner takes the rest. Then all tickets that were put are out, and nothing else.
    fn settle(&self) {
        while let Some(ticket) = self.deque.take_newest() {
            self.out.add(ticket.0);
        }
        let mut out = self.out.take();
        out.dedup();
        assert_eq!(out, self.put.take(), "{SYMPTOM}");
    }
}

fn one_thief<M: Memory>(first: usize, ring: usize, script: &'static str, theft: Theft) {
    let heist = Heist::<M>::new(ring);
    together(first, [heist.owner(script), heist.thief(theft)]);
    heist.settle();
}

fn two_thieves<M: Memory>(first: usize, ring: usize, script: &'static str) {
    let heist = Heist::<M>::new(ring);
    let (one, two) = (heist.thief(Theft::One), heist.thief(Theft::Half));
    together(first, [heist.owner(script), one, two]);
    heist.settle();
}

#[test]
fn every_ticket_is_handed_out_with_one_thief() {
    let scripts = [
        (2, "ptp"),
        (2, "pptptp"),
        (2, "ppopop"),
        (2, "pptppsp"),
        (4, "pppptptpp"),
    ];
    for (ring, script) in scripts {
        for theft in [Theft::One, Theft::Half] {
            check(3, 2, move |first| {
                one_thief::<Spoiled>(first, ring, script, theft)
            });
        }
    }
}

#[test]
fn every_ticket_is_handed_out_with_two_thieves() {
    for (ring, script) in [(2, "pptpp"), (4, "ppptpp")] {
        check(2, 3, move |first| {
            two_thieves::<Spoiled>(first, ring, script)
        });
    }
}

/// The anchor carries no tag. (Tickets are too small to be changed by this.)
#[derive(Clone, Copy)]
struct NoTag;

impl Spoil for NoTag {
    const ORDERED: bool = true;
    fn written(value: u64) -> u64 {
        value & ((1 << 25) - 1)
    }
}

#[test]
fn a_put_that_does_not_change_the_tag_loses_a_ticket() {
    must_find(SYMPTOM, 3, || {
        spoiled::<NoTag>(|| one_thief::<Spoiled>(0, 2, "ptp", Theft::One))
    });
}

/// D1 is missing at its writer.
#[derive(Clone, Copy)]
struct NotReleased;

impl Spoil for NotReleased {
    const ORDERED: bool = true;
    fn store(_: u64, _: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

/// D1 is missing at its reader.
#[derive(Clone, Copy)]
struct NotAcquired;

impl Spoil for NotAcquired {
    const ORDERED: bool = true;
    fn load(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn without_d1_a_thief_reads_a_slot_that_was_not_written() {
    must_find(SYMPTOM, 3, || {
        spoiled::<NotReleased>(|| one_thief::<Spoiled>(0, 2, "p", Theft::One))
    });
    must_find(SYMPTOM, 3, || {
        spoiled::<NotAcquired>(|| one_thief::<Spoiled>(0, 2, "p", Theft::One))
    });
}
