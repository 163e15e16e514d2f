//! All calls of a program, each with two readings of a counter, and the judgement: whether what was answered
//! is what some order of the calls would have answered, in which no two calls change places that did not
//! overlap.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use paceline::{AccessError, AccessFault, AccessKind, JobId, Toucher};

use crate::support::Random;

#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) piece: usize,
    pub(super) kind: AccessKind,
    pub(super) part: Range<usize>,
}

impl Access {
    fn collides(&self, other: &Access) -> bool {
        let writes = self.kind == AccessKind::Writes || other.kind == AccessKind::Writes;
        let meet = self.part.clone().any(|item| other.part.contains(&item));
        writes && meet && self.piece == other.piece
    }
}

/// A call that schedules a job or takes a guard.
#[derive(Clone, Debug)]
struct Call {
    begin: u64,
    end: u64,
    /// Of a guard: the reading before it was dropped, and that after.
    dropped: Option<Range<u64>>,
    accesses: Vec<Access>,
    /// The calls whose jobs it comes after.
    preds: Vec<usize>,
    /// The job that opened its scope in its body, or that takes the guard there.
    within: Option<usize>,
    outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Outcome {
    Pending,
    Accepted,
    /// Because of this job.
    Refused(usize),
    /// Because of a guard.
    Guarded,
}

#[derive(Clone, Debug)]
struct Waited {
    job: usize,
    begin: u64,
    end: u64,
}

#[derive(Default)]
pub(super) struct Notes {
    clock: AtomicU64,
    calls: Mutex<Vec<Call>>,
    waits: Mutex<Vec<Waited>>,
    jobs: Mutex<Vec<(usize, JobId)>>,
}

impl Notes {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst)
    }

    fn with_calls<R>(&self, f: impl FnOnce(&mut Vec<Call>) -> R) -> R {
        f(&mut self.calls.lock().expect("nothing panics inside"))
    }

    /// A call begins. Its number.
    pub(super) fn begin(
        &self,
        accesses: &[Access],
        preds: &[usize],
        within: Option<usize>,
    ) -> usize {
        self.with_calls(|calls| {
            calls.push(Call {
                begin: self.now(),
                end: u64::MAX,
                dropped: None,
                accesses: accesses.to_vec(),
                preds: preds.to_vec(),
                within,
                outcome: Outcome::Pending,
            });
            calls.len() - 1
        })
    }

    pub(super) fn end(&self, call: usize, result: Result<(), &AccessError>) {
        let number = |name: &str| name[1..].parse().expect("names are numbers");
        let outcome = match result.map_err(AccessError::fault) {
            Ok(()) => Outcome::Accepted,
            Err(AccessFault::Unordered(conflict)) => {
                Outcome::Refused(number(conflict.earlier.label.name))
            }
            Err(AccessFault::Held { outer, .. }) => Outcome::Refused(number(outer.label.name)),
            Err(AccessFault::Outside { job, .. }) => Outcome::Refused(number(job.label.name)),
            Err(AccessFault::Guarded { .. }) => Outcome::Guarded,
            Err(AccessFault::Running {
                first: Toucher::Outside(_),
                ..
            }) => Outcome::Guarded,
            Err(other) => panic!("{other:?}"),
        };
        self.with_calls(|calls| {
            calls[call].end = self.now();
            calls[call].outcome = outcome;
        });
    }

    /// The guard is about to be dropped.
    pub(super) fn drops(&self, guard: usize) {
        self.with_calls(|calls| calls[guard].dropped = Some(self.now()..u64::MAX));
    }

    pub(super) fn has_dropped(&self, guard: usize) {
        self.with_calls(|calls| {
            if let Some(dropped) = &mut calls[guard].dropped {
                dropped.end = self.now();
            }
        });
    }

    /// A wait for the jobs that it returns.
    pub(super) fn wait(&self, wait: impl FnOnce() -> Vec<usize>) {
        let begin = self.now();
        let jobs = wait();
        let end = self.now();
        let waits = jobs.into_iter().map(|job| Waited { job, begin, end });
        let mut all = self.waits.lock().expect("nothing panics inside");
        all.extend(waits);
    }

    /// A job that others may come after or wait for.
    pub(super) fn made(&self, call: usize, id: JobId) {
        let mut jobs = self.jobs.lock().expect("nothing panics inside");
        jobs.push((call, id));
    }

    /// One of the last jobs.
    pub(super) fn pick(&self, random: &mut Random) -> Option<(usize, JobId)> {
        let jobs = self.jobs.lock().expect("nothing panics inside");
        let recent = jobs.len().saturating_sub(10);
        (!jobs.is_empty()).then(|| *random.pick(&jobs[recent..]))
    }

    /// Takes out the last job.
    pub(super) fn last(&self) -> Option<(usize, JobId)> {
        self.jobs.lock().expect("nothing panics inside").pop()
    }

    /// How many calls there were that schedule a job.
    pub(super) fn count(&self) -> u64 {
        self.with_calls(|calls| calls.iter().filter(|call| call.dropped.is_none()).count() as u64)
    }

    /// The same notes without the waits, without what comes after what, without the openers of scopes, and
    /// with a wait for each job at once.
    pub(super) fn with_less(&self) -> [Notes; 4] {
        let all = || self.with_calls(|calls| calls.clone());
        let notes = |calls: Vec<Call>, waits: Vec<Waited>| Notes {
            calls: Mutex::new(calls),
            waits: Mutex::new(waits),
            ..Notes::default()
        };
        let waits = self.waits.lock().expect("nothing panics inside").clone();
        let mut unordered = all();
        for call in &mut unordered {
            call.preds.clear();
        }
        let mut unopened = all();
        for call in &mut unopened {
            call.within = None;
        }
        let at_once = all().into_iter().enumerate().map(|(job, call)| Waited {
            job,
            begin: call.end,
            end: call.end,
        });
        let at_once = at_once.collect();
        [
            notes(all(), Vec::new()),
            notes(unordered, waits.clone()),
            notes(unopened, waits),
            notes(all(), at_once),
        ]
    }

    /// Whether all answers can be right.
    pub(super) fn judge(&self) -> Result<(), String> {
        let calls = self.with_calls(|calls| calls.clone());
        let waits = self.waits.lock().expect("nothing panics inside");
        let court = Court {
            before: over_with(&calls, |call| calls[call].preds.clone()),
            at_end: over_with(&calls, |call| vec![call]),
            calls: &calls,
            waits: &waits,
        };
        (0..calls.len()).try_for_each(|call| court.judge(call))
    }
}

