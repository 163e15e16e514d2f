//! Threads that the program makes: it is given what a thread is to do, and calls that on one of its own.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use super::{Made, Os, OsThread, begins_as};
use crate::{SpawnError, ThreadSpec};

type Ended = Result<(), Box<dyn Any + Send>>;

/// What the handle and the thread share.
#[derive(Debug, Default)]
struct Life {
    state: Mutex<HostedState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct HostedState {
    /// The thread that runs it.
    thread: Option<ThreadId>,
    ended: Option<Ended>,
}

impl Life {
    fn update<R>(&self, change: impl FnOnce(&mut HostedState) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut state);
        self.changed.notify_all();
        result
    }

    fn end(&self, ended: Ended) {
        self.update(|state| {
            state.thread = None;
            state.ended.get_or_insert(ended);
        });
    }
}

/// The handle of such a thread.
#[derive(Debug)]
pub(super) struct Hosted(Arc<Life>);

impl Hosted {
    pub(super) fn join(self) -> Ended {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .0
            .changed
            .wait_while(state, |state| state.ended.is_none());
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.ended.take().unwrap_or(Ok(()))
    }

    pub(super) fn is_current(&self) -> bool {
        let here = thread::current().id();
        self.0.update(|state| state.thread == Some(here))
    }
}

/// What a thread is to do that the program makes. The program calls [`run`](HostedThread::run) on it. If it
/// drops the value instead, that counts as a thread that has ended at once.
pub struct HostedThread {
    name: String,
    stack_bytes: Option<usize>,
    body: Option<Box<dyn FnOnce() + Send>>,
    life: Arc<Life>,
}

impl HostedThread {
    /// The name that the thread was to have.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The size of the stack that was asked for, in bytes.
    pub fn stack_bytes(&self) -> Option<usize> {
        self.stack_bytes
    }

    /// Does on this thread what the thread is for, and returns when that is over.
    ///
    /// # Panics
    /// If what it does panics, as a thread ends by that. (A worker never does.)
    pub fn run(mut self) {
        let Some(body) = self.body.take() else { return };
        let here = thread::current().id();
        self.life.update(|state| state.thread = Some(here));
        let ended = catch_unwind(AssertUnwindSafe(body));
        let panicked = ended.is_err();
        self.life.end(ended);
        if panicked {
            resume_unwind(Box::new(
                "a hosted thread has panicked; who joins it gets the reason",
            ));
        }
    }
}

impl Drop for HostedThread {
    fn drop(&mut self) {
        drop(self.body.take());
        self.life.end(Ok(()));
    }
}

impl fmt::Debug for HostedThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostedThread")
            .field("name", &self.name)
            .field("stack_bytes", &self.stack_bytes)
            .finish_non_exhaustive()
    }
}

impl Os {
    /// As [`spawn`](crate::Platform::spawn), on a thread that `host` makes, now or later. The thread that
    /// joins it waits for the end of [`HostedThread::run`].
    ///
    /// ```
    /// use paceline_platform::{Os, Thread, ThreadSpec};
    /// let body = Box::new(|| println!("on a thread of the program's"));
    /// let hosted = Os.spawn_hosted(ThreadSpec::default(), body, |thread| {
    ///     std::thread::spawn(move || thread.run());
    ///     Ok(())
    /// });
    /// hosted.unwrap().join().unwrap();
    /// ```
    ///
    /// # Errors
    /// If `host` gives one.
    pub fn spawn_hosted(
        &self,
        spec: ThreadSpec,
        body: Box<dyn FnOnce() + Send>,
        host: impl FnOnce(HostedThread) -> Result<(), SpawnError>,
    ) -> Result<OsThread, SpawnError> {
        let life = Arc::new(Life::default());
        let body = begins_as(spec.mask, spec.slice, body);
        host(HostedThread {
            name: spec.name,
            stack_bytes: spec.stack_bytes,
            body: Some(Box::new(body)),
            life: Arc::clone(&life),
        })?;
        Ok(OsThread(Made::ByProgram(Hosted(life))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Thread;

    /// Goal: a join returns when the thread has ended, in whatever way. Method: one that runs, one that
    /// panics, one that is dropped, and a host that refuses.
    #[test]
    fn a_join_returns_at_the_end() {
        let spawn = |body: Box<dyn FnOnce() + Send>, runs: bool| {
            let host = move |thread: HostedThread| {
                if runs {
                    std::thread::spawn(move || thread.run());
                } else {
                    drop(thread);
                }
                Ok(())
            };
            Os.spawn_hosted(ThreadSpec::default(), body, host)
                .expect("the host takes it")
        };
        let (send, receive) = std::sync::mpsc::channel();
        let sends = send.clone();
        spawn(Box::new(move || _ = sends.send(1)), true)
            .join()
            .expect("it does not panic");
        assert_eq!(receive.try_recv(), Ok(1));
        let panics = Box::new(|| std::panic::resume_unwind(Box::new("on purpose")));
        assert!(spawn(panics, true).join().is_err());
        spawn(Box::new(move || _ = send.send(2)), false)
            .join()
            .expect("it never ran");
        assert!(receive.recv().is_err(), "what was not run is dropped");
        let text = "no more threads";
        let refuse = |_| Err(SpawnError::new(crate::RefusalKind::Exhausted, text));
        let refused = Os.spawn_hosted(ThreadSpec::default(), Box::new(|| ()), refuse);
        assert!(refused.is_err());
    }

    /// Goal: a thread knows its own handle. Method: it is asked on the thread, and beside it.
    #[test]
    fn a_thread_knows_its_handle() {
        let (give, given) = std::sync::mpsc::channel::<OsThread>();
        let (tell, told) = std::sync::mpsc::channel();
        let body = Box::new(move || {
            let own = given.recv().expect("it is sent");
            tell.send(own.is_current()).expect("it is awaited");
        });
        let host = |thread: HostedThread| {
            std::thread::spawn(move || thread.run());
            Ok(())
        };
        let thread = Os
            .spawn_hosted(ThreadSpec::default(), body, host)
            .expect("it starts");
        assert!(!thread.is_current());
        give.send(thread).expect("it waits for it");
        assert_eq!(told.recv(), Ok(true));
    }
}
