//! Windows' answers about the machine, as it gives them, and what follows from them.
//!
//! CPUs are described by their *CPU sets*, one each: which group of up to 64 CPUs it is in and its number
//! there, its core, its last-level cache, its memory node, and its efficiency class, the greater the faster.
//! All these numbers count within the group. Elsewhere a CPU has one number: 64 times its group, and its
//! number there.
//!
//! A process may use what its affinity mask and its default CPU sets leave it; of CPUs that were given to
//! another process alone it may use none. A job may have a share of all CPUs' time, its rate, which is a
//! quota.
//!
//! Invariant: any bytes have an answer, as in the rest of `detect`.

use super::super::{Limits, Quota, Topology, Witness};
use super::told::{self, ToldCpu};
use crate::{CpuPlace, CpuSet};

/// CPUs in a group.
pub(crate) const GROUP: u32 = 64;

/// What Windows has answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    /// All CPU sets: `GetSystemCpuSetInformation`.
    pub(crate) cpu_sets: Vec<u8>,
    /// The groups that the process has threads in; none if they are not known: `GetProcessGroupAffinity`.
    pub(crate) groups: Vec<u16>,
    /// Its CPUs, if that is one group; none if they are not known: `GetProcessAffinityMask`.
    pub(crate) mask: u64,
    /// The ids of its CPU sets; none if it was given none: `GetProcessDefaultCpuSets`.
    pub(crate) default_sets: Vec<u32>,
    /// The rate of its job: `JobObjectCpuRateControlInformation`.
    pub(crate) rate: Option<Rate>,
    /// What the processor is called.
    pub(crate) model: Option<String>,
}

/// The CPU rate of a job: its flags, and the number behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) flags: u32,
    pub(crate) value: u32,
}

impl Rate {
    const ENABLED: u32 = 1;
    const HARD_CAP: u32 = 4;
    /// The value is two: the lowest and, in its upper half, the highest rate.
    const MIN_MAX: u32 = 0x10;
    /// All of all CPUs' time.
    const WHOLE: u64 = 10_000;

    /// The quota of a machine with so many CPUs. A rate that is a weight among other jobs is none.
    fn quota(self, cpus: usize) -> Option<Quota> {
        let rate = match self.flags {
            flags if flags & Self::ENABLED == 0 => return None,
            flags if flags & Self::MIN_MAX != 0 => self.value >> 16,
            flags if flags & Self::HARD_CAP != 0 => self.value,
            _ => return None,
        };
        if u64::from(rate) >= Self::WHOLE {
            return None;
        }
        const MILLISECOND: u64 = 1_000;
        let runtime = u64::from(rate) * cpus as u64 * Quota::PERIOD / Self::WHOLE;
        Quota::new(runtime.max(MILLISECOND), Quota::PERIOD)
    }
}

/// A CPU set of Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    /// Its name in calls.
    pub(crate) id: u32,
    /// The CPU.
    pub(crate) cpu: u32,
    core: u32,
    cache: u32,
    node: u32,
    efficiency: u8,
    flags: u8,
}

impl Described {
    const ALLOCATED: u8 = 2;
    const ALLOCATED_TO_US: u8 = 4;

    /// From a record, `SYSTEM_CPU_SET_INFORMATION`.
    fn read(record: &[u8; RECORD]) -> Option<Described> {
        const OF_A_CPU: u32 = 0;
        let word = |at: usize| {
            let bytes = [record[at], record[at + 1], record[at + 2], record[at + 3]];
            u32::from_le_bytes(bytes)
        };
        if word(4) != OF_A_CPU {
            return None;
        }
        let group = u32::from(u16::from_le_bytes([record[12], record[13]]));
        let number = u32::from(record[14]);
        // Of a group and a number in it.
        let named = |number: u8| group << 8 | u32::from(number);
        (number < GROUP).then(|| Described {
            id: word(8),
            cpu: group * GROUP + number,
            core: named(record[15]),
            cache: named(record[16]),
            node: named(record[17]),
            efficiency: record[18],
            flags: record[19],
        })
    }

    /// Whether it was given to another process alone.
    fn is_others(&self) -> bool {
        self.flags & (Self::ALLOCATED | Self::ALLOCATED_TO_US) == Self::ALLOCATED
    }
}

/// The bytes of a record that are known here; later versions may have more.
const RECORD: usize = 20;

/// The CPU sets in what `GetSystemCpuSetInformation` has written: records that begin with their lengths.
pub(crate) fn described(mut bytes: &[u8]) -> Vec<Described> {
    let mut all = Vec::new();
    while let Some(record) = bytes.first_chunk::<RECORD>() {
        let length = u32::from_le_bytes([record[0], record[1], record[2], record[3]]) as usize;
        if length < RECORD || length > bytes.len() {
            break; // The rest cannot be told apart.
        }
        all.extend(Described::read(record));
        bytes = &bytes[length..];
    }
    all
}

