//! The time of a thread by its states, all in all.

use event::{Nanos, Task};

use super::states::{Since, State};
use super::{Interval, Timeline};

/// A thread's time by state, and the number of times that it left its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// It ran.
    pub running: Nanos,
    /// It could have run and did not.
    pub runnable: Nanos,
    /// The part of it for which it was put aside because the CPU time of its group was used up, if the
    /// recording says so.
    pub throttled: Nanos,
    /// The part of it since it lost its CPU, or gave it away, although it could have continued.
    pub preempted: Nanos,
    /// It waited for something other than a CPU.
    pub sleeping: Nanos,
    /// The same, where no signal could interrupt it: mostly for a device or for the kernel.
    pub blocked: Nanos,
    /// How many times it left its CPU because it had to wait, or had ended.
    pub voluntary: u64,
    /// How many times it lost its CPU, or gave it away, although it could have continued: its preemptions.
    pub involuntary: u64,
}

impl Spent {
    /// All of its time that is known.
    pub fn known(&self) -> Nanos {
        self.running + self.runnable + self.sleeping + self.blocked
    }
}

impl Timeline {
    /// A thread's time by state, from the beginning of the recording to its end. Unknown times are in none of
    /// the sums.
    pub fn spent(&self, task: Task) -> Spent {
        self.spent_within(task, self.span)
    }

    /// The same, of a stretch of time: states count for the part that lies in it, and switches if they do.
    pub fn spent_within(&self, task: Task, (begin, end): (Nanos, Nanos)) -> Spent {
        let mut spent = Spent::default();
        let thread = self.tasks.find(task.0);
        let mut before = thread.map_or(State::Unknown, |thread| self.before(thread, begin).state);
        for stay in self.stays_within(task, begin, end) {
            let length = stay.end.min(end) - stay.begin.max(begin);
            match stay.state {
                State::Running(_) => spent.running += length,
                State::Runnable(_) => spent.runnable += length,
                State::Throttled(_) => {
                    spent.runnable += length;
                    spent.throttled += length;
                }
                State::Sleeping => spent.sleeping += length,
                State::Blocked => spent.blocked += length,
                State::Awake | State::Dead | State::Unknown => {}
            }
            if is_preempted(stay.state) {
                spent.preempted += length;
            }
            match stay.state {
                state if is_preempted(state) => {
                    spent.involuntary += u64::from(!is_preempted(before));
                }
                State::Running(_) | State::Unknown => {}
                _ => spent.voluntary += u64::from(matches!(before, State::Running(_))),
            }
            before = stay.state;
        }
        spent
    }

    /// How many times a thread lost its CPU, or gave it away, although it could have continued.
    pub fn preemptions(&self, task: Task) -> usize {
        let thread = self.tasks.find(task.0);
        thread.map_or(0, |thread| {
            let states = self.states.of(thread).from(0);
            preemptions(State::Unknown, states)
        })
    }

    /// The same, from one time until just before another one.
    pub(crate) fn preemptions_in(&self, thread: u32, (begin, end): (Nanos, Nanos)) -> usize {
        let states = self.states.of(thread);
        let first = states.partition_point(|other| other < begin);
        let before = first.checked_sub(1).and_then(|at| states.get(at));
        let before = before.map_or(State::Unknown, |before| before.state);
        let within = states.from(first).take_while(|state| state.begin < end);
        preemptions(before, within)
    }
}

/// The number of changes to a state in which a thread has lost its CPU. It changes nothing that the thread is
/// put aside then, or no longer is.
fn preemptions(mut before: State, states: impl Iterator<Item = Interval>) -> usize {
    let mut lost = |state: Interval| {
        let before = std::mem::replace(&mut before, state.state);
        is_preempted(state.state) && !is_preempted(before)
    };
    states.filter(|state| lost(*state)).count()
}

fn is_preempted(state: State) -> bool {
    state.ready() == Some(Since::Preempted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    /// Goal: times and switches are summed up by the states before and after them. Method: one CPU by hand: a
    /// thread runs 10, is preempted for 20, runs 5, sleeps 15, could run for 2 and runs again until 60.
    #[test]
    fn time_is_summed_up() {
        let mut script = Script::new(&["a", "b"], 1);
        script.run(0, 0, 0);
        script.run(10, 0, 1);
        script.run(30, 0, 0);
        script.sleep(35, 0, Some(1));
        script.wake(50, Some(1), 0);
        script.run(52, 0, 0);
        let timeline = script.timeline(60);
        let expected = Spent {
            running: Nanos(23),
            runnable: Nanos(22),
            throttled: Nanos::ZERO,
            preempted: Nanos(20),
            sleeping: Nanos(15),
            blocked: Nanos::ZERO,
            voluntary: 1,
            involuntary: 1,
        };
        assert_eq!(timeline.spent(Task(0)), expected);
        assert_eq!(expected.known(), Nanos(60));
        let part = Spent {
            running: Nanos(5 + 3),
            runnable: Nanos(5 + 2),
            preempted: Nanos(5),
            ..expected
        };
        let clipped = timeline.spent_within(Task(0), (Nanos(25), Nanos(55)));
        assert_eq!(
            (clipped, clipped.known()),
            (
                Spent {
                    involuntary: 0,
                    ..part
                },
                Nanos(30)
            )
        );
        assert_eq!(timeline.spent(Task(1)).involuntary, 2);
        let within = |begin, end| timeline.preemptions_in(0, (Nanos(begin), Nanos(end)));
        assert_eq!([within(0, 10), within(10, 11), within(11, 60)], [0, 1, 0]);
        assert_eq!(within(10, 0), 0);
    }
}
