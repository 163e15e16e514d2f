//! Scopes: jobs that borrow, all over when the scope is.
//!
//! A scope is a slot without a body that counts its jobs in `pending`. While the scope's closure runs
//! a large guard is part of the count, so that it cannot reach zero; at the end the guard is replaced
//! by the number of jobs spawned. The thread that opened the scope counts its own spawns in a plain
//! word meanwhile: spawning costs no read-modify-write there. Ends are subtracted from the guard until then,
//! so that word is added to the count before it could use up the guard.

use std::marker::PhantomData;
use std::panic::Location;

use platform::{Atomic, Ordering, Platform};

use crate::border::Once;
use crate::border::{UnwindGuard, UserValue, caught};
use crate::context::{Context, Queue};
use crate::error::ScheduleError;
use crate::idle::SEATS_LIMIT;
use crate::job::{Label, Slot, Ticket};
use crate::shared::Shared;
use crate::shutdown::DROPPED;

/// A region in which jobs may borrow from the stack; made by `scope`.
pub struct Scope<'scope, 'env: 'scope, P: Platform> {
    shared: &'scope Shared<P>,
    job: Ticket,
    /// The seat that opened the scope, and how many jobs it may spawn until it adds them to the count:
    /// written by that thread only.
    opener: u32,
    spawns_left: P::AtomicU32,
    /// Set (by the opener) when the closure has returned: from then on spawns are counted directly.
    closed: P::AtomicU32,
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

/// What the count of an open scope holds besides its jobs: more than [`UNCOUNTED_MAX`].
const GUARD: u32 = 2 * UNCOUNTED_MAX;

/// How many spawns of the opener are in no count at most. (A smaller number where mistakes are looked for: a
/// program that runs for a second has more.)
const UNCOUNTED_MAX: u32 = match (cfg!(test), cfg!(debug_assertions)) {
    (true, _) => 20,
    (false, true) => 1 << 10,
    (false, false) => 1 << 29,
};

// In the count are, besides the guard: jobs that have not ended (fewer than 2^24, as many as tickets can
// name), ends that their threads have not subtracted yet (see `Context::finished_in`), and spawns that were
// added.
const _: () = {
    let ended = SEATS_LIMIT as u64 * u16::MAX as u64;
    let most = GUARD as u64 + UNCOUNTED_MAX as u64 + Ticket::INDEX_END as u64 + ended;
    assert!(UNCOUNTED_MAX < GUARD && most < DROPPED as u64);
};

impl<P: Platform> Context<'_, P> {
    /// Calls `f` with a scope whose jobs may borrow what outlives the call; returns when `f` and all
    /// jobs spawned in the scope (also by its jobs) are through. This thread helps.
    ///
    /// # Panics
    /// When everything is through: with `f`'s panic, or else the first of a job's. Also if the job
    /// table is full, or if there is no stack left for the jobs of a further scope and no worker (see
    /// [`JobSystem::wait`](crate::JobSystem::wait)).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut halves = [vec![1, 2], vec![3, 4]];
    /// js.scope(|s| {
    ///     for half in &mut halves {
    ///         s.spawn(move |_| half.iter_mut().for_each(|n| *n *= 10));
    ///     }
    /// });
    /// assert_eq!(halves.concat(), [10, 20, 30, 40]);
    /// ```
    #[track_caller]
    pub fn scope<'env, F, R>(&self, f: F) -> R
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env, P>) -> R,
    {
        let label = Label {
            name: "scope",
            site: Location::caller(),
        };
        self.check_stack();
        let slot = self.allocate_slot(label, 0, self.current_job());
        let (job, slot) = slot.unwrap_or_else(|| panic!("{}", self.full()));
        // Release, partner: the CAS in `hold_back`: that the slot is another job's now.
        slot.pending.store(GUARD, Ordering::Release);
        let scope = Scope {
            shared: self.shared,
            job,
            opener: self.seat.index,
            spawns_left: P::AtomicU32::new(UNCOUNTED_MAX),
            closed: P::AtomicU32::new(0),
            _scope: PhantomData,
            _env: PhantomData,
        };
        let guard = UnwindGuard::<P>::new("a scope whose jobs borrow");
        let result = caught(|| f(&scope));
        scope.closed.store(1, Ordering::Relaxed);
        let spawned = UNCOUNTED_MAX - scope.spawns_left.load(Ordering::Relaxed);
        self.release(job, GUARD - spawned, Queue::Own);
        self.finish_todo(Queue::Own);
        // The jobs borrow from here: the scope is not left before they are through.
        self.wait_for_borrowers(job);
        guard.disarm();
        match (result, self.shared.failures.take(job)) {
            (Ok(result), None) => result,
            (Ok(result), Some(failure)) => {
                self.shared.discard(UserValue::new(result));
                self.raise(failure)
            }
            (Err(payload), failure) => {
                failure
                    .into_iter()
                    .for_each(|failure| self.forget_failure(failure));
                payload.resume()
            }
        }
    }
}

