//! Many waits of one name: how long they are, and what the slow ones have in common.
//!
//! Names are equal if they are without their numbers (`Choreographer#doFrame 77` and `… 78`). What is said of
//! the slow ones is counted and no guess: the mean of a factor over the slowest quarter, less its mean over
//! the others. The factors of a wait sum to its length, so these differences sum to the one between the
//! lengths.

use std::collections::BTreeMap;

use event::{Nanos, Task};

use super::{CauseKind, Segment, Wait, WaitKind};
use crate::Name;
use crate::timeline::{Slice, Timeline};

/// Fewer waits are not many.
pub(super) const LEAST: usize = 8;
/// The slowest part: one of so many.
const SLOW: usize = 4;
/// A factor counts as seen in a wait if it takes this part of the group's median, and the slow ones have it
/// in common if it makes up this part of what they take longer.
const PART: u64 = 20;

/// Waits of one kind, one program and one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The name of the program; where that is not known, of the thread, its numbers as `*`.
    pub program: String,
    /// The name of the waits, its numbers as `*`.
    pub name: String,
    /// Their kind.
    pub kind: WaitKind,
    /// The lengths of all of them, the shortest first.
    pub lengths: Vec<Nanos>,
    /// What held them up.
    pub factors: Vec<Factor>,
    /// Those that were explained, in the order of waits; so many that all of them are mostly.
    pub members: Vec<Member>,
}

/// Something that holds waits up, as it can be found again in another recording.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Factor {
    /// The kind of cause; [`CauseKind::WakeLatency`] counts as [`CauseKind::Preempted`].
    pub kind: CauseKind,
    /// The thread on the path.
    pub who: Role,
    /// The kernel's function in which it slept.
    pub function: Option<String>,
    /// The innermost slice in which it did not run, its numbers as `*`.
    pub within: Option<String>,
}

/// A thread by its part in a wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The thread that waits.
    Itself,
    /// Another one, by its name, with its numbers as `*`.
    Named(String),
    /// It is not known.
    Unknown,
}

/// One wait of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its length.
    pub length: Nanos,
    /// Its factors, by position, each once; they sum to its length.
    pub parts: Vec<(u32, Nanos)>,
}

/// The slow waits of a group beside the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    /// How many are slow: the slowest quarter.
    pub slow: usize,
    /// How many others there are.
    pub others: usize,
    /// How much longer the slow ones are on average.
    pub longer: Nanos,
    /// What they have in common, the most first: factors that make up a twentieth of that, or more.
    pub in_common: Vec<InCommon>,
}

/// A factor that slow waits have more of than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InCommon {
    /// Its position in [`Group::factors`].
    pub factor: usize,
    /// How much more of it the slow ones have on average.
    pub more: Nanos,
    /// In how many of the slow ones it takes a twentieth of the group's median, or more; and its mean there.
    pub slow: (usize, Nanos),
    /// The same of the others.
    pub others: (usize, Nanos),
}

impl Group {
    /// The length that this share of the waits does not exceed: 0.5 is the median.
    pub fn quantile(&self, share: f64) -> Nanos {
        let rank = (self.lengths.len() as f64 * share).ceil() as usize;
        let at = rank.clamp(1, self.lengths.len().max(1)) - 1;
        self.lengths.get(at).copied().unwrap_or_default()
    }

    /// What the slowest quarter has in common. None: too few were explained.
    pub fn slow(&self) -> Option<Slow> {
        if self.members.len() < LEAST {
            return None;
        }
        let mut members: Vec<&Member> = self.members.iter().collect();
        members.sort_by_key(|member| std::cmp::Reverse(member.length));
        let (slow, others) = members.split_at(members.len().div_ceil(SLOW));
        let mean =
            |some: &[&Member]| some.iter().map(|one| one.length.0).sum::<u64>() / some.len() as u64;
        let longer = mean(slow) - mean(others);
        let least = self.quantile(0.5).0 / PART;
        let (of_slow, of_others) = (self.seen(slow, least), self.seen(others, least));
        let pairs = of_slow.iter().zip(&of_others).enumerate();
        let in_common = pairs.filter_map(|(factor, (&slow, &others))| {
            let more = slow.1.0.checked_sub(others.1.0)?;
            (more > 0 && more * PART >= longer).then_some(InCommon {
                factor,
                more: Nanos(more),
                slow,
                others,
            })
        });
        let mut in_common: Vec<InCommon> = in_common.collect();
        in_common.sort_by_key(|one| std::cmp::Reverse(one.more));
        Some(Slow {
            slow: slow.len(),
            others: others.len(),
            longer: Nanos(longer),
            in_common,
        })
    }

