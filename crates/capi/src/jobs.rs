//! Jobs and their dependencies.

use std::ffi::{c_char, c_void};

use paceline::{CancelToken, Lane, Name, NewJob, ThreadPin};

use crate::body::{BodyData, BodyParts, Bound, JobFunction, Taker, pl_body, pl_release};
use crate::described::{Described, array, must_be, put, read};
use crate::frames::{in_frame, pl_frame};
use crate::groups::pl_group;
use crate::names::{name_at, pl_site};
use crate::pinned::pl_pin;
use crate::status::{Answer, Refusal, call, pl_status};
use crate::system::{named, pl_system};
use crate::tokens::pl_token;

/// The number of a job, of its job system. It owns nothing: there is no duty to wait for a job or to give the
/// number back, and it is never the number of another job. Zero is none. Another job system does not know it,
/// and says PL_UNKNOWN.
pub type pl_job = u64;

/// The lane of a job: PL_LANE_NORMAL or another one of the PL_LANE_ constants.
pub type pl_lane = u32;
/// What jobs are, if nothing is said: in the lane of the job that schedules them.
pub const PL_LANE_NORMAL: pl_lane = 0;
/// Without a deadline: run when there is nothing else to do, and now and then when there is.
pub const PL_LANE_BACKGROUND: pl_lane = 1;
/// The few jobs that a frame hangs on: run before all else.
pub const PL_LANE_FRAME: pl_lane = 2;
/// With a share of the workers' time beside the normal lane: the first of `shares` in pl_system_desc.
pub const PL_LANE_SHARE_1: pl_lane = 3;
/// With the second of `shares`.
pub const PL_LANE_SHARE_2: pl_lane = 4;
/// With the third of `shares`.
pub const PL_LANE_SHARE_3: pl_lane = 5;
/// With the fourth of `shares`.
pub const PL_LANE_SHARE_4: pl_lane = 6;
/// With the fifth of `shares`.
pub const PL_LANE_SHARE_5: pl_lane = 7;

pub(crate) fn lane_of(lane: pl_lane) -> Answer<Lane> {
    match lane {
        PL_LANE_NORMAL => Ok(Lane::Normal),
        PL_LANE_BACKGROUND => Ok(Lane::Background),
        PL_LANE_FRAME => Ok(Lane::Frame),
        PL_LANE_SHARE_1..=PL_LANE_SHARE_5 => Ok(Lane::SHARES[(lane - PL_LANE_SHARE_1) as usize]),
        lane => Err(Refusal::invalid(format!(
            "there is no lane {lane}: use PL_LANE_NORMAL or another one of the PL_LANE_ constants"
        ))),
    }
}

/// A job. Zero in a field is its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pl_job_desc {
    /// sizeof(pl_job_desc).
    pub size: usize,
    /// Its name, for errors, reports and traces; the text may go away after the call. Null: "job".
    pub name: *const c_char,
    /// What it does.
    pub body: pl_body,
    /// What `body` is called with. The body runs on any thread, so the data must bear that.
    pub data: *mut c_void,
    /// 0: `data` is passed as it is. Else as many bytes at `data` are copied now, and the body gets the
    /// copy's address, which is a multiple of 8. Up to 40 bytes are copied into the job itself, without an
    /// allocation.
    pub data_size: usize,
    /// Called once with the data when the body is gone: after it has run, if it never can, or if the call is
    /// refused (for another reason than the description's size). Null: nothing is.
    pub release: pl_release,
    /// The jobs that it waits for, `after_count` of them.
    pub after: *const pl_job,
    /// How many jobs there are at `after`.
    pub after_count: usize,
    /// PL_LANE_NORMAL or another one.
    pub lane: pl_lane,
    /// 1: wake no worker for it. It is taken when a worker looks next, at the latest after pl_flush or a
    /// wait. For threads that cannot pay for a system call.
    pub quiet: u32,
    /// What can call it off before it begins (pl_token_create). 0: nothing.
    pub token: pl_token,
    /// The thread that alone runs it (pl_pin_thread). 0: any.
    pub pin: pl_pin,
    /// The frame that it belongs to (pl_frame_begin). While several frames are in flight, the jobs of the one
    /// with the earliest deadline go first. 0: none.
    pub frame: pl_frame,
    /// The group that it belongs to (pl_group_create): waits of the group may run it. 0: none.
    pub group: pl_group,
    /// Where it is made: PL_HERE. Texts about it have the place. Null: they have its name alone.
    pub site: *const pl_site,
}

// SAFETY: it is repr(C), begins with its size, and zero is a value of each field.
unsafe impl Described for pl_job_desc {
    const NAME: &'static str = "pl_job_desc";
    const FIRST_SIZE: usize = size_of::<pl_job_desc>();
}

/// What descriptions of jobs and loops have in common.
pub(crate) struct Common<'d> {
    pub(crate) name: *const c_char,
    pub(crate) unnamed: &'static str,
    pub(crate) after: &'d [pl_job],
    pub(crate) lane: pl_lane,
    pub(crate) is_quiet: bool,
    pub(crate) token: Option<&'d CancelToken>,
    pub(crate) pin: Option<ThreadPin>,
    pub(crate) frame: pl_frame,
    pub(crate) group: pl_group,
    pub(crate) site: *const pl_site,
}

