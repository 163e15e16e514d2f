//! Threads that leave a CPU without having been given it in the recording.
//!
//! Kernels do lose switches, above all those from the idle task. Only the end of such a run is left, and the
//! rest follows where it can. A thread that was woken, and whose CPU had nothing else to do, ran from then
//! on, or from a little later: a halted CPU takes a while to begin. A thread that records events of its own
//! (jobs) ran at the latest from the first such event on. Such a run is *inferred*. The thread's state before
//! it, or until its end if its beginning is not told, is unknown.

use event::{Nanos, Task};

use super::KernelBuilder;
use crate::timeline::cpus::{IDLE, UNKNOWN};
use crate::timeline::states::{Interval, Since, State};

/// The longest usual time that a halted CPU takes to begin: half of that is the 99th percentile of a virtual
/// one (docs/validation.md, V7).
const HALTED: Nanos = Nanos::from_micros(200);

impl KernelBuilder<'_> {
    /// A thread leaves a CPU that was not known to be its own.
    pub(super) fn was_not_known_here(
        &mut self,
        thread: u32,
        before: Option<Interval>,
        lane: usize,
        time: Nanos,
    ) {
        let here = self.lanes[lane].now();
        let begin = before.and_then(|before| self.began(thread, before, lane, time));
        let begin = begin.filter(|begin| *begin < time);
        match (here.who, begin) {
            (IDLE, Some(_)) => self.from_idle += 1,
            _ => self.contradictions += 1,
        }
        if here.who < UNKNOWN {
            self.states
                .set(here.who, begin.unwrap_or(time), State::Unknown);
        }
        let (Some(begin), Some(before)) = (begin, before) else {
            return self.lost_sight(thread, before, lane, time);
        };
        if !self.had_to_run(before, lane) {
            self.states.set(thread, before.begin, State::Unknown);
        }
        self.inferred.push((thread, begin));
        let running = State::Running(self.lanes[lane].cpu);
        self.states.set(thread, begin, running);
        self.lanes[lane].set(begin, thread);
    }

    /// Whether a thread was woken, and this CPU had nothing else to do.
    fn had_to_run(&self, before: Interval, lane: usize) -> bool {
        self.lanes[lane].now().who == IDLE && before.state == State::Runnable(Since::Woken)
    }

    /// The beginning of a run of a thread that ended here at `end`, if anything tells it.
    fn began(&self, thread: u32, before: Interval, lane: usize, end: Nanos) -> Option<Nanos> {
        let here = self.lanes[lane].now();
        if matches!(before.state, State::Running(_) | State::Dead) {
            return None;
        }
        // The thread that was believed to run may have been seen there later than it began.
        let other = self.states.now(here.who).map(|other| other.begin);
        let since = here.begin.max(before.begin).max(other.unwrap_or_default());
        let sign = self.sign(thread, since, end);
        if self.had_to_run(before, lane) {
            Some(sign.filter(|&sign| sign <= since + HALTED).unwrap_or(since))
        } else {
            sign
        }
    }

    /// The first event of the thread's own between these times.
    fn sign(&self, thread: u32, since: Nanos, until: Nanos) -> Option<Nanos> {
        let task = Task(*self.tasks.numbers().get(thread as usize)?);
        let slots = &self.recording.slots;
        if !slots.values().any(|of| *of == task) {
            return None; // Most threads have no jobs, and there may be very many events.
        }
        let events = &self.recording.jobs;
        let from = events.partition_point(|event| event.time <= since);
        let events = events[from..].iter();
        let mut meanwhile = events.take_while(|event| event.time < until);
        let did = meanwhile.find(|event| slots.get(&event.slot) == Some(&task));
        did.map(|event| event.time)
    }

    /// The state of a thread before this is unknown.
    fn lost_sight(&mut self, thread: u32, before: Option<Interval>, lane: usize, time: Nanos) {
        let Some(before) = before else {
            return;
        };
        if let State::Running(cpu) = before.state {
            let other = self.lane(cpu);
            if other != lane && self.lanes[other].now().who == thread {
                self.lanes[other].set(time, UNKNOWN);
            }
            return;
        }
        self.states.set(thread, before.begin, State::Unknown);
        let here = self.lanes[lane].now();
        if here.who == IDLE {
            self.lanes[lane].set(here.begin.max(before.begin), UNKNOWN);
        }
    }

    /// A thread was believed to run and did not.
    pub(super) fn contradict(&mut self, thread: u32, time: Nanos) {
        self.contradictions += 1;
        self.states.set(thread, time, State::Unknown);
    }
}
