//! Roles: threads of the program that frames depend on, and the help of the kernel for them and the workers
//! together.
//!
//! Help for workers alone makes things worse: they run before the thread that feeds them and waits for them
//! (source 000: "you don't want to make ONLY job worker threads higher prio"). So what
//! [`Builder::os_help`](crate::Builder::os_help) asks for is done when a thread *adopts* a role, for that
//! thread and for all workers, and undone when the last one gives its role back.
//!
//! Invariants
//! - A thread that did not adopt is never touched.
//! - A wish that is refused for one of them is undone for all: together or not at all.
//! - What was done is undone when the guard is dropped, for workers that are still there.
//! - Only threads that live are named to the system: a thread that ends without having given its roles back
//!   (its guard was forgotten, or outlives it in a thread-local) is struck off the list on its way out, by
//!   itself, before its name can be another's.
//! - The mask of a thread with a role is that of a fast worker, also when that changes: whoever has looked at
//!   the machine renews it. Under one lock, so that no look is missed by who adopts at that moment.
//! - The lock of [`Helping`] is taken before that of the workers and that of [`live`](super::live), never
//!   after.

mod wish;

use event::Nanos;
use platform::{CpuSet, Lock, Machine, Platform, SchedParams};

use super::live::Live;
use super::workers::Workers;

use wish::Wish;

/// What a thread of the program is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Role {
    /// It makes the frames and waits for them.
    Main,
    /// It hands them to the display.
    Render,
    /// It must not be late with the sound.
    Audio,
}

/// What the kernel was asked for, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Help {
    /// What was asked for.
    pub asked: SchedParams,
    /// Whether adopted threads and workers have it now.
    pub granted: bool,
    /// Why not; empty if granted.
    pub why: String,
}

const NOBODY_ADOPTED: &str = "no thread has adopted a role (JobSystem::adopt), and workers alone would \
                              run before the threads that they work for";

/// A thread that has adopted.
struct RoleThread {
    thread: u64,
    /// How many roles.
    roles: usize,
    /// Where it might run before. None if the system cannot say: then it stays there.
    before: Option<CpuSet>,
    /// That was wherever workers might, so CPUs that come later belong to it.
    was_anywhere: bool,
    /// The mask that it has because of its role, if any.
    given: Option<CpuSet>,
}

impl RoleThread {
    fn new<P: Platform>(platform: &P, live: &Live<P>, thread: u64) -> RoleThread {
        let before = platform.machine().allowed(&[thread]);
        let usable = live.limits().usable();
        RoleThread {
            was_anywhere: before.as_ref().is_some_and(|cpus| usable.is_subset(cpus)),
            before,
            thread,
            roles: 0,
            given: None,
        }
    }

    /// Sees to it that it has this mask, or else the one from before.
    fn hold<P: Platform>(&mut self, platform: &P, live: &Live<P>, cpus: Option<&CpuSet>) {
        let Some(before) = self.before.as_ref().filter(|_| self.given.as_ref() != cpus) else {
            return;
        };
        let seen = || live.reading.with(|reading| reading.seen().clone());
        let wanted = match cpus {
            Some(cpus) => cpus.clone(),
            None if self.was_anywhere => before.union(&seen()),
            None => before.clone(),
        };
        // Refused: none of them is there by now. The kernel has found it others, and the next look too.
        if platform.machine().set_mask(self.thread, &wanted).is_ok() {
            self.given = cpus.cloned();
        }
    }
}

struct RolesState {
    threads: Vec<RoleThread>,
    wishes: Vec<Wish>,
}

impl RolesState {
    /// The thread with this name, if it has a role.
    fn thread(&mut self, thread: u64) -> Option<&mut RoleThread> {
        self.threads.iter_mut().find(|known| known.thread == thread)
    }
}

/// Threads with a role, and the help of one job system.
pub(crate) struct Helping<P: Platform> {
    /// Whether anything is wished for.
    pub(crate) is_asked: bool,
    state: P::Lock<RolesState>,
}

impl<P: Platform> Helping<P> {
    /// `slice`: what workers ask for without help.
    pub(crate) fn new(wishes: Vec<SchedParams>, slice: Option<Nanos>) -> Helping<P> {
        let asks_for_slice = wishes.iter().any(|wish| wish.slice.is_some());
        let slice = slice.filter(|_| !asks_for_slice);
        let wish = |asked: SchedParams| Wish::new(asked, slice);
        Helping {
            is_asked: !wishes.is_empty(),
            state: P::Lock::new(RolesState {
                threads: Vec::new(),
                wishes: wishes.into_iter().map(wish).collect(),
            }),
        }
    }
}

