//! Source 002: the cost of a polling thread to the one it waits for.

mod barrier;
mod beside;
mod here;
mod pictures;
mod trial;

use workload::naive::NaiveWait;

use super::article::{Experiment, ExperimentPart, Here};
use super::claim::ClaimVerdict::{Contradicted, Fitted, Reproduced};
use super::lab::Effort;
use super::lesson::Lesson;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "yield",
    source: "source 002: J. Cownie, \"To sched_yield() or not to sched_yield()?\" (2022)",
    question: "Is sched_yield() of use in a loop that polls?",
    setup: "A thread computes for 2.385 s (a quick run: 0.2 s) and another one polls a flag until it is \
            done, on the same CPU as in the article, and on different ones; it spins, pauses, yields, \
            sleeps as shortly as the clock allows, sleeps twice as long each time, spins for 200 ms before \
            it parks, or parks at once. The machine \
            is the article's, under its kernel's scheduler and two newer ones, and where the manual \
            page's text applies: SCHED_FIFO. Then the article's starting point: threads with unequal work \
            that meet at a barrier, one, two and four for each CPU, pinned and free, under each of these \
            waits, and as jobs of Paceline. The first line of statistics is of the wait's turns, as in \
            the article; a wait that spins or pauses is one turn.",
    machine: "thunderx2, vm-2",
    policy: "cfs-4.12, eevdf-6.6, eevdf-6.18, fifo",
    learnt: &[
        Lesson {
            text: "Under the article's kernel yielding achieves nothing ({002-b}): CFS takes the thread that \
                   yields again until the other one is too far behind. The spread of all turns follows \
                   from that ({002-n}); the longest one hangs on the kernel's tick, too. Their number, mean \
                   and sum ({002-i}, {002-k}) are put into the machine.",
            rests_on: &[
                ("002-b", Reproduced),
                ("002-d", Reproduced),
                ("002-i", Fitted),
                ("002-k", Fitted),
                ("002-n", Reproduced),
            ],
        },
        Lesson {
            text: "This no longer holds. Since a yield forfeits the rest of the slice (Linux 6.19, and \
                   stable kernels from 6.12.63 on) a thread that yields in a loop costs the other one next \
                   to nothing ({002-h}).",
            rests_on: &[("002-f", Contradicted), ("002-h", Reproduced)],
        },
        Lesson {
            text: "Between the two, from Linux 6.6 on, a yield postponed a deadline and nothing else: as \
                   useless as before ({002-e}).",
            rests_on: &[("002-e", Reproduced)],
        },
        Lesson {
            text: "At a barrier with more threads than CPUs even the old rule is worth something \
                   ({002-v}): there is always another thread that is not too far ahead. Spinning costs \
                   whole slices there.",
            rests_on: &[("002-v", Reproduced), ("002-w", Reproduced)],
        },
        Lesson {
            text: "A program that parks need not know this ({002-r}). Polling for 200 ms before parking, as \
                   runtimes of OpenMP do by default, is polling where threads meet more often than that: \
                   parking at once is {002-ua}.",
            rests_on: &[("002-r", Reproduced), ("002-ua", Reproduced)],
        },
    ],
    parts: &[
        ExperimentPart {
            run: beside::simulated,
            values: beside::VALUES,
            seeds: 9,
            is_varied_quickly: true,
        },
        ExperimentPart {
            run: barrier::simulated,
            values: barrier::VALUES,
            seeds: 9,
            is_varied_quickly: false,
        },
    ],
    here: Here::Run(here::measured),
};

/// Whether there is time for it: to the simulated kernels a wait that pauses is one that spins, in smaller
/// steps.
fn is_run(wait: NaiveWait, effort: &Effort) -> bool {
    !effort.quick || wait != NaiveWait::Pause
}
