//! What would help, in words, each with what it would be worth where a replay says so.

use std::cmp::Reverse;

use console::output;
use trace::explain::{Inversion, InversionKind, Remedy, Who};

use super::gains::{Gain, Gains, TriedChange};
use super::people::{Group, INVERSIONS_MAX};
use super::{Account, short};

/// How much of a wait's name there is room for.
const NAME_MAX: usize = 32;

impl Account {
    /// What remedies are worth; by `diagnose` alone.
    pub(in crate::commands) fn set_gains(&mut self, gains: Gains) {
        self.gains = gains;
    }

    /// The inversions that are told, the most expensive first.
    pub(in crate::commands) fn told_inversions(&self) -> Vec<&Inversion> {
        let groups = self.groups().into_iter().take(INVERSIONS_MAX);
        groups.map(|group| group.first).collect()
    }

    /// Why remedies have no figures, in a sentence.
    pub(super) fn gains_left_out(&self) -> Option<String> {
        let why = self.gains.left_out.as_ref()?;
        Some(format!("What remedies would be worth is left out: {why}."))
    }

    /// The changes that were tried, the one that is worth most first.
    pub(in crate::commands) fn changes_json(&self) -> Vec<TriedChange> {
        self.gains.json()
    }

    /// The remedies in words, the one that is worth most first; behind them those without a figure.
    pub(super) fn remedies(&self, group: &Group<'_>) -> String {
        let remedies = group.first.remedies.iter();
        let mut told: Vec<(Option<i64>, String)> = remedies
            .map(|remedy| {
                let said = self.remedy(group, *remedy);
                match self.gains.find(group.first, *remedy) {
                    Some(gain) => {
                        let worth = self.worth(group, gain);
                        (Some(gain.worth()), format!("{said} ({worth})"))
                    }
                    None => (None, said),
                }
            })
            .collect();
        told.sort_by_key(|(worth, _)| Reverse(*worth));
        let told: Vec<String> = told.into_iter().map(|(_, said)| said).collect();
        if told.is_empty() {
            "none known".to_owned()
        } else {
            told.join("; or ")
        }
    }

    /// What a change is worth for the waits of a group and for all, and what it costs others.
    fn worth(&self, group: &Group<'_>, gain: &Gain) -> String {
        let ([was, with], count) = gain.over(group.waits.iter());
        let mut parts = Vec::new();
        let lengths = format!("by a replay {} instead of {}", short(with), short(was));
        match (count, group.waits.len()) {
            (0, 1) => return "no figure: the replay of this wait is too far off".to_owned(),
            (0, _) => return "no figure: the replays of these waits are too far off".to_owned(),
            (1, 1) => parts.push(lengths),
            (count, of) => parts.push(format!("{lengths} in {count} of {of} waits")),
        }
        let ([was, with], all) = gain.all();
        if all > count {
            parts.push(format!(
                "{} instead of {} in all {all} that replay well",
                short(with),
                short(was)
            ));
        }
        if let Some((wait, longer)) = gain.longest_loss() {
            let wait = &self.explanation.waits[wait];
            parts.push(format!(
                "`{}` of {} takes up to {} longer",
                output::cut(&wait.name, NAME_MAX),
                self.thread(wait.thread),
                short(longer)
            ));
        }
        if let Some((thread, less)) = gain.less_cpu_time.first() {
            parts.push(format!("{thread} gets {} less CPU time", short(*less)));
        }
        parts.join(", ")
    }

    fn remedy(&self, group: &Group<'_>, remedy: Remedy) -> String {
        let inversion = group.first;
        let (waiter, holder) = (self.thread(inversion.waiter), self.thread(inversion.holder));
        let runner = self.who(group.runner());
        let process = |task| self.timeline.process(task);
        let is_related = match group.runner() {
            Who::Task(task) if inversion.kind == InversionKind::Preemption => {
                process(task).is_some() && process(task) == process(inversion.holder)
            }
            _ => false,
        };
        match remedy {
            Remedy::Park => format!("let {waiter} sleep while it waits instead of spinning"),
            Remedy::ShorterLock => format!("less work of {holder} while it holds the lock"),
            Remedy::LeaveOutSlowCores => {
                format!("let {holder} run on the large CPUs only, by its mask or a performance hint")
            }
            Remedy::RaiseFrequency => format!(
                "a higher frequency while {holder} runs: a performance hint session or a utilisation clamp \
                 (uclamp.min), or a governor that is faster to raise it"
            ),
            Remedy::RaiseLimit => {
                "less heat, by less work on all CPUs together, or a higher limit if a program set it"
                    .to_owned()
            }
            Remedy::PriorityInheritance => "a lock with priority inheritance".to_owned(),
            Remedy::FewerThreads if is_related => {
                format!("fewer busy threads in this program than CPUs: {runner} is one of its own")
            }
            Remedy::FewerThreads => "fewer busy threads than CPUs".to_owned(),
            Remedy::SamePriority if waiter == holder => {
                format!("a better priority for {waiter} than {runner} has")
            }
            Remedy::SamePriority => {
                format!("the priority of {waiter} for {holder}, too, above that of {runner}")
            }
            Remedy::WiderAffinity => format!("let {holder} use more CPUs"),
            Remedy::MoveAway if inversion.kind == InversionKind::Preemption => {
                format!("another CPU was idle: keep {runner}, or {holder}, off the CPU that both were on")
            }
            Remedy::MoveAway => {
                format!("keep {holder} off the busy CPU for a while, and it is put on the idle one")
            }
            Remedy::LighterSleep => format!(
                "CPUs that sleep less deeply while {waiter} has deadlines: a limit of the wake-up \
                 latency (PM QoS), or a performance mode"
            ),
            Remedy::RaiseQuota => "a larger CPU quota, or none".to_owned(),
            Remedy::FitQuota => {
                "no more busy threads than the quota has CPUs, and none that spins".to_owned()
            }
            other => other.word().replace('_', " "),
        }
    }
}
