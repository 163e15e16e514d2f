//! Jobs that one thread of the program alone may run.
//!
//! Windows, graphics contexts and much else belong to one thread, often the main one. A job that is pinned to
//! a thread says so in its flags. When nothing else holds it back it does not become ready, as other jobs do:
//! it is *held for its thread*. That is, it goes on waiting, held back by one, as a future does that is
//! pending, and it stands in a list of that thread. So no other thread can claim it. The thread comes for it
//! in a wait, in calls that run ready jobs, or when the program tells it to.
//!
//! A wait outside of all jobs runs whatever stands in the list: no other thread ever would. A wait in the
//! middle of a job must not. A job on top of it could wait for the one underneath, which could end otherwise.
//! So it runs only what it needs ([`needed`]), and looks for that before it blocks.
//!
//! ```text
//! any thread                                   the pinned thread
//! H  holds the job for the thread
//! C  puts it into the list, and counts it      L  looks at the count
//! U  ends the thread's spinning, unparks it    P  parks
//! ```
//!
//! If L does not see C, then U comes after L, and P finds the token of the unpark, or the spinning ends. The
//! threads that C finds with jobs in their lists are unparked all, since what they need may have changed.
//!
//! The thread may leave before a job of its comes to be ready, or in the same moment. Such a job gets a token
//! that was cancelled before, and becomes ready for all: the thread that claims it calls it off.
//!
//! As tokens, all this is behind a trait object, which is made for the first thread that jobs are pinned to.
//! `models/pinned.rs` has it under loom, with U left out, and with what `needed` asks for.

mod needed;

use std::collections::VecDeque;

use platform::{Atomic, Lock, Omission, Ordering, Platform};

use super::context::Context;
use super::shared::{PinnedJobs, ReadyHook, Shared};
use crate::border::caught;
use crate::graph::Driver;
use crate::queues::Queue;
use crate::store::{CancelToken, LaneFlags, Map, Slot, Ticket};

/// See the module.
struct PinTable<P: Platform> {
    lists: P::Lock<Pins>,
    /// For each thread slot: how many jobs that are pinned to its thread are ready.
    counts: Box<[P::AtomicU64]>,
}

/// The threads, by their numbers, and the jobs that are not over.
#[derive(Default)]
struct Pins {
    threads: Map<u32, PinnedTo>,
    of_job: Map<Ticket, u32>,
    /// The last number that was given.
    last: u32,
}

/// A thread that jobs are pinned to.
struct PinnedTo {
    number: u32,
    /// Its thread slot.
    thread: u32,
    /// How many callers have it take jobs.
    callers: u32,
    /// Its jobs that may run.
    ready: VecDeque<Ticket>,
    /// To be called whenever there is one more.
    hook: Option<ReadyHook>,
}

impl PinnedTo {
    /// Takes the job that is to run next: the one that has been ready longest. `lane`: where lanes are in
    /// use, the lane of a job; of the most urgent ones, then.
    fn pop(&mut self, lane: Option<&dyn Fn(Ticket) -> LaneFlags>) -> Option<Ticket> {
        let Some(lane) = lane else {
            return self.ready.pop_front();
        };
        let most = self.ready.iter().map(|&job| lane(job).urgency()).max()?;
        let first = self
            .ready
            .iter()
            .position(|&job| lane(job).urgency() == most);
        self.ready.remove(first?)
    }

    /// Takes this job, if it is there.
    fn pick(&mut self, job: Ticket) -> Option<Ticket> {
        let place = self.ready.iter().position(|&ready| ready == job);
        self.ready.remove(place?)
    }
}

impl Pins {
    /// The list of the thread on this thread slot.
    fn on(&mut self, thread: u32) -> Option<&mut PinnedTo> {
        let mut lists = self.threads.values_mut();
        lists.find(|list| list.thread == thread)
    }
}

impl<P: Platform> PinnedJobs<P> for PinTable<P> {
    fn arrive(&self, thread: u32) -> u32 {
        self.lists.with(|pins| {
            if let Some(list) = pins.on(thread) {
                list.callers += 1;
                return list.number;
            }
            // Zero is no number, and nobody has four thousand million of them at a time.
            loop {
                pins.last = pins.last.wrapping_add(1);
                if pins.last != 0 && !pins.threads.contains_key(&pins.last) {
                    break;
                }
            }
            let list = PinnedTo {
                number: pins.last,
                thread,
                callers: 1,
                ready: VecDeque::new(),
                hook: None,
            };
            pins.threads.insert(pins.last, list);
            pins.last
        })
    }

    fn call(&self, pin: u32, hook: ReadyHook) {
        let replaced = self.lists.with(|pins| {
            let list = pins.threads.get_mut(&pin);
            list.and_then(|list| list.hook.replace(hook))
        });
        drop(replaced); // The lock is free again: a drop of the program's may call anything.
    }

    fn leave(&self, cx: &Context<'_, P>, is_ending: bool) {
        let left = self.lists.with(|pins| {
            let list = pins.on(cx.thread.index)?;
            list.callers -= 1;
            if !is_ending && list.callers > 0 {
                return None;
            }
            let number = list.number;
            self.set_count(cx.thread.index, 0);
            pins.threads.remove(&number)
        });
        let Some(left) = left else { return };
        for job in left.ready {
            cx.call_off_held(job);
        }
        cx.publish(Queue::Own, false);
        if let Some(hook) = left.hook {
            cx.call_hook(|| caught(|| drop(hook)));
        }
    }

    fn add(&self, job: Ticket, pin: u32) -> bool {
        self.lists.with(|pins| {
            let is_there = pins.threads.contains_key(&pin);
            if is_there {
                pins.of_job.insert(job, pin);
            }
            is_there
        })
    }

