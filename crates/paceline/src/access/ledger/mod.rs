//! The ledger: which jobs have declared what, and whether a further one would touch data in no order with
//! another.
#![doc = include_str!("README.md")]

mod jobs;
mod replaced;
mod resource;

use smallvec::SmallVec;

use super::{AccessKind, Conflict, Conflicting, Declared};
use crate::access::fault::{AccessError, AccessFault, Outside};
use crate::store::{CallSite, Label, Map, Ticket};
use jobs::{JobRef, Jobs};
use replaced::ReplacedUses;
use resource::{Guarded, Newcomer, Resource};

/// A job that is about to be scheduled.
pub(crate) struct Planned<'a> {
    pub(crate) label: Label,
    /// It was told to come after these.
    pub(crate) after: &'a [Ticket],
    /// The jobs that it is scheduled in, innermost first: what comes before the first of them that is known
    /// comes before it, too.
    pub(crate) inside: &'a [Ticket],
    /// The scope that it belongs to.
    pub(crate) scope: Option<Ticket>,
    /// The job that opened that scope, the one that opened the scope around it, and so on: they end after it.
    pub(crate) openers: &'a [Ticket],
    pub(crate) accesses: &'a [Declared],
    /// Dependencies that are missing are added.
    pub(crate) is_auto: bool,
}

/// What the ledger has found out about a job that may be scheduled.
pub(crate) struct PassedCheck {
    preds: SmallVec<[JobRef; 8]>,
    /// The job that opened its scope.
    opener: Option<JobRef>,
    /// Jobs that it collides with and that come after its opener, and so after it.
    later: SmallVec<[JobRef; 2]>,
    /// Jobs that it has to come after besides those that it was told.
    pub(crate) added: SmallVec<[Ticket; 4]>,
}

/// A use that the job collides with and that no direct predecessor answers for.
struct Open {
    by: JobRef,
    serial: u64,
    /// The number of the job's access.
    access: usize,
    kind: AccessKind,
    part: std::ops::Range<usize>,
}

/// A scope that has not ended.
struct OpenScope {
    opener: Option<JobRef>,
    jobs: Vec<JobRef>,
}

#[derive(Default)]
pub(crate) struct Ledger {
    jobs: Jobs,
    resources: Vec<Option<Resource>>,
    free: Vec<u64>,
    replaced: ReplacedUses,
    scopes: Map<Ticket, OpenScope>,
    last_guard: u64,
    /// How many jobs there were when those that do not matter were last forgotten.
    swept: usize,
}

impl Ledger {
    /// A new resource: its number.
    pub(crate) fn add_resource(&mut self, name: &'static str) -> u64 {
        let resource = Some(Resource::new(name));
        match self.free.pop() {
            Some(number) => {
                self.resources[number as usize] = resource;
                number
            }
            None => {
                self.resources.push(resource);
                self.resources.len() as u64 - 1
            }
        }
    }

    /// No job can declare it any more.
    pub(crate) fn remove_resource(&mut self, number: u64) {
        self.resources[number as usize] = None;
        self.replaced.remove_resource(number);
        self.free.push(number);
    }

    fn resource(&self, number: u64) -> Option<&Resource> {
        self.resources.get(number as usize)?.as_ref()
    }

