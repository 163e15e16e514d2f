//! The trace of the article.

use console::Failure;
use event::Nanos;
use sim::scenario::{Phase, Ran, Scenario};

use super::PHONES;
use super::choices::{CLOCKS, CORES_BACK, CRITICAL, SMALL_JOB};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort, Run};
use crate::commands::experiment::plot::{
    PieceFill, Plot, PlotLane, PlotMark, PlotPiece, PlotShape,
};
use crate::commands::experiment::timeline::{Doing, Stint, stints};

const POLICIES: [&str; 3] = ["cfs-4.12", "eevdf-6.6", "eevdf-6.18"];
/// The phone that the scenario's lengths are chosen for.
const CHOSEN_FOR: &str = "galaxy-s22-exynos";
/// The small job and the sleep before it.
const ASLEEP: &str = "asleep and small job";
/// The fast core.
const FAST: u32 = 7;
/// The thread that waits.
const MAIN: &str = "UnityMain";
/// What is shorter is not in the picture: threads that start, and switches.
const SEEN: Nanos = Nanos::from_micros(5);
/// The threads of the picture, from the top.
const LANES: [&str; 5] = [
    MAIN,
    "audio",
    "Job worker 3",
    "Job worker 2",
    "Job worker 1",
];

/// The measurements of the scene.
struct Seen {
    /// How long the main thread waits, on a core.
    wait: Nanos,
    /// From when the small job could begin to its end.
    small: Nanos,
    small_ran: Nanos,
    /// How long the critical job ran once it had a core again.
    rest: Nanos,
    /// Whether the main thread came next on the fast core after the audio thread.
    main_after_audio: bool,
    /// The busy wait.
    waits: (Nanos, Nanos),
    stints: Vec<Stint>,
    names: Vec<String>,
}

impl Seen {
    fn of(scene: &Scenario, ran: &Ran) -> Result<Seen, Failure> {
        let names: Vec<String> = ran
            .report
            .threads
            .iter()
            .map(|thread| thread.name.clone())
            .collect();
        let find = |who: &str, what: &str| {
            let of =
                |span: &&sim::scenario::Measured| names[span.thread] == who && span.name == what;
            let found = ran.measured.iter().find(of);
            found.ok_or_else(|| Failure::failed(format!("the scene's {who} has no {what}")))
        };
        let wait = find(MAIN, "WaitForJobGroupID")?;
        let small = find("Job worker 2", "small job")?;
        let task = |name: &str| {
            names
                .iter()
                .position(|other| other == name)
                .map_or(u32::MAX, |n| n as u32)
        };
        let sleeps = scene.threads.iter().flat_map(|thread| &thread.phases);
        let sleep = sleeps.filter_map(|phase| match phase {
            Phase::Sleep(span) => Some(span.least),
            _ => None,
        });
        let sleep = sleep.max().unwrap_or_default();
        let ready = find("Job worker 2", ASLEEP)?;
        let runs = lab::runs(&ran.report);
        let on_fast: Vec<&Run> = runs.iter().filter(|run| run.cpu == FAST).collect();
        let audio = on_fast.iter().position(|run| run.task == task("audio"));
        let next = audio.and_then(|place| on_fast.get(place + 1));
        let is_rest = |run: &&Run| run.task == task("Job worker 3") && run.end > wait.begin;
        let rest = runs.iter().find(is_rest).map(|run| run.length());
        Ok(Seen {
            wait: wait.end - wait.begin,
            small: ready.end - ready.begin - sleep,
            small_ran: small.end - small.begin,
            rest: rest.unwrap_or_default(),
            main_after_audio: next.is_some_and(|run| run.task == task(MAIN)),
            waits: (wait.begin, wait.end),
            stints: stints(&ran.report),
            names,
        })
    }

    /// What each thread does until shortly after the wait.
    fn lanes(&self) -> Vec<PlotLane> {
        let until = self.waits.1 + Nanos::from_micros(1_300);
        let lane = |name: &&str| {
            let of = self
                .stints
                .iter()
                .filter(|stint| self.names[stint.thread] == **name && stint.begin < until)
                .filter(|stint| stint.end - stint.begin >= SEEN);
            PlotLane {
                name: (*name).to_owned(),
                pieces: of.flat_map(|stint| self.pieces(stint, until)).collect(),
                result: String::new(),
            }
        };
        LANES.iter().map(lane).collect()
    }

