//! Lag, deadlines and protection, call by call.

use event::{Cpu, Nanos, Task};

use super::queue::{Entity, QueuePlace};
use super::{Eevdf, V6_6, V6_18, Version};
use crate::linux::fair::Fair;
use crate::{Attr, Dequeue, Enqueue, Setting};

const CPU: Cpu = Cpu(0);
const TICK: Nanos = Nanos::from_millis(4);

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// A class for 2 CPUs at 250 Hz with these tasks, all queued as new ones; the first one runs, and did so
/// before the others came.
fn class(version: Version, attrs: &[Attr]) -> Eevdf {
    let setting = Setting {
        cpus: 2,
        tick: TICK,
        seed: 0,
    };
    let mut class = Eevdf::new(version, setting);
    class.set_cpus(2);
    for (task, attr) in attrs.iter().enumerate() {
        let task = Task(task as u32);
        class.add(task, attr);
        class.enqueue(CPU, task, Enqueue::New, Nanos::ZERO);
        if task == Task(0) {
            assert_eq!(class.pick(CPU, Nanos::ZERO), Some(task));
        }
    }
    class
}

fn entity(class: &Eevdf, task: u32) -> &Entity {
    &class.entities[task as usize]
}

fn lag(class: &Eevdf, task: u32) -> i64 {
    class.queues[CPU.index()].lag(entity(class, task))
}

fn with_slice(micros: u64) -> Attr {
    Attr {
        slice: Some(Nanos::from_micros(micros)),
        ..Attr::default()
    }
}

/// Goal: a task that slept is owed afterwards as much as before, whatever it weighs, but at most two slices
/// or a tick. Method: a task that waits while another one runs for 3 ms, or 30, sleeps and wakes up.
#[test]
fn lag_survives_sleep() {
    for nice in [-10, 0, 10] {
        let mut class = class(V6_18, &[Attr::default(), Attr::nice(nice), Attr::default()]);
        class.tick(CPU, Task(0), ms(3));
        let before = lag(&class, 1);
        assert!(before > 0);
        class.dequeue(CPU, Task(1), Dequeue::Sleep, ms(3));
        assert_eq!(entity(&class, 1).place, QueuePlace::Out);
        class.enqueue(CPU, Task(1), Enqueue::Wake, ms(3));
        assert!(
            lag(&class, 1).abs_diff(before) <= 2,
            "{nice}: {} of {before}",
            lag(&class, 1)
        );
    }
    let mut class = class(V6_18, &[Attr::default(), Attr::default()]);
    class.tick(CPU, Task(0), ms(30));
    assert_eq!(lag(&class, 1), ms(15).0 as i64);
    class.dequeue(CPU, Task(1), Dequeue::Sleep, ms(30));
    assert_eq!(entity(&class, 1).lag, TICK.0 as i64);
}

/// Goal: a new task has half a slice, one that wakes up a whole one, and one that moves keeps the rest of its
/// slice, from 6.12 on. Method: deadlines.
#[test]
fn deadlines_of_who_joins() {
    for (version, kept) in [(V6_18, true), (V6_6, false)] {
        let mut class = class(version, &[Attr::default(), Attr::default()]);
        let slice = class.base_slice.0 as i64;
        let left = |class: &Eevdf| entity(class, 1).deadline - entity(class, 1).v;
        assert_eq!(left(&class), slice / 2);
        class.dequeue(CPU, Task(1), Dequeue::Sleep, Nanos::ZERO);
        class.enqueue(CPU, Task(1), Enqueue::Wake, Nanos::ZERO);
        assert_eq!(left(&class), slice);
        // It runs for a part of it.
        class.dequeue(CPU, Task(0), Dequeue::Sleep, Nanos::ZERO);
        assert_eq!(class.pick(CPU, Nanos::ZERO), Some(Task(1)));
        class.tick(CPU, Task(1), Nanos(1000));
        class.dequeue(CPU, Task(1), Dequeue::Move, Nanos(1000));
        class.enqueue(Cpu(1), Task(1), Enqueue::Move, Nanos(1000));
        let expected = if kept { slice - 1000 } else { slice };
        assert_eq!(left(&class), expected);
    }
}

