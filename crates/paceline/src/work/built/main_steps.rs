//! Steps for the main thread: the thread that runs the graph runs them, and helps with other nodes between.
//!
//! A step that is ready goes into a list, from which the main thread takes all at once. If the list is empty,
//! the main thread makes a *bell*, a job without a body, and waits for it. The bell names the run among its
//! predecessors, without counting it, so that the wait helps with the run. The thread that puts a step into
//! the list rings the bell that it finds:
//!
//! ```text
//! main thread                             another thread
//! B  puts the bell there (swap)           S  puts a step into the list (CAS)
//! L  takes the list (swap)                R  takes the bell (swap), and rings it
//! ```
//!
//! If L comes before S in the list's order of changes, S acquires B from L, and R finds the bell. Otherwise L
//! finds the step.

use event::Nanos;
use platform::{Atomic, Ordering, Platform};

use super::Built;
use crate::queues::Queue;
use crate::store::Ticket;
use crate::work::context::Context;

/// How long to help between two looks for steps, if there is no bell.
const PERIOD: Nanos = Nanos::from_millis(1);

/// The steps that are ready, and the bell.
pub(super) struct MainSteps<P: Platform> {
    /// The last step that was put into the list, plus one; 0 if the list is empty. (As wide as the bell, so
    /// that the checker can break it.)
    last: P::AtomicU64,
    /// The job that the main thread waits for; 0 if it does not wait.
    bell: P::AtomicU64,
}

impl<P: Platform> MainSteps<P> {
    pub(super) fn new() -> MainSteps<P> {
        MainSteps {
            last: P::AtomicU64::new(0),
            bell: P::AtomicU64::new(0),
        }
    }
}

impl<P: Platform> Built<'_, P> {
    /// A step for the main thread is ready. `by`: the job whose end made it so.
    pub(super) fn post_to_main(&self, cx: &Context<'_, P>, number: u32, by: Ticket) {
        let (main, node) = (&self.main, &self.nodes[number as usize]);
        // Relaxed: published by the exchange.
        self.cold[number as usize].by.store(by.0, Ordering::Relaxed);
        let mut last = main.last.load(Ordering::Relaxed);
        loop {
            // Relaxed: published by the exchange.
            node.next.store(last as u32, Ordering::Relaxed);
            // AcqRel, partner: the swaps in `take_steps` (S and L above): the step, and the bell. Relaxed on
            // failure: only the number is used.
            let put = main.last.compare_exchange(
                last,
                u64::from(number) + 1,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            match put {
                Ok(_) => break,
                Err(now) => last = now,
            }
        }
        self.ring(cx);
    }

    /// Rings the bell if there is one.
    fn ring(&self, cx: &Context<'_, P>) {
        // AcqRel, partner: the swap in `wait_for_steps`: the bell's job.
        let bell = Ticket(self.main.bell.swap(0, Ordering::AcqRel));
        if !bell.is_none() {
            cx.graph().release(bell, 1, Queue::Own);
            cx.graph().finish_todo(Queue::Own);
        }
    }

    /// Takes all steps that are ready: the last one of the list, plus one.
    fn take_steps(&self) -> u32 {
        // AcqRel, partner: the exchange in `post_to_main`.
        self.main.last.swap(0, Ordering::AcqRel) as u32
    }

    /// Runs all steps of a run on this thread.
    pub(super) fn do_main_steps(&self, cx: &Context<'_, P>, run: Ticket) {
        let mut left = self.main_count;
        while left > 0 {
            let mut last = self.take_steps();
            if last == 0 {
                last = self.wait_for_steps(cx, run);
            }
            let mut step = self.turned(last);
            while let Some(number) = step.checked_sub(1) {
                // Relaxed: the list is this thread's.
                step = self.nodes[number as usize].next.load(Ordering::Relaxed);
                left -= 1;
                self.run_on_main(cx, number);
            }
        }
    }

    /// The same list, the first step first.
    fn turned(&self, mut last: u32) -> u32 {
        let mut first = 0;
        while let Some(number) = last.checked_sub(1) {
            let next = &self.nodes[number as usize].next;
            // Relaxed, both: the list is this thread's.
            let before = next.load(Ordering::Relaxed);
            next.store(first, Ordering::Relaxed);
            (first, last) = (last, before);
        }
        first
    }

    /// Helps with the run until there may be steps. Returns those that were there before the wait.
    fn wait_for_steps(&self, cx: &Context<'_, P>, run: Ticket) -> u32 {
        let graph = cx.graph();
        let Some((bell, slot)) = graph.make(&self.label, 0, cx.current_job()) else {
            // The job table is full: without a bell this thread has to look again and again.
            _ = cx.wait_until(run, cx.shared.platform.now() + PERIOD);
            return self.take_steps();
        };
        // Release, partner: the CAS in `hold_back`: that the slot is another job's now.
        slot.pending.store(1, Ordering::Release);
        // Without a free link the wait only helps less.
        _ = graph.needs(bell, run);
        // AcqRel, partner: the swap in `ring` (B and R above).
        self.main.bell.swap(bell.0, Ordering::AcqRel);
        let steps = self.take_steps();
        if steps == 0 {
            cx.wait_for_borrowers(bell, |_| ());
        } else {
            self.ring(cx); // Unless another thread does.
        }
        steps
    }
}
