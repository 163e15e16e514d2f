//! Who touched a resource last: only these have to come before a job that touches it next.
//!
//! A job that writes a part comes after all that touched this part before. So whatever comes after that job
//! comes after those, too, and whatever does not, collides with that job. Therefore it takes their place for
//! its part, exactly.
//!
//! A job of a scope may come before jobs that were scheduled earlier: those that come after the job that
//! opened the scope. It cannot rely on them, and looks at the uses, too, that theirs have replaced.

use std::ops::Range;

use smallvec::SmallVec;

use super::jobs::{JobRef, Jobs};
use super::replaced::{Replaced, ReplacedUses};
use crate::access::{AccessKind, Declared};
use crate::store::{CallSite, Ticket};

/// A part of a resource, and a job that touches it.
#[derive(Clone, Debug)]
pub(super) struct Use {
    pub(super) by: JobRef,
    pub(super) part: Range<usize>,
}

impl Use {
    fn covers(&self, part: &Range<usize>) -> bool {
        self.part.start <= part.start && part.end <= self.part.end
    }

    /// What lies before that part.
    fn head(&self, part: &Range<usize>) -> Option<Use> {
        let left = self.part.start..part.start;
        let by = self.by;
        (!left.is_empty()).then_some(Use { by, part: left })
    }

    /// What lies behind it.
    fn tail(&self, part: &Range<usize>) -> Option<Use> {
        let left = part.end..self.part.end;
        let by = self.by;
        (!left.is_empty()).then_some(Use { by, part: left })
    }
}

/// A job that is noted, and where it stands among the others.
pub(super) struct Newcomer<'n> {
    pub(super) jobs: &'n Jobs,
    pub(super) job: JobRef,
    pub(super) ticket: Ticket,
    /// Those that it collides with and comes before. It comes after all others that it collides with.
    pub(super) later: &'n [JobRef],
    pub(super) replaced: &'n mut ReplacedUses,
    /// The serial number of the resource that it touches.
    pub(super) resource: u64,
}

impl Newcomer<'_> {
    /// Whether the other job comes before it, or does not matter. It need not know of all.
    fn is_before(&self, other: JobRef) -> bool {
        self.jobs.was_found(other) || !self.matters(other)
    }

    fn matters(&self, other: JobRef) -> bool {
        self.jobs.serial(other).is_some()
    }

    fn replaces(&mut self, old: Use, kind: AccessKind) {
        self.is_replaced(old, kind, self.ticket);
    }

    fn is_replaced(&mut self, old: Use, kind: AccessKind, instead: Ticket) {
        if self.matters(old.by) {
            self.replaced.push(Replaced {
                resource: self.resource,
                old,
                kind,
                instead,
            });
        }
    }
}

/// The program has a guard for a part.
#[derive(Clone, Debug)]
pub(super) struct Guarded {
    pub(super) number: u64,
    pub(super) access: Declared,
    pub(super) site: CallSite,
}

pub(super) struct Resource {
    pub(super) name: &'static str,
    /// Unlike its number, no other resource ever has this.
    pub(super) serial: u64,
    /// The last writer of each part. The parts are disjoint, and in order.
    writers: Vec<Use>,
    /// Those that have read since.
    readers: Vec<Use>,
    /// How many of both were left when they were last looked through.
    left: usize,
    pub(super) guards: Vec<Guarded>,
}

impl Resource {
    pub(super) fn new(name: &'static str, serial: u64) -> Resource {
        Resource {
            name,
            serial,
            writers: Vec::new(),
            readers: Vec::new(),
            left: 0,
            guards: Vec::new(),
        }
    }

    /// Calls `visit` with what the access collides with, and with what they do, as far as it is not known
    /// without a search that they come before the job: `was_found` says of jobs that they do.
    pub(super) fn colliding(
        &self,
        access: &Declared,
        was_found: impl Fn(JobRef) -> bool,
        mut visit: impl FnMut(&Use, AccessKind),
    ) {
        let part = &access.part;
        let first = self.first_writer_behind(part.start);
        for writer in &self.writers[first..] {
            if writer.part.start >= part.end {
                break;
            }
            if !access.meets(AccessKind::Writes, &writer.part) || was_found(writer.by) {
                continue;
            }
            // Whoever has read what it wrote comes after it.
            let both = writer.part.start.max(part.start)..writer.part.end.min(part.end);
            let tells = |reader: &Use| reader.covers(&both) && was_found(reader.by);
            if !self.last_readers().iter().any(tells) {
                visit(writer, AccessKind::Writes);
            }
        }
        if access.kind == AccessKind::Writes {
            for reader in &self.readers {
                if access.meets(AccessKind::Reads, &reader.part) && !was_found(reader.by) {
                    visit(reader, AccessKind::Reads);
                }
            }
        }
    }

    /// The place of the first writer of a part that ends behind this item.
    fn first_writer_behind(&self, item: usize) -> usize {
        self.writers
            .partition_point(|writer| writer.part.end <= item)
    }

    /// Some readers that it takes no time to look at.
    fn last_readers(&self) -> &[Use] {
        const LOOKED_AT: usize = 8;
        &self.readers[self.readers.len().saturating_sub(LOOKED_AT)..]
    }

