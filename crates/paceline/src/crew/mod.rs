//! The worker threads: starting, retiring, shutting down. Their life is in `life`, spares are in `spares`.
//!
//! Regular workers have the ordinals 0..target. Resizing changes the target: workers beyond it retire
//! at their next idle point, with their queues empty; missing ones are started on seats that were
//! left before, or on new ones. (What the target is, `live` says.)
//!
//! Invariants
//! - A seat has one thread at a time: a post is vacant only after its last thread was joined.
//! - No thread is started once a thread joins the workers. Both are decided under the roster's lock.
//! - No thread joins itself, and no code of the program's is called under the lock.

mod adapted;
mod life;
mod spares;

use event::Nanos;
use platform::{Atomic, CpuSet, Lock, Omission, Ordering, Parker, Platform, Thread, ThreadSpec};

use crate::seat::{Role, Seat};
use crate::shared::Shared;

/// The workers.
pub(crate) struct Crew<P: Platform> {
    roster: P::Lock<Roster<P>>,
    /// Workers that have been started and not yet left, spares included; those that rest have left.
    active: P::AtomicU32,
    /// The number of regular workers wanted.
    target: P::AtomicU32,
    stopping: P::AtomicU32,
    workers_max: usize,
    spares_max: usize,
    /// 1 from the moment at which a spare was needed and none could be had until one is.
    is_stuck: P::AtomicU32,
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
        spares_max: usize,
        stack_bytes: Option<usize>,
        slice: Option<Nanos>,
    ) -> Crew<P> {
        Crew {
            roster: P::Lock::new(Roster { posts: Vec::new() }),
            active: P::AtomicU32::new(0),
            target: P::AtomicU32::new(0),
            stopping: P::AtomicU32::new(0),
            workers_max,
            spares_max,
            is_stuck: P::AtomicU32::new(0),
            stack_bytes,
            slice,
        }
    }

    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed) as usize
    }

    /// For models, whose own threads are the workers.
    #[cfg(all(test, not(any(miri, paceline_tsan))))]
    pub(crate) fn pretend_active(&self, workers: usize) {
        self.active.store(workers as u32, Ordering::Relaxed);
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
                let ended = roster.reap(Role::Worker);
                let filled = match ended.is_empty() {
                    true => self.fill(roster),
                    false => Ok(Vec::new()),
                };
                (ended, filled)
            });
            if ended.is_empty() {
                break filled;
            }
            self.bury(ended);
        };
        let started = filled.and_then(|vacant| {
            let mut vacant = vacant.into_iter();
            let is_wanted = |seat: &Seat<P>| !self.has_begun_to_end() && seat.is_wanted();
            vacant.try_for_each(|seat| self.start(seat, is_wanted).map(|_| ()))
        });
        // Spinners look whether they are to leave.
        self.idle.bump();
        self.slow.idle.bump();
        started
    }

    /// Whether no worker may be started any more. Asked under the roster's lock.
    fn has_begun_to_end(&self) -> bool {
        P::OMITS != Some(Omission::LookBeforeStarting) && self.crew.is_stopping()
    }

    /// Makes room for the regular workers that are wanted, and tells those to leave that are too many. The
    /// seats on which a worker is missing.
    fn fill(&self, roster: &mut Roster<P>) -> Result<Vec<u32>, platform::SpawnError> {
        if self.has_begun_to_end() {
            return Ok(Vec::new()); // Posts whose threads are being joined look vacant.
        }
        let target = self.crew.target();
        let mut fast = 0;
        let regular = |post: &&mut Post<P>| post.role == Role::Worker;
        let mut vacant = Vec::new();
        let mut ordinal = 0;
        for post in roster.posts.iter_mut().filter(regular) {
            let seat = self.seats.get(post.seat as usize);
            let wanted = ordinal < target;
            ordinal += 1;
            let placed = self.adapt.hold_to_place(self, &seat.words, &mut post.given);
            fast += u32::from(wanted && placed.is_slow == Some(false));
            let mut flag = if wanted { 0 } else { Seat::<P>::RETIRES };
            if placed.is_slow == Some(true) {
                flag |= Seat::<P>::IS_SLOW;
            }
            let was = seat.flag.load(Ordering::Relaxed);
            // Release, partner: the Acquire load in `must_stop`.
            seat.flag.store(flag, Ordering::Release);
            if wanted && post.is_vacant() {
                vacant.push(post.seat);
            } else if flag != was || !wanted {
                seat.parker.unpark();
            }
        }
        while ordinal < target {
            let seat = self.add_post(roster, Role::Worker)?;
            let flag = self.seats.get(seat as usize).flag.load(Ordering::Relaxed);
            fast += u32::from(flag & Seat::<P>::IS_SLOW == 0);
            vacant.push(seat);
            ordinal += 1;
        }
        // Relaxed: a number. The thread that waits is one more.
        self.slow.fast_threads.store(fast + 1, Ordering::Relaxed);
        Ok(vacant)
    }

    /// Joins what was reaped. Only then are the posts vacant: a seat has one thread at a time.
    fn bury(&self, ended: Vec<(u32, P::Thread)>) {
        for (seat, thread) in ended {
            join(thread);
            self.crew
                .roster
                .with(|roster| roster.post(seat).left = false);
        }
    }

    /// A vacant post for one more worker.
    fn add_post(&self, roster: &mut Roster<P>, role: Role) -> Result<u32, platform::SpawnError> {
        let seat = self
            .seats
            .add(&self.platform, role)
            .ok_or_else(|| platform::SpawnError("all seats are taken".into()))?;
        self.make_room_for(seat);
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
            seat.words.set_ordinal(ordinal as u32);
            let placed = self.adapt.hold_to_place(self, &seat.words, &mut post.given);
            if placed.is_slow == Some(true) {
                // Relaxed: its thread is started later, under this lock.
                seat.flag.store(Seat::<P>::IS_SLOW, Ordering::Relaxed);
            }
        }
        roster.posts.push(post);
        Ok(seat.index)
    }

    /// Starts a thread on a vacant post, if it `is_wanted` there still. False if not, or if another thread
    /// was faster.
    fn start(
        &self,
        index: u32,
        is_wanted: impl FnOnce(&Seat<P>) -> bool,
    ) -> Result<bool, platform::SpawnError> {
        let name = self.thread_name(index as usize);
        self.crew.roster.with(|roster| {
            let seat = self.seats.get(index as usize);
            let post = roster.post(index);
            if !post.is_vacant() || !is_wanted(seat) {
                return Ok(false);
            }
            self.spawn_worker(seat, post, name).map(|()| true)
        })
    }

    fn spawn_worker(
        &self,
        seat: &Seat<P>,
        post: &mut Post<P>,
        name: String,
    ) -> Result<(), platform::SpawnError> {
        let index = seat.index as usize;
        let placed = self.adapt.hold_to_place(self, &seat.words, &mut post.given);
        let spec = ThreadSpec {
            name,
            stack_bytes: self.crew.stack_bytes,
            mask: placed.mask,
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

    /// Tells all workers to leave and waits until they have.
    pub(crate) fn stop(&self) {
        self.signal_stop();
        let threads = self.crew.roster.with(|roster| {
            let threads = roster.posts.iter_mut().map(|post| post.thread.take());
            threads.flatten().collect::<Vec<_>>()
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

impl<P: Platform> Roster<P> {
    /// The post with this seat.
    fn post(&mut self, seat: u32) -> &mut Post<P> {
        let post = self.posts.iter_mut().find(|post| post.seat == seat);
        post.expect("posts stay")
    }

    /// Threads that have left, to be joined outside the lock.
    fn reap(&mut self, role: Role) -> Vec<(u32, P::Thread)> {
        let posts = self.posts.iter_mut();
        let left = posts.filter(|post| post.left && post.role == role);
        left.filter_map(|post| Some((post.seat, post.thread.take()?)))
            .collect()
    }
}

/// Waits for the end of a worker thread, unless it is the calling one: that may be so while its thread-locals
/// are dropped, one of which was the job system's last owner.
fn join<T: Thread>(thread: T) {
    if thread.is_current() {
        return;
    }
    // Nothing of the program's unwinds out of a worker. What does is the platform's: a model that has failed.
    if let Err(payload) = thread.join()
        && !std::thread::panicking()
    {
        std::panic::resume_unwind(payload);
    }
}
