//! The runs: the recording as it was, and with each change, under several seeds.

use std::collections::{BTreeMap, BTreeSet};

use console::{Failure, Progress};
use event::{Nanos, Task};
use replay::{BadChange, BuildOptions, Change, Difference, Played, Program, ProgramThread, play};
use trace::explain::Wait;

use super::super::alike::alike;
use super::super::arguments::DiagnoseArguments;
use crate::commands::accounts::{Account, starred};
use crate::commands::simulate::library;

/// A wait of at least this length is a long one: of shorter ones a good part is the kernel's own time, of
/// which a recording tells little.
const LONG: Nanos = Nanos::from_millis(1);

/// What happened to a length under several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trial {
    pub(super) median: Nanos,
    pub(super) least: Nanos,
    pub(super) most: Nanos,
}

/// The results of a program under several seeds.
pub(super) struct Trials {
    /// By wait; none: in most runs it did not come to its end.
    pub(super) waits: Vec<Option<Trial>>,
    /// By wait and seed; none: it did not come to its end.
    pub(super) draws: Vec<Vec<Option<Nanos>>>,
    /// By thread: how long it ran, in the median.
    pub(super) ran: Vec<Nanos>,
    /// The part of the CPU time that went to other threads than in the recording.
    pub(super) share_error: f64,
    /// The run of seed 0.
    first: Played,
}

/// A change and its results.
pub(super) struct Tried {
    pub(super) text: String,
    pub(super) trials: Trials,
}

/// A wait that is asked about.
pub(super) struct Asked {
    /// Its position in the explanation.
    pub(super) at: usize,
    /// As it was.
    pub(super) replayed: Option<Trial>,
    /// How far that is from the recording, as a part of that.
    pub(super) error: Option<f64>,
    /// Why there is no answer.
    pub(super) refused: Option<&'static str>,
    pub(super) difference: Option<Difference>,
}

pub(super) struct Study<'a> {
    pub(super) account: &'a Account,
    pub(super) program: Program,
    pub(super) seeds: u64,
    /// The recording as it was.
    pub(super) before: Trials,
    pub(super) asked: Vec<Asked>,
    /// Waits of one thread and one name.
    pub(super) groups: Vec<GroupOfWaits>,
    pub(super) tried: Vec<Tried>,
}

/// Waits of one thread and one name: a change may shift which of them is long, and the mean is still told.
pub(super) struct GroupOfWaits {
    pub(super) thread: String,
    /// With `*` for numbers.
    pub(super) name: String,
    /// Their positions in the explanation.
    pub(super) waits: Vec<usize>,
}

/// The groups with enough waits, the most time first.
fn groups(account: &Account) -> Vec<GroupOfWaits> {
    const WAITS_MIN: usize = 8;
    let mut found: BTreeMap<(Task, String), Vec<usize>> = BTreeMap::new();
    for (at, wait) in account.explanation.waits.iter().enumerate() {
        let name = starred(&wait.name);
        found.entry((wait.thread, name)).or_default().push(at);
    }
    let many = found
        .into_iter()
        .filter(|(_, waits)| waits.len() >= WAITS_MIN);
    let mut groups: Vec<_> = many
        .map(|((thread, name), waits)| GroupOfWaits {
            thread: account.name_of(thread),
            name,
            waits,
        })
        .collect();
    let all = |group: &GroupOfWaits| -> u64 {
        let waits = &account.explanation.waits;
        group.waits.iter().map(|&at| waits[at].length().0).sum()
    };
    groups.sort_by_key(|group| std::cmp::Reverse(all(group)));
    groups
}

/// How far a length is from the recorded one, as a part of that.
pub(super) fn error(recorded: Nanos, was: Nanos) -> f64 {
    was.0.abs_diff(recorded.0) as f64 / recorded.0.max(1) as f64
}

/// Why a length that stands for many has no answer: recorded, as it was, and with a change.
pub(super) fn refused([recorded, was, _]: [Nanos; 3]) -> Option<&'static str> {
    (error(recorded, was) > replay::TRUSTED).then_some("the replay is too far off")
}

/// Means of waits: recorded, as they were, and with a change.
pub(super) struct Means {
    pub(super) of: [Nanos; 3],
    /// The standard error of the first and of the last, as a part of it.
    unsure: [f64; 2],
}

impl Means {
    /// A mean is not told if its standard error is more than this part of it: then a few long waits carry it,
    /// and another recording has another one.
    const UNSURE_MAX: f64 = 0.2;

