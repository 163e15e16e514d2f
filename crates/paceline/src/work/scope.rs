//! Scopes: jobs that borrow, and that are all over when the scope is.
//!
//! A scope is a slot without a body that counts its jobs in `pending`. A job of a scope may depend on jobs
//! outside of it. A wait for the scope has to help these, too, so the scope names them among its own
//! predecessors (`Graph::needs`), although they do not count.
//! While the scope's closure runs a large
//! guard is part of the count, so that the count cannot reach zero. At the end the guard is replaced by the
//! number of jobs spawned. Until then the thread that opened the scope counts its own spawns in a plain word,
//! so a spawn costs no read-modify-write there. Ends of jobs are subtracted from the guard meanwhile. So that
//! word is added to the count before the ends could use up the guard.

use std::marker::PhantomData;
use std::panic::Location;

use platform::{Atomic, Ordering, Os, Platform};

use super::bodies::Once;
use super::context::Context;
use super::shared::Shared;
use crate::border::{UnwindGuard, UserValue, caught};
use crate::error::{ScheduleError, WaitError, or_panic};
use crate::graph::DROPPED;
use crate::queues::{Queue, THREAD_SLOTS_MAX};
use crate::store::{Label, Name, Slot, Ticket};

/// A region in which jobs may borrow from the stack; made by [`Context::scope`] or
/// [`JobSystem::scope`](crate::JobSystem::scope).
///
/// Jobs of the scope can spawn more jobs into it: they share the reference to it. The scope ends when the
/// last of them has ended.
///
/// There are two ways to make a job. [`spawn`](Scope::spawn) makes one without a name, at the least cost.
/// [`job`](Scope::job) begins the description of one that can do all that jobs outside of scopes can:
/// depend on others, have successors, a result, a loop, a place in the background.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let found = std::sync::atomic::AtomicUsize::new(0);
/// js.scope(|scope| {
///     scope.spawn(|_| {
///         scope.spawn(|_| _ = found.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
///     });
/// });
/// assert_eq!(found.into_inner(), 1);
/// ```
pub struct Scope<'scope, 'env: 'scope, P: Platform = Os> {
    pub(crate) shared: &'scope Shared<P>,
    pub(crate) jobs: ScopeJobs<P>,
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

/// The jobs of a scope, counted.
pub(crate) struct ScopeJobs<P: Platform> {
    /// The scope's own.
    job: Ticket,
    /// The thread slot that opened the scope. `spawns_left`: how many jobs the opener may spawn until it adds
    /// its spawns to the count; only the opener writes it.
    opener: u32,
    spawns_left: P::AtomicU32,
    /// Set by the opener when the closure has returned. From then on spawns are counted directly.
    closed: P::AtomicU32,
}

/// The part of an open scope's count that is not its jobs: more than [`UNCOUNTED_MAX`].
const GUARD: u32 = 2 * UNCOUNTED_MAX;

/// How many spawns of the opener are not yet counted, at most. (It is smaller where mistakes are looked for:
/// a program that runs for a second spawns more.)
const UNCOUNTED_MAX: u32 = match (cfg!(test), cfg!(debug_assertions)) {
    (true, _) => 20,
    (false, true) => 1 << 10,
    (false, false) => 1 << 29,
};

// The count holds, besides the guard: jobs that have not ended (fewer than 2^24, as many as tickets can
// name), ends that their threads have not subtracted yet (see `Graph::finished_in`), and spawns that were
// added.
const _: () = {
    let ended = THREAD_SLOTS_MAX as u64 * u16::MAX as u64;
    let most = GUARD as u64 + UNCOUNTED_MAX as u64 + Ticket::INDEX_END as u64 + ended;
    assert!(UNCOUNTED_MAX < GUARD && most < DROPPED as u64);
};

