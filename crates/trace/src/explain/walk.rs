//! The walk backwards: the thread that would have had to continue, at each instant of a wait.

use event::{Nanos, Task};

use super::arrows::ArrowIndex;
use super::busy::{BusyWait, BusyWaits};
use super::instead::Waiter;
use super::speed::Speeds;
use super::words::NameHints;
use super::{CauseKind, Confidence, Segment, locks, wakers};
use crate::timeline::{NOBODY, Span, State, Stay, Timeline, Waker};

/// The number of steps that may pass without getting anywhere: a recording can claim that threads woke each
/// other in a circle at one instant.
const STEPS: u32 = 4096;
/// The longest chain of threads that wait for each other.
const DEPTH: usize = 512;

/// The data that all waits share.
pub(super) struct Ground<'t> {
    pub(super) timeline: &'t Timeline,
    pub(super) says: &'t [NameHints],
    pub(super) arrows: &'t ArrowIndex,
    pub(super) busy: BusyWaits<'t>,
    pub(super) speeds: Speeds,
    /// All CPUs, for threads whose allowed CPUs are not known.
    pub(super) everywhere: Vec<u32>,
}

/// The reason why a thread or job is on the path, and the time down to which it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathFrame {
    pub(super) on: On,
    /// The time down to which it is on the path.
    pub(super) floor: Nanos,
    /// The wait that brought it here: the thread that waits, and since when. The same wait is followed once
    /// only.
    pub(super) waiter: Option<Waiter>,
    /// How sure it is that this one was waited for.
    pub(super) confidence: Confidence,
    /// Whether it held a lock that the waiter wanted, and how sure that is.
    pub(super) lock: Option<Confidence>,
}

/// A thread or a job on the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum On {
    /// A thread.
    Thread(u32),
    /// A job, by its position.
    Job(u32),
    /// A thread that will run this job, and has not begun to.
    Queue(u32, u32),
}

/// One walk.
pub(super) struct Walk<'g, 't> {
    pub(super) ground: &'g Ground<'t>,
    pub(super) stack: Vec<PathFrame>,
    /// The time it has come down to: the segments of all later times are there.
    pub(super) time: Nanos,
    /// The latest segment first.
    pub(super) segments: Vec<Segment>,
    /// The threads that the thread itself waited for, and how long.
    awaited: Vec<(u32, Nanos, Confidence)>,
    steps: u32,
}

/// The result of a walk.
pub(super) struct Walked {
    pub(super) segments: Vec<Segment>,
    /// The thread that it waited for longest.
    pub(super) awaited: Option<(Task, Confidence)>,
}

/// Walks through a thread's time, from its end to its beginning.
pub(super) fn walk(ground: &Ground<'_>, thread: u32, begin: Nanos, end: Nanos) -> Walked {
    let mut walk = Walk {
        ground,
        stack: vec![PathFrame {
            on: On::Thread(thread),
            floor: begin,
            waiter: None,
            confidence: Confidence::Known,
            lock: None,
        }],
        time: end,
        segments: Vec::new(),
        awaited: Vec::new(),
        steps: 0,
    };
    while let Some(frame) = walk.stack.last().copied() {
        let before = walk.time;
        if walk.time <= frame.floor {
            walk.stack.pop();
        } else if walk.steps > STEPS || walk.stack.len() > DEPTH {
            walk.emit(None, CauseKind::Unknown, frame.floor, Confidence::Known);
        } else {
            match frame.on {
                On::Thread(thread) => walk.thread(thread, frame),
                On::Queue(thread, _) => walk.own(thread, frame, frame.floor),
                On::Job(job) => walk.job(job, frame),
            }
        }
        walk.steps = if walk.time < before {
            0
        } else {
            walk.steps + 1
        };
    }
    walk.finish()
}

impl Walk<'_, '_> {
    /// The next step of a thread: along what it waits for, or through its own time.
    fn thread(&mut self, thread: u32, frame: PathFrame) {
        let timeline = self.ground.timeline;
        let job_wait = self
            .job_wait(thread)
            .filter(|wait| !self.follows(thread, wait.begin));
        if let Some(wait) = job_wait {
            let job = wait.what as u32;
            match self.completed(job) {
                Some(done) if done <= wait.begin => {}
                Some(done) if done < self.time => {
                    return self.own(thread, frame, done.max(frame.floor));
                }
                Some(_) => return self.wait_for_job(thread, wait, frame),
                None => {}
            }
        }
        let asleep = timeline.before(thread, self.time).state.is_asleep();
        let busy = self.ground.busy.before(thread, self.time);
        let busy = busy.filter(|wait| !asleep && !self.follows(thread, wait.begin));
        match busy {
            Some(wait) if wait.done < self.time => {
                self.own(thread, frame, wait.done.max(frame.floor));
            }
            Some(wait) if wait.done > wait.begin => self.wait_busily(thread, wait, frame),
            _ => self.own(thread, frame, frame.floor),
        }
    }