impl<P: Platform> Helping<P> {
    /// A worker has come, the calling thread: it gets what the others have.
    pub(super) fn help_newcomer(&self, workers: &impl Workers<P>, index: usize) {
        if !self.is_asked {
            return;
        }
        self.state.with(|state| {
            if !state.threads.is_empty() {
                for wish in &mut state.wishes {
                    wish.grant_newcomer(workers, index);
                }
            }
        });
    }

    /// A worker ends: its thread's name may soon be another's.
    pub(super) fn forget_worker(&self, index: usize) {
        if !self.is_asked {
            return;
        }
        self.state.with(|state| {
            for wish in &mut state.wishes {
                wish.forget(index);
            }
        });
    }

    /// The calling thread, which has this name, adopts a role.
    pub(super) fn adopt(&self, workers: &impl Workers<P>, live: &Live<P>, thread: u64) {
        let platform = workers.platform();
        self.state.with(|state| {
            let is_first = state.threads.is_empty();
            if state.thread(thread).is_none() {
                state.threads.push(RoleThread::new(platform, live, thread));
            }
            let known = state.thread(thread).expect("it was just put there");
            known.roles += 1;
            known.hold(platform, live, live.frame_cpus().as_ref());
            for wish in &mut state.wishes {
                if is_first {
                    wish.refused = None;
                }
                wish.grant_caller(workers, None);
                if is_first {
                    for (index, words) in workers.each() {
                        wish.grant_worker(workers, index, words);
                    }
                }
            }
        });
    }

    /// A thread gives a role back.
    pub(super) fn give_back(&self, workers: &impl Workers<P>, live: &Live<P>, thread: u64) {
        self.state.with(|state| {
            // Nothing is left to give back on the thread's way out.
            let Some(known) = state.thread(thread) else {
                return;
            };
            known.roles -= 1;
            let is_free = known.roles == 0;
            let is_last = is_free && state.threads.len() == 1;
            for wish in &mut state.wishes {
                if is_last {
                    wish.undo_all(workers)
                } else {
                    wish.undo_last_of(workers, thread)
                }
            }
            if is_free {
                if let Some(known) = state.thread(thread) {
                    known.hold(workers.platform(), live, None);
                }
                state.threads.retain(|known| known.thread != thread);
            }
        });
    }

    /// The calling thread ends, and the roles that it did not give back with it. Nothing is undone for it;
    /// the workers are as before if it was the last.
    pub(super) fn forget_role_thread(&self, workers: &impl Workers<P>, thread: u64) {
        self.state.with(|state| {
            if state.thread(thread).is_none() {
                return;
            }
            state.threads.retain(|known| known.thread != thread);
            let is_last = state.threads.is_empty();
            for wish in &mut state.wishes {
                wish.forget_adopted(thread);
                if is_last {
                    wish.undo_all(workers);
                }
            }
        });
    }

    /// The machine was looked at: threads with a role go where fast workers are by now.
    pub(super) fn hold_role_threads(&self, platform: &P, live: &Live<P>) {
        self.state.with(|state| {
            if state.threads.is_empty() {
                return;
            }
            let cpus = live.frame_cpus();
            for known in &mut state.threads {
                known.hold(platform, live, cpus.as_ref());
            }
        });
    }

    /// The mask that a thread was given for its role.
    pub(super) fn role_mask(&self, thread: u64) -> Option<CpuSet> {
        self.state.with(|state| state.thread(thread)?.given.clone())
    }

    pub(super) fn help(&self) -> Vec<Help> {
        self.state.with(|state| {
            let nobody = state.threads.is_empty().then(|| NOBODY_ADOPTED.to_owned());
            let of = |wish: &Wish| {
                let why = nobody.clone().or_else(|| wish.refused.clone());
                Help {
                    asked: wish.asked.clone(),
                    granted: why.is_none(),
                    why: why.unwrap_or_default(),
                }
            };
            state.wishes.iter().map(of).collect()
        })
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the tests are about this machine's threads"
)]
mod tests;
