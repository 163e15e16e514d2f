//! Recordings are read back as they were written.

use std::collections::BTreeMap;

use event::{
    Address, Cpu, Event, EventKind, FutexCall, KernelEvent, KernelEventKind, Left, Nanos, Task,
};
use proptest::prelude::*;

use crate::{
    Annotation, Clock, Counter, CpuFacts, Loss, Losses, Mark, MarkKind, Name, Origin, Process,
    Recording, Thread, Wakers,
};

const TASKS: u32 = 4;
const CPUS: u32 = 3;

fn again(recording: &Recording) -> Recording {
    let mut file = Vec::new();
    crate::write::perfetto(recording, &mut file).unwrap();
    crate::read::read(&file[..], "written").unwrap()
}

fn tasks() -> impl Strategy<Value = Task> {
    (0..TASKS).prop_map(Task)
}

fn cpus() -> impl Strategy<Value = Cpu> {
    (0..CPUS).prop_map(Cpu)
}

fn kernel() -> impl Strategy<Value = KernelEventKind> {
    let one = || proptest::option::of(tasks());
    let state = [
        Left::Runnable,
        Left::Preempted,
        Left::Sleeping,
        Left::Dead,
        Left::Blocked,
    ];
    let state = proptest::sample::select(state.to_vec());
    let call = [
        FutexCall::Wait,
        FutexCall::Wake,
        FutexCall::LockPi,
        FutexCall::UnlockPi,
        FutexCall::Other,
    ];
    let call = proptest::sample::select(call.to_vec());
    prop_oneof![
        4 => (one(), state, one())
            .prop_map(|(prev, state, next)| KernelEventKind::Switch { prev, state, next }),
        2 => (tasks(), one(), cpus())
            .prop_map(|(task, by, target)| KernelEventKind::Waking { task, by, target }),
        1 => (tasks(), cpus(), cpus())
            .prop_map(|(task, from, to)| KernelEventKind::Migrate { task, from, to }),
        1 => any::<u32>().prop_map(KernelEventKind::Frequency),
        1 => any::<u32>().prop_map(KernelEventKind::FrequencyLimit),
        1 => any::<Option<u8>>().prop_map(KernelEventKind::Idle),
        1 => any::<bool>().prop_map(KernelEventKind::Online),
        1 => (tasks(), any::<bool>())
            .prop_map(|(task, io)| KernelEventKind::Blocked { task, io, function: None }),
        1 => (tasks(), any::<bool>())
            .prop_map(|(task, begins)| KernelEventKind::Throttle { task, begins }),
        1 => (tasks(), any::<u64>(), call)
            .prop_map(|(task, address, call)| (task, Address::new(address), call))
            .prop_map(|(task, address, call)| KernelEventKind::FutexCall { task, address, call }),
        1 => (tasks(), any::<i32>()).prop_map(|(task, result)| KernelEventKind::FutexReturn { task, result }),
        1 => (any::<bool>(), any::<bool>(), any::<u32>())
            .prop_map(|(begins, soft, number)| KernelEventKind::Interrupt { begins, soft, number }),
    ]
}

/// The next event of a thread; ends are those of open slices.
#[derive(Clone, Debug)]
enum Say {
    Begin(u32),
    End,
    AsyncBegin(u32, u64),
    AsyncEnd(usize, Task),
    Instant(u32),
    Flow(u64, bool),
}

fn says() -> impl Strategy<Value = Say> {
    prop_oneof![
        3 => (0..3u32).prop_map(Say::Begin),
        3 => Just(Say::End),
        2 => (0..3u32, 0..3u64).prop_map(|(name, cookie)| Say::AsyncBegin(name, cookie)),
        2 => (any::<usize>(), tasks()).prop_map(|(which, by)| Say::AsyncEnd(which, by)),
        1 => (0..3u32).prop_map(Say::Instant),
        2 => (any::<u64>(), any::<bool>()).prop_map(|(id, ends)| Say::Flow(id, ends)),
    ]
}

