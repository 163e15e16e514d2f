//! Which CPUs are equally fast.
//!
//! Witnesses are asked in a fixed order, and the first one that tells CPUs apart decides. All values equal
//! is no information and not "uniform": a kernel without data says 1024 of every CPU. Values are cut where
//! two neighbours are far apart, never by their distance from the fastest or slowest, so favoured cores (2
//! to 10 %) stay together and a prime core (14 % and more) does not.
//!
//! A CPU about which the witness says nothing is put with those of its kind, of its clock, or of its
//! package, and else with the most: it is never left out.

use std::collections::{BTreeMap, BTreeSet};

use super::cpuinfo::Core;
use super::reader::Reader;
use super::speeds::{Speed, read_base_frequencies};
use crate::CpuSet;
use crate::topology::{Confidence, Witness};

/// Neighbouring values belong together up to this many percent of the lower one.
const TOGETHER: u64 = 112;
/// Values of two kinds of cores, whose frequencies would not differ for favour, belong together up to this
/// many. Snapdragon 821 has two kinds at 2.19 and 2.34 GHz. Snapdragon 8 Gen 2 has two at the same frequency,
/// which are one class.
const TOGETHER_OTHERS: u64 = 105;

/// What came out: CPUs by class, slow to fast, with what one of them can do.
pub(super) struct Classes {
    pub(super) sets: Vec<(CpuSet, Option<u32>)>,
    pub(super) witness: Witness,
    pub(super) confidence: Confidence,
}

/// Finds the classes of the CPUs whose speeds were read.
pub(super) fn find(reader: &mut Reader<'_>, speeds: &mut [Speed]) -> Classes {
    let all: CpuSet = speeds.iter().map(|speed| speed.cpu).collect();
    let Some((witness, ranks)) = ask(reader, speeds, &all) else {
        return Classes {
            sets: vec![(all, None)],
            witness: Witness::Nothing,
            confidence: Confidence::High,
        };
    };
    let ranks = fill(reader, speeds, ranks);
    let mut sets = BTreeMap::<usize, CpuSet>::new();
    for (&cpu, &rank) in &ranks {
        sets.entry(rank).or_default().insert(cpu);
    }
    let sets: Vec<CpuSet> = sets.into_values().collect();
    let confidence = contradiction(witness, speeds, &sets).map_or(Confidence::High, |note| {
        reader.notes.add(note);
        Confidence::Low
    });
    let capacities = capacities(speeds, &sets);
    Classes {
        sets: sets.into_iter().zip(capacities).collect(),
        witness,
        confidence,
    }
}

/// Each CPU's class as a number, larger for faster ones, as the first witness has it that tells any apart.
type Ranks = BTreeMap<u32, usize>;

fn ask(reader: &mut Reader<'_>, speeds: &mut [Speed], all: &CpuSet) -> Option<(Witness, Ranks)> {
    let answer = |witness, ranks: Ranks| {
        let distinct: BTreeSet<&usize> = ranks.values().collect();
        (distinct.len() > 1).then_some((witness, ranks))
    };
    let counters = by_counters(reader, speeds, all);
    let upper_alone = counters.len() == all.len() && counters.values().all(|&rank| rank >= 2);
    if let Some(found) = answer(Witness::Counters, counters) {
        return Some(found);
    }
    if upper_alone {
        return None;
    }
    let capacity = cut(speeds, |speed| speed.capacity, |_| None);
    if let Some(found) = answer(Witness::Capacity, capacity) {
        return Some(found);
    }
    let is_arm = speeds.iter().any(|speed| speed.core.is_some());
    let frequency = |speeds: &[Speed]| {
        let weighted = weighted_frequencies(speeds);
        let value = |speed: &Speed| weighted.get(&speed.cpu).copied();
        cut(speeds, value, |speed| speed.core)
    };
    if is_arm && let Some(found) = answer(Witness::Frequency, frequency(speeds)) {
        return Some(found);
    }
    let perf = cut(speeds, |speed| speed.highest_perf, |_| None);
    if let Some(found) = answer(Witness::HighestPerf, perf) {
        return Some(found);
    }
    read_base_frequencies(reader, speeds);
    let base = cut(speeds, |speed| speed.base_khz, |_| None);
    if let Some(found) = answer(Witness::BaseFrequency, base) {
        return Some(found);
    }
    answer(Witness::Frequency, frequency(speeds))
}

