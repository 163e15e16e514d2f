//! Remedies, over many frames that all differ a little.

mod kernels;

pub(super) use self::kernels::run as run_kernels;

use std::sync::Arc;

use console::Failure;
use event::{Nanos, Random};
use measure::Times;
use sim::Machine;
use sim::scenario::{Phase, Ran, Scenario, Span};

use super::PHONES;
use super::choices::{ABSENCE, FOREIGN, PIECE};
use super::remedy::{Remedy, thread, with_foreigners};
use super::scene::scene_on;
use super::scene_jobs::{SceneUse, jobs, on_paceline};
use crate::commands::experiment::claim::{Claim, Expect, short};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::plot::{Plot, PlotBar, PlotShape};

const POLICY: &str = "cfs-4.12";
/// The same with every start and every length up to a tenth shorter or longer, or 300 us earlier or later.
/// Cores come back at an instant of their own if `effort` says so.
pub(in crate::commands::experiment) fn varied(
    mut scene: Scenario,
    effort: &Effort,
    seed: u64,
) -> Scenario {
    let mut random = Random::new(seed);
    let mut tenth = |span: &mut Span| {
        let length = random.within(span.least.0 * 9 / 10, span.least.0 * 11 / 10);
        (span.least, span.most) = (Nanos(length), Nanos(length));
    };
    for phase in scene
        .threads
        .iter_mut()
        .flat_map(|thread| &mut thread.phases)
    {
        if let Phase::Work(span) | Phase::Sleep(span) = phase {
            tenth(span);
        }
    }
    let mut shift = |time: &mut Nanos| {
        const MOST: u64 = 300_000;
        if time.0 > MOST {
            *time = Nanos(random.within(time.0 - MOST, time.0 + MOST));
        }
    };
    scene
        .changes
        .iter_mut()
        .for_each(|change| shift(&mut change.at));
    scene
        .threads
        .iter_mut()
        .flat_map(|thread| &mut thread.start)
        .for_each(shift);
    if effort.way(&ABSENCE) == 1 {
        let back = Nanos(random.within(7_000_000, 19_000_000));
        let changes = scene.changes.iter_mut();
        changes
            .filter(|change| !change.online.is_empty())
            .for_each(|change| change.at = back);
        scene.until = scene.until.map(|until| until + Nanos::from_millis(12));
    }
    scene
}

/// The scene of this frame.
fn scene_of(phone: &str, effort: &Effort, seed: u64) -> Scenario {
    let scene = varied(scene_on(phone, effort), effort, seed);
    match effort.way(&FOREIGN) {
        1 => with_foreigners(scene),
        _ => scene,
    }
}

/// From the main thread's start to the end of its wait.
fn frame(kind: FrameKind<'_>, effort: &Effort, seed: u64) -> Result<Nanos, Failure> {
    let scene = scene_of(&kind.machine.name, effort, seed);
    let start = thread(&scene, "UnityMain").start.unwrap_or_default();
    let work = jobs(&scene);
    let scene = kind.remedy.applied(scene, effort);
    let mut end = None;
    let machine = kind.machine.clone();
    let ran = lab::run_on(&scene, machine, kind.policy, seed, false, |sim| {
        let way = match kind.remedy {
            Remedy::PacelineAll => SceneUse::AllAwaited,
            Remedy::PacelineInOrder => SceneUse::InOrder,
            _ => SceneUse::AwaitedFirst,
        };
        end = Some(on_paceline(sim, start, &work, effort.time(&PIECE), way));
    })?;
    if let Some(end) = end {
        return Ok(end? - start);
    }
    Ok(end_of_wait(&ran) - start)
}

/// When the main thread's wait is over. A thread that still waits when the scene is over has waited for as
/// long as it lasted.
pub(in crate::commands::experiment) fn end_of_wait(ran: &Ran) -> Nanos {
    let mut spans = ran.measured.iter();
    let wait = spans.find(|span| span.name == "WaitForJobGroupID");
    wait.map_or(ran.report.now, |wait| wait.end)
}

/// Frames of one kind: on this phone, with this remedy, under this kernel.
#[derive(Clone, Copy)]
struct FrameKind<'m> {
    machine: &'m Arc<Machine>,
    remedy: Remedy,
    policy: &'static str,
}

/// Their times, a frame for each seed.
struct Frames<'m> {
    kind: FrameKind<'m>,
    times: Vec<u64>,
}

