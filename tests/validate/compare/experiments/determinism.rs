//! V15: a simulation is a function of its seed. Nothing of the machine at hand takes part: the number at
//! the end is the same on every other one.

use event::Nanos;
use policy::Attr;

use super::inheritance::{self, Inversion};
use super::messages::{Messages, UNIQUE};
use super::periodic::Periodic;
use super::polling::{ComputeAndPoll, Poll};
use super::spinners::Spinners;
use super::yields::YieldBeside;
use super::{Lab, job_system};
use crate::compare::judge::{Bound, Row};
use crate::compare::simulated::Simulator;
use crate::compare::world::Program;

/// One simulation of each kind: the hashes of their traces.
fn hashes() -> Vec<u64> {
    let simulator = Simulator::vm_2();
    let hash = |program: &dyn Fn(&Simulator) -> u64| program(&simulator);
    let length = Nanos::from_millis(300);
    let inversion: Inversion = inheritance::example();
    vec![
        hash(&|on| {
            of(
                on,
                &Spinners {
                    attrs: vec![Attr::default(), Attr::nice(5)],
                    length,
                },
            )
        }),
        hash(&|on| of(on, &YieldBeside { length })),
        hash(&|on| {
            let (attr, poll) = (Attr::round_robin(10), Poll::Yield);
            of(
                on,
                &ComputeAndPoll {
                    attr,
                    work: length,
                    poll,
                },
            )
        }),
        hash(&|on| {
            of(
                on,
                &Periodic {
                    hogs: 2,
                    rounds: 50,
                },
            )
        }),
        hash(&|on| of(on, &inversion)),
        hash(&|on| {
            of(
                on,
                &Messages {
                    priorities: UNIQUE,
                    cycles: 200,
                },
            )
        }),
        hash(&job_system::example),
    ]
}

fn of(simulator: &Simulator, program: &impl Program) -> u64 {
    simulator.simulate("eevdf-6.18", program, Vec::new()).hash
}

pub(super) fn run(_: &Lab) -> Result<Vec<Row>, String> {
    let (first, second) = (hashes(), hashes());
    let different = first.iter().zip(&second).filter(|(a, b)| a != b).count();
    let all = first.iter().fold(0, |all, &hash| event::mix(all ^ hash));
    let what = format!(
        "simulations that differ when repeated, of {}; hash of their traces {all:016x}",
        first.len()
    );
    let row = Row::new(what, vec![different as f64], Some(0.0));
    Ok(vec![row.bounded(Bound::By(0.0))])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the law of V15, and that it says something: the simulations are equal when repeated, and differ
    /// from each other. Method: all of them twice.
    #[test]
    fn simulations_repeat() {
        let (first, second) = (hashes(), hashes());
        assert_eq!(first, second);
        let mut distinct = first.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), first.len());
    }
}
