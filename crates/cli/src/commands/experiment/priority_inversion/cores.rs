//! Which cores a program takes for the fast ones, on machines whose cores are known; and what a frame costs
//! if that leaves it two of them.

use std::collections::BTreeMap;

use console::Failure;
use event::Nanos;
use paceline::{Builder, Role};
use platform::{CpuSet, Platform};
use sim::Sim;
use sim::scenario::Scenario;
use workload::busy::Busy;
use workload::graph::{Generator, GraphScene, Labels};

use super::PHONES;
use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};

/// The machines of `testdata/topology` whose cores are certain, a line each: the name; the CPUs that are
/// online by class, slowest first; their `cpuinfo_max_freq` in kHz and their `cpu_capacity`, where the
/// system says it; and what Paceline's detection takes for fast. A test compares the last with detection.
const MACHINES: &str = include_str!("machines.txt");

const POLICY: &str = "eevdf-6.6";
pub(super) const PIECE: ChosenValue = ChosenValue {
    name: "frame-piece",
    about: "a piece of the frame that is run on two cores and on four",
    unit: ValueUnit::Micros,
    chosen: 5.0,
    others: &[1.0, 20.0],
    why: "some ten milliseconds of work in a frame",
};

/// A machine whose cores are known.
struct KnownMachine {
    /// Slowest first.
    classes: Vec<CpuSet>,
    khz: BTreeMap<u32, u64>,
    capacity: BTreeMap<u32, u64>,
    by_paceline: CpuSet,
}

impl KnownMachine {
    /// A line of [`MACHINES`]; none if it is no such line.
    fn read(line: &str) -> Option<KnownMachine> {
        let parts: Vec<&str> = line.split('|').collect();
        let [_, classes, khz, capacity, by_paceline] = parts[..] else {
            return None;
        };
        Some(KnownMachine {
            classes: classes.split_whitespace().map(CpuSet::parse).collect(),
            khz: by_cpu(khz)?,
            capacity: by_cpu(capacity)?,
            by_paceline: CpuSet::parse(by_paceline),
        })
    }

    fn cpus(&self) -> CpuSet {
        let none = CpuSet::new();
        self.classes
            .iter()
            .fold(none, |all, class| all.union(class))
    }

    /// All but the slowest class, if there are several: where a game engine wants its threads.
    fn fast(&self) -> CpuSet {
        match self.classes.as_slice() {
            [_, fast @ ..] if !fast.is_empty() => fast
                .iter()
                .fold(CpuSet::new(), |all, class| all.union(class)),
            _ => self.cpus(),
        }
    }
}

/// Numbers by CPU: `0-3=1800000 4=2400000`.
fn by_cpu(text: &str) -> Option<BTreeMap<u32, u64>> {
    let mut all = BTreeMap::new();
    for part in text.split_whitespace() {
        let (cpus, number) = part.split_once('=')?;
        let number = number.parse().ok()?;
        all.extend(CpuSet::parse(cpus).iter().map(|cpu| (cpu, number)));
    }
    Some(all)
}

/// How a program finds the fast cores.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heuristic {
    HighestClock,
    /// Above the middle between the lowest and the highest of the cores' clocks.
    UpperHalfOfClocks,
    /// At least 85 % of the largest capacity.
    LargestCapacity,
    /// More than half of it.
    HalfOfCapacity,
    /// The cores with the higher numbers, where there are more than four.
    UpperHalfOfNumbers,
    Paceline,
}

impl Heuristic {
    const ALL: [Heuristic; 6] = [
        Heuristic::HighestClock,
        Heuristic::UpperHalfOfClocks,
        Heuristic::LargestCapacity,
        Heuristic::HalfOfCapacity,
        Heuristic::UpperHalfOfNumbers,
        Heuristic::Paceline,
    ];

