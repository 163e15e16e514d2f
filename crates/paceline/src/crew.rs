//! The worker threads: starting, retiring, spares, shutting down.
//!
//! Regular workers have the ordinals 0..target. Resizing changes the target: workers beyond it retire
//! at their next idle point, with their queues empty; missing ones are started on seats that were
//! left before, or on new ones. (What the target is, `live` says.) A *spare* is one more worker that exists
//! only while every other one is blocked inside a wait, so that ready work which nobody may run from inside
//! a wait still runs. There are at most [`SPARES_MAX`]; they leave as soon as a regular worker is free again.

use event::{EventKind, Nanos};
use platform::{Atomic, CpuSet, Lock, Ordering, Parker, Platform, Thread, ThreadSpec};

use crate::context::Context;
use crate::idle::Fenced;
use crate::job::Ticket;
use crate::place::PlacedThread;
use crate::seat::{Role, Seat, sit};
use crate::shared::Shared;
use crate::steer::Mask;

/// Most spare workers at a time: waits nested deeper than this across all workers are refused help
/// and depend on the blocked ones.
pub(crate) const SPARES_MAX: usize = 64;

/// Who works here.
pub(crate) struct Crew<P: Platform> {
    roster: P::Lock<Roster<P>>,
    /// Workers that have been started and not yet left, spares included.
    active: P::AtomicU32,
    /// The number of regular workers wanted.
    target: P::AtomicU32,
    stopping: P::AtomicU32,
    workers_max: usize,
    stack_bytes: Option<usize>,
    /// The slice that workers ask the kernel for.
    pub(crate) slice: Option<Nanos>,
}

/// One place for a worker: its seat, and its thread while it has one.
struct Post<P: Platform> {
    seat: u32,
    role: Role,
    thread: Option<P::Thread>,
    /// The thread has done its last here and is to be joined; until it has been.
    left: bool,
    /// The mask that its thread was given for its place.
    given: Option<CpuSet>,
}

impl<P: Platform> Post<P> {
    fn is_vacant(&self) -> bool {
        self.thread.is_none() && !self.left
    }
}

struct Roster<P: Platform> {
    posts: Vec<Post<P>>,
}

impl<P: Platform> Crew<P> {
    pub(crate) fn new(
        workers_max: usize,
        stack_bytes: Option<usize>,
        slice: Option<Nanos>,
    ) -> Crew<P> {
        Crew {
            roster: P::Lock::new(Roster { posts: Vec::new() }),
            active: P::AtomicU32::new(0),
            target: P::AtomicU32::new(0),
            stopping: P::AtomicU32::new(0),
            workers_max,
            stack_bytes,
            slice,
        }
    }

    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed) as usize
    }

    pub(crate) fn target(&self) -> usize {
        self.target.load(Ordering::Relaxed) as usize
    }

    /// So many regular workers are wanted; [`man_posts`](Shared::man_posts) sees to it.
    pub(crate) fn set_target(&self, target: usize) {
        debug_assert!(target <= self.workers_max);
        self.target.store(target as u32, Ordering::Relaxed);
    }

    pub(crate) fn workers_max(&self) -> usize {
        self.workers_max
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        // Acquire, partner: the Release store in `stop`.
        self.stopping.load(Ordering::Acquire) != 0
    }
}

impl<P: Platform> Shared<P> {
    /// Makes the regular workers as many as are wanted. Returns the first refusal of the system, after
    /// which fewer workers run.
    pub(crate) fn man_posts(&self) -> Result<(), platform::SpawnError> {
        let filled = loop {
            let (ended, filled) = self.crew.roster.with(|roster| {
                let ended = self.reap(roster, Role::Worker);
                let filled = match ended.is_empty() {
                    true => self.fill(roster),
                    false => Ok(()),
                };
                (ended, filled)
            });
            if ended.is_empty() {
                break filled;
            }
            self.bury(ended);
        };
        // Spinners look whether they are to leave.
        self.idle.bump();
        self.slow.idle.bump();
        filled
    }

