//! V10: one word that is counted up by one thread, or by two at the same time: what a cache line costs.

use std::sync::Arc;

use event::Nanos;
use platform::{Atomic, Memory, Ordering};
use policy::Attr;

use super::Lab;
use crate::compare::judge::Row;
use crate::compare::world::{Course, Note, Program, Thread, World};

/// Threads that count up one word.
pub(crate) struct Counting {
    pub(crate) threads: usize,
    /// How often each.
    pub(crate) times: u64,
}

impl Program for Counting {
    fn threads<W: World>(&self, _: &W) -> Vec<Thread<W>> {
        type Word<W> = <<W as World>::Platform as Memory>::AtomicU64;
        let new = || Arc::new(Word::<W>::new(0));
        let (word, ready) = (new(), new());
        let (threads, times) = (self.threads as u64, self.times);
        let thread = |number: usize| {
            let (word, ready) = (word.clone(), ready.clone());
            let body = move |world: &W| {
                ready.fetch_add(1, Ordering::AcqRel);
                // They meet first, so that they count at the same time.
                W::Platform::spin_until(&ready, |ready| ready >= threads, Nanos::MAX);
                let begin = world.now();
                for _ in 0..times {
                    word.fetch_add(1, Ordering::AcqRel);
                }
                vec![Note::time("counting", world.now() - begin)]
            };
            Thread::new(Attr::default(), body).on(Some(number % 2))
        };
        (0..self.threads).map(thread).collect()
    }
}

/// The time of one of them, in nanoseconds, by the thread's own clock.
fn each(courses: &[Course], times: u64) -> Vec<f64> {
    let counted = courses.iter().flat_map(|course| course.noted("counting"));
    counted.map(|time| time as f64 / times as f64).collect()
}

pub(super) fn run(lab: &Lab) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (threads, times) in [(1, 1_000_000), (2, 200_000)] {
        let program = Counting { threads, times };
        let simulated = each(&[lab.simulator.run("eevdf-6.18", &program)], times);
        let real = each(&lab.measure(&program, 10)?, times);
        let what = match threads {
            1 => "a fetch_add by one thread, ns",
            _ => "a fetch_add by each of two threads, ns",
        };
        rows.push(Row::medians(what, real, &simulated));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::simulated::Simulator;

    /// Goal: the line model: 5 ns for one thread; two take the line from each other, each time waiting
    /// for the other's transfer too. Method: both on `vm-2`, whose lines travel in 70 ns.
    #[test]
    fn a_simulated_line_travels() {
        let cost = |threads| {
            let times = 10_000;
            let course = Simulator::vm_2().run("eevdf-6.18", &Counting { threads, times });
            each(&[course], times)[0]
        };
        assert!((5.0..5.5).contains(&cost(1)), "{}", cost(1));
        assert!((65.0..160.0).contains(&cost(2)), "{}", cost(2));
    }
}
