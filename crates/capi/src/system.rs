//! A job system behind a pointer.
//!
//! A job system that was destroyed leaves half a kilobyte behind for good, so that a pointer to it can still
//! be asked: a call after the end is a status and no crash. A list of all of them holds it, so that leak
//! checkers, which look for what no pointer leads to, have nothing to say.

use std::collections::HashMap;
use std::ffi::c_char;
use std::mem::{ManuallyDrop, MaybeUninit, offset_of};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use paceline::{
    Builder, CancelToken, Frame, Group, JobId, JobSystem, Latch, Trace, WORKERS_MAX, WaitPolicy,
};

use crate::described::{Described, must_be, or_nothing, read, text};
use crate::graph::ProgramGraph;
use crate::hooks::Hook;
use crate::status::{Answer, Refusal, call, pl_status};

/// A job system.
///
/// All functions may be called from any thread, and from inside of jobs, unless they say otherwise. A thread
/// needs no registration.
pub struct pl_system {
    state: AtomicU32,
    /// The process that made it.
    process: u32,
    /// See [`fresh_tag`].
    tag: u64,
    /// Dropped by way of a copy when the state changes, by the thread that changes it. These bytes stay: a
    /// job that runs then may be in the middle of a call.
    js: ManuallyDrop<JobSystem>,
    /// The events that are not complete, by the 64 bits of their job.
    pub(crate) events: Mutex<HashMap<u64, OpenEvent>>,
    /// The tokens that the program has made, as all below by [`fresh_number`].
    pub(crate) tokens: Mutex<HashMap<u64, CancelToken>>,
    pub(crate) frames: Mutex<HashMap<u64, Frame<'static>>>,
    pub(crate) groups: Mutex<HashMap<u64, Arc<Group>>>,
    pub(crate) graphs: Mutex<HashMap<u64, Arc<ProgramGraph>>>,
    /// What threads are called by for jobs that are pinned to them.
    pub(crate) hooks: Mutex<HashMap<u64, Arc<Hook>>>,
    pub(crate) trace: Mutex<Option<Trace>>,
}

/// An event that is not complete.
pub(crate) struct OpenEvent {
    pub(crate) latch: Latch,
    /// How often it is still to be completed.
    pub(crate) left: usize,
}

/// A number for something that the program makes. No job system uses one twice, nor one of another.
pub(crate) fn fresh_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    // Relaxed: only the number counts.
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// The tag of the next job system. A job's number is its bits (an index, and above it a generation, which
/// begins at 1) with this one's turned over. The first bits that differ between job systems are the highest:
/// the number of another job system's job has a generation here that no job has reached. The lowest bits are
/// an index that no job has, so that no number is zero.
fn fresh_tag() -> u64 {
    const INDEX_BITS: u32 = 24;
    static LAST: AtomicU64 = AtomicU64::new(0);
    // Relaxed: only the number counts.
    let generation = LAST.fetch_add(1, Ordering::Relaxed).reverse_bits() >> INDEX_BITS;
    (generation << INDEX_BITS) | ((1 << INDEX_BITS) - 1)
}

/// All job systems of the process, ended ones as well.
static ALL: Mutex<Vec<&pl_system>> = Mutex::new(Vec::new());

/// States of a job system. Two numbers that memory of other kinds rarely holds.
const LIVE: u32 = 0x7061_6365;
const ENDED: u32 = 0x656e_6465;