/// For each call: which jobs are over when these and what ends before them are.
fn over_with(calls: &[Call], from: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<bool>> {
    let inner = |outer| (0..calls.len()).filter(move |&call| calls[call].within == Some(outer));
    let of = |call| {
        let (mut over, mut stack) = (vec![false; calls.len()], from(call));
        while let Some(job) = stack.pop() {
            if !std::mem::replace(&mut over[job], true) {
                stack.extend(calls[job].preds.iter().copied().chain(inner(job)));
            }
        }
        over
    };
    (0..calls.len()).map(of).collect()
}

struct Court<'c> {
    calls: &'c [Call],
    waits: &'c [Waited],
    /// For each call: which jobs are over when its job begins.
    before: Vec<Vec<bool>>,
    /// And when it ends.
    at_end: Vec<Vec<bool>>,
}

impl Court<'_> {
    fn collide(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.calls[a].accesses, &self.calls[b].accesses);
        a.iter().any(|a| b.iter().any(|b| a.collides(b)))
    }

    /// Whether a wait for the job, or for one that comes after it, passes this test.
    fn waited(&self, job: usize, test: impl Fn(&Waited) -> bool) -> bool {
        let reaches = |wait: &&Waited| self.at_end[wait.job][job];
        self.waits.iter().filter(reaches).any(test)
    }

    fn judge(&self, number: usize) -> Result<(), String> {
        let call = &self.calls[number];
        match call.outcome {
            Outcome::Pending => Err(format!("no answer: {call:?}")),
            Outcome::Accepted => {
                let mut others = 0..number;
                match others.find(|&other| !self.may_both_be(other, number)) {
                    Some(other) => Err(format!("a miss: {:?}, then {call:?}", self.calls[other])),
                    None => Ok(()),
                }
            }
            Outcome::Refused(other) => {
                let earlier = &self.calls[other];
                let is_right = earlier.outcome == Outcome::Accepted
                    && self.collide(other, number)
                    && !self.before[number][other]
                    && !self.before[other][number]
                    && earlier.begin < call.end
                    && !self.waited(other, |wait| wait.end < call.begin);
                is_right
                    .then_some(())
                    .ok_or_else(|| format!("a false alarm: {earlier:?}, then {call:?}"))
            }
            Outcome::Guarded => {
                let is_it = |&other: &usize| {
                    let (guard, collide) = (&self.calls[other], self.collide(other, number));
                    let dropped = guard.dropped.as_ref().map_or(0, |dropped| dropped.end);
                    collide && guard.begin < call.end && dropped > call.begin
                };
                let found = (0..self.calls.len()).find(is_it);
                found
                    .map(|_| ())
                    .ok_or_else(|| format!("there was no guard for {call:?}"))
            }
        }
    }

    /// Whether two calls can both have been accepted.
    fn may_both_be(&self, a: usize, b: usize) -> bool {
        let is_accepted = |call: usize| self.calls[call].outcome == Outcome::Accepted;
        !self.collide(a, b)
            || !is_accepted(a)
            || !is_accepted(b)
            || self.before[b][a]
            || self.before[a][b]
            || self.may_follow(a, b)
            || self.may_follow(b, a)
    }

    /// Whether the second call can have come after the end of what the first one began.
    fn may_follow(&self, first: usize, second: usize) -> bool {
        let (one, two) = (&self.calls[first], &self.calls[second]);
        let has_ended = match &one.dropped {
            Some(dropped) => dropped.start < two.end,
            None => self.waited(first, |wait| wait.begin < two.end),
        };
        one.begin < two.end && has_ended
    }
}
