//! Calls that are about jobs.

use std::ptr::{null, null_mut};

use capi::pl_status::{
    PL_ABANDONED, PL_CANCELLED, PL_CYCLE, PL_FAILED, PL_INVALID, PL_OK, PL_TIMEOUT, PL_TOO_LATE,
};
use capi::{
    PL_LANE_FRAME, PL_LANE_NORMAL, PL_LANE_SHARE_5, pl_add_dependency, pl_combine,
    pl_event_abandon, pl_event_complete, pl_event_create, pl_group_wait, pl_group_wait_timeout,
    pl_is_done, pl_job_desc, pl_loop_desc, pl_parallel_for, pl_schedule, pl_schedule_for,
    pl_status, pl_wait, pl_wait_timeout,
};

use super::bodies::{Data, Happened, body, part, release};
use super::model::{JobState, Kind, Outcome};
use super::{Bytes, MayRun, Program};

/// A job that a call has named, and what is wrong with that.
struct Named {
    number: u64,
    place: Option<usize>,
}

/// What the descriptions of jobs and loops have in common.
struct Common {
    system: usize,
    fails: bool,
    after: [u64; 2],
    lane: u32,
    token: u64,
    frame: u64,
    group: u64,
    size_is: isize,
    wrong: Vec<pl_status>,
    state: JobState,
}

fn status_of(outcome: Outcome) -> pl_status {
    match outcome {
        Outcome::Fine => PL_OK,
        Outcome::Failed => PL_FAILED,
        Outcome::Cancelled => PL_CANCELLED,
        Outcome::Abandoned => PL_ABANDONED,
    }
}

impl Program {
    fn named(&self, bytes: &mut Bytes<'_>) -> Named {
        let (number, place) = Program::pick(&self.jobs, bytes);
        Named { number, place }
    }

    fn wrong_job(&self, system: usize, job: &Named) -> Option<pl_status> {
        let owner = job.place.map(|job| self.model.jobs[job].system);
        self.wrong_number(system, owner)
    }

    /// A job that was just made.
    fn made(&mut self, number: u64, state: JobState) {
        self.jobs.push(number);
        self.model.jobs.push(state);
        self.model.settle();
        self.follow(&MayRun::Nothing);
    }

    fn common(&self, bytes: &mut Bytes<'_>) -> Common {
        let system = self.system(bytes);
        let mut wrong = self.wrong_system(system);
        let named = [self.named(bytes), self.named(bytes)];
        let others = named.iter().filter(|job| job.number != 0);
        wrong.extend(others.filter_map(|job| self.wrong_job(system, job)));
        let flags = bytes.next();
        let lane = match flags % 16 {
            0 => PL_LANE_SHARE_5 + 1 + bytes.next() as u32,
            1..8 => bytes.next() as u32 % (PL_LANE_SHARE_5 + 1),
            _ => 0,
        };
        if lane > PL_LANE_SHARE_5 {
            wrong.push(PL_INVALID);
        }
        let more = bytes.next();
        let [token, frame, group] = self.belongings(bytes, (system, more), &mut wrong);
        let size_is = match more >> 5 {
            0 => 8,
            1 => 4096,
            _ => 0,
        };
        if size_is != 0 {
            wrong.push(PL_INVALID);
        }
        let fails = flags & 0x30 == 0x30;
        Common {
            system,
            fails,
            after: named.each_ref().map(|job| job.number),
            lane,
            token: token.0,
            frame: frame.0,
            group: group.0,
            size_is,
            wrong,
            state: JobState {
                system,
                kind: Kind::Body { fails },
                after: named.iter().filter_map(|job| job.place).collect(),
                token: token.1,
                group: group.1,
                is_late: !matches!(lane, PL_LANE_NORMAL | PL_LANE_FRAME) || frame.0 != 0,
                ended: None,
                given_up: None,
            },
        }
    }