    /// Starts the regular workers that are missing and tells those to leave who are too many.
    fn fill(&self, roster: &mut Roster<P>) -> Result<(), platform::SpawnError> {
        let target = self.crew.target();
        let places = self.live.places();
        let fast = places.iter().filter(|place| !place.is_slow).count();
        // Relaxed: a number. The thread that waits is one more.
        let fast_threads = &self.slow.fast_threads;
        fast_threads.store(fast as u32 + 1, Ordering::Relaxed);
        let regular = |post: &&mut Post<P>| post.role == Role::Worker;
        let mut ordinal = 0;
        for post in roster.posts.iter_mut().filter(regular) {
            let seat = self.seats.get(post.seat as usize);
            let wanted = ordinal < target;
            let place = places.get(ordinal).or(places.first());
            ordinal += 1;
            let mut flag = if wanted { 0 } else { Seat::<P>::RETIRES };
            if place.is_some_and(|place| place.is_slow) {
                flag |= Seat::<P>::IS_SLOW;
            }
            let was = seat.flag.load(Ordering::Relaxed);
            // Release, partner: the Acquire load in `must_stop`.
            seat.flag.store(flag, Ordering::Release);
            self.hold_to_place(seat, place, &mut post.given);
            if wanted && post.is_vacant() {
                self.start(seat, post)?;
            } else if flag != was || !wanted {
                seat.parker.unpark();
            }
        }
        while ordinal < target {
            self.add_post(roster, Role::Worker)?;
            ordinal += 1;
        }
        Ok(())
    }

    /// Threads that have left, to be joined outside the lock.
    fn reap(&self, roster: &mut Roster<P>, role: Role) -> Vec<(u32, P::Thread)> {
        let left = roster
            .posts
            .iter_mut()
            .filter(|post| post.left && post.role == role);
        left.filter_map(|post| Some((post.seat, post.thread.take()?)))
            .collect()
    }

    /// Joins what was reaped. Only then are the posts vacant: a seat has one thread at a time.
    fn bury(&self, ended: Vec<(u32, P::Thread)>) {
        for (seat, thread) in ended {
            join(thread);
            self.crew.roster.with(|roster| {
                let post = roster.posts.iter_mut().find(|post| post.seat == seat);
                post.expect("posts stay").left = false;
            });
        }
    }

    fn add_post(&self, roster: &mut Roster<P>, role: Role) -> Result<(), platform::SpawnError> {
        let seat = self
            .seats
            .add(&self.platform, role)
            .ok_or_else(|| platform::SpawnError("all seats are taken".into()))?;
        let mut post = Post {
            seat: seat.index,
            role,
            thread: None,
            left: false,
            given: None,
        };
        if role == Role::Worker {
            let regular = roster.posts.iter().filter(|post| post.role == role);
            let ordinal = regular.count();
            seat.ordinal.store(ordinal as u32, Ordering::Relaxed);
            let place = self.live.place(ordinal as u32);
            if place.is_some_and(|place| place.is_slow) {
                // Relaxed: its thread starts below.
                seat.flag.store(Seat::<P>::IS_SLOW, Ordering::Relaxed);
            }
        }
        let started = self.start(seat, &mut post);
        roster.posts.push(post);
        started
    }