/// Marks in which every end has its beginning and every beginning its end.
fn marks(said: Vec<(u64, Task, Say)>) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut depths: BTreeMap<Task, u32> = BTreeMap::new();
    let mut open: Vec<(Name, u64, Task)> = Vec::new();
    let mut time = 0;
    let mut say = |time: u64, on, what| {
        let time = Nanos(time);
        marks.push(Mark { time, on, what });
    };
    for (step, on, what) in said {
        time += step;
        match what {
            Say::Begin(name) => {
                *depths.entry(on).or_default() += 1;
                say(time, on, MarkKind::Begin(Name(name)));
            }
            Say::End => {
                if let Some(depth) = depths.get_mut(&on).filter(|depth| **depth > 0) {
                    *depth -= 1;
                    say(time, on, MarkKind::End);
                }
            }
            Say::AsyncBegin(name, cookie) => {
                let name = Name(name);
                if open.iter().all(|open| (open.0, open.1) != (name, cookie)) {
                    open.push((name, cookie, on));
                    say(time, on, MarkKind::AsyncBegin { name, cookie });
                }
            }
            Say::AsyncEnd(which, by) if !open.is_empty() => {
                let (name, cookie, on) = open.remove(which % open.len());
                // Numbers are a process's own, and these two are of one.
                let is_of_one = [on, by]
                    .iter()
                    .all(|task| [Task(0), Task(3)].contains(task));
                let on = if is_of_one { by } else { on };
                say(time, on, MarkKind::AsyncEnd { name, cookie });
            }
            Say::Instant(name) => say(time, on, MarkKind::Instant(Name(name))),
            Say::Flow(id, ends) => say(time, on, MarkKind::Flow { id, ends }),
            _ => {}
        }
    }
    for (on, depth) in depths {
        for _ in 0..depth {
            say(time + 1, on, MarkKind::End);
        }
    }
    for (name, cookie, on) in open {
        say(time + 1, on, MarkKind::AsyncEnd { name, cookie });
    }
    marks
}

fn jobs() -> impl Strategy<Value = Event> {
    let kinds = proptest::sample::select(EventKind::ALL);
    (0..2_000u64, any::<u64>(), any::<u64>(), 0u32..4, kinds).prop_map(
        |(time, job, arg, slot, kind)| {
            let time = Nanos(time);
            Event {
                time,
                job,
                arg,
                slot,
                kind,
            }
        },
    )
}

prop_compose! {
    fn recordings()(
        kernel in proptest::collection::vec((2u64..50, cpus(), kernel()), 0..60),
        said in proptest::collection::vec((0u64..40, tasks(), says()), 0..60),
        mut jobs in proptest::collection::vec(jobs(), 0..60),
        values in proptest::collection::vec((0u64..40, any::<i64>()), 0..5),
        notes in proptest::collection::vec((proptest::option::of(tasks()), 0u64..50, 0u64..50), 0..5),
        real in any::<bool>(),
    ) -> Recording {
        jobs.sort_by_key(|event| event.time);
        let mut time = 0;
        let kernel = kernel.into_iter().map(|(step, cpu, what)| {
            time += step;
            KernelEvent { time: Nanos(time), cpu, what }
        });
        let kernel = kernel.collect();
        let mut recording = Recording { kernel, jobs, marks: marks(said), ..frame(real) };
        let mut values: Vec<_> = values.into_iter().map(|(time, value)| (Nanos(time), value)).collect();
        values.sort_by_key(|value| value.0);
        recording.counters[0].values = values;
        recording.annotations = notes
            .into_iter()
            .map(|(on, begin, length)| Annotation {
                on,
                track: "found".into(),
                name: format!("at {begin}"),
                begin: Nanos(begin),
                end: Nanos(begin + length),
            })
            .collect();
        recording
    }
}

/// A recording without events. `real`: whether a kernel gave the numbers, which are in no order then.
fn frame(real: bool) -> Recording {
    let mut recording = Recording {
        origin: Origin {
            format: "perfetto".into(),
            clock: Clock::Virtual,
            wakers: Wakers::Queued,
            is_unmarked: true,
            kernel: Some("6.18.0".into()),
            recorder: Some(1),
            recorded: [2, 4_000_000_000].into(),
        },
        processes: vec![Process::new("game"), Process::new("hog")],
        slots: BTreeMap::from([(0, Task(0)), (2, Task(3))]),
        labels: vec!["physics".into(), String::new(), "ä".into()],
        losses: Losses::from_iter([(Loss::JobEvents, 3), (Loss::Gaps, 1)]),
        ..Recording::default()
    };
    for task in 0..TASKS {
        let process = [Some(0), Some(1), None, Some(0)][task as usize];
        recording.threads.push(Thread {
            priority: 100 + task as i32,
            tid: Some(if real { 900 - 7 * task } else { task + 1 }),
            allowed: (task == 1).then(|| vec![Cpu(0), Cpu(2)]),
            ..Thread::new(Task(task), format!("thread {task}"), process)
        });
    }
    let pids = if real { [4_000, 893] } else { [1, 2] };
    for (process, pid) in recording.processes.iter_mut().zip(pids) {
        process.pid = Some(pid);
    }
    for cpu in 0..CPUS {
        recording.cpus.push(CpuFacts {
            cpu: Cpu(cpu),
            capacity: (cpu == 1).then_some(446),
            max_khz: (cpu == 2).then_some(2_000_000),
        });
    }
    for word in ["draw", "load", "x|y"] {
        recording.names.number(word);
    }
    recording.counters.push(Counter {
        name: "fps".into(),
        unit: "Hz".into(),
        process: Some(1),
        values: Vec::new(),
    });
    recording
}