    fn name(&self, number: u64) -> &'static str {
        self.resource(number).map_or("?", |resource| resource.name)
    }

    /// Begins a search from a job that is scheduled, with the jobs known to come directly before it: they are
    /// found.
    fn preds_of(&mut self, after: &[Ticket], inside: &[Ticket]) -> SmallVec<[JobRef; 8]> {
        self.jobs.begin_search();
        let mut preds = SmallVec::new();
        for &ticket in after {
            let pred = self.jobs.find(ticket);
            preds.extend(pred.filter(|&pred| self.jobs.find_one(pred)));
        }
        if let Some(outer) = inside.iter().find_map(|&job| self.jobs.find(job)) {
            let of_outer: SmallVec<[JobRef; 8]> = self.jobs.preds(outer).collect();
            let new = |pred: &JobRef| self.jobs.find_one(*pred);
            preds.extend(of_outer.into_iter().filter(new));
        }
        preds
    }

    /// Whether the job may be scheduled. [`note`](Ledger::note) has to follow at once if it may.
    ///
    /// # Errors
    /// The first access that collides with another job's, or with a guard of the program's.
    pub(crate) fn check(&mut self, job: &Planned<'_>) -> Result<PassedCheck, AccessError> {
        for access in job.accesses {
            self.check_guards(job.label, access)?;
        }
        let mut passed = PassedCheck {
            preds: self.preds_of(job.after, job.inside),
            opener: job.openers.iter().find_map(|&job| self.jobs.find(job)),
            later: SmallVec::new(),
            added: SmallVec::new(),
        };
        let open = self.open(job.accesses);
        self.settle(job, open, &mut passed)?;
        if !passed.later.is_empty() {
            passed.later.clear();
            let all = self.open_with_replaced(job.accesses, &passed.preds);
            self.settle(job, all, &mut passed)?;
        }
        Ok(passed)
    }

    /// Finds out where the job stands among the uses that it collides with, and adds the dependencies that it
    /// asks for.
    ///
    /// # Errors
    /// The first of them that is in no order with it.
    fn settle(
        &mut self,
        job: &Planned<'_>,
        mut open: SmallVec<[Open; 8]>,
        passed: &mut PassedCheck,
    ) -> Result<(), AccessError> {
        let Some(down_to) = open.iter().map(|open| open.serial).min() else {
            return Ok(());
        };
        let all = open.iter().map(|open| open.by);
        self.jobs.find_among(&passed.preds, all, down_to);
        open.sort_by_key(|open| std::cmp::Reverse(open.serial));
        let all = open.iter().map(|open| open.by);
        for open in &open {
            if self.jobs.was_found(open.by) {
                continue;
            }
            let opener = passed.opener;
            if opener.is_some_and(|opener| self.jobs.follows(open.by, opener)) {
                passed.later.push(open.by);
                continue;
            }
            // A scope's job is waited for in the body that it is scheduled in. It cannot come after that
            // job, nor after one that waits for that job.
            let is_held = job.scope.is_some() && self.is_inside(job, open.by);
            let waits = |opener| job.is_auto && self.jobs.outlasts(open.by, opener);
            if !job.is_auto || is_held || opener.is_some_and(waits) {
                return Err(self.conflict(job, open));
            }
            self.jobs.find_one(open.by);
            self.jobs.find_among(&[open.by], all.clone(), down_to);
            passed.preds.push(open.by);
            passed.added.extend(self.jobs.ticket(open.by));
        }
        Ok(())
    }

    /// The same with replaced uses, at the beginning of another search from `preds`: the last one has left
    /// out what was scheduled before those that it looked for.
    #[cold]
    fn open_with_replaced(
        &mut self,
        accesses: &[Declared],
        preds: &[JobRef],
    ) -> SmallVec<[Open; 8]> {
        self.jobs.begin_search();
        for &pred in preds {
            self.jobs.find_one(pred);
        }
        let mut open = self.open(accesses);
        for (number, access) in accesses.iter().enumerate() {
            for one in self.replaced.colliding(access) {
                open.extend(self.jobs.serial(one.old.by).map(|serial| Open {
                    by: one.old.by,
                    serial,
                    access: number,
                    kind: one.kind,
                    part: one.old.part.clone(),
                }));
            }
        }
        open
    }

    /// The uses that these accesses collide with, and that are not known to come before without a search.
    fn open(&self, accesses: &[Declared]) -> SmallVec<[Open; 8]> {
        let mut open = SmallVec::new();
        for (number, access) in accesses.iter().enumerate() {
            let Some(resource) = self.resource(access.resource) else {
                continue;
            };
            resource.colliding(
                access,
                |job| self.jobs.was_found(job),
                |other, kind| {
                    if let Some(serial) = self.jobs.serial(other.by) {
                        open.push(Open {
                            by: other.by,
                            serial,
                            access: number,
                            kind,
                            part: other.part.clone(),
                        });
                    }
                },
            );
        }
        open
    }

    /// Whether the job is scheduled in the body of this one.
    fn is_inside(&self, job: &Planned<'_>, other: JobRef) -> bool {
        let ticket = self.jobs.ticket(other);
        ticket.is_some_and(|ticket| job.inside.contains(&ticket))
    }

    #[cold]
    fn conflict(&self, job: &Planned<'_>, open: &Open) -> AccessError {
        let access = &job.accesses[open.access];
        let resource = self.name(access.resource);
        let own = Conflicting::new(job.label, access.kind, access.part.clone());
        let other = self.other(open);
        AccessError::new(if self.is_inside(job, open.by) {
            AccessFault::Held {
                resource,
                outer: other,
                inner: own,
            }
        } else {
            AccessFault::Unordered(Conflict {
                resource,
                earlier: other,
                later: own,
            })
        })
    }

    fn other(&self, open: &Open) -> Conflicting {
        Conflicting::new(self.jobs.label(open.by), open.kind, open.part.clone())
    }

    fn check_guards(&self, label: Label, access: &Declared) -> Result<(), AccessError> {
        let resource = self.resource(access.resource);
        let guards = resource.map_or(&[][..], |resource| &resource.guards);
        match guards.iter().find(|guard| guard.access.collides(access)) {
            None => Ok(()),
            Some(guard) => Err(AccessError::new(AccessFault::Guarded {
                resource: self.name(access.resource),
                job: Conflicting::new(label, access.kind, access.part.clone()),
                outside: Outside::new(guard.access.kind, guard.site),
            })),
        }
    }

    /// The job that has just passed the check was made, with this ticket. `is_over` says of any ticket
    /// whether its job is over.
    pub(crate) fn note(
        &mut self,
        planned: &Planned<'_>,
        passed: PassedCheck,
        ticket: Ticket,
        is_over: impl Fn(Ticket) -> bool,
    ) {
        let job = self.jobs.add(ticket, planned.label, &passed.preds);
        for access in planned.accesses {
            let mut newcomer = Newcomer {
                jobs: &self.jobs,
                job,
                later: &passed.later,
                replaced: &mut self.replaced,
                resource: access.resource,
            };
            if let Some(Some(resource)) = self.resources.get_mut(access.resource as usize) {
                resource.note(access, &mut newcomer);
            }
        }
        self.replaced.sweep_if_due(&self.jobs, &is_over);
        if let Some(scope) = planned.scope {
            let opener = passed.opener;
            let jobs = Vec::new();
            let open = self.scopes.get_or_insert(scope, OpenScope { opener, jobs });
            open.jobs.push(job);
            if let Some(opener) = opener {
                self.jobs.add_inner(opener, job);
            }
        }
        self.sweep_if_due(is_over);
    }

    /// A job that was scheduled before comes after `pred`, too.
    pub(crate) fn add_late(&mut self, job: Ticket, pred: Ticket) {
        let Some(pred) = self.jobs.find(pred) else {
            return;
        };
        if let Some(job) = self.jobs.find(job) {
            self.jobs.add_late(job, pred);
        }
    }

    /// Somebody has waited for the job.
    pub(crate) fn waited_for(&mut self, job: Ticket) {
        if let Some(job) = self.jobs.find(job) {
            self.jobs.forget_with_ancestors(job);
        }
    }

    /// All jobs of the scope were waited for.
    pub(crate) fn scope_ended(&mut self, scope: Ticket) {
        let Some(ended) = self.scopes.remove(&scope) else {
            return;
        };
        for job in ended.jobs {
            self.jobs.forget_with_ancestors(job);
        }
        if let Some(opener) = ended.opener {
            self.jobs.scope_ended(opener);
        }
    }

    /// The program takes a guard, on a thread that is inside of these jobs. Returns the guard's number.
    ///
    /// # Errors
    /// If a job may be touching that.
    pub(crate) fn take(
        &mut self,
        access: &Declared,
        inside: &[Ticket],
        site: CallSite,
    ) -> Result<u64, AccessError> {
        if let Some(other) = self.unordered(access, inside) {
            return Err(AccessError::new(AccessFault::Outside {
                resource: self.name(access.resource),
                job: other,
                outside: Outside::new(access.kind, site),
            }));
        }
        self.last_guard += 1;
        let guard = Guarded {
            number: self.last_guard,
            access: access.clone(),
            site,
        };
        if let Some(Some(resource)) = self.resources.get_mut(access.resource as usize) {
            resource.guards.push(guard);
        }
        Ok(self.last_guard)
    }

    pub(crate) fn give_back(&mut self, resource: u64, guard: u64) {
        if let Some(Some(resource)) = self.resources.get_mut(resource as usize) {
            resource.guards.retain(|other| other.number != guard);
        }
    }

    /// A job that the access collides with and that does not come before the caller.
    pub(crate) fn unordered(
        &mut self,
        access: &Declared,
        inside: &[Ticket],
    ) -> Option<Conflicting> {
        let preds = self.preds_of(&[], inside);
        let within = inside.iter().find_map(|&job| self.jobs.find(job));
        let accesses = std::slice::from_ref(access);
        let mut has_later = false;
        let open = self.open(accesses);
        let other = self.first_unordered(&preds, within, open, &mut has_later);
        if other.is_some() || !has_later {
            return other;
        }
        let all = self.open_with_replaced(accesses, &preds);
        self.first_unordered(&preds, within, all, &mut has_later)
    }

    /// The newest of these uses that is in no order with what comes after `preds`, and ends with `within`.
    fn first_unordered(
        &mut self,
        preds: &[JobRef],
        within: Option<JobRef>,
        mut open: SmallVec<[Open; 8]>,
        has_later: &mut bool,
    ) -> Option<Conflicting> {
        let down_to = open.iter().map(|open| open.serial).min()?;
        let all = open.iter().map(|open| open.by);
        self.jobs.find_among(preds, all, down_to);
        open.sort_by_key(|open| std::cmp::Reverse(open.serial));
        let other = open.iter().find(|open| {
            let is_later = within.is_some_and(|within| self.jobs.follows(open.by, within));
            *has_later |= is_later;
            !is_later && !self.jobs.was_found(open.by)
        })?;
        Some(self.other(other))
    }

    /// Forgets what does not matter, if that could be half of all.
    fn sweep_if_due(&mut self, is_over: impl Fn(Ticket) -> bool) {
        const FEW: usize = 256;
        if self.jobs.live() >= 2 * self.swept + self.resources.len() + FEW {
            self.sweep(is_over);
        }
    }

    fn sweep(&mut self, is_over: impl Fn(Ticket) -> bool) {
        let jobs = &self.jobs;
        let matters = |job| jobs.serial(job).is_some();
        for resource in self.resources.iter_mut().flatten() {
            resource.retain(matters);
        }
        self.replaced.sweep(jobs, &is_over);
        let users = self.resources.iter().flatten().flat_map(Resource::users);
        let users: Vec<JobRef> = users.chain(self.replaced.users()).collect();
        self.jobs.sweep(&users, &is_over);
        let jobs = &self.jobs;
        for scope in self.scopes.values_mut() {
            scope.jobs.retain(|&job| jobs.serial(job).is_some());
        }
        self.swept = self.jobs.live();
    }
}

#[cfg(test)]
mod tests;
