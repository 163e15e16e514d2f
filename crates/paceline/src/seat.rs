//! Seats: what a thread needs to take part, whether it is ours or only passing through.
//!
//! Every worker has a seat for life. An outside thread is given one the first time it calls into the job
//! system and keeps it until the thread ends (or the job system does): it does not register, and scheduling
//! from the main thread costs what it costs from a worker. What a departed thread left in its queues can
//! still be stolen, and the next outside thread gets the seat. A thread that cannot keep one is lent a seat
//! for the length of a call (`entry`).
//!
//! Invariants
//! - A seat's `own` part is touched only by the thread that sits there; [`Context`](crate::Context)
//!   is the only way in, and cannot leave its thread.
//! - Seats are created once, in ascending order, and live as long as the job system.

use event::{Nanos, Why};
use platform::{Atomic, Lock, Ordering, Padded, Parker, Platform, SharedCell};

use crate::adapt::{Local, WakeReport, WorkerWords};
use crate::deque::Deque;
use crate::fork::ForkList;
use crate::job::{LabelCache, Ticket};
use crate::limits::VISITORS_MAX;
use crate::listen::Ears;
use crate::policy::SpinHabit;
use crate::range::Unshared;
use crate::record::Stamp;
use crate::slab::Cache;
use crate::stats::Counters;

/// Who sits on a seat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// A worker thread.
    Worker,
    /// A worker thread that only works while all others are blocked in waits.
    Spare,
    /// A thread of the program, as long as it uses the job system.
    Guest,
}

/// One thread's place in the job system.
pub(crate) struct Seat<P: Platform> {
    pub(crate) index: u32,
    pub(crate) role: Role,
    /// A guest's seat that is lent for the length of a call and never kept.
    is_for_visitors: bool,
    /// Tickets made by jobs that ran here, and by scopes opened here.
    pub(crate) deque: Deque<P>,
    /// Guests: tickets of jobs scheduled from outside any job. Taken one at a time, oldest first, so
    /// that they start in order.
    pub(crate) inbox: Option<Deque<P>>,
    pub(crate) parker: P::Parker,
    /// What the thread is waiting for, innermost wait; 0 if it is not inside a wait. Written by the
    /// owner, read by deadlock checks and wakers.
    pub(crate) waits_for: P::AtomicU64,
    /// How long that wait lasts at most: one that ends by itself is no part of a deadlock.
    pub(crate) waits_until: P::AtomicU64,
    /// When the last wake-up was sent here and from which CPU (+1; 0 unknown); written by the waker
    /// before it unparks, read by the owner after.
    pub(crate) woken_at: P::AtomicU64,
    pub(crate) woken_from: P::AtomicU32,
    /// What the rest of the job system may know of a worker.
    pub(crate) words: WorkerWords<P>,
    /// The CPU the thread was last seen on (+1; 0 unknown): for the order of stealing. Thieves read it again
    /// and again; what the owner writes at every job it helps with lies elsewhere.
    pub(crate) cpu: Padded<P::AtomicU32>,
    /// Guests: 1 while a thread sits here. Workers: [`Seat::RETIRES`], [`Seat::IS_SLOW`].
    pub(crate) flag: P::AtomicU32,
    pub(crate) counters: Padded<Counters<P>>,
    pub(crate) own: Padded<P::Cell<Own<P>>>,
}

