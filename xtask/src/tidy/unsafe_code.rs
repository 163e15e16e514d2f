//! Where `unsafe` may be. A file gets on the list by review; everywhere else it is an error.

use super::tree::{Finding, Tree};
use crate::source::words;

/// Files that may say `unsafe`; a line that ends in `/` allows a folder. A file that no longer says
/// it has to leave the list.
const ALLOWED: &[&str] = &[
    // The contracts of the facade: unsafe traits and functions.
    "crates/platform/src/memory.rs",
    // Texts that are kept for ever, without a lock.
    "crates/platform/src/names.rs",
    "crates/platform/src/threads.rs",
    // Another library's names on the job system: jobs that borrow from threads that wait for them.
    "clients/bevy-tasks/src/scope.rs",
    "clients/rayon-core/src/broadcast/mod.rs",
    "clients/rayon-core/src/join/mod.rs",
    "clients/rayon-core/src/registry/",
    "clients/rayon-core/src/scope/",
    // The operating system: system calls, registers, the thread-local word.
    "crates/platform/src/os/",
    // Memory that processes share.
    "crates/hint/src/linux/",
    "crates/hint/src/models.rs",
    "crates/hint/src/page.rs",
    "crates/hint/tests/broker.rs",
    "crates/hint/tests/client.rs",
    // The job system: jobs' bodies, slots, and borrowed data that several workers reach.
    "crates/paceline/src/access/",
    "crates/paceline/src/api/events.rs",
    "crates/paceline/src/api/future.rs",
    // The data of graphs, which their jobs share as they have declared.
    "crates/paceline/src/api/graph/",
    "crates/paceline/src/api/handle/",
    "crates/paceline/src/api/inputs.rs",
    "crates/paceline/src/api/over/",
    "crates/paceline/src/api/per_worker.rs",
    // A context that was lent, for the length of a call.
    "crates/paceline/src/api/origin.rs",
    "crates/paceline/src/api/schedule.rs",
    "crates/paceline/src/api/scope.rs",
    // Data that jobs share as they have declared.
    "crates/paceline/src/api/shared/",
    "crates/paceline/src/api/plain.rs",
    "crates/paceline/src/api/submit.rs",
    "crates/paceline/src/border/",
    "crates/paceline/src/graph/finish.rs",
    // Platforms with planted bugs, and contexts for the models' own threads.
    "crates/paceline/src/models/",
    // Places of a ring, found by a mask.
    "crates/paceline/src/queues/deque/mod.rs",
    "crates/paceline/src/record/rings/mod.rs",
    "crates/paceline/src/store/body.rs",
    "crates/paceline/src/store/holders.rs",
    "crates/paceline/src/store/slab/chunks.rs",
    "crates/paceline/src/store/slot.rs",
    "crates/paceline/src/work/bodies.rs",
    "crates/paceline/src/work/built/",
    "crates/paceline/src/work/context.rs",
    "crates/paceline/src/work/workers/life.rs",
    "crates/paceline/src/work/entry.rs",
    "crates/paceline/src/work/fork/",
    "crates/paceline/src/work/future.rs",
    "crates/paceline/src/work/posted.rs",
    "crates/paceline/src/work/range/",
    "crates/paceline/src/work/repeat/",
    "crates/paceline/src/work/run.rs",
    "crates/paceline/src/work/scope.rs",
    "crates/paceline/src/work/thread_slots.rs",
    "crates/paceline/src/work/shared.rs",
    "crates/paceline/src/work/thread_record.rs",
    // Pointers of programs in C.
    "crates/capi/src/",
    "crates/capi/benches/cost.rs",
    "crates/capi/tests/graphs.rs",
    "crates/capi/tests/lanes.rs",
    "crates/capi/tests/misuse.rs",
    "tests/fuzzing/misuse/",
    // The simulated machine: it implements the facade's unsafe traits and switches stacks.
    "crates/sim/src/run/",
    "crates/sim/src/sim.rs",
    "crates/sim/tests/sim/threads.rs",
    // Thread and process times of a benchmark, which no facade needs to know.
    "crates/measure/src/cpu_time.rs",
    // Masks and ends of threads, which the kernel is asked for.
    "crates/scx/src/hints.rs",
    "crates/scx/src/kernel.rs",
    "crates/scx/src/machine.rs",
    // A program's inheritance from the process that starts it.
    "crates/cli/tests/record.rs",
    // What a module exports has its name unmangled, which an attribute says that is unsafe.
    "tests/anywhere/src/module.rs",
    // Tests of the process itself (fork, registers, usage), and planted platforms.
    "tests/dag/broken.rs",
    // Forks, and wakers by hand: only these see that they are cloned.
    "tests/defects/forks.rs",
    "tests/defects/matrix/wakers.rs",
    "tests/hints.rs",
    "tests/hostile/misuse/fork.rs",
    "tests/confined.rs",
    "tests/process.rs",
    "tests/report/asked.rs",
    "tests/refused.rs",
    // The system's allocator, counted.
    "tests/support/allocations.rs",
    // Threads of the machine at hand as experiments want them, and a platform that only passes on.
    "tests/validate/compare/experiments/facade.rs",
    "tests/validate/compare/real/",
    // Worlds to test in: they implement the facade's unsafe traits and switch stacks.
    "crates/testkit/",
];

/// Rule "unsafe": `unsafe` is in the files of [`ALLOWED`] and nowhere else.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    against(tree, ALLOWED)
}

fn against(tree: &Tree, allowed: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut used = vec![false; allowed.len()];
    for (file, source) in tree.rust() {
        let mut lines = source.lines.iter().map(|line| &line.code);
        let Some(index) = lines.position(|code| words(code).any(|(_, word)| word == "unsafe"))
        else {
            continue;
        };
        let covers = |entry: &str| {
            file.path == entry || (entry.ends_with('/') && file.path.starts_with(entry))
        };
        match allowed.iter().position(|entry| covers(entry)) {
            Some(entry) => used[entry] = true,
            None => {
                let message =
                    "unsafe in a file that is not listed in xtask/src/tidy/unsafe_code.rs";
                findings.push(file.finding(index + 1, message));
            }
        }
    }
    for (entry, _) in allowed.iter().zip(used).filter(|(_, used)| !used) {
        let message = "is listed in xtask/src/tidy/unsafe_code.rs and has no unsafe code";
        findings.push(Finding {
            place: (*entry).to_owned(),
            line: 0,
            message: message.to_owned(),
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    const UNSAFE: &str = "//! x\nfn f() { unsafe { g() } }\n";

    #[test]
    fn unsafe_code_in_another_file_is_found() {
        let tree = Tree::of(&[("a.rs", UNSAFE), ("os/b.rs", UNSAFE), ("c.rs", UNSAFE)]);
        let expected =
            ["c.rs:2: unsafe in a file that is not listed in xtask/src/tidy/unsafe_code.rs"];
        assert_eq!(shown(&against(&tree, &["a.rs", "os/"])), expected);
    }

    #[test]
    fn a_line_of_the_list_that_is_not_needed_is_found() {
        let tree = Tree::of(&[("a.rs", "//! Nothing unsafe.\n#![forbid(unsafe_code)]\n")]);
        let expected = ["a.rs: is listed in xtask/src/tidy/unsafe_code.rs and has no unsafe code"];
        assert_eq!(shown(&against(&tree, &["a.rs"])), expected);
    }
}
