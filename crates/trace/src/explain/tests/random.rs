//! Any recording has accounts that sum exactly.

use std::collections::BTreeMap;

use event::{Cpu, Event, EventKind, KernelEvent, KernelEventKind, Left, Nanos, Task};
use proptest::prelude::*;

use crate::explain::{Selection, WaitKind, Who, explain};
use crate::script::{Script, check};
use crate::timeline::{Options, Since, State, Timeline};
use crate::{CpuFacts, Mark, MarkKind, Names, Origin, Recording, Thread, Wakers};

fn task() -> impl Strategy<Value = Task> {
    (0..5u32).prop_map(Task)
}

fn some_task() -> impl Strategy<Value = Option<Task>> {
    proptest::option::weighted(0.8, task())
}

fn cpu() -> impl Strategy<Value = Cpu> {
    (0..3u32).prop_map(Cpu)
}

fn left() -> impl Strategy<Value = Left> {
    prop_oneof![
        3 => Just(Left::Runnable),
        1 => Just(Left::Preempted),
        3 => Just(Left::Sleeping),
        1 => Just(Left::Blocked),
        1 => Just(Left::Dead),
    ]
}

fn what() -> impl Strategy<Value = KernelEventKind> {
    use KernelEventKind as K;
    prop_oneof![
        8 => (some_task(), left(), some_task())
            .prop_map(|(prev, state, next)| K::Switch { prev, state, next }),
        5 => (task(), some_task(), cpu()).prop_map(|(task, by, target)| K::Waking { task, by, target }),
        1 => (task(), cpu(), cpu()).prop_map(|(task, from, to)| K::Migrate { task, from, to }),
        1 => (task(), some_task()).prop_map(|(task, from)| K::Inherit { task, from }),
        1 => (task(), 90..130i16, any::<bool>())
            .prop_map(|(task, priority, lent)| K::Priority { task, priority, lent }),
        1 => (any::<bool>(), any::<bool>(), 0..3u32)
            .prop_map(|(begins, soft, number)| K::Interrupt { begins, soft, number }),
        1 => (task(), any::<bool>(), proptest::option::of(0..9u32))
            .prop_map(|(task, io, function)| K::Blocked { task, io, function }),
        1 => (task(), any::<bool>()).prop_map(|(task, begins)| K::Throttle { task, begins }),
        1 => (0..3u32).prop_map(|events| K::Lost { events }),
        1 => (0..4u32).prop_map(|khz| K::Frequency(khz * 1_000)),
        1 => any::<bool>().prop_map(K::Online),
        1 => proptest::option::of(0..2u8).prop_map(K::Idle),
    ]
}

fn kernel() -> impl Strategy<Value = Vec<KernelEvent>> {
    let event = (0..400u64, cpu(), what());
    let event = event.prop_map(|(time, cpu, what)| KernelEvent {
        time: Nanos(time),
        cpu,
        what,
    });
    proptest::collection::vec(event, 0..120)
}

fn marks() -> impl Strategy<Value = Vec<Mark>> {
    let names = Names::from_iter(["frame", "wait", "lock", "work", "holds"]);
    let name =
        move |number: u32| names.find(["frame", "wait", "lock", "work", "holds"][number as usize]);
    let kind = prop_oneof![
        (0..5u32).prop_map(move |number| MarkKind::Begin(name(number).unwrap())),
        Just(MarkKind::End),
        (0..2u64).prop_map(|cookie| MarkKind::AsyncBegin {
            name: crate::Name(0),
            cookie
        }),
        (0..2u64).prop_map(|cookie| MarkKind::AsyncEnd {
            name: crate::Name(0),
            cookie
        }),
        (0..2u64).prop_map(|id| MarkKind::Flow { id, ends: false }),
    ];
    let mark = (0..400u64, task(), kind);
    let mark = mark.prop_map(|(time, on, what)| Mark {
        time: Nanos(time),
        on,
        what,
    });
    proptest::collection::vec(mark, 0..30)
}

fn jobs() -> impl Strategy<Value = Vec<Event>> {
    let event = (0..400u64, 0..6u64, 0..6u64, 0..4u32, 1..20u8);
    let event = event.prop_map(|(time, job, arg, slot, kind)| Event {
        time: Nanos(time),
        job,
        arg,
        slot,
        kind: EventKind::from_code(kind).unwrap_or(EventKind::Begin),
    });
    proptest::collection::vec(event, 0..60)
}