/// The machine; `None` if Windows has not described any CPU.
pub(crate) fn machine(answers: &Answers) -> Option<Topology> {
    let all = described(&answers.cpu_sets);
    if all.is_empty() {
        return None;
    }
    let told = |cpu: &Described| ToldCpu {
        place: CpuPlace {
            cpu: cpu.cpu,
            core: cpu.core,
            cache: cpu.cache,
            node: cpu.node,
            package: told::UNKNOWN,
        },
        rank: cpu.efficiency.into(),
    };
    Some(told::machine(
        all.iter().map(told).collect(),
        limits_of(&all, answers),
        Witness::EfficiencyClass,
        answers.model.clone(),
    ))
}

/// What the process may use.
pub(crate) fn limits(answers: &Answers) -> Option<Limits> {
    let all = described(&answers.cpu_sets);
    (!all.is_empty()).then(|| limits_of(&all, answers))
}

fn limits_of(all: &[Described], answers: &Answers) -> Limits {
    let online: CpuSet = all.iter().map(|described| described.cpu).collect();
    let is_in_one_group = match answers.groups.len() {
        0 => all.iter().all(|described| described.cpu < GROUP),
        groups => groups == 1,
    };
    let is_allowed = |described: &&Described| {
        let (group, number) = (described.cpu / GROUP, described.cpu % GROUP);
        let in_groups = answers.groups.is_empty() || {
            let mut groups = answers.groups.iter();
            groups.any(|&named| u32::from(named) == group)
        };
        // With several groups the mask is that of one of them.
        let in_mask = !is_in_one_group || answers.mask == 0 || {
            let bit = 1_u64 << number;
            answers.mask & bit != 0
        };
        let in_sets =
            answers.default_sets.is_empty() || answers.default_sets.contains(&described.id);
        in_groups && in_mask && in_sets && !described.is_others()
    };
    let allowed = all.iter().filter(is_allowed).map(|it| it.cpu).collect();
    let quota = answers.rate.and_then(|rate| rate.quota(online.len()));
    Limits {
        online,
        allowed,
        quota,
    }
}

/// A set of CPUs as groups and masks, as Windows takes them.
pub(crate) fn by_group(cpus: &CpuSet) -> Vec<(u16, u64)> {
    let mut groups: Vec<(u16, u64)> = Vec::new();
    for cpu in cpus.iter() {
        let Ok(group) = u16::try_from(cpu / GROUP) else {
            continue; // No machine has that many.
        };
        let bit = 1_u64 << (cpu % GROUP);
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, mask)) => *mask |= bit,
            None => groups.push((group, bit)),
        }
    }
    groups
}

/// And back.
pub(crate) fn of_group(group: u16, mask: u64) -> CpuSet {
    let numbers = (0..GROUP).filter(|number| mask & (1_u64 << number) != 0);
    numbers
        .map(|number| u32::from(group) * GROUP + number)
        .collect()
}

#[cfg(test)]
mod tests {
    use event::Random;

    use super::*;

    /// A record as Windows 10 writes it: 32 bytes.
    fn record(
        id: u32,
        [group, number, core, cache, node]: [u8; 5],
        [rank, flags]: [u8; 2],
    ) -> Vec<u8> {
        let mut record = vec![0_u8; 32];
        record[0] = 32;
        record[8..12].copy_from_slice(&id.to_le_bytes());
        record[12] = group;
        record[14..18].copy_from_slice(&[number, core, cache, node]);
        record[18..20].copy_from_slice(&[rank, flags]);
        record
    }

    /// Two fast cores of two threads each and four slow ones, as on Intel's hybrid processors.
    fn hybrid() -> Answers {
        let cpus = (0..8_u8).map(|cpu| {
            let core = if cpu < 4 { cpu & !1 } else { cpu };
            record(
                256 + u32::from(cpu),
                [0, cpu, core, 0, 0],
                [u8::from(cpu < 4), 0],
            )
        });
        Answers {
            cpu_sets: cpus.flatten().collect(),
            groups: vec![0],
            mask: 0xff,
            ..Answers::default()
        }
    }