impl<'scope, P: Platform> Scope<'scope, '_, P> {
    /// Spawns a job that ends before the scope does.
    ///
    /// # Panics
    /// Where [`try_spawn`](Scope::try_spawn) gives an error.
    #[inline]
    #[track_caller]
    pub fn spawn<F>(&'scope self, body: F)
    where
        F: FnOnce(&Context<'_, P>) + Send + 'scope,
    {
        self.spawn_labelled("job", Location::caller(), body)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// As [`spawn`](Scope::spawn), with a name.
    ///
    /// # Errors
    /// If the job table is full.
    #[track_caller]
    pub fn try_spawn<F>(&'scope self, name: &'static str, body: F) -> Result<(), ScheduleError>
    where
        F: FnOnce(&Context<'_, P>) + Send + 'scope,
    {
        self.spawn_labelled(name, Location::caller(), body)
    }

    #[inline]
    fn spawn_labelled<F>(
        &'scope self,
        name: &'static str,
        site: &'static Location<'static>,
        body: F,
    ) -> Result<(), ScheduleError>
    where
        F: FnOnce(&Context<'_, P>) + Send + 'scope,
    {
        let cx = self.shared.context()?;
        let flags = Slot::<P>::HAS_BODY | Slot::<P>::IS_ANONYMOUS | Slot::<P>::IN_SCOPE;
        let allocated = cx.allocate_slot(Label { name, site }, flags, self.job);
        let (job, slot) = allocated.ok_or_else(|| cx.full())?;
        self.count(&cx);
        // SAFETY: the table is the body's; what the body borrows outlives the scope, which does not
        // end before the job has.
        unsafe { cx.put_body(slot, body, &Once::<P, F>::TABLE) };
        cx.make_ready(job, slot, Queue::Own);
        cx.publish(Queue::Own, false);
        Ok(())
    }

    #[inline]
    fn count(&self, cx: &Context<'_, P>) {
        let alone = cx.seat.index == self.opener && self.closed.load(Ordering::Relaxed) == 0;
        if alone {
            let left = self.spawns_left.load(Ordering::Relaxed) - 1;
            self.spawns_left.store(left, Ordering::Relaxed);
            if left == 0 {
                self.add_spawned();
            }
        } else {
            // Relaxed: the spawner is a job of the scope or runs inside its closure, so the count
            // is not zero, and its own end comes after this.
            self.shared
                .slot(self.job)
                .pending
                .fetch_add(1, Ordering::Relaxed);
        }
    }
    /// Adds the opener's spawns to the count. Called by the opener.
    #[cold]
    fn add_spawned(&self) {
        self.spawns_left.store(UNCOUNTED_MAX, Ordering::Relaxed);
        // Relaxed: the guard keeps the count above zero, and its end comes after this.
        let pending = &self.shared.slot(self.job).pending;
        pending.fetch_add(UNCOUNTED_MAX, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use crate::Builder;
    use platform::Os;

    use super::*;

    /// Goal: a scope ends after its last job, however many it has. Method: a guard for twenty spawns, and
    /// many times as many, run at once or all together, or by a worker; the count is right all the time.
    #[test]
    fn a_scope_outlives_any_number_of_jobs() {
        let rounds = if cfg!(miri) { 3 } else { 250 };
        for workers in [0, 1] {
            let js = Builder::new()
                .workers(workers)
                .max_jobs(1 << 16)
                .build()
                .unwrap();
            let ran = <Os as platform::Memory>::AtomicU32::new(0);
            js.scope(|scope| {
                for round in 0..rounds {
                    for _ in 0..UNCOUNTED_MAX {
                        scope.spawn(|_| _ = ran.fetch_add(1, Ordering::Relaxed));
                    }
                    let pending =
                        || js.enter(|cx| cx.shared.slot(scope.job).pending.load(Ordering::Relaxed));
                    assert!((GUARD - UNCOUNTED_MAX..DROPPED).contains(&pending()));
                    while workers == 0 && round % 2 == 0 && js.poll() {}
                }
            });
            assert_eq!(ran.load(Ordering::Relaxed), rounds * UNCOUNTED_MAX);
        }
    }
}
