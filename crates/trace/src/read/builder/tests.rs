//! Tests of the builder: tasks, priorities, wakers, gaps, order.

use event::{Cpu, KernelEvent, KernelEventKind, Left, Nanos, Task};

use super::{At, Builder, Party, Trust, Wake};
use crate::{Loss, MarkKind, Recording, Wakers};

fn at(time: u64, cpu: u32, tid: u32) -> At {
    At {
        time: Nanos(time),
        cpu,
        tid,
        in_interrupt: false,
    }
}

fn in_interrupt(time: u64, cpu: u32, tid: u32) -> At {
    At {
        in_interrupt: true,
        ..at(time, cpu, tid)
    }
}

fn who(tid: u32, comm: &str, priority: i16) -> Party<'_> {
    Party {
        tid,
        comm: comm.as_bytes(),
        priority: Some(priority),
    }
}

const IDLE: Party<'static> = Party {
    tid: 0,
    comm: b"swapper/0",
    priority: Some(120),
};

fn kinds(recording: &Recording) -> Vec<KernelEventKind> {
    recording.kernel.iter().map(|event| event.what).collect()
}

fn wakes(recording: &Recording) -> Vec<(u64, Option<u32>, u32)> {
    let wake = |event: &KernelEvent| match event.what {
        KernelEventKind::Waking { by, target, .. } => {
            Some((event.time.0, by.map(|by| by.0), target.0))
        }
        _ => None,
    };
    recording.kernel.iter().filter_map(wake).collect()
}

/// Goal: tasks are numbered as they are met, the idle task has no number, and an event's name beats the one
/// in front of the line. Method: two switches with names of different trust.
#[test]
fn who_is_who() {
    let mut builder = Builder::new("test");
    builder.thread_name(7, b"stale", Trust::Hint);
    builder.thread_name(8, b"<...>", Trust::Hint);
    builder.switch(&at(10, 0, 7), &who(7, "render", 110), Left::Sleeping, &IDLE);
    builder.thread_name(7, b"stale", Trust::Hint);
    builder.switch(&at(20, 0, 0), &IDLE, Left::Runnable, &who(9, "", 139));
    let recording = builder.finish();
    let names: Vec<_> = recording
        .threads
        .iter()
        .map(|t| (t.name.as_str(), t.tid, t.priority))
        .collect();
    assert_eq!(
        names,
        [
            ("render", Some(7), 110),
            ("8", Some(8), 120),
            ("9", Some(9), 139)
        ]
    );
    let wanted = [
        KernelEventKind::Switch {
            prev: Some(Task(0)),
            state: Left::Sleeping,
            next: None,
        },
        KernelEventKind::Switch {
            prev: None,
            state: Left::Runnable,
            next: Some(Task(2)),
        },
    ];
    assert_eq!(kinds(&recording), wanted);
    assert!(recording.losses.is_empty());
}

/// Goal: the process of a thread is the column's, else the marker's; the name of a process is that in a list,
/// else its first thread's. Method: three processes, one known by each.
#[test]
fn processes() {
    let mut builder = Builder::new("test");
    builder.belongs(11, 10, Trust::Event);
    builder.belongs(11, 99, Trust::Hint);
    builder.belongs(21, 20, Trust::Hint);
    builder.thread_name(10, b"main", Trust::Event);
    builder.process_name(20, b"com.app", Trust::List);
    builder.belongs(31, 30, Trust::List);
    let recording = builder.finish();
    let found = recording.threads.iter().map(|thread| {
        let process = thread.process.map(|process| &recording.processes[process]);
        (
            thread.tid,
            process.map(|process| (process.pid, process.name.as_str())),
        )
    });
    let found: Vec<_> = found.collect();
    let process = |pid, name| Some((Some(pid), name));
    let wanted = [
        (Some(11), process(10, "main")),
        (Some(21), process(20, "com.app")),
        (Some(10), None),
        (Some(31), process(30, "30")),
    ];
    assert_eq!(found, wanted);
}

