//! The longer command lines of the stages, and their flags.
//!
//! A command line is split at spaces; `{target}` is cargo's target folder and `{host}` the compiler's own
//! triple.

pub(super) const DOC_FLAGS: &str = "-D warnings -D rustdoc::broken_intra_doc_links";

/// Miri lets the tests see the real clock. One thread schedule.
pub(super) const MIRI_FLAGS: &str = "-Zmiri-disable-isolation";

/// Many tests panic on purpose, and to find the names for a backtrace takes an interpreter ten seconds.
pub(super) const WITHOUT_BACKTRACES: (&str, &str) = ("RUST_BACKTRACE", "0");

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
pub(super) const MIRI: &str = "cargo +nightly miri test --target-dir {target}/miri \
    -p paceline-event -p paceline-platform -p paceline --lib -- --skip _long \
    --skip os::guardian --skip os::interrupts --skip os::tracefs --skip interpreted:: \
    --skip api::trace::tests::";

/// The small programs that are there to be interpreted, once for each seed of [`SEEDS_FEW`] or
/// [`SEEDS_MANY`]: each time threads are scheduled, and loads are answered, in another way. Every seed counts
/// as if it were more tests.
pub(super) const MIRI_SEEDS: &str = "cargo +nightly miri test --target-dir {target}/miri \
    -p paceline --lib -- interpreted::";

/// A seed is about a minute of a processor's time; as many as there are processors run at the same time.
pub(super) const SEEDS_FEW: &str = "-Zmiri-disable-isolation -Zmiri-many-seeds=0..2";
pub(super) const SEEDS_MANY: &str = "-Zmiri-disable-isolation -Zmiri-many-seeds=0..32";

pub(super) const TSAN_FLAGS: &str = "-Zsanitizer=thread --cfg paceline_tsan";

/// A report of a race names lines, for which the build has to have them.
pub(super) const TSAN_ENV: &[(&str, &str)] = &[
    ("RUSTFLAGS", TSAN_FLAGS),
    ("CARGO_PROFILE_DEV_DEBUG", "line-tables-only"),
];

/// Std is built with the sanitizer too, or its own synchronization would look like races. The models
/// run on one thread: they are not built. Programs in C++ are built with it, too.
pub(super) const TSAN_UNIT: &str = "cargo +nightly test -Zbuild-std --target {host} \
    --target-dir {target}/tsan -p paceline-platform -p paceline -p paceline-capi --lib --test cpp";

/// The integration tests whose threads are real.
pub(super) const TSAN_INTEGRATION: &str = "cargo +nightly test -Zbuild-std --target {host} \
    --target-dir {target}/tsan -p paceline-tests --test integration -- stress reproducers dag::real";

/// The command, which depends on all crates that others use.
pub(super) const OLDEST: &str = "cargo +1.88 check --target-dir {target}/oldest -p paceline-cli";

/// Built, not only checked: some mistakes show when constants are computed.
pub(super) const OLDEST_NARROW: &str = "cargo +1.88 build --target-dir {target}/oldest \
    --target i686-unknown-linux-gnu -p paceline -p paceline-workload";

/// Tests of what computes with addresses. The model checker is not for 32 bits.
pub(super) const NARROW: &str = "cargo test --target i686-unknown-linux-gnu --target-dir {target}/narrow \
    -p paceline-event -p paceline-platform -p paceline -p paceline-anywhere --lib";

/// The job system without adaptation to the machine.
pub(super) const LEAN: &str =
    "cargo test -p paceline -p paceline-platform --no-default-features --lib";

/// A workspace of its own. Without its program, which takes clang to build.
pub(super) const SCX: &str = "cargo test --locked --no-default-features --target-dir {target}/scx \
    --manifest-path crates/scx/Cargo.toml";

/// Random programs that are waited for or dropped.
pub(super) const CAMPAIGN: &str = "cargo test --profile release-test -p paceline-tests --test integration -- \
    dag::simulated";

/// Those that are left to the workers.
pub(super) const CAMPAIGN_LEFT: &str = "cargo test --profile release-test -p paceline-tests \
    --test integration -- dag::left";

/// Frames on eighty graphs of source 001's kind; the usual run has some of them.
pub(super) const CAMPAIGN_GRAPHS: &str = "cargo test --profile release-test -p paceline-workload \
    --test source001 -- --ignored";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools;

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
}
