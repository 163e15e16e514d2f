//! Loops: as a job, and in place.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use paceline::{Context, Grain, JobId, Name, NewJob, ScheduleError};

use crate::body::{BodyData, BodyParts, Bound, LoopFunction, Taker, pl_loop_body, pl_release};
use crate::described::{Described, are_zero, or_nothing, put, read};
use crate::frames::pl_frame;
use crate::groups::pl_group;
use crate::jobs::{Common, JobBody, More, PL_LANE_NORMAL, make_described, pl_job, pl_lane};
use crate::names::{name_at, pl_site};
use crate::sites;
use crate::status::{Answer, Refusal, call, pl_status, text_of};
use crate::system::{named, pl_system};
use crate::tokens::pl_token;

/// A loop over 0 .. count. Zero in a field is its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pl_loop_desc {
    /// sizeof(pl_loop_desc).
    pub size: usize,
    /// Its name, for errors, reports and traces; the text may go away after the call. Null: "loop".
    pub name: *const c_char,
    /// Called with parts of the range until each item was in one, on several threads at the same time.
    pub body: pl_loop_body,
    /// What `body` is called with.
    pub data: *mut c_void,
    /// As in pl_job_desc. The copy is one for all threads.
    pub data_size: usize,
    /// As in pl_job_desc.
    pub release: pl_release,
    /// How many items there are, less than 2 to the power of 32.
    pub count: usize,
    /// The fewest items of a part; a part may have many more. A loop with fewer than twice as many is one
    /// part, which one thread runs. 0: as many as suit the time that they take, which is measured.
    pub grain: u32,
    /// The jobs that it waits for, `after_count` of them. Not for pl_parallel_for.
    pub after: *const pl_job,
    /// How many jobs there are at `after`.
    pub after_count: usize,
    /// PL_LANE_NORMAL or another one. Not for pl_parallel_for.
    pub lane: pl_lane,
    /// As in pl_job_desc. Not for pl_parallel_for.
    pub quiet: u32,
    /// As in pl_job_desc. Not for pl_parallel_for.
    pub token: pl_token,
    /// As in pl_job_desc. Not for pl_parallel_for.
    pub frame: pl_frame,
    /// As in pl_job_desc. Not for pl_parallel_for.
    pub group: pl_group,
    /// As in pl_job_desc.
    pub site: *const pl_site,
}

// SAFETY: it is repr(C), begins with its size, and zero is a value of each field.
unsafe impl Described for pl_loop_desc {
    const NAME: &'static str = "pl_loop_desc";
    const FIRST_SIZE: usize = size_of::<pl_loop_desc>();
}

impl pl_loop_desc {
    fn grain(&self) -> Grain {
        match self.grain {
            0 => Grain::Auto,
            items => Grain::Items(items),
        }
    }

    fn parts(&self) -> BodyParts<LoopFunction> {
        BodyParts {
            function: self.body,
            data: self.data,
            data_size: self.data_size,
            release: self.release,
        }
    }
}

impl Common for pl_loop_desc {
    const UNNAMED: &'static str = "loop";

    #[inline]
    fn label(&self) -> (*const c_char, *const pl_site) {
        (self.name, self.site)
    }

    #[inline]
    fn after(&self) -> (*const pl_job, usize) {
        (self.after, self.after_count)
    }

    #[inline]
    fn more(&self) -> More {
        More {
            lane: self.lane,
            is_quiet: self.quiet != 0,
            token: self.token,
            pin: 0,
            frame: self.frame,
            group: self.group,
        }
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.after_count == 0
            && (self.lane == PL_LANE_NORMAL && self.quiet == 0)
            && are_zero([&self.token, &self.frame, &self.group])
    }
}

/// The body of a loop, with its range.
struct RangeBody<D: BodyData> {
    bound: Bound<LoopFunction, D>,
    count: usize,
    grain: Grain,
}

