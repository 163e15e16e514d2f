//! Goal: published work is never forgotten. All of a random graph is run by workers that have nothing else
//! to do, although the thread that made it calls nothing any more.
//!
//! Method: a graph is drawn (`graph.rs`) and made (`build.rs`); its maker waits for a part of it, or not.
//! Each body holds a token, which goes when the body was run or dropped. From then on the maker only
//! watches the tokens and the workers' states. A job is lost if tokens are left and
//!
//! - all workers have slept for a second and a half, without any CPU time: nothing will wake them; or
//! - no token went for five seconds, and each worker slept or had 100 ms of CPU time meanwhile, a thousand
//!   times as much as the longest body takes: a worker that spins (policy `active`, or a long time) does not
//!   see the job.
//!
//! A worker that wants a CPU and gets none decides nothing, so a slow machine is not taken for a lost job.
//! Where the states of threads cannot be seen (no `/proc`), only `--patience` counts, and the report says
//! so.
//!
//! The threads of a job system are found by their names.

mod build;
mod graph;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use event::Random;
use paceline::JobSystem;

use crate::combination::stir;
use crate::fault::What;
use crate::options::Plant;
use crate::session::{Outcome, Slice};
use crate::standstill::{LONGEST, Limits, Standstill, Verdict};
use crate::threads::{self, Thread};
use crate::watchdog;

use graph::Graph;

/// Graphs end in microseconds. After this the maker sleeps between two looks at the tokens.
const SOON: Duration = Duration::from_millis(20);
/// Between two looks at the threads.
const PERIOD: Duration = Duration::from_millis(100);

/// Bodies that are not over yet.
#[derive(Clone, Default)]
pub(crate) struct Tokens(Arc<AtomicU64>);

/// One body's.
pub(crate) struct Token(Arc<AtomicU64>);

impl Tokens {
    pub(crate) fn token(&self) -> Token {
        self.0.fetch_add(1, Ordering::SeqCst);
        Token(Arc::clone(&self.0))
    }