/// Goal: a tid that is given out again means another task, and nothing of the first one's. Method: a task
/// that ends, a fork with its number.
#[test]
fn numbers_come_again() {
    let mut builder = Builder::new("test");
    builder.switch(&at(1, 0, 5), &who(5, "old", 120), Left::Dead, &IDLE);
    builder.belongs(4, 4, Trust::Event);
    let child = Party {
        priority: None,
        ..who(5, "new", 0)
    };
    builder.fork(4, &child, Some(true));
    builder.switch(&at(2, 0, 0), &IDLE, Left::Runnable, &who(5, "new", 100));
    let recording = builder.finish();
    let names: Vec<_> = recording
        .threads
        .iter()
        .map(|t| (t.name.as_str(), t.tid, t.process))
        .collect();
    assert_eq!(
        names,
        [
            ("old", Some(5), None),
            ("4", Some(4), Some(0)),
            ("new", Some(5), Some(0))
        ]
    );
    assert_eq!(recording.threads[2].priority, 100);
}

/// Goal: a priority is told when it changes, before the event that shows it, and once. Method: two switches
/// with another priority each, a third with none.
#[test]
fn priorities_change() {
    let mut builder = Builder::new("test");
    for (time, priority) in [(1, 120), (2, 120), (3, 110), (4, 110)] {
        builder.switch(
            &at(time, 0, 0),
            &IDLE,
            Left::Runnable,
            &who(5, "x", priority),
        );
    }
    let recording = builder.finish();
    let told = recording
        .kernel
        .iter()
        .enumerate()
        .filter_map(|(position, event)| match event.what {
            KernelEventKind::Priority { priority, lent, .. } => {
                Some((position, event.time.0, priority, lent))
            }
            _ => None,
        });
    assert_eq!(told.collect::<Vec<_>>(), [(2, 3, 110, false)]);
    assert_eq!(recording.threads[0].priority, 120);
}

/// Goal: a lent priority is told apart from a task's own, with its lender. Method: a task that is lent a
/// priority twice, shows it, and gives it back.
#[test]
fn lent_priorities() {
    let mut builder = Builder::new("test");
    let low = Party {
        priority: None,
        ..who(5, "low", 0)
    };
    builder.switch(&at(1, 0, 0), &IDLE, Left::Runnable, &who(5, "low", 120));
    builder.inherit(&at(2, 0, 6), &low, 120, 79);
    builder.inherit(&at(3, 0, 7), &low, 79, 49);
    builder.switch(&at(4, 0, 5), &who(5, "low", 49), Left::Runnable, &IDLE);
    builder.inherit(&at(5, 0, 5), &low, 49, 120);
    let recording = builder.finish();
    let lent = recording
        .kernel
        .iter()
        .filter_map(|event| match event.what {
            KernelEventKind::Priority { priority, lent, .. } => {
                Some((event.time.0, priority, lent))
            }
            _ => None,
        });
    assert_eq!(
        lent.collect::<Vec<_>>(),
        [(2, 79, true), (3, 49, true), (5, 120, false)]
    );
    let from = recording
        .kernel
        .iter()
        .filter_map(|event| match event.what {
            KernelEventKind::Inherit { from, .. } => Some((event.time.0, from.map(|from| from.0))),
            _ => None,
        });
    assert_eq!(
        from.collect::<Vec<_>>(),
        [(2, Some(1)), (3, Some(2)), (5, None)]
    );
}

/// Goal: with decisions, wakers are those of the decisions and targets those of the queues; interrupts have
/// no waker. Method: a wake-up with both events, one in an interrupt, one that was queued long after.
#[test]
fn decided_wakers() {
    let mut builder = Builder::new("test");
    let sleeper = who(5, "s", 120);
    builder.wake(&at(1, 0, 6), &sleeper, 0, Wake::Decided);
    builder.wake(&in_interrupt(2, 3, 9), &sleeper, 3, Wake::Queued);
    builder.wake(&in_interrupt(3, 0, 6), &sleeper, 0, Wake::Decided);
    builder.switch(&at(4, 0, 0), &IDLE, Left::Runnable, &sleeper);
    builder.wake(&at(5, 2, 6), &sleeper, 2, Wake::Queued);
    builder.wake(&at(6, 0, 5), &who(7, "child", 120), 1, Wake::New);
    let recording = builder.finish();
    assert_eq!(recording.origin.wakers, Wakers::Decided);
    assert_eq!(
        wakes(&recording),
        [(1, Some(1), 3), (3, None, 0), (6, Some(0), 1)]
    );
}