    fn of(lengths: &[[Nanos; 3]]) -> Means {
        let count = lengths.len().max(1) as f64;
        let mean = |which: usize| {
            let sum: f64 = lengths.iter().map(|of| of[which].0 as f64).sum();
            sum / count
        };
        let unsure = |which: usize| {
            let mean = mean(which);
            let squares = lengths.iter().map(|of| (of[which].0 as f64 - mean).powi(2));
            let spread = (squares.sum::<f64>() / (count - 1.0).max(1.0)).sqrt();
            spread / count.sqrt() / mean.max(1.0)
        };
        Means {
            of: [0, 1, 2].map(|which| Nanos(mean(which) as u64)),
            unsure: [unsure(0), unsure(2)],
        }
    }

    pub(super) fn refused(&self) -> Option<&'static str> {
        let is_unsure = self.unsure.iter().any(|part| *part > Means::UNSURE_MAX);
        refused(self.of).or(is_unsure.then_some("a few long waits carry the mean"))
    }
}

/// The median, of two in the middle the longer one.
fn median(lengths: impl Iterator<Item = Nanos>) -> Nanos {
    let mut lengths: Vec<Nanos> = lengths.collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied().unwrap_or_default()
}

impl<'a> Study<'a> {
    /// The medians of a group: recorded, as it was, and with a change. None: half of the waits do not end. A
    /// few waits at the beginning or the end of a recording, or an outlier, change nothing in them.
    pub(super) fn medians(&self, group: &GroupOfWaits, with: &Trials) -> Option<[Nanos; 3]> {
        let waits = &self.account.explanation.waits;
        let median_of = |trials: &Trials| {
            let lengths = group.waits.iter().map(|&at| trials.waits[at]);
            median(lengths.map(|length| length.map_or(Nanos::MAX, |length| length.median)))
        };
        let recorded = group.waits.iter().map(|&at| waits[at].length());
        let medians = [median(recorded), median_of(&self.before), median_of(with)];
        (!medians.contains(&Nanos::MAX)).then_some(medians)
    }

    /// The means of a group: recorded, as it was, and with a change, over the waits that end in both replays.
    /// None: too many do not.
    pub(super) fn means(&self, group: &GroupOfWaits, with: &Trials) -> Option<Means> {
        let waits = &self.account.explanation.waits;
        let ended = group.waits.iter().filter_map(|&at| {
            let (was, with) = (self.before.waits[at]?.median, with.waits[at]?.median);
            Some([waits[at].length(), was, with])
        });
        let ended: Vec<[Nanos; 3]> = ended.collect();
        let is_most = ended.len() * 10 >= group.waits.len() * 9;
        is_most.then(|| Means::of(&ended))
    }

