//! The remedies of source 000, as changes of its scene.

use event::Nanos;
use sim::scenario::{Forever, Phase, Repeat, Scenario, Span, ThreadPlan, WaitKind};

use super::choices::MORE_WORKERS;
use crate::commands::experiment::lab::Effort;

/// A remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Nothing: the main thread waits busily.
    None,
    MoreWorkers,
    /// Core 4 is there all the time.
    MoreCores,
    /// No core goes away.
    AllOnline,
    /// All of the program's threads at nice −10.
    Nice,
    /// The workers alone.
    NiceWorkers,
    /// Small cores may be used, too.
    AllCores,
    Park,
    /// The wait is for a mutex.
    Mutex,
    /// … that lends priorities.
    Inheriting,
    ParkOnAllCores,
    /// The program's threads may run on all fast cores, and not only where the pictures show them.
    ParkAnywhere,
    /// The job system's ranges, which the waiting thread takes part in; what it waits for is in the frame's
    /// lane.
    Paceline,
    /// The same without lanes.
    PacelineInOrder,
    /// … and it waits for all of them.
    PacelineAll,
}

impl Remedy {
    /// Those that are shown beside each other; the others are compared under all kernels.
    pub(super) const ALL: [Remedy; 13] = [
        Remedy::None,
        Remedy::MoreWorkers,
        Remedy::MoreCores,
        Remedy::AllOnline,
        Remedy::Nice,
        Remedy::NiceWorkers,
        Remedy::AllCores,
        Remedy::Park,
        Remedy::Mutex,
        Remedy::Inheriting,
        Remedy::ParkOnAllCores,
        Remedy::ParkAnywhere,
        Remedy::Paceline,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Remedy::None => "busy wait, as it was",
            Remedy::MoreWorkers => "… with three more workers",
            Remedy::MoreCores => "… core 4 is there all the time",
            Remedy::AllOnline => "… no core goes away",
            Remedy::Nice => "… all at nice -10",
            Remedy::NiceWorkers => "… workers alone at nice -10",
            Remedy::AllCores => "… small cores allowed",
            Remedy::Park => "park",
            Remedy::Mutex => "a mutex",
            Remedy::Inheriting => "a mutex that inherits",
            Remedy::ParkOnAllCores => "park, small cores allowed",
            Remedy::ParkAnywhere => "park, any fast core",
            Remedy::Paceline => "Paceline",
            Remedy::PacelineInOrder => "Paceline, jobs in their order",
            Remedy::PacelineAll => "Paceline, all jobs awaited",
        }
    }

    /// The scene with it.
    pub(super) fn applied(self, mut scene: Scenario, effort: &Effort) -> Scenario {
        match self {
            Remedy::None => {}
            Remedy::MoreWorkers if effort.way(&MORE_WORKERS) == 0 => split(&mut scene),
            Remedy::MoreWorkers => {
                let mut more = thread(&scene, "Job worker 1").clone();
                (more.name, more.cpus) = ("more workers ".into(), vec![4, 5, 6, 7]);
                (more.count, more.start) = (3, Some(Nanos::from_micros(5_500)));
                scene.threads.push(more);
            }
            Remedy::MoreCores => {
                for change in &mut scene.changes {
                    change.offline.retain(|&cpu| cpu != 4);
                }
            }
            Remedy::AllOnline => scene.changes.clear(),
            Remedy::Nice => ours(&mut scene).for_each(|thread| thread.nice = -10),
            Remedy::NiceWorkers => ours(&mut scene)
                .filter(|thread| thread.name.starts_with("Job worker"))
                .for_each(|thread| thread.nice = -10),
            Remedy::AllCores => ours(&mut scene).for_each(|thread| thread.cpus.clear()),
            Remedy::Park => park(&mut scene),
            Remedy::ParkOnAllCores => {
                park(&mut scene);
                ours(&mut scene).for_each(|thread| thread.cpus.clear());
            }
            Remedy::ParkAnywhere => {
                park(&mut scene);
                ours(&mut scene).for_each(|thread| thread.cpus = vec![4, 5, 6, 7]);
            }
            Remedy::Mutex | Remedy::Inheriting => {
                lock(&mut scene);
                if self == Remedy::Inheriting {
                    scene.inheriting_mutexes.push("job".into());
                }
            }
            Remedy::Paceline | Remedy::PacelineInOrder | Remedy::PacelineAll => {
                scene.threads.retain(|thread| !is_ours(thread));
                scene.program = Some(toml::Table::new());
            }
        }
        scene
    }
}