impl<D: BodyData> JobBody for RangeBody<D> {
    fn make(self, job: NewJob<'_, 'static>) -> Result<JobId, ScheduleError> {
        let body = move |part, cx: &Context<'_>| self.bound.run(part, cx);
        job.try_schedule_for(0..self.count, self.grain, body)
    }
}

/// A loop that only lacks its body.
struct ScheduledLoop(&'static pl_system, *const pl_loop_desc);

impl Taker<LoopFunction> for ScheduledLoop {
    type Made = pl_job;

    fn take<D: BodyData>(self, bound: Bound<LoopFunction, D>) -> Answer<pl_job> {
        let ScheduledLoop(system, desc) = self;
        // SAFETY: the promise of pl_schedule_for; it is read before the job is made.
        let (count, grain) = unsafe { ((*desc).count, (*desc).grain()) };
        let body = RangeBody {
            bound,
            count,
            grain,
        };
        // SAFETY: the promise of pl_schedule_for.
        unsafe { make_described(system, desc, body) }
    }
}

/// Makes a loop as a job, as pl_schedule does, and puts its number into `*out`, if that is not null.
///
/// # Safety
/// As pl_schedule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_schedule_for(
    system: *mut pl_system,
    desc: *const pl_loop_desc,
    out: *mut pl_job,
) -> pl_status {
    let status = call(|| {
        let mut room = MaybeUninit::uninit();
        // SAFETY: the caller's promise.
        let desc = unsafe { read(desc, &mut room) }?;
        let parts = desc.parts();
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        // SAFETY: the caller's promise.
        let made = unsafe { parts.bind(system, ScheduledLoop(system, desc)) }?;
        // SAFETY: the caller's promise.
        unsafe { put(out, made) };
        Ok(pl_status::PL_OK)
    });
    // SAFETY: the caller's promise.
    unsafe { or_nothing(status, out, 0) }
}

/// A loop that runs at once.
struct InPlace {
    name: Name,
    system: &'static pl_system,
    count: usize,
    grain: Grain,
}

impl Taker<LoopFunction> for InPlace {
    type Made = ();

    #[inline]
    fn take<D: BodyData>(self, bound: Bound<LoopFunction, D>) -> Answer {
        let body = |part, cx: &Context<'_>| bound.run(part, cx);
        let whole = |cx: &Context<'_>| {
            let run = || cx.parallel_for(0..self.count, self.grain, body);
            catch_unwind(AssertUnwindSafe(run))
        };
        let ended = self.system.js()?.try_enter(whole)?;
        ended.map_err(|payload| {
            let text = text_of(&*payload);
            Refusal::new(
                pl_status::PL_FAILED,
                format!(
                    "loop '{}'{} failed: {text}",
                    self.name,
                    sites::of(self.name.as_str())
                ),
            )
        })
    }
}

/// Runs a loop now: the calling thread takes part, and the call returns when all is done. It makes no job.
/// Wakes workers; does not allocate, but for data of more than 40 bytes.
///
/// # Safety
/// `system` was made by pl_system_create. `desc` points to a description whose `size` and `data_size` are
/// right.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_parallel_for(
    system: *mut pl_system,
    desc: *const pl_loop_desc,
) -> pl_status {
    call(|| {
        let mut room = MaybeUninit::uninit();
        // SAFETY: the caller's promise.
        let desc = unsafe { read(desc, &mut room) }?;
        let parts = desc.parts();
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        if !desc.is_plain() {
            return Err(Refusal::invalid(
                "pl_parallel_for runs at once: after, lane, quiet, token, frame and group are for \
                 pl_schedule_for",
            ));
        }
        if desc.count > u32::MAX as usize {
            return Err(Refusal::invalid(format!(
                "a range of {} items is too long; cut it into parts below 2^32",
                desc.count
            )));
        }
        let taker = InPlace {
            // SAFETY: the caller's promise.
            name: unsafe { name_at(desc.name, "loop", desc.site) }?.name,
            system,
            count: desc.count,
            grain: desc.grain(),
        };
        // SAFETY: the caller's promise.
        unsafe { parts.bind(system, taker) }?;
        Ok(pl_status::PL_OK)
    })
}
