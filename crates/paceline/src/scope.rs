//! Scopes: jobs that borrow, all over when the scope is.
//!
//! A scope is a slot without a body that counts its jobs in `pending`. While the scope's closure runs
//! a large guard is part of the count, so that it cannot reach zero; at the end the guard is replaced
//! by the number of jobs spawned. The thread that opened the scope counts its own spawns in a plain
//! word meanwhile: spawning costs no read-modify-write there.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

use event::Nanos;
use platform::{Atomic, Ordering, Platform};

use crate::context::{Context, Queue};
use crate::error::ScheduleError;
use crate::job::{Label, Once, Slot, Ticket};
use crate::shared::Shared;

/// A region in which jobs may borrow from the stack; made by `scope`.
pub struct Scope<'scope, 'env: 'scope, P: Platform> {
    shared: &'scope Shared<P>,
    job: Ticket,
    /// The seat that opened the scope, and how many jobs it has spawned: written by that thread only.
    opener: u32,
    spawned: P::AtomicU32,
    /// Set (by the opener) when the closure has returned: from then on spawns are counted directly.
    closed: P::AtomicU32,
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

/// What the count of an open scope holds besides its jobs: more than there can be jobs.
const GUARD: u32 = 1 << 30;

impl<P: Platform> Context<'_, P> {
    /// Calls `f` with a scope whose jobs may borrow what outlives the call; returns when `f` and all
    /// jobs spawned in the scope (also by its jobs) are through. This thread helps.
    ///
    /// # Panics
    /// When everything is through: with `f`'s panic, or else the first of a job's. Also if the job
    /// table is full.
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
        let slot = self.allocate_slot(label, 0, self.current_job());
        let (job, slot) = slot.unwrap_or_else(|| panic!("{}", self.full()));
        // Release, partner: the CAS in `hold_back`: that the slot is another job's now.
        slot.pending.store(GUARD, Ordering::Release);
        let scope = Scope {
            shared: self.shared,
            job,
            opener: self.seat.index,
            spawned: P::AtomicU32::new(0),
            closed: P::AtomicU32::new(0),
            _scope: PhantomData,
            _env: PhantomData,
        };
        let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
        scope.closed.store(1, Ordering::Relaxed);
        let spawned = scope.spawned.load(Ordering::Relaxed);
        self.release(job, GUARD - spawned, Queue::Own);
        self.finish_todo(Queue::Own);
        // The jobs borrow from here: the scope is not left before they are through.
        while !matches!(self.wait_until(job, Nanos::MAX), Ok(true)) {}
        match result {
            Ok(result) => {
                self.resume(self.shared.failures.verdict(job));
                result
            }
            Err(payload) => resume_unwind(payload),
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
            let spawned = self.spawned.load(Ordering::Relaxed);
            self.spawned.store(spawned + 1, Ordering::Relaxed);
        } else {
            // Relaxed: the spawner is a job of the scope or runs inside its closure, so the count
            // is not zero, and its own end comes after this.
            self.shared
                .slot(self.job)
                .pending
                .fetch_add(1, Ordering::Relaxed);
        }
    }
}
