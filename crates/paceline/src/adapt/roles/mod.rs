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
//! - The lock of [`Helping`] is taken before the roster's and that of [`live`](crate::adapt::live), never after.

mod wish;

use std::marker::PhantomData;

use event::Nanos;
use platform::{CpuSet, Lock, Platform, Treatment};

use crate::seat::{Role as SeatRole, Seat};
use crate::shared::Shared;
use crate::sitting;
use crate::system::JobSystem;

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
    pub asked: Treatment,
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
    fn new<P: Platform>(shared: &Shared<P>, thread: u64) -> RoleThread {
        let before = shared.platform.allowed(&[thread]);
        let usable = shared.limits().usable();
        RoleThread {
            was_anywhere: before.as_ref().is_some_and(|cpus| usable.is_subset(cpus)),
            before,
            thread,
            roles: 0,
            given: None,
        }
    }

    /// Sees to it that it has this mask, or else the one from before.
    fn hold<P: Platform>(&mut self, shared: &Shared<P>, cpus: Option<&CpuSet>) {
        let Some(before) = self.before.as_ref().filter(|_| self.given.as_ref() != cpus) else {
            return;
        };
        let seen = || shared.live.reading.with(|reading| reading.seen().clone());
        let wanted = match cpus {
            Some(cpus) => cpus.clone(),
            None if self.was_anywhere => before.union(&seen()),
            None => before.clone(),
        };
        // Refused: none of them is there by now. The kernel has found it others, and the next look too.
        if shared.platform.set_mask(self.thread, &wanted).is_ok() {
            self.given = cpus.cloned();
        }
    }
}

struct State {
    threads: Vec<RoleThread>,
    wishes: Vec<Wish>,
}

impl State {
    /// The thread with this name, if it has a role.
    fn thread(&mut self, thread: u64) -> Option<&mut RoleThread> {
        self.threads.iter_mut().find(|known| known.thread == thread)
    }
}

/// Threads with a role, and the help of one job system.
pub(crate) struct Helping<P: Platform> {
    /// Whether anything is wished for.
    pub(crate) is_asked: bool,
    state: P::Lock<State>,
}

impl<P: Platform> Helping<P> {
    /// `slice`: what workers ask for without help.
    pub(crate) fn new(wishes: Vec<Treatment>, slice: Option<Nanos>) -> Helping<P> {
        let asks_for_slice = wishes.iter().any(|wish| wish.slice.is_some());
        let slice = slice.filter(|_| !asks_for_slice);
        let wish = |asked: Treatment| Wish::new(asked, slice);
        Helping {
            is_asked: !wishes.is_empty(),
            state: P::Lock::new(State {
                threads: Vec::new(),
                wishes: wishes.into_iter().map(wish).collect(),
            }),
        }
    }
}

impl<P: Platform> Shared<P> {
    /// A worker has come: it gets what the others have.
    pub(crate) fn help_newcomer(&self, seat: &Seat<P>) {
        if !self.helping.is_asked {
            return;
        }
        self.helping.state.with(|state| {
            if !state.threads.is_empty() {
                for wish in &mut state.wishes {
                    wish.grant_newcomer(self, seat.index);
                }
            }
        });
    }

    /// A worker ends: its thread's name may soon be another's.
    pub(crate) fn forget_helped(&self, seat: &Seat<P>) {
        if !self.helping.is_asked {
            return;
        }
        self.helping.state.with(|state| {
            for wish in &mut state.wishes {
                wish.forget(seat.index);
            }
        });
    }

    /// The calling thread adopts a role.
    fn adopt(&self, thread: u64) {
        // Where threads have no names nothing can be done to one by its name.
        if thread != 0 {
            sitting::note_role(&self.platform, self.host());
        }
        self.helping.state.with(|state| {
            let is_first = state.threads.is_empty();
            if state.thread(thread).is_none() {
                state.threads.push(RoleThread::new(self, thread));
            }
            let known = state.thread(thread).expect("it was just put there");
            known.roles += 1;
            known.hold(self, self.frame_cpus().as_ref());
            for wish in &mut state.wishes {
                if is_first {
                    wish.refused = None;
                }
                wish.grant_caller(self, None);
                let workers = self
                    .seats
                    .iter()
                    .filter(|seat| seat.role != SeatRole::Guest);
                workers
                    .filter(|_| is_first)
                    .for_each(|seat| wish.grant_worker(self, seat));
            }
        });
    }