    /// Whether the path already follows what a thread has waited for since then.
    fn follows(&self, thread: u32, since: Nanos) -> bool {
        let waiter = Some(Waiter { thread, since });
        self.stack.iter().any(|frame| frame.waiter == waiter)
    }

    /// The wait for a job that a thread is in, unless it runs something in it.
    pub(super) fn job_wait(&self, thread: u32) -> Option<Span> {
        let jobs = &self.ground.timeline.jobs;
        let wait = jobs.waits.before(thread, self.time).innermost?;
        let body = jobs.bodies.before(thread, self.time).innermost;
        let runs = |body: crate::timeline::Piece| {
            body.begin > wait.begin || (body.begin == wait.begin && body.end <= wait.end)
        };
        (!body.is_some_and(runs)).then_some(wait)
    }

    /// When a job ended.
    pub(super) fn completed(&self, job: u32) -> Option<Nanos> {
        let jobs = &self.ground.timeline.jobs;
        let last = || jobs.pieces.of(job).last().map(|piece| piece.end);
        let completed = jobs.jobs.get(job as usize)?.completed;
        completed.map(|moment| moment.time).or_else(last)
    }

    fn wait_for_job(&mut self, thread: u32, wait: Span, frame: PathFrame) {
        let since = wait.begin;
        if self.stack.len() == 1 {
            let pieces = self.ground.timeline.jobs.pieces.of(wait.what as u32);
            if let Some(piece) = pieces.last() {
                let length = self.time - since.max(frame.floor);
                self.awaited.push((piece.thread, length, Confidence::Known));
            }
        }
        self.stack.push(PathFrame {
            on: On::Job(wait.what as u32),
            floor: since.max(frame.floor),
            waiter: Some(Waiter { thread, since }),
            lock: None,
            ..frame
        });
    }

    fn wait_busily(&mut self, thread: u32, wait: BusyWait, frame: PathFrame) {
        let since = wait.begin;
        self.push(PathFrame {
            on: On::Thread(wait.awaited),
            floor: since.max(frame.floor),
            waiter: Some(Waiter { thread, since }),
            confidence: frame.confidence.max(wait.confidence),
            lock: None,
        });
    }

    fn push(&mut self, frame: PathFrame) {
        if let (1, On::Thread(thread)) = (self.stack.len(), frame.on) {
            let length = self.time - frame.floor;
            self.awaited.push((thread, length, frame.confidence));
        }
        self.stack.push(frame);
    }

    /// A thread's own time, by the kernel's events, down to `low` at most.
    fn own(&mut self, thread: u32, frame: PathFrame, low: Nanos) {
        let timeline = self.ground.timeline;
        let stay = timeline.before(thread, self.time);
        let from = stay.begin.max(low);
        match stay.state {
            State::Running(cpu) => {
                let told = if timeline.is_inferred(thread, stay.begin) {
                    Confidence::Inferred
                } else {
                    Confidence::Known
                };
                let confidence = frame.confidence.max(told);
                self.running(
                    thread,
                    PathFrame {
                        confidence,
                        ..frame
                    },
                    cpu,
                    from,
                );
            }
            State::Awake => self.awake(thread, frame, from),
            State::Runnable(since) => self.runnable(thread, frame, stay, since, from),
            State::Throttled(_) => self.throttled(thread, frame, from),
            State::Sleeping | State::Blocked => self.asleep(thread, frame, stay, from),
            // Nothing but a wake-up is known of it: it had slept until then, or was made then. Either way the
            // path leads on through the waker.
            State::Unknown if timeline.is_before_first_wake_up(thread, stay) => {
                let confidence = frame.confidence.max(Confidence::Inferred);
                let frame = PathFrame {
                    confidence,
                    ..frame
                };
                self.asleep(thread, frame, stay, from);
            }
            State::Dead | State::Unknown => {
                self.emit(Some(thread), CauseKind::Unknown, from, frame.confidence);
            }
        }
    }

