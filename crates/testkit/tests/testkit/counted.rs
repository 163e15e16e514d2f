//! Goal: counts are exact, by sort, by thread and by family.
//! Method: do a known number of each operation on the OS platform and compare whole snapshots.

use event::Nanos;
use paceline_testkit::{Counted, Counts};
use platform::{
    Atomic, Lock, Memory, Ordering, Os, Parker, Platform, SharedCell, Thread, ThreadSpec,
};

type World = Counted<Os>;

const WORLD: World = Counted(Os);

fn every_operation(times: u64) {
    let word = <World as Memory>::AtomicU64::new(0);
    let small = <World as Memory>::AtomicU32::new(0);
    let lock = <World as Memory>::Lock::new(0);
    let cell = <<World as Memory>::Cell<u64> as SharedCell<u64>>::new(0);
    let parker = WORLD.parker();
    for _ in 0..times {
        word.load(Ordering::Acquire);
        small.load(Ordering::Relaxed);
        word.store(1, Ordering::Release);
        word.swap(2, Ordering::AcqRel);
        assert!(
            word.compare_exchange(2, 3, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
        );
        assert!(
            word.compare_exchange(2, 3, Ordering::AcqRel, Ordering::Acquire)
                .is_err()
        );
        small.fetch_add(1, Ordering::Relaxed);
        small.fetch_sub(1, Ordering::Relaxed);
        word.fetch_and(7, Ordering::Relaxed);
        word.fetch_or(1, Ordering::Relaxed);
        word.fetch_max(9, Ordering::Relaxed);
        World::fence(Ordering::SeqCst);
        World::fence(Ordering::Acquire);
        World::fence(Ordering::Release);
        WORLD.now();
        lock.with(|n| *n += 1);
        World::spin_until(&word, |value| value == 9, Nanos::MAX);
        parker.unpark();
        parker.park(Nanos::MAX);
        // SAFETY: the cell is on this stack; no other thread knows it.
        unsafe { cell.with_mut(|n| *n += 1) };
    }
}

fn expected(times: u64) -> Counts {
    Counts {
        loads: 2 * times,
        stores: times,
        rmws: 8 * times,
        full_fences: times,
        weak_fences: 2 * times,
        stamps: times,
        locks: times,
        spins: times,
        parks: times,
        unparks: times,
    }
}

#[test]
fn each_operation_is_counted_once_under_its_sort() {
    Counted::reset();
    assert_eq!(Counted::here(), Counts::default());
    every_operation(3);
    assert_eq!(Counted::here(), expected(3));
    let (_, again) = Counted::during(|| every_operation(5));
    assert_eq!(again, expected(5));
    assert_eq!(Counted::here() - expected(3), expected(5));
    Counted::reset();
    assert_eq!(Counted::here(), Counts::default());
    assert_eq!(Counted::total(), Counts::default());
}

/// Method: threads of threads, all at once; each counts only its own operations, the family has the sum, and
/// a stranger beside it is in neither.
#[test]
fn threads_count_apart_and_families_count_together() {
    Counted::reset();
    let stranger = std::thread::spawn(|| every_operation(100));
    let member = |times: u64| {
        let body = move || {
            every_operation(times);
            assert_eq!(Counted::here(), expected(times));
            let grandchild = WORLD.spawn(ThreadSpec::default(), Box::new(|| every_operation(1)));
            grandchild.unwrap().join().unwrap();
            assert_eq!(Counted::here(), expected(times));
        };
        WORLD.spawn(ThreadSpec::default(), Box::new(body)).unwrap()
    };
    let members = [2, 30, 400].map(member);
    for member in members {
        member.join().unwrap();
    }
    stranger.join().unwrap();
    assert_eq!(Counted::here(), Counts::default());
    assert_eq!(Counted::total(), expected(432 + 3));
}

#[test]
fn only_what_happened_is_shown() {
    let counts = Counts {
        rmws: 2,
        full_fences: 1,
        ..Counts::default()
    };
    assert_eq!(format!("{counts:?}"), "Counts { rmws: 2, full_fences: 1 }");
}

#[test]
#[should_panic(expected = "earlier snapshot")]
fn the_later_snapshot_cannot_be_taken_away() {
    let _ = Counts::default() - expected(1);
}
