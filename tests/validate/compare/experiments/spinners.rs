//! V1, V2: threads that compute without end on one CPU. A slice is 1.4 ms, but the kernel does not look
//! before a tick, so each keeps the CPU for a whole one.

use event::Nanos;
use policy::Attr;

use super::Lab;
use crate::compare::judge::{Bound, Row, quantile};
use crate::compare::world::{Course, Program, Thread, World};

/// Threads that compute until a time.
pub(crate) struct Spinners {
    pub(crate) attrs: Vec<Attr>,
    pub(crate) length: Nanos,
}

impl Program for Spinners {
    fn has_stints(&self) -> bool {
        true
    }

    fn threads<W: World>(&self, _: &W) -> Vec<Thread<W>> {
        let length = self.length;
        let thread = |attr: &Attr| {
            Thread::new(attr.clone(), move |world: &W| {
                world.compute_until(length);
                Vec::new()
            })
        };
        self.attrs.iter().map(thread).collect()
    }
}

impl Spinners {
    /// The stints in milliseconds, of all threads or of one.
    pub(crate) fn stints_ms(&self, courses: &[Course], thread: Option<usize>) -> Vec<f64> {
        let stints = courses.iter().flat_map(|course| course.stints(self.length));
        let wanted = stints.filter(|(who, _)| thread.is_none_or(|thread| thread == *who));
        wanted.map(|(_, length)| length.0 as f64 / 1e6).collect()
    }

    /// How often a thread got the CPU; a value for each thread of each course.
    fn turns(&self, courses: &[Course]) -> Vec<f64> {
        let of = |course: &Course| {
            let threads = 0..self.attrs.len();
            let turns = |thread| course.turns(thread, self.length) as f64;
            threads.map(turns).collect::<Vec<_>>()
        };
        courses.iter().flat_map(of).collect()
    }

    /// How many of the stints belong to the thread that had the CPU as many stints before as there are
    /// threads, in percent. Stints that another thread of the machine interrupted are not looked at: the
    /// kernel chooses anew then.
    fn in_rotation(&self, courses: &[Course]) -> Vec<f64> {
        let of = |course: &Course| {
            let stretches = course.undisturbed(self.length);
            let threads = self.attrs.len();
            let rounds = stretches
                .iter()
                .flat_map(|stints| stints.iter().zip(stints.iter().skip(threads)));
            let (equal, other): (Vec<_>, Vec<_>) = rounds.partition(|(before, now)| before == now);
            equal.len() as f64 / (equal.len() + other.len()).max(1) as f64 * 100.0
        };
        courses.iter().map(of).collect()
    }
}

/// The first thread's share of what all had, in percent.
fn share(courses: &[Course]) -> Vec<f64> {
    let of = |course: &Course| {
        let all: u64 = course.used.iter().map(|used| used.cpu.0).sum();
        course.used[0].cpu.0 as f64 / all.max(1) as f64 * 100.0
    };
    courses.iter().map(of).collect()
}

/// By how much ticks are late at most, if that is all that makes stints of equal threads differ, and each
/// lateness is as likely as another: of the differences of two such ones eight tenths are within 0.553 of it.
///
/// The order of three threads depends on it: the one that has had the least is next, all have had nearly the
/// same, and so some microseconds decide. Without lateness the rotation is strict. In the simulator all of it
/// is time of the thread that ran; in a virtual machine part of it is the hypervisor's and charged to no
/// thread, so the rotation there is between the simulated one and a strict one.
fn lateness(stints_ms: &[f64]) -> Nanos {
    let at = |fraction| quantile(stints_ms, fraction).unwrap_or_default();
    Nanos(((at(0.9) - at(0.1)) / 2.0 / 0.553 * 1e6).max(0.0) as u64)
}

fn run(lab: &Lab, threads: usize) -> Result<Vec<Row>, String> {
    let program = Spinners {
        attrs: vec![Attr::default(); threads],
        length: lab.length(Nanos::from_millis(1500)),
    };
    let simulated = [lab.simulator.run("eevdf-6.18", &program)];
    let real = lab.measure(&program, 10)?;
    let row = |what: &str, of: &dyn Fn(&[Course]) -> Vec<f64>, bound| {
        Row::medians(what, of(&real), &of(&simulated)).bounded(bound)
    };
    let stints = |all: &[Course]| program.stints_ms(all, None);
    let turns = |all: &[Course]| program.turns(all);
    let in_rotation = |all: &[Course]| program.in_rotation(all);
    let turns_in = format!("turns of a thread in {}", program.length);
    let mut rows = vec![
        row("stint, ms", &stints, Bound::Within(0.005)),
        row(&turns_in, &turns, Bound::Within(0.02)),
        row("share of one thread, %", &share, Bound::By(1.0)),
    ];
    if threads > 2 {
        let late = lateness(&stints(&real));
        let simulated = lab.simulator.run_late("eevdf-6.18", &program, late);
        let what = format!("stints in rotation, %; simulated: with ticks up to {late} late");
        let row = Row::medians(what, in_rotation(&real), &in_rotation(&simulated));
        let least = row.simulated.unwrap_or(100.0) * 0.98;
        rows.push(row.bounded(Bound::AtLeast(least)));
    }
    Ok(rows)
}

pub(super) fn two(lab: &Lab) -> Result<Vec<Row>, String> {
    run(lab, 2)
}

pub(super) fn three(lab: &Lab) -> Result<Vec<Row>, String> {
    run(lab, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the lateness of ticks is found from the stints it makes. Method: three threads on `vm-2` with
    /// ticks up to 40 µs late; the stints say so within a tenth, and not all are in rotation.
    #[test]
    fn lateness_is_found_from_stints() {
        let program = Spinners {
            attrs: vec![Attr::default(); 3],
            length: Nanos::from_millis(1500),
        };
        let late = Nanos::from_micros(40);
        let courses = Simulator::vm_2().run_late("eevdf-6.18", &program, late);
        let found = lateness(&program.stints_ms(&courses, None));
        assert!((36_000..=44_000).contains(&found.0), "{found}");
        let in_rotation = program.in_rotation(&courses);
        assert!(
            in_rotation
                .iter()
                .all(|&share| (80.0..100.0).contains(&share)),
            "{in_rotation:?}"
        );
    }
    use crate::compare::judge::median;
    use crate::compare::simulated::Simulator;

    /// Goal: the simulated laws of V1 and V2: every stint is a tick, the threads share equally, in strict
    /// rotation. Method: two and three threads for 1.5 s on `vm-2`.
    #[test]
    fn simulated_stints_are_ticks() {
        for threads in [2, 3] {
            let program = Spinners {
                attrs: vec![Attr::default(); threads],
                length: Nanos::from_millis(1500),
            };
            let course = [Simulator::vm_2().run("eevdf-6.18", &program)];
            let stints = program.stints_ms(&course, None);
            assert!(stints.len() > 300, "{}", stints.len());
            assert!(stints.iter().all(|&stint| stint == 4.0), "{stints:?}");
            let expected = 375.0 / threads as f64;
            let turns = median(&program.turns(&course)).unwrap();
            assert!((turns - expected).abs() <= 1.5, "{turns}");
            assert_eq!(program.in_rotation(&course), [100.0]);
            assert!((share(&course)[0] - 100.0 / threads as f64).abs() < 0.3);
        }
    }
}
