//! Hooks and sinks that panic, wait, or call back.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};

use event::{Event, Sink};
use paceline::{JobId, JobSystem};

use super::{System, Trial, Verdict, check, fail, fine, refused};

/// Work as ever, and an end as ever.
fn works(js: System) -> Verdict {
    for _ in 0..100 {
        let job = js.job("job").run(|cx| cx.join(|_| 1, |_| 2));
        check(
            fine("wait", job.try_wait())? == (1, 2),
            "a result is another one",
        )?;
    }
    let ended = catch_unwind(AssertUnwindSafe(move || drop(js)));
    check(ended.is_ok(), "the drop of the job system panicked")
}

/// A name that panics, and one that no thread can have.
pub(super) fn name(trial: &Trial) -> Verdict {
    let builder = trial.builder().thread_name(|slot| match slot % 2 {
        0 => fail(),
        _ => "a\0name".into(),
    });
    works(trial.build(builder))
}

/// Threads whose hooks panic work all the same.
pub(super) fn start_and_stop(trial: &Trial) -> Verdict {
    let builder = trial.builder().on_thread_start(|_| fail());
    let js = trial.build(builder.on_thread_stop(|_| fail()));
    if trial.workers() > 0 {
        // Run by a worker: this thread waits without helping.
        let (ran, runs) = mpsc::channel();
        js.schedule(move |_| _ = ran.send(()));
        js.flush();
        fine("a job that nothing waits for", runs.recv())?;
    }
    works(js)
}

/// The hook for panics that nothing waits for panics itself.
pub(super) fn unwaited(trial: &Trial) -> Verdict {
    let heard = Arc::new(AtomicU64::new(0));
    let hook = Arc::clone(&heard);
    let builder = trial.builder().on_unwaited_panic(move |_| {
        hook.fetch_add(1, Ordering::SeqCst);
        fail();
    });
    let js = trial.build(builder);
    for _ in 0..10 {
        js.job("lost").schedule(|_| fail());
    }
    works(js)?;
    let heard = heard.load(Ordering::SeqCst);
    check(
        heard == 10,
        format!("the hook heard of {heard} panics, not of 10"),
    )
}

/// The hook waits for the job that it is told about.
pub(super) fn waits_for_its_job(trial: &Trial) -> Verdict {
    let known: Arc<OnceLock<(Arc<JobSystem>, JobId)>> = Arc::default();
    let (says, hears) = mpsc::channel();
    let (theirs, says) = (Arc::clone(&known), Mutex::new(says));
    let js = trial.build(trial.builder().on_unwaited_panic(move |_| {
        let (js, id) = theirs.get().expect("known before the gate opens");
        let told = js.try_wait(*id).map_err(|error| error.to_string());
        _ = says.lock().map(|says| says.send(told));
    }));
    let gate = js.event("gate");
    let id = js.job("bad").after(gate.id()).schedule(|_| fail());
    assert!(known.set((Arc::clone(&js), id)).is_ok(), "set once");
    gate.complete();
    js.flush();
    let told = fine("the hook", hears.recv())?;
    refused("a wait in the hook", told, &["bad", "panicked"])?;
    // The hook owns the job system, which owns the hook: it stays.
    Ok(())
}

/// Panics at each event, once it is armed.
struct Panicking(AtomicBool);

impl Sink for Panicking {
    fn record(&self, _: &Event) {
        if self.0.load(Ordering::SeqCst) {
            fail();
        }
    }
}

/// A sink that panics loses its events, and nothing else happens.
pub(super) fn sink_panics(trial: &Trial) -> Verdict {
    let sink = Arc::new(Panicking(AtomicBool::new(false)));
    let js = trial.build(trial.builder().sink(Arc::clone(&sink) as Arc<dyn Sink>));
    sink.0.store(true, Ordering::SeqCst);
    let mut values = [0; 20];
    js.scope(|scope| {
        for value in &mut values {
            scope.spawn(|_| *value = 1);
        }
    });
    check(
        values == [1; 20],
        "a scope was left before its jobs were through",
    )?;
    works(js)
}

/// Schedules a job from inside the sink, once on each thread.
#[derive(Default)]
struct Calling {
    js: Mutex<Option<std::sync::Weak<JobSystem>>>,
    calls: AtomicU64,
    accepted: AtomicU64,
}

thread_local! {
    static CALLS: Cell<bool> = const { Cell::new(false) };
}

impl Sink for Calling {
    fn record(&self, _: &Event) {
        if CALLS.replace(true) {
            return;
        }
        let js = self.js.lock().ok().and_then(|js| js.clone());
        match js.and_then(|js| js.upgrade()) {
            Some(js) => {
                self.calls.fetch_add(1, Ordering::SeqCst);
                let accepted = js.job("in a sink").try_schedule(|_| ()).is_ok();
                self.accepted
                    .fetch_add(u64::from(accepted), Ordering::SeqCst);
            }
            None => CALLS.set(false),
        }
    }
}

/// A sink that calls the job system while it records is refused.
pub(super) fn sink_calls(trial: &Trial) -> Verdict {
    let sink = Arc::new(Calling::default());
    let js = trial.build(trial.builder().sink(Arc::clone(&sink) as Arc<dyn Sink>));
    if let Ok(mut place) = sink.js.lock() {
        *place = Some(Arc::downgrade(&js));
    }
    works(js)?;
    let (calls, accepted) = (&sink.calls, &sink.accepted);
    check(
        calls.load(Ordering::SeqCst) > 0,
        "the sink was never called",
    )?;
    check(
        accepted.load(Ordering::SeqCst) == 0,
        "a job was scheduled from inside a sink, while the job system recorded",
    )
}
