//! Source 004: a scheduler that gives each task the slice that it has promised to need.

mod example;
mod game;
mod here;
mod literal;
mod statements;

pub(super) use game::{GAME_WORK, game_and_build};
#[cfg(test)]
pub(super) use here::SIMULATED;

use super::article::{Experiment, ExperimentPart, Here};
use super::claim::ClaimVerdict::{Beyond, Contradicted, Depends, Reproduced};
use super::lesson::Lesson;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "virtual-slice",
    source: "source 004: scx_rustland, \"introduce virtual time slice\" (A. Righi, pull request 333, 2024)",
    question: "Does a slice made of what a task promises save switches, and frames?",
    setup: "The worked example of four tasks (A 1 unit, twice; B 3; C 6; D 6) on one CPU on which nothing \
            but work takes time, under the rule as the article draws it, the uniform slice it is compared \
            with, and the code of scx_rustland before the change, with it, and a day later with its limit. \
            Then a game with 60 frames a second and its audio beside a build of 32 compilers, on the \
            author's 8 cores with 16 threads, over seeds; the lengths of the game's and the build's work \
            are chosen, since the article has none. A frame counts when it is done, a period of the audio \
            is missed when it is not over 5 ms after it began. A virtual slice is how far a task's virtual \
            time is ahead of the least one, task_vruntime − min_vruntime, and at least 1 ms. The article \
            gives neither tick nor promises: the game is run with others, too. Before the change slices \
            shrink with the number of tasks that wait, and that are two numbers: the code counts the tasks \
            that wait for a decision, the article's text all that wait for a CPU. Both are run, and as one \
            of its statements needs it, slices that do not shrink. At last the same with one \
            task more, which sleeps twenty times before it computes for long. On this machine: threads that \
            compute without end, two, four and eight for each CPU, beside such an audio and such a task; \
            each thread looks itself how long it runs at a time.",
    machine: "ideal-1, ryzen-5800x",
    policy: "uniform-slice, uniform-slice-least, virtual-slice, rustland-pre333, rustland-pre333-all, \
             rustland-pre333-5000, rustland-333, rustland-333-capped, eevdf-6.6",
    learnt: &[
        Lesson {
            text: "Both printed schedules and their counts ({004-a} and {004-c}) are right, to the letter, \
                   for an idealised rule: bursts in which each task's slice is its distance from the one \
                   before.",
            rests_on: &[
                ("004-a", Reproduced),
                ("004-b", Reproduced),
                ("004-c", Reproduced),
                ("004-d", Reproduced),
            ],
        },
        Lesson {
            text: "The merged code is not that rule: it makes slices of what tasks have used, and two that \
                   compute without end wear each other's slices down to the floor. On the article's own \
                   example it switches more often than the code that it replaced ({004-e}).",
            rests_on: &[
                ("004-e", Contradicted),
                ("004-f", Contradicted),
                ("004-p", Reproduced),
            ],
        },
        Lesson {
            text: "Whether the change gives a game more frames hangs on values that the article does not \
                   give: for the idealised rule on the slice that it is compared with ({004-i} with equal \
                   least slices), for the merged code on how soon the kernel sees that a slice is over \
                   ({004-j} at this machine's tick). The table of six games cannot be had from scheduling \
                   alone.",
            rests_on: &[("004-i", Depends), ("004-j", Depends), ("004-k", Beyond)],
        },
    ],
    parts: &[
        ExperimentPart {
            run: example::run,
            values: &[&example::UNIT],
            seeds: 0,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: game::run,
            values: game::VALUES,
            seeds: 9,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: statements::run,
            values: statements::VALUES,
            seeds: 9,
            is_varied_quickly: false,
        },
    ],
    here: Here::Run(here::measured),
};