/// Goal: without decisions, the thread that ran where the task was queued woke it, unless that was an
/// interrupt or the idle task. Method: one of each.
#[test]
fn queued_wakers() {
    let mut builder = Builder::new("test");
    let sleeper = who(5, "s", 120);
    builder.wake(&at(1, 0, 6), &sleeper, 1, Wake::Queued);
    builder.wake(&in_interrupt(2, 0, 6), &sleeper, 1, Wake::Queued);
    builder.wake(&at(3, 0, 0), &sleeper, 1, Wake::Queued);
    let recording = builder.finish();
    assert_eq!(recording.origin.wakers, Wakers::Queued);
    assert_eq!(
        wakes(&recording),
        [(1, Some(1), 1), (2, None, 1), (3, None, 1)]
    );
}

/// Goal: a gap stands before the next event of its CPU, or at the end, and is counted. Method: gaps of two
/// CPUs, of known and unknown length, one with nothing behind it.
#[test]
fn gaps() {
    let mut builder = Builder::new("test");
    builder.switch(&at(1, 0, 0), &IDLE, Left::Runnable, &who(5, "x", 120));
    builder.gap(1, 7);
    builder.gap(0, 0);
    builder.switch(&at(2, 0, 0), &IDLE, Left::Runnable, &who(6, "y", 120));
    let recording = builder.finish();
    let lost = recording
        .kernel
        .iter()
        .enumerate()
        .filter_map(|(position, event)| match event.what {
            KernelEventKind::Lost { events } => Some((position, event.time.0, event.cpu, events)),
            _ => None,
        });
    assert_eq!(
        lost.collect::<Vec<_>>(),
        [(1, 2, Cpu(0), 0), (3, 2, Cpu(1), 7)]
    );
    let losses: Vec<_> = recording.losses.iter().collect();
    assert_eq!(losses, [(Loss::KernelEvents, 7), (Loss::Gaps, 1)]);
}

/// Goal: events out of order are put in order, equal times as they came, and counted. Method: events and
/// marks that go back.
#[test]
fn order() {
    let mut builder = Builder::new("test");
    for (time, khz) in [(5, 1), (3, 2), (5, 3), (3, 4)] {
        builder.frequency(&at(time, 0, 0), 0, khz);
    }
    let task = builder.task(1).unwrap();
    builder.mark(Nanos(9), task, MarkKind::End);
    let name = builder.word(b"n");
    builder.mark(Nanos(8), task, MarkKind::Begin(name));
    let recording = builder.finish();
    let frequencies = [2, 4, 1, 3].map(KernelEventKind::Frequency);
    assert_eq!(kinds(&recording), frequencies);
    assert_eq!(recording.marks[0].what, MarkKind::Begin(name));
    assert_eq!(recording.losses.get(Loss::OutOfOrder), 3);
}

/// Goal: impossible numbers are counted and cost nothing. Method: CPUs and states beyond every machine.
#[test]
fn impossible_numbers() {
    let mut builder = Builder::new("test");
    builder.frequency(&at(1, 0, 0), u32::MAX, 1);
    builder.switch(&at(1, 1 << 20, 0), &IDLE, Left::Runnable, &IDLE);
    builder.wake(&at(1, 0, 0), &who(0, "", 0), 0, Wake::Decided);
    builder.wake(&at(1, 0, 0), &who(5, "x", 0), 1 << 31, Wake::Decided);
    builder.idle(&at(1, 0, 0), 0, 256);
    builder.cpus(u32::MAX);
    let recording = builder.finish();
    assert_eq!(recording.losses.get(Loss::BadFields), 5);
    assert!(recording.kernel.is_empty());
    assert_eq!(recording.cpus.len(), 1, "the one that could be");
}

/// Goal: of a CPU's many steps up and down, those that change the direction are kept. Method: steps down, up,
/// and down.
#[test]
fn hotplug() {
    let mut builder = Builder::new("test");
    for (time, is_online) in [(1, false), (2, false), (3, true), (4, true), (5, false)] {
        builder.hotplug_towards(&at(time, 0, 0), 2, is_online);
    }
    let recording = builder.finish();
    let wanted = [(1, false), (3, true), (5, false)];
    let wanted = wanted.map(|(time, is_online)| KernelEvent {
        time: Nanos(time),
        cpu: Cpu(2),
        what: KernelEventKind::Online(is_online),
    });
    assert_eq!(recording.kernel, wanted);
}
