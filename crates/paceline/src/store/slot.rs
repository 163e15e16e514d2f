//! The memory of one job: a cache line of atomics, and a cache line for the closure.
//!
//! # The state word
//!
//! `generation 40 | participants 16 | phase 8`. It changes like this:
//!
//! | from → to | by | how |
//! |---|---|---|
//! | Free → Waiting | the thread that allocated the slot | store |
//! | Waiting → Ready | the thread that brought `pending` to zero | store |
//! | Ready → Running, participants 1 | the thread that wins | CAS: *the claim* |
//! | Running → Waiting | the thread that has polled a future which is pending | store |
//! | Running → Open | the claimer of a range, once its pieces can be shared | store |
//! | Open, participants n → n ± 1 | participants, n > 0 | CAS / subtract |
//! | Running, Open with participants 0 → Free, next generation | the last one out | store |
//! | … → Settled | the same, if a handle still holds the result | store |
//! | Settled → Free, next generation | the handle, or the finisher after it | store |
//!
//! A ticket is good for a claim only while generation and phase match. So a ticket may be copied, may be lost
//! from one queue while it is in another, or may be left behind: the word decides.
//!
//! # The links word
//!
//! `low 36 bits of the generation | link 28`: the head of the list of links to successors, waiters and wakers
//! (see `links`). To add a link is a CAS, which fails on another generation or on CLOSED. To close the list
//! is one swap, which takes all of it. That decides the race between a new edge and the end of the job.

use platform::{Atomic, Ordering, Platform, SharedCell};

use super::body::{Body, BodyTable};
use super::id::Ticket;
use super::lane::LaneFlags;
use super::links::Preds;
use super::slab::NIL;
use crate::border::Payload;

/// How far a job is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum JobPhase {
    /// The slot holds no job.
    Free = 0,
    /// Held back by predecessors, by the thread that is still building it, or by an event.
    Waiting = 1,
    /// May be claimed.
    Ready = 2,
    /// Its body runs.
    Running = 3,
    /// Its body runs, and other threads may take part (a range).
    Open = 4,
    /// Over; the result waits for its handle.
    Settled = 5,
}

/// A decoded state word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StateWord {
    pub(crate) generation: u64,
    pub(crate) participants: u32,
    pub(crate) phase: JobPhase,
}

impl StateWord {
    const PHASE_BITS: u32 = 8;
    const PARTICIPANTS_BITS: u32 = 16;
    /// Adding this to the word adds one participant.
    pub(crate) const PARTICIPANT: u64 = 1 << StateWord::PHASE_BITS;
    /// The most participants that the word can count.
    pub(crate) const PARTICIPANTS_MAX: u32 = (1 << StateWord::PARTICIPANTS_BITS) - 1;

    #[inline]
    pub(crate) fn new(generation: u64, phase: JobPhase, participants: u32) -> StateWord {
        debug_assert!(participants <= StateWord::PARTICIPANTS_MAX);
        debug_assert!(
            generation <= Ticket::GENERATION_LAST + 1,
            "the last one moves on once"
        );
        StateWord {
            generation,
            participants,
            phase,
        }
    }

    #[inline]
    pub(crate) fn pack(self) -> u64 {
        self.generation << (StateWord::PHASE_BITS + StateWord::PARTICIPANTS_BITS)
            | u64::from(self.participants) << StateWord::PHASE_BITS
            | self.phase as u64
    }

    #[inline]
    pub(crate) fn unpack(word: u64) -> StateWord {
        StateWord {
            generation: word >> (StateWord::PHASE_BITS + StateWord::PARTICIPANTS_BITS),
            participants: (word >> StateWord::PHASE_BITS) as u32 & StateWord::PARTICIPANTS_MAX,
            phase: match word as u8 {
                0 => JobPhase::Free,
                1 => JobPhase::Waiting,
                2 => JobPhase::Ready,
                3 => JobPhase::Running,
                4 => JobPhase::Open,
                _ => JobPhase::Settled,
            },
        }
    }

    /// Whether the job with this ticket is over.
    #[inline]
    pub(crate) fn is_over(self, ticket: Ticket) -> bool {
        self.generation != ticket.generation() || self.phase == JobPhase::Settled
    }
}

/// A decoded links word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LinksWord(pub(crate) u64);