    fn name(self) -> &'static str {
        match self {
            Heuristic::HighestClock => "cores with the highest clock",
            Heuristic::UpperHalfOfClocks => "clock above the middle",
            Heuristic::LargestCapacity => "capacity from 85 % of the largest",
            Heuristic::HalfOfCapacity => "capacity above half of the largest",
            Heuristic::UpperHalfOfNumbers => "the upper half of the numbers",
            Heuristic::Paceline => "Paceline",
        }
    }

    /// What it takes for the fast cores: all of them where the system does not say what it needs.
    fn chosen(self, machine: &KnownMachine) -> CpuSet {
        let all = machine.cpus();
        let those = |of: &BTreeMap<u32, u64>, is_fast: &dyn Fn(u64, u64, u64) -> bool| {
            let (least, most) = (of.values().min(), of.values().max());
            let (Some(&least), Some(&most)) = (least, most) else {
                return all.clone();
            };
            let fast = of
                .iter()
                .filter(|(_, number)| is_fast(**number, least, most));
            fast.map(|(cpu, _)| *cpu).collect()
        };
        match self {
            Heuristic::HighestClock => those(&machine.khz, &|khz, _, most| khz == most),
            Heuristic::UpperHalfOfClocks => {
                those(&machine.khz, &|khz, least, most| 2 * khz >= least + most)
            }
            Heuristic::LargestCapacity => those(&machine.capacity, &|capacity, _, most| {
                100 * capacity >= 85 * most
            }),
            Heuristic::HalfOfCapacity => {
                those(&machine.capacity, &|capacity, _, most| 2 * capacity > most)
            }
            Heuristic::UpperHalfOfNumbers if all.len() <= 4 => all,
            Heuristic::UpperHalfOfNumbers => all.iter().skip(all.len() / 2).collect(),
            Heuristic::Paceline => machine.by_paceline.clone(),
        }
    }
}

/// What a heuristic does on all machines.
#[derive(Clone, Copy)]
struct HeuristicResult {
    /// Machines on which it leaves out fast cores.
    loses: u32,
    /// … and leaves at most two cores where there are four fast ones or more.
    leaves_two: u32,
    /// Machines on which it takes small cores, too.
    takes_small: u32,
}

impl HeuristicResult {
    fn of(heuristic: Heuristic, machines: &[KnownMachine]) -> HeuristicResult {
        let mut result = HeuristicResult {
            loses: 0,
            leaves_two: 0,
            takes_small: 0,
        };
        for machine in machines {
            let (fast, chosen) = (machine.fast(), heuristic.chosen(machine));
            result.loses += u32::from(!fast.is_subset(&chosen));
            result.leaves_two += u32::from(fast.len() >= 4 && chosen.len() <= 2);
            result.takes_small += u32::from(!chosen.is_subset(&fast));
        }
        result
    }
}

pub(super) fn run(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let machines = MACHINES.lines().map(KnownMachine::read);
    let machines: Option<Vec<KnownMachine>> = machines.collect();
    let machines = machines.ok_or_else(|| Failure::failed("the list of machines is broken"))?;
    let results = Heuristic::ALL.map(|heuristic| HeuristicResult::of(heuristic, &machines));
    let title = format!(
        "Which cores are taken for fast, on {} machines whose cores are known",
        machines.len()
    );
    let columns = [
        "fast are",
        "machines: fast cores left out",
        "at most 2 cores left of 4 fast ones or more",
        "small cores taken, too",
    ];
    let mut table = Table::new(title, columns);
    for (heuristic, result) in Heuristic::ALL.iter().zip(results) {
        table.row([
            heuristic.name().into(),
            f64::from(result.loses).into(),
            f64::from(result.leaves_two).into(),
            f64::from(result.takes_small).into(),
        ]);
    }
    findings.tables.push(table);
    findings.claims.extend(claims_of_heuristics(&results));
    let claim = two_cores(effort, findings)?;
    findings.claims.push(claim);
    Ok(())
}

fn claims_of_heuristics(results: &[HeuristicResult; 6]) -> [Claim; 2] {
    let [plain @ .., paceline] = results;
    const SOME: Expect = Expect::AtLeast(1.0);
    let left = |result: &HeuristicResult| f64::from(result.leaves_two);
    let claim = Claim::source(
        "000-n",
        "Core detection fails on some chips, which leaves 2 cores in use instead of 4 or more",
        "Solution..?, third paragraph",
    )
    .is(SOME, left(&plain[0]), "machines")
    .note(
        "by the highest clock; the article does not say how its program found the cores, nor that a plain \
         way has to fail",
    );
    let others = Heuristic::ALL.iter().zip(plain).skip(1);
    let claim = others.fold(claim, |claim, (heuristic, result)| {
        claim.varied("heuristic", heuristic.name(), SOME, left(result))
    });
    let ours = Claim::ours(
        "000-na",
        "Paceline leaves 2 cores of 4 fast ones or more nowhere",
    )
    .is(Expect::Exactly(0.0), left(paceline), "machines")
    .note(format!(
        "it leaves out fast cores on {} of them: where the fastest class has four CPUs, it takes no \
             other",
        paceline.loses
    ));
    [claim, ours]
}

