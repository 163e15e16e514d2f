//! Roles: threads of the program that frames depend on, and the help of the kernel for them and the workers
//! together.
//!
//! Help for workers alone makes things worse: they run before the thread that feeds them and waits for them
//! (source 000: "you don't want to make ONLY job worker threads higher prio"). So the requests of
//! [`Builder::os_help`](crate::Builder::os_help) are granted when a thread *adopts* a role, to that thread
//! and to all workers, and are undone when the last thread gives its role back.
//!
//! A raise therefore changes no thread's class. The workers have the help already, whatever they run, as long
//! as there is a thread that frames depend on. A raised job may also run on a thread without a role, in a
//! wait of that thread. That one is left as it is, on purpose:
//! - Its class is the program's. Without a privilege a thread that was given a lesser nice value cannot have
//!   its own one back, and what the program sets meanwhile would be overwritten.
//! - The raiser would have to change it by its id. Only threads with a role take their ids off the list when
//!   they end (`thread_record`), and of any other the id may be another thread's by then.
//! - It would take two system calls for each such job, and the kernel looks for another CPU at each.
//!
//! The remedy is the program's: a thread that runs what frames wait for adopts a role.
//!
//! Invariants
//! - A thread that adopted no role is never touched.
//! - A request that is refused for one thread is undone for all: it is granted to all of them or to none.
//! - The help is undone when the guard is dropped, for workers that are still there.
//! - Only ids of living threads are given to the system. A thread may end without having given its roles
//!   back (its guard was forgotten, or outlives it in a thread-local). Then it takes itself off the list on
//!   its way out, before its id can be another thread's.
//! - The mask of a thread with a role is that of a fast worker, also when that mask changes: a thread that
//!   has refreshed renews it. Both happen under one lock, so that a thread that adopts a role at that
//!   moment misses no refresh.
//! - The lock of [`Helping`] is taken before that of the workers and that of [`live`](super::live), never
//!   after.

mod help_request;

use event::Nanos;
use platform::{CpuSet, Lock, Machine, Platform, SchedParams};

use super::live::LiveMachine;
use crate::adapt::answers::Help;
use crate::adapt::workers::Workers;

use help_request::HelpRequest;

const NO_ROLE_ADOPTED: &str = "no thread has adopted a role (JobSystem::adopt), and workers alone would \
                              run before the threads that they work for";

/// A thread that has adopted a role.
struct RoleThread {
    thread: u64,
    /// The number of its roles.
    roles: usize,
    /// The CPUs that it might use before. `None`: the system cannot say, and the thread keeps its mask.
    before: Option<CpuSet>,
    /// It might use all CPUs of the workers before, so CPUs that come later belong to it.
    was_anywhere: bool,
    /// The mask that it has because of its role, if any.
    given: Option<CpuSet>,
}

impl RoleThread {
    fn new<P: Platform>(platform: &P, live: &LiveMachine<P>, thread: u64) -> RoleThread {
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

    /// Makes sure that the thread has this mask; `None`: the mask from before.
    fn give_mask<P: Platform>(
        &mut self,
        platform: &P,
        live: &LiveMachine<P>,
        cpus: Option<&CpuSet>,
    ) {
        let Some(before) = self.before.as_ref().filter(|_| self.given.as_ref() != cpus) else {
            return;
        };
        let seen = || live.view.with(|view| view.seen().clone());
        let wanted = match cpus {
            Some(cpus) => cpus.clone(),
            None if self.was_anywhere => before.union(&seen()),
            None => before.clone(),
        };
        // Refused: none of these CPUs is there by now. The kernel has moved the thread to others, and the
        // next refresh finds them.
        if platform.machine().set_mask(self.thread, &wanted).is_ok() {
            self.given = cpus.cloned();
        }
    }
}

struct RolesState {
    threads: Vec<RoleThread>,
    requests: Vec<HelpRequest>,
}

impl RolesState {
    /// The thread with this id, if it has a role.
    fn thread(&mut self, thread: u64) -> Option<&mut RoleThread> {
        self.threads.iter_mut().find(|known| known.thread == thread)
    }
}

/// Threads with a role, and the help of one job system.
pub(crate) struct Helping<P: Platform> {
    /// Whether there are any requests.
    pub(crate) is_requested: bool,
    state: P::Lock<RolesState>,
}

impl<P: Platform> Helping<P> {
    /// `slice`: the slice that workers ask for without help.
    pub(crate) fn new(requests: Vec<SchedParams>, slice: Option<Nanos>) -> Helping<P> {
        let asks_for_slice = requests.iter().any(|request| request.slice.is_some());
        let slice = slice.filter(|_| !asks_for_slice);
        let request = |asked: SchedParams| HelpRequest::new(asked, slice);
        Helping {
            is_requested: !requests.is_empty(),
            state: P::Lock::new(RolesState {
                threads: Vec::new(),
                requests: requests.into_iter().map(request).collect(),
            }),
        }
    }
}

impl<P: Platform> Helping<P> {
    /// The calling thread is a new worker. It gets the help that the other workers have.
    pub(super) fn help_newcomer(&self, workers: &impl Workers<P>, index: usize) {
        if !self.is_requested {
            return;
        }
        self.state.with(|state| {
            if !state.threads.is_empty() {
                for request in &mut state.requests {
                    request.grant_newcomer(workers, index);
                }
            }
        });
    }