    /// Goal: classes, cores and caches are those of the records. Method: a hybrid processor by hand.
    #[test]
    fn a_hybrid_processor_has_two_classes() {
        let machine = machine(&hybrid()).expect("it is described");
        let classes = machine.classes().iter();
        let classes: Vec<_> = classes.map(|it| (&*it.name, it.cpus.to_string())).collect();
        assert_eq!(classes, [("little", "4-7".into()), ("big", "0-3".into())]);
        assert_eq!(machine.witness(), Witness::EfficiencyClass);
        let cores = machine
            .cores()
            .iter()
            .map(CpuSet::to_string)
            .collect::<Vec<_>>();
        assert_eq!(cores, ["0-1", "2-3", "4", "5", "6", "7"]);
        assert_eq!(machine.caches().len(), 1);
        assert_eq!(machine.effective_parallelism(), 8);
        assert_eq!(machine.fast(machine.allowed()).to_string(), "0-3");
    }

    /// Goal: numbers that count within a group are not taken for those of another group. Method: two groups
    /// whose records are equal but for the group.
    #[test]
    fn groups_are_apart() {
        let cpus = [0, 1].into_iter().flat_map(|group| {
            (0..2)
                .map(move |cpu| record(u32::from(group * 2 + cpu), [group, cpu, cpu, 0, 0], [0, 0]))
        });
        let mut answers = Answers {
            cpu_sets: cpus.flatten().collect(),
            groups: vec![0, 1],
            mask: 1,
            ..Answers::default()
        };
        let both = machine(&answers).expect("it is described");
        assert_eq!(both.allowed().to_string(), "0-1,64-65");
        assert_eq!(
            (both.cores().len(), both.caches().len(), both.nodes().len()),
            (4, 2, 2)
        );
        assert_eq!(both.witness(), Witness::Nothing);
        answers.groups = vec![1];
        let one = limits(&answers).expect("it is described");
        assert_eq!(one.usable().to_string(), "64");
    }

    /// Goal: what a process may use is bounded by its mask, its CPU sets, and sets that others have alone.
    /// Method: each by itself, and one that leaves nothing.
    #[test]
    fn limits_are_kept() {
        let usable = |change: &dyn Fn(&mut Answers)| {
            let mut answers = hybrid();
            change(&mut answers);
            limits(&answers)
                .expect("it is described")
                .usable()
                .to_string()
        };
        assert_eq!(usable(&|_| ()), "0-7");
        assert_eq!(usable(&|answers| answers.mask = 0x33), "0-1,4-5");
        assert_eq!(usable(&|answers| answers.mask = 0), "0-7");
        assert_eq!(
            usable(&|answers| (answers.groups, answers.mask) = (vec![], 3)),
            "0-1"
        );
        assert_eq!(
            usable(&|answers| answers.default_sets = vec![257, 260]),
            "1,4"
        );
        let of_others = Described::ALLOCATED;
        assert_eq!(usable(&|answers| answers.cpu_sets[19] = of_others), "1-7");
        let ours = Described::ALLOCATED | Described::ALLOCATED_TO_US;
        assert_eq!(usable(&|answers| answers.cpu_sets[19] = ours), "0-7");
        assert_eq!(usable(&|answers| answers.default_sets = vec![1]), "0-7");
    }

    /// Goal: the rate of a job is a quota of the machine's CPUs, where it is a limit at all. Method: a table.
    #[test]
    fn rates_are_quotas() {
        let cpus = |flags, value| Rate { flags, value }.quota(8).map(Quota::cpus);
        assert_eq!(cpus(1 | 4, 2_500), Some(2.0));
        assert_eq!(cpus(1 | 4, 1), Some(0.01));
        assert_eq!(cpus(1 | 0x10, 1_250 << 16 | 100), Some(1.0));
        assert_eq!(cpus(1 | 4, 10_000), None);
        assert_eq!(cpus(1 | 2, 5), None);
        assert_eq!(cpus(4, 2_500), None);
    }

    /// Goal: a set of CPUs keeps its members on the way to Windows and back. Method: any set.
    #[test]
    fn sets_are_masks_long() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let cpus: CpuSet = (0..random.below(40))
                .map(|_| random.below(300) as u32)
                .collect();
            let back = by_group(&cpus).into_iter();
            let back = back.map(|(group, mask)| of_group(group, mask));
            assert_eq!(back.fold(CpuSet::new(), |all, some| all.union(&some)), cpus);
        }
    }

    /// Goal: any bytes have an answer. Method: records with bytes changed and cut off.
    #[test]
    fn any_bytes_have_an_answer_long() {
        for seed in 0..500 {
            let (mut random, mut answers) = (Random::new(seed), hybrid());
            for _ in 0..random.below(20) {
                answers.cpu_sets[random.below(256) as usize] = random.below(256) as u8;
            }
            answers.cpu_sets.truncate(random.below(257) as usize);
            if let Some(machine) = machine(&answers) {
                assert!(machine.effective_parallelism() >= 1);
                assert!(!machine.allowed().is_empty());
                assert_eq!(Some(machine.limits()), limits(&answers).as_ref());
            }
        }
        assert!(machine(&Answers::default()).is_none());
    }
}
