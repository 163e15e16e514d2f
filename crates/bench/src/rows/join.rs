//! `join`: fork-join recursion down to the leaves.

use std::hint::black_box;

use console::Failure;
use paceline::{Context, JobSystem};
use platform::Os;

use crate::case::Case;
use crate::pools;
use crate::row::{Row, check, nanos};
use crate::session::{Contestant, Sample, Setup, interleave};
use crate::tbb::Tbb;
use crate::who::Who;

pub(super) const ROW: Row = Row {
    name: "join",
    title: "fork-join Fibonacci without a cut-off",
    means: "Fibonacci's 30th number by plain recursion, both calls as the two halves of a join, down \
            to 0 and 1: 1 346 268 joins. The time of all of it, per join; the result is checked. oneTBB \
            runs the two halves by `parallel_invoke`.",
    measure,
};

/// A pool that can run two halves at the same time.
trait Joins {
    fn fib(&self, n: u32) -> u64;
}

impl Joins for JobSystem<Os> {
    fn fib(&self, n: u32) -> u64 {
        fn fib(cx: &Context<'_, Os>, n: u32) -> u64 {
            if n < 2 {
                return u64::from(n);
            }
            let (a, b) = cx.join(|cx| fib(cx, n - 1), |cx| fib(cx, n - 2));
            a + b
        }
        self.enter(|cx| fib(cx, n))
    }
}

impl Joins for rayon::ThreadPool {
    fn fib(&self, n: u32) -> u64 {
        fn fib(n: u32) -> u64 {
            if n < 2 {
                return u64::from(n);
            }
            let (a, b) = rayon::join(|| fib(n - 1), || fib(n - 2));
            a + b
        }
        self.install(|| fib(n))
    }
}

impl Joins for chili::ThreadPool {
    fn fib(&self, n: u32) -> u64 {
        fn fib(scope: &mut chili::Scope<'_>, n: u32) -> u64 {
            if n < 2 {
                return u64::from(n);
            }
            let (a, b) = scope.join(|scope| fib(scope, n - 1), |scope| fib(scope, n - 2));
            a + b
        }
        fib(&mut self.scope(), n)
    }
}

#[derive(Clone, Copy)]
struct JoinSize {
    n: u32,
    repeats: u32,
}

/// The n-th Fibonacci number. The next one, less one, is the number of joins that it takes.
fn serial(n: u32) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

fn sample(pool: &impl Joins, size: JoinSize) -> Sample {
    let expected = serial(size.n);
    check(pool.fib(size.n), expected)?;
    let mut results = 0;
    let time = nanos(|| {
        for _ in 0..size.repeats {
            results += pool.fib(black_box(size.n));
        }
    });
    check(results, expected * u64::from(size.repeats))?;
    let joins = (serial(size.n + 1) - 1) * u64::from(size.repeats);
    Ok(vec![time / joins as f64])
}

fn tbb_sample(tbb: &Tbb, threads: usize, size: JoinSize) -> Sample {
    let expected = serial(size.n);
    let timed = tbb.join(threads, size.n, size.repeats)?;
    check(timed.first, expected)?;
    check(timed.sum, expected * u64::from(size.repeats))?;
    let joins = (serial(size.n + 1) - 1) * u64::from(size.repeats);
    Ok(vec![timed.time.0 as f64 / joins as f64])
}

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let (threads, rounds) = (setup.threads, setup.size(25, 2));
    let size = setup.size(
        JoinSize { n: 30, repeats: 3 },
        JoinSize { n: 15, repeats: 1 },
    );
    let paceline = move || sample(&pools::paceline(threads)?, size);
    let mut subjects = vec![Contestant::new(Who::Paceline, paceline)];
    if setup.peers {
        let rayon = move || sample(&pools::rayon(threads)?, size);
        let member = move || pools::on_own_thread(|| sample(&pools::rayon_member(threads)?, size));
        let chili = move || sample(&pools::chili(threads), size);
        subjects.push(Contestant::new(Who::Rayon, rayon));
        subjects.push(Contestant::new(Who::RayonMember, member));
        subjects.push(Contestant::new(Who::Chili, chili));
    }
    if let Some(tbb) = setup.tbb.clone() {
        let tbb = move || tbb_sample(&tbb, threads, size);
        subjects.push(Contestant::new(Who::Tbb, tbb));
    }
    let samples = interleave(setup, ROW.name, rounds, subjects)?;
    let samples = samples.into_iter().map(|samples| samples.only());
    let mut case = Case::new(ROW.name, "", "ns per join", samples);
    if setup.peers {
        case = case.with_cannot(Who::Bevy, "no joins: its scopes fork from one thread");
    }
    let case = case.with_target(|case| case.ratio(setup, "chili", case.median(Who::Chili), 1.05));
    let case = case.with_target(|case| case.ratio(setup, "rayon", case.best_rayon(), 0.6));
    Ok(vec![case])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the number of joins is the number of calls that join. Method: a count of them.
    #[test]
    fn joins_are_counted_right() {
        fn count(n: u32) -> u64 {
            if n < 2 {
                0
            } else {
                1 + count(n - 1) + count(n - 2)
            }
        }
        assert_eq!((serial(15), serial(16) - 1), (610, count(15)));
        assert_eq!(serial(31) - 1, 1_346_268);
    }
}
