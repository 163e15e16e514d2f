//! The kernel's own objects for waiting, beside parkers: mutexes, queues of messages and semaphores. They are
//! for scenarios and for tests of policies; programs that also run on a real machine use the [`platform`]'s.
//!
//! ```
//! use paceline_sim::{Sim, SimConfig, sync::Queue};
//! use platform::{Platform, ThreadSpec};
//!
//! Sim::run(SimConfig::new(1), |sim| {
//!     let queue = Queue::new(&sim, 4);
//!     let theirs = queue.clone();
//!     sim.spawn(ThreadSpec::default(), Box::new(move || theirs.send(7))).unwrap();
//!     assert_eq!(queue.receive(), 7);
//! })
//! .expect_finished();
//! ```

use event::Nanos;

use crate::Sim;
use crate::kernel::Kernel;
use crate::report::On;
use crate::run::ambient;
use crate::run::engine::{Engine, Op};

fn inside<R>(f: impl FnOnce(&Engine) -> R) -> R {
    ambient::with(f).expect("only simulated threads use the simulated kernel's objects")
}

/// A mutex of the kernel.
#[derive(Clone, Debug)]
pub struct Mutex {
    number: u32,
}

impl Mutex {
    /// A free mutex. `inherits`: whether its holder runs with the attributes that its waiters lend it, if the
    /// policy supports that.
    ///
    /// # Panics
    /// Outside of a simulated thread; so do all methods.
    pub fn new(_: &Sim, inherits: bool) -> Mutex {
        let number = inside(|engine| engine.with_kernel(|kernel| kernel.new_mutex(inherits)));
        Mutex { number }
    }

    /// Takes it, waiting while another thread holds it.
    pub fn lock(&self) {
        inside(|engine| {
            engine.call(Op::Lock, None);
            while let Err(holder) = engine.with_kernel(|kernel| kernel.try_lock(self.number)) {
                let on = On::Mutex {
                    number: self.number,
                    held_by: holder.index(),
                };
                // The holder must not give the mutex back between the look and the wait.
                engine.say_waits_at_once(&[holder.index()]);
                engine.block(on, None, Nanos::MAX);
                engine.say_waits(&[]);
                if engine.with_kernel(|kernel| kernel.holds(self.number)) {
                    return;
                }
            }
        });
    }

    /// Gives it back.
    ///
    /// # Panics
    /// If the caller does not hold it.
    pub fn unlock(&self) {
        inside(|engine| {
            engine.call(Op::Lock, None);
            engine.with_kernel(|kernel| kernel.unlock(self.number));
        });
    }
}

/// A queue of messages, first in, first out.
#[derive(Clone, Debug)]
pub struct Queue {
    number: u32,
}

impl Queue {
    /// An empty queue for `capacity` messages.
    pub fn new(_: &Sim, capacity: usize) -> Queue {
        let number = inside(|engine| engine.with_kernel(|kernel| kernel.new_queue(capacity)));
        Queue { number }
    }

    /// Puts a message in, waiting for room.
    pub fn send(&self, message: u64) {
        inside(|engine| {
            pay_for_message(engine, Op::Unpark);
            while engine
                .with_kernel(|kernel| kernel.try_send(self.number, message))
                .is_err()
            {
                let number = self.number;
                engine.block(On::Queue { number }, None, Nanos::MAX);
            }
        });
    }

    /// Takes a message out, waiting for one.
    pub fn receive(&self) -> u64 {
        inside(|engine| {
            pay_for_message(engine, Op::Park);
            loop {
                match engine.with_kernel(|kernel| kernel.try_receive(self.number)) {
                    Some(message) => return message,
                    None => {
                        let number = self.number;
                        engine.block(On::Queue { number }, None, Nanos::MAX);
                    }
                }
            }
        })
    }
}

fn pay_for_message(engine: &Engine, op: Op) {
    engine.step(op, None, |kernel: &mut Kernel| {
        let cost = kernel.machine.kernel.message;
        kernel.spend(cost)
    });
}

/// A counting semaphore.
#[derive(Clone, Debug)]
pub struct Semaphore {
    number: u32,
}

impl Semaphore {
    /// A semaphore that stands at `count`.
    pub fn new(_: &Sim, count: u64) -> Semaphore {
        let number = inside(|engine| engine.with_kernel(|kernel| kernel.new_semaphore(count)));
        Semaphore { number }
    }

    /// Counts up, and wakes one waiting thread.
    pub fn post(&self) {
        inside(|engine| {
            engine.call(Op::Unpark, None);
            if let Some(waiter) = engine.with_kernel(|kernel| kernel.next_to_take(self.number)) {
                engine.pay_for_wake_within(waiter);
            }
            engine.with_kernel(|kernel| kernel.post(self.number));
        });
    }

    /// Counts down, waiting while it stands at zero.
    pub fn take(&self) {
        inside(|engine| {
            engine.call(Op::Park, None);
            while !engine.with_kernel(|kernel| kernel.try_take(self.number)) {
                let number = self.number;
                engine.block(On::Semaphore { number }, None, Nanos::MAX);
            }
        });
    }
}