fn recording() -> impl Strategy<Value = Recording> {
    let facts = proptest::collection::vec(proptest::option::of(1..1024u32), 0..3);
    let wakers = prop_oneof![
        Just(Wakers::Decided),
        Just(Wakers::Queued),
        Just(Wakers::Unknown)
    ];
    let parts = (kernel(), marks(), jobs(), facts, wakers, any::<bool>());
    parts.prop_map(|(kernel, marks, jobs, facts, wakers, told)| {
        let threads = (0..4).map(|number| Thread {
            allowed: told.then(|| vec![Cpu(number % 3), Cpu(2)]),
            ..Thread::new(Task(number), format!("thread {number}"), None)
        });
        let cpus = facts.into_iter().zip(0..).map(|(capacity, cpu)| CpuFacts {
            cpu: Cpu(cpu),
            capacity,
            max_khz: Some(2_000),
        });
        Recording {
            origin: Origin {
                wakers,
                ..Origin::default()
            },
            threads: threads.collect(),
            cpus: cpus.collect(),
            names: Names::from_iter(["frame", "wait", "lock", "work", "holds"]),
            slots: (0..3).map(|slot| (slot, Task(slot))).collect(),
            kernel,
            marks,
            jobs,
            ..Recording::default()
        }
    })
}

/// Every way to select waits.
fn selections() -> Vec<Selection> {
    let usual = Selection {
        least: Nanos(1),
        ..Selection::default()
    };
    let named = |text: &str| Selection {
        slices: vec![text.into()],
        ..usual.clone()
    };
    let ask = |thread| Selection {
        threads: Some(vec![Task(thread)]),
        ..usual.clone()
    };
    vec![
        usual.clone(),
        named("w"),
        named(""),
        ask(0),
        ask(4),
        ask(77),
    ]
}

/// A timeline's stays and runs have no gaps, and agree with each other.
fn fits_together(timeline: &Timeline) {
    let (begin, end) = timeline.span();
    let mut running: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for task in timeline.threads().collect::<Vec<_>>() {
        let mut at = begin;
        for stay in timeline.stays(task) {
            assert_eq!(stay.begin, at);
            assert!(stay.end >= stay.begin);
            at = stay.end;
            if let State::Running(cpu) = stay.state {
                *running.entry((cpu.0, task.0)).or_default() += (stay.end - stay.begin).0;
            }
        }
        assert!(at == end || timeline.stays(task).next().is_none());
    }
    for cpu in timeline.cpus() {
        let mut at = begin;
        for (from, until, who) in timeline.runs(cpu) {
            assert_eq!(from, at);
            at = until;
            if let Who::Task(task) = who {
                let time = running.entry((cpu.0, task.0)).or_default();
                *time = time
                    .checked_sub((until - from).0)
                    .expect("more time than the thread has");
            }
        }
        assert_eq!(at, end);
    }
    assert!(
        running.values().all(|left| *left == 0),
        "threads ran where no CPU ran them"
    );
}

/// The shares of a time on some CPUs, found one nanosecond after the other, and the largest rounding error of
/// each.
fn one_by_one(
    timeline: &Timeline,
    allowed: &[Cpu],
    begin: Nanos,
    end: Nanos,
) -> BTreeMap<Who, (u64, u64)> {
    let mut sums: BTreeMap<Who, u64> = BTreeMap::new();
    let mut count = 0;
    for time in begin.0..end.0 {
        let online = allowed
            .iter()
            .filter(|cpu| timeline.is_online(**cpu, Nanos(time)));
        let online: Vec<Cpu> = online.copied().collect();
        count = online.len() as u64;
        for cpu in online {
            let mut runs = timeline.runs(cpu);
            let run = runs.find(|(from, until, _)| from.0 <= time && time < until.0);
            let who = run.map_or(Who::Unknown, |(_, _, who)| who);
            *sums.entry(who).or_default() += 1;
        }
    }
    let rounded = |(who, sum): (Who, u64)| (who, (sum / count, sum.div_ceil(count)));
    sums.into_iter()
        .filter(|_| count > 0)
        .map(rounded)
        .collect()
}