    fn hand_over(&self, cx: &Context<'_, P>, job: Ticket) {
        // H.
        cx.graph().hold_for_thread(cx.shared.slot(job), job);
        let listed = self.lists.with(|pins| {
            let number = pins.of_job.get(&job)?;
            let list = pins.threads.get_mut(number)?;
            // C.
            list.ready.push_back(job);
            self.set_count(list.thread, list.ready.len());
            Some(list.hook.clone())
        });
        let Some(hook) = listed else {
            return cx.call_off_held(job);
        };
        self.waits_have_changed(cx);
        if let Some(hook) = hook {
            cx.call_hook(|| caught(move || hook()));
        }
    }

    fn count(&self, cx: &Context<'_, P>) -> usize {
        // L. Relaxed: the list is looked at under its lock.
        self.counts[cx.thread.index as usize].load(Ordering::Relaxed) as usize
    }

    fn run(&self, cx: &Context<'_, P>, which: Option<Ticket>) -> bool {
        let Some(job) = self.take(cx, which) else {
            return false;
        };
        let slot = cx.shared.slot(job);
        cx.graph().flush_finished();
        cx.run_claimed(job, slot);
        if slot.is_over(job) {
            self.forget(job);
        }
        cx.graph().flush_finished();
        cx.publish(Queue::Own, false);
        true
    }

    fn find_needed(&self, cx: &Context<'_, P>, target: Ticket) -> Option<Ticket> {
        let ready = self.lists.with(|pins| {
            let list = pins.on(cx.thread.index);
            list.map_or(Vec::new(), |list| list.ready.iter().copied().collect())
        });
        if ready.is_empty() {
            return None;
        }
        needed::first_of(&ready, cx, target)
    }

    fn waits_have_changed(&self, cx: &Context<'_, P>) {
        let may_need = self.lists.with(|pins| {
            let lists = pins.threads.values();
            let others = lists.filter(|list| list.thread != cx.thread.index);
            let threads = others.filter(|list| !list.ready.is_empty());
            threads.map(|list| list.thread).collect::<Vec<u32>>()
        });
        for thread in may_need {
            // U.
            if !P::omits(Omission::UnparkPinned) {
                Driver::wake_listener(cx, thread);
            }
        }
    }

    fn forget(&self, job: Ticket) {
        self.lists.with(|pins| _ = pins.of_job.remove(&job));
    }

    fn home_of(&self, job: Ticket) -> Option<(usize, bool)> {
        self.lists.with(|pins| {
            let list = pins.threads.get(pins.of_job.get(&job)?)?;
            Some((list.thread as usize, list.ready.contains(&job)))
        })
    }
}

impl<P: Platform> PinTable<P> {
    /// Notes how many jobs of a thread are ready. For holders of the lock.
    fn set_count(&self, thread: u32, count: usize) {
        // Relaxed: the lock passes on the list, and the unpark orders this store (see the module).
        self.counts[thread as usize].store(count as u64, Ordering::Relaxed);
    }

    /// Takes this job of this thread, or the next one, as after a claim.
    fn take(&self, cx: &Context<'_, P>, which: Option<Ticket>) -> Option<Ticket> {
        let lanes = cx.shared.lanes.are_used();
        let lane = |job| cx.graph().lane_of(job);
        let lane = lanes.then_some(&lane as &dyn Fn(Ticket) -> LaneFlags);
        self.lists.with(|pins| {
            let list = pins.on(cx.thread.index)?;
            let taken = loop {
                let popped = match which {
                    Some(job) => list.pick(job),
                    None => list.pop(lane),
                };
                let Some(job) = popped else {
                    break None;
                };
                // If something else holds it back for a moment, it comes again.
                if cx.graph().claim_held(cx.shared.slot(job), job) {
                    break Some(job);
                }
            };
            self.set_count(cx.thread.index, list.ready.len());
            taken
        })
    }
}

impl<P: Platform> Shared<P> {
    /// The table of pinned jobs, made if there is none.
    pub(crate) fn pins(&self) -> &dyn PinnedJobs<P> {
        let place = &self.pinned;
        if place.get().is_none() {
            let counts = (0..self.threads.limit()).map(|_| P::AtomicU64::new(0));
            let table = PinTable {
                lists: P::Lock::new(Pins::default()),
                counts: counts.collect(),
            };
            self.note_some_before_own();
            // Refused: another thread was faster.
            _ = place.set(Box::new(table));
        }
        let table = place.get();
        &**table.expect("it was put there")
    }
}

impl<P: Platform> Context<'_, P> {
    /// How many jobs that are pinned to this thread are ready.
    #[inline]
    pub(crate) fn count_pinned(&self) -> usize {
        let pinned = self.shared.pinned.get();
        pinned.map_or(0, |pinned| pinned.count(self))
    }

    /// Runs a job that is pinned to this thread and ready, or the next one. False if there is none.
    #[cold]
    #[inline(never)]
    pub(crate) fn run_pinned(&self, which: Option<Ticket>) -> bool {
        let pinned = self.shared.pinned.get();
        pinned.is_some_and(|pinned| pinned.run(self, which))
    }

    /// A job that is held for a thread which has left becomes ready for all, with a token that was cancelled
    /// before. The caller announces it.
    fn call_off_held(&self, job: Ticket) {
        let slot = self.shared.slot(job);
        if !self.graph().claim_held(slot, job) {
            return;
        }
        let token = CancelToken::new();
        token.cancel();
        self.keep_token(job, &token);
        // Relaxed: published with the job.
        slot.flags.fetch_or(Slot::<P>::HAS_TOKEN, Ordering::Relaxed);
        self.graph().make_ready_here(job, slot);
        Driver::enqueue_in_lane(self, job, Queue::Own);
    }
}
