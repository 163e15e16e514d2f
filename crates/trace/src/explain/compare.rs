//! Two recordings compared: which causes grew, beyond the spread within each of them.
//!
//! Waits of one program and name are compared, wait by wait: the mean of each factor over the waits of one
//! recording, less its mean over those of the other. How far that could be chance follows from the spread
//! within each recording, by a bootstrap: waits are drawn with replacement, from each recording as many as it
//! has, thousands of times; the differences so found, without the outermost ones on both sides, are the
//! interval. Its level is 95 % for all that is compared together (Bonferroni): where nothing changed, one
//! comparison of two recordings in twenty calls something changed.

use event::Nanos;

use super::groups::{Factor, Group, Member};
use super::{Verdict, WaitKind};

/// The part of comparisons in which something may be called changed although nothing did.
const ERROR: f64 = 0.05;
/// Draws that lie outside of the interval on each side, at least.
const OUTSIDE: usize = 5;
/// The least and the most draws.
const DRAWS: (usize, usize) = (2_000, 20_000);
/// Of more waits, so many are drawn from, evenly: the least and the most.
const MEMBERS: (usize, usize) = (100, 2_000);
/// So many numbers are added up, if the least number of waits allows it: about a second of work.
const WORK: usize = 1_000_000_000;
/// A factor is compared if it is one of so many parts of the mean length, or more, in either recording.
const PARTS: u64 = 100;
/// So many groups, the worst first.
const GROUPS_MAX: usize = 24;

/// The waits of one recording against those of another.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Comparison {
    /// The waits that are in both, in the order of the first one's.
    pub groups: Vec<Compared>,
    /// How many groups of the first and of the second have no match, or too few waits.
    pub alone: [usize; 2],
    /// How many lengths and factors were compared.
    pub compared: usize,
    /// How many times was drawn.
    pub draws: usize,
}

impl Comparison {
    /// What grew, with its group: lengths and factors.
    pub fn grew(&self) -> impl Iterator<Item = (&Compared, &Difference)> {
        self.with(Verdict::Grew)
    }

    /// What shrank.
    pub fn shrank(&self) -> impl Iterator<Item = (&Compared, &Difference)> {
        self.with(Verdict::Shrank)
    }

    fn with(&self, verdict: Verdict) -> impl Iterator<Item = (&Compared, &Difference)> {
        let all = self.groups.iter();
        let all = all.flat_map(|group| group.changes.iter().map(move |change| (group, change)));
        all.filter(move |(_, change)| change.verdict == verdict)
    }
}

/// Waits of one name in both recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// As in [`Group`].
    pub program: String,
    /// As in [`Group`].
    pub name: String,
    /// As in [`Group`].
    pub kind: WaitKind,
    /// How many waits, here and there.
    pub count: [usize; 2],
    /// The medians of their lengths.
    pub p50: [Nanos; 2],
    /// That of the length first, then those of factors, the most grown first.
    pub changes: Vec<Difference>,
}

/// How the length of waits, or one of its factors, differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The factor; none: the length.
    pub factor: Option<Factor>,
    /// The means, here and there.
    pub mean: [Nanos; 2],
    /// Their difference in nanoseconds: how much more there is here.
    pub change: i64,
    /// The interval of that difference.
    pub interval: [i64; 2],
    /// What follows.
    pub verdict: Verdict,
}

/// A pair of groups, with the factors that are compared.
struct Pair<'a> {
    groups: [&'a Group; 2],
    factors: Vec<Factor>,
}

