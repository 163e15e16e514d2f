//! A recording, as the parts of this module look at it.

use std::collections::BTreeMap;

use event::{Cpu, Nanos, Task};
use trace::timeline::{State, Stay, Timeline, Who};

/// A recording, as its threads see it.
pub(super) struct Source<'t> {
    pub(super) timeline: &'t Timeline,
    /// The time of the recording's beginning.
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    /// Whether it says where threads run, and when CPUs took long to wake up: a simulator's does not have to.
    pub(super) is_placed: bool,
    pub(super) tasks: Vec<Task>,
    /// By thread: its states, in the order of time.
    pub(super) stays: BTreeMap<Task, Vec<Stay>>,
    /// By thread: a name that no other one has.
    pub(super) names: BTreeMap<Task, String>,
}

impl<'t> Source<'t> {
    pub(super) fn new(timeline: &'t Timeline) -> Source<'t> {
        let mut tasks: Vec<Task> = timeline.threads().collect();
        tasks.sort_unstable();
        let stays: BTreeMap<Task, Vec<Stay>> = tasks
            .iter()
            .map(|&task| (task, timeline.stays(task).collect()))
            .collect();
        // Threads that are only named have no part in it.
        let runs = |task: &Task| {
            let mut stays = stays[task].iter();
            stays.any(|stay| matches!(stay.state, State::Running(_)))
        };
        tasks.retain(runs);
        let (begin, end) = timeline.span();
        Source {
            timeline,
            begin,
            end,
            is_placed: true,
            tasks,
            stays,
            names: BTreeMap::new(),
        }
    }

    /// The sleeps of a thread that ended.
    pub(super) fn ended_sleeps(&self, task: Task) -> impl Iterator<Item = Stay> + '_ {
        let stays = self.stays.get(&task).map_or(&[][..], Vec::as_slice);
        let sleeps = stays.windows(2).map(|two| two[0]);
        sleeps.filter(|stay| stay.state.is_asleep())
    }

    /// Since when a thread had not slept at a time.
    pub(super) fn awake_since(&self, task: Task, time: Nanos) -> Nanos {
        let stays = self.stays.get(&task).map_or(&[][..], Vec::as_slice);
        let until = stays.partition_point(|stay| stay.begin < time);
        let mut before = stays[..until].iter().rev();
        let slept = before.find(|stay| stay.state.is_asleep() || stay.state == State::Unknown);
        slept.map_or(self.begin, |stay| stay.end.min(time))
    }

    /// For how long a CPU had nothing to do while a thread could have run, if the program says such things.
    pub(super) fn idle(&self, cpu: Cpu, ready: Stay) -> Nanos {
        if !self.is_placed {
            return Nanos::ZERO;
        }
        let runs = self.timeline.runs_within(cpu, ready.begin, ready.end);
        let idle = runs.filter(|(_, _, who)| *who == Who::Idle);
        let idle = idle.map(|(from, to, _)| to.min(ready.end) - from.max(ready.begin));
        idle.fold(Nanos::ZERO, |sum, part| sum + part)
    }

    /// Whether it had nothing else to do all the time.
    pub(super) fn is_idle(&self, cpu: Cpu, ready: Stay) -> bool {
        ready.begin < ready.end && self.idle(cpu, ready) == ready.end - ready.begin
    }

    /// Whether a thread ran at a time; at the very end of a run it did.
    pub(super) fn runs_at(&self, task: Task, time: Nanos) -> bool {
        let stays = self.stays.get(&task).map_or(&[][..], Vec::as_slice);
        let after = stays.partition_point(|stay| stay.end < time);
        let mut near = stays[after..].iter().take_while(|stay| stay.begin <= time);
        near.any(|stay| matches!(stay.state, State::Running(_)))
    }
}
