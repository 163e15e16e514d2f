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
    last_resource: u64,
    /// Uses that jobs of scopes have to come after, too.
    replaced: ReplacedUses,
    /// The scopes whose jobs were scheduled here.
    scopes: Map<Ticket, OpenScope>,
    last_guard: u64,
    /// What comes directly before the job that is checked.
    preds: Vec<JobRef>,
    /// What it may collide with.
    open: Vec<Open>,
    /// How many jobs there were when those that do not matter were last forgotten.
    swept: usize,
}

impl Ledger {
    /// A new resource: its number.
    pub(crate) fn add_resource(&mut self, name: &'static str) -> u64 {
        self.last_resource += 1;
        let resource = Some(Resource::new(name, self.last_resource));
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
        self.free.push(number);
    }

    fn resource(&self, number: u64) -> Option<&Resource> {
        self.resources.get(number as usize)?.as_ref()
    }

    fn name(&self, number: u64) -> &'static str {
        self.resource(number).map_or("?", |resource| resource.name)
    }

    /// Begins a search from a job that is scheduled, with the jobs known to come directly before it: they are
    /// found, and are now `preds`.
    fn begin_with_preds(&mut self, after: &[Ticket], inside: &[Ticket]) {
        self.jobs.begin_search();
        self.preds.clear();
        for &ticket in after {
            let pred = self.jobs.find(ticket);
            self.preds
                .extend(pred.filter(|&pred| self.jobs.find_one(pred)));
        }
        if let Some(outer) = inside.iter().find_map(|&job| self.jobs.find(job)) {
            let of_outer: SmallVec<[JobRef; 8]> = self.jobs.preds(outer).collect();
            let new = |pred: &JobRef| self.jobs.find_one(*pred);
            self.preds.extend(of_outer.into_iter().filter(new));
        }
        self.jobs.stand_on(&self.preds);
    }

    /// Whether the job may be scheduled. [`note`](Ledger::note) has to follow at once if it may.
    ///
    /// # Errors
    /// The first access that collides with another job's, or with a guard of the program's.
    pub(crate) fn check(&mut self, job: &Planned<'_>) -> Result<PassedCheck, AccessError> {
        self.begin_with_preds(job.after, job.inside);
        self.find_open(job.accesses, Some(job.label))?;
        let mut passed = PassedCheck {
            opener: job.openers.iter().find_map(|&job| self.jobs.find(job)),
            later: SmallVec::new(),
            added: SmallVec::new(),
        };
        self.settle(job, &mut passed)?;
        if !passed.later.is_empty() {
            passed.later.clear();
            self.find_open_with_replaced(job.accesses);
            self.settle(job, &mut passed)?;
        }
        Ok(passed)
    }

    /// Finds out where the job stands among the uses that it collides with, and adds the dependencies that it
    /// asks for.
    ///
    /// # Errors
    /// The first of them that is in no order with it.
    fn settle(&mut self, job: &Planned<'_>, passed: &mut PassedCheck) -> Result<(), AccessError> {
        if self.open.is_empty() {
            return Ok(());
        }
        let down_to = self.search_open();
        let all = self.open.iter().map(|open| open.by);
        for open in &self.open {
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
            self.preds.push(open.by);
            passed.added.extend(self.jobs.ticket(open.by));
        }
        Ok(())
    }

    /// Marks those of `open` that come before one of `preds`. The newest are now first. Returns the oldest
    /// one's serial number.
    fn search_open(&mut self) -> u64 {
        let open = &mut self.open;
        open.sort_by_key(|open| std::cmp::Reverse(open.serial));
        let down_to = open.last().map_or(0, |open| open.serial);
        if !self.jobs.stands() {
            let all = open.iter().map(|open| open.by);
            self.jobs.find_among(&self.preds, all, down_to);
        }
        down_to
    }

    /// As [`find_open`](Ledger::find_open), with replaced uses, at the beginning of another search: the last
    /// one has left out what was scheduled before those that it looked for.
    #[cold]
    fn find_open_with_replaced(&mut self, accesses: &[Declared]) {
        self.jobs.begin_search();
        for &pred in &self.preds {
            self.jobs.find_one(pred);
        }
        let found = self.find_open(accesses, None);
        debug_assert!(found.is_ok(), "guards are not looked at");
        for (number, access) in accesses.iter().enumerate() {
            let Some(Some(resource)) = self.resources.get(access.resource as usize) else {
                continue;
            };
            for one in self.replaced.colliding(resource.serial, access) {
                self.open
                    .extend(self.jobs.serial(one.old.by).map(|serial| Open {
                        by: one.old.by,
                        serial,
                        access: number,
                        kind: one.kind,
                        part: one.old.part.clone(),
                    }));
            }
        }
    }

    /// Finds the uses that these accesses collide with, and that are not known to come before without a
    /// search: they are now `open`.
    ///
    /// # Errors
    /// If a job with this label collides with a guard.
    fn find_open(
        &mut self,
        accesses: &[Declared],
        label: Option<Label>,
    ) -> Result<(), AccessError> {
        self.open.clear();
        for (number, access) in accesses.iter().enumerate() {
            let Some(Some(resource)) = self.resources.get(access.resource as usize) else {
                continue;
            };
            if let Some(label) = label {
                check_guards(resource, label, access)?;
            }
            resource.colliding(
                access,
                |job| self.jobs.was_found(job),
                |other, kind| {
                    self.open
                        .extend(self.jobs.serial(other.by).map(|serial| Open {
                            by: other.by,
                            serial,
                            access: number,
                            kind,
                            part: other.part.clone(),
                        }));
                },
            );
        }
        Ok(())
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

    /// The job that has just passed the check was made, with this ticket. `is_over` says of any ticket
    /// whether its job is over.
    pub(crate) fn note(
        &mut self,
        planned: &Planned<'_>,
        passed: PassedCheck,
        ticket: Ticket,
        is_over: impl Fn(Ticket) -> bool,
    ) {
        let job = self.jobs.add(ticket, planned.label, &self.preds);
        for access in planned.accesses {
            let Some(Some(resource)) = self.resources.get_mut(access.resource as usize) else {
                continue;
            };
            let mut newcomer = Newcomer {
                jobs: &self.jobs,
                job,
                ticket,
                later: &passed.later,
                replaced: &mut self.replaced,
                resource: resource.serial,
            };
            resource.note(access, &mut newcomer);
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
        self.begin_with_preds(&[], inside);
        let within = inside.iter().find_map(|&job| self.jobs.find(job));
        let accesses = std::slice::from_ref(access);
        let found = self.find_open(accesses, None);
        debug_assert!(found.is_ok(), "guards are not looked at");
        let mut has_later = false;
        let other = self.first_unordered(within, &mut has_later);
        if other.is_some() || !has_later {
            return other;
        }
        self.find_open_with_replaced(accesses);
        self.first_unordered(within, &mut has_later)
    }

    /// The newest of the open uses that is in no order with what comes after `preds`, and ends with `within`.
    fn first_unordered(
        &mut self,
        within: Option<JobRef>,
        has_later: &mut bool,
    ) -> Option<Conflicting> {
        if self.open.is_empty() {
            return None;
        }
        self.search_open();
        let other = self.open.iter().find(|open| {
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
        for resource in self.resources.iter_mut().flatten() {
            resource.sweep(jobs);
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

/// # Errors
/// If the access of a job with this label collides with a guard.
fn check_guards(resource: &Resource, label: Label, access: &Declared) -> Result<(), AccessError> {
    let mut guards = resource.guards.iter();
    match guards.find(|guard| guard.access.collides(access)) {
        None => Ok(()),
        Some(guard) => Err(AccessError::new(AccessFault::Guarded {
            resource: resource.name,
            job: Conflicting::new(label, access.kind, access.part.clone()),
            outside: Outside::new(guard.access.kind, guard.site),
        })),
    }
}

#[cfg(test)]
mod tests;