impl<'m> Frames<'m> {
    /// These remedies under these kernels, on each phone.
    fn run_all(
        machines: &'m [Arc<Machine>],
        remedies: &[Remedy],
        policies: &[&'static str],
        effort: &Effort,
        seeds: &[u64],
    ) -> Result<Vec<Frames<'m>>, Failure> {
        let mut kinds = Vec::new();
        for machine in machines {
            for &policy in policies {
                kinds.extend(remedies.iter().map(|&remedy| FrameKind {
                    machine,
                    remedy,
                    policy,
                }));
            }
        }
        let all = kinds.iter();
        let all: Vec<_> = all
            .flat_map(|&kind| seeds.iter().map(move |&seed| (kind, seed)))
            .collect();
        let times = lab::each("frames", &all, |&(kind, seed)| frame(kind, effort, seed))?;
        let times: Vec<u64> = times.into_iter().map(|time| time.0).collect();
        let times = times.chunks(seeds.len()).map(<[u64]>::to_vec);
        let frames = kinds.into_iter().zip(times);
        Ok(frames.map(|(kind, times)| Frames { kind, times }).collect())
    }
}

pub(super) fn run(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let seeds: Vec<u64> = effort.seeds(60, effort.some(1_000)).collect();
    let machines = PHONES.map(lab::machine);
    let frames = Frames::run_all(&machines, &Remedy::ALL, &[POLICY], effort, &seeds)?;
    show_remedies(&frames, seeds.len(), findings);
    let worst = |remedy: Remedy, what: fn(&Times) -> u64| {
        let of = frames.iter().filter(|frames| frames.kind.remedy == remedy);
        of.map(|frames| what(&Times::of(&frames.times)) as f64 / 1e6)
            .fold(0.0, f64::max)
    };
    findings.claims.extend(claims(&worst));
    Ok(())
}

