//! Waits for futures in which the thread runs jobs.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use paceline::{Event, JobId, JobSystem};

/// How long a thread waits that can run nothing meanwhile.
const MOMENT: Duration = Duration::from_millis(1);

/// What a future rings when it may go on.
#[derive(Default)]
struct Bell(Mutex<BellState>);

#[derive(Default)]
enum BellState {
    #[default]
    Silent,
    /// It rang, and the driver has not looked since.
    Rung,
    /// The driver waits for this event.
    Awaited(Event),
}

impl Bell {
    fn state(&self) -> MutexGuard<'_, BellState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it rings, unless it has rung since the last look. Meanwhile the thread runs jobs.
    fn wait(&self, js: &JobSystem) {
        // An event is made outside of the lock: a thread that rings is not to wait for it.
        let Ok(event) = js.job("future").try_event() else {
            // The job table is full: this thread looks again and again.
            if !js.poll() {
                std::thread::yield_now();
            }
            return;
        };
        let id = JobId::from(&event);
        let mut state = self.state();
        match mem::replace(&mut *state, BellState::Silent) {
            BellState::Rung => {
                drop(state);
                event.complete();
            }
            BellState::Silent | BellState::Awaited(_) => {
                *state = BellState::Awaited(event);
                drop(state);
                await_event(js, id);
            }
        }
    }
}

/// Waits for a bell's event, or for a moment where that cannot be: the future is asked again.
fn await_event(js: &JobSystem, id: JobId) {
    // It panics where too little stack is left for other jobs. The caller cannot let that through: it would
    // leave a scope whose futures borrow.
    match catch_unwind(AssertUnwindSafe(|| js.try_wait(id))) {
        Ok(Ok(())) => {}
        Ok(Err(_)) => std::thread::yield_now(),
        Err(payload) => {
            mem::forget(payload);
            // This runs no jobs on this stack, and does not panic.
            let _ = js.wait_timeout(id, MOMENT);
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let before = mem::replace(&mut *self.state(), BellState::Rung);
        if let BellState::Awaited(event) = before {
            event.complete();
        }
    }
}

/// Polls the future until it is ready. Between polls the thread waits for a waker's call, as it waits for a
/// job: it runs others meanwhile.
pub(crate) fn drive<F: Future>(js: &JobSystem, future: F) -> F::Output {
    let mut future = pin!(future);
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut cx = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => bell.wait(js),
        }
    }
}
