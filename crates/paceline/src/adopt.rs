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
//! - What was done is undone when the guard is dropped, for workers that are still there. The lock of
//!   [`Helping`] is taken before the roster's, never after.

use std::marker::PhantomData;

use platform::{Class, CpuSet, Lock, Platform, Treatment, TreatmentError};

use crate::seat::{Role as SeatRole, Seat};
use crate::shared::Shared;
use crate::system::JobSystem;

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

/// A thread that is treated another way than before.
struct Helped {
    thread: u64,
    /// Workers: their seat.
    seat: Option<u32>,
    /// How to undo it.
    undo: Treatment,
}

/// One wish and what became of it.
struct Wish {
    asked: Treatment,
    helped: Vec<Helped>,
    refused: Option<String>,
}

struct State {
    adopted: usize,
    wishes: Vec<Wish>,
}

/// The help of one job system.
pub(crate) struct Helping<P: Platform> {
    /// Whether anything is wished for.
    pub(crate) is_asked: bool,
    state: P::Lock<State>,
}

impl<P: Platform> Helping<P> {
    pub(crate) fn new(wishes: Vec<Treatment>) -> Helping<P> {
        let wish = |asked| Wish {
            asked,
            helped: Vec::new(),
            refused: None,
        };
        Helping {
            is_asked: !wishes.is_empty(),
            state: P::Lock::new(State {
                adopted: 0,
                wishes: wishes.into_iter().map(wish).collect(),
            }),
        }
    }
}

impl Wish {
    /// Notes what the system said about a thread. Refused: it is undone for all. Not under the roster's lock.
    fn note<P: Platform>(
        &mut self,
        shared: &Shared<P>,
        (thread, seat): (u64, Option<u32>),
        answer: Result<Treatment, TreatmentError>,
    ) {
        match answer {
            Ok(undo) => self.helped.push(Helped { thread, seat, undo }),
            Err(error) => {
                self.refused = Some(error.to_string());
                self.undo_all(shared);
            }
        }
    }

    /// Does it for the calling thread, unless it was refused before.
    fn grant_caller<P: Platform>(&mut self, shared: &Shared<P>, seat: Option<u32>) {
        if self.refused.is_none() {
            let thread = shared.platform.thread_id();
            let answer = shared.platform.treat(thread, &self.asked);
            self.note(shared, (thread, seat), answer);
        }
    }

    /// Does it for the calling thread, a worker that has just come. Whoever started it may have had help, and
    /// the kernel then begins it as most threads are: what it goes back to is what the other workers were.
    fn grant_newcomer<P: Platform>(&mut self, shared: &Shared<P>, seat: u32) {
        let others = self.helped.iter().find(|helped| helped.seat.is_some());
        let class = others.map(|helped| helped.undo.class);
        self.grant_caller(shared, Some(seat));
        let own = self.helped.last_mut();
        let own = own.filter(|helped| helped.seat == Some(seat));
        if let (Some(own), Some(class)) = (own, class) {
            own.undo.class = class;
        }
    }

    fn grant_worker<P: Platform>(&mut self, shared: &Shared<P>, seat: &Seat<P>) {
        if self.refused.is_some() {
            return;
        }
        let mut said = None;
        shared.with_worker_thread(seat, |thread| {
            said = Some((thread, shared.platform.treat(thread, &self.asked)));
            true
        });
        if let Some((thread, answer)) = said {
            self.note(shared, (thread, Some(seat.index)), answer);
        }
    }

    /// The latest first: what was there before all of it is what remains.
    fn undo_all<P: Platform>(&mut self, shared: &Shared<P>) {
        while let Some(helped) = self.helped.pop() {
            helped.undo(shared);
        }
    }

    /// The latest of a thread that had adopted.
    fn undo_last_of<P: Platform>(&mut self, shared: &Shared<P>, thread: u64) {
        let is_its = |helped: &Helped| helped.seat.is_none() && helped.thread == thread;
        if let Some(last) = self.helped.iter().rposition(is_its) {
            self.helped.remove(last).undo(shared);
        }
    }
}

impl Helped {
    fn undo<P: Platform>(&self, shared: &Shared<P>) {
        let undo = |thread: u64| {
            // Refused: then nobody may do it, and the thread keeps what it has.
            thread == self.thread && shared.platform.treat(thread, &self.undo).is_ok()
        };
        match self.seat {
            Some(seat) => shared.with_worker_thread(shared.seats.get(seat as usize), undo),
            None => undo(self.thread),
        };
    }
}

impl<P: Platform> Shared<P> {
    /// A worker has come: it gets what the others have.
    pub(crate) fn help_newcomer(&self, seat: &Seat<P>) {
        if !self.helping.is_asked {
            return;
        }
        self.helping.state.with(|state| {
            if state.adopted > 0 {
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
                wish.helped.retain(|helped| helped.seat != Some(seat.index));
            }
        });
    }

    /// Whether workers and adopted threads get a CPU soon although ordinary threads want it, because of help
    /// that was granted.
    pub(crate) fn is_favoured(&self) -> bool {
        let favours = |wish: &Wish| {
            let is_granted = !wish.helped.is_empty();
            is_granted && wish.asked.class.is_some_and(Class::is_favoured)
        };
        self.helping.is_asked && (self.helping.state).with(|state| state.wishes.iter().any(favours))
    }