impl LinksWord {
    const LINK_BITS: u32 = 28;
    /// In place of a link: the job is over, nothing can be added.
    pub(crate) const CLOSED: u32 = NIL - 1;

    #[inline]
    pub(crate) fn new(generation: u64, link: u32) -> LinksWord {
        debug_assert!(link <= NIL);
        LinksWord(generation << LinksWord::LINK_BITS | u64::from(link))
    }

    #[inline]
    pub(crate) fn link(self) -> u32 {
        self.0 as u32 & NIL
    }

    /// Whether links can be added for the job with this ticket.
    #[inline]
    pub(crate) fn is_open_for(self, ticket: Ticket) -> bool {
        self.link() != LinksWord::CLOSED && self.belongs_to(ticket)
    }

    #[inline]
    fn is_closed_for(self, ticket: Ticket) -> bool {
        self.link() == LinksWord::CLOSED && self.belongs_to(ticket)
    }

    #[inline]
    fn belongs_to(self, ticket: Ticket) -> bool {
        self.0 >> LinksWord::LINK_BITS
            == LinksWord::new(ticket.generation(), 0).0 >> LinksWord::LINK_BITS
    }
}

/// A job, or room for one.
#[repr(C, align(128))]
pub(crate) struct Slot<P: Platform> {
    /// See the table above.
    pub(crate) state: P::AtomicU64,
    /// The list of successors and listeners to notify; see above.
    pub(crate) links: P::AtomicU64,
    /// With HAS_PARENT: the scope that this job belongs to, or the job that made it; all of its links are in
    /// blocks then. Without: for each of the job's first links, the number of the link behind it, 28 bits
    /// each and inverted (0 is [`NIL`]). Written by the thread that makes the job; each number is written
    /// before its link is published. After that it is only read.
    pub(crate) parent: P::AtomicU64,
    /// The last wait that found this job to be needed: `serial 48 | thread 16`. It is a hint which thread to
    /// wake when the job can run, and it is the wait's mark for jobs it has visited. Any thread writes it;
    /// all accesses are Relaxed.
    pub(crate) mark: P::AtomicU64,
    /// Unfinished predecessors, plus one while a thread builds the job or an event holds it. Of a scope: its
    /// unfinished jobs. The thread that brings it to zero makes the job ready.
    pub(crate) pending: P::AtomicU32,
    /// First block of the links that lead to predecessors: a [`Preds`].
    pub(crate) preds: P::AtomicU32,
    /// [`Slot::HAS_BODY`] and the other flags. Written before the job is published, except CANCELLED.
    pub(crate) flags: P::AtomicU32,
    /// The label's number.
    pub(crate) label: P::AtomicU32,
    /// Running: the thread slot that claimed the job, from when that thread has stored it. Open: the block
    /// with the range's words. Before that [`Slot::NOWHERE`], or the job's [`Rank`](super::Rank). Of a scope:
    /// the block of its links in which the next free place is looked for.
    pub(crate) place: P::AtomicU32,
    /// Jobs with a handle: which sides still need the slot, and where the result is; see `holders`.
    pub(crate) holders: P::AtomicU32,
    /// The functions that run or drop the body. Written by the allocating thread, read by the claimer.
    pub(crate) table: P::Cell<Option<&'static BodyTable>>,
    /// The closure, or the result of a typed job. Access as for `table`.
    pub(crate) body: P::Cell<Body>,
}

// SAFETY: table and body are touched by one thread at a time: by the allocator before the job is published,
// then by the winner of the claim (or by the participants, which have a shared reference to a Sync closure),
// then by the handle after the last subtraction of `holders`. Bodies and results are Send (the scheduling
// calls demand it). The rest is atomic.
unsafe impl<P: Platform> Sync for Slot<P> {}
// SAFETY: as above.
unsafe impl<P: Platform> Send for Slot<P> {}