/// Intel's hybrids have counters for each kind of core, with lists of their CPUs. The lower cores are of
/// two kinds if their frequencies are; the upper ones never are (some are favoured).
fn by_counters(reader: &mut Reader<'_>, speeds: &[Speed], all: &CpuSet) -> Ranks {
    let mut list = |name: &str| {
        let list = reader.list(&format!("sys/devices/{name}/cpus"));
        list.unwrap_or_default().intersection(all)
    };
    let (upper, lower, lowest) = (list("cpu_core"), list("cpu_atom"), list("cpu_lowpower"));
    let of = |set: &CpuSet| -> Vec<Speed> {
        let speeds = speeds.iter().filter(|speed| set.contains(speed.cpu));
        speeds.cloned().collect()
    };
    let mut ranks = Ranks::new();
    ranks.extend(lowest.iter().map(|cpu| (cpu, 0)));
    let lower_speeds = of(&lower);
    let split = cut(&lower_speeds, |speed| speed.max_khz, |_| None);
    let steps = split.values().max().copied().unwrap_or(0);
    for cpu in lower.iter() {
        ranks.insert(cpu, 1 + split.get(&cpu).copied().unwrap_or(steps));
    }
    ranks.extend(upper.iter().map(|cpu| (cpu, 2 + steps)));
    ranks
}

/// Ranks by values: a new class begins where a value is more than [`TOGETHER`] above the next lower one, or
/// [`TOGETHER_OTHERS`] if it is of another kind of core. CPUs without a value have no rank.
fn cut(
    speeds: &[Speed],
    value: impl Fn(&Speed) -> Option<u64>,
    kind: impl Fn(&Speed) -> Option<Core>,
) -> Ranks {
    let mut values: Vec<(u64, Option<Core>, u32)> = speeds
        .iter()
        .filter_map(|speed| Some((value(speed)?, kind(speed), speed.cpu)))
        .collect();
    values.sort_unstable();
    let mut rank = 0;
    let mut before = values.first().map(|&(value, kind, _)| (value, kind));
    let mut ranks = Ranks::new();
    for (value, kind, cpu) in values {
        let is_same_kind = before.is_some_and(|before| before.1 == kind);
        let limit = if is_same_kind {
            TOGETHER
        } else {
            TOGETHER_OTHERS
        };
        rank += usize::from(before.is_some_and(|before| is_above(value, before.0, limit)));
        before = Some((value, kind));
        ranks.insert(cpu, rank);
    }
    ranks
}

/// Whether a value is more than so many percent of a lower one.
fn is_above(value: u64, lower: u64, percent: u64) -> bool {
    u128::from(value) * 100 > u128::from(lower) * u128::from(percent)
}

/// Highest frequencies, weighted by what each kind of core does at one if all kinds are known. Without any
/// frequency the kinds alone.
fn weighted_frequencies(speeds: &[Speed]) -> BTreeMap<u32, u64> {
    let khz = complete_frequencies(speeds);
    let kinds_known = speeds.iter().all(|speed| speed.core.is_some());
    let weight = |speed: &Speed| match speed.core {
        Some(core) if kinds_known => core.weight(),
        _ => 1,
    };
    let value = |speed: &Speed| {
        if khz.is_empty() {
            return Some(weight(speed));
        }
        Some(khz.get(&speed.cpu)?.saturating_mul(weight(speed)))
    };
    let values = speeds
        .iter()
        .filter_map(|speed| Some((speed.cpu, value(speed)?)));
    values.collect()
}

/// Frequencies with holes filled: from CPUs of the same clock, else of the same kind of core if those agree.
fn complete_frequencies(speeds: &[Speed]) -> BTreeMap<u32, u64> {
    let known = speeds.iter().filter(|speed| speed.max_khz.is_some());
    let known: Vec<&Speed> = known.collect();
    let filled = speeds.iter().filter_map(|speed| {
        let khz = speed.max_khz.or_else(|| {
            let related = |other: &&&Speed| {
                speed
                    .related
                    .as_ref()
                    .is_some_and(|set| set.contains(other.cpu))
            };
            let same_clock = known.iter().find(related).and_then(|other| other.max_khz);
            let same_kind = || {
                let kind = known
                    .iter()
                    .filter(|other| speed.core.is_some() && other.core == speed.core);
                let values: BTreeSet<u64> = kind.filter_map(|other| other.max_khz).collect();
                values.first().copied().filter(|_| values.len() == 1)
            };
            same_clock.or_else(same_kind)
        });
        Some((speed.cpu, khz?))
    });
    filled.collect()
}

