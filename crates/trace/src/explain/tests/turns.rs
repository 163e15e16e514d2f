//! Turns: what threads do from a wake-up until they have nothing to do.

use event::{Left, Nanos};

use crate::explain::{CauseKind, Selection, WaitKind, explain};
use crate::script::{Script, check};

const MS: u64 = 1_000_000;

/// What threads of these names do in a second that is mostly idle, on one CPU. Thread 0 is woken by an
/// interrupt and runs for 1 ms; it asks thread 1, which answers after 2 ms, and runs for 1 ms again. Thread 2
/// is woken meanwhile, and has to wait for its 2 ms of work. After half a second, thread 0 asks again; thread
/// 1 sleeps for 100 ms before it answers, which is more than to work.
fn idle_second(names: &[&str]) -> Script {
    let mut script = Script::new(names, 1);
    let switch = |script: &mut Script, time: u64, state, next| script.leave(time, 0, state, next);
    script.wake(10 * MS, None, 0);
    switch(&mut script, 10 * MS, Left::Runnable, Some(0));
    script.wake(11 * MS, Some(0), 1);
    switch(&mut script, 11 * MS, Left::Sleeping, Some(1));
    script.wake(12 * MS, None, 2);
    script.wake(13 * MS, Some(1), 0);
    switch(&mut script, 13 * MS, Left::Sleeping, Some(0));
    switch(&mut script, 14 * MS, Left::Sleeping, Some(2));
    switch(&mut script, 16 * MS, Left::Sleeping, None);
    script.wake(500 * MS, None, 0);
    switch(&mut script, 502 * MS, Left::Runnable, Some(0));
    script.wake(503 * MS, Some(0), 1);
    switch(&mut script, 503 * MS, Left::Sleeping, Some(1));
    switch(&mut script, 504 * MS, Left::Sleeping, None);
    script.wake(604 * MS, None, 1);
    switch(&mut script, 604 * MS, Left::Runnable, Some(1));
    script.wake(605 * MS, Some(1), 0);
    switch(&mut script, 605 * MS, Left::Sleeping, Some(0));
    switch(&mut script, 606 * MS, Left::Sleeping, None);
    script
}

/// The turns: thread, beginning and length in milliseconds.
fn turns(script: Script) -> Vec<(String, u64, u64)> {
    let timeline = script.timeline(1_000 * MS);
    let found = explain(&timeline, &Selection::default());
    let waits = found.waits.iter();
    let told = waits.map(|wait| {
        check(wait);
        assert_eq!((wait.kind, wait.kind.is_named()), (WaitKind::Turn, false));
        let name = timeline.name(wait.thread);
        (name, wait.begin.0 / MS, wait.length().0 / MS)
    });
    told.collect()
}

/// Goal: a turn goes on through a sleep that ends with the answer to what its thread asked, and through no
/// other; those that lost most come first; turns in which a thread always ran are none. Method: the second
/// above. In the first turn of thread 0 others ran for 2 ms; the second one is over when it sleeps, for its
/// answer takes a sleep of the one that is asked.
#[test]
fn turns_go_on_until_the_answer() {
    let turn = |name: &str, begin, length| (name.to_owned(), begin, length);
    assert_eq!(
        turns(idle_second(&["ui", "server", "other"])),
        [turn("ui", 10, 4), turn("other", 12, 4), turn("ui", 500, 3)]
    );
}

/// Goal: turns of apps come first, and the kernel's threads have none. Method: the same with other names.
#[test]
fn turns_of_apps_come_first() {
    let first = |names: &[&str]| turns(idle_second(names)).swap_remove(0).0;
    let mut script = idle_second(&["daemon", "server", "ndroid.launcher"]);
    script.recording.processes.clear();
    for thread in &mut script.recording.threads {
        thread.process = None;
    }
    assert_eq!(turns(script)[0].0, "ndroid.launcher");
    assert_eq!(first(&["kworker/0:1", "server", "other"]), "other");
}

/// Goal: an account of a turn has what the one that was asked did. Method: the first turn of the second
/// above.
#[test]
fn the_account_of_a_turn() {
    let timeline = idle_second(&["ui", "server", "other"]).timeline(1_000 * MS);
    let found = explain(&timeline, &Selection::default());
    let causes = found.waits[0].causes.iter();
    let causes: Vec<_> = causes
        .map(|cause| {
            let name = cause.thread.map(|task| timeline.name(task));
            (cause.kind, name.unwrap_or_default(), cause.ns)
        })
        .collect();
    let ran = |name: &str| (CauseKind::Running, name.to_owned(), Nanos(2 * MS));
    assert_eq!(causes, [ran("ui"), ran("server")]);
}