    /// A job is noted, and comes after all that its access collides with, or before it.
    pub(super) fn note(&mut self, access: &Declared, newcomer: &mut Newcomer<'_>) {
        let part = access.part.clone();
        if part.is_empty() {
            return;
        }
        self.sweep_if_due(newcomer.jobs);
        if newcomer.later.is_empty() {
            self.note_last(part, access.kind, newcomer);
        } else {
            self.note_amid(part, access.kind, newcomer);
        }
    }

    /// A use that comes after all that it collides with, but for readers among the newcomer's `later`.
    fn note_last(&mut self, part: Range<usize>, kind: AccessKind, newcomer: &mut Newcomer<'_>) {
        match kind {
            AccessKind::Reads => self.note_reader(part, newcomer),
            AccessKind::Writes => self.note_writer(part, newcomer),
        }
    }

    /// The same where jobs that come after it may write already: these have taken its place there.
    #[cold]
    fn note_amid(&mut self, part: Range<usize>, kind: AccessKind, newcomer: &mut Newcomer<'_>) {
        let by = newcomer.job;
        let later = self.writers.iter().filter(|old| {
            let meets = old.part.start < part.end && part.start < old.part.end;
            meets && newcomer.later.contains(&old.by)
        });
        let later: Vec<Use> = later.cloned().collect();
        let mut start = part.start;
        for writer in &later {
            let both = writer.part.start.max(part.start)..writer.part.end.min(part.end);
            let gap = start..both.start;
            if !gap.is_empty() {
                self.note_last(gap, kind, newcomer);
            }
            start = both.end;
            if let Some(instead) = newcomer.jobs.ticket(writer.by) {
                newcomer.is_replaced(Use { by, part: both }, kind, instead);
            }
        }
        let rest = start..part.end;
        if !rest.is_empty() {
            self.note_last(rest, kind, newcomer);
        }
    }

    fn note_reader(&mut self, part: Range<usize>, newcomer: &mut Newcomer<'_>) {
        let by = newcomer.job;
        let new = Use { by, part };
        // It takes the place of one that comes before it and reads no more. In a chain that is the last one.
        let gives_way = |old: &Use| new.covers(&old.part) && newcomer.is_before(old.by);
        match self.readers.last_mut() {
            Some(last) if gives_way(last) => {
                let old = std::mem::replace(last, new);
                newcomer.replaces(old, AccessKind::Reads);
            }
            _ => self.readers.push(new),
        }
    }

    fn note_writer(&mut self, part: Range<usize>, newcomer: &mut Newcomer<'_>) {
        if !self.readers.is_empty() {
            cut_out(&mut self.readers, &part, newcomer);
        }
        let first = self.first_writer_behind(part.start);
        if let Some(old) = self.writers.get_mut(first)
            && old.part == part
        {
            let by = std::mem::replace(&mut old.by, newcomer.job);
            newcomer.replaces(Use { by, part }, AccessKind::Writes);
            return;
        }
        let behind = &self.writers[first..];
        let end = first + behind.partition_point(|old| old.part.start < part.end);
        let old = &self.writers[first..end];
        let head = old.first().and_then(|old| old.head(&part));
        let tail = old.last().and_then(|old| old.tail(&part));
        let by = newcomer.job;
        let new = Use {
            by,
            part: part.clone(),
        };
        let instead = head.into_iter().chain([new]).chain(tail);
        for old in self.writers.splice(first..end, instead) {
            let both = old.part.start.max(part.start)..old.part.end.min(part.end);
            let (by, part) = (old.by, both);
            newcomer.replaces(Use { by, part }, AccessKind::Writes);
        }
    }

    /// All jobs that are known to touch it.
    pub(super) fn users(&self) -> impl Iterator<Item = JobRef> {
        let all = self.writers.iter().chain(&self.readers);
        all.map(|one| one.by)
    }

    /// How many uses are remembered.
    fn uses(&self) -> usize {
        self.writers.len() + self.readers.len()
    }

    /// Forgets the uses that do not matter, if that could be half of all. Where jobs are waited for, nothing
    /// else ends those of data that is only read.
    #[inline]
    fn sweep_if_due(&mut self, jobs: &Jobs) {
        const FEW: usize = 64;
        if self.uses() >= 2 * self.left + FEW {
            self.sweep(jobs);
        }
    }

    /// Forgets the uses that do not matter.
    pub(super) fn sweep(&mut self, jobs: &Jobs) {
        let matters = |one: &Use| jobs.serial(one.by).is_some();
        self.writers.retain(matters);
        self.readers.retain(matters);
        self.left = self.uses();
    }
}

/// Takes this part out of all uses but those by jobs that come later.
fn cut_out(uses: &mut Vec<Use>, part: &Range<usize>, newcomer: &mut Newcomer<'_>) {
    let mut tails: SmallVec<[Use; 2]> = SmallVec::new();
    uses.retain_mut(|old| {
        let is_apart = old.part.end <= part.start || part.end <= old.part.start;
        if is_apart || newcomer.later.contains(&old.by) {
            return true;
        }
        let both = old.part.start.max(part.start)..old.part.end.min(part.end);
        let (by, head, tail) = (old.by, old.head(part), old.tail(part));
        newcomer.replaces(Use { by, part: both }, AccessKind::Reads);
        let left = head.is_some() || tail.is_some();
        match (head, tail) {
            (Some(head), tail) => {
                *old = head;
                tails.extend(tail);
            }
            (None, Some(tail)) => *old = tail,
            (None, None) => {}
        }
        left
    });
    uses.extend(tails);
}