impl<P: Platform> Slot<P> {
    /// There is a closure to call. Without it the job is over as soon as it is ready (events, combinations,
    /// scopes).
    pub(crate) const HAS_BODY: u32 = 1;
    /// The body is a range: the thread that claims it opens it for others.
    pub(crate) const IS_RANGE: u32 = 1 << 1;
    /// A predecessor failed: the body is dropped, not run.
    pub(crate) const CANCELLED: u32 = 1 << 2;
    /// A typed handle holds the result.
    pub(crate) const IS_HELD: u32 = 1 << 3;
    /// No code outside can name this job (a scope's child, a promoted fork). So its links word is not used,
    /// which saves the swap at its end.
    pub(crate) const IS_ANONYMOUS: u32 = 1 << 4;
    /// Belongs to the scope in `parent`, which counts its end.
    pub(crate) const IN_SCOPE: u32 = 1 << 5;
    /// Some part of the range panicked.
    pub(crate) const PANICKED: u32 = 1 << 6;
    /// The thread that made it is going to wait for it (a loop that is shared).
    pub(crate) const IS_AWAITED: u32 = 1 << 7;
    /// A token can call it off: see `work/tokens.rs`.
    pub(crate) const HAS_TOKEN: u32 = 1 << 18;
    /// One thread alone may run it: see `work/pinned.rs`.
    pub(crate) const IS_PINNED: u32 = 1 << 19;
    /// A job of a frame whose jobs begin in the order of what hangs on them: see `work/order/frames.rs`.
    pub(crate) const IS_RANKED: u32 = 1 << 23;
    /// The flags of jobs of which something is kept in a table beside the slots.
    pub(crate) const HAS_EXTRAS: u32 =
        Slot::<P>::HAS_TOKEN | Slot::<P>::IS_PINNED | Slot::<P>::IS_RANKED;
    // Bits 8 and 16 are the lane of a job with a body, bits 17 and 25 the lane that it was raised to: see
    // `lane`.
    /// `parent` holds a scope or a job, and not the numbers of next links.
    pub(crate) const HAS_PARENT: u32 = 1 << 9;
    /// A job that a handle holds has failed: there is no result. Written before its list is closed.
    pub(crate) const FAILED: u32 = 1 << 10;
    /// An event that has not been completed, a future that is pending, or a pinned job whose thread has not
    /// come for it yet: that counts as one of the things that hold it back.
    pub(crate) const IS_OPEN_EVENT: u32 = 1 << 11;
    /// The body is a future: it may be run several times.
    pub(crate) const IS_FUTURE: u32 = 1 << 13;
    /// A future that has been pending, or a pinned job that was ready. What a future awaits is among its
    /// predecessors; these do not count.
    pub(crate) const WAS_POLLED: u32 = 1 << 14;

    /// A run of a built graph, or a job of one. The thread that waits for the run ends it, also while the job
    /// system ends: the jobs use what belongs to that thread.
    pub(crate) const OF_RUN: u32 = 1 << 15;

    /// A scope. It waits for the jobs that name it as their parent.
    pub(crate) const IS_SCOPE: u32 = 1 << 12;

    /// Whether a ready job with these flags goes into a deque, as nearly all do: it was made in the normal
    /// lane and is in it, any thread may run it, and it has no rank.
    #[inline(always)]
    pub(crate) fn goes_into_deque(flags: u32) -> bool {
        let others = Slot::<P>::IS_PINNED | Slot::<P>::IS_RANKED;
        flags & (LaneFlags::OF_JOB | others) == LaneFlags::NORMAL.0
    }

    /// Whether a job with these flags belongs to a group.
    #[inline(always)]
    pub(crate) fn is_of_group(flags: u32) -> bool {
        flags & (Slot::<P>::HAS_PARENT | Slot::<P>::IN_SCOPE) == Slot::<P>::HAS_PARENT
    }

    /// Value of `place`: no thread slot has the job, or none has stored itself there yet.
    pub(crate) const NOWHERE: u32 = u32::MAX;

    /// The scope of the job, or the job that made it. For callers that have the job to themselves, or that
    /// can live with an answer about another job. `flags` are those of the job.
    #[inline]
    pub(crate) fn parent(&self, flags: u32) -> Ticket {
        match flags & Slot::<P>::HAS_PARENT {
            0 => Ticket::NONE,
            _ => Ticket(self.parent.load(Ordering::Relaxed)),
        }
    }