    /// A thread gives a role back.
    fn give_back(&self, thread: u64) {
        self.helping.state.with(|state| {
            // Nothing is left to give back on the thread's way out.
            let Some(known) = state.thread(thread) else {
                return;
            };
            known.roles -= 1;
            let is_free = known.roles == 0;
            let is_last = is_free && state.threads.len() == 1;
            for wish in &mut state.wishes {
                match is_last {
                    true => wish.undo_all(self),
                    false => wish.undo_last_of(self, thread),
                }
            }
            if is_free {
                state
                    .thread(thread)
                    .into_iter()
                    .for_each(|known| known.hold(self, None));
                state.threads.retain(|known| known.thread != thread);
            }
        });
    }

    /// The calling thread ends, and the roles that it did not give back with it. Nothing is undone for it;
    /// the workers are as before if it was the last.
    pub(crate) fn forget_role_thread(&self, thread: u64) {
        self.helping.state.with(|state| {
            if state.thread(thread).is_none() {
                return;
            }
            state.threads.retain(|known| known.thread != thread);
            let is_last = state.threads.is_empty();
            for wish in &mut state.wishes {
                wish.forget_adopted(thread);
                if is_last {
                    wish.undo_all(self);
                }
            }
        });
    }

    /// Somebody has looked at the machine: threads with a role go where fast workers are by now.
    pub(crate) fn hold_role_threads(&self) {
        self.helping.state.with(|state| {
            if state.threads.is_empty() {
                return;
            }
            let cpus = self.frame_cpus();
            for known in &mut state.threads {
                known.hold(self, cpus.as_ref());
            }
        });
    }

    /// The mask that a thread was given for its role.
    pub(crate) fn role_mask(&self, thread: u64) -> Option<CpuSet> {
        self.helping
            .state
            .with(|state| state.thread(thread)?.given.clone())
    }

    pub(crate) fn help(&self) -> Vec<Help> {
        self.helping.state.with(|state| {
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

/// A thread with a role, until this is dropped; from [`JobSystem::adopt`]. It stays on its thread.
#[must_use = "the role is given back when this is dropped"]
pub struct Adopted<'js, P: Platform> {
    system: &'js JobSystem<P>,
    role: Role,
    thread: u64,
    _stays_on_its_thread: PhantomData<*const ()>,
}

impl<P: Platform> JobSystem<P> {
    /// Gives the calling thread a role: frames depend on it. From now on, until the guard is dropped, it is
    /// treated as the workers are: it stays on the [CPUs](crate::Builder::cpus) that they were told to stay
    /// on, where CPUs differ on the fast ones of these ([`Placement`](crate::Placement)), also when CPUs come
    /// and go, and gets the help that [`Builder::os_help`](crate::Builder::os_help) asks for together with
    /// them. Then both are as they were before. What the system refuses changes nothing else;
    /// [`JobSystem::os_help`] says so.
    ///
    /// A guard that is forgotten keeps the role until its thread ends.
    ///
    /// ```
    /// use paceline::{Builder, Role};
    /// use platform::Treatment;
    /// let js = Builder::new().os_help(Treatment::nice(-5)).build().unwrap();
    /// assert!(!js.os_help()[0].granted, "workers alone get no help");
    /// let main = js.adopt(Role::Main);
    /// for help in js.os_help() {
    ///     println!("{}: {}", help.asked, if help.granted { "granted" } else { &help.why });
    /// }
    /// drop(main);
    /// ```
    pub fn adopt(&self, role: Role) -> Adopted<'_, P> {
        let shared = self.shared();
        let thread = shared.platform.thread_id();
        // In a fork's child there is nothing to be treated like.
        if !shared.is_forked() {
            shared.adopt(thread);
        }
        Adopted {
            system: self,
            role,
            thread,
            _stays_on_its_thread: PhantomData,
        }
    }

    /// What the kernel was asked for by [`Builder::os_help`](crate::Builder::os_help), wish by wish, and what
    /// it said. Nothing in a fork's child.
    pub fn os_help(&self) -> Vec<Help> {
        match self.shared().is_forked() {
            true => Vec::new(),
            false => self.shared().help(),
        }
    }
}

impl<P: Platform> Adopted<'_, P> {
    /// The role.
    pub fn role(&self) -> Role {
        self.role
    }
}

impl<P: Platform> Drop for Adopted<'_, P> {
    fn drop(&mut self) {
        let shared = self.system.shared();
        if !shared.is_forked() {
            shared.give_back(self.thread);
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the tests are about this machine's threads"
)]
mod tests;
