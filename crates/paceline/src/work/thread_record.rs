//! The thread slots of the calling thread. The platform's thread-local word points to them.
//!
//! A thread has a record ([`ThreadRecord`]) from its first call into any job system on. When the thread ends,
//! the record's destructor gives the thread slots back. Destructors of other thread-locals may run after that
//! one and call a job system again. The record that is made then lasts for one call ([`keeps_slots`]).
//!
//! Invariant: a thread's record is its own, and no reference to it is kept beyond a function of this file.

use std::sync::Weak;

use platform::Platform;

use super::thread_slot::ThreadSlot;

/// The thread slots of the calling thread, one for each job system it has used. The platform's thread-local
/// word points to it.
struct ThreadRecord {
    entries: Vec<Held>,
    /// The owners of the thread's roles, past and present. They want to know when the thread ends, even if it
    /// has no thread slot there.
    roles: Vec<Weak<dyn Host>>,
    /// The record is freed when the thread ends. False: the thread is ending, and the record is for one call.
    is_kept: bool,
}

struct Held {
    /// The job system's number. Its complement while the thread records an event of that job system.
    pool: u32,
    /// An erased `*const ThreadSlot<P>`, valid while the job system with that number lives.
    slot: *const (),
    index: u32,
    owner: Weak<dyn Host>,
}

/// The part of a job system that a departing thread needs. The thread does not know its platform.
pub(crate) trait Host: Send + Sync {
    /// The thread of a guest has ended.
    fn guest_left(&self, slot: u32);
    /// The calling thread, which had a role at some time, is ending.
    fn role_thread_ends(&self);
}

/// The calling thread's thread slot in the job system `pool`, if it has one.
#[inline]
pub(crate) fn current<P: Platform>(platform: &P, pool: u32) -> Option<*const ThreadSlot<P>> {
    let record = platform.local().cast::<ThreadRecord>();
    if record.is_null() {
        return None;
    }
    // SAFETY: the word is only ever set by `thread_record`, to a live box that `thread_ends` frees when the
    // thread ends. No reference is kept beyond this function.
    let entries = unsafe { &(*record).entries };
    entries
        .iter()
        .find(|entry| entry.pool == pool)
        .map(|entry| entry.slot.cast())
}

/// The calling thread's record, made if it has none. It belongs to this thread alone, and no reference to it
/// is kept: [`current`] and the functions that change it let go before they return.
#[inline(never)]
fn record_of<P: Platform>(platform: &P) -> *mut ThreadRecord {
    let known = platform.local().cast::<ThreadRecord>().cast_mut();
    if !known.is_null() {
        return known;
    }
    let new = Box::into_raw(Box::new(ThreadRecord {
        entries: Vec::new(),
        roles: Vec::new(),
        is_kept: true,
    }));
    let is_kept = platform.set_local(new.cast_const().cast(), thread_ends);
    // SAFETY: just made; no other reference exists.
    unsafe { (*new).is_kept = is_kept };
    new
}

/// Gives back a slot that was lent to the calling thread.
pub(crate) fn give_back<P: Platform>(platform: &P, pool: u32, slot: &ThreadSlot<P>) {
    let known = platform.local().cast::<ThreadRecord>().cast_mut();
    if known.is_null() {
        return;
    }
    // SAFETY: the box belongs to this thread, and no other reference to it exists (see `thread_record`).
    let entries = unsafe { &mut (*known).entries };
    entries.retain(|entry| entry.pool != pool || entry.index != slot.index);
    forget_unkept(platform);
}

/// Frees the calling thread's record if the thread is ending and has no slot: it would not be freed later.
pub(crate) fn forget_unkept<P: Platform>(platform: &P) {
    let known = platform.local().cast::<ThreadRecord>().cast_mut();
    if known.is_null() {
        return;
    }
    // SAFETY: the box belongs to this thread, and no other reference to it exists (see `thread_record`).
    let is_of_no_use = unsafe { !(*known).is_kept && (*known).entries.is_empty() };
    if is_of_no_use {
        platform.set_local(std::ptr::null(), thread_ends);
        // SAFETY: made by `Box::into_raw` in `thread_record`, and no longer the thread's word.
        drop(unsafe { Box::from_raw(known) });
    }
}

/// Whether the calling thread keeps its thread slots until it ends; false while it is ending.
pub(crate) fn keeps_slots<P: Platform>(platform: &P) -> bool {
    // SAFETY: the box belongs to this thread, and no other reference to it exists (see `thread_record`).
    let is_kept = unsafe { (*record_of(platform)).is_kept };
    forget_unkept(platform);
    is_kept
}

/// The calling thread calls the sink of the job system `pool`. Until this is dropped it does not find its
/// thread slot there.
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
    let known = platform.local().cast::<ThreadRecord>().cast_mut();
    if !known.is_null() {
        // SAFETY: the box belongs to this thread, and no other reference to it exists (see `thread_record`).
        let entries = unsafe { &mut (*known).entries };
        let entry = entries.iter_mut().find(|entry| entry.pool == from);
        if let Some(entry) = entry {
            entry.pool = to;
        }
    }
}

/// Whether the calling thread is in the sink of the job system `pool`.
pub(crate) fn is_in_sink<P: Platform>(platform: &P, pool: u32) -> bool {
    current(platform, !pool).is_some()
}

/// Notes that the calling thread has a role there, so that the owner is told when the thread ends.
pub(crate) fn note_role<P: Platform>(platform: &P, owner: Weak<dyn Host>) {
    // SAFETY: the box belongs to this thread, and no other reference to it exists (see `thread_record`).
    let roles = unsafe { &mut (*record_of(platform)).roles };
    roles.retain(|known| known.strong_count() > 0);
    if !roles.iter().any(|known| known.ptr_eq(&owner)) {
        roles.push(owner);
    }
}

/// Notes that the calling thread has this slot.
pub(crate) fn note_slot<P: Platform>(
    platform: &P,
    pool: u32,
    slot: &ThreadSlot<P>,
    owner: Weak<dyn Host>,
) {
    // SAFETY: the box belongs to this thread, and no other reference to it exists (see `thread_record`).
    let entries = unsafe { &mut (*record_of(platform)).entries };
    entries.retain(|entry| entry.owner.strong_count() > 0);
    let place = std::ptr::from_ref(slot).cast();
    // The newest comes first: a thread mostly uses the job system it used last.
    entries.insert(
        0,
        Held {
            pool,
            slot: place,
            index: slot.index,
            owner,
        },
    );
}

/// The thread ends: its roles end with it, and all its thread slots are free again.
///
/// # Safety
/// `word` was set by `thread_record` on this thread and is not used any more.
unsafe fn thread_ends(word: *const ()) {
    // SAFETY: made by `Box::into_raw` in `thread_record`; the caller hands it back.
    let record = unsafe { Box::from_raw(word.cast::<ThreadRecord>().cast_mut()) };
    for host in record.roles.iter().filter_map(Weak::upgrade) {
        host.role_thread_ends();
    }
    for entry in record.entries {
        if let Some(host) = entry.owner.upgrade() {
            host.guest_left(entry.index);
        }
    }
}