    /// The same for any caller. `None` also if `job` is over.
    #[inline]
    pub(crate) fn parent_of(&self, job: Ticket) -> Option<Ticket> {
        // Acquire, partners: the Release stores in `make` and `set_next`, by which the slot's next job wrote
        // this word. If this load saw such a store, the state, which is read last, says that this job is
        // over.
        let parent = Ticket(self.parent.load(Ordering::Acquire));
        if parent.is_none() {
            return None;
        }
        // Acquire, partner: the Release store in `make`, as above.
        let has_one = self.flags.load(Ordering::Acquire) & Slot::<P>::HAS_PARENT != 0;
        (has_one && !self.is_over(job)).then_some(parent)
    }

    /// The label's number, for any caller. `None` if `job` has ended. Not for anonymous jobs.
    pub(crate) fn label_of(&self, job: Ticket) -> Option<u32> {
        // Acquire, partner: the Release store in `make`. If this load saw the label of the slot's next job,
        // the state, which is read last, says that this job is over.
        let label = self.label.load(Ordering::Acquire);
        (!self.has_ended(job)).then_some(label)
    }

    /// Calls `look`, for any caller, with the state of the job in this slot. `None` if the slot has no job
    /// that is not over, or if the job or its phase changed during the call. Otherwise all that `look` has
    /// loaded from the slot with Acquire is of that job, unless it was written with Relaxed. Returns the job,
    /// too.
    pub(crate) fn look_at<R>(
        &self,
        index: u32,
        look: impl FnOnce(Ticket, StateWord) -> R,
    ) -> Option<R> {
        // Acquire, partner: the Release stores of the state: what was written before the job got that far.
        let before = self.word(Ordering::Acquire);
        if matches!(before.phase, JobPhase::Free | JobPhase::Settled) {
            return None;
        }
        let found = look(Ticket::new(index, before.generation), before);
        // Relaxed: the slot's next job wrote what `look` has loaded after this word had changed, and with
        // Release.
        let after = self.word(Ordering::Relaxed);
        let is_same = (after.generation, after.phase) == (before.generation, before.phase);
        is_same.then_some(found)
    }

    /// The job is over, and its result is not needed: moves on to the next generation.
    #[inline]
    pub(crate) fn move_on(&self, job: Ticket) {
        let next = StateWord::new(job.generation() + 1, JobPhase::Free, 0).pack();
        // Release, partner: the Acquire load in `is_over`: everything the job did.
        self.state.store(next, Ordering::Release);
    }

    /// Takes the cache line for writing. For a caller that is going to count down `pending` and reads
    /// something of the slot before: a line that is read first travels twice. It stores to a field that means
    /// nothing while the job waits.
    #[inline]
    pub(crate) fn take_line(&self) {
        // Relaxed: the thread that claims the job writes over it. The count orders all of these stores before
        // that.
        self.place.store(Slot::<P>::NOWHERE, Ordering::Relaxed);
    }

    /// The number of the link behind this one, which is one of the job's first links, in the predecessor's
    /// list. For the finisher of that predecessor, before it releases the job.
    #[inline]
    pub(crate) fn next(&self, place: usize) -> u32 {
        // Relaxed: written before the link was published, and the caller has got the link from the list.
        let words = self.parent.load(Ordering::Relaxed);
        !(words >> (place as u32 * LinksWord::LINK_BITS)) as u32 & NIL
    }

    /// Sets it. Only for the thread that makes the job, before it publishes the link. The numbers share a
    /// word: other threads may be reading the number of a link that is already published, and that one does
    /// not change.
    #[inline]
    pub(crate) fn set_next(&self, place: usize, next: u32) {
        let shift = place as u32 * LinksWord::LINK_BITS;
        // Relaxed: only this thread writes it.
        let others = self.parent.load(Ordering::Relaxed) & !(u64::from(NIL) << shift);
        // Release, partner: the Acquire load in `parent_of`, as in `make`.
        self.parent
            .store(others | u64::from(!next & NIL) << shift, Ordering::Release);
    }

    #[inline]
    pub(crate) fn word(&self, order: Ordering) -> StateWord {
        StateWord::unpack(self.state.load(order))
    }

    /// Whether the job with this ticket is over. If so, everything it did is visible.
    #[inline]
    pub(crate) fn is_over(&self, ticket: Ticket) -> bool {
        // Acquire, partner: the Release stores in `let_go` and `move_on`.
        self.word(Ordering::Acquire).is_over(ticket)
    }