    /// A token, a frame and a group of a description, each with its place; or none of them.
    fn belongings(
        &self,
        bytes: &mut Bytes<'_>,
        (system, which): (usize, usize),
        wrong: &mut Vec<pl_status>,
    ) -> [(u64, Option<usize>); 3] {
        let mut one_of = |is: bool, known: &[u64]| {
            if is {
                Program::pick(known, bytes)
            } else {
                (0, None)
            }
        };
        let token = one_of(which & 1 == 1, &self.tokens);
        let frame = one_of(which & 6 == 6, &self.frames);
        let group = one_of(which & 24 == 24, &self.groups);
        let model = &self.model;
        let token_of = |at: usize| (model.tokens[at].is_known, model.tokens[at].system);
        let frame_of = |at: usize| (model.frames[at].is_known, model.frames[at].system);
        let group_of = |at: usize| (model.groups[at].is_known, model.groups[at].system);
        let owners = [
            (token.0, token.1.map(token_of)),
            (frame.0, frame.1.map(frame_of)),
            (group.0, group.1.map(group_of)),
        ];
        for (_, owner) in owners.iter().filter(|(number, _)| *number != 0) {
            let owner = owner.filter(|owner| owner.0).map(|owner| owner.1);
            wrong.extend(self.wrong_number(system, owner));
        }
        [token, frame, group]
    }

    pub(super) fn schedule(&mut self, bytes: &mut Bytes<'_>, is_loop: bool) {
        let of = self.common(bytes);
        let job = self.model.jobs.len();
        // A description of the wrong size is not looked at, so its data are not released.
        let data = match of.size_is {
            0 => Data::of_job(&self.log, job, of.fails),
            _ => null_mut(),
        };
        let mut out = 0;
        let system = self.systems[of.system];
        // SAFETY: the descriptions are right but for what is in `wrong`; of a wrong size no more is read.
        let status = unsafe {
            if is_loop {
                let desc = loop_desc(&of, data, 1 + bytes.next());
                pl_schedule_for(system, &desc, &mut out)
            } else {
                let desc = job_desc(&of, data);
                pl_schedule(system, &desc, &mut out)
            }
        };
        if self.judge_plain(status, &of.wrong) {
            self.open.push(Happened::Released(job));
            self.made(out, of.state);
        } else {
            assert_eq!(out, 0);
            if of.size_is == 0 {
                self.refused(Happened::Released(job));
            }
        }
    }

    pub(super) fn run_loop(&mut self, bytes: &mut Bytes<'_>) {
        let (system, flags) = (self.system(bytes), bytes.next());
        let mut wrong = self.wrong_system(system);
        let job = self.model.jobs.len();
        let desc = pl_loop_desc {
            size: size_of::<pl_loop_desc>(),
            name: null(),
            body: Some(part),
            data: Data::of_job(&self.log, job, flags & 1 == 1),
            data_size: 0,
            release: Some(release),
            count: flags / 4,
            grain: 0,
            after: null(),
            after_count: 0,
            lane: u32::from(flags & 2 == 2),
            quiet: 0,
            token: 0,
            frame: 0,
            group: 0,
            site: null(),
        };
        if desc.lane != 0 {
            wrong.push(PL_INVALID);
        }
        // SAFETY: the description is right but for what is in `wrong`.
        let status = unsafe { pl_parallel_for(self.systems[system], &desc) };
        let is_right = self.judge(status, &wrong);
        let mut happened = std::mem::take(&mut *self.log.borrow_mut());
        assert_eq!(happened.pop(), Some(Happened::Released(job)));
        let runs = is_right && desc.count > 0;
        assert_eq!(happened, vec![Happened::Ran(job); usize::from(runs)]);
        if is_right {
            let fails = runs && flags & 1 == 1;
            assert_eq!(status, if fails { PL_FAILED } else { PL_OK });
        }
    }

    pub(super) fn combine(&mut self, bytes: &mut Bytes<'_>) {
        let system = self.system(bytes);
        let jobs = [self.named(bytes), self.named(bytes)];
        let mut wrong = self.wrong_system(system);
        let others = jobs.iter().filter(|job| job.number != 0);
        wrong.extend(others.filter_map(|job| self.wrong_job(system, job)));
        let numbers = jobs.each_ref().map(|job| job.number);
        let mut out = 0;
        // SAFETY: the array has as many numbers.
        let status = unsafe { pl_combine(self.systems[system], numbers.as_ptr(), 2, &mut out) };
        if self.judge_plain(status, &wrong) {
            let after = jobs.iter().filter_map(|job| job.place).collect();
            self.made(out, bodiless(system, Kind::Combine, after));
        }
    }

