//! The reasons for the number of workers and for their places, in sentences for people and bug reports.

use platform::{CpuSet, Topology};

use crate::adapt::full::live::{MachineView, WorkersRequest};
use crate::adapt::full::place::WorkerPlace;
use crate::limits::WORKERS_MAX;

/// The number and the places of the workers of a job system with default settings on this machine, and the
/// reasons for them, a sentence each.
///
/// ```
/// use paceline::{CpuSet, Topology};
/// let set = CpuSet::parse;
/// let phone = Topology::uniform(8).with_classes(vec![
///     (set("0-3"), Some(300)),
///     (set("4-7"), Some(1024)),
/// ]);
/// let why = paceline::explain(&phone);
/// assert_eq!(why[0], "7 workers: 8 threads can run at the same time, less 1 for the thread that waits.");
/// assert_eq!(why[2], "3 of them are on CPUs 4-7 and take all jobs.");
/// ```
pub fn explain(machine: &Topology) -> Vec<String> {
    let request = WorkersRequest::Fitting { reserve: 1 };
    let view = MachineView::new(machine.limits().clone(), request, WORKERS_MAX);
    view.divided_by(Some(machine.clone())).explain()
}

impl MachineView {
    pub(crate) fn explain(&self) -> Vec<String> {
        let (workers, alone) = (self.workers(), self.workers_alone());
        if let Some(error) = self.refusal()
            && workers == 0
        {
            let instead = "Jobs run inside of waits, and in `flush`, `poll` and `pump`.";
            let why = format!("No workers: {error}.");
            return vec![why, instead.to_owned(), self.what_may_be_used()];
        }
        let mut sentences = vec![self.why_this_many(), self.what_may_be_used()];
        let left = self.workers_if_started();
        if left < alone {
            sentences.push(format!(
                "{left} of them at this moment: other threads want the CPUs, and more would get no more."
            ));
        }
        if let Some(error) = self.refusal()
            && workers < left
        {
            sentences.push(format!("{workers} of them at this moment: {error}."));
        }
        sentences.extend(self.where_workers_are());
        sentences
    }

    fn why_this_many(&self) -> String {
        let (workers, width) = (self.workers_alone(), self.width());
        let at_once = match width {
            1 => "1 thread can run at a time".to_owned(),
            width => format!("{width} threads can run at the same time"),
        };
        let workers_alone = workers;
        let workers = count(workers, "worker");
        match self.request() {
            WorkersRequest::Fitting { .. } if width == 1 => {
                format!("{workers}: {at_once}, and there is always one.")
            }
            WorkersRequest::Fitting { reserve: 1 } => {
                format!("{workers}: {at_once}, less 1 for the thread that waits.")
            }
            WorkersRequest::Fitting { reserve } => {
                format!("{workers}: {at_once}, less {reserve} for others.")
            }
            WorkersRequest::Exactly { workers: asked, .. } if asked == workers_alone => {
                format!("{workers}, as asked for; {at_once}.")
            }
            WorkersRequest::Exactly { workers: asked, .. } => {
                format!("{workers} of {asked} asked for: {at_once}.")
            }
        }
    }

    fn what_may_be_used(&self) -> String {
        let limits = self.limits();
        let usable = limits.usable();
        let mut text = format!("{} may be used", cpus(&usable));
        if usable != limits.online {
            text += &format!(" of {} online", limits.online);
        }
        if let Some(quota) = limits.quota {
            let cpus = (quota.cpus() * 100.0).round() / 100.0;
            text += &format!(", for as much time as {cpus} CPUs have");
        }
        text + "."
    }