    /// A stint, in which the busy wait is a piece of its own.
    fn pieces(&self, stint: &Stint, until: Nanos) -> Vec<PlotPiece> {
        let end = stint.end.min(until);
        let piece = |begin: Nanos, end: Nanos, name: String, fill| PlotPiece {
            begin: millis(begin),
            end: millis(end),
            name,
            fill,
        };
        let cpu = match stint.doing {
            Doing::Ready => {
                return vec![piece(
                    stint.begin,
                    end,
                    "ready, no core".into(),
                    PieceFill::Pale,
                )];
            }
            Doing::RunsOn(cpu) => cpu,
        };
        let runs = |begin: Nanos, end: Nanos| {
            let length = end - begin;
            let name = if length < Nanos::from_micros(100) {
                format!("cpu {cpu}: {:.0} µs", millis(length) * 1e3)
            } else {
                format!("cpu {cpu}")
            };
            piece(begin, end, name, PieceFill::Kind(0))
        };
        if self.names[stint.thread] != MAIN {
            return vec![runs(stint.begin, end)];
        }
        let [from, to] = [self.waits.0, self.waits.1].map(|at| at.clamp(stint.begin, end));
        let waits = piece(
            from,
            to,
            format!("busy wait, cpu {cpu}"),
            PieceFill::Kind(1),
        );
        let parts = [runs(stint.begin, from), waits, runs(to, end)];
        parts
            .into_iter()
            .filter(|part| part.begin < part.end)
            .collect()
    }

    /// When cores come and go, and when the wait is over.
    fn marks(&self, scene: &Scenario) -> Vec<PlotMark> {
        let list = |cpus: &[u32]| {
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            format!(
                "{} {}",
                if cpus.len() > 1 { "cores" } else { "core" },
                cpus.join(", ")
            )
        };
        let changes = scene.changes.iter().map(|change| {
            let what = match (&change.offline[..], &change.online[..]) {
                (away, []) => format!("{} away", list(away)),
                (_, back) => format!("{} back", list(back)),
            };
            (change.at, what)
        });
        let over = (self.waits.1, "the wait is over".to_owned());
        let mut marks: Vec<(Nanos, String)> = changes.chain([over]).collect();
        marks.sort_by_key(|&(at, _)| at);
        marks
            .into_iter()
            .map(|(at, what)| PlotMark {
                at: millis(at),
                what,
            })
            .collect()
    }
}

fn millis(time: Nanos) -> f64 {
    time.0 as f64 / 1e6
}

/// The scene on this phone: things happen when they do in the pictures, so what runs on the middle cores
/// takes as long on each phone.
pub(in crate::commands::experiment) fn scene_on(phone: &str, effort: &Effort) -> Scenario {
    let capacity = |name: &str| {
        let machine = lab::machine(name);
        u64::from(machine.clusters[machine.cpus[5].cluster as usize].capacity)
    };
    let (there, here) = (capacity(CHOSEN_FOR), capacity(phone));
    let mut scenario = lab::scenario("galaxy-s22-inversion");
    scenario.machine = phone.into();
    set_chosen(&mut scenario, effort);
    for thread in &mut scenario.threads {
        if !["Job worker 1", "Job worker 2"].contains(&thread.name.as_str()) {
            continue;
        }
        for phase in &mut thread.phases {
            if let Phase::Work(span) = phase {
                let length = Nanos(span.least.0 * here / there);
                (span.least, span.most) = (length, length);
            }
        }
        if let Some(asleep) = thread
            .phases
            .iter()
            .position(|phase| matches!(phase, Phase::Sleep(_)))
        {
            thread.phases.insert(asleep, Phase::Begin(ASLEEP.into()));
            thread.phases.push(Phase::End(ASLEEP.into()));
        }
    }
    scenario
}

/// Sets what was only chosen.
fn set_chosen(scenario: &mut Scenario, effort: &Effort) {
    // Enough for all that is left to do.
    let full_speed = effort.way(&CLOCKS) == 0;
    let rest = Nanos::from_millis(if full_speed { 12 } else { 200 });
    let back = effort.time(&CORES_BACK);
    for change in &mut scenario.changes {
        if !change.online.is_empty() {
            change.at = back;
        }
    }
    scenario.until = scenario.until.map(|until| until.max(back + rest));
    scenario.full_speed = full_speed;
    for (thread, what, value) in [
        ("Job worker 3", "RasterizeJob", &CRITICAL),
        ("Job worker 2", "small job", &SMALL_JOB),
    ] {
        let of = scenario.threads.iter_mut().filter(|it| it.name == thread);
        for thread in of {
            let begin = |phase: &Phase| matches!(phase, Phase::Begin(name) if name == what);
            let job = thread.phases.iter().position(begin);
            if let Some(Phase::Work(span)) = job.and_then(|at| thread.phases.get_mut(at + 1)) {
                (span.least, span.most) = (effort.time(value), effort.time(value));
            }
        }
    }
}