impl<P: Platform> Context<'_, P> {
    /// Calls `f` with a scope whose jobs may borrow values that outlive the call. Returns when `f` and all
    /// jobs spawned in the scope (also by its jobs) have ended.
    ///
    /// While it waits, this thread runs jobs of the scope, and it may block. The scope itself takes a slot of
    /// the job table, and allocates nothing unless the table has to grow.
    ///
    /// # Panics
    /// When `f` and all jobs of the scope have ended: with the panic of `f`, or else with the first panic of
    /// a job, or with the circle if jobs of the scope wait for what waits for the scope; those that have not
    /// started are dropped then. Before `f` is called: if the job table is full, or if there is no stack left
    /// for the jobs of a further scope and no other worker is free (see
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
        let graph = self.graph();
        let made = graph.make(&label, Slot::<P>::IS_SCOPE, self.current_job());
        let (job, slot) = or_panic(made.ok_or_else(|| graph.full()));
        // Release, partner: the CAS in `hold_back`: that the slot is another job's now.
        slot.pending.store(GUARD, Ordering::Release);
        let scope = Scope {
            shared: self.shared,
            jobs: ScopeJobs {
                job,
                opener: self.thread.index,
                spawns_left: P::AtomicU32::new(UNCOUNTED_MAX),
                closed: P::AtomicU32::new(0),
            },
            _scope: PhantomData,
            _env: PhantomData,
        };
        let guard = UnwindGuard::<P>::new("a scope whose jobs borrow");
        let result = caught(|| f(&scope));
        let spawned = scope.jobs.close();
        graph.release(job, GUARD - spawned, Queue::Own);
        graph.finish_todo(Queue::Own);
        // The jobs borrow from here: the scope is not left before they have ended.
        self.wait_for_borrowers(job, |cycle| self.give_up_jobs_of(job, &cycle));
        guard.disarm();
        self.shared.checks.scope_ended(job);
        match (result, graph.take_failure(job)) {
            (Ok(result), None) => result,
            (Ok(result), Some(error)) => {
                self.shared.panics.discard(UserValue::new(result));
                error.raise()
            }
            (Err(payload), error) => {
                if let Some(other) = error.and_then(WaitError::into_payload) {
                    let other = UserValue::new(other);
                    self.in_frame(Ticket::NONE, || self.shared.panics.discard(other));
                }
                payload.resume()
            }
        }
    }

    /// The scope can never end, because something that its jobs wait for waits for the scope. Those that
    /// have not started are dropped; the scope then raises the cycle.
    #[cold]
    fn give_up_jobs_of(&self, scope: Ticket, cycle: &[Label]) {
        let graph = self.graph();
        for (index, slot) in self.shared.graph.slots.iter() {
            // Acquire, partner: the Release stores of the state: the parent.
            let job = Ticket::new(index, slot.word(Ordering::Acquire).generation);
            if graph.parent_of(job) == Some(scope) {
                graph.give_up(job, cycle);
            }
        }
        graph.finish_todo(Queue::Own);
        self.publish(Queue::Own, false);
    }
}