    fn where_workers_are(&self) -> Vec<String> {
        let mut groups: Vec<(&WorkerPlace, usize)> = Vec::new();
        for place in self.places() {
            match groups.last_mut().filter(|(last, _)| *last == place) {
                Some((_, count)) => *count += 1,
                None => groups.push((place, 1)),
            }
        }
        let sentence = |(place, count): (&WorkerPlace, usize)| {
            let takes = if place.is_slow {
                "background jobs and small pieces of loops"
            } else {
                "all jobs"
            };
            let (verb, take) = if count == 1 {
                ("is", "takes")
            } else {
                ("are", "take")
            };
            format!(
                "{count} of them {verb} on {} and {take} {takes}.",
                cpus(&place.cpus)
            )
        };
        if groups.is_empty() {
            vec!["All of them take all jobs, wherever the kernel puts them.".to_owned()]
        } else {
            groups.into_iter().map(sentence).collect()
        }
    }
}

fn cpus(set: &CpuSet) -> String {
    match set.len() {
        1 => format!("CPU {set}"),
        _ => format!("CPUs {set}"),
    }
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use platform::{Limits, Quota, RefusalKind, SpawnError};

    use super::*;
    use crate::adapt::RefusedWorker;

    /// Goal: where the system refuses threads the sentences say so, and in its words. Method: a system that
    /// starts none, and one that starts two of five.
    #[test]
    fn refused_workers_are_explained() {
        let explained = |before, kind| {
            let limits = Limits::of(CpuSet::parse("0-5"));
            let request = WorkersRequest::Fitting { reserve: 1 };
            let mut view = MachineView::new(limits, request, 64);
            let error = SpawnError::new(kind, "so it is: leave it");
            view.refused = Some(RefusedWorker { before, error });
            view.explain()
        };
        let none = explained(0, RefusalKind::Unsupported);
        assert_eq!(
            none,
            [
                "No workers: cannot start a thread: so it is: leave it.",
                "Jobs run inside of waits, and in `flush`, `poll` and `pump`.",
                "CPUs 0-5 may be used.",
            ]
        );
        let some = explained(2, RefusalKind::Exhausted);
        assert_eq!(
            some[0],
            "5 workers: 6 threads can run at the same time, less 1 for the thread that waits."
        );
        assert_eq!(
            some[2],
            "2 of them at this moment: cannot start a thread: so it is: leave it."
        );
    }

    /// Goal: the sentences say how things are, and why. Method: equal CPUs with a quota, the same with a
    /// number that was asked for, and a single CPU. The example above has a machine with classes.
    #[test]
    fn sentences_say_what_and_why() {
        let explain = |limits: Limits, request| MachineView::new(limits, request, 64).explain();
        let limits = Limits {
            quota: Quota::new(250_000, 100_000),
            ..Limits::of(CpuSet::parse("0-7"))
        };
        let [why, what, place] =
            &explain(limits.clone(), WorkersRequest::Fitting { reserve: 1 })[..]
        else {
            panic!("three sentences");
        };
        assert_eq!(
            why,
            "2 workers: 3 threads can run at the same time, less 1 for the thread that waits."
        );
        assert_eq!(
            what,
            "CPUs 0-7 may be used, for as much time as 2.5 CPUs have."
        );
        assert_eq!(
            place,
            "All of them take all jobs, wherever the kernel puts them."
        );
        let asked = |workers, width_then| WorkersRequest::Exactly {
            workers,
            width_then,
        };
        let why = &explain(limits.clone(), asked(5, 8))[0];
        assert_eq!(
            why,
            "3 workers of 5 asked for: 3 threads can run at the same time."
        );
        let why = &explain(limits, asked(5, 3))[0];
        assert_eq!(
            why,
            "5 workers, as asked for; 3 threads can run at the same time."
        );
        let one = Limits::of(CpuSet::parse("4"));
        let [why, what, _] = &explain(one, WorkersRequest::Fitting { reserve: 1 })[..] else {
            panic!("three sentences");
        };
        assert_eq!(
            why,
            "1 worker: 1 thread can run at a time, and there is always one."
        );
        assert_eq!(what, "CPU 4 may be used.");
    }
}
