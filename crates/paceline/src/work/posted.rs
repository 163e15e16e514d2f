//! What a thread posts about itself, for reports ([`report`](super::report)): its name, the wait in which it
//! rests, and the loop in which it takes part.
//!
//! The thread that has the slot writes. It does so when it gets the slot, when a wait has nothing to run and
//! is about to rest, and when it joins or leaves a loop: never per job. Any thread reads, at any time, and is
//! never waited for:
//!
//! ```text
//! owner, when a wait rests                reader
//! the fields of the wait                  the version: even
//! the version becomes even                the fields of the wait
//!                                         fence (Acquire)
//! owner, when that wait has ended         the version again: the same, so the fields are of one wait
//! the version becomes odd
//! fence (Release)
//! everything that comes after
//! ```
//!
//! A reader that sees anything that the owner writes after the end of a wait (a field of the next one, the
//! job that it waits for now) sees behind its fence that the version has changed, and reads again. The number
//! of the tenant does the same for a slot that changes hands.

use std::panic::Location;
use std::ptr;

use event::Nanos;
use platform::{Atomic, Lock, Memory, Ordering};

use crate::store::{CallSite, Ticket};

/// See the module.
pub(crate) struct Posted<M: Memory> {
    /// Odd while a thread has the slot. It grows when one comes and when one goes.
    tenant: M::AtomicU32,
    /// Even while a wait is posted. It grows when one is posted and when one is taken back.
    version: M::AtomicU64,
    target: M::AtomicU64,
    since: M::AtomicU64,
    until: M::AtomicU64,
    /// 0, or the address of a [`Location`] that lives for ever.
    site: M::AtomicU64,
    /// The innermost loop in which the thread takes part.
    takes_part: M::AtomicU64,
    /// The name of the tenant with this number, if it has one.
    name: M::Lock<(u32, String)>,
}

/// A wait that is posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PostedWait {
    pub(crate) target: Ticket,
    /// Since when it has had nothing to run.
    pub(crate) since: Nanos,
    /// When it gives up; [`Nanos::MAX`]: never.
    pub(crate) until: Nanos,
    /// Where the program called it, if that is known.
    pub(crate) site: Option<CallSite>,
}

/// The words of a thread slot that say what its thread does, and that are read together.
pub(crate) struct ThreadWords<'a, M: Memory> {
    pub(crate) posted: &'a Posted<M>,
    /// The job that the thread waits for at this moment.
    pub(crate) waits_for: &'a M::AtomicU64,
}

/// The state of a thread, all of one moment.
pub(crate) struct ThreadSeen {
    /// The thread's name. `None` also if it is not known.
    pub(crate) name: Option<String>,
    /// The job that it waits for. [`Ticket::NONE`] also while it runs a job inside a wait.
    pub(crate) waits_for: Ticket,
    /// The innermost wait that has rested. If the thread waits for another job, that wait has just begun. If
    /// it waits for none, it runs something inside of this one.
    pub(crate) wait: Option<PostedWait>,
    pub(crate) takes_part: Ticket,
}

impl<M: Memory> Posted<M> {
    /// Of a slot without a thread.
    pub(crate) fn new() -> Posted<M> {
        Posted {
            tenant: M::AtomicU32::new(0),
            version: M::AtomicU64::new(1),
            target: M::AtomicU64::new(0),
            since: M::AtomicU64::new(0),
            until: M::AtomicU64::new(0),
            site: M::AtomicU64::new(0),
            takes_part: M::AtomicU64::new(0),
            name: M::Lock::new((0, String::new())),
        }
    }

    /// The calling thread has got the slot.
    pub(crate) fn arrive(&self, name: Option<String>) {
        // Relaxed: only the thread that has the slot writes it.
        let number = (self.tenant.load(Ordering::Relaxed) + 1) | 1;
        self.tenant.store(number, Ordering::Relaxed);
        // Release, partner: the fence in `read`: everything that this thread writes comes after its arrival.
        M::fence(Ordering::Release);
        if let Some(name) = name {
            self.name.with(|place| *place = (number, name));
        }
    }

    /// The name of the thread that has the slot, if it has one.
    pub(crate) fn name(&self) -> Option<String> {
        // Relaxed: the lock has the number of the thread that the name is of.
        self.name_of(self.tenant.load(Ordering::Relaxed))
    }

    fn name_of(&self, tenant: u32) -> Option<String> {
        self.name
            .with(|(of, name)| (*of == tenant).then(|| name.clone()))
    }

    /// The thread gives the slot back. It is in no wait.
    pub(crate) fn depart(&self) {
        // Relaxed: the next thread writes behind the fence in `arrive`.
        let number = self.tenant.load(Ordering::Relaxed);
        self.tenant.store(number + 1, Ordering::Relaxed);
    }