proptest! {
    /// Goal: the account of every wait sums exactly, without gaps or overlaps, and timelines fit together,
    /// for any events in any order. Method: random recordings, every kind of selection.
    #[test]
    fn sums_are_exact(recording in recording()) {
        let timeline = Timeline::new(recording, &Options::default());
        fits_together(&timeline);
        for selection in selections() {
            let explanation = explain(&timeline, &selection);
            for wait in &explanation.waits {
                check(wait);
            }
            for inversion in &explanation.inversions {
                let by: u64 = inversion.by.iter().map(|share| share.ns.0).sum();
                prop_assert_eq!(by, inversion.ns.0);
                prop_assert!(inversion.wait < explanation.waits.len());
            }
        }
    }

    /// Goal: the same where times are long enough for it to matter which CPUs were idle. Method: the same
    /// recordings, slower by half a million.
    #[test]
    fn sums_are_exact_beside_idle_cpus(mut recording in recording()) {
        const SLOWER: u64 = 500_000;
        let kernel = recording.kernel.iter_mut().map(|event| &mut event.time);
        let marks = recording.marks.iter_mut().map(|mark| &mut mark.time);
        let jobs = recording.jobs.iter_mut().map(|event| &mut event.time);
        for time in kernel.chain(marks).chain(jobs) {
            time.0 *= SLOWER;
        }
        let timeline = Timeline::new(recording, &Options::default());
        for selection in selections() {
            for wait in &explain(&timeline, &selection).waits {
                check(wait);
            }
        }
    }

    /// Goal: equal recordings have equal explanations. Method: each twice.
    #[test]
    fn the_same_again(recording in recording()) {
        let [one, two] = [0, 1].map(|_| {
            let timeline = Timeline::new(recording.clone(), &Options::default());
            explain(&timeline, &Selection::default())
        });
        prop_assert_eq!(one, two);
    }

    /// Goal: with the events of a real kernel, preemptions and shares are right. Method: random runs of a
    /// kernel that keeps its own rules; preemptions are counted over its switches, shares one nanosecond
    /// after the other.
    #[test]
    fn sound_recordings(steps in proptest::collection::vec((0..4u8, 0..3u32, 0..5u32, 1..9u64), 1..60)) {
        let mut script = Script::new(&["a", "b", "c", "d", "e"], 3);
        script.pin(0, &[0]);
        script.pin(1, &[1, 2]);
        let mut where_ = [None; 5];
        let mut asleep = [false; 5];
        let mut on = [None; 3];
        let (mut time, mut preemptions) = (1, 0);
        for (step, cpu, thread, pause) in steps {
            time += pause;
            let (c, t) = (cpu as usize, thread as usize);
            let free = where_[t].is_none() && !asleep[t];
            match step {
                0 | 1 if free => {
                    preemptions += usize::from(on[c].is_some());
                    if let Some(old) = on[c].replace(thread) {
                        where_[old as usize] = None;
                    }
                    where_[t] = Some(cpu);
                    script.run(time, cpu, thread);
                }
                2 => if let Some(old) = on[c].take() {
                    where_[old as usize] = None;
                    asleep[old as usize] = true;
                    script.sleep(time, cpu, None);
                },
                3 if asleep[t] => {
                    asleep[t] = false;
                    script.wake(time, on[c], thread);
                }
                _ => {}
            }
        }
        let timeline = script.timeline(time + 10);
        prop_assert!(timeline.losses().is_empty(), "{:?}", timeline.losses());
        let tasks: Vec<Task> = timeline.threads().collect();
        let found: usize = tasks.iter().map(|&task| timeline.preemptions(task)).sum();
        prop_assert_eq!(found, preemptions);
        fits_together(&timeline);
        let selection = Selection { threads: Some(tasks), ..Selection::default() };
        for wait in explain(&timeline, &selection).waits {
            check(&wait);
            prop_assert_eq!(wait.kind, WaitKind::Sleep);
            for segment in wait.segments.iter().filter(|segment| !segment.by.is_empty()) {
                let thread = segment.thread.unwrap();
                let runnable = timeline.stays(thread).any(|stay| {
                    matches!(stay.state, State::Runnable(Since::Preempted | Since::Woken))
                        && stay.begin <= segment.begin
                        && segment.end <= stay.end
                });
                prop_assert!(runnable);
                // What ran on the CPU of its queue, if that is known, or else on all that it may use.
                let (allowed, _) = timeline.allowed(thread, segment.begin);
                let one = timeline.cpus().into_iter().map(|cpu| vec![cpu]);
                let fits = |cpus: Vec<Cpu>| {
                    let expected = one_by_one(&timeline, &cpus, segment.begin, segment.end);
                    segment.by.iter().all(|share| {
                        let range = expected.get(&share.who);
                        range.is_some_and(|(least, most)| (*least..=*most).contains(&share.ns.0))
                    })
                };
                prop_assert!(one.chain([allowed]).any(fits));
            }
        }
    }
}