impl pl_system {
    #[inline(always)]
    pub(crate) fn js(&'static self) -> Answer<&'static JobSystem> {
        // Acquire: pairs with the Release in `pl_system_destroy`, after which nothing of it is touched. A
        // call of a job that runs meanwhile, and has come past this, finds what it needs: its thread keeps
        // it, and is joined.
        if self.state.load(Ordering::Acquire) == ENDED {
            return Err(was_destroyed());
        }
        Ok(&self.js)
    }

    /// The same, for calls with no answer of their own to a thread that cannot have a slot.
    pub(crate) fn entered(&'static self) -> Answer<&'static JobSystem> {
        let js = self.js()?;
        js.try_enter(|_| ())?;
        Ok(js)
    }

    /// Whether this process is the child of a fork: what other threads held is held for ever.
    pub(crate) fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    /// Ends what C has not ended: an open frame ends, an open event is abandoned. That can call the program,
    /// which may call again: so no lock is held.
    fn let_go(&self) {
        drop(emptied(&self.frames));
        drop(emptied(&self.groups));
        drop(emptied(&self.tokens));
        drop(emptied(&self.events));
    }

    /// Ends all graphs; waits for those that were started.
    ///
    /// # Errors
    /// If one is in a call, or this thread is in one of its jobs: then nothing was done.
    fn end_graphs(&self) -> Answer {
        let graphs: Vec<Arc<ProgramGraph>> = lock(&self.graphs).values().cloned().collect();
        for graph in &graphs {
            graph.must_stay()?;
        }
        for graph in &graphs {
            graph.end_at_last()?;
        }
        lock(&self.graphs).clear();
        Ok(())
    }

    /// The id behind 64 bits of C.
    pub(crate) fn id(&'static self, job: u64) -> Answer<JobId> {
        let id = self.js()?.id_from_bits(job ^ self.tag);
        id.ok_or_else(|| no_job(job))
    }

    /// The 64 bits of an id for C. `js` is what [`pl_system::js`] gives.
    #[inline]
    pub(crate) fn number(&self, js: &JobSystem, id: JobId) -> u64 {
        self.number_of_bits(js.id_to_bits(id))
    }

    /// The same for the bits of an id.
    #[inline]
    pub(crate) fn number_of_bits(&self, bits: u64) -> u64 {
        bits ^ self.tag
    }
}

/// The job system that C names, alive or not.
///
/// # Safety
/// `system` is null, or was made by `pl_system_create`.
#[inline]
pub(crate) unsafe fn named(system: *const pl_system) -> Answer<&'static pl_system> {
    if system.is_null() {
        return Err(no_system("the job system is a null pointer"));
    }
    // SAFETY: it was made by `pl_system_create`, and is never given back.
    let system = unsafe { &*system };
    // Relaxed: `js` looks at it again.
    match system.state.load(Ordering::Relaxed) {
        LIVE | ENDED => Ok(system),
        _ => Err(no_system("the pointer is not to a job system")),
    }
}

// What each call may say stands apart, so that each call looks for itself, without a call of its own.

#[cold]
fn no_system(why: &str) -> Refusal {
    Refusal::invalid(why)
}

#[cold]
fn was_destroyed() -> Refusal {
    let why = "this job system was destroyed by pl_system_destroy before this call";
    Refusal::new(pl_status::PL_DESTROYED, why)
}

#[cold]
fn no_job(job: u64) -> Refusal {
    let why = format!("{job:#x} is not the number of a job of this job system");
    Refusal::new(pl_status::PL_UNKNOWN, why)
}

/// How to make a job system. Zero in a field is its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pl_system_desc {
    /// sizeof(pl_system_desc).
    pub size: usize,
    /// Exactly this many workers. 0: as many as this process may use CPUs, less `reserve`, and one less for
    /// the thread that waits. For no workers at all, set `no_workers`.
    pub workers: u32,
    /// 1: no workers. Waits run the jobs. `workers` is 0 then.
    pub no_workers: u32,
    /// How many threads of the program compute all the time and need a CPU each. 0: one, which makes the
    /// frames.
    pub reserve: u32,
    /// How many jobs may be live at a time. 0: a million.
    pub max_jobs: u32,
    /// How many threads of the program may call. 0: 255.
    pub max_threads: u32,
    /// The bytes of a worker's stack. 0: the system's choice.
    pub stack_bytes: usize,
    /// How threads wait: "adaptive", "active" or "passive". Null: as PACELINE_WAIT says, else adaptive.
    pub wait_policy: *const c_char,
    /// The most workers that run background jobs at a time. 0: all.
    pub background_at_most: u32,
    /// How much of the workers' time the lanes PL_LANE_SHARE_1 and so on get, in percent; in sum at most 99.
    /// 0 for the last ones: nothing is set, which is 10 for each 100 of the others.
    pub shares: [u8; 5],
    /// The most workers that run jobs of the lanes PL_LANE_SHARE_1 and so on at a time. 0: all. A share is a
    /// part of the time over a while; a limit keeps workers free of such a lane at any moment.
    pub shares_at_most: [usize; 5],
    /// 1: a scheduler in user space (Linux, sched_ext) is told which thread waits for which, and until when,
    /// by memory that its broker gives, at /run/paceline/hints.sock or where PACELINE_HINTS says. If none
    /// listens, nothing is different, and a line of pl_explain says why.
    pub hints: u32,
    /// How many spares there may be: further threads, each started when all workers wait in the middle of
    /// jobs while other work is ready. 0: 256. At most 960.
    pub max_spares: usize,
    /// 1: no spares, and no line on the standard error output when all workers wait. `max_spares` is 0 then.
    /// For programs whose waits run whatever is ready, such as those of a group that all jobs belong to.
    pub no_spares: u32,
}

