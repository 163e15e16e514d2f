//! macOS' answers about the machine, by the names of sysctl(3), and what follows from them.
//!
//! Apple's own processors have *performance levels*: `hw.nperflevels` of them, the fastest first, each with
//! its number of CPUs and how many of these share an L2 cache, which is the last one that is theirs. Which
//! CPU is in which level is not told. So CPUs are numbered here from the slowest level to the fastest, and
//! threads are not told where they run: no call takes or returns these numbers.
//!
//! What a process may use is told as a number, `hw.activecpu`; there are no masks, and no quotas.
//!
//! Invariant: any numbers have an answer, as in the rest of `detect`.

use super::super::{Limits, Topology, Witness};
use super::told::{self, ToldCpu};
use crate::{CpuPlace, CpuSet};

/// More CPUs than any machine has: what is beyond that was misread.
const CPUS_MAX: u64 = 1 << 12;
const LEVELS_MAX: u64 = 16;

/// What macOS answers, by name.
pub(crate) trait Sysctl {
    /// A number.
    fn number(&self, name: &str) -> Option<u64>;

    /// A text.
    fn text(&self, name: &str) -> Option<String>;
}

/// CPUs that are equally fast, and what they share.
struct Level {
    cpus: u32,
    /// The cores that these are threads of.
    cores: u32,
    /// How many of them share a cache, if it is told.
    with_cache: Option<u32>,
}

/// The machine; `None` if macOS has not told how many CPUs there are.
pub(crate) fn machine(answers: &dyn Sysctl) -> Option<Topology> {
    let levels = levels(answers)?;
    let mut cpus = Vec::new();
    let (mut core, mut cache) = (0, 0);
    // From the slowest on.
    for (rank, level) in levels.iter().rev().enumerate() {
        let threads = (level.cpus / level.cores).max(1);
        let with_cache = level.with_cache.filter(|&cpus| cpus > 0);
        for number in 0..level.cpus {
            let place = CpuPlace {
                cpu: cpus.len() as u32,
                core: core + number / threads,
                cache: with_cache.map_or(told::UNKNOWN, |with| cache + number / with),
                node: 0,
                package: 0,
            };
            let rank = rank as u32;
            cpus.push(ToldCpu { place, rank });
        }
        core += level.cpus.div_ceil(threads);
        cache += with_cache.map_or(0, |with| level.cpus.div_ceil(with));
    }
    let limits = limits_of(cpus.len() as u32, answers);
    let model = answers.text("machdep.cpu.brand_string");
    Some(told::machine(cpus, limits, Witness::PerfLevel, model))
}

/// What the process may use.
pub(crate) fn limits(answers: &dyn Sysctl) -> Option<Limits> {
    let cpus = levels(answers)?.iter().map(|level| level.cpus).sum();
    Some(limits_of(cpus, answers))
}

/// With a power mode that takes CPUs away, the rest are taken for the fastest ones.
fn limits_of(cpus: u32, answers: &dyn Sysctl) -> Limits {
    let active = answers.number("hw.activecpu").unwrap_or(0);
    let active = match u32::try_from(active) {
        Ok(active) if (1..cpus).contains(&active) => active,
        _ => cpus,
    };
    Limits::of((cpus - active..cpus).collect::<CpuSet>())
}