    fn asleep(&mut self, thread: u32, frame: PathFrame, stay: Stay, from: Nanos) {
        let timeline = self.ground.timeline;
        let since = stay.begin;
        // A kernel gives the reason when the sleep is over.
        let reason = timeline.reason(thread, stay.begin, stay.end + Nanos::from_micros(20));
        let io = reason.map(|reason| reason.io);
        let function = reason.and_then(|reason| reason.function);
        let (waker, sure) = match wakers::waker(timeline, thread, stay) {
            (Waker::Unknown, sure) => match self.ground.arrows.sender(thread, stay) {
                Some(arrow) if arrow.from != thread && !self.follows(thread, since) => {
                    // It had been sent what it waited for, and nothing says what held it up from then on.
                    let left = arrow.left.max(from);
                    let sure = frame.confidence.max(Confidence::Inferred);
                    self.emit(Some(thread), CauseKind::Unknown, left, sure);
                    (Waker::Thread(arrow.from), sure)
                }
                _ => (Waker::Unknown, sure),
            },
            known => known,
        };
        let waker = match waker {
            Waker::Thread(by) if by == thread || self.follows(thread, since) => Waker::Unknown,
            waker => waker,
        };
        let (kind, confidence) = match waker {
            _ if io == Some(true) => (CauseKind::Io, Confidence::Known),
            Waker::Thread(by) => {
                let lock = locks::held_by(timeline, self.ground.says, thread, stay, by);
                return self.push(PathFrame {
                    on: On::Thread(by),
                    floor: from,
                    waiter: Some(Waiter { thread, since }),
                    confidence: frame.confidence.max(sure),
                    lock,
                });
            }
            _ if locks::is_lock(timeline, self.ground.says, thread, stay) => {
                (CauseKind::Lock, Confidence::Inferred)
            }
            _ if locks::is_for_device(timeline, self.ground.says, thread, stay) => {
                (CauseKind::Io, Confidence::Known)
            }
            _ if function.is_some() => (CauseKind::Blocked, Confidence::Known),
            Waker::Interrupt => (CauseKind::Interrupt, sure),
            // That does not mean a device: drivers wait for timers so, and threads for locks of the kernel.
            Waker::Unknown if stay.state == State::Blocked => {
                (CauseKind::Blocked, Confidence::Known)
            }
            Waker::Unknown => (CauseKind::Unknown, Confidence::Known),
        };
        let before = self.segments.len();
        self.emit(Some(thread), kind, from, confidence.max(frame.confidence));
        if let Some(new) = self.segments.get_mut(before) {
            new.function = function;
        }
    }

    /// There are no scheduler events: the thread ran, or could have, or slept in code of the program's.
    fn awake(&mut self, thread: u32, frame: PathFrame, low: Nanos) {
        let (job, kind, since) = self.body(thread, frame);
        let kind = match kind {
            CauseKind::Running => CauseKind::Awake,
            other => other,
        };
        let confidence = frame.confidence.max(Confidence::Assumed);
        self.emit_job(Some(thread), kind, low.max(since), confidence, job);
    }

    /// The body that a thread was in just before now, its meaning for the path, and since when.
    pub(super) fn body(&self, thread: u32, frame: PathFrame) -> (Option<u64>, CauseKind, Nanos) {
        let jobs = &self.ground.timeline.jobs;
        let inside = jobs.bodies.before(thread, self.time);
        let Some(body) = inside.innermost else {
            return (None, CauseKind::Running, inside.since);
        };
        let kind = match frame.on {
            On::Queue(_, job) if body.job != job => CauseKind::QueuedBehind,
            _ => CauseKind::Running,
        };
        let job = jobs.jobs.get(body.job as usize).map(|job| job.id);
        (job, kind, inside.since)
    }

    pub(super) fn on_path(&self, task: Task) -> bool {
        let thread = self.ground.timeline.position(task);
        self.stack.iter().any(|frame| match frame.on {
            On::Thread(on) | On::Queue(on, _) => Some(on) == thread,
            On::Job(_) => false,
        })
    }

    pub(super) fn emit(
        &mut self,
        thread: Option<u32>,
        kind: CauseKind,
        from: Nanos,
        confidence: Confidence,
    ) {
        self.emit_job(thread, kind, from, confidence, None);
    }

    pub(super) fn emit_job(
        &mut self,
        thread: Option<u32>,
        kind: CauseKind,
        from: Nanos,
        confidence: Confidence,
        job: Option<u64>,
    ) {
        if from < self.time {
            self.segments.push(Segment {
                begin: from,
                end: self.time,
                thread: thread
                    .filter(|&thread| thread != NOBODY)
                    .map(|thread| self.ground.timeline.task(thread)),
                kind,
                by: Vec::new(),
                beside_idle: false,
                exit: None,
                function: None,
                job,
                confidence,
                inversion: None,
            });
            self.time = from;
        }
    }

    fn finish(mut self) -> Walked {
        self.segments.reverse();
        // Adjacent segments with the same contents become one.
        let mut segments: Vec<Segment> = Vec::with_capacity(self.segments.len());
        for segment in self.segments {
            match segments.last_mut() {
                Some(last) if alike(last, &segment) => last.end = segment.end,
                _ => segments.push(segment),
            }
        }
        let timeline = self.ground.timeline;
        let longest = self.awaited.iter().max_by_key(|(_, length, _)| *length);
        let awaited = longest
            .filter(|(_, length, _)| *length > Nanos::ZERO)
            .map(|(thread, _, confidence)| (timeline.task(*thread), *confidence));
        Walked { segments, awaited }
    }
}

fn alike(a: &Segment, b: &Segment) -> bool {
    let key = |s: &Segment| {
        (
            s.thread,
            s.kind,
            s.job,
            s.confidence,
            s.inversion,
            s.function,
        )
    };
    key(a) == key(b) && a.by.is_empty() && b.by.is_empty()
}
