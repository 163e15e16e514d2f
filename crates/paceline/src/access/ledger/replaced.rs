//! Uses that are not among the last ones of their resource any more, for jobs of scopes, which may come
//! before those that are.

use super::jobs::{JobRef, Jobs};
use super::resource::Use;
use crate::access::{AccessKind, Declared};
use crate::store::Ticket;

/// A use, and the job that took its place.
pub(super) struct Replaced {
    /// The resource's serial number.
    pub(super) resource: u64,
    pub(super) old: Use,
    pub(super) kind: AccessKind,
    /// Until it begins, jobs may be scheduled that come before it.
    pub(super) instead: Ticket,
}

/// Those of all resources, in one list: only a job of a scope ever looks at them, and seldom.
#[derive(Default)]
pub(super) struct ReplacedUses {
    all: Vec<Replaced>,
    /// How many were left when they were last looked through.
    left: usize,
}

impl ReplacedUses {
    pub(super) fn push(&mut self, one: Replaced) {
        self.all.push(one);
    }

    /// Those that the access to the resource with this serial number collides with.
    pub(super) fn colliding(
        &self,
        resource: u64,
        access: &Declared,
    ) -> impl Iterator<Item = &Replaced> {
        let all = self.all.iter();
        all.filter(move |one| one.resource == resource && access.meets(one.kind, &one.old.part))
    }

    pub(super) fn users(&self) -> impl Iterator<Item = JobRef> {
        self.all.iter().map(|one| one.old.by)
    }

    /// Forgets those that no job can care for any more, if that could be half of all. `is_over` says of any
    /// ticket whether its job is over.
    pub(super) fn sweep_if_due(&mut self, jobs: &Jobs, is_over: impl Fn(Ticket) -> bool) {
        const FEW: usize = 128;
        if self.all.len() >= 2 * self.left + FEW {
            self.sweep(jobs, is_over);
        }
    }

    pub(super) fn sweep(&mut self, jobs: &Jobs, is_over: impl Fn(Ticket) -> bool) {
        self.all
            .retain(|one| !is_over(one.instead) && jobs.serial(one.old.by).is_some());
        self.left = self.all.len();
    }
}