/// Goal: a task that owes and goes to sleep competes until it owes nothing, and is owed nothing then. Method:
/// a task runs for 3 ms and sleeps; it wakes up in debt; it sleeps again, and wakes up when it would be owed
/// something; it sleeps again, and is found by a pick. In 6.6 it is just gone.
#[test]
fn dequeue_is_delayed_while_a_task_owes() {
    let mut class = class(V6_18, &[Attr::default(), Attr::default()]);
    class.dequeue(CPU, Task(0), Dequeue::Sleep, ms(3));
    assert_eq!(class.competes_on(Task(0)), Some(CPU));
    assert_eq!((class.queued(CPU), class.load(CPU)), (1, 1024));
    assert_eq!(class.pick(CPU, ms(3)), Some(Task(1)));
    assert_eq!(class.waiting(CPU).count(), 0);
    class.enqueue(CPU, Task(0), Enqueue::Wake, ms(4));
    assert_eq!((class.competes_on(Task(0)), class.queued(CPU)), (None, 2));
    assert_eq!(lag(&class, 0), -(ms(1).0 as i64));
    class.dequeue(CPU, Task(0), Dequeue::Sleep, ms(4));
    class.enqueue(CPU, Task(0), Enqueue::Wake, ms(10));
    assert_eq!((lag(&class, 0), lag(&class, 1)), (0, 0));
    // It runs again, for long, and sleeps.
    class.dequeue(CPU, Task(1), Dequeue::Sleep, ms(10));
    class.pick(CPU, ms(10));
    class.enqueue(CPU, Task(1), Enqueue::Wake, ms(10));
    class.dequeue(CPU, Task(0), Dequeue::Sleep, ms(14));
    assert_eq!(class.competes_on(Task(0)), Some(CPU));
    assert_eq!(class.pick(CPU, ms(14)), Some(Task(1)));
    assert!(class.tick(CPU, Task(1), ms(24)));
    assert_eq!(class.pick(CPU, ms(24)), Some(Task(1)));
    assert_eq!(
        (class.competes_on(Task(0)), entity(&class, 0).lag),
        (None, 0)
    );

    let mut class = self::class(V6_6, &[Attr::default(), Attr::default()]);
    class.dequeue(CPU, Task(0), Dequeue::Sleep, ms(3));
    assert_eq!(class.competes_on(Task(0)), None);
    assert_eq!(entity(&class, 0).lag, -(Nanos::from_micros(1_500).0 as i64));
}

/// Goal: the running task is protected for the shortest slice; a task that wakes up with a shorter one
/// ignores that, a new task does not. Method: a task with 20 ms runs for 1 ms when another one comes.
#[test]
fn a_shorter_slice_ignores_protection() {
    let comes = |slice: u64, why: Enqueue| {
        let mut class = class(V6_18, &[with_slice(20_000)]);
        class.add(Task(1), &with_slice(slice));
        let now = ms(1);
        class.enqueue(CPU, Task(1), why, now);
        let preempts = class.preempts(CPU, Task(0), Task(1), now);
        let picked = class.pick(CPU, now);
        assert_eq!(picked, Some(Task(u32::from(preempts))));
        preempts
    };
    assert!(comes(300, Enqueue::Wake));
    // 9 ms are left of the half slice that it began with; among equals, the waiting task goes first.
    assert!(comes(9_000, Enqueue::Wake) && !comes(9_001, Enqueue::Wake));
    assert!(!comes(20_000, Enqueue::Wake));
    assert!(!comes(300, Enqueue::New));
    // Protection ends with the shortest slice in the queue, at the next tick.
    let mut class = class(V6_18, &[with_slice(300), with_slice(20_000)]);
    assert!(class.tick(CPU, Task(0), TICK));
    assert_eq!(class.pick(CPU, TICK), Some(Task(1)));
    assert_eq!(
        entity(&class, 1).protected,
        Nanos::from_micros(300).0 as i64
    );
    assert!(class.tick(CPU, Task(1), ms(8)));
    assert_eq!(class.pick(CPU, ms(8)), Some(Task(0)));
}
