//! Parking simulated threads.
//!
//! A parker holds at most one token. `park` takes it or blocks until it comes, the deadline comes,
//! or (if the configuration asks for it) now and then returns for no reason.
//!
//! Invariant: `parked` names the thread between its decision to wait and its return, in the run it
//! is stamped with; a stamp of another run means nobody.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::panicking;

use event::Nanos;
use platform::Parker;

use super::ambient;
use super::machine::{Machine, die};
use super::report::On;
use super::state::Op;
use super::tag::Tag;

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
    pub(super) fn new() -> SimParker {
        SimParker {
            tag: Tag::new(),
            token: AtomicBool::new(false),
            parked: AtomicU64::new(0),
        }
    }

    /// AcqRel, partner: itself. Outside a run tokens may pass between OS threads.
    fn take_token(&self) -> bool {
        self.token.swap(false, Ordering::AcqRel)
    }

    /// The thread that is parked here in this run.
    fn parked(&self, machine: &Machine) -> Option<u32> {
        // Relaxed: only threads of one run look, and they share an OS thread.
        let parked = self.parked.load(Ordering::Relaxed);
        ((parked >> 32) as u32 == machine.run).then(|| parked as u32 - 1)
    }

    fn park_inside(&self, machine: &Machine, deadline: Nanos) {
        machine.step(Op::Park, Some(&self.tag));
        if self.take_token() {
            return;
        }
        if panicking() {
            if deadline == Nanos::MAX {
                die("a panicking thread parks for ever, and nobody can run to unpark it");
            }
            return;
        }
        if machine.shared.now() >= deadline {
            return machine.yielded();
        }
        if let Some(other) = self.parked(machine) {
            panic!(
                "two threads park on one parker: {other} and {}",
                machine.me()
            );
        }
        let me = u64::from(machine.run) << 32 | u64::from(machine.me() + 1);
        self.parked.store(me, Ordering::Relaxed);
        if machine.returns_spuriously() {
            machine.step(Op::Wake, Some(&self.tag));
        } else {
            let on = On::Parker {
                id: machine.id(&self.tag),
                made_at: self.tag.made_at(),
            };
            machine.block(on, None, deadline);
        }
        self.parked.store(0, Ordering::Relaxed);
        self.take_token();
    }

    fn unpark_inside(&self, machine: &Machine) -> bool {
        machine.step(Op::Unpark, Some(&self.tag));
        let had_token = self.token.swap(true, Ordering::AcqRel);
        match self.parked(machine) {
            Some(thread) if !had_token => {
                machine.wake_parked(thread);
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
        if ambient::with(|machine| self.park_inside(machine, deadline)).is_none() {
            let token = self.take_token();
            assert!(
                token || deadline != Nanos::MAX,
                "parked for ever outside a simulated thread"
            );
        }
    }

    fn unpark(&self) -> bool {
        ambient::with(|machine| self.unpark_inside(machine)).unwrap_or_else(|| {
            self.token.swap(true, Ordering::AcqRel);
            false
        })
    }
}