pub(super) fn run(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let all: Vec<(&str, &str)> = PHONES
        .iter()
        .flat_map(|phone| POLICIES.iter().map(move |policy| (*phone, *policy)))
        .collect();
    let seen = lab::each("scenes", &all, |&(phone, policy)| {
        let scene = scene_on(phone, effort);
        Seen::of(&scene, &lab::run(&scene, policy, effort.seed)?)
    })?;
    let columns = [
        "machine",
        "policy",
        "busy wait",
        "the small job took",
        "of it on a core",
        "the awaited rest",
    ];
    let mut table = Table::new("The article's trace", columns);
    for ((phone, policy), seen) in all.iter().zip(&seen) {
        table.row([
            (*phone).into(),
            (*policy).into(),
            seen.wait.into(),
            seen.small.into(),
            seen.small_ran.into(),
            seen.rest.into(),
        ]);
    }
    findings.tables.push(table);
    let newer = all
        .iter()
        .zip(&seen)
        .filter(|((_, policy), _)| *policy != POLICIES[0]);
    let newer = newer.map(|(_, seen)| seen.wait).max().unwrap_or_default();
    let [exynos, snapdragon] = [0, POLICIES.len()].map(|first| &seen[first]);
    findings.plots.push(Plot {
        file: "scene",
        title: "The main thread burns the only core that is left, while what it waits for is ready"
            .into(),
        picture: PlotShape::Lanes {
            unit: "ms",
            lanes: exynos.lanes(),
            marks: exynos.marks(&scene_on(PHONES[0], effort)),
        },
    });
    findings.claims.extend(claims(exynos, snapdragon, newer));
    Ok(())
}

/// `newer`: the longest busy wait under newer kernels.
fn claims(exynos: &Seen, snapdragon: &Seen, newer: Nanos) -> Vec<Claim> {
    let range = Expect::Between(1.0, 4.0);
    vec![
        Claim::source(
            "000-a",
            "The main thread waits busily for 2 ms while the job it waits for could run on its core",
            "The Job System issue; Exynos",
        )
        .is(range, millis(exynos.wait), "ms")
        .given("CFS; until its slice ends or a core comes back: when cores come back is an input"),
        Claim::source("000-b", "… the same", "The Job System issue; Snapdragon")
            .is(range, millis(snapdragon.wait), "ms")
            .given("as the first"),
        Claim::source(
            "000-c",
            "After the audio thread the kernel runs the main thread, not the worker that it had interrupted",
            "The Job System profile, third picture",
        )
        .is(Expect::Exactly(1.0), f64::from(u8::from(exynos.main_after_audio)), "(1: the main thread)"),
        Claim::source(
            "000-d",
            "When the wait is over the job finishes in no time",
            "The Job System issue, fifth picture",
        )
        .is(Expect::AtMost(0.1), millis(exynos.rest), "ms"),
        Claim::source(
            "000-e",
            "A job of less than 46 µs took more than 5 ms to be run",
            "The Job System issue, last paragraph",
        )
        .is(Expect::MoreThan(5.0), millis(exynos.small.min(snapdragon.small)), "ms, the shorter of both \
                                                                                phones")
        .given("when its cores go away is an input, as in the trace"),
        Claim::source("000-f", "… and it is a job of less than 46 µs", "The Job System issue, last \
                                                                        paragraph")
            .is(
                Expect::LessThan(46.0),
                exynos.small_ran.0 as f64 / 1e3,
                "µs from its first instruction to its last",
            )
            .given("30 µs of work on the fast core, on a slower one here"),
        Claim::ours(
            "000-u",
            "Under EEVDF the interrupted worker goes on first, and the main thread of this scene does not \
             wait",
        )
        .is(Expect::AtMost(0.1), millis(newer), "ms, the longest of both phones and kernels")
        .note("in this one run; 000-x is about many"),
        Claim::source(
            "000-g",
            "The cores were shut down because they were too hot",
            "The Job System profile, last paragraph",
        )
        .beyond(
            "the article says itself that it is a guess; times to leave idle states of 1.5 to 3.5 ms and \
             paused cores, which the vendor's kernel has, explain the same trace",
        ),
    ]
}
