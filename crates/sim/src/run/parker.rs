//! Parking simulated threads.
//!
//! A parker holds at most one token. `park` takes the token, or blocks until it or the deadline comes. If the
//! configuration asks for it, `park` now and then returns for no reason.
//!
//! Invariant: `parked` names the thread between its decision to wait and its return, in the run it is stamped
//! with; a stamp of another run means that no thread is parked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::panicking;

use event::{Nanos, Task};
use platform::Parker;

use super::ambient;
use super::engine::{Engine, Op, die};
use super::tag::Tag;
use crate::lines::Access;
use crate::report::On;

/// A token, and the simulated thread that waits for it.
#[derive(Debug)]
pub struct SimParker {
    tag: Tag,
    token: AtomicBool,
    /// Run (upper half) and thread + 1.
    parked: AtomicU64,
}

impl SimParker {
    #[track_caller]
    pub(crate) fn new() -> SimParker {
        SimParker {
            tag: Tag::new(),
            token: AtomicBool::new(false),
            parked: AtomicU64::new(0),
        }
    }

    /// AcqRel, partner: itself, and the swaps of `unpark`. Outside a run tokens may pass between OS threads.
    fn take_token(&self) -> bool {
        self.token.swap(false, Ordering::AcqRel)
    }

    /// The thread that is parked here in this run.
    fn parked(&self, engine: &Engine) -> Option<u32> {
        // Relaxed: only threads of one run look, and they share an OS thread.
        let parked = self.parked.load(Ordering::Relaxed);
        ((parked >> 32) as u32 == engine.run).then(|| parked as u32 - 1)
    }

    fn park_inside(&self, engine: &Engine, deadline: Nanos) {
        engine.access(Op::Park, &self.tag, Access::Modify);
        if self.take_token() {
            return;
        }
        if panicking() {
            if deadline == Nanos::MAX {
                die("a panicking thread parks for ever, and no other thread can run to unpark it");
            }
            return;
        }
        if engine.now() >= deadline {
            return engine.waited_in_vain();
        }
        if let Some(other) = self.parked(engine) {
            panic!(
                "two threads park on one parker: {other} and {}",
                engine.me().0
            );
        }
        let me = u64::from(engine.run) << 32 | u64::from(engine.me().0 + 1);
        self.parked.store(me, Ordering::Relaxed);
        if engine.returns_spuriously() {
            engine.access(Op::Wake, &self.tag, Access::Read);
        } else {
            engine.call(Op::Park, None);
            // Acquire, partner: the swap in `unpark_inside`.
            if self.token.load(Ordering::Acquire) {
                // The token came while the kernel was being entered, which looks once more.
                self.parked.store(0, Ordering::Relaxed);
                self.take_token();
                return;
            }
            let on = On::Parker {
                id: engine.id(&self.tag),
                made_at: self.tag.made_at(),
            };
            engine.block(on, None, deadline);
        }
        self.parked.store(0, Ordering::Relaxed);
        self.take_token();
    }

    fn unpark_inside(&self, engine: &Engine) -> bool {
        engine.access(Op::Unpark, &self.tag, Access::Modify);
        // AcqRel, partner: `take_token`, and other calls of `unpark`.
        let had_token = self.token.swap(true, Ordering::AcqRel);
        match self.parked(engine) {
            Some(thread) if !had_token => {
                engine.pay_for_wake(Task(thread));
                engine.wake_parked(Task(thread));
                true
            }
            _ => false,
        }
    }
}

impl Parker for SimParker {
    /// As the trait says.
    ///
    /// # Panics
    /// Outside a simulated thread, if it would block for ever; with two threads on one parker.
    fn park(&self, deadline: Nanos) {
        if ambient::with(|engine| self.park_inside(engine, deadline)).is_none() {
            let token = self.take_token();
            assert!(
                token || deadline != Nanos::MAX,
                "parked for ever outside a simulated thread"
            );
        }
    }

    fn unpark(&self) -> bool {
        ambient::with(|engine| self.unpark_inside(engine)).unwrap_or_else(|| {
            // AcqRel, partner: `take_token`.
            self.token.swap(true, Ordering::AcqRel);
            false
        })
    }
}