    /// The calling thread adopts a role.
    fn adopt(&self) {
        self.helping.state.with(|state| {
            state.adopted += 1;
            let is_first = state.adopted == 1;
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

    /// A thread gives its role back.
    fn give_back(&self, thread: u64) {
        self.helping.state.with(|state| {
            state.adopted -= 1;
            for wish in &mut state.wishes {
                match state.adopted {
                    0 => wish.undo_all(self),
                    _ => wish.undo_last_of(self, thread),
                }
            }
        });
    }

    pub(crate) fn help(&self) -> Vec<Help> {
        self.helping.state.with(|state| {
            let nobody = (state.adopted == 0).then(|| NOBODY_ADOPTED.to_owned());
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
    /// The CPUs it might run on before, if that was changed.
    mask: Option<CpuSet>,
    _stays_on_its_thread: PhantomData<*const ()>,
}

impl<P: Platform> JobSystem<P> {
    /// Gives the calling thread a role: frames depend on it. From now on, until the guard is dropped, it is
    /// treated as the workers are: it stays on the [CPUs](crate::Builder::cpus) that they were told to stay
    /// on, where CPUs differ on the fast ones of these ([`Placement`](crate::Placement)), and gets the help
    /// that [`Builder::os_help`](crate::Builder::os_help) asks for together with them. Then both are as they
    /// were before. What the system refuses changes nothing else;
    /// [`JobSystem::os_help`] says so.
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
        let cpus = shared.frame_cpus();
        let mask = cpus.and_then(|cpus| {
            let before = shared.platform.allowed(&[thread])?;
            let set = shared.platform.set_mask(thread, &cpus);
            set.is_ok().then_some(before)
        });
        shared.adopt();
        Adopted {
            system: self,
            role,
            thread,
            mask,
            _stays_on_its_thread: PhantomData,
        }
    }

    /// What the kernel was asked for by [`Builder::os_help`](crate::Builder::os_help), wish by wish, and what
    /// it said.
    pub fn os_help(&self) -> Vec<Help> {
        self.shared().help()
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
        if shared.is_forked() {
            return;
        }
        shared.give_back(self.thread);
        if let Some(before) = &self.mask {
            // Refused: those CPUs are gone, and the kernel has found it others.
            let _ = shared.platform.set_mask(self.thread, before);
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the tests are about this machine's threads"
)]
mod tests {
    use platform::{Class, Os};

    use super::*;
    use crate::Builder;

    /// The class of the calling thread; none if the system cannot say.
    fn class() -> Option<Class> {
        let now = Os.treat(Os.thread_id(), &Treatment::default());
        now.ok()?.class
    }

    /// The classes of all workers, asked by a job on each.
    fn classes(js: &JobSystem<Os>) -> Vec<Option<Class>> {
        let barrier = std::sync::Arc::new(std::sync::Barrier::new(js.workers()));
        let (send, receive) = std::sync::mpsc::channel();
        for _ in 0..js.workers() {
            let (send, barrier) = (send.clone(), barrier.clone());
            js.schedule(move |_| {
                barrier.wait();
                let _ = send.send(class());
            });
        }
        drop(send);
        js.flush();
        receive.iter().collect()
    }

    fn build(wishes: &[Treatment]) -> JobSystem<Os> {
        let mut builder = Builder::new().workers(2);
        for wish in wishes {
            builder = builder.os_help(wish.clone());
        }
        builder.build().unwrap()
    }

    /// Goal: help is for adopted threads and workers together, or for nobody; threads without a role are left
    /// alone; all is as before at the end. Method: classes of this thread, another one and all workers,
    /// before, with and after one role and two; with a wish that may be refused.
    #[test]
    fn help_is_for_all_or_nobody_and_ends() {
        let js = build(&[Treatment::nice(-5)]);
        let before = class();
        assert!(
            js.os_help()
                .iter()
                .all(|help| !help.granted && help.why == NOBODY_ADOPTED)
        );
        assert_eq!(classes(&js), [before; 2]);
        let main = js.adopt(Role::Main);
        let help = js.os_help().remove(0);
        assert_eq!(help.granted, help.why.is_empty(), "{help:?}");
        let wanted = if help.granted {
            help.asked.class
        } else {
            before
        };
        assert_eq!(class(), wanted);
        assert_eq!(classes(&js), [wanted; 2]);
        let other = std::thread::scope(|scope| scope.spawn(class).join().unwrap());
        // Started by a thread that is helped, it begins as threads usually do.
        let usual = Some(Class::Fair { nice: 0 });
        assert!(other == before || other == usual, "{other:?} has no role");
        let audio = js.adopt(Role::Audio);
        assert_eq!((main.role(), audio.role()), (Role::Main, Role::Audio));
        js.resize(3).unwrap();
        assert_eq!(classes(&js), [wanted; 3], "who comes later gets it, too");
        drop(audio);
        assert_eq!((class(), classes(&js)), (wanted, vec![wanted; 3]));
        drop(main);
        assert_eq!((class(), classes(&js)), (before, vec![before; 3]));
        assert!(!js.os_help()[0].granted);
    }

    /// Goal: a wish that is nonsense is refused with a reason, and the other one is not touched by it.
    /// Method: a real-time priority that there is none of, and a slice.
    #[test]
    fn one_refusal_does_not_refuse_the_others() {
        let slice = Treatment::slice(event::Nanos::from_micros(300));
        let js = build(&[Treatment::round_robin(200), slice]);
        let before = class();
        let _main = js.adopt(Role::Main);
        let [bad, _] = &js.os_help()[..] else {
            panic!("two wishes");
        };
        assert!(!bad.granted && !bad.why.is_empty(), "{bad:?}");
        assert_eq!((class(), classes(&js)), (before, vec![before; 2]));
    }

    /// Goal: without a wish nothing is asked of the system, and a role costs nothing. Method: as it says.
    #[test]
    fn a_role_without_wishes_changes_nothing() {
        let js = build(&[]);
        let before = class();
        let main = js.adopt(Role::Render);
        assert_eq!((class(), js.os_help()), (before, Vec::new()));
        drop(main);
    }
}