    /// A worker ends. Its thread's id may soon be another thread's.
    pub(super) fn forget_worker(&self, index: usize) {
        if !self.is_requested {
            return;
        }
        self.state.with(|state| {
            for request in &mut state.requests {
                request.forget(index);
            }
        });
    }

    /// The calling thread, which has this id, adopts a role.
    pub(super) fn adopt(&self, workers: &impl Workers<P>, live: &LiveMachine<P>, thread: u64) {
        let platform = workers.platform();
        self.state.with(|state| {
            let is_first = state.threads.is_empty();
            if state.thread(thread).is_none() {
                state.threads.push(RoleThread::new(platform, live, thread));
            }
            let known = state.thread(thread).expect("it was just put there");
            known.roles += 1;
            known.give_mask(platform, live, live.frame_cpus().as_ref());
            for request in &mut state.requests {
                if is_first {
                    request.refused = None;
                }
                request.grant_caller(workers, None);
                if is_first {
                    for (index, words) in workers.each() {
                        request.grant_worker(workers, index, words);
                    }
                }
            }
        });
    }

    /// A thread gives a role back.
    pub(super) fn give_back(&self, workers: &impl Workers<P>, live: &LiveMachine<P>, thread: u64) {
        self.state.with(|state| {
            // On the thread's way out nothing is left to give back.
            let Some(known) = state.thread(thread) else {
                return;
            };
            known.roles -= 1;
            let is_free = known.roles == 0;
            let is_last = is_free && state.threads.len() == 1;
            for request in &mut state.requests {
                if is_last {
                    request.undo_all(workers)
                } else {
                    request.undo_last_of(workers, thread)
                }
            }
            if is_free {
                if let Some(known) = state.thread(thread) {
                    known.give_mask(workers.platform(), live, None);
                }
                state.threads.retain(|known| known.thread != thread);
            }
        });
    }

    /// The calling thread ends, and with it the roles that it did not give back. Nothing is undone for this
    /// thread. If it was the last one with a role, the help for workers is undone.
    pub(super) fn forget_role_thread(&self, workers: &impl Workers<P>, thread: u64) {
        self.state.with(|state| {
            if state.thread(thread).is_none() {
                return;
            }
            state.threads.retain(|known| known.thread != thread);
            let is_last = state.threads.is_empty();
            for request in &mut state.requests {
                request.forget_adopted(thread);
                if is_last {
                    request.undo_all(workers);
                }
            }
        });
    }

    /// There was a refresh: threads with a role get the mask that fast workers have by now.
    pub(super) fn renew_role_masks(&self, platform: &P, live: &LiveMachine<P>) {
        self.state.with(|state| {
            if state.threads.is_empty() {
                return;
            }
            let cpus = live.frame_cpus();
            for known in &mut state.threads {
                known.give_mask(platform, live, cpus.as_ref());
            }
        });
    }

    /// The mask that a thread was given for its role.
    pub(super) fn role_mask(&self, thread: u64) -> Option<CpuSet> {
        self.state.with(|state| state.thread(thread)?.given.clone())
    }

    pub(super) fn help(&self) -> Vec<Help> {
        self.state.with(|state| {
            let no_role = state.threads.is_empty().then(|| NO_ROLE_ADOPTED.to_owned());
            let of = |request: &HelpRequest| {
                let why = no_role.clone().or_else(|| request.refused.clone());
                Help {
                    asked: request.asked.clone(),
                    granted: why.is_none(),
                    why: why.unwrap_or_default(),
                }
            };
            state.requests.iter().map(of).collect()
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