    pub(super) fn event(&mut self, bytes: &mut Bytes<'_>) {
        let (system, count, mut out) = (self.system(bytes), bytes.next() % 3, 0);
        // SAFETY: the job system is null or was made; null is a name.
        let status = unsafe { pl_event_create(self.systems[system], null(), count, &mut out) };
        if self.judge_plain(status, &self.wrong_system(system)) {
            let left = count.max(1);
            self.made(out, bodiless(system, Kind::Event { left }, Vec::new()));
        }
    }

    /// An event to be completed or given up, and what is wrong with it.
    fn open_event(&self, bytes: &mut Bytes<'_>) -> (usize, Named, Vec<pl_status>) {
        let (system, event) = (self.system(bytes), self.named(bytes));
        let mut wrong = self.wrong_system(system);
        wrong.extend(self.wrong_job(system, &event));
        if let (Some(place), true) = (event.place, wrong.is_empty()) {
            let state = &self.model.jobs[place];
            let is_open = matches!(state.kind, Kind::Event { left } if left > 0);
            if !is_open || state.given_up.is_some() {
                wrong.push(PL_TOO_LATE);
            }
        }
        (system, event, wrong)
    }

    pub(super) fn complete(&mut self, bytes: &mut Bytes<'_>) {
        let (system, event, wrong) = self.open_event(bytes);
        // SAFETY: the job system is null or was made.
        let status = unsafe { pl_event_complete(self.systems[system], event.number) };
        if let (true, Some(place)) = (self.judge_plain(status, &wrong), event.place) {
            if let Kind::Event { left } = &mut self.model.jobs[place].kind {
                *left -= 1;
            }
            self.model.settle();
            self.follow(&MayRun::Nothing);
        }
    }

    pub(super) fn abandon(&mut self, bytes: &mut Bytes<'_>) {
        let (system, event, wrong) = self.open_event(bytes);
        // SAFETY: as above.
        let status = unsafe { pl_event_abandon(self.systems[system], event.number) };
        if let (true, Some(place)) = (self.judge_plain(status, &wrong), event.place) {
            self.model.give_up(place);
            self.follow(&MayRun::Nothing);
        }
    }

    pub(super) fn add_dependency(&mut self, bytes: &mut Bytes<'_>) {
        let system = self.system(bytes);
        let (job, before) = (self.named(bytes), self.named(bytes));
        let mut wrong = self.wrong_system(system);
        wrong.extend(self.wrong_job(system, &job));
        wrong.extend(self.wrong_job(system, &before));
        if let (Some(job), Some(before), true) = (job.place, before.place, wrong.is_empty()) {
            if self.model.jobs[job].ended.is_some() || self.model.is_ready(job) {
                wrong.push(PL_TOO_LATE);
            }
            if self.model.waits_for(before, job) {
                wrong.push(PL_CYCLE);
            }
        }
        // SAFETY: as above.
        let status = unsafe { pl_add_dependency(self.systems[system], job.number, before.number) };
        if self.judge_plain(status, &wrong) {
            if let (Some(job), Some(before)) = (job.place, before.place) {
                self.model.jobs[job].after.push(before);
            }
            self.model.settle();
            self.follow(&MayRun::Nothing);
        }
    }

    pub(super) fn is_done(&mut self, bytes: &mut Bytes<'_>) {
        let (system, job, mut done) = (self.system(bytes), self.named(bytes), 7);
        let mut wrong = self.wrong_system(system);
        wrong.extend(self.wrong_job(system, &job));
        // SAFETY: as above.
        let status = unsafe { pl_is_done(self.systems[system], job.number, &mut done) };
        if let (true, Some(place)) = (self.judge_plain(status, &wrong), job.place) {
            let has_ended = self.model.jobs[place].ended.is_some();
            assert_eq!(done, i32::from(has_ended), "job {place}");
        }
    }

