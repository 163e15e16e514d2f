//! Who touched a resource last: only these have to come before a job that touches it next.
//!
//! A job that writes a part comes after all that touched this part before. So whatever comes after that job
//! comes after those, too, and whatever does not, collides with that job. Therefore it takes their place for
//! its part, exactly.

use std::ops::Range;

use smallvec::SmallVec;

use super::jobs::JobRef;
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
    pub(super) guards: Vec<Guarded>,
}

impl Resource {
    pub(super) fn new(name: &'static str) -> Resource {
        Resource {
            name,
            writers: Vec::new(),
            readers: Vec::new(),
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

    /// A job that comes after all that its access collides with. `is_before` says of jobs that they come
    /// before it, or do not matter; it need not know of all.
    pub(super) fn note(
        &mut self,
        by: JobRef,
        access: &Declared,
        is_before: impl Fn(JobRef) -> bool,
    ) {
        if access.part.is_empty() {
            return;
        }
        let new = Use {
            by,
            part: access.part.clone(),
        };
        match access.kind {
            AccessKind::Reads => {
                // It takes the place of one that comes before it and reads no more.
                let replaced = |reader: &Use| new.covers(&reader.part) && is_before(reader.by);
                let last = self.last_readers();
                let start = self.readers.len() - last.len();
                match last.iter().position(replaced) {
                    Some(place) => self.readers[start + place] = new,
                    None => self.readers.push(new),
                }
            }
            AccessKind::Writes => {
                cut_out(&mut self.readers, &new.part);
                let first = self.first_writer_behind(new.part.start);
                let behind = &self.writers[first..];
                let end = first + behind.partition_point(|old| old.part.start < new.part.end);
                let old = &self.writers[first..end];
                let head = old.first().and_then(|old| old.head(&new.part));
                let tail = old.last().and_then(|old| old.tail(&new.part));
                let instead = head.into_iter().chain([new]).chain(tail);
                drop(self.writers.splice(first..end, instead));
            }
        }
    }

    /// All jobs that are known to touch it.
    pub(super) fn users(&self) -> impl Iterator<Item = JobRef> {
        let all = self.writers.iter().chain(&self.readers);
        all.map(|one| one.by)
    }

    pub(super) fn retain(&mut self, is_known: impl Fn(JobRef) -> bool) {
        self.writers.retain(|writer| is_known(writer.by));
        self.readers.retain(|reader| is_known(reader.by));
    }
}

/// Takes this part out of all uses.
fn cut_out(uses: &mut Vec<Use>, part: &Range<usize>) {
    let mut tails: SmallVec<[Use; 2]> = SmallVec::new();
    uses.retain_mut(|old| {
        if old.part.end <= part.start || part.end <= old.part.start {
            return true;
        }
        let (head, tail) = (old.head(part), old.tail(part));
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