    fn start(&self, seat: &Seat<P>, post: &mut Post<P>) -> Result<(), platform::SpawnError> {
        let index = seat.index as usize;
        let place = self.live.place(seat.ordinal.load(Ordering::Relaxed));
        self.hold_to_place(seat, place.as_ref(), &mut post.given);
        let name = match &self.hooks.name {
            Some(name) => name(index),
            None => format!("paceline {index}"),
        };
        let spec = ThreadSpec {
            name,
            stack_bytes: self.crew.stack_bytes,
            mask: post.given.as_ref().or(self.live.told_cpus()).cloned(),
            slice: self.crew.slice,
        };
        let shared = self
            .this
            .upgrade()
            .expect("the job system starts its own workers");
        self.crew.active.fetch_add(1, Ordering::Relaxed);
        let body = Box::new(move || shared.worker_main(index));
        match self.platform.spawn(spec, body) {
            Ok(thread) => post.thread = Some(thread),
            Err(error) => {
                self.crew.active.fetch_sub(1, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    }

    /// A worker thread from start to end.
    fn worker_main(&self, index: usize) {
        let seat = self.seats.get(index);
        sit(&self.platform, self.id.get(), seat, self.host());
        let is_named = self.steering.on || self.live.is_on || self.helping.is_asked;
        let _named = is_named.then(|| Named::new(self, seat));
        self.place_newcomer(seat);
        self.help_newcomer(seat);
        if let Some(hook) = &self.hooks.start {
            hook(index);
        }
        // SAFETY: the thread was started for this seat and just sat down on it; a post has one
        // thread at a time (the next is started only after this one was joined).
        let context = unsafe { Context::new(self, seat) };
        context.forget_usage();
        context.record_seated();
        loop {
            match context.is_to_be_slow() {
                true => context.slow_loop(),
                false => context.work_loop(),
            }
            if self.stays(&context) {
                continue;
            }
            // A publisher may have counted on this worker just before it left.
            self.pass_on(&context);
            if let Some(hook) = &self.hooks.stop {
                hook(index);
            }
            if self.has_left(&context) {
                return;
            }
            if let Some(hook) = &self.hooks.start {
                hook(index);
            }
        }
    }

    /// Whether a worker that came out of its loop is wanted again by now; if not, nobody counts on it
    /// any more when this returns.
    fn stays(&self, context: &Context<'_, P>) -> bool {
        self.crew.roster.with(|_| {
            let stays = !context.must_leave();
            if !stays {
                self.crew.active.fetch_sub(1, Ordering::Relaxed);
            }
            stays
        })
    }

    /// The last thing a worker does: its post can be filled again. False if it is wanted after all,
    /// because the number of workers was raised meanwhile.
    fn has_left(&self, context: &Context<'_, P>) -> bool {
        let seat = context.seat;
        self.crew.roster.with(|roster| {
            // Relaxed: only changed under this lock.
            let retires = seat.flag.load(Ordering::Relaxed) & Seat::<P>::RETIRES != 0;
            let retired = seat.role == Role::Spare || retires;
            if !retired && !self.crew.is_stopping() {
                self.crew.active.fetch_add(1, Ordering::Relaxed);
                return false;
            }
            let post = roster.posts.iter_mut().find(|post| post.seat == seat.index);
            post.expect("posts stay").left = true;
            true
        })
    }

    /// Calls `with` with the name of the thread that works on this seat, which does not end
    /// meanwhile. False if nobody does.
    pub(crate) fn with_worker_thread(
        &self,
        seat: &Seat<P>,
        with: impl FnOnce(u64) -> bool,
    ) -> bool {
        // Relaxed: a name that is not zero was written by a thread that is alive, because it is taken
        // back under this lock before the thread ends.
        self.crew
            .roster
            .with(|_| match seat.thread.load(Ordering::Relaxed) {
                0 => false,
                thread => with(thread),
            })
    }

    /// A worker has its name now: if its place has changed since it was started, it goes there.
    fn place_newcomer(&self, seat: &Seat<P>) {
        let places = self.live.places();
        if places.is_empty() {
            return;
        }
        self.crew.roster.with(|roster| {
            let post = roster.posts.iter().find(|post| post.seat == seat.index);
            if let Some(cpus) = post.and_then(|post| post.given.as_ref()) {
                // Refused: as for the mask that it was started with.
                let _ = self.platform.set_mask(self.platform.thread_id(), cpus);
            }
        });
    }

    /// The threads of all workers, and the masks of their places.
    pub(crate) fn placed_threads(&self) -> Vec<PlacedThread> {
        self.crew.roster.with(|roster| {
            let placed = roster.posts.iter().map(|post| {
                let seat = self.seats.get(post.seat as usize);
                // Relaxed: see `with_worker_thread`.
                PlacedThread {
                    thread: seat.thread.load(Ordering::Relaxed),
                    given: post.given.clone(),
                    is_steered: seat.mask.load(Ordering::Relaxed) == Mask::Steered as u32,
                }
            });
            placed.filter(|placed| placed.thread != 0).collect()
        })
    }

    /// Gets somebody else to work if there is any.
    fn pass_on(&self, context: &Context<'_, P>) {
        // SeqCst, partner: the publisher's fence (F in `idle`): it saw that this worker was going, or
        // we see its ticket.
        P::fence(Ordering::SeqCst);
        if self.has_work() {
            match self.idle.wake_one() {
                Some(seat) => context.wake_worker(seat),
                None => self.consider_spare(),
            }
        }
    }

    /// Whether more than one worker is not blocked in a wait: then a spare is one too many.
    pub(crate) fn has_free_worker(&self) -> bool {
        self.crew.active() > self.idle.load().blocked as usize + 1
    }

    /// If every worker is blocked in a wait while there is work: one more worker.
    #[cold]
    pub(crate) fn consider_spare(&self) {
        let active = self.crew.active();
        let blocked = self.idle.load().blocked as usize;
        if active == 0 || blocked < active || !self.has_work() || self.crew.is_stopping() {
            return;
        }
        let ended = self
            .crew
            .roster
            .with(|roster| self.reap(roster, Role::Spare));
        self.bury(ended);
        let seat = self.crew.roster.with(|roster| {
            if self.crew.active() != active || self.crew.is_stopping() {
                return None; // Somebody was faster.
            }
            let spares = roster
                .posts
                .iter()
                .filter(|post| post.role == Role::Spare)
                .count();
            let resting = |post: &&mut Post<P>| post.role == Role::Spare && post.is_vacant();
            let started = match roster.posts.iter_mut().find(resting) {
                Some(post) => {
                    let seat = self.seats.get(post.seat as usize);
                    self.start(seat, post).map(|()| post.seat)
                }
                None if spares < SPARES_MAX => self
                    .add_post(roster, Role::Spare)
                    .map(|()| roster.posts.last().expect("just added").seat),
                None => return None,
            };
            started.ok()
        });
        if let (Some(seat), Ok(context)) = (seat, self.context()) {
            context.seat.counters.spares.add(1);
            context.record(EventKind::Spare, Ticket::NONE, u64::from(seat));
        }
    }

    /// Tells all workers to leave and waits until they have.
    pub(crate) fn stop(&self) {
        self.signal_stop();
        let threads = self.crew.roster.with(|roster| {
            roster
                .posts
                .iter_mut()
                .filter_map(|post| post.thread.take())
                .collect::<Vec<_>>()
        });
        threads.into_iter().for_each(join);
    }

    /// Tells all workers to leave.
    pub(crate) fn signal_stop(&self) {
        // Release, partner: the Acquire load in `is_stopping`.
        self.crew.stopping.store(1, Ordering::Release);
        self.idle.bump();
        self.slow.idle.bump();
        for seat in self.seats.iter().filter(|seat| seat.role != Role::Guest) {
            seat.parker.unpark();
        }
    }
}

/// A worker thread whose seat has its name, for others to change its mask; until it ends, whichever
/// way.
struct Named<'a, P: Platform> {
    shared: &'a Shared<P>,
    seat: &'a Seat<P>,
}

impl<'a, P: Platform> Named<'a, P> {
    fn new(shared: &'a Shared<P>, seat: &'a Seat<P>) -> Named<'a, P> {
        // Relaxed: see `with_worker_thread`.
        seat.thread
            .store(shared.platform.thread_id(), Ordering::Relaxed);
        Named { shared, seat }
    }
}

impl<P: Platform> Drop for Named<'_, P> {
    fn drop(&mut self) {
        let roster = &self.shared.crew.roster;
        roster.with(|_| self.seat.thread.store(0, Ordering::Relaxed));
        self.shared.forget_helped(self.seat);
    }
}

/// A panic of a worker thread itself (not of a job) was a bug of ours or of a hook: pass it on.
fn join<T: Thread>(thread: T) {
    if let Err(payload) = thread.join()
        && !std::thread::panicking()
    {
        std::panic::resume_unwind(payload);
    }
}

impl<P: Platform> Context<'_, P> {
    /// This worker is about to rest inside a wait. The caller looks for work once more afterwards,
    /// then calls [`replace_blocked`](Context::replace_blocked).
    pub(crate) fn begin_block(&self) {
        if self.counts_when_blocked() {
            self.shared.idle.begin_block::<Fenced>();
        }
    }

    /// This worker found nothing it may run. If it was the last one, others' work needs a spare.
    pub(crate) fn replace_blocked(&self) {
        if self.seat.role != Role::Guest {
            self.shared.consider_spare();
        }
    }

    /// Guests are no workers, and slow workers count as blocked all the time.
    fn counts_when_blocked(&self) -> bool {
        self.seat.role != Role::Guest && !self.own(|own| own.is_slow)
    }

    /// It goes on.
    pub(crate) fn end_block(&self) {
        if self.counts_when_blocked() {
            self.shared.idle.end_block();
        }
    }
}