// SAFETY: it is repr(C), begins with its size, and zero is a value of each field.
unsafe impl Described for pl_system_desc {
    const NAME: &'static str = "pl_system_desc";
    // What was added begins past the padding of the first version, in which there may be anything.
    const FIRST_SIZE: usize = offset_of!(pl_system_desc, shares_at_most);
}

/// Sets the limits of the lanes with a share. Where C says nothing it is all workers that there may be.
fn limits_of(builder: Builder, description: &pl_system_desc) -> Builder {
    let limits = description.shares_at_most;
    let Some(last) = limits.iter().rposition(|&limit| limit != 0) else {
        return builder;
    };
    let limits = limits.map(|limit| if limit == 0 { WORKERS_MAX } else { limit });
    builder.shares_at_most(&limits[..=last])
}

/// Two settings of which only one can be: a number, and that there are to be none.
#[cold]
fn contradictory(number: usize, things: &str) -> Refusal {
    let why = format!(
        "pl_system_desc asks for {number} {things} and sets no_{things}: set one of the two"
    );
    Refusal::new(pl_status::PL_SETTING, why)
}

fn builder_of(description: &pl_system_desc) -> Answer<Builder> {
    let mut builder = Builder::new();
    if description.no_workers != 0 {
        if description.workers != 0 {
            return Err(contradictory(description.workers as usize, "workers"));
        }
        builder = builder.workers(0);
    } else if description.workers != 0 {
        builder = builder.workers(description.workers as usize);
    }
    if description.reserve != 0 {
        builder = builder.reserve(description.reserve as usize);
    }
    if description.max_jobs != 0 {
        builder = builder.max_jobs(description.max_jobs);
    }
    if description.max_threads != 0 {
        builder = builder.max_threads(description.max_threads as usize);
    }
    if description.no_spares != 0 {
        if description.max_spares != 0 {
            return Err(contradictory(description.max_spares, "spares"));
        }
        builder = builder.max_spares(0).on_stuck(|_| ());
    } else if description.max_spares != 0 {
        builder = builder.max_spares(description.max_spares);
    }
    if description.stack_bytes != 0 {
        builder = builder.stack_bytes(description.stack_bytes);
    }
    if description.background_at_most != 0 {
        builder = builder.background_at_most(description.background_at_most as usize);
    }
    let set = description.shares.iter().rposition(|&percent| percent != 0);
    if let Some(last) = set {
        builder = builder.shares(&description.shares[..=last]);
    }
    builder = limits_of(builder, description);
    builder = builder.hints(description.hints != 0);
    // SAFETY: a text that the program passes ends with a zero byte, and stays during the call.
    if let Some(policy) = unsafe { text(description.wait_policy, "wait_policy") }? {
        let policy = policy.parse::<WaitPolicy>();
        let policy =
            policy.map_err(|error| Refusal::new(pl_status::PL_SETTING, error.to_string()))?;
        builder = builder.wait_policy(policy);
    }
    Ok(builder)
}

