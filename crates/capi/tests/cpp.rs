//! The header for C++ as programs use it: its examples, compiled without a warning and with the checkers of
//! addresses and undefined behaviour, print what is written beside them.
//!
//! A compiler for C++ need not be there: with `PACELINE_TEST_CPP=all`, as `cargo xtask test` sets it where it
//! has one, the tests run; else they say that they did not, and pass.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Language, crate_folder};

const fn cpp(standard: &'static str, flags: &'static [&'static str]) -> Language {
    Language {
        compiler: ("CXX", "c++"),
        standard,
        flags,
    }
}

/// Each example with the oldest standard that it is for.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("first.cpp", &["c++17", "c++20"]),
    ("groups.cpp", &["c++17"]),
    ("graph.cpp", &["c++17", "c++20"]),
    ("coroutines.cpp", &["c++20"]),
];

/// Looks for mistakes with memory and for what is undefined.
const CHECKED: &[&str] = &[
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
];

/// Runs a program of one file with the checkers, which find nothing, and expects it to end well.
fn runs_clean(file: &Path) {
    runs_clean_as("c++17", file);
}

/// The same in another standard.
fn runs_clean_as(standard: &'static str, file: &Path) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let program = cpp(standard, CHECKED).compiled(file, folder.path());
    let out = Command::new(program)
        .output()
        .expect("it was just compiled");
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
}

fn is_wanted() -> bool {
    let is_wanted = std::env::var_os("PACELINE_TEST_CPP").is_some();
    if !is_wanted {
        println!("PACELINE_TEST_CPP is not set: nothing was compiled");
    }
    is_wanted
}

/// Goal: each example does what it says, in each standard that it is for. Method: compile, run, compare.
#[test]
fn the_examples_run() {
    if !is_wanted() {
        return;
    }
    for (name, standards) in EXAMPLES {
        for &standard in *standards {
            cpp(standard, &[]).run_example(name, &[]);
        }
    }
}

/// Goal: the headers are for another compiler, too. Method: the same with clang, by the name that it has.
#[test]
fn the_examples_run_by_clang() {
    if !is_wanted() {
        return;
    }
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let Some(clang) = ["clang++", "clang++-19"].into_iter().find(runs) else {
        println!("there is no clang++ here: nothing was compiled");
        return;
    };
    for (name, standards) in EXAMPLES {
        for &standard in *standards {
            let by_clang = Language {
                compiler: ("CLANGXX", clang),
                ..cpp(standard, &[])
            };
            by_clang.run_example(name, &[]);
        }
    }
}

/// Goal: the guide says what is so. Method: its program compiles, and computes what it says.
#[test]
fn the_guide_is_true() {
    if !is_wanted() {
        return;
    }
    let guide =
        fs::read_to_string(crate_folder().join("../../docs/guide/c.md")).expect("the guide");
    let (_, rest) = guide.split_once("```cpp\n").expect("a block");
    let (block, _) = rest.split_once("```").expect("its end");
    let program = format!(
        "#include <paceline.hpp>\nint main() {{\nstd::vector<float> positions(1000, 1.0f);\n\
         const float speed = 2.0f;\nstd::size_t visible = 0;\n{block}\
         return total == 6.0f && visible == 1000 ? 0 : 1;\n}}\n"
    );
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("guide.cpp");
    fs::write(&file, program).expect("a scratch file");
    let program = cpp("c++17", &[]).compiled(&file, folder.path());
    let status = Command::new(program)
        .status()
        .expect("it was just compiled");
    assert!(status.success());
}

/// Goal: the headers for Box2D and with enkiTS's names are for C++, too, and nothing of theirs leaks or is
/// used after its end. Method: the programs in C, as C++, with the checkers.
#[test]
fn the_headers_in_c_are_for_cpp() {
    if !is_wanted() {
        return;
    }
    for name in ["box2d", "enkits", "enkits_threads", "enkits_leave"] {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let file = folder.path().join(name).with_extension("cpp");
        let source = format!("tests/programs/{name}.c");
        fs::copy(crate_folder().join(source), &file).expect("it can be copied");
        runs_clean(&file);
    }
}