    /// A wait, of a group or of none: one without time, one that comes to an end, or one with a time. Without
    /// workers each may run what it needs.
    pub(super) fn wait(&mut self, bytes: &mut Bytes<'_>) {
        let (system, job, how) = (self.system(bytes), self.named(bytes), bytes.next());
        let group = (how & 3 == 3).then(|| Program::pick(&self.groups, bytes));
        let mut wrong = self.wrong_system(system);
        wrong.extend(self.wrong_job(system, &job));
        if let Some((number, place)) = group {
            let known = place
                .map(|at| &self.model.groups[at])
                .filter(|group| group.is_known);
            match number {
                0 => wrong.push(PL_INVALID),
                _ => wrong.extend(self.wrong_number(system, known.map(|group| group.system))),
            }
        }
        let place = job.place.filter(|_| wrong.is_empty());
        let is_over = place.is_none_or(|job| self.model.jobs[job].ended.is_some());
        let can_end = place.is_some_and(|job| self.model.can_end(job));
        let looks = how & 4 == 4;
        let time = match (looks, can_end, how & 8 == 8) {
            (true, ..) => Some(0),
            (false, false, _) => Some(1000),
            (false, true, true) => Some(3_600_000_000_000),
            (false, true, false) => None,
        };
        let mut may_run = Vec::new();
        if let (Some(job), false) = (place, is_over) {
            may_run = self.model.needed(job);
            if let Some((_, Some(group))) = group {
                let jobs = 0..self.model.jobs.len();
                let jobs = jobs.filter(|&job| self.model.jobs[job].group == Some(group));
                // A wait raises what it needs, and no other job of the group.
                may_run.extend(jobs.filter(|&job| !self.model.jobs[job].is_late));
            }
        }
        let (raw, number) = (self.systems[system], job.number);
        // SAFETY: as above.
        let status = unsafe {
            match (group, time) {
                (None, None) => pl_wait(raw, number),
                (None, Some(time)) => pl_wait_timeout(raw, number, time),
                (Some((group, _)), None) => pl_group_wait(raw, group, number),
                (Some((group, _)), Some(time)) => pl_group_wait_timeout(raw, group, number, time),
            }
        };
        self.follow(&MayRun::Wait(system, may_run));
        if let (true, Some(job)) = (self.judge(status, &wrong), place) {
            let ended = self.model.jobs[job].ended;
            assert!(
                ended.is_some() || looks || !can_end,
                "the wait left out what it needs"
            );
            assert_eq!(status, ended.map_or(PL_TIMEOUT, status_of), "job {job}");
        }
    }
}

fn bodiless(system: usize, kind: Kind, after: Vec<usize>) -> JobState {
    JobState {
        system,
        kind,
        after,
        token: None,
        group: None,
        is_late: false,
        ended: None,
        given_up: None,
    }
}

fn job_desc(of: &Common, data: *mut std::ffi::c_void) -> pl_job_desc {
    pl_job_desc {
        size: size_of::<pl_job_desc>() * usize::from(of.size_is == 0) + wrong_size(of),
        name: c"job".as_ptr(),
        body: Some(body),
        data,
        data_size: 0,
        release: (of.size_is == 0).then_some(release),
        after: of.after.as_ptr(),
        after_count: of.after.len(),
        lane: of.lane,
        quiet: 0,
        token: of.token,
        pin: 0,
        frame: of.frame,
        group: of.group,
        site: null(),
    }
}

fn loop_desc(of: &Common, data: *mut std::ffi::c_void, count: usize) -> pl_loop_desc {
    pl_loop_desc {
        size: size_of::<pl_loop_desc>() * usize::from(of.size_is == 0) + wrong_size(of),
        name: c"loop".as_ptr(),
        body: Some(part),
        data,
        data_size: 0,
        release: (of.size_is == 0).then_some(release),
        count,
        grain: 0,
        after: of.after.as_ptr(),
        after_count: of.after.len(),
        lane: of.lane,
        quiet: 0,
        token: of.token,
        frame: of.frame,
        group: of.group,
        site: null(),
    }
}

/// Too short, or longer than any description.
fn wrong_size(of: &Common) -> usize {
    match of.size_is {
        0 => 0,
        8 => 8,
        _ => 4097,
    }
}
