//! Goal: a reader gets events whole and in order, whenever it comes. Events that it does not get are
//! counted.
//! Method: one thread puts three events into a ring of two while another thread drains it twice.
//! Bounds: three events, two drains and a last one, three preemptions.
//! Planted bug: the count of written events publishes nothing (R1), so that the reader finds old words. The
//! checker does not see the error that R2 prevents (`rings/README.md`).

use std::sync::Arc;

use event::{Event, EventKind, Nanos};
use platform::{Memory, Ordering};
use testkit::Loom;

use super::{Notes, Part, Spoil, Spoiled, check, must_find, spoiled, together};
use crate::record::rings::Ring;

const EVENTS: u64 = 3;
const SYMPTOM: &str = "events of the ring";

struct Site<M: Memory> {
    ring: Ring<M>,
    got: Notes<(u64, u64)>,
}

impl<M: Memory> Site<M> {
    fn drain(&self) {
        self.ring.drain(|event| {
            let whole = event.job == event.time.0 && event.arg == event.time.0;
            assert!(whole, "{SYMPTOM}: torn");
            let place = self.got.len() as u64;
            self.got.add((place, event.time.0));
        });
    }

    fn writer(self: &Arc<Self>) -> Part {
        let site = self.clone();
        Box::new(move || {
            for number in 1..=EVENTS {
                site.ring.put(&Event {
                    time: Nanos(number),
                    job: number,
                    arg: number,
                    slot: 0,
                    kind: EventKind::Ready,
                });
            }
        })
    }

    fn reader(self: &Arc<Self>) -> Part {
        let site = self.clone();
        Box::new(move || {
            site.drain();
            site.drain();
        })
    }
}

fn put_and_drain<M: Memory>(first: usize) {
    let site = Arc::new(Site::<M> {
        ring: Ring::new(2),
        got: Notes::new(),
    });
    together(first, [site.writer(), site.reader()]);
    site.drain();
    let got = site.got.take();
    let in_order = got.is_sorted_by(|(_, one), (_, next)| one < next);
    assert!(in_order, "{SYMPTOM}: {got:?}");
    let all = got.len() as u64 + site.ring.lost();
    assert_eq!(all, EVENTS, "{SYMPTOM}: {got:?}");
}

#[test]
fn events_are_got_whole_or_counted() {
    check(3, 2, put_and_drain::<Loom>);
}

/// The ring publishes nothing.
#[derive(Clone, Copy)]
struct NotPublished;

impl Spoil for NotPublished {
    const FILES: &'static [&'static str] = &["rings/mod.rs"];
    fn store(_: u64, _: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn a_ring_that_publishes_nothing_gives_old_words() {
    must_find("event", 3, || {
        spoiled::<NotPublished>(|| put_and_drain::<Spoiled>(0))
    });
}