    pub(super) fn new(
        arguments: &DiagnoseArguments,
        account: &'a Account,
    ) -> Result<Study<'a>, Failure> {
        let tries = !arguments.what_if.is_empty() || arguments.try_remedies;
        Study::with(arguments, account, (tries, arguments.seeds))
    }

    /// One with so many draws, for changes that let threads run where they ran.
    pub(super) fn beside_findings(
        arguments: &DiagnoseArguments,
        account: &'a Account,
        draws: u64,
    ) -> Result<Study<'a>, Failure> {
        Study::with(arguments, account, (true, draws))
    }

    fn with(
        arguments: &DiagnoseArguments,
        account: &'a Account,
        (tries, seeds): (bool, u64),
    ) -> Result<Study<'a>, Failure> {
        let machine = match &arguments.machine {
            None => None,
            Some(name) => {
                let found = library::machine(name);
                Some(found.map_err(|why| Failure::Usage(format!("--machine: {why}")))?)
            }
        };
        let pieces = arguments.what_if.iter().flat_map(Change::pieces);
        let mut options = BuildOptions {
            machine,
            policy: arguments.policy.clone(),
            tick: arguments.tick,
            busy: arguments.busy.clone(),
            pieces: pieces.map(str::to_owned).collect(),
            owners: arguments.what_if.iter().any(Change::hands_over),
        };
        let explanation = &account.explanation;
        let waits = explanation.waits.iter();
        let waits: Vec<_> = waits
            .map(|wait| (wait.thread, wait.begin, wait.end))
            .collect();
        let build = |options: &BuildOptions| {
            let program = Program::of(&account.timeline, &waits, options);
            let program = program.map_err(|why| Failure::Usage(format!("--what-if: {why}")))?;
            program
                .is_playable()
                .map_err(|why| Failure::Usage(format!("--policy: {why}")))?;
            Ok::<Program, Failure>(program)
        };
        let mut program = build(&options)?;
        let kernel = &account.timeline.recording().origin.kernel;
        if arguments.policy.is_none() && kernel.is_none() && arguments.program.is_none() {
            options.policy = Some(nearest(&program, explanation.waits.as_slice()));
            let assumed = format!(
                "the kernel schedules as {} does, of {} the one with the nearest replay; --policy says \
                 better",
                options.policy.as_deref().unwrap_or_default(),
                POLICIES.join(", ")
            );
            program = build(&options)?;
            program.assumed.push(assumed);
        }
        program = placed(program, &arguments.what_if, tries);
        let before = trials(&program, seeds, "replays");
        let mut study = Study {
            account,
            program,
            seeds,
            asked: Vec::new(),
            groups: groups(account),
            before,
            tried: Vec::new(),
        };
        study.ask();
        Ok(study)
    }

    /// Finds which waits can be answered for.
    fn ask(&mut self) {
        let waits = &self.account.explanation.waits;
        let any_long = waits.iter().any(|wait| wait.length() >= LONG);
        for (at, wait) in waits.iter().enumerate() {
            if wait.length() < LONG && any_long {
                continue;
            }
            let stretch = self.program.stretches[at];
            let replayed = self.before.waits[at];
            let error = replayed.map(|replayed| stretch.error(replayed.median));
            let is_trusted = stretch.is_trusted(replayed.map(|replayed| replayed.median));
            let refused = match (stretch.points, replayed, is_trusted) {
                (_, _, true) => None,
                (None, ..) => Some("its thread was not seen at both ends"),
                (_, None, _) => Some("it does not end in the replay"),
                (_, Some(_), _) => Some("the replay is too far off"),
            };
            self.asked.push(Asked {
                at,
                replayed,
                error,
                refused,
                difference: None,
            });
        }
        let refused = self.asked.iter().filter(|asked| asked.refused.is_some());
        let refused: Vec<_> = refused.map(|asked| (asked.at, &waits[asked.at])).collect();
        let mut differences = self.program.differences(&refused, &self.before.first);
        for asked in &mut self.asked {
            asked.difference = differences.remove(&asked.at);
        }
    }

    /// Runs each change.
    pub(super) fn try_changes(&mut self, arguments: &DiagnoseArguments) -> Result<(), Failure> {
        for change in &arguments.what_if {
            let tried = self.try_change(change);
            let tried = tried.map_err(|why| {
                let names = self.names_for(change);
                Failure::Usage(format!("--what-if: {why}{names}"))
            })?;
            self.tried.push(tried);
        }
        Ok(())
    }

    /// The names of threads or processes that there are, if a change has one that there is not.
    fn names_for(&self, change: &Change) -> String {
        let threads = &self.program.threads;
        let is_known = |given: &str| {
            let is_one = |thread: &ProgramThread| {
                is_meant(given, true, thread) || is_meant(given, false, thread)
            };
            threads.iter().any(is_one)
        };
        // A quota may be that of several.
        let given = change.names();
        let mut given = given.flat_map(|(names, of)| names.split(',').map(move |name| (name, of)));
        let Some((name, is_process)) = given.find(|(name, _)| !is_known(name.trim())) else {
            return String::new();
        };
        let names = threads.iter().filter_map(|thread| {
            if is_process {
                thread.process.0.clone()
            } else {
                Some(thread.name.clone())
            }
        });
        match names.collect::<BTreeSet<String>>() {
            names if names.is_empty() => String::new(),
            names => format!("; {}", alike(name.trim(), names)),
        }
    }

    /// Runs a change.
    ///
    /// # Errors
    /// If it cannot be.
    pub(super) fn try_change(&self, change: &Change) -> Result<Tried, BadChange> {
        let changed = change.apply(&self.program, is_meant)?;
        Ok(Tried {
            text: change.text().to_owned(),
            trials: trials(&changed, self.seeds, "replays with a change"),
        })
    }

    /// The waits that can be answered for.
    pub(super) fn answered(&self) -> impl Iterator<Item = &Asked> {
        self.asked.iter().filter(|asked| asked.refused.is_none())
    }

    /// How much shorter all waits together are with a change that can be answered for; negative: longer.
    pub(super) fn gain(&self, tried: &Tried) -> i64 {
        let gains = self.answered().filter_map(|asked| {
            let (was, with) = (asked.replayed?.median, tried.trials.waits[asked.at]?.median);
            Some(was.0 as i64 - with.0 as i64)
        });
        gains.sum()
    }

    /// Whether there is a wait that can be answered for, or the median of many.
    pub(super) fn is_answered(&self) -> bool {
        let is_trusted = |group: &GroupOfWaits| {
            let medians = self.medians(group, &self.before);
            let means = self.means(group, &self.before);
            medians.is_some_and(|medians| refused(medians).is_none())
                || means.is_some_and(|means| means.refused().is_none())
        };
        self.answered().next().is_some() || self.groups.iter().any(is_trusted)
    }

    pub(super) fn wait(&self, asked: &Asked) -> &Wait {
        &self.account.explanation.waits[asked.at]
    }
}

