//! Calls that say that they do not allocate do not, and the others allocate as often as they say.
//!
//! The job system has no workers, so everything happens on this thread. Each measurement is of the third of
//! three equal runs: tables have grown, and labels are known.

use std::future::poll_fn;
use std::task::Poll;

use paceline::{Builder, JobId, JobSystem};

use crate::support::allocations;

/// The allocations of the third run.
#[track_caller]
fn assert_allocations(expected: u64, what: &str, mut run: impl FnMut()) {
    run();
    run();
    // By reference: called by value the closure would be compiled once more, with labels of its own.
    let ((), found) = allocations::during(&mut run);
    assert_eq!(found, expected, "{what}");
}

fn system() -> JobSystem {
    let builder = Builder::new().workers(0);
    builder.build().expect("it needs no threads")
}

/// Goal: an event with a value allocates for a value of more than 64 bytes, and nothing else.
#[test]
fn events_with_values() {
    fn round<const BYTES: usize>(js: &JobSystem) {
        let (event, handle) = js.event_with::<[u8; BYTES]>("event");
        event.complete_with([7; BYTES]);
        assert_eq!(handle.wait()[BYTES - 1], 7);
        let (event, handle) = js.event_with::<[u8; BYTES]>("event");
        drop(handle);
        event.complete_with([7; BYTES]);
    }
    let js = system();
    assert_allocations(0, "64 bytes", || round::<64>(&js));
    assert_allocations(1, "65 bytes", || round::<65>(&js));
}

/// Goal: a successor allocates if its closure and its inputs take more than 64 bytes.
#[test]
fn inputs() {
    let js = system();
    let (small, large) = ([1_u8; 40], [1_u8; 41]);
    let input = || js.job("input").run(|_| 1_u64);
    assert_allocations(0, "then with 40 bytes", || {
        assert_eq!(input().then(move |a| a + u64::from(small[0])).wait(), 2);
    });
    assert_allocations(1, "then with 41 bytes", || {
        assert_eq!(input().then(move |a| a + u64::from(large[0])).wait(), 2);
    });
    assert_allocations(0, "one input and 40 bytes", || {
        let next = js.job("next").with(input());
        assert_eq!(next.run(move |_, a| a + u64::from(small[0])).wait(), 2);
    });
    assert_allocations(0, "four inputs and 16 bytes", || {
        let captured = [1_u64; 2];
        let next = js.job("next").with((input(), input(), input(), input()));
        let sum = next.run(move |_, (a, b, c, d)| a + b + c + d + captured[1]);
        assert_eq!(sum.wait(), 5);
    });
}

/// Goal: a latch allocates once; clones and completions do not.
#[test]
fn latches() {
    let js = system();
    assert_allocations(1, "a latch", || {
        let latch = js.latch("latch", 20);
        latch.add(1);
        for _ in 0..21 {
            latch.clone().complete_one();
        }
        js.wait(&latch);
    });
}

/// Goal: a future allocates once for its waker, once more if it is large, and never for a poll or a wake-up.
#[test]
fn futures() {
    fn round<const BYTES: usize>(js: &JobSystem) {
        let (captured, mut left) = ([1_u8; BYTES], 50_u32);
        let future = poll_fn(move |task| {
            if left == 0 {
                return Poll::Ready(captured[0]);
            }
            left -= 1;
            task.waker().wake_by_ref();
            Poll::Pending
        });
        assert_eq!(js.spawn_future("future", future).wait(), 1);
    }
    let js = system();
    assert_allocations(1, "a future of 56 bytes", || round::<52>(&js));
    assert_allocations(2, "a future of 60 bytes", || round::<56>(&js));
}

/// Goal: ids are turned into bytes and bits and back without an allocation.
#[test]
fn ids() {
    let js = system();
    let id = js.schedule(|_| ());
    assert_allocations(0, "ids", || {
        assert_eq!(JobId::from_bytes(id.to_bytes()), Some(id));
        assert_eq!(js.id_from_bits(js.id_to_bits(id)), Some(id));
    });
    js.flush();
}
