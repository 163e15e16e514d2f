//! Goal: what is read of a slot is one of the things that were published, whole, or nothing; and it would not
//! be without each of the orderings.
//! Method: the real code on the model checker's memory. A thread publishes entries whose parts belong
//! together, and another one reads meanwhile. Then the slot changes hands.
//! Bounds: two threads, two entries, three preemptions.
//! Planted bugs: the first or the second fence, or the last store, without its ordering.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use event::{Nanos, Task};
use platform::{Atomic, Lane, Memory, Ordering, Platform, Thread, ThreadSpec};
use testkit::Loom;

use crate::{Page, Run, read_page};

const PREEMPTIONS: usize = 3;
const PROCESS: u32 = 7;
const MIXED: &str = "parts of two entries";

/// The entry number `step` of a thread: all of its parts say the number.
fn publish<M: Memory>(slot: &mut crate::Slot<M>, step: u32) {
    slot.publish_wait(&[Task(100 + step), Task(200 + step), Task(300 + step)]);
}

/// Reads a page whose entries are all from [`publish`].
fn read<M: Memory>(page: &Page<M>) {
    let skipped = read_page::<M>(PROCESS, page.words(), &|_| Some(PROCESS), &mut |entry| {
        let step = entry.waits_for[0].0 - 100;
        let expected = [Task(100 + step), Task(200 + step), Task(300 + step)];
        assert_eq!(entry.waits_for, expected, "{MIXED}");
    });
    assert_eq!((skipped.foreign, skipped.malformed), (0, 0));
}

fn beside<M: Memory>(page: &Arc<Page<M>>, write: impl FnOnce() + Send + 'static) {
    let spawned = Loom.spawn(ThreadSpec::default(), Box::new(write));
    let thread = spawned.expect("the model has a thread left");
    read(page);
    thread.join().expect("a panic ends the whole model");
    read(page);
}

/// A reader meets a writer that replaces an entry by the next.
fn two_entries<M: Memory>() {
    let page = Arc::new(Page::<M>::unshared(1));
    let mut slot = page.slot(Task(1)).expect("there is one slot");
    publish(&mut slot, 1);
    beside(&page, move || {
        publish(&mut slot, 2);
        slot.clear_wait();
    });
}

/// A reader meets a slot that gets another thread.
fn two_threads<M: Memory>() {
    let page = Arc::new(Page::<M>::unshared(1));
    let mut slot = page.slot(Task(1)).expect("there is one slot");
    slot.publish_run(run_of(1));
    let kept = page.clone();
    let spawned = Loom.spawn(
        ThreadSpec::default(),
        Box::new(move || {
            drop(slot);
            let mut slot = kept.slot(Task(2)).expect("the slot is free again");
            slot.publish_run(run_of(2));
        }),
    );
    read_page::<M>(PROCESS, page.words(), &|_| Some(PROCESS), &mut |entry| {
        assert_eq!(entry.runs, Some(run_of(entry.thread.0)), "{MIXED}");
    });
    let thread = spawned.expect("the model has a thread left");
    thread.join().expect("a panic ends the whole model");
}

fn run_of(thread: u32) -> Run {
    Run {
        lane: Lane::Frame,
        deadline: Some(Nanos(thread.into())),
    }
}

#[test]
fn an_entry_is_read_whole_or_not_at_all() {
    let executions = testkit::loom::model(PREEMPTIONS, two_entries::<Loom>);
    let more = testkit::loom::model(PREEMPTIONS, two_threads::<Loom>);
    println!("{executions} and {more} executions");
}

/// An ordering that is left out, in one file.
trait Spoil: Send + Sync + Copy + 'static {
    const FILE: &'static str;
    fn store(order: Ordering) -> Ordering {
        order
    }
    /// `None`: no fence at all.
    fn fence(order: Ordering) -> Option<Ordering> {
        Some(order)
    }
    #[track_caller]
    fn is_here() -> bool {
        Location::caller().file().ends_with(Self::FILE)
    }
}

/// The last store of a writer publishes nothing.
#[derive(Clone, Copy)]
struct LastStore;

impl Spoil for LastStore {
    const FILE: &'static str = "hint/src/slot.rs";
    fn store(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

/// The writer's words may be seen before the odd number.
#[derive(Clone, Copy)]
struct WritersFence;

impl Spoil for WritersFence {
    const FILE: &'static str = "hint/src/slot.rs";
    fn fence(_: Ordering) -> Option<Ordering> {
        None
    }
}

/// The reader may look at the sequence for the second time before it looks at the words.
#[derive(Clone, Copy)]
struct ReadersFence;

impl Spoil for ReadersFence {
    const FILE: &'static str = "hint/src/reader.rs";
    fn fence(_: Ordering) -> Option<Ordering> {
        None
    }
}

#[test]
fn each_ordering_is_needed() {
    fn must_find<S: Spoil>(name: &str) {
        let bug = testkit::loom::expect_bug(PREEMPTIONS, two_entries::<Spoiled<S>>);
        assert!(bug.contains(MIXED), "{name}: another bug was found: {bug}");
    }
    must_find::<LastStore>("the last store");
    must_find::<WritersFence>("the writer's fence");
    must_find::<ReadersFence>("the reader's fence");
}

/// The checker's memory without one ordering.
struct Spoiled<S>(PhantomData<S>);

struct SpoiledWord<S>(<Loom as Memory>::AtomicU64, PhantomData<S>);

impl<S: Spoil> Atomic<u64> for SpoiledWord<S> {
    #[track_caller]
    fn new(value: u64) -> Self {
        SpoiledWord(Atomic::new(value), PhantomData)
    }
    #[track_caller]
    fn store(&self, value: u64, order: Ordering) {
        let order = if S::is_here() { S::store(order) } else { order };
        self.0.store(value, order);
    }
    testkit::forward_atomic!(|this| this.0, u64:
        load swap compare_exchange fetch_add fetch_sub fetch_and fetch_or fetch_max);
}

// SAFETY: none is needed: the checker finds the planted errors.
unsafe impl<S: Spoil> Memory for Spoiled<S> {
    type AtomicU32 = <Loom as Memory>::AtomicU32;
    type AtomicU64 = SpoiledWord<S>;
    type Cell<T> = <Loom as Memory>::Cell<T>;
    type Lock<T: Send> = <Loom as Memory>::Lock<T>;

    const UNWINDS: bool = Loom::UNWINDS;

    #[track_caller]
    fn fence(order: Ordering) {
        let order = if S::is_here() {
            S::fence(order)
        } else {
            Some(order)
        };
        if let Some(order) = order {
            Loom::fence(order);
        }
    }
    fn spin_until(word: &SpoiledWord<S>, wanted: impl Fn(u64) -> bool, deadline: Nanos) -> u64 {
        Loom::spin_until(&word.0, wanted, deadline)
    }
}