/// Compares the waits of a recording with those of another one.
///
/// Costs some thousand draws of the waits, of some of them where there are very many: mostly less than a
/// second. The result depends on the groups alone.
///
/// ```
/// # use event::{Cpu, KernelEvent, KernelEventKind, Left, Nanos, Task};
/// # use paceline_trace::explain::{Selection, compare, explain};
/// # use paceline_trace::timeline::{Options, Timeline};
/// # use paceline_trace::{Mark, MarkKind, Origin, Recording, Thread};
/// // Twenty frames, each of which runs for this long.
/// let recording = |length: u64| {
///     let mut recording = Recording::default();
///     recording.threads.push(Thread::new(Task(0), "main", None));
///     let run = KernelEventKind::Switch { prev: None, state: Left::Sleeping, next: Some(Task(0)) };
///     recording.kernel.push(KernelEvent { time: Nanos(0), cpu: Cpu(0), what: run });
///     for frame in 0..20 {
///         let name = recording.names.number(&format!("frame {frame}"));
///         let mark = |time, what| Mark { time: Nanos(time), on: Task(0), what };
///         let (begin, end) = (frame * 1_000, frame * 1_000 + length);
///         recording.marks.push(mark(begin, MarkKind::Begin(name)));
///         recording.marks.push(mark(end, MarkKind::End));
///     }
///     explain(&Timeline::new(recording, &Options::default()), &Selection::default()).groups
/// };
/// let (before, after) = (recording(300), recording(400));
/// let grew = compare(&after, &before);
/// assert_eq!(grew.groups[0].changes[0].change, 100);
/// assert_eq!(grew.grew().count(), 2, "the length, and that main ran");
/// assert_eq!(compare(&before, &before).grew().count(), 0);
/// ```
pub fn compare(here: &[Group], there: &[Group]) -> Comparison {
    let is_same =
        |a: &Group, b: &Group| (&a.program, &a.name, a.kind) == (&b.program, &b.name, b.kind);
    let enough = |group: &&Group| group.members.len() >= super::groups::LEAST;
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    for group in here.iter().filter(enough) {
        let other = there
            .iter()
            .filter(enough)
            .find(|other| is_same(group, other));
        if let Some(other) = other.filter(|_| pairs.len() < GROUPS_MAX) {
            let groups = [group, other];
            pairs.push(Pair {
                groups,
                factors: factors(groups),
            });
        }
    }
    let compared: usize = pairs.iter().map(|pair| 1 + pair.factors.len()).sum();
    let tail = ERROR / 2.0 / compared.max(1) as f64;
    let draws = (OUTSIDE as f64 / tail).ceil() as usize;
    let draws = draws.clamp(DRAWS.0, DRAWS.1);
    let outside = (draws as f64 * tail) as usize;
    let members = members(&pairs, draws);
    Comparison {
        alone: [here.len() - pairs.len(), there.len() - pairs.len()],
        groups: pairs
            .iter()
            .map(|pair| pair.compare((draws, outside), members))
            .collect(),
        compared,
        draws,
    }
}

