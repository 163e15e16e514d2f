//! Waiting for a simulated thread to end.
//!
//! Invariant: `ended` is set once, after the thread's last step; the payload is there from then on
//! until it is taken.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::panicking;

use event::Nanos;
use platform::Thread;

use super::ambient;
use super::engine::{Engine, Op, die};
use crate::report::On;

type Payload = Box<dyn Any + Send>;

/// The result that a thread leaves for `join`.
#[derive(Debug, Default)]
pub(crate) struct Joint {
    ended: AtomicBool,
    payload: Mutex<Option<Payload>>,
}

impl Joint {
    pub(crate) fn end(&self, result: Result<(), Payload>) {
        *self.payload.lock().unwrap_or_else(PoisonError::into_inner) = result.err();
        // Release, partner: the Acquire load in `has_ended`; handles may leave the run and be
        // joined on another OS thread.
        self.ended.store(true, Ordering::Release);
    }

    fn has_ended(&self) -> bool {
        // Acquire, partner: the Release store in `end`.
        self.ended.load(Ordering::Acquire)
    }
}

/// A started simulated thread.
#[derive(Debug)]
pub struct SimThread {
    number: usize,
    run: u32,
    joint: Arc<Joint>,
}

impl SimThread {
    pub(crate) fn new(number: usize, run: u32, joint: Arc<Joint>) -> SimThread {
        SimThread { number, run, joint }
    }

    /// The thread's number: spawn order, the first one is 0.
    pub fn number(&self) -> usize {
        self.number
    }

    fn wait(&self, engine: &Engine) {
        engine.call(Op::Join, None);
        if self.joint.has_ended() || engine.run != self.run {
            return;
        }
        if panicking() {
            die("a panicking thread joins one that has not ended, which can then never run");
        }
        engine.block(
            On::Join {
                thread: self.number,
            },
            None,
            Nanos::MAX,
        );
    }
}

impl Thread for SimThread {
    /// As the trait says; in addition an error if the thread can never end because its run is over.
    fn join(self) -> Result<(), Payload> {
        ambient::with(|engine| self.wait(engine));
        if !self.joint.has_ended() {
            return Err(Box::new(format!(
                "simulated thread {} was left behind by a run that was stopped",
                self.number
            )));
        }
        let mut payload = self
            .joint
            .payload
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        payload.take().map_or(Ok(()), Err)
    }

    fn is_current(&self) -> bool {
        let is_me = |engine: &Engine| engine.run == self.run && engine.me_is(self.number);
        ambient::with(is_me).unwrap_or(false)
    }
}