/// Marks with words in place of numbers, and, at one time, by thread: there is no other order among those.
fn in_words(recording: &Recording) -> Vec<(Nanos, Task, String)> {
    let word = |name| recording.names.word(name);
    let mut marks: Vec<_> = recording
        .marks
        .iter()
        .map(|mark| {
            let what = match mark.what {
                MarkKind::Begin(name) => format!("begin {}", word(name)),
                MarkKind::AsyncBegin { name, cookie } => format!("begin {} {cookie}", word(name)),
                MarkKind::AsyncEnd { name, cookie } => format!("end {} {cookie}", word(name)),
                MarkKind::Instant(name) => format!("instant {}", word(name)),
                other => format!("{other:?}"),
            };
            (mark.time, mark.on, what)
        })
        .collect();
    marks.sort_by_key(|(time, on, _)| (*time, *on));
    marks
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Goal: a recording that is written and read is the same recording: every event, mark, job, thread slot,
    /// label, value, finding, and all facts about threads, processes, CPUs and the file. Method: random ones
    /// in which times of kernel events differ and slices have both ends, as files of kernels and programs
    /// have; with the kernel's numbers and without. Only under these conditions may nothing at all differ.
    #[test]
    fn what_is_written_is_read(recording in recordings()) {
        let again = again(&recording);
        prop_assert_eq!(&again.kernel, &recording.kernel);
        prop_assert_eq!(in_words(&again), in_words(&recording));
        prop_assert_eq!(&again.jobs, &recording.jobs);
        prop_assert_eq!(&again.threads, &recording.threads);
        prop_assert_eq!(&again.processes, &recording.processes);
        prop_assert_eq!(&again.cpus, &recording.cpus);
        prop_assert_eq!((&again.slots, &again.labels), (&recording.slots, &recording.labels));
        let mut notes = recording.annotations.clone();
        notes.sort_by_key(|note| (note.end, note.begin, note.on));
        let mut found = again.annotations.clone();
        found.sort_by_key(|note| (note.end, note.begin, note.on));
        prop_assert_eq!(found, notes);
        let has_values = !recording.counters[0].values.is_empty();
        prop_assert_eq!(&again.counters, &recording.counters[..usize::from(has_values)]);
        prop_assert_eq!(&again.losses, &recording.losses);
        prop_assert_eq!(&again.origin, &recording.origin);
    }
}

/// Goal: facts that one file has in two events and another in none become the same. Method: a loan, its end,
/// and a priority that is only seen, as readers of kernels' text tell them; a gap.
#[test]
fn loans_and_gaps_come_back() {
    let (task, lender) = (Task(1), Task(0));
    let at = |time, what| KernelEvent {
        time: Nanos(time),
        cpu: Cpu(0),
        what,
    };
    let priority = |priority, lent| KernelEventKind::Priority {
        task,
        priority,
        lent,
    };
    let switch = |prev, next| KernelEventKind::Switch {
        prev,
        state: Left::Runnable,
        next,
    };
    let mut recording = frame(true);
    recording.kernel = vec![
        at(5, switch(None, Some(task))),
        at(7, switch(Some(task), Some(lender))),
        at(
            10,
            KernelEventKind::Inherit {
                task,
                from: Some(lender),
            },
        ),
        at(10, priority(49, true)),
        at(20, switch(Some(lender), Some(task))),
        at(30, KernelEventKind::Inherit { task, from: None }),
        at(30, priority(101, false)),
        at(40, priority(125, false)),
        at(40, switch(Some(task), None)),
        at(50, KernelEventKind::Lost { events: 0 }),
        at(50, switch(None, Some(lender))),
    ];
    let again = again(&recording);
    assert_eq!(again.kernel, recording.kernel);
    assert_eq!(again.losses, recording.losses);
}

/// Goal: the sample, in which a simulated kernel does several things at once, comes back but for the changes
/// that its writer reports. Method: one event is later by a nanosecond, loans say how much they are.
#[test]
fn a_simulated_run_comes_back() {
    let sample = super::tests::sample();
    let again = again(&sample);
    assert_eq!(again.jobs, sample.jobs);
    assert_eq!(
        (&again.labels, &again.slots),
        (&sample.labels, &sample.slots)
    );
    assert_eq!(again.annotations, sample.annotations);
    let is_priority =
        |event: &&KernelEvent| !matches!(event.what, KernelEventKind::Priority { .. });
    let mut kernel: Vec<KernelEvent> = again.kernel.iter().filter(is_priority).copied().collect();
    for event in &mut kernel {
        event.time = if event.time == Nanos(6_001) {
            Nanos(6_000)
        } else {
            event.time
        };
    }
    let mut expected = sample.kernel.clone();
    let order = |event: &KernelEvent| (event.time, event.cpu);
    kernel.sort_by_key(order);
    expected.sort_by_key(order);
    assert_eq!(kernel, expected);
}