/// Of how many waits of each group to draw, so that it is not too much work.
fn members(pairs: &[Pair<'_>], draws: usize) -> usize {
    let mut members = MEMBERS.1;
    while members > MEMBERS.0 && work(pairs, draws, members) > WORK {
        members = (members / 2).max(MEMBERS.0);
    }
    members
}

/// How many numbers are added up in so many draws of so many waits of each group.
fn work(pairs: &[Pair<'_>], draws: usize, members: usize) -> usize {
    let groups = pairs.iter().flat_map(|pair| pair.groups);
    let numbers = groups.map(|group| {
        let all: usize = group.members.iter().map(|one| 1 + one.parts.len()).sum();
        let count = group.members.len().max(1);
        all.div_ceil(count) * count.min(members)
    });
    numbers.sum::<usize>().saturating_mul(draws)
}

/// The factors of two groups that are no small part of the length in one of them.
fn factors(groups: [&Group; 2]) -> Vec<Factor> {
    let mut factors: Vec<Factor> = Vec::new();
    for group in groups {
        let whole: u64 = group.members.iter().map(|member| member.length.0).sum();
        let mut sums = vec![0; group.factors.len()];
        for (factor, ns) in group.members.iter().flat_map(|member| &member.parts) {
            sums[*factor as usize] += ns.0;
        }
        let large = group.factors.iter().zip(sums);
        let large = large.filter(|(_, sum)| *sum > 0 && sum.saturating_mul(PARTS) >= whole);
        factors.extend(large.map(|(factor, _)| factor.clone()));
    }
    factors.sort_unstable();
    factors.dedup();
    factors
}

impl Pair<'_> {
    fn compare(&self, (draws, outside): (usize, usize), members: usize) -> Compared {
        let [here, there] = self.groups;
        let rows = self.groups.map(|group| self.rows(group, members));
        let exact = [0, 1].map(|side| mean(&rows[side], self.width(), |at| at));
        let mut random = Random(1);
        let mut differences = vec![Vec::with_capacity(draws); self.width()];
        for _ in 0..draws {
            let [a, b] = [0, 1].map(|side| {
                let count = rows[side].len();
                mean(&rows[side], self.width(), |_| random.below(count))
            });
            for (column, list) in differences.iter_mut().enumerate() {
                list.push(a[column] - b[column]);
            }
        }
        let change = |(column, mut drawn): (usize, Vec<f64>)| {
            drawn.sort_unstable_by(f64::total_cmp);
            let mean = [0, 1].map(|side| exact[side][column]);
            let interval = [drawn[outside], drawn[drawn.len() - 1 - outside]];
            let change = mean[0] - mean[1];
            Difference {
                factor: column.checked_sub(1).map(|at| self.factors[at].clone()),
                mean: mean.map(|mean| Nanos(mean.round() as u64)),
                change: change.round() as i64,
                interval: interval.map(|end| end.round() as i64),
                verdict: match interval {
                    [low, _] if low > 0.0 && change > 0.0 => Verdict::Grew,
                    [_, high] if high < 0.0 && change < 0.0 => Verdict::Shrank,
                    _ => Verdict::Same,
                },
            }
        };
        let mut changes: Vec<Difference> =
            differences.into_iter().enumerate().map(change).collect();
        changes[1..].sort_by_key(|change| std::cmp::Reverse(change.change));
        Compared {
            program: here.program.clone(),
            name: here.name.clone(),
            kind: here.kind,
            count: [here, there].map(|group| group.lengths.len()),
            p50: [here, there].map(|group| group.quantile(0.5)),
            changes,
        }
    }

    /// The length, and the factors.
    fn width(&self) -> usize {
        1 + self.factors.len()
    }

    /// For each wait what it has in each column; of very many waits, some.
    fn rows(&self, group: &Group, members: usize) -> Vec<Vec<(usize, f64)>> {
        let columns = group.factors.iter();
        let columns = columns.map(|factor| self.factors.binary_search(factor).ok());
        let columns: Vec<Option<usize>> = columns.collect();
        let row = |member: &Member| {
            let parts = member.parts.iter();
            let parts = parts
                .filter_map(|(factor, ns)| Some((1 + columns[*factor as usize]?, ns.0 as f64)));
            std::iter::once((0, member.length.0 as f64))
                .chain(parts)
                .collect()
        };
        let step = group.members.len().div_ceil(members).max(1);
        group.members.iter().step_by(step).map(row).collect()
    }
}

/// The mean of each column over as many rows as there are, which `choose` chooses.
fn mean(
    rows: &[Vec<(usize, f64)>],
    width: usize,
    mut choose: impl FnMut(usize) -> usize,
) -> Vec<f64> {
    let mut sums = vec![0.0; width];
    for at in 0..rows.len() {
        for (column, value) in &rows[choose(at)] {
            sums[*column] += value;
        }
    }
    for sum in &mut sums {
        *sum /= rows.len().max(1) as f64;
    }
    sums
}

/// SplitMix64: the same numbers each time.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * most as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::CauseKind;
    use super::super::groups::Role;
    use super::*;

    fn factor(within: &str) -> Factor {
        Factor {
            kind: CauseKind::Blocked,
            who: Role::Itself,
            function: None,
            within: Some(within.to_owned()),
        }
    }

    /// Waits with these parts: what always takes the same time, what comes and goes, what is random.
    fn group(count: usize, seed: u64, more: u64) -> Group {
        let mut random = Random(seed);
        let mut members = Vec::new();
        for _ in 0..count {
            let noise = random.below(1_000) as u64;
            let rare = if random.below(50) == 0 { 20_000 } else { 0 };
            let parts = [
                (0, Nanos(10_000 + more)),
                (1, Nanos(rare)),
                (2, Nanos(5_000 + noise)),
            ];
            members.push(Member {
                length: Nanos(parts.iter().map(|(_, ns)| ns.0).sum()),
                parts: parts.to_vec(),
            });
        }
        let mut lengths: Vec<Nanos> = members.iter().map(|member| member.length).collect();
        lengths.sort_unstable();
        Group {
            program: "game".to_owned(),
            name: "frame *".to_owned(),
            kind: WaitKind::Frame,
            lengths,
            factors: ["steady", "rare", "noise"].map(factor).to_vec(),
            members,
        }
    }

    /// Goal: nothing is called changed that is not, more often than said. Method: 60 pairs of groups from one
    /// distribution, one factor of which is rare and large; at a level of 95 % three pairs are expected, and
    /// nine would be far too many. The same group twice never changes.
    #[test]
    fn chance_is_no_change() {
        let mut wrong = 0;
        for seed in 0..60 {
            let (a, b) = (group(100, 2 * seed + 1, 0), group(120, 2 * seed + 2, 0));
            let told = compare(std::slice::from_ref(&a), std::slice::from_ref(&b));
            let changes = told.groups[0].changes.iter();
            wrong += usize::from(changes.clone().any(|one| one.verdict != Verdict::Same));
            let same = compare(std::slice::from_ref(&a), std::slice::from_ref(&a));
            let mut same = same.groups[0].changes.iter();
            assert!(same.all(|one| one.verdict == Verdict::Same && one.change == 0));
        }
        assert!(wrong < 9, "{wrong} of 60");
    }

    /// Goal: what grew is found, by how much, and in the other direction it shrank; what is beside it did not
    /// change. Method: a factor that is 500 ns longer, less than the noise of each wait.
    #[test]
    fn growth_is_found_beside_noise() {
        let (before, after) = (group(200, 1, 0), group(180, 2, 500));
        let told = compare(std::slice::from_ref(&after), std::slice::from_ref(&before));
        let grew: Vec<_> = told.grew().map(|(_, change)| change).collect();
        let [steady] = grew[..] else {
            panic!("{grew:?}");
        };
        assert_eq!(steady.factor.as_ref(), Some(&factor("steady")));
        assert_eq!(
            (steady.change, steady.mean),
            (500, [Nanos(10_500), Nanos(10_000)])
        );
        assert_eq!(steady.interval, [500, 500]);
        let back = compare(std::slice::from_ref(&before), std::slice::from_ref(&after));
        let mut shrunk = back.groups[0].changes.iter();
        assert!(shrunk.any(|one| one.verdict == Verdict::Shrank && one.change == -500));
        assert_eq!(back.grew().count(), 0);
    }

    /// Goal: very many waits of many names take no more work than is allowed, and growth is still found.
    /// Method: the work is counted, not timed: 24 names with 3000 waits each, once with few and once with
    /// many causes, where the least number of waits is more work; and one of these names compared.
    #[test]
    fn the_work_is_bounded() {
        let large = group(3_000, 1, 0);
        let mut wide = large.clone();
        for member in &mut wide.members {
            member.parts = vec![(0, Nanos(10)); 200];
        }
        for (group, is_least) in [(&large, false), (&wide, true)] {
            let pair = || Pair {
                groups: [group; 2],
                factors: Vec::new(),
            };
            let pairs: Vec<Pair<'_>> = (0..24).map(|_| pair()).collect();
            let members = members(&pairs, DRAWS.1);
            let is_within = work(&pairs, DRAWS.1, members) <= WORK;
            assert_eq!((is_within, members == MEMBERS.0), (!is_least, is_least));
            assert!(members < MEMBERS.1);
        }
        let more = group(3_000, 2, 500);
        let told = compare(std::slice::from_ref(&more), std::slice::from_ref(&large));
        assert!(told.grew().any(|(_, change)| change.change == 500));
    }

    /// Goal: groups without a match, or with too few waits, are counted. Method: another name, seven waits.
    #[test]
    fn what_has_no_match_is_counted() {
        let other = Group {
            name: "other".to_owned(),
            ..group(20, 1, 0)
        };
        let told = compare(&[group(20, 1, 0), other], &[group(7, 1, 0)]);
        assert_eq!((told.alone, told.groups.len()), ([2, 1], 0));
    }
}
