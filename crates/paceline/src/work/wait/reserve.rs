//! How deep waits may nest.
//!
//! A wait that helps runs bodies on top of the waiting one, and these may wait in turn. Each level takes
//! about a kilobyte and a half of stack, besides what the bodies themselves take. A stack that is used up
//! ends the process, so a part of it is kept in reserve. A wait that finds less than the reserve starts no
//! further body: the thread rests, and another worker, or a spare, runs what it waits for.
//!
//! When all workers rest like that and there can be no further spare, none of them would ever go on. Then one
//! whose wait needs a job that is ready starts it in the first half of the reserve. A scope or wait that
//! begins in the reserve then panics: that panic can still be caught, and the scopes and waits around it,
//! whose jobs have failed, end one after the other. Without workers it is the same. A wait that begins in the
//! second half, below a body that takes much stack, panics at once if all could come to rest.
//!
//! A worker that rests so, and has found such a job, says so (`wants_reserve`). Another one that rests after
//! it and is the last one wakes it:
//!
//! ```text
//! first                                   last
//! counts itself as blocked                counts itself as blocked
//! says that it has found a job
//! fence                                   fence
//! looks: are all blocked?                 looks: has another one found a job?
//! ```
//!
//! One of the two sees what the other wrote. The one that has been woken looks at everything again.
//!
//! A job that is pinned to the waiting thread is run in the first half of the reserve, too: no other thread
//! ever will.
//!
//! The reserve is for the bodies that run on it. A body that takes more by itself overflows the stack as it
//! would anywhere.

use event::Nanos;
use platform::{Atomic, Ordering, Platform};

use super::stack::no_stack_left;
use super::waiter::Waiter;
use crate::store::Ticket;
use crate::work::context::Context;
use crate::work::thread_slot::ThreadSlot;

impl<P: Platform> Context<'_, P> {
    /// Whether a body may be started on top of what this thread is in the middle of.
    #[inline]
    pub(crate) fn has_stack(&self) -> bool {
        self.own(|own| own.stack).has_stack()
    }

    /// For a call that may have to run bodies here, and that can still fail.
    ///
    /// # Panics
    /// If there is no stack left for bodies, and no other worker to run them instead.
    #[inline]
    pub(crate) fn check_stack(&self) {
        self.check_stack_until(Nanos::MAX);
    }

    /// The same for a wait with a deadline: it ends by itself, if there is a worker to run what it waits for.
    #[inline]
    pub(super) fn check_stack_until(&self, deadline: Nanos) {
        if !self.has_stack() && !self.may_rest(deadline != Nanos::MAX) {
            no_stack_left();
        }
    }

    /// Whether another thread can run what a wait that begins in the reserve waits for. `is_timed`: the wait
    /// ends by itself.
    #[cold]
    #[inline(never)]
    fn may_rest(&self, is_timed: bool) -> bool {
        let shared = self.shared;
        if shared.workers.active() == 0 {
            return false;
        }
        if is_timed {
            return true;
        }
        // Further down it could not go on if all others came to rest, or if it waited for a job that is
        // pinned to this thread.
        let is_alone = || shared.workers.is_stuck() || shared.has_no_further_spare();
        let is_deep = !self.has_reserve() && (is_alone() || shared.pinned.get().is_some());
        !is_deep && !shared.are_stuck(self, true)
    }

    /// Whether more than half of the reserve is left.
    #[inline(never)]
    pub(super) fn has_reserve(&self) -> bool {
        self.own(|own| own.stack).has_reserve()
    }

    /// Wakes the waits that could go on in their reserve.
    #[cold]
    pub(crate) fn wake_for_reserve(&self) {
        // SeqCst, partner: the fence in `find_in_reserve`; see the module.
        P::fence(Ordering::SeqCst);
        // The wish is taken: the thread looks again when it is woken, and says it again if that is so. One
        // that went on in another way is woken in vain, once.
        let takes_wish = |thread: &ThreadSlot<P>| {
            let wants = thread.wants_reserve.load(Ordering::Relaxed) != 0;
            if wants {
                thread.wants_reserve.store(0, Ordering::Relaxed);
            }
            wants
        };
        if self.alert_each(takes_wish) {
            self.shared.idle.bump(); // It may spin.
        }
    }
}

impl<P: Platform> Waiter<'_, '_, P> {
    /// The job that this wait, which is about to rest and has too little stack to help, runs all the same: no
    /// other worker can go on. If one can, and there is such a job, the last one wakes this thread.
    #[cold]
    #[inline(never)]
    pub(super) fn find_in_reserve(&mut self) -> Option<Ticket> {
        if self.is_timed() || !self.cx.has_reserve() {
            return None;
        }
        let found = self.find_one()?;
        self.cx.thread.wants_reserve.store(1, Ordering::Relaxed);
        // SeqCst, partner: the fence in `wake_for_reserve`; see the module.
        P::fence(Ordering::SeqCst);
        self.cx.shared.are_stuck(self.cx, false).then_some(found)
    }
}