impl<'d> Common<'d> {
    /// # Safety
    /// `name` and `site` are as for [`name_at`].
    #[inline]
    pub(crate) unsafe fn begin(&self, system: &'static pl_system) -> Answer<NewJob<'d, 'static>> {
        let js = system.js()?;
        // SAFETY: the caller's promise.
        let name = unsafe { name_at(self.name, self.unnamed, self.site) }?;
        let mut job = if self.says_more() {
            self.told_more(system, name)?
        } else {
            js.job(name.as_str())
        };
        for &before in self.after {
            // A job may wait for nothing, so that an array can have gaps.
            if before != 0 {
                job = job.after(system.id(before)?);
            }
        }
        Ok(job)
    }

    /// Whether there is more than a name and jobs to wait for.
    #[inline]
    fn says_more(&self) -> bool {
        let numbers = self.frame | self.group | u64::from(self.lane);
        numbers != 0 || self.is_quiet || self.token.is_some() || self.pin.is_some()
    }

    /// The job with all but those it waits for. It stands apart, so that plain jobs are described in place:
    /// each step here moves a description of some hundred bytes.
    #[inline(never)]
    fn told_more(&self, system: &'static pl_system, name: Name) -> Answer<NewJob<'d, 'static>> {
        let mut job = match self.frame {
            0 => system.js()?.job(name.as_str()),
            frame => in_frame(system, frame, |frame| frame.job(name.as_str()))?,
        };
        if self.group != 0 {
            job = job.in_group(&*system.group(self.group)?);
        }
        match lane_of(self.lane)? {
            Lane::Normal => {} // That of the job that makes it, or of the frame.
            lane => job = job.lane(lane),
        }
        if self.is_quiet {
            job = job.quiet();
        }
        if let Some(token) = self.token {
            job = job.cancelled_by(token);
        }
        if let Some(pin) = self.pin {
            job = job.pinned_to(pin);
        }
        Ok(job)
    }
}

/// A job that only lacks its body.
struct Scheduled<'d> {
    system: &'static pl_system,
    job: NewJob<'d, 'static>,
    out: *mut pl_job,
}

impl Taker<JobFunction> for Scheduled<'_> {
    #[inline]
    fn take<D: BodyData>(self, bound: Bound<JobFunction, D>) -> Answer<pl_status> {
        let id = self.job.try_schedule(move |cx| bound.run(cx))?;
        if !self.out.is_null() {
            // SAFETY: `out` may be written to, as pl_schedule demands.
            unsafe { put(self.out, self.system.number(id)?) };
        }
        Ok(pl_status::PL_OK)
    }
}

/// Makes a job, and puts its number into `*out`, if that is not null. It runs when the jobs that it waits for
/// have ended. If one of them has failed it never runs. Wakes a worker if one sleeps; allocates for data of
/// more than 40 bytes, and for more than 8 jobs to wait for.
///
/// # Safety
/// `system` was made by pl_system_create. `desc` points to a description whose `size`, `data_size` and
/// `after_count` are right. `out` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_schedule(
    system: *mut pl_system,
    desc: *const pl_job_desc,
    out: *mut pl_job,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let desc = unsafe { read(desc) }?;
        let parts = BodyParts {
            function: desc.body,
            data: desc.data,
            data_size: desc.data_size,
            release: desc.release,
        };
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        let token = system.token(desc.token)?;
        let common = Common {
            name: desc.name,
            unnamed: "job",
            // SAFETY: the caller's promise.
            after: unsafe { array(desc.after, desc.after_count, "after") }?,
            lane: desc.lane,
            is_quiet: desc.quiet != 0,
            token: token.as_ref(),
            pin: system.pin(desc.pin)?,
            frame: desc.frame,
            group: desc.group,
            site: desc.site,
        };
        // SAFETY: the caller's promise.
        let job = unsafe { common.begin(system) }?;
        // SAFETY: the caller's promise.
        unsafe { parts.bind(system, Scheduled { system, job, out }) }
    })
}

/// Makes a job without a body that ends when all these have ended, so that one number stands for many. Zeros
/// among them are left out.
///
/// # Safety
/// `system` was made by pl_system_create. `jobs` has `count` numbers. `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_combine(
    system: *mut pl_system,
    jobs: *const pl_job,
    count: usize,
    out: *mut pl_job,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        must_be(out, "out")?;
        let common = Common {
            name: std::ptr::null(),
            unnamed: "combine",
            // SAFETY: the caller's promise.
            after: unsafe { array(jobs, count, "jobs") }?,
            lane: PL_LANE_NORMAL,
            is_quiet: false,
            token: None,
            pin: None,
            frame: 0,
            group: 0,
            site: std::ptr::null(),
        };
        // SAFETY: a null name is allowed.
        let id = unsafe { common.begin(system) }?.try_combine()?;
        // SAFETY: the caller's promise.
        unsafe { put(out, system.number(id)?) };
        Ok(pl_status::PL_OK)
    })
}

/// `job`, which waits for others already, waits for `before`, too. PL_TOO_LATE if it is ready, runs or is
/// over (an event holds a job back), PL_CYCLE if `before` waits for `job`.
///
/// # Safety
/// `system` was made by pl_system_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_add_dependency(
    system: *mut pl_system,
    job: pl_job,
    before: pl_job,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        system
            .js()?
            .add_dependency(system.id(job)?, system.id(before)?)?;
        Ok(pl_status::PL_OK)
    })
}
