//! Source 002: what a thread that polls costs the one it waits for.

mod barrier;
mod beside;
mod here;

use workload::naive::NaiveWait;

use super::Experiment;
use super::findings::Findings;
use super::lab::Effort;
use crate::failure::Failure;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "yield",
    source: "source 002: J. Cownie, \"To sched_yield() or not to sched_yield()?\" (2022)",
    question: "Is sched_yield() of use in a loop that polls?",
    setup: "A thread computes for 2.385 s (a quick run: 0.2 s) and another one polls a flag until it is \
    done, on the \
            same CPU as in the article, and on different ones; it spins, pauses, yields, sleeps as shortly \
            as the clock \
            allows, sleeps twice as long each time, or parks. The machine is the article's, under its \
            kernel's \
            scheduler and two newer ones, and where the text of the manual page is meant: SCHED_FIFO. Then \
            what the \
            article set out from: threads with unequal work that meet at a barrier, one, two and four for \
            each CPU, \
            pinned and free, under each of these waits, and as jobs of Paceline. The first line of \
            statistics is of the \
            wait's turns, as in the article; a wait that spins or pauses is one turn.",
    machine: "thunderx2, vm-2",
    policy: "cfs-4.12, eevdf-6.6, eevdf-6.18, fifo",
    learnt: &[
        "Under the article's kernel yielding achieves nothing, to the digit: CFS takes the thread that \
         yields again \
         until the other one is too far behind.",
        "This no longer holds. Since a yield forfeits the rest of the slice (Linux 6.19, and stable \
         kernels from \
         6.12.63 on) a thread that yields in a loop costs the other one next to nothing.",
        "Between the two, from Linux 6.6 on, a yield postponed a deadline and nothing else: as useless as \
         before.",
        "At a barrier with more threads than CPUs even the old rule is worth something: there is always \
         another \
         thread that is not too far ahead. Spinning costs whole slices there.",
        "Nobody has to know this who parks: it costs the same under every kernel.",
    ],
    run,
};

fn run(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    if effort.simulated {
        beside::simulated(effort, findings)?;
        barrier::simulated(effort, findings)?;
    }
    if effort.real {
        here::measured(effort, findings)?;
    }
    Ok(())
}

/// Whether there is time for it: to the simulated kernels a wait that pauses is one that spins, in smaller
/// steps.
fn is_run(wait: NaiveWait, effort: &Effort) -> bool {
    !effort.quick || wait != NaiveWait::Pause
}
