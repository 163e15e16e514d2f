//! The walk along jobs: the threads that ran an awaited job, and the jobs that it waited for in its turn.

use event::Nanos;

use super::CauseKind;
use super::instead::Waiter;
use super::walk::{On, PathFrame, Walk};
use crate::timeline::{Moment, NOBODY, Piece};

impl Walk<'_, '_> {
    /// The next step of a job.
    pub(super) fn job(&mut self, job: u32, frame: PathFrame) {
        let jobs = &self.ground.timeline.jobs;
        let facts = jobs.jobs[job as usize];
        let pieces = jobs.pieces.of(job);
        // The piece that ran just before now, or ran last.
        let after = pieces.partition_point(|piece| piece.end < self.time);
        let now = pieces[after..].iter().find(|piece| piece.begin < self.time);
        let last = pieces[..after].last();
        if let Some(piece) = now {
            return self.thread_down_to(piece.thread, piece.begin, frame);
        }
        let ready = self.ready(job);
        if let Some(piece) = last {
            // It had ended, and its end was not told yet; or others still had parts of it to run.
            let teller = facts.completed.map_or(piece.thread, |moment| moment.thread);
            return self.telling(teller, piece.end, frame);
        }
        let first = pieces.iter().min_by_key(|piece| piece.begin);
        match (ready, first) {
            (Some(ready), Some(first)) if ready.time < self.time => {
                self.queued(job, first, ready.time, frame);
            }
            (Some(ready), None) if ready.time < self.time => {
                // No thread ran it, or none recorded it.
                self.emit(
                    None,
                    CauseKind::NotReady,
                    ready.time.max(frame.floor),
                    frame.confidence,
                );
            }
            _ => self.before_ready(job, frame),
        }
    }

    /// The path leads through a thread down to a time, and then continues where it was.
    fn thread_down_to(&mut self, thread: u32, low: Nanos, frame: PathFrame) {
        self.stack.push(PathFrame {
            on: On::Thread(thread),
            floor: low.max(frame.floor),
            waiter: None,
            lock: None,
            ..frame
        });
    }

    /// When a job became ready, and the thread that made it so. A job without a body is never ready: it ends
    /// when the jobs that it waits for do.
    fn ready(&self, job: u32) -> Option<Moment> {
        let jobs = &self.ground.timeline.jobs;
        let facts = jobs.jobs[job as usize];
        let is_empty = jobs.pieces.of(job).is_empty();
        let over = facts.completed.filter(|_| is_empty);
        let is_first = jobs.before.of(job).is_empty();
        let made = facts.created.filter(|_| is_first);
        facts.ready.or(over).or(made)
    }

    /// A thread tells others of a job's end. Any wait of its own in which it does that does not count.
    fn telling(&mut self, thread: u32, low: Nanos, frame: PathFrame) {
        self.thread_down_to(thread, low, frame);
        let wait = self.job_wait(thread);
        if let (Some(top), Some(wait)) = (self.stack.last_mut(), wait) {
            let since = wait.begin;
            top.waiter = Some(Waiter { thread, since });
        }
    }

    /// A job could have begun: the path follows what the thread that ran it did instead.
    fn queued(&mut self, job: u32, first: &Piece, ready: Nanos, frame: PathFrame) {
        self.stack.push(PathFrame {
            on: On::Queue(first.thread, job),
            floor: ready.max(frame.floor),
            waiter: None,
            lock: None,
            ..frame
        });
    }

    /// A job could not begin: the path moves to the job it waited for, and stays there.
    fn before_ready(&mut self, job: u32, frame: PathFrame) {
        let jobs = &self.ground.timeline.jobs;
        let facts = jobs.jobs[job as usize];
        let ready = self.ready(job);
        let until = ready.map_or(self.time, |ready| ready.time.min(self.time));
        // The one that ended last made it ready.
        let before = jobs.before.of(job).iter();
        let ended = before.filter_map(|&other| Some((self.completed(other)?, other)));
        let last = ended.filter(|(end, _)| *end <= until).max();
        let on = match (last, facts.created) {
            (Some((end, other)), _) if end > frame.floor => {
                if end < self.time
                    && let Some(ready) = ready
                {
                    // Its end was told a little later.
                    return self.telling(ready.thread, end, frame);
                }
                On::Job(other)
            }
            // The thread that ended a job without a body, or else the one that made it.
            _ if jobs.pieces.of(job).is_empty() && facts.completed.is_some() => {
                On::Thread(facts.completed.map_or(NOBODY, |moment| moment.thread))
            }
            (_, Some(created)) => On::Thread(created.thread),
            _ => {
                return self.emit(None, CauseKind::NotReady, frame.floor, frame.confidence);
            }
        };
        if let Some(top) = self.stack.last_mut() {
            top.on = on;
        }
    }
}