    /// Posts a wait, in the place of an outer one. Returns the version.
    pub(crate) fn post(&self, wait: PostedWait) -> u64 {
        self.take_back();
        // Relaxed: behind the fence in `take_back`, and before the Release store below.
        let site = wait.site.map_or(0, |site| {
            ptr::from_ref(site).expose_provenance() as u64 // A pointer has at most 64 bits.
        });
        self.target.store(wait.target.0, Ordering::Relaxed);
        self.since.store(wait.since.0, Ordering::Relaxed);
        self.until.store(wait.until.0, Ordering::Relaxed);
        self.site.store(site, Ordering::Relaxed);
        let version = self.version.load(Ordering::Relaxed) + 1;
        // Release, partner: the Acquire load in `read`: the fields.
        self.version.store(version, Ordering::Release);
        version
    }

    /// Whether the wait that was posted with this version is still posted.
    pub(crate) fn is_posted(&self, version: u64) -> bool {
        // Relaxed: only the owner writes it, and asks.
        self.version.load(Ordering::Relaxed) == version
    }

    /// The wait that is posted, if there is one, has ended, or another one replaces it.
    pub(crate) fn take_back(&self) {
        // Relaxed: only the owner writes it.
        let version = self.version.load(Ordering::Relaxed);
        if is_odd(version) {
            return;
        }
        self.version.store(version + 1, Ordering::Relaxed);
        // Release, partner: the fence in `read`: everything that this thread writes from here on.
        M::fence(Ordering::Release);
    }

    /// The innermost loop in which the thread takes part, or [`Ticket::NONE`].
    pub(super) fn innermost_loop(&self) -> Ticket {
        // Acquire, partner: the Release stores in `in_loop`.
        Ticket(self.takes_part.load(Ordering::Acquire))
    }

    /// Calls `run`, in which the thread takes part in this loop.
    pub(crate) fn in_loop<R>(&self, job: Ticket, run: impl FnOnce() -> R) -> R {
        // Relaxed: only the owner writes it. Release, partner: the Acquire loads in `read`: a thread that has
        // left and joined again has begun one more job, and its waits in between were posted before.
        let outer = self.takes_part.load(Ordering::Relaxed);
        self.takes_part.store(job.0, Ordering::Release);
        let result = run();
        self.takes_part.store(outer, Ordering::Release);
        result
    }
}

impl<M: Memory> ThreadWords<'_, M> {
    /// The state of the thread that has the slot. `begun`: how many jobs and parts of loops the thread has
    /// begun. An error if the state changed meanwhile, `None` if no thread has the slot.
    pub(crate) fn read(
        &self,
        begun: impl Fn() -> u64,
    ) -> Result<Option<ThreadSeen>, ThreadIsChanging> {
        let posted = self.posted;
        // Acquire, partner: the Release store in `post`: the fields.
        let version = posted.version.load(Ordering::Acquire);
        let tenant = posted.tenant.load(Ordering::Acquire); // Partner: none. It keeps the loads in order.
        if !is_odd(u64::from(tenant)) {
            return Ok(None);
        }
        let begun_before = begun();
        let name = posted.name_of(tenant);
        // Acquire, all of these, partner: the Release stores in `in_loop`. They stay in this order.
        let takes_part = posted.takes_part.load(Ordering::Acquire);
        let waits_for = self.waits_for.load(Ordering::Acquire);
        // Relaxed: behind the load of the version, and before the fence below.
        let wait = PostedWait {
            target: Ticket(posted.target.load(Ordering::Relaxed)),
            since: Nanos(posted.since.load(Ordering::Relaxed)),
            until: Nanos(posted.until.load(Ordering::Relaxed)),
            site: site_at(posted.site.load(Ordering::Relaxed)),
        };
        // Acquire, both, partner: as above.
        let is_same = self.waits_for.load(Ordering::Acquire) == waits_for
            && posted.takes_part.load(Ordering::Acquire) == takes_part;
        // Acquire, partners: the fences in `take_back` and `arrive`.
        M::fence(Ordering::Acquire);
        let is_same = is_same
            && begun() == begun_before
            && posted.version.load(Ordering::Relaxed) == version
            && posted.tenant.load(Ordering::Relaxed) == tenant;
        if !is_same {
            return Err(ThreadIsChanging);
        }
        Ok(Some(ThreadSeen {
            name,
            waits_for: Ticket(waits_for),
            wait: (!is_odd(version)).then_some(wait),
            takes_part: Ticket(takes_part),
        }))
    }
}

/// A thread did something else while its state was read.
pub(crate) struct ThreadIsChanging;

fn is_odd(number: u64) -> bool {
    number & 1 == 1
}

/// The place in the program that `post` was given.
fn site_at(address: u64) -> Option<CallSite> {
    let place = ptr::with_exposed_provenance::<Location<'static>>(address as usize);
    // SAFETY: the word is 0 or the address of a location that `post` was given: it lives for ever, and its
    // provenance was exposed there.
    unsafe { place.as_ref() }
}
