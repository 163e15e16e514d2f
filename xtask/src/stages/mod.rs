//! The table of stages: what `cargo xtask test` runs, in order. To add a stage, add a row.
//!
//! A stage that counts tests fails if it ran none: a filter cannot pass by doing nothing.

pub(crate) mod commands;

use crate::context::Context;
use crate::{
    clients, dist, examples, hello, oracle, package, peers, tidy, tools, vm, wasm, wheel, wine,
};
use commands::{
    CAMPAIGN, CAMPAIGN_GRAPHS, CAMPAIGN_LEFT, DOC_FLAGS, LEAN, MIRI, MIRI_FLAGS, MIRI_SEEDS,
    NARROW, OLDEST, OLDEST_NARROW, SCX, SEEDS_FEW, SEEDS_MANY, TSAN_ENV, TSAN_INTEGRATION,
    TSAN_UNIT, WITHOUT_BACKTRACES,
};

/// One row: a name to select it by, what it is for, what it runs.
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    /// Half a line that says which mistakes it finds.
    pub(crate) purpose: &'static str,
    pub(crate) switch: Switch,
    /// Tools of `tools.rs` without which the stage is "not available" and the run goes on.
    pub(crate) needs: &'static [&'static str],
    /// Whether its commands print test results.
    pub(crate) counts_tests: bool,
    /// Each command of the stage is stopped, and fails, when it prints nothing for this long.
    pub(crate) silence_minutes: u64,
    /// Runs at the same time as the stage above it: for two that share no target folder and of which one
    /// leaves processors idle.
    pub(crate) beside: bool,
    pub(crate) steps: &'static [Step],
}

