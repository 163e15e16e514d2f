//! V6: what `sched_yield` and the end of a slice do among real-time threads: to the tail of the
//! priority's list.

use std::time::Duration;

use event::Nanos;
use policy::Attr;

use super::Lab;
use super::polling::{ComputeAndPoll, Poll};
use super::spinners::Spinners;
use crate::compare::judge::{Bound, Row};
use crate::compare::world::Course;

/// The kernel stops real-time threads that leave nothing to others for 950 ms of a second.
const REST: Duration = Duration::from_millis(250);

fn fifo(work: Nanos) -> ComputeAndPoll {
    ComputeAndPoll {
        attr: Attr::fifo(10),
        work,
        poll: Poll::Yield,
    }
}

fn round_robin() -> Spinners {
    Spinners {
        attrs: vec![Attr::round_robin(10); 2],
        length: Nanos::from_millis(740),
    }
}

fn yields(courses: &[Course]) -> Vec<f64> {
    let yields = courses.iter().flat_map(|course| course.noted("yields"));
    yields.map(|count| count as f64).collect()
}

pub(super) fn run(lab: &Lab) -> Result<Vec<Row>, String> {
    let fifo = fifo(Nanos::from_millis(200));
    let (mut yielded, mut hogs) = (Vec::new(), Vec::new());
    for _ in 0..lab.times(5) {
        yielded.push(lab.quiet.piece(|| lab.machine.run(&fifo))?);
        std::thread::sleep(REST);
        hogs.push(lab.quiet.piece(|| lab.machine.run(&round_robin()))?);
        std::thread::sleep(REST);
    }
    let simulated_yields = yields(&[lab.simulator.run("fifo", &fifo)]);
    let simulated_stints =
        round_robin().stints_ms(&[lab.simulator.run("rr", &round_robin())], None);
    Ok(vec![
        Row::medians(
            "yields of a SCHED_FIFO poller until the end",
            yields(&yielded),
            &simulated_yields,
        )
        .bounded(Bound::By(0.0)),
        Row::medians(
            "stint of two SCHED_RR hogs, ms",
            round_robin().stints_ms(&hogs, None),
            &simulated_stints,
        )
        .bounded(Bound::By(1.0)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::simulated::Simulator;

    /// Goal: the simulated laws of V6: one yield, and stints of 100 ms. Method: both programs on `vm-2`.
    #[test]
    fn simulated_realtime_threads() {
        let simulator = Simulator::vm_2();
        let course = simulator.run("fifo", &fifo(Nanos::from_millis(200)));
        assert_eq!(yields(&[course]), [1.0]);
        let stints = round_robin().stints_ms(&[simulator.run("rr", &round_robin())], None);
        assert!(stints.len() >= 5, "{stints:?}");
        assert!(stints.iter().all(|&stint| stint == 100.0), "{stints:?}");
    }
}
