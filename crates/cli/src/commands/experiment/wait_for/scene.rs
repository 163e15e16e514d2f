//! The scene of source 000, whose main thread says what it waits for.

use std::sync::Arc;

use console::Failure;
use event::Nanos;
use measure::Times;
use sim::Machine;

use super::Setup;
use crate::commands::experiment::findings::Table;
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::plot::{Plot, PlotBar, PlotShape};
use crate::commands::experiment::priority_inversion::{
    PHONES, end_of_wait, park, scene_on, thread, varied,
};

/// The way in which the main thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Busy,
    Parked,
}

/// The scene's frames: how long the main thread took from its start to the end of its wait.
pub(super) struct Scenes(Vec<(Arc<Machine>, Way, Setup, Times)>);

impl Scenes {
    pub(super) fn run(effort: &Effort) -> Result<Scenes, Failure> {
        let seeds: Vec<u64> = effort.seeds(30, effort.some(300)).collect();
        let mut kinds = Vec::new();
        for phone in PHONES.map(|phone| super::machine(phone, effort)) {
            for way in [Way::Busy, Way::Parked] {
                kinds.extend(Setup::ALL.map(|setup| (phone.clone(), way, setup)));
            }
        }
        let of_kind = |kind| seeds.iter().map(move |&seed| (kind, seed));
        let all: Vec<_> = kinds.iter().flat_map(of_kind).collect();
        let frames = lab::each("waits", &all, |&((machine, way, setup), seed)| {
            frame(machine, *way, *setup, effort, seed)
        })?;
        let times: Vec<u64> = frames.into_iter().map(|frame| frame.0).collect();
        let times = times.chunks(seeds.len()).map(Times::of);
        let of = |((machine, way, setup), times)| (machine, way, setup, times);
        Ok(Scenes(kinds.into_iter().zip(times).map(of).collect()))
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(
            "The scene, from the main thread's start to the end of its wait; it states the wait or not",
            ["machine", "wait", "policy", "said", "p50", "p99", "longest"],
        );
        for (machine, way, setup, times) in &self.0 {
            let way = match way {
                Way::Busy => "busy",
                Way::Parked => "park",
            };
            table.row([
                machine.name.as_str().into(),
                way.into(),
                setup.policy.into(),
                setup.said().into(),
                Nanos(times.p50).into(),
                Nanos(times.p99).into(),
                Nanos(times.max).into(),
            ]);
        }
        table
    }

    pub(super) fn plot(&self) -> Plot {
        let busy = self
            .0
            .iter()
            .filter(|(machine, way, _, _)| *way == Way::Busy && machine.name == PHONES[0]);
        let bars = busy.map(|(_, _, setup, times)| PlotBar {
            name: setup.name(),
            value: times.p99 as f64 / 1e6,
            kind: usize::from(setup.said),
        });
        Plot {
            file: "waits",
            title: "99 of 100 busy waits in the scene are over after this".into(),
            picture: PlotShape::Bars {
                unit: "ms",
                bars: bars.collect(),
            },
        }
    }

    /// The p99 on the worse phone, in ms.
    pub(super) fn p99(&self, way: Way, setup: Setup) -> f64 {
        let of = self.0.iter();
        let of = of.filter(|(_, other, its, _)| (*other, *its) == (way, setup));
        of.map(|(_, _, _, times)| times.p99 as f64 / 1e6)
            .fold(0.0, f64::max)
    }
}

/// The scene as the article has it: the main thread's wait on the slower phone.
pub(super) fn as_it_was(setup: Setup, effort: &Effort) -> Result<Nanos, Failure> {
    let mut longest = Nanos::ZERO;
    for machine in PHONES.map(|phone| super::machine(phone, effort)) {
        let scene = setup.applied(&scene_on(&machine.name, effort));
        let ran = lab::run_on(&scene, machine, setup.policy, effort.seed, false, |_| ())?;
        let wait = lab::spans(&ran, "WaitForJobGroupID").max();
        longest = longest.max(wait.unwrap_or(ran.report.now));
    }
    Ok(longest)
}

fn frame(
    machine: &Arc<Machine>,
    way: Way,
    setup: Setup,
    effort: &Effort,
    seed: u64,
) -> Result<Nanos, Failure> {
    let mut scene = varied(scene_on(&machine.name, effort), effort, seed);
    let start = thread(&scene, "UnityMain").start.unwrap_or_default();
    if way == Way::Parked {
        park(&mut scene);
    }
    let scene = setup.applied(&scene);
    let ran = lab::run_on(&scene, machine.clone(), setup.policy, seed, false, |_| ())?;
    Ok(end_of_wait(&ran) - start)
}
