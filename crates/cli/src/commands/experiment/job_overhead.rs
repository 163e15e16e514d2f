//! Source 001: what a job system costs beside the jobs.

mod batches;
mod energy;
mod frame_times;
mod here;
mod nested;
mod ranking;
mod readings;
mod scaling;
mod shares;
mod signals;
mod subject;
mod sums;
mod wakes;
mod wakeup;

use super::article::{Experiment, ExperimentPart, Here};
use super::claim::ClaimVerdict::{Depends, Fitted, Reproduced};
use super::lesson::Lesson;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "job-overhead",
    source: "source 001: Unity, \"Improving job system performance scaling in 2022.2, part 2: overhead\" \
             (2023)",
    question: "How much of many cores do small jobs get, and what takes the rest?",
    setup: "The article's graph: 500 jobs (a quick run: 200), half of them in 1 to 100 pieces, up to \
            10 dependencies each, a wait of the main thread after every 50; each piece takes the same. \
            The generator chooses, from its seed, everything that the article leaves open. The job \
            systems of 2017.3, 2021.3 (the same with chained wake-ups) and 2022.2 are built after its \
            description, which leaves things open, too: this is a reading of them. They run beside \
            Paceline on the author's Ryzen 9 3950X under Linux instead of Windows; two more values of \
            the machine (how a line's requests queue, and the threads' share of a core) are fitted to \
            the first two claims; the third is not, and hangs on what the article leaves open. The \
            simulator counts accesses to shared memory and no plain instructions: what each job system \
            computes between them is a part of its pieces here, as much as makes the rows without workers \
            those of one real thread. Simulated lines travel after each access \
            that another CPU has asked for; real ones do not (V10 of the validation: two threads that count \
            one word take 13.6 ns each time and 70 simulated, since a real core adds some twelve times in a \
            row before it gives the line away, as the values show that fetch_add returns): that is for \
            loops that do nothing else, and `lines` says what hangs on it. *At most* is what no job \
            system can exceed there: the work of that many threads, two of which share a core from the \
            17th on, and the longest way through the graph; what a job system falls short of it is the \
            price of its jobs and of its order. Then the article's loop that adds with \
            compare-and-swap, against fetch_add and a sum for each thread; how many wake-ups are sent \
            and found nothing to do; what waking costs the main thread, with batches and without; jobs that \
            schedule jobs, as a tree; one wake-up drawn; where the time of the threads goes; and \
            what threads that spin instead of sleeping cost a phone, as modelled. On this machine the \
            first part, with 0 to 8 workers, and the order of the job systems beside that on the simulated \
            machine with as many CPUs.",
    machine: "ryzen-3950x, galaxy-s22-snapdragon",
    policy: "eevdf-6.6",
    learnt: &[
        Lesson {
            text: "The article's numbers fit one mechanism: every piece goes through one queue, and a failed \
                   compare-and-swap costs as much as one that succeeds. The machine is fitted to two of \
                   them.",
            rests_on: &[("001-a", Fitted), ("001-b", Fitted)],
        },
        Lesson {
            text: "The third ({001-c} on the first graph) hangs on what the article does not give.",
            rests_on: &[("001-c", Depends)],
        },
        Lesson {
            text: "With ranges that are shared only when a thread is idle, more workers do not make a \
                   frame slower than no workers ({001-j}).",
            rests_on: &[("001-j", Reproduced)],
        },
        Lesson {
            text: "Where pieces are short, workers that share one queue look for work almost all the time \
                   ({001-fa}, 31 workers).",
            rests_on: &[("001-fa", Reproduced)],
        },
        Lesson {
            text: "Sums for each thread cost the same for any number of threads; a shared word costs more \
                   with every thread, with fetch_add as well ({001-o}), and most in a loop ({001-l}).",
            rests_on: &[
                ("001-l", Reproduced),
                ("001-o", Reproduced),
                ("001-p", Reproduced),
            ],
        },
        Lesson {
            text: "Batches save the main thread's time ({001-s}) and wake-ups for nothing ({001-t}) where \
                   it signals every job. If no worker is woken while another one looks for work, there \
                   are few wake-ups as it is ({001-w}).",
            rests_on: &[
                ("001-s", Reproduced),
                ("001-t", Reproduced),
                ("001-w", Reproduced),
            ],
        },
    ],
    parts: &[
        ExperimentPart {
            run: scaling::simulated,
            values: scaling::VALUES,
            seeds: 7,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: readings::simulated,
            values: readings::VALUES,
            seeds: 0,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: shares::simulated,
            values: shares::VALUES,
            seeds: 4,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: sums::simulated,
            values: &[&subject::LINES],
            seeds: 0,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: wakes::simulated,
            values: wakes::VALUES,
            seeds: 9,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: batches::simulated,
            values: batches::VALUES,
            seeds: 0,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: signals::simulated,
            values: signals::VALUES,
            seeds: 0,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: nested::simulated,
            values: nested::VALUES,
            seeds: 0,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: wakeup::simulated,
            values: &[],
            seeds: 0,
            is_varied_quickly: false,
        },
        ExperimentPart {
            run: energy::simulated,
            values: &[&energy::WARM],
            seeds: 0,
            is_varied_quickly: false,
        },
    ],
    here: Here::Run(here::measured),
};