/// The part of a seat only its owner touches.
pub(crate) struct Own<P: Platform> {
    pub(crate) slots: Cache,
    pub(crate) links: Cache,
    pub(crate) blocks: Cache,
    pub(crate) labels: LabelCache,
    /// Learned cost of an item of a range, or of a whole join tree, by label (picoseconds, 0
    /// unknown).
    pub(crate) costs: Vec<u64>,
    pub(crate) forks: ForkList<P>,
    /// The innermost job being run here.
    pub(crate) frame: *const Frame,
    /// Jobs of one scope that finished here and are not yet subtracted from its count.
    pub(crate) finished: Finished,
    /// Jobs published since the last time everybody who could help was told.
    pub(crate) unsignalled: u32,
    /// Tickets queued since the last time anything was announced.
    pub(crate) fresh: u32,
    pub(crate) tick: u32,
    pub(crate) random: u64,
    /// Body-less or cancelled jobs that became ready and have to be finished by this thread.
    pub(crate) todo: Vec<Ticket>,
    /// What this thread waits for, the innermost wait last.
    pub(crate) awaited: Vec<Ticket>,
    /// Where it has asked to be told.
    pub(crate) ears: Ears,
    /// Waits of this thread that have nothing to run, each inside of the one before.
    pub(crate) watches: u32,
    /// Waits with a deadline, one after the other, that ran nothing although no worker ran it either; see
    /// `wait/poll.rs`.
    pub(crate) vain_polls: u32,
    /// Below this address its stack is kept in reserve; see `wait/stack.rs`.
    pub(crate) stack_limit: usize,
    /// Scratch of the search for runnable ancestors.
    pub(crate) search: Vec<Ticket>,
    /// What it remembers of its machine.
    pub(crate) adapt: Local,
    /// What spinning has been good for: in search of work, and inside waits.
    pub(crate) search_habit: SpinHabit,
    pub(crate) wait_habit: SpinHabit,
    pub(crate) unshared: Unshared,
    /// Numbers the walks for runnable ancestors: a job marked with the current number has been
    /// visited.
    pub(crate) serial: u64,
    /// Marks of the innermost wait have this number or a later one.
    pub(crate) marks_from: u64,
    pub(crate) stamp: Stamp,
    /// The flag of the lane of the innermost job being run here: what it schedules is of that lane.
    pub(crate) lane: u32,
    /// This worker is in its loop as a slow one, and counts as blocked because of that.
    pub(crate) is_slow: bool,
    /// Slow workers: how many times as long as on a fast CPU something is believed to take, in sixteenths.
    pub(crate) slow_times_16: u32,
    /// Why the next job is claimed; see [`Why`].
    pub(crate) why: Why,
}

/// A running job, linked to the one that runs underneath it on the same thread.
pub(crate) struct Frame {
    pub(crate) job: Ticket,
    pub(crate) outer: *const Frame,
}

/// See [`Own::finished`].
#[derive(Clone, Copy)]
pub(crate) struct Finished {
    pub(crate) scope: Ticket,
    /// Not more than fit: then they are subtracted.
    pub(crate) count: u16,
}

impl<P: Platform> Seat<P> {
    /// Of a worker's `flag`: it is to leave at its next idle point.
    pub(crate) const RETIRES: u32 = 1;
    /// Of a worker's `flag`: it is a slow one from its next idle point on.
    pub(crate) const IS_SLOW: u32 = 1 << 1;
    /// Of a spare's `flag`: it rests until it is needed again.
    pub(crate) const RESTS: u32 = 1 << 2;
    /// Of a spare's `flag`: it is about to end, but can be had back until it has.
    pub(crate) const LEAVES: u32 = 1 << 3;

    fn new(platform: &P, index: u32, kind: SeatKind, queue: usize) -> Seat<P> {
        let SeatKind {
            role,
            is_for_visitors,
        } = kind;
        Seat {
            index,
            role,
            is_for_visitors,
            deque: Deque::new(queue),
            inbox: (role == Role::Guest).then(|| Deque::new(queue)),
            parker: platform.parker(),
            waits_for: P::AtomicU64::new(0),
            waits_until: P::AtomicU64::new(0),
            woken_at: P::AtomicU64::new(0),
            woken_from: P::AtomicU32::new(0),
            words: WorkerWords::new(),
            cpu: Padded(P::on_own_lines(|| P::AtomicU32::new(0))),
            flag: P::AtomicU32::new(0),
            counters: Padded(P::on_own_lines(Counters::new)),
            own: Padded(P::Cell::new(Own {
                slots: Cache::new(),
                links: Cache::new(),
                blocks: Cache::new(),
                awaited: Vec::new(),
                ears: Ears::new(),
                watches: 0,
                vain_polls: 0,
                stack_limit: 0,
                labels: LabelCache::new(),
                costs: Vec::new(),
                forks: ForkList::new(),
                frame: std::ptr::null(),
                finished: Finished {
                    scope: Ticket::NONE,
                    count: 0,
                },
                unsignalled: 0,
                fresh: 0,
                tick: 0,
                random: platform.seed() ^ (u64::from(index) << 32 | 1),
                todo: Vec::new(),
                search: Vec::new(),
                adapt: Local::new(),
                search_habit: SpinHabit::default(),
                wait_habit: SpinHabit::default(),
                unshared: Unshared::default(),
                serial: 0,
                marks_from: 0,
                stamp: Stamp::default(),
                lane: 0,
                is_slow: false,
                slow_times_16: 16,
                why: Why::Next,
            })),
        }
    }