/// In which runs the stage takes part.
pub(crate) enum Switch {
    /// In each. These share what they compile, and end within a quarter of an hour on two processors.
    On,
    /// In those with `--all`, as CI's are: something is compiled once more, for another checker, toolchain,
    /// system or program.
    WithAll,
    /// Not in a usual run, and why; selecting it with `--only` runs it.
    Off(&'static str),
}

impl Switch {
    /// Whether the stage is in a usual run, or in one with `--all`.
    pub(crate) const fn takes_part(&self, all: bool) -> bool {
        match self {
            Switch::On => true,
            Switch::WithAll => all,
            Switch::Off(_) => false,
        }
    }
}

/// One step of a stage; the first that fails ends it.
pub(crate) enum Step {
    /// A command with its own environment variables.
    Run {
        line: &'static str,
        env: &'static [(&'static str, &'static str)],
    },
    /// Something xtask does itself: `Ok` may hold a note, `Err` what went wrong.
    Call {
        what: &'static str,
        function: fn(&Context) -> Result<String, String>,
    },
}

const fn run(line: &'static str) -> Step {
    Step::Run { line, env: &[] }
}

const fn call(what: &'static str, function: fn(&Context) -> Result<String, String>) -> Step {
    Step::Call { what, function }
}

/// Every stage, cheapest first, so that a simple mistake is reported soon.
pub(crate) const STAGES: &[Stage] = &[
    Stage {
        name: "tools",
        purpose: "what the other stages need beyond cargo, installed if missing",
        switch: Switch::On,
        needs: &[],
        counts_tests: false,
        silence_minutes: 5,
        beside: false,
        steps: &[call("probe and install (see tools.rs)", tools::stage)],
    },
    Stage {
        name: "fmt",
        purpose: "one layout of the source",
        switch: Switch::On,
        needs: &["rustfmt"],
        counts_tests: false,
        silence_minutes: 1,
        beside: false,
        steps: &[run("cargo fmt --all --check -- --color=never")],
    },
    Stage {
        name: "clippy",
        purpose: "lints, and the fence around the facade",
        switch: Switch::On,
        needs: &["clippy"],
        counts_tests: false,
        silence_minutes: 8,
        beside: false,
        steps: &[run("cargo clippy --workspace --all-targets -- -D warnings")],
    },
    Stage {
        name: "tidy",
        purpose: "house rules that no compiler knows",
        switch: Switch::On,
        needs: &[],
        counts_tests: false,
        silence_minutes: 1,
        beside: false,
        steps: &[call("cargo xtask tidy", tidy::stage)],
    },
    Stage {
        name: "docs",
        purpose: "documentation builds and its links lead somewhere",
        switch: Switch::On,
        needs: &[],
        counts_tests: false,
        silence_minutes: 8,
        beside: false,
        steps: &[Step::Run {
            line: "cargo doc --workspace --no-deps --document-private-items",
            env: &[("RUSTDOCFLAGS", DOC_FLAGS)],
        }],
    },
    Stage {
        name: "oldest",
        purpose: "the crates compile with the oldest toolchain, and for addresses of 32 bits",
        switch: Switch::WithAll,
        needs: &[tools::OLDEST, tools::NARROW],
        counts_tests: false,
        silence_minutes: 5,
        beside: false,
        steps: &[run(OLDEST), run(OLDEST_NARROW)],
    },
    Stage {
        name: "package",
        purpose: "the crates can be packaged, and a stranger's program builds from the packages",
        switch: Switch::WithAll,
        needs: &[],
        counts_tests: false,
        silence_minutes: 5,
        beside: false,
        steps: &[call("cargo xtask package", package::stage)],
    },
    Stage {
        name: "lean",
        purpose: "the job system without default features: its unit tests, and what it adds to a program",
        switch: Switch::WithAll,
        needs: &[],
        counts_tests: true,
        silence_minutes: 5,
        beside: false,
        steps: &[
            run(LEAN),
            call("measure a first program (see hello.rs)", hello::stage),
        ],
    },
    Stage {
        name: "scx",
        purpose: "policies decide in Linux what they decide in the simulator, on the same messages",
        switch: Switch::On,
        needs: &["rustfmt"],
        counts_tests: true,
        silence_minutes: 5,
        beside: false,
        steps: &[
            run("cargo fmt --manifest-path crates/scx/Cargo.toml --check -- --color=never"),
            run(SCX),
        ],
    },
    Stage {
        name: "vm",
        purpose: "a policy takes charge of a real kernel in a virtual machine, and gives it back",
        switch: Switch::WithAll,
        needs: vm::STAGE_NEEDS,
        counts_tests: false,
        silence_minutes: 10,
        beside: false,
        steps: &[call("cargo xtask vm --smoke", vm::stage)],
    },
    Stage {
        name: "wasm",
        purpose: "programs on the job system run in WebAssembly, without threads and without a clock",
        switch: Switch::WithAll,
        needs: wasm::NEEDS,
        counts_tests: false,
        silence_minutes: 5,
        beside: false,
        steps: &[call(
            "build and run tests/anywhere (see wasm.rs)",
            wasm::stage,
        )],
    },
    Stage {
        name: "windows",
        purpose: "the library's tests as a program of Windows, by Wine; an archive for C and C++ there",
        switch: Switch::WithAll,
        needs: dist::windows::NEEDS,
        counts_tests: true,
        silence_minutes: 5,
        beside: false,
        steps: &[
            call("prepare Wine (see wine.rs)", wine::prepare),
            Step::Run {
                line: wine::TESTS,
                env: wine::ENV,
            },
            call(
                "cargo xtask dist --target x86_64-pc-windows-gnu --check",
                dist::windows::stage,
            ),
        ],
    },
    Stage {
        name: "narrow",
        purpose: "unit tests with addresses of 32 bits",
        switch: Switch::Off("a minute; run it after changes to what packs words or counts bytes"),
        needs: &[tools::MULTILIB, tools::I686],
        counts_tests: true,
        silence_minutes: 5,
        beside: false,
        steps: &[run(NARROW)],
    },
    Stage {
        name: "peers",
        purpose: "oneTBB's runner builds, and the benchmark runs with it",
        switch: Switch::WithAll,
        needs: peers::NEEDS,
        counts_tests: true,
        silence_minutes: 10,
        beside: false,
        steps: &[
            call("cargo xtask peers", peers::stage),
            // The whole workspace, as in the next stage, so that it is compiled once.
            Step::Run {
                line: "cargo test --workspace --test peers",
                env: &[("PACELINE_TEST_PEERS", "all")],
            },
        ],
    },
    Stage {
        name: "oracle",
        purpose: "Perfetto's trace processor, with which unit tests compare where it is to be had",
        switch: Switch::WithAll,
        needs: oracle::NEEDS,
        counts_tests: false,
        silence_minutes: 5,
        beside: false,
        steps: &[call("cargo xtask oracle", oracle::stage)],
    },
    Stage {
        name: "unit",
        purpose: "every test but the models, with debug assertions; doctests included",
        switch: Switch::On,
        needs: &[],
        counts_tests: true,
        silence_minutes: 15,
        beside: false,
        steps: &[run(
            "cargo test --workspace --no-fail-fast -- --skip models::",
        )],
    },
    Stage {
        name: "clients",
        purpose: "Box2D's worlds end the same on the job system; its tests for enkiTS pass there",
        switch: Switch::On,
        needs: &["cc"],
        counts_tests: false,
        silence_minutes: 10,
        beside: false,
        steps: &[call(
            "cargo xtask clients --smoke, of it --only box2d and enkits",
            clients::stage_in_c,
        )],
    },
    Stage {
        name: "more-clients",
        purpose: "rayon's and Bevy's own tests on the job system, and what Jolt relies on",
        switch: Switch::WithAll,
        needs: &["rustfmt", "c++"],
        counts_tests: false,
        silence_minutes: 15,
        beside: false,
        steps: &[
            call("cargo fmt --check, in each package", clients::formatted),
            call(
                "cargo xtask clients --smoke, of it --only jolt, rayon and bevy",
                clients::stage,
            ),
        ],
    },
    Stage {
        name: "wheel",
        purpose: "the Python package in a clean venv, and on a Ray cluster that loses a node",
        switch: Switch::WithAll,
        needs: wheel::NEEDS,
        counts_tests: false,
        silence_minutes: 15,
        beside: false,
        steps: &[call("cargo xtask wheel --check --ray", wheel::stage)],
    },
    Stage {
        name: "pages",
        purpose: "the pages of --report in a browser: clicks, keys, numbers, hostile names",
        switch: Switch::WithAll,
        needs: &[tools::BROWSER],
        counts_tests: true,
        silence_minutes: 10,
        beside: false,
        // The whole workspace, as in the stage before.
        steps: &[Step::Run {
            line: "cargo test --workspace --test browser",
            env: &[("PACELINE_TEST_BROWSER", "all")],
        }],
    },
    Stage {
        name: "faces",
        purpose: "the job system from C++: examples, with the compiler's checkers; an archive for C",
        switch: Switch::WithAll,
        needs: dist::NEEDS,
        counts_tests: true,
        silence_minutes: 10,
        beside: false,
        steps: &[
            // The whole workspace, as in the stage before.
            Step::Run {
                line: "cargo test --workspace --test cpp",
                env: &[("PACELINE_TEST_CPP", "all")],
            },
            call("cargo xtask dist --check", dist::stage),
        ],
    },
    Stage {
        name: "model",
        purpose: "the lock-free parts under every schedule, by a model checker",
        switch: Switch::On,
        needs: &[],
        counts_tests: true,
        silence_minutes: 10,
        beside: false,
        // The whole workspace, as in the stage before: with fewer packages, dependencies would have other
        // features and be compiled again.
        steps: &[run("cargo test --workspace --lib -- models::")],
    },
    Stage {
        name: "release",
        purpose: "integration tests with optimizations: stress on the real system",
        switch: Switch::Off(
            "the unit stage runs the same tests; run it after changes to the lock-free parts",
        ),
        needs: &[],
        counts_tests: true,
        silence_minutes: 5,
        beside: false,
        steps: &[run(
            "cargo test --profile release-test -p paceline-tests --test integration",
        )],
    },
    Stage {
        name: "miri",
        purpose: "undefined behaviour and data races in the unit tests, interpreted",
        switch: Switch::WithAll,
        needs: &["nightly", "miri", "rust-src"],
        counts_tests: true,
        silence_minutes: 10,
        beside: false,
        steps: &[
            Step::Run {
                line: MIRI,
                env: &[("MIRIFLAGS", MIRI_FLAGS), WITHOUT_BACKTRACES],
            },
            Step::Run {
                line: MIRI_SEEDS,
                env: &[("MIRIFLAGS", SEEDS_FEW), WITHOUT_BACKTRACES],
            },
        ],
    },
    Stage {
        name: "tsan",
        purpose: "data races on the real system, also in C++, by ThreadSanitizer",
        switch: Switch::WithAll,
        needs: &["nightly", "rust-src", "c++", tools::TSAN_HOST],
        counts_tests: true,
        silence_minutes: 10,
        // Miri interprets on one processor, but for the few seeds at its end.
        beside: true,
        steps: &[Step::Run {
            line: TSAN_UNIT,
            env: TSAN_ENV,
        }],
    },
    Stage {
        name: "tsan-integration",
        purpose: "data races in the stress tests, by ThreadSanitizer",
        switch: Switch::Off("ten minutes; run it after changes to the lock-free parts"),
        needs: &["nightly", "rust-src", tools::TSAN_HOST],
        counts_tests: true,
        silence_minutes: 20,
        beside: false,
        steps: &[Step::Run {
            line: TSAN_INTEGRATION,
            env: TSAN_ENV,
        }],
    },
    Stage {
        name: "miri-seeds",
        purpose: "small programs, interpreted in many schedules",
        switch: Switch::Off("half an hour; run it after changes to the lock-free parts"),
        needs: &["nightly", "miri", "rust-src"],
        counts_tests: true,
        silence_minutes: 60,
        beside: false,
        steps: &[Step::Run {
            line: MIRI_SEEDS,
            env: &[("MIRIFLAGS", SEEDS_MANY), WITHOUT_BACKTRACES],
        }],
    },
    Stage {
        name: "campaign",
        purpose: "a third of a million random programs on simulated threads, and frames on eighty graphs",
        switch: Switch::Off("minutes; run it after changes to the runtime"),
        needs: &[],
        counts_tests: true,
        silence_minutes: 60,
        beside: false,
        steps: &[
            Step::Run {
                line: CAMPAIGN,
                env: &[("PACELINE_SEEDS", "60000")],
            },
            // Work that is left to the workers is lost in few orders: more of them.
            Step::Run {
                line: CAMPAIGN_LEFT,
                env: &[("PACELINE_SEEDS", "120000")],
            },
            run(CAMPAIGN_GRAPHS),
        ],
    },
    Stage {
        name: "examples",
        purpose: "the examples run and print what is committed beside them",
        switch: Switch::On,
        needs: &[],
        counts_tests: false,
        silence_minutes: 5,
        beside: false,
        steps: &[call("run each example (see examples.rs)", examples::stage)],
    },
    Stage {
        name: "tracy",
        purpose: "a viewer of Tracy's gets the jobs of the example that shows it",
        switch: Switch::WithAll,
        needs: &["c++"],
        counts_tests: true,
        silence_minutes: 10,
        beside: false,
        // The whole workspace, so that it is compiled once.
        steps: &[
            run("cargo build --workspace --examples --features paceline-profilers/tracy"),
            run("cargo test --workspace --features paceline-profilers/tracy --test tracy"),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_stage_does_something() {
        for (index, stage) in STAGES.iter().enumerate() {
            assert!(
                STAGES[..index].iter().all(|other| other.name != stage.name),
                "{}",
                stage.name
            );
            assert!(
                !stage.steps.is_empty() && !stage.purpose.is_empty(),
                "{}",
                stage.name
            );
            let takes_part = !matches!(stage.switch, Switch::Off(_));
            assert!(
                !takes_part || stage.silence_minutes <= 15,
                "{} may take longer than all",
                stage.name
            );
        }
    }

    /// Goal: a usual run has the tests and the models, and needs nothing but what cargo brings or links with;
    /// a run of all has more. Method: the table.
    #[test]
    fn a_usual_run_needs_only_what_cargo_brings() {
        let names = |all: bool| {
            let taking_part = STAGES
                .iter()
                .filter(move |stage| stage.switch.takes_part(all));
            taking_part.map(|stage| stage.name).collect::<Vec<_>>()
        };
        let usual = names(false);
        for name in ["clippy", "tidy", "unit", "clients", "model", "examples"] {
            assert!(usual.contains(&name), "{name}");
        }
        let needs = STAGES.iter().filter(|stage| usual.contains(&stage.name));
        for need in needs.flat_map(|stage| stage.needs) {
            assert!(["rustfmt", "clippy", "cc"].contains(need), "{need}");
        }
        for name in ["miri", "tsan", "more-clients", "wheel"] {
            assert!(
                names(true).contains(&name) && !usual.contains(&name),
                "{name}"
            );
        }
    }

    /// Two builds with different flags in one target folder would throw each other away.
    #[test]
    fn special_builds_have_a_target_folder_of_their_own() {
        for step in STAGES.iter().flat_map(|stage| stage.steps) {
            let Step::Run { line, env } = step else {
                continue;
            };
            if line.contains("cargo +") || env.iter().any(|(name, _)| *name == "RUSTFLAGS") {
                assert!(line.contains("--target-dir {target}/"), "{line}");
            }
        }
    }
}