/// Goal: values that own something can be assigned, as members of a program's own classes are. Method: a
/// program that assigns one of each kind, with the checkers.
#[test]
fn what_is_assigned_is_given_back_once() {
    if !is_wanted() {
        return;
    }
    runs_clean(&crate_folder().join("tests/programs/moved.cpp"));
}

/// Goal: waits beside failures find what is so: no result of a job that never ran, times without end, graphs
/// whose declaration has thrown, coroutines that go on after a failure. Method: a program that does each,
/// with the checkers.
#[test]
fn waits_beside_failures_find_what_is_so() {
    if !is_wanted() {
        return;
    }
    for standard in ["c++17", "c++20"] {
        runs_clean_as(standard, &crate_folder().join("tests/programs/waits.cpp"));
    }
}

/// Goal: the body of a loop, which several threads call at once, cannot change itself unseen, and the
/// compiler says so. Method: each kind of loop with a lambda that is `mutable`, and with one that is not.
#[test]
fn bodies_of_loops_do_not_change_themselves() {
    if !is_wanted() {
        return;
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    let loops = [
        "jobs.schedule_for(\"l\", 9, BODY);",
        "jobs.parallel_for(\"l\", 9, BODY);",
        "graph.loop(\"l\", [] { return std::size_t{9}; }, BODY);",
    ];
    for (number, call) in loops.iter().enumerate() {
        for (word, is_refused) in [("mutable ", true), ("", false)] {
            let body =
                format!("[n = 0](std::size_t, std::size_t) {word}{{ static_cast<void>(n); }}");
            let text = format!(
                "#include <paceline.hpp>\nint main() {{\npl::system jobs(0);\n\
                 auto graph = jobs.graph(\"g\");\n{}\nreturn 0;\n}}\n",
                call.replace("BODY", &body)
            );
            let file = folder.path().join(format!("loop{number}.cpp"));
            fs::write(&file, text).expect("a scratch file");
            let out = cpp("c++17", &[]).tried(&file, &folder.path().join("program"));
            let said = String::from_utf8_lossy(&out.stderr);
            assert_eq!(out.status.success(), !is_refused, "{call} {word}:\n{said}");
            assert!(!is_refused || said.contains("is not mutable"), "{said}");
        }
    }
}

/// Goal: nothing leaks, is used after its end or is undefined. Method: the same, with the checkers; a leak or
/// a finding is a text on the error output, which an example does not have.
#[test]
fn checkers_find_nothing() {
    if !is_wanted() {
        return;
    }
    for (name, standards) in EXAMPLES {
        cpp(standards[0], CHECKED).run_example(name, &[]);
    }
}

/// Looks for data races. It has to know what the library does to order them: that is compiled for it as well.
const RACES: &[&str] = &[
    "-g",
    "-fsanitize=thread",
    "-include",
    "tests/programs/tsan.h",
];

/// Goal: what the library orders is in an order for ThreadSanitizer, and what a program does not order is
/// found. Method: the examples, none of which has a race, and a program that has one, where the library was
/// compiled for it (`cargo xtask test --only tsan`): with one that was not, each job would seem to be a race.
#[test]
fn races_are_those_of_the_program() {
    if !cfg!(paceline_tsan) {
        println!("the library is not compiled for ThreadSanitizer: nothing was compiled");
        return;
    }
    for (name, standards) in EXAMPLES {
        cpp(standards[0], RACES).run_example(name, &[]);
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = crate_folder().join("tests/programs/race.cpp");
    let program = cpp("c++17", RACES).compiled(&file, folder.path());
    let out = Command::new(program)
        .output()
        .expect("it was just compiled");
    let said = String::from_utf8_lossy(&out.stderr);
    let is_found = said.contains("data race") && said.contains("race.cpp");
    assert!(!out.status.success() && is_found, "{said}");
}