/// The levels, the fastest first.
fn levels(answers: &dyn Sysctl) -> Option<Vec<Level>> {
    let count = answers.number("hw.nperflevels").unwrap_or(0);
    let of = |prefix: &str| {
        let number = |name: &str| {
            let number = answers.number(&format!("{prefix}.{name}"))?;
            (1..=CPUS_MAX).contains(&number).then_some(number as u32)
        };
        let cpus = number("logicalcpu_max").or_else(|| number("logicalcpu"))?;
        let cores = number("physicalcpu_max").or_else(|| number("physicalcpu"));
        Some(Level {
            cpus,
            cores: cores.filter(|&cores| cores <= cpus).unwrap_or(cpus),
            with_cache: number("cpusperl2"),
        })
    };
    let known: Vec<Level> = (0..count.min(LEVELS_MAX))
        .map_while(|level| of(&format!("hw.perflevel{level}")))
        .collect();
    if known.len() > 1 {
        return Some(known);
    }
    // One level: all that there are. The last cache of Intel's is not told.
    let all = of("hw")?;
    let with_cache = known.first().and_then(|level| level.with_cache);
    Some(vec![Level { with_cache, ..all }])
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use event::Random;

    use super::*;

    impl Sysctl for HashMap<String, u64> {
        fn number(&self, name: &str) -> Option<u64> {
            self.get(name).copied()
        }

        fn text(&self, name: &str) -> Option<String> {
            (name == "machdep.cpu.brand_string").then(|| "Apple M1 Pro".to_owned())
        }
    }

    fn answers(text: &str) -> HashMap<String, u64> {
        let lines = text.split_whitespace();
        let pairs = lines.map(|line| line.split_once('=').expect("name=number"));
        let pairs =
            pairs.map(|(name, number)| (format!("hw.{name}"), number.parse().expect("a number")));
        pairs.collect()
    }

    const M1_PRO: &str = "logicalcpu_max=10 physicalcpu_max=10 activecpu=10 nperflevels=2 \
        perflevel0.logicalcpu_max=8 perflevel0.physicalcpu_max=8 perflevel0.cpusperl2=4 \
        perflevel1.logicalcpu_max=2 perflevel1.physicalcpu_max=2 perflevel1.cpusperl2=2";

    /// Goal: levels are classes, slow to fast, and an L2 cache is shared by as many as are told. Method: an
    /// M1 Pro, with two clusters of fast cores.
    #[test]
    fn levels_are_classes() {
        let machine = machine(&answers(M1_PRO)).expect("it is told");
        let classes = machine.classes().iter();
        let classes: Vec<_> = classes.map(|it| (&*it.name, it.cpus.to_string())).collect();
        assert_eq!(classes, [("little", "0-1".into()), ("big", "2-9".into())]);
        assert_eq!(machine.witness(), Witness::PerfLevel);
        let caches = machine
            .caches()
            .iter()
            .map(CpuSet::to_string)
            .collect::<Vec<_>>();
        assert_eq!(caches, ["0-1", "2-5", "6-9"]);
        assert_eq!(
            (machine.cores().len(), machine.effective_parallelism()),
            (10, 10)
        );
        assert_eq!(machine.fast(machine.allowed()).to_string(), "2-9");
        assert_eq!(machine.model(), "Apple M1 Pro");
    }

    /// Goal: a machine without levels has one class, and its threads of a core belong together. Method: an
    /// Intel processor with six cores, and one level that repeats what is told of all.
    #[test]
    fn without_levels_all_are_alike() {
        let six = "logicalcpu_max=12 physicalcpu_max=6 activecpu=12";
        for more in [
            "",
            " nperflevels=1 perflevel0.logicalcpu_max=12 perflevel0.physicalcpu_max=6",
        ] {
            let machine = machine(&answers(&format!("{six}{more}"))).expect("it is told");
            assert_eq!((machine.classes().len(), machine.cores().len()), (1, 6));
            assert_eq!(machine.cores()[0].to_string(), "0-1");
            assert_eq!(
                (machine.caches().len(), machine.witness()),
                (0, Witness::Nothing)
            );
        }
    }

    /// Goal: CPUs that a power mode takes away are no longer counted on. Method: fewer active ones.
    #[test]
    fn inactive_cpus_are_not_used() {
        let mut less = answers(M1_PRO);
        less.insert("hw.activecpu".into(), 6);
        let limits = limits(&less).expect("it is told");
        assert_eq!(limits.usable().to_string(), "4-9");
        assert_eq!(machine(&less).expect("it is told").present().len(), 10);
    }

    /// Goal: any numbers have an answer. Method: each name with any number, or none.
    #[test]
    fn any_numbers_have_an_answer_long() {
        let names: Vec<String> = answers(M1_PRO).into_keys().collect();
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let mut told = HashMap::new();
            for name in &names {
                let most = [1, 20, 1 << 40][random.below(3) as usize];
                if random.below(4) > 0 {
                    told.insert(name.clone(), random.below(most));
                }
            }
            if let Some(machine) = machine(&told) {
                assert!(machine.effective_parallelism() >= 1 && !machine.allowed().is_empty());
                assert_eq!(Some(machine.limits()), limits(&told).as_ref());
            }
        }
        assert!(machine(&HashMap::new()).is_none());
    }
}