    /// Whether a regular worker is to be here.
    pub(crate) fn is_wanted(&self) -> bool {
        // Relaxed: changed under the roster's lock, which the caller holds.
        self.flag.load(Ordering::Relaxed) & Seat::<P>::RETIRES == 0
    }

    /// Sends a wake-up that the sleeper can measure. Returns whether a system call was needed.
    pub(crate) fn wake(&self, platform: &P) -> bool {
        // Relaxed: published by the parker's own edge (unpark → park).
        self.woken_from.store(
            platform.current_cpu().map_or(0, |cpu| cpu + 1),
            Ordering::Relaxed,
        );
        self.woken_at.store(platform.now().0, Ordering::Relaxed);
        self.parker.unpark()
    }
}

/// What a seat is made for.
#[derive(Clone, Copy)]
struct SeatKind {
    role: Role,
    is_for_visitors: bool,
}

/// All seats. The array is made for the maximum; seats are added as threads need them.
pub(crate) struct Seats<P: Platform> {
    seats: Box<[P::Cell<*const Seat<P>>]>,
    count: P::AtomicU32,
    growth: P::Lock<()>,
    /// Capacity of each queue.
    queue: usize,
    guests_max: usize,
}

// SAFETY: seats are owned by the table, written once under the lock before `count` covers them, and
// reached by shared reference; what is inside a seat is either atomic or guarded by the rule that
// only its owner touches `own`.
unsafe impl<P: Platform> Sync for Seats<P> {}
// SAFETY: as above.
unsafe impl<P: Platform> Send for Seats<P> {}

impl<P: Platform> Seats<P> {
    /// Room for `limit` seats, at most `guests_max` of them for outside threads, with queues of
    /// `queue` tickets.
    pub(crate) fn new(limit: usize, guests_max: usize, queue: usize) -> Seats<P> {
        Seats {
            seats: (0..limit).map(|_| P::Cell::new(std::ptr::null())).collect(),
            count: P::AtomicU32::new(0),
            growth: P::Lock::new(()),
            queue,
            guests_max,
        }
    }

    /// How many outside threads can sit here at the same time.
    pub(crate) fn guests_max(&self) -> usize {
        self.guests_max
    }

    /// How many there can ever be.
    pub(crate) fn limit(&self) -> usize {
        self.seats.len()
    }

