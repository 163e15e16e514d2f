//! Remedies, over many frames that all differ a little.

use std::sync::Arc;

use console::Failure;
use event::{Nanos, Random};
use measure::Times;
use sim::Machine;
use sim::scenario::{Phase, Ran, Scenario, Span};

use super::PHONES;
use super::choices::{ABSENCE, FOREIGN, HELD_UP, PIECE};
use super::remedy::{Remedy, thread, with_foreigners};
use super::scene::scene_on;
use super::scene_jobs::{SceneUse, fits, jobs, on_paceline};
use crate::commands::experiment::claim::{Claim, Expect, short};
use crate::commands::experiment::findings::{Cell, Findings, Table};
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::plot::{Plot, PlotBar, PlotShape};

const POLICY: &str = "cfs-4.12";
/// Kernels on which the scene is looked for: the newer ones, too.
const KERNELS: [&str; 3] = [POLICY, "eevdf-6.6", "eevdf-6.18"];
/// What is compared on them.
const COMPARED: [Remedy; 6] = [
    Remedy::None,
    Remedy::Park,
    Remedy::ParkAnywhere,
    Remedy::Paceline,
    Remedy::PacelineInOrder,
    Remedy::PacelineAll,
];
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

    /// How many take longer than this, of 1000.
    fn held_up(&self, most: Nanos) -> f64 {
        let count = self.times.iter().filter(|time| **time > most.0).count();
        count as f64 * 1000.0 / self.times.len() as f64
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

/// Which frames are held up, under each kernel. It is a part of its own: a process has room for only so many
/// stacks of simulated threads that do not end.
pub(super) fn run_kernels(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let seeds: Vec<u64> = effort.seeds(60, effort.some(1_000)).collect();
    let machines = PHONES.map(lab::machine);
    let frames = Frames::run_all(&machines, &COMPARED, &KERNELS, effort, &seeds)?;
    let most = effort.time(&HELD_UP);
    let too_much = machines.each_ref().map(|machine| {
        let late = |seed: &&u64| {
            let scene = scene_of(&machine.name, effort, **seed);
            let start = thread(&scene, "UnityMain").start.unwrap_or_default();
            !fits(&scene, machine, start + most)
        };
        seeds.iter().filter(late).count() as f64 * 1000.0 / seeds.len() as f64
    });
    kernels(&frames, most, too_much, findings);
    findings.claims.extend(claims_of_kernels(&frames, most));
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

/// How many frames are held up under each kernel. `too_much`: on each phone, in how many frames all jobs are
/// about as much work as fits.
fn kernels(all: &[Frames<'_>], most: Nanos, too_much: [f64; 2], findings: &mut Findings) {
    let title = format!("Frames that take longer than {most}, of 1000, by the kernel");
    let mut columns = vec!["machine", "remedy"];
    columns.extend(KERNELS);
    columns.push("all jobs hardly fit");
    let columns = columns.into_iter().map(str::to_owned).collect();
    let mut table = Table::with_columns(title, columns);
    for (phone, too_much) in PHONES.iter().zip(too_much) {
        for remedy in COMPARED {
            let is_it = |frames: &&Frames<'_>| {
                frames.kind.machine.name == *phone && frames.kind.remedy == remedy
            };
            let held_up = all
                .iter()
                .filter(is_it)
                .map(|frames| Cell::from(frames.held_up(most)));
            let is_all = matches!(remedy, Remedy::PacelineInOrder | Remedy::PacelineAll);
            let bound = Cell::from(is_all.then_some(too_much));
            let first = [Cell::from(*phone), remedy.name().into()];
            table.row(first.into_iter().chain(held_up).chain([bound]));
        }
    }
    findings.tables.push(table);
}

fn claims_of_kernels(all: &[Frames<'_>], most: Nanos) -> Vec<Claim> {
    let of = |remedy: Remedy, is_old: bool| {
        let rows = all.iter().filter(move |frames| {
            frames.kind.remedy == remedy && (frames.kind.policy == POLICY) == is_old
        });
        rows.map(|frames| frames.held_up(most))
    };
    let both = |remedy| of(remedy, true).chain(of(remedy, false));
    // Frames of a thousand are rare, and their number is about as uncertain as that of drawn ones.
    let thousands = all
        .first()
        .map_or(1.0, |frames| frames.times.len() as f64 / 1e3);
    let more = both(Remedy::Paceline).zip(both(Remedy::ParkAnywhere));
    let more = more
        .map(|(ours, parking)| {
            (ours - parking) * thousands.sqrt() / (ours + parking).max(1.0).sqrt()
        })
        .fold(f64::MIN, f64::max);
    let worst = |remedy| both(remedy).fold(0.0, f64::max);
    vec![
        Claim::ours(
            "000-x",
            "Under EEVDF a busy wait holds up fewer frames than under CFS",
        )
        .is(
            Expect::LessThan(of(Remedy::None, true).fold(f64::MAX, f64::min)),
            of(Remedy::None, false).fold(0.0, f64::max),
            "of 1000 frames, the most of both phones and kernels",
        )
        .note(format!(
            "the least under CFS of both phones; a frame is held up if it takes over {most}"
        )),
        Claim::ours(
            "000-xa",
            "If the jobs that the main thread waits for are in the frame's lane, Paceline holds up no more \
             frames than parking does, where threads may run on the same cores",
        )
        .is(
            Expect::AtMost(2.0),
            more,
            "standard errors more, the most of both phones and all kernels",
        )
        .note(format!(
            "at most {:.0} of 1000 against {:.0}, and {:.0} if it does not know which they are or waits for \
             all; parking leaves {:.0} where worker 3 has the last core for \
             itself, as in the pictures",
            worst(Remedy::Paceline),
            worst(Remedy::ParkAnywhere),
            worst(Remedy::PacelineInOrder).max(worst(Remedy::PacelineAll)),
            worst(Remedy::Park)
        )),
    ]
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
        .note("the program itself: its waiting thread runs pieces of what it waits for"),
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
