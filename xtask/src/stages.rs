//! The table of stages: what `cargo xtask test` runs, in order. To add a stage, add a row.
//!
//! A command line is split at spaces; `{target}` is cargo's target folder and `{host}` the compiler's own
//! triple. A stage that counts tests fails if it ran none: a filter cannot pass by doing nothing.

use crate::context::Context;
use crate::{clients, dist, examples, hello, oracle, package, peers, tidy, tools, vm, wasm, wheel};

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

/// Whether the stage takes part.
pub(crate) enum Switch {
    On,
    /// Not in a usual run, and why; selecting it with `--only` runs it.
    Off(&'static str),
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

const DOC_FLAGS: &str = "-D warnings -D rustdoc::broken_intra_doc_links";

/// Miri lets the tests see the real clock. One thread schedule.
const MIRI_FLAGS: &str = "-Zmiri-disable-isolation";

/// Many tests panic on purpose, and to find the names for a backtrace takes an interpreter ten seconds.
const WITHOUT_BACKTRACES: (&str, &str) = ("RUST_BACKTRACE", "0");

/// Crates whose unit tests Miri interprets.
pub(crate) const INTERPRETED: &[&str] = &["event", "platform", "paceline"];

/// The end of the name of a test that is too long for an interpreter, because it does the same thing ten
/// thousand times. `--skip` finds its text anywhere in a test's path; tidy's rule "long-tests" keeps it out
/// of all other places.
pub(crate) const LONG: &str = "_long";

/// The tests that are small enough for an interpreter: unit tests, without those whose names end in [`LONG`],
/// those that start processes, which an interpreter cannot, and those that write whole trace files and read
/// them back, which takes it minutes each: the rings between them have tests of their own. The models, which
/// have a checker of their own, are not built for it, nor is their base. Tests that are to be run in several
/// schedules are in the next step.
const MIRI: &str = "cargo +nightly miri test --target-dir {target}/miri \
    -p paceline-event -p paceline-platform -p paceline --lib -- --skip _long \
    --skip os::guardian --skip os::interrupts --skip os::tracefs --skip interpreted:: \
    --skip api::trace::tests::";

/// The small programs that are there to be interpreted, once for each seed of [`SEEDS_FEW`] or
/// [`SEEDS_MANY`]: each time threads are scheduled, and loads are answered, in another way. Every seed counts
/// as if it were more tests.
const MIRI_SEEDS: &str = "cargo +nightly miri test --target-dir {target}/miri -p paceline --lib -- \
    interpreted::";

/// A seed is about a minute of a processor's time; as many as there are processors run at the same time.
const SEEDS_FEW: &str = "-Zmiri-disable-isolation -Zmiri-many-seeds=0..2";
const SEEDS_MANY: &str = "-Zmiri-disable-isolation -Zmiri-many-seeds=0..32";

const TSAN_FLAGS: &str = "-Zsanitizer=thread --cfg paceline_tsan";

/// A report of a race names lines, for which the build has to have them.
const TSAN_ENV: &[(&str, &str)] = &[
    ("RUSTFLAGS", TSAN_FLAGS),
    ("CARGO_PROFILE_DEV_DEBUG", "line-tables-only"),
];

/// Std is built with the sanitizer too, or its own synchronization would look like races. The models
/// run on one thread: they are not built. Programs in C++ are built with it, too.
const TSAN_UNIT: &str = "cargo +nightly test -Zbuild-std --target {host} --target-dir {target}/tsan \
    -p paceline-platform -p paceline -p paceline-capi --lib --test cpp";

/// The integration tests whose threads are real.
const TSAN_INTEGRATION: &str = "cargo +nightly test -Zbuild-std --target {host} \
    --target-dir {target}/tsan -p paceline-tests --test integration -- stress reproducers dag::real";

/// The command, which depends on all crates that others use.
const OLDEST: &str = "cargo +1.88 check --target-dir {target}/oldest -p paceline-cli";

/// Built, not only checked: some mistakes show when constants are computed.
const OLDEST_NARROW: &str = "cargo +1.88 build --target-dir {target}/oldest \
    --target i686-unknown-linux-gnu -p paceline -p paceline-workload";

/// Tests of what computes with addresses. The model checker is not for 32 bits.
const NARROW: &str = "cargo test --target i686-unknown-linux-gnu --target-dir {target}/narrow \
    -p paceline-event -p paceline-platform -p paceline -p paceline-anywhere --lib";

/// The job system without adaptation to the machine.
const LEAN: &str = "cargo test -p paceline -p paceline-platform --no-default-features --lib";

/// A workspace of its own. Without its program, which takes clang to build.
const SCX: &str = "cargo test --locked --no-default-features --target-dir {target}/scx \
    --manifest-path crates/scx/Cargo.toml";

/// Random programs that are waited for or dropped.
const CAMPAIGN: &str = "cargo test --profile release-test -p paceline-tests --test integration -- \
    dag::simulated";

/// Those that are left to the workers.
const CAMPAIGN_LEFT: &str = "cargo test --profile release-test -p paceline-tests --test integration -- \
    dag::left";

/// Frames on eighty graphs of source 001's kind; the usual run has some of them.
const CAMPAIGN_GRAPHS: &str = "cargo test --profile release-test -p paceline-workload --test source001 -- \
    --ignored";

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
        switch: Switch::On,
        needs: &[tools::OLDEST, tools::NARROW],
        counts_tests: false,
        silence_minutes: 5,
        beside: false,
        steps: &[run(OLDEST), run(OLDEST_NARROW)],
    },
    Stage {
        name: "package",
        purpose: "the crates can be packaged, and a stranger's program builds from the packages",
        switch: Switch::On,
        needs: &[],
        counts_tests: false,
        silence_minutes: 5,
        beside: false,
        steps: &[call("cargo xtask package", package::stage)],
    },
    Stage {
        name: "lean",
        purpose: "the job system without default features: its unit tests, and what it adds to a program",
        switch: Switch::On,
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
        switch: Switch::On,
        needs: vm::STAGE_NEEDS,
        counts_tests: false,
        silence_minutes: 10,
        beside: false,
        steps: &[call("cargo xtask vm --smoke", vm::stage)],
    },
    Stage {
        name: "wasm",
        purpose: "programs on the job system run in WebAssembly, without threads and without a clock",
        switch: Switch::On,
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
        switch: Switch::On,
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
        switch: Switch::On,
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
        purpose: "other programs' own tests on the job system; Box2D's worlds and Bevy's end the same",
        switch: Switch::On,
        needs: &["rustfmt", "c++"],
        counts_tests: false,
        silence_minutes: 15,
        beside: false,
        steps: &[
            call("cargo fmt --check, in each package", clients::formatted),
            call("cargo xtask clients --smoke", clients::stage),
        ],
    },
    Stage {
        name: "wheel",
        purpose: "the Python package in a clean venv, and on a Ray cluster that loses a node",
        switch: Switch::On,
        needs: wheel::NEEDS,
        counts_tests: false,
        silence_minutes: 15,
        beside: false,
        steps: &[call("cargo xtask wheel --check --ray", wheel::stage)],
    },
    Stage {
        name: "pages",
        purpose: "the pages of --report in a browser: clicks, keys, numbers, hostile names",
        switch: Switch::On,
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
        switch: Switch::On,
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
        switch: Switch::On,
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
        switch: Switch::On,
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
        switch: Switch::On,
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
            let takes_part = matches!(stage.switch, Switch::On);
            assert!(
                !takes_part || stage.silence_minutes <= 15,
                "{} may take longer than all",
                stage.name
            );
        }
    }

    /// Goal: Miri leaves out long tests and whole modules, and no more. Method: its command line.
    #[test]
    fn miri_skips_long_tests_and_modules_only() {
        let words: Vec<&str> = MIRI.split_whitespace().collect();
        let behind = |option| {
            let pairs = words.windows(2).filter(move |pair| pair[0] == option);
            pairs.map(|pair| pair[1]).collect::<Vec<_>>()
        };
        let skipped = behind("--skip");
        assert!(skipped.contains(&LONG));
        for word in skipped {
            assert!(word == LONG || word.contains("::"), "{word}");
        }
        let packages = behind("-p");
        assert_eq!(packages.len(), INTERPRETED.len());
        for (package, name) in packages.iter().zip(INTERPRETED) {
            assert!(package.ends_with(name), "{package}");
        }
    }

    /// Goal: the toolchain that is tried is the one that the manifests promise. Method: their number.
    #[test]
    fn the_oldest_toolchain_is_the_one_that_is_promised() {
        let promised = env!("CARGO_PKG_RUST_VERSION");
        for line in [OLDEST, OLDEST_NARROW] {
            assert!(line.starts_with(&format!("cargo +{promised} ")), "{line}");
        }
        assert_eq!(tools::OLDEST, format!("Rust {promised}"));
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
