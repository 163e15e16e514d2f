//! Which seats the calling thread sits on: what the platform's thread-local word points to.
//!
//! A thread has a record ([`Sitting`]) from its first call into any job system on. When it ends, the record's
//! destructor gives the seats back. Destructors of other thread-locals may run after that one and call a job
//! system again: the record that is made then is for one call ([`keeps_seats`]).
//!
//! Invariant: a thread's record is its own, and no reference to it is kept beyond a function of this file.

use std::sync::Weak;

use platform::Platform;

use crate::seat::Seat;

/// Which seats the calling thread sits on, one per job system it has used: what the platform's
/// thread-local word points to.
struct Sitting {
    entries: Vec<Held>,
    /// Where it has, or once had, a role: these want to know of its end though it may have no seat there.
    roles: Vec<Weak<dyn Host>>,
    /// It is freed when the thread ends. False: the thread is ending, and the record is for one call.
    is_kept: bool,
}

struct Held {
    /// The job system's number; its complement while the thread records an event of it.
    pool: u32,
    /// An erased `*const Seat<P>`, valid while the job system with that number lives.
    seat: *const (),
    index: u32,
    owner: Weak<dyn Host>,
}

/// What a departing thread needs of a job system whose platform it does not know.
pub(crate) trait Host: Send + Sync {
    /// A guest's thread has ended.
    fn guest_left(&self, seat: u32);
    /// The calling thread, which had a role at some time, ends.
    fn role_thread_ends(&self);
}

/// The calling thread's seat in the job system `pool`, if it has one.
#[inline]
pub(crate) fn current<P: Platform>(platform: &P, pool: u32) -> Option<*const Seat<P>> {
    let sitting = platform.local().cast::<Sitting>();
    if sitting.is_null() {
        return None;
    }
    // SAFETY: the word is only ever set by `sitting`, to a live box that `stand_up` frees when the
    // thread ends; no reference is kept beyond this function.
    let entries = unsafe { &(*sitting).entries };
    entries
        .iter()
        .find(|entry| entry.pool == pool)
        .map(|entry| entry.seat.cast())
}

/// The calling thread's record, made if it has none. It is this thread's alone, and no reference to it is
/// kept: [`current`] and those that change it let go before they return.
fn sitting<P: Platform>(platform: &P) -> *mut Sitting {
    let known = platform.local().cast::<Sitting>().cast_mut();
    if !known.is_null() {
        return known;
    }
    let new = Box::into_raw(Box::new(Sitting {
        entries: Vec::new(),
        roles: Vec::new(),
        is_kept: true,
    }));
    let is_kept = platform.set_local(new.cast_const().cast(), stand_up);
    // SAFETY: just made; no other reference exists.
    unsafe { (*new).is_kept = is_kept };
    new
}

/// The calling thread has got up from a seat that it was lent.
pub(crate) fn stand_up_from<P: Platform>(platform: &P, pool: u32, seat: &Seat<P>) {
    let known = platform.local().cast::<Sitting>().cast_mut();
    if known.is_null() {
        return;
    }
    // SAFETY: the box belongs to this thread, and no other reference to it exists (see `sitting`).
    let entries = unsafe { &mut (*known).entries };
    entries.retain(|entry| entry.pool != pool || entry.index != seat.index);
    forget_unkept(platform);
}

/// Frees the calling thread's record if the thread is ending and sits nowhere: nothing will come to free it
/// later.
pub(crate) fn forget_unkept<P: Platform>(platform: &P) {
    let known = platform.local().cast::<Sitting>().cast_mut();
    if known.is_null() {
        return;
    }
    // SAFETY: the box belongs to this thread, and no other reference to it exists (see `sitting`).
    let is_of_no_use = unsafe { !(*known).is_kept && (*known).entries.is_empty() };
    if is_of_no_use {
        platform.set_local(std::ptr::null(), stand_up);
        // SAFETY: made by `Box::into_raw` in `sitting`, and no longer the thread's word.
        drop(unsafe { Box::from_raw(known) });
    }
}

/// Whether the calling thread keeps its seats until it ends; false while it is ending.
pub(crate) fn keeps_seats<P: Platform>(platform: &P) -> bool {
    // SAFETY: the box belongs to this thread, and no other reference to it exists (see `sitting`).
    let is_kept = unsafe { (*sitting(platform)).is_kept };
    forget_unkept(platform);
    is_kept
}

/// The calling thread calls the sink of the job system `pool`: until this is dropped it does not find its
/// seat there.
pub(crate) struct InSink<'a, P: Platform> {
    platform: &'a P,
    pool: u32,
}

impl<'a, P: Platform> InSink<'a, P> {
    pub(crate) fn new(platform: &'a P, pool: u32) -> InSink<'a, P> {
        rename_pool(platform, pool, !pool);
        InSink { platform, pool }
    }
}

impl<P: Platform> Drop for InSink<'_, P> {
    fn drop(&mut self) {
        rename_pool(self.platform, !self.pool, self.pool);
    }
}

fn rename_pool<P: Platform>(platform: &P, from: u32, to: u32) {
    let known = platform.local().cast::<Sitting>().cast_mut();
    if !known.is_null() {
        // SAFETY: the box belongs to this thread, and no other reference to it exists (see `sitting`).
        let entries = unsafe { &mut (*known).entries };
        let entry = entries.iter_mut().find(|entry| entry.pool == from);
        entry.into_iter().for_each(|entry| entry.pool = to);
    }
}

/// Whether the calling thread is in the sink of the job system `pool`.
pub(crate) fn is_in_sink<P: Platform>(platform: &P, pool: u32) -> bool {
    current(platform, !pool).is_some()
}

/// Notes that the calling thread has a role there, so that the owner hears of its end.
pub(crate) fn note_role<P: Platform>(platform: &P, owner: Weak<dyn Host>) {
    // SAFETY: the box belongs to this thread, and no other reference to it exists (see `sitting`).
    let roles = unsafe { &mut (*sitting(platform)).roles };
    roles.retain(|known| known.strong_count() > 0);
    if !roles.iter().any(|known| known.ptr_eq(&owner)) {
        roles.push(owner);
    }
}

/// Notes that the calling thread sits on this seat.
pub(crate) fn sit<P: Platform>(platform: &P, pool: u32, seat: &Seat<P>, owner: Weak<dyn Host>) {
    // SAFETY: the box belongs to this thread, and no other reference to it exists (see `sitting`).
    let entries = unsafe { &mut (*sitting(platform)).entries };
    entries.retain(|entry| entry.owner.strong_count() > 0);
    let place = std::ptr::from_ref(seat).cast();
    // The newest first: a thread mostly uses the job system it used last.
    entries.insert(
        0,
        Held {
            pool,
            seat: place,
            index: seat.index,
            owner,
        },
    );
}

/// The thread ends: its roles with it, and all its seats are free again.
///
/// # Safety
/// `word` was set by `sitting` on this thread and is not used any more.
unsafe fn stand_up(word: *const ()) {
    // SAFETY: made by `Box::into_raw` in `sitting`; the caller hands it back.
    let sitting = unsafe { Box::from_raw(word.cast::<Sitting>().cast_mut()) };
    for host in sitting.roles.iter().filter_map(Weak::upgrade) {
        host.role_thread_ends();
    }
    for entry in sitting.entries {
        if let Some(host) = entry.owner.upgrade() {
            host.guest_left(entry.index);
        }
    }
}
