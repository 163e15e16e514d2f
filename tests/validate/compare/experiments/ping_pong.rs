//! V7: how long a wake-up takes: from just before the call until the woken thread goes on, on the same
//! CPU and across, after the target has idled for a while.

use std::sync::Arc;

use event::Nanos;
use platform::{Atomic, Memory, Ordering, Parker, Platform};
use policy::Attr;

use super::Lab;
use crate::compare::judge::{Row, quantile};
use crate::compare::world::{Course, Note, Program, Thread, World};

/// One thread wakes another, which answers.
pub(crate) struct PingPong {
    pub(crate) attr: Attr,
    /// Where the first thread is; the other one is on CPU 1.
    pub(crate) from: usize,
    /// For how long the first thread computes before it wakes the other one.
    pub(crate) gap: Nanos,
    pub(crate) rounds: u64,
}

type Word<W> = <<W as World>::Platform as Memory>::AtomicU64;

/// Sleeps until the word has come to this round.
fn wait_for<W: World>(word: &Word<W>, round: u64, parker: &<W::Platform as Platform>::Parker) {
    while word.load(Ordering::Acquire) < round {
        parker.park(Nanos::MAX);
    }
}

impl Program for PingPong {
    fn threads<W: World>(&self, world: &W) -> Vec<Thread<W>> {
        let new = || Arc::new(Word::<W>::new(0));
        let (sent, asked, answered) = (new(), new(), new());
        let (ping, pong) = (world.platform().parker(), world.platform().parker());
        let (ping, pong) = (Arc::new(ping), Arc::new(pong));
        let (gap, rounds) = (self.gap, self.rounds);
        let caller = {
            let (sent, asked, answered) = (sent.clone(), asked.clone(), answered.clone());
            let (ping, pong) = (ping.clone(), pong.clone());
            move |world: &W| {
                let mut notes = Vec::new();
                for round in 1..=rounds {
                    if gap > Nanos::ZERO {
                        world.compute_until(world.now() + gap);
                    }
                    let begin = world.now();
                    sent.store(begin.0, Ordering::Relaxed);
                    // Release: partner of the Acquire load in `wait_for`, here and below.
                    asked.store(round, Ordering::Release);
                    ping.unpark();
                    wait_for::<W>(&answered, round, &pong);
                    notes.push(Note::time("round", world.now() - begin));
                }
                notes
            }
        };
        let called = move |world: &W| {
            let mut notes = Vec::new();
            for round in 1..=rounds {
                wait_for::<W>(&asked, round, &ping);
                let begin = Nanos(sent.load(Ordering::Relaxed));
                notes.push(Note::time("wake", world.now() - begin));
                answered.store(round, Ordering::Release);
                pong.unpark();
            }
            notes
        };
        vec![
            Thread::new(self.attr.clone(), called),
            Thread::new(self.attr.clone(), caller).on(Some(self.from)),
        ]
    }
}

/// The notes under this name, in microseconds.
pub(crate) fn micros(course: &Course, name: &str) -> Vec<f64> {
    let noted = course.noted(name).into_iter();
    noted.map(|time| time as f64 / 1e3).collect()
}

/// Where the caller is, for how long it computes, how often.
const CASES: [(&str, usize, u64, usize); 5] = [
    ("same CPU", 1, 0, 2000),
    ("across, target just idle", 0, 0, 1000),
    ("across, after 50 µs", 0, 50, 1000),
    ("across, after 500 µs", 0, 500, 400),
    ("across, after 5 ms", 0, 5000, 200),
];

pub(super) fn run(lab: &Lab) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (name, from, gap, rounds) in CASES {
        let program = PingPong {
            attr: Attr::default(),
            from,
            gap: Nanos::from_micros(gap),
            rounds: lab.times(rounds) as u64,
        };
        let simulated = lab.simulator.run("eevdf-6.18", &program);
        let real = lab.measure(&program, 1)?.remove(0);
        let (wakes, predicted) = (micros(&real, "wake"), micros(&simulated, "wake"));
        let slow: Vec<f64> = quantile(&wakes, 0.99).into_iter().collect();
        rows.push(Row::medians(
            format!("{name}: wake to run, µs"),
            wakes,
            &predicted,
        ));
        let predicted = quantile(&predicted, 0.99);
        rows.push(Row::new(format!("{name}: the same, p99"), slow, predicted));
        if from == 1 {
            let (real, simulated) = (micros(&real, "round"), micros(&simulated, "round"));
            rows.push(Row::medians(
                format!("{name}: there and back, µs"),
                real,
                &simulated,
            ));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::judge::median;
    use crate::compare::simulated::Simulator;

    /// Goal: the figures that the machine's file was fitted to come out again: 1.44 µs there and back on one
    /// CPU, and 3.7 µs across to a CPU that has just gone idle. Method: both on `vm-2`, within the costs of
    /// reading the clock and of the words in between.
    #[test]
    fn simulated_wake_ups_are_what_was_measured() {
        let run = |from, gap| {
            let program = PingPong {
                attr: Attr::default(),
                from,
                gap: Nanos(gap),
                rounds: 50,
            };
            Simulator::vm_2().run("eevdf-6.18", &program)
        };
        let there_and_back = median(&micros(&run(1, 0), "round")).unwrap();
        assert!((1.4..1.6).contains(&there_and_back), "{there_and_back}");
        let across = median(&micros(&run(0, 10_000), "wake")).unwrap();
        assert!((3.7..4.2).contains(&across), "{across}");
    }
}
