//! Jobs and their dependencies.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use paceline::{JobId, JobSystem, Lane, Name, NewJob, ScheduleError};

use crate::body::{BodyData, BodyParts, Bound, JobFunction, Taker, pl_body, pl_release};
use crate::described::{Described, are_zero, array, must_be, or_nothing, put, read};
use crate::frames::{in_frame, pl_frame};
use crate::groups::pl_group;
use crate::names::{Named, name_at, pl_site};
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
    /// Its name, for errors, reports and traces; the text may go away after the call. Null: "job". Name kinds
    /// of jobs, and not each job: a process keeps 16384 different texts, of names and of files, for as long
    /// as it lives, and further ones are shown as "(too many names)".
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

/// What descriptions of jobs and loops have in common. It is read where it is needed, and not before: most
/// jobs have a name and a body.
pub(crate) trait Common {
    /// The name of one that says none.
    const UNNAMED: &'static str;

    /// Its name, and where it is made: as for [`name_at`].
    fn label(&self) -> (*const c_char, *const pl_site);

    /// The array of jobs to wait for.
    fn after(&self) -> (*const pl_job, usize);

    fn more(&self) -> More;

    /// Whether there is only a label and a body.
    fn is_plain(&self) -> bool;
}

/// What most descriptions do not have.
pub(crate) struct More {
    pub(crate) lane: pl_lane,
    pub(crate) is_quiet: bool,
    pub(crate) token: pl_token,
    pub(crate) pin: pl_pin,
    pub(crate) frame: pl_frame,
    pub(crate) group: pl_group,
}

/// What a job is made with.
pub(crate) trait JobBody {
    /// Makes the job, of which all else is known.
    fn make(self, job: NewJob<'_, 'static>) -> Result<JobId, ScheduleError>;

    /// Makes a job of which only the name is known. The result is the 64 bits of its id.
    #[inline(always)] // Or the body is copied.
    fn make_plain(self, js: &JobSystem, named: &Named) -> Result<u64, ScheduleError>
    where
        Self: Sized,
    {
        let made = self.make(js.job(named.name));
        made.map(|id| js.id_to_bits(id))
    }
}

/// Describes a job to the job system and makes it. What is known of a job has some hundred bytes. So a plain
/// job, as most are, is made without a description.
///
/// Once the job is made the description may be gone: it may lie in data that the job gives back. So none of
/// these functions has a reference to it from its caller.
///
/// # Safety
/// The description is as pl_schedule demands.
#[inline(always)]
pub(crate) unsafe fn make_described<C: Common>(
    system: &'static pl_system,
    desc: *const C,
    body: impl JobBody,
) -> Answer<pl_job> {
    let js = system.js()?;
    // SAFETY: the caller's promise; it is read before the job is made.
    let (name, site) = unsafe { (*desc).label() };
    // SAFETY: the caller's promise.
    let named = unsafe { name_at(name, C::UNNAMED, site) }?;
    // SAFETY: as above.
    if unsafe { (*desc).is_plain() } {
        return match body.make_plain(js, &named) {
            Ok(bits) => Ok(system.number_of_bits(bits)),
            Err(error) => Err(error.into()),
        };
    }
    // SAFETY: the caller's promise.
    unsafe { make_with_more(system, desc, named.name, body) }
}

/// The same for a job of which more is said.
///
/// # Safety
/// As [`make_described`].
#[inline(never)]
unsafe fn make_with_more<C: Common>(
    system: &'static pl_system,
    desc: *const C,
    name: Name,
    body: impl JobBody,
) -> Answer<pl_job> {
    let js = system.js()?;
    // SAFETY: of both, as above.
    let (more, (after, count)) = unsafe { ((*desc).more(), (*desc).after()) };
    let token = system.token(more.token)?;
    let mut job = match more.frame {
        0 => js.job(name.as_str()),
        frame => in_frame(system, frame, |frame| frame.job(name.as_str()))?,
    };
    if more.group != 0 {
        job = job.in_group(&*system.group(more.group)?);
    }
    match lane_of(more.lane)? {
        Lane::Normal => {} // That of the job that makes it, or of the frame.
        lane => job = job.lane(lane),
    }
    if more.is_quiet {
        job = job.quiet();
    }
    if let Some(token) = &token {
        job = job.cancelled_by(token);
    }
    if let Some(pin) = system.pin(more.pin)? {
        job = job.pinned_to(pin);
    }
    // SAFETY: the caller's promise.
    let job = put_after(system, unsafe { array(after, count, "after") }?, job)?;
    let id = body.make(job)?;
    Ok(system.number(js, id))
}