/// The table and the picture of all remedies.
fn show_remedies(all: &[Frames<'_>], seeds: usize, findings: &mut Findings) {
    let title = format!(
        "From the main thread's start to the end of its wait, {seeds} frames that differ by a seed, {POLICY}"
    );
    let mut table = Table::new(title, ["machine", "remedy", "p50", "p99", "longest"]);
    let mut bars = Vec::new();
    for frames in all {
        let (machine, remedy) = (&frames.kind.machine.name, frames.kind.remedy);
        let times = Times::of(&frames.times);
        let [p50, p99, max] = [times.p50, times.p99, times.max].map(|ns| Nanos(ns).into());
        table.row([machine.as_str().into(), remedy.name().into(), p50, p99, max]);
        if machine == PHONES[0] {
            bars.push(PlotBar {
                name: remedy.name().to_owned(),
                value: times.p99 as f64 / 1e6,
                kind: usize::from(remedy == Remedy::Paceline),
            });
        }
    }
    findings.tables.push(table);
    findings.plots.push(Plot {
        file: "remedies",
        title: "99 of 100 frames wait no longer than this".into(),
        picture: PlotShape::Bars { unit: "ms", bars },
    });
}

/// The results of a remedy on the worse of both phones, in ms.
type Worst<'a> = &'a dyn Fn(Remedy, fn(&Times) -> u64) -> f64;

fn claims(worst: Worst<'_>) -> Vec<Claim> {
    let mut claims = claims_of_waits_and_priorities(worst);
    claims.extend(claims_of_affinity(worst));
    claims
}

fn claims_of_waits_and_priorities(worst: Worst<'_>) -> Vec<Claim> {
    let p50 = |remedy| worst(remedy, |times| times.p50);
    let mean = |remedy| worst(remedy, |times| times.mean);
    vec![
        Claim::source(
            "000-h",
            "The busy wait was the issue in the job system: without it the situation does not arise",
            "The Job System issue, below the fifth picture",
        )
        .is(Expect::LessThan(p50(Remedy::None) / 2.0), p50(Remedy::Park), "ms, p50 of the worse phone")
        .note("half of the busy wait's p50 or less"),
        Claim::source(
            "000-i",
            "Spawning more worker threads may make things worse",
            "The Priority Inversion, first option",
        )
        .is(
            Expect::MoreThan(mean(Remedy::None)),
            mean(Remedy::MoreWorkers),
            "ms, mean of the worse phone",
        ),
        Claim::source("000-j", "Changing thread priorities does not really help", "Solution..?, second \
                                                                                   paragraph")
            .is(
                Expect::AtLeast(p50(Remedy::None) * 0.95),
                p50(Remedy::Nice),
                "ms, p50 of the worse phone",
            )
            .or_else("a larger weight shortens turns of the busy wait here, and changes nothing else")
            .note("all of the program's threads at nice -10"),
        Claim::source(
            "000-k",
            "The workers' priority alone must not be raised",
            "Solution..?, second paragraph: other side effects will appear",
        )
        .beyond(&format!(
            "the article does not name the side effects; of the frame, on the worse phone, the mean is {} ms \
             with the workers alone at nice -10, and {} ms with none raised",
            short(mean(Remedy::NiceWorkers)),
            short(mean(Remedy::None))
        )),
        Claim::source(
            "000-y",
            "The fewer cores there are, the worse",
            "The Priority Inversion, first option",
        )
        .is(
            Expect::LessThan(mean(Remedy::MoreCores)),
            mean(Remedy::AllOnline),
            "ms, mean of the worse phone",
        )
        .varied(
            "cores",
            "the scene's against one more",
            Expect::LessThan(mean(Remedy::None)),
            mean(Remedy::MoreCores),
        )
        .note("all cores there against core 4 only"),
        Claim::ours(
            "000-l",
            "A mutex that inherits changes nothing: ordinary threads have no priority to lend",
        )
        .is(Expect::Exactly(mean(Remedy::Mutex)), mean(Remedy::Inheriting), "ms, mean of the worse phone"),
    ]
}

/// Where threads may run, and what would make that unnecessary.
fn claims_of_affinity(worst: Worst<'_>) -> Vec<Claim> {
    let p99 = |remedy| worst(remedy, |times| times.p99);
    vec![
        Claim::source(
            "000-m",
            "Keeping the threads off the small cores reduces the issue",
            "Solution..?, third paragraph",
        )
        .is(
            Expect::LessThan(p99(Remedy::ParkOnAllCores)),
            p99(Remedy::Park),
            "ms, p99 of the worse phone",
        )
        .varied(
            "wait",
            "busy, as in the article",
            Expect::LessThan(p99(Remedy::AllCores)),
            p99(Remedy::None),
        )
        .or_else("while the fast cores are away, a small core is better than none")
        .note("a main thread that parks, with and without small cores"),
        Claim::source(
            "000-o",
            "If the scheduler knew what a thread waits for it could help; the program knows",
            "Solution..?, fifth paragraph",
        )
        .is(
            Expect::LessThan(p99(Remedy::None) / 2.0),
            p99(Remedy::Paceline),
            "ms, p99 of the worse phone",
        )
        .varied(
            "compared with",
            "parking where the pictures show the threads",
            Expect::LessThan(p99(Remedy::Park) / 2.0),
            p99(Remedy::Paceline),
        )
        .varied(
            "compared with",
            "parking on any fast core",
            Expect::LessThan(p99(Remedy::ParkAnywhere) / 2.0),
            p99(Remedy::Paceline),
        )
        .note(format!(
            "the program itself: its waiting thread runs pieces of what it waits for; half of the other's \
             p99 or less: {} ms with the busy wait, {} ms with parking where the pictures show the \
             threads, {} ms with parking on any fast core. In Paceline's favour are its pieces of some \
             microseconds, jobs that are all there at the start, and threads that may run on all fast cores",
            short(p99(Remedy::None)),
            short(p99(Remedy::Park)),
            short(p99(Remedy::ParkAnywhere))
        )),
        Claim::source(
            "000-p",
            "Energy Aware Scheduling and newer kernels may have made affinity unnecessary",
            "Solution..?, fourth paragraph",
        )
        .beyond("the article says that this was not tried; the vendor's policies are not modelled"),
    ]
}

#[cfg(test)]
mod tests {
    use sim::scenario::WaitKind;

    use super::*;

    /// Goal: a remedy changes what it should and nothing else, and variations keep the scene's shape. Method:
    /// count phases of both kinds before and after; the same seed twice.
    #[test]
    fn remedies_change_what_they_should() {
        let effort = Effort::quick(1);
        let scene = scene_on(PHONES[0], &effort);
        let count = |scene: &Scenario, is_it: fn(&Phase) -> bool| {
            let phases = scene.threads.iter().flat_map(|thread| &thread.phases);
            phases.filter(|phase| is_it(phase)).count()
        };
        let spins = |phase: &Phase| {
            matches!(
                phase,
                Phase::Wait {
                    by: WaitKind::Spin,
                    ..
                }
            )
        };
        let locks = |phase: &Phase| matches!(phase, Phase::Lock(_));
        assert_eq!((count(&scene, spins), count(&scene, locks)), (1, 0));
        assert_eq!(
            count(&Remedy::Park.applied(scene.clone(), &effort), spins),
            0
        );
        let locked = Remedy::Inheriting.applied(scene.clone(), &effort);
        assert_eq!((count(&locked, spins), count(&locked, locks)), (0, 2));
        assert_eq!(locked.inheriting_mutexes, ["job"]);
        let varied = |seed| varied(scene.clone(), &effort, seed);
        assert_eq!(varied(3), varied(3));
        assert_ne!(varied(3), varied(4));
    }
}
