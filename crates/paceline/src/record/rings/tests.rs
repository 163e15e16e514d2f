//! Each test states its goal and method; the protocol itself is checked in `models`.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use event::{Event, EventKind, Nanos, Random, Sink};
use platform::{Os, Platform, Thread, ThreadSpec};

use super::{Ring, Rings};

fn event(number: u64, slot: u32) -> Event {
    Event {
        time: Nanos(number),
        job: number.wrapping_mul(0x9e37_79b9),
        arg: !number,
        slot,
        kind: EventKind::ALL[number as usize % EventKind::ALL.len()],
    }
}

/// Goal: a ring is a queue of fixed length that leaves out events that find it full, and counts them. Method:
/// random puts and drains in rings of 1 to 16 against a queue of std, for some seeds.
#[test]
fn a_ring_is_a_bounded_queue() {
    rings_against_queues(0..4, 100);
}

/// The same, for many seeds.
#[test]
fn rings_are_bounded_queues_long() {
    rings_against_queues(4..200, 500);
}

fn rings_against_queues(seeds: Range<u64>, puts: u64) {
    for seed in seeds {
        let mut random = Random::new(seed);
        let capacity = 1usize << random.below(5);
        let ring = Ring::<Os>::new(capacity);
        let (mut queue, mut lost) = (VecDeque::new(), 0);
        for number in 0..puts {
            if random.below(8) == 0 {
                ring.drain(|event| assert_eq!(Some(event), queue.pop_front(), "seed {seed}"));
                assert!(queue.is_empty(), "seed {seed}");
            }
            let event = event(number, seed as u32);
            ring.put(&event);
            if queue.len() < capacity {
                queue.push_back(event)
            } else {
                lost += 1
            }
            assert_eq!(ring.lost(), lost, "seed {seed}");
        }
        assert!(lost > 0 || capacity == 16, "seed {seed}: nothing was lost");
    }
}

/// Goal: a reader that drains while others write gets each event whole and in order, or the event is counted.
/// Method: three threads of the system, rings of 64. (Too slow for an interpreter: each drain looks at all
/// thread slots.)
#[test]
fn a_reader_may_come_at_any_time_long() {
    const EVENTS: u64 = 50_000;
    let (rings, mut reader) = Rings::new(64);
    let write = |slot: u32| {
        let rings = Arc::clone(&rings);
        let body = move || {
            rings.slot_taken(slot);
            (0..EVENTS).for_each(|number| rings.record(&event(number, slot)));
        };
        let thread = Os.spawn(ThreadSpec::default(), Box::new(body));
        thread.expect("the system has a thread left")
    };
    let writers = [0, 5, 3].map(write);
    let mut next = [0u64; 6];
    let mut kept = 0;
    let mut drain = || {
        reader.drain(|got| {
            let slot = got.slot as usize;
            assert!(got.time.0 >= next[slot], "out of order");
            assert_eq!(got, event(got.time.0, got.slot), "torn");
            next[slot] = got.time.0 + 1;
            kept += 1;
        });
        kept
    };
    (0..5_000).for_each(|_| _ = drain());
    for writer in writers {
        writer.join().expect("it does not panic");
    }
    let kept = drain();
    assert_eq!(kept + reader.lost(), 3 * EVENTS);
    let slots: Vec<u32> = reader.lost_by_slot().map(|(slot, _)| slot).collect();
    assert_eq!(slots, [0, 3, 5]);
}

/// Goal: events of a thread slot that no thread has had, or that cannot exist, are counted, and nothing else
/// happens. Method: one of each. (Slow in an interpreter, as above.)
#[test]
fn strays_are_counted_long() {
    let (rings, mut reader) = Rings::new(2);
    rings.slot_taken(u32::MAX);
    for slot in [1, u32::MAX] {
        rings.record(&event(1, slot));
    }
    reader.drain(|event| panic!("{event:?}"));
    assert_eq!(reader.lost(), 2);
}