/// The same job, which waits for these. It may wait for nothing, so that an array can have gaps.
#[inline]
fn put_after<'j>(
    system: &'static pl_system,
    after: &[pl_job],
    mut job: NewJob<'j, 'static>,
) -> Answer<NewJob<'j, 'static>> {
    for &before in after.iter().filter(|job| **job != 0) {
        job = job.after(system.id(before)?);
    }
    Ok(job)
}

impl Common for pl_job_desc {
    const UNNAMED: &'static str = "job";

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
            pin: self.pin,
            frame: self.frame,
            group: self.group,
        }
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.after_count == 0
            && (self.lane == PL_LANE_NORMAL && self.quiet == 0)
            && are_zero([&self.token, &self.pin, &self.frame, &self.group])
    }
}

impl<D: BodyData> JobBody for Bound<JobFunction, D> {
    #[inline(always)] // Or the body is copied.
    fn make(self, job: NewJob<'_, 'static>) -> Result<JobId, ScheduleError> {
        job.try_schedule(move |cx| self.run(cx))
    }

    #[inline(always)] // As above.
    fn make_plain(self, js: &JobSystem, named: &Named) -> Result<u64, ScheduleError> {
        js.try_schedule_plain(named.name, named.number_in(js), move |cx| self.run(cx))
    }
}

/// A job that only lacks its body.
struct Scheduled(&'static pl_system, *const pl_job_desc);

impl Taker<JobFunction> for Scheduled {
    type Made = pl_job;

    #[inline(always)] // As above.
    fn take<D: BodyData>(self, bound: Bound<JobFunction, D>) -> Answer<pl_job> {
        // SAFETY: the promise of pl_schedule.
        unsafe { make_described(self.0, self.1, bound) }
    }
}

/// Makes a job, and puts its number into `*out`, if that is not null: 0 if it is refused, as in all calls
/// that make something. It runs when the jobs that it waits for have ended. If one of them has failed it
/// never runs. Wakes a worker if one sleeps; allocates for data of more than 40 bytes, and for more than 8
/// jobs to wait for.
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
    let status = call(|| {
        let mut room = MaybeUninit::uninit();
        // SAFETY: the caller's promise.
        let desc = unsafe { read(desc, &mut room) }?;
        let parts = BodyParts {
            function: desc.body,
            data: desc.data,
            data_size: desc.data_size,
            release: desc.release,
        };
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        // SAFETY: the caller's promise.
        let made = unsafe { parts.bind(system, Scheduled(system, desc)) }?;
        // SAFETY: the caller's promise.
        unsafe { put(out, made) };
        Ok(pl_status::PL_OK)
    });
    // SAFETY: the caller's promise.
    unsafe { or_nothing(status, out, 0) }
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
    let status = call(|| {
        // SAFETY: the caller's promise.
        let system = unsafe { named(system) }?;
        must_be(out, "out")?;
        let js = system.js()?;
        // SAFETY: the caller's promise.
        let after = unsafe { array(jobs, count, "jobs") }?;
        let id = put_after(system, after, js.job("combine"))?.try_combine()?;
        // SAFETY: the caller's promise.
        unsafe { put(out, system.number(js, id)) };
        Ok(pl_status::PL_OK)
    });
    // SAFETY: the caller's promise.
    unsafe { or_nothing(status, out, 0) }
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

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, zeroed};

    use super::*;
    use crate::loops::pl_loop_desc;

    /// The bytes of a description that make a job which is not plain.
    fn telling<C: Common>() -> Vec<usize> {
        let is_telling = |&at: &usize| {
            // SAFETY: zero is a value of each field of a description.
            let mut desc: C = unsafe { zeroed() };
            // SAFETY: it has that byte, and any bytes are a number or a pointer, which nothing follows here.
            unsafe { (&raw mut desc).cast::<u8>().add(at).write(1) };
            !desc.is_plain()
        };
        (0..size_of::<C>()).filter(is_telling).collect()
    }

    /// Goal: no field of a description is passed over because the others are zero. Method: each byte alone.
    /// Those between the array of jobs to wait for and the site tell.
    #[test]
    fn plain_is_without_all_the_rest() {
        let of_job = offset_of!(pl_job_desc, after_count)..offset_of!(pl_job_desc, site);
        assert_eq!(telling::<pl_job_desc>(), of_job.collect::<Vec<_>>());
        let of_loop = offset_of!(pl_loop_desc, after_count)..offset_of!(pl_loop_desc, site);
        assert_eq!(telling::<pl_loop_desc>(), of_loop.collect::<Vec<_>>());
        // SAFETY: as above.
        assert!(unsafe { zeroed::<pl_job_desc>() }.is_plain());
    }
}