/// What two cores cost a frame, on both phones.
fn two_cores(effort: &Effort, findings: &mut Findings) -> Result<Claim, Failure> {
    const CORES: [&[u32]; 4] = [&[0, 1, 2, 3, 4, 5, 6, 7], &[4, 5, 6, 7], &[6, 7], &[4, 5]];
    let all: Vec<(&str, &[u32])> = PHONES
        .iter()
        .flat_map(|phone| CORES.map(|cpus| (*phone, cpus)))
        .collect();
    let frames = lab::each("cores", &all, |&(phone, cpus)| frame(phone, cpus, effort))?;
    let title = format!(
        "A frame of source 001's graph with pieces of {} on these cores, {POLICY}, clocks at their highest",
        effort.time(&PIECE)
    );
    let mut table = Table::new(
        title,
        ["machine", "cores", "a frame", "times that of cores 4 to 7"],
    );
    let mut ratios = Vec::new();
    for (rows, frames) in all.chunks(CORES.len()).zip(frames.chunks(CORES.len())) {
        for ((phone, cpus), frame) in rows.iter().zip(frames) {
            let times = frame.0 as f64 / frames[1].0 as f64;
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            table.row([
                (*phone).into(),
                cpus.join(", ").into(),
                (*frame).into(),
                times.into(),
            ]);
        }
        ratios.push(frames[3].0 as f64 / frames[1].0 as f64);
    }
    findings.tables.push(table);
    Ok(Claim::source(
        "000-nb",
        "… and that caused issues",
        "Solution..?, third paragraph",
    )
    .is(
        Expect::MoreThan(1.1),
        ratios.into_iter().fold(f64::MAX, f64::min),
        "times the frame of four, the smaller of both phones",
    )
    .note("cores 4 and 5, Paceline"))
}

/// The mean frame of the job system on these CPUs.
fn frame(phone: &str, cpus: &[u32], effort: &Effort) -> Result<Nanos, Failure> {
    let text = format!(
        "about = 'frames'\nmachine = '{phone}'\npolicy = '{POLICY}'\nfull-speed = true\n[program]\n"
    );
    let scenario = Scenario::parse("frames", &text);
    let scenario = scenario.map_err(|error| Failure::failed(error.to_string()))?;
    let graph = Generator {
        seed: effort.seed,
        piece: effort.time(&PIECE),
        ..Generator::default()
    };
    let graph = graph.generate();
    let graph = graph.map_err(|error| Failure::failed(error.to_string()))?;
    // The first frame finds workers asleep.
    let count: u32 = effort.of(2, 6);
    let mask: CpuSet = cpus.iter().copied().collect();
    let mut took = Err(Failure::failed("the simulated program did not run"));
    let program = |sim: &Sim| {
        let run = || -> Result<Nanos, String> {
            let js = Builder::with_platform(sim.clone())
                .workers(mask.len() - 1)
                .cpus(mask.clone())
                .build()
                .map_err(|error| error.to_string())?;
            let _main = js.adopt(Role::Main);
            let mut scene = GraphScene::new(graph, Busy::NONE, Labels::OfKinds);
            let mut begin = sim.now();
            for frame in 0..count {
                if frame == 1 {
                    begin = sim.now();
                }
                scene.run(&js);
            }
            let took = sim.now() - begin;
            scene.verify().map_err(|error| error.to_string())?;
            Ok(Nanos(took.0 / u64::from(count - 1)))
        };
        took = run().map_err(Failure::failed);
    };
    lab::run_on(
        &scenario,
        lab::machine(phone),
        POLICY,
        effort.seed,
        false,
        program,
    )?;
    took
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: heuristics find what they should on a phone, and what they lose is seen. Method: a Galaxy S22
    /// whose cores are known, and one whose files say that all of its cores have the largest capacity.
    #[test]
    fn heuristics_lose_cores_where_they_should() {
        let phone = |id: &str| {
            let line = MACHINES
                .lines()
                .find(|line| line.split('|').next() == Some(id));
            KnownMachine::read(line.expect("it is in the list")).expect("it is a line")
        };
        let s22 = phone("asm-galaxy-s22-sm8450");
        assert_eq!(s22.fast(), CpuSet::parse("4-7"));
        let found = Heuristic::ALL.map(|heuristic| heuristic.chosen(&s22));
        let expected = ["7", "4-7", "7", "4-7", "4-7", "4-7"].map(CpuSet::parse);
        assert_eq!(found, expected);
        let result = HeuristicResult::of(Heuristic::HighestClock, &[s22]);
        assert_eq!(
            (result.loses, result.leaves_two, result.takes_small),
            (1, 1, 0)
        );
        let same = phone("asm-galaxy-s22-sm8450-cap1024");
        let result = HeuristicResult::of(Heuristic::HalfOfCapacity, &[same]);
        assert_eq!(
            (result.loses, result.leaves_two, result.takes_small),
            (0, 0, 1)
        );
    }
}