    fn left(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One job system and the graphs that it runs.
pub(crate) fn slice(slice: &Slice<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut random = Random::new(slice.seed);
    let resizes = random.below(2) == 0;
    // Unique in this process, and short enough for Linux to show it.
    let name = format!("l{}", slice.number % 1_000_000);
    let mut builder = slice.combination.builder(&name);
    if random.below(2) == 0 {
        builder = builder.queue_capacity(4);
    }
    let js = match builder.build() {
        Ok(js) => Arc::new(js),
        Err(error) => return Outcome::wrong(format!("the job system cannot be built: {error}")),
    };
    let workers = if resizes {
        slice.combination.workers as u64
    } else {
        0
    };
    while slice.goes_on(outcome.programs) {
        let number = outcome.programs;
        let graph = Graph::draw(stir(slice.seed, number), workers);
        let tokens = Tokens::default();
        watchdog::progress();
        outcome.expected_failures += u64::from(graph.has_failures());
        build::make(&js, &graph, &tokens);
        if slice.has(Plant::Lost) && number == 3 {
            std::mem::forget(tokens.token());
        }
        let limits = limits(slice.options.patience());
        if let Some(verdict) = watch(&tokens, &name, limits) {
            let text = report(&js, &graph, number, &tokens, verdict);
            outcome.faults.push((What::Lost, text));
            break;
        }
        outcome.programs += 1;
    }
    watchdog::stage("the end of the job system");
    outcome.jobs = js.stats().jobs;
    if !outcome.faults.is_empty() {
        // A lost job may keep it from ending.
        std::mem::forget(js);
    }
    outcome
}

fn limits(patience: Duration) -> Limits {
    Limits {
        asleep: Duration::from_millis(1500),
        in_vain: Duration::from_secs(5),
        longest: LONGEST,
        patience,
    }
}

/// Watches until all tokens are gone, or cannot be expected to go.
fn watch(tokens: &Tokens, name: &str, limits: Limits) -> Option<Verdict> {
    let begin = Instant::now();
    let mut standstill = Standstill::new(limits, begin);
    let (mut left, mut looked) = (u64::MAX, begin);
    loop {
        let now = Instant::now();
        match tokens.left() {
            0 => return None,
            fewer if fewer != left => {
                left = fewer;
                standstill.progressed(now);
            }
            _ => {}
        }
        watchdog::progress();
        if now.duration_since(begin) < SOON {
            std::hint::spin_loop();
            continue;
        }
        thread::sleep(Duration::from_millis(1));
        if now.duration_since(looked) < PERIOD {
            continue;
        }
        looked = now;
        let threads = workers(name);
        let verdict = standstill.look(now, threads.as_deref());
        // The last token may have gone while the threads were looked at.
        if verdict != Verdict::Undecided && tokens.left() == left {
            return Some(verdict);
        }
    }
}

/// The threads of the job system with this name.
fn workers(name: &str) -> Option<Vec<Thread>> {
    let prefix = format!("{name}.");
    let mut threads = threads::others()?;
    threads.retain(|thread| thread.name.starts_with(&prefix));
    Some(threads)
}

/// One line about a lost job, and what finds it after all.
fn report(js: &JobSystem, graph: &Graph, number: u64, tokens: &Tokens, verdict: Verdict) -> String {
    let left = tokens.left();
    let helps: [(&str, &dyn Fn()); 3] = [
        ("a flush", &|| js.flush()),
        ("another job", &|| _ = js.schedule(|_| ())),
        ("running it here", &|| _ = js.pump(Duration::from_secs(1))),
    ];
    let helped = helps.iter().find(|(_, help)| {
        watchdog::stage("a lost job that is looked for");
        help();
        thread::sleep(Duration::from_millis(300));
        tokens.left() < left
    });
    let helped = helped.map_or("nothing", |(name, _)| name);
    let spares = js.stats().spares;
    format!(
        "graph {number} ({graph}): bodies not run: {left}; {verdict}; {helped} helps; spares so far: {spares}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::combination::Combination;

    const LIMITS: Limits = Limits {
        asleep: Duration::from_millis(300),
        in_vain: Duration::from_secs(1),
        longest: LONGEST,
        patience: Duration::from_secs(30),
    };

    fn system(name: &str, policy: &str) -> Arc<JobSystem> {
        let policy = policy.parse().expect("a policy");
        let combination = Combination { workers: 1, policy };
        Arc::new(combination.builder(name).build().expect("it can be built"))
    }

    /// Goal: a job that was never scheduled is reported as lost, whatever the workers do meanwhile. Method: a
    /// token that no body holds, beside a worker that sleeps and one that spins.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_planted_lost_job_is_found() {
        for (name, policy, expected) in [
            ("lost-a", "passive", Verdict::Asleep),
            ("lost-b", "active", Verdict::InVain),
        ] {
            let js = system(name, policy);
            let tokens = Tokens::default();
            let token = tokens.token();
            assert_eq!(watch(&tokens, name, LIMITS), Some(expected));
            let graph = Graph::draw(1, 0);
            let text = report(&js, &graph, 7, &tokens, expected);
            assert!(text.starts_with("graph 7 ("), "{text}");
            assert!(
                text.contains("bodies not run: 1") && text.contains("nothing helps"),
                "{text}"
            );
            drop(token);
            assert_eq!(watch(&tokens, name, LIMITS), None);
        }
    }

    /// Goal: a job that takes longer than all limits is not lost while its worker works. Method: a body that
    /// computes for as long as a sleeping worker would be lost, and hands its token back.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_long_job_is_not_lost() {
        let js = system("long", "passive");
        let tokens = Tokens::default();
        let token = tokens.token();
        js.schedule(move |_| {
            let begin = Instant::now();
            while begin.elapsed() < 2 * LIMITS.asleep {
                std::hint::spin_loop();
            }
            drop(token);
        });
        assert_eq!(watch(&tokens, "long", LIMITS), None);
    }
}