/// Gives every CPU a rank: that of its kind of core, of its clock or of its package, where there is only
/// one such rank; else the most frequent one.
fn fill(reader: &mut Reader<'_>, speeds: &[Speed], known: Ranks) -> Ranks {
    let mut ranks = known.clone();
    let mut left = CpuSet::new();
    let mut counts = BTreeMap::<usize, usize>::new();
    for &rank in known.values() {
        *counts.entry(rank).or_default() += 1;
    }
    let majority = counts.iter().max_by_key(|&(&rank, &count)| (count, rank));
    let majority = majority.map_or(0, |(&rank, _)| rank);
    for speed in speeds
        .iter()
        .filter(|speed| !known.contains_key(&speed.cpu))
    {
        let rank_of = |alike: &dyn Fn(&Speed) -> bool| {
            let others = speeds.iter().filter(|other| alike(other));
            let ranks: BTreeSet<usize> = others
                .filter_map(|other| known.get(&other.cpu).copied())
                .collect();
            ranks.first().copied().filter(|_| ranks.len() == 1)
        };
        let kind = rank_of(&|other| speed.core.is_some() && other.core == speed.core);
        let clock = || {
            let related = speed.related.as_ref()?;
            rank_of(&|other| related.contains(other.cpu))
        };
        let package =
            || rank_of(&|other| speed.package.is_some() && other.package == speed.package);
        let rank = kind.or_else(clock).or_else(package);
        if rank.is_none() {
            left.insert(speed.cpu);
        }
        ranks.insert(speed.cpu, rank.unwrap_or(majority));
    }
    if !left.is_empty() {
        let note = format!("nothing says how fast these CPUs are: {left}; counted with the most");
        reader.notes.add(note);
    }
    ranks
}

/// What a witness says of a CPU.
type Value<'a> = &'a dyn Fn(&Speed) -> Option<u64>;

/// Says where another witness has two classes the other way round.
fn contradiction(witness: Witness, speeds: &[Speed], sets: &[CpuSet]) -> Option<String> {
    let weighted = weighted_frequencies(speeds);
    let others: [(Witness, Value<'_>); 3] = [
        (Witness::Capacity, &|speed| speed.capacity),
        (Witness::HighestPerf, &|speed| speed.highest_perf),
        (Witness::Frequency, &|speed| {
            weighted.get(&speed.cpu).copied()
        }),
    ];
    for (other, value) in others.iter().filter(|(other, _)| *other != witness) {
        let of = |set: &CpuSet| -> Vec<u64> {
            let speeds = speeds.iter().filter(|speed| set.contains(speed.cpu));
            speeds.filter_map(value).collect()
        };
        for pair in sets.windows(2) {
            let (slow, fast) = (of(&pair[0]), of(&pair[1]));
            let (Some(slowest), Some(fastest)) = (slow.iter().min(), fast.iter().max()) else {
                continue;
            };
            if is_above(*slowest, *fastest, TOGETHER) {
                let (slow, fast) = (&pair[0], &pair[1]);
                return Some(format!(
                    "CPUs {fast} are faster than {slow} by {witness}, and slower by {other}: classes are \
                     not relied on"
                ));
            }
        }
    }
    None
}

/// What a CPU of each class can do, the fastest 1024: of the first witness that knows every class.
fn capacities(speeds: &[Speed], sets: &[CpuSet]) -> Vec<Option<u32>> {
    let weighted = weighted_frequencies(speeds);
    let values: [Value<'_>; 4] = [
        &|speed| speed.capacity,
        &|speed| speed.highest_perf,
        &|speed| speed.base_khz,
        &|speed| weighted.get(&speed.cpu).copied(),
    ];
    let known = values.into_iter().find_map(|value| {
        let best = |set: &CpuSet| {
            let speeds = speeds.iter().filter(|speed| set.contains(speed.cpu));
            speeds.filter_map(value).max()
        };
        let best: Option<Vec<u64>> = sets.iter().map(best).collect();
        // A witness that sees no difference knows nothing of these classes.
        best.filter(|best| best.windows(2).all(|pair| pair[0] < pair[1]))
    });
    let Some(known) = known else {
        return vec![None; sets.len()];
    };
    let most = u128::from(known.last().copied().unwrap_or(1).max(1));
    let scaled = known
        .into_iter()
        .map(|value| (u128::from(value) * 1024).div_ceil(most));
    scaled.map(|value| u32::try_from(value).ok()).collect()
}
