//! Source 000: a ready job on the critical path that no thread runs.

mod choices;
mod cores;
mod here;
mod option_two;
mod remedies;
mod remedy;
mod scene;
mod scene_jobs;
mod slow_core;

pub(super) use choices::{CORES_BACK, CRITICAL};
#[cfg(test)]
pub(super) use here::SIMULATED;
pub(super) use remedies::{end_of_wait, varied};
pub(super) use remedy::{park, thread};
pub(super) use scene::scene_on;

use super::article::{Experiment, ExperimentPart, Here};
use super::claim::ClaimVerdict::{Beyond, Depends, Given, Reproduced};
use super::lesson::Lesson;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "priority-inversion",
    source: "source 000: \"Priority inversion issues in multithreaded job systems running on heterogeneous \
             CPU systems\" (2025, a post that does not name its author)",
    question: "Why does a program wait for milliseconds for a job that takes microseconds, and what helps?",
    setup: "The article's trace as a scenario: three job workers, the main thread and an audio thread on a \
            Galaxy S22 of which one fast core is left, for two milliseconds; when which core leaves is an \
            input, as in the trace. Then each remedy over 1000 frames (a quick run: 60), in which every \
            start and every length differs by up to a tenth, by a seed: from the main thread's start to \
            the end of its wait. Then the article's second option: a job of 0.6 ms on a small core that \
            was idle, and on one held at its lowest clock, against the fastest core at full speed. Both \
            chips that are sold as this phone are used, and for the second option two desktop processors. \
            Then the same job while others keep the fast cores busy; which cores plain ways take for the \
            fast ones on 153 machines whose cores are known (`testdata/topology`), and what two cores cost a \
            frame. The article does not say which kernel its phone had. Phones of this kind came with Linux \
            5.10 and their vendor's changes, which are not modelled; CFS here is that of Linux 4.12.",
    machine: "galaxy-s22-exynos, galaxy-s22-snapdragon, core-i9-12900k, apple-m1",
    policy: "cfs-4.12, eevdf-6.6, eevdf-6.18",
    learnt: &[
        Lesson {
            text: "The waste is the busy wait: a main thread that parks gives its core to the job it waits \
                   for at once ({000-h}).",
            rests_on: &[("000-a", Given), ("000-b", Given), ("000-h", Reproduced)],
        },
        Lesson {
            text: "On a machine that is at hand, beside threads that want its CPUs as much, a program that \
                   parks has the shorter frames, too ({000-v}).",
            rests_on: &[("000-v", Reproduced)],
        },
        Lesson {
            text: "Lending a priority changes nothing among ordinary threads: all of them are equal to the \
                   kernel.",
            rests_on: &[("000-l", Reproduced)],
        },
        Lesson {
            text: "A waiter that runs pieces of what it waits for need not know which core goes away \
                   ({000-o}).",
            rests_on: &[("000-o", Reproduced)],
        },
        Lesson {
            text: "Parking removes the scene where the awaited worker has a core for itself. Where threads \
                   run on any of the fast cores some frames are late with parking and with Paceline alike \
                   ({000-xa}).",
            rests_on: &[("000-xa", Reproduced)],
        },
        Lesson {
            text: "Beside uncritical work a thread that may run on a small core is put there ({000-qa}), and \
                   is through before the kernel's average, with the half-life that it is given here, calls \
                   the core too small ({000-qb}).",
            rests_on: &[("000-qa", Reproduced), ("000-qb", Given)],
        },
        Lesson {
            text: "To take the cores with the highest clock for the fast ones leaves two or fewer on some \
                   machines ({000-n}); a frame takes {000-nb} then.",
            rests_on: &[("000-n", Depends), ("000-nb", Reproduced)],
        },
        Lesson {
            text: "Under EEVDF the scene is rarer, and not gone ({000-x}): in the run above the worker that \
                   was interrupted goes on first, in others it does not.",
            rests_on: &[("000-u", Reproduced), ("000-x", Reproduced)],
        },
        Lesson {
            text: "A small core that was idle is slow by its design and by its clock ({000-q}), and \
                   mainline's governor notices too late for a job of that length; the vendors' are not \
                   modelled.",
            rests_on: &[("000-q", Reproduced), ("000-r", Beyond)],
        },
        Lesson {
            text: "Why cores went away the article does not know, and no simulation can tell.",
            rests_on: &[("000-g", Beyond)],
        },
    ],
    parts: &[
        ExperimentPart {
            run: scene::run,
            values: choices::OF_SCENE,
            seeds: 0,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: remedies::run,
            values: choices::OF_FRAMES,
            seeds: 9,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: remedies::run_kernels,
            values: choices::OF_KERNELS,
            seeds: 9,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: slow_core::run,
            values: &[&slow_core::JOB, &slow_core::IDLE],
            seeds: 0,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: option_two::run,
            values: &[&slow_core::JOB],
            seeds: 4,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: cores::run,
            values: &[&cores::PIECE],
            seeds: 4,
            is_varied_quickly: false,
        },
    ],
    here: Here::Run(here::measured),
};

/// The article does not say which of the two it was.
pub(super) const PHONES: [&str; 2] = ["galaxy-s22-exynos", "galaxy-s22-snapdragon"];