    /// By factor: in how many waits it takes so long, and its mean over all of them.
    fn seen(&self, members: &[&Member], least: u64) -> Vec<(usize, Nanos)> {
        let mut seen = vec![(0, Nanos::ZERO); self.factors.len()];
        for (factor, ns) in members.iter().flat_map(|member| &member.parts) {
            if let Some(seen) = seen.get_mut(*factor as usize) {
                seen.0 += usize::from(ns.0 > 0 && ns.0 >= least);
                seen.1 += *ns;
            }
        }
        for seen in &mut seen {
            seen.1.0 /= members.len().max(1) as u64;
        }
        seen
    }
}

/// A factor in one recording.
type FactorKey = (CauseKind, Option<Task>, Option<Name>, Option<Name>);

/// The positions of factors: as they are in this recording, and whether of the thread that waits; and as they
/// are in any.
#[derive(Default)]
struct KnownFactors {
    here: BTreeMap<(FactorKey, bool), u32>,
    anywhere: BTreeMap<Factor, u32>,
}

/// The groups while they are made.
pub(super) struct Groups<'t> {
    timeline: &'t Timeline,
    positions: BTreeMap<(String, String, WaitKind), usize>,
    groups: Vec<Group>,
    /// By group: the positions of its factors.
    known: Vec<KnownFactors>,
}

