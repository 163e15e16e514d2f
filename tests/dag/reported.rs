//! Goal: a report of a job system that is running says nothing that is not so: each name is with the line of
//! the program that gave it, each job waits for what the program has it wait for, nothing that is over is
//! live, nothing that lives is left out, no thread is in two places, and no wait of a program without circles
//! is said to be in one. And reports change nothing: the program runs as the other programs here do.
//!
//! Method: while a random program runs, a further thread makes reports, each compared with the plan and with
//! the notes of what has been asked for. On simulated threads the steps of that thread are put between those
//! of all others at random; on the operating system they come as they come.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use event::{MemorySink, Nanos};
use paceline::{
    Builder, JobId, JobKind, JobState, JobSystem, Label, LiveJob, LiveThreadKind, NamedJob, Report,
};
use platform::{Parker, Platform, ThreadSpec};
use sim::Sim;

use super::left::with_late_steps;
use super::oracle;
use super::plan::{Kind, Plan, Taste};
use super::run::{Ending, run_beside};
use super::simulated::{Run, Shape, shape_of, world_of};
use super::theme::Theme;
use super::world::{Count, World, name};
use crate::support::{Random, each_seed, log, watched};

/// How many reports are made of one simulated run, at most.
const REPORTS: usize = 12;

/// A thread that makes reports.
struct Reporter<P: Platform> {
    world: Arc<World<P>>,
    js: Arc<JobSystem<P>>,
    random: Random,
    /// All names with the lines that gave them.
    labels: BTreeSet<(&'static str, u32)>,
    seen: Arc<Seen>,
}

/// The facts that all reports of a test had.
#[derive(Debug, Default)]
struct Seen {
    edges: Count,
    running: Count,
    open: Count,
    waits: Count,
    rests: Count,
    scopes: Count,
    children: Count,
}

impl Seen {
    fn add(&self, report: &Report) {
        for job in &report.jobs {
            if job.scope.is_some() {
                self.children.up();
            }
            match job.state {
                JobState::Waiting if job.kind == JobKind::Scope => self.scopes.up(),
                JobState::Waiting if !job.waits_for.is_empty() => self.edges.up(),
                JobState::Running { thread: Some(_) } => self.running.up(),
                JobState::Open { participants: 2.. } => self.open.up(),
                _ => {}
            }
        }
        for (_, wait) in report.waits() {
            match wait.lasted {
                None => self.waits.up(),
                Some(_) => self.rests.up(),
            }
        }
    }

    /// Whether there was enough of each, unless a single seed was tried.
    fn expect_all(&self) {
        println!("{self:?}");
        let is_whole = std::env::var_os("PACELINE_SEED").is_none();
        let all = [
            &self.edges,
            &self.running,
            &self.open,
            &self.waits,
            &self.rests,
            &self.scopes,
            &self.children,
        ];
        let is_enough = all.iter().all(|count| count.get() > 20);
        assert!(
            is_enough || !is_whole,
            "the reports show too little: {self:?}"
        );
    }
}

/// Starts it. It ends after so many reports, or when the program is over.
fn start<P: Platform>(
    world: &Arc<World<P>>,
    js: Arc<JobSystem<P>>,
    (seed, seen): (u64, &Arc<Seen>),
    most: usize,
) -> Option<P::Thread> {
    let spec = ThreadSpec {
        name: "reporter".into(),
        ..ThreadSpec::default()
    };
    let platform = js.platform().clone();
    let mut reporter = Reporter {
        world: world.clone(),
        js,
        random: Random::new(seed ^ 0x4e90_4700),
        labels: BTreeSet::new(),
        seen: seen.clone(),
    };
    let body = Box::new(move || {
        for _ in 0..most {
            if reporter.world.is_over.load(Relaxed) {
                break;
            }
            reporter.report();
        }
        reporter.check_labels();
    });
    Some(platform.spawn(spec, body).expect("there is room"))
}

impl<P: Platform> Reporter<P> {
    fn report(&mut self) {
        if self.random.chance(20) {
            let platform = self.js.platform();
            let time = Nanos(self.random.below(50_000) as u64);
            platform.parker().park(platform.now() + time);
        }
        let over = self.nodes_where(|id| self.js.is_done(id));
        let made = self.nodes_where(|_| true);
        let report = self.js.report();
        let live_after = self.nodes_where(|id| !self.js.is_done(id));
        self.seen.add(&report);
        let text = report.to_string();
        self.expect(text.lines().count() <= 60, || {
            format!("a report is too long:\n{text}")
        });
        let circle = |line: &String| line.starts_with("these waits");
        self.expect(!report.verdict.iter().any(circle), || {
            format!("there is no circle:\n{text}")
        });
        self.check_ids(&report, &over, &text);
        if report.changing == 0 {
            let listed: BTreeSet<usize> = report.jobs.iter().filter_map(node_of).collect();
            let left_out = made.intersection(&live_after).find(|n| !listed.contains(n));
            self.expect(left_out.is_none(), || {
                format!("n{left_out:?} is live and not listed:\n{text}")
            });
        }
        for job in &report.jobs {
            self.check_job(job, &text);
        }
        self.check_threads(&report, &text);
    }