    /// The seats that exist.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // Acquire, partner: the Release store in `add`.
        self.count.load(Ordering::Acquire) as usize
    }

    /// The seat with this index. The caller has the index from something that happened after the seat was
    /// made: from `len`, from `add`, from what its thread published. (For others: [`find`](Seats::find).)
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &Seat<P> {
        // SAFETY: the pointer was written before the seat's index got to any other thread (see above), and it
        // never changes.
        unsafe { self.seats[index].with(|seat| &**seat) }
    }

    /// The seat with an index that was read from a word that orders nothing, such as a mark: `None` if its
    /// making is not visible here.
    #[inline]
    pub(crate) fn find(&self, index: usize) -> Option<&Seat<P>> {
        (index < self.len()).then(|| self.get(index))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Seat<P>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// A new seat for a thread of ours, or `None` if all exist already.
    pub(crate) fn add(&self, platform: &P, role: Role) -> Option<&Seat<P>> {
        let is_for_visitors = false;
        self.add_kind(
            platform,
            SeatKind {
                role,
                is_for_visitors,
            },
        )
    }

    fn add_kind(&self, platform: &P, kind: SeatKind) -> Option<&Seat<P>> {
        self.growth.with(|()| {
            let alike = |seat: &&Seat<P>| {
                seat.role == kind.role && seat.is_for_visitors == kind.is_for_visitors
            };
            let most = match (kind.role, kind.is_for_visitors) {
                (Role::Guest, false) => self.guests_max,
                (Role::Guest, true) => VISITORS_MAX,
                _ => usize::MAX,
            };
            if most < usize::MAX && self.iter().filter(alike).count() >= most {
                return None; // The rest is for others that may still come.
            }
            let index = self.count.load(Ordering::Relaxed);
            let place = self.seats.get(index as usize)?;
            let make = || Seat::new(platform, index, kind, self.queue);
            let seat = Box::into_raw(Box::new(P::on_own_lines(make)));
            // SAFETY: `count` does not cover this place yet and the lock keeps other writers out.
            unsafe { place.with_mut(|pointer| *pointer = seat) };
            // Release, partner: the Acquire load in `len`.
            self.count.store(index + 1, Ordering::Release);
            Some(self.get(index as usize))
        })
    }

    /// A guest's seat: one that was left, or a new one. The caller sits there from now on. A visitor gets one
    /// even if guests have taken all that they may have, as long as there are not too many visitors.
    pub(crate) fn take_guest(&self, platform: &P, visits: bool) -> Option<&Seat<P>> {
        let guest = |is_for_visitors| SeatKind {
            role: Role::Guest,
            is_for_visitors,
        };
        let usual = self.take_kind(platform, guest(false));
        usual.or_else(|| {
            visits
                .then(|| self.take_kind(platform, guest(true)))
                .flatten()
        })
    }

    fn take_kind(&self, platform: &P, kind: SeatKind) -> Option<&Seat<P>> {
        // Acquire, partner: the Release store in `leave`: what the last guest did to `own`.
        let take = |seat: &&Seat<P>| {
            seat.flag
                .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        };
        let fits = |seat: &&Seat<P>| {
            seat.role == kind.role && seat.is_for_visitors == kind.is_for_visitors
        };
        let left = self.iter().filter(fits).find(take);
        left.or_else(|| {
            let seat = self.add_kind(platform, kind)?;
            // Another guest may grab the new seat first; then ask again.
            match take(&seat) {
                true => Some(seat),
                false => self.take_kind(platform, kind),
            }
        })
    }

    /// The guest on this seat has ended.
    pub(crate) fn leave(&self, index: u32) {
        // Release, partner: the Acquire in `take_guest`.
        self.get(index as usize).flag.store(0, Ordering::Release);
    }
}

impl<P: Platform> Drop for Seats<P> {
    fn drop(&mut self) {
        for index in 0..self.len() {
            // SAFETY: `&mut self`: nobody uses the seat; the pointer is from `Box::into_raw` and
            // dropped once.
            unsafe {
                self.seats[index].with(|seat| drop(Box::from_raw((*seat).cast_mut())));
            }
        }
    }
}

impl<P: Platform> Seat<P> {
    /// When the last wake-up was sent here, if the worker has not started yet.
    pub(crate) fn signalled(&self) -> Option<Nanos> {
        let sent = self.woken_at.load(Ordering::Relaxed);
        (sent != 0).then_some(Nanos(sent))
    }

    /// After a park: what the wake-up was like, if one was sent since the last report.
    pub(crate) fn wake_report(&self, platform: &P) -> Option<WakeReport> {
        // Relaxed: only the owner resets it, and the waker's store came with the unpark.
        let sent = self.woken_at.load(Ordering::Relaxed);
        if sent == 0 {
            return None;
        }
        self.woken_at.store(0, Ordering::Relaxed);
        let waker_cpu = self.woken_from.load(Ordering::Relaxed).checked_sub(1);
        Some(WakeReport {
            latency: platform.now() - Nanos(sent),
            colocated: waker_cpu.is_some() && platform.current_cpu() == waker_cpu,
            waker_cpu,
        })
    }
}
