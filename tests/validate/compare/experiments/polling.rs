//! V5: source 002 on this kernel: a thread computes while another one on the same CPU polls for its end, by a
//! busy loop or by yields, as fair threads or as real-time ones.

use std::sync::Arc;

use event::Nanos;
use platform::{Atomic, Memory, Ordering, Parker, Platform};
use policy::Attr;

use super::Lab;
use crate::compare::judge::{Bound, Row};
use crate::compare::world::{Course, Note, Program, Thread, World};

/// The thread that polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Poll {
    /// None.
    Nobody,
    /// A loop that looks again and again.
    Busy,
    /// One that yields between two looks.
    Yield,
}

/// A thread that computes, and one that polls for its end.
pub(crate) struct ComputeAndPoll {
    pub(crate) attr: Attr,
    pub(crate) work: Nanos,
    pub(crate) poll: Poll,
}

impl Program for ComputeAndPoll {
    fn threads<W: World>(&self, world: &W) -> Vec<Thread<W>> {
        type Word<W> = <<W as World>::Platform as Memory>::AtomicU64;
        let done = Arc::new(Word::<W>::new(0));
        let start = Arc::new(world.platform().parker());
        let (work, poll) = (self.work, self.poll);
        let poller = {
            let (done, start) = (done.clone(), start.clone());
            move |world: &W| {
                // The poller is there before the other one begins, whichever got the CPU first.
                start.unpark();
                let mut yields = 0;
                // Acquire: partner of the Release store below.
                while poll != Poll::Nobody && done.load(Ordering::Acquire) == 0 {
                    match poll {
                        Poll::Yield => {
                            world.yields();
                            yields += 1;
                        }
                        _ => {
                            W::Platform::spin_until(&done, |done| done != 0, Nanos::MAX);
                        }
                    }
                }
                vec![Note {
                    name: "yields",
                    value: yields,
                }]
            }
        };
        let computer = move |world: &W| {
            start.park(Nanos::MAX);
            let begin = world.now();
            world.work(work);
            // Release: partner of the Acquire load above.
            done.store(1, Ordering::Release);
            vec![Note::time("elapsed", world.now() - begin)]
        };
        vec![
            Thread::new(self.attr.clone(), poller),
            Thread::new(self.attr.clone(), computer),
        ]
    }
}

/// How long each run's work took, in milliseconds.
fn elapsed(course: &Course) -> f64 {
    course
        .noted("elapsed")
        .first()
        .map_or(f64::NAN, |&time| time as f64 / 1e6)
}

fn modes() -> [(&'static str, Attr, Poll); 4] {
    [
        ("a busy loop", Attr::default(), Poll::Busy),
        ("yields", Attr::default(), Poll::Yield),
        ("yields, both SCHED_RR", Attr::round_robin(10), Poll::Yield),
        ("yields, both SCHED_FIFO", Attr::fifo(10), Poll::Yield),
    ]
}

fn program(attr: &Attr, poll: Poll, work: Nanos) -> ComputeAndPoll {
    ComputeAndPoll {
        attr: attr.clone(),
        work,
        poll,
    }
}

pub(super) fn run(lab: &Lab) -> Result<Vec<Row>, String> {
    let work = lab.length(Nanos::from_millis(235));
    let alone = program(&Attr::default(), Poll::Nobody, work);
    let simulated_alone = elapsed(&lab.simulator.run("eevdf-6.18", &alone));
    let mut real = vec![Vec::new(); modes().len()];
    // Everything in turn, so that a slow phase of the machine is one for all.
    for _ in 0..lab.times(10) {
        let run = |program: &_| Ok(elapsed(&lab.machine.run(program)?));
        let round = lab.quiet.piece(|| {
            let modes = modes();
            let times = modes
                .iter()
                .map(|(_, attr, poll)| run(&program(attr, *poll, work)));
            Ok((run(&alone)?, times.collect::<Result<Vec<_>, String>>()?))
        })?;
        for (time, ratios) in round.1.into_iter().zip(&mut real) {
            ratios.push(time / round.0);
        }
    }
    let row = |((name, attr, poll), real): ((&str, Attr, Poll), Vec<f64>)| {
        let simulated = lab.simulator.run("eevdf-6.18", &program(&attr, poll, work));
        let simulated = elapsed(&simulated) / simulated_alone;
        Row::new(
            format!("time beside {name}, to alone"),
            real,
            Some(simulated),
        )
        .bounded(Bound::Within(0.02))
    };
    Ok(modes().into_iter().zip(real).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::simulated::Simulator;

    /// Goal: the simulated laws of V5: a busy loop doubles the time, a yielding one takes nothing, in any
    /// class; under CFS 4.12 yields double it, too. Method: 235 ms of work on `vm-2`.
    #[test]
    fn simulated_polls() {
        let simulator = Simulator::vm_2();
        let work = Nanos::from_millis(235);
        let time =
            |policy, attr, poll| elapsed(&simulator.run(policy, &program(&attr, poll, work)));
        let alone = time("eevdf-6.18", Attr::default(), Poll::Nobody);
        assert!((alone - 235.0).abs() < 0.2, "{alone}");
        for (name, attr, poll) in modes() {
            let ratio = time("eevdf-6.18", attr, poll) / alone;
            let (least, most) = match poll {
                Poll::Busy => (1.96, 2.0),
                _ => (0.999, 1.01),
            };
            assert!((least..=most).contains(&ratio), "{name}: {ratio}");
        }
        let cfs = time("cfs-4.12", Attr::default(), Poll::Yield) / alone;
        assert!((1.9..2.05).contains(&cfs), "{cfs}");
    }
}
