//! What would help, in words, each with what it would be worth where a replay says so.

use console::output;
use event::Nanos;
use trace::explain::{Inversion, InversionKind, Remedy, Who};

use super::gains::{Gain, Gains, TriedChange};
use super::people::{Group, INVERSIONS_MAX};
use super::worth::{Verdict, Worth};
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

    /// The remedies in words: those that a replay shows to gain, the best first; those without a figure;
    /// those of which a replay shows no gain; and those that it shows to be worse.
    pub(super) fn remedies(&self, group: &Group<'_>) -> String {
        let remedies = group.first.remedies.iter();
        let mut told: Vec<((Rank, i64), String)> = remedies
            .map(|remedy| {
                let said = self.remedy(group.first, *remedy);
                match self.gains.find(group.first, *remedy) {
                    Some(gain) => {
                        let (rank, gained, figure) = self.worth(group, gain);
                        ((rank, -gained), format!("{said} ({figure})"))
                    }
                    None => ((Rank::NoFigure, 0), said),
                }
            })
            .collect();
        told.sort_by_key(|(order, _)| *order);
        let told: Vec<String> = told.into_iter().map(|(_, said)| said).collect();
        if told.is_empty() {
            "none known".to_owned()
        } else {
            told.join("; or ")
        }
    }

    /// What a change is worth for the waits of a group and for all, and what it costs others; with its place
    /// among others, and its gain for the group.
    fn worth(&self, group: &Group<'_>, gain: &Gain) -> (Rank, i64, String) {
        let (worth, of) = (gain.over(group.waits.iter()), group.waits.len());
        let waits = if of == 1 { "this wait" } else { "these waits" };
        let no_figure = |why: String| (Rank::NoFigure, 0, format!("no figure: {why}"));
        if worth.count == 0 {
            let replays = if of == 1 { "replay of" } else { "replays of" };
            let are = if of == 1 { "is" } else { "are" };
            return no_figure(format!("the {replays} {waits} {are} too far off"));
        }
        let (rank, shown) = match worth.verdict_for(group.ns) {
            Verdict::Unclear => {
                return no_figure("the draws of a replay disagree whether it gains".to_owned());
            }
            Verdict::Beyond => {
                let gained = short(Nanos(worth.gain().unsigned_abs()));
                return no_figure(format!(
                    "by a replay {gained} less in {waits}, more than this cost"
                ));
            }
            Verdict::Gain => (Rank::Gain, "by a replay"),
            Verdict::NoGain => (Rank::NoGain, "by a replay no gain:"),
            Verdict::Worse => (Rank::Worse, "by a replay it is worse:"),
        };
        let all = gain.all();
        let is_worse = all.verdict() == Verdict::Worse;
        let mut parts = vec![format!("{shown} {}", figure(&worth))];
        if of > 1 {
            parts[0].push_str(&format!(" in {} of {of} waits", worth.count));
        }
        if all.count > worth.count && all.verdict() != Verdict::Unclear {
            let (figure, count) = (figure(&all), all.count);
            let but = if is_worse && rank != Rank::Worse {
                "but "
            } else {
                ""
            };
            parts.push(format!("{but}{figure} in all {count} that replay well"));
        }
        parts.extend(self.price(gain));
        let rank = if is_worse { Rank::Worse } else { rank };
        (rank, worth.gain(), parts.join(", "))
    }

    /// What a change costs others.
    fn price(&self, gain: &Gain) -> Vec<String> {
        let mut parts = Vec::new();
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
        parts
    }

    /// A remedy in words. What ran is what the remedy is for: of a group, that of its first inversion.
    fn remedy(&self, inversion: &Inversion, remedy: Remedy) -> String {
        let (waiter, holder) = (self.thread(inversion.waiter), self.thread(inversion.holder));
        let runner = self.who(inversion.runner);
        let process = |task| self.timeline.process(task);
        let is_related = match inversion.runner {
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
            Remedy::FewerThreads => {
                format!("fewer busy threads than CPUs{}", self.why_no_priority(inversion))
            }
            Remedy::SamePriority if !is_waiter_urgent(inversion) => {
                format!("a better priority for {holder} than {runner} has")
            }
            Remedy::SamePriority => {
                format!("the priority of {waiter} for {holder}, too, above that of {runner}")
            }
            Remedy::RealtimeClass => format!(
                "a real-time class for {holder}: it has a better priority than {runner} already, which \
                 among ordinary threads is a larger part of the CPU and not all of it"
            ),
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

    /// Why a better priority is no remedy where fewer threads are the only one.
    fn why_no_priority(&self, inversion: &Inversion) -> String {
        let ([_, Some(holder), Some(runner)], [Remedy::FewerThreads], InversionKind::Preemption) = (
            inversion.priorities,
            inversion.remedies.as_slice(),
            inversion.kind,
        ) else {
            return String::new();
        };
        let (thread, ran) = (self.thread(inversion.holder), self.who(inversion.runner));
        if holder < runner {
            format!(": {thread} has a better priority than {ran} already")
        } else {
            format!(": no priority is better than that of {ran}")
        }
    }
}

/// The place of a remedy among those of an inversion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Gain,
    NoFigure,
    NoGain,
    Worse,
}

/// Whether the waiter's priority would be a better one for the thread that it waits for than that of what
/// ran.
fn is_waiter_urgent(inversion: &Inversion) -> bool {
    match inversion.priorities {
        _ if inversion.waiter == inversion.holder => false,
        [Some(waiter), _, Some(runner)] => waiter < runner,
        _ => true,
    }
}

/// How long waits are with a change, and without.
fn figure(worth: &Worth) -> String {
    let [was, with, least, most] = [worth.was, worth.with, worth.least, worth.most].map(short);
    if least == most {
        format!("{with} instead of {was}")
    } else {
        format!("{with} ({least} to {most}) instead of {was}")
    }
}
