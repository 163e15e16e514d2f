//! V8: a thread that sleeps most of the time, beside hogs: how late it starts when its timer rings.

use event::Nanos;
use policy::Attr;

use super::Lab;
use super::ping_pong::micros;
use crate::compare::judge::Row;
use crate::compare::world::{Note, Program, Thread, World};

const PERIOD: Nanos = Nanos::from_millis(10);
const WORK: Nanos = Nanos::from_millis(1);

/// One thread that works 1 ms in 10, and hogs.
pub(crate) struct Periodic {
    pub(crate) hogs: usize,
    pub(crate) rounds: u64,
}

impl Program for Periodic {
    fn threads<W: World>(&self, _: &W) -> Vec<Thread<W>> {
        let rounds = self.rounds;
        let sleeper = move |world: &W| {
            let late = |round: u64| {
                // Not in step with the tick, whose period it would share otherwise.
                let due = Nanos(round * (PERIOD.0 + 370_000));
                world.sleep_until(due);
                let note = Note::time("late", world.now() - due);
                world.work(WORK);
                note
            };
            (1..=rounds).map(late).collect()
        };
        let end = Nanos((rounds + 1) * (PERIOD.0 + 370_000));
        let hog = move |world: &W| {
            world.compute_until(end);
            Vec::new()
        };
        let mut threads = vec![Thread::new(Attr::default(), sleeper)];
        threads.extend((0..self.hogs).map(|_| Thread::new(Attr::default(), hog)));
        threads
    }
}

pub(super) fn run(lab: &Lab) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for hogs in 1..=3 {
        let program = Periodic {
            hogs,
            rounds: lab.times(300) as u64,
        };
        let simulated = micros(&lab.simulator.run("eevdf-6.18", &program), "late");
        let real = micros(&lab.measure(&program, 1)?[0], "late");
        let most = |samples: &[f64]| samples.iter().copied().reduce(f64::max);
        let (slowest, predicted) = (most(&real), most(&simulated));
        let what = format!("beside {hogs} hogs: timer to run, µs");
        rows.push(Row::medians(what, real, &simulated));
        let what = format!("beside {hogs} hogs: the worst, µs");
        rows.push(Row::new(what, slowest.into_iter().collect(), predicted));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::judge::median;
    use crate::compare::simulated::Simulator;

    /// Goal: a thread that uses a tenth of a CPU never waits for more than three ticks, and half of the
    /// time for less than one, however many hogs there are. Method: one and three hogs on `vm-2`.
    #[test]
    fn a_simulated_sleeper_starts_soon() {
        for hogs in [1, 3] {
            let program = Periodic { hogs, rounds: 100 };
            let late = micros(&Simulator::vm_2().run("eevdf-6.18", &program), "late");
            assert_eq!(late.len(), 100);
            assert!(median(&late).unwrap() < 4_000.0, "{late:?}");
            assert!(late.iter().all(|&late| late < 12_000.0), "{late:?}");
        }
    }
}
