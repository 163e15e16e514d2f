//! V14: source 003 on Linux: D sends three messages to each of A, B and C and yields. With one priority
//! for all there are 4 switches a cycle, with one for each 18.

use std::sync::Arc;

use policy::Attr;
use workload::messages::{EACH, Queue};

use super::Lab;
use crate::compare::judge::{Bound, Row};
use crate::compare::world::{Course, Note, Program, Thread, World};

/// A, B, C and D, with these priorities.
pub(crate) struct Messages {
    pub(crate) priorities: [u8; 4],
    pub(crate) cycles: u64,
}

pub(crate) const EQUAL: [u8; 4] = [10; 4];
pub(crate) const UNIQUE: [u8; 4] = [14, 13, 12, 11];

impl Program for Messages {
    fn threads<W: World>(&self, world: &W) -> Vec<Thread<W>> {
        let queue = |_| Arc::new(Queue::new(world.platform()));
        let queues = [0; 3].map(queue);
        let [.., priority] = self.priorities;
        let cycles = self.cycles;
        let receiver = |(queue, priority): (&Arc<Queue<W::Platform>>, u8)| {
            let queue = queue.clone();
            let body = move |_: &W| {
                (0..cycles * EACH).for_each(|_| queue.receive());
                Vec::new()
            };
            Thread::new(Attr::fifo(priority), body)
        };
        let mut threads: Vec<_> = queues.iter().zip(self.priorities).map(receiver).collect();
        let sender = move |world: &W| {
            let begin = world.now();
            for _ in 0..cycles {
                for queue in &queues {
                    (0..EACH).for_each(|_| queue.send());
                }
                world.yields();
            }
            vec![Note::time("cycles", world.now() - begin)]
        };
        threads.push(Thread::new(Attr::fifo(priority), sender));
        threads
    }
}

/// Switches a cycle, over all four threads. The beginning and the end add a thousandth.
fn switches(courses: &[Course], cycles: u64) -> Vec<f64> {
    let of = |course: &Course| {
        let all: u64 = course.used.iter().map(|used| used.switches).sum();
        all as f64 / cycles as f64
    };
    courses.iter().map(of).collect()
}

/// Microseconds a cycle.
fn cycle(courses: &[Course], cycles: u64) -> Vec<f64> {
    let times = courses.iter().flat_map(|course| course.noted("cycles"));
    times
        .map(|time| time as f64 / 1e3 / cycles as f64)
        .collect()
}

pub(super) fn run(lab: &Lab) -> Result<Vec<Row>, String> {
    let cycles = 5_000;
    let program = |priorities| Messages { priorities, cycles };
    let (mut equal, mut unique) = (Vec::new(), Vec::new());
    for _ in 0..lab.times(10) {
        let run = |priorities| lab.machine.run(&program(priorities));
        let pair = lab.quiet.piece(|| Ok((run(EQUAL)?, run(UNIQUE)?)))?;
        equal.push(pair.0);
        unique.push(pair.1);
    }
    let simulate = |priorities| [lab.simulator.run("fifo", &program(priorities))];
    let (simulated_equal, simulated_unique) = (simulate(EQUAL), simulate(UNIQUE));
    let longer = |unique: &[Course], equal: &[Course]| {
        let pairs = cycle(unique, cycles).into_iter().zip(cycle(equal, cycles));
        pairs
            .map(|(unique, equal)| unique - equal)
            .collect::<Vec<f64>>()
    };
    // Among thousands of cycles a few switches are the beginning's, or a kernel thread's.
    let exact = Bound::By(0.01);
    Ok(vec![
        Row::medians(
            "switches a cycle, one priority",
            switches(&equal, cycles),
            &switches(&simulated_equal, cycles),
        )
        .bounded(exact),
        Row::medians(
            "switches a cycle, four priorities",
            switches(&unique, cycles),
            &switches(&simulated_unique, cycles),
        )
        .bounded(exact),
        Row::medians(
            "a cycle, one priority, µs",
            cycle(&equal, cycles),
            &cycle(&simulated_equal, cycles),
        ),
        Row::medians(
            "what four priorities add to it, µs",
            longer(&unique, &equal),
            &longer(&simulated_unique, &simulated_equal),
        )
        .bounded(Bound::Within(0.1)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::simulated::Simulator;

    /// Goal: the simulated law of V14: 4 and 18 switches a cycle. Method: a thousand cycles of either on
    /// `vm-2`; what the beginning and the end add is less than ten.
    #[test]
    fn simulated_switches_are_4_and_18() {
        for (priorities, expected) in [(EQUAL, 4), (UNIQUE, 18)] {
            let cycles = 1_000;
            let course = Simulator::vm_2().run("fifo", &Messages { priorities, cycles });
            let all: u64 = course.used.iter().map(|used| used.switches).sum();
            assert!(
                all.abs_diff(expected * cycles) < 10,
                "{all} in {cycles} cycles"
            );
        }
    }
}