    /// The nodes that were made, and of which this holds.
    fn nodes_where(&self, holds: impl Fn(JobId) -> bool) -> BTreeSet<usize> {
        let nodes = self.world.nodes.iter().enumerate();
        let ids = nodes.filter_map(|(node, notes)| Some((node, *notes.id.get()?)));
        ids.filter(|(_, id)| holds(*id))
            .map(|(node, _)| node)
            .collect()
    }

    fn expect(&self, holds: bool, what: impl FnOnce() -> String) {
        self.world.expect(holds, what);
    }

    fn check_ids(&self, report: &Report, over: &BTreeSet<usize>, text: &str) {
        let ids: BTreeSet<String> = report
            .jobs
            .iter()
            .map(|job| format!("{:?}", job.id))
            .collect();
        self.expect(ids.len() == report.jobs.len(), || {
            format!("a job is listed twice:\n{text}")
        });
        for node in report.jobs.iter().filter_map(node_of) {
            self.expect(!over.contains(&node), || {
                format!("n{node} was over before:\n{text}")
            });
        }
    }

    /// The name and the line belong together, and both to this job.
    fn check_name(&mut self, job: NamedJob, text: &str) {
        let Label { name, site } = job.label;
        self.labels.insert((name, site.line()));
        self.expect(site.file().ends_with("dag/run.rs"), || {
            format!("{job} is made elsewhere:\n{text}")
        });
        let id = node_named(name).and_then(|node| self.world.nodes[node].id.get());
        self.expect(id.is_none_or(|id| *id == job.id), || {
            format!("{job} has the name of another job:\n{text}")
        });
    }

    fn check_job(&mut self, job: &LiveJob, text: &str) {
        self.check_name(job.named(), text);
        for &awaited in &job.waits_for {
            self.check_name(awaited, text);
        }
        let Some(node) = node_of(job) else {
            let kind = match job.label.name {
                "scope" => JobKind::Scope,
                "parallel_for" => JobKind::Loop,
                "child" | "grandchild" | "join" => JobKind::Body,
                other => return self.expect(false, || format!("{other}: no such job:\n{text}")),
            };
            let in_scope = matches!(job.label.name, "child" | "grandchild");
            let is_right = job.kind == kind && job.scope.is_some() == in_scope;
            return self.expect(is_right, || {
                format!("{} is a {kind:?}, or not in its scope:\n{text}", job.label)
            });
        };
        let is_right = match (self.world.plan.nodes[node].kind, job.kind) {
            (Kind::Single | Kind::Typed, JobKind::Body)
            | (Kind::Range { .. }, JobKind::Loop)
            | (Kind::Combine, JobKind::Combination)
            | (Kind::Event, JobKind::Event | JobKind::Combination) => true,
            (_, _) => false,
        };
        self.expect(is_right, || format!("n{node} is of another kind:\n{text}"));
        if job.state == JobState::Waiting {
            for awaited in &job.waits_for {
                self.check_edge(node, awaited, text);
            }
        }
    }

    /// The program has asked for this edge.
    fn check_edge(&self, node: usize, awaited: &NamedJob, text: &str) {
        let before = node_named(awaited.label.name);
        let notes = &self.world.nodes[node];
        // In this order: an edge goes from the one list to the other.
        let is_asked_for = before.is_some_and(|before| {
            notes.joining.lock().unwrap().contains(&before)
                || notes.after.lock().unwrap().contains(&before)
        });
        self.expect(is_asked_for, || {
            format!("n{node} does not depend on {awaited}:\n{text}")
        });
    }

    fn check_threads(&mut self, report: &Report, text: &str) {
        let slots: BTreeSet<usize> = report.threads.iter().map(|thread| thread.slot).collect();
        self.expect(slots.len() == report.threads.len(), || {
            format!("a thread is listed twice:\n{text}")
        });
        for thread in &report.threads {
            let name = thread.name.as_deref().unwrap_or_default();
            let is_right = match thread.kind {
                LiveThreadKind::Outside => name != "reporter" && !name.starts_with("paceline"),
                _ => name.is_empty() || name == format!("paceline {}", thread.slot),
            };
            self.expect(is_right, || format!("{thread} is another one:\n{text}"));
            for &job in &thread.runs {
                self.check_name(job, text);
            }
            if let Some(wait) = &thread.wait {
                self.check_name(wait.job, text);
                let site = wait.site.map(|site| site.file());
                self.expect(site.is_none_or(|file| file.ends_with("dag/run.rs")), || {
                    format!("{thread} waits elsewhere:\n{text}")
                });
            }
        }
        // What a job says of its thread, the thread says of the job.
        for job in &report.jobs {
            if let JobState::Running { thread: Some(slot) } = job.state
                && let Some(thread) = report.threads.iter().find(|thread| thread.slot == slot)
            {
                self.expect(thread.runs.contains(&job.named()), || {
                    format!("{thread} does not run {}:\n{text}", job.label)
                });
            }
        }
    }

