//! V3: two threads of different niceness on one CPU. Shares are by weight (each step of niceness is a factor
//! of 1.25), as far as whole ticks can be shared by weight.

use event::Nanos;
use policy::Attr;

use super::Lab;
use super::spinners::Spinners;
use crate::compare::judge::{Bound, Row};
use crate::compare::world::Course;

/// The niceness of the nicer thread, how many seconds the two compute, and how often: short enough that a
/// machine of others is quiet meanwhile, and over ten rounds of both at least.
const PAIRS: [(i8, u64, usize); 3] = [(5, 2, 10), (10, 2, 6), (19, 3, 6)];

fn program(nice: i8, length: Nanos) -> Spinners {
    Spinners {
        attrs: vec![Attr::nice(0), Attr::nice(nice)],
        length,
    }
}

/// The time of the first thread over that of the second, in as many stints of each: so it does not depend on
/// which has its turn when a course ends.
fn ratio(program: &Spinners, courses: &[Course]) -> Vec<f64> {
    let of = |course: &Course| {
        let stints = |thread| program.stints_ms(std::slice::from_ref(course), Some(thread));
        let (first, second) = (stints(0), stints(1));
        let rounds = first.len().min(second.len());
        let sum = |stints: &[f64]| stints[..rounds].iter().sum::<f64>();
        (rounds > 0).then(|| sum(&first) / sum(&second))
    };
    courses.iter().filter_map(of).collect()
}

pub(super) fn run(lab: &Lab) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (nice, seconds, times) in PAIRS {
        let program = program(nice, lab.length(Nanos::from_secs(seconds)));
        let simulated = [lab.simulator.run("eevdf-6.18", &program)];
        let real = lab.measure(&program, times)?;
        let both = |of: &dyn Fn(&[Course]) -> Vec<f64>| (of(&real), of(&simulated));
        if nice == 5 {
            for (thread, nice) in [(0, 0), (1, 5)] {
                let (real, simulated) = both(&|all| program.stints_ms(all, Some(thread)));
                let what = format!("stint of nice {nice} in the pair 0, 5, ms");
                rows.push(Row::medians(what, real, &simulated).bounded(Bound::Within(0.005)));
            }
        }
        let (real, simulated) = both(&|all| ratio(&program, all));
        let what = format!("CPU time of nice 0 to that of nice {nice}");
        rows.push(Row::medians(what, real, &simulated).bounded(Bound::Within(0.03)));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::judge::median;
    use crate::compare::simulated::Simulator;

    /// Goal: the simulated law of V3: stints of 12 and 4 ms for nice 0 and 5, and shares by weight for all
    /// pairs. Method: `vm-2` for as long as the experiment; weights 1024, 335, 110 and 15.
    #[test]
    fn simulated_shares_are_by_weight() {
        let simulator = Simulator::vm_2();
        for (nice, seconds, _) in PAIRS {
            let program = program(nice, Nanos::from_secs(seconds));
            let course = [simulator.run("eevdf-6.18", &program)];
            let weight = match nice {
                5 => 335.0,
                10 => 110.0,
                _ => 15.0,
            };
            let (got, expected) = (ratio(&program, &course)[0], 1024.0 / weight);
            println!("nice {nice}: {got}, by weight {expected}");
            assert!(
                (got / expected - 1.0).abs() < 0.04,
                "nice {nice}: {got}, by weight {expected}"
            );
            if nice == 5 {
                assert_eq!(median(&program.stints_ms(&course, Some(0))), Some(12.0));
                assert_eq!(median(&program.stints_ms(&course, Some(1))), Some(4.0));
            }
        }
    }
}
