//! A job for each time that a task may go on.
//!
//! A waker calls this, from anywhere, and a waker cannot fail. So a task for which the job table has no room
//! is kept, and a thread of its own asks again until there is.

use std::cell::Cell;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_task::Runnable;
use paceline::{JobSystem, Lane, ScheduleError};

use crate::blocked;

/// How long the thread waits before it asks again.
const AGAIN: Duration = Duration::from_millis(1);

/// The tasks that found no room, in their order.
static LEFT: Mutex<Left> = Mutex::new(Left {
    tasks: VecDeque::new(),
    has_thread: false,
});

struct Left {
    tasks: VecDeque<(Lane, Runnable)>,
    has_thread: bool,
}

/// Where the task comes whose job is refused.
enum Place {
    /// No job is being made: the task of a job that is dropped ends.
    Closed,
    /// In a call of [`try_schedule`].
    Open,
    /// The same, with the task. The thread never ends like this; without a destructor the place is there for
    /// wakers that are rung while it ends.
    Taken(ManuallyDrop<Runnable>),
}

thread_local! {
    static PLACE: Cell<Place> = const { Cell::new(Place::Closed) };
}

/// A task in a job. A job that is refused drops it, in the middle of the call that makes the job.
struct Held(Option<Runnable>);

impl Drop for Held {
    fn drop(&mut self) {
        let Some(task) = self.0.take() else { return };
        match PLACE.replace(Place::Closed) {
            Place::Open => PLACE.set(Place::Taken(ManuallyDrop::new(task))),
            before => {
                PLACE.set(before);
                // The job never runs. A task that is dropped wakes what waits for it, which may come here
                // again.
                drop(task);
            }
        }
    }
}

/// Has a job run the task for a while.
pub(crate) fn schedule(js: &'static JobSystem, lane: Lane, task: Runnable) {
    match try_schedule(js, lane, task) {
        Ok(()) => js.flush(),
        Err(task) => leave(js, lane, task),
    }
}

/// The task comes back if there is no room.
fn try_schedule(js: &JobSystem, lane: Lane, task: Runnable) -> Result<(), Runnable> {
    // What records events may ring wakers meanwhile, and so come here.
    let outer = PLACE.replace(Place::Open);
    let held = Held(Some(task));
    let made = js.job("bevy task").lane(lane).try_schedule(move |_| {
        let mut held = held;
        if let Some(task) = held.0.take() {
            blocked::run(task);
        }
    });
    let refused = match PLACE.replace(outer) {
        Place::Taken(task) => Some(ManuallyDrop::into_inner(task)),
        Place::Open | Place::Closed => None,
    };
    match made {
        // There will be no job system for it. It is cancelled, as those are that wait for workers then.
        Ok(_) | Err(ScheduleError::Forked | ScheduleError::ShutDown) => Ok(()),
        // The table is full, or this thread cannot make jobs.
        Err(_) => refused.map_or(Ok(()), Err),
    }
}

fn left() -> MutexGuard<'static, Left> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn leave(js: &'static JobSystem, lane: Lane, task: Runnable) {
    let mut left = left();
    left.tasks.push_back((lane, task));
    if !left.has_thread {
        let thread = std::thread::Builder::new().name("tasks left".to_owned());
        // If there can be no thread now, the next task that is left asks for one.
        left.has_thread = thread.spawn(move || ask_again(js)).is_ok();
    }
}

/// What the thread does: ends when no task is left.
fn ask_again(js: &'static JobSystem) {
    loop {
        let mut left = left();
        let Some((lane, task)) = left.tasks.pop_front() else {
            left.has_thread = false;
            return;
        };
        drop(left);
        match try_schedule(js, lane, task) {
            Ok(()) => js.flush(),
            Err(task) => {
                self::left().tasks.push_front((lane, task));
                std::thread::sleep(AGAIN);
            }
        }
    }
}