    /// Every name was given in the line that it was shown with.
    fn check_labels(&self) {
        let given: BTreeSet<(&str, u32)> = self
            .js
            .labels()
            .iter()
            .map(|label| (label.name, label.site.line()))
            .collect();
        let wrong = self.labels.iter().find(|label| !given.contains(*label));
        self.expect(wrong.is_none(), || format!("{wrong:?} was never given"));
    }
}

fn node_of(job: &LiveJob) -> Option<usize> {
    node_named(job.label.name)
}

fn node_named(text: &str) -> Option<usize> {
    let node = text.strip_prefix('n')?.parse().ok()?;
    (name(node) == text).then_some(node)
}

fn taste(random: &mut Random, workers: usize) -> Taste {
    Taste {
        nodes: *random.pick(&[3, 8, 16, 40]),
        has_workers: workers > 0,
        waits_by_id: true,
        events: true,
        ranges: true,
        results: true,
        borrowing: true,
        panics: *random.pick(&[0, 10]),
        lanes: *random.pick(&[0, 40]),
        theme: Theme::None,
        items: 40,
    }
}

#[test]
fn reports_of_simulated_programs_are_true() {
    let seen = Arc::<Seen>::default();
    each_seed(
        "dag::reported::reports_of_simulated_programs_are_true",
        600,
        |seed| {
            let mut random = Random::new(seed ^ 0x4e90_0000);
            let workers = *random.pick(&[0, 1, 2, 3]);
            let taste = taste(&mut random, workers);
            let mut config = world_of(&mut random, seed);
            if random.chance(70) {
                // In the middle of a look others go on for long: the slot has another job by then.
                config = with_late_steps(&mut random, config);
            }
            let shape = shape_of(&mut random, workers, Ending::Settled);
            let plan = Plan::generate(&mut random, taste);
            let once = || {
                let world = World::new(plan.clone());
                let (sink, log) = MemorySink::new();
                let report = Sim::run(config.clone(), |sim| {
                    let builder = Builder::with_platform(sim).max_threads(8);
                    let js = shape.build(builder, sink, &world);
                    run_beside(&world, js, shape.ending, |js| {
                        start(&world, js, (seed, &seen), REPORTS)
                    });
                });
                let events = log.drain();
                Run {
                    report,
                    world,
                    events,
                }
            };
            let run = once();
            let faults = run.faults_of_jobs(&shape);
            assert!(faults.is_empty(), "{shape:?}\n{}", faults.join("\n"));
            let again = once();
            assert_eq!(run.report, again.report, "two runs of one seed differ");
        },
    );
    seen.expect_all();
}

fn on_threads(shape: &Shape, plan: &Plan, seed: u64, seen: &Arc<Seen>) {
    let world = World::new(plan.clone());
    let (sink, log) = MemorySink::new();
    let js = shape.build(Builder::new(), sink, &world);
    run_beside(&world, js, shape.ending, |js| {
        start(&world, js, (seed, seen), usize::MAX)
    });
    let lives = shape
        .traced
        .then(|| log::check(&log.drain()).unwrap_or_else(|why| panic!("{why}")));
    oracle::judge(&world, shape.ending, lives.as_ref());
    let wrong = world.wrong.lock().unwrap();
    assert!(wrong.is_empty(), "{shape:?}\n{}", wrong.join("\n"));
}

#[test]
fn reports_of_programs_on_threads_are_true() {
    let test = "dag::reported::reports_of_programs_on_threads_are_true";
    let seen = Arc::<Seen>::default();
    each_seed(test, 60, |seed| {
        let mut random = Random::new(seed ^ 0x4e91_0000);
        let workers = *random.pick(&[0, 1, 2, 8]);
        let mut taste = taste(&mut random, workers);
        taste.nodes = *random.pick(&[40, 200]);
        let shape = shape_of(&mut random, workers, Ending::Settled);
        let plan = Plan::generate(&mut random, taste);
        let what = format!("{test}, seed {seed}, {shape:?}");
        watched(&what, || on_threads(&shape, &plan, seed, &seen));
    });
    println!("{seen:?}");
}
