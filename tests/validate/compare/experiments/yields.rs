//! V4: a thread that does nothing but yield, beside one that computes. Each yield forfeits the rest of a
//! slice, so the yielder calls exactly as often as keeps its virtual time abreast: once per slice.

use event::Nanos;
use policy::Attr;

use super::Lab;
use crate::compare::judge::{Bound, Row, kolmogorov_smirnov, median};
use crate::compare::world::{Course, Note, Program, Thread, World};

/// The least length of a yield that let the other thread run.
const LONG: f64 = 1.0;

/// A yielder and a computing thread.
pub(crate) struct YieldBeside {
    pub(crate) length: Nanos,
}

impl Program for YieldBeside {
    fn threads<W: World>(&self, _: &W) -> Vec<Thread<W>> {
        let length = self.length;
        let yielder = move |world: &W| {
            let mut notes = Vec::new();
            let mut before = world.now();
            while before < length {
                world.yields();
                let after = world.now();
                notes.push(Note::time("yield", after - before));
                before = after;
            }
            notes
        };
        let spinner = move |world: &W| {
            world.compute_until(length);
            Vec::new()
        };
        vec![
            Thread::new(Attr::default(), yielder),
            Thread::new(Attr::default(), spinner),
        ]
    }
}

/// The length of each yield, in milliseconds.
fn yields_ms(courses: &[Course]) -> Vec<f64> {
    let yields = courses.iter().flat_map(|course| course.noted("yield"));
    yields.map(|yielded| yielded as f64 / 1e6).collect()
}

/// How many yields there were in a second.
pub(crate) fn per_second(courses: &[Course], length: Nanos) -> Vec<f64> {
    let of = |course: &Course| course.noted("yield").len() as f64 / length.as_secs_f64();
    courses.iter().map(of).collect()
}

/// The same in a second of the CPU time that both threads had: the time that a hypervisor took was no
/// thread's.
fn per_second_used(courses: &[Course]) -> Vec<f64> {
    let of = |course: &Course| {
        let used: Nanos = Nanos(course.used.iter().map(|used| used.cpu.0).sum());
        course.noted("yield").len() as f64 / used.as_secs_f64()
    };
    courses.iter().map(of).collect()
}

fn long_ms(courses: &[Course]) -> Vec<f64> {
    let yields = yields_ms(courses).into_iter();
    yields.filter(|&yielded| yielded >= LONG).collect()
}

fn short_share(courses: &[Course]) -> Vec<f64> {
    let of = |course: &Course| {
        let yields = yields_ms(std::slice::from_ref(course));
        let short = yields.iter().filter(|&&yielded| yielded < LONG).count();
        short as f64 / yields.len().max(1) as f64 * 100.0
    };
    courses.iter().map(of).collect()
}

/// In whole milliseconds: the cost of a short yield is another question than the number of ticks of a long
/// one.
fn in_millis(courses: &[Course]) -> Vec<f64> {
    yields_ms(courses).into_iter().map(f64::round).collect()
}

pub(super) fn run(lab: &Lab) -> Result<Vec<Row>, String> {
    let length = lab.length(Nanos::from_millis(1500));
    let program = YieldBeside { length };
    let simulated = [lab.simulator.run("eevdf-6.18", &program)];
    let real = lab.measure(&program, 10)?;
    let similar = |course: &Course| {
        kolmogorov_smirnov(
            &in_millis(std::slice::from_ref(course)),
            &in_millis(&simulated),
        )
    };
    let similar: Vec<f64> = real.iter().filter_map(similar).collect();
    Ok(vec![
        Row::medians(
            "yields a second of CPU time",
            per_second_used(&real),
            &per_second_used(&simulated),
        )
        .bounded(Bound::Within(0.01)),
        Row::medians(
            "a long yield (from 1 ms on), ms",
            long_ms(&real),
            &long_ms(&simulated),
        )
        .bounded(Bound::Within(0.005)),
        Row::medians(
            "short yields, %",
            short_share(&real),
            &short_share(&simulated),
        ),
        Row::new(
            "lengths in whole ms, p of Kolmogorov-Smirnov",
            similar,
            None,
        )
        .bounded(Bound::AtLeast(0.05)),
    ])
}

/// Whether yields of the machine at hand forfeit, as they do from Linux 6.19 on and in the long-term kernels
/// that took that over: without it there are a million a second beside a computing thread.
pub(crate) fn forfeit(lab: &Lab) -> Result<bool, String> {
    const MOST: f64 = 20_000.0;
    let length = Nanos::from_millis(100);
    let course = lab.machine.run(&YieldBeside { length })?;
    Ok(median(&per_second(&[course], length)).is_some_and(|rate| rate < MOST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::simulated::Simulator;

    /// Goal: the simulated law of V4: under `eevdf-6.18` yields per second are 1/slice, and a long one is
    /// a tick; under `eevdf-6.6`, whose yields forfeit nothing, there are hundreds of times as many.
    /// Method: 1.5 s on `vm-2`, whose slice is 1.4 ms.
    #[test]
    fn simulated_yields_are_one_a_slice() {
        let length = Nanos::from_millis(1500);
        let simulator = Simulator::vm_2();
        let course = [simulator.run("eevdf-6.18", &YieldBeside { length })];
        let rate = per_second(&course, length)[0];
        assert!((rate * 0.0014 - 1.0).abs() < 0.01, "{rate}");
        let long = median(&long_ms(&course)).unwrap();
        assert!((long - 4.0).abs() < 0.01, "{long}");
        let short = short_share(&course)[0];
        assert!((60.0..70.0).contains(&short), "{short}");

        let before = [simulator.run("eevdf-6.6", &YieldBeside { length })];
        let rate = per_second(&before, length)[0];
        assert!(rate > 300_000.0, "{rate}");
    }
}
