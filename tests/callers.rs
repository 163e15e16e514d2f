//! Goal: where callers sleep, a worker that spins makes way for them between two looks, and still finds what
//! they hand over. Method: a worker that never parks counts how often it makes way, between jobs of which
//! the caller learns by a channel; one that never spins does not make way.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;

use paceline::{Builder, WaitPolicy};

#[test]
fn a_worker_that_spins_makes_way() {
    static TIMES: AtomicU32 = AtomicU32::new(0);
    for (policy, each_round) in [(WaitPolicy::Active, 5), (WaitPolicy::Passive, 0)] {
        TIMES.store(0, Ordering::Relaxed);
        let js = Builder::new()
            .workers(1)
            .follow_machine(false)
            .wait_policy(policy)
            .callers_sleep(|| _ = TIMES.fetch_add(1, Ordering::Relaxed))
            .build()
            .unwrap();
        let (send, receive) = channel();
        for round in 1..=3 {
            while TIMES.load(Ordering::Relaxed) < each_round * round {
                std::thread::yield_now();
            }
            let send = send.clone();
            js.schedule(move |_| send.send(round).unwrap());
            assert_eq!(receive.recv(), Ok(round));
        }
        let times = TIMES.load(Ordering::Relaxed);
        assert_eq!(times > 0, each_round > 0, "{policy:?}: {times}");
    }
}