pub(in crate::commands::experiment) fn thread<'a>(
    scene: &'a Scenario,
    name: &str,
) -> &'a ThreadPlan {
    let found = scene.threads.iter().find(|thread| thread.name == name);
    found.expect("the scene has this thread")
}

/// The program's threads: all but the audio's and those of other programs.
fn ours(scene: &mut Scenario) -> impl Iterator<Item = &mut ThreadPlan> {
    scene.threads.iter_mut().filter(|thread| is_ours(thread))
}

fn is_ours(thread: &ThreadPlan) -> bool {
    thread.name != "audio" && !thread.name.starts_with(FOREIGNERS)
}

/// Threads of other programs.
const FOREIGNERS: &str = "foreign";

/// Adds two of them.
pub(super) fn with_foreigners(mut scene: Scenario) -> Scenario {
    let mut other = thread(&scene, "Job worker 1").clone();
    let time = |millis| Span {
        least: Nanos::from_millis(millis),
        most: Nanos::from_millis(millis),
    };
    (other.name, other.count, other.cpus) = (FOREIGNERS.into(), 2, vec![4, 5, 6, 7]);
    other.phases = vec![Phase::Work(time(2)), Phase::Sleep(time(2))];
    other.repeat = Repeat::Word(Forever::Forever);
    scene.threads.push(other);
    scene
}

/// The same work on six workers: each has another one that does half of it, on whichever core there is.
fn split(scene: &mut Scenario) {
    const DONE: &str = "the other half is done";
    let mut more = Vec::new();
    for worker in ours(scene).filter(|thread| thread.name.starts_with("Job worker")) {
        for phase in &mut worker.phases {
            if let Phase::Work(span) = phase {
                (span.least, span.most) = (Nanos(span.least.0 / 2), Nanos(span.most.0 / 2));
            }
        }
        let mut other = worker.clone();
        other.name = format!("more {}", worker.name);
        other.cpus = vec![4, 5, 6, 7];
        for phase in &mut other.phases {
            if let Phase::Set(flag) = phase {
                *flag = DONE.into();
            }
        }
        more.push(other);
    }
    for phases in ours(scene).map(|thread| &mut thread.phases) {
        let wait = phases
            .iter()
            .position(|phase| matches!(phase, Phase::Wait { .. }));
        if let Some((place, Phase::Wait { by, .. })) = wait.map(|at| (at, phases[at].clone())) {
            let other = Phase::Wait {
                flag: DONE.into(),
                by,
            };
            phases.insert(place, other);
        }
    }
    scene.threads.extend(more);
}

pub(in crate::commands::experiment) fn park(scene: &mut Scenario) {
    for phase in ours(scene).flat_map(|thread| &mut thread.phases) {
        if let Phase::Wait { by, .. } = phase {
            *by = WaitKind::Park;
        }
    }
}

/// The critical job runs under a mutex, and the main thread wants it.
fn lock(scene: &mut Scenario) {
    let name = || "job".to_owned();
    for thread in ours(scene) {
        let critical = thread.name == "Job worker 3";
        let phases = std::mem::take(&mut thread.phases);
        for phase in phases {
            match phase {
                Phase::Wait { .. } => thread
                    .phases
                    .extend([Phase::Lock(name()), Phase::Unlock(name())]),
                Phase::Begin(what) if critical => {
                    thread
                        .phases
                        .extend([Phase::Begin(what), Phase::Lock(name())]);
                }
                Phase::End(what) if critical => {
                    thread
                        .phases
                        .extend([Phase::Unlock(name()), Phase::End(what)]);
                }
                other => thread.phases.push(other),
            }
        }
    }
}
