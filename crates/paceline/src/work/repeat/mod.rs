//! Idempotent jobs: of a piece whose thread has lost its CPU, a thread that waits for it makes another run.
//! The protocol is in the README beside this file.
//!
//! Every wait looks for such pieces before it rests, and few programs have any. So the table of these jobs is
//! made with the first one, behind a trait object, and the linker leaves out what is behind it.

pub(crate) mod late_work;
mod pieces;

use std::sync::Weak;

use event::Nanos;
use platform::{Atomic, Lock, Ordering, Platform};

use super::context::Context;
use super::shared::RepeatTable;
use crate::border::UserValue;
use crate::stats::Stats;
use crate::store::Ticket;

use late_work::LateWork;
pub(crate) use late_work::Repeat;
pub(crate) use pieces::{OnEnd, Pieces, RepeatEnd};

/// An idempotent job that is not over.
struct RepeatableJob<P: Platform> {
    job: Ticket,
    pieces: Weak<dyn Repeat<P>>,
}

/// All of them.
struct Repeats<P: Platform> {
    jobs: P::Lock<Vec<RepeatableJob<P>>>,
    repeats: P::AtomicU64,
    repeats_won: P::AtomicU64,
}

impl<P: Platform> RepeatTable<P> for Repeats<P> {
    fn add(&self, job: Ticket, pieces: Weak<dyn Repeat<P>>) {
        let job = RepeatableJob { job, pieces };
        self.jobs.with(|jobs| jobs.push(job));
    }

    fn forget(&self, job: Ticket) {
        self.jobs.with(|jobs| jobs.retain(|known| known.job != job));
    }

    fn help(&self, cx: &Context<'_, P>, wanted: &dyn Fn(Ticket) -> bool) -> Option<Nanos> {
        let mut look_at = Nanos::MAX;
        // The lock is not held while the program's code runs. The list may change meanwhile: the next look
        // finds what this one has left out.
        let mut number = 0;
        let look_up = |number: usize| {
            let found = |known: &RepeatableJob<P>| (known.job, known.pieces.upgrade());
            self.jobs.with(|jobs| jobs.get(number).map(found))
        };
        while let Some((job, pieces)) = look_up(number) {
            number += 1;
            let Some(pieces) = pieces else { continue };
            let found = wanted(job).then(|| pieces.help(&cx.shared.platform));
            // This may be the last owner of the body.
            cx.shared.panics.discard(UserValue::new(pieces));
            match found {
                None => {}
                Some(LateWork::LookAt(at)) => look_at = look_at.min(at),
                Some(LateWork::TookPart(drop_panics)) => {
                    cx.shared.panics.add_drops(drop_panics);
                    return None;
                }
                Some(LateWork::Repeated(run)) => {
                    cx.shared.panics.add_drops(run.drop_panics);
                    // Relaxed, both: statistics.
                    self.repeats.fetch_add(1, Ordering::Relaxed);
                    let won = u64::from(run.counts);
                    self.repeats_won.fetch_add(won, Ordering::Relaxed);
                    return None;
                }
            }
        }
        Some(look_at)
    }

    fn add_to(&self, total: &mut Stats) {
        total.repeats += self.repeats.load(Ordering::Relaxed);
        total.repeats_won += self.repeats_won.load(Ordering::Relaxed);
    }
}

impl<P: Platform> Context<'_, P> {
    /// The table of idempotent jobs, which is made if there is none.
    pub(crate) fn repeats(&self) -> &dyn RepeatTable<P> {
        let place = &self.shared.repeats;
        loop {
            if let Some(table) = place.get() {
                return &**table;
            }
            let table = Repeats {
                jobs: P::Lock::new(Vec::new()),
                repeats: P::AtomicU64::new(0),
                repeats_won: P::AtomicU64::new(0),
            };
            // Refused: another thread was faster.
            _ = place.set(Box::new(table));
        }
    }
}