/// The program with threads where they ran, or free if a change, or a person with the file, has other CPUs
/// for them.
fn placed(mut program: Program, what_if: &[Change], tries: bool) -> Program {
    let frees = what_if.iter().find(|change| change.sets_free());
    if let Some(change) = frees {
        program = program.set_free();
        program.assumed.push(format!(
            "threads run where the policy puts them, because of {change}"
        ));
    } else if !tries {
        program = program.set_free();
    } else if program.is_placed {
        program.assumed.push(
            "threads run on the CPUs where they ran, when they come to the same points".into(),
        );
    }
    program
}

/// Whether a name, a number or a pattern means a thread, or its process.
fn is_meant(given: &str, is_process: bool, thread: &ProgramThread) -> bool {
    let (names, number): (Vec<&str>, Option<u32>) = if is_process {
        (
            thread.process.0.as_deref().into_iter().collect(),
            thread.process.1,
        )
    } else {
        (vec![&thread.name, thread.recorded_name.trim()], thread.tid)
    };
    let is_number = number.is_some() && given.parse().ok() == number;
    let is_name = names.contains(&given);
    let matches = || {
        let pattern = glob::Pattern::new(given);
        pattern.is_ok_and(|pattern| names.iter().any(|name| pattern.matches(name)))
    };
    is_number || is_name || (given.contains(['*', '?', '[']) && matches())
}

/// The policies that are tried where the recording does not say which kernel it was.
pub(super) const POLICIES: [&str; 3] = ["eevdf-6.18", "eevdf-6.18-hrtick", "cfs-4.12"];

/// The policy under which most long waits replay well; of equal ones the first.
fn nearest(program: &Program, waits: &[Wait]) -> String {
    let good = |policy: &str| {
        let program = Program {
            policy: policy.to_owned(),
            ..program.clone()
        };
        let lengths = program.lengths(&play(&program, 0));
        let all = lengths.iter().zip(&program.stretches).zip(waits);
        let long = all.filter(|(_, wait)| wait.length() >= LONG);
        long.filter(|((length, stretch), _)| stretch.is_trusted(**length))
            .count()
    };
    let best = POLICIES.iter().rev().max_by_key(|policy| good(policy));
    best.map_or(POLICIES[0], |best| best).to_owned()
}

/// Runs a program under seeds from 0 on.
fn trials(program: &Program, seeds: u64, what: &'static str) -> Trials {
    let mut progress = Progress::new(what, seeds);
    let mut draws: Vec<Vec<Option<Nanos>>> = vec![Vec::new(); program.stretches.len()];
    let mut ran: Vec<Vec<Nanos>> = vec![Vec::new(); program.threads.len()];
    let mut first = None;
    let mut share_error = 0.0;
    for seed in 0..seeds {
        let played = play(program, seed);
        for (list, length) in draws.iter_mut().zip(program.lengths(&played)) {
            list.push(length);
        }
        for (list, time) in ran.iter_mut().zip(&played.ran) {
            list.push(*time);
        }
        if first.is_none() {
            share_error = program.share_error(&played);
            first = Some(played);
        }
        progress.step();
    }
    let spread = |draws: &Vec<Option<Nanos>>| {
        let mut list: Vec<Nanos> = draws.iter().copied().flatten().collect();
        list.sort_unstable();
        let is_most = list.len() as u64 * 2 > seeds;
        is_most.then(|| Trial {
            median: list[list.len() / 2],
            least: list[0],
            most: list[list.len() - 1],
        })
    };
    Trials {
        waits: draws.iter().map(spread).collect(),
        draws,
        ran: ran
            .iter_mut()
            .map(|list| {
                list.sort_unstable();
                list[list.len() / 2]
            })
            .collect(),
        share_error,
        first: first.unwrap_or_else(|| play(program, 0)),
    }
}
