//! The interface as programs in C use it: the examples, compiled without a warning against the header and the
//! library, print what is written beside them.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use common::{Language, crate_folder};

const C: Language = Language {
    compiler: ("CC", "cc"),
    standard: "c99",
    flags: &[],
};

/// The examples, and the arguments of each.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("first", &[]),
    ("loops", &[]),
    ("events", &[]),
    ("failures", &[]),
    ("tokens", &[]),
    ("pinned", &[]),
    ("groups", &[]),
    ("graph", &[]),
    ("frames", &["{folder}/c.pftrace"]),
];

/// Goal: each example does what it says. Method: compile, run, compare with the text beside it.
#[test]
fn the_examples_run() {
    for (name, arguments) in EXAMPLES {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        C.run_example(&format!("{name}.c"), &arguments);
    }
}

/// What a program in C prints and how it ends.
fn output_of(file: &Path) -> Output {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let program = C.compiled(file, folder.path());
    let out = Command::new(program).output();
    out.expect("it was just compiled")
}

/// Goal: the guide says what is so. Method: its program compiles and runs without a word; what it shows of an
/// example's output is there.
#[test]
fn the_guide_is_true() {
    let guide = crate_folder().join("../../docs/guide/c.md");
    let guide = fs::read_to_string(guide).expect("the guide");
    let block = |language: &str| {
        let begin = format!("```{language}\n");
        let (_, rest) = guide.split_once(&begin).expect("a block");
        rest.split_once("```").expect("its end").0
    };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("guide.c");
    let program = format!(
        "#include <paceline.h>\n#include <stdio.h>\nstatic int world;\n\
         static void integrate(pl_context *cx, void *data) {{ (void)cx; ++*(int *)data; }}\n\
         static void cull(pl_context *cx, void *data) {{ (void)cx; ++*(int *)data; }}\n\
         int main(void) {{\n{}pl_system_destroy(jobs);\nreturn world - 2;\n}}\n",
        block("c")
    );
    fs::write(&file, program).expect("a scratch file");
    let out = output_of(&file);
    assert!(out.status.success() && out.stdout.is_empty(), "{out:?}");
    let failures = crate_folder().join("examples/failures.c.out");
    let failures = fs::read_to_string(failures).expect("what the example prints");
    assert!(failures.contains(block("text")));
}