impl<'t> Groups<'t> {
    pub(super) fn new(timeline: &'t Timeline) -> Groups<'t> {
        Groups {
            timeline,
            positions: BTreeMap::new(),
            groups: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Adds a wait, and its account if there is one. Sleeps and turns have no names, and so no groups.
    pub(super) fn add(
        &mut self,
        (task, kind, length): (Task, WaitKind, Nanos),
        name: &str,
        wait: Option<&Wait>,
    ) {
        if !kind.is_named() {
            return;
        }
        let thread = self.timeline.name(task);
        let program = self.timeline.program(task);
        let program = program.map_or_else(|| without_numbers(&thread), str::to_owned);
        // Frames of the frame timeline say behind a comma how they were late.
        let name = match name.split_once(", ") {
            Some((name, _)) if name.starts_with("frame timeline ") => name,
            _ => name,
        };
        let name = without_numbers(name);
        let key = (program, name, kind);
        let at = match self.positions.get(&key) {
            Some(at) => *at,
            None => {
                let (program, name, kind) = key.clone();
                self.positions.insert(key, self.groups.len());
                self.known.push(KnownFactors::default());
                self.groups.push(Group {
                    program,
                    name,
                    kind,
                    lengths: Vec::new(),
                    factors: Vec::new(),
                    members: Vec::new(),
                });
                self.groups.len() - 1
            }
        };
        self.groups[at].lengths.push(length);
        if let Some(wait) = wait {
            let mut sums: BTreeMap<u32, Nanos> = BTreeMap::new();
            for segment in &wait.segments {
                *sums.entry(self.factor(at, wait, segment)).or_default() += segment.length();
            }
            self.groups[at].members.push(Member {
                length: wait.length(),
                parts: sums.into_iter().collect(),
            });
        }
    }

    /// The position of a segment's factor in a group.
    fn factor(&mut self, group: usize, wait: &Wait, segment: &Segment) -> u32 {
        let kind = match segment.kind {
            CauseKind::WakeLatency => CauseKind::Preempted,
            kind => kind,
        };
        let is_itself = segment.thread == Some(wait.thread);
        let within = self.within(wait, segment);
        let key = ((kind, segment.thread, segment.function, within), is_itself);
        let known = &mut self.known[group];
        if let Some(at) = known.here.get(&key) {
            return *at;
        }
        let timeline = self.timeline;
        let word = |name: Name| timeline.recording().names.word(name);
        let factor = Factor {
            kind,
            who: match segment.thread {
                _ if is_itself => Role::Itself,
                Some(task) => Role::Named(without_numbers(&timeline.name(task))),
                None => Role::Unknown,
            },
            function: segment.function.map(|name| word(name).to_owned()),
            within: within.map(|name| without_numbers(word(name))),
        };
        let list = &mut self.groups[group].factors;
        let at = *known.anywhere.entry(factor.clone()).or_insert_with(|| {
            list.push(factor);
            list.len() as u32 - 1
        });
        known.here.insert(key, at);
        at
    }

    /// The innermost slice, inside of the wait, in which its thread did not run.
    fn within(&self, wait: &Wait, segment: &Segment) -> Option<Name> {
        let task = segment.thread.filter(|_| !segment.kind.is_run())?;
        let mut path = self.timeline.path(task, segment.end);
        let is_itself = task == wait.thread;
        let whole = (wait.begin, wait.end);
        let is_inside =
            |slice: &Slice| slice.begin >= wait.begin && (slice.begin, slice.end) != whole;
        path.retain(|slice| !is_itself || is_inside(slice));
        path.last().map(|slice| slice.name)
    }

    /// The groups of many waits, in the order of their worst ones.
    pub(super) fn finish(self) -> Vec<Group> {
        let mut groups = self.groups;
        groups.retain(|group| group.lengths.len() >= LEAST);
        for group in &mut groups {
            group.lengths.sort_unstable();
        }
        groups
    }
}

/// A name with `*` in place of each of its numbers, so that it is a pattern of all like it.
///
/// ```
/// use paceline_trace::explain::without_numbers;
/// assert_eq!(without_numbers("Choreographer#doFrame 123"), "Choreographer#doFrame *");
/// ```
pub fn without_numbers(name: &str) -> String {
    let mut told = String::new();
    let mut digits = false;
    for letter in name.trim().chars() {
        let is_digit = letter.is_ascii_digit();
        if !is_digit {
            told.push(letter);
        } else if !digits {
            told.push('*');
        }
        digits = is_digit;
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(members: &[&[u64]]) -> Group {
        let factor = |within: Option<&str>| Factor {
            kind: CauseKind::Running,
            who: Role::Itself,
            function: None,
            within: within.map(str::to_owned),
        };
        let member = |parts: &&[u64]| Member {
            length: Nanos(parts.iter().sum()),
            parts: parts
                .iter()
                .zip(0..)
                .map(|(ns, at)| (at, Nanos(*ns)))
                .collect(),
        };
        let members: Vec<Member> = members.iter().map(member).collect();
        let mut lengths: Vec<Nanos> = members.iter().map(|member| member.length).collect();
        lengths.sort_unstable();
        Group {
            program: "game".to_owned(),
            name: "frame *".to_owned(),
            kind: WaitKind::Frame,
            lengths,
            factors: vec![factor(None), factor(Some("a")), factor(Some("b"))],
            members,
        }
    }

    /// Goal: what slow waits have in common is counted, and sums to what they take longer. Method: eight
    /// waits by hand, of which the two slowest have 300 of the second factor; one other has a little of it,
    /// and all have the third.
    #[test]
    fn differences_are_counted() {
        let group = group(&[
            &[100, 0, 20],
            &[120, 300, 20],
            &[100, 20, 20],
            &[100, 0, 20],
            &[100, 0, 20],
            &[120, 300, 20],
            &[100, 0, 20],
            &[100, 0, 20],
        ]);
        let quantiles = [0.5, 0.9, 1.0].map(|share| group.quantile(share).0);
        assert_eq!(quantiles, [120, 440, 440]);
        let slow = group.slow().unwrap();
        assert_eq!(
            (slow.slow, slow.others, slow.longer),
            (2, 6, Nanos(440 - 123))
        );
        let found = slow.in_common.iter().map(|one| (one.factor, one.more.0));
        assert_eq!(found.collect::<Vec<_>>(), [(1, 297), (0, 20)]);
        let most = slow.in_common[0];
        assert_eq!((most.slow, most.others), ((2, Nanos(300)), (1, Nanos(3))));
    }

    /// Goal: few waits have nothing in common, and names are patterns. Method: seven waits; some names.
    #[test]
    fn few_are_no_group() {
        assert_eq!(group(&[&[1, 2, 3][..]; 7]).slow(), None);
        assert!(
            group(&[&[1, 2, 3][..]; 8])
                .slow()
                .unwrap()
                .in_common
                .is_empty()
        );
        for (name, pattern) in [
            ("Choreographer#doFrame 123", "Choreographer#doFrame *"),
            ("Binder:990_1", "Binder:*_*"),
            ("lock bus", "lock bus"),
            (" 7 ", "*"),
        ] {
            assert_eq!(without_numbers(name), pattern);
        }
    }
}