    /// Whether the threads that wait for the job may go on: it is over, or its list is closed, which comes
    /// shortly before that. If so, everything the job did is visible.
    #[inline]
    pub(crate) fn has_ended(&self, ticket: Ticket) -> bool {
        // Acquire, partner: the swap in `close`.
        let links = LinksWord(self.links.load(Ordering::Acquire));
        links.is_closed_for(ticket) || self.is_over(ticket)
    }

    /// Tries to win the right to run the job. Of all calls with equal tickets exactly one ever succeeds. (For
    /// a future: one each time that it is made ready, whichever ticket it is.)
    #[inline]
    pub(crate) fn claim(&self, ticket: Ticket) -> bool {
        let ready = StateWord::new(ticket.generation(), JobPhase::Ready, 0).pack();
        let running = StateWord::new(ticket.generation(), JobPhase::Running, 1).pack();
        // Acquire, partner: the Release store that made it ready: the body, and everything that its
        // predecessors did, is visible to the claimer. Relaxed on failure: nothing is read then.
        self.state
            .compare_exchange(ready, running, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }
}

impl<P: Platform> Slot<P> {
    /// Fills in the body of a new job.
    ///
    /// # Safety
    /// The job is new: no other thread knows it. `table` belongs to `F`, and everything that `body` borrows
    /// lives until the job has ended.
    #[inline]
    pub(crate) unsafe fn put_body<F>(&self, body: F, table: &'static BodyTable) {
        // SAFETY: the caller's promise: this thread has table and body to itself, and the slot's last body is
        // gone.
        unsafe {
            self.table.with_mut(|place| *place = Some(table));
            self.body.with_mut(|place| Body::put(place, body));
        }
    }

    /// The number of the job's label.
    #[inline]
    pub(crate) fn label_number(&self) -> u32 {
        // Relaxed: written before the job was published.
        self.label.load(Ordering::Relaxed)
    }

    /// Drops the result of a typed job.
    ///
    /// # Safety
    /// The job has run to its end without failing, its result is still there, and the caller is the last that
    /// needs the slot.
    pub(crate) unsafe fn drop_result(&self) -> Result<(), Payload> {
        // SAFETY: the caller's promise; the table was written before the job was published.
        unsafe {
            match self.table.with(|table| *table) {
                Some(table) => self.body.with_mut(|body| table.drop_result(body)),
                None => Ok(()),
            }
        }
    }

    /// Drops the closure of a job that was not run, or of a range that has ended.
    ///
    /// # Safety
    /// The closure is there, and the caller has the job to itself.
    pub(crate) unsafe fn discard_body(&self) -> Result<(), Payload> {
        // SAFETY: the caller's promise; the table was written before the job was published.
        unsafe {
            match self.table.with(|table| *table) {
                Some(table) => self.body.with_mut(|body| table.discard(body)),
                None => Ok(()),
            }
        }
    }

    /// The closure of a range, for the participants, which share it. The cell's rule is that nothing writes
    /// while it is read. The participants keep that rule: the cell is written when the last of them has left.
    pub(crate) fn body_for_participants(&self) -> *mut Body {
        // SAFETY: nothing is read or written through the pointer here. A participant has acquired what was
        // written to the cell, with its claim or by joining.
        unsafe { self.body.with(|body| body.cast_mut()) }
    }
}

impl<P: Platform> Slot<P> {
    /// Room for a job.
    pub(crate) fn empty() -> Slot<P> {
        Slot {
            state: P::AtomicU64::new(StateWord::new(1, JobPhase::Free, 0).pack()),
            links: P::AtomicU64::new(LinksWord::new(1, LinksWord::CLOSED).0),
            parent: P::AtomicU64::new(0),
            mark: P::AtomicU64::new(0),
            pending: P::AtomicU32::new(0),
            preds: P::AtomicU32::new(Preds::NONE.0),
            flags: P::AtomicU32::new(0),
            label: P::AtomicU32::new(0),
            place: P::AtomicU32::new(Slot::<P>::NOWHERE),
            holders: P::AtomicU32::new(0),
            table: P::Cell::new(None),
            body: P::Cell::new(Body::EMPTY),
        }
    }
}

const _: () = assert!(size_of::<Slot<platform::Os>>() == 128);