/// Goal: in the child of a fork each call is a status, and none hangs. Method: a program that forks.
#[test]
fn the_child_of_a_fork_is_told() {
    let file = crate_folder().join("tests/programs/fork.c");
    let out = output_of(&file);
    let printed = String::from_utf8_lossy(&out.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    let (why, statuses): (Vec<&str>, _) = lines.iter().partition(|line| line.starts_with("why: "));
    assert_eq!(
        statuses,
        [
            "schedule: PL_FORKED",
            "wait: PL_FORKED",
            "graph: PL_FORKED",
            "destroy: PL_OK",
            "after: PL_DESTROYED",
            "parent: 0 PL_OK",
            "graph: PL_OK",
            "waits: PL_OK",
            "ends: PL_OK"
        ]
    );
    assert!(why[0].contains("fork"), "{why:?}");
}

/// Goal: a call in a fork's child ends, whatever other threads were in the middle of, and a job system that
/// the child makes works. Method: a program that forks while threads take the library's locks.
#[test]
fn a_fork_in_the_middle_of_calls_hangs_nothing() {
    let file = crate_folder().join("tests/programs/forks.c");
    let out = output_of(&file);
    let printed = String::from_utf8_lossy(&out.stdout);
    assert_eq!(printed, "10 of 10\n", "{out:?}");
}

/// Goal: the end of a job system finds jobs that make calls, and calls the program, and neither spoils
/// anything. Method: a program that ends a thousand of them while jobs make jobs, and one whose data,
/// released in the end, make calls.
#[test]
fn job_systems_end_beside_calls() {
    let file = crate_folder().join("tests/programs/ends.c");
    let out = output_of(&file);
    let printed = String::from_utf8_lossy(&out.stdout);
    let whole = "PL_OK\nPL_DESTROYED\ndestroyed: PL_OK\ncalls: answered\n";
    assert_eq!(printed, whole, "{out:?}");
}

/// Goal: a job has the name that lies at the address now, in each job system, and what lies behind a name is
/// not read. Method: a program whose names end at a closed page, three texts at each address, each in two
/// job systems in turn, and a shorter one.
#[test]
fn names_end_at_their_zero_byte() {
    let file = crate_folder().join("tests/programs/names.c");
    let out = output_of(&file);
    let printed = String::from_utf8_lossy(&out.stdout);
    assert_eq!(printed, "told: 840, wrong: 0\n", "{out:?}");
}

/// Goal: a wait on another stack than the thread's runs what it waits for: how much is left there is not
/// known. Method: a program with a fiber, alone and with a worker, for jobs that only this thread can run.
#[test]
fn waits_on_fibers_run_jobs() {
    let file = crate_folder().join("tests/programs/fibers.c");
    let out = output_of(&file);
    let printed = String::from_utf8_lossy(&out.stdout);
    assert_eq!(printed, "PL_OK, 1 ran\n".repeat(3), "{out:?}");
}

/// Goal: the callbacks for Box2D do what its steps need, with less threads than tasks that wait for each
/// other could use. Method: a program that calls them as a step does. (`cargo xtask clients` runs Box2D
/// itself.)
#[test]
fn the_callbacks_for_box2d_run_a_step() {
    let file = crate_folder().join("tests/programs/box2d.c");
    let out = output_of(&file);
    let printed = String::from_utf8_lossy(&out.stdout);
    assert_eq!(printed, "2 threads\n100 steps, 100 splits\n", "{out:?}");
}

/// Goal: what programs call of enkiTS does what it does there. Method: a program in its words, alone on one
/// thread and on four, and on a job system of the program's. (`cargo xtask clients` runs programs that were
/// written for enkiTS.)
#[test]
fn programs_for_enkits_run() {
    let file = crate_folder().join("tests/programs/enkits.c");
    let out = output_of(&file);
    let printed = String::from_utf8_lossy(&out.stdout);
    let each = "ranges: 0 wrong, 0 out of bounds, 0 short, sum 2000000\ndependencies: 0 wrong\n\
                actions: 200 of 200\npinned: 3\nnested: 1\n";
    let whole = format!(
        "1 threads\n{each}4 threads\n{each}on the program's own: any thread\n{each}\
         beside others: 0 out of bounds\n"
    );
    assert_eq!(printed, whole, "{out:?}");
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
}

/// Goal: tasks of enkiTS's that wait for tasks, threads of the program's, and deletions as early as they may
/// be do what they do there; waits nest no deeper than tasks do, and rest; a thread has its own number.
/// Method: a program that counts what it did, without workers and with up to three.
#[test]
fn threads_of_enkits_have_their_numbers() {
    let file = crate_folder().join("tests/programs/enkits_threads.c");
    let out = output_of(&file);
    let printed = String::from_utf8_lossy(&out.stdout);
    let each = "frames: 320000 items, 0 wrong\n";
    let then = "pinned in tasks: 2000\ndeletions: 2000\n";
    let mut whole = format!("0 workers\n{each}recursion: as deep as it is\n{then}");
    for workers in 1..=3 {
        whole += &format!(
            "{workers} workers\n{each}{then}externals: numbers 1 and 1, 1 refused, 135400 items, 0 \
             wrong\nrests: few, few\n"
        );
    }
    whole += "left: 0, waits were told\n";
    assert_eq!(printed, whole, "{out:?}");
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
}

/// Goal: threads of the program's may come and go as they do with enkiTS: with a lent number they have no
/// pinned tasks, and nobody is refused for it; when they take leave, or end, no task of theirs stays live; a
/// wait for pinned tasks ends inside of another one, and when the scheduler does. Method: a program that
/// counts, and that orders its threads by what they have done.
#[test]
fn threads_of_enkits_take_leave() {
    let file = crate_folder().join("tests/programs/enkits_leave.c");
    let out = output_of(&file);
    let printed = String::from_utf8_lossy(&out.stdout);
    let leave = "leave: 3 run, all\nnews: after 1\nends: 1 run\n";
    let whole = format!(
        "lent: 1 run, 0 registered, its number\nmeanwhile: 1 registered, number 1, 2 run\n{leave}{leave}\
         nested: 1, then 2\n50 schedulers ended\n"
    );
    assert_eq!(printed, whole, "{out:?}");
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
}

/// Goal: the interface of enkiTS has no errors, so a mistake ends the program with a line that says what it
/// was. Method: a program that makes each in a process of its own.
#[test]
fn mistakes_with_enkits_are_told() {
    let file = crate_folder().join("tests/programs/enkits_wrong.c");
    let out = output_of(&file);
    let printed = String::from_utf8_lossy(&out.stdout);
    let lines = [
        "enkiCreateTaskSet() got no function",
        "enkiCreatePinnedTask() got no function",
        "a task is added that is not complete: it was added before, or comes after one that was",
        "a task comes after itself: its dependencies are a circle",
        "a task is pinned to a thread that is neither thread 0 nor a registered external one",
    ];
    let whole: String = lines
        .map(|line| format!("paceline: enkiTS's interface: {line}\n"))
        .concat();
    assert_eq!(printed, whole, "{out:?}");
}

/// Goal: each function has an example. Method: the names that the header declares, in the examples' texts.
#[test]
fn each_function_has_an_example() {
    let header = fs::read_to_string(crate_folder().join("include/paceline.h")).expect("the header");
    let texts: String = EXAMPLES
        .iter()
        .map(|(name, _)| crate_folder().join("examples").join(format!("{name}.c")))
        .map(|path| fs::read_to_string(path).expect("an example"))
        .chain(fs::read_to_string(
            crate_folder().join("examples/example.h"),
        ))
        .collect();
    let functions = functions(&header);
    assert!(functions.len() > 30, "{functions:?}");
    for function in functions {
        let call = format!("{function}(");
        assert!(texts.contains(&call), "no example calls {function}");
    }
}

/// The functions that a header declares: names before a bracket at declarations that begin a line.
fn functions(header: &str) -> Vec<&str> {
    let declarations = header.lines().filter(|line| {
        line.starts_with("pl_status pl_")
            || line.contains(" *pl_")
            || line.starts_with("size_t pl_")
    });
    let before_bracket = declarations.filter_map(|line| line.split_once('('));
    before_bracket
        .filter_map(|(before, _)| before.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("pl_"))
        .collect()
}
