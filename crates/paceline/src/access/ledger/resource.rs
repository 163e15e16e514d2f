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
use crate::access::{AccessKind, Declared};
use crate::store::CallSite;

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

/// A use, and the job that took its place.
pub(super) struct Replaced {
    pub(super) old: Use,
    pub(super) kind: AccessKind,
    /// While it has not begun, jobs may be scheduled that come before it.
    instead: JobRef,
}

/// Where a job that is noted stands among the others.
pub(super) struct Order<'o> {
    pub(super) jobs: &'o Jobs,
    /// Those that it collides with and comes before. It comes after all others that it collides with.
    pub(super) later: &'o [JobRef],
}

impl Order<'_> {
    /// Whether the other job comes before it, or does not matter. It need not know of all.
    fn is_before(&self, other: JobRef) -> bool {
        self.jobs.was_found(other) || !self.matters(other)
    }

    fn matters(&self, other: JobRef) -> bool {
        self.jobs.serial(other).is_some()
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
    /// The last writer of each part. The parts are disjoint, and in order.
    writers: Vec<Use>,
    /// Those that have read since.
    readers: Vec<Use>,
    /// Those that these have replaced.
    replaced: Vec<Replaced>,
    /// How many there may be before they are looked through.
    replaced_most: usize,
    pub(super) guards: Vec<Guarded>,
}

/// So many are not looked through.
const REPLACED_FEW: usize = 64;

impl Resource {
    pub(super) fn new(name: &'static str) -> Resource {
        Resource {
            name,
            writers: Vec::new(),
            readers: Vec::new(),
            replaced: Vec::new(),
            replaced_most: REPLACED_FEW,
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

    /// The replaced uses that the access collides with.
    pub(super) fn replaced(&self, access: &Declared) -> impl Iterator<Item = &Replaced> {
        let all = self.replaced.iter();
        all.filter(|one| access.meets(one.kind, &one.old.part))
    }

    /// A job is noted, and comes after all that its access collides with, or before it.
    pub(super) fn note(&mut self, by: JobRef, access: &Declared, order: &Order<'_>) {
        if access.part.is_empty() {
            return;
        }
        let new = Use {
            by,
            part: access.part.clone(),
        };
        if order.later.is_empty() {
            self.note_last(new, access.kind, order);
        } else {
            self.note_amid(&new, access.kind, order);
        }
    }

    /// A use that comes after all that it collides with, but for readers among `order.later`.
    fn note_last(&mut self, new: Use, kind: AccessKind, order: &Order<'_>) {
        match kind {
            AccessKind::Reads => self.note_reader(new, order),
            AccessKind::Writes => self.note_writer(new, order),
        }
    }

    /// The same where jobs that come after it may write already: these have taken its place there.
    #[cold]
    fn note_amid(&mut self, new: &Use, kind: AccessKind, order: &Order<'_>) {
        let by = new.by;
        let later = self.writers.iter().filter(|old| {
            let meets = old.part.start < new.part.end && new.part.start < old.part.end;
            meets && order.later.contains(&old.by)
        });
        let later: Vec<Use> = later.cloned().collect();
        let mut start = new.part.start;
        for writer in &later {
            let part = writer.part.start.max(new.part.start)..writer.part.end.min(new.part.end);
            let gap = start..part.start;
            if !gap.is_empty() {
                self.note_last(Use { by, part: gap }, kind, order);
            }
            start = part.end;
            self.replace(Use { by, part }, kind, writer.by, order);
        }
        let rest = start..new.part.end;
        if !rest.is_empty() {
            self.note_last(Use { by, part: rest }, kind, order);
        }
    }

    fn note_reader(&mut self, new: Use, order: &Order<'_>) {
        // It takes the place of one that comes before it and reads no more.
        let is_replaced = |reader: &Use| new.covers(&reader.part) && order.is_before(reader.by);
        let last = self.last_readers();
        let start = self.readers.len() - last.len();
        match last.iter().position(is_replaced) {
            Some(place) => {
                let by = new.by;
                let old = std::mem::replace(&mut self.readers[start + place], new);
                self.replace(old, AccessKind::Reads, by, order);
            }
            None => self.readers.push(new),
        }
    }

    fn note_writer(&mut self, new: Use, order: &Order<'_>) {
        let (by, part) = (new.by, new.part.clone());
        for old in cut_out(&mut self.readers, &part, order.later) {
            self.replace(old, AccessKind::Reads, by, order);
        }
        let first = self.first_writer_behind(part.start);
        let behind = &self.writers[first..];
        let end = first + behind.partition_point(|old| old.part.start < part.end);
        let old = &self.writers[first..end];
        let head = old.first().and_then(|old| old.head(&part));
        let tail = old.last().and_then(|old| old.tail(&part));
        let instead = head.into_iter().chain([new]).chain(tail);
        let old: SmallVec<[Use; 2]> = self.writers.splice(first..end, instead).collect();
        for old in old {
            let part = old.part.start.max(part.start)..old.part.end.min(part.end);
            self.replace(Use { part, ..old }, AccessKind::Writes, by, order);
        }
    }

    fn replace(&mut self, old: Use, kind: AccessKind, instead: JobRef, order: &Order<'_>) {
        if order.matters(old.by) {
            self.replaced.push(Replaced { old, kind, instead });
        }
    }

    /// Forgets uses that no job can care for any more: `matters` says of jobs that they are known, and
    /// `may_begin` whether jobs can still be scheduled that come before.
    pub(super) fn forget_replaced_if_due(
        &mut self,
        matters: impl Fn(JobRef) -> bool,
        may_begin: impl Fn(JobRef) -> bool,
    ) {
        if self.replaced.len() > self.replaced_most {
            self.forget_replaced(matters, may_begin);
        }
    }

    pub(super) fn forget_replaced(
        &mut self,
        matters: impl Fn(JobRef) -> bool,
        may_begin: impl Fn(JobRef) -> bool,
    ) {
        self.replaced
            .retain(|one| matters(one.old.by) && may_begin(one.instead));
        self.replaced_most = 2 * self.replaced.len() + REPLACED_FEW;
    }

    /// All jobs that are known to touch it.
    pub(super) fn users(&self) -> impl Iterator<Item = JobRef> {
        let last = self.writers.iter().chain(&self.readers);
        let replaced = self.replaced.iter().map(|one| &one.old);
        last.chain(replaced).map(|one| one.by)
    }

    pub(super) fn retain(&mut self, is_known: impl Fn(JobRef) -> bool) {
        self.writers.retain(|writer| is_known(writer.by));
        self.readers.retain(|reader| is_known(reader.by));
    }
}

/// Takes this part out of all uses but those by jobs that come later. Returns what was taken out.
fn cut_out(uses: &mut Vec<Use>, part: &Range<usize>, later: &[JobRef]) -> SmallVec<[Use; 2]> {
    let mut tails: SmallVec<[Use; 2]> = SmallVec::new();
    let mut taken: SmallVec<[Use; 2]> = SmallVec::new();
    uses.retain_mut(|old| {
        let is_apart = old.part.end <= part.start || part.end <= old.part.start;
        if is_apart || later.contains(&old.by) {
            return true;
        }
        let both = old.part.start.max(part.start)..old.part.end.min(part.end);
        let (by, head, tail) = (old.by, old.head(part), old.tail(part));
        taken.push(Use { by, part: both });
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
    taken
}