/// Makes a job system and its workers, and puts it into `*out`: null if it is refused. With a null `desc` all
/// is by default. The environment may set more (PACELINE_WORKERS, PACELINE_TRACE and others), so what is set
/// there can be the reason of a refusal: look at the status. Starts threads, allocates.
///
/// # Safety
/// `desc` is null or points to a description whose `size` is right. `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_system_create(
    desc: *const pl_system_desc,
    out: *mut *mut pl_system,
) -> pl_status {
    let status = call(|| {
        must_be(out, "out")?;
        let mut room = MaybeUninit::uninit();
        let builder = if desc.is_null() {
            Builder::new()
        } else {
            // SAFETY: the caller's promise.
            builder_of(unsafe { read(desc, &mut room) }?)?
        };
        let system: &pl_system = Box::leak(Box::new(pl_system {
            state: AtomicU32::new(LIVE),
            process: std::process::id(),
            tag: fresh_tag(),
            js: ManuallyDrop::new(builder.build()?),
            events: Mutex::default(),
            tokens: Mutex::default(),
            frames: Mutex::default(),
            groups: Mutex::default(),
            graphs: Mutex::default(),
            hooks: Mutex::default(),
            trace: Mutex::default(),
        }));
        lock(&ALL).push(system);
        // SAFETY: the caller's promise.
        unsafe { out.write(std::ptr::from_ref(system).cast_mut()) };
        Ok(pl_status::PL_OK)
    });
    // SAFETY: the caller's promise.
    unsafe { or_nothing(status, out, null_mut()) }
}

/// Ends a job system: runs all that is ready, drops what can never run, waits for graphs that were started,
/// writes a trace that is still being recorded, and joins the workers. Blocks. It may be called in a job of
/// the job system, which then ends after that job; PL_BUSY in a job of a graph. No call from outside of its
/// jobs may be going on, the one that made that job included: it may still be, in its thread, when the job
/// begins. From then on calls return PL_DESTROYED, those of jobs that still run, too: a program whose jobs
/// make jobs waits for them first. In the child of a fork it only forgets. Null is nothing to end.
///
/// # Safety
/// `system` is null or was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_system_destroy(system: *mut pl_system) -> pl_status {
    if system.is_null() {
        return pl_status::PL_OK;
    }
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        system.js()?;
        if system.is_forked() {
            // What other threads were in the middle of stays as it is.
            system.state.store(ENDED, Ordering::Release);
            return Ok(pl_status::PL_OK);
        }
        system.end_graphs()?;
        let trace = lock(&system.trace).take();
        let trace = trace.map_or(Ok(()), |trace| trace.finish().map(drop));
        system.let_go();
        // AcqRel: pairs with the Acquire in `js`; of two calls one ends it.
        if system.state.swap(ENDED, Ordering::AcqRel) == LIVE {
            // SAFETY: this happens once, and no call begins to look at the bytes that stay.
            drop(unsafe { std::ptr::read(&*system.js) });
        }
        drop(emptied(&system.hooks)); // Nothing is ready any more.
        trace?;
        Ok(pl_status::PL_OK)
    })
}

impl pl_system {
    /// What a lock of this job system holds.
    ///
    /// # Errors
    /// In the child of a fork, if another thread of the parent held it: it has it for ever.
    pub(crate) fn lock<'l, T>(&self, of: &'l Mutex<T>) -> Answer<MutexGuard<'l, T>> {
        match of.try_lock() {
            Ok(held) => Ok(held),
            Err(TryLockError::WouldBlock) if self.is_forked() => Err(is_forked()),
            Err(_) => Ok(lock(of)),
        }
    }
}

#[cold]
fn is_forked() -> Refusal {
    paceline::ScheduleError::Forked.into()
}

/// What a lock holds. Code that panics under it would be a mistake of this library; what it holds is sound
/// all the same.
pub(crate) fn lock<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(|broken| broken.into_inner())
}

/// All that it holds, taken out.
fn emptied<T: Default>(of: &Mutex<T>) -> T {
    std::mem::take(&mut *lock(of))
}

/// Nanoseconds of C.
pub(crate) fn time(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}