impl<'scope, P: Platform> Scope<'scope, '_, P> {
    /// Spawns a job that ends before the scope does.
    ///
    /// It does not block. It wakes a worker if one is needed, and allocates only if the closure has more than
    /// 64 bytes or the job table has to grow. The job may start at once on a worker; this thread runs it at
    /// the earliest when it next waits.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut squares = [0, 1, 2, 3];
    /// js.scope(|scope| {
    ///     for number in &mut squares {
    ///         scope.spawn(|_| *number *= *number);
    ///     }
    /// });
    /// assert_eq!(squares, [0, 1, 4, 9]);
    /// ```
    ///
    /// # Panics
    /// Where [`try_spawn`](Scope::try_spawn) returns an error.
    #[inline]
    #[track_caller]
    pub fn spawn<F>(&'scope self, body: F)
    where
        F: FnOnce(&Context<'_, P>) + Send + 'scope,
    {
        or_panic(self.spawn_labelled("job", Location::caller(), body));
    }

    /// As [`spawn`](Scope::spawn), with a name and without the panic.
    ///
    /// # Errors
    /// If the job table is full, or if the calling thread cannot enter the job system; see [`ScheduleError`].
    /// The closure is then dropped without being called.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut sum = 0;
    /// js.scope(|scope| scope.try_spawn("sum", |_| sum = (1..=10).sum())).expect("there is room");
    /// assert_eq!(sum, 55);
    /// ```
    #[track_caller]
    pub fn try_spawn<F>(&'scope self, name: impl Into<Name>, body: F) -> Result<(), ScheduleError>
    where
        F: FnOnce(&Context<'_, P>) + Send + 'scope,
    {
        self.spawn_labelled(name.into().as_str(), Location::caller(), body)
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
        let kind = Slot::<P>::HAS_BODY | Slot::<P>::IS_ANONYMOUS | Slot::<P>::IN_SCOPE;
        let flags = kind | cx.own(|own| own.lane).0;
        let graph = cx.graph();
        let made = graph.make(&Label { name, site }, flags, self.jobs.job);
        let (job, slot) = made.ok_or_else(|| graph.full())?;
        self.jobs.count(&cx);
        // SAFETY: the table is the body's. Everything the body borrows outlives the scope, which does not end
        // before the job has.
        unsafe { slot.put_body(body, &Once::<P, F>::TABLE) };
        graph.make_ready(job, slot, Queue::Own);
        cx.publish(Queue::Own, false);
        Ok(())
    }
}

impl<P: Platform> ScopeJobs<P> {
    /// The scope itself, as the parent of its jobs.
    #[inline]
    pub(crate) fn parent(&self) -> Ticket {
        self.job
    }

    /// Counts a new job, which the scope waits for from now on.
    #[inline]
    pub(crate) fn count(&self, cx: &Context<'_, P>) {
        let alone = cx.thread.index == self.opener && self.closed.load(Ordering::Relaxed) == 0;
        if alone {
            let left = self.spawns_left.load(Ordering::Relaxed) - 1;
            self.spawns_left.store(left, Ordering::Relaxed);
            if left == 0 {
                self.add_spawned(cx.shared);
            }
        } else {
            // Relaxed: the spawner is a job of the scope or runs inside its closure. So the count is not
            // zero, and the spawner's own end comes after this.
            let pending = &cx.shared.slot(self.job).pending;
            pending.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Adds the opener's spawns to the count. Called by the opener.
    #[cold]
    fn add_spawned(&self, shared: &Shared<P>) {
        self.spawns_left.store(UNCOUNTED_MAX, Ordering::Relaxed);
        // Relaxed: the guard keeps the count above zero, and the guard's end comes after this.
        let pending = &shared.slot(self.job).pending;
        pending.fetch_add(UNCOUNTED_MAX, Ordering::Relaxed);
    }

    /// The closure has returned. Returns how many of the opener's spawns are not yet part of the count.
    fn close(&self) -> u32 {
        self.closed.store(1, Ordering::Relaxed);
        UNCOUNTED_MAX - self.spawns_left.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use crate::Builder;
    use platform::Os;

    use super::*;

    /// Goal: a scope ends after its last job, however many it has. Method: a guard for twenty spawns, and
    /// many times as many jobs, run at once or all together, or by a worker. The count is right all the time.
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
                    let pending = || {
                        js.enter(|cx| {
                            cx.shared
                                .slot(scope.jobs.job)
                                .pending
                                .load(Ordering::Relaxed)
                        })
                    };
                    assert!((GUARD - UNCOUNTED_MAX..DROPPED).contains(&pending()));
                    while workers == 0 && round % 2 == 0 && js.poll() {}
                }
            });
            assert_eq!(ran.load(Ordering::Relaxed), rounds * UNCOUNTED_MAX);
        }
    }
}
