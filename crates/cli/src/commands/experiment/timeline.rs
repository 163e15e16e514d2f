//! What threads of a simulation did over time, for pictures.

use event::{KernelEventKind, Nanos};
use sim::SimReport;

/// What a thread does for a while. While it does neither it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    RunsOn(u32),
    /// It could run, and has no CPU.
    Ready,
}

/// A while in which a thread does one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stint {
    /// The thread's number in the report.
    pub(super) thread: usize,
    pub(super) doing: Doing,
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
}

/// What each thread did, in the order of the ends. The last stints end with the simulation.
pub(super) fn stints(report: &SimReport) -> Vec<Stint> {
    let mut of_thread: Vec<Option<(Doing, Nanos)>> = vec![None; report.threads.len()];
    let mut stints = Vec::new();
    let mut turn_to = |thread: u32, doing: Option<Doing>, now: Nanos| {
        let thread = thread as usize;
        let Some(before) = of_thread.get_mut(thread) else {
            return;
        };
        if let Some((doing, begin)) = std::mem::replace(before, doing.map(|doing| (doing, now)))
            && begin < now
        {
            let end = now;
            stints.push(Stint {
                thread,
                doing,
                begin,
                end,
            });
        }
    };
    for event in &report.trace {
        match event.what {
            KernelEventKind::Waking { task, .. } => turn_to(task.0, Some(Doing::Ready), event.time),
            KernelEventKind::Switch { prev, state, next } => {
                if let Some(prev) = prev {
                    let ready = state.is_runnable().then_some(Doing::Ready);
                    turn_to(prev.0, ready, event.time);
                }
                if let Some(next) = next {
                    let cpu = Doing::RunsOn(event.cpu.0);
                    turn_to(next.0, Some(cpu), event.time);
                }
            }
            _ => {}
        }
    }
    for thread in 0..report.threads.len() as u32 {
        turn_to(thread, None, report.now);
    }
    stints
}

#[cfg(test)]
mod tests {
    use super::super::lab;
    use super::*;

    /// Goal: the stints of a thread cover what it ran and how long it was ready, and none overlaps another.
    /// Method: their sums for each thread of a scenario with preemptions, against the thread's account.
    #[test]
    fn stints_are_what_threads_did() {
        let mut scenario = lab::scenario("time-slices");
        scenario.until = Some(Nanos::from_millis(50));
        let ran = lab::run(&scenario, "eevdf-6.18", 1).unwrap();
        let all = stints(&ran.report);
        let mut seen = 0;
        for (thread, account) in ran.report.threads.iter().enumerate() {
            let of: Vec<&Stint> = all.iter().filter(|stint| stint.thread == thread).collect();
            assert!(of.windows(2).all(|two| two[0].end <= two[1].begin));
            let sum = |ready: bool| -> u64 {
                let of = of.iter().filter(|it| (it.doing == Doing::Ready) == ready);
                of.map(|stint| (stint.end - stint.begin).0).sum()
            };
            // Switches cost time that belongs to no thread's work.
            for (sum, account) in [
                (sum(false), account.spent.run),
                (sum(true), account.spent.runnable),
            ] {
                assert!(sum.abs_diff(account.0) < 100_000, "{sum} and {account}");
            }
            seen += of.len();
        }
        assert!(seen > 10, "{seen}");
    }
}
