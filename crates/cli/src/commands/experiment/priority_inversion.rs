//! Source 000: a job on the critical path that nobody runs.

mod remedies;
mod scene;
mod slow_core;

use super::Experiment;
use super::findings::Findings;
use super::lab::Effort;
use crate::failure::Failure;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "priority-inversion",
    source: "source 000: \"Priority inversion issues in multithreaded job systems running on heterogeneous \
    CPU \
             systems\" (2025)",
    question: "Why does a program wait for milliseconds for a job that takes microseconds, and what helps?",
    setup: "The article's trace as a scenario: three job workers, the main thread and an audio thread on a \
    Galaxy S22 of \
            which one fast core is left, for two milliseconds; when which core leaves is an input, as in \
            the trace. Then \
            each remedy over 1000 frames (a quick run: 60), in which every start and every length differs \
            by up to a \
            tenth, by a seed: from the main thread's start to the end of its wait. Then the article's \
            second option: a \
            job of 0.6 ms on a small core that was idle, and on one held at its lowest clock, against the \
            fastest core \
            at full speed. Both chips that are sold as this phone are used, and for the second option two \
            desktop \
            processors.",
    machine: "galaxy-s22-exynos, galaxy-s22-snapdragon, core-i9-12900k, apple-m1",
    policy: "cfs-4.12, eevdf-6.6, eevdf-6.18",
    learnt: &[
        "The waste is the busy wait: a main thread that parks gives its core to the job it waits for at \
         once.",
        "Lending a priority changes nothing among ordinary threads: all of them are equal to the kernel.",
        "A waiter that runs pieces of what it waits for does about as well as one that parks, without \
         knowing which \
         core goes away.",
        "Under EEVDF the scene does not arise: the worker that was interrupted goes on first.",
        "What is lost on a small core is its clock more than its design: held at its lowest clock it is \
         several times \
         slower than at its own full speed, and the modelled governor needs 10 ms and more to notice.",
        "Why cores went away the article does not know, and no simulation can tell.",
    ],
    run,
};

/// The article does not say which of the two it was.
const PHONES: [&str; 2] = ["galaxy-s22-exynos", "galaxy-s22-snapdragon"];

fn run(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    if !effort.simulated {
        findings.notes.push(
            "This machine: `paceline frames --load 4` shows what a busy machine does to a program that \
             parks, and \
             `diagnose` names inversions in its trace; nothing else of this experiment runs here."
                .into(),
        );
        return Ok(());
    }
    scene::run(effort, findings)?;
    remedies::run(effort, findings)?;
    slow_core::run(effort, findings)
}
